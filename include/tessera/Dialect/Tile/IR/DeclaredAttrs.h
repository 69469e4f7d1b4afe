// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts that one pass records for others are discardable attributes, declared with their types and
// meaning in the .td file of a dialect (`discardableAttrs`). No other attribute may have the
// dialect's prefix: a misspelt name would be a fact that no pass reads.

#ifndef TESSERA_DIALECT_TILE_IR_DECLAREDATTRS_H
#define TESSERA_DIALECT_TILE_IR_DECLAREDATTRS_H

#include "mlir/IR/Operation.h"

namespace tessera::tile {

/// Checks an attribute that has a dialect's prefix. `Helpers` are the classes that ODS makes of
/// the dialect's declarations, all of them.
template <typename... Helpers>
mlir::LogicalResult verifyDeclared(mlir::Operation *op, mlir::NamedAttribute attribute) {
  llvm::StringRef name = attribute.getName().strref();
  bool isKnown = false, isOfType = false;
  auto check = [&](llvm::StringRef known, bool isRight) {
    isKnown |= name == known;
    isOfType |= name == known && isRight;
  };
  (check(Helpers::getNameStr(),
         llvm::isa<decltype(std::declval<Helpers>().getAttr(op))>(attribute.getValue())),
   ...);
  if (!isKnown)
    return op->emitOpError("has the attribute '") << name << "', which its dialect does not know";
  if (!isOfType)
    return op->emitOpError("has ")
           << attribute.getValue() << " as '" << name << "', which is of another kind";
  return mlir::success();
}

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_DECLAREDATTRS_H
