// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the width of strips, their number per iteration of a loop, the block of a dot in
// registers, and the part of its operands in the cache. All of it follows from what the table of
// machines says (Machine/HostMachine.h).

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_COSTMODEL_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_COSTMODEL_H

#include "mlir/IR/Operation.h"
#include "tessera/Machine/HostMachine.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

/// The machine that a pass's option names; an error at `op` if there is none.
std::optional<HostMachine> getMachine(mlir::Operation *op, llvm::StringRef text);

//===-- Strips ------------------------------------------------------------===//

/// Lanes of a strip whose widest elements have `bits`.
int64_t getLanes(const HostMachine &machine, unsigned bits);

/// The work of a group for one strip along some dimension.
struct StripWork {
  int64_t lanes;
  unsigned neighbours = 0; ///< accesses whose lanes are neighbours in memory, or one element
  unsigned gathers = 0;    ///< accesses whose lanes are not
  unsigned split = 0;      ///< accesses whose lanes are in short runs
  int64_t runs = 0;        ///< and how many these are
  int64_t folded = 0;      ///< elements of a line that is folded to one; 0: none is
};

/// The cost of an element, in vector instructions.
double estimateStrips(const HostMachine &machine, const StripWork &work);
/// The same where square blocks of lanes are transposed between loads and stores.
double estimateTransposed(int64_t lanes, unsigned accesses);
/// The minimum of lanes that are neighbours, or one element, for which one access is cheaper than
/// one per lane; a power of two.
int64_t getShortestRun(const HostMachine &machine);

/// Strips of one iteration: of `strips` that there are, at most `most`, where `expensive`
/// operations are functions.
unsigned chooseUnroll(unsigned most, unsigned expensive, int64_t strips);

//===-- Dots --------------------------------------------------------------===//

/// A block of the result in registers.
struct BlockShape {
  int64_t rows, vectors;
};

/// The block with which M rows by `vectors` vectors of columns take the least time.
BlockShape chooseBlock(const HostMachine &machine, int64_t M, int64_t vectors);
/// The same where packed operands, of `elementBytes` an element, stream from the second-level
/// cache: the block that loads the fewest bytes a multiply-add.
BlockShape chooseStreamedBlock(const HostMachine &machine, int64_t M, int64_t vectors,
                               int64_t elementBytes);
/// Registers that a block takes.
int64_t getRegisters(const BlockShape &block);
/// The resource that limits a step of k with that block.
llvm::StringRef getBottleneck(const HostMachine &machine, const BlockShape &block);

/// Steps of k in one iteration of the innermost loop.
int64_t chooseSteps(const BlockShape &block, int64_t steps);

/// Steps of k for which a panel with rows of `rowBytes` is kept in the first-level cache.
int64_t chooseDepth(const HostMachine &machine, int64_t K, int64_t rowBytes);

/// True if `rows` rows of `rowBytes`, `stride` bytes apart, fall on so few sets of the
/// first-level cache that they push each other out.
bool meetInCache(const HostMachine &machine, int64_t rows, int64_t rowBytes, int64_t stride);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_COSTMODEL_H
