// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers, predicates and addresses. Lanes hold them zero-extended. Cases that LLVM leaves
// undefined (division by zero, shifts past the width) have the language's meaning.

#include "Decoder.h"
#include "InlinePTX.h"
#include "Machine.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

template <typename Op> void unary(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = Op::apply(a[lane], instr) & instr.mask; });
}

template <typename Op> void binary(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = Op::apply(a[lane], b[lane], instr) & instr.mask;
  });
}

template <typename Op> void compare(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = Op::apply(a[lane], b[lane], instr); });
}

int64_t asSigned(uint64_t value, const Instr &instr) { return signExtend(value, instr.width); }

#define BINARY(Name, expression)                                                                   \
  struct Name {                                                                                    \
    static uint64_t apply(uint64_t a, uint64_t b, const Instr &i) { return expression; }           \
  };
BINARY(Add, a + b)
BINARY(Sub, a - b)
BINARY(Mul, a *b)
BINARY(And, a &b)
BINARY(Or, a | b)
BINARY(Xor, a ^ b)
BINARY(Shl, b >= i.width ? 0 : a << b)
BINARY(LShr, b >= i.width ? 0 : a >> b)
BINARY(AShr, asSigned(a, i) >> std::min<uint64_t>(b, i.width - 1))
BINARY(UDiv, b == 0 ? ~0ull : a / b)
BINARY(URem, b == 0 ? a : a % b)
BINARY(SDiv, b == 0        ? ~0ull
             : b == i.mask ? 0 - a
                           : static_cast<uint64_t>(asSigned(a, i) / asSigned(b, i)))
BINARY(SRem, b == 0 ? a : b == i.mask ? 0 : static_cast<uint64_t>(asSigned(a, i) % asSigned(b, i)))
BINARY(SMax, asSigned(a, i) > asSigned(b, i) ? a : b)
BINARY(SMin, asSigned(a, i) < asSigned(b, i) ? a : b)
BINARY(UMax, std::max(a, b))
BINARY(UMin, std::min(a, b))
BINARY(Eq, a == b)
BINARY(Ne, a != b)
BINARY(Ult, a < b)
BINARY(Ule, a <= b)
BINARY(Slt, asSigned(a, i) < asSigned(b, i))
BINARY(Sle, asSigned(a, i) <= asSigned(b, i))
#undef BINARY

#define UNARY(Name, expression)                                                                    \
  struct Name {                                                                                    \
    static uint64_t apply(uint64_t a, const Instr &i) { return expression; }                       \
  };
UNARY(Truncate, a)
UNARY(SignExtend, static_cast<uint64_t>(signExtend(a, i.fromWidth)))
UNARY(Absolute, asSigned(a, i) < 0 ? 0 - a : a)
UNARY(CountLeading, a == 0 ? i.width : static_cast<unsigned>(__builtin_clzll(a)) - (64 - i.width))
UNARY(CountTrailing, a == 0 ? i.width : static_cast<unsigned>(__builtin_ctzll(a)))
UNARY(CountOnes, static_cast<unsigned>(__builtin_popcountll(a)))
UNARY(SwapBytes, __builtin_bswap64(a) >> (64 - i.width))
UNARY(ReverseBits, __builtin_bitreverse64(a) >> (64 - i.width))
#undef UNARY

void selectValue(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *condition = warp.in(instr, 0), *a = warp.in(instr, 1), *b = warp.in(instr, 2);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = condition[lane] ? a[lane] : b[lane]; });
}

/// The high word of two, shifted left (`immediate` 1: the low one of those shifted right).
void funnelShift(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *high = warp.in(instr, 0), *low = warp.in(instr, 1), *by = warp.in(instr, 2);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    auto both = static_cast<unsigned __int128>(high[lane]) << instr.width | low[lane];
    unsigned amount = by[lane] % instr.width;
    both = instr.immediate ? both >> amount : (both << amount) >> instr.width;
    result[lane] = static_cast<uint64_t>(both) & instr.mask;
  });
}

/// base + index * immediate, the index sign-extended.
void advance(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *base = warp.in(instr, 0), *index = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    auto distance = static_cast<uint64_t>(signExtend(index[lane], instr.fromWidth));
    result[lane] = (base[lane] + distance * static_cast<uint64_t>(instr.immediate)) & instr.mask;
  });
}

void moveWindow(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *from = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = from[lane] + static_cast<uint64_t>(instr.immediate);
  });
}

void addWithCarry(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *sum = warp.out(instr, 0), *carry = warp.out(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    auto wide = static_cast<unsigned __int128>(a[lane]) + b[lane];
    sum[lane] = static_cast<uint64_t>(wide) & instr.mask;
    carry[lane] = (wide >> instr.width) != 0;
  });
}

void multiplyWithCarry(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *product = warp.out(instr, 0), *carry = warp.out(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    auto wide = static_cast<unsigned __int128>(a[lane]) * b[lane];
    product[lane] = static_cast<uint64_t>(wide) & instr.mask;
    carry[lane] = (wide >> instr.width) != 0;
  });
}

/// One instruction a scalar of the result; scalar operands go to all of them.
void emitEach(Decoder &decoder, Operation &op, Handler run, int64_t immediate = 0,
              unsigned numOperands = ~0u) {
  Registers results = decoder.define(op.getResult(0));
  SmallVector<Type> scalars = getScalars(op.getResult(0).getType());
  for (size_t i = 0; i < results.size(); ++i) {
    Registers operands;
    for (Value operand : op.getOperands().take_front(std::min(numOperands, op.getNumOperands()))) {
      const Registers &all = decoder.get(operand);
      operands.push_back(all[all.size() == 1 ? 0 : i]);
    }
    Instr &instr = decoder.emit(run, results[i], operands);
    instr.width = getWidth(scalars[i]);
    instr.mask = maskOf(instr.width);
    instr.fromWidth = getWidth(getScalars(op.getOperand(0).getType()).front());
    instr.immediate = immediate;
  }
}

/// Comparisons: the width is the operands'.
void emitCompare(Decoder &decoder, LLVM::ICmpOp op) {
  using P = LLVM::ICmpPredicate;
  static const std::map<P, std::pair<Handler, bool>> table = {
      {P::eq, {compare<Eq>, false}},   {P::ne, {compare<Ne>, false}},
      {P::ult, {compare<Ult>, false}}, {P::ule, {compare<Ule>, false}},
      {P::ugt, {compare<Ult>, true}},  {P::uge, {compare<Ule>, true}},
      {P::slt, {compare<Slt>, false}}, {P::sle, {compare<Sle>, false}},
      {P::sgt, {compare<Slt>, true}},  {P::sge, {compare<Sle>, true}},
  };
  auto [run, isSwapped] = table.at(op.getPredicate());
  Registers results = decoder.define(op.getResult());
  const Registers &lhs = decoder.get(op.getLhs()), &rhs = decoder.get(op.getRhs());
  for (size_t i = 0; i < results.size(); ++i) {
    SmallVector<Register, 2> operands{lhs[i], rhs[i]};
    if (isSwapped)
      std::swap(operands[0], operands[1]);
    Instr &instr = decoder.emit(run, results[i], operands);
    instr.width = getWidth(getScalars(op.getLhs().getType())[i]);
    instr.mask = maskOf(instr.width);
  }
}

void emitGEP(Decoder &decoder, LLVM::GEPOp op) {
  Register address = decoder.getScalar(op.getBase());
  Type type = op.getElemType();
  int64_t bytes = 0;
  bool isFirst = true;
  for (auto index : op.getIndices()) {
    int64_t scale = 0, known = 0;
    auto fixed = dyn_cast<IntegerAttr>(index);
    if (fixed)
      known = fixed.getInt();
    if (isFirst) {
      scale = static_cast<int64_t>(decoder.sizeOf(type));
    } else if (auto structType = dyn_cast<LLVM::LLVMStructType>(type)) {
      for (auto [i, member] : llvm::enumerate(structType.getBody())) {
        if (!structType.isPacked())
          bytes = llvm::alignTo(bytes, decoder.alignmentOf(member));
        if (static_cast<int64_t>(i) == known)
          break;
        bytes += decoder.sizeOf(member);
      }
      type = structType.getBody()[known];
      known = 0;
    } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      type = array.getElementType();
      scale = static_cast<int64_t>(decoder.sizeOf(type));
    } else {
      decoder.refuse("this address computation");
    }
    isFirst = false;
    bytes += known * scale;
    if (fixed)
      continue;
    Value value = cast<Value>(index);
    Register moved = decoder.newRegister();
    Instr &instr = decoder.emit(advance, moved, {address, decoder.getScalar(value)});
    instr.fromWidth = getWidth(value.getType());
    instr.immediate = scale;
    address = moved;
  }
  if (bytes != 0) {
    Register moved = decoder.newRegister();
    decoder.emit(moveWindow, moved, address).immediate = bytes;
    address = moved;
  }
  // 32 bits are all that an address of shared memory has.
  decoder.alias(op.getResult(), {address});
}

/// Addresses of shared and local memory become generic ones by moving into a window.
bool emitAddressCast(Decoder &decoder, LLVM::AddrSpaceCastOp op) {
  auto spaceOf = [](Type type) { return cast<LLVM::LLVMPointerType>(type).getAddressSpace(); };
  unsigned from = spaceOf(op.getArg().getType()), to = spaceOf(op.getType());
  auto window = [](unsigned space) {
    return space == 3 || space == 7 ? kSharedWindow : space == 5 ? kLocalWindow : 0;
  };
  uint64_t distance = window(from) - window(to);
  // An address of the block's own shared memory is one of the cluster's, too.
  if (from != 0 && to != 0 && from != to && !(from == 3 && to == 7) && !(from == 7 && to == 3))
    decoder.refuse("this cast of addresses");
  if (distance == 0) {
    decoder.alias(op.getResult(), decoder.get(op.getArg()));
    return true;
  }
  decoder.emit(moveWindow, decoder.define(op.getResult()), decoder.getScalar(op.getArg()))
      .immediate = static_cast<int64_t>(distance);
  return true;
}

//===----------------------------------------------------------------------===//
// 128 bits: what the high half of a product takes
//===----------------------------------------------------------------------===//

/// `immediate`: the sign is that of the operand.
void widen(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *low = warp.out(instr, 0), *high = warp.out(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    int64_t value = signExtend(a[lane], instr.fromWidth);
    low[lane] = instr.immediate ? static_cast<uint64_t>(value) : a[lane];
    high[lane] = instr.immediate && value < 0 ? ~0ull : 0;
  });
}

void multiplyWide(Warp &warp, const Instr &instr, Lanes lanes) {
  auto join = [&](unsigned at, unsigned lane) {
    return static_cast<unsigned __int128>(warp.in(instr, at + 1)[lane]) << 64 |
           warp.in(instr, at)[lane];
  };
  forEachLane(lanes, [&](unsigned lane) {
    unsigned __int128 product = join(0, lane) * join(2, lane);
    warp.out(instr, 0)[lane] = static_cast<uint64_t>(product);
    warp.out(instr, 1)[lane] = static_cast<uint64_t>(product >> 64);
  });
}

bool isWide(Type type) { return type.isInteger(128); }

/// Extensions, products, shifts by half the width and truncations.
bool decodeWide(Decoder &decoder, Operation &op) {
  Value result = op.getResult(0), operand = op.getOperand(0);
  if (isa<LLVM::ZExtOp, LLVM::SExtOp>(op)) {
    Instr &instr = decoder.emit(widen, decoder.define(result), decoder.getScalar(operand));
    instr.fromWidth = getWidth(operand.getType());
    instr.immediate = isa<LLVM::SExtOp>(op);
    return true;
  }
  if (isa<LLVM::MulOp>(op)) {
    Registers operands = decoder.get(operand);
    llvm::append_range(operands, decoder.get(op.getOperand(1)));
    decoder.emit(multiplyWide, decoder.define(result), operands);
    return true;
  }
  if (isa<LLVM::LShrOp, LLVM::AShrOp>(op)) {
    auto by = op.getOperand(1).getDefiningOp<LLVM::ConstantOp>();
    auto amount = by ? dyn_cast<IntegerAttr>(by.getValue()) : IntegerAttr();
    if (!amount || amount.getValue() != 64)
      return false;
    // Only the low half of the result is used.
    decoder.alias(result, {decoder.get(operand)[1], decoder.undefined(64)});
    return true;
  }
  if (isa<LLVM::TruncOp>(op) && getWidth(result.getType()) == 64) {
    decoder.alias(result, {decoder.getScalar(operand)});
    return true;
  }
  return false;
}

template <typename Op> void emitWithCarry(Decoder &decoder, Op op, Handler run) {
  Registers results = decoder.define(op->getResult(0));
  Instr &instr = decoder.emit(
      run, results, {decoder.getScalar(op->getOperand(0)), decoder.getScalar(op->getOperand(1))});
  instr.width = getWidth(op->getOperand(0).getType());
  instr.mask = maskOf(instr.width);
}

} // namespace

Handler simulator::findIntegerHandler(StringRef opcode, bool isSigned) {
  return llvm::StringSwitch<Handler>(opcode)
      .Case("add", binary<Add>)
      .Case("sub", binary<Sub>)
      .Case("mul", binary<Mul>)
      .Case("and", binary<And>)
      .Case("or", binary<Or>)
      .Case("xor", binary<Xor>)
      .Case("shl", binary<Shl>)
      .Case("shr", isSigned ? binary<AShr> : binary<LShr>)
      .Case("max", isSigned ? binary<SMax> : binary<UMax>)
      .Case("min", isSigned ? binary<SMin> : binary<UMin>)
      .Case("popc", unary<CountOnes>)
      .Case("clz", unary<CountLeading>)
      .Case("brev", unary<ReverseBits>)
      .Default(nullptr);
}

bool simulator::decodeInteger(Decoder &decoder, Operation &op) {
  if (op.getNumResults() == 1 && op.getNumOperands() != 0 &&
      (isWide(op.getResult(0).getType()) || isWide(op.getOperand(0).getType())))
    return decodeWide(decoder, op);
  auto each = [&](Handler run, int64_t immediate = 0, unsigned numOperands = ~0u) {
    emitEach(decoder, op, run, immediate, numOperands);
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](LLVM::AddOp) { return each(binary<Add>); })
      .Case([&](LLVM::SubOp) { return each(binary<Sub>); })
      .Case([&](LLVM::MulOp) { return each(binary<Mul>); })
      .Case([&](LLVM::AndOp) { return each(binary<And>); })
      .Case([&](LLVM::OrOp) { return each(binary<Or>); })
      .Case([&](LLVM::XOrOp) { return each(binary<Xor>); })
      .Case([&](LLVM::ShlOp) { return each(binary<Shl>); })
      .Case([&](LLVM::LShrOp) { return each(binary<LShr>); })
      .Case([&](LLVM::AShrOp) { return each(binary<AShr>); })
      .Case([&](LLVM::UDivOp) { return each(binary<UDiv>); })
      .Case([&](LLVM::URemOp) { return each(binary<URem>); })
      .Case([&](LLVM::SDivOp) { return each(binary<SDiv>); })
      .Case([&](LLVM::SRemOp) { return each(binary<SRem>); })
      .Case([&](LLVM::SMaxOp) { return each(binary<SMax>); })
      .Case([&](LLVM::SMinOp) { return each(binary<SMin>); })
      .Case([&](LLVM::UMaxOp) { return each(binary<UMax>); })
      .Case([&](LLVM::UMinOp) { return each(binary<UMin>); })
      .Case([&](LLVM::SelectOp) { return each(selectValue); })
      .Case<LLVM::TruncOp, LLVM::ZExtOp>([&](auto) { return each(unary<Truncate>); })
      .Case([&](LLVM::SExtOp) { return each(unary<SignExtend>); })
      .Case([&](LLVM::AbsOp) { return each(unary<Absolute>, 0, 1); })
      .Case([&](LLVM::CountLeadingZerosOp) { return each(unary<CountLeading>, 0, 1); })
      .Case([&](LLVM::CountTrailingZerosOp) { return each(unary<CountTrailing>, 0, 1); })
      .Case([&](LLVM::CtPopOp) { return each(unary<CountOnes>); })
      .Case([&](LLVM::ByteSwapOp) { return each(unary<SwapBytes>); })
      .Case([&](LLVM::BitReverseOp) { return each(unary<ReverseBits>); })
      .Case([&](LLVM::FshlOp) { return each(funnelShift, 0); })
      .Case([&](LLVM::FshrOp) { return each(funnelShift, 1); })
      .Case([&](LLVM::UAddWithOverflowOp carry) {
        emitWithCarry(decoder, carry, addWithCarry);
        return true;
      })
      .Case([&](LLVM::UMulWithOverflowOp carry) {
        emitWithCarry(decoder, carry, multiplyWithCarry);
        return true;
      })
      .Case<LLVM::PtrToIntOp, LLVM::IntToPtrOp>([&](auto) { return each(unary<Truncate>); })
      .Case([&](LLVM::AddrSpaceCastOp cast) { return emitAddressCast(decoder, cast); })
      .Case([&](LLVM::ICmpOp comparison) {
        emitCompare(decoder, comparison);
        return true;
      })
      .Case([&](LLVM::GEPOp gep) {
        emitGEP(decoder, gep);
        return true;
      })
      .Default([](Operation *) { return false; });
}
