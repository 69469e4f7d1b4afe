// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel is compiled in variants (Compiler/KernelFamily.h): each relies on something of a launch,
// and refuses a launch without it. Nothing has run then, so another variant can do the launch. The
// code says which one. A message is for people: no caller decides by it.

#ifndef TESSERA_SUPPORT_LAUNCHREFUSED_H
#define TESSERA_SUPPORT_LAUNCHREFUSED_H

#include "tessera/Support/UserError.h"

namespace tessera {

/// Why a variant refuses a launch. The numbers are those of TsrStatus (CAPI/Tessera.h), and
/// OutsideLimits is TESSERA_OUTSIDE_LIMITS of libraries for C (tessera_limits.h).
enum class Refusal {
  OutsideLimits = -1, ///< an argument or the grid breaks a launch condition
  NoClusterRoom = -2, ///< the GPU cannot run even one cluster of so many blocks
};

/// A launch that a variant refuses. It is a mistake of the user's where there is no other variant.
class LaunchRefused : public UserError {
public:
  LaunchRefused(Refusal refusal, std::string id, std::string message, std::string fix = {})
      : UserError(std::move(id), std::move(message), std::move(fix)), refusal(refusal) {}

  Refusal refusal;
};

} // namespace tessera

#endif // TESSERA_SUPPORT_LAUNCHREFUSED_H
