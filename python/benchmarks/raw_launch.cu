// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long the driver itself takes to launch: the floor under every launcher, in a loop of C and in
// one of Python, where it finds less of itself in the caches. Compiled by gpu.py with nvcc, called
// through ctypes.

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

/// A launch that is repeated, with its arguments.
namespace {
constexpr int kMaxSlots = 64;

struct Launch {
  CUfunction function = nullptr;
  CUlaunchConfig config = {};
  void *arguments[kMaxSlots] = {};
};
} // namespace

static bool prepare(Launch &launch, CUfunction function, unsigned threads, unsigned grid,
                    void *stream, uint64_t *slots, int numSlots) {
  if (numSlots > kMaxSlots)
    return false;
  launch.function = function;
  for (int i = 0; i < numSlots; ++i)
    launch.arguments[i] = slots + i;
  launch.config.gridDimX = grid;
  launch.config.gridDimY = launch.config.gridDimZ = 1;
  launch.config.blockDimX = threads;
  launch.config.blockDimY = launch.config.blockDimZ = 1;
  launch.config.hStream = static_cast<CUstream>(stream);
  return true;
}

static CUresult run(Launch &launch) {
  return cuLaunchKernelEx(&launch.config, launch.function, launch.arguments, nullptr);
}

/// Launches a kernel `count` times, each of its arguments a slot of 8 bytes; returns the seconds a
/// launch took the host, negative where the driver refused.
extern "C" double raw_launch(CUfunction function, unsigned threads, unsigned grid, void *stream,
                             uint64_t *slots, int numSlots, int count) {
  Launch launch;
  if (!prepare(launch, function, threads, grid, stream, slots, numSlots))
    return -3;
  if (run(launch) || cuCtxSynchronize())
    return -2;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i)
    run(launch);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  cuCtxSynchronize();
  return taken.count() / count;
}

/// For a function of Python without arguments: a new `Launch`, null where it cannot be. The slots
/// have to stay.
extern "C" void *raw_prepare(CUfunction function, unsigned threads, unsigned grid, void *stream,
                             uint64_t *slots, int numSlots) {
  auto *launch = new Launch;
  bool isRight = prepare(*launch, function, threads, grid, stream, slots, numSlots) &&
                 run(*launch) == CUDA_SUCCESS;
  return isRight ? launch : nullptr;
}

/// Of CPython, in whose process this is.
extern "C" void *PyCapsule_GetPointer(void *capsule, const char *name);
extern "C" void Py_IncRef(void *object);

/// A PyCFunction (METH_NOARGS) whose `self` is a capsule of what `raw_prepare` gave: one launch.
extern "C" void *raw_launch_from_python(void *self, void *) {
  run(*static_cast<Launch *>(PyCapsule_GetPointer(self, nullptr)));
  Py_IncRef(self);
  return self;
}
