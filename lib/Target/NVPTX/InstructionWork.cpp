// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InstructionWork.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Operator.h"

#include <algorithm>

using namespace llvm;
using namespace tessera;

static constexpr unsigned kConstantSpace = 4, kParameterSpace = 101;

int WorkOfInstructions::findBase(const Value *address) const {
  for (unsigned steps = 0; steps < 64; ++steps) {
    if (auto *argument = dyn_cast<Argument>(address))
      return argument->getArgNo();
    if (auto *offset = dyn_cast<GEPOperator>(address))
      address = offset->getPointerOperand();
    else if (auto *phi = dyn_cast<PHINode>(address))
      address = phi->getIncomingValue(0);
    else if (auto *select = dyn_cast<SelectInst>(address))
      address = select->getTrueValue();
    else if (auto *cast = dyn_cast<CastInst>(address))
      address = cast->getOperand(0);
    else if (auto *sum = dyn_cast<BinaryOperator>(address); sum && sum->getType()->isIntegerTy(64))
      address = sum->getOperand(0); // of an address as an integer and an offset
    else if (auto *call = dyn_cast<CallInst>(address);
             call && call->getIntrinsicID() == Intrinsic::nvvm_shfl_sync_idx_i32)
      address = call->getArgOperand(1); // half of an address that another lane has computed
    else
      return -1;
  }
  return -1;
}

void WorkOfInstructions::addTerms(const Value *value, int64_t factor, Terms &terms,
                                  unsigned depth) {
  constexpr unsigned kMaxDepth = 12;
  auto *op = dyn_cast<Operator>(value);
  auto add = [&](unsigned operand, int64_t times) {
    addTerms(op->getOperand(operand), factor * times, terms, depth + 1);
  };
  if (isa<ConstantInt>(value))
    return;
  switch (op && depth < kMaxDepth ? op->getOpcode() : 0u) {
  case Instruction::GetElementPtr:
    add(0, 1);
    for (gep_type_iterator it = gep_type_begin(op), end = gep_type_end(op); it != end; ++it)
      if (!it.isStruct())
        addTerms(it.getOperand(), factor * it.getSequentialElementStride(layout).getFixedValue(),
                 terms, depth + 1);
    return;
  case Instruction::Or:
    if (!cast<PossiblyDisjointInst>(op)->isDisjoint())
      break;
    [[fallthrough]];
  case Instruction::Add:
    return add(0, 1), add(1, 1);
  case Instruction::Sub:
    return add(0, 1), add(1, -1);
  case Instruction::SExt:
  case Instruction::ZExt:
  case Instruction::AddrSpaceCast:
    return add(0, 1);
  case Instruction::Mul:
  case Instruction::Shl:
    if (auto *by = dyn_cast<ConstantInt>(op->getOperand(1)); by && by->getBitWidth() <= 64)
      return add(0, op->getOpcode() == Instruction::Mul ? by->getSExtValue()
                                                        : int64_t(1) << (by->getZExtValue() & 63));
    break;
  default:
    break;
  }
  terms[getFirstLike(value, depth)] += factor;
}

const Value *WorkOfInstructions::getFirstLike(const Value *value, unsigned depth) {
  auto *op = dyn_cast<BinaryOperator>(value);
  if (!op || !op->getType()->isIntegerTy())
    return value;
  if (auto found = firstLike.find(value); found != firstLike.end())
    return found->second;
  std::array<Terms, 2> operands;
  for (unsigned i = 0; i < 2; ++i)
    addTerms(op->getOperand(i), 1, operands[i], depth + 1);
  // A bound of a division or a mask, which terms do not have.
  auto *constant = dyn_cast<Constant>(op->getOperand(1));
  const Value *first =
      operations.try_emplace({op->getOpcode(), constant, operands}, value).first->second;
  firstLike[value] = first;
  return first;
}

void WorkOfInstructions::dropCached(const Value *address, SmallVectorImpl<int64_t> &sectors) {
  Terms terms;
  addTerms(address, 1, terms);
  std::set<int64_t> &known = cachedSectors[terms];
  erase_if(sectors, [&](int64_t sector) { return !known.insert(sector).second; });
}

void WorkOfInstructions::addShared(const Value *address, int64_t bytes, bool isLoad,
                                   InstructionWork &work) {
  // Lanes of an access of 8 and 16 bytes take turns by halves and quarters of the warp.
  const Lanes &at = lanes.get(address);
  int64_t groups = std::max<int64_t>(bytes / GPUMachine::kBankBytes, 1);
  int64_t lanesOfGroup = kLanes / std::min<int64_t>(groups, 4), wavefronts = 0;
  for (unsigned first = 0; first < kLanes; first += lanesOfGroup) {
    std::array<SmallSet<int64_t, 8>, GPUMachine::kBanks> words;
    for (unsigned lane = first; lane < first + lanesOfGroup; ++lane)
      for (int64_t word = 0; word < groups; ++word) {
        int64_t number = at[lane] / GPUMachine::kBankBytes + word;
        words[uint64_t(number) % GPUMachine::kBanks].insert(number);
      }
    size_t most = 1;
    for (const auto &bank : words)
      most = std::max(most, bank.size());
    wavefronts += most;
  }
  work.issue();
  work.use[Resource::Shared] += wavefronts;
  work.latency = isLoad ? machine.sharedLatency + wavefronts : rates.latencies.arithmetic;
}

void WorkOfInstructions::addGlobal(const Value *address, int64_t bytes, bool isLoad,
                                   InstructionWork &work, bool isCached) {
  const Lanes &at = lanes.get(address);
  SmallSet<int64_t, 32> places, sectors, lines;
  for (int64_t lane : at) {
    places.insert(lane);
    for (int64_t byte = 0; byte < bytes; byte += GPUMachine::kBankBytes) {
      sectors.insert((lane + byte) / GPUMachine::kSectorBytes);
      lines.insert((lane + byte) / GPUMachine::kLineBytes);
    }
  }
  // Fewer may be a number for each row, which several warps store. Rows that are loaded look the
  // same.
  constexpr size_t kMinPlaces = 8;
  if (!isLoad && places.size() >= kMinPlaces)
    work.stored = double(bytes) * double(places.size());
  if (isLoad)
    work.distinct = double(bytes) * double(places.size());
  work.issue();
  work.base = findBase(address);
  SmallVector<int64_t> moved(sectors.begin(), sectors.end());
  if (isCached)
    dropCached(address, moved);
  SmallSet<int64_t, 32> requested;
  for (int64_t sector : moved)
    requested.insert(sector * GPUMachine::kSectorBytes / GPUMachine::kLineBytes);
  // An access of one lane, or of all lanes to the same place, moves less than a sector of its own.
  work.use[Resource::Global] += lines.size();
  work.use[Resource::Requests] += double(requested.size()) * (isLoad ? 1 : rates.storedLine);
  work.use[isLoad ? Resource::Read : Resource::Written] +=
      double(moved.size()) * GPUMachine::kSectorBytes;
  work.isGlobalLoad = isLoad;
  work.latency = isLoad ? rates.latencies.memory + lines.size() : rates.latencies.arithmetic;
}

void WorkOfInstructions::addAccess(const Value *address, unsigned space, int64_t bytes, bool isLoad,
                                   InstructionWork &work) {
  bytes = std::max<int64_t>(bytes, 1);
  if (space == kSharedSpace)
    addShared(address, bytes, isLoad, work);
  else if (space == kConstantSpace || space == kParameterSpace)
    work.issue();
  else if (isa<Argument>(address->stripInBoundsOffsets()) && space == 0)
    work.issue(); // a parameter
  else
    addGlobal(address, bytes, isLoad, work, /*isCached=*/isLoad);
}

void WorkOfInstructions::addBox(const CallInst &call, bool isLoad, InstructionWork &work) {
  work.issue(4);
  for (const Use &use : call.args())
    if (auto *argument = dyn_cast<Argument>(use->stripPointerCasts()))
      if (argument->hasByValAttr()) {
        double bytes = getBoxBytes(argument->getArgNo());
        work.base = argument->getArgNo();
        work.use[isLoad ? Resource::Read : Resource::Written] += bytes;
        work.use[Resource::AsyncCopy] += bytes;
        (isLoad ? work.distinct : work.stored) = bytes;
      }
}

/// True for a number of 64 bits that has been one of 32.
static bool isNarrow(const Value *value) {
  if (auto *constant = dyn_cast<ConstantInt>(value))
    return constant->getValue().isIntN(32) || constant->getValue().isSignedIntN(32);
  auto *cast = dyn_cast<CastInst>(value);
  return cast && isa<ZExtInst, SExtInst>(cast) && cast->getSrcTy()->getScalarSizeInBits() <= 32;
}

void WorkOfInstructions::addArithmetic(const Instruction &op, InstructionWork &work) {
  Type *type = op.getType(), *scalar = type->getScalarType();
  double count = 1;
  if (auto *vector = dyn_cast<FixedVectorType>(type))
    count = vector->getNumElements();
  bool isHalf = scalar->isHalfTy() || scalar->isBFloatTy();
  if (isHalf && type->isVectorTy())
    count /= 2;
  bool isWide = scalar->getScalarSizeInBits() > 32;
  switch (op.getOpcode()) {
  case Instruction::FAdd:
  case Instruction::FSub:
  case Instruction::FMul:
    if (scalar->isDoubleTy()) {
      work.issue(count);
      work.use[Resource::Doubles] += count;
      work.latency = 2 * rates.latencies.arithmetic;
    } else {
      work.floats(count);
    }
    return;
  case Instruction::FDiv:
    work.functions(count, rates);
    work.floats(7 * count);
    work.latency = 2 * rates.latencies.function;
    if (scalar->isDoubleTy())
      work.use[Resource::Doubles] += 20 * count;
    return;
  case Instruction::FRem:
    work.floats(20 * count);
    return;
  case Instruction::Add:
  case Instruction::Sub:
    work.integers(isWide ? 2 * count : count);
    return;
  case Instruction::Mul: {
    // Halves of 64 bits are multiplied one by one, unless both numbers have 32.
    double products = isWide && !(isNarrow(op.getOperand(0)) && isNarrow(op.getOperand(1))) ? 3 : 1;
    work.issue(products * count);
    work.use[Resource::Floats] += 2 * products * count; // half the rate of the pipe for floats
    return;
  }
  case Instruction::LShr:
  case Instruction::Shl:
    // The other half of 64 bits has a register of its own.
    if (auto *places = dyn_cast<ConstantInt>(op.getOperand(1));
        places && isWide && places->getValue() == 32)
      work.latency = 0;
    else
      work.integers(isWide ? 2 * count : count);
    return;
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem: {
    bool isConstant = isa<Constant>(op.getOperand(1));
    double steps = isConstant ? 4 : 22;
    work.integers((isWide ? 4 : 1) * steps * count);
    if (!isConstant)
      work.functions(2 * count, rates);
    work.latency = rates.latencies.arithmetic * steps;
    return;
  }
  case Instruction::FCmp:
  case Instruction::ICmp:
    work.integers(op.getOperand(0)->getType()->getScalarSizeInBits() > 32 ? 2 : 1);
    return;
  case Instruction::Select:
    if (scalar->isIntegerTy(1))
      work.integers(0.5 * count);
    else
      work.integers(isWide ? 2 * count : count);
    return;
  case Instruction::FPTrunc:
  case Instruction::FPExt:
    work.integers(scalar->isDoubleTy()           ? 4
                  : isHalf || type->isVectorTy() ? count / 2 + 0.5
                                                 : count);
    work.latency = rates.latencies.conversion;
    return;
  case Instruction::SIToFP:
  case Instruction::UIToFP:
  case Instruction::FPToSI:
  case Instruction::FPToUI:
    work.issue(count);
    work.use[Resource::Functions] += count;
    work.latency = rates.latencies.function;
    return;
  case Instruction::FNeg:
  case Instruction::Trunc:
  case Instruction::BitCast:
  case Instruction::AddrSpaceCast:
  case Instruction::PtrToInt:
  case Instruction::IntToPtr:
  case Instruction::PHI:
  case Instruction::Freeze:
  case Instruction::ExtractValue:
  case Instruction::InsertValue:
  case Instruction::ExtractElement:
  case Instruction::Ret:
  case Instruction::Unreachable:
    work.latency = 0;
    return;
  case Instruction::InsertElement:
    work.issue(scalar->getScalarSizeInBits() < 32 ? 0.5 : 0);
    return;
  case Instruction::ZExt:
    work.latency = 0;
    return;
  case Instruction::ShuffleVector:
    work.integers(0.5 * count);
    return;
  case Instruction::GetElementPtr: {
    auto &address = cast<GetElementPtrInst>(op);
    if (address.hasAllConstantIndices())
      work.latency = 0;
    else
      work.integers(address.getPointerAddressSpace() == kSharedSpace ? 1 : 2);
    return;
  }
  case Instruction::Br:
  case Instruction::Switch:
    work.issue(op.getNumSuccessors() > 1 ? 1 : 0);
    return;
  default:
    // Logic, shifts.
    if (scalar->isIntegerTy(1))
      work.integers(0.5 * count);
    else
      work.integers(isWide ? 2 * count : std::max(1.0, count * scalar->getScalarSizeInBits() / 32));
  }
}

/// The bytes of ".v4.b32" and the like.
static int64_t getAccessBytes(StringRef name) {
  int64_t bytes = 4, count = 1;
  for (StringRef part : split(name, '.')) {
    int64_t number = 0;
    if (part.size() > 1 && StringRef("busf").contains(part[0]) &&
        !part.drop_front().getAsInteger(10, number) && number >= 8)
      bytes = number / 8;
    else if (part == "v2" || part == "v4" || part == "v8")
      count = part[1] - '0';
  }
  return bytes * count;
}

/// M, N and K of ".m64n128k16".
static std::array<int64_t, 3> getShape(StringRef name) {
  std::array<int64_t, 3> shape = {0, 0, 0};
  for (StringRef part : split(name, '.')) {
    StringRef rest = part;
    if (rest.consume_front("m") && !rest.consumeInteger(10, shape[0]) && rest.consume_front("n") &&
        !rest.consumeInteger(10, shape[1]) && rest.consume_front("k") &&
        !rest.consumeInteger(10, shape[2]))
      return shape;
  }
  return {0, 0, 0};
}

static MMAElement getElement(StringRef name) {
  if (name.contains(".e4m3") || name.contains(".e5m2"))
    return MMAElement::F8;
  if (name.contains(".s8") || name.contains(".u8"))
    return MMAElement::I8;
  if (name.contains(".tf32"))
    return MMAElement::TF32;
  if (name.contains(".bf16"))
    return MMAElement::BF16;
  if (name.contains(".f64"))
    return MMAElement::F64;
  return MMAElement::F16;
}

/// The address in a call of inline assembly.
static const Value *findAddress(const CallInst &call, unsigned space) {
  for (const Use &use : call.args())
    if (use->getType()->isPointerTy() && use->getType()->getPointerAddressSpace() == space)
      return use;
  for (const Use &use : call.args())
    if (use->getType()->isPointerTy() || use->getType()->isIntegerTy(64))
      return use;
  return call.arg_size() ? call.getArgOperand(0) : nullptr;
}

void WorkOfInstructions::addPTX(StringRef text, const CallInst &call, InstructionWork &work) {
  if (text.consume_front("@"))
    text = text.substr(text.find(' ')).ltrim();
  StringRef name = text.take_until([](char c) { return c == ' ' || c == '\t'; });
  auto begins = [&](StringRef prefix) { return name.starts_with(prefix); };
  if (name.empty() || begins(".reg") || name.ends_with(":") || begins("//"))
    return;
  if (begins("wgmma.mma_async")) {
    auto [m, n, k] = getShape(name);
    if (std::optional<MMAInstruction> mma = machine.findMMA(MMAKind::Warpgroup, getElement(name))) {
      // A warp issues a quarter of it. Operands in shared memory are read once.
      double cycles = double(m * n * k) / double(mma->rate);
      int64_t bits = getBits(getElement(name));
      bool isAInMemory = !text.split('}').second.contains('{');
      double bytes = double((isAInMemory ? m : 0) + n) * double(k * bits) / 8;
      work.issue(2);
      work.use[Resource::Tensor] += cycles / GPUMachine::kWarpsOfWarpgroup;
      work.use[Resource::Shared] +=
          bytes / double(machine.sharedBandwidth) / GPUMachine::kWarpsOfWarpgroup;
      work.latency = std::max(cycles, bytes / double(machine.sharedBandwidth));
    }
    return;
  }
  if (begins("wgmma.wait_group")) {
    work.issue();
    work.latency = rates.latencies.shuffle;
    return;
  }
  if (begins("mma.")) {
    auto [m, n, k] = getShape(name);
    if (std::optional<MMAInstruction> mma = machine.findMMA(MMAKind::Warp, getElement(name))) {
      work.issue();
      work.use[Resource::Tensor] += double(m * n * k) / double(mma->rate);
      work.latency = rates.latencies.warpMMA;
    }
    return;
  }
  if (begins("ldmatrix") || begins("stmatrix")) {
    int64_t count = name.contains(".x4") ? 4 : name.contains(".x2") ? 2 : 1;
    work.issue();
    work.use[Resource::Shared] += count;
    work.latency = begins("ld") ? machine.sharedLatency + count : rates.latencies.arithmetic;
    return;
  }
  if (begins("cp.async.bulk.tensor")) {
    addBox(call, /*isLoad=*/!name.contains("global.shared"), work);
    return;
  }
  if (begins("cp.async.c") && !begins("cp.async.commit")) {
    int64_t bytes = GPUMachine::kMaxAccessBytes;
    SmallVector<StringRef> operands;
    text.split(operands, ',');
    if (operands.size() > 2)
      operands[2].trim(" ;").getAsInteger(10, bytes);
    addGlobal(findAddress(call, kGlobalSpace), bytes, /*isLoad=*/true, work);
    work.isGlobalLoad = false;
    work.latency = rates.latencies.arithmetic;
    double whole = double(bytes) * kLanes;
    work.use[Resource::AsyncCopy] += whole;
    work.use[Resource::Shared] += whole / double(machine.sharedBandwidth);
    return;
  }
  if (begins("mbarrier.try_wait") || begins("mbarrier.test_wait") || begins("cp.async.wait") ||
      begins("barrier") || begins("bar.")) {
    work.issue(2);
    work.use[Resource::Barriers] += 1;
    work.isBarrier = true;
    work.latency = rates.latencies.barrier;
    return;
  }
  if (begins("ld.shared") || begins("st.shared")) {
    addShared(findAddress(call, kSharedSpace), getAccessBytes(name), begins("ld"), work);
    return;
  }
  if (begins("ld.global") || begins("st.global") || begins("ld.relaxed") || begins("ld.acquire") ||
      begins("st.relaxed") || begins("st.release") || begins("ld.volatile")) {
    addGlobal(findAddress(call, kGlobalSpace), getAccessBytes(name), begins("ld"), work,
              /*isCached=*/begins("ld.global"));
    return;
  }
  if (begins("atom.") || begins("red.")) {
    if (name.contains(".shared")) {
      work.issue();
      work.use[Resource::Shared] += machine.costs.atomic;
      work.latency = machine.sharedLatency;
      return;
    }
    addGlobal(findAddress(call, kGlobalSpace), getAccessBytes(name), /*isLoad=*/false, work);
    work.use[Resource::Atomics] += work.use[Resource::Written] / GPUMachine::kSectorBytes;
    work.latency = begins("atom.") ? rates.latencies.memory : rates.latencies.arithmetic;
    return;
  }
  if (begins("shfl") || begins("redux") || begins("match")) {
    work.issue();
    work.use[Resource::Shared] += 1;
    work.latency = rates.latencies.shuffle;
    return;
  }
  if (begins("ex2") || begins("rcp") || begins("rsqrt") || begins("sqrt") || begins("lg2") ||
      begins("sin") || begins("cos") || begins("tanh") || begins("div") || begins("popc")) {
    work.functions(1, rates);
    return;
  }
  if (begins("fma") || begins("mul.f") || begins("add.f") || begins("add.rn") || begins("mul.rn") ||
      begins("mul.bf") || begins("add.bf") || begins("sub.f")) {
    work.floats(1);
    return;
  }
  if (begins("mov") || begins("bra") || begins("mbarrier") || begins("fence") || begins("wgmma") ||
      begins("griddep") || begins("setmaxnreg") || begins("elect") || begins("cp.async") ||
      begins("{") || begins("}") || begins("ret")) {
    work.issue(begins("mov") || begins("{") || begins("}") ? 0 : 1);
    return;
  }
  work.integers(1);
}

void WorkOfInstructions::addAssembly(const CallInst &call, InstructionWork &work) {
  StringRef text = cast<InlineAsm>(call.getCalledOperand())->getAsmString();
  SmallVector<StringRef> lines;
  text.split(lines, ';');
  double latency = 0;
  StringMap<double> dots; // by the name of an accumulator's first word
  for (StringRef line : lines) {
    line = line.trim(" \t\n{}");
    while (line.contains(':') && !line.contains("::"))
      line = line.split(':').second.trim(" \t\n{}");
    work.latency = rates.latencies.arithmetic;
    addPTX(line, call, work);
    if (line.starts_with("wgmma.mma_async"))
      work.latency = dots[line.split('{').second.split(',').first] += work.latency;
    if (!line.empty())
      latency = std::max(latency, work.latency);
  }
  work.latency = latency;
}

void WorkOfInstructions::addCall(const CallInst &call, InstructionWork &work) {
  Type *scalar = call.getType()->getScalarType();
  double count = 1;
  if (auto *vector = dyn_cast<FixedVectorType>(call.getType()))
    count = vector->getNumElements() * (scalar->getScalarSizeInBits() <= 16 ? 0.5 : 1);
  switch (call.getIntrinsicID()) {
  case Intrinsic::not_intrinsic:
    work.issue(20);
    return;
  case Intrinsic::fma:
  case Intrinsic::fmuladd:
    if (scalar->isDoubleTy()) {
      work.issue(count);
      work.use[Resource::Doubles] += count;
    } else {
      work.floats(count);
    }
    return;
  case Intrinsic::exp2:
  case Intrinsic::log2:
  case Intrinsic::sin:
  case Intrinsic::cos:
  case Intrinsic::sqrt:
    work.functions(count, rates);
    work.floats(count);
    return;
  case Intrinsic::fabs:
  case Intrinsic::assume:
  case Intrinsic::copysign:
  case Intrinsic::dbg_value:
    work.latency = 0;
    return;
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
  case Intrinsic::nvvm_barrier_cta_sync_aligned_count:
  case Intrinsic::nvvm_cp_async_wait_all:
  case Intrinsic::nvvm_cp_async_wait_group:
  case Intrinsic::nvvm_cp_async_bulk_wait_group:
    work.issue(2);
    work.use[Resource::Barriers] += 1;
    work.isBarrier = true;
    work.latency = rates.latencies.barrier;
    return;
  case Intrinsic::nvvm_barrier_cluster_wait:
  case Intrinsic::nvvm_barrier_cluster_wait_aligned:
    work.issue(2);
    work.use[Resource::Barriers] += 1;
    work.isBarrier = true;
    work.latency = rates.latencies.cluster;
    return;
  default:
    break;
  }
  StringRef name = call.getCalledFunction() ? call.getCalledFunction()->getName() : "";
  if (!name.consume_front("llvm.nvvm.")) {
    work.integers(count);
    return;
  }
  if (name.starts_with("read.ptx") || name.starts_with("fence") || name.starts_with("elect") ||
      name.contains("commit") || name.starts_with("bar.warp") || name.starts_with("mbarrier") ||
      name.starts_with("cp.async.bulk.wait")) {
    work.issue();
    return;
  }
  if (name.starts_with("cp.async.bulk.tensor") || name.starts_with("cp.async.bulk.")) {
    addBox(call, /*isLoad=*/name.contains("g2s") || name.contains("global.to"), work);
    return;
  }
  if (name.starts_with("cp.async.c")) {
    int64_t bytes = name.contains(".16") ? 16 : name.contains(".8") ? 8 : 4;
    addGlobal(call.getArgOperand(1), bytes, /*isLoad=*/true, work);
    work.isGlobalLoad = false;
    work.latency = rates.latencies.arithmetic;
    work.use[Resource::AsyncCopy] += double(bytes) * kLanes;
    work.use[Resource::Shared] += double(bytes) * kLanes / double(machine.sharedBandwidth);
    return;
  }
  if (name.starts_with("shfl") || name.starts_with("redux") || name.starts_with("match")) {
    work.issue();
    work.use[Resource::Shared] += 1;
    work.latency = rates.latencies.shuffle;
    return;
  }
  if (name.starts_with("mma.") || name.starts_with("ldmatrix") || name.starts_with("stmatrix")) {
    addPTX(name, call, work);
    return;
  }
  if (name.contains("ex2") || name.contains("rcp") || name.contains("sqrt") ||
      name.contains("lg2") || name.contains("sin") || name.contains("cos") ||
      name.contains("tanh") || name.contains("div")) {
    work.functions(count, rates);
    return;
  }
  if (name.starts_with("fma") || name.starts_with("add") || name.starts_with("mul")) {
    work.floats(count);
    return;
  }
  work.integers(count);
}

InstructionWork WorkOfInstructions::get(const Instruction &op) {
  InstructionWork work;
  work.latency = rates.latencies.arithmetic;
  const DataLayout &layout = op.getDataLayout();
  if (auto *load = dyn_cast<LoadInst>(&op)) {
    addAccess(load->getPointerOperand(), load->getPointerAddressSpace(),
              layout.getTypeStoreSize(load->getType()).getFixedValue(), /*isLoad=*/true, work);
  } else if (auto *store = dyn_cast<StoreInst>(&op)) {
    addAccess(store->getPointerOperand(), store->getPointerAddressSpace(),
              layout.getTypeStoreSize(store->getValueOperand()->getType()).getFixedValue(),
              /*isLoad=*/false, work);
  } else if (isa<AtomicRMWInst, AtomicCmpXchgInst>(op)) {
    const Value *address = op.getOperand(0);
    unsigned space = address->getType()->getPointerAddressSpace();
    if (space == kSharedSpace) {
      work.issue();
      work.use[Resource::Shared] += machine.costs.atomic;
      work.latency = machine.sharedLatency;
    } else {
      addGlobal(address, 4, /*isLoad=*/false, work);
      work.use[Resource::Atomics] += work.use[Resource::Written] / GPUMachine::kSectorBytes;
      work.latency = op.use_empty() ? rates.latencies.arithmetic : rates.latencies.memory;
    }
  } else if (auto *call = dyn_cast<CallInst>(&op)) {
    if (call->isInlineAsm())
      addAssembly(*call, work);
    else
      addCall(*call, work);
  } else {
    addArithmetic(op, work);
  }
  return work;
}
