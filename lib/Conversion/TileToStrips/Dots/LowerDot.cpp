// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-lower-dot: dots in buffers become loops around a micro-kernel, which keeps a block of the
// result in registers while k runs. All extents are static, so rows and columns left over get
// blocks of their own and nothing is masked. Operands of 16 and 8 bits are widened to f32 when they
// are packed. Sums of products of 8-bit integers are exact in f32 up to k = 1024, so they take the
// same instructions. If the machine multiplies several of them at once, GroupedDot.cpp lowers the
// dot.

#include "AMXDot.h"
#include "DotLoops.h"
#include "DotOperands.h"
#include "FewRowsDot.h"
#include "FewRowsTiles.h"
#include "GroupedDot.h"
#include "Grouping/CostModel.h"
#include "KeptOperands.h"
#include "MatrixDot.h"
#include "MergeDots.h"
#include "PackedWeights.h"
#include "PlacedDot.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Conversion/TileArith/TotalArith.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSLOWERDOT
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

constexpr int64_t kHostLineBytes = HostMachine::kLineBytes;

/// The most steps of k between prefetches of an operand. The loop is unrolled as often.
constexpr int64_t kMaxFetchSteps = 4;
/// LLVM's locality of prefetches into the second-level cache.
constexpr int32_t kSecondLevel = 2;

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

/// "dot of 64x64 and 64x64 elements of f32: ", to which what was chosen is added.
RemarkInFlight remarkOn(strips::DotOp dot) {
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  return emitRemark(dot.getLoc(), RemarkKind::DotOnCPU)
         << "dot of " << named("m", a.getDimSize(0)) << "x" << named("k", a.getDimSize(1))
         << " and " << b.getDimSize(0) << "x" << named("n", b.getDimSize(1)) << " elements of "
         << named("element", a.getElementType()) << ": ";
}

void addBlock(RemarkInFlight &remark, const HostMachine &machine, const BlockShape &block) {
  remark << "blocks of " << named("rows", block.rows) << " rows by "
         << named("vectors", block.vectors) << " vectors in "
         << named("registers", getRegisters(block)) << " of " << machine.vectorRegisters
         << " registers, which wait for "
         << named("bottleneck", StringRef(getBottleneck(machine, block)));
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// A matrix in memory and where the part in use begins.
struct Operand {
  Value buffer;
  Value row, column;
  Value next = {};       ///< the address of what is read next, an i64; null: nothing is fetched
  int64_t nextBytes = 0; ///< to fetch for a row of the result
};

/// Writes the loops of one dot.
class DotEmitter : DotLoops {
public:
  /// `panels`: where b is packed already, or null.
  DotEmitter(strips::DotOp dot, const HostMachine &machine, bool fuses, const ColumnPanels *panels)
      : DotLoops(dot), machine(machine), fuses(fuses), panels(panels) {
    auto aType = cast<MemRefType>(dot.getA().getType());
    auto bType = cast<MemRefType>(dot.getB().getType());
    auto accType = cast<MemRefType>(dot.getAcc().getType());
    M = aType.getDimSize(0);
    K = aType.getDimSize(1);
    N = bType.getDimSize(1);
    aElement = aType.getElementType();
    bElement = bType.getElementType();
    accElement = accType.getElementType();
    element = accElement.isF64() ? Type(b.getF64Type()) : Type(b.getF32Type());
    lanes = machine.vectorBits / element.getIntOrFloatBitWidth();
    int64_t vectors = std::max<int64_t>(1, N / lanes);
    block = panels ? chooseStreamedBlock(machine, M, vectors, bytes())
                   : chooseBlock(machine, M, vectors);
    depth = panels ? K : chooseDepth(machine, K, panelColumns() * bytes());
    // An f16 accumulator is rounded once, not once a block.
    if (accElement.isF16())
      depth = K;
  }

  /// Emits the remark on the choices and their reasons.
  void remark() {
    RemarkInFlight remark = remarkOn(dot);
    addBlock(remark, machine, block);
    remark << "; " << named("depth", depth) << " steps of k at a time";
    if (panels) {
      remark << "; operands are packed, and kept for the next programs";
      return;
    }
    if (packA())
      remark << "; a is packed as " << element;
    if (bElement != element)
      remark << "; b is packed as " << element;
    else if (packB())
      remark << "; b is packed, since its rows meet in the cache";
    else
      remark << "; b is read in place";
  }

  /// Packed operands go to the scratch arena from `offset` on; returns how many bytes of it they
  /// take.
  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    if (packA())
      packedA = reserve({M, depth}, element, offset);
    if (packB())
      packedB = reserve({depth, panelColumns()}, element, offset);

    forEachBlock(K, depth, [&](Value k, int64_t steps) { emitDepth(k, steps); });
    dot.erase();
    return offset - begin;
  }

private:
  //===-- Small things ----------------------------------------------------===//

  int64_t bytes() const { return element.getIntOrFloatBitWidth() / 8; }

  //===-- Planning --------------------------------------------------------===//

  int64_t panelColumns() const { return std::min(N, block.vectors * lanes); }
  bool packA() const { return aElement != element; }

  /// True if panels of b are copied: if they have another type, or if their rows map to the same
  /// few cache sets and are used often.
  bool packB() {
    if (panels)
      return false;
    if (bElement != element)
      return true;
    if (M / block.rows < 4)
      return false;
    SmallVector<int64_t> strides;
    int64_t offset;
    auto type = cast<MemRefType>(dot.getB().getType());
    if (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(strides[0]))
      return true;
    return meetInCache(machine, depth, panelColumns() * bytes(), strides[0] * bytes());
  }

  //===-- Packing ---------------------------------------------------------===//

  /// `value` widened to the type that the micro-kernel computes in.
  Value widen(Value value) {
    Type from = getElementTypeOrSelf(value.getType());
    if (from == element)
      return value;
    if (isa<IntegerType>(from)) {
      Type type = cast<VectorType>(value.getType()).clone(element);
      return arith::SIToFPOp::create(b, loc, type, value);
    }
    return buildFpToFp(b, loc, value, element, tile::RoundingMode::NearestEven);
  }

  /// Copies rows x columns elements to the start of `target`, widened.
  void pack(Operand source, Value target, int64_t rows, int64_t columns) {
    Type from = cast<MemRefType>(source.buffer.getType()).getElementType();
    forEach(0, rows, 1, [&](Value row) {
      auto copy = [&](Value column, int64_t width) {
        Value loaded =
            vector::LoadOp::create(b, loc, VectorType::get(width, from), source.buffer,
                                   ValueRange{add(source.row, row), add(source.column, column)});
        vector::StoreOp::create(b, loc, widen(loaded), target, ValueRange{row, column});
      };
      int64_t whole = columns / lanes * lanes;
      forEach(0, whole, lanes, [&](Value column) { copy(column, lanes); });
      forEachTail(whole, columns,
                  [&](int64_t column, int64_t width) { copy(index(column), width); });
    });
  }

  /// The remainder of a row behind its whole vectors, in powers of two.
  void forEachTail(int64_t begin, int64_t end, function_ref<void(int64_t, int64_t)> body) {
    while (begin < end) {
      int64_t width = std::min<int64_t>(lanes, llvm::bit_floor<uint64_t>(end - begin));
      body(begin, width);
      begin += width;
    }
  }

  //===-- The loops -------------------------------------------------------===//

  /// All of the result, for `steps` steps of k from `k`.
  void emitDepth(Value k, int64_t steps) {
    Value zero = index(0);
    Operand a{dot.getA(), zero, k};
    if (packedA) {
      pack(a, packedA, M, steps);
      a = {packedA, zero, zero};
    }
    int64_t whole = N / lanes * lanes;
    forEachBlock(whole, block.vectors * lanes, [&](Value column, int64_t columns) {
      emitPanel(a, k, column, columns / lanes, lanes, steps);
    });
    forEachTail(whole, N, [&](int64_t column, int64_t width) {
      emitPanel(a, k, index(column), 1, width, steps);
    });
  }

  /// All rows of `vectors` vectors of columns.
  void emitPanel(Operand a, Value k, Value column, int64_t vectors, int64_t width, int64_t steps) {
    Operand panel{dot.getB(), k, column};
    if (packB()) {
      pack(panel, packedB, steps, vectors * width);
      panel = {packedB, index(0), index(0)};
    } else if (panels) {
      panel = {panels->getPanel(b, loc, column, vectors * width), k, index(0)};
    }
    if (panels)
      planFetches(a, panel, column, vectors * width);
    forEachBlock(M, block.rows, [&](Value row, int64_t rows) {
      emitBlock(a, panel, row, column, rows, vectors, width, steps);
    });
  }

  //===-- Prefetches of packed operands -----------------------------------===//

  Value word(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 64); }
  Value advance(Value address, Value count, int64_t bytes) {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
    return add(address, arith::MulIOp::create(b, loc, wide, word(bytes)));
  }

  /// While a panel of b is multiplied, its blocks of the result fetch the next panel, and their
  /// share of the next block of a (KeptOperands.h says why).
  void planFetches(Operand &a, Operand &panel, Value column, int64_t columns) {
    auto [strides, offset] = cast<MemRefType>(a.buffer.getType()).getStridesAndOffset();
    int64_t rowBytes = strides[0] * bytes();
    a.next = advance(panels->nextA, column, M * rowBytes / N);
    a.nextBytes = columns * rowBytes / N;
    Value memory = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, panels->memory);
    Value start = arith::IndexCastOp::create(b, loc, b.getI64Type(), memory);
    Value behind = add(column, columns);
    Value inBlock = advance(advance(start, panels->first, bytes()), behind, panels->rows * bytes());
    Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, behind, index(N));
    panel.next = arith::SelectOp::create(b, loc, isLast, panels->nextB, inBlock);
    panel.nextBytes = panels->rows * columns * bytes() / M;
  }

  /// Steps of k for each line of an operand that is fetched.
  int64_t getFetchSteps(const Operand &a, const Operand &panel, int64_t rows) const {
    int64_t lines = llvm::divideCeil(std::max(a.nextBytes, panel.nextBytes) * rows, kHostLineBytes);
    int64_t steps = llvm::bit_floor(uint64_t(panels->rows / std::max<int64_t>(1, lines)));
    return std::clamp<int64_t>(steps, 1, kMaxFetchSteps);
  }

  void emitFetch(const Operand &operand, Value row, Value k, int64_t stepsPerLine) {
    Value address = advance(operand.next, row, operand.nextBytes);
    address = advance(address, k, kHostLineBytes / stepsPerLine);
    auto type = LLVM::LLVMPointerType::get(b.getContext());
    Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
    LLVM::Prefetch::create(b, loc, pointer, /*rw=*/0, /*hint=*/kSecondLevel, /*cache=*/1);
  }

  /// One block of the result.
  void emitBlock(Operand a, Operand panel, Value row, Value column, int64_t rows, int64_t vectors,
                 int64_t width, int64_t steps) {
    auto type = VectorType::get(width, element);
    auto storedType = VectorType::get(width, accElement);
    Value target = dot.getAcc();
    auto at = [&](int64_t r, int64_t v) {
      return SmallVector<Value>{add(row, r), add(column, v * width)};
    };

    // Integers are summed from zero, so that every partial sum is exact.
    bool fromZero = accElement.isInteger();
    SmallVector<Value> accumulators;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        accumulators.push_back(
            fromZero ? arith::ConstantOp::create(b, loc, b.getZeroAttr(type)).getResult()
                     : widen(vector::LoadOp::create(b, loc, storedType, target, at(r, v))));

    int64_t unroll = chooseSteps({rows, vectors}, panels ? panels->unit : steps);
    if (panels)
      if (int64_t fetchSteps = getFetchSteps(a, panel, rows); panels->unit % fetchSteps == 0)
        unroll = fetchSteps;
    Value end = panels ? panels->steps : index(steps);
    auto loop =
        scf::ForOp::create(b, loc, index(0), end, index(unroll), accumulators,
                           [&](OpBuilder &body, Location, Value k, ValueRange carried) {
                             OpBuilder::InsertionGuard guard(b);
                             b.restoreInsertionPoint(body.saveInsertionPoint());
                             SmallVector<Value> next(carried);
                             for (const Operand &operand : {a, panel})
                               if (operand.next)
                                 emitFetch(operand, row, k, unroll);
                             for (int64_t step = 0; step < unroll; ++step)
                               emitStep(a, panel, add(k, step), row, rows, vectors, type, next);
                             scf::YieldOp::create(b, loc, next);
                           });

    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v) {
        Value accumulator = loop.getResult(r * vectors + v);
        if (fromZero) {
          Value added = arith::FPToSIOp::create(b, loc, storedType, accumulator);
          Value old = vector::LoadOp::create(b, loc, storedType, target, at(r, v));
          accumulator = arith::AddIOp::create(b, loc, old, added);
        } else if (accElement != element) {
          accumulator = arith::TruncFOp::create(b, loc, storedType, accumulator);
        }
        vector::StoreOp::create(b, loc, accumulator, target, at(r, v));
      }
  }

  /// One step of k: every row's element of a, times the vectors of b.
  void emitStep(Operand a, Operand panel, Value k, Value row, int64_t rows, int64_t vectors,
                VectorType type, SmallVectorImpl<Value> &accumulators) {
    SmallVector<Value> columns;
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(vector::LoadOp::create(
          b, loc, type, panel.buffer,
          ValueRange{add(panel.row, k), add(panel.column, v * type.getNumElements())}));
    for (int64_t r = 0; r < rows; ++r) {
      Value scalar = memref::LoadOp::create(b, loc, a.buffer,
                                            ValueRange{add(add(a.row, row), r), add(a.column, k)});
      Value splat = vector::BroadcastOp::create(b, loc, type, scalar);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &accumulator = accumulators[r * vectors + v];
        if (fuses) {
          accumulator = vector::FMAOp::create(b, loc, splat, columns[v], accumulator);
          continue;
        }
        Value product = arith::MulFOp::create(b, loc, splat, columns[v]);
        accumulator = arith::AddFOp::create(b, loc, product, accumulator);
      }
    }
  }

  const HostMachine &machine;
  bool fuses;
  int64_t M, N, K, lanes, depth;
  Type aElement, bElement, accElement;
  Type element; ///< what the micro-kernel computes in
  const ColumnPanels *panels;
  BlockShape block;
  Value packedA, packedB;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

LogicalResult checkOperand(strips::DotOp dot, Value operand) {
  auto type = cast<MemRefType>(operand.getType());
  if (!type.hasStaticShape())
    return dot.emitOpError("has an operand of dynamic shape: ") << type << " (L1)";
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return dot.emitOpError("has an operand that is not contiguous along its last dimension: ")
           << type << " (L2)";
  return success();
}

/// The number of iterations whose dots become one. Tile registers load and store their sums slowly,
/// so their dots use all of k that is packed at a time. The operands take at most half of the
/// second-level cache. For vectors a longer k has gained nothing (Zen 4).
int64_t chooseIterations(strips::DotOp dot, const HostMachine &machine, bool deterministic) {
  const AMXInstruction *instruction = findAMXInstruction(dot, machine, deterministic);
  if (!instruction)
    return 1;
  int64_t bytes = 0;
  for (Value operand : {dot.getA(), dot.getB()}) {
    auto type = cast<MemRefType>(operand.getType());
    bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }
  int64_t K = cast<MemRefType>(dot.getA().getType()).getDimSize(1);
  int64_t most = std::min(machine.l2.bytes / 2 / bytes, getAMXDepth(*instruction, machine) / K);
  // Most loops have a power of two of iterations.
  return llvm::bit_floor(uint64_t(std::max<int64_t>(1, most)));
}

/// The form in which operands of a dot are kept; none if there is no form for it.
std::optional<PanelForm> getPanelForm(strips::DotOp dot, const HostMachine &machine,
                                      bool deterministic) {
  if (const AMXInstruction *instruction = findAMXInstruction(dot, machine, deterministic)) {
    // Rows that are columns of b have words already. Not an index map: that is what
    // writeUntransposed takes.
    strips::WriteOp write = findWriteOfB(dot);
    bool isTransposed = !write || write.getValue().getDefiningOp<tile::TransOp>();
    return isTransposed ? std::nullopt : std::optional(getAMXPanels(*instruction, machine));
  }
  if (findMatrixInstruction(dot, machine))
    return std::nullopt;
  if (const DotInstruction *instruction = findDotInstruction(dot, machine, deterministic))
    return getGroupedPanels(dot, *instruction, machine);
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  int64_t bytes = b.getElementTypeBitWidth() / 8, lanes = machine.vectorBits / 8 / bytes;
  int64_t vectors = std::max<int64_t>(1, b.getDimSize(1) / lanes);
  BlockShape block = chooseStreamedBlock(machine, a.getDimSize(0), vectors, bytes);
  return getElementPanels(std::min(b.getDimSize(1), block.vectors * lanes));
}

struct StripsLowerDot : impl::StripsLowerDotBase<StripsLowerDot> {
  using StripsLowerDotBase::StripsLowerDotBase;

  void runOnOperation() override {
    std::optional<HostMachine> machine = getMachine(getOperation(), machineName);
    if (!machine)
      return signalPassFailure();
    SmallVector<strips::DotOp> dots;
    getOperation()->walk([&](strips::DotOp dot) { dots.push_back(dot); });
    // Dots run one after another and share the memory behind the function's own
    // buffers.
    llvm::DenseMap<Operation *, ScratchRange> scratch;
    auto getScratch = [&](Operation *op) -> ScratchRange & {
      Operation *function = op->getParentOfType<FunctionOpInterface>();
      auto [entry, isNew] = scratch.try_emplace(function);
      if (isNew)
        if (auto bytes = function->getAttrOfType<IntegerAttr>(strips::kScratchBytesAttr))
          entry->second.begin = llvm::alignTo(bytes.getInt(), kHostLineBytes);
      return entry->second;
    };
    auto fewRows = findFewRowsDots(getOperation(), *machine, deterministic);
    for (auto &[group, few] : fewRows)
      for (const FewRowsDot &found : few)
        llvm::erase(dots, found.dot);
    auto packed = findPackedDots(getOperation(), *machine, deterministic);
    SmallPtrSet<Operation *, 4> packedDots;
    for (auto &[group, found] : packed)
      for (const PackedDot &entry : found)
        packedDots.insert(entry.dot);
    // First, since what is collected outlives the scratch of other dots.
    SmallPtrSet<Operation *, 4> singles;
    llvm::DenseMap<Operation *, ColumnPanels> keptPanels;
    for (strips::DotOp &dot : dots) {
      std::optional<LoopDot> found = packedDots.contains(dot) ? std::nullopt : findLoopDot(dot);
      if (!found)
        continue;
      int64_t &begin = getScratch(dot).begin;
      auto merge = [&](LoopDot found) {
        int64_t count = chooseIterations(found.dot, *machine, deterministic);
        if (count < 2)
          return found.dot;
        MergedDots merged = mergeDots(found, count, begin);
        begin += merged.scratchBytes;
        if (merged.single)
          singles.insert(merged.single);
        return merged.merged;
      };
      std::optional<PanelForm> form = getPanelForm(dot, *machine, deterministic);
      std::optional<KeptDot> kept =
          form ? keepOperands(*found, *machine, *form, begin) : std::nullopt;
      if (kept)
        begin += kept->scratchBytes;
      LoopDot plain = kept ? kept->plain : *found;
      if (std::optional<PlacedDot> placed =
              placeOperands(plain, *machine, /*fuses=*/!deterministic, begin)) {
        begin += placed->scratchBytes;
        plain = placed->plain;
        if (remarks) {
          RemarkInFlight remark = remarkOn(plain.dot);
          addBlock(remark, *machine, placed->block);
          remark << "; " << named("depth", placed->depth)
                 << " steps of k at a time; operands that are not kept are read in place, unless "
                    "their rows meet in the cache";
        }
      }
      if (!kept) {
        dot = merge(plain);
        continue;
      }
      keptPanels[kept->dot] = kept->panels;
      dot = kept->dot;
      singles.insert(merge(plain));
    }
    for (Operation *single : singles)
      dots.push_back(cast<strips::DotOp>(single));
    emitFewRowsDots(fewRows, *machine, getScratch, [&](const FewRowsDot &found) {
      if (!remarks)
        return;
      const AMXInstruction *tiles = findFewRowsTiles(found, *machine);
      remarkOn(found.dot) << named("instruction",
                                   tiles ? tiles->intrinsic : "multiply-adds along k")
                          << ", since a has few rows; b is read in place"
                          << (found.kept ? "; a is packed, and kept for the next programs" : "");
    });
    auto allPanels = emitPanels(packed);
    for (strips::DotOp dot : dots) {
      bool remarks = this->remarks && !singles.contains(dot);
      for (Value operand : {dot.getA(), dot.getB(), dot.getAcc()})
        if (failed(checkOperand(dot, operand)))
          return signalPassFailure();
      auto &[begin, size] = getScratch(dot);
      auto found = allPanels.find(dot);
      const PackedPanels *panels = found == allPanels.end() ? nullptr : &found->second;
      auto keptFound = keptPanels.find(dot);
      const ColumnPanels *kept = keptFound == keptPanels.end() ? nullptr : &keptFound->second;
      StringRef operands = panels ? "; b was packed ahead, and is read in place"
                           : kept ? "; operands are packed, and kept for the next programs"
                                  : "";
      if (const AMXInstruction *instruction =
              findAMXInstruction(dot, *machine, deterministic, panels);
          instruction && !(panels && panels->isDecoded())) {
        if (remarks) {
          remarkOn(dot) << named("instruction", instruction->intrinsic) << ", "
                        << named("depth", instruction->steps * AMXInstruction::kWords)
                        << " steps of k of 16 rows and 16 columns at once, in tile registers"
                        << operands;
        }
        // Floats of 8 bits are converted row by row.
        unsigned bits = cast<MemRefType>(dot.getB().getType()).getElementTypeBitWidth();
        bool isPlain = bits * instruction->steps == AMXInstruction::kWordBytes * 8;
        Value columnsOfB = isPlain && !panels && !kept ? writeUntransposed(dot) : Value();
        size = std::max(size,
                        emitAMXDot(dot, *instruction, *machine, {panels, kept}, columnsOfB, begin));
        continue;
      }
      if (const MatrixInstruction *instruction = findMatrixInstruction(dot, *machine)) {
        if (remarks) {
          remarkOn(dot) << named("instruction", instruction->intrinsic) << ", "
                        << named("depth", instruction->steps)
                        << " steps of k of two rows and two columns at once, on packed operands";
        }
        size = std::max(size, emitMatrixDot(dot, *instruction, *machine, begin));
        continue;
      }
      if (const DotInstruction *instruction = findDotInstruction(dot, *machine, deterministic)) {
        if (remarks) {
          remarkOn(dot) << named("instruction", instruction->getIntrinsic(machine->vectorBits))
                        << ", " << named("depth", instruction->steps)
                        << " steps of k at once, on packed operands" << operands;
        }
        size = std::max(size, emitGroupedDot(dot, *instruction, *machine, {panels, kept}, begin));
        continue;
      }
      DotEmitter emitter(dot, *machine, !deterministic, kept);
      if (remarks)
        emitter.remark();
      size = std::max(size, emitter.emit(begin));
    }
    eraseGroups(packed);
    for (auto &[function, range] : scratch)
      if (range.size != 0 || range.begin != 0)
        function->setAttr(strips::kScratchBytesAttr,
                          Builder(function).getI64IntegerAttr(range.begin + range.size));
  }
};

} // namespace
} // namespace tessera
