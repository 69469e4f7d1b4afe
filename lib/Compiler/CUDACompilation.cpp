// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a kernel for an NVIDIA GPU, step by step, and chooses a schedule that fits.

#include "Compilation.h"

#include "Diagnostics.h"
#include "KernelAttributes.h"
#include "ScheduleRetry.h"
#include "StageFiles.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Import.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/ShortLoops.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/RegisterNeed.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Support/CompileClock.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/AssemblerWarnings.h"
#include "tessera/Target/NVPTX/ExternLibrary.h"
#include "tessera/Target/NVPTX/KernelWork.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "tessera/Target/NVPTX/PTXText.h"
#include "tessera/Target/NVPTX/Ptxas.h"
#include "tessera/Target/NVPTX/RegisterPressure.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace tessera;

/// On a loop: its stages.
static constexpr llvm::StringLiteral kNumStagesAttr =
    tile::TileDialect::NumStagesAttrHelper::getNameStr();

namespace {

class CUDACompilation : public Compilation {
public:
  explicit CUDACompilation(const CompileOptions &options)
      : Compilation(options, kCUDAStages), target(NVPTXTarget::get(options.arch)),
        machine(target.takeTargetMachine()) {
    metadata.arch = target.machine.name.str();
    metadata.capability = target.machine.capability;
    metadata.numWarps = options.numWarps;
    metadata.numCTAs = options.numCTAs;
  }

  std::unique_ptr<CompiledKernel> compile(ModuleOp module);
  /// Lowers the module to the stage "llvm", the last one that is MLIR.
  void lowerToLLVMDialect(ModuleOp module);
  void lowerTileGPU(ModuleOp module, const ScheduleLimits &limits);
  void lowerThreads(ModuleOp module, const ScheduleLimits &limits);
  /// Imports functions of libraries into a module of that stage. `compile` links them later, as
  /// LLVM IR.
  void importExternFunctions(ModuleOp module);

private:
  /// A compilation with one schedule, and its outcome.
  struct Attempt {
    ScheduleLimits limits;
    std::string description;
    ScheduleOutcome outcome;
    KernelMetadata metadata;
    std::vector<std::pair<std::string, std::string>> stages;
    std::string ptx;
    std::optional<PtxasResult> assembled; ///< unless it is refused, or its outcome estimated
    std::exception_ptr refusal;
  };

  std::unique_ptr<CompiledKernel> generateCode(std::unique_ptr<llvm::Module> code) override;
  std::unique_ptr<CompiledKernel> compileWithRetries(ModuleOp module);
  void setOptions(GPUPipelineOptions &pipeline, const ScheduleLimits &limits) const;
  Attempt attempt(ModuleOp module, const ScheduleRetry &retry, bool isFirst, bool mayGuess);
  std::unique_ptr<llvm::Module> makeLLVMIR(ModuleOp module);
  std::string describeWork(const llvm::Module &code) const;
  std::string makePTX(std::unique_ptr<llvm::Module> code);
  /// Returns nothing if the driver assembles the PTX. May change the PTX.
  std::optional<PtxasResult> assemble(std::string &ptx, bool isScheduledAgain);
  std::unique_ptr<CompiledKernel> finish(std::optional<PtxasResult> assembled, std::string ptx);
  ScheduleOutcome getOutcome(llvm::StringRef ptx, const ScheduleLimits &limits) const;
  SourcePlace findKernelPlace(llvm::StringRef ptx) const;
  PtxasOptions getPtxasOptions() const;
  void readRegisters(const PtxasResult &assembled);
  Remark describeSpills(llvm::StringRef ptx) const;

  NVPTXTarget target;
  ThreadCache<llvm::TargetMachine>::Owner machine;
  std::optional<EarlyPtxas> early;
};

/// The most stages that a loop or the options request.
static int getMostStages(ModuleOp module, const CompileOptions &options) {
  int64_t most = options.numStages;
  module.walk([&](scf::ForOp loop) {
    if (auto stages = loop->getAttrOfType<IntegerAttr>(kNumStagesAttr))
      most = std::max(most, stages.getInt());
  });
  return static_cast<int>(std::min<int64_t>(most, ScheduleLimits().mostStages));
}

/// True if a kernel failed because its tiles do not fit into shared memory.
static bool lacksShared(const UserError &error) { return error.id == "E069"; }

void CUDACompilation::lowerToLLVMDialect(ModuleOp module) {
  lowerTile(module);
  OwningOpRef<ModuleOp> source(cast<ModuleOp>(module->clone()));
  bool mayShorten = getMostStages(module, options) > 1;
  const KernelMetadata common = metadata;
  ScheduleRetry retry(options.numWarps, /*mayWiden=*/false);
  while (true) {
    try {
      lowerTileGPU(module, retry.current());
      if (options.lastStage != "tilegpu")
        lowerThreads(module, retry.current());
      return;
    } catch (const UserError &error) {
      ScheduleOutcome outcome;
      outcome.isRefused = outcome.lacksShared = true;
      if (!lacksShared(error) || !mayShorten || !retry.next(outcome))
        throw;
    }
    OwningOpRef<ModuleOp> copy(cast<ModuleOp>(source.get()->clone()));
    module.getBodyRegion().takeBody(copy->getBodyRegion());
    module->setAttrs((*copy)->getAttrDictionary());
    metadata = common;
  }
}

void CUDACompilation::setOptions(GPUPipelineOptions &pipeline, const ScheduleLimits &limits) const {
  pipeline.arch = target.machine.name.str();
  pipeline.numWarps = limits.numWarps;
  pipeline.numCTAs = options.numCTAs > 1 ? options.numCTAs : limits.numBlocks;
  pipeline.divideTiles = options.numCTAs > 1 && options.divideTiles;
  pipeline.divideSums = options.divideSums;
  pipeline.specialize = limits.specialize;
  pipeline.skew = limits.skew;
  pipeline.mostPrograms = limits.mostPrograms;
  pipeline.hold = limits.hold;
  pipeline.numStages = std::min(options.numStages, limits.mostStages);
  // Warps can exchange registers only if the kernel has all of an SM's registers.
  pipeline.tensorMaps = options.tensorMaps && options.maxRegisters == 0;
  pipeline.deterministic = options.deterministic;
  pipeline.limitLaunches = options.tensorMaps;
  pipeline.fpFusion = options.fpFusion;
  pipeline.flushResults = options.flushResults;
  pipeline.strictSchedules = options.strictSchedules;
  pipeline.refusedPlans = options.refusedPlans;
}

/// Lowers the module to the stage "tilegpu".
void CUDACompilation::lowerTileGPU(ModuleOp module, const ScheduleLimits &limits) {
  DiagnosticCollector diagnostics(module.getContext());
  module.walk([&](scf::ForOp loop) {
    auto stages = loop->getAttrOfType<IntegerAttr>(kNumStagesAttr);
    if (stages && stages.getInt() > limits.mostStages)
      loop->setAttr(kNumStagesAttr, IntegerAttr::get(stages.getType(), limits.mostStages));
  });
  if (options.shortLoops)
    module->setAttr(tilegpu::kShortLoopsAttr, UnitAttr::get(module.getContext()));
  GPUPipelineOptions pipeline;
  setOptions(pipeline, limits);
  lower(module, "tilegpu", [&](OpPassManager &passes) { buildTileGPUPipeline(passes, pipeline); });
  // Other launchers pass the arguments alone to a kernel without tensor maps.
  setLaunch(module, /*mayExtend=*/options.tensorMaps);
  setNumStages(module);
  llvm::append_range(metadata.remarks, diagnostics.remarks);
}

/// Lowers the module from "tilegpu" to "llvm".
void CUDACompilation::lowerThreads(ModuleOp module, const ScheduleLimits &limits) {
  DiagnosticCollector diagnostics(module.getContext());
  GPUPipelineOptions pipeline;
  setOptions(pipeline, limits);
  lower(module, "llvm", [&](OpPassManager &passes) { buildNVVMPipeline(passes, pipeline); });
  readKernelAttributes(module, metadata);
  llvm::append_range(metadata.remarks, diagnostics.remarks);
}

/// The library functions that a module of the stage "llvm" calls.
static std::vector<ExternFunction> getExternFunctions(ModuleOp module) {
  std::vector<ExternFunction> functions;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (auto library = function->getAttrOfType<StringAttr>(kLibraryAttr);
        library && function.isExternal())
      functions.push_back(
          {function.getName().str(), library.str(), SourcePlace::of(function.getLoc()).print()});
  return functions;
}

void CUDACompilation::importExternFunctions(ModuleOp module) {
  std::vector<ExternFunction> externs = getExternFunctions(module);
  if (externs.empty())
    return;
  std::unique_ptr<llvm::Module> code = translateToLLVMIR(module, llvmContext);
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *code)
    if (llvm::none_of(externs, [&](const ExternFunction &other) {
          return other.symbol == function.getName();
        }))
      function.deleteBody();
  linkExternFunctions(*code, externs);
  for (const ExternFunction &function : externs)
    code->getFunction(function.symbol)->setLinkage(llvm::GlobalValue::ExternalLinkage);
  optimizeForNVPTX(*code, *machine);
  checkLLVM("optimising libraries");

  OwningOpRef<ModuleOp> imported = translateLLVMIRToModule(std::move(code), module.getContext(),
                                                           /*emitExpensiveWarnings=*/false);
  if (!imported)
    throw InternalError("cannot translate the libraries of kernel '" + metadata.name +
                        "' to the LLVM dialect");
  SymbolTable symbols(module);
  for (Operation &op : llvm::make_early_inc_range(*imported->getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!symbol || (function && function.isExternal() && symbols.lookup(symbol.getName())))
      continue;
    if (Operation *declaration = symbols.lookup(symbol.getName())) {
      if (!function)
        continue; // a global of the kernel's
      symbols.erase(declaration);
    }
    op.remove();
    symbols.insert(&op);
  }
}

std::unique_ptr<CompiledKernel> CUDACompilation::compile(ModuleOp module) {
  if (options.numCTAs > static_cast<int>(target.machine.maxClusterSize))
    throw UserError("E053",
                    "num_ctas is " + std::to_string(options.numCTAs) + ", and " +
                        target.machine.name.str() + " has no clusters of blocks",
                    "use num_ctas=1, or compile for sm_90 or later");
  try {
    if (PtxasOptions assembler = getPtxasOptions(); !assembler.path.empty())
      early.emplace(assembler);
  } catch (const UserError &) {
    // A missing ptxas is reported only when it is needed, so that mistakes in the kernel are
    // reported first.
  }
  // If a user edits stages, the edited code must be compiled as it is, without retries.
  if (options.startStage == "tile" && options.overrideDir.empty() && options.maxRegisters == 0)
    return compileWithRetries(module);
  lowerToLLVMDialect(module);
  return generateCode(makeLLVMIR(module));
}

std::unique_ptr<llvm::Module> CUDACompilation::makeLLVMIR(ModuleOp module) {
  std::unique_ptr<llvm::Module> code = translate(module);
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  if (std::vector<ExternFunction> externs = getExternFunctions(module); !externs.empty())
    linkExternFunctions(*code, externs);
  markConvergent(*code);
  defineCommonFunctions(*code);
  if (needsDeviceLibrary(*code))
    linkDeviceLibrary(*code, findDeviceLibrary(options.libdevice), /*flushDenormals=*/false);
  optimizeForNVPTX(*code, *machine);
  checkLLVM("optimising");
  return code;
}

/// The user error for the first error of ptxas ("..., line 33; error : ..."), if its line is inline
/// assembly.
static std::optional<UserError> findAssemblyMistake(llvm::StringRef said, llvm::StringRef ptx) {
  unsigned number = 0;
  auto [before, behind] = said.split(", line ");
  if (behind.consumeInteger(10, number))
    return std::nullopt;
  std::optional<llvm::StringRef> line = findInlineAssembly(ptx, number);
  if (!line)
    return std::nullopt;
  llvm::StringRef words = behind.split('\n').first.split(':').second.trim();
  UserError error("E050",
                  "ptxas rejects inline assembly: " + words.str() + ", in `" + line->str() + "`",
                  "write instructions that this architecture has");
  error.location = findSourcePlace(ptx, number);
  return error;
}

PtxasOptions CUDACompilation::getPtxasOptions() const {
  PtxasOptions assembler;
  assembler.path = findPtxas(options.ptxas);
  assembler.arch = target.machine.name.str();
  assembler.lineInfo = true;
  assembler.maxRegisters = options.maxRegisters;
  assembler.timeoutSeconds = options.ptxasTimeout;
  return assembler;
}

void CUDACompilation::readRegisters(const PtxasResult &assembled) {
  for (const PtxasFunction &function : assembled.functions)
    if (function.name == metadata.name) {
      metadata.numRegisters = function.registers;
      metadata.spillBytes = function.spillStoreBytes;
    }
}

/// The kernel's first line. Only ptxas knows which of the kernel's values has no register.
SourcePlace CUDACompilation::findKernelPlace(llvm::StringRef ptx) const {
  std::string place = findFirstSourcePlace(ptx);
  return SourcePlace::parse(place.empty() ? metadata.name : place);
}

Remark CUDACompilation::describeSpills(llvm::StringRef ptx) const {
  return {RemarkKind::Spills,
          findKernelPlace(ptx),
          "a thread with " + std::to_string(metadata.numRegisters) + " registers spills " +
              std::to_string(metadata.spillBytes) +
              " bytes: smaller tiles or more warps need fewer registers",
          {{"spill_bytes", int64_t(metadata.spillBytes)},
           {"registers", int64_t(metadata.numRegisters)}}};
}

/// The text of the kernel's skeleton. Behind its arguments a persistent kernel has the extents of
/// the grid, and any kernel its tensor maps.
std::string CUDACompilation::describeWork(const llvm::Module &code) const {
  constexpr unsigned kExtents = 3;
  unsigned firstMap = metadata.arguments.size() + (metadata.persistentPrograms ? kExtents : 0);
  auto getBoxBytes = [&](unsigned argument) -> int64_t {
    if (argument < firstMap || argument - firstMap >= metadata.tensorMaps.size())
      return 0;
    const cuda::TensorMapRecipe &map = metadata.tensorMaps[argument - firstMap];
    int64_t bytes = map.elementBytes;
    for (const cuda::TensorMapRecipe::Dim &dim : map.dims)
      bytes *= dim.box;
    return bytes;
  };
  for (const llvm::Function &function : code)
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel && !function.isDeclaration())
      return countWork(function, target.machine, getBoxBytes).print();
  return "";
}

std::string CUDACompilation::makePTX(std::unique_ptr<llvm::Module> code) {
  replaceByOverride(code);
  record("llvmir");
  if (isShown()) {
    show("llvmir", printLLVMIR(*code));
    record("dump");
  }
  metadata.work = describeWork(*code);
  std::string ptx = emitAssembly(*code, *machine);
  checkLLVM("generating code");
  if (std::optional<std::string> text = readOverride("ptx"))
    ptx = *text;
  else if (options.maxRegisters)
    limitRegisters(ptx, options.maxRegisters);
  // The kernel's inline assembly may wait, too, and an edited PTX may lack the wait.
  metadata.waitsForStream &= waitsForEarlierKernels(ptx);
  record("ptx");
  if (isShown())
    show("ptx", ptx);
  return ptx;
}

static constexpr int kLanes = GPUMachine::kWarpSize;

/// True if going from so many programs to more of them hides enough latency to be worth spills.
static bool isWorthSpills(int now, int more) { return 5 * more >= 6 * now; }

/// The number of programs that fit an SM by their registers.
static int countPrograms(const KernelMetadata &metadata) {
  int threads = GPUMachine::kWarpSize * metadata.numWarps;
  int taken = llvm::alignTo(metadata.numRegisters, GPUMachine::kRegisterStep) * threads;
  return taken ? GPUMachine::kRegisters / taken : 0;
}

/// True if so many programs may share an SM, but for their registers.
static bool mayShare(int programs, const KernelMetadata &metadata, const GPUMachine &machine) {
  int threads = GPUMachine::kWarpSize * metadata.numWarps;
  return threads * programs <= static_cast<int>(machine.maxThreadsOfSM) &&
         metadata.sharedBytes <= machine.getSharedBytes(programs);
}

/// One more program an SM, if each thread gives up some of its registers. Nothing if that takes too
/// many registers, or if other resources are exhausted. A second program is worth a quarter of the
/// registers, since a single one stalls at each of its barriers. So is one that makes warps enough.
/// Otherwise a third or fourth is worth an eighth, and further ones hide little latency.
static SmallVector<int> findOneMoreProgram(const KernelMetadata &metadata,
                                           const GPUMachine &machine) {
  int threads = GPUMachine::kWarpSize * metadata.numWarps, programs = countPrograms(metadata) + 1;
  if (programs < 2 || programs > RetryBudget::kMaxPrograms ||
      !mayShare(programs, metadata, machine))
    return {};
  int given = metadata.numRegisters - GPUMachine::getRegisters(threads * programs);
  bool isEnough = programs * static_cast<int>(metadata.numWarps) == RetryBudget::kEnoughWarpsOfSM;
  if (given > metadata.numRegisters / (programs == 2 || isEnough ? 4 : 8))
    return {};
  return {programs};
}

/// The warps that an SM has at once.
static int countWarps(const KernelMetadata &metadata) {
  return countPrograms(metadata) * static_cast<int>(metadata.numWarps);
}

/// Numbers of programs an SM that are worth fewer registers a thread, the most promising first.
/// That is as many as fit if a thread gives up half of its registers, then one more than now.
static SmallVector<int> findDenserPrograms(const KernelMetadata &metadata,
                                           const GPUMachine &machine) {
  int threads = GPUMachine::kWarpSize * metadata.numWarps, now = countPrograms(metadata);
  if (now == 0 || countWarps(metadata) >= RetryBudget::kEnoughWarpsOfSM)
    return {};
  auto fits = [&](int programs) {
    return metadata.numWarps * (programs - 1) < RetryBudget::kMaxWarpsOfSM &&
           mayShare(programs, metadata, machine);
  };
  SmallVector<int> found;
  for (int programs = now + 1; fits(programs); ++programs)
    if (2 * GPUMachine::getRegisters(threads * programs) >= metadata.numRegisters)
      found = {programs};
  if (fits(now + 1) && !llvm::is_contained(found, now + 1))
    found.push_back(now + 1);
  return found;
}

/// Numbers of programs an SM between two that give a thread more registers than `most` programs do,
/// and have warps enough: the two that give the fewest.
static SmallVector<int> findRoomierPrograms(int most, int now, int numWarps) {
  auto getRegisters = [&](int programs) {
    return GPUMachine::getRegisters(GPUMachine::kWarpSize * numWarps * programs);
  };
  SmallVector<int> found;
  for (int programs = most - 1;
       programs > now && programs * numWarps >= RetryBudget::kEnoughWarpsOfSM && found.size() < 2;
       --programs)
    if (getRegisters(programs) > getRegisters(found.empty() ? most : found.back()))
      found.push_back(programs);
  return found;
}

/// True if ptxas may have given up registers for warps, and delayed loads for that. Loads of dots
/// are copies to shared memory, which it does not delay. If warps wait for each other again and
/// again, those of other programs do more than loads in flight. Small kernels have the most warps
/// that fit in any case: then a load has to be far from its use for a delay to matter.
static bool delaysLoads(StringRef ptx, int warps) {
  if (ptx.contains("mma") || warps <= RetryBudget::kEnoughWarpsOfSM || meetsAtBarriers(ptx))
    return false;
  return warps <= RetryBudget::kMaxWarpsOfSM || hasEarlyLoads(ptx, RetryBudget::kFarInstructions);
}

/// The programs an SM that suffice, if ptxas chose registers for more of them; 0 if it did not.
/// ptxas does not know the limit by shared memory.
static int findEnoughPrograms(const KernelMetadata &metadata, const GPUMachine &machine,
                              StringRef ptx) {
  int numWarps = metadata.numWarps, warps = countWarps(metadata);
  int chosen = std::min<int>(warps * GPUMachine::kWarpSize, machine.maxThreadsOfSM) /
               (GPUMachine::kWarpSize * numWarps);
  int fitting = chosen;
  while (fitting > 1 && metadata.sharedBytes > machine.getSharedBytes(fitting))
    --fitting;
  if (fitting < chosen)
    return fitting;
  return delaysLoads(ptx, warps) ? llvm::divideCeil(RetryBudget::kEnoughWarpsOfSM, numWarps) : 0;
}

std::optional<PtxasResult> CUDACompilation::assemble(std::string &ptx, bool isScheduledAgain) {
  TimedPart timed("ptxas");
  PtxasOptions assembler = getPtxasOptions();
  if (assembler.path.empty())
    return std::nullopt;
  PtxasResult assembled;
  try {
    assembled = early ? early->assemble(ptx) : runPtxas(ptx, assembler);
    early.reset();
  } catch (InsufficientRegisters &error) {
    early.reset();
    std::vector<std::string> places = getPlacesOfGroupDots(metadata.remarks);
    if (error.location.empty() && !places.empty())
      error.location = places.front();
    throw;
  } catch (const InternalError &error) {
    if (hasForeignCode)
      if (std::optional<UserError> mistake = findAssemblyMistake(error.what(), ptx))
        throw *mistake;
    throw;
  }
  readRegisters(assembled);
  int programs = getProgramsPerSM(ptx);
  int failed = metadata.spillBytes > RetryBudget::kMaxBytesSpilledForPrograms ? programs : 0;
  // The number of programs an SM is an estimate. If the kernel spills, try one program less, then a
  // single one, which has all registers.
  for (int fewer : {programs - 1, 1}) {
    int number = getProgramsPerSM(ptx);
    if (metadata.spillBytes == 0 || options.maxRegisters || isScheduledAgain || fewer < 1 ||
        (number != 0 && fewer >= number) ||
        metadata.numRegisters >= GPUMachine::kMaxAllocatedRegisters)
      continue;
    setProgramsPerSM(ptx, fewer);
    PtxasResult roomier = runPtxas(ptx, assembler);
    int spilled = metadata.spillBytes;
    readRegisters(roomier);
    if (metadata.spillBytes < spilled)
      assembled = std::move(roomier);
    else
      readRegisters(assembled);
  }
  // More programs may fit if ptxas saves registers, which it does only under a limit. Loops of
  // wgmma are excluded: their registers are accumulators, and ptxas takes long to spill some.
  bool isStraight = !hasLoops(ptx);
  if (metadata.spillBytes != 0 || options.maxRegisters || findRaisedRegisters(ptx) != 0 ||
      (!isStraight && !getPlacesOfGroupDots(metadata.remarks).empty()))
    return assembled;
  bool isBound = needsRegisters(ptx);
  int enough = programs == 0 ? findEnoughPrograms(metadata, target.machine, ptx) : 0;
  if (enough != 0) {
    std::string roomier = ptx;
    setProgramsPerSM(roomier, enough);
    PtxasResult result = runPtxas(roomier, assembler);
    int chosen = metadata.numRegisters;
    readRegisters(result);
    if (metadata.spillBytes == 0 && metadata.numRegisters > chosen) {
      ptx = std::move(roomier);
      return result;
    }
    readRegisters(assembled);
    return assembled;
  }
  SmallVector<int> candidates;
  if (!isBound)
    candidates = findDenserPrograms(metadata, target.machine);
  else if (programs == 0 || countWarps(metadata) < RetryBudget::kEnoughWarpsOfSM)
    candidates = findOneMoreProgram(metadata, target.machine);
  // Code without loops spills each word once.
  bool maySpill = isBound ? isStraight : countWarps(metadata) < RetryBudget::kEnoughWarpsOfSM;
  int now = countPrograms(metadata);
  std::optional<std::pair<std::string, PtxasResult>> spilling;
  for (int more : candidates) {
    if (failed != 0 && more >= failed)
      continue;
    std::string denser = ptx;
    setProgramsPerSM(denser, more);
    PtxasResult limited = runPtxas(denser, assembler);
    readRegisters(limited);
    bool isEnough =
        !spilling || more * static_cast<int>(metadata.numWarps) >= RetryBudget::kEnoughWarpsOfSM;
    if (metadata.spillBytes == 0 && isEnough) {
      ptx = std::move(denser);
      return limited;
    }
    // Fewer programs that do not spill are better, if they have warps enough.
    if (maySpill && !spilling && metadata.spillBytes <= RetryBudget::kMaxBytesSpilledForPrograms &&
        isWorthSpills(now, more))
      spilling.emplace(std::move(denser), std::move(limited));
    readRegisters(assembled);
  }
  if (!spilling)
    return assembled;
  // A program or two less may have registers enough.
  for (int fewer : findRoomierPrograms(getProgramsPerSM(spilling->first), now, metadata.numWarps)) {
    std::string roomier = ptx;
    setProgramsPerSM(roomier, fewer);
    PtxasResult result = runPtxas(roomier, assembler);
    readRegisters(result);
    if (metadata.spillBytes == 0) {
      ptx = std::move(roomier);
      return result;
    }
  }
  ptx = std::move(spilling->first);
  readRegisters(spilling->second);
  return std::move(spilling->second);
}

std::unique_ptr<CompiledKernel> CUDACompilation::finish(std::optional<PtxasResult> assembled,
                                                        std::string ptx) {
  if (!assembled) {
    metadata.assembler = kDriverAssembles;
    return std::make_unique<CompiledKernel>(std::move(metadata), std::move(ptx), std::move(stages));
  }
  std::vector<Remark> warnings;
  for (const std::string &warning : assembled->warnings)
    warnings.push_back(locateWarning(warning, ptx, metadata.remarks));
  llvm::append_range(metadata.remarks, warnings);
  if (metadata.spillBytes != 0)
    metadata.remarks.push_back(describeSpills(ptx));
  metadata.assembler = assembled->version;
  // Fewer registers would let no more programs share an SM.
  if (countWarps(metadata) * kLanes >= static_cast<int>(target.machine.maxThreadsOfSM))
    metadata.shortLoops.clear();
  if (!options.dumpDir.empty())
    writeStageFile(getStagePath(options.dumpDir, metadata.name, "cubin"), assembled->cubin);
  return std::make_unique<CompiledKernel>(std::move(metadata), std::move(assembled->cubin),
                                          std::move(stages));
}

std::unique_ptr<CompiledKernel> CUDACompilation::generateCode(std::unique_ptr<llvm::Module> code) {
  std::string ptx = makePTX(std::move(code));
  std::optional<PtxasResult> assembled = assemble(ptx, /*isScheduledAgain=*/false);
  if (assembled)
    record("cubin");
  return finish(std::move(assembled), std::move(ptx));
}

//===----------------------------------------------------------------------===//
// Schedules that do not fit
//===----------------------------------------------------------------------===//

/// True if ptxas need not be asked whether a schedule fits.
static bool isHopeless(int64_t neededRegisters, int numWarps) {
  int64_t available = RegisterNeed::getAvailable(numWarps);
  return neededRegisters >
         available + RetryBudget::kHopelessRegisters * available / GPUMachine::kMaxRegisters;
}

/// The outcome of a schedule as far as its PTX shows it.
ScheduleOutcome CUDACompilation::getOutcome(llvm::StringRef ptx,
                                            const ScheduleLimits &limits) const {
  ScheduleOutcome outcome;
  outcome.numThreads = kLanes * limits.numWarps;
  outcome.numBlocks = limits.numBlocks;
  outcome.isSpecialized = metadata.numWarps > limits.numWarps;
  outcome.programs = getProgramsPerSM(ptx);
  if (int raised = findRaisedRegisters(ptx)) {
    outcome.registers = raised;
  } else {
    int threads = kLanes * metadata.numWarps * std::max(outcome.programs, 1);
    outcome.registers =
        std::min<int>(outcome.registers,
                      llvm::alignDown(GPUMachine::kRegisters / threads, GPUMachine::kRegisterStep));
  }
  return outcome;
}

/// True if the blocks of a cluster divide all tiles of a kernel. Some ops are not divided. Each
/// block has all operands of a dot, all bins of a histogram, and the whole source of a gather or of
/// a reshape through shared memory.
static bool sharesTilesBetweenBlocks(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    auto rule = dyn_cast<tilegpu::LayoutRuleOpInterface>(op);
    bool needsWhole = rule && (rule.needsWholeTiles() || rule.needsWholeOperands());
    return needsWhole ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// True if dots in loops read operands that threads hold in registers from before the loop.
static bool holdsOperands(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    auto dot = dyn_cast<tilegpu::AsyncDotOp>(op);
    auto read = dot ? dot.getA().getDefiningOp<tilegpu::LocalLoadOp>() : tilegpu::LocalLoadOp();
    auto loop = op->getParentOfType<scf::ForOp>();
    return read && loop && loop.isDefinedOutsideOfLoop(read) ? WalkResult::interrupt()
                                                             : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// True if a loop has such an op with a tile as its result.
template <typename OpT> static bool isInLoop(ModuleOp module) {
  WalkResult result = module.walk([](OpT op) {
    return isa<RankedTensorType>(op.getType()) &&
                   op->template getParentOfType<LoopLikeOpInterface>()
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

CUDACompilation::Attempt CUDACompilation::attempt(ModuleOp module, const ScheduleRetry &retry,
                                                  bool isFirst, bool mayGuess) {
  countSchedule();
  Attempt result;
  result.limits = retry.current();
  result.description = retry.describe();
  auto refuse = [&] {
    result.outcome.isRefused = true;
    result.refusal = std::current_exception();
  };
  bool isPipelined = getMostStages(module, options) > 1;
  mayGuess &= retry.canWiden() || retry.canSpread();
  try {
    lowerTileGPU(module, result.limits);
    // Registers of tiles are counted first, since lowering far too many takes long.
    bool isHeld = result.limits.hold && holdsOperands(module);
    int64_t needed = 0;
    if (auto kernel = module.lookupSymbol<tile::FuncOp>(metadata.name); kernel && mayGuess)
      needed = tilegpu::countHeldRegisters(kernel);
    std::unique_ptr<llvm::Module> code;
    if (!isHopeless(needed, result.limits.numWarps)) {
      lowerThreads(module, result.limits);
      code = makeLLVMIR(module);
      needed = mayGuess ? countLiveRegisters(*code->getFunction(metadata.name)) : 0;
    }
    if (isHopeless(needed, result.limits.numWarps)) {
      result.outcome.numThreads = kLanes * result.limits.numWarps;
      result.outcome.neededRegisters = needed;
      result.outcome.registers = RegisterNeed::getAvailable(result.limits.numWarps);
    } else {
      result.ptx = makePTX(std::move(code));
      result.outcome = getOutcome(result.ptx, result.limits);
      result.assembled = assemble(result.ptx, result.outcome.isSpecialized);
      if (result.assembled)
        result.outcome.spillBytes = metadata.spillBytes;
      result.outcome.holdsOperands = isHeld;
      result.outcome.isSerialized =
          isHeld && result.assembled &&
          llvm::any_of(result.assembled->warnings,
                       [](llvm::StringRef warning) { return warning.contains("serialized"); });
    }
  } catch (const InsufficientRegisters &) {
    refuse();
  } catch (const UserError &error) {
    bool mayShorten =
        isFirst ? isPipelined : result.limits.mostStages < ScheduleLimits().mostStages;
    result.outcome.lacksShared = lacksShared(error) && mayShorten;
    if (isFirst && !result.outcome.lacksShared)
      throw;
    refuse();
  } catch (const InternalError &) {
    if (isFirst || options.strictSchedules)
      throw;
    refuse();
  }
  if (!result.ptx.empty())
    record("cubin");
  result.metadata = metadata;
  result.stages = stages;
  return result;
}

std::unique_ptr<CompiledKernel> CUDACompilation::compileWithRetries(ModuleOp module) {
  // Tile ops have layout rules only in a context that has loaded this dialect. Otherwise the first
  // kernel of a context would be compiled as if its blocks could divide all tiles.
  module.getContext()->loadDialect<tilegpu::TileGPUDialect>();
  lowerTile(module);
  // Inline assembly may read the number of warps. If programs wait for each other, the user has
  // chosen a number of them that fits.
  bool mayChange = !seesMachine && !waitsForPrograms(module);
  ClusterLimits clusters;
  if (mayChange && options.numCTAs == 1 && sharesTilesBetweenBlocks(module))
    clusters = {static_cast<int>(target.machine.maxClusterSize), target.machine.sharedBytesOfSM,
                isInLoop<tile::LoadOp>(module), isInLoop<tile::DotOp>(module)};
  ScheduleRetry retry(options.numWarps, mayChange, clusters);
  OwningOpRef<ModuleOp> source(cast<ModuleOp>(module->clone())), copy;
  const KernelMetadata common = metadata;
  const auto commonStages = stages;
  auto tryAgain = [&](const ScheduleRetry &which, bool mayGuess) {
    copy = cast<ModuleOp>(source.get()->clone());
    metadata = common;
    stages = commonStages;
    return attempt(*copy, which, /*isFirst=*/false, mayGuess);
  };

  std::vector<Attempt> attempts;
  attempts.push_back(attempt(module, retry, /*isFirst=*/true, /*mayGuess=*/true));
  size_t best = 0;
  ScheduleRetry bestRetry = retry;
  while (retry.next(attempts.back().outcome)) {
    attempts.push_back(tryAgain(retry, /*mayGuess=*/true));
    if (attempts.back().outcome.isBetterThan(attempts[best].outcome)) {
      best = attempts.size() - 1;
      bestRetry = retry;
    }
  }
  if (attempts[best].ptx.empty() && !attempts[best].refusal) {
    attempts.push_back(tryAgain(bestRetry, /*mayGuess=*/false));
    best = attempts.size() - 1;
  }

  Attempt chosen = std::move(attempts[best]);
  if (chosen.refusal)
    std::rethrow_exception(chosen.refusal);
  // The dumped stages are those of the last attempt; replace them by those of the chosen one.
  if (best + 1 != attempts.size() && !options.dumpDir.empty())
    for (auto &[stage, text] : chosen.stages)
      writeStageFile(getStagePath(options.dumpDir, chosen.metadata.name, stage), text);
  metadata = std::move(chosen.metadata);
  stages = std::move(chosen.stages);
  if (attempts.size() > 1) {
    SourcePlace place = findKernelPlace(chosen.ptx);
    double lost = 0;
    for (const Attempt &other : attempts) {
      if (other.limits == chosen.limits)
        continue;
      for (const StageTime &time :
           llvm::drop_begin(other.metadata.stageTimes, common.stageTimes.size()))
        lost += time.milliseconds;
      std::string reason = other.outcome.describe();
      metadata.remarks.push_back({RemarkKind::ScheduleDropped,
                                  place,
                                  "schedule is dropped (" + other.description + "): " + reason,
                                  {{"schedule", other.description}, {"reason", reason}}});
    }
    if (!(chosen.limits == attempts.front().limits))
      metadata.remarks.push_back({RemarkKind::ScheduleChanged,
                                  place,
                                  "schedule is changed: " + chosen.description,
                                  {{"schedule", chosen.description}}});
    metadata.stageTimes.push_back({"dropped", lost});
  }
  return finish(std::move(chosen.assembled), std::move(chosen.ptx));
}

} // namespace

void tessera::lowerForCUDA(ModuleOp module, const CompileOptions &options) {
  CUDACompilation compilation(options);
  compilation.lowerToLLVMDialect(module);
  if (options.lastStage == "llvm")
    compilation.importExternFunctions(module);
}

std::unique_ptr<CompiledKernel> tessera::compileForCUDA(ModuleOp module,
                                                        const CompileOptions &options) {
  return CUDACompilation(options).compile(module);
}

std::unique_ptr<CompiledKernel> tessera::compileForCUDA(llvm::StringRef llvmIR,
                                                        llvm::StringRef fileName,
                                                        const CompileOptions &options) {
  return CUDACompilation(options).compileText(llvmIR, fileName);
}
