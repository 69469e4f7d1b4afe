// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference interpreter of tile IR: the slow, plain meaning of every op.
//
// It exists to be believed. A compiled kernel is correct if it computes the same as the
// interpreter. So simplicity comes before speed here: one program after another, one op after
// another, one element after another, in row-major order. The promises of docs/Language.md for
// every input (division by zero, shifts past the width, float to integer out of range, lanes masked
// off) are implemented here once, op by op.
//
// If the language leaves an order open, the interpreter uses one that a fast target can also use.
// So exact comparison is possible: see lib/Interpreter/ReductionOps.cpp and MatmulOps.cpp. Runs are
// deterministic.

#ifndef TESSERA_INTERPRETER_INTERPRETER_H
#define TESSERA_INTERPRETER_INTERPRETER_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Support/AccessFault.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <functional>

namespace tessera {

struct InterpreterOptions {
  /// Takes each line of tile.print, without its newline. Standard output if empty.
  std::function<void(llvm::StringRef line)> print;
  /// The memory behind each argument; empty if that is not known. Checked by `tile.check_access`
  /// (see the pass tile-check-accesses), and by accesses through descriptors and block pointers
  /// themselves.
  llvm::ArrayRef<ArgumentMemory> memory;
  /// True if an offset that wraps is an error, too. Integers may wrap; that an offset does
  /// is seldom meant.
  bool reportWraps = false;
  /// Asked between programs, some twenty times a second; where it is true, Cancelled is thrown.
  bool (*isInterrupted)() = nullptr;
};

/// Runs `kernel`, a public tile.func of `module`, once for every program of the
/// grid, x fastest. `args` has one 8-byte slot an argument: a pointer, an integer
/// sign- or zero-extended, or the bits of a float in the low bytes (the convention
/// of tsr_kernel_launch).
///
/// Throws UserError for: no such kernel, another number of arguments, a grid with a negative
/// extent, an op that only hardware can run (inline_asm, extern_elementwise). Also, with their
/// place, for a tile.assert that fails or an access outside of `options.memory`.
void interpret(mlir::ModuleOp module, llvm::StringRef kernel, std::array<int32_t, 3> grid,
               llvm::ArrayRef<uint64_t> args, const InterpreterOptions &options = {});

} // namespace tessera

#endif // TESSERA_INTERPRETER_INTERPRETER_H
