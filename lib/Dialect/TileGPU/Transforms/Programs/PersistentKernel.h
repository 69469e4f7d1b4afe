// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A persistent kernel: the programs of a grid are done by as many blocks as the GPU has at once,
// each one program after the other:
//
//     kernel(args)                        kernel(args, gx, gy, gz)
//       id = program_id(0)        becomes   for t from program_id(0) to gx * gy * gz
//       ...                                                    step num_programs(0):
//                                             id = t % gx
//                                             ...
//
// Program number t follows from the order of the grid in the kernel's schedule
// (KernelScheduleAttr). If the last programs take longest, they come first, or are dealt so that
// blocks get equal sums (BalancedOrder.h). In groups, programs that run at once read the same rows
// and columns.
//
// An independent program computes the same in any order. The gain is the time between programs: the
// producer starts the next one's copies while this one's result is stored.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_PERSISTENTKERNEL_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_PERSISTENTKERNEL_H

#include "BalancedOrder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// On the loop over programs: its iterations are no later ones of the same program.
inline constexpr llvm::StringLiteral kOverProgramsAttr =
    TileGPUDialect::OverProgramsAttrHelper::getNameStr();

/// True if a kernel's programs may run in any order, with the ids of `tile.program_id`. They must
/// be independent, must not wait for each other, observe the machine (MachineView.h), or print
/// their ids.
bool mayReorderPrograms(tile::FuncOp kernel);

/// True if a value may depend on which program it is: it is computed from a number of the program,
/// loaded, or comes out of a branch or loop.
bool dependsOnProgram(mlir::Value value);

class PersistentKernel {
public:
  /// True if programs may be reordered, and all end.
  static bool isPossible(tile::FuncOp kernel);
  /// The order in which blocks that begin together end together, if there is one. It is the grid's
  /// if programs are of about the same length (their loops have equally many iterations), and a
  /// balanced one if they grow along axis 0. There is none if some programs leave out a loop.
  static std::optional<ProgramOrder> findOrder(tile::FuncOp kernel);

  /// Gives the kernel the arguments for it.
  PersistentKernel(tile::FuncOp kernel, ProgramOrder order, unsigned group);

  /// Everything that the loop needs, where both regions see it.
  void emitBounds(mlir::OpBuilder &builder);
  /// The loop over programs, without a terminator.
  mlir::scf::ForOp emitLoop(mlir::OpBuilder &builder, mlir::ValueRange inits) const;
  /// Maps the ids and counts that ops give to those of the program of the loop around.
  void mapIds(mlir::OpBuilder &builder, mlir::scf::ForOp loop, mlir::IRMapping &mapping) const;
  /// Replaces the ops by these values.
  void replaceIds(const mlir::IRMapping &mapping) const;

private:
  mlir::Value emitNumber(mlir::OpBuilder &builder, mlir::scf::ForOp loop) const;
  mlir::SmallVector<mlir::Value, 3> emitGroupedIds(mlir::OpBuilder &builder,
                                                   mlir::Value number) const;

  mutable tile::FuncOp kernel;
  ProgramOrder order;
  unsigned group;
  mlir::SmallVector<mlir::Value, 3> extents;
  mlir::SmallVector<tile::ProgramIdOp> ids; ///< of the kernel as it was
  mlir::SmallVector<tile::NumProgramsOp> counts;
  mlir::Value first, count, step;
  std::optional<BalancedDeal> deal; ///< of a balanced order
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_PERSISTENTKERNEL_H
