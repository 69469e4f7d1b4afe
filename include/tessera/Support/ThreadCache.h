// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Caches objects that cost much to make and can be reused: a context with its dialects, a code
// generator with its tables. Each thread caches the object that it used last, for the next user.
// There is no lock, so a forked child inherits none that is held.

#ifndef TESSERA_SUPPORT_THREADCACHE_H
#define TESSERA_SUPPORT_THREADCACHE_H

#include "tessera/Support/MemoryReserve.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace tessera {

template <typename T> class ThreadCache {
public:
  /// Leaves the object to the thread that it is given up in.
  struct Leave {
    std::string key;
    unsigned uses = 0;
    unsigned tornStates = 0; ///< when it was taken

    void operator()(T *object) const {
      if (tornStates != countTornStates())
        return; // nor can it be destroyed
      std::unique_ptr<T> owned(object);
      if (uses < kMaxUses && !isOutOfMemory())
        waiting = {std::move(owned), *this};
    }
  };
  using Owner = std::unique_ptr<T, Leave>;

  /// The object that waits, if it was made for this key, or a new one.
  static Owner take(llvm::StringRef key, llvm::function_ref<std::unique_ptr<T>()> make) {
    Waiting found = std::move(waiting);
    waiting = {};
    if (!found.object || found.leave.key != key)
      found = {make(), {key.str()}};
    ++found.leave.uses;
    found.leave.tornStates = countTornStates();
    return Owner(found.object.release(), std::move(found.leave));
  }

private:
  struct Waiting {
    std::unique_ptr<T> object;
    Leave leave;
  };

  /// This limits what a user leaves in the object: in a context, types, attributes and names.
  static constexpr unsigned kMaxUses = 64;

  static inline thread_local Waiting waiting;
};

} // namespace tessera

#endif // TESSERA_SUPPORT_THREADCACHE_H
