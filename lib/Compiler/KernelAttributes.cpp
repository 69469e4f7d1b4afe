// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/ShortLoops.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Support/UserError.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace tessera;

static constexpr llvm::StringLiteral kArguments =
    tile::TileDialect::ArgumentsAttrHelper::getNameStr();
static constexpr llvm::StringLiteral kWaitsForPrograms =
    tile::TileDialect::WaitsForProgramsAttrHelper::getNameStr();
static constexpr llvm::StringLiteral kScratchBytes =
    strips::StripsDialect::ScratchBytesAttrHelper::getNameStr();
static constexpr llvm::StringLiteral kSites = strips::StripsDialect::SitesAttrHelper::getNameStr();
static constexpr llvm::StringLiteral kMetadata = "tessera.kernel";
static constexpr llvm::StringLiteral kNumStages =
    tilegpu::TileGPUDialect::NumStagesAttrHelper::getNameStr();
static constexpr llvm::StringLiteral kThreads = "nvvm.reqntid";

std::string tessera::selectKernel(ModuleOp module, const std::string &entry) {
  SmallVector<FunctionOpInterface> kernels;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (function.isPublic() && !function.isExternal())
      kernels.push_back(function);
  if (kernels.empty())
    throw UserError("E062", "the module has no kernel",
                    "a kernel is a public function with a body");
  if (entry.empty()) {
    if (kernels.size() == 1)
      return kernels.front().getName().str();
    std::string names;
    for (FunctionOpInterface kernel : kernels)
      names += (names.empty() ? "" : ", ") + kernel.getName().str();
    throw UserError("E062", "the module has several kernels: " + names, "name one by 'entry'");
  }
  bool isFound = false;
  for (FunctionOpInterface kernel : kernels) {
    if (kernel.getName() == entry)
      isFound = true;
    else
      kernel.erase();
  }
  if (!isFound)
    throw UserError("E062", "the module has no kernel '" + entry + "'");
  return entry;
}

void tessera::setKernelArguments(ModuleOp module, llvm::ArrayRef<KernelArgument> arguments) {
  Builder builder(module.getContext());
  SmallVector<Attribute> descriptions;
  for (const KernelArgument &argument : arguments)
    descriptions.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr("type", builder.getStringAttr(argument.type)),
        builder.getNamedAttr("loaded", builder.getBoolAttr(argument.isLoaded)),
        builder.getNamedAttr("stored", builder.getBoolAttr(argument.isStored)),
    }));
  module->setAttr(kArguments, builder.getArrayAttr(descriptions));
}

void tessera::setWaitsForPrograms(ModuleOp module) {
  WalkResult found = module.walk([](Operation *op) {
    auto load = dyn_cast<tile::LoadOp>(op);
    bool looksAgain = isa<tile::AtomicLoadOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op) ||
                      (load && load.getIsVolatile());
    // The caller of a function may loop.
    bool isRepeated = looksAgain && (op->getParentOfType<scf::WhileOp>() ||
                                     !op->getParentOfType<tile::FuncOp>().isKernel());
    return isRepeated ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (found.wasInterrupted())
    module->setAttr(kWaitsForPrograms, UnitAttr::get(module.getContext()));
}

bool tessera::waitsForPrograms(ModuleOp module) { return module->hasAttr(kWaitsForPrograms); }

//===----------------------------------------------------------------------===//
// The contract with the launcher of a GPU
//===----------------------------------------------------------------------===//

static int64_t getNumber(Operation *op, StringRef name) {
  auto number = op->getAttrOfType<IntegerAttr>(name);
  return number ? number.getInt() : 0;
}

/// The conditions of a kernel, with those that its integer arguments are within their limits.
static AffineMapAttr collectConditions(ModuleOp module, tile::FuncOp kernel) {
  auto conditions = kernel->getAttrOfType<AffineMapAttr>(tilegpu::kLaunchConditionsAttr);
  auto limits = module->getAttrOfType<ArrayAttr>(tile::kLaunchLimitsAttr);
  if (!limits)
    return conditions;
  MLIRContext *context = module.getContext();
  SmallVector<AffineExpr> results;
  unsigned numArguments = kernel.getNumArguments();
  if (conditions) {
    llvm::append_range(results, conditions.getValue().getResults());
    numArguments = conditions.getValue().getNumSymbols();
  }
  for (auto limit : limits.getAsRange<DenseI64ArrayAttr>()) {
    AffineExpr argument = getAffineSymbolExpr(limit[0], context);
    llvm::append_values(results, argument - limit[1], -argument + limit[2]);
  }
  return AffineMapAttr::get(AffineMap::get(0, numArguments, results, context));
}

void tessera::setLaunch(ModuleOp module, bool mayExtend) {
  for (auto kernel : module.getOps<tile::FuncOp>()) {
    if (!kernel.isKernel())
      continue;
    SmallVector<Attribute> maps;
    for (BlockArgument argument : kernel.getArguments())
      if (tilegpu::TensorMapAttr map = tilegpu::getTensorMap(argument))
        maps.push_back(map);
    MLIRContext *context = module.getContext();
    auto launch = tilegpu::LaunchAttr::get(
        context, maps.empty() ? ArrayAttr() : ArrayAttr::get(context, maps),
        collectConditions(module, kernel),
        kernel->getAttrOfType<ArrayAttr>(tile::kProgramBoundsAttr),
        kernel->getAttrOfType<ArrayAttr>(kArraysApartAttr),
        getNumber(kernel, tile::kLimitedProgramsAttr),
        getNumber(kernel, tilegpu::kPersistentProgramsAttr),
        module->getAttrOfType<tilegpu::DivisibleSumAttr>(tilegpu::kDivisibleSumAttr),
        getNumber(module, tilegpu::kDivisibleProgramAttr), DenseI64ArrayAttr());
    if (mayExtend || launch != tilegpu::LaunchAttr::get(context, {}, {}, {}, {}, 0, 0, {}, 0, {}))
      module->setAttr(tilegpu::kLaunchAttr, launch);
    for (StringRef name :
         {StringRef(tile::kLaunchLimitsAttr), StringRef(tile::kLimitedProgramsAttr),
          StringRef(tilegpu::kDivisibleSumAttr), StringRef(tilegpu::kDivisibleProgramAttr)})
      module->removeAttr(name);
  }
}

void tessera::setNumStages(ModuleOp module) {
  unsigned most = 0;
  auto look = [&](Value buffer) {
    if (auto slot = buffer.getDefiningOp<tilegpu::MemDescIndexOp>())
      most = std::max<unsigned>(most, slot.getRing().getType().getSlots());
  };
  module.walk([&](Operation *op) {
    if (auto copy = dyn_cast<tilegpu::AsyncCopyOp>(op))
      look(copy.getBuffer());
    else if (auto load = dyn_cast<tilegpu::TMALoadOp>(op))
      look(load.getBuffer());
  });
  if (most != 0)
    module->setAttr(kNumStages, Builder(module.getContext()).getI32IntegerAttr(most));
}

/// A polynomial of the kernel's arguments.
static cuda::LaunchExpression toLaunchExpression(AffineExpr expr,
                                                 const std::vector<KernelArgument> &arguments) {
  cuda::LaunchExpression result;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    if (constant.getValue() != 0)
      result.terms.push_back({constant.getValue(), {}});
    return result;
  }
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    unsigned number = symbol.getPosition();
    if (number >= arguments.size())
      throw UserError("E062", "a launch condition is of an argument that the kernel does not have");
    cuda::LaunchExpression::Factor factor{static_cast<int>(number),
                                          arguments[number].type == "i64"};
    result.terms.push_back({1, {factor}});
    return result;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary ||
      (binary.getKind() != AffineExprKind::Add && binary.getKind() != AffineExprKind::Mul))
    throw UserError("E062", "a launch condition is more than sums and products");
  cuda::LaunchExpression lhs = toLaunchExpression(binary.getLHS(), arguments),
                         rhs = toLaunchExpression(binary.getRHS(), arguments);
  if (binary.getKind() == AffineExprKind::Add) {
    result = std::move(lhs);
    llvm::append_range(result.terms, rhs.terms);
    return result;
  }
  for (const cuda::LaunchExpression::Term &mine : lhs.terms)
    for (const cuda::LaunchExpression::Term &theirs : rhs.terms) {
      cuda::LaunchExpression::Term product = mine;
      product.scale *= theirs.scale;
      llvm::append_range(product.factors, theirs.factors);
      result.terms.push_back(std::move(product));
    }
  return result;
}

/// Types are mapped by their size, since launches do not compute with these values.
static cuda::TensorMapElement toElement(Type type) {
  using cuda::TensorMapElement;
  if (type.isBF16())
    return TensorMapElement::BFloat16;
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return TensorMapElement::UInt8;
  // Not of a GPU: bits.
  case 16:
    return type.isF16() ? TensorMapElement::Float16 : TensorMapElement::UInt16;
  case 32:
    return type.isF32() ? TensorMapElement::Float32 : TensorMapElement::Int32;
  default:
    return type.isF64() ? TensorMapElement::Float64 : TensorMapElement::Int64;
  }
}

static cuda::TensorMapRecipe toRecipe(tilegpu::TensorMapAttr map,
                                      const std::vector<KernelArgument> &arguments) {
  cuda::TensorMapRecipe recipe;
  recipe.base = map.getBase();
  if (map.getBase() >= arguments.size())
    throw UserError("E062", "a tensor map is of an argument that the kernel does not have");
  recipe.element = toElement(map.getElement());
  recipe.elementBytes = tilegpu::getElementBytes(map.getElement());
  recipe.swizzleBytes = map.getSwizzle();
  for (unsigned dim = 0; dim < map.getRank(); ++dim)
    recipe.dims.push_back({toLaunchExpression(map.getExtents().getResult(dim), arguments),
                           toLaunchExpression(map.getStrides().getResult(dim), arguments),
                           static_cast<int>(map.getBox()[dim])});
  return recipe;
}

static cuda::ArrayRange toRange(const LaunchRange &range,
                                const std::vector<KernelArgument> &arguments) {
  if (range.argument >= arguments.size())
    throw UserError("E062", "a range is of an argument that the kernel does not have");
  cuda::ArrayRange result;
  result.argument = range.argument;
  result.elementBytes = range.elementBytes;
  for (const LaunchRange::Dim &dim : range.dims) {
    std::optional<cuda::ProgramBound> first;
    if (!dim.first.empty()) {
      first = cuda::ProgramBound::parse(dim.first, arguments.size());
      if (!first)
        throw UserError("E062", "the first index of a range is not a valid bound");
    }
    result.dims.push_back({toLaunchExpression(dim.extent, arguments),
                           toLaunchExpression(dim.stride, arguments), std::move(first)});
  }
  return result;
}

/// The limits that the indices of a kernel for a CPU rely on, as conditions.
static void readLaunchLimits(ModuleOp module, KernelMetadata &metadata) {
  if (auto programs = module->getAttrOfType<IntegerAttr>(tile::kLimitedProgramsAttr))
    metadata.mostPrograms = programs.getInt();
  auto limits = module->getAttrOfType<ArrayAttr>(tile::kLaunchLimitsAttr);
  if (!limits)
    return;
  for (Attribute attribute : limits) {
    auto limit = dyn_cast<DenseI64ArrayAttr>(attribute);
    if (!limit || limit.size() != 3 || limit[0] < 0 ||
        limit[0] >= static_cast<int64_t>(metadata.arguments.size()))
      throw UserError("E062", ("the module's attribute '" + tile::kLaunchLimitsAttr +
                               "' is not a list of arguments, each with least and most")
                                  .str());
    cuda::LaunchExpression::Factor argument{static_cast<int>(limit[0]),
                                            metadata.arguments[limit[0]].type == "i64"};
    metadata.launchConditions.push_back({{{1, {argument}}, {-limit[1], {}}}});
    metadata.launchConditions.push_back({{{limit[2], {}}, {-1, {argument}}}});
  }
}

static void readLaunch(tilegpu::LaunchAttr launch, KernelMetadata &metadata) {
  metadata.mostPrograms = launch.getMostPrograms();
  metadata.persistentPrograms = launch.getPersistentPrograms();
  if (ArrayAttr maps = launch.getMaps())
    for (auto map : maps.getAsRange<tilegpu::TensorMapAttr>())
      metadata.tensorMaps.push_back(toRecipe(map, metadata.arguments));
  if (AffineMapAttr conditions = launch.getConditions())
    for (AffineExpr condition : conditions.getValue().getResults())
      metadata.launchConditions.push_back(toLaunchExpression(condition, metadata.arguments));
  if (ArrayAttr bounds = launch.getBounds())
    for (auto bound : bounds.getAsRange<StringAttr>()) {
      if (!cuda::ProgramBound::parse(bound.getValue(), metadata.arguments.size()))
        throw UserError("E062",
                        "a program bound of the module's launch is not valid: " + bound.str());
      metadata.programBounds.push_back(bound.str());
    }
  std::optional<SmallVector<LaunchRangePair>> apart = readArraysApart(launch.getApart());
  if (!apart)
    throw UserError("E062", "the ranges that are apart at the module's launch are not valid");
  for (const auto &[first, second] : *apart)
    metadata.arraysApart.push_back(
        {toRange(first, metadata.arguments), toRange(second, metadata.arguments)});
  if (DenseI64ArrayAttr tables = launch.getTables())
    for (size_t place = 0; place < tables.asArrayRef().size(); place += 2) {
      int64_t first = tables[place], count = tables[place + 1];
      if (first + count > static_cast<int64_t>(metadata.arguments.size()))
        throw UserError("E062",
                        "a table of the module's launch has more arguments than the kernel");
      metadata.argumentTables.push_back(static_cast<int>(first));
    }
  // If programs wait for each other, the user has chosen a number of them that fits.
  tilegpu::DivisibleSumAttr sum = launch.getSum();
  if (!sum || metadata.waitsForPrograms)
    return;
  if (!cuda::ProgramBound::parse(sum.getUpper(), metadata.arguments.size()))
    throw UserError("E062", "the divisible sum of the module's launch lacks the end of the loop");
  metadata.divisibleSum = {sum.getUpper().str(), sum.getLower(),    sum.getStep(),
                           sum.getIteration(),   sum.getBusy(),     sum.getMeet(),
                           sum.getWait(),        sum.getExchange(), launch.getPairCycles()};
}

/// When the kernel's loops are short. The variant for these has a unit instead.
static void readShortLoops(ModuleOp module, KernelMetadata &metadata) {
  auto conditions = module->getAttrOfType<ArrayAttr>(tilegpu::kShortLoopsAttr);
  if (!conditions)
    return;
  for (Attribute attribute : conditions) {
    auto text = dyn_cast<StringAttr>(attribute);
    if (!text || !cuda::ProgramBound::parse(text.getValue(), metadata.arguments.size()))
      throw UserError("E062", ("the module's attribute '" + tilegpu::kShortLoopsAttr +
                               "' is not a list of program bounds")
                                  .str());
    metadata.shortLoops.push_back(text.str());
  }
}

//===----------------------------------------------------------------------===//
// All attributes
//===----------------------------------------------------------------------===//

/// Members of a dictionary, with a default for missing ones, since users edit these.
static std::string getString(DictionaryAttr dictionary, llvm::StringRef name) {
  auto attribute = dictionary.getAs<StringAttr>(name);
  return attribute ? attribute.str() : "";
}
static int64_t getInteger(DictionaryAttr dictionary, llvm::StringRef name) {
  auto attribute = dictionary.getAs<IntegerAttr>(name);
  return attribute ? attribute.getInt() : 0;
}
static bool getBool(DictionaryAttr dictionary, llvm::StringRef name) {
  auto attribute = dictionary.getAs<BoolAttr>(name);
  return attribute && attribute.getValue();
}

void tessera::readKernelAttributes(ModuleOp module, KernelMetadata &metadata) {
  auto arguments = module->getAttrOfType<ArrayAttr>(kArguments);
  if (!arguments)
    throw UserError("E062", "the module lacks the kernel's arguments",
                    "keep the attribute 'tile.arguments' that is on it in dumped stages");
  metadata.arguments.clear();
  for (auto argument : arguments.getAsRange<DictionaryAttr>())
    metadata.arguments.push_back(
        {getString(argument, "type"), getBool(argument, "loaded"), getBool(argument, "stored")});

  if (auto warps = module->getAttrOfType<IntegerAttr>(tilegpu::kNumWarpsAttr))
    metadata.numWarps = warps.getInt();
  metadata.numCTAs = tilegpu::getClusterSize(module);
  if (auto bytes = module->getAttrOfType<IntegerAttr>(kSharedBytesAttr))
    metadata.sharedBytes = bytes.getInt();
  if (auto stages = module->getAttrOfType<IntegerAttr>(kNumStages))
    metadata.numStages = stages.getInt();
  metadata.waitsForPrograms = waitsForPrograms(module);

  metadata.tensorMaps.clear();
  metadata.launchConditions.clear();
  metadata.programBounds.clear();
  metadata.arraysApart.clear();
  metadata.argumentTables.clear();
  metadata.divisibleSum.reset();
  metadata.shortLoops.clear();
  metadata.mostPrograms = 0;
  metadata.persistentPrograms = 0;
  if (auto launch = module->getAttrOfType<tilegpu::LaunchAttr>(tilegpu::kLaunchAttr))
    readLaunch(launch, metadata);
  else
    readLaunchLimits(module, metadata);
  readShortLoops(module, metadata);
  auto kernel = module.lookupSymbol<FunctionOpInterface>(metadata.name);
  if (!kernel)
    return;
  // A program may have more warps than those that compute: the producer's.
  if (auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>(kThreads))
    metadata.numWarps = threads[0] / GPUMachine::kWarpSize;
  metadata.waitsForStream = kernel->hasAttr(kWaitsForStreamAttr);
  if (auto bytes = kernel->getAttrOfType<IntegerAttr>(kScratchBytes))
    metadata.scratchBytes = bytes.getInt();
  metadata.sites.clear();
  if (auto sites = kernel->getAttrOfType<ArrayAttr>(kSites))
    for (auto site : sites.getAsRange<DictionaryAttr>())
      metadata.sites.push_back(
          {getString(site, "message"), getString(site, "file"),
           static_cast<int>(getInteger(site, "line")), static_cast<int>(getInteger(site, "column")),
           getString(site, "access"), static_cast<int>(getInteger(site, "argument")),
           static_cast<int>(getInteger(site, "bytes")), getBool(site, "wraps")});
}

void tessera::writeKernelMetadata(llvm::Module &module, const KernelMetadata &metadata) {
  llvm::LLVMContext &context = module.getContext();
  llvm::MDString *text = llvm::MDString::get(context, metadata.toJSON());
  module.getOrInsertNamedMetadata(kMetadata)->addOperand(llvm::MDNode::get(context, text));
}

void tessera::readKernelMetadata(const llvm::Module &module, KernelMetadata &metadata) {
  const llvm::NamedMDNode *node = module.getNamedMetadata(kMetadata);
  const llvm::MDString *text = nullptr;
  if (node && node->getNumOperands() == 1 && node->getOperand(0)->getNumOperands() == 1)
    text = llvm::dyn_cast<llvm::MDString>(node->getOperand(0)->getOperand(0));
  if (!text)
    throw UserError("E062", "the LLVM IR lacks its kernel's metadata",
                    "keep the metadata '!tessera.kernel' of the dumped stage");
  KernelMetadata read = KernelMetadata::fromJSON(text->getString());
  metadata.name = read.name;
  metadata.scratchBytes = read.scratchBytes;
  metadata.waitsForPrograms = read.waitsForPrograms;
  metadata.numWarps = read.numWarps;
  metadata.numCTAs = read.numCTAs;
  metadata.sharedBytes = read.sharedBytes;
  metadata.numStages = read.numStages;
  metadata.arguments = std::move(read.arguments);
  metadata.tensorMaps = std::move(read.tensorMaps);
  metadata.launchConditions = std::move(read.launchConditions);
  metadata.arraysApart = std::move(read.arraysApart);
  metadata.mostPrograms = read.mostPrograms;
  metadata.programBounds = std::move(read.programBounds);
  metadata.persistentPrograms = read.persistentPrograms;
  metadata.argumentTables = std::move(read.argumentTables);
  metadata.waitsForStream = read.waitsForStream;
  metadata.divisibleSum = std::move(read.divisibleSum);
  metadata.shortLoops = std::move(read.shortLoops);
  metadata.sites = std::move(read.sites);
}
