// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates for the layouts of memory accesses. Only that: what suits one access may
// cost a conversion elsewhere, and that is weighed for the whole function at once.

#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUCOALESCEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

struct TileGPUCoalescePass : tessera::tilegpu::impl::TileGPUCoalescePassBase<TileGPUCoalescePass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<unsigned> warps = requireNumWarps(module);
    if (failed(warps))
      return signalPassFailure();
    unsigned warpBits = llvm::Log2_32(*warps);
    unsigned blockBits = getBlockBits(module);
    for (auto function : module.getOps<tile::FuncOp>())
      coalesce(function, warpBits, blockBits);
  }

private:
  void coalesce(tile::FuncOp function, unsigned warpBits, unsigned blockBits);
};

} // namespace

void TileGPUCoalescePass::coalesce(tile::FuncOp function, unsigned warpBits, unsigned blockBits) {
  AccessAnalysis analysis;
  std::vector<std::pair<Operation *, AccessPattern>> accesses;
  // Dimensions, from the last, along which something lies in a row.
  llvm::SmallDenseSet<unsigned> contiguous;
  bool transposed = false;
  function.walk([&](Operation *op) {
    transposed |= tile::permutesDimensions(op);
    Value pointers = getAccessedPointers(op);
    if (!pointers)
      return;
    accesses.push_back({op, getAccessPattern(op, analysis)});
    LinearLayout numbers(tile::getShape(pointers.getType()));
    ArrayRef<unsigned> chain = accesses.back().second.chain;
    for (unsigned dim = 0; dim < numbers.rank(); ++dim)
      if (!chain.empty() && numbers.dimMask(dim) >> chain.front() & 1)
        contiguous.insert(numbers.rank() - dim);
  });
  transposed |= contiguous.size() > 1;
  for (auto &[op, pattern] : accesses) {
    ArrayRef<int64_t> shape = tile::getShape(getAccessedPointers(op).getType());
    SmallVector<Attribute> candidates;
    // Each block has all of what goes to shared memory.
    unsigned dividing = isa<AsyncCopyOp>(op) ? 0 : blockBits;
    for (LinearLayout layout : getCandidates(shape, pattern, warpBits, dividing, transposed)) {
      layout.columns(HwDim::Block).resize(blockBits, 0);
      candidates.push_back(LayoutAttr::get(&getContext(), layout));
    }
    op->setAttr(kCandidatesAttr, ArrayAttr::get(&getContext(), candidates));
  }
}
