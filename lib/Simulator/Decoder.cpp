// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions, blocks, constants, and what only regroups scalars.

#include "Decoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Dominance.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include "Machine.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

// The bits of undefined values: neither small nor a valid address.
static constexpr uint64_t kRubbish = 0xdeadbeefcafef00d;

SmallVector<Type> simulator::getScalars(Type type) {
  SmallVector<Type> scalars;
  auto repeat = [&](Type element, int64_t count) {
    SmallVector<Type> each = getScalars(element);
    for (int64_t i = 0; i < count; ++i)
      llvm::append_range(scalars, each);
  };
  if (auto structType = dyn_cast<LLVM::LLVMStructType>(type)) {
    for (Type member : structType.getBody())
      llvm::append_range(scalars, getScalars(member));
  } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    repeat(array.getElementType(), array.getNumElements());
  } else if (auto vector = dyn_cast<VectorType>(type)) {
    repeat(vector.getElementType(), vector.getNumElements());
  } else if (type.isInteger(128)) {
    repeat(IntegerType::get(type.getContext(), 64), 2);
  } else if (!isa<LLVM::LLVMVoidType>(type)) {
    scalars.push_back(type);
  }
  return scalars;
}

unsigned simulator::getWidth(Type scalar) {
  if (isa<LLVM::LLVMPointerType>(scalar))
    return 64;
  if (!scalar.isIntOrFloat())
    return 0;
  return scalar.getIntOrFloatBitWidth();
}

Decoder::Decoder(ModuleOp module, Image &image) : module(module), image(image) {}

void Decoder::refuse(const Twine &what) const {
  UserError error("E068", ("the simulator does not know " + what).str(), "run the kernel on a GPU");
  error.location = describeLocation(current);
  throw error;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

const Registers &Decoder::get(Value value) {
  auto found = values.find(value);
  if (found == values.end())
    refuse("a use of '" + value.getDefiningOp()->getName().getStringRef() + "' before it");
  return found->second;
}

Registers Decoder::getEach(ValueRange values) {
  Registers registers;
  for (Value value : values)
    registers.push_back(getScalar(value));
  return registers;
}

Registers Decoder::define(Value value) {
  Registers registers;
  for (Type scalar : getScalars(value.getType())) {
    if (getWidth(scalar) == 0 || getWidth(scalar) > 64)
      refuse("values of " + llvm::Twine(getWidth(scalar)) + " bits");
    registers.push_back(newRegister());
  }
  values[value] = registers;
  return registers;
}

Register Decoder::constant(uint64_t bits) {
  auto [found, isNew] = constants.try_emplace(bits, 0);
  if (isNew) {
    Row row;
    std::fill_n(row.lane, kLanes, bits);
    image.constants.push_back(row);
    found->second = ~static_cast<Register>(image.constants.size() - 1);
  }
  return found->second;
}

Register Decoder::undefined(unsigned width) { return constant(kRubbish & maskOf(width)); }

Instr &Decoder::emit(Handler run, ArrayRef<Register> results, ArrayRef<Register> operands,
                     Flow flow) {
  Instr instr;
  instr.run = run;
  instr.flow = flow;
  instr.number = image.numInstrs++;
  instr.results.assign(results.begin(), results.end());
  instr.operands.assign(operands.begin(), operands.end());
  instr.op = current;
  code->instrs.push_back(std::move(instr));
  return code->instrs.back();
}

void Decoder::predicate(size_t first, Register predicate, bool isNegated) {
  for (Instr &instr : MutableArrayRef<Instr>(code->instrs).drop_front(first)) {
    instr.predicate = predicate;
    instr.isNegated = isNegated;
  }
}

//===----------------------------------------------------------------------===//
// Globals and functions
//===----------------------------------------------------------------------===//

/// Every type is aligned to its size, as in the data layout of NVPTX.
uint64_t Decoder::alignmentOf(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return alignmentOf(array.getElementType());
  if (auto structType = dyn_cast<LLVM::LLVMStructType>(type)) {
    uint64_t largest = 1;
    if (!structType.isPacked())
      for (Type member : structType.getBody())
        largest = std::max(largest, alignmentOf(member));
    return largest;
  }
  return llvm::PowerOf2Ceil(sizeOf(type));
}

uint64_t Decoder::sizeOf(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return array.getNumElements() * sizeOf(array.getElementType());
  if (auto vector = dyn_cast<VectorType>(type))
    return llvm::PowerOf2Ceil(vector.getNumElements() * sizeOf(vector.getElementType()));
  if (auto structType = dyn_cast<LLVM::LLVMStructType>(type)) {
    uint64_t bytes = 0;
    for (Type member : structType.getBody()) {
      if (!structType.isPacked())
        bytes = llvm::alignTo(bytes, alignmentOf(member));
      bytes += sizeOf(member);
    }
    return llvm::alignTo(bytes, alignmentOf(type));
  }
  return llvm::divideCeil(getWidth(type), 8);
}

uint32_t Decoder::allocateLocal(uint64_t bytes, uint64_t alignment) {
  uint64_t at = llvm::alignTo(code->localBytes, std::max<uint64_t>(alignment, 1));
  code->localBytes = static_cast<uint32_t>(llvm::alignTo(at + bytes, 16));
  return static_cast<uint32_t>(at);
}

const Code *Decoder::findFunction(StringRef name) const {
  auto found = image.functions.find(name.str());
  return found == image.functions.end() ? nullptr : found->second.get();
}

std::optional<uint64_t> Decoder::findGlobal(StringRef name) const {
  auto found = globals.find(name.str());
  return found == globals.end() ? std::nullopt : std::optional<uint64_t>(found->second);
}

/// The bytes of a constant: of a text, or of numbers of whole bytes.
static std::optional<std::string> readConstant(LLVM::GlobalOp global) {
  if (auto text = dyn_cast_or_null<StringAttr>(global.getValueAttr()))
    return text.str();
  auto numbers = dyn_cast_or_null<DenseElementsAttr>(global.getValueAttr());
  if (!numbers || !global.getConstant() || !numbers.getElementType().isIntOrFloat() ||
      numbers.getElementType().getIntOrFloatBitWidth() % 8 != 0)
    return std::nullopt;
  ArrayRef<char> raw = numbers.getRawData();
  std::string data(raw.begin(), raw.end());
  if (numbers.isSplat())
    for (int64_t i = 1; i < numbers.getNumElements(); ++i)
      data.append(raw.begin(), raw.end());
  return data;
}

/// True if a global is variable, and zero at first.
static bool isZeroed(LLVM::GlobalOp global) {
  Block *block = global.getInitializerBlock();
  auto end = block ? dyn_cast<LLVM::ReturnOp>(block->getTerminator()) : LLVM::ReturnOp();
  return end && !global.getConstant() && end.getArg() && end.getArg().getDefiningOp<LLVM::ZeroOp>();
}

/// Shared memory of known size comes first, then what the launch gives.
void Decoder::placeGlobals() {
  uint64_t shared = 0;
  std::vector<LLVM::GlobalOp> dynamic;
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    current = global;
    Type type = global.getGlobalType();
    if (global.getAddrSpace() == static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared)) {
      auto array = dyn_cast<LLVM::LLVMArrayType>(type);
      if (array && array.getNumElements() == 0) {
        dynamic.push_back(global);
        continue;
      }
      shared = llvm::alignTo(shared, global.getAlignment().value_or(alignmentOf(type)));
      globals[global.getName().str()] = shared;
      shared += sizeOf(type);
      continue;
    }
    if (isZeroed(global)) {
      ModuleMemory &memory = image.memory.emplace_back();
      uint64_t alignment = std::max<uint64_t>(1, global.getAlignment().value_or(alignmentOf(type)));
      memory.size = sizeOf(type);
      memory.bytes = std::make_unique<uint8_t[]>(memory.size + alignment);
      memory.begin = llvm::alignTo(reinterpret_cast<uint64_t>(memory.bytes.get()), alignment);
      globals[global.getName().str()] = memory.begin;
      continue;
    }
    std::optional<std::string> data = readConstant(global);
    if (!data)
      continue; // an error where it is used
    image.data.push_back(std::move(*data));
    globals[global.getName().str()] = reinterpret_cast<uint64_t>(image.data.back().data());
  }
  shared = llvm::alignTo(shared, 1024);
  for (LLVM::GlobalOp global : dynamic)
    globals[global.getName().str()] = shared;
  if (auto bytes = module->getAttrOfType<IntegerAttr>("tilegpu.shared_bytes"))
    shared += bytes.getInt();
  image.sharedBytes = static_cast<uint32_t>(shared);
}

void Decoder::run() {
  placeGlobals();
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal()) {
      auto made = std::make_unique<Code>();
      made->name = function.getName().str();
      image.functions[made->name] = std::move(made);
    }
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      decode(function);
}

/// The blocks of a function in an order in which only the jump back of a loop goes back. Structured
/// control flow is in such an order already, all of a loop before its continuation. Any other
/// function takes the order of a depth-first search.
static SmallVector<Block *> orderBlocks(Region &region) {
  SmallVector<Block *> blocks;
  for (Block &block : region)
    blocks.push_back(&block);
  if (blocks.size() == 1)
    return blocks;
  DominanceInfo dominance(region.getParentOp());
  DenseMap<Block *, unsigned> position;
  for (auto [i, block] : llvm::enumerate(blocks))
    position[block] = i;
  for (Block *block : blocks)
    for (Block *successor : block->getSuccessors())
      if (position[successor] <= position[block] && !dominance.dominates(successor, block)) {
        llvm::ReversePostOrderTraversal<Region *> traversal(&region);
        return SmallVector<Block *>(traversal.begin(), traversal.end());
      }
  return blocks;
}

void Decoder::decode(LLVM::LLVMFuncOp function) {
  code = image.functions[function.getName().str()].get();
  values.clear();
  current = function;
  for (BlockArgument argument : function.getArguments())
    llvm::append_range(code->arguments, define(argument));

  SmallVector<Block *> blocks = orderBlocks(function.getBody());
  DenseMap<Block *, unsigned> order;
  for (auto [i, block] : llvm::enumerate(blocks)) {
    order[block] = i;
    if (i != 0)
      for (BlockArgument argument : block->getArguments())
        define(argument);
  }
  SmallVector<uint32_t> starts;
  for (Block *block : blocks) {
    starts.push_back(code->instrs.size());
    for (Operation &op : block->without_terminator()) {
      current = &op;
      decode(op);
    }
    current = block->getTerminator();
    decodeTerminator(*current, order);
  }
  for (Edge &edge : code->edges)
    edge.target = starts[edge.block];
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

Edge Decoder::makeEdge(Block *block, ValueRange operands,
                       const DenseMap<Block *, unsigned> &order) {
  Edge edge;
  edge.block = order.lookup(block);
  SmallVector<Register> written;
  for (auto [argument, operand] : llvm::zip_equal(block->getArguments(), operands))
    for (auto [to, from] : llvm::zip_equal(get(argument), get(operand))) {
      if (to == from)
        continue;
      edge.isParallel |= llvm::is_contained(written, from);
      written.push_back(to);
      edge.copies.push_back({to, from});
    }
  return edge;
}

/// The number of the edge that a lane takes.
static void chooseEdge(Warp &warp, const Instr &instr, Lanes lanes) {
  const auto &cases = *static_cast<const SmallVector<uint64_t> *>(instr.detail);
  const uint64_t *value = warp.in(instr, 1);
  uint64_t *choice = warp.out(instr);
  forEachLane(
      lanes, [&](unsigned lane) { choice[lane] = llvm::find(cases, value[lane]) - cases.begin(); });
}

void Decoder::decodeTerminator(Operation &op, const DenseMap<Block *, unsigned> &order) {
  if (auto branch = dyn_cast<LLVM::BrOp>(op)) {
    Edge edge = makeEdge(branch.getDest(), branch.getDestOperands(), order);
    emit(nullptr, {}, {}, Flow::Branch).firstEdge = code->edges.size();
    code->edges.push_back(std::move(edge));
    return;
  }
  if (auto branch = dyn_cast<LLVM::CondBrOp>(op)) {
    Edge whenFalse = makeEdge(branch.getFalseDest(), branch.getFalseDestOperands(), order);
    Edge whenTrue = makeEdge(branch.getTrueDest(), branch.getTrueDestOperands(), order);
    emit(nullptr, {}, {getScalar(branch.getCondition())}, Flow::Branch).firstEdge =
        code->edges.size();
    code->edges.push_back(std::move(whenFalse));
    code->edges.push_back(std::move(whenTrue));
    return;
  }
  if (auto choice = dyn_cast<LLVM::SwitchOp>(op)) {
    SmallVector<uint64_t> cases;
    SmallVector<Edge> edges;
    if (choice.getCaseValues())
      for (const APInt &value : choice.getCaseValues()->getValues<APInt>())
        cases.push_back(value.getZExtValue());
    for (auto [block, operands] :
         llvm::zip_equal(choice.getCaseDestinations(), choice.getCaseOperands()))
      edges.push_back(makeEdge(block, operands, order));
    edges.push_back(makeEdge(choice.getDefaultDestination(), choice.getDefaultOperands(), order));
    Register number = newRegister();
    Instr &instr = emit(chooseEdge, {number}, {number, getScalar(choice.getValue())}, Flow::Branch);
    instr.firstEdge = code->edges.size();
    instr.detail = keep(std::move(cases));
    for (Edge &edge : edges)
      code->edges.push_back(std::move(edge));
    return;
  }
  if (auto result = dyn_cast<LLVM::ReturnOp>(op)) {
    Registers operands;
    for (Value value : result.getOperands())
      llvm::append_range(operands, get(value));
    emit(nullptr, {}, operands, Flow::Return);
    return;
  }
  if (isa<LLVM::UnreachableOp>(op)) {
    emit(nullptr, {}, {}, Flow::Return);
    return;
  }
  refuse("'" + op.getName().getStringRef() + "'");
}

//===----------------------------------------------------------------------===//
// Constants and aggregates
//===----------------------------------------------------------------------===//

static void appendBits(Attribute attribute, SmallVectorImpl<uint64_t> &bits) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return bits.push_back(integer.getValue().getZExtValue());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return bits.push_back(number.getValue().bitcastToAPInt().getZExtValue());
  if (auto dense = dyn_cast<DenseIntElementsAttr>(attribute)) {
    for (const APInt &value : dense.getValues<APInt>())
      bits.push_back(value.getZExtValue());
    return;
  }
  if (auto dense = dyn_cast<DenseFPElementsAttr>(attribute)) {
    for (const APFloat &value : dense.getValues<APFloat>())
      bits.push_back(value.bitcastToAPInt().getZExtValue());
    return;
  }
  if (auto list = dyn_cast<ArrayAttr>(attribute))
    for (Attribute item : list)
      appendBits(item, bits);
}

/// The first scalar of a member in an aggregate, and its number of scalars.
static std::pair<size_t, size_t> findMember(Type type, ArrayRef<int64_t> position) {
  size_t first = 0;
  for (int64_t index : position) {
    if (auto structType = dyn_cast<LLVM::LLVMStructType>(type)) {
      for (int64_t i = 0; i < index; ++i)
        first += getScalars(structType.getBody()[i]).size();
      type = structType.getBody()[index];
    } else {
      type = cast<LLVM::LLVMArrayType>(type).getElementType();
      first += index * getScalars(type).size();
    }
  }
  return {first, getScalars(type).size()};
}

/// Between scalars of different widths: the bits of all of them, one after another.
static void repack(Warp &warp, const Instr &instr, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    SmallVector<uint64_t> words(instr.operands.size() * instr.fromWidth / 64 + 2);
    auto move = [&](size_t at, unsigned width, uint64_t *value, bool isWrite) {
      size_t word = at / 64;
      unsigned shift = at % 64; // no scalar crosses words: widths are powers of two
      if (isWrite)
        words[word] |= *value << shift;
      else
        *value = words[word] >> shift & maskOf(width);
    };
    for (size_t i = 0; i < instr.operands.size(); ++i) {
      uint64_t value = warp.in(instr, i)[lane];
      move(i * instr.fromWidth, instr.fromWidth, &value, true);
    }
    for (size_t i = 0; i < instr.results.size(); ++i)
      move(i * instr.width, instr.width, &warp.out(instr, i)[lane], false);
  });
}

static void pickElement(Warp &warp, const Instr &instr, Lanes lanes) {
  size_t count = instr.operands.size() - 1;
  const uint64_t *index = warp.in(instr, count);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = index[lane] < count ? warp.in(instr, index[lane])[lane] : kRubbish & instr.mask;
  });
}

static void placeElement(Warp &warp, const Instr &instr, Lanes lanes) {
  size_t count = instr.results.size();
  const uint64_t *value = warp.in(instr, count), *index = warp.in(instr, count + 1);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t *old = warp.in(instr, i);
    uint64_t *result = warp.out(instr, i);
    forEachLane(lanes,
                [&](unsigned lane) { result[lane] = index[lane] == i ? value[lane] : old[lane]; });
  }
}

static std::optional<uint64_t> getConstantIndex(Value value) {
  IntegerAttr attribute;
  if (auto constant = value.getDefiningOp<LLVM::ConstantOp>())
    attribute = dyn_cast<IntegerAttr>(constant.getValue());
  if (!attribute)
    return std::nullopt;
  return attribute.getValue().getZExtValue();
}

/// True for an operation that is no more than a name for registers, or a constant.
static bool decodeRegrouping(Decoder &decoder, Operation &op) {
  auto result = [&] { return op.getResult(0); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](LLVM::ConstantOp constant) {
        SmallVector<Type> scalars = getScalars(constant.getType());
        SmallVector<uint64_t> bits;
        if (constant.getType().isInteger(128)) {
          APInt value = cast<IntegerAttr>(constant.getValue()).getValue();
          bits = {value.extractBitsAsZExtValue(64, 0), value.extractBitsAsZExtValue(64, 64)};
        } else {
          appendBits(constant.getValue(), bits);
        }
        if (bits.size() == 1)
          bits.assign(scalars.size(), uint64_t(bits.front()));
        if (bits.size() != scalars.size())
          decoder.refuse("this constant");
        Registers registers;
        for (uint64_t value : bits)
          registers.push_back(decoder.constant(value));
        decoder.alias(result(), registers);
        return true;
      })
      .Case([&](LLVM::ZeroOp) {
        decoder.alias(result(),
                      Registers(getScalars(result().getType()).size(), decoder.constant(0)));
        return true;
      })
      .Case<LLVM::UndefOp, LLVM::PoisonOp>([&](auto) {
        Registers registers;
        for (Type scalar : getScalars(result().getType()))
          registers.push_back(decoder.undefined(getWidth(scalar)));
        decoder.alias(result(), registers);
        return true;
      })
      .Case([&](LLVM::FreezeOp) {
        decoder.alias(result(), decoder.get(op.getOperand(0)));
        return true;
      })
      .Case([&](LLVM::AddressOfOp address) {
        std::optional<uint64_t> place = decoder.findGlobal(address.getGlobalName());
        if (!place)
          decoder.refuse("the global '" + address.getGlobalName() + "'");
        decoder.alias(result(), {decoder.constant(*place)});
        return true;
      })
      .Case([&](LLVM::ExtractValueOp extract) {
        auto [first, count] = findMember(extract.getContainer().getType(), extract.getPosition());
        const Registers &all = decoder.get(extract.getContainer());
        decoder.alias(result(), Registers(all.begin() + first, all.begin() + first + count));
        return true;
      })
      .Case([&](LLVM::InsertValueOp insert) {
        auto [first, count] = findMember(insert.getType(), insert.getPosition());
        Registers all = decoder.get(insert.getContainer());
        llvm::copy(decoder.get(insert.getValue()), all.begin() + first);
        decoder.alias(result(), all);
        return true;
      })
      .Case([&](LLVM::ExtractElementOp extract) {
        Registers all = decoder.get(extract.getVector());
        std::optional<uint64_t> index = getConstantIndex(extract.getPosition());
        if (index && *index < all.size()) {
          decoder.alias(result(), {all[*index]});
          return true;
        }
        all.push_back(decoder.getScalar(extract.getPosition()));
        decoder.emit(pickElement, decoder.define(result()), all);
        return true;
      })
      .Case([&](LLVM::InsertElementOp insert) {
        Registers all = decoder.get(insert.getVector());
        std::optional<uint64_t> index = getConstantIndex(insert.getPosition());
        if (index && *index < all.size()) {
          all[*index] = decoder.getScalar(insert.getValue());
          decoder.alias(result(), all);
          return true;
        }
        all.push_back(decoder.getScalar(insert.getValue()));
        all.push_back(decoder.getScalar(insert.getPosition()));
        decoder.emit(placeElement, decoder.define(result()), all);
        return true;
      })
      .Case([&](LLVM::ShuffleVectorOp shuffle) {
        Registers all = decoder.get(shuffle.getV1()), chosen;
        llvm::append_range(all, decoder.get(shuffle.getV2()));
        for (int32_t index : shuffle.getMask())
          chosen.push_back(index < 0 ? decoder.constant(0) : all[index]);
        decoder.alias(result(), chosen);
        return true;
      })
      .Case([&](LLVM::BitcastOp cast) {
        Registers from = decoder.get(cast.getArg());
        SmallVector<Type> old = getScalars(cast.getArg().getType()),
                          scalars = getScalars(cast.getType());
        if (old.size() == scalars.size()) {
          decoder.alias(result(), from);
          return true;
        }
        Instr &instr = decoder.emit(repack, decoder.define(result()), from);
        instr.fromWidth = getWidth(old.front());
        instr.width = getWidth(scalars.front());
        return true;
      })
      .Default([](Operation *) { return false; });
}

void Decoder::decode(Operation &op) {
  if (decodeRegrouping(*this, op) || decodeInteger(*this, op) || decodeFloat(*this, op) ||
      decodeMemory(*this, op) || decodeWarp(*this, op) || decodeMatrix(*this, op) ||
      decodeAsync(*this, op) || decodeWarpgroup(*this, op) || decodeTransaction(*this, op) ||
      decodeBulk(*this, op) || decodeTensorMap(*this, op) || decodeCluster(*this, op) ||
      decodeInlinePTX(*this, op) || decodeCalls(*this, op))
    return;
  refuse("'" + op.getName().getStringRef() + "'");
}
