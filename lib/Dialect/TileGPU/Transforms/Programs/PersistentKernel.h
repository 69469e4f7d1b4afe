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
// Which program number t is follows from the order of the grid that the kernel's schedule has
// (KernelScheduleAttr): the last ones first where those take longest; dealt so that blocks get the
// same sum of these (BalancedOrder.h); or in groups, so that programs that run at once look at the
// same rows and columns.
//
// A program that does not look at what others are doing cannot tell the difference. What
// is gained is the time between programs: whoever orders copies begins with those of the
// next one while this one's result is stored.

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

/// True if a kernel's programs may come in any order, and be told by `tile.program_id` which ones
/// they are: they do not look at each other, nor may wait for each other, nor see the machine
/// (MachineView.h), nor say which they are in what they print.
bool mayReorderPrograms(tile::FuncOp kernel);

/// True if a value may depend on which program it is: it is computed from a number of the program,
/// loaded, or comes out of a branch or loop.
bool dependsOnProgram(mlir::Value value);

class PersistentKernel {
public:
  /// True if programs may be reordered, and all end.
  static bool isPossible(tile::FuncOp kernel);
  /// The order in which blocks that begin together end together, if there is one: the grid's where
  /// programs are of about the same length (loops have as many iterations in all of them), and a
  /// balanced one where they grow along axis 0.
  static std::optional<ProgramOrder> findOrder(tile::FuncOp kernel);

  /// Gives the kernel the arguments for it.
  PersistentKernel(tile::FuncOp kernel, ProgramOrder order, unsigned group);

  /// Everything that the loop needs, where both regions see it.
  void emitBounds(mlir::OpBuilder &builder);
  /// The loop over programs, without a terminator.
  mlir::scf::ForOp emitLoop(mlir::OpBuilder &builder, mlir::ValueRange inits) const;
  /// Maps the ids and counts that ops give to those of the program of the loop around.
  void mapIds(mlir::OpBuilder &builder, mlir::scf::ForOp loop, mlir::IRMapping &mapping) const;
  /// Puts them in the place of the ops.
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
