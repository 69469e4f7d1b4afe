// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of CPUs. Rows differ in the instructions that code may use, and in their gain. The
// features decide which instructions exist. Their gain is measured and recorded here. Figures of
// rows that name no CPU as measured are their vendors'.

#include "tessera/Machine/HostMachine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <tuple>

using namespace llvm;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Dot instructions
//===----------------------------------------------------------------------===//

constexpr DotInstruction::Form kVNNIForms[] = {{512, "llvm.x86.avx512.vpdpbusd.512"},
                                               {256, "llvm.x86.avx512.vpdpbusd.256"},
                                               {128, "llvm.x86.avx512.vpdpbusd.128"}};
constexpr DotInstruction::Form kBF16Forms[] = {{512, "llvm.x86.avx512bf16.dpbf16ps.512"},
                                               {256, "llvm.x86.avx512bf16.dpbf16ps.256"},
                                               {128, "llvm.x86.avx512bf16.dpbf16ps.128"}};
constexpr DotInstruction::Form kSdotForms[] = {{128, "llvm.aarch64.neon.sdot.v4i32.v16i8"}};
constexpr DotInstruction::Form kBFDotForms[] = {{128, "llvm.aarch64.neon.bfdot.v4f32.v8bf16"}};

static const DotInstruction kVNNI = {"+avx512vnni", 4, /*isLhsUnsigned=*/true, kVNNIForms};
static const DotInstruction kAVXVNNI = {"+avxvnni", 4, true, ArrayRef(kVNNIForms).drop_front()};
static const DotInstruction kVDPBF16 = {"+avx512bf16", 2, false, kBF16Forms};
static const DotInstruction kSdot = {"+dotprod", 4, /*isLhsUnsigned=*/false, kSdotForms};
static const DotInstruction kBFDot = {"+bf16", 2, false, kBFDotForms};
static const AMXInstruction kTDPBSSD = {"+amx-tile,+amx-int8", 4, "llvm.x86.tdpbssd"};
static const AMXInstruction kTDPBF16 = {"+amx-tile,+amx-bf16", 2, "llvm.x86.tdpbf16ps"};
static const MatrixInstruction kSMMLA = {"+i8mm", 8, "llvm.aarch64.neon.smmla.v4i32.v16i8"};

//===----------------------------------------------------------------------===//
// CPUs
//===----------------------------------------------------------------------===//

#define AVX512 "+avx512f,+avx512vl,+avx512bw,+avx512dq"

// vdpbf16ps has been measured at the double rate of f32 on Zen 5 and at half of it on
// Emerald Rapids, so Intel's CPUs widen. Arm's manuals have as many bfdot and smmla a cycle as
// fmla and sdot, of twice the products (Neoverse V1, V2, N2); that was not measured. Vectors of
// 512 bits lower the clock frequency of Cascade Lake, and yet pay: 28 operators are 1.24 times as
// fast with them in the geometric mean, two are slower. Rows fetched in a program's only pass make
// Zen 5 up to 1.25 times as fast, and Zen 4 0.72 to 0.95 times for 2^24 elements. Weights of few
// rows that are fetched into L2 make Zen 4 0.95 to 1.35 times as fast as those fetched into L1.
//
// Sources of rows that were not measured: Intel's Optimization Reference Manual, AMD's Software
// Optimization Guides, Arm's Neoverse Software Optimization Guides. Some caches have several sizes;
// a row has the smallest that is common in servers. On hybrid CPUs a thread may run on any core, so
// their row has the smaller caches of both kinds: a quarter of the L2 that four small cores share.
//
//     name, arch, CPUs, features
//     bits, registers | multiply-adds and loads a cycle, latency | gather, run | swap | strips
//     | L1, L2: bytes, ways | int8, bf16, int8 by matrices | conversions of f16: feature, existence
//     | measured on | int8, bf16 by AMX | fetches in one pass, fetches into L1
// clang-format off
static const HostMachine kTable[] = {
    {"znver5", "x86", "znver5", AVX512,
     512, 32, 2, 2, 4, 1.5, 1, 128, 4, {48 << 10, 12}, {1 << 20, 16}, &kVNNI, &kVDPBF16, nullptr, "+f16c", true, "Zen 5"},
    {"znver4", "x86", "znver4", AVX512,
     512, 32, 1, 1, 4, 1.5, 1, 128, 4, {32 << 10, 8}, {1 << 20, 8}, &kVNNI, &kVDPBF16, nullptr, "+f16c", true, "Zen 4", nullptr, nullptr, false, false},
    {"znver3", "x86", "znver3", "+avx2",
     256, 16, 2, 2, 4, 1.5, 1, 128, 4, {32 << 10, 8}, {512 << 10, 8}, nullptr, nullptr, nullptr, "+f16c", true, ""},
    {"znver2", "x86", "znver2", "+avx2",
     256, 16, 2, 2, 5, 1.5, 1, 128, 4, {32 << 10, 8}, {512 << 10, 8}, nullptr, nullptr, nullptr, "+f16c", true, ""},
    {"sapphirerapids", "x86", "sapphirerapids emeraldrapids graniterapids graniterapids-d", AVX512,
     512, 32, 2, 2, 4, 1.5, 1, 128, 4, {48 << 10, 12}, {2 << 20, 16}, &kVNNI, nullptr, nullptr, "+f16c", true, "Emerald Rapids", &kTDPBSSD, &kTDPBF16},
    {"icelake-server", "x86", "icelake-server", AVX512,
     512, 32, 2, 2, 4, 1.5, 1, 128, 4, {48 << 10, 12}, {1280 << 10, 20}, &kVNNI, nullptr, nullptr, "+f16c", true, ""},
    {"icelake-client", "x86", "icelake-client rocketlake tigerlake", AVX512,
     512, 32, 1, 2, 4, 1.5, 1, 128, 4, {48 << 10, 12}, {512 << 10, 8}, &kVNNI, nullptr, nullptr, "+f16c", true, ""},
    {"cascadelake", "x86", "skylake-avx512 skx cascadelake cooperlake cannonlake", AVX512,
     512, 32, 2, 2, 4, 1.5, 1, 128, 4, {32 << 10, 8}, {1 << 20, 16}, &kVNNI, nullptr, nullptr, "+f16c", true, "Cascade Lake"},
    {"avx512", "x86", "", AVX512,
     512, 32, 2, 2, 4, 1.5, 1, 128, 4, {48 << 10, 12}, {2 << 20, 16}, &kVNNI, nullptr, nullptr, "+f16c", true, "", &kTDPBSSD, &kTDPBF16},
    {"alderlake", "x86", "alderlake raptorlake meteorlake arrowlake arrowlake-s lunarlake pantherlake", "+avx2",
     256, 16, 2, 2, 4, 1.5, 1, 128, 4, {32 << 10, 8}, {512 << 10, 16}, &kAVXVNNI, nullptr, nullptr, "+f16c", true, ""},
    {"haswell", "x86", "haswell broadwell", "+avx2",
     256, 16, 2, 2, 5, 1.5, 1, 128, 4, {32 << 10, 8}, {256 << 10, 8}, nullptr, nullptr, nullptr, "+f16c", true, ""},
    {"avx2", "x86", "", "+avx2",
     256, 16, 2, 2, 4, 1.5, 1, 128, 4, {32 << 10, 8}, {256 << 10, 8}, &kAVXVNNI, nullptr, nullptr, "+f16c", true, ""},
    {"sse2", "x86", "", "",
     128, 16, 2, 2, 4, 1.5, 1, 64, 4, {32 << 10, 8}, {256 << 10, 8}, nullptr, nullptr, nullptr, "+f16c", true, ""},
    {"neoverse-v2", "aarch64", "neoverse-v2", "+neon",
     128, 32, 4, 3, 4, 1.5, 1, 128, 4, {64 << 10, 4}, {1 << 20, 8}, &kSdot, &kBFDot, &kSMMLA, "", true, ""},
    {"neoverse-v1", "aarch64", "neoverse-v1", "+neon",
     128, 32, 4, 3, 4, 1.5, 1, 128, 4, {64 << 10, 4}, {1 << 20, 8}, &kSdot, &kBFDot, &kSMMLA, "", true, ""},
    {"neoverse-n2", "aarch64", "neoverse-n2", "+neon",
     128, 32, 2, 3, 4, 1.5, 1, 128, 4, {64 << 10, 4}, {1 << 20, 8}, &kSdot, &kBFDot, &kSMMLA, "", true, ""},
    {"neoverse-n1", "aarch64", "neoverse-n1", "+neon",
     128, 32, 2, 2, 4, 1.5, 1, 128, 4, {64 << 10, 4}, {1 << 20, 8}, &kSdot, nullptr, nullptr, "", true, ""},
    {"neon", "aarch64", "", "+neon",
     128, 32, 2, 2, 4, 1.5, 1, 128, 4, {64 << 10, 4}, {512 << 10, 8}, &kSdot, &kBFDot, &kSMMLA, "", true, ""},
    // A CPU about which nothing is known.
    {"any", "", "", "",
     128, 16, 1, 1, 4, 1.5, 1, 64, 4, {32 << 10, 8}, {256 << 10, 8}, nullptr, nullptr, nullptr, "", false, ""},
};
// clang-format on

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

StringRef DotInstruction::getIntrinsic(unsigned bits) const {
  for (const Form &form : forms)
    if (form.bits == bits)
      return form.intrinsic;
  return "";
}

ArrayRef<HostMachine> HostMachine::getTable() { return kTable; }

HostMachine HostMachine::find(StringRef arch, StringRef cpu, function_ref<bool(StringRef)> has) {
  auto fits = [&](const HostMachine &row) {
    SmallVector<StringRef> cpus;
    row.cpus.split(cpus, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    return (row.arch.empty() || row.arch == arch) && (cpus.empty() || is_contained(cpus, cpu)) &&
           (row.features.empty() || has(row.features));
  };
  HostMachine machine = *find_if(kTable, fits);
  for (const DotInstruction **dot : {&machine.int8Dot, &machine.bf16Dot})
    if (*dot && !has((*dot)->features))
      *dot = nullptr;
  for (const AMXInstruction **dot : {&machine.int8AMX, &machine.bf16AMX})
    if (*dot && !has((*dot)->features))
      *dot = nullptr;
  if (machine.int8Matrix && !has(machine.int8Matrix->features))
    machine.int8Matrix = nullptr;
  if (!machine.f16Features.empty())
    machine.hasF16Conversion = has(machine.f16Features);
  machine.hasBF16Conversion = machine.arch == "x86" && has(AVX512 ",+avx512bf16");
  return machine;
}

std::optional<HostMachine> HostMachine::parse(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, '+');
  const HostMachine *row =
      find_if(kTable, [&](const HostMachine &m) { return m.name == parts[0]; });
  if (row == std::end(kTable))
    return std::nullopt;
  HostMachine machine = *row;
  machine.int8Dot = machine.bf16Dot = nullptr;
  machine.int8Matrix = nullptr;
  machine.int8AMX = machine.bf16AMX = nullptr;
  machine.hasF16Conversion = false;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    if (part.contains('=')) {
      std::optional<HostMachine> changed = machine.withFigures(part);
      if (!changed)
        return std::nullopt;
      machine = *changed;
      continue;
    }
    if (part == "int8-dot" && row->int8Dot)
      machine.int8Dot = row->int8Dot;
    else if (part == "bf16-dot" && row->bf16Dot)
      machine.bf16Dot = row->bf16Dot;
    else if (part == "int8-matrix" && row->int8Matrix)
      machine.int8Matrix = row->int8Matrix;
    else if (part == "int8-amx" && row->int8AMX)
      machine.int8AMX = row->int8AMX;
    else if (part == "bf16-amx" && row->bf16AMX)
      machine.bf16AMX = row->bf16AMX;
    else if (part == "f16" && row->hasF16Conversion)
      machine.hasF16Conversion = true;
    else if (part == "bf16" && row->arch == "x86")
      machine.hasBF16Conversion = true;
    else
      return std::nullopt;
  }
  return machine;
}

std::string HostMachine::print() const {
  const HostMachine &row = *find_if(kTable, [&](const HostMachine &m) { return m.name == name; });
  std::string changes = hasBF16Conversion && !bf16Dot ? "+bf16" : "";
  if (vectorBits != row.vectorBits)
    changes += "+bits=" + std::to_string(vectorBits);
  for (auto [key, level, known] : {std::tuple("+l1=", l1, row.l1), std::tuple("+l2=", l2, row.l2)})
    if (level.bytes != known.bytes || level.ways != known.ways)
      changes += key + std::to_string(level.bytes) + "/" + std::to_string(level.ways);
  return (Twine(name) + (int8Dot ? "+int8-dot" : "") + (bf16Dot ? "+bf16-dot" : "") +
          (int8Matrix ? "+int8-matrix" : "") + (int8AMX ? "+int8-amx" : "") +
          (bf16AMX ? "+bf16-amx" : "") + (hasF16Conversion ? "+f16" : "") + changes)
      .str();
}

/// "49152/12": bytes and ways.
static bool readLevel(StringRef text, CacheLevel &level) {
  auto [bytes, ways] = text.split('/');
  constexpr int64_t kMinBytes = 4 << 10, kMaxBytes = 256 << 20, kMaxWays = 64;
  return !bytes.getAsInteger(10, level.bytes) && !ways.getAsInteger(10, level.ways) &&
         level.bytes >= kMinBytes && level.bytes <= kMaxBytes && level.ways >= 1 &&
         level.ways <= kMaxWays;
}

std::optional<HostMachine> HostMachine::withFigures(StringRef text) const {
  HostMachine changed = *this;
  SmallVector<StringRef> parts;
  text.split(parts, '+');
  for (StringRef part : parts) {
    auto [key, value] = part.split('=');
    if (key == "bits") {
      unsigned bits = 0;
      if (value.getAsInteger(10, bits) || !isPowerOf2_32(bits) || bits < 128 || bits > vectorBits)
        return std::nullopt;
      changed.vectorBits = bits;
    } else if (key == "l1" || key == "l2") {
      if (!readLevel(value, key == "l1" ? changed.l1 : changed.l2))
        return std::nullopt;
    } else if (part == "int8-dot=no") {
      changed.int8Dot = nullptr;
    } else if (part == "bf16-dot=no") {
      changed.bf16Dot = nullptr;
    } else {
      return std::nullopt;
    }
  }
  return changed;
}
