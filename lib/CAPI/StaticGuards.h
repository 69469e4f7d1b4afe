// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variables of functions that are being initialised, and what becomes of them when memory
// runs out.
//
// LLVM is compiled without exceptions. One of `new` that goes through it leaves such a variable
// behind as being initialised, and whoever comes there next waits for that to end. So this
// library has its own calls of the C++ runtime about them noted, LLVM's too (-Wl,--wrap).

#ifndef TESSERA_LIB_CAPI_STATICGUARDS_H
#define TESSERA_LIB_CAPI_STATICGUARDS_H

#include <cstddef>

namespace tessera::capi {

/// How many initialisations this thread is in.
size_t countStaticGuards() noexcept;

/// Gives up those that began after there were `count`, so that the next who comes there begins
/// again.
void abandonStaticGuards(size_t count) noexcept;

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_STATICGUARDS_H
