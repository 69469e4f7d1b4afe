// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel's metadata as JSON, and back.

#include "tessera/Compiler/CompiledKernel.h"
#include "tessera/Support/UserError.h"

#include "llvm/Support/JSON.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace tessera {

/// Strings of JSON are UTF-8; paths of files need not be.
static std::string asUTF8(StringRef text) {
  return json::isUTF8(text) ? text.str() : json::fixUTF8(text);
}

static json::Value toJSON(const KernelArgument &argument) {
  return json::Object{
      {"type", argument.type}, {"loaded", argument.isLoaded}, {"stored", argument.isStored}};
}

static bool fromJSON(const json::Value &value, KernelArgument &argument, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("type", argument.type) && map.map("loaded", argument.isLoaded) &&
         map.map("stored", argument.isStored);
}

static json::Value toJSON(const KernelSite &site) {
  return json::Object{{"message", site.message}, {"file", site.file},
                      {"line", site.line},       {"column", site.column},
                      {"access", site.access},   {"argument", site.argument},
                      {"bytes", site.bytes},     {"wraps", site.wraps}};
}

static bool fromJSON(const json::Value &value, KernelSite &site, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("message", site.message) && map.map("file", site.file) &&
         map.map("line", site.line) && map.map("column", site.column) &&
         map.map("access", site.access) && map.map("argument", site.argument) &&
         map.map("bytes", site.bytes) && map.map("wraps", site.wraps);
}

static json::Value toJSON(const KernelAccess &access) {
  json::Array dims;
  for (const KernelAccess::Dim &dim : access.dims)
    dims.push_back(json::Object{{"extent", dim.extent},
                                {"stride", dim.stride},
                                {"upper", dim.upper},
                                {"lower", dim.lower}});
  return json::Object{{"access", access.access},     {"file", asUTF8(access.file)},
                      {"line", access.line},         {"column", access.column},
                      {"argument", access.argument}, {"bytes", access.bytes},
                      {"masked", access.isMasked},   {"offset", access.offset},
                      {"dims", std::move(dims)},     {"guards", access.guards}};
}

static bool fromJSON(const json::Value &value, KernelAccess::Dim &dim, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("extent", dim.extent) && map.map("stride", dim.stride) &&
         map.map("upper", dim.upper) && map.map("lower", dim.lower);
}

static bool fromJSON(const json::Value &value, KernelAccess &access, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("access", access.access) && map.map("file", access.file) &&
         map.map("line", access.line) && map.map("column", access.column) &&
         map.map("argument", access.argument) && map.map("bytes", access.bytes) &&
         map.map("masked", access.isMasked) && map.map("offset", access.offset) &&
         map.map("dims", access.dims) && map.map("guards", access.guards) && access.argument >= 0;
}

static json::Value toJSON(const Remark &remark) {
  json::Object values;
  for (const auto &[name, value] : remark.values) {
    const auto *number = std::get_if<int64_t>(&value);
    values[name] =
        number ? json::Value(*number) : json::Value(asUTF8(std::get<std::string>(value)));
  }
  return json::Object{{"kind", stringify(remark.kind)},    {"message", asUTF8(remark.message)},
                      {"file", asUTF8(remark.place.file)}, {"line", remark.place.line},
                      {"column", remark.place.column},     {"values", std::move(values)}};
}

static bool fromJSON(const json::Value &value, Remark &remark, json::Path path) {
  std::string kind;
  json::ObjectMapper map(value, path);
  const json::Object *object = value.getAsObject(),
                     *values = object ? object->getObject("values") : nullptr;
  if (!map || !values || !map.map("kind", kind) || !map.map("message", remark.message) ||
      !map.map("file", remark.place.file) || !map.map("line", remark.place.line) ||
      !map.map("column", remark.place.column))
    return false;
  remark.kind = symbolizeRemarkKind(kind).value_or(RemarkKind::Other);
  for (const auto &[name, each] : *values) {
    if (std::optional<int64_t> number = each.getAsInteger())
      remark.values.push_back({name.str(), *number});
    else if (std::optional<StringRef> text = each.getAsString())
      remark.values.push_back({name.str(), text->str()});
  }
  return true;
}

namespace cuda {

/// [argument, its bits]
static json::Value toJSON(const LaunchExpression::Factor &factor) {
  return json::Array{factor.argument, factor.isWide ? 64 : 32};
}

static bool fromJSON(const json::Value &value, LaunchExpression::Factor &factor, json::Path path) {
  std::vector<int> pair;
  if (!json::fromJSON(value, pair, path) || pair.size() != 2 || pair[0] < 0)
    return false;
  // Not of a GPU: bits of an argument.
  factor = {pair[0], pair[1] == 64};
  return true;
}

/// [[factor, argument, ...], ...]
static json::Value toJSON(const LaunchExpression &expression) {
  json::Array sum;
  for (const LaunchExpression::Term &term : expression.terms) {
    json::Array product{term.scale};
    for (const LaunchExpression::Factor &factor : term.factors)
      product.push_back(toJSON(factor));
    sum.push_back(std::move(product));
  }
  return sum;
}

static bool fromJSON(const json::Value &value, LaunchExpression &expression, json::Path path) {
  const json::Array *sum = value.getAsArray();
  if (!sum) {
    path.report("expected a sum");
    return false;
  }
  for (const json::Value &product : *sum) {
    const json::Array *factors = product.getAsArray();
    if (!factors || factors->empty() || !(*factors)[0].getAsInteger()) {
      path.report("expected a product");
      return false;
    }
    LaunchExpression::Term term{*(*factors)[0].getAsInteger(), {}};
    for (const json::Value &factor : drop_begin(*factors))
      if (!fromJSON(factor, term.factors.emplace_back(), path))
        return false;
    expression.terms.push_back(std::move(term));
  }
  return true;
}

static json::Value toJSON(const ArrayRange &range) {
  json::Array dims;
  for (const ArrayRange::Dim &dim : range.dims) {
    json::Object object{{"extent", toJSON(dim.extent)}, {"stride", toJSON(dim.stride)}};
    if (dim.first)
      object["first"] = dim.first->getText();
    dims.push_back(std::move(object));
  }
  return json::Object{
      {"argument", range.argument}, {"bytes", range.elementBytes}, {"dims", std::move(dims)}};
}

static bool fromJSON(const json::Value &value, ArrayRange::Dim &dim, json::Path path) {
  json::ObjectMapper map(value, path);
  std::string first;
  if (!map || !map.map("extent", dim.extent) || !map.map("stride", dim.stride) ||
      !map.mapOptional("first", first))
    return false;
  if (first.empty())
    return true;
  // The number of arguments is unknown here; the writer has checked it.
  dim.first = ProgramBound::parse(first, std::numeric_limits<int>::max());
  return dim.first.has_value();
}

static bool fromJSON(const json::Value &value, ArrayRange &range, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("argument", range.argument) && map.map("bytes", range.elementBytes) &&
         map.map("dims", range.dims) && range.argument >= 0;
}

/// Both ranges.
static json::Value toJSON(const ArraysApart &pair) {
  return json::Array{toJSON(pair.first), toJSON(pair.second)};
}

static bool fromJSON(const json::Value &value, ArraysApart &pair, json::Path path) {
  const json::Array *both = value.getAsArray();
  if (!both || both->size() != 2) {
    path.report("expected two ranges");
    return false;
  }
  return fromJSON((*both)[0], pair.first, path.index(0)) &&
         fromJSON((*both)[1], pair.second, path.index(1));
}

static json::Value toJSON(const DivisibleSum &sum) {
  return json::Object{{"upper", sum.upper},
                      {"lower", sum.lower},
                      {"step", sum.step},
                      {"iteration_cycles", sum.iterationCycles},
                      {"busy_cycles", sum.busyCycles},
                      {"meet_cycles", sum.meetCycles},
                      {"wait_cycles", sum.waitCycles},
                      {"exchange_cycles", sum.exchangeCycles},
                      {"pair_cycles", sum.pairCycles}};
}

static bool fromJSON(const json::Value &value, DivisibleSum &sum, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("upper", sum.upper) && map.map("lower", sum.lower) &&
         map.map("step", sum.step) && map.map("iteration_cycles", sum.iterationCycles) &&
         map.map("busy_cycles", sum.busyCycles) && map.map("meet_cycles", sum.meetCycles) &&
         map.map("wait_cycles", sum.waitCycles) && map.map("exchange_cycles", sum.exchangeCycles) &&
         map.map("pair_cycles", sum.pairCycles);
}

static json::Value toJSON(const TensorMapRecipe::Dim &dim) {
  return json::Object{
      {"extent", toJSON(dim.extent)}, {"stride", toJSON(dim.stride)}, {"box", dim.box}};
}

static bool fromJSON(const json::Value &value, TensorMapRecipe::Dim &dim, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("extent", dim.extent) && map.map("stride", dim.stride) &&
         map.map("box", dim.box);
}

static json::Value toJSON(const TensorMapRecipe &recipe) {
  json::Array dims;
  for (const TensorMapRecipe::Dim &dim : recipe.dims)
    dims.push_back(toJSON(dim));
  return json::Object{{"base", recipe.base},
                      {"element", static_cast<int>(recipe.element)},
                      {"bytes", recipe.elementBytes},
                      {"swizzle", recipe.swizzleBytes},
                      {"dims", std::move(dims)}};
}

static bool fromJSON(const json::Value &value, TensorMapRecipe &recipe, json::Path path) {
  json::ObjectMapper map(value, path);
  int element = 0;
  if (!(map && map.map("base", recipe.base) && map.map("element", element) &&
        map.map("bytes", recipe.elementBytes) && map.map("swizzle", recipe.swizzleBytes) &&
        map.map("dims", recipe.dims)))
    return false;
  recipe.element = static_cast<TensorMapElement>(element);
  if (recipe.dims.empty() || recipe.dims.size() > TensorMapShape::kMaxRank) {
    path.report("expected one to five dimensions");
    return false;
  }
  return true;
}

} // namespace cuda

/// [stage, milliseconds]
static bool fromJSON(const json::Value &value, StageTime &time, json::Path path) {
  const json::Array *array = value.getAsArray();
  if (!array || array->size() != 2) {
    path.report("expected a pair");
    return false;
  }
  return json::fromJSON((*array)[0], time.stage, path.index(0)) &&
         json::fromJSON((*array)[1], time.milliseconds, path.index(1));
}

template <typename T> static json::Array toArray(const std::vector<T> &items) {
  json::Array array;
  for (const T &item : items)
    array.push_back(toJSON(item));
  return array;
}

static json::Array toJSON(const std::vector<StageTime> &stageTimes) {
  json::Array times;
  for (const auto &[stage, milliseconds] : stageTimes)
    // Not of a GPU: the digits of a time.
    times.push_back(json::Array{stage, std::round(milliseconds * 1000) / 1000});
  return times;
}

std::string KernelMetadata::toJSON(StringRef json) const {
  // A string of the metadata has no such text, since its quotes are escaped. The array has no other
  // nested ones, and its strings are names of stages.
  constexpr StringLiteral kKey = "\"stage_ms\":[[", kEnd = "]]";
  size_t key = json.find(kKey), end = json.find(kEnd, key);
  if (key == StringRef::npos || end == StringRef::npos)
    return toJSON();
  std::string text;
  raw_string_ostream(text) << json.take_front(key + kKey.size() - 2)
                           << json::Value(tessera::toJSON(stageTimes))
                           << json.drop_front(end + kEnd.size());
  return text;
}

std::string KernelMetadata::toJSON() const {
  std::vector<KernelSite> siteCopies = sites;
  for (KernelSite &site : siteCopies) {
    site.message = asUTF8(site.message);
    site.file = asUTF8(site.file);
  }
  json::Object object{
      {"name", name},
      {"target", target},
      {"cpu", cpu},
      {"features", features},
      {"machine", machine},
      {"vector_bits", vectorBits},
      {"abi_version", abiVersion},
      {"num_threads", numThreads},
      {"scratch_bytes", scratchBytes},
      {"arch", arch},
      {"capability", capability},
      {"num_warps", numWarps},
      {"num_ctas", numCTAs},
      {"shared_bytes", sharedBytes},
      {"num_stages", numStages},
      {"num_registers", numRegisters},
      {"spill_bytes", spillBytes},
      {"assembler", assembler},
      {"arguments", toArray(arguments)},
      {"tensor_maps", toArray(tensorMaps)},
      {"launch_conditions", toArray(launchConditions)},
      {"arrays_apart", toArray(arraysApart)},
      {"most_programs", mostPrograms},
      {"program_bounds", json::Array(programBounds)},
      {"persistent_programs", persistentPrograms},
      {"argument_tables", json::Array(argumentTables)},
      {"waits_for_stream", waitsForStream},
      {"divisible_sum", divisibleSum ? cuda::toJSON(*divisibleSum) : json::Value(nullptr)},
      {"short_loops", json::Array(shortLoops)},
      {"waits_for_programs", waitsForPrograms},
      {"work", work},
      {"sites", toArray(siteCopies)},
      {"certain_accesses", toArray(certainAccesses)},
      {"stage_ms", tessera::toJSON(stageTimes)},
      {"remarks", toArray(remarks)},
  };
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(object));
  return text;
}

KernelMetadata KernelMetadata::fromJSON(StringRef text) {
  Expected<json::Value> value = json::parse(text);
  if (!value)
    throw InternalError("kernel metadata is not JSON: " + toString(value.takeError()));
  KernelMetadata metadata;
  json::Path::Root root("metadata");
  json::ObjectMapper map(*value, root);
  bool isRead =
      map && map.map("name", metadata.name) && map.map("target", metadata.target) &&
      map.map("cpu", metadata.cpu) && map.map("features", metadata.features) &&
      map.map("machine", metadata.machine) && map.map("vector_bits", metadata.vectorBits) &&
      map.map("abi_version", metadata.abiVersion) && map.map("num_threads", metadata.numThreads) &&
      map.map("scratch_bytes", metadata.scratchBytes) && map.map("arch", metadata.arch) &&
      map.map("capability", metadata.capability) && map.map("num_warps", metadata.numWarps) &&
      map.map("num_ctas", metadata.numCTAs) && map.map("shared_bytes", metadata.sharedBytes) &&
      map.map("num_stages", metadata.numStages) &&
      map.map("num_registers", metadata.numRegisters) &&
      map.map("spill_bytes", metadata.spillBytes) && map.map("assembler", metadata.assembler) &&
      map.map("arguments", metadata.arguments) && map.map("tensor_maps", metadata.tensorMaps) &&
      map.map("launch_conditions", metadata.launchConditions) &&
      map.map("arrays_apart", metadata.arraysApart) &&
      map.map("most_programs", metadata.mostPrograms) &&
      map.map("program_bounds", metadata.programBounds) &&
      map.map("persistent_programs", metadata.persistentPrograms) &&
      map.map("argument_tables", metadata.argumentTables) &&
      map.map("waits_for_stream", metadata.waitsForStream) &&
      map.map("divisible_sum", metadata.divisibleSum) &&
      map.map("short_loops", metadata.shortLoops) &&
      map.map("waits_for_programs", metadata.waitsForPrograms) && map.map("work", metadata.work) &&
      map.map("sites", metadata.sites) && map.map("certain_accesses", metadata.certainAccesses) &&
      map.map("stage_ms", metadata.stageTimes) && map.map("remarks", metadata.remarks);
  if (!isRead)
    throw InternalError("kernel metadata: " + toString(root.getError()));
  return metadata;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

static StringRef getOperationName(uint8_t operation) {
  static constexpr StringLiteral kNames[] = {
      "END", "CONSTANT", "ARGUMENT", "PROGRAM", "EXTENT", "UNSIGNED", "LOOP",
      "ADD", "SUB",      "MUL",      "DIV",     "REM",    "MIN",      "MAX"};
  static_assert(std::size(kNames) == TESSERA_MAX + 1);
  return kNames[operation];
}

static json::Value describe(const tessera_step *formula) {
  if (!formula)
    return nullptr;
  json::Array steps;
  for (; formula->operation != TESSERA_END; ++formula)
    steps.push_back(
        json::Array{getOperationName(formula->operation), formula->bits, formula->number});
  return steps;
}

static json::Value describe(const tessera_array &array) {
  json::Array dims;
  for (const tessera_dim &dim : ArrayRef(array.dims, array.rank))
    dims.push_back(json::Object{{"extent", describe(dim.extent)},
                                {"stride", describe(dim.stride)},
                                {"box", dim.box},
                                {"first", describe(dim.first)}});
  return json::Object{{"argument", array.argument},
                      {"element_bytes", array.element_bytes},
                      {"dims", std::move(dims)}};
}

std::string CompiledKernel::describeLimits() const {
  if (limits->isEmpty())
    return "null";
  json::Array conditions, apart, maps;
  for (const tessera_step *formula : ArrayRef(limitTables.conditions, limitTables.num_conditions))
    conditions.push_back(describe(formula));
  for (const tessera_array_pair &pair : ArrayRef(limitTables.apart, limitTables.num_apart))
    apart.push_back(json::Array{describe(pair.first), describe(pair.second)});
  for (const tessera_tensor_map &map : ArrayRef(limitTables.maps, limitTables.num_maps))
    maps.push_back(json::Object{{"array", describe(map.array)},
                                {"element", map.element},
                                {"swizzle_bytes", map.swizzle_bytes}});
  std::string text;
  raw_string_ostream(text) << json::Value(
      json::Object{{"most_programs", limitTables.most_programs},
                   {"counts_programs", limitTables.counts_programs != 0},
                   {"conditions", std::move(conditions)},
                   {"apart", std::move(apart)},
                   {"maps", std::move(maps)}});
  return text;
}

} // namespace tessera
