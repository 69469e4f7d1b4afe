// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state tells which tiles a thread keeps, packed, for its next programs.
//
// Programs that share an operand load the same tiles of it. A thread keeps what it has packed, and
// the values that tell which tile it is (an address, bounds of masks): the tile's key. A program
// whose key is found packs nothing.
//
// A kept tile has to equal the memory. Programs of one call run one after another, so each store
// compares its addresses with those of all kept tiles, and drops them if the two may overlap.
// A call drops what earlier calls have kept. Programs of other threads may store at any time, with
// or without kept tiles, and kernels that could wait for them (atomics, volatile loads, barriers)
// keep nothing.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTSTATE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTSTATE_H

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

#include <optional>

namespace tessera {

//===----------------------------------------------------------------------===//
// Tiles that may be kept
//===----------------------------------------------------------------------===//

/// The values from outside of an operation that tell which tile it writes to `buffer`; none if it
/// does anything else, or takes other than scalars.
std::optional<llvm::SmallVector<mlir::Value>> findKey(mlir::Operation *filler, mlir::Value buffer);

/// The stores of a kernel, if what it loads may be kept at all.
std::optional<llvm::SmallVector<tile::StoreOp>> findStores(mlir::Operation *func);

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Words of the state of an operand, all of them zero before a call's first program, except for the
/// number of its programs. Slots follow, each with its key behind one more than the generation in
/// which it was filled. A slot of another generation is empty. Slots of panels become empty when a
/// panel first takes them, since zeroing all of them takes longer than a small call.
enum StateWord : int64_t {
  kPrograms,
  kGeneration,
  kVictim,      ///< the panel that is filled next
  kMisses,      ///< panels that were filled since one was found
  kBelow,       ///< the highest distance of an address to the highest of all
  kHigh,        ///< the end of the highest address
  kLast,        ///< one more than the base of the last panel, or 0
  kNext,        ///< the slot of the next iteration, where no panels are looked for
  kTop = kNext, ///< where panels are looked for: the first slot that no panel of the call has had
  kSlots,
};

/// If as many panels in a row were not found as there are, a call keeps nothing any more. Fewer
/// would not do: a row of tiles visits all columns before it finds one. These are the limits.
constexpr int64_t kMinMisses = 16, kMaxMisses = 64;

/// Emits code that reads and writes the state of an operand, at the place of a builder.
class KeptState {
public:
  /// `memory`: a memref of i64.
  KeptState(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memory, size_t keyValues)
      : b(b), loc(loc), memory(memory), keyValues(keyValues) {}

  static int64_t getSlotWords(size_t keyValues) { return 1 + keyValues; }

  mlir::Value load(int64_t at);
  void store(int64_t at, mlir::Value value);
  /// True unless as many of the last panels that were looked for as there are have not been found.
  mlir::Value isUseful(mlir::Value panels);
  /// Has the state zeroed in front of a call's programs, or its first words.
  void declare(std::optional<int64_t> words = std::nullopt);
  /// In front of each store, drops all that is kept if the store may overlap it.
  void dropAtStores(llvm::ArrayRef<tile::StoreOp> stores, AccessAnalysis &access);

  /// The bits of a value of the key.
  mlir::Value toWord(mlir::Value value);
  /// True if a slot has the tile of this key.
  mlir::Value isFilled(mlir::Value slot, mlir::ValueRange key);
  /// Says that a slot has no tile.
  void empty(mlir::Value slot);
  /// Says that a slot has this tile from now on.
  void fill(mlir::Value slot, mlir::ValueRange key);
  /// Adds what the filler loads to the addresses of all kept tiles.
  void noteLoads(mlir::Operation *filler, AccessAnalysis &access);

private:
  mlir::Value word(int64_t value);
  mlir::Value plus(mlir::Value x, mlir::Value y);
  mlir::Value isLess(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value fromTop(mlir::Value value);
  mlir::Value getFirstWord(mlir::Value slot);
  mlir::Value getPlace(mlir::Value first, int64_t number);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value memory;
  size_t keyValues;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTSTATE_H
