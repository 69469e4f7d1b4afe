// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver, opened on first use.
//
// No code here runs at start-up. The first call that needs libcuda opens it, so importing Tessera,
// forking and compiling touch no GPU. The few driver functions that a launcher needs are declared
// here, so the build needs no CUDA header.

#ifndef TESSERA_RUNTIME_CUDA_DRIVER_H
#define TESSERA_RUNTIME_CUDA_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace tessera::cuda {

/// A failed call of the driver, or a missing driver.
class DriverError : public std::exception {
public:
  DriverError(int code, std::string message) : code(code), message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }

  int code; ///< CUresult; -1 where there is no driver
  std::string message;
};

/// A kernel whose cluster does not fit the GPU even once.
class NoClusterRoom : public DriverError {
public:
  using DriverError::DriverError;
};

using Context = void *;
using Module = void *;
using Function = void *;
using Stream = void *; ///< null is the legacy default stream
using Event = void *;
using DevicePointer = uint64_t;

/// CUlaunchAttribute and CUlaunchConfig of cuda.h.
struct LaunchAttribute {
  int id;
  alignas(8) union {
    char bytes[64];
    int isAllowed;
    unsigned clusterDim[3];
  } value;
};
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

/// The driver's functions by the names of cuda.h (versions 12 and later).
struct DriverTable {
  int (*cuInit)(unsigned flags);
  int (*cuDriverGetVersion)(int *version);
  int (*cuDeviceGetCount)(int *count);
  int (*cuDeviceGet)(int *device, int ordinal);
  int (*cuDeviceGetName)(char *name, int length, int device);
  int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
  int (*cuDevicePrimaryCtxRetain)(Context *context, int device);
  int (*cuCtxGetCurrent)(Context *context);
  int (*cuCtxSetCurrent)(Context context);
  int (*cuModuleLoadDataEx)(Module *module, const void *image, unsigned count, int *options,
                            void **values);
  int (*cuModuleUnload)(Module module);
  int (*cuModuleGetFunction)(Function *function, Module module, const char *name);
  int (*cuFuncSetAttribute)(Function function, int attribute, int value);
  int (*cuFuncGetAttribute)(int *value, int attribute, Function function);
  int (*cuLaunchKernel)(Function function, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                        Stream stream, void **parameters, void **extra);
  /// Null in drivers before 12.3, which cannot capture all of its attributes.
  int (*cuLaunchKernelEx)(const LaunchConfig *config, Function function, void **parameters,
                          void **extra);
  /// Null in drivers before 11.8.
  int (*cuOccupancyMaxActiveClusters)(int *count, Function function, const LaunchConfig *config);
  int (*cuStreamSynchronize)(Stream stream);
  int (*cuStreamWaitEvent)(Stream stream, Event event, unsigned flags);
  int (*cuEventCreate)(Event *event, unsigned flags);
  int (*cuEventRecord)(Event event, Stream stream);
  int (*cuEventDestroy)(Event event);
  int (*cuThreadExchangeStreamCaptureMode)(int *mode);
  /// Null in drivers before 12.0.
  int (*cuTensorMapEncodeTiled)(void *map, int elementType, unsigned rank, void *base,
                                const uint64_t *extents, const uint64_t *strides,
                                const uint32_t *box, const uint32_t *elementStrides, int interleave,
                                int swizzle, int promotion, int fill);
  int (*cuPointerGetAttribute)(void *value, int attribute, DevicePointer pointer);
  int (*cuGetErrorName)(int error, const char **name);
  int (*cuGetErrorString)(int error, const char **text);
};

/// The driver, initialised. If there is none, or if it does not start, each call throws the same
/// DriverError, which names the cause.
const DriverTable &getDriver();

/// True if there is a driver and a GPU. Initialises the driver if there is a libcuda.
bool isAvailable();

/// Throws DriverError with the driver's message for a code other than success.
[[noreturn]] void failCheck(int code, std::string_view doing);

/// Throws DriverError with the driver's message unless `code` is success. `doing` begins the
/// message: "loading kernel 'softmax'".
inline void check(int code, std::string_view doing) {
  if (code != 0)
    failCheck(code, doing);
}

struct DeviceInfo {
  std::string name;
  int capabilityMajor = 0, capabilityMinor = 0;
  int multiprocessors = 0;
  int maxSharedBytes = 0; ///< of one block, with opting in
  int maxThreadsPerBlock = 0;
  int maxGrid[3] = {0, 0, 0};
  int l2Bytes = 0;
  int memoryClockKHz = 0, memoryBusBits = 0;
};

int getDeviceCount();
/// Throws DriverError if there is no such device.
const DeviceInfo &getDevice(int ordinal);

/// The device that owns the memory; -1 for memory of the host or unknown memory.
int getPointerDevice(uint64_t address);

/// True if a device reaches host memory at the same address: pinned or registered memory. False
/// without a driver.
bool reachesHostMemory(int device, uint64_t address) noexcept;

/// Makes later work of `stream` wait for all work that is on `other` now. Does not wait itself.
/// Both streams belong to the device's primary context.
void waitForStream(int device, Stream stream, Stream other);

/// Makes a device's primary context current for this thread during its lifetime.
class CurrentContext {
public:
  explicit CurrentContext(int device);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  Context previous = nullptr;
  bool changed = false;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_DRIVER_H
