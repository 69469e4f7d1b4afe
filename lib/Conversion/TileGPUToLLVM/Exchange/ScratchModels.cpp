// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scratch memory of ops of the tile dialect whose result only one thread has, or is to have
// for all.

#include "Delivery.h"
#include "ScratchMemory.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Analysis/SharedMemory/Replication.h"
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

/// Blocks of a cluster have different values of ops that observe the machine. One block's value is
/// the program's. So values and branches that depend on it are equal in all. Ops in the region of
/// another op, which run per element, are handled by that op.
template <typename ForeignOp>
struct ForeignModel
    : tilegpu::ScratchOpInterface::ExternalModel<ForeignModel<ForeignOp>, ForeignOp> {
  int64_t getScratchBytes(Operation *op) const {
    if (tilegpu::getNumBlocks(op) == 1 || op->use_empty() || !isOfProgram(op) || !maySeeMachine(op))
      return 0;
    int64_t bytes = 0;
    for (Type type : op->getResultTypes())
      if (Replication::of(type, op).blocks != 0)
        bytes = std::max(bytes, getDeliveryBytes(type, op));
    return bytes;
  }

private:
  static bool isOfProgram(Operation *op) {
    // Extern functions of tiles become calls per element before results are delivered.
    if (isa<tile::ExternElementwiseOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()))
      return false;
    Operation *around = op->getParentOp();
    while (isa_and_present<scf::SCFDialect>(around->getDialect()))
      around = around->getParentOp();
    return isa<FunctionOpInterface>(around);
  }
};

template <template <typename> class Model, typename... Ops>
void attachModels(MLIRContext *context) {
  (Ops::template attachInterface<Model<Ops>>(*context), ...);
}

} // namespace

void tessera::registerTileGPUScratchModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tile::TileDialect *, tilegpu::TileGPUDialect *) {
    attachModels<DeliveryModel, tile::LoadOp, tile::AtomicLoadOp, tile::AtomicRMWOp,
                 tile::AtomicCASOp, tile::ClockOp>(context);
    attachModels<ForeignModel, tile::InlineAsmOp, tile::ExternElementwiseOp>(context);
    attachExchangeScratchModels(context);
  });
}
