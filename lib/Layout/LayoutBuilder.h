// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_LAYOUT_LAYOUTBUILDER_H
#define TESSERA_LIB_LAYOUT_LAYOUTBUILDER_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// Collects the atoms of a tile, then stretches it to the tensor.
class LayoutBuilder {
public:
  explicit LayoutBuilder(llvm::ArrayRef<int64_t> shape) : layout(shape), used(shape.size(), 0) {}

  LayoutBuilder &atom(HwDim hw, std::optional<unsigned> dim, uint64_t size) {
    layout.addAtom(hw, dim, size, used);
    return *this;
  }

  /// Repetitions go to registers, the last dimension first.
  LinearLayout fit() {
    for (unsigned dim = layout.rank(); dim-- > 0;)
      if (used[dim] < layout.dimBits(dim))
        layout.addAtom(HwDim::Reg, dim, uint64_t(1) << (layout.dimBits(dim) - used[dim]), used);
    return layout.canonical();
  }

private:
  LinearLayout layout;
  llvm::SmallVector<unsigned> used;
};

} // namespace tessera

#endif // TESSERA_LIB_LAYOUT_LAYOUTBUILDER_H
