// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells perf and gdb what functions loaded code has, which they cannot know by themselves: it
// lies in no file.

#ifndef TESSERA_TARGET_HOST_SHOWNCODE_H
#define TESSERA_TARGET_HOST_SHOWNCODE_H

#include "llvm/ADT/StringRef.h"

#include <memory>

namespace tessera::host {

/// While one of these lives, the functions of an object are known by name.
class ShownCode {
public:
  /// To perf by a line each in /tmp/perf-PID.map, which stay until other code takes their place;
  /// to gdb by its JIT interface, with the lines that the object knows.
  struct Tools {
    bool perf = false;
    bool gdb = false;
  };

  /// `object`, a relocatable ELF file, was loaded with its function `symbol` at `address`, which is
  /// called `name`. Null if the object has no such function. Throws UserError (E062) if the map
  /// cannot be written.
  static std::unique_ptr<ShownCode> show(llvm::StringRef object, llvm::StringRef symbol,
                                         const void *address, llvm::StringRef name, Tools tools);
  ~ShownCode();
  ShownCode(const ShownCode &) = delete;
  ShownCode &operator=(const ShownCode &) = delete;

  /// In a forked child, whose map is another file: writes there what the parent had loaded. To be
  /// called now and then; costs a system call.
  static void followFork();

private:
  struct Parts;
  explicit ShownCode(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts;
};

} // namespace tessera::host

#endif // TESSERA_TARGET_HOST_SHOWNCODE_H
