// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C API of TileBuilder: converts TsrArg to Argument and back.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Frontend/TileBuilder.h"
#include "tessera/Support/UserError.h"

#include <deque>
#include <memory>

using namespace tessera;
using namespace tessera::capi;

static_assert(int(DType::FP64) == int(TSR_FP64) && int(DType::UInt64) == int(TSR_UINT64) &&
                  int(TypeKind::Descriptor) == int(TSR_KIND_DESCRIPTOR),
              "the C API numbers types as TileBuilder does");

namespace {

ValueType fromC(const TsrType &type) {
  ValueType result;
  result.roundsToTF32 = type.kind == TSR_KIND_TF32_DESCRIPTOR;
  result.kind = result.roundsToTF32 ? TypeKind::Descriptor : TypeKind(type.kind);
  result.dtype = DType(type.dtype);
  result.isConst = type.is_const;
  result.shape.assign(type.shape, type.shape + type.rank);
  return result;
}

TsrType toC(const ValueType &type) {
  if (type.shape.size() > TSR_MAX_RANK)
    throw UserError("E021",
                    "a tile of rank " + std::to_string(type.shape.size()) +
                        " was made, and the limit is " + std::to_string(TSR_MAX_RANK),
                    "reshape to fewer dimensions");
  TsrType result = {};
  result.kind = type.roundsToTF32 ? uint8_t(TSR_KIND_TF32_DESCRIPTOR) : uint8_t(type.kind);
  result.dtype = uint8_t(type.dtype);
  result.is_const = type.isConst;
  result.rank = uint8_t(type.shape.size());
  for (size_t i = 0; i < type.shape.size(); ++i)
    result.shape[i] = int32_t(type.shape[i]);
  return result;
}

Argument fromC(const TsrArg &arg) {
  switch (arg.kind) {
  case TSR_ARG_NONE:
    return {};
  case TSR_ARG_BOOL:
    return arg.integer != 0;
  case TSR_ARG_INT:
    return arg.integer;
  case TSR_ARG_UINT:
    return arg.unsigned_integer;
  case TSR_ARG_FLOAT:
    return arg.floating;
  case TSR_ARG_STRING:
    return std::string(arg.string, arg.length);
  case TSR_ARG_TYPE:
    return fromC(arg.type);
  case TSR_ARG_VALUE:
    return ValueId{arg.value};
  case TSR_ARG_LIST: {
    Argument::List list;
    list.reserve(arg.length);
    for (size_t i = 0; i < arg.length; ++i)
      list.push_back(fromC(arg.items[i]));
    return list;
  }
  }
  throw InternalError("an argument of unknown kind " + std::to_string(arg.kind));
}

} // namespace

/// A builder, and the results of its last call in the form of the C API. Deques never move an
/// element that a result points to.
struct TsrBuilder {
  explicit TsrBuilder(mlir::ModuleOp module) : builder(module) {}

  const TsrArg *keep(std::vector<Argument> results);

  TileBuilder builder;

private:
  TsrArg toC(const Argument &argument);
  const TsrArg *toC(llvm::ArrayRef<Argument> arguments);

  std::vector<Argument> kept;
  std::deque<std::vector<TsrArg>> lists;
};

TsrArg TsrBuilder::toC(const Argument &argument) {
  TsrArg arg = {};
  if (const bool *value = std::get_if<bool>(&argument.value)) {
    arg.kind = TSR_ARG_BOOL;
    arg.integer = *value;
  } else if (const int64_t *value = std::get_if<int64_t>(&argument.value)) {
    arg.kind = TSR_ARG_INT;
    arg.integer = *value;
  } else if (const uint64_t *value = std::get_if<uint64_t>(&argument.value)) {
    arg.kind = TSR_ARG_UINT;
    arg.unsigned_integer = *value;
  } else if (const double *value = std::get_if<double>(&argument.value)) {
    arg.kind = TSR_ARG_FLOAT;
    arg.floating = *value;
  } else if (const std::string *value = std::get_if<std::string>(&argument.value)) {
    arg.kind = TSR_ARG_STRING;
    arg.string = value->data();
    arg.length = value->size();
  } else if (const ValueType *value = std::get_if<ValueType>(&argument.value)) {
    arg.kind = TSR_ARG_TYPE;
    arg.type = ::toC(*value);
  } else if (const ValueId *value = std::get_if<ValueId>(&argument.value)) {
    arg.kind = TSR_ARG_VALUE;
    arg.value = value->index;
  } else if (const Argument::List *value = std::get_if<Argument::List>(&argument.value)) {
    arg.kind = TSR_ARG_LIST;
    arg.items = toC(llvm::ArrayRef<Argument>(*value));
    arg.length = value->size();
  }
  return arg;
}

const TsrArg *TsrBuilder::toC(llvm::ArrayRef<Argument> arguments) {
  std::vector<TsrArg> &list = lists.emplace_back(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    list[i] = toC(arguments[i]);
  return list.data();
}

const TsrArg *TsrBuilder::keep(std::vector<Argument> results) {
  kept = std::move(results);
  lists.clear();
  return toC(llvm::ArrayRef<Argument>(kept));
}

extern "C" {

TsrStatus tsr_builder_create(TsrModule *module, TsrBuilder **builder) TSR_NOEXCEPT {
  return guarded([&] { *builder = new TsrBuilder(*module->module); });
}

void tsr_builder_destroy(TsrBuilder *builder) TSR_NOEXCEPT { delete builder; }

// If memory for a source location runs out, the previous location remains in use.
void tsr_builder_set_location(TsrBuilder *builder, const char *file, int32_t line,
                              int32_t column) TSR_NOEXCEPT {
  (void)guarded([&] { builder->builder.setLocation(file, line, column); });
}

void tsr_builder_push_frame(TsrBuilder *builder, const char *function_name) TSR_NOEXCEPT {
  (void)guarded([&] { builder->builder.pushFrame(function_name); });
}

void tsr_builder_pop_frame(TsrBuilder *builder) TSR_NOEXCEPT {
  (void)guarded([&] { builder->builder.popFrame(); });
}

TsrStatus tsr_builder_type_of(TsrBuilder *builder, TsrValue value, TsrType *type) TSR_NOEXCEPT {
  return guarded([&] { *type = toC(builder->builder.typeOf(ValueId{value})); });
}

TsrStatus tsr_builder_call(TsrBuilder *builder, const char *name, const TsrArg *args,
                           size_t num_args, const TsrArg **results,
                           size_t *num_results) TSR_NOEXCEPT {
  return guarded([&] {
    llvm::SmallVector<Argument> arguments;
    arguments.reserve(num_args);
    for (size_t i = 0; i < num_args; ++i)
      arguments.push_back(fromC(args[i]));
    std::vector<Argument> returned = builder->builder.call(name, arguments);
    *num_results = returned.size();
    *results = builder->keep(std::move(returned));
  });
}

} // extern "C"
