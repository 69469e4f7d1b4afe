// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One include for the strips dialect: loop nests and buffers for CPUs.

#ifndef TESSERA_DIALECT_STRIPS_IR_STRIPS_H
#define TESSERA_DIALECT_STRIPS_IR_STRIPS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera::strips {

/// The type in which a buffer or the memory keeps an element of type `element`:
/// i8 for i1, i64 for a pointer, `element` for all others.
mlir::Type getStoredType(mlir::Type element);

/// The type of a row-major buffer for a tile.
mlir::MemRefType getBufferType(mlir::RankedTensorType tile);

/// The most bytes that a `strips.private_copy` begins with. It may grow between programs.
inline constexpr int64_t kPrivateCopyBytes = 256 << 10;
/// The most arrays that a kernel has private copies of.
inline constexpr size_t kMaxPrivateCopies = 4;

} // namespace tessera::strips

#include "tessera/Dialect/Strips/IR/StripsDialect.h.inc"
#define GET_OP_CLASSES
#include "tessera/Dialect/Strips/IR/StripsOps.h.inc"

namespace tessera::strips {

/// Names of attributes that passes leave; what they say is in StripsDialect.td.
inline constexpr llvm::StringLiteral kScratchBytesAttr =
    StripsDialect::ScratchBytesAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kTileRegistersAttr =
    StripsDialect::TileRegistersAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kCallStateAttr =
    StripsDialect::CallStateAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kSitesAttr = StripsDialect::SitesAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kCheckedAttr = StripsDialect::CheckedAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kUnrollAttr = StripsDialect::UnrollAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kPrivatisationAttr =
    StripsDialect::PrivatisationAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kNoPrivatisationAttr =
    StripsDialect::NoPrivatisationAttrHelper::getNameStr();

} // namespace tessera::strips

#endif // TESSERA_DIALECT_STRIPS_IR_STRIPS_H
