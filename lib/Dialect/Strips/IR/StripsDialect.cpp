// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The strips dialect: its registration and how buffers keep elements.

#include "tessera/Dialect/Strips/IR/Strips.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "tessera/Dialect/Tile/IR/DeclaredAttrs.h"

using namespace mlir;
using namespace tessera::strips;

#include "tessera/Dialect/Strips/IR/StripsDialect.cpp.inc"

void StripsDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Strips/IR/StripsOps.cpp.inc"
      >();
}

LogicalResult StripsDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return tessera::tile::verifyDeclared<
      StripsDialect::ScratchBytesAttrHelper, StripsDialect::TileRegistersAttrHelper,
      StripsDialect::CallStateAttrHelper, StripsDialect::SitesAttrHelper,
      StripsDialect::UnrollAttrHelper, StripsDialect::CheckedAttrHelper,
      StripsDialect::PrivatisationAttrHelper, StripsDialect::NoPrivatisationAttrHelper>(op,
                                                                                        attribute);
}

Type tessera::strips::getStoredType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  if (isa<tile::PointerType>(element))
    return IntegerType::get(element.getContext(), 64);
  return element;
}

MemRefType tessera::strips::getBufferType(RankedTensorType tile) {
  return MemRefType::get(tile.getShape(), getStoredType(tile.getElementType()));
}

#define GET_OP_CLASSES
#include "tessera/Dialect/Strips/IR/StripsOps.cpp.inc"
