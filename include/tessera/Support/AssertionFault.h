// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A failed assertion of a kernel, in words. The interpreter, compiled code and the simulator all
// find them, and say the same.

#ifndef TESSERA_SUPPORT_ASSERTIONFAULT_H
#define TESSERA_SUPPORT_ASSERTIONFAULT_H

#include "tessera/Support/UserError.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace tessera {

/// The text of an assertion that checks a promise begins so, whatever finds that it fails.
inline constexpr llvm::StringLiteral kBrokenPromise = "E082: ";

/// E082 for a broken promise, and E065 for any other assertion. `text` may be empty, and so may
/// `location` ("file:line:column").
UserError describeAssertion(llvm::StringRef kernel, const int32_t *program, llvm::StringRef text,
                            std::string location);

} // namespace tessera

#endif // TESSERA_SUPPORT_ASSERTIONFAULT_H
