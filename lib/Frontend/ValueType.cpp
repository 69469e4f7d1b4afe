// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Frontend/ValueType.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tessera {

namespace {
struct DTypeFacts {
  const char *name;
  unsigned width;
};
} // namespace

static const DTypeFacts kFacts[kNumDTypes] = {
    {"void", 0},   {"int1", 1},    {"int8", 8},    {"int16", 16},   {"int32", 32},
    {"int64", 64}, {"uint8", 8},   {"uint16", 16}, {"uint32", 32},  {"uint64", 64},
    {"fp8e5", 8},  {"fp8e4nv", 8}, {"fp8e4b8", 8}, {"fp8e5b16", 8}, {"fp8e4b15", 8},
    {"fp16", 16},  {"bf16", 16},   {"fp32", 32},   {"fp64", 64},
};

StringRef getName(DType dtype) { return kFacts[static_cast<unsigned>(dtype)].name; }

unsigned getBitWidth(DType dtype) { return kFacts[static_cast<unsigned>(dtype)].width; }

DType getUnsignedInteger(unsigned width) {
  switch (width) {
  case 1:
    return DType::Int1;
  case 8:
    return DType::UInt8;
  case 16:
    return DType::UInt16;
  case 32:
    return DType::UInt32;
  default:
    return DType::UInt64;
  }
}

std::string toString(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  stream << "]";
  return text;
}

std::string toString(const ValueType &type) {
  std::string name = getName(type.dtype).str();
  std::string shape = type.shape.empty() ? "" : toString(type.shape);
  switch (type.kind) {
  case TypeKind::Number:
    return name + shape;
  case TypeKind::Pointer:
    return (type.isConst ? "*const " : "*") + name + shape;
  case TypeKind::BlockPointer:
    return "block pointer to " + name + shape;
  case TypeKind::Descriptor:
    return "tensor descriptor of " + name + shape + (type.roundsToTF32 ? " rounded to tf32" : "");
  }
  llvm_unreachable("covered switch");
}

Type getIRType(MLIRContext *context, DType dtype) {
  Builder builder(context);
  switch (dtype) {
  case DType::Void:
    throw UserError("E034", "void is not the type of a value", "name a number type");
  case DType::FP8E5:
    return builder.getType<Float8E5M2Type>();
  case DType::FP8E4NV:
  case DType::FP8E4B15:
    return builder.getType<Float8E4M3FNType>();
  case DType::FP8E4B8:
    return builder.getType<Float8E4M3FNUZType>();
  case DType::FP8E5B16:
    return builder.getType<Float8E5M2FNUZType>();
  case DType::FP16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::FP32:
    return builder.getF32Type();
  case DType::FP64:
    return builder.getF64Type();
  default:
    return builder.getIntegerType(getBitWidth(dtype));
  }
}

Type getIRType(MLIRContext *context, const ValueType &type) {
  Type element = getIRType(context, type.dtype);
  switch (type.kind) {
  case TypeKind::BlockPointer:
    return tile::BlockPointerType::get(context, RankedTensorType::get(type.shape, element));
  case TypeKind::Descriptor:
    return tile::DescriptorType::get(context, RankedTensorType::get(type.shape, element));
  case TypeKind::Pointer:
    element = tile::PointerType::get(context, element);
    break;
  case TypeKind::Number:
    break;
  }
  if (type.shape.empty())
    return element;
  return RankedTensorType::get(type.shape, element);
}

} // namespace tessera
