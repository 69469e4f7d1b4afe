// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Diagnostics.h"

#include "mlir/IR/Location.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;
using namespace tessera;

SourcePlace SourcePlace::of(Location location) {
  if (auto place = dyn_cast<FileLineColRange>(location))
    return {place.getFilename().str(), static_cast<int>(place.getStartLine()),
            static_cast<int>(place.getStartColumn())};
  if (auto named = dyn_cast<NameLoc>(location))
    return of(named.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return of(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (SourcePlace place = of(part); !place.file.empty())
        return place;
  return {};
}

std::string SourcePlace::print() const {
  if (file.empty())
    return "";
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        SourcePlace place = SourcePlace::of(diagnostic.getLocation());
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          Report &report = errors.emplace_back();
          report.place = place;
          report.text = diagnostic.str();
          // MLIR's own first note is the whole operation.
          for (Diagnostic &note : diagnostic.getNotes())
            if (std::string text = note.str(); text.rfind("see current operation", 0) != 0) {
              report.note = std::move(text);
              break;
            }
        } else {
          std::string prefix = place.print();
          std::string remark = prefix + (prefix.empty() ? "" : ": ") + diagnostic.str();
          // Copies of an op, before a loop and in it, have one line.
          if (!llvm::is_contained(remarks, remark))
            remarks.push_back(std::move(remark));
        }
        return success();
      }) {}

namespace {

/// Errors of passes that are about the user's program, by what they say.
struct UserMistake {
  llvm::StringLiteral phrase;
  const char *id;
};

} // namespace

static constexpr UserMistake userMistakes[] = {
    {"not supported on the CPU", "E030"},
    {"bytes of shared memory, but a program on", "E069"},
    {"the external function", "E071"},
};

void DiagnosticCollector::fail(const std::string &where, const std::string &reproducer) const {
  if (errors.empty())
    throw InternalError(where + " failed without saying why", reproducer);
  const Report &first = errors.front();
  for (const UserMistake &mistake : userMistakes) {
    if (!llvm::StringRef(first.text).contains(mistake.phrase))
      continue;
    // What to do about it stands after the message, or in the note.
    auto [message, advice] = llvm::StringRef(first.text).split("; ");
    std::string fix = advice.str();
    if (!first.note.empty())
      fix += fix.empty() ? first.note : " (" + first.note + ")";
    // "'tile.sort' op is ..." names the operation well enough without the word "op".
    std::string text = message.str();
    if (size_t at = text.find("' op "); text.front() == '\'' && at != std::string::npos)
      text.replace(at, 5, "' ");
    UserError error(mistake.id, text, fix);
    error.location = first.place.print();
    throw error;
  }
  std::string text = where + " failed: ";
  if (std::string place = first.place.print(); !place.empty())
    text += place + ": ";
  text += first.text;
  if (!first.note.empty())
    text += " (" + first.note + ")";
  throw InternalError(text, reproducer);
}

void DiagnosticCollector::failAsUser() const {
  if (errors.empty())
    throw UserError("E062", "not valid IR");
  UserError error("E062", "not valid IR: " + errors.front().text, errors.front().note);
  error.location = errors.front().place.print();
  throw error;
}
