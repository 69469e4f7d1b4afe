// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What MLIR says while compiling, as errors of ours.

#ifndef TESSERA_LIB_COMPILER_DIAGNOSTICS_H
#define TESSERA_LIB_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "tessera/Support/Remark.h"

#include <string>
#include <vector>

namespace tessera {

/// Catches the diagnostics of a context while it lives.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// Throws what the errors amount to: UserError if the first has an id (emitUserError), else
  /// InternalError. `where` names the step that failed.
  [[noreturn]] void fail(const std::string &where, const std::string &reproducer) const;

  /// Throws the first error as the user's mistake (E062): in a file that a user has edited.
  [[noreturn]] void failAsUser() const;

  /// Warnings and remarks.
  std::vector<Remark> remarks;

private:
  struct Report {
    SourcePlace place;
    std::string id; ///< of a user's mistake
    std::string text;
    std::string note; ///< the first one attached
  };
  std::vector<Report> errors;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_DIAGNOSTICS_H
