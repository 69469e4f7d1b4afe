// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons of places with a number, as of columns with the label of a row:
//
//     columns = start + lane + {0, 1, 2, ...}          registers of a thread
//     columns == label   ->   label - start - lane == {0, 1, 2, ...}
//
// The difference is computed once, and each register is compared with a constant. Otherwise LLVM
// keeps label - lane - i ahead of a loop over `start`: a register for each comparison, or two.

#include "Patterns.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Registers that are one sum plus a constant each, in 32 bits.
struct Places {
  SmallVector<Value> terms;
  SmallVector<uint32_t> offsets;
  /// The sums are extended to 64 bits with their signs.
  bool isExtended = false;

  static std::optional<Places> of(ValueRange registers);

private:
  void peelExtensions(SmallVector<Value> &values);
  void peelTerms(SmallVector<Value> &values);
  bool takeOffsets(ArrayRef<Value> values);
};

} // namespace

void Places::peelExtensions(SmallVector<Value> &values) {
  SmallVector<Value> sources;
  for (Value value : values)
    if (auto extension = value.getDefiningOp<LLVM::SExtOp>())
      sources.push_back(extension.getArg());
  if (sources.size() != values.size())
    return;
  values = std::move(sources);
  isExtended = true;
}

/// Terms that the sums of all registers have.
void Places::peelTerms(SmallVector<Value> &values) {
  auto peel = [&](unsigned number) {
    SmallVector<Value> rest;
    Value term;
    for (Value value : values) {
      auto sum = value.getDefiningOp<LLVM::AddOp>();
      if (!sum || (term && sum->getOperand(number) != term))
        return false;
      term = sum->getOperand(number);
      rest.push_back(sum->getOperand(1 - number));
    }
    terms.push_back(term);
    values = std::move(rest);
    return true;
  };
  while (peel(0) || peel(1))
    ;
}

/// False if the values are not one of them and constants added to it.
bool Places::takeOffsets(ArrayRef<Value> values) {
  for (Value value : values) {
    if (value == values.front()) {
      offsets.push_back(0);
      continue;
    }
    auto sum = value.getDefiningOp<LLVM::AddOp>();
    auto offset = sum ? sum.getRhs().getDefiningOp<LLVM::ConstantOp>() : LLVM::ConstantOp();
    auto number = offset ? dyn_cast<IntegerAttr>(offset.getValue()) : IntegerAttr();
    if (!number || sum.getLhs() != values.front())
      return false;
    offsets.push_back(static_cast<uint32_t>(number.getValue().getZExtValue()));
  }
  terms.push_back(values.front());
  return true;
}

std::optional<Places> Places::of(ValueRange registers) {
  Places places;
  SmallVector<Value> values(registers);
  places.peelExtensions(values);
  if (!values.front().getType().isInteger(32))
    return std::nullopt;
  places.peelTerms(values);
  if (!places.takeOffsets(values))
    return std::nullopt;
  return places;
}

namespace {

struct PlaceComparisonPattern : TilePattern<arith::CmpIOp> {
  PlaceComparisonPattern(const TileGPUTypeConverter &converter)
      : TilePattern(converter, /*benefit=*/12) {}

  LogicalResult matchAndRewrite(arith::CmpIOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    arith::CmpIPredicate predicate = op.getPredicate();
    if (!isa<RankedTensorType>(op.getType()) ||
        (predicate != arith::CmpIPredicate::eq && predicate != arith::CmpIPredicate::ne))
      return failure();
    for (auto [registers, numbers] : {std::pair(adaptor.getLhs(), adaptor.getRhs()),
                                      std::pair(adaptor.getRhs(), adaptor.getLhs())}) {
      if (!isOfFewNumbers(numbers))
        continue;
      if (std::optional<Places> places = Places::of(registers)) {
        replace(op, *places, numbers, rewriter);
        return success();
      }
    }
    return failure();
  }

private:
  /// True if most registers are compared with the number of another one.
  static bool isOfFewNumbers(ValueRange numbers) {
    constexpr size_t kLeast = 4;
    llvm::SmallDenseSet<Value> distinct(numbers.begin(), numbers.end());
    return kLeast * distinct.size() <= numbers.size();
  }

  void replace(arith::CmpIOp op, const Places &places, ValueRange numbers,
               ConversionPatternRewriter &rewriter) const {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    auto predicate = op.getPredicate() == arith::CmpIPredicate::eq ? LLVM::ICmpPredicate::eq
                                                                   : LLVM::ICmpPredicate::ne;
    llvm::SmallDenseMap<Value, Value> distances;
    SmallVector<Value> results;
    for (auto [number, offset] : llvm::zip_equal(numbers, places.offsets)) {
      Value &distance = distances[number];
      if (!distance)
        distance = emitDistance(thread, places, number);
      results.push_back(thread.compare(predicate, distance, offset));
    }
    rewriter.replaceOpWithMultiple(op, {results});
  }

  /// The offset that the number has, or one that no register has. It is no linear function of a
  /// loop's index, so that nothing is made of it and the offsets ahead of the loop.
  static Value emitDistance(ThreadBuilder &thread, const Places &places, Value number) {
    Value distance = places.isExtended ? thread.extendOrTruncate(number, 32) : number;
    for (Value term : places.terms)
      distance = thread.sub(distance, term);
    uint32_t none = *llvm::max_element(places.offsets) + 1;
    if (places.isExtended) {
      Value isShort = thread.compare(
          LLVM::ICmpPredicate::eq, number,
          thread.extendOrTruncate(thread.extendOrTruncate(number, 32), 64, /*isSigned=*/true));
      return thread.select(isShort, distance, thread.i32(none));
    }
    return thread.create<LLVM::UMinOp>(distance, thread.i32(none));
  }
};

} // namespace

void tessera::populatePlaceComparisonPatterns(const TileGPUTypeConverter &converter,
                                              RewritePatternSet &patterns) {
  patterns.add<PlaceComparisonPattern>(converter);
}
