// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registers that a thread of a program needs, predicted for other numbers of warps and blocks.
//
// A kernel that does not fit its registers is compiled again, with more warps or by a cluster of
// blocks. Lowering and assembling each choice takes the longer, the less it fits. One count of what
// threads hold at once (`countHeldRegisters`, `countLiveRegisters`) is enough to choose: threads
// share tiles, so twice as many threads hold half as much each.
//
//     held by a thread = counted * threads that were counted / threads
//
// ptxas needs registers besides, for addresses, masks and intermediate values, and stores most
// values that have none more than once:
//
//     spilled bytes of a thread = 2 * 4 * (held + 32 - available)
//
// (16 instead of 32 with 32 warps, of which a thread has 64 registers.) The constants fit norms,
// softmaxes and gradients of norms: 60 kernels of 8,192 to 65,536 columns, f32 and bf16, 4 to 16
// warps (ptxas 13.0, sm_90a, 28 Nov 2026). Predictions of what is spilled are mostly within a
// factor of two.
//
// Worked example: a norm of 4x16384 f32 holds 640 registers in each of 128 threads. In 512 threads
// it holds 160, 64 more than remain of 128. The prediction is 512 bytes, and ptxas spills 568. Each
// of two blocks of 256 threads holds 160, too, and has 255 registers: it fits.
//
// Left out: what does not shrink with the number of threads, such as a scan's partial results.

#ifndef TESSERA_MACHINE_REGISTERNEED_H
#define TESSERA_MACHINE_REGISTERNEED_H

#include "tessera/Machine/GPUMachine.h"

#include <algorithm>
#include <cstdint>

namespace tessera {

class RegisterNeed {
public:
  /// A thread of `warps` warps in each of `blocks` blocks was counted to hold `counted` registers.
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
