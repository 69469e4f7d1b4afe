// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Order of memory accesses: may an op run before another op that precedes it in the program?
//
// A program reads its own stores in program order. A pass that moves, prefetches or repeats an
// access, or gives it to another thread or to TMA, checks here that the result cannot change.
// Passes have no lists of ops that bar a move. An op's declared memory effects and its addresses
// decide:
//
//     effect on a pointer, a tile of pointers, a     an access there: of the arrays that the
//       descriptor, a block pointer                  pointers can be of (getPointerBases)
//     effect on a buffer                             an access of that buffer
//     effect on nothing in particular                an access of anything: `tile.barrier`,
//                                                    foreign code that is not pure
//     no effects declared (a call)                   the same
//     an atomic that synchronises, a volatile load   the same beside its own access
//     effect on tile::Events (assertions, prints,    no access of memory; such ops keep their
//       promises)                                    order among themselves
//
// Reads pass reads. No access that may alias it passes a read or write of anything, which is how
// barriers work. Other pairs are independent if their addresses are:
//
//     for k:
//       x = load src[m, k]
//       store tmp[m, k], 2 * x        mayPass(load of tmp, store to tmp): Ordered
//       a = load tmp[m, k]            mayPass(load of b, store to tmp):
//       b = load b[k, n]                IndependentIf b and tmp do not overlap
//       acc += a * b
//
// Two arguments may be the same array, or views that overlap. So accesses through two arguments are
// independent only if the two do not overlap. A launch checks that (LaunchRange), or the program
// compares the addresses. Two accesses through one argument are compared as boxes (BoxAccess),
// whose distance is known. If that does not decide, or if an address is loaded from memory, a
// launch cannot check it, and the accesses are ordered. The program can still compare addresses.
//
// An answer holds for one execution of each op. If an op is to pass executions of the other in
// other iterations of a loop, the caller names that loop (`across`). Values that change in it then
// differ between the two.
//
// The analysis keeps more order than the language promises on GPUs, where only accesses of the same
// lane are ordered. It preserves every order that the CPU and the interpreter preserve.
//
// The callers do one of these:
//
//     hoist or sink a load in a block, or out of a loop      mayPass(), mayWriteMemory()
//     run a load ahead, or on another thread, in a loop      mayPass() across the loop, whose
//                                                            conditions a launch checks
//     run iterations of a loop in another order              getPointerBases(),
//                                                            getMemoryAccesses();
//                                                            the program compares places
//     run the lanes of several accesses in one loop nest     mayInterleave(); the program compares
//                                                            addresses
//     run programs in another order                          mayMeetOtherPrograms()
//     insert barriers between lanes (LaneOrder.h)            mayPassAccesses()
//
// Other passes move, repeat or drop only pure ops, or keep each access in its place. LLVM runs
// after all of these with its own rules. It knows only that no other memory aliases a thread's
// scratch and the record of its launch.

#ifndef TESSERA_ANALYSIS_ORDER_MEMORYORDER_H
#define TESSERA_ANALYSIS_ORDER_MEMORYORDER_H

#include "tessera/Analysis/Boxes/BoxAccess.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// One of the things that an op does to memory.
struct OpAccess {
  mlir::Operation *op = nullptr;
  /// Pointers, a descriptor, a block pointer or a buffer; null if it may be anywhere.
  mlir::Value place;
  bool reads = false, writes = false;
  /// Null if it may be any.
  mlir::SideEffects::Resource *resource = nullptr;

  bool isAnywhere() const { return !place; }
  /// Not so for tile::Events.
  bool isOfMemory() const;
};

/// The accesses of memory by an op and all within it; none if it has effects only on tile::Events.
llvm::SmallVector<OpAccess> getMemoryAccesses(mlir::Operation *op);

/// True if an op may write to memory of the program, or order what others do.
bool mayWriteMemory(mlir::Operation *op);

/// True if an op, or anything within it, may read what other programs write, or order this
/// program's accesses for them. Such an op accesses anything (a barrier, a call, foreign code), or
/// is an atomic.
bool mayMeetOtherPrograms(mlir::Operation *op);

/// The arrays that pointers may be of.
struct PointerBases {
  /// Arguments of the kernel.
  llvm::SmallSetVector<mlir::BlockArgument, 2> arguments;
  /// True if there may be others: addresses that were found in memory or made of integers,
  /// arguments of functions.
  bool hasOthers = false;

  /// The only array; null if there are, or may be, several.
  mlir::BlockArgument getSingle() const {
    return !hasOthers && arguments.size() == 1 ? arguments.front() : mlir::BlockArgument();
  }
};

/// For a pointer, a tile of them, a block pointer or a descriptor.
PointerBases getPointerBases(mlir::Value pointers);

/// Two accesses that must not meet, one of each op.
struct AccessPair {
  OpAccess moved, other;
  /// If not empty: they do not, in a launch where none of these is negative.
  llvm::SmallVector<LaunchExpr, 0> apartIf;
};

/// The answer.
class MemoryOrderAnswer {
public:
  enum Kind {
    Independent,   ///< the order does not matter
    IndependentIf, ///< the order matters only if accesses of the two alias
    Ordered,       ///< the order must be kept
  };

  Kind getKind() const { return kind; }
  bool isIndependent() const { return kind == Independent; }
  bool isOrdered() const { return kind == Ordered; }
  /// IndependentIf: all of these have to be apart.
  llvm::ArrayRef<AccessPair> getConditions() const { return pairs; }
  /// Ordered: which two accesses.
  const AccessPair &getReason() const { return pairs.front(); }

private:
  friend class MemoryOrder;

  Kind kind = Independent;
  llvm::SmallVector<AccessPair, 1> pairs;
};

class MemoryOrder {
public:
  explicit MemoryOrder(AccessAnalysis &analysis) : analysis(analysis) {}

  /// May `moved` run before, or after, `other`, on the other side of which it stands? With
  /// `across`, this concerns its executions in other iterations of that loop.
  MemoryOrderAnswer mayPass(mlir::Operation *moved, mlir::Operation *other,
                            mlir::Operation *across = nullptr);

  /// May the lanes of two ops be interleaved, instead of all lanes of the first before all of the
  /// second? Some lanes of the first run, then the same lanes of the second, then the next lanes of
  /// the first. Accesses that alias only in the same lane keep their order by that. Others must not
  /// alias. Two accesses by the same pointers are among the answer's conditions, too.
  MemoryOrderAnswer mayInterleave(mlir::Operation *first, mlir::Operation *second);

  /// mayPass() of their accesses alone: it does not count that an atomic or a volatile load
  /// orders others.
  MemoryOrderAnswer mayPassAccesses(mlir::Operation *moved, mlir::Operation *other,
                                    mlir::Operation *across = nullptr);

private:
  MemoryOrderAnswer compareAll(llvm::ArrayRef<OpAccess> moved, llvm::ArrayRef<OpAccess> others,
                               mlir::Operation *across, bool byLanes = false);
  void compare(const OpAccess &moved, const OpAccess &other, mlir::Operation *across, bool byLanes,
               MemoryOrderAnswer &answer);
  const std::optional<BoxAccess> &getBox(mlir::Operation *op);

  AccessAnalysis &analysis;
  llvm::DenseMap<mlir::Operation *, std::optional<BoxAccess>> boxes;
};

//===----------------------------------------------------------------------===//
// Conditions of a launch
//===----------------------------------------------------------------------===//

/// The bytes of an array that an access by one argument reaches, in all programs of a launch and in
/// all iterations of all loops around it.
struct LaunchRange {
  struct Dim {
    LaunchExpr extent, stride; ///< in elements
    /// The index of the first of so many elements, which the launcher bounds (ProgramBound.h);
    /// none: 0.
    std::string first;
  };
  unsigned argument = 0;
  int64_t elementBytes = 1;
  /// None: a single element.
  llvm::SmallVector<Dim, 2> dims;

  bool operator==(const LaunchRange &other) const;
};

struct LaunchConditions;

/// The range of an access of a single argument's array, with what it takes for granted of the
/// launch added to the conditions. None for other accesses, and of an index found in memory. One
/// whose loop's end is found there, or which a `while` counts up, goes on to the end of memory.
std::optional<LaunchRange> getLaunchRange(const OpAccess &access, AccessAnalysis &analysis,
                                          LaunchConditions &conditions);

/// Conditions of a launch under which pairs of accesses do not overlap.
struct LaunchConditions {
  llvm::SmallVector<LaunchExpr> notNegative;
  /// Numbers that are not negative in any program (ProgramBound.h).
  llvm::SmallVector<std::string> programBounds;
  int64_t mostPrograms = 0; ///< along an axis of the grid; 0: any
  /// Each pair is of two different arguments.
  llvm::SmallVector<std::pair<LaunchRange, LaunchRange>, 1> apart;

  /// Adds the conditions of an answer. False if a launch cannot check them: then `why` is the pair.
  bool add(const MemoryOrderAnswer &answer, AccessAnalysis &analysis, AccessPair &why);
  /// Along an axis of the grid; 0: any.
  void limitPrograms(int64_t most);
};

/// On a kernel: pairs of ranges that must not overlap at a launch. Otherwise another variant of the
/// kernel runs.
inline constexpr llvm::StringLiteral kArraysApartAttr = "tilegpu.arrays_apart";

using LaunchRangePair = std::pair<LaunchRange, LaunchRange>;

/// The attribute for a kernel with so many arguments that a launch gives.
mlir::ArrayAttr makeArraysApart(mlir::MLIRContext *context, unsigned numArguments,
                                llvm::ArrayRef<LaunchRangePair> pairs);
/// The contents of such an attribute; an empty list if it is null. Nothing if it has another form.
std::optional<llvm::SmallVector<LaunchRangePair>> readArraysApart(mlir::Attribute attribute);

} // namespace tessera

#endif // TESSERA_ANALYSIS_ORDER_MEMORYORDER_H
