// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tilegpu-replace-narrow-copies: what cp.async has no width for is loaded and stored (docs in
// Passes.td).

#include "AsyncOps.h"
#include "Fragments/VerifyLayouts.h"
#include "Plans/AccessPlan.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Access/ThreadAccess.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_TILEGPUREPLACENARROWCOPIES
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"
} // namespace tessera

namespace {

struct TileGPUReplaceNarrowCopies
    : tessera::impl::TileGPUReplaceNarrowCopiesBase<TileGPUReplaceNarrowCopies> {
  void runOnOperation() final {
    SmallVector<tilegpu::AsyncCopyOp> copies, narrow;
    getOperation().walk([&](tilegpu::AsyncCopyOp op) { copies.push_back(op); });
    if (copies.empty())
      return;
    if (failed(verifyLayouts(getOperation())))
      return signalPassFailure();
    for (tilegpu::AsyncCopyOp op : copies) {
      int64_t bytes = tilegpu::getElementBytes(op.getBuffer().getType().getElementType());
      bytes *= countElementsPerCopy(op);
      if (bytes < GPUMachine::kMinAsyncCopyBytes)
        narrow.push_back(op);
      else if (bytes < tilegpu::kMaxAccessBytes &&
               tilegpu::CopyHints::attachedTo(op).cache == tile::CacheModifier::CG)
        emitRemark(op, RemarkKind::CopyInFirstLevelCache)
            << "copy also fills the L1 cache: copies of " << named("bytes", bytes)
            << " bytes cannot bypass it, those of 16 can";
    }
    for (tilegpu::AsyncCopyOp op : narrow) {
      emitRemark(op, RemarkKind::CopyAtOnce)
          << "copy is synchronous: no 4 bytes of it are contiguous in both memories";
      OpBuilder builder(op);
      scf::IfOp branch;
      if (op.getCondition()) {
        branch = scf::IfOp::create(builder, op.getLoc(), op.getCondition());
        builder.setInsertionPointToStart(branch.thenBlock());
      }
      auto load = tile::LoadOp::create(builder, op.getLoc(), op.getPtr(), op.getMask());
      tilegpu::CopyHints hints = tilegpu::CopyHints::attachedTo(op);
      load.setCache(hints.cache);
      load.setEvict(hints.evict);
      // The width of an access, and the form of its mask.
      for (StringRef name : {kAccessAttr, kPrefixMasksAttr, kPartialMasksAttr})
        if (Attribute plan = op->getAttr(name))
          load->setAttr(name, plan);
      tilegpu::LocalStoreOp::create(builder, op.getLoc(), load, op.getBuffer());
      op.erase();
    }
  }
};

} // namespace
