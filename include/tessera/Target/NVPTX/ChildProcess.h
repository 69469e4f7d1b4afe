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

  /// Starts `command`, whose first element is a path, with an empty standard input, and with its
  /// output in the file `log`. `variables` ("NAME=value") override those of this process. The
  /// program runs in the open directory `folder`, unless that is negative, and creates files for
  /// this user only. If the calling thread ends first, the system ends the program. A Ctrl-C at the
  /// terminal does not reach it. Returns an error text, or an empty string.
  std::string start(llvm::ArrayRef<std::string> command, const std::string &log,
                    llvm::ArrayRef<std::string> variables = {}, int folder = -1);

  /// The exit status if the program has ended, or -1 if a signal ended it.
  std::optional<int> poll();
  /// Waits for the program's end, and returns the same; nothing after the timeout.
  std::optional<int> wait(double timeoutSeconds);
  /// Ends the program and all processes that it has started.
  void stop();
  /// Ends it, but does not wait until the system has freed its memory, which may take long.
  void abandon();

private:
  int pid = -1;
};

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_CHILDPROCESS_H
