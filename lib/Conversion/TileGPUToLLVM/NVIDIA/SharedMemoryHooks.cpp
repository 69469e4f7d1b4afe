// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hooks that move tiles to, from and within shared memory: matrices of 8 x 8, asynchronous copies,
// TMA, and the barriers that count arrivals.

#include "Fragments/Fragment.h"
#include "InlinePTX.h"
#include "NVIDIAHooks.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// Words are 32 bits of 16-bit parts, whatever the elements are.
static std::pair<NVVM::MMALayout, NVVM::LdStMatrixShapeAttr> getForm(ThreadBuilder &thread,
                                                                     bool isTransposed) {
  return {isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
          NVVM::LdStMatrixShapeAttr::get(thread.getBuilder().getContext(), 8, 8)};
}

SmallVector<Value> NVIDIAHooks::emitLoadMatrices(ThreadBuilder &thread, Value address,
                                                 unsigned count, bool isTransposed) const {
  Type word = thread.intType(32), result = word;
  if (count > 1)
    result = LLVM::LLVMStructType::getLiteral(thread.getBuilder().getContext(),
                                              SmallVector<Type>(count, word));
  auto [form, shape] = getForm(thread, isTransposed);
  Value loaded = thread.create<NVVM::LdMatrixOp>(result, address, count, form, shape,
                                                 NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {loaded};
  SmallVector<Value> words;
  for (unsigned matrix = 0; matrix < count; ++matrix)
    words.push_back(thread.create<LLVM::ExtractValueOp>(loaded, matrix));
  return words;
}

void NVIDIAHooks::emitStoreMatrices(ThreadBuilder &thread, Value address, ArrayRef<Value> words,
                                    bool isTransposed) const {
  auto [form, shape] = getForm(thread, isTransposed);
  thread.create<NVVM::StMatrixOp>(address, words, form, shape, NVVM::LdStMatrixEltType::B16);
}

Value NVIDIAHooks::emitRemoteAddress(ThreadBuilder &thread, Type type, Value pointer,
                                     Value block) const {
  return thread.create<NVVM::MapaOp>(type, pointer, block);
}

//===----------------------------------------------------------------------===//
// Asynchronous copies of threads
//===----------------------------------------------------------------------===//

Value NVIDIAHooks::emitCachePolicy(ThreadBuilder &thread, tile::EvictionPolicy policy) const {
  std::string text =
      "createpolicy.fractional.L2::" + tile::stringifyEvictionPolicy(policy).str() + ".b64 $0;";
  // The same number everywhere. It is made where the function begins: LLVM moves no text out of
  // the branch of a copy, and makes one of many.
  OpBuilder &builder = thread.getBuilder();
  OpBuilder::InsertionGuard guard(builder);
  Operation *function = builder.getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  builder.setInsertionPointToStart(&function->getRegion(0).front());
  MLIRContext *context = builder.getContext();
  return thread
      .create<LLVM::InlineAsmOp>(TypeRange(thread.intType(64)), ValueRange(), text, "=l",
                                 /*has_side_effects=*/false,
                                 /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                 LLVM::AsmDialectAttr::get(context, LLVM::AsmDialect::AD_ATT),
                                 /*operand_attrs=*/ArrayAttr())
      .getRes();
}

void NVIDIAHooks::emitAsyncCopy(ThreadBuilder &thread, Value to, Value from, int64_t bytes,
                                bool keepsInL1, Value size, Value policy) const {
  auto cache = bytes == GPUMachine::kMaxAsyncCopyBytes && !keepsInL1
                   ? NVVM::LoadCacheModifierKind::CG
                   : NVVM::LoadCacheModifierKind::CA;
  if (!policy) {
    thread.create<NVVM::CpAsyncOp>(to, from, static_cast<uint32_t>(bytes), cache, size);
    return;
  }
  InlinePTX instruction(thread);
  std::string text = "cp.async." + stringifyLoadCacheModifierKind(cache).str() +
                     ".shared.global.L2::cache_hint [" + instruction.addOperand(to) + "], [";
  text += instruction.addOperand(from) + "], " + std::to_string(bytes);
  if (size)
    text += ", " + instruction.addOperand(size);
  instruction.emit(text + ", " + instruction.addOperand(policy) + ";");
}

void NVIDIAHooks::emitAsyncCommit(ThreadBuilder &thread) const {
  thread.create<NVVM::CpAsyncCommitGroupOp>();
}

void NVIDIAHooks::emitAsyncWait(ThreadBuilder &thread, unsigned pending) const {
  thread.create<NVVM::CpAsyncWaitGroupOp>(pending);
}

void NVIDIAHooks::emitAsyncProxyFence(ThreadBuilder &thread, bool ofMemory) const {
  MLIRContext *context = thread.getBuilder().getContext();
  if (ofMemory) {
    thread.create<NVVM::FenceProxyOp>(NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async),
                                      NVVM::SharedSpaceAttr());
    return;
  }
  auto space = NVVM::SharedSpaceAttr::get(context, NVVM::SharedSpace::shared_cta);
  auto kind = NVVM::ProxyKindAttr::get(context, NVVM::ProxyKind::async_shared);
  thread.create<NVVM::FenceProxyOp>(kind, space);
}

//===----------------------------------------------------------------------===//
// TMA
//===----------------------------------------------------------------------===//

/// One lane says what is in the map. A field that no instruction names is zero.
static void emitFields(ThreadBuilder &thread, Value shared, const TensorMapFields &fields) {
  auto replace = [&](const Twine &field, unsigned bits, const Twine &number, Value value) {
    InlinePTX instruction(thread);
    std::string to = instruction.addOperand(shared), what = instruction.addOperand(value);
    instruction.emit(("tensormap.replace.tile." + field + ".shared::cta.b1024.b" + Twine(bits) +
                      " [" + to + "], " + number + what + ";")
                         .str());
  };
  // Those of which PTX wants a constant.
  auto choose = [&](const Twine &field, unsigned value) {
    InlinePTX instruction(thread);
    std::string to = instruction.addOperand(shared);
    instruction.emit(("tensormap.replace.tile." + field + ".shared::cta.b1024.b32 [" + to + "], " +
                      Twine(value) + ";")
                         .str());
  };
  unsigned rank = fields.extents.size();
  replace("global_address", 64, "", thread.bitcast(fields.base, thread.intType(64)));
  // Counted from 0.
  choose("rank", rank - 1);
  for (unsigned dim = 0; dim < rank; ++dim) {
    std::string number = std::to_string(dim) + ", ";
    replace("box_dim", 32, number, thread.i32(fields.box[dim]));
    replace("global_dim", 32, number, fields.extents[dim]);
    replace("element_stride", 32, number, thread.i32(1));
    if (dim + 1 < rank)
      replace("global_stride", 64, number, fields.strides[dim]);
  }
  // Bits of an element are copied as they are: integers without a sign, of 1 to 8 bytes.
  choose("elemtype", fields.elementBytes == 8 ? 4 : llvm::Log2_32(fields.elementBytes));
  choose("interleave_layout", 0);
  choose("swizzle_mode", fields.swizzleBytes ? llvm::Log2_32(fields.swizzleBytes / 16) : 0);
  choose("fill_mode", 0);
}

void NVIDIAHooks::emitTensorMap(ThreadBuilder &thread, Value shared, Value memory,
                                const TensorMapFields &fields) const {
  Value lane = thread.bitAnd(emitThreadId(thread), GPUMachine::kWarpSize - 1);
  constexpr int32_t kWordBytes = 4;
  thread.create<LLVM::StoreOp>(thread.i32(0), thread.advance(shared, thread.mul(lane, kWordBytes)),
                               kWordBytes);
  emitWarpBarrier(thread);
  emitGuarded(thread, thread.equal(lane, 0), [&] { emitFields(thread, shared, fields); });
  emitWarpBarrier(thread);
  {
    InlinePTX instruction(thread);
    std::string to = instruction.addOperand(memory), from = instruction.addOperand(shared);
    instruction.emit("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
                     ".sync.aligned [" +
                     to + "], [" + from + "], 128;");
  }
  emitTensorMapAcquire(thread, memory);
}

void NVIDIAHooks::emitTensorMapAcquire(ThreadBuilder &thread, Value memory) const {
  // The SM's cached copy of the bytes is stale.
  InlinePTX instruction(thread);
  std::string of = instruction.addOperand(memory);
  instruction.emit("fence.proxy.tensormap::generic.acquire.gpu [" + of + "], 128;");
}

void NVIDIAHooks::emitTMALoad(ThreadBuilder &thread, Value to, Value map,
                              ArrayRef<Value> coordinates, Value barrier, Value policy,
                              std::optional<uint16_t> blocks, Value predicate) const {
  if (!predicate && !blocks) {
    thread.create<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(
        to, map, coordinates, barrier, /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
        /*l2CacheHint=*/policy, NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true,
        NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
    return;
  }
  // If a single thread of a warp runs it: LLVM has no predicated form. Nor has NVVM for a multicast
  // to an address of the block's own, which is one of the cluster, too.
  InlinePTX instruction(thread);
  std::string text = "cp.async.bulk.tensor." + std::to_string(coordinates.size()) +
                     "d.shared::" + (blocks ? "cluster" : "cta") +
                     ".global.tile.mbarrier::complete_tx::bytes" +
                     (blocks ? ".multicast::cluster" : "") + (policy ? ".L2::cache_hint [" : " [") +
                     instruction.addOperand(to) + "], [" + instruction.addOperand(map) + ", {";
  for (auto [number, coordinate] : llvm::enumerate(coordinates))
    text += (number ? ", " : "") + instruction.addOperand(coordinate);
  text += "}], [" + instruction.addOperand(barrier) + "]";
  if (blocks)
    text +=
        ", " + instruction.addOperand(thread.extendOrTruncate(thread.i32(*blocks), /*width=*/16));
  if (policy)
    text += ", " + instruction.addOperand(policy);
  instruction.emit(text + ";", predicate);
}

void NVIDIAHooks::emitTMAStore(ThreadBuilder &thread, Value map, Value from,
                               ArrayRef<Value> coordinates, Value policy) const {
  thread.create<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(map, from, coordinates,
                                                            /*l2CacheHint=*/policy,
                                                            NVVM::TMAStoreMode::TILE,
                                                            /*predicate=*/Value());
}

void NVIDIAHooks::emitTMAStoreCommit(ThreadBuilder &thread) const {
  thread.create<NVVM::CpAsyncBulkCommitGroupOp>();
}

void NVIDIAHooks::emitTMAStoreWait(ThreadBuilder &thread, unsigned pending, bool read) const {
  thread.create<NVVM::CpAsyncBulkWaitGroupOp>(pending,
                                              read ? thread.getBuilder().getUnitAttr() : nullptr);
}

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

void NVIDIAHooks::emitMBarrierInit(ThreadBuilder &thread, Value barrier, Value arrivals,
                                   Value predicate) const {
  InlinePTX instruction(thread);
  std::string address = instruction.addOperand(barrier), count = instruction.addOperand(arrivals);
  instruction.emit("mbarrier.init.shared::cta.b64 [" + address + "], " + count + ";", predicate);
}

void NVIDIAHooks::emitMBarrierInitFence(ThreadBuilder &thread) const {
  thread.create<NVVM::FenceMbarrierInitOp>();
}

/// A try sleeps for up to so many nanoseconds. The label is seen in its braces alone.
void NVIDIAHooks::emitMBarrierWait(ThreadBuilder &thread, Value barrier, Value parity) const {
  InlinePTX instruction(thread);
  std::string address = instruction.addOperand(barrier), phase = instruction.addOperand(parity);
  instruction.emit("{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [" +
                   address + "], " + phase + ", 10000000;\n@!over bra.uni again;\n}");
}

void NVIDIAHooks::emitMBarrierArrive(ThreadBuilder &thread, Value barrier, Value predicate) const {
  InlinePTX instruction(thread);
  std::string address = instruction.addOperand(barrier);
  // An arrival at another block's barrier orders only reads. That costs nothing; an order of writes
  // would be a fence of all memory.
  bool isRemote =
      cast<LLVM::LLVMPointerType>(barrier.getType()).getAddressSpace() == kClusterMemory;
  instruction.emit(std::string("mbarrier.arrive.shared::") + (isRemote ? "cluster" : "cta") +
                       ".b64 _, [" + address + "];",
                   predicate);
}

void NVIDIAHooks::emitMBarrierExpect(ThreadBuilder &thread, Value barrier, Value bytes,
                                     Value predicate) const {
  InlinePTX instruction(thread);
  std::string address = instruction.addOperand(barrier), count = instruction.addOperand(bytes);
  instruction.emit("mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + address + "], " + count + ";",
                   predicate);
}
