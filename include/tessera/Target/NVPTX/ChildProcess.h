// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that runs beside this process and ends with it.
//
// LLVM can start programs, but not ones that the system ends when we do: one that waits for
// something which only we can give it would be left behind by a crash of ours.

#ifndef TESSERA_TARGET_NVPTX_CHILDPROCESS_H
#define TESSERA_TARGET_NVPTX_CHILDPROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tessera {

class ChildProcess {
public:
  ChildProcess() = default;
  ChildProcess(ChildProcess &&other) : pid(other.pid) { other.pid = -1; }
  ChildProcess &operator=(ChildProcess &&) = delete;
  /// Ends the program if it still runs.
  ~ChildProcess() { stop(); }

  /// Starts `command`, the first of which is a path, without input and with what it says going
  /// to the file `log`. `variables` ("NAME=value") go before those of our own environment. It
  /// runs in the open directory `folder`, unless that is negative, and makes files that are for
  /// this user alone. Returns what is wrong, or an empty string. The program is ended if the
  /// thread that calls this ends first. A Ctrl-C at the terminal is for us, not for it.
  std::string start(llvm::ArrayRef<std::string> command, const std::string &log,
                    llvm::ArrayRef<std::string> variables = {}, int folder = -1);

  /// The exit status if the program has ended, -1 if by a signal.
  std::optional<int> poll();
  /// The same after waiting for its end. Nothing after the timeout.
  std::optional<int> wait(double timeoutSeconds);
  /// Ends it and what it has started.
  void stop();
  /// Ends it without waiting until the system has taken its memory back, which may be long.
  void abandon();

private:
  int pid = -1;
};

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_CHILDPROCESS_H
