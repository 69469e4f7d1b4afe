// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cubin, loaded on each GPU where it is launched first; or PTX, which the driver assembles then.

#ifndef TESSERA_RUNTIME_CUDA_LAUNCHER_H
#define TESSERA_RUNTIME_CUDA_LAUNCHER_H

#include "tessera/Runtime/CUDA/DivisibleSum.h"
#include "tessera/Runtime/CUDA/Driver.h"
#include "tessera/Runtime/CUDA/LaunchLimits.h"
#include "tessera/Runtime/CUDA/PerDevice.h"
#include "tessera/Runtime/CUDA/ProgramBound.h"

#include <memory>
#include <string>

namespace tessera::cuda {

/// What a launch needs to know of a kernel besides its code.
struct KernelDescription {
  std::string name;    ///< the entry in the cubin
  int capability = 0;  ///< 90: the cubin runs on GPUs of 9.x
  int numWarps = 4;    ///< of a block
  int numCTAs = 1;     ///< blocks of a cluster, which do a program together
  int sharedBytes = 0; ///< dynamic shared memory
  int numArguments = 0;
  /// What it takes for granted of a launch, also kept by its owner. There are at most
  /// kMaxTensorMaps tensor maps, which are arguments behind those.
  std::shared_ptr<const LaunchLimits> limits;
  /// If not 0, so many programs an SM do the work of the grid, one after the
  /// other; the grid's extents are arguments in front of the tensor maps.
  int persistentPrograms = 0;
  /// True if programs wait by themselves for what the stream did before. They may then be
  /// started while the kernel before them comes to its end.
  bool waitsForStream = false;
  /// A sum that variants of the kernel for clusters would divide, or do on divided tiles.
  std::optional<DivisibleSum> sum;
};

class LoadedKernel {
public:
  static constexpr size_t kMaxTensorMaps = 16;

  /// `image` is a cubin or PTX.
  LoadedKernel(KernelDescription description, std::string image);
  LoadedKernel(const LoadedKernel &) = delete;
  LoadedKernel &operator=(const LoadedKernel &) = delete;
  // Modules are never unloaded: the driver may be gone by the time a process ends, and
  // belong to another process after a fork.

  /// Puts a grid on a stream and returns. `slots` has one 8-byte slot an argument.
  /// Throws DriverError (NoClusterRoom, too) with the kernel, the grid and the cause. A grid of
  /// nothing is none. False, and nothing is launched, if these arguments or the grid are outside of
  /// the kernel's limits, or the driver makes no tensor map of an array.
  bool launch(int device, Stream stream, const int32_t grid[3], const uint64_t *slots);

  /// With which clusters a variant of the kernel would do this launch best: with one block, if this
  /// one is as good. Loads the kernel where a variant could be better.
  Division chooseDivision(int device, const int32_t grid[3], const uint64_t *slots);

  /// Registers of a thread and spilled bytes, as the driver has them.
  int getNumRegisters(int device);
  int getLocalBytes(int device);
  /// What the driver said while it assembled PTX.
  std::string getLog(int device);

  const KernelDescription &getDescription() const { return description; }

private:
  struct Loaded {
    Function function = nullptr;
    /// With so many programs a launch may begin while the kernel before it ends.
    int64_t leastEarlyPrograms = 0;
    /// How many of its clusters the GPU can run at once; 0 where it has none, or nobody knows.
    int mostClusters = 0;
    /// For variants of the kernel, where there may be any.
    ClusterRoom room;
    std::string log; ///< what the driver said of the image
  };
  /// The module of the image, and what the driver said of it.
  Module load(std::string &log) const;

  const Loaded &getLoaded(int device);
  Loaded loadOn(int device) const;
  /// How many clusters of so many blocks a GPU runs at once; not written if the driver cannot
  /// tell. Its code.
  int countClusters(Function function, int numCTAs, int sharedBytes, int &fitting) const;
  /// Those of the kernel; throws NoClusterRoom where not even one fits.
  int countOwnClusters(Function function, int device) const;
  ClusterRoom findRoom(Function function, const DeviceInfo &info) const;
  int start(const Loaded &loaded, Stream stream, const int32_t grid[3], void **parameters) const;
  std::string describe(const int32_t grid[3]) const;
  [[noreturn]] void fail(int code, int device, const int32_t grid[3]) const;

  KernelDescription description;
  tessera_limits limits;              ///< those of the description
  std::optional<ProgramBound> sumEnd; ///< of the sum, where there is one
  const char *loggedName;             ///< outlives the kernel
  std::string image;
  PerDevice<Loaded> loadedOn;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_LAUNCHER_H
