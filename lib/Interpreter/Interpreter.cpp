// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of a grid, frames, regions and structured control flow. Other ops are in the files of
// their families.

#include "tessera/Interpreter/Interpreter.h"

#include "Program.h"
#include "tessera/Support/Cancellation.h"
#include "tessera/Support/UserError.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static const OpTable &getOpTable() {
  static const OpTable table = [] {
    OpTable table;
    addArithOps(table);
    addMathOps(table);
    addMemoryOps(table);
    addCheckOps(table);
    addAtomicOps(table);
    addDescriptorOps(table);
    addShapeOps(table);
    addReductionOps(table);
    addMatmulOps(table);
    addProgramOps(table);
    addControlFlowOps(table);
    return table;
  }();
  return table;
}

std::string interpreter::describeLocation(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  if (!place)
    return {};
  return llvm::formatv("{0}:{1}:{2}", place.getFilename().getValue(), place.getLine(),
                       place.getColumn())
      .str();
}

const OpTable::Handler &OpTable::find(Operation *op) const {
  auto found = handlers.find(op->getName().getTypeID());
  if (found == handlers.end())
    throw InternalError(
        llvm::formatv("the interpreter runs tile IR, and does not support '{0}' (at {1})",
                      op->getName().getStringRef(), describeLocation(op->getLoc())));
  return found->second;
}

//===----------------------------------------------------------------------===//
// Values, regions, functions
//===----------------------------------------------------------------------===//

const RuntimeValue &Program::get(Value value) const { return frame.at(value.getAsOpaquePointer()); }

int64_t Program::signedScalar(Value value) const {
  return asSigned(scalar(value), getBitWidth(value.getType()));
}

RuntimeValues Program::getAll(ValueRange values) const {
  RuntimeValues held;
  for (Value value : values)
    held.push_back(get(value));
  return held;
}

void Program::set(Value value, RuntimeValue held) {
  frame[value.getAsOpaquePointer()] = std::move(held);
}

void Program::setAll(ValueRange values, RuntimeValues held) {
  for (auto [value, item] : llvm::zip_equal(values, held))
    set(value, std::move(item));
}

RuntimeValues Program::run(Region &region, RuntimeValues arguments) {
  Block &block = region.front();
  setAll(block.getArguments(), std::move(arguments));
  for (Operation &op : block.without_terminator())
    getOpTable().find (&op)(&op, *this);
  return getAll(block.getTerminator()->getOperands());
}

RuntimeValues Program::call(tile::FuncOp function, RuntimeValues arguments) {
  Frame caller;
  std::swap(caller, frame);
  RuntimeValues results = run(function.getBody(), std::move(arguments));
  std::swap(caller, frame);
  return results;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static void runIf(scf::IfOp op, Program &program) {
  Region &region = program.scalar(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  if (!region.empty())
    program.setAll(op.getResults(), program.run(region, {}));
}

/// The induction variable is compared in its own width, but cannot wrap: the loop
/// ends where the next value would not fit.
static void runFor(scf::ForOp op, Program &program) {
  Type type = op.getInductionVar().getType();
  unsigned width = getBitWidth(type);
  auto read = [&](Value bound) -> __int128 {
    uint64_t bits = program.scalar(bound);
    if (op.getUnsignedCmp())
      return bits;
    return asSigned(bits, width);
  };
  __int128 upper = read(op.getUpperBound()), step = program.signedScalar(op.getStep());
  if (step <= 0)
    throw UserError("E039", llvm::formatv("the step of a loop is {0}", static_cast<int64_t>(step)),
                    "use a positive step");
  RuntimeValues carried = program.getAll(op.getInitArgs());
  for (__int128 i = read(op.getLowerBound()); i < upper; i += step) {
    RuntimeValues arguments{Tile(type, truncate(static_cast<uint64_t>(i), width))};
    llvm::append_range(arguments, carried);
    carried = program.run(op.getRegion(), std::move(arguments));
  }
  program.setAll(op.getResults(), std::move(carried));
}

static void runWhile(scf::WhileOp op, Program &program) {
  RuntimeValues carried = program.getAll(op.getInits());
  while (true) {
    RuntimeValues passed = program.run(op.getBefore(), std::move(carried));
    bool again = std::get<Tile>(passed.front()).bits.front();
    passed.erase(passed.begin());
    if (!again)
      return program.setAll(op.getResults(), std::move(passed));
    carried = program.run(op.getAfter(), std::move(passed));
  }
}

void interpreter::addControlFlowOps(OpTable &table) {
  table.add<scf::IfOp>(runIf);
  table.add<scf::ForOp>(runFor);
  table.add<scf::WhileOp>(runWhile);
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

static tile::FuncOp findKernel(ModuleOp module, StringRef name) {
  SmallVector<StringRef> kernels;
  for (auto function : module.getOps<tile::FuncOp>()) {
    if (!function.isKernel())
      continue;
    if (function.getName() == name)
      return function;
    kernels.push_back(function.getName());
  }
  throw UserError("E051", llvm::formatv("the module has no kernel '{0}'", name),
                  llvm::formatv("its kernels: {0}", llvm::join(kernels, ", ")));
}

static RuntimeValues readArguments(tile::FuncOp kernel, ArrayRef<uint64_t> args) {
  ArrayRef<Type> types = kernel.getArgumentTypes();
  if (types.size() != args.size())
    throw UserError("E051",
                    llvm::formatv("kernel '{0}' takes {1} arguments, got {2}", kernel.getName(),
                                  types.size(), args.size()),
                    "pass one 8-byte slot an argument");
  RuntimeValues values;
  for (auto [type, slot] : llvm::zip(types, args)) {
    if (isa<tile::DescriptorType>(type))
      throw UserError("E051",
                      llvm::formatv("kernel '{0}' takes a {1}, which has no 8-byte slot",
                                    kernel.getName(), type),
                      "pass base, shape and strides, and make the descriptor in the kernel");
    values.push_back(Tile(type, truncate(slot, getBitWidth(type))));
  }
  return values;
}

void tessera::interpret(ModuleOp module, StringRef name, std::array<int32_t, 3> grid,
                        ArrayRef<uint64_t> args, const InterpreterOptions &options) {
  tile::FuncOp kernel = findKernel(module, name);
  for (int32_t extent : grid)
    if (extent < 0)
      throw UserError("E052",
                      llvm::formatv("the grid is ({0}, {1}, {2})", grid[0], grid[1], grid[2]),
                      "extents of a grid are 0 or more");
  RuntimeValues arguments = readArguments(kernel, args);
  InterruptPoll interrupts(options.isInterrupted);
  for (int32_t z = 0; z < grid[2]; ++z)
    for (int32_t y = 0; y < grid[1]; ++y)
      for (int32_t x = 0; x < grid[0]; ++x) {
        interrupts.look();
        Program(kernel, {x, y, z}, grid, options).call(kernel, arguments);
      }
}
