// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running a kernel with the reference interpreter.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Interpreter/Interpreter.h"

using namespace tessera;
using namespace tessera::capi;

extern "C" TsrStatus tsr_interpret(TsrModule *module, const char *kernel, const int32_t grid[3],
                                   const uint64_t *args, size_t num_args) TSR_NOEXCEPT {
  return guarded([&] {
    DiagnosticCollector collector(module->context.get());
    interpret(*module->module, kernel, {grid[0], grid[1], grid[2]},
              llvm::ArrayRef<uint64_t>(args, num_args));
  });
}
