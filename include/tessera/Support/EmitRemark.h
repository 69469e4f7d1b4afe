// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a pass says something of a program: remarks (Remark.h), and errors of the user's.
//
// A pass streams words and `named` values into a remark, as into any diagnostic.
//
//   emitRemark(loop, RemarkKind::FewerStages)
//       << "loop is pipelined in " << named("stages", 2) << " stages, not " << named("wanted", 4);
//
// gives the line "loop is pipelined in 2 stages, not 4" and the record {fewer-stages, the loop's
// line, {stages: 2, wanted: 4}}. Until it is collected, a remark is a diagnostic of MLIR, whose
// metadata have the kind and the values. So `expected-remark` and other handlers get the usual
// diagnostic.
//
// In the same way an error that a pass finds in the user's program has the stable id that it ends
// up with (docs/Errors.md) from where it is emitted: `emitUserError(op, "E030") << ...`.

#ifndef TESSERA_SUPPORT_EMITREMARK_H
#define TESSERA_SUPPORT_EMITREMARK_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "tessera/Support/Remark.h"

namespace tessera {

/// A value in the text of a remark, with the name that it has in the record.
template <typename T> struct Named {
  llvm::StringLiteral name;
  T value;
};
template <typename T> Named<std::decay_t<T>> named(llvm::StringLiteral name, T &&value) {
  return {name, std::forward<T>(value)};
}

/// A remark that is being written; it is emitted when it goes out of scope.
class RemarkInFlight {
public:
  RemarkInFlight(mlir::InFlightDiagnostic diagnostic, RemarkKind kind);

  template <typename T> RemarkInFlight &operator<<(T &&words) & {
    diagnostic << std::forward<T>(words);
    return *this;
  }
  template <typename T> RemarkInFlight &&operator<<(T &&words) && {
    return std::move(*this << std::forward<T>(words));
  }
  template <typename T> RemarkInFlight &operator<<(Named<T> value) & {
    record(value.name, toAttribute(value.value));
    diagnostic << value.value;
    return *this;
  }
  template <typename T> RemarkInFlight &&operator<<(Named<T> value) && {
    return std::move(*this << std::move(value));
  }

  /// Another place that it is about, with a word on it.
  mlir::Diagnostic &attachNote(mlir::Location place) { return diagnostic.attachNote(place); }

private:
  template <typename T> mlir::Attribute toAttribute(const T &value) {
    if constexpr (std::is_integral_v<T>)
      return getInteger(static_cast<int64_t>(value));
    else if constexpr (std::is_convertible_v<T, mlir::Type>)
      return mlir::TypeAttr::get(value);
    else
      return getString(value);
  }
  mlir::Attribute getInteger(int64_t value);
  mlir::Attribute getString(const llvm::Twine &value);
  void record(llvm::StringRef name, mlir::Attribute value);

  mlir::InFlightDiagnostic diagnostic;
};

RemarkInFlight emitRemark(mlir::Location place, RemarkKind kind);
RemarkInFlight emitRemark(mlir::Operation *op, RemarkKind kind);

/// An error in the user's program, with its stable id.
mlir::InFlightDiagnostic emitUserError(mlir::Operation *op, llvm::StringLiteral id);
mlir::InFlightDiagnostic emitUserError(mlir::Location place, llvm::StringLiteral id);

/// The id of an error that `emitUserError` emitted; empty for any other.
llvm::StringRef getUserErrorId(mlir::Diagnostic &diagnostic);

} // namespace tessera

#endif // TESSERA_SUPPORT_EMITREMARK_H
