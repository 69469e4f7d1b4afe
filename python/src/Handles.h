// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Python classes over the handles of the C API, and how its errors become
// Python's. The extension knows nothing of the core but this API.

#ifndef TESSERA_PYTHON_HANDLES_H
#define TESSERA_PYTHON_HANDLES_H

#include "tessera/CAPI/Tessera.h"

#include <pybind11/pybind11.h>

#include <memory>

namespace tessera::python {

namespace py = pybind11;

/// Throws tessera._C.CoreError, with what tsr_last_error says (or said), unless the status is
/// fine.
void check(TsrStatus status);
void check(TsrStatus status, const char *error);

/// `json.loads`.
py::object parseJSON(const char *text);

template <typename Handle, void (*destroy)(Handle *)> struct Destroyer {
  void operator()(Handle *handle) const { destroy(handle); }
};
template <typename Handle, void (*destroy)(Handle *)>
using Owned = std::unique_ptr<Handle, Destroyer<Handle, destroy>>;
using OwnedModule = Owned<TsrModule, tsr_module_destroy>;
using OwnedKernel = Owned<TsrKernel, tsr_kernel_destroy>;

/// A module. Where compiling it was given up, it has no handle any more.
struct Module {
  OwnedModule handle;

  TsrModule *get() const {
    if (!handle)
      throw py::value_error("this module is being compiled, or compiling it was interrupted");
    return handle.get();
  }
  OwnedModule take() {
    get();
    return std::move(handle);
  }
};

struct Builder {
  Owned<TsrBuilder, tsr_builder_destroy> handle;
};

struct Kernel {
  OwnedKernel handle;
};

/// A value of a builder.
struct Value {
  TsrValue id;
};

void registerCUDA(py::module_ &module);
void registerDLPack(py::module_ &module);
void registerDispatcher(py::module_ &module);
void registerEntry(py::module_ &module);
void registerGrid(py::module_ &module);
void registerHeuristics(py::module_ &module);
void registerLaunch(py::module_ &module);
void registerLaunchRecord(py::module_ &module);
void registerRunner(py::module_ &module);
void registerErrors(py::module_ &module);
void registerModule(py::module_ &module);
void registerAutograd(py::module_ &module);
void registerBuilder(py::module_ &module);
void registerKernel(py::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_HANDLES_H
