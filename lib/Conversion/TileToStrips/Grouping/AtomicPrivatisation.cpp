// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds on the offsets of atomics: from how they are computed, and from the mask; and what
// else their kernel does to memory.

#include "AtomicPrivatisation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

using namespace mlir;

namespace tessera {

/// The constant that all elements of a value are.
static std::optional<APInt> getConstant(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!tile::movesOneTile(op))
      break;
    value = op->getOperand(0);
  }
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant;
  return std::nullopt;
}

/// One past the largest that an integer can be for what computes it, if it cannot be
/// negative.
static std::optional<int64_t> getEnd(Value value) {
  constexpr int64_t kMaxBits = 30;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto endOfBits = [](unsigned bits) -> std::optional<int64_t> {
    return bits <= kMaxBits ? std::optional(int64_t(1) << bits) : std::nullopt;
  };
  if (tile::movesOneTile(op) || isa<arith::ExtSIOp>(op))
    return getEnd(op->getOperand(0));
  if (auto extended = dyn_cast<arith::ExtUIOp>(op)) {
    if (auto end = getEnd(extended.getIn()))
      return end;
    return endOfBits(getElementTypeOrSelf(extended.getIn().getType()).getIntOrFloatBitWidth());
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<APInt> right = getConstant(op->getOperand(1));
  if (!right || right->isNegative() || right->getActiveBits() > kMaxBits)
    return std::nullopt;
  int64_t constant = right->getZExtValue();
  if (isa<arith::AndIOp, arith::MinUIOp>(op))
    return constant + 1;
  if (auto remainder = dyn_cast<tile::RemIntOp>(op))
    if (remainder.getSignedness() == tile::Signedness::Unsigned && constant > 0)
      return constant;
  if (isa<arith::MinSIOp>(op))
    if (std::optional<int64_t> end = getEnd(op->getOperand(0)))
      return std::min(*end, constant + 1);
  return std::nullopt;
}

static Value skipExtensions(Value value) {
  while (auto extended = value.getDefiningOp<arith::ExtSIOp>())
    value = extended.getIn();
  return value;
}

/// The same from a mask, where it holds.
static std::optional<int64_t> getEndWhere(Value mask, Value value) {
  bool isNonNegative = false;
  std::optional<int64_t> end;
  SmallVector<Value> work{mask};
  while (!work.empty()) {
    Value term = work.pop_back_val();
    if (auto both = term.getDefiningOp<arith::AndIOp>()) {
      llvm::append_range(work, both->getOperands());
      continue;
    }
    auto compare = term.getDefiningOp<arith::CmpIOp>();
    if (!compare || skipExtensions(compare.getLhs()) != value)
      continue;
    std::optional<APInt> right = getConstant(compare.getRhs());
    if (!right || right->getSignificantBits() > 32)
      continue;
    int64_t bound = right->getSExtValue();
    using Predicate = arith::CmpIPredicate;
    Predicate predicate = compare.getPredicate();
    if (predicate == Predicate::sge || predicate == Predicate::sgt) {
      isNonNegative |= bound >= (predicate == Predicate::sge ? 0 : -1);
      continue;
    }
    bool isUnsigned = predicate == Predicate::ult || predicate == Predicate::ule;
    bool isLess = predicate == Predicate::slt || predicate == Predicate::ult;
    if (!isUnsigned && predicate != Predicate::slt && predicate != Predicate::sle)
      continue;
    if (bound < 0)
      continue;
    isNonNegative |= isUnsigned;
    bound += isLess ? 0 : 1;
    end = end ? std::min(*end, bound) : bound;
  }
  return isNonNegative ? end : std::nullopt;
}

/// True if an atomic adds numbers and its old values are unused; if not, `why` gets the reason.
static bool addsUnread(tile::AtomicRMWOp atomic, std::string *why = nullptr) {
  auto fail = [&](StringRef reason) {
    if (why)
      *why = reason;
    return false;
  };
  Type element = getElementTypeOrSelf(atomic.getValue().getType());
  if (!atomic.getResult().use_empty())
    return fail("its old values are read");
  if (atomic.getKind() != tile::AtomicKind::Add && atomic.getKind() != tile::AtomicKind::FAdd)
    return fail("only sums can be privatised");
  bool isFloat = atomic.getKind() == tile::AtomicKind::FAdd;
  if (isFloat ? !element.isF32() && !element.isF64() : element.getIntOrFloatBitWidth() < 32)
    return fail("only sums of 32 and 64 bits can be privatised");
  return true;
}

static Value getBase(Value pointers) {
  while (Operation *op = pointers.getDefiningOp()) {
    if (!tile::movesOneTile(op) && !isa<tile::AddPtrOp>(op))
      return {};
    pointers = op->getOperand(0);
  }
  return pointers;
}

/// True if a value depends on the program's ids, but by what it loads.
static bool dependsOnProgram(Value value) {
  SmallVector<Value> work{value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (!op || !seen.insert(next).second || isa<tile::LoadOp>(op))
      continue;
    if (isa<tile::ProgramIdOp>(op) || op->getNumRegions() != 0)
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

/// The kernel's argument that an atomic adds to, if the addition may be delayed to the end of the
/// thread's programs without an observable difference. Its old values must be unused. After it, its
/// program may access memory only by atomics of the same kind. These have nothing to acquire, and
/// no program waits for another. Earlier writes are released if the later addition releases. If
/// addresses depend on the program's id, each program has places of its own, and privatising gains
/// nothing. Returns null with the reason in `why` otherwise.
static BlockArgument findSharedBase(tile::AtomicRMWOp atomic, std::string &why) {
  auto fail = [&](StringRef reason) {
    why = reason;
    return BlockArgument();
  };
  auto func = atomic->getParentOfType<tile::FuncOp>();
  if (!func || !func.isKernel())
    return fail("it is not in a kernel");
  for (Operation *parent = atomic->getParentOp(); parent != func; parent = parent->getParentOp())
    if (!isa<scf::IfOp>(parent))
      return fail("it is in a loop");
  Type element = getElementTypeOrSelf(atomic.getValue().getType());
  auto base = dyn_cast_or_null<BlockArgument>(getBase(atomic.getPtr()));
  if (!base || base.getOwner() != &func.getBody().front() ||
      cast<tile::PointerType>(base.getType()).getPointee() != element)
    return fail("its array is no argument of the kernel");
  if (dependsOnProgram(atomic.getPtr()))
    return fail("its addresses depend on the program");
  // Operations are visited in program order; the other branch of a condition counts as later.
  bool isLater = false;
  WalkResult harmless = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    isLater |= op == atomic;
    // Ops in a region are visited themselves.
    if (op == func || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    bool isQuiet;
    if (auto other = dyn_cast<tile::AtomicRMWOp>(op))
      isQuiet = addsUnread(other) && getElementTypeOrSelf(other.getValue().getType()) == element;
    else
      isQuiet = isLater ? getMemoryAccesses(op).empty() : !mayMeetOtherPrograms(op);
    return isQuiet ? WalkResult::advance() : WalkResult::interrupt();
  });
  return harmless.wasInterrupted() ? fail("other accesses could observe when it adds") : base;
}

static std::optional<int64_t> countPlacesOfProgram(tile::AtomicRMWOp atomic, std::string &why) {
  // The sums are kept beside what the program works on, in the caches.
  constexpr int64_t kMaxBytes = 32 << 10, kLanesPerPlace = 4;
  Type element = getElementTypeOrSelf(atomic.getValue().getType());
  auto tile = cast<RankedTensorType>(atomic.getPtr().getType());
  auto pointers = atomic.getPtr().getDefiningOp<tile::AddPtrOp>();
  if (!pointers || !pointers.getPtr().getDefiningOp<tile::SplatOp>()) {
    why = "its pointers are not one address plus offsets";
    return std::nullopt;
  }
  Value offset = skipExtensions(pointers.getOffset());
  std::optional<int64_t> end = getEnd(pointers.getOffset());
  if (atomic.getMask())
    if (std::optional<int64_t> masked = getEndWhere(atomic.getMask(), offset))
      end = end ? std::min(*end, *masked) : *masked;
  if (!end || *end < 1)
    why = "no constant bounds its offsets";
  else if (*end * element.getIntOrFloatBitWidth() / 8 > kMaxBytes)
    why = std::to_string(*end) + " elements do not fit the caches";
  else if (*end * kLanesPerPlace > tile.getNumElements())
    why = "there are fewer than 4 lanes for each of " + std::to_string(*end) + " elements";
  else
    return end;
  return std::nullopt;
}

Value getSharedBase(tile::AtomicRMWOp atomic) {
  auto chosen = atomic->getAttrOfType<IntegerAttr>(strips::kPrivatisationAttr);
  if (!chosen || chosen.getInt() >= 0)
    return {};
  return atomic->getParentOfType<tile::FuncOp>().getArgument(-1 - chosen.getInt());
}

std::optional<int64_t> choosePrivatisation(tile::AtomicRMWOp atomic, std::string &why) {
  if (!isa<RankedTensorType>(atomic.getPtr().getType()) || !addsUnread(atomic, &why))
    return std::nullopt;
  // A thread's copy is there for all its programs, and holds no fewer elements.
  std::string whyNoPlaces;
  if (BlockArgument base = findSharedBase(atomic, why))
    return -1 - int64_t(base.getArgNumber());
  std::optional<int64_t> places = countPlacesOfProgram(atomic, whyNoPlaces);
  if (!places)
    why = "no private copy of the array for a thread, since " + why +
          "; no private sums for a program, since " + whyNoPlaces;
  return places;
}

} // namespace tessera
