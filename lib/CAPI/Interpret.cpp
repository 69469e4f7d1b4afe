// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a kernel with the reference interpreter, and lists the arguments that it may write to, since
// a launch checks its arrays before it runs.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Compiler/ArgumentAccess.h"
#include "tessera/Interpreter/Interpreter.h"
#include "tessera/Support/UserError.h"

#include <algorithm>
#include <string>
#include <vector>

using namespace tessera;
using namespace tessera::capi;

extern "C" TsrStatus tsr_interpret(TsrModule *module, const char *kernel, const int32_t grid[3],
                                   const uint64_t *args, size_t num_args,
                                   const TsrArgumentMemory *memory,
                                   int32_t report_wraps) TSR_NOEXCEPT {
  return guardedActivity([&] {
    DiagnosticCollector collector(module->context.get());
    std::vector<ArgumentMemory> behind = readMemory(memory, num_args);
    InterpreterOptions options;
    options.memory = behind;
    options.reportWraps = report_wraps != 0;
    options.isInterrupted = getInterruptCheck();
    interpret(*module->module, kernel, {grid[0], grid[1], grid[2]},
              llvm::ArrayRef<uint64_t>(args, num_args), options);
  });
}

extern "C" TsrStatus tsr_module_check_accesses(TsrModule *module) TSR_NOEXCEPT {
  return guarded([&] {
    DiagnosticCollector collector(module->context.get());
    checkAccesses(*module->module);
  });
}

extern "C" TsrStatus tsr_module_stored_arguments(TsrModule *module, const char *kernel,
                                                 uint8_t *stored, size_t capacity,
                                                 size_t *num_args) TSR_NOEXCEPT {
  return guarded([&] {
    auto function = module->module->lookupSymbol<tile::FuncOp>(kernel);
    if (!function)
      throw UserError("E051", "the module has no kernel '" + std::string(kernel) + "'");
    std::vector<KernelArgument> arguments = describeArguments(function);
    *num_args = arguments.size();
    for (size_t i = 0; i < std::min(capacity, arguments.size()); ++i)
      stored[i] = arguments[i].isStored;
  });
}
