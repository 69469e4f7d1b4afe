// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OwnBuffer.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

MemDescType tessera::tilegpu::getOwnBuffer(Type tile) {
  auto type = cast<RankedTensorType>(tile);
  if (!llvm::all_of(type.getShape(), llvm::isPowerOf2_64))
    return {};
  LinearLayout threads = getLayoutAttr(type).getLayout();
  LinearLayout memory(type.getShape());
  f2::Columns &offset = memory.columns(HwDim::Offset);
  auto add = [&](const f2::Columns &columns, size_t first, size_t last) {
    for (uint64_t column : llvm::ArrayRef(columns).slice(first, last - first))
      if (column != 0) // of several that hold an element
        offset.push_back(column);
  };
  const f2::Columns &registers = threads.columns(HwDim::Reg);
  size_t ofPiece = llvm::Log2_64(
      std::max<int64_t>(GPUMachine::kMaxAccessBytes / getElementBytes(type.getElementType()), 1));
  ofPiece = std::min(ofPiece, registers.size());
  add(registers, 0, ofPiece);
  for (HwDim dim : {HwDim::Lane, HwDim::Warp})
    add(threads.columns(dim), 0, threads.columns(dim).size());
  add(registers, ofPiece, registers.size());
  memory.columns(HwDim::Block) = threads.columns(HwDim::Block);
  if (!memory.whyNotMemory().empty())
    return {};
  return MemDescType::get(type.getContext(), type.getShape(), type.getElementType(),
                          LayoutAttr::get(type.getContext(), memory));
}
