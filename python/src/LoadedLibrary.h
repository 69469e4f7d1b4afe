// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of libraries that others have loaded.

#ifndef TESSERA_PYTHON_LOADEDLIBRARY_H
#define TESSERA_PYTHON_LOADEDLIBRARY_H

#include <dlfcn.h>

namespace tessera::python {

/// Functions of a library that is in the process. A function is null if it or the library is
/// missing.
class LoadedLibrary {
public:
  explicit LoadedLibrary(const char *name) : handle(dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {}
  template <typename Function> void find(const char *name, Function *&function) const {
    if (handle)
      function = reinterpret_cast<Function *>(dlsym(handle, name));
  }

private:
  void *handle; ///< never closed: the library stays loaded
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_LOADEDLIBRARY_H
