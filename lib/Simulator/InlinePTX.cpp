// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inline PTX: a text of instructions, parsed when the function is decoded. The compiler writes a
// small set of instructions. Others are those of users' short texts.

#include "InlinePTX.h"

#include "MemoryOps.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

PTXText::PTXText(Decoder &decoder, LLVM::InlineAsmOp op) : decoder(decoder), op(op) {}

/// `$0` upwards: results, then operands in order. A constraint that is a number ties its
/// operand to that result, which starts out with its value.
void PTXText::bindOperands() {
  if (op.getRes())
    results = decoder.define(op.getRes());
  SmallVector<Type> types = op.getRes() ? getScalars(op.getRes().getType()) : SmallVector<Type>();
  for (auto [reg, type] : llvm::zip_equal(results, types))
    places.push_back({reg, getWidth(type)});
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',');
  size_t next = 0;
  for (StringRef constraint : constraints) {
    if (constraint.empty() || constraint.starts_with("=") || constraint.starts_with("~"))
      continue;
    if (next == op->getNumOperands())
      decoder.refuse("the constraints of this inline PTX");
    Value operand = op->getOperand(next++);
    Register reg = decoder.getScalar(operand);
    unsigned tied;
    if (!constraint.getAsInteger(10, tied) && tied < results.size())
      emitMove(results[tied], reg);
    places.push_back({reg, getWidth(getScalars(operand.getType()).front())});
  }
}

static void move(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *from = warp.in(instr, 0);
  uint64_t *to = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { to[lane] = from[lane] & instr.mask; });
}

void PTXText::emitMove(Register to, Register from) { decoder.emit(move, to, from); }

[[noreturn]] void PTXText::refuse(StringRef statement) const {
  decoder.refuse("the PTX '" + statement + "'");
}

std::optional<PTXOperand> PTXText::parseOperand(StringRef text) {
  text = text.trim();
  PTXOperand operand;
  if (text.starts_with("[") && text.ends_with("]")) {
    operand.kind = PTXOperand::Address;
    // [a + 4], or [map, {x, y}]: what follows the first comma is the instruction's.
    StringRef inner = text.drop_front().drop_back();
    SmallVector<StringRef> parts = splitOperands(inner);
    auto [base, offset] = parts.front().split('+');
    std::optional<PTXOperand> address = parseOperand(base);
    if (!address || address->registers.size() != 1)
      return std::nullopt;
    operand.registers = address->registers;
    operand.width = address->width;
    if (!offset.trim().empty() && offset.trim().getAsInteger(0, operand.offset))
      return std::nullopt;
    for (StringRef part : llvm::drop_begin(parts)) {
      std::optional<PTXOperand> more = parseOperand(part);
      if (!more)
        return std::nullopt;
      llvm::append_range(operand.more, more->registers);
    }
    return operand;
  }
  if (text.starts_with("{") && text.ends_with("}")) {
    operand.kind = PTXOperand::Vector;
    for (StringRef part : splitOperands(text.drop_front().drop_back())) {
      std::optional<PTXOperand> element = parseOperand(part);
      if (!element || element->registers.size() != 1)
        return std::nullopt;
      operand.registers.push_back(element->registers.front());
      operand.width = element->width;
    }
    return operand;
  }
  operand.kind = PTXOperand::Scalar;
  if (text.starts_with("$") && !text.starts_with("$$")) {
    unsigned number;
    if (text.drop_front().getAsInteger(10, number) || number >= places.size())
      return std::nullopt;
    operand.registers.push_back(places[number].first);
    operand.width = places[number].second;
    return operand;
  }
  auto named = names.find(text);
  if (named != names.end()) {
    operand.registers.push_back(named->second.first);
    operand.width = named->second.second;
    return operand;
  }
  int64_t value;
  uint64_t large;
  if (text == "_") {
    operand.registers.push_back(decoder.newRegister());
    operand.width = 64;
  } else if (std::optional<Register> special = decodeSpecialRegister(decoder, text)) {
    operand.registers.push_back(*special);
    operand.width = 32;
  } else if (text.starts_with("0f") && !text.drop_front(2).getAsInteger(16, large)) {
    operand.registers.push_back(decoder.constant(large));
    operand.width = 32;
  } else if (!text.getAsInteger(0, value)) {
    operand.kind = PTXOperand::Immediate;
    operand.registers.push_back(decoder.constant(static_cast<uint64_t>(value)));
    operand.offset = value;
    operand.width = 64;
  } else if (!text.getAsInteger(0, large)) {
    operand.kind = PTXOperand::Immediate;
    operand.registers.push_back(decoder.constant(large));
    operand.width = 64;
  } else {
    return std::nullopt;
  }
  return operand;
}

/// At commas that are in no bracket.
SmallVector<StringRef> PTXText::splitOperands(StringRef text) {
  SmallVector<StringRef> parts;
  int depth = 0;
  size_t first = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '{')
      ++depth;
    else if (text[i] == ']' || text[i] == '}')
      --depth;
    else if (text[i] == ',' && depth == 0) {
      parts.push_back(text.slice(first, i).trim());
      first = i + 1;
    }
  }
  if (!text.trim().empty())
    parts.push_back(text.drop_front(first).trim());
  return parts;
}

void PTXText::declare(StringRef text) {
  // .reg .b32 a, b<2>;
  auto [type, list] = text.drop_front(4).trim().split(' ');
  unsigned width = getPTXWidth(type);
  for (StringRef name : splitOperands(list)) {
    auto [base, count] = name.split('<');
    if (count.empty()) {
      names[name] = {decoder.newRegister(), width};
      continue;
    }
    unsigned number = 0;
    if (count.drop_back().getAsInteger(10, number))
      refuse(text);
    for (unsigned i = 0; i < number; ++i)
      names[(base + Twine(i)).str()] = {decoder.newRegister(), width};
  }
}

/// Bits of a type such as ".b32"; 1 for a predicate, 0 for what is no type.
unsigned simulator::getPTXWidth(StringRef type) {
  type.consume_front(".");
  if (type == "pred")
    return 1;
  if (type == "bf16")
    return 16;
  if (type == "f16x2" || type == "bf16x2")
    return 32;
  unsigned width;
  if (type.empty() || !StringRef("bsuf").contains(type.front()) ||
      type.drop_front().getAsInteger(10, width))
    return 0;
  return width;
}

void PTXText::decode() {
  bindOperands();
  std::string text = op.getAsmString().str();
  StringRef rest = text;
  while (true) {
    rest = rest.ltrim(" \t\r\n;");
    // Braces of a scope; those of an operand never begin a statement.
    if (rest.consume_front("{") || rest.consume_front("}"))
      continue;
    if (rest.empty())
      return;
    size_t end = rest.find(';');
    StringRef statement = rest.take_front(end).trim();
    rest = rest.drop_front(std::min(end, rest.size()));
    if (statement.starts_with(".reg"))
      declare(statement);
    else
      decodeStatement(statement);
  }
}

void PTXText::decodeStatement(StringRef statement) {
  PTXInstr instr;
  instr.text = statement;
  StringRef body = statement;
  // a label, and what comes behind it
  if (size_t colon = body.find(':');
      colon != StringRef::npos && !body.slice(colon, colon + 2).ends_with("::") &&
      body.take_front(colon).find_first_of(" \t\n,[") == StringRef::npos) {
    labels[body.take_front(colon)] = decoder.getNumInstrs();
    body = body.drop_front(colon + 1).trim();
    if (body.empty())
      return;
  }
  if (body.consume_front("@")) {
    instr.isNegated = body.consume_front("!");
    auto [name, rest] = body.split(' ');
    std::optional<PTXOperand> predicate = parseOperand(name);
    if (!predicate)
      refuse(statement);
    instr.predicate = predicate->registers.front();
    body = rest.trim();
  }
  size_t space = body.find_first_of(" \t");
  body.take_front(space).split(instr.words, '.');
  if (instr.words.front() == "bra") {
    if (!decodeLoop(instr, body.drop_front(std::min(space, body.size())).trim()))
      refuse(statement);
    return;
  }
  for (StringRef part : splitOperands(body.drop_front(std::min(space, body.size())))) {
    std::optional<PTXOperand> operand = parseOperand(part);
    if (!operand)
      refuse(statement);
    instr.operands.push_back(*operand);
  }
  size_t first = decoder.getNumInstrs();
  if (!decodeBulkPTX(decoder, instr) && !decodeClusterPTX(decoder, instr) &&
      !decodeMemoryPTX(decoder, instr) && !decodeWarpgroupPTX(decoder, instr) &&
      !decodeAsyncPTX(decoder, instr) && !decodeTransactionPTX(decoder, instr) &&
      !decodeTensorMapPTX(decoder, instr) && !decodeArithmeticPTX(decoder, instr))
    refuse(statement);
  decoder.predicate(first, instr.predicate, instr.isNegated);
}

/// The only jumps are those back to the start of a wait.
bool PTXText::decodeLoop(const PTXInstr &instr, StringRef label) {
  auto target = labels.find(label);
  return target != labels.end() && instr.predicate != kNoRegister && instr.isNegated &&
         decodeWaitLoop(decoder, target->second, instr.predicate);
}

bool simulator::decodeInlinePTX(Decoder &decoder, Operation &op) {
  auto text = dyn_cast<LLVM::InlineAsmOp>(op);
  if (!text)
    return false;
  PTXText(decoder, text).decode();
  return true;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static Space getSpace(const PTXInstr &instr) {
  for (StringRef word : instr.words) {
    if (word == "global" || word == "const")
      return Space::Global;
    if (word == "shared" || word == "shared::cta")
      return Space::Shared;
    if (word == "shared::cluster")
      return Space::Cluster;
    if (word == "local")
      return Space::Local;
  }
  return Space::Generic;
}

static bool isOrdered(const PTXInstr &instr) {
  return llvm::any_of(instr.words, [](StringRef word) {
    return word == "relaxed" || word == "acquire" || word == "release" || word == "acq_rel" ||
           word == "volatile";
  });
}

static Reach getReachOf(const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  return has("cta") ? Reach::Program : has("cluster") ? Reach::Cluster : Reach::Device;
}

static WarpAccess getAccess(const PTXInstr &instr, const PTXOperand &address, unsigned count) {
  WarpAccess access;
  access.space = getSpace(instr);
  access.bytes = getPTXWidth(instr.words.back()) / 8;
  access.count = count;
  access.alignment = access.total();
  access.offset = address.offset;
  access.isAtomic = isOrdered(instr);
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  access.reach = getReachOf(instr);
  access.order = has("acq_rel")   ? Ordering::AcquireRelease
                 : has("acquire") ? Ordering::Acquire
                 : has("release") ? Ordering::Release
                                  : Ordering::Relaxed;
  return access;
}

bool simulator::readAtomicKind(Decoder &decoder, const PTXInstr &instr, WarpAccess &access) {
  StringRef type = instr.words.back();
  char sign = type.front();
  bool isFloat = sign == 'f' || type == "bf16";
  std::optional<AtomicKind> kind;
  for (StringRef word : instr.words)
    if (!kind)
      kind = llvm::StringSwitch<std::optional<AtomicKind>>(word)
                 .Case("exch", AtomicKind::Exchange)
                 .Case("add", isFloat ? AtomicKind::FAdd : AtomicKind::Add)
                 .Case("and", AtomicKind::And)
                 .Case("or", AtomicKind::Or)
                 .Case("xor", AtomicKind::Xor)
                 .Case("max", isFloat       ? AtomicKind::FMax
                              : sign == 's' ? AtomicKind::Max
                                            : AtomicKind::UMax)
                 .Case("min", isFloat       ? AtomicKind::FMin
                              : sign == 's' ? AtomicKind::Min
                                            : AtomicKind::UMin)
                 .Case("inc", AtomicKind::Increment)
                 .Case("dec", AtomicKind::Decrement)
                 .Case("cas", AtomicKind::CAS)
                 .Default(std::nullopt);
  if (!kind || access.bytes == 0 || type.ends_with("x2"))
    return false;
  access.atomic = *kind;
  access.isAtomic = true;
  if (isFloat) {
    Builder builder(decoder.getModule().getContext());
    access.type = access.bytes == 8   ? Type(builder.getF64Type())
                  : access.bytes == 4 ? Type(builder.getF32Type())
                  : type == "bf16"    ? Type(builder.getBF16Type())
                                      : Type(builder.getF16Type());
  }
  return true;
}

static bool decodeAtomic(Decoder &decoder, const PTXInstr &instr) {
  bool hasResult = instr.words.front() == "atom";
  // A vector's elements are added separately.
  size_t count = instr.operands[1 + hasResult].registers.size();
  bool isVector = count > 1;
  WarpAccess access = getAccess(instr, instr.operands[hasResult], count);
  if (!readAtomicKind(decoder, instr, access) ||
      (isVector && (access.atomic != AtomicKind::FAdd || access.total() > 16 ||
                    !llvm::is_contained(instr.words, "v" + std::to_string(count)))) ||
      (hasResult && instr.operands[0].registers.size() != count))
    return false;
  Registers results, operands{instr.operands[hasResult].registers.front()};
  if (hasResult)
    llvm::append_range(results, instr.operands[0].registers);
  for (const PTXOperand &operand : llvm::drop_begin(instr.operands, 1 + hasResult))
    llvm::append_range(operands, operand.registers);
  decoder.emit(runAtomic, results, operands, Flow::Memory).detail = decoder.keep(access);
  return true;
}

bool simulator::decodeMemoryPTX(Decoder &decoder, const PTXInstr &instr) {
  StringRef opcode = instr.words.front();
  size_t count = instr.operands.size();
  if ((opcode == "atom" && count >= 3) || (opcode == "red" && count >= 2))
    return decodeAtomic(decoder, instr);
  if (opcode == "ld" && count == 2) {
    WarpAccess access = getAccess(instr, instr.operands[1], instr.operands[0].registers.size());
    if (access.bytes == 0 || instr.words.back().front() == 's')
      return false;
    Instr &load = decoder.emit(runLoad, instr.operands[0].registers,
                               instr.operands[1].registers.front(), Flow::Memory);
    load.detail = decoder.keep(access);
    return true;
  }
  if (opcode == "st" && count == 2) {
    WarpAccess access = getAccess(instr, instr.operands[0], instr.operands[1].registers.size());
    if (access.bytes == 0)
      return false;
    Registers operands{instr.operands[0].registers.front()};
    llvm::append_range(operands, instr.operands[1].registers);
    decoder.emit(runStore, {}, operands, Flow::Memory).detail = decoder.keep(access);
    return true;
  }
  if (opcode == "membar" || (opcode == "fence" && !llvm::is_contained(instr.words, "proxy") &&
                             !llvm::is_contained(instr.words, "mbarrier_init"))) {
    decoder.emit(runFence, {}, {}, Flow::Memory).immediate =
        static_cast<int64_t>(getReachOf(instr));
    return true;
  }
  if ((opcode == "bar" || opcode == "barrier") && !llvm::is_contained(instr.words, "red") &&
      !llvm::is_contained(instr.words, "cluster") && (count == 1 || count == 2)) {
    Registers operands;
    for (const PTXOperand &operand : instr.operands)
      operands.push_back(operand.registers.front());
    decoder.emit(runBarrier, {}, operands, Flow::Memory).immediate =
        llvm::is_contained(instr.words, "arrive");
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Bytes of two words, chosen by the nibbles of a third.
static void permuteBytes(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1), *chosen = warp.in(instr, 2);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t bytes = (a[lane] & 0xffffffff) | b[lane] << 32, value = 0;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned selector = chosen[lane] >> (4 * i) & 15;
      uint64_t byte = bytes >> (8 * (selector & 7)) & 255;
      if (selector & 8)
        byte = byte & 128 ? 255 : 0;
      value |= byte << (8 * i);
    }
    result[lane] = value;
  });
}

/// Any function of three bits, by its truth table.
static void combineBits(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1), *c = warp.in(instr, 2);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t value = 0;
    for (unsigned row = 0; row < 8; ++row)
      if (instr.immediate >> row & 1)
        value |= (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) &
                 (row & 1 ? c[lane] : ~c[lane]);
    result[lane] = value & instr.mask;
  });
}

bool simulator::decodeArithmeticPTX(Decoder &decoder, const PTXInstr &instr) {
  StringRef opcode = instr.words.front(), type = instr.words.back();
  unsigned width = getPTXWidth(type);
  if (instr.operands.empty() || width == 0)
    return false;
  Registers operands;
  for (const PTXOperand &operand : llvm::drop_begin(instr.operands))
    llvm::append_range(operands, operand.registers);
  auto emit = [&](Handler run) -> Instr & {
    Instr &made = decoder.emit(run, instr.operands[0].registers, operands);
    made.width = made.fromWidth = width;
    made.mask = maskOf(width);
    return made;
  };
  if (opcode == "mov" && operands.size() == 1 && instr.operands[0].registers.size() == 1) {
    emit(move);
    return true;
  }
  if (opcode == "prmt" && operands.size() == 3) {
    emit(permuteBytes);
    return true;
  }
  if (opcode == "lop3" && operands.size() == 4) {
    int64_t table = instr.operands.back().offset;
    operands.pop_back();
    emit(combineBits).immediate = table;
    return true;
  }
  if (instr.words.size() > 2 && opcode != "mul" && opcode != "ex2" && opcode != "rsqrt" &&
      opcode != "sqrt" && opcode != "lg2" && opcode != "rcp" && opcode != "tanh" && opcode != "fma")
    return false;
  if (opcode == "mul" && type.front() != 'f' && !llvm::is_contained(instr.words, "lo"))
    return false;
  bool flushes = opcode == "ex2" && llvm::is_contained(instr.words, "ftz");
  Handler run = type.front() == 'f' || type == "bf16"
                    ? findFloatHandler(decoder, flushes ? "ex2.ftz" : opcode, type)
                    : findIntegerHandler(opcode, type.front() == 's');
  if (!run)
    return false;
  emit(run);
  return true;
}
