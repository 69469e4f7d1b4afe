// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The references that a plain CPython object holds, for its type's slots.

#ifndef TESSERA_PYTHON_OBJECTMEMBERS_H
#define TESSERA_PYTHON_OBJECTMEMBERS_H

#include <Python.h>

#include <initializer_list>

namespace tessera::python {

/// `members` are pointers to members of `Object`, each a reference or null. A type whose objects do
/// not change needs no `clear`: any circle through one has another object that has it.
template <typename Object, auto... members> struct ObjectMembers {
  static int traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    for (auto *held :
         {reinterpret_cast<PyObject *>(reinterpret_cast<Object *>(object)->*members)...})
      Py_VISIT(held);
    return 0;
  }
  static int clear(PyObject *object) {
    auto drop = [](auto *&held) { Py_CLEAR(held); };
    (drop(reinterpret_cast<Object *>(object)->*members), ...);
    return 0;
  }
  static void dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    type->tp_free(object);
    Py_DECREF(type);
  }
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_OBJECTMEMBERS_H
