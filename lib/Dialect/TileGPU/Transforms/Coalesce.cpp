// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates for the layouts of memory accesses. Only that: what suits one access may
// cost a conversion elsewhere, and that is weighed for the whole function at once.

#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
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
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!warps) {
      module.emitError("does not say how many warps a program has (") << kNumWarpsAttr << ")";
      return signalPassFailure();
    }
    unsigned warpBits = llvm::Log2_32(*warps);
    AccessAnalysis analysis;
    module.walk([&](Operation *op) {
      Value pointers = getAccessedPointers(op);
      if (!pointers)
        return;
      ArrayRef<int64_t> shape = tile::getShape(pointers.getType());
      AccessPattern pattern = getAccessPattern(op, analysis);
      SmallVector<Attribute> candidates;
      for (const LinearLayout &layout : getCandidates(shape, pattern, warpBits))
        candidates.push_back(LayoutAttr::get(&getContext(), layout));
      if (pattern.vectorBits(cast<LayoutAttr>(candidates.front()).getLayout()) > 0)
        ++numVectorized;
      op->setAttr(kCandidatesAttr, ArrayAttr::get(&getContext(), candidates));
    });
  }
};

} // namespace
