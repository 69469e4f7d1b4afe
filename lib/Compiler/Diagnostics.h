// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns diagnostics of MLIR into exceptions and remarks.

#ifndef TESSERA_LIB_COMPILER_DIAGNOSTICS_H
#define TESSERA_LIB_COMPILER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "tessera/Support/Remark.h"

#include <string>
#include <vector>

namespace tessera {

/// Collects the diagnostics of a context during its lifetime.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// Throws the first error: as UserError if it has an id (emitUserError), else as InternalError.
  /// `where` names the step that failed.
  [[noreturn]] void fail(const std::string &where, const std::string &reproducer) const;

  /// Throws the first error as a UserError (E062), for a file that a user has edited.
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
