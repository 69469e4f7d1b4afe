// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches a cubin on GPUs. The first launch on a GPU loads it there, or assembles PTX by the
// driver.

#ifndef TESSERA_RUNTIME_CUDA_LAUNCHER_H
#define TESSERA_RUNTIME_CUDA_LAUNCHER_H

#include "tessera/Runtime/CUDA/DivisibleSum.h"
#include "tessera/Runtime/CUDA/Driver.h"
#include "tessera/Runtime/CUDA/LaunchLimits.h"
#include "tessera/Runtime/CUDA/PerDevice.h"
#include "tessera/Runtime/CUDA/ProgramBound.h"

#include <memory>
#include <string>
#include <vector>

namespace tessera::cuda {

/// The data that a launch needs of a kernel besides its code.
struct KernelDescription {
  std::string name;    ///< the entry in the cubin
  int capability = 0;  ///< 90: the cubin runs on GPUs of 9.x
  int numWarps = 4;    ///< of a block
  int numCTAs = 1;     ///< blocks of a cluster, which do a program together
  int sharedBytes = 0; ///< dynamic shared memory
  int numArguments = 0;
  /// The kernel's assumptions about a launch, which its owner holds, too. It has at most
  /// kMaxTensorMaps tensor maps, which are passed behind the arguments.
  std::shared_ptr<const LaunchLimits> limits;
  /// The programs an SM of a persistent kernel, which run the grid's programs one after the other;
  /// 0 if the kernel is not persistent. A persistent kernel receives the grid's extents in front of
  /// the tensor maps.
  int persistentPrograms = 0;
  /// The first argument of each table of arguments, which is passed behind the tensor maps.
  std::vector<int> argumentTables;
  /// True if programs themselves wait for earlier kernels of the stream. They may then start while
  /// the previous kernel ends.
  bool waitsForStream = false;
  /// A sum that variants of the kernel with clusters would divide, or compute on divided tiles.
  std::optional<DivisibleSum> sum;
};

class LoadedKernel {
public:
  static constexpr size_t kMaxTensorMaps = 16;

  /// `image` is a cubin or PTX.
  LoadedKernel(KernelDescription description, std::string image);
  LoadedKernel(const LoadedKernel &) = delete;
  LoadedKernel &operator=(const LoadedKernel &) = delete;
  // Modules are never unloaded: at the end of a process the driver may be gone, and after a fork
  // the module belongs to the parent.

  /// Puts a grid on a stream and returns. `slots` has one 8-byte slot an argument. Throws
  /// DriverError (or NoClusterRoom) with the kernel, the grid and the cause. An empty grid launches
  /// nothing. Returns false, without launching, if the arguments or the grid are outside of the
  /// kernel's limits, or if the driver makes no tensor map of an array.
  bool launch(int device, Stream stream, const int32_t grid[3], const uint64_t *slots);

  /// The clusters with which a variant of the kernel would run this launch fastest; one block if
  /// the kernel itself is as fast. Loads the kernel if a variant could be faster.
  Division chooseDivision(int device, const int32_t grid[3], const uint64_t *slots);

  /// Registers and spilled bytes of a thread, from the driver.
  int getNumRegisters(int device);
  int getLocalBytes(int device);
  /// The driver's log of assembling PTX.
  std::string getLog(int device);

  const KernelDescription &getDescription() const { return description; }

private:
  struct Loaded {
    Function function = nullptr;
    /// A launch with fewer programs may not start while the previous kernel ends.
    int64_t leastEarlyPrograms = 0;
    /// The number of its clusters that the GPU runs at once; 0 if it has none, or if the number is
    /// unknown.
    int mostClusters = 0;
    /// The room for variants of the kernel, if it can have any.
    ClusterRoom room;
    std::string log; ///< what the driver said of the image
  };
  /// Loads the image as a module; `log` receives the driver's log.
  Module load(std::string &log) const;

  const Loaded &getLoaded(int device);
  Loaded loadOn(int device) const;
  /// Queries how many clusters of so many blocks a GPU runs at once. Returns the driver's code, and
  /// does not write `fitting` on failure.
  int countClusters(Function function, int numCTAs, int sharedBytes, int &fitting) const;
  /// The same for the kernel's own clusters. Throws NoClusterRoom if none fits.
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
