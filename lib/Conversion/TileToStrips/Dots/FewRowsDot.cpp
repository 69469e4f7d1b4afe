// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With few rows of a, a dot takes as long as reading b, its weights. If columns of b lie along k in
// memory, nothing is packed or transposed. Vectors of b and of a have the same elements of k then,
// so their products are added lane by lane. The lanes are added at the end.
//
//     for n:                             (some columns at once)
//       for k:
//         w = load 64 bytes of column n from memory, and decode them
//         for m: sums[m] += w * a[m, k]  (a dot instruction, or floats of 32 bits)
//       for m: acc[m, n] += the lanes of sums[m]
//
// A column is followed by the machine's prefetcher, which stops where it ends. So what the next
// iteration of a loop over k reads is fetched, too: it continues the column. Rows of a that lie a
// power of two apart would meet in few sets of the cache. So they are copied: the vectors that are
// multiplied together lie beside each other.

#include "FewRowsDot.h"

#include "DotLoops.h"
#include "Grouping/CostModel.h"
#include "Nests/StripEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Conversion/TileArith/TotalArith.h"

using namespace mlir;

namespace tessera {
namespace {

/// More rows are faster by packed weights.
constexpr int64_t kMaxRows = 16;
/// Columns that are read at once: a core follows so many rows of memory.
constexpr int64_t kMaxColumns = 4;
/// Vectors along k that adding up the lanes has to be worth.
constexpr int64_t kMinVectors = 4;

/// How the products of a dot are summed up.
struct Step {
  const DotInstruction *instruction; ///< null: multiply-adds of f32
  int64_t elements;                  ///< of k in a vector
};

int64_t getM(strips::DotOp dot) { return cast<MemRefType>(dot.getA().getType()).getDimSize(0); }
int64_t getK(strips::DotOp dot) { return cast<MemRefType>(dot.getA().getType()).getDimSize(1); }
int64_t getN(strips::DotOp dot) { return cast<MemRefType>(dot.getB().getType()).getDimSize(1); }
Type getElement(Value buffer) { return cast<MemRefType>(buffer.getType()).getElementType(); }

std::optional<Step> chooseStep(strips::DotOp dot, const HostMachine &machine, bool deterministic) {
  Type a = getElement(dot.getA()), b = getElement(dot.getB()), acc = getElement(dot.getAcc());
  int64_t words = machine.vectorBits / 32;
  auto has = [&](const DotInstruction *instruction) {
    return instruction && !instruction->getIntrinsic(machine.vectorBits).empty();
  };
  if (a.isInteger(8) && b.isInteger(8) && acc.isInteger(32) && has(machine.int8Dot))
    return Step{machine.int8Dot, words * machine.int8Dot->steps};
  if (deterministic || !acc.isF32())
    return std::nullopt;
  if (a.isBF16() && b.isBF16() && has(machine.bf16Dot))
    return Step{machine.bf16Dot, words * machine.bf16Dot->steps};
  auto isNarrow = [](Type type) { return type.isBF16() || type.isF16(); };
  if (isNarrow(a) && isNarrow(b))
    return Step{nullptr, words};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// True if a value is computed element by element from constants and one tile that is loaded or
/// read: that is `source` then.
bool isDecoded(Value value, Value &source, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 12;
  Operation *op = value.getDefiningOp();
  if (!op || depth > kMaxDepth)
    return false;
  if (isa<tile::LoadOp, strips::ReadOp>(op)) {
    if (source && source != value)
      return false;
    source = value;
    return true;
  }
  if (auto splat = dyn_cast<tile::SplatOp>(op))
    return !isa<tile::PointerType>(splat.getSource().getType());
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  bool isElementwise = op->hasTrait<OpTrait::Elementwise>() && isPure(op) &&
                       op->getNumRegions() == 0 && !isa<tile::AddPtrOp, tile::IntToPtrOp>(op);
  return isElementwise && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isDecoded(operand, source, depth + 1);
         });
}

/// True if nothing between two operations of one block may write what a group loads or reads.
/// Memory of a buffer may be that of others once it has been read.
bool isUnwrittenBetween(Operation *first, Operation *last, bool readsBuffer) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode()) {
    WalkResult result = op->walk([&](Operation *inner) {
      // Buffers are not the user's memory.
      bool isHarmless = isa<strips::ReadOp, tile::LoadOp>(inner) ||
                        (!readsBuffer && isa<strips::WriteOp, strips::DotOp>(inner)) ||
                        inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                        isMemoryEffectFree(inner);
      return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

/// Elements that are in memory as they are in registers.
bool isPlain(Type element) { return element.isInteger(8) || element.isBF16() || element.isF16(); }

class Finder {
public:
  Finder(const HostMachine &machine, bool deterministic)
      : machine(machine), deterministic(deterministic) {}

  std::optional<FewRowsDot> find(strips::DotOp dot);

private:
  strips::WriteOp findWrite(strips::DotOp dot);
  tile::LoadOp findLoad(Value source, strips::DotOp dot);
  bool liesAlongK(tile::LoadOp load);

  const HostMachine &machine;
  bool deterministic;
  AccessAnalysis access;
};

/// The write that a dot reads b from, if each write of this buffer is read by one dot alone.
strips::WriteOp Finder::findWrite(strips::DotOp dot) {
  if (!dot.getB().getDefiningOp<strips::ScratchOp>())
    return {};
  DenseMap<Operation *, strips::WriteOp> writers;
  unsigned dots = 0;
  for (OpOperand &use : dot.getB().getUses()) {
    if (auto write = dyn_cast<strips::WriteOp>(use.getOwner()))
      writers[write->getParentOp()] = write;
    else if (auto other = dyn_cast<strips::DotOp>(use.getOwner());
             other && other.getA() != dot.getB() && other.getAcc() != dot.getB())
      ++dots;
    else
      return {};
  }
  if (dots != writers.size())
    return {};
  for (Operation *op = dot->getPrevNode(); op; op = op->getPrevNode()) {
    if (strips::WriteOp write = writers.lookup(op))
      return write;
    bool reads =
        op->walk([&](strips::DotOp other) {
            return other.getB() == dot.getB() ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted();
    if (reads)
      return {};
  }
  return {};
}

std::optional<FewRowsDot> Finder::find(strips::DotOp dot) {
  std::optional<Step> step = chooseStep(dot, machine, deterministic);
  if (!step || getM(dot) > kMaxRows || getK(dot) % step->elements != 0 ||
      getK(dot) < kMinVectors * step->elements)
    return std::nullopt;
  auto aType = cast<MemRefType>(dot.getA().getType());
  if (!aType.getLayout().isIdentity() || !dot.getAcc().getDefiningOp<strips::ScratchOp>())
    return std::nullopt;
  strips::WriteOp write = findWrite(dot);
  if (!write)
    return std::nullopt;
  // Not an index map: the loops are for this one order.
  auto trans = write.getValue().getDefiningOp<tile::TransOp>();
  if (!trans || trans.getOrder() != ArrayRef<int32_t>{1, 0})
    return std::nullopt;
  auto group = cast<strips::GroupOp>(write->getParentOp());
  Value source;
  if (!isDecoded(trans.getSource(), source) || !source ||
      tile::getShape(source.getType()) != tile::getShape(trans.getSource().getType()))
    return std::nullopt;
  if (tile::LoadOp load = findLoad(source, dot))
    return FewRowsDot{dot, group, load, source, trans.getSource()};
  auto read = source.getDefiningOp<strips::ReadOp>();
  if (!read || !isUnwrittenBetween(group, dot, /*readsBuffer=*/true))
    return std::nullopt;
  auto type = cast<MemRefType>(read.getSource().getType());
  bool isSame = type.getLayout().isIdentity() && isPlain(type.getElementType()) &&
                type.getShape() == tile::getShape(source.getType()) &&
                type.getElementType() == getElementTypeOrSelf(source.getType());
  return isSame ? std::optional(FewRowsDot{dot, group, {}, source, trans.getSource()})
                : std::nullopt;
}

/// The load that a tile comes from, directly or by a buffer that is written once; null if the dot
/// cannot read the memory itself.
tile::LoadOp Finder::findLoad(Value source, strips::DotOp dot) {
  auto load = source.getDefiningOp<tile::LoadOp>();
  if (auto read = source.getDefiningOp<strips::ReadOp>()) {
    strips::WriteOp write;
    for (Operation *user : read.getSource().getUsers()) {
      if (isa<strips::ReadOp>(user))
        continue;
      if (write || !isa<strips::WriteOp>(user))
        return {};
      write = cast<strips::WriteOp>(user);
    }
    if (write)
      load = write.getValue().getDefiningOp<tile::LoadOp>();
  }
  if (!load || !liesAlongK(load) ||
      tile::getShape(load.getType()) != tile::getShape(source.getType()))
    return {};
  Operation *group = load->getParentOp();
  bool isBefore = group->getBlock() == dot->getBlock() && group->isBeforeInBlock(dot);
  return isBefore && isUnwrittenBetween(group, dot, /*readsBuffer=*/false) ? load : tile::LoadOp();
}

/// True if vectors along the second dimension of a tile can be loaded where it lies.
bool Finder::liesAlongK(tile::LoadOp load) {
  return isPlain(getElementTypeOrSelf(load.getType())) && !load.getMask() &&
         !load.getIsVolatile() && access.getRun(load.getPtr(), 1).isRow() &&
         access.getForm(load.getPtr()).isAffineAlong(0);
}

/// Erases the group that writes a buffer which nothing reads any more.
void eraseUnread(Value buffer) {
  SmallVector<Operation *> users(buffer.getUsers());
  if (users.size() != 1 || !isa<strips::WriteOp>(users[0]))
    return;
  auto group = users[0]->getParentOfType<strips::GroupOp>();
  bool isNeedless = group->getNumResults() == 0;
  for (Operation &op : group.getBody().front().without_terminator())
    isNeedless &= &op == users[0] || isa<tile::LoadOp>(op) || isPure(&op);
  if (isNeedless)
    group.erase();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

class FewRowsDotEmitter : DotLoops {
public:
  /// `first`: the address of the first column's first element; `stride`: bytes between columns.
  /// Null if b is in a buffer.
  FewRowsDotEmitter(FewRowsDot found, const HostMachine &machine, Value first, Value stride)
      : DotLoops(found.dot), found(found), first(first), stride(stride),
        step(*chooseStep(found.dot, machine, /*deterministic=*/false)), M(getM(dot)), K(getK(dot)),
        N(getN(dot)), sumLanes(machine.vectorBits / 32), acc(getElement(dot.getAcc())) {
    // Some registers are for vectors of a.
    int64_t free = machine.vectorRegisters - 4;
    columns =
        llvm::bit_floor<uint64_t>(std::clamp<int64_t>(free / (M + 1), 1, std::min(N, kMaxColumns)));
    // Half of the first-level cache holds rows of a; columns of b pass through.
    packedElement = step.instruction ? getElement(dot.getA()) : Type(b.getF32Type());
    int64_t rowBytes = M * packedElement.getIntOrFloatBitWidth() / 8;
    int64_t most = machine.l1.bytes / 2 / rowBytes / step.elements * step.elements;
    depth = std::min(K, std::max(kMinVectors * step.elements, most));
  }

  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    if (M > 1 || !step.instruction)
      packedA = reserve({depth * M}, packedElement, offset);
    forEachBlock(K, depth, [&](Value k, int64_t steps) {
      emitRows(k, steps);
      int64_t whole = N / columns * columns;
      forEach(0, whole, columns, [&](Value column) { emitColumns(k, steps, column, columns); });
      // Sums of a row stay in one vector where columns are a power of two.
      for (int64_t width = columns / 2; width > 0; width /= 2)
        if ((N - whole) & width) {
          emitColumns(k, steps, index(whole), width);
          whole += width;
        }
    });
    dot.erase();
    return offset - begin;
  }

private:
  VectorType getSumType() { return VectorType::get(sumLanes, acc); }
  /// A vector of a, `k` elements behind the block's first.
  Value loadA(int64_t row, Value firstK, Value k) {
    auto type = VectorType::get(step.elements, packedElement);
    if (packedA)
      return vector::LoadOp::create(b, loc, type, packedA, getPacked(row, k));
    return vector::LoadOp::create(b, loc, type, dot.getA(), ValueRange{index(row), add(firstK, k)});
  }
  Value getPacked(int64_t row, Value k) { return add(times(k, M), row * step.elements); }
  Value toI64(Value value) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), value); }
  Value splat(VectorType type, int64_t value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getIntegerAttr(type.getElementType(), value)));
  }
  Value makeZero() { return arith::ConstantOp::create(b, loc, b.getZeroAttr(getSumType())); }

  /// A loop over `steps` elements of k that carries sums.
  SmallVector<Value> sumUp(int64_t steps, ValueRange zeros,
                           llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto loop = scf::ForOp::create(b, loc, index(0), index(steps), index(step.elements), zeros,
                                   [&](OpBuilder &inner, Location, Value k, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(b);
                                     b.restoreInsertionPoint(inner.saveInsertionPoint());
                                     scf::YieldOp::create(b, loc, body(k, carried));
                                   });
    return llvm::to_vector_of<Value>(loop.getResults());
  }

  Value multiply(Value sum, Value x, Value y) {
    if (!step.instruction)
      return vector::FMAOp::create(b, loc, x, y, sum);
    return LLVM::CallIntrinsicOp::create(
               b, loc, sum.getType(),
               b.getStringAttr(step.instruction->getIntrinsic(sumLanes * 32)),
               ValueRange{sum, x, y})
        .getResult(0);
  }

  Value widen(Value value) {
    return buildFpToFp(b, loc, value, b.getF32Type(), tile::RoundingMode::NearestEven);
  }

  /// The sums of each vector's lanes, in vectors of sums. Two vectors become one at a time, half of
  /// whose lanes are of each: that takes a third of what adding up one by one takes.
  SmallVector<Value> addLanes(SmallVector<Value> vectors) {
    while (!llvm::isPowerOf2_64(vectors.size()))
      vectors.push_back(vectors.front());
    for (int64_t width = sumLanes; width > 1; width /= 2) {
      int64_t all = cast<VectorType>(vectors.front().getType()).getNumElements();
      bool isSingle = vectors.size() == 1;
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < (isSingle ? all : 2 * all); ++lane)
        (lane % width < width / 2 ? low : high).push_back(lane);
      SmallVector<Value> next;
      for (size_t i = 0; i < vectors.size(); i += 2) {
        Value x = vectors[i], y = vectors[isSingle ? i : i + 1];
        next.push_back(addSums(vector::ShuffleOp::create(b, loc, x, y, low),
                               vector::ShuffleOp::create(b, loc, x, y, high)));
      }
      vectors = std::move(next);
    }
    return vectors;
  }
  /// `count` sums from one on.
  Value getSums(ArrayRef<Value> sums, int64_t first, int64_t count) {
    int64_t lanes = cast<VectorType>(sums.front().getType()).getNumElements();
    Value from = sums[first / lanes];
    auto order = llvm::to_vector(llvm::seq(first % lanes, first % lanes + count));
    return vector::ShuffleOp::create(b, loc, from, from, order);
  }
  Value addSums(Value x, Value y) {
    if (acc.isInteger())
      return arith::AddIOp::create(b, loc, x, y);
    return arith::AddFOp::create(b, loc, x, y);
  }

  /// Copies rows of a. If the instruction's first operand is unsigned, 128 is added to b, so each
  /// sum is 128 times that of the row of a too large.
  void emitRows(Value firstK, int64_t steps) {
    bool isShifted = step.instruction && step.instruction->isLhsUnsigned;
    corrections.clear();
    if (!packedA && !isShifted)
      return;
    SmallVector<Value> zeros(isShifted ? M : 0, makeZero());
    SmallVector<Value> sums = sumUp(steps, zeros, [&](Value k, ValueRange carried) {
      auto bytes = VectorType::get(step.elements, b.getI8Type());
      auto type = VectorType::get(step.elements, getElement(dot.getA()));
      SmallVector<Value> next;
      for (int64_t row = 0; row < M; ++row) {
        Value ofA = vector::LoadOp::create(b, loc, type, dot.getA(),
                                           ValueRange{index(row), add(firstK, k)});
        if (packedA)
          vector::StoreOp::create(b, loc, step.instruction ? ofA : widen(ofA), packedA,
                                  getPacked(row, k));
        if (isShifted)
          next.push_back(multiply(carried[row], splat(bytes, 1), ofA));
      }
      return next;
    });
    if (sums.empty())
      return;
    sums = addLanes(sums);
    for (int64_t row = 0; row < M; ++row) {
      Value sum = vector::ExtractOp::create(b, loc, getSums(sums, row, 1), 0);
      Value factor = arith::ConstantIntOp::create(b, loc, -128, 32);
      corrections.push_back(arith::MulIOp::create(b, loc, sum, factor));
    }
  }

  /// A vector of b from loaded elements.
  Value decode(Value value, Value loaded, DenseMap<Value, Value> &known) {
    if (value == found.source)
      return loaded;
    if (Value kept = known.lookup(value))
      return kept;
    Operation *op = value.getDefiningOp();
    auto type = VectorType::get(step.elements, getElementTypeOrSelf(value.getType()));
    Value result;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto element = cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
      result = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, element));
    } else if (auto scalar = dyn_cast<tile::SplatOp>(op)) {
      result = vector::BroadcastOp::create(b, loc, type, scalar.getSource());
    } else {
      auto operands = llvm::map_to_vector(
          op->getOperands(), [&](Value operand) { return decode(operand, loaded, known); });
      if (isa<tile::BitcastOp>(op)) {
        result = operands[0].getType() == type
                     ? operands[0]
                     : arith::BitcastOp::create(b, loc, type, operands[0]).getResult();
      } else if (Value total = buildTotalArith(b, op, operands)) {
        result = total;
      } else {
        OperationState state(loc, op->getName());
        state.addOperands(operands);
        state.addTypes(type);
        state.addAttributes(op->getAttrs());
        result = b.create(state)->getResult(0);
      }
    }
    return known[value] = result;
  }

  /// `count` columns of the result, for `steps` elements of k.
  void emitColumns(Value firstK, int64_t steps, Value column, int64_t count) {
    auto ptr = LLVM::LLVMPointerType::get(b.getContext());
    auto loadedType = VectorType::get(step.elements, getElementTypeOrSelf(found.source.getType()));
    int64_t bytes = loadedType.getElementTypeBitWidth() / 8;
    auto getPointer = [&](Value at) -> Value {
      Value offset = arith::MulIOp::create(b, loc, toI64(at), stride);
      Value address = arith::AddIOp::create(b, loc, first, offset);
      return LLVM::IntToPtrOp::create(b, loc, ptr, address);
    };
    auto advance = [&](Value pointer, Value byte) {
      return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{byte});
    };
    // The next columns are fetched, or behind the last ones the first, further along k.
    SmallVector<Value> pointers, ahead;
    Value further;
    if (first) {
      Value next = add(column, count);
      Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, next, index(N));
      next = arith::SelectOp::create(b, loc, isLast, index(0), next);
      further = arith::ConstantIntOp::create(b, loc, steps * bytes, 64);
      Value none = arith::ConstantIntOp::create(b, loc, 0, 64);
      further = arith::SelectOp::create(b, loc, isLast, further, none);
      for (int64_t c = 0; c < count; ++c) {
        pointers.push_back(getPointer(add(column, c)));
        ahead.push_back(getPointer(add(next, c)));
      }
    }
    auto loadB = [&](int64_t c, Value k) -> Value {
      if (!first) {
        auto read = found.source.getDefiningOp<strips::ReadOp>();
        return vector::LoadOp::create(b, loc, loadedType, read.getSource(),
                                      ValueRange{add(column, c), k});
      }
      Value byte = toI64(times(k, bytes));
      Value byteAhead = arith::AddIOp::create(b, loc, byte, further);
      LLVM::Prefetch::create(b, loc, advance(ahead[c], byteAhead), /*rw=*/0, /*hint=*/3,
                             /*cache=*/1);
      return LLVM::LoadOp::create(b, loc, loadedType, advance(pointers[c], byte), bytes);
    };
    SmallVector<Value> zeros(M * count, makeZero());
    SmallVector<Value> sums = sumUp(steps, zeros, [&](Value k, ValueRange carried) {
      SmallVector<Value> results(carried), ofB;
      for (int64_t c = 0; c < count; ++c) {
        DenseMap<Value, Value> known;
        Value weights = decode(found.decoded, loadB(c, add(firstK, k)), known);
        // Flipping the sign bit of a byte adds 128 to it.
        if (!corrections.empty())
          weights = arith::XOrIOp::create(b, loc, weights,
                                          splat(cast<VectorType>(weights.getType()), -128));
        ofB.push_back(step.instruction ? weights : widen(weights));
      }
      for (int64_t row = 0; row < M; ++row) {
        Value ofA = loadA(row, firstK, k);
        for (int64_t c = 0; c < count; ++c)
          results[row * count + c] = multiply(results[row * count + c], ofB[c], ofA);
      }
      return results;
    });
    sums = addLanes(sums);
    auto type = VectorType::get(count, acc);
    for (int64_t row = 0; row < M; ++row) {
      Value sum = getSums(sums, row * count, count);
      if (!corrections.empty())
        sum = addSums(sum, vector::BroadcastOp::create(b, loc, type, corrections[row]));
      SmallVector<Value> at{index(row), column};
      Value old = vector::LoadOp::create(b, loc, type, dot.getAcc(), at);
      vector::StoreOp::create(b, loc, addSums(old, sum), dot.getAcc(), at);
    }
  }

  FewRowsDot found;
  Value first, stride;
  Step step;
  int64_t M, K, N, sumLanes;
  Type acc, packedElement;
  int64_t columns, depth; ///< columns at once; elements of k for which rows of a are copied
  Value packedA;          ///< null if a single row is read in place
  SmallVector<Value> corrections;
};

} // namespace

llvm::MapVector<strips::GroupOp, SmallVector<FewRowsDot>>
findFewRowsDots(Operation *func, const HostMachine &machine, bool deterministic) {
  llvm::MapVector<strips::GroupOp, SmallVector<FewRowsDot>> groups;
  Finder finder(machine, deterministic);
  func->walk([&](strips::DotOp dot) {
    if (std::optional<FewRowsDot> found = finder.find(dot))
      groups[found->group].push_back(*found);
  });
  // A group does nothing but write for these dots.
  groups.remove_if([](auto &entry) {
    strips::GroupOp group = entry.first;
    size_t writes = 0;
    bool onlyWrites = group->getNumResults() == 0;
    for (Operation &op : group.getBody().front().without_terminator()) {
      writes += isa<strips::WriteOp>(op);
      onlyWrites &= isa<strips::WriteOp, strips::ReadOp, tile::LoadOp>(op) ||
                    (isPure(&op) && isa<RankedTensorType>(op.getResult(0).getType()));
    }
    return !onlyWrites || writes != entry.second.size();
  });
  return groups;
}

int64_t emitFewRowsDots(strips::GroupOp group, ArrayRef<FewRowsDot> dots,
                        const HostMachine &machine, int64_t scratchOffset) {
  AccessAnalysis access;
  SmallVector<Value> buffers;
  int64_t most = 0;
  StripEmitter emitter(group, access);
  for (FewRowsDot found : dots) {
    Value first, stride;
    if (auto read = found.source.getDefiningOp<strips::ReadOp>())
      buffers.push_back(read.getSource());
    if (found.load) {
      auto getAddress = [&](int64_t column) {
        IndexTuple at(2);
        at[0].offset = column;
        return emitter.evaluate(found.load.getPtr(), at).value;
      };
      first = getAddress(0);
      Value second = getAddress(1);
      stride = arith::SubIOp::create(emitter.atEnd(), group.getLoc(), second, first);
    }
    FewRowsDotEmitter dotEmitter(found, machine, first, stride);
    most = std::max(most, dotEmitter.emit(scratchOffset));
  }
  group.erase();
  for (Value buffer : buffers)
    eraseUnread(buffer);
  return most;
}

} // namespace tessera
