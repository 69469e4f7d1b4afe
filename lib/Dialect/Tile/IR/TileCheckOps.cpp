// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tessera::tile;

LogicalResult CheckAccessOp::verify() {
  Type pointers = getPtr().getType();
  for (auto [what, value] : {std::pair("a mask", getMask()), std::pair("exact", getExact()),
                             std::pair("a result", Value(getResult()))})
    if (value && getShape(value.getType()) != getShape(pointers))
      return emitOpError("has ") << what << " of type " << value.getType()
                                 << " for pointers of type " << pointers;
  bool isKnown =
      llvm::StringSwitch<bool>(getAccess()).Cases({"load", "store", "atomic"}, true).Default(false);
  if (!isKnown)
    return emitOpError("checks no access called '") << getAccess() << "'";
  return success();
}
