// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fixture of tests of the interpreter, which run a few lines of tile IR on arrays.

#ifndef TESSERA_UNITTEST_INTERPRETER_INTERPRETERTEST_H
#define TESSERA_UNITTEST_INTERPRETER_INTERPRETERTEST_H

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Interpreter/Interpreter.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cstring>

namespace tessera::test {

/// A tile of raw elements, each zero-extended to 64 bits.
struct Array {
  std::string element; ///< "f16"
  std::vector<int64_t> shape;
  std::vector<uint64_t> bits;

  std::string type() const {
    std::string text = "tensor<";
    for (int64_t extent : shape)
      text += std::to_string(extent) + "x";
    return text + element + ">";
  }
  int64_t size() const {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
};

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
  }

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registry.insert<tile::TileDialect, mlir::ub::UBDialect>();
    return registry;
  }

  Array ints(std::string element, std::vector<int64_t> values, std::vector<int64_t> shape = {}) {
    Array array{element, shape.empty() ? std::vector<int64_t>{int64_t(values.size())} : shape, {}};
    for (int64_t value : values)
      array.bits.push_back(static_cast<uint64_t>(value) & mask(element));
    return array;
  }

  Array floats(std::string element, std::vector<double> values, std::vector<int64_t> shape = {}) {
    Array array{element, shape.empty() ? std::vector<int64_t>{int64_t(values.size())} : shape, {}};
    for (double value : values)
      array.bits.push_back(encode(element, value));
    return array;
  }

  /// Every value of an 8- or 16-bit type.
  Array every(std::string element) {
    Array array{element, {int64_t(mask(element) + 1)}, {}};
    for (uint64_t bits = 0; bits <= mask(element); ++bits)
      array.bits.push_back(bits);
    return array;
  }

  /// Runs `body`, which computes %r of type `result` from %a, %b, ..., the `inputs`.
  Array evaluate(llvm::StringRef body, Array result, std::vector<Array> inputs) {
    std::string arguments, loads;
    std::vector<std::vector<char>> memory;
    for (size_t i = 0; i < inputs.size(); ++i) {
      char name = 'a' + i;
      const Array &input = inputs[i];
      arguments += llvm::formatv("%p{0}: !tile.ptr<{1}>, ", name, input.element);
      loads += pointers(std::string(1, name), input);
      loads += llvm::formatv("  %flat{0} = tile.load %q{0} : tensor<{1}x!tile.ptr<{2}>>\n"
                             "  %{0} = tile.reshape %flat{0} : tensor<{1}x{2}> -> {3}\n",
                             name, input.size(), input.element, input.type());
      memory.push_back(toMemory(input));
    }
    std::string text =
        llvm::formatv("tile.func @k({0}%pr: !tile.ptr<{1}>) {{\n{2}  {3}\n{4}"
                      "  %flatr = tile.reshape %r : {5} -> tensor<{6}x{1}>\n"
                      "  tile.store %qr, %flatr : tensor<{6}x!tile.ptr<{1}>>\n  tile.return\n}\n",
                      arguments, result.element, loads, body, pointers("r", result), result.type(),
                      result.size());
    result.bits.assign(result.size(), 0);
    memory.push_back(toMemory(result));
    std::vector<uint64_t> slots;
    for (std::vector<char> &bytes : memory)
      slots.push_back(reinterpret_cast<uint64_t>(bytes.data()));
    run(text, slots);
    for (int64_t i = 0; i < result.size(); ++i)
      std::memcpy(&result.bits[i], &memory.back()[i * bytesOf(result.element)],
                  bytesOf(result.element));
    return result;
  }

  void run(llvm::StringRef text, llvm::ArrayRef<uint64_t> slots,
           std::array<int32_t, 3> grid = {1, 1, 1}, const InterpreterOptions &options = {}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context, "test.mlir");
    ASSERT_TRUE(module) << text.str();
    interpret(*module, "k", grid, slots, options);
  }

  std::vector<int64_t> asInts(const Array &array) {
    unsigned width = widthOf(array.element);
    std::vector<int64_t> values;
    for (uint64_t bits : array.bits)
      values.push_back(width == 1 ? bits : llvm::SignExtend64(bits, width));
    return values;
  }

  std::vector<double> asFloats(const Array &array) {
    std::vector<double> values;
    for (uint64_t bits : array.bits)
      values.push_back(decode(array.element, bits));
    return values;
  }

  double decode(llvm::StringRef element, uint64_t bits) {
    return llvm::APFloat(semantics(element), llvm::APInt(widthOf(element), bits)).convertToDouble();
  }

  uint64_t encode(llvm::StringRef element, double value) {
    llvm::APFloat converted(value);
    bool losesInfo;
    converted.convert(semantics(element), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return converted.bitcastToAPInt().getZExtValue();
  }

  mlir::MLIRContext context;

private:
  mlir::Type parse(llvm::StringRef element) { return mlir::parseType(element, &context); }
  unsigned widthOf(llvm::StringRef element) { return parse(element).getIntOrFloatBitWidth(); }
  size_t bytesOf(llvm::StringRef element) { return std::max(8u, widthOf(element)) / 8; }
  uint64_t mask(llvm::StringRef element) {
    return llvm::maskTrailingOnes<uint64_t>(widthOf(element));
  }
  const llvm::fltSemantics &semantics(llvm::StringRef element) {
    return llvm::cast<mlir::FloatType>(parse(element)).getFloatSemantics();
  }

  std::vector<char> toMemory(const Array &array) {
    std::vector<char> bytes(array.size() * bytesOf(array.element));
    for (size_t i = 0; i < array.bits.size(); ++i)
      std::memcpy(&bytes[i * bytesOf(array.element)], &array.bits[i], bytesOf(array.element));
    return bytes;
  }

  /// Defines %q<name>, the addresses of the elements of %p<name>.
  static std::string pointers(llvm::StringRef name, const Array &array) {
    return llvm::formatv(
        "  %i{0} = tile.range 0 to {1} : tensor<{1}xi32>\n"
        "  %s{0} = tile.splat %p{0} : !tile.ptr<{2}> -> tensor<{1}x!tile.ptr<{2}>>\n"
        "  %q{0} = tile.addptr %s{0}, %i{0} : tensor<{1}x!tile.ptr<{2}>>, tensor<{1}xi32>\n",
        name, array.size(), array.element);
  }
};

} // namespace tessera::test

#endif // TESSERA_UNITTEST_INTERPRETER_INTERPRETERTEST_H
