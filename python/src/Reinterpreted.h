// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays that are seen as elements of another type: the base of tessera.TensorWrapper. Programs
// make one at each launch, so making one for a known kind of array needs no Python.

#ifndef TESSERA_PYTHON_REINTERPRETED_H
#define TESSERA_PYTHON_REINTERPRETED_H

#include "Handles.h"

namespace tessera::python {

struct Reinterpreted {
  PyObject_HEAD;
  PyObject *base;  ///< the array
  PyObject *dtype; ///< a dtype of the language
  PyObject *data;  ///< put in place of the array's own `data`
};

void registerReinterpreted(py::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_REINTERPRETED_H
