// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Outlines gathers and scatters for which the machine has no instruction.
//
// The code generator expands such an access lane by lane, with a branch for each lane of a mask. A
// lane takes about 30 bytes of code and 0.3 ms. 200 unrolled accesses to 64 16-bit elements make
// 840 KB, which take 8 s. If a module has many such lanes, accesses of one kind become calls of one
// function, whose lanes are expanded once. The call moves addresses from scalar to vector
// registers. So a module whose lanes fit the instruction cache is unchanged.

#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <map>
#include <vector>

using namespace llvm;
using namespace tessera;

/// The number of lanes whose code fits the L1 instruction cache of 32 KB.
static constexpr unsigned kMaxInlineLanes = 1024;

/// The number of lanes that the code generator expands for a call; 0 if there is an instruction.
static unsigned countLanes(const IntrinsicInst &access, const TargetTransformInfo &info) {
  bool isGather = access.getIntrinsicID() == Intrinsic::masked_gather;
  if (!isGather && access.getIntrinsicID() != Intrinsic::masked_scatter)
    return 0;
  auto *type =
      dyn_cast<FixedVectorType>(isGather ? access.getType() : access.getArgOperand(0)->getType());
  if (!type)
    return 0;
  Align alignment = access.getParamAlign(isGather ? 0 : 1).valueOrOne();
  bool isInstruction = isGather ? info.isLegalMaskedGather(type, alignment) &&
                                      !info.forceScalarizeMaskedGather(type, alignment)
                                : info.isLegalMaskedScatter(type, alignment) &&
                                      !info.forceScalarizeMaskedScatter(type, alignment);
  return isInstruction ? 0 : type->getNumElements();
}

/// The attributes of a function whose calls are in `caller`: the CPU and the widths of vectors.
/// Other attributes of the caller may not hold for the function.
static AttributeList getAttributes(const Function &caller) {
  AttrBuilder attributes(caller.getContext());
  for (Attribute attribute : caller.getAttributes().getFnAttrs())
    if (attribute.isStringAttribute())
      attributes.addAttribute(attribute);
  attributes.addAttribute(Attribute::NoInline).addAttribute(Attribute::NoUnwind);
  return AttributeList::get(caller.getContext(), AttributeList::FunctionIndex, attributes);
}

/// A function with the call's effect. Its arguments are the operands that are not constants.
static Function *makeFunction(const IntrinsicInst &access, AttributeList attributes) {
  SmallVector<Type *> types;
  for (Value *operand : access.args())
    if (!isa<Constant>(operand))
      types.push_back(operand->getType());
  auto *type = FunctionType::get(access.getType(), types, /*isVarArg=*/false);
  bool isGather = access.getIntrinsicID() == Intrinsic::masked_gather;
  Function *function =
      Function::Create(type, Function::InternalLinkage, isGather ? "gather_lanes" : "scatter_lanes",
                       const_cast<Module *>(access.getModule()));
  function->setAttributes(attributes);
  auto *copy = cast<CallInst>(access.clone());
  copy->dropUnknownNonDebugMetadata();
  copy->setDebugLoc({});
  IRBuilder<> builder(BasicBlock::Create(access.getContext(), "", function));
  builder.Insert(copy);
  auto *argument = function->arg_begin();
  for (Use &operand : copy->args())
    if (!isa<Constant>(operand))
      operand.set(argument++);
  if (isGather)
    builder.CreateRet(copy);
  else
    builder.CreateRetVoid();
  return function;
}

void tessera::outlineLaneAccesses(Module &module, TargetMachine &machine) {
  SmallVector<IntrinsicInst *> accesses;
  unsigned lanes = 0;
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    TargetTransformInfo info = machine.getTargetTransformInfo(function);
    for (Instruction &instruction : instructions(function))
      if (auto *access = dyn_cast<IntrinsicInst>(&instruction))
        if (unsigned count = countLanes(*access, info)) {
          lanes += count;
          accesses.push_back(access);
        }
  }
  if (lanes <= kMaxInlineLanes)
    return;

  // The intrinsic with its types, the attributes of the call and of its function, and constants.
  std::map<std::vector<const void *>, Function *> functions;
  for (IntrinsicInst *access : accesses) {
    AttributeList attributes = getAttributes(*access->getFunction());
    std::vector<const void *> kind = {access->getCalledFunction(),
                                      access->getAttributes().getRawPointer(),
                                      attributes.getRawPointer()};
    SmallVector<Value *> operands;
    for (Value *operand : access->args()) {
      kind.push_back(isa<Constant>(operand) ? operand : nullptr);
      if (!isa<Constant>(operand))
        operands.push_back(operand);
    }
    Function *&function = functions[kind];
    if (!function)
      function = makeFunction(*access, attributes);
    IRBuilder<> builder(access);
    Value *call = builder.CreateCall(function, operands);
    access->replaceAllUsesWith(call);
    access->eraseFromParent();
  }
}
