// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// FuncOp
//===----------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                   ArrayRef<NamedAttribute> attrs, ArrayRef<DictionaryAttr> argAttrs) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.attributes.append(attrs.begin(), attrs.end());
  state.addRegion();
  if (!argAttrs.empty())
    call_interface_impl::addArgAndResultAttrs(builder, state, argAttrs, /*resultAttrs=*/{},
                                              getArgAttrsAttrName(state.name),
                                              getResAttrsAttrName(state.name));
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildFuncType = [](Builder &builder, ArrayRef<Type> args, ArrayRef<Type> results,
                          function_interface_impl::VariadicFlag,
                          std::string &) { return builder.getFunctionType(args, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), buildFuncType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  if (isExternal())
    return emitOpError("has no body");
  if (!llvm::hasSingleElement(getBody()))
    return emitOpError("has more than one block; control flow in tile IR is scf");
  if (!isKernel())
    return success();
  if (getNumResults() != 0)
    return emitOpError("is a kernel, and a kernel returns nothing");
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (!isa<PointerType, DescriptorType, IntegerType, FloatType>(type) &&
        isa<TileDialect, BuiltinDialect>(type.getDialect()))
      return emitOpError("is a kernel, and its argument #")
             << index << " is a " << type << "; kernels take scalars, pointers and descriptors";
  return success();
}

//===----------------------------------------------------------------------===//
// ReturnOp, CallOp
//===----------------------------------------------------------------------===//

LogicalResult ReturnOp::verify() {
  auto func = cast<FuncOp>((*this)->getParentOp());
  if (func.getResultTypes() != ArrayRef<Type>(SmallVector<Type>(getOperandTypes())))
    return emitOpError("gives (") << getOperandTypes() << "), but the function returns ("
                                  << func.getResultTypes() << ")";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto callee = symbolTable.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError("calls ") << getCalleeAttr() << ", which is not a tile.func";
  if (callee.isKernel())
    return emitOpError("calls ") << getCalleeAttr() << ", which is a kernel";
  FunctionType type = callee.getFunctionType();
  if (type.getInputs() != ArrayRef<Type>(SmallVector<Type>(getOperandTypes())) ||
      type.getResults() != ArrayRef<Type>(SmallVector<Type>(getResultTypes())))
    return emitOpError("does not fit the callee's type ") << type;
  return success();
}

//===----------------------------------------------------------------------===//
// PrintOp, HintOp, LookupOp
//===----------------------------------------------------------------------===//

LogicalResult PrintOp::verify() {
  if (getIsSigned().size() != getArgs().size())
    return emitOpError("has ") << getArgs().size() << " operands but " << getIsSigned().size()
                               << " entries in is_signed";
  // (P2): one line has an element of each.
  ArrayRef<int64_t> common;
  for (Type type : getArgs().getTypes()) {
    ArrayRef<int64_t> shape = getShape(type);
    if (!common.empty() && !shape.empty() && shape != common)
      return emitOpError("prints tiles of several shapes");
    if (!shape.empty())
      common = shape;
  }
  return success();
}

LogicalResult HintOp::verify() {
  int64_t rank = std::max<int64_t>(1, getShape(getSource().getType()).size());
  bool any = false;
  auto check = [&](StringRef name, std::optional<ArrayRef<int64_t>> list) -> LogicalResult {
    if (!list)
      return success();
    any = true;
    if (static_cast<int64_t>(list->size()) != rank)
      return emitOpError() << name << " has " << list->size() << " entries for a value of rank "
                           << getShape(getSource().getType()).size();
    for (int64_t entry : *list)
      if (entry <= 0)
        return emitOpError() << name << " has the entry " << entry << ", which is not positive";
    return success();
  };
  if (failed(check("divisibility", getDivisibility())) ||
      failed(check("contiguity", getContiguity())) || failed(check("constancy", getConstancy())))
    return failure();
  if (!any)
    return emitOpError("promises nothing");
  return success();
}

ParseResult LookupOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand index;
  SmallVector<OpAsmParser::UnresolvedOperand> items;
  Type indexType, itemType;
  if (parser.parseOperand(index) || parser.parseComma() ||
      parser.parseOperandList(items, OpAsmParser::Delimiter::Square) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(indexType) ||
      parser.parseComma() || parser.parseType(itemType) ||
      parser.resolveOperand(index, indexType, result.operands) ||
      parser.resolveOperands(items, itemType, result.operands))
    return failure();
  result.addTypes(itemType);
  return success();
}

/// All items have one type, which is printed once: a list may have hundreds.
void LookupOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getIndex() << ", [";
  printer.printOperands(getItems());
  printer << ']';
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getIndex().getType() << ", " << getType();
}

LogicalResult LookupOp::verify() {
  if (getItems().empty())
    return emitOpError("has no items");
  for (Type type : getItems().getTypes())
    if (type != getType())
      return emitOpError("gives ") << getType() << ", but an item is " << type;
  return success();
}

OpFoldResult LookupOp::fold(FoldAdaptor adaptor) {
  if (llvm::all_equal(getItems()))
    return getItems().front();
  auto index = dyn_cast_or_null<IntegerAttr>(adaptor.getIndex());
  if (!index)
    return {};
  return getItems()[index.getValue().getLimitedValue(getItems().size() - 1)];
}
