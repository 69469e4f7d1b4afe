// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU that code is made for: by its name and features for the code generator, and by
// its row in the table of machines for the passes.

#ifndef TESSERA_TARGET_HOST_HOSTTARGET_H
#define TESSERA_TARGET_HOST_HOSTTARGET_H

#include "tessera/Machine/HostMachine.h"
#include "tessera/Support/Kept.h"
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

  /// The description of `cpu` ("host" or a name that LLVM knows) with `changes` made
  /// to its features ("+avx2,-avx512f"). "aarch64" is any such CPU, "aarch64:neoverse-n1" one of
  /// them, which need not be that of this machine. Throws UserError (E062) for an unknown name.
  static HostTarget get(llvm::StringRef cpu = "host", llvm::StringRef changes = "");

  /// A code generator for this CPU. `optimizeHard` spends more time.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(bool optimizeHard = false) const;

  /// Such a code generator, which this thread may have used before.
  Kept<llvm::TargetMachine>::Owner takeTargetMachine(bool optimizeHard = false) const;
};

/// True if code for a CPU (a HostTarget's name) is of another architecture than this process.
bool isForeignCPU(llvm::StringRef name);

/// An instruction set that code for this CPU with these features (as in a HostTarget) may
/// use and this machine lacks; empty if the code runs here.
std::string findMissingFeature(llvm::StringRef name, llvm::StringRef features);

} // namespace tessera

#endif // TESSERA_TARGET_HOST_HOSTTARGET_H
