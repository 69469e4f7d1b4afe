// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers the threads of a specialised kernel can have.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_WARPREGISTERS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_WARPREGISTERS_H

#include "tessera/Machine/ScheduleBudget.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>

namespace tessera::tilegpu {

/// The registers of a thread of the program's warps, with so many programs on an SM. The producer
/// is one more warp if the others then still have the registers that they want. Otherwise it is a
/// warpgroup, which gives up the registers that it does not need.
struct WarpRegisters {
  static constexpr int64_t kWarpsOfWarpgroup = GPUMachine::kWarpsOfWarpgroup;

  explicit WarpRegisters(int64_t warps, int64_t programs = 1)
      : forCopies(RegisterBudget::getOfProducer(programs)) {
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
