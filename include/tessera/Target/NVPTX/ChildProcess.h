// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that runs concurrently with this process and ends with it.
//
// LLVM can start programs, but the system does not end these when this process ends. If this
// process crashed, a program that waits for its input would wait forever.

#ifndef TESSERA_TARGET_NVPTX_CHILDPROCESS_H
#define TESSERA_TARGET_NVPTX_CHILDPROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <optional>
#include <string>

namespace tessera {

class ChildProcess {
public:
  ChildProcess() = default;
  ChildProcess(const ChildProcess &) = delete;
  /// Ends the program if it still runs.
  ~ChildProcess() { stop(); }

  /// Starts `command`, whose first element is a path, with an empty standard input. `variables`
  /// ("NAME=value") override those of this process. The program runs in the open directory
  /// `folder`, unless that is negative, and creates files for this user only. If the calling thread
  /// ends first, the system ends the program. A Ctrl-C at the terminal does not reach it. Returns
  /// an error text, or an empty string.
  std::string start(llvm::ArrayRef<std::string> command, llvm::ArrayRef<std::string> variables = {},
                    int folder = -1);

  /// Reads what the program has printed. Returns its exit status if it has ended, or -1 if a signal
  /// ended it.
  std::optional<int> poll();
  /// Sleeps until the program prints or ends, but no longer than `limit`.
  void sleep(std::chrono::microseconds limit) const;
  /// Waits for the program's end, and returns the same; nothing after the timeout.
  std::optional<int> wait(double timeoutSeconds);
  /// The text that `poll` and `wait` have read, from both standard streams in order.
  llvm::StringRef getOutput() const { return output; }
  /// Ends the program and all processes that it has started.
  void stop();
  /// Ends it, but does not wait until the system has freed its memory, which may take long.
  void abandon();

private:
  void readOutput();
  void closeReader();

  int pid = -1;
  int reader = -1; ///< of the pipe with the program's output, until it is closed
  std::string output;
};

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_CHILDPROCESS_H
