// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Queries of NVIDIA GPUs, and launches on them.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Compiler/LaunchEstimate.h"
#include "tessera/Machine/GPUMachine.h"
#include "tessera/Runtime/CUDA/Driver.h"
#include "tessera/Support/UserError.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

using namespace tessera;
using namespace tessera::capi;

namespace {

/// `guarded` for calls of the driver. A missing driver, or one that refuses, is no internal error.
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

/// The instructions that only some GPUs have.
llvm::json::Array listInstructions(const GPUMachine &machine) {
  const std::pair<bool, const char *> known[] = {
      {machine.hasStoreMatrix, "stmatrix"},
      {machine.hasTMA, "cp.async.bulk.tensor"},
      {machine.hasTensorMapReplace, "tensormap.replace"},
      {machine.hasTensorMemory, "tcgen05"},
      {machine.hasRegisterTransfer, "setmaxnreg"},
      {machine.hasDependentLaunch, "griddepcontrol"},
      {machine.hasElect, "elect"},
      {machine.hasBF16Arithmetic, "add.bf16"},
      {machine.hasBF16Atomics, "atom.add.bf16"},
      {machine.hasVectorAtomics, "atom.add.v4.f32"},
      {machine.hasFloat8Conversion, "cvt.e4m3x2"},
      {machine.hasWarpReduceF32, "redux.f32"},
      {machine.maxClusterSize > 1, "barrier.cluster"},
      {machine.hasWarpgroupMMA(), "wgmma"},
      {machine.findMMA(MMAKind::Warp, MMAElement::F8).has_value(), "mma.e4m3"},
  };
  llvm::json::Array names;
  for (auto [has, name] : known)
    if (has)
      names.push_back(name);
  return names;
}

std::string describeMachines() {
  llvm::json::Array rows;
  for (const GPUMachine &machine : GPUMachine::getTable())
    rows.push_back(
        llvm::json::Object{{"name", machine.name},
                           {"capability", machine.capability},
                           {"is_specific", machine.isSpecific},
                           {"has_run", machine.hasRun},
                           {"warp_size", GPUMachine::kWarpSize},
                           {"registers", GPUMachine::kRegisters},
                           {"max_registers", GPUMachine::kMaxRegisters},
                           {"shared_bytes", machine.sharedBytes},
                           {"shared_bytes_of_sm", machine.sharedBytesOfSM},
                           {"max_threads_of_sm", machine.maxThreadsOfSM},
                           {"max_blocks_of_sm", machine.maxBlocksOfSM},
                           {"max_cluster_size", machine.maxClusterSize},
                           {"instructions", listInstructions(machine)},
                           {"mma_rate", std::max(machine.warpMMARate, machine.warpgroupMMARate)},
                           {"f32_rate", machine.f32Rate},
                           {"f16_rate", machine.f16Rate}});
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(rows));
  return text;
}

} // namespace

extern "C" {

const char *tsr_gpu_machines(void) TSR_NOEXCEPT {
  static const std::string text = describeMachines();
  return text.c_str();
}

const char *tsr_gpu_machine_for_capability(int32_t major, int32_t minor) TSR_NOEXCEPT {
  const GPUMachine *machine = GPUMachine::findForCapability(major, minor);
  return machine ? machine->name.data() : "";
}

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

int tsr_cuda_reaches(int32_t device, uint64_t address) TSR_NOEXCEPT {
  return cuda::reachesHostMemory(device, address);
}

TsrStatus tsr_cuda_synchronize(int32_t device, uint64_t stream) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    cuda::CurrentContext context(device);
    cuda::check(cuda::getDriver().cuStreamSynchronize(reinterpret_cast<cuda::Stream>(stream)),
                "waiting for a stream of GPU " + std::to_string(device));
  });
}

TsrStatus tsr_cuda_wait_for_stream(int32_t device, uint64_t stream, uint64_t other) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    cuda::waitForStream(device, reinterpret_cast<cuda::Stream>(stream),
                        reinterpret_cast<cuda::Stream>(other));
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

TsrStatus tsr_kernel_estimate(TsrKernel *kernel, int32_t device, const int32_t grid[3],
                              const uint64_t *args, const int64_t *bytes, size_t num_args,
                              const char **json) TSR_NOEXCEPT {
  return guardedByDriver([&] {
    thread_local std::string text;
    text = estimateLaunch(*kernel->kernel, llvm::ArrayRef<int32_t>(grid, 3),
                          llvm::ArrayRef<uint64_t>(args, num_args),
                          llvm::ArrayRef<int64_t>(bytes, num_args), device);
    *json = text.c_str();
  });
}

} // extern "C"
