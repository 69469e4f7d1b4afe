// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-lower-private-copies: the memory of private copies, and what is done before and behind
// the loop over the programs.
//
// Clearing an element and reading it later costs about 0.2 ns, and adding it to the array 0.4 to 4.
// An atomic costs 1.3 to 5, and many times that if two threads access one line. With four lanes or
// more to an element the copy pays even if each is added to. Only the additions show how large the
// array is. So a copy is small at first, and grows before the next program once one has added
// behind its end.

#include "Grouping/CostModel.h"
#include "Nests/StripAtomics.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSLOWERPRIVATECOPIES
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

constexpr int64_t kLanesPerElement = 4, kLine = HostMachine::kLineBytes;

/// One private copy of a kernel.
class PrivateCopyLowering {
public:
  /// Before and behind `programs`, the loop over them; the memory is `offset` bytes into the
  /// arena.
  PrivateCopyLowering(strips::PrivateCopyOp privateCopy, scf::ForOp programs, Value scratch,
                      int64_t offset, const HostMachine &machine)
      : builder(programs), loc(privateCopy.getLoc()), privateCopy(privateCopy), programs(programs),
        element(privateCopy.getElement()), machine(machine) {
    ptr = scratch.getType();
    memory = LLVM::GEPOp::create(builder, loc, ptr, builder.getI8Type(), scratch,
                                 ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  }

  /// The replacements of the private copy's results.
  SmallVector<Value> run() {
    Value most = emitSize();
    Value bytes = arith::MinUIOp::create(builder, loc, most, constant(strips::kPrivateCopyBytes));
    emitClear(constant(0), bytes);
    Value address = LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), memory);
    Value growth = at(memory, constant(kGrownCopyBytes + kGrowthOffset));
    Value size = at(memory, constant(kGrownCopyBytes + kGrowthOffset + 8));
    LLVM::StoreOp::create(builder, loc, constant(0), growth);
    LLVM::StoreOp::create(builder, loc, bytes, size);
    builder.setInsertionPointToStart(programs.getBody());
    emitGrowth(growth, size, most);
    Value inProgram = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), size);
    builder.setInsertionPointAfter(programs);
    emitFlush(LLVM::LoadOp::create(builder, loc, builder.getI64Type(), size));
    return {inProgram, address};
  }

private:
  Value constant(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
  Value at(Value base, Value offset) {
    return LLVM::GEPOp::create(builder, loc, ptr, builder.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{offset});
  }
  unsigned elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  tile::AtomicKind getKind() const {
    return isa<FloatType>(element) ? tile::AtomicKind::FAdd : tile::AtomicKind::Add;
  }
  Value emitSize();
  Value makeNeutral(int64_t lanes);
  void emitClear(Value begin, Value end);
  void emitGrowth(Value growth, Value size, Value most);
  void emitFlush(Value bytes);
  void emitElementFlush(Value from, Value place);
  Value isSome(Value sums, int64_t lanes);

  OpBuilder builder;
  Location loc;
  strips::PrivateCopyOp privateCopy;
  scf::ForOp programs;
  Type element, ptr;
  const HostMachine &machine;
  Value memory;
};

Value PrivateCopyLowering::emitSize() {
  Value count =
      arith::SubIOp::create(builder, loc, programs.getUpperBound(), programs.getLowerBound());
  // So many programs fill the largest private copy: what follows cannot overflow.
  Value enough = constant(kGrownCopyBytes);
  count = arith::MinUIOp::create(builder, loc, count, enough);
  int64_t each = std::min<int64_t>(privateCopy.getLanes() * elementBytes(), kGrownCopyBytes * 8);
  Value bytes = arith::MulIOp::create(builder, loc, count, constant(each));
  bytes = arith::DivUIOp::create(builder, loc, bytes, constant(kLanesPerElement));
  bytes = arith::MinUIOp::create(builder, loc, bytes, enough);
  return arith::AndIOp::create(builder, loc, bytes, constant(-kLine));
}

Value PrivateCopyLowering::makeNeutral(int64_t lanes) {
  auto type = VectorType::get(lanes, element);
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, Attribute(getNeutralElement(getKind(), element))));
}

void PrivateCopyLowering::emitClear(Value begin, Value end) {
  Value neutral = makeNeutral(kLine / elementBytes());
  auto loop = scf::ForOp::create(builder, loc, begin, end, constant(kLine));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  LLVM::StoreOp::create(builder, loc, neutral, at(memory, loop.getInductionVar()), kLine);
}

/// Before a program: the copy gets its largest size, if an earlier program asked for it.
void PrivateCopyLowering::emitGrowth(Value growth, Value size, Value most) {
  using Predicate = arith::CmpIPredicate;
  Type i64 = builder.getI64Type();
  Value wanted = LLVM::LoadOp::create(builder, loc, i64, growth);
  Value isWanted = arith::CmpIOp::create(builder, loc, Predicate::ne, wanted, constant(0));
  Value bytes = LLVM::LoadOp::create(builder, loc, i64, size);
  Value isSmaller = arith::CmpIOp::create(builder, loc, Predicate::ult, bytes, most);
  Value grows = arith::AndIOp::create(builder, loc, isWanted, isSmaller);
  auto grow = scf::IfOp::create(builder, loc, grows, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(grow.thenBlock());
  emitClear(bytes, most);
  LLVM::StoreOp::create(builder, loc, most, size);
}

/// True if any of a vector of sums is not neutral, by their bits.
Value PrivateCopyLowering::isSome(Value sums, int64_t lanes) {
  Value neutral = makeNeutral(lanes);
  auto type = VectorType::get(lanes, builder.getIntegerType(8 * elementBytes()));
  auto bits = [&](Value value) -> Value {
    return value.getType() == type ? value : arith::BitcastOp::create(builder, loc, type, value);
  };
  Value differ =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bits(sums), bits(neutral));
  return vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, differ);
}

void PrivateCopyLowering::emitElementFlush(Value from, Value place) {
  Value sum = LLVM::LoadOp::create(builder, loc, VectorType::get(1, element), from, elementBytes());
  auto some = scf::IfOp::create(builder, loc, isSome(sum, 1), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(some.thenBlock());
  Value value = vector::ExtractOp::create(builder, loc, sum, 0);
  auto kind = isa<FloatType>(element) ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add;
  LLVM::AtomicRMWOp::create(builder, loc, kind, place, value, LLVM::AtomicOrdering::acq_rel);
}

/// Adds the copy to the array line by line, with the release semantics of the program's atomics.
/// Elements without additions are skipped, since they may lie outside the user's memory.
void PrivateCopyLowering::emitFlush(Value bytes) {
  auto lines = scf::ForOp::create(builder, loc, constant(0), bytes, constant(kLine));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(lines.getBody());
  Value base = LLVM::IntToPtrOp::create(builder, loc, ptr, privateCopy.getBase());
  int64_t perLine = kLine / elementBytes();
  Value whole = LLVM::LoadOp::create(builder, loc, VectorType::get(perLine, element),
                                     at(memory, lines.getInductionVar()), kLine);
  auto someOfLine = scf::IfOp::create(builder, loc, isSome(whole, perLine), false);
  builder.setInsertionPointToStart(someOfLine.thenBlock());

  int64_t lanes = std::max<int64_t>(machine.swapBits / (8 * elementBytes()), 1);
  int64_t swapped = lanes * elementBytes();
  Value end = arith::AddIOp::create(builder, loc, lines.getInductionVar(), constant(kLine));
  auto swaps = scf::ForOp::create(builder, loc, lines.getInductionVar(), end, constant(swapped));
  builder.setInsertionPointToStart(swaps.getBody());
  Value offset = swaps.getInductionVar();
  Value from = at(memory, offset), place = at(base, offset);
  if (lanes == 1) {
    emitElementFlush(from, place);
    return;
  }
  Value sums = LLVM::LoadOp::create(builder, loc, VectorType::get(lanes, element), from, swapped);
  Value address = LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), place);
  Value low = arith::AndIOp::create(builder, loc, address, constant(swapped - 1));
  Value aligned = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, low, constant(0));
  auto some = scf::IfOp::create(builder, loc, isSome(sums, lanes), /*withElseRegion=*/false);
  builder.setInsertionPointToStart(some.thenBlock());
  auto together = scf::IfOp::create(builder, loc, aligned, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(together.thenBlock());
  buildVectorAtomic(builder, loc, getKind(), LLVM::AtomicOrdering::acq_rel, place, sums);
  builder.setInsertionPointToStart(together.elseBlock());
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value step = constant(lane * elementBytes());
    emitElementFlush(at(from, step), at(place, step));
  }
}

struct StripsLowerPrivateCopies : impl::StripsLowerPrivateCopiesBase<StripsLowerPrivateCopies> {
  using StripsLowerPrivateCopiesBase::StripsLowerPrivateCopiesBase;

  /// The loop over the programs that an operation is in; null where it is in no kernel.
  scf::ForOp getPrograms(Operation *op) {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || func.getNumArguments() != 4)
      return {};
    while (op->getParentOp() != func)
      op = op->getParentOp();
    return dyn_cast<scf::ForOp>(op);
  }

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    SmallVector<strips::PrivateCopyOp> privateCopies;
    func.walk([&](strips::PrivateCopyOp privateCopy) { privateCopies.push_back(privateCopy); });
    if (privateCopies.empty())
      return;
    std::optional<HostMachine> machine = getMachine(func, machineName);
    if (!machine)
      return signalPassFailure();
    auto taken = func->getAttrOfType<IntegerAttr>(strips::kScratchBytesAttr);
    int64_t end = taken ? llvm::alignTo(taken.getInt(), kLine) : 0;
    DominanceInfo dominance(func);
    // Two atomics on one array share one copy of it.
    DenseMap<std::pair<Value, Type>, SmallVector<Value>> known;
    for (strips::PrivateCopyOp privateCopy : privateCopies) {
      scf::ForOp programs = getPrograms(privateCopy);
      bool isKnownBefore =
          programs && dominance.properlyDominates(privateCopy.getBase(), programs.getOperation());
      auto results = known.find({privateCopy.getBase(), privateCopy.getElement()});
      if (isKnownBefore && results == known.end() && known.size() < strips::kMaxPrivateCopies) {
        PrivateCopyLowering lowering(privateCopy, programs, func.getArgument(3), end, *machine);
        results =
            known.insert({{privateCopy.getBase(), privateCopy.getElement()}, lowering.run()}).first;
        end += kGrownCopyBytes + kLine;
      }
      if (isKnownBefore && results != known.end()) {
        privateCopy->replaceAllUsesWith(results->second);
        continue;
      }
      OpBuilder builder(privateCopy);
      Value nothing = arith::ConstantIntOp::create(builder, privateCopy.getLoc(), 0, 64);
      privateCopy->replaceAllUsesWith(ValueRange{nothing, nothing});
    }
    for (strips::PrivateCopyOp privateCopy : privateCopies)
      privateCopy.erase();
    func->setAttr(strips::kScratchBytesAttr, OpBuilder(func).getI64IntegerAttr(end));
  }
};

} // namespace
} // namespace tessera
