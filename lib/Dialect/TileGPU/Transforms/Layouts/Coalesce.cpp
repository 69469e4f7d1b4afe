// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates for the layouts of memory accesses. Only that: what suits one access may
// cost a conversion elsewhere, and that is weighed for the whole function at once.

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
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
  void proposeRuns(LocalLoadOp load, unsigned warpBits, unsigned blockBits);
};

} // namespace

/// Propose that a lane reads a contiguous run of a row, from all of it to a 32nd. If many
/// lanes need a row, such as the keys of a recurrence, few wide reads then load it.
void TileGPUCoalescePass::proposeRuns(LocalLoadOp load, unsigned warpBits, unsigned blockBits) {
  LinearLayout row(load.getType().getShape());
  unsigned bits = row.elementBits();
  if (load.getType().getRank() != 1 || row.oddFactor(0) != 1)
    return;
  SmallVector<Attribute> candidates;
  for (unsigned lanes = 0; lanes <= std::min(kLaneBits, bits); ++lanes) {
    LinearLayout layout(load.getType().getShape());
    for (unsigned bit = 0; bit < bits - lanes; ++bit)
      layout.columns(HwDim::Reg).push_back(uint64_t(1) << bit);
    layout.columns(HwDim::Lane).resize(kLaneBits - lanes, 0);
    for (unsigned bit = bits - lanes; bit < bits; ++bit)
      layout.columns(HwDim::Lane).push_back(uint64_t(1) << bit);
    layout.columns(HwDim::Warp).resize(warpBits, 0);
    layout.columns(HwDim::Block).resize(blockBits, 0);
    candidates.push_back(LayoutAttr::get(&getContext(), layout));
  }
  load->setAttr(kCandidatesAttr, ArrayAttr::get(&getContext(), candidates));
}

void TileGPUCoalescePass::coalesce(tile::FuncOp function, unsigned warpBits, unsigned blockBits) {
  AccessAnalysis analysis;
  std::vector<std::pair<Operation *, AccessPattern>> accesses;
  // Dimensions, from the last, along which something lies in a row.
  llvm::SmallDenseSet<unsigned> contiguous;
  bool transposed = false, hasDots = false;
  function.walk([&](Operation *op) {
    transposed |= tile::permutesDimensions(op);
    hasDots |= isDot(op);
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
  // Next to dots, the layout of their accumulators decides.
  if (!hasDots)
    function.walk([&](LocalLoadOp load) { proposeRuns(load, warpBits, blockBits); });
}
