// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions, special registers, barriers, what warps do together, and reports, by the
// functions that the driver provides for them.

#include "../Patterns.h"
#include "InlinePTX.h"
#include "NVIDIAHooks.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void NVIDIAHooks::addLegalDialects(ConversionTarget &target) const {
  target.addLegalDialect<NVVM::NVVMDialect>();
}

void NVIDIAHooks::makeKernel(LLVM::LLVMFuncOp function, unsigned threads, unsigned blocks,
                             unsigned residentPrograms) const {
  Builder builder(function.getContext());
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    builder.getDenseI32ArrayAttr({static_cast<int32_t>(threads), 1, 1}));
  if (blocks > 1)
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      builder.getDenseI32ArrayAttr({static_cast<int32_t>(blocks), 1, 1}));
  if (residentPrograms)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      builder.getI32IntegerAttr(static_cast<int32_t>(residentPrograms)));
}

bool NVIDIAHooks::isKernel(LLVM::LLVMFuncOp function) const {
  return function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

void NVIDIAHooks::passByValue(LLVM::LLVMFuncOp function, unsigned argument, Type object,
                              unsigned alignment) const {
  Builder builder(function.getContext());
  function.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(object));
  function.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(alignment));
  function.setArgAttr(argument, NVVM::NVVMDialect::getGridConstantAttrName(),
                      builder.getUnitAttr());
}

std::string NVIDIAHooks::getLibraryFunction(StringRef name, bool isF32) const {
  return ("__nv_" + name + (isF32 ? "f" : "")).str();
}

//===----------------------------------------------------------------------===//
// Special registers, and the grid
//===----------------------------------------------------------------------===//

template <typename X, typename Y, typename Z, typename ClusterX>
static Value emitOfAxis(ThreadBuilder &thread, unsigned axis, bool ofClusters) {
  Type i32 = thread.intType(32);
  if (axis == 0 && ofClusters)
    return thread.create<ClusterX>(i32);
  if (axis == 0)
    return thread.create<X>(i32);
  if (axis == 1)
    return thread.create<Y>(i32);
  return thread.create<Z>(i32);
}

Value NVIDIAHooks::emitThreadId(ThreadBuilder &thread) const {
  return thread.create<NVVM::ThreadIdXOp>(thread.intType(32));
}

Value NVIDIAHooks::emitProgramId(ThreadBuilder &thread, unsigned axis, bool ofClusters) const {
  return emitOfAxis<NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp, NVVM::ClusterIdXOp>(
      thread, axis, ofClusters);
}

Value NVIDIAHooks::emitNumPrograms(ThreadBuilder &thread, unsigned axis, bool ofClusters) const {
  return emitOfAxis<NVVM::GridDimXOp, NVVM::GridDimYOp, NVVM::GridDimZOp, NVVM::ClusterDimXOp>(
      thread, axis, ofClusters);
}

Value NVIDIAHooks::emitBlockOfCluster(ThreadBuilder &thread) const {
  return thread.create<NVVM::ClusterId>(thread.intType(32));
}

Value NVIDIAHooks::emitClock(ThreadBuilder &thread) const {
  InlinePTX ptx(thread);
  std::string result = ptx.addResult(thread.intType(64));
  return ptx.emit("mov.u64 " + result + ", %globaltimer;").front();
}

void NVIDIAHooks::emitLaunchDependents(ThreadBuilder &thread) const {
  InlinePTX(thread).emit("griddepcontrol.launch_dependents;");
}

/// Text, over which no load is moved: LLVM takes the intrinsic for something that does not
/// touch memory.
void NVIDIAHooks::emitWaitForStream(ThreadBuilder &thread) const {
  InlinePTX(thread).emit("griddepcontrol.wait;");
}

//===----------------------------------------------------------------------===//
// Barriers, and roles of threads
//===----------------------------------------------------------------------===//

void NVIDIAHooks::emitBarrier(ThreadBuilder &thread) const { thread.create<NVVM::Barrier0Op>(); }

bool NVIDIAHooks::isBarrier(Operation *op) const { return isa<NVVM::Barrier0Op>(op); }

void NVIDIAHooks::emitWarpBarrier(ThreadBuilder &thread) const {
  thread.create<NVVM::SyncWarpOp>(thread.i32(0xffffffff));
}

void NVIDIAHooks::emitNamedBarrier(ThreadBuilder &thread, Value number, Value threads) const {
  thread.create<NVVM::BarrierOp>(Type(), number, threads, NVVM::BarrierReductionAttr(), Value());
}

void NVIDIAHooks::emitNamedArrive(ThreadBuilder &thread, Value number, Value threads) const {
  InlinePTX instruction(thread);
  std::string name = instruction.addOperand(number), count = instruction.addOperand(threads);
  instruction.emit("bar.arrive " + name + ", " + count + ";");
}

/// Without more said the arrival releases at the cluster's scope, and the wait acquires.
/// Otherwise it is a fence of all memory, too.
void NVIDIAHooks::emitClusterArrive(ThreadBuilder &thread, bool isRelaxed) const {
  if (isRelaxed) {
    thread.create<NVVM::ClusterArriveRelaxedOp>(thread.getBuilder().getUnitAttr());
    return;
  }
  thread.create<NVVM::ClusterArriveOp>(thread.getBuilder().getUnitAttr());
}

Operation *NVIDIAHooks::emitClusterWait(ThreadBuilder &thread) const {
  return thread.create<NVVM::ClusterWaitOp>(thread.getBuilder().getUnitAttr());
}

bool NVIDIAHooks::isClusterWait(Operation *op) const { return isa<NVVM::ClusterWaitOp>(op); }

bool NVIDIAHooks::mayPassClusterWait(Operation *op) const {
  if (auto text = dyn_cast<LLVM::InlineAsmOp>(op)) {
    // Our own loads and stores that are predicated, or have modifiers.
    StringRef code = text.getAsmString();
    return code.contains(".global") && !code.contains("shared") && !code.contains("atom") &&
           !code.contains("red.") && !code.contains("cp.async");
  }
  return isMemoryEffectFree(op) || isa<NVVM::ShflOp, NVVM::ReduxOp>(op);
}

Value NVIDIAHooks::emitElect(ThreadBuilder &thread) const {
  return thread.create<NVVM::ElectSyncOp>(thread.intType(1), Value());
}

void NVIDIAHooks::emitSetRegisters(ThreadBuilder &thread, unsigned registers, bool areMore) const {
  thread.create<NVVM::SetMaxRegisterOp>(registers, areMore ? NVVM::SetMaxRegisterAction::increase
                                                           : NVVM::SetMaxRegisterAction::decrease);
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

static Value shuffle(ThreadBuilder &thread, Value word, Value lane, NVVM::ShflKind kind) {
  return thread.create<NVVM::ShflOp>(thread.intType(32), thread.i32(0xffffffff), word, lane,
                                     thread.i32(GPUMachine::kWarpSize - 1), kind, UnitAttr());
}

Value NVIDIAHooks::emitShuffle(ThreadBuilder &thread, Value word, Value lane) const {
  return shuffle(thread, word, lane, NVVM::ShflKind::idx);
}

Value NVIDIAHooks::emitShuffleXor(ThreadBuilder &thread, Value word, unsigned mask) const {
  return shuffle(thread, word, thread.i32(mask), NVVM::ShflKind::bfly);
}

Value NVIDIAHooks::emitWarpReduce(ThreadBuilder &thread, WarpReduction kind, Value word) const {
  static constexpr NVVM::ReduxKind kinds[] = {
      NVVM::ReduxKind::ADD,  NVVM::ReduxKind::MAX, NVVM::ReduxKind::MIN, NVVM::ReduxKind::UMAX,
      NVVM::ReduxKind::UMIN, NVVM::ReduxKind::AND, NVVM::ReduxKind::OR,  NVVM::ReduxKind::XOR};
  return thread.create<NVVM::ReduxOp>(word.getType(), word, kinds[static_cast<unsigned>(kind)],
                                      thread.i32(-1));
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

void NVIDIAHooks::emitAssertFailure(ThreadBuilder &thread, Operation *op, Value message, Value file,
                                    unsigned line, Value function) const {
  Type pointer = thread.pointerType(0);
  LLVM::LLVMFuncOp callee = declareDeviceFunction(
      thread.getBuilder(), op, "__assertfail", LLVM::LLVMVoidType::get(op->getContext()),
      {pointer, pointer, thread.intType(32), pointer, thread.intType(64)}, /*isPure=*/false);
  thread.create<LLVM::CallOp>(callee,
                              ValueRange{message, file, thread.i32(line), function, thread.i64(1)});
}

void NVIDIAHooks::emitPrint(ThreadBuilder &thread, Operation *op, Value format,
                            Value buffer) const {
  LLVM::LLVMFuncOp callee =
      declareDeviceFunction(thread.getBuilder(), op, "vprintf", thread.intType(32),
                            {thread.pointerType(0), thread.pointerType(0)}, /*isPure=*/false);
  thread.create<LLVM::CallOp>(callee, ValueRange{format, buffer});
}
