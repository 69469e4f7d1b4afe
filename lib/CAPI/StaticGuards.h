// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tracks the initialisation of static variables of functions, and repairs it if memory runs out or
// the process forks.
//
// LLVM is compiled without exceptions. If `new` throws through it, such a variable remains marked
// as being initialised, and the next thread that needs it waits forever. So this library wraps the
// C++ runtime's guard functions and records the calls, LLVM's included (-Wl,--wrap).
//
// A forked child has only the thread that forked. It would wait forever for a variable that another
// thread was initialising. So a fork waits until no initialisation runs.

#ifndef TESSERA_LIB_CAPI_STATICGUARDS_H
#define TESSERA_LIB_CAPI_STATICGUARDS_H

#include <cstddef>

namespace tessera::capi {

/// The number of initialisations that this thread is in.
size_t countStaticGuards() noexcept;

/// Aborts all but the first `count` initialisations, so that the next use of these variables
/// initialises them again.
void abandonStaticGuards(size_t count) noexcept;

/// Delays forks during its lifetime, by some seconds at most.
class Initialisation {
public:
  Initialisation();
  ~Initialisation();
  Initialisation(const Initialisation &) = delete;
  Initialisation &operator=(const Initialisation &) = delete;
};

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_STATICGUARDS_H
