// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Diagnostics.h"

#include "mlir/IR/Location.h"
#include "tessera/Support/EmitRemark.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;
using namespace tessera;

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
          Report &report = errors.emplace_back();
          report.place = SourcePlace::of(diagnostic.getLocation());
          report.id = getUserErrorId(diagnostic).str();
          report.text = diagnostic.str();
          // MLIR attaches a note of its own, the whole operation.
          for (Diagnostic &note : diagnostic.getNotes())
            if (std::string text = note.str(); text.rfind("see current operation", 0) != 0) {
              report.note = std::move(text);
              break;
            }
        } else {
          Remark remark = Remark::of(diagnostic);
          // Copies of an op, such as those before a loop and in it, have equal remarks.
          if (!llvm::is_contained(remarks, remark))
            remarks.push_back(std::move(remark));
        }
        return success();
      }) {}

void DiagnosticCollector::fail(const std::string &where, const std::string &reproducer) const {
  if (errors.empty())
    throw InternalError(where + " failed without saying why", reproducer);
  const Report &first = errors.front();
  if (!first.id.empty()) {
    // The fix stands behind the message's semicolon, or in the note.
    auto [message, advice] = llvm::StringRef(first.text).split("; ");
    std::string fix = advice.str();
    if (!first.note.empty())
      fix += fix.empty() ? first.note : " (" + first.note + ")";
    UserError error(first.id, message.str(), fix);
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
