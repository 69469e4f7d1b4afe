// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU that code is compiled for. The code generator uses its name and features, and the passes
// use its row in the table of machines.

#ifndef TESSERA_TARGET_HOST_HOSTTARGET_H
#define TESSERA_TARGET_HOST_HOSTTARGET_H

#include "tessera/Machine/HostMachine.h"
#include "tessera/Support/ThreadCache.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace tessera {

struct HostTarget {
  std::string triple;
  std::string name;     ///< as users name it: `cpu`, or "aarch64:" and that
  std::string cpu;      ///< as LLVM names it
  std::string features; ///< "+avx,+avx2,...", sorted; what `cpu` alone implies is left out
                        ///< except for the host, whose features are all listed

  HostMachine machine; ///< what it is good at

  /// The description of a CPU. `cpu` is "host", a name that LLVM knows, "aarch64" (any such CPU) or
  /// "aarch64:neoverse-n1". `changes` adds and removes features ("+avx2,-avx512f"). Throws
  /// UserError (E062) for an unknown name.
  static HostTarget get(llvm::StringRef cpu = "host", llvm::StringRef changes = "");

  /// A code generator for this CPU. `optimizeHard` spends more time.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(bool optimizeHard = false) const;

  /// The same, but reuses a code generator of this thread if there is one.
  ThreadCache<llvm::TargetMachine>::Owner takeTargetMachine(bool optimizeHard = false) const;
};

/// True if code for a CPU (a HostTarget's name) is of another architecture than this process.
bool isForeignCPU(llvm::StringRef name);

/// An instruction set that this machine lacks, but that code for this CPU with these features may
/// use; empty if there is none.
std::string findMissingFeature(llvm::StringRef name, llvm::StringRef features);

} // namespace tessera

#endif // TESSERA_TARGET_HOST_HOSTTARGET_H
