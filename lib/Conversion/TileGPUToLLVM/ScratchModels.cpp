// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scratch memory of ops of the tile dialect whose result only one thread has.

#include "Delivery.h"
#include "ScratchMemory.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"

using namespace mlir;
using namespace tessera;

namespace {

template <typename SourceOp>
struct DeliveryModel
    : tilegpu::ScratchOpInterface::ExternalModel<DeliveryModel<SourceOp>, SourceOp> {
  int64_t getScratchBytes(Operation *op) const {
    if (op->use_empty())
      return 0;
    if (auto load = dyn_cast<tile::LoadOp>(op); load && !load.getIsVolatile())
      return 0;
    return getDeliveryBytes(op->getResult(0).getType(), op);
  }
};

template <typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<DeliveryModel<Ops>>(*context), ...);
}

} // namespace

void tessera::registerTileGPUScratchModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tile::TileDialect *) {
    attach<tile::LoadOp, tile::AtomicLoadOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::ClockOp>(
        context);
    attachExchangeScratchModels(context);
  });
}
