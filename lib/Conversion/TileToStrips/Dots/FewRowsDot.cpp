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
// multiplied together lie beside each other. With more rows, AMX's tile registers are faster
// (FewRowsTiles.cpp).

#include "FewRowsDot.h"

#include "DotLoops.h"
#include "DotOperands.h"
#include "FewRowsTiles.h"
#include "Grouping/CostModel.h"
#include "KeptRows.h"
#include "Nests/StripEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Conversion/TileArith/TotalArith.h"

#include <deque>

using namespace mlir;

namespace tessera {
namespace {

/// More rows are faster by packed weights.
constexpr int64_t kMaxRows = 16;
/// Columns that are read at once: a core follows so many rows of memory.
constexpr int64_t kMaxColumns = 4;
/// Lines of memory between what is read and what is fetched.
constexpr int64_t kPrefetchLines = 64;
/// Vectors along k that adding up the lanes has to be worth.
constexpr int64_t kMinVectors = 4;

/// How the products of a dot are summed up.
struct Step {
  const DotInstruction *instruction; ///< null: multiply-adds of f32
  int64_t elements;                  ///< of k in a vector
};

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
  if (a.isBF16() && b.isBF16())
    return has(machine.bf16Dot) ? Step{machine.bf16Dot, words * machine.bf16Dot->steps}
                                : Step{nullptr, 2 * words};
  auto isNarrow = [](Type type) { return type.isBF16() || type.isF16(); };
  if (isNarrow(a) && isNarrow(b))
    return Step{nullptr, words};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// Elements that are in memory as they are in registers.
bool isPlain(Type element) { return element.isInteger(8) || element.isBF16() || element.isF16(); }

class FewRowsFinder {
public:
  FewRowsFinder(const HostMachine &machine, bool deterministic)
      : machine(machine), deterministic(deterministic) {}

  std::optional<FewRowsDot> find(strips::DotOp dot);

private:
  tile::LoadOp findLoad(Value source, strips::DotOp dot);
  bool liesAlongK(tile::LoadOp load);

  const HostMachine &machine;
  bool deterministic;
  AccessAnalysis access;
};

std::optional<FewRowsDot> FewRowsFinder::find(strips::DotOp dot) {
  std::optional<Step> step = chooseStep(dot, machine, deterministic);
  if (!step || getRows(dot) > kMaxRows || getK(dot) % step->elements != 0 ||
      getK(dot) < kMinVectors * step->elements)
    return std::nullopt;
  auto aType = cast<MemRefType>(dot.getA().getType());
  if (!aType.getLayout().isIdentity() || !dot.getAcc().getDefiningOp<strips::ScratchOp>())
    return std::nullopt;
  strips::WriteOp write = findWriteOfB(dot);
  if (!write)
    return std::nullopt;
  // Not an index map: the loops are for this one order.
  auto trans = write.getValue().getDefiningOp<tile::TransOp>();
  if (!trans || trans.getOrder() != ArrayRef<int32_t>{1, 0})
    return std::nullopt;
  auto group = cast<strips::GroupOp>(write->getParentOp());
  Value source;
  if (!isDecoded(trans.getSource(), isTileInMemory, source) || !source ||
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
tile::LoadOp FewRowsFinder::findLoad(Value source, strips::DotOp dot) {
  tile::LoadOp load = findLoadOf(source);
  if (!load || !liesAlongK(load) ||
      tile::getShape(load.getType()) != tile::getShape(source.getType()))
    return {};
  Operation *group = load->getParentOp();
  bool isBefore = group->getBlock() == dot->getBlock() && group->isBeforeInBlock(dot);
  return isBefore && isUnwrittenBetween(group, dot, /*readsBuffer=*/false) ? load : tile::LoadOp();
}

/// True if vectors along the second dimension of a tile can be loaded where it lies.
bool FewRowsFinder::liesAlongK(tile::LoadOp load) {
  return isPlain(getElementTypeOrSelf(load.getType())) && !load.getMask() &&
         !load.getIsVolatile() && access.getRun(load.getPtr(), 1).isRow() &&
         access.getForm(load.getPtr()).isAffineAlong(0);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// Weights that are `unsignedWeights - offset`. If products take unsigned weights, the offset times
/// the sum of the row of a is subtracted at the end.
struct ShiftedWeights {
  Value unsignedWeights; ///< null: those that are found, whose sign bit is flipped
  int64_t offset = 128;
};

/// Weights of a few bits are often masked, and then shifted to both sides of 0.
ShiftedWeights findShift(Value decoded) {
  auto getSplat = [](Value value) -> std::optional<int64_t> {
    DenseIntElementsAttr elements;
    if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
      return std::nullopt;
    return elements.getSplatValue<APInt>().getSExtValue();
  };
  auto isMasked = [&](Value value, int64_t &most) {
    auto mask = value.getDefiningOp<arith::AndIOp>();
    std::optional<int64_t> bits = mask ? getSplat(mask.getRhs()) : std::nullopt;
    most = bits.value_or(-1);
    return most >= 0;
  };
  int64_t most = 0;
  if (isMasked(decoded, most))
    return {decoded, 0};
  Operation *op = decoded.getDefiningOp();
  if (!isa_and_present<arith::SubIOp, arith::AddIOp>(op) || !isMasked(op->getOperand(0), most))
    return {};
  std::optional<int64_t> constant = getSplat(op->getOperand(1));
  if (!constant)
    return {};
  int64_t offset = isa<arith::SubIOp>(op) ? *constant : -*constant;
  // The shift must not wrap around.
  bool isExact = llvm::isInt<8>(-offset) && llvm::isInt<8>(most - offset);
  return isExact ? ShiftedWeights{op->getOperand(0), offset} : ShiftedWeights{};
}

/// The extents of a dot, and what its loops are made of.
struct Extents {
  Extents(strips::DotOp dot, const HostMachine &machine, size_t parts)
      : step(*chooseStep(dot, machine, /*deterministic=*/false)), M(getRows(dot)), K(getK(dot)),
        N(getN(dot)), lanes(machine.vectorBits / 32), acc(getElement(dot.getAcc())),
        locality(machine.fetchesIntoL1 ? 3 : 2) {
    packedElement =
        step.instruction ? getElement(dot.getA()) : Type(Float32Type::get(dot.getContext()));
    // Some registers are for vectors of a and constants.
    int64_t free = machine.vectorRegisters - 4;
    columns = llvm::bit_floor<uint64_t>(
        std::clamp<int64_t>(free / (M + int64_t(parts)), 1, std::min(N, kMaxColumns)));
    // Half of the first-level cache holds rows of a; columns of b pass through.
    int64_t rowBytes = M * parts * packedElement.getIntOrFloatBitWidth() / 8;
    int64_t most = machine.l1.bytes / 2 / rowBytes / step.elements * step.elements;
    depth = std::min(K, std::max(kMinVectors * step.elements, most));
  }
  bool isShifted() const { return step.instruction && step.instruction->isLhsUnsigned; }
  VectorType getSumType() const { return VectorType::get(lanes, acc); }

  Step step;
  int64_t M, K, N, lanes;
  Type acc, packedElement;
  int64_t columns, depth; ///< columns at once; elements of k for which rows of a are copied
  uint32_t locality;      ///< of prefetches, as LLVM counts: 3 is the first-level cache
};

/// Vectors of sums, whose lanes are added at the end.
class LaneAdder : protected DotLoops {
protected:
  LaneAdder(strips::DotOp dot, const Extents &extents) : DotLoops(dot), extents(extents) {}

  Value makeZero() {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(extents.getSumType()));
  }
  Value splat(VectorType type, int64_t value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getIntegerAttr(type.getElementType(), value)));
  }
  Value addSums(Value x, Value y) {
    if (extents.acc.isInteger())
      return arith::AddIOp::create(b, loc, x, y);
    return arith::AddFOp::create(b, loc, x, y);
  }
  SmallVector<Value> addLanes(SmallVector<Value> vectors);
  Value getSums(ArrayRef<Value> sums, int64_t first, int64_t count);
  void addToResult(Value column, int64_t count, ArrayRef<Value> sums, ArrayRef<Value> corrections);
  SmallVector<Value> extractSums(SmallVector<Value> vectors);
  /// Blocks of columns. Sums of a row stay in one vector where columns are a power of two.
  void forEachColumns(llvm::function_ref<void(Value column, int64_t count)> body) {
    int64_t whole = extents.N / extents.columns * extents.columns;
    forEach(0, whole, extents.columns, [&](Value column) { body(column, extents.columns); });
    for (int64_t width = extents.columns / 2; width > 0; width /= 2)
      if ((extents.N - whole) & width) {
        body(index(whole), width);
        whole += width;
      }
  }

  const Extents &extents;
};

/// The sums of each vector's lanes, in vectors of sums. Two vectors become one at a time, half of
/// whose lanes are of each: that takes a third of what adding up one by one takes.
SmallVector<Value> LaneAdder::addLanes(SmallVector<Value> vectors) {
  while (!llvm::isPowerOf2_64(vectors.size()))
    vectors.push_back(vectors.front());
  for (int64_t width = extents.lanes; width > 1; width /= 2) {
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
Value LaneAdder::getSums(ArrayRef<Value> sums, int64_t first, int64_t count) {
  int64_t lanes = cast<VectorType>(sums.front().getType()).getNumElements();
  Value from = sums[first / lanes];
  auto order = llvm::to_vector(llvm::seq(first % lanes, first % lanes + count));
  return vector::ShuffleOp::create(b, loc, from, from, order);
}

/// The sum of each vector's lanes, as a scalar.
SmallVector<Value> LaneAdder::extractSums(SmallVector<Value> vectors) {
  SmallVector<Value> results;
  size_t count = vectors.size();
  if (count == 0)
    return results;
  SmallVector<Value> sums = addLanes(std::move(vectors));
  for (size_t i = 0; i < count; ++i)
    results.push_back(vector::ExtractOp::create(b, loc, getSums(sums, i, 1), 0));
  return results;
}

/// Adds `count` columns of sums, by rows, and each row's correction.
void LaneAdder::addToResult(Value column, int64_t count, ArrayRef<Value> vectors,
                            ArrayRef<Value> corrections) {
  SmallVector<Value> sums = addLanes(llvm::to_vector(vectors));
  auto type = VectorType::get(count, extents.acc);
  for (int64_t row = 0; row < extents.M; ++row) {
    Value sum = getSums(sums, row * count, count);
    if (!corrections.empty())
      sum = addSums(sum, vector::BroadcastOp::create(b, loc, type, corrections[row]));
    SmallVector<Value> at{index(row), column};
    Value old = vector::LoadOp::create(b, loc, type, dot.getAcc(), at);
    vector::StoreOp::create(b, loc, addSums(old, sum), dot.getAcc(), at);
  }
}

/// Vectors of sums that outlive an iteration of the loop around a dot. So their lanes are added
/// once, behind the loop.
struct LaneSums {
  Value sums;        ///< a vector for each column's rows, column by column
  Value corrections; ///< a vector for each row; null if there are none
};

/// Sets such sums to 0 before the loop, and adds them to the result behind it.
class LaneSumsEmitter : LaneAdder {
public:
  LaneSumsEmitter(strips::DotOp dot, const Extents &extents) : LaneAdder(dot, extents) {}

  LaneSums emit(scf::ForOp loop, int64_t &offset) {
    b.setInsertionPoint(loop);
    int64_t row = extents.lanes, column = extents.M * row;
    LaneSums result{reserve({extents.N * column}, extents.acc, offset), {}};
    if (extents.isShifted())
      result.corrections = reserve({column}, extents.acc, offset);
    for (Value buffer : {result.sums, result.corrections})
      if (buffer)
        forEach(0, cast<MemRefType>(buffer.getType()).getNumElements(), extents.lanes,
                [&](Value at) { vector::StoreOp::create(b, loc, makeZero(), buffer, at); });
    b.setInsertionPointAfter(loop);
    auto load = [&](Value buffer, Value at) {
      return vector::LoadOp::create(b, loc, extents.getSumType(), buffer, at);
    };
    SmallVector<Value> corrections;
    if (result.corrections)
      for (int64_t m = 0; m < extents.M; ++m)
        corrections.push_back(load(result.corrections, index(m * row)));
    corrections = extractSums(std::move(corrections));
    forEachColumns([&](Value first, int64_t count) {
      SmallVector<Value> sums;
      for (int64_t m = 0; m < extents.M; ++m)
        for (int64_t c = 0; c < count; ++c)
          sums.push_back(load(result.sums, add(times(add(first, c), column), m * row)));
      addToResult(first, count, sums, corrections);
    });
    return result;
  }
};

/// Writes the loops of dots that add to the same sums, and whose weights are decoded from the same
/// elements.
class FewRowsDotEmitter : LaneAdder {
public:
  /// `first`: the address of the first column's first element; `stride`: bytes between columns.
  /// Null if b is in a buffer. `kept`: null if the dots' sums do not outlive them.
  FewRowsDotEmitter(ArrayRef<FewRowsDot> dots, const Extents &extents, Value first, Value stride,
                    const LaneSums *kept)
      : LaneAdder(dots.back().dot, extents), step(extents.step), M(extents.M), kept(kept),
        source(dots.front().source), first(first), stride(stride) {
    for (const FewRowsDot &found : dots) {
      ShiftedWeights shift;
      if (extents.isShifted())
        shift = findShift(found.decoded);
      parts.push_back({found, shift, {}, {}});
    }
  }

  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    b.setInsertionPoint(parts.front().found.dot);
    bool isOnce = parts.size() > 1 || parts.front().found.kept;
    if (M > 1 || !step.instruction || parts.size() > 1)
      for (Part &part : parts)
        if (!part.found.kept)
          part.packedA = reserve({extents.depth * M}, extents.packedElement, offset);
    // Memory of a may be that of another buffer once its dot is past.
    if (isOnce)
      for (Part &part : parts) {
        b.setInsertionPoint(part.found.dot);
        emitAllRows(part);
      }
    b.setInsertionPoint(dot);
    forEachBlock(extents.K, extents.depth, [&](Value k, int64_t steps) {
      if (!isOnce)
        addCorrections(parts.front(), emitRows(parts.front(), k, steps));
      forEachColumns([&](Value column, int64_t count) { emitColumns(k, steps, column, count); });
    });
    for (Part &part : parts)
      part.found.dot.erase();
    return offset - begin;
  }

private:
  /// One dot.
  struct Part {
    FewRowsDot found;
    ShiftedWeights shift;
    Value packedA; ///< null if a single row is read in place
    SmallVector<Value> corrections;
  };
  /// Vectors that a vector of weights is widened to.
  int64_t getHalves() const {
    return step.elements / (step.instruction ? step.elements : extents.lanes);
  }

  bool isShifted(const Part &part) const { return extents.isShifted() && part.shift.offset != 0; }
  Value getPacked(int64_t row, Value k) { return add(times(k, M), row * step.elements); }
  Value toI64(Value value) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), value); }

  /// Vectors of a, `k` elements behind the block's first.
  SmallVector<Value> loadA(Part &part, int64_t row, Value firstK, Value k) {
    int64_t halves = getHalves(), width = step.elements / halves;
    auto type = VectorType::get(width, extents.packedElement);
    if (!part.packedA)
      return {vector::LoadOp::create(b, loc, type, part.found.dot.getA(),
                                     ValueRange{index(row), add(firstK, k)})};
    SmallVector<Value> results;
    for (int64_t half = 0; half < halves; ++half)
      results.push_back(
          vector::LoadOp::create(b, loc, type, part.packedA, add(getPacked(row, k), half * width)));
    return results;
  }

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
               b.getStringAttr(step.instruction->getIntrinsic(extents.lanes * 32)),
               ValueRange{sum, x, y})
        .getResult(0);
  }

  SmallVector<Value> widen(Value value);
  void emitAllRows(Part &part);
  SmallVector<Value> emitRows(Part &part, Value firstK, int64_t steps);
  void addCorrections(Part &part, SmallVector<Value> sums);
  SmallVector<Value> decodeWeights(const Part &part, Value loaded, DenseMap<Value, Value> &known);
  void emitColumns(Value firstK, int64_t steps, Value column, int64_t count);

  const Step &step;
  int64_t M;
  const LaneSums *kept;
  Value source, first, stride;
  SmallVector<Part, 2> parts;
};

/// Elements in the type of the products. Those of bf16 are the upper halves of f32: even ones come
/// first, then odd ones, for a and b alike.
SmallVector<Value> FewRowsDotEmitter::widen(Value value) {
  if (step.instruction)
    return {value};
  if (getHalves() == 1)
    return {buildFpToFp(b, loc, value, b.getF32Type(), tile::RoundingMode::NearestEven)};
  auto words = VectorType::get(extents.lanes, b.getI32Type());
  Value pairs = vector::BitCastOp::create(b, loc, words, value);
  auto toFloats = [&](Value bits) -> Value {
    return arith::BitcastOp::create(b, loc, VectorType::get(extents.lanes, b.getF32Type()), bits);
  };
  Value even = arith::ShLIOp::create(b, loc, pairs, splat(words, 16));
  Value odd = arith::AndIOp::create(b, loc, pairs, splat(words, int32_t(0xFFFF0000)));
  return {toFloats(even), toFloats(odd)};
}

/// All rows of a, or those that another program has packed.
void FewRowsDotEmitter::emitAllRows(Part &part) {
  KeptRows *keptRows = part.found.kept;
  if (!keptRows) {
    addCorrections(part, emitRows(part, index(0), extents.K));
    return;
  }
  auto getPlace = [&](int64_t row) { return index(row * extents.lanes); };
  Value slot = keptRows->emit(b, [&](Value slot) {
    part.packedA = keptRows->getRows(b, slot);
    SmallVector<Value> sums = emitRows(part, index(0), extents.K);
    for (auto [row, sum] : llvm::enumerate(sums))
      vector::StoreOp::create(b, loc, sum, keptRows->getSums(b, slot), getPlace(row));
  });
  part.packedA = keptRows->getRows(b, slot);
  SmallVector<Value> sums;
  for (int64_t row = 0; row < (isShifted(part) ? M : 0); ++row)
    sums.push_back(vector::LoadOp::create(b, loc, extents.getSumType(), keptRows->getSums(b, slot),
                                          getPlace(row)));
  addCorrections(part, std::move(sums));
}

/// Copies rows of a. If the instruction's first operand is unsigned, an offset is added to b, so
/// each sum is too large by its product with the sum of the row of a. Returns the lanes of these.
SmallVector<Value> FewRowsDotEmitter::emitRows(Part &part, Value firstK, int64_t steps) {
  if (!part.packedA && !isShifted(part))
    return {};
  strips::DotOp partDot = part.found.dot;
  SmallVector<Value> zeros(isShifted(part) ? M : 0, makeZero());
  return sumUp(steps, zeros, [&](Value k, ValueRange carried) {
    auto bytes = VectorType::get(step.elements, b.getI8Type());
    auto type = VectorType::get(step.elements, getElement(partDot.getA()));
    SmallVector<Value> next;
    for (int64_t row = 0; row < M; ++row) {
      Value ofA = vector::LoadOp::create(b, loc, type, partDot.getA(),
                                         ValueRange{index(row), add(firstK, k)});
      if (part.packedA) {
        int64_t width = step.elements / getHalves();
        for (auto [half, vector] : llvm::enumerate(widen(ofA)))
          vector::StoreOp::create(b, loc, vector, part.packedA,
                                  add(getPacked(row, k), half * width));
      }
      if (isShifted(part))
        next.push_back(multiply(carried[row], splat(bytes, 1), ofA));
    }
    return next;
  });
}

/// Takes off what the offset of b adds.
void FewRowsDotEmitter::addCorrections(Part &part, SmallVector<Value> sums) {
  part.corrections.clear();
  if (sums.empty())
    return;
  Value factor = splat(extents.getSumType(), -part.shift.offset);
  for (auto [row, sum] : llvm::enumerate(sums)) {
    sum = arith::MulIOp::create(b, loc, sum, factor);
    if (!kept)
      continue;
    Value at = index(row * extents.lanes);
    Value old = vector::LoadOp::create(b, loc, extents.getSumType(), kept->corrections, at);
    vector::StoreOp::create(b, loc, addSums(old, sum), kept->corrections, at);
  }
  if (!kept)
    part.corrections = extractSums(std::move(sums));
}

/// Vectors of weights as the products take them.
SmallVector<Value> FewRowsDotEmitter::decodeWeights(const Part &part, Value loaded,
                                                    DenseMap<Value, Value> &known) {
  known[part.found.source] = loaded;
  if (part.shift.unsignedWeights)
    return {decodeVector(b, loc, part.shift.unsignedWeights, step.elements, known)};
  Value weights = decodeVector(b, loc, part.found.decoded, step.elements, known);
  // Flipping the sign bit of a byte adds 128 to it.
  if (extents.isShifted())
    weights =
        arith::XOrIOp::create(b, loc, weights, splat(cast<VectorType>(weights.getType()), -128));
  return widen(weights);
}

/// `count` columns of the result, for `steps` elements of k.
void FewRowsDotEmitter::emitColumns(Value firstK, int64_t steps, Value column, int64_t count) {
  auto ptr = LLVM::LLVMPointerType::get(b.getContext());
  auto loadedType = VectorType::get(step.elements, getElementTypeOrSelf(source.getType()));
  int64_t bytes = loadedType.getElementTypeBitWidth() / 8;
  auto getPointer = [&](Value at) -> Value {
    Value offset = arith::MulIOp::create(b, loc, toI64(at), stride);
    Value address = arith::AddIOp::create(b, loc, first, offset);
    return LLVM::IntToPtrOp::create(b, loc, ptr, address);
  };
  auto advance = [&](Value pointer, Value byte) {
    return LLVM::GEPOp::create(b, loc, ptr, b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{byte});
  };
  // Later columns are fetched, or behind the last ones the first, further along k.
  SmallVector<Value> pointers, ahead;
  Value further;
  if (first) {
    int64_t lines = llvm::divideCeil(steps * bytes, HostMachine::kLineBytes);
    int64_t distance = llvm::divideCeil(kPrefetchLines, count * lines) * count;
    distance = std::min(distance, std::max(count, extents.N / count * count));
    Value next = add(column, distance);
    Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, next, index(extents.N));
    Value wrapped = arith::SubIOp::create(b, loc, next, index(extents.N));
    next = arith::SelectOp::create(b, loc, isLast, wrapped, next);
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
      auto read = source.getDefiningOp<strips::ReadOp>();
      return vector::LoadOp::create(b, loc, loadedType, read.getSource(),
                                    ValueRange{add(column, c), k});
    }
    Value byte = toI64(times(k, bytes));
    Value byteAhead = arith::AddIOp::create(b, loc, byte, further);
    LLVM::Prefetch::create(b, loc, advance(ahead[c], byteAhead), /*rw=*/0, extents.locality,
                           /*cache=*/1);
    return LLVM::LoadOp::create(b, loc, loadedType, advance(pointers[c], byte), bytes);
  };
  auto getKept = [&](int64_t row, int64_t c) {
    return add(times(add(column, c), M * extents.lanes), row * extents.lanes);
  };
  SmallVector<Value> sums;
  for (int64_t row = 0; row < M; ++row)
    for (int64_t c = 0; c < count; ++c)
      sums.push_back(kept ? Value(vector::LoadOp::create(b, loc, extents.getSumType(), kept->sums,
                                                         getKept(row, c)))
                          : makeZero());
  sums = sumUp(steps, sums, [&](Value k, ValueRange carried) {
    SmallVector<Value> results(carried), loaded;
    SmallVector<DenseMap<Value, Value>> known(count);
    for (int64_t c = 0; c < count; ++c)
      loaded.push_back(loadB(c, add(firstK, k)));
    for (Part &part : parts) {
      SmallVector<SmallVector<Value>> ofB;
      for (int64_t c = 0; c < count; ++c)
        ofB.push_back(decodeWeights(part, loaded[c], known[c]));
      for (int64_t row = 0; row < M; ++row)
        for (auto [half, ofA] : llvm::enumerate(loadA(part, row, firstK, k)))
          for (int64_t c = 0; c < count; ++c)
            results[row * count + c] = multiply(results[row * count + c], ofB[c][half], ofA);
    }
    return results;
  });
  if (!kept) {
    addToResult(column, count, sums, parts.front().corrections);
    return;
  }
  for (int64_t row = 0; row < M; ++row)
    for (int64_t c = 0; c < count; ++c)
      vector::StoreOp::create(b, loc, sums[row * count + c], kept->sums, getKept(row, c));
}

/// The form of rows that are packed once a dot, one of so many on parts of the same weights.
std::optional<PackedRows> getForm(const FewRowsDot &found, size_t parts,
                                  const HostMachine &machine) {
  if (findFewRowsTiles(found, machine))
    return getPackedRows(found.dot);
  Extents extents(found.dot, machine, parts);
  // A single row is read in place, and more of them may be packed a part at a time.
  if (extents.M == 1 || extents.depth < extents.K)
    return std::nullopt;
  return PackedRows{extents.M * extents.K, extents.packedElement,
                    extents.isShifted() ? extents.M * extents.lanes : 0};
}

/// True if a dot adds to its sums in each iteration of a loop, and only such dots use them there.
scf::ForOp findLoopOfSums(strips::DotOp dot, const SetVector<Operation *> &fewRows) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  for (Operation *user : dot.getAcc().getUsers()) {
    if (!loop || !loop->isProperAncestor(user))
      continue;
    auto other = dyn_cast<strips::DotOp>(user);
    if (!other || !fewRows.contains(other) || other->getParentOp() != loop.getOperation() ||
        other.getA() == dot.getAcc() || getElement(other.getA()) != getElement(dot.getA()))
      return {};
  }
  return loop;
}

} // namespace

FewRowsDots findFewRowsDots(Operation *func, const HostMachine &machine, bool deterministic) {
  FewRowsDots groups;
  FewRowsFinder finder(machine, deterministic);
  func->walk([&](strips::DotOp dot) {
    if (std::optional<FewRowsDot> found = finder.find(dot))
      groups[found->group].push_back(*found);
  });
  groups.remove_if([](auto &entry) { return !writesOnlyFor(entry.first, entry.second.size()); });
  return groups;
}

void emitFewRowsDots(const FewRowsDots &groups, const HostMachine &machine,
                     llvm::function_ref<ScratchRange &(Operation *)> getScratch,
                     llvm::function_ref<void(const FewRowsDot &)> remark) {
  SetVector<Operation *> all, tiled;
  SmallVector<FewRowsDot> tiledDots;
  for (const auto &[group, dots] : groups)
    for (const FewRowsDot &found : dots) {
      bool isTiled = findFewRowsTiles(found, machine);
      (isTiled ? tiled : all).insert(found.dot);
      if (isTiled)
        tiledDots.push_back(found);
    }
  DenseMap<std::pair<Value, Operation *>, Value> tileSums;
  for (FewRowsDot found : tiledDots) {
    scf::ForOp loop = findLoopOfSums(found.dot, tiled);
    Value &sums = tileSums[{found.dot.getAcc(), found.dot->getParentOp()}];
    if (loop && !sums)
      sums = emitTileSums(found, loop, getScratch(found.dot).begin);
  }
  DenseMap<std::pair<Value, Operation *>, LaneSums> kept;
  auto findKept = [&](strips::DotOp dot) -> const LaneSums * {
    auto found = kept.find({dot.getAcc(), dot->getParentOp()});
    return found == kept.end() ? nullptr : &found->second;
  };
  for (Operation *op : all) {
    auto dot = cast<strips::DotOp>(op);
    scf::ForOp loop = findLoopOfSums(dot, all);
    Extents extents(dot, machine, /*parts=*/1);
    int64_t bytes = extents.M * extents.N * machine.vectorBits / 8;
    if (!loop || findKept(dot) || bytes > machine.l1.bytes / 2)
      continue;
    kept[{dot.getAcc(), loop}] = LaneSumsEmitter(dot, extents).emit(loop, getScratch(dot).begin);
  }

  // Dots that add to the same kept sums, and decode the same loaded elements, share one loop.
  SmallVector<SmallVector<FewRowsDot>> chains;
  auto canJoin = [&](const SmallVector<FewRowsDot> &chain, const FewRowsDot &found) {
    strips::DotOp last = chain.back().dot, dot = found.dot;
    if (!found.load || chain.back().load != found.load || last.getAcc() != dot.getAcc() ||
        last->getBlock() != dot->getBlock() || !last->isBeforeInBlock(dot) ||
        getK(last) != getK(dot) || tiled.contains(last) != tiled.contains(dot))
      return false;
    auto isDecoded = [](const FewRowsDot &one) { return one.decoded != one.source; };
    if (tiled.contains(dot))
      return isDecoded(found) == isDecoded(chain.back()) &&
             tileSums.lookup({dot.getAcc(), dot->getParentOp()}) && chain.size() < kMaxTiledDots;
    return findKept(dot) && Extents(dot, machine, chain.size() + 1).depth == getK(dot);
  };
  for (const auto &[group, dots] : groups)
    for (const FewRowsDot &found : dots) {
      auto chain = llvm::find_if(chains, [&](const auto &other) { return canJoin(other, found); });
      if (chain == chains.end())
        chains.push_back({found});
      else
        chain->push_back(found);
    }

  std::deque<KeptRows> keptRows;
  for (SmallVector<FewRowsDot> &chain : chains)
    for (FewRowsDot &found : chain) {
      int64_t &begin = getScratch(found.dot).begin;
      std::optional<PackedRows> form = getForm(found, chain.size(), machine);
      std::optional<KeptRows> rows =
          form ? KeptRows::find(found.dot, *form, machine, begin) : std::nullopt;
      if (rows)
        found.kept = &keptRows.emplace_back(*rows);
      remark(found);
    }

  AccessAnalysis access;
  SetVector<Value> buffers;
  for (ArrayRef<FewRowsDot> chain : chains) {
    FewRowsDot found = chain.front();
    for (const FewRowsDot &other : chain)
      if (auto read = other.source.getDefiningOp<strips::ReadOp>())
        buffers.insert(read.getSource());
    Value first, stride;
    if (found.load) {
      StripEmitter emitter(found.group, access);
      auto getAddress = [&](int64_t column) {
        IndexTuple at(2);
        at[0].offset = column;
        return emitter.evaluate(found.load.getPtr(), at).value;
      };
      first = getAddress(0);
      Value second = getAddress(1);
      stride = arith::SubIOp::create(emitter.atEnd(), found.group.getLoc(), second, first);
    }
    auto &[begin, size] = getScratch(found.dot);
    if (const AMXInstruction *tiles = findFewRowsTiles(found, machine)) {
      Value sums = tileSums[{found.dot.getAcc(), found.dot->getParentOp()}];
      size = std::max(size, emitFewRowsTiles(chain, *tiles, first, stride, sums, begin));
      continue;
    }
    Extents extents(found.dot, machine, chain.size());
    FewRowsDotEmitter emitter(chain, extents, first, stride, findKept(found.dot));
    size = std::max(size, emitter.emit(begin));
  }
  for (const auto &[group, dots] : groups)
    group->erase();
  for (Value buffer : buffers)
    eraseUnread(buffer);
}

} // namespace tessera
