// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands between the C++ core and its C boundary: each function of the API
// runs its body through `guarded`, which turns whatever the body throws into a
// TsrStatus and remembers it, as JSON, for tsr_last_error. What MLIR reported
// meanwhile (DiagnosticCollector) gives the error its place and its notes.

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

/// One error that MLIR reported. The calls that led to its place are notes too,
/// innermost first.
struct ReportedError {
  std::string message;
  SourcePlace place;
  std::vector<Note> notes;
};

/// Keeps the errors that MLIR reports on a context while it lives; nothing is
/// printed. When it goes, they become the notes of the thread's next error.
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

/// Forgets the thread's last error.
void forgetError() noexcept;

/// Makes the exception in flight the thread's last error.
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
      // Whatever else may have failed then, this is why.
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

/// The same for what takes long, and works with objects that the end of the process destroys.
template <typename Body> TsrStatus guardedActivity(Body &&body) noexcept {
  return guarded([&] {
    Activity activity;
    MemoryReserve reserve;
    body();
  });
}

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_ERRORS_H
