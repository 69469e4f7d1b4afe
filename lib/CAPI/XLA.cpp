// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches from programs that XLA compiles: the handlers that JAX's custom calls reach.
//
// A call carries its kernel as the bytes that the disk cache stores, too. So another process can
// run programs that XLA keeps or exports. Attributes of a call:
//
//     kernel  the kernel's bytes (tsr_kernel_serialize)
//     key     a text that identifies these bytes; loaded kernels are cached by it
//     slots   two integers for each slot of the kernel's arguments: a kind and a number n (0: n
//             itself, 1: the address of input n, 2: the address of output n)
//     grid    three extents
//
// On the CPU a call returns when the grid is done; on a GPU, when it is on XLA's stream.

#include "XLAInterface.h"

#include "tessera/CAPI/Tessera.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

using namespace tessera;

namespace {

/// The interface version that the handlers report: that of the headers of the process's XLA, or the
/// newest version that this file knows.
std::atomic<int> minorVersion{xla::kOldestMinorVersion};

/// A failed call; becomes XLA's error.
struct CallError {
  int32_t code;
  std::string message;
};

[[noreturn]] void refuse(const std::string &what) {
  throw CallError{xla::kInvalidArgument, "tessera: error[E057]: " + what};
}

void check(TsrStatus status) {
  if (status == TSR_OK)
    return;
  std::string message = tsr_last_error();
  std::string id;
  if (llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(message)) {
    if (const llvm::json::Object *object = parsed->getAsObject()) {
      if (auto text = object->getString("message"))
        message = text->str();
      if (auto text = object->getString("id"))
        id = "error[" + text->str() + "]: ";
    }
  } else {
    llvm::consumeError(parsed.takeError());
  }
  throw CallError{status == TSR_USER_ERROR || status < TSR_OK ? xla::kInvalidArgument
                                                              : xla::kInternal,
                  "tessera: " + id + message};
}

/// The attributes of a call by name.
class CallAttributes {
public:
  explicit CallAttributes(const xla::Attributes &attributes) : attributes(attributes) {}

  llvm::StringRef getText(llvm::StringRef name) const {
    auto *text = static_cast<const xla::Text *>(find(name, xla::kText));
    return {text->data, text->length};
  }

  llvm::StringRef getBytes(llvm::StringRef name) const {
    const xla::Array &array = getArray(name, xla::kU8);
    return {static_cast<const char *>(array.data), array.count};
  }

  llvm::ArrayRef<int64_t> getNumbers(llvm::StringRef name) const {
    const xla::Array &array = getArray(name, xla::kS64);
    return {static_cast<const int64_t *>(array.data), array.count};
  }

private:
  const xla::Array &getArray(llvm::StringRef name, int32_t dtype) const {
    auto *array = static_cast<const xla::Array *>(find(name, xla::kArray));
    if (array->dtype != dtype)
      refuse("the attribute '" + name.str() + "' has elements of another type");
    return *array;
  }

  const void *find(llvm::StringRef name, int32_t type) const {
    for (int64_t i = 0; i < attributes.count; ++i) {
      const xla::Text &text = *attributes.names[i];
      if (llvm::StringRef(text.data, text.length) != name)
        continue;
      if (attributes.types[i] != type)
        refuse("the attribute '" + name.str() + "' is of another kind");
      return attributes.values[i];
    }
    refuse("the attribute '" + name.str() + "' is missing");
  }

  const xla::Attributes &attributes;
};

struct KernelDestroyer {
  void operator()(TsrKernel *kernel) const { tsr_kernel_destroy(kernel); }
};
using OwnedKernel = std::unique_ptr<TsrKernel, KernelDestroyer>;

/// The loaded kernels of all calls. They live as long as the process, since XLA does not report
/// when it drops a program.
class LoadedKernels {
public:
  TsrKernel *find(const CallAttributes &attributes) {
    llvm::StringRef key = attributes.getText("key");
    std::lock_guard<std::mutex> lock(mutex);
    OwnedKernel &kernel = kernels[key];
    if (!kernel) {
      llvm::StringRef bytes = attributes.getBytes("kernel");
      TsrKernel *handle = nullptr;
      check(tsr_kernel_deserialize(bytes.data(), bytes.size(), &handle));
      kernel.reset(handle);
    }
    return kernel.get();
  }

private:
  std::mutex mutex;
  llvm::StringMap<OwnedKernel> kernels;
};

LoadedKernels &getLoadedKernels() {
  // Never destroyed: XLA's threads may outlive static objects.
  static auto *kernels = new LoadedKernels();
  return *kernels;
}

const xla::Buffer &getBuffer(const xla::Buffers &buffers, int64_t index) {
  if (index < 0 || index >= buffers.count || buffers.types[index] != xla::kBuffer)
    refuse("the call has no buffer " + std::to_string(index));
  return *static_cast<const xla::Buffer *>(buffers.buffers[index]);
}

/// A launch, as a call describes it.
struct Launch {
  TsrKernel *kernel;
  int32_t grid[3];
  std::vector<uint64_t> slots;
  uint64_t someAddress = 0; ///< of one of the buffers; 0 if none has elements

  explicit Launch(const xla::Call &call) {
    CallAttributes attributes(call.attributes);
    kernel = getLoadedKernels().find(attributes);
    llvm::ArrayRef<int64_t> extents = attributes.getNumbers("grid");
    if (extents.size() != 3)
      refuse("a grid has three extents");
    for (int i = 0; i < 3; ++i)
      grid[i] = static_cast<int32_t>(extents[i]);
    llvm::ArrayRef<int64_t> filled = attributes.getNumbers("slots");
    for (size_t i = 0; i + 1 < filled.size(); i += 2) {
      if (filled[i] == 0) {
        slots.push_back(static_cast<uint64_t>(filled[i + 1]));
        continue;
      }
      const xla::Buffer &buffer =
          getBuffer(filled[i] == 1 ? call.inputs : call.outputs, filled[i + 1]);
      auto address = reinterpret_cast<uint64_t>(buffer.data);
      // The kernel was compiled for aligned arrays, as XLA's are.
      if (address % 16 != 0)
        refuse("XLA passes an array that is not aligned to 16 bytes");
      if (address != 0)
        someAddress = address;
      slots.push_back(address);
    }
  }

  xla::Failure *runOnCPU() const {
    check(tsr_kernel_launch(kernel, grid, slots.data(), slots.size(), /*num_threads=*/0));
    return nullptr;
  }

  xla::Failure *runOnGPU(const xla::Call &call) const {
    xla::StreamArgs args{sizeof(xla::StreamArgs), nullptr, call.context, nullptr};
    if (xla::Failure *failure = call.functions->getStream(&args))
      return failure;
    int32_t device = 0;
    if (someAddress != 0)
      check(tsr_cuda_pointer_device(someAddress, &device));
    check(tsr_kernel_launch_cuda(kernel, device < 0 ? 0 : device,
                                 reinterpret_cast<uint64_t>(args.stream), grid, slots.data(),
                                 slots.size()));
    return nullptr;
  }
};

/// Fills in the handler's metadata if XLA requests it; returns true then.
bool describeHandler(const xla::Call &call, uint32_t traits) {
  bool isAsked = false;
  for (xla::Extension *extension = call.extensions; extension; extension = extension->next) {
    if (extension->type != xla::kMetadataExtension)
      continue;
    xla::Metadata &metadata = *reinterpret_cast<xla::MetadataExtension *>(extension)->metadata;
    // XLA compares this with its own version, and refuses the handler if they are not compatible.
    metadata.version = {sizeof(xla::Version), nullptr, xla::kMajorVersion, minorVersion.load()};
    metadata.traits = traits;
    isAsked = true;
  }
  return isAsked;
}

template <typename Run> xla::Failure *handle(xla::Call *call, uint32_t traits, Run run) noexcept {
  if (describeHandler(*call, traits))
    return nullptr;
  xla::FailureArgs args{sizeof(xla::FailureArgs), nullptr, "tessera: out of memory",
                        xla::kInternal};
  CallError error{};
  try {
    if (call->size < sizeof(xla::Call) || call->functions->size < sizeof(xla::Functions))
      refuse("this XLA's foreign function interface is older than 0.1");
    return run(Launch(*call));
  } catch (CallError &found) {
    error = std::move(found);
    args.message = error.message.c_str();
    args.code = error.code;
  } catch (const std::bad_alloc &) {
    // The default message describes this failure.
  } catch (...) {
    args.message = "tessera: an unknown exception";
  }
  return call->functions->createFailure(&args);
}

extern "C" xla::Failure *launchOnCPU(xla::Call *call) {
  return handle(call, 0, [](const Launch &launch) { return launch.runOnCPU(); });
}

extern "C" xla::Failure *launchOnGPU(xla::Call *call) {
  return handle(call, xla::kIsRecordable,
                [&](const Launch &launch) { return launch.runOnGPU(*call); });
}

} // namespace

extern "C" void *tsr_xla_handler(int32_t on_gpu, int32_t major_version,
                                 int32_t minor_version) TSR_NOEXCEPT {
  if (major_version != xla::kMajorVersion || minor_version < xla::kOldestMinorVersion)
    return nullptr;
  minorVersion.store(std::min<int>(minor_version, xla::kNewestMinorVersion));
  return on_gpu ? reinterpret_cast<void *>(&launchOnGPU) : reinterpret_cast<void *>(&launchOnCPU);
}
