// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes tensor descriptors of whole tensors, which programs do at each launch.

#include "ArgumentTypes.h"
#include "Signature.h"

using namespace tessera::python;

namespace {

/// Null for what is neither a tuple nor a list of as many items as a descriptor may have.
PyObject *checkExtents(PyObject *extents, Py_ssize_t &rank) {
  if (!PyTuple_Check(extents) && !PyList_Check(extents))
    return nullptr;
  rank = PySequence_Fast_GET_SIZE(extents);
  return rank > 0 && rank <= Py_ssize_t(kMaxDescriptorRank) ? extents : nullptr;
}

bool isOne(PyObject *number) {
  int overflow = 0;
  return PyLong_CheckExact(number) && PyLong_AsLongAndOverflow(number, &overflow) == 1;
}

bool isPadding(PyObject *padding) {
  return PyUnicode_Check(padding) && (PyUnicode_CompareWithASCIIString(padding, "zero") == 0 ||
                                      PyUnicode_CompareWithASCIIString(padding, "nan") == 0);
}

/// describe(tensor, block_shape, padding, round_f32_to_tf32): the descriptor of a tensor with
/// `shape` and `stride()`, or None if Python has to look at the arguments.
PyObject *describeTensor(PyObject *, PyObject *const *args, Py_ssize_t count) {
  PyTypeObject *type = typeTables().descriptor;
  if (count != 4 || !type)
    Py_RETURN_NONE;
  auto take = [](PyObject *found) { return py::reinterpret_steal<py::object>(found); };
  // The whole path finds out again what an attribute lacks.
  auto mayFail = [] {
    return PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_TypeError);
  };
  py::object shape = take(callPython([&] { return PyObject_GetAttr(args[0], names().shape); }));
  py::object strides;
  if (shape)
    strides = take(callPython([&] { return PyObject_CallMethodNoArgs(args[0], names().stride); }));
  if (!strides) {
    if (!mayFail())
      return nullptr;
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  Py_ssize_t rank, numStrides, numBlocks;
  if (!checkExtents(shape.ptr(), rank) || !checkExtents(strides.ptr(), numStrides) ||
      !checkExtents(args[1], numBlocks) || rank != numStrides || rank != numBlocks ||
      !isOne(PySequence_Fast_GET_ITEM(strides.ptr(), rank - 1)) || !isPadding(args[2]))
    Py_RETURN_NONE;
  py::object block = take(PySequence_List(args[1]));
  // As `object.__new__`: up to CPython 3.11 `tp_alloc` makes no room for attributes.
  static PyObject *const nothing = PyTuple_New(0);
  py::object made = take(PyBaseObject_Type.tp_new(type, nothing, nullptr));
  if (!block || !made)
    return nullptr;
  auto set = [&](PyObject *name, PyObject *value) {
    return PyObject_GenericSetAttr(made.ptr(), name, value) == 0;
  };
  // The class has the defaults of the last two as attributes.
  bool isDefaultPadding = PyUnicode_CompareWithASCIIString(args[2], "zero") == 0;
  if (!set(names().base, args[0]) || !set(names().shape, shape.ptr()) ||
      !set(names().strides, strides.ptr()) || !set(names().blockShape, block.ptr()) ||
      !(isDefaultPadding || set(names().padding, args[2])) ||
      !(args[3] == Py_False || set(names().roundsToTF32, args[3])))
    return nullptr;
  return made.release().ptr();
}

PyMethodDef describeMethod = {
    "describe", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(describeTensor)),
    METH_FASTCALL,
    "describe(tensor, block_shape, padding, round_f32_to_tf32): the descriptor of a whole tensor,\n"
    "or None where it is not one of torch's kind, or something is wrong."};

} // namespace

void tessera::python::registerDescriptors(py::module_ &module) {
  PyObject *function = PyCFunction_New(&describeMethod, nullptr);
  if (!function)
    throw py::error_already_set();
  module.add_object("describe", py::reinterpret_steal<py::object>(function));
}
