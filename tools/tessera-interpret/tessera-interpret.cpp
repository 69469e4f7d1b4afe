// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-interpret: run a kernel of a .mlir file with the reference interpreter.
//
//   tessera-interpret add.mlir --grid 2,1,1 --arg f32:8=iota --arg f32:8 --arg i32=8
//
// There is one --arg for every argument of the kernel, in order. `type:count` is an
// array, passed by its address: zeros, or the values after `=` (the rest of the
// array is 0), or 0, 1, 2, ... for `iota`. `type=value` is a scalar. After the run
// every array is printed, one a line: `arg 1 f32:8 = 0, 2, 4, ...`.

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Interpreter/Interpreter.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<file of tile IR>"), cl::init("-"));
static cl::opt<std::string> kernelName("kernel",
                                       cl::desc("the kernel to run (default: the only one)"));
static cl::list<int32_t> gridExtents("grid", cl::desc("programs along x, y, z (default 1,1,1)"),
                                     cl::CommaSeparated);
static cl::list<std::string> argumentTexts("arg",
                                           cl::desc("type:count[=values|=iota] or type=value"));

namespace {

/// One --arg: a scalar, or an array whose address is passed.
struct Argument {
  Type element;
  bool isArray = false;
  std::vector<uint64_t> elements; ///< raw bits
  std::vector<char> memory;       ///< of an array

  explicit Argument(Type element) : element(element) {}

  /// The bits of the text of a number.
  uint64_t parse(StringRef text) const;
  std::string format(uint64_t bits) const;

  size_t elementBytes() const { return std::max(8u, element.getIntOrFloatBitWidth()) / 8; }
  void writeMemory();
  void readMemory();
};

} // namespace

[[noreturn]] static void fail(const Twine &message) {
  llvm::errs() << "tessera-interpret: " << message << '\n';
  exit(1);
}

uint64_t Argument::parse(StringRef text) const {
  text = text.trim();
  unsigned width = element.getIntOrFloatBitWidth();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    llvm::APFloat value(floatType.getFloatSemantics());
    auto status = value.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      fail("'" + text + "' is no float");
    }
    return value.bitcastToAPInt().getZExtValue();
  }
  if (text == "true" || text == "false")
    return text == "true";
  int64_t value;
  uint64_t large;
  if (!text.getAsInteger(0, value))
    return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
  if (!text.getAsInteger(0, large))
    return large & llvm::maskTrailingOnes<uint64_t>(width);
  fail("'" + text + "' is no integer");
}

std::string Argument::format(uint64_t bits) const {
  unsigned width = element.getIntOrFloatBitWidth();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    llvm::SmallString<16> text;
    llvm::APFloat(floatType.getFloatSemantics(), llvm::APInt(width, bits)).toString(text);
    return std::string(text);
  }
  return width == 1 ? std::to_string(bits) : std::to_string(llvm::SignExtend64(bits, width));
}

void Argument::writeMemory() {
  memory.resize(elements.size() * elementBytes());
  for (auto [index, bits] : llvm::enumerate(elements))
    std::memcpy(&memory[index * elementBytes()], &bits, elementBytes());
}

void Argument::readMemory() {
  for (auto [index, bits] : llvm::enumerate(elements))
    std::memcpy(&bits, &memory[index * elementBytes()], elementBytes());
}

/// "f32:8=1,2", "f32:8=iota", "f32:8" or "i32=5".
static Argument parseArgument(StringRef text, MLIRContext &context) {
  auto [left, values] = text.split('=');
  auto [typeName, countText] = left.split(':');
  Type element = parseType(typeName, &context);
  if (!element || !element.isIntOrFloat())
    fail("'" + typeName + "' in --arg " + text + " is no scalar type");
  Argument argument(element);
  if (countText.empty()) {
    argument.elements = {argument.parse(values)};
    return argument;
  }
  size_t count;
  if (countText.getAsInteger(10, count))
    fail("'" + countText + "' in --arg " + text + " is no count");
  argument.isArray = true;
  argument.elements.assign(count, 0);
  if (values == "iota") {
    for (size_t i = 0; i < count; ++i)
      argument.elements[i] = argument.parse(std::to_string(i));
  } else if (!values.empty()) {
    SmallVector<StringRef> items;
    values.split(items, ',');
    if (items.size() > count)
      fail("--arg " + text + " gives " + Twine(items.size()) + " values for " + Twine(count) +
           " elements");
    for (auto [index, item] : llvm::enumerate(items))
      argument.elements[index] = argument.parse(item);
  }
  argument.writeMemory();
  return argument;
}

static std::string findOnlyKernel(ModuleOp module) {
  SmallVector<StringRef> names;
  for (auto function : module.getOps<tile::FuncOp>())
    if (function.isKernel())
      names.push_back(function.getName());
  if (names.size() != 1)
    fail("the file has " + Twine(names.size()) + " kernels (" + llvm::join(names, ", ") +
         "); choose one with --kernel");
  return names.front().str();
}

static void printArray(size_t index, const Argument &argument) {
  auto asText = [&](uint64_t bits) { return argument.format(bits); };
  llvm::outs() << "arg " << index << ' ' << argument.element << ':' << argument.elements.size()
               << " = " << llvm::join(llvm::map_range(argument.elements, asText), ", ") << '\n';
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Tessera's reference interpreter of tile IR\n");

  DialectRegistry registry;
  registry.insert<tile::TileDialect, ub::UBDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return 1;

  if (gridExtents.size() > 3)
    fail("--grid takes at most three extents");
  std::array<int32_t, 3> grid = {1, 1, 1};
  llvm::copy(gridExtents, grid.begin());

  std::vector<Argument> arguments;
  for (const std::string &text : argumentTexts)
    arguments.push_back(parseArgument(text, context));
  std::vector<uint64_t> slots;
  for (Argument &argument : arguments)
    slots.push_back(argument.isArray ? reinterpret_cast<uint64_t>(argument.memory.data())
                                     : argument.elements.front());

  try {
    std::string kernel = kernelName.empty() ? findOnlyKernel(*module) : kernelName.getValue();
    interpret(*module, kernel, grid, slots);
  } catch (const UserError &error) {
    llvm::errs() << (error.location.empty() ? inputFile.getValue() : error.location)
                 << ": error: " << error.message << " [" << error.id << "]\n";
    if (!error.fix.empty())
      llvm::errs() << "  fix: " << error.fix << '\n';
    return 1;
  } catch (const InternalError &error) {
    fail(error.message);
  }
  for (size_t index = 0; index < arguments.size(); ++index) {
    if (!arguments[index].isArray)
      continue;
    arguments[index].readMemory();
    printArray(index, arguments[index]);
  }
  return 0;
}
