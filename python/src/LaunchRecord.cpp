// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types are plain CPython: dispatchers read their members at each launch, and the garbage
// collector has to see what they hold, since a kernel's function has its dispatcher.

#include "LaunchRecord.h"

#include "Dispatcher.h"
#include "Interpreter.h"
#include "KernelArguments.h"
#include "ObjectMembers.h"

#include <structmember.h>

#include <new>
#include <optional>
#include <utility>
#include <vector>

using namespace tessera::python;

PyTypeObject *tessera::python::launchRecordType = nullptr;

Variant::Variant(const py::tuple &tuple)
    : kernel(tuple[1].cast<Kernel &>().handle.get()), owner(tuple[1]), result(tuple[0]),
      read(tuple[2]), checks(read.ptr()) {}

int Variant::traverse(visitproc visit, void *arg) const {
  Py_VISIT(owner.ptr());
  Py_VISIT(result.ptr());
  Py_VISIT(read.ptr());
  return 0;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

namespace {

/// The variant after one whose launch ended with a status; None if the launch fails.
py::object findNext(TsrVariant refused, TsrStatus status) {
  TsrFamily *policy = nullptr;
  check(tsr_family_create(/*may_divide=*/1, &policy));
  TsrVariant next = tsr_family_retry(policy, refused, status);
  tsr_family_destroy(policy);
  return next == TSR_NUM_VARIANTS ? py::none() : py::cast(next);
}

void setVariant(KernelFamily &family, TsrVariant kind, Variant variant) {
  tsr_family_set(family.policy, kind, variant.kernel);
  family.hasChoice = tsr_family_has_choice(family.policy) != 0;
  // The old variant is released last, since releasing it may run Python.
  std::swap(family.variants[kind], variant);
}

/// False where it cannot be compiled.
[[gnu::cold]] bool makeVariant(KernelFamily &family, TsrVariant kind, PyObject *make) {
  py::object argument = py::cast(kind);
  auto made = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_CallOneArg(make, argument.ptr()); }));
  if (!made)
    throw py::error_already_set();
  if (made.is_none())
    return false;
  setVariant(family, kind, Variant(py::tuple(made)));
  return true;
}

TsrStatus launchVariant(const Variant &variant, const LaunchRecord &record,
                        const LaunchCall &call) {
  TsrKernel *kernel = variant.kernel;
  WithoutGIL released;
  if (record.device >= 0)
    return tsr_kernel_launch_cuda(kernel, record.device, call.stream, call.extents, call.slots,
                                  call.numSlots);
  if (call.memory)
    return tsr_kernel_launch_checked(kernel, call.extents, call.slots, call.numSlots, call.memory,
                                     record.numThreads);
  return tsr_kernel_launch(kernel, call.extents, call.slots, call.numSlots, record.numThreads);
}

} // namespace

LaunchOutcome tessera::python::launchRecord(const LaunchRecord &record, const LaunchCall &call) {
  KernelFamily &family = *record.family;
  TsrVariant kind = TSR_VARIANT_USUAL;
  if (family.hasChoice)
    kind = tsr_family_choose(family.policy, record.device, call.extents, call.slots, call.numSlots);
  TsrStatus status = TSR_OK;
  py::object told;
  for (;;) {
    const Variant &variant = family.variants[kind];
    py::object owner; // another thread may replace a variant during its launch
    if (kind != TSR_VARIANT_USUAL) {
      if (!variant.isCurrent()) {
        if (!call.make)
          return {py::object(), status};
        if (!makeVariant(family, kind, call.make)) {
          kind = tsr_family_give_up(family.policy, kind);
          family.hasChoice = tsr_family_has_choice(family.policy) != 0;
          if (kind == TSR_NUM_VARIANTS)
            throw py::type_error("`make` returns None for a variant that there has to be");
          continue;
        }
      }
      owner = variant.owner;
    }
    py::object result = variant.result;
    if (call.listener && !told) {
      // The listener is called once, so it must not get a variant that is sure to refuse.
      TsrVariant next = TSR_NUM_VARIANTS;
      if (!tsr_kernel_accepts(variant.kernel, call.extents, call.slots, call.numSlots))
        next = tsr_family_retry(family.policy, kind, TSR_OUTSIDE_LIMITS);
      if (next != TSR_NUM_VARIANTS && (call.isWarm || call.make || family.variants[next].kernel)) {
        status = TSR_OUTSIDE_LIMITS;
        kind = next;
        continue;
      }
      told = call.listener->enter(variant);
    }
    status = launchVariant(variant, record, call);
    if (status == TSR_OK) {
      if (told)
        call.listener->leave(told);
      return {std::move(result), TSR_OK};
    }
    kind = tsr_family_retry(family.policy, kind, status);
    family.hasChoice = tsr_family_has_choice(family.policy) != 0;
    if (kind == TSR_NUM_VARIANTS)
      return {py::object(), status};
  }
}

//===----------------------------------------------------------------------===//
// KernelFamily
//===----------------------------------------------------------------------===//

namespace {

PyTypeObject *kernelFamilyType = nullptr;

PyObject *newFamily(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static const char *names[] = {"usual", "may_divide", nullptr};
  PyObject *usual = nullptr;
  int mayDivide = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|p", const_cast<char **>(names),
                                   &PyTuple_Type, &usual, &mayDivide))
    return nullptr;
  return translateErrors([&]() -> PyObject * {
    auto made = py::reinterpret_steal<py::object>(type->tp_alloc(type, 0));
    if (!made)
      return nullptr;
    auto *self = reinterpret_cast<KernelFamily *>(made.ptr());
    new (&self->variants) decltype(self->variants);
    check(tsr_family_create(mayDivide, &self->policy));
    setVariant(*self, TSR_VARIANT_USUAL, Variant(py::reinterpret_borrow<py::tuple>(usual)));
    return made.release().ptr();
  });
}

PyObject *setFamilyMember(PyObject *object, PyObject *args) {
  return translateErrors([&]() -> PyObject * {
    PyObject *kind = nullptr, *variant = nullptr;
    if (!PyArg_ParseTuple(args, "OO!", &kind, &PyTuple_Type, &variant))
      return nullptr;
    auto number = py::reinterpret_borrow<py::object>(kind).cast<TsrVariant>();
    if (number == TSR_VARIANT_USUAL)
      throw py::value_error("the usual variant stays");
    setVariant(*reinterpret_cast<KernelFamily *>(object), number,
               Variant(py::reinterpret_borrow<py::tuple>(variant)));
    Py_RETURN_NONE;
  });
}

int traverseFamily(PyObject *object, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(object));
  for (const Variant &variant : reinterpret_cast<KernelFamily *>(object)->variants)
    if (int stop = variant.traverse(visit, arg))
      return stop;
  return 0;
}

int clearFamily(PyObject *object) {
  auto *self = reinterpret_cast<KernelFamily *>(object);
  for (size_t kind = 0; self->policy && kind < self->variants.size(); ++kind)
    setVariant(*self, static_cast<TsrVariant>(kind), Variant());
  return 0;
}

void deallocFamily(PyObject *object) {
  auto *self = reinterpret_cast<KernelFamily *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clearFamily(object);
  tsr_family_destroy(self->policy);
  self->variants.~array();
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef familyMethods[] = {
    {"set", setFamilyMember, METH_VARARGS, "Adds or replaces a variant: (result, kernel, checks)."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot familySlots[] = {
    {Py_tp_doc, const_cast<char *>(
                    "KernelFamily(usual, may_divide=False): the variants of one specialisation.\n"
                    "A variant is (what a launch returns, kernel, checks). `may_divide`: whether\n"
                    "launches choose how many blocks a program has.")},
    {Py_tp_new, reinterpret_cast<void *>(newFamily)},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocFamily)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverseFamily)},
    {Py_tp_clear, reinterpret_cast<void *>(clearFamily)},
    {Py_tp_methods, familyMethods},
    {0, nullptr}};
PyType_Spec familySpec = {"tessera._C.KernelFamily", sizeof(KernelFamily), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, familySlots};

//===----------------------------------------------------------------------===//
// LaunchRecord
//===----------------------------------------------------------------------===//

PyObject *newRecord(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static const char *names[] = {"family", "slots",  "options", "num_threads",
                                "device", "stream", "choice",  nullptr};
  PyObject *family = nullptr, *slots = nullptr, *options = nullptr, *stream = nullptr,
           *choice = nullptr;
  int numThreads = 0, device = -1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO!iiOO", const_cast<char **>(names), &family,
                                   &slots, &PyDict_Type, &options, &numThreads, &device, &stream,
                                   &choice))
    return nullptr;
  return translateErrors([&]() -> PyObject * {
    if (family != Py_None && Py_TYPE(family) != kernelFamilyType)
      throw py::type_error("`family` is a KernelFamily or None");
    auto made = py::reinterpret_steal<py::object>(type->tp_alloc(type, 0));
    if (!made)
      return nullptr;
    auto *self = reinterpret_cast<LaunchRecord *>(made.ptr());
    if (family != Py_None)
      self->family = reinterpret_cast<KernelFamily *>(Py_NewRef(family));
    self->slots = slots ? Py_NewRef(slots) : PyTuple_New(0);
    self->options = options ? Py_NewRef(options) : PyDict_New();
    self->stream = stream ? Py_NewRef(stream) : PyLong_FromLong(0);
    if (!self->slots || !self->options || !self->stream)
      return nullptr;
    self->choice = choice == Py_None ? nullptr : Py_XNewRef(choice);
    self->numThreads = numThreads;
    self->device = device;
    if (!self->findsStream())
      self->fixedStream = py::reinterpret_borrow<py::object>(self->stream).cast<uint64_t>();
    return made.release().ptr();
  });
}

using RecordMembers =
    ObjectMembers<LaunchRecord, &LaunchRecord::family, &LaunchRecord::slots, &LaunchRecord::options,
                  &LaunchRecord::meta, &LaunchRecord::stream, &LaunchRecord::choice>;

/// Hooks that the slow way tells by a function of its own.
class SlowListener final : public LaunchListener {
public:
  SlowListener(py::object tell, py::object leave)
      : tell(std::move(tell)), leaveHooks(std::move(leave)) {}
  py::object enter(const Variant &variant) override { return tell(variant.result); }
  void leave(const py::object &told) override { leaveHooks(told); }

private:
  py::object tell, leaveHooks;
};

py::object fromArgument(PyObject *argument) {
  return py::reinterpret_borrow<py::object>(argument == Py_None ? nullptr : argument);
}

PyObject *launchSlowly(PyObject *object, PyObject *args, PyObject *keywords) {
  auto *self = reinterpret_cast<LaunchRecord *>(object);
  static const char *names[] = {"grid", "stream", "make", "hooks", "memory", nullptr};
  PyObject *grid = nullptr, *make = Py_None, *hooks = Py_None, *memory = Py_None;
  unsigned long long stream = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|KOOO", const_cast<char **>(names),
                                   &PyTuple_Type, &grid, &stream, &make, &hooks, &memory))
    return nullptr;
  return translateErrors([&]() -> PyObject * {
    if (!self->family || !self->family->getUsual().kernel)
      throw py::value_error("the record has no kernel");
    GridSizes extents = toGrid(py::reinterpret_borrow<py::tuple>(grid));
    std::vector<uint64_t> slots = toSlots(py::reinterpret_borrow<py::sequence>(self->slots));
    py::object known = fromArgument(memory);
    Memory behind(known ? known : py::none(), slots.size());
    LaunchCall call{extents.data(), slots.data(), slots.size(), stream};
    call.memory = known ? behind.get() : nullptr;
    call.make = make == Py_None ? nullptr : make;
    std::optional<SlowListener> listener;
    if (hooks != Py_None) {
      auto pair = py::reinterpret_borrow<py::tuple>(hooks);
      call.listener = &listener.emplace(pair[0], pair[1]);
    }
    LaunchOutcome outcome = launchRecord(*self, call);
    if (!outcome.result)
      check(outcome.status);
    return outcome.result.release().ptr();
  });
}

PyMemberDef recordMembers[] = {
    {"family", T_OBJECT, offsetof(LaunchRecord, family), READONLY, "Its kernels, or None."},
    {"slots", T_OBJECT, offsetof(LaunchRecord, slots), READONLY, "What the arguments became."},
    {"options", T_OBJECT, offsetof(LaunchRecord, options), READONLY, "The options by name."},
    {"stream", T_OBJECT, offsetof(LaunchRecord, stream), READONLY,
     "The stream of a GPU, or a function of the device that returns the current one."},
    {"choice", T_OBJECT, offsetof(LaunchRecord, choice), READONLY,
     "The configuration of a tuned kernel, or None."},
    {"num_threads", T_INT, offsetof(LaunchRecord, numThreads), READONLY,
     "How many threads of a CPU run it; 0: the default."},
    {"device", T_INT, offsetof(LaunchRecord, device), READONLY, "A GPU, or -1 for the CPU."},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef recordMethods[] = {
    {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(launchSlowly)),
     METH_VARARGS | METH_KEYWORDS,
     "launch(grid, stream=0, make=None, hooks=None, memory=None): launches, and returns what the\n"
     "variant has that did it. `make(variant)` returns a variant that is not there, or None for a\n"
     "division that cannot be compiled; `hooks` is (enter, exit); with `memory`, accesses of a "
     "CPU\n"
     "are checked. Raises CoreError."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot recordSlots[] = {
    {Py_tp_doc,
     const_cast<char *>("LaunchRecord(family, slots=(), options={}, num_threads=0, device=-1,\n"
                        "stream=0, choice=None): all that is the same for launches with equal\n"
                        "signatures. Without a family: a configuration that is looked up alone.")},
    {Py_tp_new, reinterpret_cast<void *>(newRecord)},
    {Py_tp_dealloc, reinterpret_cast<void *>(RecordMembers::dealloc)},
    {Py_tp_traverse, reinterpret_cast<void *>(RecordMembers::traverse)},
    {Py_tp_members, recordMembers},
    {Py_tp_methods, recordMethods},
    {0, nullptr}};
PyType_Spec recordSpec = {"tessera._C.LaunchRecord", sizeof(LaunchRecord), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, recordSlots};

PyTypeObject *addType(py::module_ &module, const char *name, PyType_Spec &spec) {
  PyObject *type = PyType_FromSpec(&spec);
  if (!type)
    throw py::error_already_set();
  module.add_object(name, py::reinterpret_steal<py::object>(type));
  return reinterpret_cast<PyTypeObject *>(type);
}

} // namespace

void tessera::python::registerLaunchRecord(py::module_ &module) {
  py::enum_<TsrVariant>(module, "Variant",
                        "The variants of a specialisation (Compiler/KernelFamily.h).")
      .value("USUAL", TSR_VARIANT_USUAL)
      .value("UNLIMITED", TSR_VARIANT_UNLIMITED)
      .value("SPLIT_2", TSR_VARIANT_SPLIT_2)
      .value("SPLIT_4", TSR_VARIANT_SPLIT_4)
      .value("SPLIT_8", TSR_VARIANT_SPLIT_8)
      .value("PAIR_OF_TILES", TSR_VARIANT_PAIR_OF_TILES)
      .value("SHORT_LOOPS", TSR_VARIANT_SHORT_LOOPS)
      .def("next", &findNext, "The variant after this one, whose launch ended with a Status.");
  kernelFamilyType = addType(module, "KernelFamily", familySpec);
  launchRecordType = addType(module, "LaunchRecord", recordSpec);
}
