// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Reinterpreted.h"

#include "ArgumentTypes.h"
#include "ObjectMembers.h"

#include <structmember.h>

#include <vector>

using namespace tessera::python;

namespace {

using ReinterpretedMembers =
    ObjectMembers<Reinterpreted, &Reinterpreted::base, &Reinterpreted::dtype, &Reinterpreted::data>;

PyMemberDef reinterpretedMembers[] = {
    {"base", T_OBJECT, offsetof(Reinterpreted, base), 0, "The array."},
    {"dtype", T_OBJECT, offsetof(Reinterpreted, dtype), 0, "What it is seen as elements of."},
    {"_data", T_OBJECT, offsetof(Reinterpreted, data), 0, "In place of the array's own, or None."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot reinterpretedSlots[] = {
    {Py_tp_doc, const_cast<char *>("A base for arrays that are seen as elements of another type.")},
    {Py_tp_dealloc, reinterpret_cast<void *>(ReinterpretedMembers::dealloc)},
    {Py_tp_traverse, reinterpret_cast<void *>(ReinterpretedMembers::traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(ReinterpretedMembers::clear)},
    {Py_tp_members, reinterpretedMembers},
    {0, nullptr}};
PyType_Spec reinterpretedSpec = {"tessera._C.Reinterpreted", sizeof(Reinterpreted), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                 reinterpretedSlots};

PyTypeObject *reinterpretedType = nullptr;

/// The kinds of arrays, by class and dtype, that have been reinterpreted as elements of a type. All
/// are held. Dtypes are known by identity.
struct SeenKind {
  py::object cls, dtype, seenAs;
};
std::vector<SeenKind> &seenKinds() {
  static auto *known = new std::vector<SeenKind>;
  return *known;
}
constexpr size_t kMaxSeenKinds = 256; // since the classes stay alive

void learnReinterpretable(const py::type &cls, const py::object &dtype, const py::object &seenAs) {
  std::vector<SeenKind> forgotten;
  if (seenKinds().size() >= kMaxSeenKinds)
    forgotten.swap(seenKinds());
  seenKinds().push_back({cls, dtype, seenAs});
}

void learnWrapper(const py::type &cls) {
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(cls.ptr()), reinterpretedType))
    throw py::type_error("a subclass of Reinterpreted is wanted");
  typeTables().wrapper = reinterpret_cast<PyTypeObject *>(cls.inc_ref().ptr());
}

/// reinterpret_known(array, dtype): a wrapper, or None for a kind of array that is not known.
PyObject *reinterpretKnown(PyObject *, PyObject *const *args, Py_ssize_t count) {
  PyTypeObject *type = typeTables().wrapper;
  if (count != 2 || !type)
    Py_RETURN_NONE;
  auto dtype = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_GetAttr(args[0], names().dtype); }));
  if (!dtype) {
    if (!PyErr_ExceptionMatches(PyExc_Exception))
      return nullptr;
    PyErr_Clear(); // the caller says what is wrong
    Py_RETURN_NONE;
  }
  auto *cls = reinterpret_cast<PyObject *>(Py_TYPE(args[0]));
  for (const SeenKind &kind : seenKinds()) {
    if (kind.cls.ptr() != cls || kind.dtype.ptr() != dtype.ptr() || kind.seenAs.ptr() != args[1])
      continue;
    auto *made = reinterpret_cast<Reinterpreted *>(type->tp_alloc(type, 0));
    if (made) {
      made->base = Py_NewRef(args[0]);
      made->dtype = Py_NewRef(args[1]);
    }
    return reinterpret_cast<PyObject *>(made);
  }
  Py_RETURN_NONE;
}

PyMethodDef reinterpretKnownMethod = {
    "reinterpret_known", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(reinterpretKnown)),
    METH_FASTCALL,
    "reinterpret_known(array, dtype): a wrapper of a kind that was learned, else None."};

} // namespace

void tessera::python::registerReinterpreted(py::module_ &module) {
  PyObject *type = PyType_FromSpec(&reinterpretedSpec);
  if (!type)
    throw py::error_already_set();
  reinterpretedType = reinterpret_cast<PyTypeObject *>(type);
  module.add_object("Reinterpreted", py::reinterpret_steal<py::object>(type));
  PyObject *function = PyCFunction_New(&reinterpretKnownMethod, nullptr);
  if (!function)
    throw py::error_already_set();
  module.add_object("reinterpret_known", py::reinterpret_steal<py::object>(function));
  module.def(
      "learn_wrapper", &learnWrapper, py::arg("cls"),
      "Have the warm path take instances of this class, of Reinterpreted, for their `base`,\n"
      "with elements of their `dtype`; and reinterpret_known make them.");
  module.def("learn_reinterpretable", &learnReinterpretable, py::arg("cls"), py::arg("dtype"),
             py::arg("seen_as"),
             "Have reinterpret_known take arrays of this class and dtype, and this dtype of the\n"
             "language.");
}
