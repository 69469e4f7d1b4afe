// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last error of each thread, and its JSON.

#include "Errors.h"

#include "mlir/IR/Location.h"
#include "tessera/Runtime/CUDA/tessera_limits.h"
#include "tessera/Support/Cancellation.h"
#include "tessera/Support/LaunchRefused.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <new>
#include <sys/resource.h>

using namespace tessera;
using namespace tessera::capi;

namespace {

/// The errors of a thread's last call. If memory for the JSON runs out, `literal` replaces it.
struct ThreadErrors {
  std::string json;
  const char *literal = nullptr;
  char outOfMemory[384];
  std::vector<ReportedError> reported;
};

ThreadErrors &threadErrors() {
  thread_local ThreadErrors errors;
  return errors;
}

constexpr const char *kCancelled = R"({"kind":"cancelled","message":"asked to end"})";

/// The memory that compiling a small kernel needs, rounded up.
constexpr size_t kUsualMebibytes = 100;

/// Describes the limit that memory has reached. Allocates nothing.
const char *describeOutOfMemory(char (&text)[384]) {
  struct {
    int resource;
    const char *what, *option;
  } const limits[] = {{RLIMIT_AS, "address space", "-v"}, {RLIMIT_DATA, "data", "-d"}};
  for (const auto &limit : limits) {
    rlimit value;
    if (getrlimit(limit.resource, &value) != 0 || value.rlim_cur == RLIM_INFINITY)
      continue;
    snprintf(
        text, sizeof(text),
        R"json({"kind":"memory","message":"memory ran out in the compiler: the %s of this )json"
        R"json(process is limited to %llu MiB, and compiling may take %zu MiB beside what )json"
        R"json(it has in use; raise the limit (`ulimit %s`)"})json",
        limit.what, static_cast<unsigned long long>(value.rlim_cur >> 20),
        kUsualMebibytes + (getRequiredMemory() >> 20), limit.option);
    return text;
  }
  return R"json({"kind":"memory","message":"memory ran out in the compiler: the system has no )json"
         R"json(more; end other processes, unroll less, or use smaller tiles"})json";
}

/// Appends a note for each call that a location was inlined through, innermost first.
void appendCallers(mlir::Location location, std::vector<Note> &notes) {
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(location))
    return appendCallers(name.getChildLoc(), notes);
  auto call = mlir::dyn_cast<mlir::CallSiteLoc>(location);
  if (!call)
    return;
  appendCallers(call.getCallee(), notes);
  notes.push_back({"called from here", SourcePlace::of(call.getCaller())});
  appendCallers(call.getCaller(), notes);
}

/// Replaces invalid bytes: JSON must be UTF-8, but a user's string need not be.
std::string asUTF8(llvm::StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

void addPlace(llvm::json::Object &object, const SourcePlace &place) {
  if (place.file.empty())
    return;
  object["file"] = asUTF8(place.file);
  if (place.line)
    object["line"] = static_cast<int64_t>(place.line);
  if (place.column)
    object["column"] = static_cast<int64_t>(place.column);
}

llvm::json::Object toJSON(const Note &note) {
  llvm::json::Object object{{"message", asUTF8(note.message)}};
  addPlace(object, note.place);
  return object;
}

/// Writes the error's JSON. Reports of MLIR become its notes. If the error has no location, it gets
/// that of the report that it repeats.
void finish(llvm::json::Object &error, llvm::StringRef message, SourcePlace place) {
  llvm::json::Array notes;
  for (const ReportedError &report : threadErrors().reported) {
    bool repeated = llvm::StringRef(message).contains(report.message);
    if (place.file.empty())
      place = report.place;
    if (!repeated)
      notes.push_back(toJSON(Note{report.message, report.place}));
    for (const Note &note : report.notes)
      notes.push_back(toJSON(note));
  }
  addPlace(error, place);
  if (!notes.empty())
    error["notes"] = std::move(notes);
  llvm::raw_string_ostream(threadErrors().json) << llvm::json::Value(std::move(error));
}

static_assert(int(Refusal::OutsideLimits) == TSR_OUTSIDE_LIMITS &&
              int(Refusal::NoClusterRoom) == TSR_NO_CLUSTER_ROOM &&
              TSR_OUTSIDE_LIMITS == TESSERA_OUTSIDE_LIMITS);

void recordUser(const UserError &user) {
  llvm::json::Object error{{"kind", "user"}, {"message", asUTF8(user.message)}};
  if (!user.id.empty())
    error["id"] = asUTF8(user.id);
  if (!user.fix.empty())
    error["fix"] = asUTF8(user.fix);
  finish(error, user.message,
         user.location.empty() ? SourcePlace{} : SourcePlace::parse(user.location));
}

void recordInternal(llvm::StringRef message, llvm::StringRef reproducer) {
  llvm::json::Object error{{"kind", "internal"}, {"message", asUTF8(message)}};
  if (!reproducer.empty())
    error["reproducer"] = asUTF8(reproducer);
  finish(error, message, {});
}

} // namespace

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext *context)
    : handler(context, [this](mlir::Diagnostic &diagnostic) {
        // Remarks and warnings are collected elsewhere (TESSERA_DUMP_DIR).
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return mlir::success();
        ReportedError error;
        error.message = diagnostic.str();
        error.place = SourcePlace::of(diagnostic.getLocation());
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          error.notes.push_back({note.str(), SourcePlace::of(note.getLocation())});
        appendCallers(diagnostic.getLocation(), error.notes);
        errors.push_back(std::move(error));
        return mlir::success();
      }) {}

DiagnosticCollector::~DiagnosticCollector() {
  std::vector<ReportedError> &reported = threadErrors().reported;
  if (reported.empty())
    reported.swap(errors);
}

std::string DiagnosticCollector::firstMessage(const char *otherwise) const {
  return errors.empty() ? otherwise : errors.front().message;
}

void capi::forgetError() noexcept {
  ThreadErrors &errors = threadErrors();
  errors.json.clear();
  errors.literal = nullptr;
  errors.reported.clear();
}

TsrStatus capi::recordException() noexcept {
  try {
    try {
      throw;
    } catch (const Cancelled &) {
      threadErrors().literal = kCancelled;
      return TSR_CANCELLED;
    } catch (const LaunchRefused &refused) {
      recordUser(refused);
      return static_cast<TsrStatus>(refused.refusal);
    } catch (const UserError &user) {
      recordUser(user);
      return TSR_USER_ERROR;
    } catch (const InternalError &internal) {
      recordInternal(internal.message, internal.reproducer);
      return TSR_INTERNAL_ERROR;
    } catch (const std::bad_alloc &) {
      throw;
    } catch (const std::exception &exception) {
      recordInternal(exception.what(), {});
      return TSR_INTERNAL_ERROR;
    } catch (...) {
      recordInternal("an exception of unknown type reached the C boundary", {});
      return TSR_INTERNAL_ERROR;
    }
  } catch (...) {
    threadErrors().literal = describeOutOfMemory(threadErrors().outOfMemory);
    return TSR_OUT_OF_MEMORY;
  }
}

extern "C" TsrStatus tsr_fail_without_memory(void) TSR_NOEXCEPT {
  return guarded([] { throw std::bad_alloc(); });
}

extern "C" const char *tsr_last_error(void) TSR_NOEXCEPT {
  ThreadErrors &errors = threadErrors();
  return errors.literal ? errors.literal : errors.json.c_str();
}
