// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Predicts the registers that a thread of a program needs with other numbers of warps and blocks.
//
// If a kernel does not fit its registers, it is compiled again, with more warps or as a cluster of
// blocks. The worse a choice fits, the longer its lowering and assembling take. One count of the
// registers that threads hold (`countHeldRegisters`, `countLiveRegisters`) suffices to predict:
// threads share tiles, so twice as many threads hold half as much each.
//
//     held by a thread = counted * threads that were counted / threads
//
// ptxas needs further registers for addresses, masks and intermediate values. It stores most
// spilled values more than once:
//
//     spilled bytes of a thread = 2 * 4 * (held + 32 - available)
//
// With 32 warps a thread has 64 registers, and 16 replaces 32. The constants fit norms, softmaxes
// and gradients of norms: 60 kernels of 8,192 to 65,536 columns, f32 and bf16, 4 to 16 warps (ptxas
// 13.0, sm_90a, 28 Nov 2026). Predicted spills are mostly within a factor of two.
//
// Worked example: a norm of 4x16384 f32 holds 640 registers in each of 128 threads. In 512 threads
// it holds 160, 64 more than remain of 128. The prediction is 512 bytes, and ptxas spills 568. Each
// of two blocks of 256 threads holds 160, too, and has 255 registers: it fits.
//
// Not modelled: values whose number does not shrink with more threads, such as a scan's partial
// results.

#ifndef TESSERA_MACHINE_REGISTERNEED_H
#define TESSERA_MACHINE_REGISTERNEED_H

#include "tessera/Machine/GPUMachine.h"

#include <algorithm>
#include <cstdint>

namespace tessera {

class RegisterNeed {
public:
  /// `counted` is the registers of a thread in a program of `blocks` blocks of `warps` warps.
  RegisterNeed(int64_t counted, int64_t warps, int64_t blocks)
      : ofProgram(counted * GPUMachine::kWarpSize * warps * blocks) {}

  /// Registers that a thread of a block of so many warps can have.
  static int64_t getAvailable(int64_t warps) {
    return std::min(GPUMachine::kMaxRegisters,
                    GPUMachine::kRegisters / (GPUMachine::kWarpSize * warps));
  }

  /// Registers that a thread holds with so many warps and blocks.
  int64_t getHeld(int64_t warps, int64_t blocks) const {
    int64_t threads = GPUMachine::kWarpSize * warps * blocks;
    return (ofProgram + threads - 1) / threads;
  }

  bool fits(int64_t warps, int64_t blocks) const { return getMissing(warps, blocks) == 0; }

  /// True if it fits where half of what is held can wait in shared memory instead, as rows of a
  /// loop do that are copied there ahead.
  bool mightFit(int64_t warps, int64_t blocks) const {
    return getHeld(warps, blocks) + getOverhead(warps) <= 2 * getAvailable(warps);
  }

  /// Bytes that all threads of a block spill.
  int64_t getSpilledBytes(int64_t warps, int64_t blocks) const {
    return kStoresPerValue * GPUMachine::kRegisterBytes * getMissing(warps, blocks) *
           GPUMachine::kWarpSize * warps;
  }

private:
  static constexpr int64_t kMaxOverheadRegisters = 32;
  static constexpr int64_t kStoresPerValue = 2;

  static int64_t getOverhead(int64_t warps) {
    return std::min(kMaxOverheadRegisters, getAvailable(warps) / 4);
  }

  int64_t getMissing(int64_t warps, int64_t blocks) const {
    return std::max<int64_t>(0, getHeld(warps, blocks) + getOverhead(warps) - getAvailable(warps));
  }

  int64_t ofProgram; ///< registers that all threads hold together
};

} // namespace tessera

#endif // TESSERA_MACHINE_REGISTERNEED_H
