// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The description of the CPU that code is made for: everything that a pass or the
// code generator decides by the CPU is asked here, so that another CPU takes another
// row in a table and no change to a pass.

#ifndef TESSERA_TARGET_HOST_HOSTTARGET_H
#define TESSERA_TARGET_HOST_HOSTTARGET_H

#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace tessera {

struct HostTarget {
  std::string triple;
  std::string cpu;      ///< as LLVM names it
  std::string features; ///< "+avx,+avx2,...", sorted; what `cpu` alone implies is left out
                        ///< except for the host, whose features are all listed

  /// Width of the vectors that strips are made of. Not always the widest there is:
  /// some CPUs clock down for 512-bit code.
  int vectorBits = 128;
  /// f16 <-> f32 conversions in hardware.
  bool hasF16Conversion = false;
  /// Four products of u8 and s8 summed in i32 by one instruction.
  bool hasInt8Dot = false;
  /// Two products of bf16 summed in f32 by one instruction, and faster than widening: some
  /// CPUs have it at a quarter of the rate of their f32 multiply-add.
  bool hasFastBF16Dot = false;

  /// The description of `cpu` ("host" or a name that LLVM knows) with `changes` made
  /// to its features ("+avx2,-avx512f"). Throws UserError (E062) for an unknown name.
  static HostTarget get(llvm::StringRef cpu = "host", llvm::StringRef changes = "");

  /// A code generator for this CPU. `optimizeHard` spends more time.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(bool optimizeHard = false) const;
};

/// An instruction set that code for this CPU with these features (as in a HostTarget) may
/// use and this machine lacks; empty if the code runs here.
std::string findMissingFeature(llvm::StringRef cpu, llvm::StringRef features);

} // namespace tessera

#endif // TESSERA_TARGET_HOST_HOSTTARGET_H
