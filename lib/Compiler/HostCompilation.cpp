// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a kernel for the CPU, step by step.

#include "Compilation.h"

#include "Diagnostics.h"
#include "KernelAttributes.h"
#include "StageFiles.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Runtime/Host/KernelABI.h"
#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The CPU of the options, with the figures of `cpuRow`. Results of `deterministic` code must not
/// depend on measured figures, so it has those of the table.
HostTarget findTarget(const CompileOptions &options) {
  HostTarget target = HostTarget::get(options.cpu, options.features);
  if (options.cpuRow.empty() || options.deterministic)
    return target;
  auto [name, figures] = llvm::StringRef(options.cpuRow).split(':');
  if (name != target.machine.name)
    throw UserError("E062",
                    "the CPU row is of '" + name.str() + "', but the row of CPU '" + target.name +
                        "' is '" + target.machine.name.str() + "'",
                    "measure this machine (tools/bench machine --store FILE), or unset "
                    "TESSERA_CPU_ROW");
  std::optional<HostMachine> changed = target.machine.withFigures(figures);
  if (!changed)
    throw UserError(
        "E062", "the CPU row has no figures such as bits=256+l1=32768/8: '" + figures.str() + "'",
        "write it by tools/bench machine --store FILE, or unset TESSERA_CPU_ROW");
  target.machine = *changed;
  return target;
}

class HostCompilation : public Compilation {
public:
  explicit HostCompilation(const CompileOptions &options)
      : Compilation(options, kStages), target(findTarget(options)),
        machine(target.takeTargetMachine(options.tuneMax)) {
    metadata.cpu = target.name;
    metadata.features = target.features;
    metadata.machine = target.machine.print();
    metadata.vectorBits = target.machine.vectorBits;
    metadata.abiVersion = host::kHostABIVersion;
    metadata.numThreads = options.numThreads;
  }

  std::unique_ptr<CompiledKernel> compile(ModuleOp module);

private:
  std::unique_ptr<CompiledKernel> generateCode(std::unique_ptr<llvm::Module> code) override;

  HostTarget target;
  ThreadCache<llvm::TargetMachine>::Owner machine;
};

std::unique_ptr<CompiledKernel> HostCompilation::compile(ModuleOp module) {
  DiagnosticCollector diagnostics(module.getContext());
  HostPipelineOptions pipeline;
  pipeline.machine = target.machine.print();
  pipeline.remarks = true;
  pipeline.deterministic = options.deterministic;
  pipeline.limitLaunches = options.tensorMaps;
  pipeline.fpFusion = options.fpFusion;
  pipeline.lineInfo = options.debug || options.lineInfo;

  lowerTile(module);
  lower(module, "strips", [&](OpPassManager &passes) { buildStripsPipeline(passes, pipeline); });
  lower(module, "llvm", [&](OpPassManager &passes) { buildLLVMPipeline(passes, pipeline); });
  readKernelAttributes(module, metadata);
  llvm::append_range(metadata.remarks, diagnostics.remarks);

  std::unique_ptr<llvm::Module> code = translate(module);
  code->getFunction(metadata.name)->setName(getKernelSymbol(metadata.name));
  setTarget(*code, *machine, target.cpu, target.features, target.machine.vectorBits);
  optimize(*code, *machine, options.tuneMax ? OptimizationLevel::Max : OptimizationLevel::Lite);
  checkLLVM("optimising");
  return generateCode(std::move(code));
}

std::unique_ptr<CompiledKernel> HostCompilation::generateCode(std::unique_ptr<llvm::Module> code) {
  replaceByOverride(code);
  record("llvmir");
  if (isShown()) {
    show("llvmir", printLLVMIR(*code));
    show("asm", emitAssembly(*llvm::CloneModule(*code), *machine));
    record("dump");
  }
  std::string object = emitObject(*code, *machine);
  checkLLVM("generating code");
  if (std::optional<std::string> bytes = readOverride("object"))
    object = *bytes;
  record("object");
  if (!options.dumpDir.empty())
    writeStageFile(getStagePath(options.dumpDir, metadata.name, "object"), object);
  return std::make_unique<CompiledKernel>(std::move(metadata), std::move(object),
                                          std::move(stages));
}

} // namespace

std::unique_ptr<CompiledKernel> tessera::compileForHost(ModuleOp module,
                                                        const CompileOptions &options) {
  return HostCompilation(options).compile(module);
}

std::unique_ptr<CompiledKernel> tessera::compileForHost(llvm::StringRef llvmIR,
                                                        llvm::StringRef fileName,
                                                        const CompileOptions &options) {
  return HostCompilation(options).compileText(llvmIR, fileName);
}
