// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An access outside of the memory behind a kernel's argument, in words. The interpreter and
// compiled code with `debug` both find them (tile.check_access) and say the same.

#ifndef TESSERA_SUPPORT_ACCESSFAULT_H
#define TESSERA_SUPPORT_ACCESSFAULT_H

#include "tessera/Support/UserError.h"

#include <cstdint>
#include <limits>
#include <string>

namespace tessera {

/// The memory that a launch says lies behind an argument: addresses `begin` to `end - 1`.
/// All of it where the launch does not say.
struct ArgumentMemory {
  int64_t begin = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  std::string name; ///< of the parameter; empty if nobody knows it

  bool isKnown() const { return end != std::numeric_limits<int64_t>::max(); }
};

struct AccessFault {
  std::string access; ///< "load", "store" or "atomic"
  std::string kernel;
  int32_t program[3] = {0, 0, 0};
  int argument = 0;    ///< number of the argument
  int64_t pointer = 0; ///< its value
  ArgumentMemory memory;
  int64_t elementBytes = 1;
  /// The bytes from `pointer` to the element that was to be accessed.
  int64_t offset = 0;
  /// True if the offset wrapped on its way there.
  bool wraps = false;
  std::string location; ///< "file:line:column", or empty
};

/// E080, or E081 if the offset wrapped.
UserError describeAccessFault(const AccessFault &fault);

} // namespace tessera

#endif // TESSERA_SUPPORT_ACCESSFAULT_H
