// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of which each GPU has one: its properties, its context, a kernel's function on it. Each
// launch reads some of these, so the lookup takes no lock.

#ifndef TESSERA_RUNTIME_CUDA_PERDEVICE_H
#define TESSERA_RUNTIME_CUDA_PERDEVICE_H

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

namespace tessera::cuda {

/// Values by the ids of GPUs, each made on first use. They never move.
template <typename T> class PerDevice {
public:
  /// The value of a GPU. One thread at a time calls `make`, until it has returned a value. Its
  /// exceptions are passed on.
  template <typename Make> const T &get(int device, Make make) {
    auto index = static_cast<size_t>(device);
    if (index < kNumCachedDevices)
      if (const T *known = few[index].load(std::memory_order_acquire))
        return *known;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = values.find(device);
    if (found == values.end())
      found = values.emplace(device, make()).first;
    if (index < kNumCachedDevices)
      few[index].store(&found->second, std::memory_order_release);
    return found->second;
  }

private:
  /// Nearly all machines have at most so many GPUs; others are looked up in a map.
  static constexpr size_t kNumCachedDevices = 8;
  std::array<std::atomic<const T *>, kNumCachedDevices> few{};
  std::mutex mutex;
  std::map<int, T> values;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_PERDEVICE_H
