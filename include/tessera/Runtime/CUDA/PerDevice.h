// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What there is once for each GPU: what it is, its context, a kernel's function on it. Each launch
// asks for some of these, so that they are found without a lock.

#ifndef TESSERA_RUNTIME_CUDA_PERDEVICE_H
#define TESSERA_RUNTIME_CUDA_PERDEVICE_H

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

namespace tessera::cuda {

/// Values by the numbers of GPUs, each made when it is first asked for. They stay where they are.
template <typename T> class PerDevice {
public:
  /// `make` is called by one thread at a time, and not again once it has returned a value. What it
  /// throws is thrown.
  template <typename Make> const T &get(int device, Make make) {
    auto index = static_cast<size_t>(device);
    if (index < kFew)
      if (const T *known = few[index].load(std::memory_order_acquire))
        return *known;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = values.find(device);
    if (found == values.end())
      found = values.emplace(device, make()).first;
    if (index < kFew)
      few[index].store(&found->second, std::memory_order_release);
    return found->second;
  }

private:
  /// As many as a machine has, nearly always; the others are looked up.
  static constexpr size_t kFew = 8;
  std::array<std::atomic<const T *>, kFew> few{};
  std::mutex mutex;
  std::map<int, T> values;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_PERDEVICE_H
