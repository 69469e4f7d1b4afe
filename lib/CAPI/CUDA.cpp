// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What there is of NVIDIA GPUs, and launching on them.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Runtime/CUDA/Driver.h"
#include "tessera/Support/UserError.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

using namespace tessera;
using namespace tessera::capi;

namespace {

/// `guarded`, for what asks the driver: no driver, or one that refuses, is nothing of ours.
template <typename Body> TsrStatus guardedByDriver(Body &&body) noexcept {
  return guarded([&] {
    try {
      body();
    } catch (const cuda::DriverError &error) {
      throw UserError("E066", error.message,
                      error.code == -1 ? "install the NVIDIA driver, or pass arrays on the CPU"
                                       : "");
    }
  });
}

std::string describeDevice(int device) {
  const cuda::DeviceInfo &info = cuda::getDevice(device);
  int version = 0;
  cuda::check(cuda::getDriver().cuDriverGetVersion(&version), "asking for the driver's version");
  llvm::json::Object object{
      {"name", info.name},
      {"capability", llvm::json::Array{info.capabilityMajor, info.capabilityMinor}},
      {"multiprocessors", info.multiprocessors},
      {"max_shared_bytes", info.maxSharedBytes},
      {"max_threads_per_block", info.maxThreadsPerBlock},
      {"max_grid", llvm::json::Array{info.maxGrid[0], info.maxGrid[1], info.maxGrid[2]}},
      {"l2_bytes", info.l2Bytes},
      {"memory_clock_khz", info.memoryClockKHz},
      {"memory_bus_bits", info.memoryBusBits},
      {"driver_version", version}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  return text;
}

} // namespace

extern "C" {

int tsr_cuda_is_available(void) TSR_NOEXCEPT {
  bool available = false;
  TsrStatus status = guardedByDriver([&] { available = cuda::isAvailable(); });
  return status == TSR_OK && available;
}

TsrStatus tsr_cuda_device_count(int32_t *count) TSR_NOEXCEPT {
  return guardedByDriver([&] { *count = cuda::getDeviceCount(); });
}

TsrStatus tsr_cuda_device_info(int32_t device, const char **json) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    thread_local std::string text;
    text = describeDevice(device);
    *json = text.c_str();
  });
}

TsrStatus tsr_cuda_pointer_device(uint64_t address, int32_t *device) TSR_NOEXCEPT {
  return guardedByDriver([&] { *device = cuda::getPointerDevice(address); });
}

TsrStatus tsr_cuda_synchronize(int32_t device, uint64_t stream) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    cuda::CurrentContext context(device);
    cuda::check(cuda::getDriver().cuStreamSynchronize(reinterpret_cast<cuda::Stream>(stream)),
                "waiting for a stream of GPU " + std::to_string(device));
  });
}

TsrStatus tsr_kernel_launch_cuda(TsrKernel *kernel, int32_t device, uint64_t stream,
                                 const int32_t grid[3], const uint64_t *args,
                                 size_t num_args) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    kernel->kernel->launchCUDA(device, reinterpret_cast<void *>(stream),
                               llvm::ArrayRef<int32_t>(grid, 3),
                               llvm::ArrayRef<uint64_t>(args, num_args));
  });
}

TsrStatus tsr_kernel_device_facts(TsrKernel *kernel, int32_t device,
                                  const char **json) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    thread_local std::string text;
    text = kernel->kernel->getDeviceFacts(device);
    *json = text.c_str();
  });
}

} // extern "C"
