// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shows the functions of loaded code to perf and gdb, which cannot find them, since the code lies
// in no file.

#ifndef TESSERA_TARGET_HOST_SHOWNCODE_H
#define TESSERA_TARGET_HOST_SHOWNCODE_H

#include "llvm/ADT/StringRef.h"

#include <memory>

namespace tessera::host {

/// The functions of an object have names during its lifetime.
class ShownCode {
public:
  /// perf reads a line for each function in /tmp/perf-PID.map, which remains until other code has
  /// the address. gdb reads the object by its JIT interface, lines included.
  struct Tools {
    bool perf = false;
    bool gdb = false;
  };

  /// Shows `object`, a relocatable ELF file, whose function `symbol` was loaded at `address`, under
  /// the name `name`. Returns null if the object has no such function. Throws UserError (E062) if
  /// the map cannot be written.
  static std::unique_ptr<ShownCode> show(llvm::StringRef object, llvm::StringRef symbol,
                                         const void *address, llvm::StringRef name, Tools tools);
  ~ShownCode();
  ShownCode(const ShownCode &) = delete;
  ShownCode &operator=(const ShownCode &) = delete;

  /// Must be called now and then; costs a system call. In a forked child, whose map is another
  /// file, writes the lines of the parent's code there.
  static void followFork();

private:
  struct Parts;
  explicit ShownCode(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts;
};

} // namespace tessera::host

#endif // TESSERA_TARGET_HOST_SHOWNCODE_H
