// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Compiler/LaunchEstimate.h"

#include "tessera/Machine/LaunchCost.h"
#include "tessera/Runtime/CUDA/Driver.h"
#include "tessera/Support/UserError.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace tessera;

static void checkEstimable(const KernelMetadata &metadata, int registers) {
  std::string kernel = "kernel '" + metadata.name + "'";
  if (metadata.target != "cuda")
    throw UserError("E054", kernel + " was compiled for the CPU, and estimates are for GPUs",
                    "compile it for target=\"cuda\"");
  if (metadata.work.empty())
    throw UserError("E054", kernel + " was compiled from PTX, which no estimate counts",
                    "compile it from an earlier stage");
  if (registers == 0)
    throw UserError("E063",
                    kernel + " has no number of registers, because no ptxas has assembled it",
                    "pip install 'nvidia-cuda-nvcc>=13.3', or set TESSERA_PTXAS");
}

/// The value of an integer argument; nothing for floats and pointers.
static std::optional<int64_t> readInteger(const KernelArgument &argument, uint64_t slot) {
  unsigned bits = 0;
  StringRef type = argument.type;
  // Not of a GPU: an argument has at most 64 bits.
  if (!type.consume_front("i") || type.getAsInteger(10, bits) || bits == 0 || bits > 64)
    return std::nullopt;
  return bits == 64 ? int64_t(slot) : SignExtend64(slot, bits);
}

LaunchSizes tessera::getLaunchSizes(const KernelMetadata &metadata, ArrayRef<int32_t> grid,
                                    std::vector<std::optional<int64_t>> arguments, int64_t numSMs) {
  LaunchSizes sizes;
  std::copy(grid.begin(), grid.end(), sizes.grid.begin());
  sizes.threads = int64_t(metadata.numWarps) * GPUMachine::kWarpSize;
  sizes.arguments = std::move(arguments);
  if (metadata.persistentPrograms) {
    for (int64_t extent : grid)
      sizes.arguments.push_back(extent);
    int64_t programs = sizes.grid[0] * sizes.grid[1] * sizes.grid[2];
    int64_t most = std::max<int64_t>(metadata.persistentPrograms * numSMs / metadata.numCTAs, 1);
    sizes.grid = {std::min(programs, most), 1, 1};
  }
  sizes.grid[0] *= metadata.numCTAs;
  return sizes;
}

/// Throws for a grid whose programs cannot be counted.
static void checkGrid(ArrayRef<int32_t> grid) {
  if (grid.size() != 3)
    throw UserError("E052", "a grid has three extents, not " + std::to_string(grid.size()));
  constexpr double kMaxPrograms = 1e15;
  double programs = 1;
  for (auto [axis, extent] : enumerate(grid)) {
    if (extent < 1)
      throw UserError("E052",
                      "the grid has the extent " + std::to_string(extent) + " along axis " +
                          std::to_string(axis),
                      "use 1 or more for an estimate");
    programs *= extent;
  }
  if (programs > kMaxPrograms)
    throw UserError("E052", "the grid has more than 10^15 programs", "use smaller extents");
}

/// The size of the array behind each argument, and behind the tensor maps that follow them.
static std::vector<int64_t> getArrayBytes(const KernelMetadata &metadata, int64_t numArguments,
                                          ArrayRef<int64_t> arrayBytes) {
  std::vector<int64_t> result(arrayBytes.begin(), arrayBytes.end());
  result.resize(numArguments, -1);
  for (const auto &map : metadata.tensorMaps)
    result.push_back(map.base >= 0 && size_t(map.base) < arrayBytes.size() ? arrayBytes[map.base]
                                                                           : -1);
  return result;
}

/// Bytes that come from memory or go there: of an array no more than it has.
static double getMemoryBytes(const ProgramWork &work, double blocks, ArrayRef<int64_t> arrayBytes) {
  double total = 0;
  for (const auto &[argument, bytes] : work.traffic) {
    bool isKnown =
        argument >= 0 && argument < int64_t(arrayBytes.size()) && arrayBytes[argument] >= 0;
    for (double moved : {bytes.first * blocks, bytes.second * blocks})
      total += isKnown ? std::min(moved, double(arrayBytes[argument])) : moved;
  }
  return total;
}

std::string tessera::estimateLaunch(const CompiledKernel &compiled, ArrayRef<int32_t> grid,
                                    ArrayRef<uint64_t> args, ArrayRef<int64_t> arrayBytes,
                                    int device) {
  const KernelMetadata &metadata = compiled.getMetadata();
  int registers = compiled.countRegisters(device);
  checkEstimable(metadata, registers);
  if (args.size() != metadata.arguments.size())
    throw UserError("E051", "kernel '" + metadata.name + "' takes " +
                                std::to_string(metadata.arguments.size()) + " arguments, not " +
                                std::to_string(args.size()));
  checkGrid(grid);
  const GPUMachine *machine = GPUMachine::find(metadata.arch);
  if (!machine)
    throw InternalError("no row of the machine's table for " + metadata.arch);
  std::optional<KernelSkeleton> skeleton = KernelSkeleton::parse(metadata.work);
  if (!skeleton)
    throw InternalError("the skeleton of kernel '" + metadata.name + "' is damaged");
  LaunchRates rates = LaunchRates::get(*machine);
  int64_t numSMs = machine->numSMs;
  if (device >= 0) {
    const cuda::DeviceInfo &info = cuda::getDevice(device);
    numSMs = info.multiprocessors;
    // Two transfers a cycle; some drivers do not say.
    double bandwidth = 2e-6 * double(info.memoryClockKHz) * double(info.memoryBusBits) / 8;
    if (bandwidth > 0)
      rates.memoryBandwidth = bandwidth;
  }
  std::vector<std::optional<int64_t>> values;
  for (auto [argument, slot] : zip_equal(metadata.arguments, args))
    values.push_back(readInteger(argument, slot));
  LaunchSizes sizes = getLaunchSizes(metadata, grid, std::move(values), numSMs);
  sizes.arrayBytes = getArrayBytes(metadata, sizes.arguments.size(), arrayBytes);
  ProgramWork work = skeleton->walk(sizes);
  double launched = double(sizes.grid[0]) * double(sizes.grid[1]) * double(sizes.grid[2]);
  auto blocks = int64_t(std::ceil(launched * work.getActivePart(launched, sizes.arrayBytes)));
  KernelResources kernel{metadata.numWarps, registers, metadata.sharedBytes, metadata.spillBytes,
                         metadata.numStages};
  double bytes = getMemoryBytes(work, double(blocks), sizes.arrayBytes);
  LaunchCost cost = LaunchCost::get(work, kernel, blocks, bytes, *machine, rates, numSMs);
  json::Object busy;
  for (unsigned i = 0; i < kNumResources; ++i)
    if (cost.busy.amounts[i] > 0)
      busy[stringify(Resource(i))] = cost.busy.amounts[i];
  std::string text;
  raw_string_ostream(text) << json::Value(
      json::Object{{"microseconds", cost.microseconds},
                   {"bound", cost.bound},
                   {"memory_microseconds", cost.memoryMicroseconds},
                   {"latency_cycles", cost.latency},
                   {"waves", cost.waves},
                   {"programs_per_sm", cost.resident},
                   {"is_certain", cost.isCertain},
                   {"busy_cycles", std::move(busy)}});
  return text;
}
