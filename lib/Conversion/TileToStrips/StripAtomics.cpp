// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomics whose old values nobody reads, on rows of neighbours.
//
// A locked instruction costs some twenty cycles, whatever it does. The widest of them
// compares and swaps 16 bytes: four floats are added in one go, in a loop that starts over
// where another thread came between:
//
//     old = load 16 bytes
//     do { new = old + values } while (!compare_and_swap(address, old, new))
//
// All lanes change at once then, which is more than was asked for; against atomics of
// single elements it is as atomic as those are. Rows that are not aligned take their
// elements one by one. Where only the program itself may know of the address (scope
// "cta"), and a program is one thread, nothing has to be atomic.

#include "GroupRoots.h"
#include "ScalarMemory.h"
#include "StripNest.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera {

static Value buildAtomicCombination(OpBuilder &b, Location loc, tile::AtomicKind kind, Value old,
                                    Value value) {
  switch (kind) {
  case tile::AtomicKind::Add:
    return arith::AddIOp::create(b, loc, old, value);
  case tile::AtomicKind::FAdd:
    return arith::AddFOp::create(b, loc, old, value);
  case tile::AtomicKind::And:
    return arith::AndIOp::create(b, loc, old, value);
  case tile::AtomicKind::Or:
    return arith::OrIOp::create(b, loc, old, value);
  case tile::AtomicKind::Xor:
    return arith::XOrIOp::create(b, loc, old, value);
  case tile::AtomicKind::Max:
    return arith::MaxSIOp::create(b, loc, old, value);
  case tile::AtomicKind::Min:
    return arith::MinSIOp::create(b, loc, old, value);
  case tile::AtomicKind::UMax:
    return arith::MaxUIOp::create(b, loc, old, value);
  case tile::AtomicKind::UMin:
    return arith::MinUIOp::create(b, loc, old, value);
  case tile::AtomicKind::FMax:
    return arith::MaxNumFOp::create(b, loc, old, value);
  case tile::AtomicKind::FMin:
    return arith::MinNumFOp::create(b, loc, old, value);
  case tile::AtomicKind::Exchange:
    return value;
  }
  llvm_unreachable("an atomic of the tile dialect");
}

static void buildVectorAtomic(OpBuilder &b, Location loc, tile::AtomicRMWOp atomic, Value pointer,
                              Value value) {
  auto type = cast<VectorType>(value.getType());
  unsigned bits = type.getNumElements() * type.getElementTypeBitWidth();
  Type word = b.getI64Type(), whole = b.getIntegerType(bits);
  Type ptr = pointer.getType();
  // Each half as it is at some time: whether they belong together shows when they are
  // compared.
  auto loadWord = [&](int32_t byte) -> Value {
    Value at = pointer;
    if (byte)
      at = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{byte});
    return LLVM::LoadOp::create(b, loc, word, at, 8, false, false, false, false,
                                LLVM::AtomicOrdering::monotonic);
  };
  Value before = loadWord(0);
  if (bits == 128) {
    Value low = arith::ExtUIOp::create(b, loc, whole, before);
    Value high = arith::ExtUIOp::create(b, loc, whole, loadWord(8));
    Value shift = arith::ConstantOp::create(b, loc, b.getIntegerAttr(whole, 64));
    high = arith::ShLIOp::create(b, loc, high, shift);
    before = arith::OrIOp::create(b, loc, low, high);
  }
  auto turns = scf::WhileOp::create(b, loc, TypeRange(whole), ValueRange(before));
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&turns.getBefore(), {}, TypeRange(whole), {loc});
  Value old = body->getArgument(0);
  Value sum = buildAtomicCombination(b, loc, atomic.getKind(),
                                     LLVM::BitcastOp::create(b, loc, type, old), value);
  LLVM::AtomicOrdering ordering = getAtomicOrdering(atomic.getSem());
  Value exchange = LLVM::AtomicCmpXchgOp::create(b, loc, pointer, old,
                                                 LLVM::BitcastOp::create(b, loc, whole, sum),
                                                 ordering, getFailureOrdering(ordering));
  Value found = LLVM::ExtractValueOp::create(b, loc, exchange, ArrayRef<int64_t>{0});
  Value done = LLVM::ExtractValueOp::create(b, loc, exchange, ArrayRef<int64_t>{1});
  Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
  scf::ConditionOp::create(b, loc, arith::XOrIOp::create(b, loc, done, one), ValueRange(found));
  Block *again = b.createBlock(&turns.getAfter(), {}, TypeRange(whole), {loc});
  b.setInsertionPointToEnd(again);
  scf::YieldOp::create(b, loc, again->getArguments());
}

namespace {

class AtomicNest {
public:
  AtomicNest(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access)
      : atomic(atomic), access(access), emitter(group, access),
        shape(tile::getShape(atomic.getPtr().getType())), loc(atomic.getLoc()) {
    emitter.setLoc(loc);
  }

  /// False if the elements have to be taken one by one; nothing has been emitted then.
  bool run(const StripOptions &options);

private:
  bool chooseLanes(const StripOptions &options);
  void emitPrefetch(IndexTuple index);
  void emitStrip(IndexTuple index);
  void emitElements(IndexTuple index);

  tile::AtomicRMWOp atomic;
  AccessAnalysis &access;
  StripEmitter emitter;
  ArrayRef<int64_t> shape;
  Location loc;
  unsigned laneDim = 0, bytes = 0; ///< bytes: of an element
  int64_t lanes = 1;
  bool isPrivate = false; ///< to this program
};

bool AtomicNest::chooseLanes(const StripOptions &options) {
  std::optional<unsigned> dim = findRows(atomic, access);
  Type element = getElementTypeOrSelf(atomic.getValue().getType());
  if (!dim || getMemoryType(element) != element)
    return false;
  laneDim = *dim;
  isPrivate = atomic.getScope() == tile::MemScope::CTA;
  bytes = element.getIntOrFloatBitWidth() / 8;
  unsigned most = isPrivate ? options.machine.vectorBits : options.machine.swapBits;
  lanes = std::min<int64_t>(most / (8 * bytes), shape[laneDim] & -shape[laneDim]);
  return lanes > 1;
}

/// A locked instruction waits for its line, and what comes after it waits as well. Rows at
/// places that the data choose are fetched while those before them are worked on.
void AtomicNest::emitPrefetch(IndexTuple index) {
  constexpr int64_t kAhead = 1024, kMostRows = 8, kMostLines = 16;
  const AccessForm &form = access.getForm(atomic.getPtr());
  std::optional<unsigned> rowDim;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (dim != laneDim && shape[dim] > 1 && !form.isAffineAlong(dim))
      rowDim = dim;
  if (!rowDim)
    return;
  int64_t rowBytes = shape[laneDim] * bytes;
  int64_t rows = std::clamp<int64_t>(kAhead / rowBytes, 1, kMostRows);
  Value last = emitter.getIndexConstant(shape[*rowDim] - 1);
  Value distance = emitter.getIndexConstant(rows);
  OpBuilder &b = emitter.atEnd();
  Value ahead = arith::AddIOp::create(b, loc, index[*rowDim].value, distance);
  ahead = arith::MinUIOp::create(b, loc, ahead, last);
  index[*rowDim] = {ahead, 0, 1, emitter.getLevel()};
  index[laneDim] = Index();
  Value address = emitter.evaluate(atomic.getPtr(), index).value;
  emitter.atEnd();
  auto ptr = LLVM::LLVMPointerType::get(atomic.getContext());
  Value pointer = LLVM::IntToPtrOp::create(b, loc, ptr, address);
  int64_t end = std::min(rowBytes, kMostLines * HostMachine::kLineBytes);
  for (int64_t byte = 0; byte < end; byte += HostMachine::kLineBytes) {
    Value line = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), pointer,
                                     ArrayRef<LLVM::GEPArg>{int32_t(byte)});
    LLVM::Prefetch::create(b, loc, line, /*rw=*/1, /*hint=*/3, /*cache=*/1);
  }
}

/// The elements of a strip as if there were no strips.
void AtomicNest::emitElements(IndexTuple index) {
  Value first = emitter.getIndexValue(index[laneDim]);
  scf::ForOp loop =
      emitter.beginLoop(emitter.getIndexConstant(0), emitter.getIndexConstant(lanes), 1);
  Value at = arith::AddIOp::create(emitter.atEnd(), loc, first, loop.getInductionVar());
  index[laneDim] = {at, 0, 1, emitter.getLevel()};
  SmallVector<Value> operands = llvm::map_to_vector(
      atomic->getOperands(), [&](Value operand) { return emitter.evaluate(operand, index).value; });
  buildScalarAccess(emitter.atEnd(), atomic, operands);
  emitter.endLoop();
}

void AtomicNest::emitStrip(IndexTuple index) {
  unsigned level = emitter.getLevel();
  IndexTuple strip(index), first(index);
  strip[laneDim].lanes = lanes;
  first[laneDim] = Index();
  Value address = emitter.evaluate(atomic.getPtr(), first).value;
  {
    Value position = emitter.getIndexValue(index[laneDim]);
    OpBuilder &b = emitter.atEnd();
    Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), position);
    offset = arith::MulIOp::create(b, loc, offset, arith::ConstantIntOp::create(b, loc, bytes, 64));
    address = arith::AddIOp::create(b, loc, address, offset);
  }
  Value value = emitter.broadcast(emitter.evaluate(atomic.getValue(), strip), lanes);
  StripMask mask = emitter.evaluateMask(atomic.getMask(), strip, level);
  if (mask.uniform)
    emitter.beginIf(mask.uniform);
  auto ptr = LLVM::LLVMPointerType::get(atomic.getContext());
  if (isPrivate) {
    OpBuilder &b = emitter.atEnd();
    Value pointer = LLVM::IntToPtrOp::create(b, loc, ptr, address);
    Value old;
    if (mask.vector) {
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
      old = LLVM::MaskedLoadOp::create(b, loc, value.getType(), pointer, mask.vector, zero, bytes);
    } else {
      old = LLVM::LoadOp::create(b, loc, value.getType(), pointer, bytes);
    }
    Value sum = buildAtomicCombination(b, loc, atomic.getKind(), old, value);
    if (mask.vector)
      LLVM::MaskedStoreOp::create(b, loc, sum, pointer, mask.vector, bytes);
    else
      LLVM::StoreOp::create(b, loc, sum, pointer, bytes);
  } else {
    OpBuilder &b = emitter.atEnd();
    Value low = arith::AndIOp::create(b, loc, address,
                                      arith::ConstantIntOp::create(b, loc, lanes * bytes - 1, 64));
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
    Value together = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, low, zero);
    if (mask.vector) {
      Value all = vector::ReductionOp::create(b, loc, vector::CombiningKind::AND, mask.vector);
      together = arith::AndIOp::create(b, loc, together, all);
    }
    Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
    Value apart = arith::XOrIOp::create(b, loc, together, one);
    emitter.beginIf(together);
    Value pointer = LLVM::IntToPtrOp::create(emitter.atEnd(), loc, ptr, address);
    buildVectorAtomic(emitter.atEnd(), loc, atomic, pointer, value);
    emitter.endIf();
    emitter.beginIf(apart);
    emitElements(index);
    emitter.endIf();
  }
  if (mask.uniform)
    emitter.endIf();
}

bool AtomicNest::run(const StripOptions &options) {
  if (!chooseLanes(options))
    return false;
  IndexTuple index(shape.size());
  unsigned opened = 0;
  auto open = [&](unsigned dim, int64_t step) {
    if (shape[dim] == step)
      return;
    Value zero = emitter.getIndexConstant(0), end = emitter.getIndexConstant(shape[dim]);
    scf::ForOp loop = emitter.beginLoop(zero, end, step);
    index[dim] = {loop.getInductionVar(), 0, 1, emitter.getLevel()};
    ++opened;
  };
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (dim != laneDim)
      open(dim, 1);
  emitPrefetch(index);
  open(laneDim, lanes);
  emitStrip(index);
  while (opened-- > 0)
    emitter.endLoop();
  return true;
}

} // namespace

bool lowerAtomicInStrips(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access,
                         const StripOptions &options) {
  return AtomicNest(group, atomic, access).run(options);
}

} // namespace tessera
