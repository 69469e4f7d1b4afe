// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of dots that were packed ahead, in the user's memory.
//
// An instruction takes words of 32 bits, each of which holds `steps` neighbours along k of one
// column of b. If a kernel loads its tile from an array of such words, nothing has to be packed:
//
//     w = load [words, columns, steps]              (neighbours along the last two dimensions)
//     b = reshape(permute(w, 0, 2, 1))              (words * steps, columns)
//
// Columns may lie in panels, so that each panel is read as one stream. The words come first, or
// the panels do:
//
//     w = load [panels, words, columns, steps]      w = load [words, panels, columns, steps]
//     b = reshape(permute(w, 1, 3, 0, 2))           b = reshape(permute(w, 0, 3, 1, 2))
//
// Few rows may have a b that is computed from it element by element, such as weights of 4 bits.
//
// The other strides are any. A tile of another order is loaded into a buffer, and packed for its
// dot.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_PACKEDWEIGHTS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_PACKEDWEIGHTS_H

#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Machine/HostMachine.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace tessera {

/// A dot whose b is packed in memory, and the group that would copy it to a buffer.
struct PackedDot {
  strips::DotOp dot;
  strips::GroupOp group;
  tile::LoadOp load;
  mlir::Value source;               ///< the matrix that is loaded
  mlir::Value decoded;              ///< b, as it is computed from the source
  unsigned wordDim;                 ///< of the load
  std::optional<unsigned> panelDim; ///< none: there is one panel
};

/// Such dots, by the groups that write their b. A group writes for no others.
using PackedDots = llvm::MapVector<strips::GroupOp, llvm::SmallVector<PackedDot>>;

PackedDots findPackedDots(mlir::Operation *func, const HostMachine &machine, bool deterministic);

/// More rows than these would decode words of b several times.
constexpr int64_t kMaxPackedRows = 12;

/// Where the words of such a dot are.
struct PackedPanels {
  mlir::Value source, decoded; ///< as in PackedDot
  mlir::Value first;           ///< the address of the first word, an i64
  mlir::Value wordBytes;       ///< between words that follow each other along k, an i64
  mlir::Value panelBytes;      ///< between panels, an i64; null if there is one
  int64_t columns;             ///< of a panel
  int64_t columnBytes;         ///< of a word in memory

  bool isDecoded() const { return source != decoded; }
  /// The address of the word in a column of b, an i64.
  mlir::Value getAddress(mlir::OpBuilder &b, mlir::Location loc, mlir::Value word,
                         mlir::Value column) const;
};

/// Computes the addresses of each dot's panels in front of its group.
llvm::DenseMap<mlir::Operation *, PackedPanels> emitPanels(const PackedDots &groups);
/// Erases the groups of dots that are lowered, and those that write what nothing reads any more.
void eraseGroups(const PackedDots &groups);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_PACKEDWEIGHTS_H
