// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry: which kernel, over which grid; and the report.

#include "tessera/Simulator/Simulator.h"
#include "tessera/Machine/GPUMachine.h"

#include "Decoder.h"
#include "Machine.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "tessera/Support/LaunchRefused.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

StringRef tessera::getName(FindingKind kind) {
  switch (kind) {
  case FindingKind::OutOfBounds:
    return "out of bounds";
  case FindingKind::Misaligned:
    return "misaligned";
  case FindingKind::Uninitialised:
    return "uninitialised";
  case FindingKind::Race:
    return "race";
  case FindingKind::Divergence:
    return "divergence";
  case FindingKind::Deadlock:
    return "deadlock";
  case FindingKind::UnorderedProxy:
    return "unordered proxy";
  case FindingKind::ReusedBarrier:
    return "reused barrier";
  case FindingKind::PersistentKernel:
    return "persistent kernel";
  case FindingKind::BlockNotRunning:
    return "block not running";
  }
  llvm_unreachable("covered switch");
}

std::string tessera::describe(const Finding &finding) {
  std::string text = finding.location;
  if (!text.empty())
    text += ": ";
  text += llvm::formatv("{0}: kernel '{1}', program ({2}, {3}, {4}), ", getName(finding.kind),
                        finding.kernel, finding.program[0], finding.program[1], finding.program[2]);
  if (finding.block >= 0)
    text += llvm::formatv("block {0}, ", finding.block);
  text += llvm::formatv("thread {0} (warp {1} lane {2}) ", finding.thread, finding.thread / 32,
                        finding.thread % 32);
  text += finding.message;
  if (finding.count > 1)
    text += llvm::formatv(" ({0} times)", finding.count);
  return text;
}

std::string SimulatorReport::toJSON() const {
  llvm::json::Array list, accesses;
  for (const Finding &finding : findings)
    list.push_back(llvm::json::Object{
        {"kind", getName(finding.kind)},
        {"kernel", finding.kernel},
        {"location", finding.location},
        {"program", llvm::json::Array{finding.program[0], finding.program[1], finding.program[2]}},
        {"block", finding.block},
        {"thread", finding.thread},
        {"address", finding.address},
        {"message", finding.message},
        {"count", finding.count},
        {"array", finding.array},
        {"element", finding.element},
        {"text", describe(finding)},
    });
  for (const SharedAccess &access : sharedAccesses)
    accesses.push_back(llvm::json::Object{{"location", access.location},
                                          {"instruction", access.instruction},
                                          {"executions", access.executions},
                                          {"wavefronts", access.wavefronts},
                                          {"ideal", access.ideal}});
  llvm::json::Object all{{"findings", std::move(list)},
                         {"shared", std::move(accesses)},
                         {"instructions", instructions},
                         {"lane_operations", laneOperations}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(all));
  return text;
}

static LLVM::LLVMFuncOp findKernel(ModuleOp module, StringRef name) {
  SmallVector<StringRef> names;
  LLVM::LLVMFuncOp only;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    if (function.getName() == name)
      return function;
    only = function;
    names.push_back(function.getName());
  }
  if (name.empty() && names.size() == 1)
    return only;
  throw UserError("E051",
                  name.empty() ? "the module does not have one kernel for a GPU"
                               : llvm::formatv("the module has no kernel '{0}'", name).str(),
                  llvm::formatv("its kernels: {0}", llvm::join(names, ", ")));
}

/// Those of an SM, shared out in steps of 8 to the programs that the kernel wants
/// there at once.
static unsigned getEntryRegisters(LLVM::LLVMFuncOp kernel, unsigned numWarps) {
  auto attr = kernel->getAttrOfType<IntegerAttr>(NVVM::NVVMDialect::getMinctasmAttrName());
  unsigned programs = attr ? std::max<int64_t>(1, attr.getInt()) : 1;
  return GPUMachine::getRegisters(programs * numWarps * kLanes);
}

static std::vector<TensorMap> makeTensorMaps(ArrayRef<uint64_t> slots,
                                             const std::array<int32_t, 3> &grid,
                                             const SimulatorOptions &options) {
  bool canBe =
      llvm::none_of(options.launchConditions, [&](const cuda::LaunchExpression &condition) {
        return condition.evaluate(slots.data()).value_or(-1) < 0;
      });
  for (const cuda::ArraysApart &pair : options.arraysApart)
    if (!pair.holds(slots.data(), grid.data()))
      throw LaunchRefused(
          Refusal::OutsideLimits, "E070",
          llvm::formatv("the arrays of arguments {0} and {1} (counted from 0) overlap",
                        pair.first.argument, pair.second.argument),
          "compile the kernel with tensor_maps=False");
  std::vector<TensorMap> maps;
  for (const cuda::TensorMapRecipe &recipe : options.tensorMaps) {
    TensorMap map;
    map.element = recipe.element;
    map.elementBytes = recipe.elementBytes;
    map.swizzleBytes = recipe.swizzleBytes;
    canBe = canBe && cuda::evaluate(recipe, slots.data(), map.shape);
    maps.push_back(map);
  }
  if (!canBe)
    throw LaunchRefused(Refusal::OutsideLimits, "E070",
                        "no tensor maps can be made of these arguments",
                        "compile the kernel with tensor_maps=False");
  return maps;
}

/// The blocks of a cluster along each axis.
static std::array<int32_t, 3> getCluster(LLVM::LLVMFuncOp kernel, const SimulatorOptions &options) {
  std::array<int32_t, 3> cluster = {1, 1, 1};
  if (options.cluster != std::array<int32_t, 3>{0, 0, 0})
    cluster = options.cluster;
  else if (auto attr =
               kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getClusterDimAttrName()))
    std::copy_n(attr.asArrayRef().begin(), std::min<size_t>(attr.size(), 3), cluster.begin());
  int64_t blocks = 1;
  for (int32_t extent : cluster)
    blocks = extent >= 1 && blocks <= kMaxClusterSize ? blocks * extent : kMaxClusterSize + 1;
  if (blocks > kMaxClusterSize)
    throw UserError("E053",
                    llvm::formatv("the kernel is for clusters of ({0}, {1}, {2}) blocks",
                                  cluster[0], cluster[1], cluster[2]),
                    llvm::formatv("a cluster has 1 to {0} blocks", kMaxClusterSize));
  return cluster;
}

void tessera::checkInstructions(ModuleOp module) {
  Image image;
  Decoder(module, image).run();
}

SimulatorReport tessera::simulate(ModuleOp module, StringRef name, std::array<int32_t, 3> grid,
                                  ArrayRef<uint64_t> args, const SimulatorOptions &options) {
  LLVM::LLVMFuncOp kernel = findKernel(module, name);
  size_t hidden = options.tensorMaps.size() + options.argumentTables.size() +
                  (options.persistentPrograms ? 3 : 0);
  if (kernel.getNumArguments() != args.size() + hidden)
    throw UserError("E051",
                    llvm::formatv("kernel '{0}' takes {1} arguments, got {2}", kernel.getName(),
                                  kernel.getNumArguments() - hidden, args.size()),
                    "pass one 8-byte slot an argument");
  for (int32_t extent : grid)
    if (extent < 0)
      throw UserError("E052",
                      llvm::formatv("the grid is ({0}, {1}, {2})", grid[0], grid[1], grid[2]),
                      "extents of a grid are 0 or more");
  auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(NVVM::NVVMDialect::getReqntidAttrName());
  unsigned numWarps = threads && !threads.empty() ? (threads[0] + kLanes - 1) / kLanes : 1;
  if (numWarps == 0 || numWarps > kMaxWarps)
    throw UserError("E053", llvm::formatv("the kernel has {0} warps", numWarps),
                    "use 1 to 32 warps");

  Image image;
  Decoder(module, image).run();
  SmallVector<uint64_t> values;
  for (auto [type, slot] : llvm::zip(kernel.getArgumentTypes(), args))
    values.push_back(slot & maskOf(getWidth(type)));
  std::vector<TensorMap> maps = makeTensorMaps(args, grid, options);
  if (options.persistentPrograms) {
    values.append(grid.begin(), grid.end());
    int64_t programs = int64_t(grid[0]) * grid[1] * grid[2];
    grid = {static_cast<int32_t>(std::min<int64_t>(programs, 2 * options.persistentPrograms)), 1,
            1};
  }
  std::array<int32_t, 3> cluster = getCluster(kernel, options);
  for (int axis = 0; axis < 3; ++axis)
    grid[axis] *= cluster[axis];
  Machine machine(image, *image.functions.at(kernel.getName().str()), grid, cluster, numWarps,
                  getEntryRegisters(kernel, numWarps), values, std::move(maps), args, options);
  machine.run();
  llvm::outs().flush();
  return machine.takeReport();
}
