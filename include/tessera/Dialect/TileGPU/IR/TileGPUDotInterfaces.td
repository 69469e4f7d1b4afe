// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interfaces of dots and of work that goes on after its op. Planners of schedules and the passes
// behind them know a tensor-core instruction by these alone, so another one adds an op and its
// lowering.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUDOTINTERFACES_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUDOTINTERFACES_TD

include "mlir/IR/OpBase.td"

def TileGPU_DotOpInterface : OpInterface<"DotOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    An op with one result, `acc + a * b` of three tiles. `a` and `b` are in registers or in shared
    memory.
  }];
  let methods = [
    InterfaceMethod<"The left operand.", "::mlir::Value", "getA", (ins), "", "return $_op.getA();">,
    InterfaceMethod<"The right operand.", "::mlir::Value", "getB", (ins), "", "return $_op.getB();">,
    InterfaceMethod<"The tile that the product is added to.",
      "::mlir::Value", "getAcc", (ins), "", "return $_op.getAcc();">,
    InterfaceMethod<"Cycles of an SM.",
      "int64_t", "getCycles", (ins "const ::tessera::GPUMachine &":$machine)>,
    InterfaceMethod<"The layout that the instruction prescribes of an operand in registers, or (for the operand `acc`) of the result; none if it prescribes none.",
      "std::optional<::tessera::LinearLayout>", "getFragment", (ins "unsigned":$operand), "",
      "return std::nullopt;">,
    InterfaceMethod<"Steps along K of one instruction.",
      "int64_t", "getStepsOfInstruction", (ins), "", "return 1;">,
    InterfaceMethod<"Steps along K of the slices in which operands in registers are best read from memory, where the instruction decides that.",
      "int64_t", "getStepsOfSlice", (ins), "", "return 1;">,
    InterfaceMethod<"As getFragment, of so many steps along K of an operand.",
      "std::optional<::tessera::LinearLayout>", "getSliceFragment",
      (ins "unsigned":$operand, "int64_t":$steps), "", "return std::nullopt;">,
    InterfaceMethod<"Why it cannot be done in slices along K; empty if it can.",
      "std::string", "whyNotSliced", (ins), "", "return {};">,
    InterfaceMethod<"True if each block of a cluster does a whole dot of its own.",
      "bool", "isOfBlock", (ins), "", "return false;">,
    InterfaceMethod<"Makes it so. Other dots are of each block as it is.",
      "void", "setIsOfBlock", (ins), "", "return;">,
  ];
}

def TileGPU_AsyncOpInterface : OpInterface<"AsyncOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    An op that begins work on shared memory, which goes on after it. It is complete by one of two
    protocols. By groups: a wait ends all but the newest groups (GroupWaitOpInterface). By mbarrier:
    the work arrives at a barrier in shared memory, and `tilegpu.mbarrier_wait` waits for its phase.
  }];
  let methods = [
    InterfaceMethod<"How it is complete.",
      "::tessera::tilegpu::AsyncCompletion", "getCompletion", (ins), "",
      "return ::tessera::tilegpu::AsyncCompletion::Group;">,
    InterfaceMethod<"False if this op, other than others of its kind, waits until it is complete.",
      "bool", "isInFlight", (ins), "", "return true;">,
    InterfaceMethod<"Lets its work go on after it.", "void", "setInFlight", (ins), "", "return;">,
    InterfaceMethod<"Why it cannot; empty if it can.",
      "std::string", "whyNotInFlight", (ins), "", "return {};">,
    InterfaceMethod<"True if each op is a group, and no other op makes groups of them.",
      "bool", "isGroup", (ins), "", "return false;">,
    InterfaceMethod<"The most groups that a wait can leave in flight.",
      "unsigned", "getMaxPendingGroups", (ins), "", "return 0;">,
    InterfaceMethod<"A wait for all but the newest groups. Its results replace `results`, those of the work that ends.",
      "::mlir::Operation *", "createWait",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$results,
           "unsigned":$pending), "", "return nullptr;">,
  ];
}

def TileGPU_GroupWaitOpInterface : OpInterface<"GroupWaitOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    A wait until at most so many groups of work are in flight, the newest.
  }];
  let methods = [
    InterfaceMethod<"The groups.", "unsigned", "getPendingGroups", (ins), "",
      "return $_op.getPending();">,
    InterfaceMethod<"True if it waits for the work that an op begins.",
      "bool", "isFor", (ins "::mlir::Operation *":$work)>,
  ];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUDOTINTERFACES_TD
