// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pointers, loads and stores. An access moves the registers that AccessPlan grouped. It is a plain
// LLVM load or store if it has no hints, so that LLVM may reason about it. Otherwise it is one
// predicated instruction. Branches around accesses would keep them from being in flight together.
//
// If a mask may end within an access, whole accesses come first. Each has the mask of its last
// element, or the conjunction of all masks if the last one does not imply the others. Behind all
// accesses is one branch, which few threads take, to those that are masked in part: there each
// element is moved under its own mask.

#include "Exchange/Delivery.h"
#include "Fragments/BytePairs.h"
#include "Patterns.h"
#include "Plans/AccessPlan.h"

using namespace mlir;
using namespace tessera;

namespace {

//===----------------------------------------------------------------------===//
// Words: what an instruction moves
//===----------------------------------------------------------------------===//

/// How `elements` elements of `bytes` bytes go into an instruction.
AccessWords makeWords(int64_t bytes, size_t elements) {
  unsigned total = 8 * bytes * elements, bits = bytes == 8 ? 64 : std::min(total, 32u);
  return {bits, total / bits};
}

/// Elements as words, the first in the low bits. Vectors say it in a way that becomes one
/// move, where shifts would become several.
SmallVector<Value> packWords(ThreadBuilder &thread, AccessWords words, ArrayRef<Value> elements) {
  SmallVector<Value> result;
  unsigned each = elements.size() / words.count, width = words.bits / each;
  for (size_t first = 0; first < elements.size(); first += each) {
    SmallVector<Value> lanes;
    for (Value element : elements.slice(first, each))
      lanes.push_back(thread.bitcast(toMemory(thread, element), thread.intType(width)));
    Value word = lanes.front();
    if (each > 1)
      word = thread.bitcast(buildVector(thread, lanes), thread.intType(words.bits));
    result.push_back(thread.extendOrTruncate(word, std::max(16u, words.bits)));
  }
  return result;
}

SmallVector<Value> unpackWords(ThreadBuilder &thread, AccessWords words, ArrayRef<Value> packed,
                               Type element, size_t count) {
  SmallVector<Value> result;
  unsigned each = count / words.count, width = words.bits / each;
  for (Value word : packed) {
    word = thread.extendOrTruncate(word, words.bits);
    if (each > 1)
      word = thread.bitcast(word, VectorType::get({each}, thread.intType(width)));
    for (unsigned i = 0; i < each; ++i) {
      Value bits =
          each == 1 ? word : thread.create<LLVM::ExtractElementOp>(word, thread.i32(i)).getResult();
      result.push_back(element.isInteger(1) ? fromMemory(thread, bits, element)
                                            : thread.bitcast(bits, element));
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// The masks of an op's accesses.
class AccessMasks {
public:
  /// `masks` has one a register, or none; `acting` holds in threads that do anything, null
  /// for all.
  AccessMasks(ThreadBuilder &thread, Operation *op, ValueRange masks, Value acting)
      : thread(thread), masks(masks), acting(acting),
        arePrefixes(op->hasAttr(kPrefixMasksAttr) && !masks.empty()),
        areAny(op->hasAttr(kPartialMasksAttr) && !masks.empty()) {}

  Value ofElement(int64_t number) const {
    return thread.both(masks.empty() ? Value() : masks[number], acting);
  }
  /// True if all elements of an access are to be moved.
  Value ofWhole(ArrayRef<int64_t> access) const {
    if (areAny)
      return thread.both(ofAll(access), acting);
    return ofElement(arePrefixes ? access.back() : access.front());
  }
  /// True if some access moves only a part of its elements; null if that cannot be.
  Value ofAnyPart(ArrayRef<SmallVector<int64_t>> accesses) const {
    Value any;
    if (!arePrefixes && !areAny)
      return any;
    for (ArrayRef<int64_t> access : accesses) {
      Value some = masks[access.front()], all = masks[access.back()];
      if (areAny) {
        for (int64_t number : access.drop_front())
          some = thread.bitOr(some, masks[number]);
        all = ofAll(access);
      }
      Value part = thread.bitAnd(some, thread.bitXor(all, thread.i1(true)));
      any = any ? thread.bitOr(any, part) : part;
    }
    return thread.both(any, acting);
  }

private:
  Value ofAll(ArrayRef<int64_t> access) const {
    Value all = masks[access.front()];
    for (int64_t number : access.drop_front())
      all = thread.bitAnd(all, masks[number]);
    return all;
  }

  ThreadBuilder &thread;
  ValueRange masks;
  Value acting;
  bool arePrefixes; ///< some first elements of an access may be masked in, and the others out
  bool areAny;      ///< any elements of an access may be
};

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

struct LoadPattern : TilePattern<tile::LoadOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type pointers = op.getPtr().getType();
    Type element = getConverter().convertElement(op.getType());
    ValueRange addresses = adaptor.getPtr();
    int64_t bytes = tilegpu::getElementBytes(getElementTypeOrSelf(op.getType()));
    // A volatile load runs once per element, by the element's representative.
    Value acting = op.getIsVolatile() ? emitRepresentativePredicate(thread, pointers, op) : Value();

    AccessMasks masks(thread, op, op.getMask() ? adaptor.getMask() : ValueRange(), acting);
    SmallVector<SmallVector<int64_t>> accesses = getAccesses(op, pointers);
    // Registers that load the same take it from their representative.
    SmallVector<int64_t> representatives = getRepresentatives(op, pointers);
    llvm::erase_if(accesses, [&](ArrayRef<int64_t> access) {
      return access.size() == 1 && representatives[access[0]] != access[0];
    });
    Value anyPart = masks.ofAnyPart(accesses);
    SmallVector<Value> registers(addresses.size());
    SmallVector<Value> words; // of all accesses, if some may be masked in part
    for (ArrayRef<int64_t> access : accesses) {
      SmallVector<Value> others;
      if (op.getOther())
        for (int64_t number : access)
          others.push_back(adaptor.getOther()[number]);
      else
        others.assign(access.size(), thread.zero(element));
      Value mask = masks.ofWhole(access);
      if (anyPart) {
        llvm::append_range(words, loadWords(op, thread, addresses[access[0]], bytes, others, mask));
        continue;
      }
      SmallVector<Value> loaded =
          loadAccess(op, thread, addresses[access[0]], element, bytes, others, mask);
      for (auto [number, value] : llvm::zip_equal(access, loaded))
        registers[number] = value;
    }
    if (anyPart) {
      auto loadElement = [&](int64_t number, Value other) {
        return loadAccess(op, thread, addresses[number], element, bytes, other,
                          masks.ofElement(number))
            .front();
      };
      words = loadParts(thread, anyPart, accesses, words, element, bytes, loadElement);
      AccessWords each = makeWords(bytes, accesses.front().size());
      for (auto [index, access] : llvm::enumerate(accesses))
        for (auto [number, value] : llvm::zip_equal(
                 access,
                 unpackWords(thread, each, ArrayRef(words).slice(index * each.count, each.count),
                             element, access.size())))
          registers[number] = value;
    }
    for (auto [value, representative] : llvm::zip_equal(registers, representatives))
      value = registers[representative];
    // Unused results are not delivered.
    if (op.getIsVolatile() && !op->use_empty() &&
        failed(deliver(thread, op, op.getType(), registers)))
      return failure();
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  /// If any access is partly masked, loads the elements of accesses one by one. `words` are the
  /// words loaded before; the result replaces them.
  static SmallVector<Value> loadParts(ThreadBuilder &thread, Value anyPart,
                                      ArrayRef<SmallVector<int64_t>> accesses,
                                      ArrayRef<Value> words, Type element, int64_t bytes,
                                      function_ref<Value(int64_t, Value)> loadElement) {
    OpBuilder &builder = thread.getBuilder();
    auto branch = thread.create<scf::IfOp>(TypeRange(ValueRange(words)), anyPart,
                                           /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    AccessWords each = makeWords(bytes, accesses.front().size());
    SmallVector<Value> loaded;
    for (auto [index, access] : llvm::enumerate(accesses)) {
      SmallVector<Value> elements = unpackWords(
          thread, each, words.slice(index * each.count, each.count), element, access.size());
      for (auto [number, value] : llvm::zip_equal(access, elements))
        value = loadElement(number, value);
      llvm::append_range(loaded, packWords(thread, each, elements));
    }
    thread.create<scf::YieldOp>(loaded);
    builder.setInsertionPointToStart(branch.elseBlock());
    thread.create<scf::YieldOp>(words);
    return SmallVector<Value>(branch.getResults());
  }

  static AccessHints getHints(tile::LoadOp op) {
    return {op.getCache(), op.getEvict(), op.getIsVolatile()};
  }

  static SmallVector<Value> loadAccess(tile::LoadOp op, ThreadBuilder &thread, Value address,
                                       Type element, int64_t bytes, ArrayRef<Value> others,
                                       Value mask) {
    if (!mask && thread.getHooks().isPlain(getHints(op), /*isLoad=*/true))
      return loadPlainly(thread, address, element, bytes, others.size());
    SmallVector<Value> words = loadWords(op, thread, address, bytes, others, mask);
    return unpackWords(thread, makeWords(bytes, others.size()), words, element, others.size());
  }

  /// As an instruction of our own. `others` are the elements where the mask does not hold.
  static SmallVector<Value> loadWords(tile::LoadOp op, ThreadBuilder &thread, Value address,
                                      int64_t bytes, ArrayRef<Value> others, Value mask) {
    AccessWords words = makeWords(bytes, others.size());
    SmallVector<Value> initial = mask ? packWords(thread, words, others) : SmallVector<Value>();
    return thread.getHooks().emitLoad(thread, address, words, getHints(op), initial, mask);
  }

  static SmallVector<Value> loadPlainly(ThreadBuilder &thread, Value address, Type element,
                                        int64_t bytes, size_t count) {
    Type stored = element.isInteger(1) ? thread.intType(8) : element;
    if (count == 1)
      return {fromMemory(thread, thread.create<LLVM::LoadOp>(stored, address, bytes), element)};
    // Vectors of pointers are vectors of addresses.
    Type lane = isa<LLVM::LLVMPointerType>(stored) ? thread.intType(64) : stored;
    auto type = VectorType::get({static_cast<int64_t>(count)}, lane);
    Value loaded = thread.create<LLVM::LoadOp>(type, address, bytes * count);
    SmallVector<Value> result;
    for (size_t i = 0; i < count; ++i) {
      Value value = thread.create<LLVM::ExtractElementOp>(loaded, thread.i32(i));
      result.push_back(fromMemory(thread, thread.bitcast(value, stored), element));
    }
    return result;
  }
};

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

struct StorePattern : TilePattern<tile::StoreOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type pointers = op.getPtr().getType();
    ValueRange addresses = adaptor.getPtr();
    int64_t bytes = tilegpu::getElementBytes(getElementTypeOrSelf(op.getValue().getType()));
    Value acting = emitRepresentativePredicate(thread, pointers, op);
    AccessHints hints = {op.getCache(), op.getEvict()};
    AccessMasks masks(thread, op, op.getMask() ? adaptor.getMask() : ValueRange(), acting);
    SmallVector<SmallVector<int64_t>> accesses = getAccesses(op, pointers);
    for (ArrayRef<int64_t> access : accesses) {
      SmallVector<Value> values;
      for (int64_t number : access)
        values.push_back(adaptor.getValue()[number]);
      storeAccess(thread, addresses[access[0]], bytes, values, hints, masks.ofWhole(access));
    }
    if (Value anyPart = masks.ofAnyPart(accesses))
      emitGuarded(thread, anyPart, [&] {
        // Elements that are already stored are stored again.
        for (auto [number, value] : llvm::enumerate(adaptor.getValue()))
          storeAccess(thread, addresses[number], bytes, value, hints, masks.ofElement(number));
      });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void storeAccess(ThreadBuilder &thread, Value address, int64_t bytes,
                          ArrayRef<Value> values, const AccessHints &hints, Value mask) {
    if (!mask && thread.getHooks().isPlain(hints, /*isLoad=*/false))
      return storePlainly(thread, address, bytes, values);
    AccessWords words = makeWords(bytes, values.size());
    thread.getHooks().emitStore(thread, address, words, hints, packWords(thread, words, values),
                                mask);
  }

  static void storePlainly(ThreadBuilder &thread, Value address, int64_t bytes,
                           ArrayRef<Value> values) {
    if (values.size() == 1) {
      thread.create<LLVM::StoreOp>(toMemory(thread, values[0]), address, bytes);
      return;
    }
    Type stored = toMemory(thread, values[0]).getType();
    Type lane = isa<LLVM::LLVMPointerType>(stored) ? thread.intType(64) : stored;
    SmallVector<Value> lanes;
    for (Value value : values)
      lanes.push_back(thread.bitcast(toMemory(thread, value), lane));
    thread.create<LLVM::StoreOp>(buildVector(thread, lanes), address, bytes * values.size());
  }
};

//===----------------------------------------------------------------------===//
// Pointers (of scalars: tiles are taken apart before)
//===----------------------------------------------------------------------===//

struct AddPtrPattern : TilePattern<tile::AddPtrOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::AddPtrOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    int64_t bytes = cast<tile::PointerType>(op.getType()).getPointeeBytes();
    Value offset = thread.extendOrTruncate(adaptor.getOffset(), 64, /*isSigned=*/true);
    Type unit = thread.intType(8 * bytes);
    rewriter.replaceOpWithNewOp<LLVM::GEPOp>(op, adaptor.getPtr().getType(), unit, adaptor.getPtr(),
                                             ArrayRef<LLVM::GEPArg>{offset});
    return success();
  }
};

template <typename SourceOp, typename TargetOp> struct RenamePattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;

  LogicalResult matchAndRewrite(SourceOp op, typename SourceOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<TargetOp>(op, this->getConverter().convertElement(op.getType()),
                                          adaptor.getSource());
    return success();
  }
};

} // namespace

void tessera::populateMemoryPatterns(const TileGPUTypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LoadPattern, StorePattern, AddPtrPattern,
               RenamePattern<tile::PtrToIntOp, LLVM::PtrToIntOp>,
               RenamePattern<tile::IntToPtrOp, LLVM::IntToPtrOp>>(converter);
}
