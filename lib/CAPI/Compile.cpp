// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles modules, and serialises and launches kernels.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Compiler/Compiler.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>

using namespace tessera;
using namespace tessera::capi;

namespace {

std::atomic<int (*)(void)> interruptCheck{nullptr};

/// LLVM registers its passes and fills its tables on first use, with locks that a fork does not
/// wait for. So the first compilation for a target is an initialisation (StaticGuards.h).
class PerhapsFirst {
public:
  explicit PerhapsFirst(const std::string &target)
      : isDone(target == "cuda" ? isCUDADone : isHostDone) {
    if (!isDone.load())
      initialisation.emplace();
  }
  ~PerhapsFirst() { isDone.store(true); }

private:
  static inline std::atomic<bool> isHostDone{false}, isCUDADone{false};
  std::atomic<bool> &isDone;
  std::optional<Initialisation> initialisation;
};

bool isInterrupted() {
  auto *check = interruptCheck.load(std::memory_order_relaxed);
  return check && check() != 0;
}

} // namespace

bool (*capi::getInterruptCheck())() {
  return interruptCheck.load(std::memory_order_relaxed) ? isInterrupted : nullptr;
}

extern "C" {

TsrStatus tsr_compile(TsrModule *module, const char *options, TsrKernel **kernel) TSR_NOEXCEPT {
  return guardedActivity([&] {
    CompileOptions parsed = CompileOptions::parse(options);
    PerhapsFirst first(parsed.target);
    DiagnosticCollector collector(module->context.get());
    auto handle = std::make_unique<TsrKernel>();
    handle->kernel = compile(*module->module, parsed);
    *kernel = handle.release();
  });
}

TsrStatus tsr_compile_text(const char *text, size_t length, const char *file_name,
                           const char *options, TsrKernel **kernel) TSR_NOEXCEPT {
  return guardedActivity([&] {
    CompileOptions parsed = CompileOptions::parse(options);
    PerhapsFirst first(parsed.target);
    auto handle = std::make_unique<TsrKernel>();
    if (parsed.startStage == "llvmir") {
      handle->kernel = compileText(llvm::StringRef(text, length), file_name, parsed);
    } else {
      TsrModule module;
      DiagnosticCollector collector(module.context.get());
      module.parse(llvm::StringRef(text, length), file_name, collector);
      handle->kernel = compile(*module.module, parsed);
    }
    *kernel = handle.release();
  });
}

TsrStatus tsr_kernel_serialize(TsrKernel *kernel, const char **bytes, size_t *length) TSR_NOEXCEPT {
  return guarded([&] {
    kernel->text = kernel->kernel->serialize();
    *bytes = kernel->text.data();
    *length = kernel->text.size();
  });
}

TsrStatus tsr_kernel_deserialize(const char *bytes, size_t length,
                                 TsrKernel **kernel) TSR_NOEXCEPT {
  return guarded([&] {
    MemoryReserve reserve;
    auto handle = std::make_unique<TsrKernel>();
    handle->kernel = CompiledKernel::deserialize(llvm::StringRef(bytes, length));
    *kernel = handle.release();
  });
}

TsrStatus tsr_kernel_stage(TsrKernel *kernel, const char *stage, const char **text,
                           size_t *length) TSR_NOEXCEPT {
  return guarded([&] {
    *text = nullptr;
    *length = 0;
    if (std::optional<llvm::StringRef> found = kernel->kernel->getStage(stage)) {
      kernel->text = found->str();
      *text = kernel->text.c_str();
      *length = kernel->text.size();
    }
  });
}

TsrStatus tsr_kernel_show(TsrKernel *kernel, uint32_t tools) TSR_NOEXCEPT {
  return guarded(
      [&] { kernel->kernel->show((tools & TSR_TOOL_PERF) != 0, (tools & TSR_TOOL_GDB) != 0); });
}

const char *tsr_kernel_metadata(TsrKernel *kernel) TSR_NOEXCEPT {
  return kernel->kernel->getMetadataJSON().c_str();
}

TsrStatus tsr_kernel_launch(TsrKernel *kernel, const int32_t grid[3], const uint64_t *args,
                            size_t num_args, int32_t num_threads) TSR_NOEXCEPT {
  return guarded([&] {
    kernel->kernel->launch(llvm::ArrayRef<int32_t>(grid, 3),
                           llvm::ArrayRef<uint64_t>(args, num_args), num_threads,
                           getInterruptCheck());
  });
}

TsrStatus tsr_kernel_launch_checked(TsrKernel *kernel, const int32_t grid[3], const uint64_t *args,
                                    size_t num_args, const TsrArgumentMemory *memory,
                                    int32_t num_threads) TSR_NOEXCEPT {
  return guarded([&] {
    kernel->kernel->launch(llvm::ArrayRef<int32_t>(grid, 3),
                           llvm::ArrayRef<uint64_t>(args, num_args), num_threads,
                           getInterruptCheck(), capi::readMemory(memory, num_args));
  });
}

TsrStatus tsr_kernel_limits(TsrKernel *kernel, const char **json) TSR_NOEXCEPT {
  return guarded([&] {
    kernel->text = kernel->kernel->describeLimits();
    *json = kernel->text.c_str();
  });
}

TsrStatus tsr_kernel_check_accesses(TsrKernel *kernel, const int32_t grid[3], const uint64_t *args,
                                    size_t num_args, const TsrArgumentMemory *memory) TSR_NOEXCEPT {
  return guarded([&] {
    kernel->kernel->checkCertainAccesses(llvm::ArrayRef<int32_t>(grid, 3),
                                         llvm::ArrayRef<uint64_t>(args, num_args),
                                         capi::readMemory(memory, num_args));
  });
}

int tsr_kernel_accepts(TsrKernel *kernel, const int32_t grid[3], const uint64_t *args,
                       size_t num_args) TSR_NOEXCEPT {
  return kernel->kernel->accepts(llvm::ArrayRef<int32_t>(grid, 3),
                                 llvm::ArrayRef<uint64_t>(args, num_args));
}

void tsr_kernel_destroy(TsrKernel *kernel) TSR_NOEXCEPT { delete kernel; }

void tsr_set_cancellation(const int32_t *flag) TSR_NOEXCEPT { setCancellation(flag); }

TsrStatus tsr_compile_clock_create(TsrCompileClock **clock) TSR_NOEXCEPT {
  return guarded([&] { *clock = new TsrCompileClock; });
}

void tsr_compile_clock_destroy(TsrCompileClock *clock) TSR_NOEXCEPT { delete clock; }

void tsr_set_compile_clock(TsrCompileClock *clock) TSR_NOEXCEPT {
  setCompileClock(clock ? &clock->clock : nullptr);
}

TsrStatus tsr_compile_clock_print(TsrCompileClock *clock, const char **json) TSR_NOEXCEPT {
  return guarded([&] {
    clock->text = clock->clock.print();
    *json = clock->text.c_str();
  });
}

void tsr_set_interrupt_check(int (*check)(void)) TSR_NOEXCEPT { interruptCheck.store(check); }

void tsr_finish(int32_t milliseconds) TSR_NOEXCEPT { cancelAll(milliseconds); }

const char *tsr_host_info(void) TSR_NOEXCEPT {
  thread_local std::string info;
  TsrStatus status = guarded([&] { info = getHostInfo(); });
  return status == TSR_OK ? info.c_str() : "{}";
}

} // extern "C"
