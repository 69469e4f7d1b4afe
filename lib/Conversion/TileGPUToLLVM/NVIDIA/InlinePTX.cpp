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

ArrayRef<llvm::StringLiteral> tessera::getInlineInstructions() {
  static constexpr llvm::StringLiteral list[] = {
      // Accesses with a predicate, a hint or an ordering: LLVM 22 has branches for the first,
      // drops hints, and the ordering and scope of atomics (decision 12).
      "ld.global",
      "ld.volatile.global",
      "ld.relaxed.",
      "ld.acquire.",
      "st.global",
      "st.relaxed.",
      "st.release.",
      "atom.relaxed.",
      "atom.acquire.",
      "atom.release.",
      "atom.acq_rel.",
      "fence.acq_rel.",
      // Policies of the second-level cache, and copies that have one or a predicate.
      "createpolicy.fractional.L2::",
      "cp.async.ca.",
      "cp.async.cg.",
      "cp.async.bulk.tensor.",
      // Tensor maps that a kernel makes: NVVM has the fence alone.
      "tensormap.replace.tile.",
      "tensormap.cp_fenceproxy.",
      "fence.proxy.tensormap::generic.acquire.",
      "cp.async.bulk.prefetch.L2.",
      // Barriers in shared memory with a predicate, and waits for them.
      "mbarrier.init.",
      "mbarrier.arrive.",
      "mbarrier.try_wait.parity.",
      // Dots whose accumulators are tied to registers over several instructions; NVVM's put them
      // into a structure, which LLVM takes apart in between.
      "wgmma.fence.",
      "wgmma.mma_async.",
      "wgmma.wait_group.",
      // Over which LLVM must move no access: it takes the intrinsics for harmless.
      "griddepcontrol.wait",
      "griddepcontrol.launch_dependents",
      // The time, which NVVM's op says is always the same.
      "mov.u64 ",
      // Ping-pong of warpgroups.
      "bar.arrive",
  };
  return list;
}

/// True if every statement is an instruction of the list, a declaration, a label, or the jump
/// back of a wait.
[[maybe_unused]] static bool isListed(StringRef text) {
  while (!text.empty()) {
    StringRef statement = text.take_until([](char c) { return StringRef(";:{}").contains(c); });
    // "shared::cta" is no label.
    while (text.drop_front(statement.size()).starts_with("::")) {
      size_t end = text.find_first_of(";:{}", statement.size() + 2);
      statement = text.take_front(end);
    }
    bool isLabel = text.drop_front(statement.size()).starts_with(":");
    bool isScope = text.drop_front(statement.size()).starts_with("{") && statement.trim().empty();
    // The braces of operands belong to their instruction.
    if (!isLabel && !isScope && !statement.trim().empty())
      statement = text.take_front(text.find(';'));
    text = text.drop_front(std::min(statement.size() + 1, text.size()));
    statement = statement.trim();
    if (statement.empty() || isLabel || statement.starts_with(".reg ") ||
        statement.starts_with("@!over bra.uni "))
      continue;
    if (statement.consume_front("@"))
      statement = statement.split(' ').second;
    if (llvm::none_of(getInlineInstructions(),
                      [&](StringRef begin) { return statement.starts_with(begin); }))
      return false;
  }
  return true;
}

SmallVector<Value> InlinePTX::emit(StringRef text, Value predicate) {
  assert(isListed(text) && "an instruction that is not in the list of InlinePTX.cpp");
  std::string code = text.str();
  if (predicate) {
    std::string name = addOperand(predicate);
    code = "@" + name + " " + code;
  }
  // A later instruction reads operands after an earlier one has written its results.
  const char *isWritten = StringRef(text).count(';') > 1 ? "=&" : "=";
  SmallVector<std::string> constraints;
  for (Type type : resultTypes)
    constraints.push_back(isWritten + getConstraint(type).str());
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
