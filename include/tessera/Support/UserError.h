// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two kinds of error. A user's mistake is a UserError: it has a stable id, names the wrong
// types and values, and has a fix. Every other failure is a bug of Tessera and an InternalError,
// which requests a report. The two never share a path.
//
// Both are C++ exceptions inside the core and stop at its C boundary
// (include/tessera/CAPI/Tessera.h); neither is ever thrown through MLIR or LLVM.

#ifndef TESSERA_SUPPORT_USERERROR_H
#define TESSERA_SUPPORT_USERERROR_H

#include <exception>
#include <string>
#include <utility>

namespace tessera {

/// A mistake in the user's program.
class UserError : public std::exception {
public:
  /// `id` is stable ("E018", docs/Errors.md); `message` is lower case, without a
  /// full stop, and names the offending types and values; `fix` is one line that
  /// says what to write instead (may be empty).
  UserError(std::string id, std::string message, std::string fix = {})
      : id(std::move(id)), message(std::move(message)), fix(std::move(fix)) {}

  const char *what() const noexcept override { return message.c_str(); }

  std::string id;
  std::string message;
  std::string fix;
  /// Where, if the thrower knows better than the caller: "file:line:col".
  std::string location;
};

/// A bug of ours. `reproducer` is the path of what tessera-opt replays, if one
/// was written.
class InternalError : public std::exception {
public:
  explicit InternalError(std::string message, std::string reproducer = {})
      : message(std::move(message)), reproducer(std::move(reproducer)) {}

  const char *what() const noexcept override { return message.c_str(); }

  std::string message;
  std::string reproducer;
};

} // namespace tessera

#endif // TESSERA_SUPPORT_USERERROR_H
