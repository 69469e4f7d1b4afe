// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a kernel on the command line of a tool that runs it, and their values
// afterwards. There is one --arg for every argument, in order. `type:count` is an array, passed by
// its address, and `type=value` is a scalar. An array has zeros, or the values after `=` (and then
// zeros). With `iota` it has 0, 1, 2, ... With `random` it has the same small numbers in every run:
// integers from -8 to 8, floats from -1 to 1.

#ifndef TESSERA_TOOLS_ARGUMENTS_KERNELARGUMENTS_H
#define TESSERA_TOOLS_ARGUMENTS_KERNELARGUMENTS_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Types.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"

#include <array>
#include <string>
#include <vector>

namespace tessera {

/// The prefix of errors.
extern llvm::StringRef toolName;

/// Prints the message and ends the process.
[[noreturn]] void fail(const llvm::Twine &message);
/// Prints a user's error, with its place or else the file that was run.
void report(const UserError &error, llvm::StringRef file);

/// One --arg: a scalar, or an array whose address is passed.
struct GivenArgument {
  mlir::Type element;
  bool isArray = false;
  std::vector<uint64_t> elements; ///< raw bits
  std::vector<char> memory;       ///< of an array

  explicit GivenArgument(mlir::Type element) : element(element) {}

  /// The bits of the text of a number.
  uint64_t parse(llvm::StringRef text) const;
  std::string format(uint64_t bits) const;

  size_t elementBytes() const { return std::max(8u, element.getIntOrFloatBitWidth()) / 8; }
  void writeMemory();
  void readMemory();
};

std::vector<GivenArgument> parseArguments(llvm::ArrayRef<std::string> texts,
                                          mlir::MLIRContext &context);
/// One 8-byte slot an argument.
std::vector<uint64_t> getSlots(llvm::ArrayRef<GivenArgument> arguments);
/// Every array in a line: `arg 1 f32:8 = 0, 2, 4, ...`.
void printArrays(std::vector<GivenArgument> &arguments);

std::array<int32_t, 3> toGrid(llvm::ArrayRef<int32_t> extents);

} // namespace tessera

#endif // TESSERA_TOOLS_ARGUMENTS_KERNELARGUMENTS_H
