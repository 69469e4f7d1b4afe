// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_PYTHON_NUMPYARRAY_H
#define TESSERA_PYTHON_NUMPYARRAY_H

#include "ArgumentTypes.h"

#include <cstdint>

namespace tessera::python {

/// The start of NumPy's PyArrayObject, whose layout is part of its stable ABI.
struct NumPyArray {
  PyObject_HEAD;
  char *data;
  int rank;
  intptr_t *shape;
  intptr_t *strides; ///< in bytes
  PyObject *base;
  PyObject *dtype;
  int flags;
};
constexpr int kNumPyWriteable = 0x0400;

/// The dtype of an array, or null for what is none. A borrowed reference.
inline PyObject *getNumPyDType(PyObject *value) {
  bool isArray = typeTables().getKind(Py_TYPE(value)) == ArrayKind::NumPy;
  return isArray ? reinterpret_cast<NumPyArray *>(value)->dtype : nullptr;
}

} // namespace tessera::python

#endif // TESSERA_PYTHON_NUMPYARRAY_H
