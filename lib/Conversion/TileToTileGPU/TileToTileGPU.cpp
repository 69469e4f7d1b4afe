// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives all tiles the encoding "no layout chosen yet". From here on, the verifiers of shape ops
// check encodings, and report a new tile without one.

#include "tessera/Conversion/TileToTileGPU/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_CONVERTTILETOTILEGPU
#include "tessera/Conversion/TileToTileGPU/Passes.h.inc"
} // namespace tessera

namespace {

struct ConvertTileToTileGPU : tessera::impl::ConvertTileToTileGPUBase<ConvertTileToTileGPU> {
  using ConvertTileToTileGPUBase::ConvertTileToTileGPUBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (numWarps < 1 || numWarps > GPUMachine::kMaxWarps || !llvm::isPowerOf2_32(numWarps)) {
      module.emitError("num-warps is ") << numWarps << "; wanted is a power of two up to 32";
      return signalPassFailure();
    }
    if (numCTAs < 1 || numCTAs > tilegpu::kMaxBlocks || !llvm::isPowerOf2_32(numCTAs)) {
      module.emitError("num-ctas is ")
          << numCTAs << "; wanted is a power of two up to " << tilegpu::kMaxBlocks;
      return signalPassFailure();
    }
    const GPUMachine *machine = GPUMachine::find(target);
    if (!machine) {
      module.emitError("target is \"") << target << "\"; wanted is " << GPUMachine::listNames();
      return signalPassFailure();
    }
    WalkResult found = module.walk([](Operation *op) {
      auto isDescriptor = [](Type type) {
        return isa<tile::BlockPointerType, tile::DescriptorType>(type);
      };
      if (llvm::none_of(op->getOperandTypes(), isDescriptor) &&
          llvm::none_of(op->getResultTypes(), isDescriptor))
        return WalkResult::advance();
      op->emitOpError("uses a block pointer or a descriptor, which tile-lower-descriptors lowers");
      return WalkResult::interrupt();
    });
    if (found.wasInterrupted())
      return signalPassFailure();

    // Not an index map: a reshape that layouts cannot follow exchanges elements between threads.
    module.walk([](tile::ReshapeOp reshape) {
      ArrayRef<int64_t> from = tile::getShape(reshape.getSource().getType());
      if (LinearLayout(from).reshape(tile::getShape(reshape.getType())))
        return;
      OpBuilder builder(reshape);
      Value moved = tilegpu::RenumberOp::create(builder, reshape.getLoc(), reshape.getType(),
                                                reshape.getSource());
      reshape.replaceAllUsesWith(moved);
      reshape.erase();
    });

    auto unassigned = tilegpu::UnassignedAttr::get(&getContext());
    auto encode = [&](RankedTensorType type) -> RankedTensorType {
      if (type.getEncoding())
        return type;
      return RankedTensorType::get(type.getShape(), type.getElementType(), unassigned);
    };
    AttrTypeReplacer replacer;
    replacer.addReplacement(
        [&](RankedTensorType type) { return std::make_pair(encode(type), WalkResult::skip()); });
    replacer.addReplacement(
        [&](DenseElementsAttr elements) -> std::optional<std::pair<Attribute, WalkResult>> {
          auto type = dyn_cast<RankedTensorType>(elements.getType());
          // Lists of numbers that belong to an op are not tiles.
          if (!type || isa<DenseArrayAttr>(Attribute(elements)))
            return std::nullopt;
          return std::make_pair(Attribute(elements.reshape(encode(type))), WalkResult::skip());
        });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);

    Builder builder(&getContext());
    module->setAttr(tilegpu::kNumWarpsAttr, builder.getI32IntegerAttr(numWarps));
    if (numCTAs > 1)
      module->setAttr(tilegpu::kNumCTAsAttr, builder.getI32IntegerAttr(numCTAs));
    module->setAttr(tilegpu::kTargetAttr, tilegpu::TargetAttr::get(&getContext(), machine));
    if (deterministic)
      module->setAttr(tilegpu::kDeterministicAttr, builder.getUnitAttr());
    if (flushResults)
      module->setAttr(tilegpu::kFlushResultsAttr, builder.getUnitAttr());
  }
};

} // namespace
