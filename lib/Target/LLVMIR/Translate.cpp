// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Translates the LLVM dialect to LLVM IR, and prints LLVM IR.

#include "mlir/Target/LLVMIR/Export.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using namespace tessera;

std::unique_ptr<Module> tessera::translateToLLVMIR(mlir::ModuleOp module, LLVMContext &context,
                                                   bool verify) {
  std::unique_ptr<Module> result =
      mlir::translateModuleToLLVMIR(module, context, "kernel", /*disableVerification=*/!verify);
  if (!result)
    throw InternalError("cannot translate the module to LLVM IR");
  return result;
}

std::unique_ptr<Module> tessera::parseLLVMIR(StringRef text, StringRef fileName,
                                             LLVMContext &context) {
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module =
      parseAssembly(MemoryBufferRef(text, fileName), diagnostic, context);
  std::string problem;
  if (!module) {
    UserError error("E062", "not valid LLVM IR: " + diagnostic.getMessage().str());
    error.location = fileName.str() + ":" + std::to_string(diagnostic.getLineNo()) + ":" +
                     std::to_string(diagnostic.getColumnNo() + 1);
    throw error;
  }
  raw_string_ostream stream(problem);
  if (verifyModule(*module, &stream)) {
    UserError error("E062", "not valid LLVM IR: " + StringRef(problem).rtrim().str());
    error.location = fileName.str() + ":1:1";
    throw error;
  }
  return module;
}

void tessera::setTarget(Module &module, TargetMachine &machine, StringRef cpu, StringRef features,
                        int vectorBits) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  std::string width = std::to_string(vectorBits);
  for (Function &function : module) {
    if (function.isIntrinsic())
      continue;
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", cpu);
      if (!features.empty())
        function.addFnAttr("target-features", features);
      // Without both, the x86 back-end splits 512-bit vectors on CPUs that prefer 256 bits.
      function.addFnAttr("prefer-vector-width", width);
      function.addFnAttr("min-legal-vector-width", width);
    }
    function.setDoesNotThrow();
  }
}

std::string tessera::printLLVMIR(const Module &module) {
  std::string text;
  raw_string_ostream stream(text);
  module.print(stream, /*AAW=*/nullptr);
  return text;
}
