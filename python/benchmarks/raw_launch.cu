// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long the driver itself takes to launch: the floor under every launcher. Compiled by
// gpu.py with nvcc, called through ctypes.

#include <chrono>
#include <cstdint>
#include <cuda.h>

/// A kernel of a module, which stays loaded; null where the driver refuses it.
extern "C" CUfunction raw_load(const void *cubin, const char *name) {
  CUmodule module;
  CUfunction function;
  bool isLoaded = cuModuleLoadData(&module, cubin) == CUDA_SUCCESS &&
                  cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS;
  return isLoaded ? function : nullptr;
}

/// Launches a kernel `count` times, each of its arguments a slot of 8 bytes; returns the seconds a
/// launch took the host, negative where the driver refused.
extern "C" double raw_launch(CUfunction function, unsigned threads, unsigned grid, void *stream,
                             uint64_t *slots, int numSlots, int count) {
  constexpr int kMost = 64;
  if (numSlots > kMost)
    return -3;
  void *arguments[kMost];
  for (int i = 0; i < numSlots; ++i)
    arguments[i] = slots + i;
  CUlaunchConfig config = {};
  config.gridDimX = grid;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = threads;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = static_cast<CUstream>(stream);
  if (cuLaunchKernelEx(&config, function, arguments, nullptr) || cuCtxSynchronize())
    return -2;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i)
    cuLaunchKernelEx(&config, function, arguments, nullptr);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  cuCtxSynchronize();
  return taken.count() / count;
}
