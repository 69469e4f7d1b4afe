// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program and its grid, calls, and messages to the user (assert, print). Promises (assume,
// hint) are believed and change nothing; a barrier has nothing to wait for.

#include "Program.h"

#include "tessera/Support/AssertionFault.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

static void runCall(tile::CallOp op, Program &p) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<tile::FuncOp>(op, op.getCalleeAttr());
  p.setAll(op.getResults(), p.call(callee, p.getAll(op.getOperands())));
}

//===----------------------------------------------------------------------===//
// Assert
//===----------------------------------------------------------------------===//

static void runAssert(tile::AssertOp op, Program &p) {
  const Tile &condition = p.tile(op.getCondition());
  if (llvm::all_of(condition.bits, [](uint64_t holds) { return holds != 0; }))
    return;
  throw describeAssertion(p.kernel.getName(), &p.id[0], op.getMessage(),
                          describeLocation(op.getLoc()));
}

//===----------------------------------------------------------------------===//
// Print
//===----------------------------------------------------------------------===//

static void printLine(Program &p, StringRef line) {
  if (p.options.print)
    return p.options.print(line);
  llvm::outs() << line << '\n';
  llvm::outs().flush();
}

/// A line an element: `pid (x, y, z) idx (i, j)`, the prefix as it is, and the value.
/// Indices are as wide as the largest along their dimension. A scalar has no indices;
/// among tiles it stands on every line.
static void runPrint(tile::PrintOp op, Program &p) {
  ArrayRef<int64_t> shape;
  int64_t count = 1;
  for (Value operand : op.getArgs()) {
    if (tile::getShape(operand.getType()).empty())
      continue;
    shape = tile::getShape(operand.getType());
    count = countElements(operand.getType());
  }
  for (int64_t i = 0; i < count; ++i) {
    std::string line = llvm::formatv("pid ({0}, {1}, {2})", p.id[0], p.id[1], p.id[2]);
    llvm::raw_string_ostream os(line);
    if (!op.getArgs().empty()) {
      os << " idx (";
      llvm::interleaveComma(llvm::zip(delinearize(i, shape), shape), os, [&](auto entry) {
        auto [index, extent] = entry;
        os << llvm::right_justify(std::to_string(index), std::to_string(extent - 1).size());
      });
      os << ')';
    }
    os << op.getPrefix();
    SmallVector<std::string> values;
    for (auto [operand, isSigned] : llvm::zip_equal(op.getArgs(), op.getIsSigned())) {
      const Tile &tile = p.tile(operand);
      values.push_back(formatElement(tile.element(), tile.bits[tile.size() == 1 ? 0 : i],
                                     isSigned != 0, op.getHex()));
    }
    os << llvm::join(values, ", ");
    printLine(p, line);
  }
}

//===----------------------------------------------------------------------===//
// Foreign code
//===----------------------------------------------------------------------===//

/// Machine code has no meaning here.
template <typename Op> static void refuse(Op op, Program &) {
  UserError error("E050",
                  llvm::formatv("the interpreter cannot run '{0}': it is code for one machine",
                                op->getName().getStringRef()),
                  "write the function in the language, or run on the target it is for");
  error.location = describeLocation(op.getLoc());
  throw error;
}

void interpreter::addProgramOps(OpTable &table) {
  table.addResult<tile::ProgramIdOp>([](tile::ProgramIdOp op, Program &p) {
    return Tile(op.getType(), static_cast<uint32_t>(p.id[op.getAxis()]));
  });
  table.addResult<tile::NumProgramsOp>([](tile::NumProgramsOp op, Program &p) {
    return Tile(op.getType(), static_cast<uint32_t>(p.grid[op.getAxis()]));
  });
  table.addResult<tile::ClockOp>([](tile::ClockOp op, Program &) {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return Tile(
        op.getType(),
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  });
  table.add<tile::CallOp>(runCall);
  table.add<tile::AssertOp>(runAssert);
  table.add<tile::PrintOp>(runPrint);
  table.add<tile::AssumeOp>([](tile::AssumeOp, Program &) {});
  table.add<tile::BarrierOp>([](tile::BarrierOp, Program &) {});
  table.addResult<tile::HintOp>([](tile::HintOp op, Program &p) { return p.tile(op.getSource()); });
  table.addResult<tile::LookupOp>([](tile::LookupOp op, Program &p) {
    size_t index = std::min<uint64_t>(p.tile(op.getIndex()).bits[0], op.getItems().size() - 1);
    return p.tile(op.getItems()[index]);
  });
  table.add<tile::InlineAsmOp>(refuse<tile::InlineAsmOp>);
  table.add<tile::ExternElementwiseOp>(refuse<tile::ExternElementwiseOp>);
}
