// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores through pointers. Pointers, mask and `other` of a load are
// broadcast together; a store fixes the shape by its pointers, since a pointer
// repeated would be written more than once.

#include "MemoryOptions.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Frontend/TileBuilder.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Options given as strings
//===----------------------------------------------------------------------===//

/// The entry called `name`; the error lists the names (E048).
template <typename T>
static T lookUp(StringRef what, StringRef name, ArrayRef<std::pair<StringRef, T>> table) {
  for (auto [key, value] : table)
    if (key == name)
      return value;
  std::string valid;
  for (auto [key, value] : table)
    if (!key.empty())
      valid += (valid.empty() ? "\"" : ", \"") + key.str() + "\"";
  throw UserError("E048", ("unknown " + what + " '" + name + "'").str(), "valid are " + valid);
}

tile::CacheModifier tessera::parseCacheModifier(StringRef text, bool isStore) {
  using C = tile::CacheModifier;
  StringRef name = text;
  name.consume_front(".");
  static const std::pair<StringRef, C> ofLoad[] = {
      {"", C::None}, {"ca", C::CA}, {"cg", C::CG}, {"cs", C::CS}, {"cv", C::CV}};
  static const std::pair<StringRef, C> ofStore[] = {
      {"", C::None}, {"wb", C::WB}, {"cg", C::CG}, {"cs", C::CS}, {"wt", C::WT}};
  return isStore ? lookUp<C>("cache modifier of a store", name, ofStore)
                 : lookUp<C>("cache modifier of a load", name, ofLoad);
}

tile::EvictionPolicy tessera::parseEvictionPolicy(StringRef text) {
  using E = tile::EvictionPolicy;
  static const std::pair<StringRef, E> table[] = {{"", E::Normal},
                                                  {"evict_normal", E::Normal},
                                                  {"evict_first", E::First},
                                                  {"evict_last", E::Last}};
  return lookUp<E>("eviction policy", text, table);
}

tile::Padding tessera::parsePadding(StringRef text, DType dtype) {
  using P = tile::Padding;
  static const std::pair<StringRef, P> table[] = {
      {"", P::Zero}, {"zero", P::Zero}, {"nan", P::NaN}};
  tile::Padding padding = lookUp<P>("padding option", text, table);
  if (padding == P::NaN && !isFloat(dtype))
    throw UserError("E048", ("padding with NaN of " + getName(dtype)).str(),
                    "only floats are padded with NaN; write padding_option=\"zero\"");
  return padding;
}

tile::MemSemantic tessera::parseMemSemantic(StringRef text, tile::MemSemantic byDefault,
                                            ArrayRef<tile::MemSemantic> valid) {
  using S = tile::MemSemantic;
  SmallVector<std::pair<StringRef, S>> table = {{"", byDefault}};
  for (S semantic : valid)
    table.push_back({tile::stringifyMemSemantic(semantic), semantic});
  try {
    return lookUp<S>("memory semantic", text, table);
  } catch (UserError &error) {
    error.id = "E047";
    throw;
  }
}

tile::MemScope tessera::parseMemScope(StringRef text) {
  using S = tile::MemScope;
  static const std::pair<StringRef, S> table[] = {
      {"", S::GPU}, {"gpu", S::GPU}, {"cta", S::CTA}, {"sys", S::System}};
  try {
    return lookUp<S>("memory scope", text, table);
  } catch (UserError &error) {
    error.id = "E047";
    throw;
  }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

const ValueType &tessera::requirePointer(const Operand &ptr, StringRef user) {
  if (ptr.isValue() && ptr.value().type.isPointer())
    return ptr.value().type;
  throw UserError("E044", (user + " of " + ptr.describe() + ", which is no pointer").str(),
                  "pass a pointer, or a tile of pointers made by adding offsets to one");
}

void tessera::requireWritable(const ValueType &pointer, StringRef user) {
  if (pointer.isConst)
    throw UserError("E046", (user + " through " + toString(pointer)).str(),
                    "the parameter is annotated as const; drop that to store through it");
}

void tessera::checkMask(const Operand &mask, StringRef user) {
  if (mask.isNone() || (mask.isIntegerLiteral() && mask.type().dtype == DType::Int1))
    return;
  // 0 and 1 stand for False and True.
  if (mask.isIntegerLiteral() && literalFits(mask, DType::Int1))
    return;
  if (mask.isValue() && mask.value().type.isNumber() && mask.value().type.dtype == DType::Int1)
    return;
  throw UserError("E045", ("the mask of " + user + " is " + mask.describe() + ", not bool").str(),
                  "compare it: mask != 0");
}

bool tessera::isNumberOperand(const Operand &x) {
  return x.isLiteral() || (x.isValue() && x.value().type.isNumber());
}

/// The value of a store or the `other` of a load: what can be cast to the pointee.
static void requireValue(const Operand &x, StringRef what) {
  if (!isNumberOperand(x))
    throw UserError("E045", (what + " is " + x.describe() + ", not a number").str(),
                    "cast a pointer to int64 first");
}

/// An address is stored as the 64-bit integer that it is.
static bool isAddressFor(const Operand &x, const ValueType &pointer) {
  return x.isValue() && x.value().type.isPointer() && isInteger(pointer.dtype) &&
         getBitWidth(pointer.dtype) == 64;
}

void tessera::checkBroadcastsTo(const Operand &x, const ValueType &pointer, StringRef what) {
  if (!x.isValue())
    return;
  const ValueType &type = x.value().type;
  size_t rank = type.shape.size();
  bool fits = rank <= pointer.shape.size();
  if (fits)
    for (auto [from, to] : llvm::zip(type.shape, ArrayRef(pointer.shape).take_back(rank)))
      fits &= from == 1 || from == to;
  if (!fits)
    throw UserError("E045",
                    (what + " of " + toString(type) + " does not fit " + toString(pointer)).str(),
                    "the pointers fix the shape: broadcast them, or reduce the value");
}

Value MemoryBuilder::maskOf(const Operand &mask, Integers shape) {
  if (mask.isNone() || (mask.isLiteral() && mask.integer() == 1))
    return {};
  return convert(mask, DType::Int1, shape).ir;
}

//===----------------------------------------------------------------------===//
// Load and store
//===----------------------------------------------------------------------===//

TileValue MemoryBuilder::load(const Operand &ptr, const Operand &mask, const Operand &other,
                              Integers boundaryCheck, StringRef padding, StringRef cache,
                              StringRef evict, bool isVolatile) {
  if (ptr.isValue() && ptr.value().type.kind == TypeKind::BlockPointer) {
    if (!mask.isNone() || !other.isNone())
      throw UserError("E045", "a load through a block pointer takes neither mask nor other",
                      "write boundary_check and padding_option");
    return loadBlock(ptr.value(), boundaryCheck, padding, cache, evict);
  }
  ValueType pointer = requirePointer(ptr, "load");
  if (!boundaryCheck.empty() || !padding.empty())
    throw UserError("E045",
                    "boundary_check and padding_option are for block pointers, not for " +
                        toString(pointer),
                    "write mask and other");
  if (mask.isNone() && !other.isNone())
    throw UserError("E045", "load has `other` but no mask", "give a mask, or drop other");
  checkMask(mask, "load");
  if (!other.isNone())
    requireValue(other, "`other` of load");
  auto cacheModifier = parseCacheModifier(cache, /*isStore=*/false);
  auto evictionPolicy = parseEvictionPolicy(evict);

  ValueType wide = pointer;
  for (const Operand *x : {&mask, &other}) {
    if (!x->isValue())
      continue;
    if (pointer.shape.empty() && !x->value().type.shape.empty())
      throw UserError("E045",
                      "load through the scalar " + toString(pointer) + " has a mask or other of " +
                          toString(x->value().type),
                      "add a tile of offsets to the pointer");
    wide.shape = broadcastShapes(wide, x->value().type);
  }
  ValueType type = ValueType::number(pointer.dtype, wide.shape);
  Value pointers = repeat(ptr.value(), wide.shape).ir;
  Value maskValue = maskOf(mask, wide.shape);
  Value otherValue;
  if (!other.isNone() && maskValue)
    otherValue = elementsFor(other, pointer.dtype, wide.shape);
  auto op = create<tile::LoadOp>(pointers, maskValue, otherValue);
  op.setCache(cacheModifier);
  op.setEvict(evictionPolicy);
  op.setIsVolatile(isVolatile);
  return {op, type};
}

void MemoryBuilder::store(const Operand &ptr, const Operand &value, const Operand &mask,
                          Integers boundaryCheck, StringRef cache, StringRef evict) {
  if (ptr.isValue() && ptr.value().type.kind == TypeKind::BlockPointer) {
    if (!mask.isNone())
      throw UserError("E045", "a store through a block pointer takes no mask",
                      "write boundary_check");
    requireWritable(ptr.value().type, "store");
    requireValue(value, "the value stored");
    return storeBlock(ptr.value(), value, boundaryCheck, cache, evict);
  }
  ValueType pointer = requirePointer(ptr, "store");
  requireWritable(pointer, "store");
  if (!boundaryCheck.empty())
    throw UserError("E045", "boundary_check is for block pointers, not for " + toString(pointer),
                    "write a mask");
  if (isAddressFor(value, pointer))
    return store(ptr, cast(value, ValueType::number(pointer.dtype)), mask, boundaryCheck, cache,
                 evict);
  requireValue(value, "the value stored");
  checkMask(mask, "store");
  checkBroadcastsTo(value, pointer, "a value");
  checkBroadcastsTo(mask, pointer, "a mask");
  auto cacheModifier = parseCacheModifier(cache, /*isStore=*/true);
  auto evictionPolicy = parseEvictionPolicy(evict);
  Value stored = elementsFor(value, pointer.dtype, pointer.shape);
  create<tile::StoreOp>(ptr.value().ir, stored, maskOf(mask, pointer.shape), cacheModifier,
                        evictionPolicy);
}

/// An integer is stored as a cast converts it, so -1 sets all bits of an unsigned type. But it is
/// an error if the cast drops significant bits.
static void checkBitsFit(const Operand &literal, DType dtype) {
  if (!literal.isIntegerLiteral() || isFloat(dtype) || dtype == DType::Int1)
    return;
  unsigned width = getBitWidth(dtype);
  __int128 low = -(__int128(1) << (width - 1)), high = (__int128(1) << width) - 1;
  if (literal.integer() < low || literal.integer() > high)
    throw UserError("E028",
                    literal.describe() + " does not fit the " + std::to_string(width) +
                        " bits of " + getName(dtype).str(),
                    "use memory of a wider type, or mask the constant");
}

Value MemoryBuilder::elementsFor(const Operand &value, DType dtype, Integers shape) {
  if (value.isLiteral())
    checkBitsFit(value, dtype);
  if (value.isLiteral() && !literalFits(value, dtype))
    return repeat(castElements(toTensor(value), dtype), shape).ir;
  return convert(value, dtype, shape).ir;
}
