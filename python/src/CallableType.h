// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of Python's whose objects are called by a vectorcall, in their member `vectorcall`.

#ifndef TESSERA_PYTHON_CALLABLETYPE_H
#define TESSERA_PYTHON_CALLABLETYPE_H

#include "Handles.h"

#include <cstddef>
#include <structmember.h>

namespace tessera::python {

/// Optional methods of such a type. A null pointer omits the method: without `create`, Python
/// cannot make objects of the type.
struct CallableMethods {
  newfunc create = nullptr;
  destructor dealloc = nullptr;
  traverseproc traverse = nullptr;
  PyMethodDef *methods = nullptr; ///< static
};

/// Makes the type of `Object`, adds it to the module, and keeps a reference forever. The garbage
/// collector visits it. `name` is static, "tessera._C.Name"; the module's attribute is its last
/// part.
template <typename Object>
PyTypeObject *addCallableType(py::module_ &module, const char *name, const char *doc,
                              const CallableMethods &methods) {
  PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(Object, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[8];
  size_t count = 0;
  auto add = [&](int slot, void *value) {
    if (value)
      slots[count++] = {slot, value};
  };
  add(Py_tp_doc, const_cast<char *>(doc));
  add(Py_tp_new, reinterpret_cast<void *>(methods.create));
  add(Py_tp_dealloc, reinterpret_cast<void *>(methods.dealloc));
  add(Py_tp_traverse, reinterpret_cast<void *>(methods.traverse));
  add(Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call));
  add(Py_tp_members, members); // copied
  add(Py_tp_methods, methods.methods);
  slots[count] = {0, nullptr};
  unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  if (!methods.create) // else it would be that of `object`, without a `vectorcall`
    flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec spec = {name, sizeof(Object), 0, flags, slots};
  auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  if (!type)
    throw py::error_already_set();
  module.attr(type.attr("__name__")) = type;
  return reinterpret_cast<PyTypeObject *>(type.release().ptr());
}

} // namespace tessera::python

#endif // TESSERA_PYTHON_CALLABLETYPE_H
