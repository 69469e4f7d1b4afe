// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types behind the opaque handles of the C API.

#ifndef TESSERA_LIB_CAPI_HANDLES_H
#define TESSERA_LIB_CAPI_HANDLES_H

#include "Errors.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/CAPI/Tessera.h"
#include "tessera/Compiler/CompiledKernel.h"
#include "tessera/Support/CompileClock.h"
#include "tessera/Support/MemoryReserve.h"
#include "tessera/Support/ThreadCache.h"

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>
#include <vector>

/// A module owns a context without threads. So modules of different threads share nothing, and a
/// forked process inherits no lock and no thread.
struct TsrModule {
  TsrModule();
  ~TsrModule();

  /// Sets `module` from textual IR, or throws.
  void parse(llvm::StringRef text, const char *fileName,
             const tessera::capi::DiagnosticCollector &collector);

  tessera::MemoryReserve reserve;
  unsigned tornStates = tessera::countTornStates(); ///< when it was made
  tessera::ThreadCache<mlir::MLIRContext>::Owner context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string text; ///< what tsr_module_print returned last
};

struct TsrKernel {
  std::unique_ptr<tessera::CompiledKernel> kernel;
  std::string text; ///< what was returned last
};

struct TsrCompileClock {
  tessera::CompileClock clock;
  std::string text; ///< what was returned last
};

namespace tessera::capi {

/// The function that launches call between programs to find interrupts, or null.
bool (*getInterruptCheck())();

/// The memory ranges behind `count` arguments; empty if `memory` is null.
inline std::vector<ArgumentMemory> readMemory(const TsrArgumentMemory *memory, size_t count) {
  std::vector<ArgumentMemory> result;
  for (size_t i = 0; memory && i < count; ++i)
    result.push_back({memory[i].begin, memory[i].end, memory[i].name ? memory[i].name : ""});
  return result;
}

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_HANDLES_H
