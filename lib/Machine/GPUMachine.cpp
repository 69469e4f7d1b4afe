// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of GPUs. A generation is a function of the previous one, so a row has only the
// differences; a test prints the whole rows.
//
// Limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability"; instructions those of the PTX ISA 9.0. Rates of tensor cores are the vendor's
// dense figures for a product of the generation, divided by its SMs and its clock.

#include "tessera/Machine/GPUMachine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tessera;

//===----------------------------------------------------------------------===//
// MMA instructions
//===----------------------------------------------------------------------===//

unsigned tessera::getBits(MMAElement element) {
  switch (element) {
  case MMAElement::F16:
  case MMAElement::BF16:
    return 16;
  case MMAElement::TF32:
    return 32;
  case MMAElement::F64:
    return 64;
  case MMAElement::I8:
  case MMAElement::F8:
    return 8;
  }
  llvm_unreachable("every element has a width");
}

/// mma.sync takes 16 rows, 8 columns, and 16 or 32 bytes of K (32 for 8-bit floats). For f64 it
/// takes 8 rows and 4 steps. wgmma takes 64 rows, 8 to 256 columns, and 32 bytes of K.
std::optional<MMAInstruction> GPUMachine::findMMA(MMAKind kind, MMAElement element) const {
  constexpr int64_t kStepBits = 256;
  int64_t bits = getBits(element), steps = kStepBits / bits;
  if (kind == MMAKind::Warpgroup) {
    if (!hasWarpgroupMMA() || element == MMAElement::F64)
      return std::nullopt;
    return MMAInstruction{64, 8, 256, steps, steps, warpgroupMMARate * kRateBits / bits};
  }
  if (element == MMAElement::F64)
    return MMAInstruction{8, 8, 8, 4, 4, warpMMARateF64};
  if (element == MMAElement::F8 && !hasFloat8WarpMMA)
    return std::nullopt;
  if (element == MMAElement::F8)
    return MMAInstruction{16, 8, 8, steps, steps, warpMMARate * kRateBits / bits};
  return MMAInstruction{16, 8, 8, steps / 2, steps, warpMMARate * kRateBits / bits};
}

//===----------------------------------------------------------------------===//
// Generations
//===----------------------------------------------------------------------===//

/// Fitted to an H200 (notes/Notebook.md).
static constexpr ExchangeCosts kMeasuredCosts = {
    /*barrier=*/30,     /*exchange=*/2,     /*shuffle=*/1.05, /*meetWarps=*/60,
    /*meetLanes=*/15,   /*meetBlocks=*/500, /*remote=*/4,     /*atomic=*/32,
    /*access=*/4,       /*sector=*/1,       /*line=*/2,       /*globalAtomic=*/8,
    /*atomicSector=*/4, /*function=*/8,
};

/// A100.
static GPUMachine makeAmpere() {
  GPUMachine machine = {};
  machine.name = "sm_80";
  machine.vendor = GPUVendor::NVIDIA;
  machine.capability = 80;
  machine.numSMs = 108;
  machine.l2Bytes = 40 << 20;
  machine.ptxVersion = 90; // the newest that LLVM 22 writes; drivers from 580 on read it
  machine.maxThreadsOfSM = 2048;
  machine.maxBlocksOfSM = 32;
  machine.sharedBytesOfSM = 164 << 10;
  machine.sharedBytes = 163 << 10;
  machine.maxClusterSize = 1;
  machine.warpMMARate = 1024;
  machine.warpMMARateF64 = 64;
  machine.f32Rate = 64;
  machine.f16Rate = 256;
  machine.functionRate = 16;
  machine.issueRate = 128;
  machine.sharedBandwidth = 128;
  machine.l2Bandwidth = 64;
  // Published microbenchmarks of an A100.
  machine.sharedLatency = 29;
  machine.l2Latency = 262;
  machine.memoryLatency = 466;
  machine.costs = kMeasuredCosts;
  return machine;
}

/// The same instructions, with fewer threads, less shared memory and slower tensor cores: A10, A40,
/// GeForce 30.
static GPUMachine makeSmallAmpere() {
  GPUMachine machine = makeAmpere();
  machine.name = "sm_86";
  machine.capability = 86;
  machine.numSMs = 84;
  machine.l2Bytes = 6 << 20;
  machine.maxThreadsOfSM = 1536;
  machine.maxBlocksOfSM = 16;
  machine.sharedBytesOfSM = 100 << 10;
  machine.sharedBytes = 99 << 10;
  machine.warpMMARate = 512;
  machine.warpMMARateF64 = 2;
  machine.f32Rate = 128;
  machine.f16Rate = 128;
  return machine;
}

/// Jetson Orin: the shared memory of an A100.
static GPUMachine makeOrin() {
  GPUMachine machine = makeSmallAmpere();
  machine.name = "sm_87";
  machine.capability = 87;
  machine.numSMs = 16;
  machine.l2Bytes = 4 << 20;
  machine.sharedBytesOfSM = 164 << 10;
  machine.sharedBytes = 163 << 10;
  machine.warpMMARate = 1024;
  return machine;
}

/// L4, L40S, GeForce 40.
static GPUMachine makeAda() {
  GPUMachine machine = makeSmallAmpere();
  machine.name = "sm_89";
  machine.capability = 89;
  machine.numSMs = 142;
  machine.l2Bytes = 96 << 20;
  machine.maxBlocksOfSM = 24;
  machine.hasFloat8Conversion = true;
  machine.hasFloat8WarpMMA = true;
  return machine;
}

/// The common part of sm_90 and its successors.
static GPUMachine makeHopper() {
  GPUMachine machine = makeAmpere();
  machine.name = "sm_90";
  machine.capability = 90;
  machine.numSMs = 132;
  machine.l2Bytes = 50 << 20;
  machine.sharedBytesOfSM = 228 << 10;
  machine.sharedBytes = 227 << 10;
  machine.hasFloat8Conversion = true;
  machine.hasStoreMatrix = true;
  machine.hasTMA = true;
  machine.hasDependentLaunch = true;
  machine.hasElect = true;
  machine.hasBF16Arithmetic = true;
  machine.hasBF16Atomics = true;
  machine.hasVectorAtomics = true;
  machine.maxClusterSize = 8;
  machine.f32Rate = 128;
  // Measured on an H800: mma.sync reaches 62 to 65 % of what wgmma does, which is 2048.
  machine.warpMMARate = 1280;
  machine.warpMMARateF64 = 128;
  machine.sharedLatency = 29;
  machine.l2Latency = 263;
  machine.memoryLatency = 479;
  return machine;
}

/// H100, H200.
static GPUMachine makeSpecificHopper() {
  GPUMachine machine = makeHopper();
  machine.name = "sm_90a";
  machine.isSpecific = true;
  machine.multicastBandwidth = 44; // measured on an H100 (notes/Notebook.md)
  machine.hasTensorMapReplace = true;
  machine.hasRegisterTransfer = true;
  machine.warpgroupMMARate = 2048;
  return machine;
}

/// B200. mma.sync is there beside tcgen05, at the rate of an A100's as far as is known.
static GPUMachine makeBlackwell() {
  GPUMachine machine = makeHopper();
  machine.name = "sm_100";
  machine.capability = 100;
  machine.numSMs = 148;
  machine.l2Bytes = 126 << 20;
  machine.warpMMARate = 1024;
  machine.warpMMARateF64 = 64;
  return machine;
}

/// The name with its "a" in addition, as its instructions.
static GPUMachine makeSpecificBlackwell(GPUMachine machine, StringRef name) {
  machine.name = name;
  machine.isSpecific = true;
  machine.hasTensorMapReplace = true;
  machine.hasRegisterTransfer = true;
  return machine;
}

static GPUMachine makeDataCentreBlackwell(StringRef name, unsigned capability) {
  GPUMachine machine = makeSpecificBlackwell(makeBlackwell(), name);
  machine.capability = capability;
  machine.hasTensorMemory = true;
  machine.hasWarpReduceF32 = true;
  return machine;
}

/// GeForce 50, RTX PRO: TMA and clusters, with the shared memory and the rates of Ada.
static GPUMachine makeSmallBlackwell() {
  GPUMachine machine = makeBlackwell();
  machine.name = "sm_120";
  machine.capability = 120;
  machine.numSMs = 188;
  machine.l2Bytes = 128 << 20;
  machine.maxThreadsOfSM = 1536;
  machine.maxBlocksOfSM = 24;
  machine.sharedBytesOfSM = 100 << 10;
  machine.sharedBytes = 99 << 10;
  machine.hasFloat8WarpMMA = true;
  machine.warpMMARate = 512;
  machine.warpMMARateF64 = 2;
  machine.f16Rate = 128;
  return machine;
}

static GPUMachine markRun(GPUMachine machine) {
  machine.hasRun = true;
  return machine;
}

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

ArrayRef<GPUMachine> GPUMachine::getTable() {
  static const GPUMachine table[] = {
      makeAmpere(),
      makeSmallAmpere(),
      makeOrin(),
      makeAda(),
      makeHopper(),
      markRun(makeSpecificHopper()),
      makeBlackwell(),
      makeDataCentreBlackwell("sm_100a", 100),
      makeDataCentreBlackwell("sm_103a", 103),
      makeSmallBlackwell(),
      makeSpecificBlackwell(makeSmallBlackwell(), "sm_120a"),
  };
  return table;
}

const GPUMachine *GPUMachine::find(StringRef name) {
  const GPUMachine *row =
      find_if(getTable(), [&](const GPUMachine &machine) { return machine.name == name; });
  return row == getTable().end() ? nullptr : row;
}

std::string GPUMachine::listNames() {
  auto names = map_range(getTable().drop_back(), [](const GPUMachine &row) { return row.name; });
  return (join(names, ", ") + " or " + getTable().back().name).str();
}

const GPUMachine &GPUMachine::getDefault() { return getTable().front(); }

const GPUMachine *GPUMachine::findForCapability(unsigned major, unsigned minor) {
  const GPUMachine *best = nullptr;
  for (const GPUMachine &row : getTable()) {
    bool runs = row.capability / 10 == major && row.capability % 10 <= minor &&
                (!row.isSpecific || row.capability % 10 == minor);
    if (runs && (!best || row.capability > best->capability || row.isSpecific))
      best = &row;
  }
  return best;
}
