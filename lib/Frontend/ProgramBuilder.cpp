// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions and calls, program ids, and messages of a running program: asserts and prints.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

#include "llvm/IR/InlineAsm.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

TileBuilder::Values TileBuilder::beginFunction(StringRef name, ArrayRef<ValueType> types,
                                               Integers divisibility, bool isKernel,
                                               bool noinlineFunction) {
  if (SymbolTable::lookupSymbolIn(module, name))
    throw InternalError(("the function " + name + " exists already").str());
  SmallVector<Type> irTypes;
  for (auto [i, type] : llvm::enumerate(types)) {
    if (isKernel && (type.isTile() || type.kind == TypeKind::BlockPointer))
      throw UserError(
          "E054",
          ("parameter " + Twine(i) + " of the kernel " + name + " is " + toString(type)).str(),
          "a kernel takes scalars, pointers and descriptors");
    irTypes.push_back(ir(type));
  }
  SmallVector<DictionaryAttr> attributes;
  for (size_t i = 0; i < types.size(); ++i) {
    NamedAttrList list;
    if (i < divisibility.size() && divisibility[i] > 1)
      list.append(tile::kDivisibilityAttr, builder.getI64IntegerAttr(divisibility[i]));
    attributes.push_back(list.getDictionary(context()));
  }
  OpBuilder atEnd = OpBuilder::atBlockEnd(module.getBody());
  auto function =
      tile::FuncOp::create(atEnd, loc(), name, FunctionType::get(context(), irTypes, {}),
                           ArrayRef<NamedAttribute>{}, attributes);
  if (!isKernel)
    function.setPrivate();
  function.setNoinline(noinlineFunction);
  OpenRegion &region = open(RegionKind::Function, function);
  region.types.assign(types.begin(), types.end());
  Block *entry = &function.getBody().emplaceBlock();
  Values arguments = addArguments(entry, types);
  builder.setInsertionPointToEnd(entry);
  return arguments;
}

void TileBuilder::endFunction(Operands results) {
  OpenRegion &region = innermost(RegionKind::Function, "end_function");
  auto function = llvm::cast<tile::FuncOp>(region.op);
  if (function.isPublic() && !results.empty())
    throw UserError("E042", ("the kernel " + function.getName() + " returns a value").str(),
                    "a kernel returns nothing; store the result through a pointer");
  Function signature;
  signature.arguments = region.types;
  SmallVector<Value> returned;
  SmallVector<Type> irTypes;
  for (const Operand &result : results) {
    TileValue value = toTensor(result);
    signature.results.push_back(value.type);
    returned.push_back(value.ir);
    irTypes.push_back(value.ir.getType());
  }
  create<tile::ReturnOp>(returned);
  function.setFunctionType(
      FunctionType::get(context(), function.getFunctionType().getInputs(), irTypes));
  functions[function.getName()] = std::move(signature);
  close();
}

TileBuilder::Values TileBuilder::callFunction(StringRef name, Operands args) {
  auto known = functions.find(name);
  if (known == functions.end())
    throw InternalError(("call of the unknown function " + name).str());
  const Function &signature = known->second;
  auto callee = module.lookupSymbol<tile::FuncOp>(name);
  SmallVector<Value> passed =
      yieldAs(args, signature.arguments, "E036", "in the function", "in this call",
              "pass the type for which the function was built");
  auto op = create<tile::CallOp>(callee, passed);
  Values results;
  for (auto [result, type] : llvm::zip(op.getResults(), signature.results))
    results.push_back({result, type});
  return results;
}

//===----------------------------------------------------------------------===//
// Program ids
//===----------------------------------------------------------------------===//

static uint32_t requireGridAxis(int64_t axis, StringRef user) {
  if (axis < 0 || axis > 2)
    throw UserError("E024", ("axis " + Twine(axis) + " of " + user + " is not in [0, 3)").str(),
                    "a grid has the axes 0, 1 and 2");
  return static_cast<uint32_t>(axis);
}

TileValue TileBuilder::programId(int64_t axis) {
  ValueType type = ValueType::number(DType::Int32);
  return {create<tile::ProgramIdOp>(ir(type), requireGridAxis(axis, "program_id")), type};
}

TileValue TileBuilder::numPrograms(int64_t axis) {
  ValueType type = ValueType::number(DType::Int32);
  return {create<tile::NumProgramsOp>(ir(type), requireGridAxis(axis, "num_programs")), type};
}

TileValue TileBuilder::clockNs() {
  ValueType type = ValueType::number(DType::Int64);
  return {create<tile::ClockOp>(ir(type)), type};
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void TileBuilder::barrier() { create<tile::BarrierOp>(); }

/// The shape to which all arguments broadcast.
static SmallVector<int64_t> commonShape(ArrayRef<Operand> args, StringRef user) {
  ValueType common;
  for (const Operand &x : args) {
    if (x.isNone() || (x.isValue() && !x.value().type.hasElements()))
      throw UserError("E029", (user + " of " + x.describe()).str(), "pass numbers or pointers");
    common.shape = broadcastShapes(common, x.type());
  }
  return common.shape;
}

//===----------------------------------------------------------------------===//
// Debugging
//===----------------------------------------------------------------------===//

void TileBuilder::devicePrint(StringRef prefix, Operands args, bool hex) {
  for (const Operand &x : args)
    if (x.isNone() || (x.isValue() && !x.value().type.hasElements()))
      throw UserError("E029", "device_print of " + x.describe(), "print numbers and pointers");
  // A line has an element of each tile.
  SmallVector<int64_t> shape = commonShape(args, "device_print");
  SmallVector<Value> printed;
  SmallVector<int32_t> isSigned;
  for (const Operand &x : args) {
    TileValue value = toTensor(x);
    if (!value.type.shape.empty())
      value = repeat(value, shape);
    if (value.type.isNumber() && value.type.dtype == DType::FP8E4B15)
      value = castElements(value, DType::FP32);
    printed.push_back(value.ir);
    bool unsignedNumber = !value.type.isNumber() || isUnsignedInteger(value.type.dtype);
    isSigned.push_back(!unsignedNumber);
  }
  create<tile::PrintOp>(prefix, hex, isSigned, printed);
}

void TileBuilder::deviceAssert(const Operand &condition, StringRef message, const Operand &mask) {
  ValueType boolType = ValueType::number(DType::Int1);
  for (const Operand *x : {&condition, &mask})
    if (x->isValue() ? !x->value().type.isNumber() : (x == &condition && x->isNone()))
      throw UserError("E029", "device_assert of " + x->describe(), "the condition is a comparison");
  if (!mask.isNone())
    broadcastShapes(condition.type(), mask.type());
  TileValue holds = cast(condition, boolType);
  if (!mask.isNone())
    holds = binary(BinaryOperator::Or, holds, logicalNot(mask));
  create<tile::AssertOp>(holds.ir, message);
}

//===----------------------------------------------------------------------===//
// Foreign code
//===----------------------------------------------------------------------===//

/// The registers that hold `pack` elements of each type: those of less than 32 bits share
/// registers.
static int64_t countRegisters(ArrayRef<Type> types, int64_t pack) {
  int64_t count = 0;
  for (Type type : types) {
    Type element = getElementTypeOrSelf(type);
    // Not of a GPU: bits of a register in inline assembly, and of a pointer.
    int64_t width = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
    int64_t each = std::min(pack, std::max<int64_t>(1, 32 / width));
    count += llvm::divideCeil(pack, each);
  }
  return count;
}

/// LLVM takes it for granted that constraints name as many registers as there are.
static void checkConstraints(StringRef constraints,
                             const llvm::InlineAsm::ConstraintInfoVector &parsed,
                             int64_t numOutputs, int64_t numInputs) {
  using llvm::InlineAsm;
  int64_t outputs = 0, inputs = 0;
  for (const InlineAsm::ConstraintInfo &info : parsed) {
    if (info.isIndirect || info.Type == InlineAsm::isLabel)
      throw UserError("E050",
                      ("the constraints \"" + constraints + "\" name memory or a label").str(),
                      "operands and results are in registers, such as \"=r,r\"");
    outputs += info.Type == InlineAsm::isOutput;
    inputs += info.Type == InlineAsm::isInput;
  }
  if (outputs != numOutputs || inputs != numInputs)
    throw UserError("E050",
                    ("the constraints \"" + constraints + "\" name " + llvm::Twine(outputs) +
                     " outputs and " + llvm::Twine(inputs) + " inputs, the values take " +
                     llvm::Twine(numOutputs) + " and " + llvm::Twine(numInputs))
                        .str(),
                    "one constraint for each register: results as \"=r\", then operands as \"r\"");
}

/// LLVM ends the process at a `$` that it does not understand.
static void checkAssembly(StringRef text, int64_t numOperands) {
  for (size_t at = text.find('$'); at != StringRef::npos; at = text.find('$', at)) {
    StringRef rest = text.substr(at + 1);
    if (rest.consume_front("$")) {
      at += 2;
      continue;
    }
    bool isBraced = rest.consume_front("{");
    StringRef digits = rest.take_while(llvm::isDigit);
    rest = rest.drop_front(digits.size());
    uint64_t number = 0;
    bool isKnown = !digits.getAsInteger(10, number) && number < static_cast<uint64_t>(numOperands);
    if (isBraced && isKnown) {
      if (rest.consume_front(":"))
        isKnown = !rest.empty() && llvm::isAlpha(rest.front());
      rest = rest.drop_while(llvm::isAlpha);
      isKnown = isKnown && rest.starts_with("}");
    } else if (isBraced && digits.empty()) {
      isKnown = rest.starts_with(":uid}") || rest.starts_with(":comment}") ||
                rest.starts_with(":private}");
    }
    if (!isKnown)
      throw UserError(
          "E050",
          ("the assembly has `" + text.substr(at, 8).split('\n').first +
           "`, which is none of its " + llvm::Twine(numOperands) + " operands")
              .str(),
          "results are counted from $0, and operands continue the count; a dollar sign is $$");
    ++at;
  }
}

TileBuilder::Values TileBuilder::inlineAsm(StringRef text, StringRef constraints, Operands args,
                                           ArrayRef<DType> types, bool pure, int64_t pack) {
  SmallVector<int64_t> shape = commonShape(args, "inline_asm_elementwise");
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  if (pack <= 0 || elements % pack != 0)
    throw UserError("E050",
                    "inline_asm_elementwise packs " + std::to_string(pack) + " of " +
                        std::to_string(elements) + " elements",
                    "pack must divide the number of elements");
  if (types.empty())
    throw UserError("E050", "inline_asm_elementwise has no result", "name a dtype");
  llvm::InlineAsm::ConstraintInfoVector parsed = llvm::InlineAsm::ParseConstraints(constraints);
  if (parsed.empty() && !constraints.empty())
    throw UserError("E050", ("the constraints \"" + constraints + "\" cannot be parsed").str(),
                    "write LLVM constraints, such as \"=r,r\"");
  std::vector<ValueType> resultTypes;
  SmallVector<Type> irTypes;
  for (DType dtype : types) {
    resultTypes.push_back(ValueType::number(dtype, shape));
    irTypes.push_back(ir(resultTypes.back()));
  }
  SmallVector<Value> passed;
  for (const Operand &x : args)
    passed.push_back(repeat(toTensor(x), shape).ir);
  int64_t numOutputs = countRegisters(irTypes, pack);
  int64_t numInputs = countRegisters(llvm::to_vector(ValueRange(passed).getTypes()), pack);
  checkConstraints(constraints, parsed, numOutputs, numInputs);
  checkAssembly(text, numOutputs + numInputs);
  auto op = create<tile::InlineAsmOp>(irTypes, text, constraints, pure, static_cast<uint32_t>(pack),
                                      passed);
  Values results;
  for (auto [result, type] : llvm::zip(op.getResults(), resultTypes))
    results.push_back({result, type});
  return results;
}

TileValue TileBuilder::externElementwise(StringRef symbol, Operands args, DType dtype, bool pure,
                                         StringRef library, StringRef digest) {
  if (args.empty())
    throw UserError("E029", ("the extern " + symbol + " has no operand").str(), "pass a value");
  SmallVector<int64_t> shape = commonShape(args, symbol);
  ValueType type = ValueType::number(dtype, shape);
  Type irType = ir(type);
  SmallVector<Value> passed;
  for (const Operand &x : args)
    passed.push_back(repeat(toTensor(x), shape).ir);
  auto op = create<tile::ExternElementwiseOp>(irType, symbol, passed, pure, /*library=*/nullptr,
                                              /*digest=*/nullptr);
  if (!library.empty())
    op.setLibrary(library);
  if (!digest.empty())
    op.setDigest(digest);
  return {op, type};
}
