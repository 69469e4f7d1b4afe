// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "InlinePTX.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;

StringRef InlinePTX::getConstraint(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return "l";
  if (type.isF32())
    return "f";
  if (type.isF64())
    return "d";
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "b";
  case 32:
    return "r";
  case 64:
    return "l";
  default:
    return "h";
  }
}

std::string InlinePTX::addResult(Type type) {
  assert(operands.empty() && "results come first");
  resultTypes.push_back(type);
  return "$" + std::to_string(resultTypes.size() - 1);
}

std::string InlinePTX::addResult(Value initial) {
  initialResults.push_back(resultTypes.size());
  initials.push_back(initial);
  return addResult(initial.getType());
}

std::string InlinePTX::addOperand(Value value) {
  operands.push_back(value);
  // LLVM numbers the tied operands too: they stand between results and operands.
  return "$" + std::to_string(resultTypes.size() + initials.size() + operands.size() - 1);
}

SmallVector<Value> InlinePTX::emit(StringRef text, Value predicate) {
  std::string code = text.str();
  if (predicate) {
    std::string name = addOperand(predicate);
    code = "@" + name + " " + code;
  }
  SmallVector<std::string> constraints;
  for (Type type : resultTypes)
    constraints.push_back("=" + getConstraint(type).str());
  for (unsigned result : initialResults)
    constraints.push_back(std::to_string(result));
  for (Value operand : operands)
    constraints.push_back(getConstraint(operand.getType()).str());

  SmallVector<Value> inputs(initials);
  llvm::append_range(inputs, operands);
  MLIRContext *context = thread.getBuilder().getContext();
  SmallVector<Type> type;
  if (resultTypes.size() == 1)
    type = resultTypes;
  else if (!resultTypes.empty())
    type = {LLVM::LLVMStructType::getLiteral(context, resultTypes)};
  auto call = thread.create<LLVM::InlineAsmOp>(
      TypeRange(type), inputs, code, llvm::join(constraints, ","), /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(context, LLVM::AsmDialect::AD_ATT), /*operand_attrs=*/ArrayAttr());
  SmallVector<Value> results;
  if (resultTypes.size() == 1)
    results.push_back(call.getRes());
  else
    for (unsigned i = 0; i < resultTypes.size(); ++i)
      results.push_back(thread.create<LLVM::ExtractValueOp>(call.getRes(), i));
  return results;
}

void tessera::emitWaitForStream(ThreadBuilder &thread) {
  InlinePTX(thread).emit("griddepcontrol.wait;");
}
