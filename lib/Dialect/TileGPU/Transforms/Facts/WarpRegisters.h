// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers the threads of a specialised kernel can have.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_WARPREGISTERS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_WARPREGISTERS_H

#include "tessera/Machine/GPUMachine.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>

namespace tessera::tilegpu {

/// Registers that a thread of the program's warps can have, with so many programs at once.
/// One warp more has the thread that orders copies, as long as that leaves the others what
/// they want. If not, a warpgroup gives up what it does not need.
struct WarpRegisters {
  static constexpr int64_t kWarpsOfWarpgroup = GPUMachine::kWarpsOfWarpgroup;

  explicit WarpRegisters(int64_t warps, int64_t programs = 1) : forCopies(programs > 1 ? 24 : 40) {
    // Each quarter of an SM has its own, and every fourth warp.
    auto share = [&](int64_t count) {
      return GPUMachine::getRegisters(programs * llvm::alignTo(count, kWarpsOfWarpgroup) *
                                      GPUMachine::kWarpSize);
    };
    alone = share(warps + 1);
    int64_t entry = share(warps + kWarpsOfWarpgroup);
    if (warps % kWarpsOfWarpgroup == 0 && entry >= forCopies)
      shared =
          std::min<int64_t>(GPUMachine::kMaxAllocatedRegisters,
                            llvm::alignDown(entry + (entry - forCopies) * kWarpsOfWarpgroup / warps,
                                            GPUMachine::kRegisterStep));
  }

  int64_t getMost() const { return std::max(alone, shared); }

  int64_t forCopies, alone, shared = 0;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_WARPREGISTERS_H
