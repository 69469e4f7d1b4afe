// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelArguments.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <random>

using namespace mlir;
using namespace tessera;

StringRef tessera::toolName;

void tessera::fail(const Twine &message) {
  llvm::errs() << toolName << ": " << message << '\n';
  exit(1);
}

void tessera::report(const UserError &error, StringRef file) {
  llvm::errs() << (error.location.empty() ? file : StringRef(error.location))
               << ": error: " << error.message << " [" << error.id << "]\n";
  if (!error.fix.empty())
    llvm::errs() << "  fix: " << error.fix << '\n';
}

uint64_t GivenArgument::parse(StringRef text) const {
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

std::string GivenArgument::format(uint64_t bits) const {
  unsigned width = element.getIntOrFloatBitWidth();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    llvm::SmallString<16> text;
    llvm::APFloat(floatType.getFloatSemantics(), llvm::APInt(width, bits)).toString(text);
    return std::string(text);
  }
  return width == 1 ? std::to_string(bits) : std::to_string(llvm::SignExtend64(bits, width));
}

void GivenArgument::writeMemory() {
  memory.resize(elements.size() * elementBytes());
  for (auto [index, bits] : llvm::enumerate(elements))
    std::memcpy(&memory[index * elementBytes()], &bits, elementBytes());
}

void GivenArgument::readMemory() {
  for (auto [index, bits] : llvm::enumerate(elements))
    std::memcpy(&bits, &memory[index * elementBytes()], elementBytes());
}

/// "f32:8=1,2", "f32:8=iota", "f32:8=random", "f32:8" or "i32=5".
static GivenArgument parseArgument(StringRef text, MLIRContext &context) {
  auto [left, values] = text.split('=');
  auto [typeName, countText] = left.split(':');
  Type element = parseType(typeName, &context);
  if (!element || !element.isIntOrFloat())
    fail("'" + typeName + "' in --arg " + text + " is no scalar type");
  GivenArgument argument(element);
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
  } else if (values == "random") {
    std::minstd_rand numbers;
    bool isFloat = isa<FloatType>(element);
    for (uint64_t &bits : argument.elements) {
      int number = int(numbers() % 17) - 8;
      bits = argument.parse(isFloat ? std::to_string(number / 8.0) : std::to_string(number));
    }
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

static void printArray(size_t index, const GivenArgument &argument) {
  auto asText = [&](uint64_t bits) { return argument.format(bits); };
  llvm::outs() << "arg " << index << ' ' << argument.element << ':' << argument.elements.size()
               << " = " << llvm::join(llvm::map_range(argument.elements, asText), ", ") << '\n';
}

std::vector<GivenArgument> tessera::parseArguments(ArrayRef<std::string> texts,
                                                   MLIRContext &context) {
  std::vector<GivenArgument> arguments;
  for (const std::string &text : texts)
    arguments.push_back(parseArgument(text, context));
  return arguments;
}

std::vector<uint64_t> tessera::getSlots(ArrayRef<GivenArgument> arguments) {
  std::vector<uint64_t> slots;
  for (const GivenArgument &argument : arguments)
    slots.push_back(argument.isArray ? reinterpret_cast<uint64_t>(argument.memory.data())
                                     : argument.elements.front());
  return slots;
}

void tessera::printArrays(std::vector<GivenArgument> &arguments) {
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    if (!argument.isArray)
      continue;
    argument.readMemory();
    printArray(index, argument);
  }
}

std::array<int32_t, 3> tessera::toGrid(ArrayRef<int32_t> extents) {
  if (extents.size() > 3)
    fail("--grid takes at most three extents");
  std::array<int32_t, 3> grid = {1, 1, 1};
  llvm::copy(extents, grid.begin());
  return grid;
}
