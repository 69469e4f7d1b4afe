// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/Fragments.h"

#include "LayoutBuilder.h"
#include "tessera/Machine/GPUMachine.h"

using namespace llvm;

namespace tessera {

/// Elements of k in a register.
static unsigned elementsPerWord(unsigned bits) {
  constexpr unsigned kWordBits = 8 * GPUMachine::kRegisterBytes;
  return bits < kWordBits ? kWordBits / bits : 1;
}

LinearLayout mmaAccumulator(ArrayRef<int64_t> shape, unsigned warpsM, unsigned warpsN) {
  constexpr unsigned m = 0, n = 1;
  return LayoutBuilder(shape)
      .atom(HwDim::Reg, n, 2)
      .atom(HwDim::Lane, n, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Warp, n, warpsN)
      .atom(HwDim::Warp, m, warpsM)
      .fit();
}

LinearLayout mmaOperandA(ArrayRef<int64_t> shape, unsigned bits, unsigned kRegisters,
                         unsigned warpsM, unsigned warpsN) {
  constexpr unsigned m = 0, k = 1;
  return LayoutBuilder(shape)
      .atom(HwDim::Reg, k, elementsPerWord(bits))
      .atom(HwDim::Lane, k, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Reg, k, kRegisters)
      .atom(HwDim::Warp, std::nullopt, warpsN)
      .atom(HwDim::Warp, m, warpsM)
      .fit();
}

LinearLayout mmaOperandB(ArrayRef<int64_t> shape, unsigned bits, unsigned kRegisters,
                         unsigned warpsM, unsigned warpsN) {
  constexpr unsigned k = 0, n = 1;
  return LayoutBuilder(shape)
      .atom(HwDim::Reg, k, elementsPerWord(bits))
      .atom(HwDim::Lane, k, 4)
      .atom(HwDim::Lane, n, 8)
      .atom(HwDim::Reg, k, kRegisters)
      .atom(HwDim::Warp, n, warpsN)
      .atom(HwDim::Warp, std::nullopt, warpsM)
      .fit();
}

LinearLayout wgmmaAccumulator(ArrayRef<int64_t> shape, unsigned groupsM, unsigned groupsN) {
  constexpr unsigned m = 0, n = 1;
  LayoutBuilder tile(shape);
  unsigned nBits = LinearLayout(shape).dimBits(n);
  // The instruction is as wide as the tile that one warpgroup has.
  uint64_t width = std::max<uint64_t>((uint64_t(1) << nBits) / groupsN, 8);
  return tile.atom(HwDim::Reg, n, 2)
      .atom(HwDim::Lane, n, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Reg, n, width / 8)
      .atom(HwDim::Warp, m, 4)
      .atom(HwDim::Warp, m, groupsM)
      .atom(HwDim::Warp, n, groupsN)
      .fit();
}

LinearLayout wgmmaOperandA(ArrayRef<int64_t> shape, unsigned bits, unsigned groupsM,
                           unsigned groupsN) {
  constexpr unsigned m = 0, k = 1;
  return LayoutBuilder(shape)
      .atom(HwDim::Reg, k, elementsPerWord(bits))
      .atom(HwDim::Lane, k, 4)
      .atom(HwDim::Lane, m, 8)
      .atom(HwDim::Reg, m, 2)
      .atom(HwDim::Reg, k, 2)
      .atom(HwDim::Warp, m, 4)
      .atom(HwDim::Warp, m, groupsM)
      .atom(HwDim::Warp, std::nullopt, groupsN)
      .fit();
}

} // namespace tessera
