// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, launches and serialises compiled kernels.

#include "tessera/Compiler/CompiledKernel.h"

#include "tessera/Runtime/CUDA/Launcher.h"
#include "tessera/Runtime/Host/Launcher.h"
#include "tessera/Support/AssertionFault.h"
#include "tessera/Support/Cancellation.h"
#include "tessera/Support/LaunchRefused.h"
#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/Host/LoadedObject.h"
#include "tessera/Target/Host/ShownCode.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/xxhash.h"

#include <chrono>

using namespace llvm;
using namespace tessera;

static cuda::LaunchLimits makeLimits(const KernelMetadata &metadata) {
  cuda::LaunchLimits limits;
  limits.mostPrograms = metadata.mostPrograms;
  limits.countsPrograms = metadata.persistentPrograms != 0;
  for (const cuda::LaunchExpression &condition : metadata.launchConditions)
    limits.addCondition(condition);
  for (const std::string &text : metadata.programBounds) {
    auto bound = cuda::ProgramBound::parse(text, metadata.arguments.size());
    if (!bound)
      throw InternalError("kernel metadata has no bound: " + text);
    limits.addCondition(*bound);
  }
  for (const cuda::ArraysApart &pair : metadata.arraysApart)
    limits.addApart(pair);
  for (const cuda::TensorMapRecipe &recipe : metadata.tensorMaps)
    limits.addTensorMap(recipe);
  return limits;
}

CompiledKernel::CompiledKernel(KernelMetadata newMetadata, std::string newObject,
                               std::vector<std::pair<std::string, std::string>> newStages,
                               StringRef knownJSON)
    : metadata(std::move(newMetadata)), object(std::move(newObject)), stages(std::move(newStages)),
      limits(std::make_shared<cuda::LaunchLimits>(makeLimits(metadata))),
      limitTables(limits->get()) {
  if (metadata.target == "cuda") {
    cuda::KernelDescription description;
    description.name = metadata.name;
    description.capability = metadata.capability;
    description.numWarps = metadata.numWarps;
    description.numCTAs = metadata.numCTAs;
    description.sharedBytes = metadata.sharedBytes;
    description.numArguments = metadata.arguments.size();
    description.limits = limits;
    description.persistentPrograms = metadata.persistentPrograms;
    description.argumentTables = metadata.argumentTables;
    description.waitsForStream = metadata.waitsForStream;
    description.sum = metadata.divisibleSum;
    for (const std::string &text : metadata.shortLoops)
      if (auto bound = cuda::ProgramBound::parse(text, metadata.arguments.size()))
        shortLoops.push_back(std::move(*bound));
      else
        throw InternalError("kernel metadata has no bound: " + text);
    onGPU = std::make_unique<cuda::LoadedKernel>(std::move(description), object);
    metadataJSON = metadata.toJSON(knownJSON);
    return;
  }
  auto start = std::chrono::steady_clock::now();
  missingFeature = findMissingFeature(metadata.cpu, metadata.features);
  if (isForeignCPU(metadata.cpu)) { // there is nothing to load it into
    metadataJSON = metadata.toJSON(knownJSON);
    return;
  }
  loaded = host::LoadedObject::load(object, getKernelSymbol(metadata.name));
  launchable = std::make_unique<host::LaunchableKernel>();
  launchable->function = reinterpret_cast<host::ChunkFunction>(loaded->getAddress());
  launchable->scratchBytes = metadata.scratchBytes;
  launchable->waitsForPrograms = metadata.waitsForPrograms;
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  metadata.stageTimes.push_back({"load", took.count()});
  metadataJSON = metadata.toJSON(knownJSON);
}

CompiledKernel::~CompiledKernel() = default;

std::string tessera::getKernelSymbol(StringRef name) { return (name + ".kernel").str(); }

std::optional<StringRef> CompiledKernel::getStage(StringRef name) const {
  StringRef last = onGPU ? (metadata.assembler == kDriverAssembles ? "ptx" : "cubin") : "object";
  if (name == last)
    return StringRef(object);
  for (const auto &[stage, text] : stages)
    if (stage == name)
      return StringRef(text);
  return std::nullopt;
}

/// The user error for a failed assertion or check.
static UserError describeFault(const KernelMetadata &metadata, const host::Fault &fault,
                               ArrayRef<uint64_t> args, ArrayRef<ArgumentMemory> memory) {
  if (fault.site < 0 || static_cast<size_t>(fault.site) >= metadata.sites.size())
    return describeAssertion(metadata.name, &fault.program[0], "", "");
  const KernelSite &site = metadata.sites[fault.site];
  std::string location;
  if (!site.file.empty())
    location = site.file + ":" + std::to_string(site.line) + ":" + std::to_string(site.column);
  if (!site.access.empty()) {
    AccessFault access;
    access.access = site.access;
    access.kernel = metadata.name;
    llvm::copy(fault.program, access.program);
    access.argument = site.argument;
    access.pointer = static_cast<int64_t>(args[site.argument]);
    if (static_cast<size_t>(site.argument) < memory.size())
      access.memory = memory[site.argument];
    access.elementBytes = site.bytes;
    access.offset = fault.offset;
    access.wraps = site.wraps;
    access.location = location;
    return describeAccessFault(access);
  }
  return describeAssertion(metadata.name, &fault.program[0], site.message, location);
}

/// Describes the arguments of a launch condition, and their values.
static std::string describeCondition(const cuda::LaunchExpression &condition,
                                     ArrayRef<uint64_t> args) {
  std::string text;
  for (const cuda::LaunchExpression::Term &term : condition.terms)
    for (const cuda::LaunchExpression::Factor &factor : term.factors) {
      auto number = static_cast<int64_t>(args[factor.argument]);
      number = factor.isWide ? number : static_cast<int32_t>(number);
      text += (text.empty() ? "argument " : " and argument ") + std::to_string(factor.argument) +
              " (counted from 0) is " + std::to_string(number);
      text += number < 0 ? ", negative" : "";
    }
  return text;
}

static constexpr int kNumAxes = 3;

void CompiledKernel::checkLaunch(ArrayRef<int32_t> grid, ArrayRef<uint64_t> args) const {
  if (args.size() != metadata.arguments.size())
    throw UserError("E051", "kernel '" + metadata.name + "' takes " +
                                std::to_string(metadata.arguments.size()) + " arguments, got " +
                                std::to_string(args.size()));
  if (grid.size() != kNumAxes)
    throw UserError("E052", "a grid has three extents, got " + std::to_string(grid.size()));
  int64_t numPrograms = 1;
  for (int axis = 0; axis < kNumAxes; ++axis) {
    if (grid[axis] < 0)
      throw UserError("E052",
                      "grid extent " + std::to_string(axis) + " is " + std::to_string(grid[axis]),
                      "extents are 0 or more; 0 runs nothing");
    if (__builtin_mul_overflow(numPrograms, int64_t(grid[axis]), &numPrograms))
      throw UserError("E052", "the grid has more than 2^63 programs");
  }
}

/// A function of its own, since shapes take space on the stack and most kernels have no limits.
[[gnu::noinline]] static bool evaluateLimits(const tessera_limits &limits, ArrayRef<int32_t> grid,
                                             ArrayRef<uint64_t> args) {
  tessera_shape shapes[cuda::LoadedKernel::kMaxTensorMaps];
  return tessera_accepts(&limits, grid.data(), args.data(), shapes) != 0;
}

bool CompiledKernel::isWithinLimits(ArrayRef<int32_t> grid,
                                    ArrayRef<uint64_t> args) const noexcept {
  return limits->isEmpty() || evaluateLimits(limitTables, grid, args);
}

std::optional<LaunchRefused> CompiledKernel::describeWrap(ArrayRef<int32_t> grid,
                                                          ArrayRef<uint64_t> args) const {
  std::string what;
  for (int axis = 0; metadata.mostPrograms && what.empty() && axis < kNumAxes; ++axis)
    if (grid[axis] > metadata.mostPrograms)
      what = "grid extent " + std::to_string(axis) + " is " + std::to_string(grid[axis]) +
             ", more than " + std::to_string(metadata.mostPrograms);
  if (what.empty() && onGPU)
    return std::nullopt;
  for (const cuda::LaunchExpression &condition : metadata.launchConditions)
    if (what.empty() && condition.evaluate(args.data()).value_or(-1) < 0)
      what = describeCondition(condition, args);
  if (what.empty())
    what = "an index may wrap in one of its programs";
  return LaunchRefused(Refusal::OutsideLimits, "E070",
                       "kernel '" + metadata.name +
                           "' was compiled for indices that do not wrap, but " + what,
                       "compile it with tensor_maps=False");
}

void CompiledKernel::checkCertainAccesses(ArrayRef<int32_t> grid, ArrayRef<uint64_t> args,
                                          ArrayRef<ArgumentMemory> memory) const {
  checkLaunch(grid, args);
  for (const KernelAccess &access : metadata.certainAccesses) {
    if (static_cast<size_t>(access.argument) >= std::min(args.size(), memory.size()))
      continue;
    std::optional<AccessFault> fault = access.findFault(grid, args, memory[access.argument]);
    if (!fault)
      continue;
    fault->kernel = metadata.name;
    UserError found = describeAccessFault(*fault);
    UserError error("E088",
                    found.message + (access.isMasked ? ": the mask of the " + access.access +
                                                           " does not exclude it"
                                                     : ": the " + access.access + " has no mask"),
                    access.isMasked
                        ? "compare with the number of elements in the mask, or pass a larger array"
                        : "give it a mask, as `mask=i < n` for an index i and n elements, or pass "
                          "a larger array");
    error.location = found.location;
    throw error;
  }
}

bool CompiledKernel::accepts(ArrayRef<int32_t> grid, ArrayRef<uint64_t> args) const noexcept {
  if (args.size() != metadata.arguments.size() || grid.size() != kNumAxes ||
      llvm::any_of(grid, [](int32_t extent) { return extent < 0; }))
    return true;
  return isWithinLimits(grid, args);
}

cuda::Division CompiledKernel::chooseDivision(int device, ArrayRef<int32_t> grid,
                                              ArrayRef<uint64_t> args) const noexcept {
  if (!onGPU || args.size() != metadata.arguments.size())
    return {};
  try {
    cuda::Division division = onGPU->chooseDivision(device, grid.data(), args.data());
    division.hasShortLoops =
        !shortLoops.empty() && llvm::all_of(shortLoops, [&](const cuda::ProgramBound &bound) {
          return bound.holds(args.data(), grid.data());
        });
    return division;
  } catch (const cuda::DriverError &) {
    return {}; // The launch says what is wrong.
  }
}

/// True if a kernel checks accesses against the memory behind its arguments.
static bool checksAccesses(const KernelMetadata &metadata) {
  return llvm::any_of(metadata.sites, [](const KernelSite &site) { return !site.access.empty(); });
}

void CompiledKernel::launch(ArrayRef<int32_t> grid, ArrayRef<uint64_t> args, int numThreads,
                            bool (*isInterrupted)(), ArrayRef<ArgumentMemory> memory) const {
  checkLaunch(grid, args);
  if (onGPU)
    throw UserError("E054",
                    "kernel '" + metadata.name + "' was compiled for " + metadata.arch +
                        " and is launched on the CPU",
                    "pass arrays that are on a GPU, or compile for target=\"cpu\"");
  if (!missingFeature.empty())
    throw UserError("E030",
                    "kernel '" + metadata.name + "' was compiled for CPU '" + metadata.cpu +
                        "' and needs " + missingFeature + ", which this machine lacks",
                    "compile it for cpu=\"host\"");
  if (!isWithinLimits(grid, args))
    throw *describeWrap(grid, args);
  if (shown)
    host::ShownCode::followFork();
  host::LaunchOptions options;
  options.numThreads = numThreads > 0 ? numThreads : metadata.numThreads;
  options.isInterrupted = isInterrupted;
  SmallVector<host::MemoryRange> ranges;
  if (checksAccesses(metadata)) {
    for (size_t i = 0; i < args.size(); ++i) {
      ArgumentMemory behind = i < memory.size() ? memory[i] : ArgumentMemory();
      ranges.push_back({behind.begin, behind.end});
    }
    options.memory = ranges.data();
  }
  host::Fault fault;
  try {
    if (!host::launch(*launchable, grid.data(), args.data(), fault, options))
      throw describeFault(metadata, fault, args, memory);
  } catch (const host::Interrupted &) {
    throw Cancelled();
  }
}

/// "(2, 3)"
template <typename Range, typename Get> static std::string list(const Range &values, Get get) {
  std::string text;
  for (const auto &value : values)
    text += (text.empty() ? "" : ", ") + get(value);
  return "(" + text + ")";
}

/// Describes the argument that allows no tensor map, or that overlaps another one.
static std::string describeMissingMap(const KernelMetadata &metadata, ArrayRef<int32_t> grid,
                                      ArrayRef<uint64_t> args) {
  for (const cuda::ArraysApart &pair : metadata.arraysApart)
    if (!pair.holds(args.data(), grid.data()))
      return "the arrays of arguments " + std::to_string(pair.first.argument) + " and " +
             std::to_string(pair.second.argument) +
             " (counted from 0) overlap: a load must not come before a store to the same place";
  auto value = [&](const cuda::LaunchExpression &expression) {
    std::optional<int64_t> number = expression.evaluate(args.data());
    return number ? std::to_string(*number) : "beyond 64 bits";
  };
  for (const cuda::TensorMapRecipe &recipe : metadata.tensorMaps) {
    cuda::TensorMapShape shape;
    if (cuda::evaluate(recipe, args.data(), shape))
      continue;
    using Dim = cuda::TensorMapRecipe::Dim;
    return "the array of argument " + std::to_string(recipe.base) + " (counted from 0), at 0x" +
           utohexstr(args[recipe.base]) + " with extents " +
           list(recipe.dims, [&](const Dim &dim) { return value(dim.extent); }) + " and strides " +
           list(recipe.dims, [&](const Dim &dim) { return value(dim.stride); }) +
           " in elements of " + std::to_string(recipe.elementBytes) +
           " bytes, has none: it is empty or too large, or its address or a stride is no multiple "
           "of 16 bytes";
  }
  for (const cuda::LaunchExpression &condition : metadata.launchConditions)
    if (condition.evaluate(args.data()).value_or(-1) < 0)
      return describeCondition(condition, args);
  for (const std::string &text : metadata.programBounds)
    if (auto bound = cuda::ProgramBound::parse(text, args.size());
        bound && !bound->holds(args.data(), grid.data()))
      return cuda::describeBrokenBound(text);
  return "there are too many programs, or the driver makes no map of these arrays";
}

void CompiledKernel::launchCUDA(int device, void *stream, ArrayRef<int32_t> grid,
                                ArrayRef<uint64_t> args) const {
  checkLaunch(grid, args);
  if (!onGPU)
    throw UserError(
        "E054", "kernel '" + metadata.name + "' was compiled for the CPU and is launched on a GPU",
        "compile it for target=\"cuda\"");
  try {
    if (!onGPU->launch(device, stream, grid.data(), args.data())) {
      if (std::optional<LaunchRefused> wrap = describeWrap(grid, args))
        throw *wrap;
      throw LaunchRefused(Refusal::OutsideLimits, "E070",
                          "kernel '" + metadata.name + "', launched with grid " +
                              list(grid, [](int32_t extent) { return std::to_string(extent); }) +
                              ", was compiled to move boxes of arrays by tensor maps, but " +
                              describeMissingMap(metadata, grid, args),
                          "compile it with tensor_maps=False");
    }
  } catch (const cuda::NoClusterRoom &error) {
    throw LaunchRefused(Refusal::NoClusterRoom, "E066", error.message);
  } catch (const cuda::DriverError &error) {
    throw UserError("E066", error.message);
  }
}

int CompiledKernel::countRegisters(int device) const {
  if (metadata.numRegisters || !onGPU || device < 0)
    return metadata.numRegisters;
  try {
    return onGPU->getNumRegisters(device);
  } catch (const cuda::DriverError &error) {
    throw UserError("E066", error.message);
  }
}

std::string CompiledKernel::getDeviceFacts(int device) const {
  if (!onGPU)
    throw UserError("E054", "kernel '" + metadata.name + "' was compiled for the CPU",
                    "compile it for target=\"cuda\"");
  try {
    std::string text;
    raw_string_ostream(text) << json::Value(
        json::Object{{"num_registers", onGPU->getNumRegisters(device)},
                     {"local_bytes", onGPU->getLocalBytes(device)},
                     {"log", json::fixUTF8(onGPU->getLog(device))}});
    return text;
  } catch (const cuda::DriverError &error) {
    throw UserError("E066", error.message);
  }
}

void CompiledKernel::show(bool toPerf, bool toGDB) {
  shown.reset();
  if (loaded && (toPerf || toGDB))
    shown = host::ShownCode::show(object, getKernelSymbol(metadata.name), loaded->getAddress(),
                                  metadata.name, {toPerf, toGDB});
}

// On disk: magic, checksum of all that follows, length of the metadata, metadata, object.
static constexpr StringLiteral kMagic = "TsrKern4";

std::string CompiledKernel::serialize() const {
  char length[8];
  support::endian::write64le(length, metadataJSON.size());
  std::string body = std::string(length, 8) + metadataJSON + object;
  char checksum[8];
  support::endian::write64le(checksum, xxh3_64bits(body));
  return kMagic.str() + std::string(checksum, 8) + body;
}

std::unique_ptr<CompiledKernel> CompiledKernel::deserialize(StringRef bytes) {
  // Not of a GPU: the head has a name, a checksum and a length of 8 bytes each.
  constexpr size_t headSize = 24, hashedFrom = 16;
  if (bytes.size() < headSize || !bytes.starts_with(kMagic))
    throw InternalError("not a compiled kernel");
  StringRef body = bytes.drop_front(hashedFrom);
  if (support::endian::read64le(bytes.data() + 8) != xxh3_64bits(body))
    throw InternalError("a compiled kernel is damaged: its checksum differs");
  uint64_t length = support::endian::read64le(body.data());
  body = body.drop_front(8);
  if (length > body.size())
    throw InternalError("a compiled kernel is damaged: it is too short");
  KernelMetadata metadata = KernelMetadata::fromJSON(body.take_front(length));
  if (metadata.target == "cpu" && metadata.abiVersion != host::kHostABIVersion)
    throw InternalError("a compiled kernel is of launch version " +
                        std::to_string(metadata.abiVersion) + ", this library of " +
                        std::to_string(host::kHostABIVersion));
  // Another process loaded it then; this process adds its own time.
  if (!metadata.stageTimes.empty() && metadata.stageTimes.back().stage == "load")
    metadata.stageTimes.pop_back();
  return std::make_unique<CompiledKernel>(std::move(metadata), body.drop_front(length).str(),
                                          std::vector<std::pair<std::string, std::string>>(),
                                          body.take_front(length));
}
