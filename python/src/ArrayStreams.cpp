// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ArrayStreams.h"

#include "ArgumentTypes.h"

using namespace tessera::python;

bool ArrayStreams::addNamed(PyObject *number) {
  if (!PyLong_CheckExact(number))
    return false;
  uint64_t handle = PyLong_AsUnsignedLongLong(number);
  if (handle == 0 || PyErr_Occurred()) { // 0 might be the legacy stream or that of the thread
    PyErr_Clear();
    return false;
  }
  if (!first)
    first = number;
  if (std::any_of(begin(), end(), [&](uint64_t known) { return isSameStream(known, handle); }))
    return true;
  if (numNamed == kMaxNamed)
    return false;
  named[numNamed++] = handle;
  return true;
}

bool ArrayStreams::find(uint64_t &stream) const {
  stream = 0;
  if (!given && tensorDevice >= 0)
    return typeTables().torch.findCurrentStream(tensorDevice, stream);
  PyObject *number = given ? given : first;
  if (!number)
    return true;
  if (!PyLong_CheckExact(number)) // an object of a library
    return false;
  stream = PyLong_AsUnsignedLongLong(number);
  bool isFine = !PyErr_Occurred();
  PyErr_Clear();
  return isFine;
}
