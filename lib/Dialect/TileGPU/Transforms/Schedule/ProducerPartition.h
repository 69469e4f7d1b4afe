// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The partition of a producer: the program's loops and branches with its copies in them, and the
// messages with their bounds, conditions and coordinates (ProducerSlice.h).

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERPARTITION_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERPARTITION_H

#include "KernelTransfers.h"

namespace tessera::tilegpu {

class PersistentKernel;

class ProducerPartition {
public:
  ProducerPartition(tile::FuncOp kernel, const KernelTransfers &transfers,
                    const ProducerSlice &slice, unsigned producer)
      : kernel(kernel), transfers(transfers), slice(slice), side(transfers, producer) {}

  /// Writes the partition beside the program's block, which is not expanded yet.
  void emit(mlir::Region &partition, mlir::Block *program,
            const std::optional<PersistentKernel> &persistent);

private:
  void emit(mlir::OpBuilder &builder, mlir::Block *block, mlir::IRMapping &mapping);
  void emit(mlir::OpBuilder &builder, mlir::scf::ForOp loop, mlir::IRMapping &mapping);
  void emit(mlir::OpBuilder &builder, mlir::scf::WhileOp loop, mlir::IRMapping &mapping);
  void emit(mlir::OpBuilder &builder, mlir::scf::IfOp branch, mlir::IRMapping &mapping);
  void receiveMessage(mlir::OpBuilder &builder, mlir::Operation *op, mlir::IRMapping &mapping);
  mlir::Value emitAgain(mlir::OpBuilder &builder, mlir::Value value, mlir::IRMapping &mapping);
  mlir::SmallVector<mlir::Value> emitCarried(mlir::OpBuilder &builder, mlir::ValueRange old,
                                             mlir::ArrayRef<unsigned> numbers,
                                             mlir::ArrayRef<unsigned> used,
                                             mlir::IRMapping &mapping);
  void setCarried(mlir::ValueRange old, mlir::ValueRange carried, mlir::ArrayRef<unsigned> numbers,
                  mlir::ArrayRef<unsigned> used, mlir::IRMapping &mapping);

  tile::FuncOp kernel;
  const KernelTransfers &transfers;
  const ProducerSlice &slice;
  PartitionSide side;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERPARTITION_H
