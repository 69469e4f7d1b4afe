// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the operands of dots come from.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTOPERANDS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTOPERANDS_H

#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

namespace tessera {

/// The write that a dot reads b from, if each write of this buffer is read by one dot alone.
strips::WriteOp findWriteOfB(strips::DotOp dot);

/// If the b of a dot is a group's transposed tile, has the group write the tile as it is. Returns
/// the buffer of that, whose rows are the columns of b. Null: it is not such a tile.
mlir::Value writeUntransposed(strips::DotOp dot);

/// True if nothing between two operations of one block may write what a group loads or reads.
/// `readsBuffer`: memory of a buffer may be that of others once it has been read.
bool isUnwrittenBetween(mlir::Operation *first, mlir::Operation *last, bool readsBuffer);

/// True if a group only loads, reads and computes what it writes for `dots` dots.
bool writesOnlyFor(strips::GroupOp group, size_t dots);

/// The operation of a dot's block that writes a buffer, which nothing but the dot reads; null if
/// there are several.
mlir::Operation *findFiller(mlir::Value buffer, strips::DotOp dot);

/// If a group writes both operands of a dot, gives each a group of its own.
void splitFillers(strips::DotOp dot);

/// Erases the group that writes a buffer which nothing reads any more.
void eraseUnread(mlir::Value buffer);

/// The load that a tile comes from, directly or by a buffer that is written once; null if none.
tile::LoadOp findLoadOf(mlir::Value tile);

/// True if an operation loads a tile, or reads it from a buffer.
bool isTileInMemory(mlir::Operation *op);

/// True if a value is computed element by element from constants and one tile, `source` then, whose
/// operation satisfies `isSource`.
bool isDecoded(mlir::Value value, llvm::function_ref<bool(mlir::Operation *)> isSource,
               mlir::Value &source, unsigned depth = 0);

/// A vector of `count` elements of such a value. `known` has one of its source.
mlir::Value decodeVector(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, int64_t count,
                         llvm::DenseMap<mlir::Value, mlir::Value> &known);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTOPERANDS_H
