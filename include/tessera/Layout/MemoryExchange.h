// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans exchanges of tiles through shared memory: the instructions of a warp, their cost, and an
// order of elements in memory that is cheap on both sides.
//
// Shared memory has 32 banks of 4 bytes. A warp's access is served in wavefronts of up to 128
// bytes, one word a bank. The compiler chooses the place of an element: any invertible matrix over
// F2, from bits of the offset to element numbers. Its columns from the low address bits up are
//
//     row      what one instruction moves in one piece for one lane (or a row of a matrix)
//     bank     the rest of 128 bytes: lanes that are served at once must differ here ...
//     segment  ... or not at all: two that differ in segment bits alone are in conflict
//
// So the segment bits must avoid two subspaces, one for stores and one for loads. Each is spanned
// by the row and the lanes of one phase. Over F2 two subspaces always have a common complement
// (three need not). Let e and f be the basis vectors that only one side has, and c those that
// neither has. The complement is all of c and e_i ^ f_i. Worked example, a 4x4 tile, 4 lanes hold
// rows and are to hold columns, 4 banks:
//
//     stores span rows (e = 4, 8), loads columns (f = 1, 2), c is empty.
//     segment = 1 ^ 4, 2 ^ 8;  bank = 1, 2:   element (r, c) is at 4 r + (c ^ r)
//
// The two sides need not move the same number of elements at once: the row of one may be a
// part of the other's. The narrow side's lanes then count within the wide side's row.

#ifndef TESSERA_LAYOUT_MEMORYEXCHANGE_H
#define TESSERA_LAYOUT_MEMORYEXCHANGE_H

#include "tessera/Layout/MatrixAccess.h"

namespace tessera {

/// Shared memory for an exchange: each column a basis vector of element numbers, from the
/// low address bits up.
struct SwizzlePlan {
  f2::Columns vector, bank, segment;

  /// The memory layout: column i is the element at offset 2^i.
  LinearLayout layout(const LinearLayout &like) const;
};

/// A swizzle with which neither side has bank conflicts, for elements of `bits` bits, if
/// both sides move what both have in registers. Wherever that is at least 32 bits the
/// result is free of conflicts on both sides.
SwizzlePlan planSwizzle(const LinearLayout &source, const LinearLayout &destination, unsigned bits);

/// The number of 128-byte wavefronts of one access of a warp. Each lane moves 2^`vectorBits`
/// elements of `bits` bits. Lane l's first element is at the offset that `lanes` gives (five
/// columns, in elements).
///
/// Exact for every linear address: `phases * 2^(rank(W) - rank(W mod 32 words))`. W are the word
/// addresses of a phase's lanes and of the words in a vector. The fibres of a linear map have equal
/// size.
unsigned wavefronts(llvm::ArrayRef<uint64_t> lanes, unsigned vectorBits, unsigned bits);

/// The largest k such that each thread can move 2^k elements at once. The arguments are the places
/// in memory of a register's bits, and of all other bits (lane, warp, block). The low k address
/// bits must come from registers alone, and all their values occur.
unsigned vectorizableBits(llvm::ArrayRef<uint64_t> registerOffsets,
                          llvm::ArrayRef<uint64_t> otherOffsets, unsigned limit);

/// The matrix instructions that a GPU has: ldmatrix (for loads) and stmatrix (for stores).
struct MatrixInstructions {
  bool forLoads = false, forStores = false;

  bool operator==(const MatrixInstructions &other) const {
    return forLoads == other.forLoads && forStores == other.forStores;
  }
};

/// How a warp moves the registers of one repeat of a tile.
struct MemoryAccess {
  /// Matrix instructions; or, if nothing, 2^vectorBits elements a lane at once.
  std::optional<MatrixAccess> matrix;
  unsigned vectorBits = 0;
  /// The cost for a warp, for all of its registers.
  unsigned instructions = 0, wavefronts = 0;

  /// Cycles of an SM that does nothing else, as measured on an H200
  /// (notes/Notebook.md).
  double getCost() const { return wavefronts + instructions / 8.0; }
};

/// The cheapest access between registers and memory, for given places of elements. It uses
/// vectors, unless matrix instructions exist and are cheaper.
MemoryAccess planAccess(const LinearLayout &layout, const LinearLayout &memory, unsigned bits,
                        bool hasMatrices);

/// The path of a tile through shared memory, from one distributed layout to another.
struct ExchangePlan {
  LinearLayout memory;
  MemoryAccess store, load;

  double getCost() const { return store.getCost() + load.getCost(); }
};

/// The cheapest exchange. Candidates are vectors that both sides have in registers, wider ones on
/// one side, and matrix instructions on one side or both. If costs are equal, the first in this
/// order wins.
ExchangePlan planExchange(const LinearLayout &source, const LinearLayout &destination,
                          unsigned bits, MatrixInstructions matrices);

} // namespace tessera

#endif // TESSERA_LAYOUT_MEMORYEXCHANGE_H
