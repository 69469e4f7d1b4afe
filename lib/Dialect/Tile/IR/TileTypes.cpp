// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::tile;

#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/Tile/IR/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tessera/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
}

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError, Type pointee) {
  if (!pointee.isIntOrFloat())
    return emitError() << "a pointer points to an integer or a float, not " << pointee;
  return success();
}

int64_t PointerType::getPointeeBytes() const {
  return llvm::divideCeil(getPointee().getIntOrFloatBitWidth(), 8);
}
