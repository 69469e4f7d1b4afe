// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `kernel[grid]`, and what is subscripted so: a base of kernels that are launched by a dispatcher
// (Dispatcher.h).

#include "CallableType.h"
#include "Dispatcher.h"
#include "ObjectMembers.h"

#include <utility>

using namespace tessera::python;

PyTypeObject *tessera::python::launchableType = nullptr;

namespace {

struct Launch {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  PyObject *dispatcher;
  PyObject *grid;
};

PyObject *callLaunch(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords) {
  return translateErrors([&] {
    auto *launch = reinterpret_cast<Launch *>(self);
    return launchOver(launch->dispatcher, Grid(launch->grid),
                      {args, static_cast<size_t>(PyVectorcall_NARGS(flags)), keywords});
  });
}

PyObject *callFind(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
  return translateErrors([&] {
    auto *launch = reinterpret_cast<Launch *>(self);
    return findKnown(launch->dispatcher, launch->grid,
                     {args, static_cast<size_t>(count), keywords});
  });
}

using LaunchMembers = ObjectMembers<Launch, &Launch::dispatcher, &Launch::grid>;

PyTypeObject *launchType = nullptr;

/// The memory of a launch that is over: there is one, and then another, nearly always.
Launch *spareLaunch = nullptr;

} // namespace

PyObject *tessera::python::bindGrid(PyObject *self, PyObject *grid) {
  Launch *launch = std::exchange(spareLaunch, nullptr);
  if (launch)
    PyObject_Init(reinterpret_cast<PyObject *>(launch), launchType);
  else
    launch = PyObject_GC_New(Launch, launchType);
  if (!launch)
    return nullptr;
  launch->vectorcall = callLaunch;
  Py_INCREF(self);
  launch->dispatcher = self;
  Py_INCREF(grid);
  launch->grid = grid;
  PyObject_GC_Track(launch);
  return reinterpret_cast<PyObject *>(launch);
}

namespace {

void deallocLaunch(PyObject *object) {
  auto *self = reinterpret_cast<Launch *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  LaunchMembers::clear(object);
  if (spareLaunch)
    type->tp_free(object);
  else
    spareLaunch = self;
  Py_DECREF(type);
}

// Launchable: the object that `self[grid]` launches. It is read at each launch.

bool isCurrent(const Launchable &launchable) {
  return launchable.dispatcher && Py_TYPE(launchable.dispatcher) == dispatcherType &&
         launchable.generation == static_cast<int64_t>(currentGeneration);
}

PyObject *subscriptLaunchable(PyObject *object, PyObject *grid) {
  auto *self = reinterpret_cast<Launchable *>(object);
  if (isCurrent(*self))
    return self->below && self->below != Py_None ? bindFinder(object, grid)
                                                 : bindGrid(self->dispatcher, grid);
  static PyObject *name = PyUnicode_InternFromString("_slow_getitem");
  return callPython([&] { return PyObject_CallMethodOneArg(object, name, grid); });
}

using LaunchableMembers = ObjectMembers<Launchable, &Launchable::dispatcher, &Launchable::below>;

PyMemberDef launchableMembers[] = {
    {"_dispatcher", T_OBJECT, offsetof(Launchable, dispatcher), 0, "The dispatcher, or None."},
    {"_below", T_OBJECT, offsetof(Launchable, below), 0,
     "The kernel that gets the configuration the dispatcher finds; None: the dispatcher launches."},
    {"_dispatcher_generation", T_LONGLONG, offsetof(Launchable, generation), 0,
     "What `generation` gave when `_dispatcher` was found to be the way to launch it; or -1."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot launchableSlots[] = {
    {Py_tp_doc, const_cast<char *>("A base for what is launched by `self[grid]`: by a method\n"
                                   "`_slow_getitem(grid)`, or by a dispatcher.")},
    {Py_tp_dealloc, reinterpret_cast<void *>(LaunchableMembers::dealloc)},
    {Py_tp_traverse, reinterpret_cast<void *>(LaunchableMembers::traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(LaunchableMembers::clear)},
    {Py_mp_subscript, reinterpret_cast<void *>(subscriptLaunchable)},
    {Py_tp_members, launchableMembers},
    {0, nullptr}};
PyType_Spec launchableSpec = {"tessera._C.Launchable", sizeof(Launchable), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                              launchableSlots};

PyMethodDef launchMethods[] = {
    {"find", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(callFind)),
     METH_FASTCALL | METH_KEYWORDS, "What a launch with these arguments would have."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

PyObject *tessera::python::findDispatcher(PyObject *kernel) {
  // A subclass may define `kernel[grid]` anew.
  PyMappingMethods *methods = Py_TYPE(kernel)->tp_as_mapping;
  if (!methods || methods->mp_subscript != subscriptLaunchable)
    return nullptr;
  const auto &launchable = *reinterpret_cast<const Launchable *>(kernel);
  bool isLaunched = !launchable.below || launchable.below == Py_None;
  return isCurrent(launchable) && isLaunched ? launchable.dispatcher : nullptr;
}

void tessera::python::registerLaunch(py::module_ &module) {
  launchType =
      addCallableType<Launch>(module, "tessera._C.Launch", "A kernel and a grid; call it.",
                              {nullptr, deallocLaunch, LaunchMembers::traverse, launchMethods});
  PyObject *launchable = PyType_FromSpec(&launchableSpec);
  if (!launchable)
    throw py::error_already_set();
  launchableType = reinterpret_cast<PyTypeObject *>(launchable);
  module.add_object("Launchable", py::reinterpret_steal<py::object>(launchable));
}
