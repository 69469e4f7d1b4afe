// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The error handling of the C boundary. Each function of the API runs its body through `guarded`,
// which turns any exception into a TsrStatus and stores it, as JSON, for tsr_last_error.
// Diagnostics of MLIR (DiagnosticCollector) give the error its location and its notes.

#ifndef TESSERA_LIB_CAPI_ERRORS_H
#define TESSERA_LIB_CAPI_ERRORS_H

#include "StaticGuards.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "tessera/CAPI/Tessera.h"
#include "tessera/Support/Cancellation.h"
#include "tessera/Support/MemoryReserve.h"
#include "tessera/Support/Remark.h"

#include <new>
#include <string>
#include <vector>

namespace tessera::capi {

struct Note {
  std::string message;
  SourcePlace place;
};

/// An error that MLIR reported. The calls that its location was inlined through are notes, too,
/// innermost first.
struct ReportedError {
  std::string message;
  SourcePlace place;
  std::vector<Note> notes;
};

/// Collects the errors that MLIR reports on a context; prints nothing. Its destructor makes them
/// the notes of the thread's next error.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);
  ~DiagnosticCollector();
  DiagnosticCollector(const DiagnosticCollector &) = delete;
  DiagnosticCollector &operator=(const DiagnosticCollector &) = delete;

  /// The text of the first error, or `otherwise`.
  std::string firstMessage(const char *otherwise) const;

private:
  std::vector<ReportedError> errors;
  mlir::ScopedDiagnosticHandler handler;
};

/// Clears the thread's last error.
void forgetError() noexcept;

/// Stores the current exception as the thread's last error.
TsrStatus recordException() noexcept;

/// Runs the body of a function of the API.
template <typename Body> TsrStatus guarded(Body &&body) noexcept {
  forgetError();
  size_t numGuards = countStaticGuards();
  try {
    MemoryReserveUse use;
    try {
      body();
    } catch (...) {
      // A lack of memory is the cause of every later failure.
      if (isOutOfMemory())
        throw std::bad_alloc();
      throw;
    }
    return TSR_OK;
  } catch (...) {
    abandonStaticGuards(numGuards);
    return recordException();
  }
}

/// The same for slow calls, which use objects that the end of the process destroys.
template <typename Body> TsrStatus guardedActivity(Body &&body) noexcept {
  return guarded([&] {
    Activity activity;
    MemoryReserve reserve;
    body();
  });
}

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_ERRORS_H
