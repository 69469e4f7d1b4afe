// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler's entry points: which target is asked for, and what there is.

#include "tessera/Compiler/Compiler.h"

#include "Compilation.h"
#include "tessera/Runtime/Host/ThreadPool.h"
#include "tessera/Target/Host/HostTarget.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace tessera;

static constexpr llvm::StringLiteral hostStages[] = {"tile",   "tile-opt", "strips", "llvm",
                                                     "llvmir", "asm",      "object"};
static constexpr llvm::StringLiteral cudaStages[] = {"tile",   "tile-opt", "tilegpu", "llvm",
                                                     "llvmir", "ptx",      "cubin"};
const llvm::ArrayRef<llvm::StringLiteral> tessera::kStages(hostStages);
const llvm::ArrayRef<llvm::StringLiteral> tessera::kCUDAStages(cudaStages);

std::unique_ptr<CompiledKernel> tessera::compile(ModuleOp module, const CompileOptions &options) {
  return options.target == "cuda" ? compileForCUDA(module, options)
                                  : compileForHost(module, options);
}

std::unique_ptr<CompiledKernel> tessera::compileText(llvm::StringRef text, llvm::StringRef fileName,
                                                     const CompileOptions &options) {
  return options.target == "cuda" ? compileForCUDA(text, fileName, options)
                                  : compileForHost(text, fileName, options);
}

std::string tessera::getHostInfo() {
  HostTarget target = HostTarget::get();
  llvm::json::Object info{
      {"cpu", target.cpu},
      {"features", target.features},
      {"vector_bits", target.machine.vectorBits},
      {"machine", target.machine.print()},
      {"measured", target.machine.measured},
      {"cpus", host::getNumAvailableCPUs()},
      {"threads", host::getDefaultNumThreads()},
      {"thread_provider", host::getThreadProvider()},
      {"llvm", LLVM_VERSION_STRING},
  };
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(info));
  return text;
}
