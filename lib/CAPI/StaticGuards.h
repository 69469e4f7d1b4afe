// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variables of functions that are being initialised, and what becomes of them when memory
// runs out, or when the process forks.
//
// LLVM is compiled without exceptions. One of `new` that goes through it leaves such a variable
// behind as being initialised, and whoever comes there next waits for that to end. So this
// library has its own calls of the C++ runtime about them noted, LLVM's too (-Wl,--wrap).
//
// A child of a fork has but the thread that forked, and waits for ever for what another thread was
// initialising. So a fork waits until nobody does.

#ifndef TESSERA_LIB_CAPI_STATICGUARDS_H
#define TESSERA_LIB_CAPI_STATICGUARDS_H

#include <cstddef>

namespace tessera::capi {

/// How many initialisations this thread is in.
size_t countStaticGuards() noexcept;

/// Gives up those that began after there were `count`, so that the next who comes there begins
/// again.
void abandonStaticGuards(size_t count) noexcept;

/// While one of these lives, this thread does what no fork shall come amidst: a fork waits for it,
/// but no longer than some seconds.
class Initialisation {
public:
  Initialisation();
  ~Initialisation();
  Initialisation(const Initialisation &) = delete;
  Initialisation &operator=(const Initialisation &) = delete;
};

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_STATICGUARDS_H
