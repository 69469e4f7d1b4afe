// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomics with unused old values, on contiguous rows.
//
// A locked instruction costs some twenty cycles, whatever it does. The widest of them
// compares and swaps 16 bytes: four floats are added in one go, in a loop that starts over
// where another thread came between:
//
//     old = load 16 bytes
//     do { new = old + values } while (!compare_and_swap(address, old, new))
//
// All lanes then change at once, which is more than the op promises. Against atomics of single
// elements it is as atomic as those are. Rows that are not aligned take their elements one by one.
// If only the program itself may access the address (scope "cta"), nothing has to be atomic, since
// a program is one thread.
//
// If the time of an atomic's addition is not observable (getSharedBase), a thread has a private
// copy of the beginning of the array. Nothing has to be atomic there, either:
//
//     if (address - base < bytes) memory[address - base] += value; else atomic
//
// If many lanes of one program add to few places (a histogram), each place is summed in the
// program's own memory first. The sum is then added to the place if any lane accessed it.

#include "StripAtomics.h"
#include "Combine.h"
#include "Grouping/AtomicPrivatisation.h"
#include "Grouping/GroupRoots.h"
#include "ScalarMemory.h"
#include "StripNest.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

Value buildAtomicCombination(OpBuilder &b, Location loc, tile::AtomicKind kind, Value old,
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

TypedAttr getNeutralElement(tile::AtomicKind kind, Type element) {
  OpBuilder builder(element.getContext());
  Location loc = builder.getUnknownLoc();
  Region combine;
  Block &block = combine.emplaceBlock();
  block.addArguments({element, element}, {loc, loc});
  builder.setInsertionPointToEnd(&block);
  Value both =
      buildAtomicCombination(builder, loc, kind, block.getArgument(0), block.getArgument(1));
  tile::ReduceReturnOp::create(builder, loc, both);
  return getNeutralElement(combine);
}

void buildVectorAtomic(OpBuilder &b, Location loc, tile::AtomicKind kind,
                       LLVM::AtomicOrdering ordering, Value pointer, Value value) {
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
  auto attempts = scf::WhileOp::create(b, loc, TypeRange(whole), ValueRange(before));
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&attempts.getBefore(), {}, TypeRange(whole), {loc});
  Value old = body->getArgument(0);
  Value sum =
      buildAtomicCombination(b, loc, kind, LLVM::BitcastOp::create(b, loc, type, old), value);
  Value exchange = LLVM::AtomicCmpXchgOp::create(b, loc, pointer, old,
                                                 LLVM::BitcastOp::create(b, loc, whole, sum),
                                                 ordering, getFailureOrdering(ordering));
  Value found = LLVM::ExtractValueOp::create(b, loc, exchange, ArrayRef<int64_t>{0});
  Value done = LLVM::ExtractValueOp::create(b, loc, exchange, ArrayRef<int64_t>{1});
  Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
  scf::ConditionOp::create(b, loc, arith::XOrIOp::create(b, loc, done, one), ValueRange(found));
  Block *again = b.createBlock(&attempts.getAfter(), {}, TypeRange(whole), {loc});
  b.setInsertionPointToEnd(again);
  scf::YieldOp::create(b, loc, again->getArguments());
}

namespace {

/// A thread's copy of what its programs add to; all of type i64.
struct PrivateCopy {
  Value base, bytes, memory;
};

/// True if the kernel has a private copy of this array, or room for another one.
bool hasRoom(tile::AtomicRMWOp atomic) {
  using Array = std::pair<Value, Type>;
  Array own{getSharedBase(atomic), getElementTypeOrSelf(atomic.getValue().getType())};
  DenseSet<Array> arrays;
  atomic->getParentOfType<tile::FuncOp>().walk([&](strips::PrivateCopyOp privateCopy) {
    auto base = privateCopy.getBase().getDefiningOp<tile::PtrToIntOp>();
    arrays.insert({base ? base.getSource() : privateCopy.getBase(), privateCopy.getElement()});
  });
  return arrays.contains(own) || arrays.size() < strips::kMaxPrivateCopies;
}

bool hasPrivateCopy(tile::AtomicRMWOp atomic, const StripOptions &options) {
  // In another order floats have another sum.
  bool mayReorder = !options.deterministic || atomic.getKind() == tile::AtomicKind::Add;
  return mayReorder && getSharedBase(atomic) && hasRoom(atomic);
}

PrivateCopy openPrivateCopy(StripEmitter &emitter, tile::AtomicRMWOp atomic) {
  Value base = emitter.evaluate(getSharedBase(atomic), {}).value;
  auto tile = cast<RankedTensorType>(atomic.getValue().getType());
  OpBuilder &b = emitter.atStart();
  auto privateCopy =
      strips::PrivateCopyOp::create(b, atomic.getLoc(), b.getI64Type(), b.getI64Type(), base,
                                    tile.getElementType(), tile.getNumElements());
  return {base, privateCopy.getBytes(), privateCopy.getMemory()};
}

/// Why what an atomic adds is not collected before others see it.
std::string describeNoSums(tile::AtomicRMWOp atomic) {
  if (auto why = atomic->getAttrOfType<StringAttr>(strips::kNoPrivatisationAttr))
    return why.str();
  if (getSharedBase(atomic) && !hasRoom(atomic))
    return "no private copy of the array for a thread, since it has " +
           std::to_string(strips::kMaxPrivateCopies) + " of other arrays";
  return isa<FloatType>(getElementTypeOrSelf(atomic.getValue().getType()))
             ? "with `deterministic` sums keep their order"
             : "the machine cannot swap two elements at once";
}

/// The remark about private copies, and the code outside.
std::string describePrivateCopy(int64_t bytes) {
  std::string size =
      bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes >> 20) + " MiB";
  return "in the thread's private copy of up to the first " + size +
         ", which is added to the array at the end; beyond it, ";
}

class AtomicNest {
public:
  AtomicNest(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access)
      : atomic(atomic), access(access), emitter(group, access),
        shape(tile::getShape(atomic.getPtr().getType())), loc(atomic.getLoc()) {
    emitter.setLoc(loc);
  }

  /// False if the elements have to be taken one by one; nothing has been emitted then. `remark`
  /// says what was chosen, or why not.
  bool run(const StripOptions &options, std::string &remark);

private:
  std::string describe() const;
  bool chooseLanes(const StripOptions &options);
  void emitPrefetch(IndexTuple index);
  void emitStrip(IndexTuple index);
  void emitElements(IndexTuple index);
  void emitPlain(Value address, Value value, Value mask);

  tile::AtomicRMWOp atomic;
  AccessAnalysis &access;
  StripEmitter emitter;
  ArrayRef<int64_t> shape;
  Location loc;
  unsigned laneDim = 0, bytes = 0; ///< bytes: of an element
  int64_t lanes = 1;
  bool isPrivate = false; ///< to this program
  std::optional<PrivateCopy> privateCopy;
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
  constexpr int64_t kAhead = 1024, kMaxRows = 8, kMaxLines = 16;
  const AccessForm &form = access.getForm(atomic.getPtr());
  std::optional<unsigned> rowDim;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (dim != laneDim && shape[dim] > 1 && !form.isAffineAlong(dim))
      rowDim = dim;
  if (!rowDim)
    return;
  int64_t rowBytes = shape[laneDim] * bytes;
  int64_t rows = std::clamp<int64_t>(kAhead / rowBytes, 1, kMaxRows);
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
  int64_t end = std::min(rowBytes, kMaxLines * HostMachine::kLineBytes);
  for (int64_t byte = 0; byte < end; byte += HostMachine::kLineBytes) {
    Value line = LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), pointer,
                                     ArrayRef<LLVM::GEPArg>{int32_t(byte)});
    LLVM::Prefetch::create(b, loc, line, /*rw=*/1, /*hint=*/3, /*cache=*/1);
  }
}

/// Begins a loop over the elements of a strip, with an index for each. Returns the atomic's
/// operands for that element.
static SmallVector<Value> beginElements(StripEmitter &emitter, tile::AtomicRMWOp atomic,
                                        IndexTuple index, unsigned laneDim, int64_t lanes) {
  Value first = emitter.getIndexValue(index[laneDim]);
  scf::ForOp loop =
      emitter.beginLoop(emitter.getIndexConstant(0), emitter.getIndexConstant(lanes), 1);
  Value at = arith::AddIOp::create(emitter.atEnd(), atomic.getLoc(), first, loop.getInductionVar());
  index[laneDim] = {at, 0, 1, emitter.getLevel()};
  return llvm::map_to_vector(atomic->getOperands(),
                             [&](Value operand) { return emitter.evaluate(operand, index).value; });
}

/// The elements of a strip as if there were no strips.
void AtomicNest::emitElements(IndexTuple index) {
  SmallVector<Value> operands = beginElements(emitter, atomic, index, laneDim, lanes);
  buildScalarAccess(emitter.atEnd(), atomic, operands);
  emitter.endLoop();
}

/// No other program accesses this address.
void AtomicNest::emitPlain(Value address, Value value, Value mask) {
  OpBuilder &b = emitter.atEnd();
  auto ptr = LLVM::LLVMPointerType::get(atomic.getContext());
  Value pointer = LLVM::IntToPtrOp::create(b, loc, ptr, address);
  Value old;
  if (mask) {
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(value.getType()));
    old = LLVM::MaskedLoadOp::create(b, loc, value.getType(), pointer, mask, zero, bytes);
  } else {
    old = LLVM::LoadOp::create(b, loc, value.getType(), pointer, bytes);
  }
  Value sum = buildAtomicCombination(b, loc, atomic.getKind(), old, value);
  if (mask)
    LLVM::MaskedStoreOp::create(b, loc, sum, pointer, mask, bytes);
  else
    LLVM::StoreOp::create(b, loc, sum, pointer, bytes);
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
    emitPlain(address, value, mask.vector);
  } else {
    if (privateCopy) {
      OpBuilder &b = emitter.atEnd();
      Value offset = arith::SubIOp::create(b, loc, address, privateCopy->base);
      Value last = arith::ConstantIntOp::create(b, loc, (lanes - 1) * bytes, 64);
      last = arith::AddIOp::create(b, loc, offset, last);
      // The private copy is smaller than half of all memory: only one of the two ends wraps.
      auto isBelow = [&](Value place) -> Value {
        return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, privateCopy->bytes);
      };
      Value inside = arith::AndIOp::create(b, loc, isBelow(offset), isBelow(last));
      Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
      Value outside = arith::XOrIOp::create(b, loc, inside, one);
      emitter.beginIf(inside);
      emitPlain(arith::AddIOp::create(emitter.atEnd(), loc, privateCopy->memory, offset), value,
                mask.vector);
      emitter.endIf();
      emitter.beginIf(outside);
    }
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
    buildVectorAtomic(emitter.atEnd(), loc, atomic.getKind(), getAtomicOrdering(atomic.getSem()),
                      pointer, value);
    emitter.endIf();
    emitter.beginIf(apart);
    emitElements(index);
    emitter.endIf();
    if (privateCopy)
      emitter.endIf();
  }
  if (mask.uniform)
    emitter.endIf();
}

/// The remark about rows.
std::string AtomicNest::describe() const {
  std::string elements = std::to_string(lanes) + " elements along dimension " +
                         std::to_string(laneDim) + " at a time, ";
  if (isPrivate)
    return elements + "by loads and stores, since no other program accesses them";
  elements += "by one locked instruction where they are aligned";
  return privateCopy ? describePrivateCopy(strips::kPrivateCopyBytes) + elements
                     : elements + "; " + describeNoSums(atomic);
}

bool AtomicNest::run(const StripOptions &options, std::string &remark) {
  if (!chooseLanes(options)) {
    remark = "no elements are known to be adjacent that the machine can swap at once";
    return false;
  }
  if (!isPrivate && hasPrivateCopy(atomic, options))
    privateCopy = openPrivateCopy(emitter, atomic);
  remark = describe();
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

//===----------------------------------------------------------------------===//
// Histograms
//===----------------------------------------------------------------------===//

class ProgramPrivateNest {
public:
  ProgramPrivateNest(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access,
                     const StripOptions &options)
      : atomic(atomic), emitter(group, access), options(options),
        shape(tile::getShape(atomic.getPtr().getType())), loc(atomic.getLoc()),
        element(getElementTypeOrSelf(atomic.getValue().getType())) {
    emitter.setLoc(loc);
  }

  /// False if there are no places; nothing has been emitted then.
  bool run(int64_t &scratchEnd);

private:
  Value makeNeutral(int64_t lanes);
  void emitClear();
  void emitSums();
  void emitFlush();
  void emitElement(OpBuilder &b, Value address, Value value);

  tile::AtomicRMWOp atomic;
  StripEmitter emitter;
  const StripOptions &options;
  ArrayRef<int64_t> shape;
  Location loc;
  Type element;
  tile::AddPtrOp pointers;
  Value buffer;
  int64_t places = 0, waste = 0; ///< waste: where lanes that are masked off add to
  int64_t chunk = 0;             ///< elements that are flushed at once
};

Value ProgramPrivateNest::makeNeutral(int64_t lanes) {
  OpBuilder &b = emitter.atStart();
  TypedAttr neutral = getNeutralElement(atomic.getKind(), element);
  if (lanes == 1)
    return arith::ConstantOp::create(b, loc, neutral);
  auto type = VectorType::get(lanes, element);
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, neutral));
}

void ProgramPrivateNest::emitClear() {
  Value none = makeNeutral(chunk), zero = emitter.getIndexConstant(0);
  Value end = emitter.getIndexConstant(cast<MemRefType>(buffer.getType()).getDimSize(0));
  Value at = emitter.beginLoop(zero, end, chunk).getInductionVar();
  vector::StoreOp::create(emitter.atEnd(), loc, none, buffer, at);
  emitter.endLoop();
}

void ProgramPrivateNest::emitSums() {
  IndexTuple index(shape.size());
  unsigned laneDim = shape.size() - 1, opened = 0;
  while (laneDim > 0 && shape[laneDim] == 1)
    --laneDim;
  int64_t lanes =
      std::min<int64_t>(options.machine.vectorBits / 32, shape[laneDim] & -shape[laneDim]);
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    int64_t step = dim == laneDim ? lanes : 1;
    if (shape[dim] == step)
      continue;
    Value zero = emitter.getIndexConstant(0), end = emitter.getIndexConstant(shape[dim]);
    Value position = emitter.beginLoop(zero, end, step).getInductionVar();
    index[dim] = {position, 0, 1, emitter.getLevel()};
    ++opened;
  }
  index[laneDim].lanes = lanes;
  Value place = emitter.broadcast(emitter.evaluate(pointers.getOffset(), index), lanes);
  Lanes added = emitter.evaluate(atomic.getValue(), index);
  Value mask;
  if (atomic.getMask())
    mask = emitter.broadcast(emitter.evaluate(atomic.getMask(), index), lanes);
  // Masked-off lanes go to a separate place, so that no branch is needed.
  Type type = place.getType();
  OpBuilder &b = emitter.atEnd();
  if (mask) {
    TypedAttr last = b.getIntegerAttr(getElementTypeOrSelf(type), waste);
    if (auto vector = dyn_cast<VectorType>(type))
      last = DenseElementsAttr::get(vector, last);
    Value elsewhere = arith::ConstantOp::create(b, loc, last);
    place = arith::SelectOp::create(b, loc, mask, place, elsewhere);
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    auto laneOf = [&](Value value) -> Value {
      if (!isa<VectorType>(value.getType()))
        return value;
      return vector::ExtractOp::create(b, loc, value, lane);
    };
    Value at = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), laneOf(place));
    Value old = memref::LoadOp::create(b, loc, buffer, at);
    Value sum = buildAtomicCombination(b, loc, atomic.getKind(), old, laneOf(added.value));
    memref::StoreOp::create(b, loc, sum, buffer, at);
  }
  while (opened-- > 0)
    emitter.endLoop();
}

void ProgramPrivateNest::emitElement(OpBuilder &b, Value address, Value value) {
  SmallVector<Value> operands{address, value};
  if (atomic.getMask())
    operands.push_back(arith::ConstantIntOp::create(b, loc, 1, 1));
  buildScalarAccess(b, atomic, operands);
}

/// Places that nothing was added to may be no memory of the user's.
void ProgramPrivateNest::emitFlush() {
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  Value base = emitter.evaluate(pointers.getPtr(), IndexTuple(shape.size())).value;
  Value none = makeNeutral(chunk), noElement = makeNeutral(1);
  Value zero = emitter.getIndexConstant(0), width = emitter.getIndexConstant(chunk);
  Value end = emitter.getIndexConstant(waste);
  Value first = emitter.beginLoop(zero, end, chunk).getInductionVar();
  OpBuilder &b = emitter.atEnd();
  auto type = VectorType::get(chunk, element);
  auto bits = [&](Value value) -> Value {
    if (!isa<FloatType>(element))
      return value;
    Type integer = b.getIntegerType(8 * bytes);
    Type bitsType = isa<VectorType>(value.getType()) ? VectorType::get(chunk, integer) : integer;
    return arith::BitcastOp::create(b, loc, bitsType, value);
  };
  auto isSome = [&](Value value, Value neutral) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bits(value), bits(neutral));
  };
  auto addressOf = [&](Value at) -> Value {
    Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), at);
    offset = arith::MulIOp::create(b, loc, offset, arith::ConstantIntOp::create(b, loc, bytes, 64));
    return arith::AddIOp::create(b, loc, base, offset);
  };
  Value sums = vector::LoadOp::create(b, loc, type, buffer, first);
  Value some = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, isSome(sums, none));
  Value address = addressOf(first);
  Value low = arith::AndIOp::create(b, loc, address,
                                    arith::ConstantIntOp::create(b, loc, chunk * bytes - 1, 64));
  Value aligned = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, low,
                                        arith::ConstantIntOp::create(b, loc, 0, 64));
  Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
  Value apart = arith::XOrIOp::create(b, loc, aligned, one);
  emitter.beginIf(some);
  emitter.beginIf(aligned);
  emitter.atEnd();
  Value pointer =
      LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(atomic.getContext()), address);
  buildVectorAtomic(b, loc, atomic.getKind(), getAtomicOrdering(atomic.getSem()), pointer, sums);
  emitter.endIf();
  emitter.beginIf(apart);
  Value last = arith::AddIOp::create(emitter.atEnd(), loc, first, width);
  Value at = emitter.beginLoop(first, last, 1).getInductionVar();
  emitter.atEnd();
  Value sum = memref::LoadOp::create(b, loc, buffer, at);
  emitter.beginIf(isSome(sum, noElement));
  emitter.atEnd();
  emitElement(b, addressOf(at), sum);
  emitter.endIf();
  emitter.endLoop();
  emitter.endIf();
  emitter.endIf();
  emitter.endLoop();
}

bool ProgramPrivateNest::run(int64_t &scratchEnd) {
  auto counted = atomic->getAttrOfType<IntegerAttr>(strips::kPrivatisationAttr);
  pointers = atomic.getPtr().getDefiningOp<tile::AddPtrOp>();
  // In another order floats have another sum.
  bool mayReorder = !options.deterministic || atomic.getKind() == tile::AtomicKind::Add;
  if (!counted || counted.getInt() < 0 || !pointers ||
      !pointers.getPtr().getDefiningOp<tile::SplatOp>() || !mayReorder)
    return false;
  places = counted.getInt();
  unsigned bits = element.getIntOrFloatBitWidth();
  chunk = options.machine.swapBits / bits;
  if (chunk < 2)
    return false;
  // Behind them there is room for what is masked off.
  waste = llvm::alignTo(places, chunk);
  auto type = MemRefType::get({waste + chunk}, element);
  buffer = strips::ScratchOp::create(emitter.atStart(), loc, type, uint64_t(scratchEnd));
  scratchEnd += llvm::alignTo(type.getNumElements() * bits / 8, 64);
  emitClear();
  emitSums();
  emitFlush();
  return true;
}

//===----------------------------------------------------------------------===//
// Places anywhere
//===----------------------------------------------------------------------===//

/// Elements of their own places: a strip whose places all lie in the private copy needs no branch.
class ThreadPrivateNest {
public:
  ThreadPrivateNest(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access,
                    const StripOptions &options)
      : group(group), atomic(atomic), emitter(group, access), options(options),
        shape(tile::getShape(atomic.getPtr().getType())), loc(atomic.getLoc()) {
    emitter.setLoc(loc);
  }

  /// False if there is no private copy; nothing has been emitted then.
  bool run();

private:
  void emitPrefetch(IndexTuple index, bool ofCopy);
  void emitGrowth(Value offset);
  void emitStrip(IndexTuple index);
  void emitElements(IndexTuple index);
  void emitPlain(OpBuilder &b, Value offset, Value value);

  strips::GroupOp group;
  tile::AtomicRMWOp atomic;
  StripEmitter emitter;
  const StripOptions &options;
  ArrayRef<int64_t> shape;
  Location loc;
  PrivateCopy privateCopy;
  unsigned laneDim = 0;
  int64_t lanes = 1;
};

/// The copy's address and an offset stay two registers of an instruction. With their sum in one,
/// Zen 4 takes three times as long if it comes from a vector: it expects the last store by that
/// register.
void ThreadPrivateNest::emitPlain(OpBuilder &b, Value offset, Value value) {
  auto ptr = LLVM::LLVMPointerType::get(atomic.getContext());
  Value memory = LLVM::IntToPtrOp::create(b, loc, ptr, privateCopy.memory);
  Value pointer =
      LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), memory, ArrayRef<LLVM::GEPArg>{offset});
  Value old = LLVM::LoadOp::create(b, loc, value.getType(), pointer);
  LLVM::StoreOp::create(b, loc, buildAtomicCombination(b, loc, atomic.getKind(), old, value),
                        pointer);
}

/// True if computing a value again costs little: at most one load, and index arithmetic.
bool isCheap(Value value, unsigned &loads) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()))
    return true;
  if (isa<tile::LoadOp, strips::ReadOp>(op))
    return ++loads == 1 && llvm::all_of(op->getOperands(), [&](Value operand) {
      unsigned none = 1;
      return isCheap(operand, none);
    });
  if (!isPure(op) || op->getNumRegions() != 0 ||
      (!tile::movesOneTile(op) && !isIndexArithmetic(op)))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isCheap(operand, loads); });
}

/// A locked instruction waits for its line, and what comes after it waits as well. So if a strip
/// has places outside the private copy, those some strips ahead are fetched. Additions to a copy
/// do not wait, but few of them are in flight at once, since each takes several instructions. So
/// the places of a copy that has grown are fetched as well.
void ThreadPrivateNest::emitPrefetch(IndexTuple index, bool ofCopy) {
  constexpr int64_t kLanesAhead = 48, kMinLanes = 4 * kLanesAhead;
  unsigned loads = 0;
  if (lanes < 2 || shape[laneDim] < kMinLanes || !isCheap(atomic.getPtr(), loads))
    return;
  Value toCopy;
  if (ofCopy) {
    OpBuilder &b = emitter.atEnd();
    Value few = arith::ConstantIntOp::create(b, loc, strips::kPrivateCopyBytes, 64);
    emitter.beginIf(
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, privateCopy.bytes, few));
    toCopy = arith::SubIOp::create(emitter.atEnd(), loc, privateCopy.memory, privateCopy.base);
  }
  Value position = emitter.getIndexValue(index[laneDim]);
  Value last = emitter.getIndexConstant(shape[laneDim] - lanes);
  Value distance = emitter.getIndexConstant(llvm::alignTo(kLanesAhead, lanes));
  OpBuilder &b = emitter.atEnd();
  Value ahead = arith::AddIOp::create(b, loc, position, distance);
  ahead = arith::MinUIOp::create(b, loc, ahead, last);
  index[laneDim] = {ahead, 0, lanes, emitter.getLevel()};
  Value addresses = emitter.broadcast(emitter.evaluate(atomic.getPtr(), index), lanes);
  OpBuilder &known = emitter.atEnd();
  if (toCopy) {
    toCopy = vector::BroadcastOp::create(known, loc, addresses.getType(), toCopy);
    addresses = arith::AddIOp::create(known, loc, addresses, toCopy);
  }
  auto ptr = LLVM::LLVMPointerType::get(atomic.getContext());
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value address = vector::ExtractOp::create(known, loc, addresses, lane);
    Value pointer = LLVM::IntToPtrOp::create(known, loc, ptr, address);
    LLVM::Prefetch::create(known, loc, pointer, /*rw=*/1, /*hint=*/3, /*cache=*/1);
  }
  if (ofCopy)
    emitter.endIf();
}

/// Asks for a larger copy if that has a place for any lane of a strip.
void ThreadPrivateNest::emitGrowth(Value offset) {
  OpBuilder &b = emitter.atEnd();
  Value most = arith::ConstantIntOp::create(b, loc, kGrownCopyBytes, 64);
  if (auto type = dyn_cast<VectorType>(offset.getType()))
    most = vector::BroadcastOp::create(b, loc, type, most);
  Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, offset, most);
  if (lanes > 1)
    fits = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, fits);
  emitter.beginIf(fits);
  OpBuilder &yes = emitter.atEnd();
  Value behind = arith::ConstantIntOp::create(yes, loc, kGrownCopyBytes + kGrowthOffset, 64);
  Value address = arith::AddIOp::create(yes, loc, privateCopy.memory, behind);
  auto ptr = LLVM::LLVMPointerType::get(atomic.getContext());
  Value one = arith::ConstantIntOp::create(yes, loc, 1, 64);
  LLVM::StoreOp::create(yes, loc, one, LLVM::IntToPtrOp::create(yes, loc, ptr, address));
  emitter.endIf();
}

/// Each element separately, in the private copy or outside.
void ThreadPrivateNest::emitElements(IndexTuple index) {
  SmallVector<Value> operands = beginElements(emitter, atomic, index, laneDim, lanes);
  OpBuilder &b = emitter.atEnd();
  Value offset = arith::SubIOp::create(b, loc, operands[0], privateCopy.base);
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, offset, privateCopy.bytes);
  Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
  Value outside = arith::XOrIOp::create(b, loc, inside, one);
  Value plain = inside;
  if (atomic.getMask())
    plain = arith::AndIOp::create(b, loc, inside, operands[2]);
  emitter.beginIf(plain);
  {
    OpBuilder &yes = emitter.atEnd();
    emitPlain(yes, offset, operands[1]);
  }
  emitter.endIf();
  emitter.beginIf(outside);
  buildScalarAccess(emitter.atEnd(), atomic, operands);
  emitter.endIf();
  emitter.endLoop();
}

void ThreadPrivateNest::emitStrip(IndexTuple index) {
  if (shape.size() == 1 && lanes > 1)
    options.fetchAhead.emit(emitter, group, emitter.getIndexValue(index[laneDim]), lanes);
  IndexTuple strip(index);
  strip[laneDim].lanes = lanes;
  Value address = emitter.broadcast(emitter.evaluate(atomic.getPtr(), strip), lanes);
  Lanes added = emitter.evaluate(atomic.getValue(), strip);
  Value mask;
  if (atomic.getMask())
    mask = emitter.broadcast(emitter.evaluate(atomic.getMask(), strip), lanes);
  OpBuilder &b = emitter.atEnd();
  auto spread = [&](Value scalar) -> Value {
    if (lanes == 1)
      return scalar;
    return vector::BroadcastOp::create(b, loc, VectorType::get(lanes, scalar.getType()), scalar);
  };
  Value offset = arith::SubIOp::create(b, loc, address, spread(privateCopy.base));
  // Masked-off lanes go behind the private copy.
  if (mask) {
    Value behind = arith::ConstantIntOp::create(b, loc, kGrownCopyBytes, 64);
    offset = arith::SelectOp::create(b, loc, mask, offset, spread(behind));
  }
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, offset, spread(privateCopy.bytes));
  if (mask) {
    Value all = arith::ConstantIntOp::create(b, loc, 1, 1);
    Value none = arith::XOrIOp::create(b, loc, mask, spread(all));
    inside = arith::OrIOp::create(b, loc, inside, none);
  }
  if (lanes > 1)
    inside = vector::ReductionOp::create(b, loc, vector::CombiningKind::AND, inside);
  Value one = arith::ConstantIntOp::create(b, loc, 1, 1);
  Value outside = arith::XOrIOp::create(b, loc, inside, one);
  emitter.beginIf(inside);
  emitPrefetch(index, /*ofCopy=*/true);
  {
    OpBuilder &yes = emitter.atEnd();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      auto laneOf = [&](Value value) -> Value {
        if (!isa<VectorType>(value.getType()))
          return value;
        return vector::ExtractOp::create(yes, loc, value, lane);
      };
      emitPlain(yes, laneOf(offset), laneOf(added.value));
    }
  }
  emitter.endIf();
  emitter.beginIf(outside);
  emitPrefetch(index, /*ofCopy=*/false);
  emitElements(index);
  emitGrowth(offset);
  emitter.endIf();
}

bool ThreadPrivateNest::run() {
  if (!hasPrivateCopy(atomic, options))
    return false;
  privateCopy = openPrivateCopy(emitter, atomic);
  laneDim = shape.size() - 1;
  while (laneDim > 0 && shape[laneDim] == 1)
    --laneDim;
  lanes = std::min<int64_t>(options.machine.vectorBits / 32, shape[laneDim] & -shape[laneDim]);
  IndexTuple index(shape.size());
  unsigned opened = 0;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    int64_t step = dim == laneDim ? lanes : 1;
    if (shape[dim] == step)
      continue;
    Value zero = emitter.getIndexConstant(0), end = emitter.getIndexConstant(shape[dim]);
    Value position = emitter.beginLoop(zero, end, step).getInductionVar();
    index[dim] = {position, 0, 1, emitter.getLevel()};
    ++opened;
  }
  emitStrip(index);
  while (opened-- > 0)
    emitter.endLoop();
  return true;
}

} // namespace

bool lowerAtomicInStrips(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access,
                         const StripOptions &options, int64_t &scratchEnd) {
  constexpr StringLiteral kEach = "a locked instruction for each element: ";
  std::string rows, remark;
  bool isLowered = true;
  if (ProgramPrivateNest(group, atomic, access, options).run(scratchEnd)) {
    remark = "summed up in the program's private memory, then added to the array";
  } else if (AtomicNest(group, atomic, access).run(options, rows)) {
    remark = rows;
  } else if (ThreadPrivateNest(group, atomic, access, options).run()) {
    remark = describePrivateCopy(kGrownCopyBytes) + kEach.str() + rows;
  } else {
    isLowered = false;
    if (atomic.getResult().use_empty())
      rows += "; ";
    else
      rows.clear();
    remark = (kEach + rows).str() + describeNoSums(atomic);
  }
  if (options.remarks)
    emitRemark(atomic.getLoc(), RemarkKind::Atomic) << "atomic: " << named("how", remark);
  return isLowered;
}

} // namespace tessera
