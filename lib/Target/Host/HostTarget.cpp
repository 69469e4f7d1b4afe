// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CPUs by name. The features come from LLVM's tables. For the host they come from CPUID, which
// omits features that a hypervisor hides.

#include "tessera/Target/Host/HostTarget.h"

#include "tessera/Support/UserError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <dlfcn.h>
#include <mutex>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llvm;
using namespace tessera;

namespace {

constexpr StringLiteral kAArch64 = "aarch64";
constexpr StringLiteral kAArch64Triple = "aarch64-unknown-linux-gnu";

/// The back-end for CPU code: this machine's, or that of AArch64.
const Target &getTarget(const Triple &triple) {
  static std::once_flag once, onceAArch64;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser(); // user-written inline asm
  });
  if (triple.isAArch64())
    std::call_once(onceAArch64, [] {
      LLVMInitializeAArch64TargetInfo();
      LLVMInitializeAArch64Target();
      LLVMInitializeAArch64TargetMC();
      LLVMInitializeAArch64AsmPrinter();
    });
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    throw InternalError("no code generator for " + triple.str() + ": " + error);
  return *target;
}

/// The host CPU's name. Cached, since CPUID is slow on virtual machines.
StringRef getHostName() {
  static const std::string name = sys::getHostCPUName().str();
  return name;
}

/// The features of the host CPU. AMX counts only if Linux lets this process use it. Linux has to be
/// asked, and may refuse: for example, if the registers do not fit on a thread's alternative stack
/// for signals.
const StringMap<bool> &getHostFeatureMap() {
  static const StringMap<bool> features = [] {
    StringMap<bool> found = sys::getHostCPUFeatures();
    bool isPermitted = false;
#if defined(__linux__) && defined(__x86_64__)
    constexpr long kRequestPermission = 0x1023, kTileData = 18; // <asm/prctl.h>
    isPermitted =
        found.lookup("amx-tile") && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#endif
    if (!isPermitted)
      for (StringMapEntry<bool> &feature : found)
        if (feature.first().starts_with("amx-"))
          feature.second = false;
    return found;
  }();
  return features;
}

/// True if a test emulates this feature in this process (unittest/Emulator).
bool isEmulated(StringRef feature) {
  auto *emulated =
      reinterpret_cast<const char *(*)()>(dlsym(RTLD_DEFAULT, "tessera_emulated_cpu_features"));
  if (!emulated)
    return false;
  SmallVector<StringRef> features;
  StringRef(emulated()).split(features, ',');
  return is_contained(features, ("+" + feature).str());
}

/// The features of the host CPU, sorted, disabled ones included, since a hypervisor may hide
/// features that the CPU's name implies.
const std::string &getHostFeatures() {
  static const std::string text = [] {
    SmallVector<std::string> features;
    for (const StringMapEntry<bool> &feature : getHostFeatureMap())
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(features, [](StringRef a, StringRef b) { return a.drop_front() < b.drop_front(); });
    return join(features, ",");
  }();
  return text;
}

void checkFeatures(const MCSubtargetInfo &info, StringRef changes) {
  SmallVector<StringRef> items;
  changes.split(items, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    bool isKnown = item.size() > 1 && (item[0] == '+' || item[0] == '-') &&
                   any_of(info.getAllProcessorFeatures(), [&](const SubtargetFeatureKV &feature) {
                     return item.drop_front() == feature.Key;
                   });
    if (!isKnown)
      throw UserError("E062", "unknown CPU feature '" + item.str() + "'",
                      "write features as \"+avx2,-avx512f\", with names that LLVM knows");
  }
}

} // namespace

/// "neoverse-n1" of "aarch64:neoverse-n1", "generic" of "aarch64"; nothing of other names.
static std::optional<StringRef> getAArch64Name(StringRef cpu) {
  if (!cpu.consume_front(kAArch64))
    return std::nullopt;
  if (cpu.empty())
    return "generic";
  return cpu.consume_front(":") ? std::optional(cpu) : std::nullopt;
}

bool tessera::isForeignCPU(StringRef name) {
  return getAArch64Name(name) && !Triple(sys::getProcessTriple()).isAArch64();
}

static HostTarget describe(StringRef cpu, StringRef changes) {
  HostTarget target;
  target.triple = sys::getProcessTriple();
  if (std::optional<StringRef> name = getAArch64Name(cpu)) {
    if (isForeignCPU(cpu))
      target.triple = kAArch64Triple;
    target.name = (kAArch64 + ":" + *name).str();
    cpu = *name;
  }
  Triple triple(target.triple);
  const Target &native = getTarget(triple);
  if (cpu.empty() || cpu == "host") {
    target.cpu = getHostName().str();
    target.features = getHostFeatures();
  } else {
    target.cpu = cpu.str();
  }

  // A subtarget of no CPU knows all names; asking for an unknown one would print.
  std::unique_ptr<MCSubtargetInfo> all(native.createMCSubtargetInfo(triple, "", ""));
  if (!all)
    throw InternalError("no subtarget information for " + target.triple);
  if (!all->isCPUStringValid(target.cpu)) {
    if (cpu != "host" && !cpu.empty())
      throw UserError("E062", "unknown CPU '" + target.cpu + "'",
                      "use \"host\" or a name that LLVM knows, such as \"x86-64-v3\"");
    target.cpu = "generic";
  }
  if (target.name.empty())
    target.name = target.cpu;
  checkFeatures(*all, changes);
  if (!changes.empty())
    target.features += (target.features.empty() ? "" : ",") + changes.str();

  std::unique_ptr<MCSubtargetInfo> info(
      native.createMCSubtargetInfo(triple, target.cpu, target.features));
  StringRef arch = triple.isX86() ? "x86" : triple.isAArch64() ? "aarch64" : "";
  target.machine = HostMachine::find(
      arch, target.cpu, [&](StringRef features) { return info->checkFeatures(features.str()); });
  return target;
}

HostTarget HostTarget::get(StringRef cpu, StringRef changes) {
  // Cache the last target, since nearly all kernels of a process are for the same CPU.
  struct Last {
    std::string cpu, changes;
    HostTarget target;
  };
  thread_local std::optional<Last> last;
  if (!last || last->cpu != cpu || last->changes != changes)
    last = Last{cpu.str(), changes.str(), describe(cpu, changes)};
  return last->target;
}

std::string tessera::findMissingFeature(StringRef name, StringRef features) {
  if (isForeignCPU(name))
    return "another architecture";
  StringRef cpu = getAArch64Name(name).value_or(name);
  // A shortcut for nearly all kernels: the full comparison takes longer than loading one.
  if (cpu == getHostName() && features == getHostFeatures())
    return "";
  Triple triple(sys::getProcessTriple());
  std::unique_ptr<MCSubtargetInfo> info(
      getTarget(triple).createMCSubtargetInfo(triple, cpu, features));
  for (const StringMapEntry<bool> &feature : getHostFeatureMap())
    if (!feature.second && info->checkFeatures("+" + feature.first().str()) &&
        !isEmulated(feature.first()))
      return feature.first().str();
  return "";
}

std::unique_ptr<TargetMachine> HostTarget::createTargetMachine(bool optimizeHard) const {
  TargetOptions options;
  // Flags of each operation decide about fusing.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  options.ExceptionModel = ExceptionHandling::None;
  options.MCOptions.AsmVerbose = false;
  Triple parsed(triple);
  std::unique_ptr<TargetMachine> machine(getTarget(parsed).createTargetMachine(
      parsed, cpu, features, options, Reloc::PIC_, CodeModel::Small,
      optimizeHard ? CodeGenOptLevel::Aggressive : CodeGenOptLevel::Default, /*JIT=*/true));
  if (!machine)
    throw InternalError("cannot make a code generator for " + triple + ", " + cpu);
  return machine;
}

ThreadCache<TargetMachine>::Owner HostTarget::takeTargetMachine(bool optimizeHard) const {
  std::string key = triple + ' ' + cpu + ' ' + features + (optimizeHard ? " hard" : "");
  return ThreadCache<TargetMachine>::take(key, [&] { return createTargetMachine(optimizeHard); });
}
