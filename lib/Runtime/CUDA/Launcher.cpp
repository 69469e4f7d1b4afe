// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/Launcher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <set>

namespace tessera::cuda {
namespace {

// Values of CUfunction_attribute.
enum FunctionAttribute { kLocalBytes = 3, kNumRegisters = 4, kMaxDynamicSharedBytes = 8 };

/// Values of CUlaunchAttributeID.
constexpr int kClusterDimension = 4, kProgrammaticStreamSerialization = 6;

/// Shared memory of a block that needs no opt-in.
constexpr int kSharedWithoutOptIn = 48 * 1024;

/// The latest launches. The driver reports a fault of a kernel in a later call, so the error can
/// only list the kernels that may have caused it.
class LaunchLog {
public:
  void add(const char *name, const int32_t grid[3]) {
    Entry &entry = entries[count.fetch_add(1, std::memory_order_relaxed) % entries.size()];
    entry.name.store(name, std::memory_order_relaxed);
    for (int axis = 0; axis < 3; ++axis)
      entry.grid[axis].store(grid[axis], std::memory_order_relaxed);
  }

  /// "'softmax' with grid (4, 1, 1), 'add' with grid (8, 1, 1)", newest first.
  std::string describe() const {
    std::string text;
    size_t end = count.load(std::memory_order_relaxed);
    for (size_t back = 1; back <= std::min(end, entries.size()); ++back) {
      const Entry &entry = entries[(end - back) % entries.size()];
      const char *name = entry.name.load(std::memory_order_relaxed);
      text += (text.empty() ? "'" : ", '") + std::string(name ? name : "?") + "' with grid (";
      for (int axis = 0; axis < 3; ++axis)
        text += (axis ? ", " : "") + std::to_string(entry.grid[axis].load());
      text += ")";
    }
    return text;
  }

private:
  struct Entry {
    std::atomic<const char *> name{nullptr};
    std::atomic<int32_t> grid[3] = {0, 0, 0};
  };
  std::array<Entry, 4> entries;
  std::atomic<size_t> count{0};
};

LaunchLog launchLog;

/// A copy of a name that is never freed.
const char *keepName(const std::string &name) {
  static std::mutex mutex;
  static auto *names = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  return names->insert(name).first->c_str();
}

/// True if a result means that a kernel has failed on the GPU. The context is lost then, and every
/// later call of the process returns the same.
bool isFault(int code) {
  return code == 700 || code == 702 || code == 709 || code == 710 || (code >= 714 && code <= 719);
}

/// Allows loading a module while a stream of this thread is captured into a graph.
class RelaxedCapture {
public:
  RelaxedCapture() { getDriver().cuThreadExchangeStreamCaptureMode(&mode); }
  ~RelaxedCapture() { getDriver().cuThreadExchangeStreamCaptureMode(&mode); }
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  int mode = 2; // CU_STREAM_CAPTURE_MODE_RELAXED; afterwards what it was before
};

/// The fewest programs for which a launch may start early. A program that starts early runs on the
/// first SM with room. If an SM has room for one program only, the distribution is as even as
/// usual. If it has room for several, some SMs get more programs than others. On an H200, 264
/// programs of a layer norm's backward pass took a seventh longer. With many programs per SM, the
/// difference evens out.
int64_t getLeastEarlyPrograms(int sharedBytes, const DeviceInfo &info) {
  constexpr int kOfProgram = 1 << 10; // what a program takes beside its own
  constexpr int kRounds = 32;
  if (2 * (sharedBytes + kOfProgram) > info.maxSharedBytes + kOfProgram)
    return 0;
  return int64_t(kRounds) * info.multiprocessors;
}

} // namespace

LoadedKernel::LoadedKernel(KernelDescription newDescription, std::string image)
    : description(std::move(newDescription)), limits(description.limits->get()),
      loggedName(keepName(description.name)), image(std::move(image)) {
  if (description.sum)
    sumEnd = ProgramBound::parse(description.sum->upper, description.numArguments);
}

Module LoadedKernel::load(std::string &log) const {
  std::string doing = "loading kernel '" + description.name + "'";
  const DriverTable &driver = getDriver();
  Module module = nullptr;
  if (image.compare(0, 4, "\177ELF") == 0) {
    check(driver.cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr), doing);
    return module;
  }
  // Values of CUjit_option: buffers for messages and for errors, their sizes, verbose messages,
  // source lines. Numbers are passed as pointers.
  std::vector<char> said(1 << 14), errors(1 << 14);
  auto number = [](size_t value) { return reinterpret_cast<void *>(value); };
  int options[] = {3, 4, 5, 6, 12, 13};
  void *values[] = {said.data(),           number(said.size()), errors.data(),
                    number(errors.size()), number(1),           number(1)};
  int code = driver.cuModuleLoadDataEx(&module, image.c_str(), 6, options, values);
  said.back() = errors.back() = '\0';
  log = said.data();
  if (code == 0)
    return module;
  doing += ", which the driver assembles since there is no ptxas,";
  std::string error = errors.data();
  // A single instruction needs too many registers: wgmma has all of its sums in them.
  if (error.find("(C7602)") != std::string::npos)
    throw DriverError(code, doing + " failed: a dot takes more registers than a thread may "
                                    "have; use more warps, smaller tiles, or a higher maxnreg");
  constexpr int kNoAssembler = 221, kUnknownPTX = 222;
  if (code == kNoAssembler || code == kUnknownPTX)
    error += (error.empty() ? "" : "; ") +
             std::string("install the package nvidia-cuda-nvcc, or ") +
             (code == kNoAssembler ? "all of the driver" : "a newer driver");
  try {
    check(code, doing);
  } catch (const DriverError &failure) {
    throw DriverError(code, failure.message + (error.empty() ? "" : ": ") + error);
  }
  return module;
}

const LoadedKernel::Loaded &LoadedKernel::getLoaded(int device) {
  return loadedOn.get(device, [&] { return loadOn(device); });
}

LoadedKernel::Loaded LoadedKernel::loadOn(int device) const {
  const DriverTable &driver = getDriver();
  const DeviceInfo &info = getDevice(device);
  std::string doing = "loading kernel '" + description.name + "'";
  // The driver's own message is only "device kernel image is invalid".
  if (description.capability / 10 != info.capabilityMajor)
    throw DriverError(209, doing + " failed: it was compiled for compute capability " +
                               std::to_string(description.capability / 10) + "." +
                               std::to_string(description.capability % 10) + ", and GPU " +
                               std::to_string(device) + " (" + info.name + ") has " +
                               std::to_string(info.capabilityMajor) + "." +
                               std::to_string(info.capabilityMinor));
  if (description.sharedBytes > info.maxSharedBytes)
    throw DriverError(701, doing + " failed: it needs " + std::to_string(description.sharedBytes) +
                               " bytes of shared memory, and GPU " + std::to_string(device) + " (" +
                               info.name + ") has " + std::to_string(info.maxSharedBytes) +
                               "; use smaller tiles or fewer stages");
  RelaxedCapture relaxed;
  Loaded loaded;
  Module module = load(loaded.log);
  Function &function = loaded.function;
  check(driver.cuModuleGetFunction(&function, module, description.name.c_str()), doing);
  if (description.sharedBytes > kSharedWithoutOptIn)
    check(driver.cuFuncSetAttribute(function, kMaxDynamicSharedBytes, description.sharedBytes),
          doing);
  loaded.leastEarlyPrograms = getLeastEarlyPrograms(description.sharedBytes, info);
  loaded.mostClusters = countOwnClusters(function, device);
  loaded.room = findRoom(function, info);
  return loaded;
}

/// The launch attribute of a kernel's clusters, which lie along the first axis of the grid.
static LaunchAttribute getClusterDimension(int numCTAs) {
  LaunchAttribute cluster = {kClusterDimension, {}};
  cluster.value.clusterDim[0] = numCTAs;
  cluster.value.clusterDim[1] = cluster.value.clusterDim[2] = 1;
  return cluster;
}

int LoadedKernel::countClusters(Function function, int numCTAs, int sharedBytes,
                                int &fitting) const {
  const DriverTable &driver = getDriver();
  if (!driver.cuOccupancyMaxActiveClusters)
    return 0;
  LaunchAttribute cluster = getClusterDimension(numCTAs);
  LaunchConfig config = {{unsigned(numCTAs), 1, 1},
                         {32u * description.numWarps, 1, 1},
                         unsigned(sharedBytes),
                         nullptr,
                         &cluster,
                         1};
  return driver.cuOccupancyMaxActiveClusters(&fitting, function, &config);
}

int LoadedKernel::countOwnClusters(Function function, int device) const {
  if (description.numCTAs == 1)
    return 0;
  constexpr int kUnknown = -1;
  int fitting = kUnknown;
  std::string doing = "loading kernel '" + description.name + "'";
  check(countClusters(function, description.numCTAs, description.sharedBytes, fitting), doing);
  if (fitting == 0)
    throw NoClusterRoom(701, doing + " failed: GPU " + std::to_string(device) + " (" +
                                 getDevice(device).name + ") has no room for a cluster of " +
                                 std::to_string(description.numCTAs) + " blocks with " +
                                 std::to_string(description.numWarps) + " warps and " +
                                 std::to_string(description.sharedBytes) +
                                 " bytes of shared memory each; use a smaller num_ctas, smaller "
                                 "tiles or fewer stages");
  return std::max(fitting, 0);
}

/// The first compute capability with clusters.
static constexpr int kFirstWithClusters = 9;

/// The number of clusters that a variant of the kernel could run at once. Its blocks are like the
/// kernel's own. Several blocks on one SM take as long as one after the other, so each should have
/// its own SM. The query therefore assumes so much shared memory that no two blocks fit an SM.
ClusterRoom LoadedKernel::findRoom(Function function, const DeviceInfo &info) const {
  ClusterRoom room = ClusterRoom::guess(info.multiprocessors);
  if (!description.sum || info.capabilityMajor < kFirstWithClusters)
    return room;
  int own = description.sharedBytes, alone = std::max(own, info.maxSharedBytes / 2 + 1);
  auto allow = [&](int bytes) {
    return getDriver().cuFuncSetAttribute(function, kMaxDynamicSharedBytes,
                                          std::max(bytes, kSharedWithoutOptIn)) == 0;
  };
  bool isAllowed = allow(alone);
  for (size_t i = 0; i < ClusterRoom::kSizes.size(); ++i) {
    auto fitting = static_cast<int>(room.clusters[i]);
    // If no cluster of this size fits, the kernel is launched without variants.
    bool hasFailed =
        countClusters(function, ClusterRoom::kSizes[i], isAllowed ? alone : own, fitting) != 0;
    room.clusters[i] = hasFailed ? 0 : fitting;
  }
  allow(own);
  return room;
}

std::string LoadedKernel::describe(const int32_t grid[3]) const {
  std::string cluster = description.numCTAs == 1
                            ? ""
                            : " in each of " + std::to_string(description.numCTAs) + " blocks";
  return "kernel '" + description.name + "' with grid (" + std::to_string(grid[0]) + ", " +
         std::to_string(grid[1]) + ", " + std::to_string(grid[2]) + ") and " +
         std::to_string(description.numWarps) + " warps" + cluster;
}

int LoadedKernel::start(const Loaded &loaded, Stream stream, const int32_t grid[3],
                        void **parameters) const {
  unsigned threads = 32 * description.numWarps;
  unsigned extents[3] = {unsigned(grid[0]), unsigned(grid[1]), unsigned(grid[2])};
  int64_t rows = int64_t(grid[1]) * grid[2];
  bool isEarly = description.waitsForStream && rows * grid[0] >= loaded.leastEarlyPrograms;
  const DriverTable &driver = getDriver();
  std::array<LaunchAttribute, 2> attributes;
  unsigned numAttributes = 0;
  if (description.numCTAs > 1)
    attributes[numAttributes++] = getClusterDimension(description.numCTAs);
  if (isEarly) {
    attributes[numAttributes] = {kProgrammaticStreamSerialization, {}};
    attributes[numAttributes++].value.isAllowed = 1;
  }
  // An older driver has only cuLaunchKernel. It launches clusters, too, since the kernel's code has
  // their size.
  if (numAttributes == 0 || !driver.cuLaunchKernelEx)
    return driver.cuLaunchKernel(loaded.function, extents[0], extents[1], extents[2], threads, 1, 1,
                                 description.sharedBytes, stream, parameters, nullptr);
  LaunchConfig config = {{extents[0], extents[1], extents[2]},
                         {threads, 1, 1},
                         unsigned(description.sharedBytes),
                         stream,
                         attributes.data(),
                         numAttributes};
  return driver.cuLaunchKernelEx(&config, loaded.function, parameters, nullptr);
}

Division LoadedKernel::chooseDivision(int device, const int32_t grid[3], const uint64_t *slots) {
  if (!sumEnd)
    return {};
  const DeviceInfo &info = getDevice(device);
  std::optional<int64_t> programs = countFewPrograms(grid, info.multiprocessors);
  if (info.capabilityMajor < kFirstWithClusters || !programs)
    return {};
  std::optional<int64_t> end = sumEnd->evaluate(slots, grid);
  if (!end)
    return {};
  CurrentContext context(device);
  return description.sum->choose(*end, *programs, getLoaded(device).room);
}

bool LoadedKernel::launch(int device, Stream stream, const int32_t grid[3], const uint64_t *slots) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
    return true;
  tessera_shape shapes[kMaxTensorMaps];
  if (!tessera_accepts(&limits, grid, slots, shapes))
    return false;
  CurrentContext context(device);
  const Loaded &loaded = getLoaded(device);
  // The driver reads as many bytes of a slot as the argument's type has.
  constexpr size_t kMaxParametersOnStack = 16 + 3 + kMaxTensorMaps;
  void *few[kMaxParametersOnStack];
  std::vector<void *> many;
  void **parameters = few;
  size_t numMaps = limits.num_maps, numHidden = 0;
  size_t numParameters = description.numArguments + 3 + numMaps + description.argumentTables.size();
  if (numParameters > kMaxParametersOnStack) {
    many.resize(numParameters);
    parameters = many.data();
  }
  int32_t extents[3] = {grid[0], grid[1], grid[2]}, launched[3] = {grid[0], grid[1], grid[2]};
  if (description.persistentPrograms) {
    for (int32_t &extent : extents)
      parameters[description.numArguments + numHidden++] = &extent;
    int64_t programs = int64_t(grid[0]) * grid[1] * grid[2];
    int64_t most = int64_t(description.persistentPrograms) * getDevice(device).multiprocessors /
                   description.numCTAs;
    // Some SMs have too few neighbours for a cluster.
    if (loaded.mostClusters > 0)
      most = std::min<int64_t>(most, loaded.mostClusters);
    most = std::max<int64_t>(most, 1);
    launched[0] = static_cast<int32_t>(std::min(programs, most));
    launched[1] = launched[2] = 1;
  }
  // Blocks of a cluster are adjacent. The driver refuses a grid that is too large.
  constexpr int64_t kMaxBlocks = INT32_MAX;
  int64_t blocks = int64_t(launched[0]) * description.numCTAs;
  if (blocks > kMaxBlocks)
    fail(/*code=*/1, device, grid);
  launched[0] = static_cast<int32_t>(blocks);
  TensorMap maps[kMaxTensorMaps];
  for (size_t index = 0; index < numMaps; ++index) {
    if (!encode(limits.maps[index], shapes[index], maps[index]))
      return false;
    parameters[description.numArguments + numHidden + index] = &maps[index];
  }
  void **next = parameters + description.numArguments + numHidden + numMaps;
  for (int first : description.argumentTables)
    *next++ = const_cast<uint64_t *>(&slots[first]);
  for (int index = 0; index < description.numArguments; ++index)
    parameters[index] = const_cast<uint64_t *>(&slots[index]);
  int code = start(loaded, stream, launched, parameters);
  if (code != 0)
    fail(code, device, grid);
  launchLog.add(loggedName, grid);
  return true;
}

void LoadedKernel::fail(int code, int device, const int32_t grid[3]) const {
  std::string doing = "launching " + describe(grid);
  if (isFault(code)) {
    try {
      check(code, doing);
    } catch (DriverError &error) {
      throw DriverError(code, error.message +
                                  "; an earlier kernel has failed, and this process"
                                  " can use the GPU no more; the last were " +
                                  launchLog.describe());
    }
  }
  const DeviceInfo &info = getDevice(device);
  for (int axis = 0; axis < 3; ++axis) {
    int most = axis == 0 ? info.maxGrid[axis] / description.numCTAs : info.maxGrid[axis];
    if (grid[axis] > most)
      throw DriverError(code, doing + " failed: axis " + std::to_string(axis) + " has " +
                                  std::to_string(grid[axis]) + " programs, the most is " +
                                  std::to_string(most));
  }
  check(code, doing);
  throw DriverError(code, doing + " failed");
}

int LoadedKernel::getNumRegisters(int device) {
  CurrentContext context(device);
  int value = 0;
  check(getDriver().cuFuncGetAttribute(&value, kNumRegisters, getLoaded(device).function),
        "asking for registers");
  return value;
}

std::string LoadedKernel::getLog(int device) {
  CurrentContext context(device);
  return getLoaded(device).log;
}

int LoadedKernel::getLocalBytes(int device) {
  CurrentContext context(device);
  int value = 0;
  check(getDriver().cuFuncGetAttribute(&value, kLocalBytes, getLoaded(device).function),
        "asking for local memory");
  return value;
}

} // namespace tessera::cuda
