// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of a kernel for one point of the grid, and the table that says what
// each op does to it. Every op family has a file, which enters its ops into the
// table as functions of (op, program).

#ifndef TESSERA_LIB_INTERPRETER_PROGRAM_H
#define TESSERA_LIB_INTERPRETER_PROGRAM_H

#include "Value.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"
#include "tessera/Interpreter/Interpreter.h"
#include "llvm/ADT/DenseMap.h"

#include <array>
#include <functional>
#include <unordered_map>
#include <vector>

namespace tessera::interpreter {

using RuntimeValues = std::vector<RuntimeValue>;

class Program {
public:
  Program(tile::FuncOp kernel, std::array<int32_t, 3> id, std::array<int32_t, 3> grid,
          const InterpreterOptions &options)
      : kernel(kernel), id(id), grid(grid), options(options) {}

  /// The current value of an SSA value. References stay good until the value is set again.
  const RuntimeValue &get(mlir::Value value) const;
  const Tile &tile(mlir::Value value) const { return std::get<Tile>(get(value)); }
  const ArrayView &view(mlir::Value value) const { return std::get<ArrayView>(get(value)); }
  /// The first element: the value of a scalar.
  uint64_t scalar(mlir::Value value) const { return tile(value).bits.front(); }
  int64_t signedScalar(mlir::Value value) const;
  RuntimeValues getAll(mlir::ValueRange values) const;

  void set(mlir::Value value, RuntimeValue held);
  void setAll(mlir::ValueRange values, RuntimeValues held);

  /// Runs the region's block on the arguments; the result is what its terminator
  /// takes (for scf.condition: the condition, then the rest).
  RuntimeValues run(mlir::Region &region, RuntimeValues arguments);

  /// Runs a function in a frame of its own.
  RuntimeValues call(tile::FuncOp function, RuntimeValues arguments);

  /// Throws the error for an access that lies `offset` bytes from argument `argument`.
  [[noreturn]] void failAccess(mlir::Operation *op, llvm::StringRef access, unsigned argument,
                               uint64_t pointer, int64_t bytes, int64_t offset, bool wraps);

  tile::FuncOp kernel;
  std::array<int32_t, 3> id, grid;
  const InterpreterOptions &options;

private:
  /// Keyed by the SSA value's identity; a node-based map, so that references stay
  /// good while regions run.
  using Frame = std::unordered_map<const void *, RuntimeValue>;
  Frame frame;
};

/// The handlers of ops.
class OpTable {
public:
  using Handler = std::function<void(mlir::Operation *, Program &)>;

  /// Enters `handler`, a function of (Op, Program &).
  template <typename Op, typename Function> void add(Function handler) {
    handlers[mlir::TypeID::get<Op>()] = [handler](mlir::Operation *op, Program &program) {
      handler(llvm::cast<Op>(op), program);
    };
  }
  /// Enters an op of one result, which is what `compute(Op, Program &)` returns.
  template <typename Op, typename Function> void addResult(Function compute) {
    add<Op>([compute](Op op, Program &program) {
      program.set(op->getResult(0), compute(op, program));
    });
  }

  /// The handler of the op; throws InternalError for an op that is not tile IR.
  const Handler &find(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::TypeID, Handler> handlers;
};

void addArithOps(OpTable &table);
void addMathOps(OpTable &table);
void addMemoryOps(OpTable &table);
void addCheckOps(OpTable &table);
void addAtomicOps(OpTable &table);
void addDescriptorOps(OpTable &table);
void addShapeOps(OpTable &table);
void addReductionOps(OpTable &table);
void addMatmulOps(OpTable &table);
void addProgramOps(OpTable &table);
void addControlFlowOps(OpTable &table);

/// The value that an atomic of this kind stores to memory that held `old` (AtomicOps.cpp).
uint64_t combineAtomic(tile::AtomicKind kind, mlir::Type element, uint64_t old, uint64_t value);

/// "file:line:col" of the innermost place that a location names; empty if none.
std::string describeLocation(mlir::Location location);

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_PROGRAM_H
