// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builtins by name: the table through which other languages call TileBuilder.
// An entry unpacks its arguments and calls one typed method; no decision about types
// or values is made here.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Support/UserError.h"

using namespace tessera;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// The arguments of one call, unpacked by position. Missing arguments are None.
class Arguments {
public:
  Arguments(TileBuilder &builder, StringRef name, ArrayRef<Argument> args)
      : builder(builder), name(name), args(args) {}

  const Argument &at(size_t i) const {
    static const Argument none;
    return i < args.size() ? args[i] : none;
  }
  bool isNone(size_t i) const { return at(i).isNone(); }

  Operand operand(size_t i) const { return toOperand(at(i)); }

  SmallVector<Operand> operands(size_t i) const {
    SmallVector<Operand> result;
    for (const Argument &item : list(i))
      result.push_back(toOperand(item));
    return result;
  }

  int64_t integer(size_t i) const { return toInteger(at(i), i); }

  std::optional<int64_t> optionalInteger(size_t i) const {
    if (isNone(i))
      return std::nullopt;
    return integer(i);
  }

  /// A list of integers; one alone counts as a list of one.
  SmallVector<int64_t> integers(size_t i) const {
    SmallVector<int64_t> result;
    for (const Argument &item : list(i))
      result.push_back(toInteger(item, i));
    return result;
  }

  /// False if none.
  bool boolean(size_t i, bool byDefault = false) const {
    if (isNone(i))
      return byDefault;
    if (const bool *flag = std::get_if<bool>(&at(i).value))
      return *flag;
    return toInteger(at(i), i) != 0;
  }

  /// Empty if none.
  StringRef string(size_t i) const {
    if (isNone(i))
      return "";
    if (const auto *text = std::get_if<std::string>(&at(i).value))
      return *text;
    throw UserError("E019", describe(i) + " must be a string, not " + kindOf(at(i)),
                    "write it as a literal");
  }

  const ValueType &type(size_t i) const { return toType(at(i), i); }

  std::optional<DType> optionalDType(size_t i) const {
    if (isNone(i))
      return std::nullopt;
    return type(i).dtype;
  }

  SmallVector<ValueType> types(size_t i) const {
    SmallVector<ValueType> result;
    for (const Argument &item : list(i))
      result.push_back(toType(item, i));
    return result;
  }

  /// A NaN rule: a bool, "all" or "none".
  bool propagatesNan(size_t i) const {
    if (const auto *text = std::get_if<std::string>(&at(i).value)) {
      StringRef rule = *text;
      if (rule.equals_insensitive("all") || rule.equals_insensitive("none"))
        return rule.equals_insensitive("all");
      throw UserError("E048", ("unknown NaN rule '" + rule + "'").str(),
                      "write tl.PropagateNan.ALL or tl.PropagateNan.NONE");
    }
    return boolean(i);
  }

  SmallVector<TileBuilder::LoopHint> hints(size_t i) const {
    SmallVector<TileBuilder::LoopHint> result;
    for (const Argument &item : list(i)) {
      const auto *pair = std::get_if<Argument::List>(&item.value);
      const auto *key =
          pair && pair->size() == 2 ? std::get_if<std::string>(&(*pair)[0].value) : nullptr;
      if (!key)
        throw InternalError("a loop hint is no pair of a name and a value");
      const Argument &value = (*pair)[1];
      if (value.isNone())
        continue;
      const bool *flag = std::get_if<bool>(&value.value);
      result.push_back({*key, flag ? *flag : toInteger(value, i), flag != nullptr});
    }
    return result;
  }

  TileBuilder &builder;

private:
  std::string describe(size_t i) const {
    return ("argument " + Twine(i + 1) + " of " + name).str();
  }

  std::string kindOf(const Argument &argument) const {
    if (std::holds_alternative<std::string>(argument.value))
      return "a string";
    if (const auto *type = std::get_if<ValueType>(&argument.value))
      return "the type " + toString(*type);
    if (std::holds_alternative<Argument::List>(argument.value))
      return "a tuple";
    if (const auto *value = std::get_if<ValueId>(&argument.value))
      return "a run-time " + toString(builder.typeOf(*value));
    return toOperand(argument).describe();
  }

  Operand toOperand(const Argument &argument) const {
    if (const bool *literal = std::get_if<bool>(&argument.value))
      return *literal;
    if (const int64_t *literal = std::get_if<int64_t>(&argument.value))
      return *literal;
    if (const uint64_t *literal = std::get_if<uint64_t>(&argument.value))
      return *literal;
    if (const double *literal = std::get_if<double>(&argument.value))
      return *literal;
    if (const ValueId *value = std::get_if<ValueId>(&argument.value))
      return builder.get(*value);
    if (argument.isNone())
      return Operand();
    throw UserError("E029", (name + " of " + kindOf(argument)).str(),
                    "pass a number, a pointer or a tile");
  }

  int64_t toInteger(const Argument &argument, size_t i) const {
    if (const int64_t *literal = std::get_if<int64_t>(&argument.value))
      return *literal;
    if (const bool *literal = std::get_if<bool>(&argument.value))
      return *literal;
    bool isValue = std::holds_alternative<ValueId>(argument.value);
    throw UserError("E019", describe(i) + " must be a constant integer, not " + kindOf(argument),
                    isValue ? "annotate the parameter that it comes from as tl.constexpr"
                            : "write an integer");
  }

  const ValueType &toType(const Argument &argument, size_t i) const {
    if (const auto *type = std::get_if<ValueType>(&argument.value))
      return *type;
    throw UserError("E034", describe(i) + " must be a type, not " + kindOf(argument),
                    "name a dtype, such as tl.float32");
  }

  ArrayRef<Argument> list(size_t i) const {
    const Argument &argument = at(i);
    if (argument.isNone())
      return {};
    if (const auto *items = std::get_if<Argument::List>(&argument.value))
      return *items;
    return argument;
  }

  StringRef name;
  ArrayRef<Argument> args;
};

/// The results of a builtin, collected as arguments.
struct Results {
  explicit Results(TileBuilder &builder) : builder(builder) {}
  void push(TileValue value) { list.push_back(builder.add(std::move(value))); }
  void push(std::pair<TileValue, TileValue> pair) {
    push(std::move(pair.first));
    push(std::move(pair.second));
  }
  void push(TileBuilder::Values values) {
    for (TileValue &value : values)
      push(std::move(value));
  }
  TileBuilder &builder;
  std::vector<Argument> list;
};

using Builtin = void (*)(const Arguments &, Results &);
using Table = llvm::StringMap<Builtin>;
} // namespace

//===----------------------------------------------------------------------===//
// Functions and control flow
//===----------------------------------------------------------------------===//

static void addControlFlow(Table &table) {
  table["begin_function"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginFunction(a.string(0), a.types(1), a.integers(2), a.boolean(3),
                                   a.boolean(4)));
  };
  table["end_function"] = [](const Arguments &a, Results &) {
    a.builder.endFunction(a.operands(0));
  };
  table["call_function"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.callFunction(a.string(0), a.operands(1)));
  };
  table["begin_if"] = [](const Arguments &a, Results &) { a.builder.beginIf(a.operand(0)); };
  table["begin_else"] = [](const Arguments &a, Results &) { a.builder.beginElse(); };
  table["end_if"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.endIf(a.operands(0), a.operands(1)));
  };
  table["begin_for"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginFor(a.operand(0), a.operand(1), a.operand(2), a.operands(3), a.hints(4)));
  };
  table["end_for"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.endFor(a.operands(0)));
  };
  table["begin_while"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginWhile(a.operands(0)));
  };
  table["while_condition"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.whileCondition(a.operand(0), a.operands(1)));
  };
  table["end_while"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.endWhile(a.operands(0)));
  };
  table["discard_region"] = [](const Arguments &a, Results &) { a.builder.discardRegion(); };
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

template <BinaryOperator op> static void callBinary(const Arguments &a, Results &r) {
  r.push(a.builder.binary(op, a.operand(0), a.operand(1)));
}

template <Comparison comparison> static void callCompare(const Arguments &a, Results &r) {
  r.push(a.builder.compare(comparison, a.operand(0), a.operand(1)));
}

static void addOperators(Table &table) {
  table["add"] = callBinary<BinaryOperator::Add>;
  table["sub"] = callBinary<BinaryOperator::Sub>;
  table["mul"] = callBinary<BinaryOperator::Mul>;
  table["truediv"] = callBinary<BinaryOperator::TrueDiv>;
  table["floordiv"] = callBinary<BinaryOperator::FloorDiv>;
  table["mod"] = callBinary<BinaryOperator::Mod>;
  table["and_"] = callBinary<BinaryOperator::And>;
  table["or_"] = callBinary<BinaryOperator::Or>;
  table["xor"] = callBinary<BinaryOperator::Xor>;
  table["shl"] = callBinary<BinaryOperator::Shl>;
  table["shr"] = callBinary<BinaryOperator::Shr>;
  table["eq"] = callCompare<Comparison::EQ>;
  table["ne"] = callCompare<Comparison::NE>;
  table["lt"] = callCompare<Comparison::LT>;
  table["le"] = callCompare<Comparison::LE>;
  table["gt"] = callCompare<Comparison::GT>;
  table["ge"] = callCompare<Comparison::GE>;
  table["logical_and"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.logical(/*isAnd=*/true, a.operand(0), a.operand(1)));
  };
  table["logical_or"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.logical(/*isAnd=*/false, a.operand(0), a.operand(1)));
  };
  table["neg"] = [](const Arguments &a, Results &r) { r.push(a.builder.negate(a.operand(0))); };
  table["plus"] = [](const Arguments &a, Results &r) { r.push(a.builder.plus(a.operand(0))); };
  table["invert"] = [](const Arguments &a, Results &r) { r.push(a.builder.invert(a.operand(0))); };
  table["not_"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.logicalNot(a.operand(0)));
  };
}

static void addCreation(Table &table) {
  table["constant"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.constant(a.operand(0), a.type(1)));
  };
  table["to_tensor"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.toTensor(a.operand(0)));
  };
  table["arange"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.arange(a.integer(0), a.integer(1)));
  };
  table["full"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.full(a.integers(0), a.operand(1), a.type(2).dtype));
  };
  table["cast"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.cast(a.operand(0), a.type(1), a.string(2), a.boolean(3)));
  };
}

static void addShapes(Table &table) {
  table["broadcast"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.broadcast(a.operand(0), a.operand(1)));
  };
  table["broadcast_to"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.broadcastTo(a.operand(0), a.integers(1)));
  };
  table["expand_dims"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.expandDims(a.operand(0), a.integers(1)));
  };
  table["reshape"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.reshape(a.operand(0), a.integers(1)));
  };
  table["permute"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.permute(a.operand(0), a.integers(1)));
  };
  table["join"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.join(a.operand(0), a.operand(1)));
  };
  table["split"] = [](const Arguments &a, Results &r) { r.push(a.builder.split(a.operand(0))); };
  table["cat"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.cat(a.operand(0), a.operand(1), a.optionalInteger(2).value_or(0)));
  };
}

static void addMaths(Table &table) {
  table["math"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.math(a.string(0), a.operand(1)));
  };
  table["sqrt_rn"] = [](const Arguments &a, Results &r) { r.push(a.builder.sqrtRn(a.operand(0))); };
  table["div_rn"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.divRn(a.operand(0), a.operand(1)));
  };
  table["fdiv"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.fdiv(a.operand(0), a.operand(1), a.boolean(2)));
  };
  table["fma"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.fma(a.operand(0), a.operand(1), a.operand(2)));
  };
  table["pow"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.pow(a.operand(0), a.operand(1)));
  };
  table["lookup"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.lookup(a.operand(0), a.operands(1)));
  };
  table["umulhi"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.umulhi(a.operand(0), a.operand(1)));
  };
  table["maximum"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.extremum(/*isMax=*/true, a.operand(0), a.operand(1), a.propagatesNan(2)));
  };
  table["minimum"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.extremum(/*isMax=*/false, a.operand(0), a.operand(1), a.propagatesNan(2)));
  };
  table["clamp"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.clamp(a.operand(0), a.operand(1), a.operand(2), a.propagatesNan(3)));
  };
  table["where"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.where(a.operand(0), a.operand(1), a.operand(2)));
  };
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void addMemory(Table &table) {
  table["load"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.load(a.operand(0), a.operand(1), a.operand(2), a.integers(3), a.string(4),
                          a.string(5), a.string(6), a.boolean(7)));
  };
  table["store"] = [](const Arguments &a, Results &) {
    a.builder.store(a.operand(0), a.operand(1), a.operand(2), a.integers(3), a.string(4),
                    a.string(5));
  };
  table["atomic_rmw"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.atomicRMW(a.string(0), a.operand(1), a.operand(2), a.operand(3), a.string(4),
                               a.string(5)));
  };
  table["atomic_cas"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.atomicCAS(a.operand(0), a.operand(1), a.operand(2), a.operand(3), a.string(4),
                               a.string(5)));
  };
  table["atomic_load"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.atomicLoad(a.operand(0), a.operand(1), a.string(2), a.string(3)));
  };
  table["atomic_store"] = [](const Arguments &a, Results &) {
    a.builder.atomicStore(a.operand(0), a.operand(1), a.operand(2), a.string(3), a.string(4));
  };
}

static void addDescriptors(Table &table) {
  table["make_block_ptr"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.makeBlockPtr(a.operand(0), a.operands(1), a.operands(2), a.operands(3),
                                  a.integers(4), a.integers(5)));
  };
  table["advance"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.advance(a.operand(0), a.operands(1)));
  };
  table["make_tensor_descriptor"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.makeDescriptor(a.operand(0), a.operands(1), a.operands(2), a.integers(3),
                                    a.string(4), a.boolean(5)));
  };
  table["descriptor_extent"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.descriptorExtent(a.operand(0), a.integer(1)));
  };
  table["descriptor_stride"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.descriptorStride(a.operand(0), a.integer(1)));
  };
  table["descriptor_load"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.descriptorLoad(a.operand(0), a.operands(1), a.string(2), a.string(3)));
  };
  table["descriptor_store"] = [](const Arguments &a, Results &) {
    a.builder.descriptorStore(a.operand(0), a.operands(1), a.operand(2));
  };
  // (descriptor, rows, column)
  table["descriptor_gather"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.descriptorGather(a.operand(0), a.operand(1), a.operand(2)));
  };
  // (descriptor, value, rows, column)
  table["descriptor_scatter"] = [](const Arguments &a, Results &) {
    a.builder.descriptorScatter(a.operand(0), a.operand(1), a.operand(2), a.operand(3));
  };
  // (kind, descriptor, [offsets], value)
  table["descriptor_reduce"] = [](const Arguments &a, Results &) {
    a.builder.descriptorReduce(a.string(0), a.operand(1), a.operands(2), a.operand(3));
  };
}

//===----------------------------------------------------------------------===//
// Matrices and reductions
//===----------------------------------------------------------------------===//

static void addMatrices(Table &table) {
  table["dot"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.dot(a.operand(0), a.operand(1), a.operand(2), a.string(3),
                         a.optionalInteger(4), a.optionalDType(5)));
  };
  // (lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc, fast_math,
  //  lhs_k_pack, rhs_k_pack, out_dtype)
  table["dot_scaled"] = [](const Arguments &a, Results &r) {
    TileBuilder::ScaledOperand lhs{a.operand(0), a.operand(1), a.string(2).str(),
                                   a.boolean(8, /*byDefault=*/true)};
    TileBuilder::ScaledOperand rhs{a.operand(3), a.operand(4), a.string(5).str(),
                                   a.boolean(9, /*byDefault=*/true)};
    r.push(a.builder.dotScaled(lhs, rhs, a.operand(6), a.boolean(7), a.optionalDType(10)));
  };
}

static void addReductions(Table &table) {
  table["begin_reduce"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginReduce(a.operands(0), a.optionalInteger(1)));
  };
  table["end_reduce"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.endReduce(a.operands(0)));
  };
  table["begin_scan"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginScan(a.operands(0), a.integer(1), a.boolean(2)));
  };
  table["end_scan"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.endScan(a.operands(0)));
  };
  table["begin_sort"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginSort(a.operands(0), a.integer(1)));
  };
  table["end_sort"] = [](const Arguments &a, Results &r) {
    // A list of one, like the other ends, or the condition itself.
    SmallVector<Operand> results = a.operands(0);
    if (results.size() != 1)
      throw InternalError("end_sort takes one condition");
    r.push(a.builder.endSort(results.front()));
  };
  table["begin_map"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.beginMap(a.operands(0)));
  };
  table["end_map"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.endMap(a.operands(0)));
  };
  table["gather"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.gather(a.operand(0), a.operand(1), a.integer(2)));
  };
  table["histogram"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.histogram(a.operand(0), a.integer(1), a.operand(2)));
  };
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

template <TileBuilder::Promise promise> static void callHint(const Arguments &a, Results &r) {
  r.push(a.builder.hint(promise, a.operand(0), a.integers(1), a.boolean(2)));
}

static void addPrograms(Table &table) {
  table["program_id"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.programId(a.integer(0)));
  };
  table["clock_ns"] = [](const Arguments &a, Results &r) { r.push(a.builder.clockNs()); };
  table["num_programs"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.numPrograms(a.integer(0)));
  };
  table["multiple_of"] = callHint<TileBuilder::Promise::MultipleOf>;
  table["max_contiguous"] = callHint<TileBuilder::Promise::MaxContiguous>;
  table["max_constancy"] = callHint<TileBuilder::Promise::MaxConstancy>;
  table["assume"] = [](const Arguments &a, Results &) { a.builder.assume(a.operand(0)); };
  table["barrier"] = [](const Arguments &a, Results &) { a.builder.barrier(); };
  table["device_print"] = [](const Arguments &a, Results &) {
    a.builder.devicePrint(a.string(0), a.operands(1), a.boolean(2));
  };
  table["device_assert"] = [](const Arguments &a, Results &) {
    a.builder.deviceAssert(a.operand(0), a.string(1), a.operand(2));
  };
  table["inline_asm"] = [](const Arguments &a, Results &r) {
    SmallVector<DType> dtypes;
    for (const ValueType &type : a.types(3))
      dtypes.push_back(type.dtype);
    r.push(a.builder.inlineAsm(a.string(0), a.string(1), a.operands(2), dtypes, a.boolean(4),
                               a.optionalInteger(5).value_or(1)));
  };
  table["extern_elementwise"] = [](const Arguments &a, Results &r) {
    r.push(a.builder.externElementwise(a.string(0), a.operands(1), a.type(2).dtype, a.boolean(3),
                                       a.string(4), a.string(5)));
  };
}

//===----------------------------------------------------------------------===//
// Call
//===----------------------------------------------------------------------===//

static const Table &getTable() {
  static const Table table = [] {
    Table table;
    addControlFlow(table);
    addOperators(table);
    addCreation(table);
    addShapes(table);
    addMaths(table);
    addMemory(table);
    addDescriptors(table);
    addMatrices(table);
    addReductions(table);
    addPrograms(table);
    return table;
  }();
  return table;
}

std::vector<StringRef> TileBuilder::getBuiltinNames() {
  std::vector<StringRef> names;
  for (StringRef name : getTable().keys())
    names.push_back(name);
  llvm::sort(names);
  return names;
}

std::vector<Argument> TileBuilder::call(StringRef name, ArrayRef<Argument> args) {
  const Table &table = getTable();
  auto builtin = table.find(name);
  if (builtin == table.end())
    throw InternalError(("unknown builtin " + name).str());
  Results results(*this);
  builtin->second(Arguments(*this, name, args), results);
  return std::move(results.list);
}
