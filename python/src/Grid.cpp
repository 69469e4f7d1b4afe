// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Grid.h"

#include "Interpreter.h"

#include <algorithm>

using namespace tessera::python;

/// False, and no exception, for what is no integer or is out of range.
static bool readExtent(PyObject *value, int32_t &extent) {
  py::object index;
  if (!PyLong_CheckExact(value)) {
    if (!PyIndex_Check(value))
      return false;
    index = py::reinterpret_steal<py::object>(callPython([&] { return PyNumber_Index(value); }));
    clearError(PyExc_TypeError); // an array of several elements has `__index__`, too
    if (!index)
      return false;
    value = index.ptr();
  }
  int overflow = 0;
  int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow || number < 0 || number > INT32_MAX)
    return false;
  extent = static_cast<int32_t>(number);
  return true;
}

bool Grid::read(int32_t (&found)[3]) const {
  if (!given) {
    std::copy(extents, extents + 3, found);
    return true;
  }
  found[1] = found[2] = 1;
  if (!PyTuple_Check(given) && !PyList_Check(given))
    return !PyCallable_Check(given) && readExtent(given, found[0]);
  Py_ssize_t size = PySequence_Fast_GET_SIZE(given);
  if (size < 1 || size > 3)
    return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    // An `__index__` may change the list that it is in.
    if (PySequence_Fast_GET_SIZE(given) != size)
      return false;
    auto extent = py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(given, i));
    if (!readExtent(extent.ptr(), found[i]))
      return false;
  }
  return true;
}

py::object Grid::asObject() const {
  if (given)
    return py::reinterpret_borrow<py::object>(given);
  return py::make_tuple(extents[0], extents[1], extents[2]);
}

void tessera::python::registerGrid(py::module_ &module) {
  module.def(
      "read_grid",
      [](const py::object &grid) -> py::object {
        int32_t extents[3];
        if (!Grid(grid.ptr()).read(extents))
          return py::none();
        return Grid(extents).asObject();
      },
      py::arg("grid"),
      "The three extents of an integer, or of a tuple or list of one to three integers; None for\n"
      "anything else.");
}
