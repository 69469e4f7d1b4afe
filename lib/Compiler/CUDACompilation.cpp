// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way of a kernel to an NVIDIA GPU: the steps, one after the other.

#include "Compilation.h"

#include "Diagnostics.h"
#include "KernelAttributes.h"
#include "StageFiles.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Import.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/ExternLibrary.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "tessera/Target/NVPTX/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace tessera;

namespace {

class CUDACompilation : public Compilation {
public:
  explicit CUDACompilation(const CompileOptions &options)
      : Compilation(options, kCUDAStages), target(NVPTXTarget::get(options.arch)),
        machine(target.takeTargetMachine()) {
    metadata.arch = target.arch;
    metadata.capability = target.capability;
    metadata.numWarps = options.numWarps;
  }

  std::unique_ptr<CompiledKernel> compile(ModuleOp module);
  /// The part of that which is done on MLIR: brings the module to the stage "llvm".
  void lowerToLLVMDialect(ModuleOp module);
  /// Puts functions of libraries into a module of that stage, which otherwise come in later.
  void importExternFunctions(ModuleOp module);

private:
  std::unique_ptr<CompiledKernel> generateCode(std::unique_ptr<llvm::Module> code) override;
  PtxasOptions getPtxasOptions() const;
  void readRegisters(const PtxasResult &assembled);
  std::string describeSpills(llvm::StringRef ptx) const;

  NVPTXTarget target;
  Kept<llvm::TargetMachine>::Owner machine;
  std::optional<EarlyPtxas> early;
};

void CUDACompilation::lowerToLLVMDialect(ModuleOp module) {
  DiagnosticCollector diagnostics(module.getContext());
  GPUPipelineOptions pipeline;
  pipeline.arch = target.arch;
  pipeline.numWarps = options.numWarps;
  pipeline.numStages = options.numStages;
  // Warps that hand registers to others need all that there are.
  pipeline.tensorMaps = options.tensorMaps && options.maxRegisters == 0;
  pipeline.deterministic = options.deterministic;
  pipeline.limitLaunches = options.tensorMaps;
  pipeline.fpFusion = options.fpFusion;
  pipeline.flushResults = options.flushResults;

  lowerTile(module);
  lower(module, "tilegpu", [&](OpPassManager &passes) { buildTileGPUPipeline(passes, pipeline); });
  setTensorMaps(module);
  setNumStages(module);
  lower(module, "llvm", [&](OpPassManager &passes) { buildNVVMPipeline(passes, pipeline); });
  readKernelAttributes(module, metadata);
  llvm::append_range(metadata.remarks, diagnostics.remarks);
}

/// The functions that a module of the stage "llvm" has from libraries.
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
  try {
    if (PtxasOptions assembler = getPtxasOptions(); !assembler.path.empty())
      early.emplace(assembler);
  } catch (const UserError &) {
    // A missing ptxas is reported when it is wanted: mistakes in the kernel come first.
  }
  lowerToLLVMDialect(module);
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
  return generateCode(std::move(code));
}

/// How many programs are to fit an SM: a place in PTX, and the number there; an
/// empty place and 0 if it does not say.
static std::pair<llvm::StringRef, int> findNumPrograms(llvm::StringRef ptx) {
  constexpr llvm::StringLiteral directive = ".minnctapersm ";
  size_t at = ptx.find(directive);
  if (at == llvm::StringRef::npos)
    return {ptx.take_front(0), 0};
  llvm::StringRef place = ptx.drop_front(at + directive.size()).take_while(llvm::isDigit);
  int number = 1;
  place.getAsInteger(10, number);
  return {place, number};
}

/// Has PTX say how many programs are to fit. No line changes its number.
static void setNumPrograms(std::string &ptx, int number) {
  llvm::StringRef place = findNumPrograms(ptx).first;
  if (!place.empty())
    ptx.replace(place.data() - ptx.data(), place.size(), std::to_string(number));
  else if (size_t at = ptx.find(".reqntid"); at != std::string::npos)
    ptx.insert(ptx.find('\n', at), " .minnctapersm " + std::to_string(number));
}

/// Gives kernels the user's limit of registers, in the place of our estimate of programs. As
/// an argument of ptxas it would give way to how many threads there are.
static void limitRegisters(std::string &ptx, int registers) {
  std::string limited;
  for (llvm::StringRef rest = ptx; !rest.empty();) {
    auto [line, others] = rest.split('\n');
    if (!line.starts_with(".minnctapersm"))
      limited += line.str() + "\n";
    if (line.starts_with(".reqntid"))
      limited += ".maxnreg " + std::to_string(registers) + "\n";
    rest = others;
  }
  ptx = std::move(limited);
}

/// Where dots are that wgmma does, in order.
static llvm::SmallVector<llvm::StringRef> getDotPlaces(llvm::ArrayRef<std::string> remarks) {
  llvm::SmallVector<llvm::StringRef> places;
  for (llvm::StringRef remark : remarks)
    if (remark.ends_with("by wgmma"))
      places.push_back(remark.split(": dot").first);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

/// What ptxas says of wgmma is about dots. It names a line of the PTX; or, as 13.0 does,
/// none: then any of the dots may be meant.
static std::string addPlace(const std::string &warning, llvm::StringRef ptx,
                            llvm::ArrayRef<std::string> remarks) {
  llvm::StringRef text = warning;
  if (!text.contains("wgmma") && !text.contains("GMMA"))
    return warning;
  unsigned line = 0;
  llvm::StringRef behind = text.split(" line ").second;
  if (!behind.consumeInteger(10, line))
    if (std::string place = findSourcePlace(ptx, line); !place.empty())
      return place + ": " + warning;
  llvm::SmallVector<llvm::StringRef> places = getDotPlaces(remarks);
  return places.empty() ? warning : llvm::join(places, " or ") + ": " + warning;
}

/// The user's mistake, if the first error of ptxas ("..., line 33; error   : ...") is about a line
/// of inline assembly.
static std::optional<UserError> findAssemblyMistake(llvm::StringRef said, llvm::StringRef ptx) {
  unsigned number = 0;
  auto [before, behind] = said.split(", line ");
  if (behind.consumeInteger(10, number) || number == 0)
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef> lines;
  ptx.split(lines, '\n');
  if (number > lines.size())
    return std::nullopt;
  bool isInside = false;
  for (llvm::StringRef line : llvm::ArrayRef(lines).take_front(number - 1)) {
    isInside |= line.contains("// begin inline asm");
    isInside &= !line.contains("// end inline asm");
  }
  if (!isInside)
    return std::nullopt;
  llvm::StringRef words = behind.split('\n').first.split(':').second.trim();
  UserError error("E050",
                  "ptxas rejects inline assembly: " + words.str() + ", in `" +
                      lines[number - 1].trim().str() + "`",
                  "write PTX that this architecture has");
  error.location = findSourcePlace(ptx, number);
  return error;
}

PtxasOptions CUDACompilation::getPtxasOptions() const {
  PtxasOptions assembler;
  assembler.path = findPtxas(options.ptxas);
  assembler.arch = target.arch;
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

/// At the kernel's first line: which of its values has no register is known to ptxas alone.
std::string CUDACompilation::describeSpills(llvm::StringRef ptx) const {
  std::string place;
  for (unsigned line = 1, lines = ptx.count('\n'); place.empty() && line <= lines; ++line)
    place = findSourcePlace(ptx, line);
  return (place.empty() ? metadata.name : place) + ": " + std::to_string(metadata.spillBytes) +
         " bytes of a thread's registers are spilled, of " + std::to_string(metadata.numRegisters) +
         " it may have: smaller tiles or more warps need fewer";
}

std::unique_ptr<CompiledKernel> CUDACompilation::generateCode(std::unique_ptr<llvm::Module> code) {
  replaceByOverride(code);
  record("llvmir");
  if (isShown()) {
    show("llvmir", printLLVMIR(*code));
    record("dump");
  }
  std::string ptx = emitAssembly(*code, *machine);
  checkLLVM("generating code");
  if (std::optional<std::string> text = readOverride("ptx"))
    ptx = *text;
  else if (options.maxRegisters)
    limitRegisters(ptx, options.maxRegisters);
  // Inline assembly of the kernel's may wait somewhere, too, and who edits PTX may drop ours.
  metadata.waitsForStream &= llvm::StringRef(ptx).contains("griddepcontrol.wait");
  record("ptx");
  if (isShown())
    show("ptx", ptx);

  PtxasOptions assembler = getPtxasOptions();
  if (assembler.path.empty()) {
    metadata.assembler = kDriverAssembles;
    return std::make_unique<CompiledKernel>(std::move(metadata), std::move(ptx), std::move(stages));
  }
  PtxasResult assembled;
  try {
    assembled = early ? early->assemble(ptx) : runPtxas(ptx, assembler);
  } catch (UserError &error) {
    llvm::SmallVector<llvm::StringRef> places = getDotPlaces(metadata.remarks);
    if (error.location.empty() && llvm::StringRef(error.what()).contains("a dot takes") &&
        !places.empty())
      error.location = places.front().str();
    throw;
  } catch (const InternalError &error) {
    if (hasForeignCode)
      if (std::optional<UserError> mistake = findAssemblyMistake(error.what(), ptx))
        throw *mistake;
    throw;
  }
  readRegisters(assembled);
  // How many programs are to fit is an estimate, of ours or of ptxas: one less may do, and one
  // has all registers.
  int programs = findNumPrograms(ptx).second;
  for (int fewer : {programs - 1, 1}) {
    int number = findNumPrograms(ptx).second;
    if (metadata.spillBytes == 0 || options.maxRegisters || fewer < 1 ||
        (number != 0 && fewer >= number))
      continue;
    setNumPrograms(ptx, fewer);
    PtxasResult roomier = runPtxas(ptx, assembler);
    int spilled = metadata.spillBytes;
    readRegisters(roomier);
    if (metadata.spillBytes < spilled)
      assembled = std::move(roomier);
    else
      readRegisters(assembled);
  }
  std::vector<std::string> warnings;
  for (const std::string &warning : assembled.warnings)
    warnings.push_back(addPlace(warning, ptx, metadata.remarks));
  llvm::append_range(metadata.remarks, warnings);
  if (metadata.spillBytes != 0)
    metadata.remarks.push_back(describeSpills(ptx));
  metadata.assembler = assembled.version;
  record("cubin");
  if (!options.dumpDir.empty())
    writeStageFile(getStagePath(options.dumpDir, metadata.name, "cubin"), assembled.cubin);
  return std::make_unique<CompiledKernel>(std::move(metadata), std::move(assembled.cubin),
                                          std::move(stages));
}

} // namespace

void tessera::lowerForCUDA(ModuleOp module, const CompileOptions &options) {
  CUDACompilation compilation(options);
  compilation.lowerToLLVMDialect(module);
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
