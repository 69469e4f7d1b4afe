// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/Driver.h"

#include "tessera/Runtime/CUDA/PerDevice.h"

#include <dlfcn.h>

#include <memory>

namespace tessera::cuda {
namespace {

/// libcuda and the outcome of opening it, which never changes within a process.
struct Opened {
  DriverTable table{};
  std::unique_ptr<DriverError> error;

  Opened() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      error = std::make_unique<DriverError>(-1, std::string("no CUDA driver is installed (") +
                                                    dlerror() + ")");
      return;
    }
    auto load = [&](auto &function, const char *name) {
      // Some functions are exported under the name of their second version.
      std::string second = std::string(name) + "_v2";
      void *symbol = dlsym(library, second.c_str());
      if (!symbol)
        symbol = dlsym(library, name);
      if (!symbol && !error)
        error = std::make_unique<DriverError>(
            -1, std::string("the CUDA driver is too old: it has no ") + name);
      function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
    };
#define LOAD(name) load(table.name, #name)
    LOAD(cuInit);
    LOAD(cuDriverGetVersion);
    LOAD(cuDeviceGetCount);
    LOAD(cuDeviceGet);
    LOAD(cuDeviceGetName);
    LOAD(cuDeviceGetAttribute);
    LOAD(cuDevicePrimaryCtxRetain);
    LOAD(cuCtxGetCurrent);
    LOAD(cuCtxSetCurrent);
    LOAD(cuModuleLoadDataEx);
    LOAD(cuModuleUnload);
    LOAD(cuModuleGetFunction);
    LOAD(cuFuncSetAttribute);
    LOAD(cuFuncGetAttribute);
    LOAD(cuLaunchKernel);
    LOAD(cuStreamSynchronize);
    LOAD(cuStreamWaitEvent);
    LOAD(cuEventCreate);
    LOAD(cuEventRecord);
    LOAD(cuEventDestroy);
    LOAD(cuThreadExchangeStreamCaptureMode);
    LOAD(cuPointerGetAttribute);
    LOAD(cuGetErrorName);
    LOAD(cuGetErrorString);
#undef LOAD
    table.cuTensorMapEncodeTiled = reinterpret_cast<decltype(table.cuTensorMapEncodeTiled)>(
        dlsym(library, "cuTensorMapEncodeTiled"));
    table.cuOccupancyMaxActiveClusters =
        reinterpret_cast<decltype(table.cuOccupancyMaxActiveClusters)>(
            dlsym(library, "cuOccupancyMaxActiveClusters"));
    if (error)
      return;
    constexpr int kCapturesDependences = 12030;
    int version = 0;
    table.cuLaunchKernelEx = nullptr;
    if (table.cuDriverGetVersion(&version) == 0 && version >= kCapturesDependences)
      table.cuLaunchKernelEx =
          reinterpret_cast<decltype(table.cuLaunchKernelEx)>(dlsym(library, "cuLaunchKernelEx"));
    if (int code = table.cuInit(0)) {
      const char *name = "unknown error", *text = "";
      table.cuGetErrorName(code, &name);
      table.cuGetErrorString(code, &text);
      error = std::make_unique<DriverError>(code, std::string("the CUDA driver does not start: ") +
                                                      name + " (" + text + ")");
    }
  }
};

const Opened &getOpened() {
  static const Opened opened;
  return opened;
}

// Values of CUdevice_attribute, CUpointer_attribute.
enum DeviceAttribute {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMultiprocessors = 16,
  kMemoryClock = 36,
  kMemoryBusWidth = 37,
  kL2Bytes = 38,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedPerBlockOptIn = 97,
};
constexpr int kPointerDeviceOrdinal = 9;
constexpr int kPointerMemoryType = 2;
constexpr int kPointerOnDevice = 3;
constexpr unsigned kMemoryOfHost = 1;
constexpr unsigned kMemoryOfDevice = 2;

} // namespace

const DriverTable &getDriver() {
  const Opened &opened = getOpened();
  if (opened.error)
    throw *opened.error;
  return opened.table;
}

bool isAvailable() {
  const Opened &opened = getOpened();
  int count = 0;
  return !opened.error && opened.table.cuDeviceGetCount(&count) == 0 && count > 0;
}

void failCheck(int code, std::string_view doing) {
  const DriverTable &driver = getDriver();
  const char *name = "unknown error", *text = "";
  driver.cuGetErrorName(code, &name);
  driver.cuGetErrorString(code, &text);
  throw DriverError(code, std::string(doing) + " failed: " + name + " (" + text + ")");
}

int getDeviceCount() {
  int count = 0;
  check(getDriver().cuDeviceGetCount(&count), "counting GPUs");
  return count;
}

static DeviceInfo describeDevice(int ordinal) {
  const DriverTable &driver = getDriver();
  int count = getDeviceCount();
  if (ordinal < 0 || ordinal >= count)
    throw DriverError(101, "there is no GPU " + std::to_string(ordinal) + "; there are " +
                               std::to_string(count));
  DeviceInfo info;
  int device = 0;
  char name[256] = "";
  check(driver.cuDeviceGet(&device, ordinal), "opening a GPU");
  check(driver.cuDeviceGetName(name, sizeof name, device), "naming a GPU");
  info.name = name;
  auto read = [&](int &value, int attribute) {
    check(driver.cuDeviceGetAttribute(&value, attribute, device), "describing a GPU");
  };
  read(info.capabilityMajor, kCapabilityMajor);
  read(info.capabilityMinor, kCapabilityMinor);
  read(info.multiprocessors, kMultiprocessors);
  read(info.maxSharedBytes, kMaxSharedPerBlockOptIn);
  read(info.maxThreadsPerBlock, kMaxThreadsPerBlock);
  for (int axis = 0; axis < 3; ++axis)
    read(info.maxGrid[axis], kMaxGridX + axis);
  read(info.l2Bytes, kL2Bytes);
  read(info.memoryClockKHz, kMemoryClock);
  read(info.memoryBusBits, kMemoryBusWidth);
  return info;
}

const DeviceInfo &getDevice(int ordinal) {
  static PerDevice<DeviceInfo> devices;
  return devices.get(ordinal, [&] { return describeDevice(ordinal); });
}

int getPointerDevice(uint64_t address) {
  const DriverTable &driver = getDriver();
  unsigned type = 0;
  if (driver.cuPointerGetAttribute(&type, kPointerMemoryType, address) != 0 ||
      type != kMemoryOfDevice)
    return -1;
  int ordinal = -1;
  if (driver.cuPointerGetAttribute(&ordinal, kPointerDeviceOrdinal, address) != 0)
    return -1;
  return ordinal;
}

/// A device's primary context, which every framework of the process uses. It is retained until the
/// process ends.
static Context getPrimaryContext(int ordinal) {
  static PerDevice<Context> contexts;
  return contexts.get(ordinal, [&] {
    int device = 0;
    Context context = nullptr;
    check(getDriver().cuDeviceGet(&device, ordinal), "opening a GPU");
    check(getDriver().cuDevicePrimaryCtxRetain(&context, device),
          "making a context on GPU " + std::to_string(ordinal));
    return context;
  });
}

bool reachesHostMemory(int device, uint64_t address) noexcept {
  if (getOpened().error)
    return false;
  try {
    CurrentContext context(device); // the answer is about it
    const DriverTable &driver = getDriver();
    unsigned type = 0;
    uint64_t onDevice = 0;
    // The call fails for memory that the driver does not know.
    return driver.cuPointerGetAttribute(&type, kPointerMemoryType, address) == 0 &&
           type == kMemoryOfHost &&
           driver.cuPointerGetAttribute(&onDevice, kPointerOnDevice, address) == 0 &&
           onDevice == address;
  } catch (const DriverError &) {
    return false;
  }
}

void waitForStream(int device, Stream stream, Stream other) {
  constexpr unsigned kDisableTiming = 2;
  const DriverTable &driver = getDriver();
  std::string doing = "waiting for another stream of GPU " + std::to_string(device);
  CurrentContext context(device);
  // An event of its own for each wait: one that is shared would need a lock, which another thread
  // may hold when the process forks.
  Event event = nullptr;
  check(driver.cuEventCreate(&event, kDisableTiming), doing);
  int code = driver.cuEventRecord(event, other);
  if (code == 0)
    code = driver.cuStreamWaitEvent(stream, event, 0);
  driver.cuEventDestroy(event); // which the driver does once the event has happened
  check(code, doing);
}

CurrentContext::CurrentContext(int device) {
  const DriverTable &driver = getDriver();
  Context wanted = getPrimaryContext(device);
  check(driver.cuCtxGetCurrent(&previous), "asking for the current context");
  if (previous == wanted)
    return;
  check(driver.cuCtxSetCurrent(wanted), "choosing GPU " + std::to_string(device));
  changed = true;
}

CurrentContext::~CurrentContext() {
  // If the thread had no context, the new one remains current: frameworks expect one.
  if (changed && previous)
    getDriver().cuCtxSetCurrent(previous);
}

} // namespace tessera::cuda
