// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What MLIR says while compiling, as errors of ours.

#ifndef TESSERA_LIB_COMPILER_DIAGNOSTICS_H
#define TESSERA_LIB_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace tessera {

/// The place in a source file that a location stands for. Of an inlined call it is the
/// innermost: the line that the user would look at.
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;

  static SourcePlace of(mlir::Location location);
  /// "file:line:column", or nothing.
  std::string print() const;
};

/// Catches the diagnostics of a context while it lives.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// Throws what the errors amount to: UserError if the first says that something is
  /// not supported on the CPU, else InternalError. `where` names the step that failed.
  [[noreturn]] void fail(const std::string &where, const std::string &reproducer) const;

  /// Throws the first error as the user's mistake (E062): in a file that a user has edited.
  [[noreturn]] void failAsUser() const;

  /// Texts of warnings and remarks, each with its place.
  std::vector<std::string> remarks;

private:
  struct Report {
    SourcePlace place;
    std::string text;
    std::string note; ///< the first one attached
  };
  std::vector<Report> errors;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_DIAGNOSTICS_H
