// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signatures live in a table of the dispatcher, which the GIL guards. The types are
// plain CPython, not pybind11, since a vectorcall saves half of what a launch costs. Between
// launches, the driver's code evicts that of a launch from the first cache (notes/Notebook.md,
// "Where a warm launch's time goes"). So rare functions are marked cold, to keep the others in few
// cache lines.

#include "Dispatcher.h"

#include "LaunchRecord.h"
#include "Signature.h"

#include <pybind11/stl.h>
#include <structmember.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace tessera::python;

PyTypeObject *tessera::python::dispatcherType = nullptr;
uint64_t tessera::python::currentGeneration = 0;

namespace {

constexpr size_t kMaxEntries = 512;

/// After so many launches that could not be learned there is a warning.
constexpr uint64_t kMaxUnlearnedLaunches = 100;
/// The function that warns, once it is loaded.
PyObject *warnOfSlowLaunches = nullptr;

/// A signature, and the record by which launches with it are repeated.
struct Entry {
  Entry(const Signature &signature, py::object record)
      : signature(signature), object(std::move(record)) {}

  const LaunchRecord &getRecord() const {
    return *reinterpret_cast<const LaunchRecord *>(object.ptr());
  }
  int traverse(visitproc visit, void *arg) const {
    Py_VISIT(object.ptr());
    return signature.traverse(visit, arg);
  }

  KnownSignature signature;
  py::object object; ///< a LaunchRecord
};

using Entries = std::unordered_multimap<size_t, Entry>;

struct Dispatcher {
  PyObject_HEAD;
  std::vector<Parameter> *parameters;
  Entries *entries;
  Entry *last; ///< of `entries`, the one launched last, or null
  PyObject *slow;
  PyObject *fail;
  PyObject *lastChoice;  ///< the configuration of the last launch, if it had one
  uint64_t generation;   ///< of when the entries were made
  uint64_t numUnlearned; ///< whole launches without a record for the next
  bool isRetired;
};

/// The functions that tell hooks of launches, and the one that says whether there are any, which is
/// asked when something has changed that launches depend on.
struct LaunchHooks {
  PyObject *enter = nullptr, *exit = nullptr, *areSet = nullptr;
  uint64_t generation = ~uint64_t(0);
  bool isOn = false;
};
LaunchHooks launchHooks;

} // namespace

bool tessera::python::hasLaunchHooks() {
  if (launchHooks.generation != currentGeneration && launchHooks.areSet) {
    uint64_t generation = currentGeneration; // of before: what changes meanwhile is seen
    py::object answer = py::reinterpret_steal<py::object>(
        callPython([] { return PyObject_CallNoArgs(launchHooks.areSet); }));
    if (!answer)
      throw py::error_already_set();
    launchHooks.isOn = answer.ptr() == Py_True;
    launchHooks.generation = generation;
  }
  return launchHooks.isOn;
}

/// The traceback of a user's mistake ends at the launch, where the user made it. Errors of other
/// classes are our own bugs and keep every frame.
void tessera::python::hideOwnFrames() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  bool isMistake = value && PyObject_HasAttrString(value, "fix");
  if (isMistake) {
    PyException_SetTraceback(value, Py_None);
    Py_CLEAR(traceback);
  }
  PyErr_Restore(type, value, traceback);
}

namespace {

/// Calls a grid function, which gets arguments and options by name.
py::object callGridFunction(PyObject *function, const Signature &signature,
                            const LaunchRecord &record) {
  // `getValue` is of a parameter that the caller gives a value.
  auto copyWith = [&](PyObject *options, auto getValue) {
    py::object meta = py::reinterpret_steal<py::object>(PyDict_Copy(options));
    for (size_t i = 0; meta && i < signature.parameters.size(); ++i)
      if (signature.values[i] &&
          PyDict_SetItem(meta.ptr(), signature.parameters[i].name, getValue(i)) < 0)
        meta = py::object();
    if (!meta)
      throw py::error_already_set();
    return meta;
  };
  // A copy of a dict that has all names does not grow, which would take longer than the copy.
  if (!record.meta)
    record.meta = copyWith(record.options, [](size_t) { return Py_None; }).release().ptr();
  py::object meta = copyWith(record.meta, [&](size_t i) { return signature.values[i]; });
  PyObject *found = callPython([&] { return PyObject_CallOneArg(function, meta.ptr()); });
  if (!found)
    throw py::error_already_set();
  return py::reinterpret_steal<py::object>(found);
}

[[gnu::cold]] void forgetEntries(Dispatcher *dispatcher) {
  // Taken out first: what an entry releases may run Python.
  Entries entries;
  entries.swap(*dispatcher->entries);
  dispatcher->last = nullptr;
  dispatcher->generation = currentGeneration;
}

/// Takes a record out of the table, if it still is there.
[[gnu::cold]] void forgetRecord(Dispatcher *dispatcher, const LaunchRecord &record, size_t hash) {
  auto [first, last] = dispatcher->entries->equal_range(hash);
  auto same = std::find_if(first, last,
                           [&](const auto &one) { return &one.second.getRecord() == &record; });
  if (same == last)
    return;
  if (dispatcher->last == &same->second)
    dispatcher->last = nullptr;
  auto dropped = dispatcher->entries->extract(same); // what it releases may run Python
}

/// The entry for a signature, or null.
Entry *findEntry(Dispatcher *dispatcher, const Signature &signature) {
  Entry *last = dispatcher->last;
  if (last && signature.matches(last->signature))
    return last;
  auto [begin, end] = dispatcher->entries->equal_range(signature.hash());
  for (auto at = begin; at != end; ++at)
    if (signature.matches(at->second.signature))
      return dispatcher->last = &at->second;
  return nullptr;
}

/// Keeps a record for launches with a signature. False if the arguments became other slots there,
/// which are not theirs to repeat.
bool learn(Dispatcher *dispatcher, const Signature &signature, const py::object &object) {
  if (Py_TYPE(object.ptr()) != launchRecordType)
    throw py::type_error("a launch returns a LaunchRecord to be repeated");
  const auto &record = *reinterpret_cast<const LaunchRecord *>(object.ptr());
  if (record.family) {
    py::sequence slots = py::reinterpret_borrow<py::sequence>(record.slots);
    if (slots.size() != signature.slots.size())
      return false;
    for (size_t i = 0; i < slots.size(); ++i)
      if (PyLong_AsUnsignedLongLongMask(py::object(slots[i]).ptr()) != signature.slots[i])
        return false;
  }
  size_t hash = signature.hash();
  if (Entry *old = findEntry(dispatcher, signature)) {
    py::object held = old->object;
    forgetRecord(dispatcher, old->getRecord(), hash);
  }
  if (dispatcher->entries->size() >= kMaxEntries)
    forgetEntries(dispatcher);
  auto made = dispatcher->entries->emplace(std::piecewise_construct, std::forward_as_tuple(hash),
                                           std::forward_as_tuple(signature, object));
  dispatcher->last = &made->second;
  return true;
}

/// Counts a launch that could not be learned, and warns of many.
void countUnlearned(Dispatcher *dispatcher, const Signature &signature) {
  if (++dispatcher->numUnlearned != kMaxUnlearnedLaunches || !warnOfSlowLaunches)
    return;
  py::object name = py::none(), value = py::none();
  if (signature.refused) {
    name = py::reinterpret_borrow<py::object>(signature.parameters[*signature.refused].name);
    value = py::reinterpret_borrow<py::object>(signature.values[*signature.refused]);
  }
  py::handle warn(warnOfSlowLaunches), slow(dispatcher->slow);
  callPython([&] { warn(slow, name, value, kMaxUnlearnedLaunches); });
}

/// Does a launch the whole way, and keeps what it finds out for the next of that signature.
[[gnu::cold]] PyObject *callSlow(Dispatcher *dispatcher, const Grid &grid,
                                 const CallArguments &call, const Signature *signature) {
  py::tuple positional(call.count);
  for (size_t i = 0; i < call.count; ++i)
    positional[i] = py::reinterpret_borrow<py::object>(call.args[i]);
  py::dict named;
  for (Py_ssize_t i = 0; call.keywords && i < PyTuple_GET_SIZE(call.keywords); ++i)
    named[py::handle(PyTuple_GET_ITEM(call.keywords, i))] =
        py::reinterpret_borrow<py::object>(call.args[call.count + static_cast<size_t>(i)]);
  py::object gridObject = grid.asObject();
  py::object returned = py::reinterpret_steal<py::object>(callPython([&] {
    return PyObject_CallFunctionObjArgs(dispatcher->slow, gridObject.ptr(), positional.ptr(),
                                        named.ptr(), nullptr);
  }));
  if (!returned) {
    hideOwnFrames();
    return nullptr;
  }
  py::tuple pair(returned);
  bool isToRepeat = signature && signature->isComplete && !pair[1].is_none();
  if (signature && !(isToRepeat && learn(dispatcher, *signature, pair[1])))
    countUnlearned(dispatcher, *signature);
  return py::object(pair[0]).release().ptr();
}

/// Has `slow` say what is wrong with what a grid function returned. The function is not called
/// again: it may have effects.
[[gnu::cold]] PyObject *refuseGrid(Dispatcher *dispatcher, py::object returned,
                                   const CallArguments &call) {
  py::cpp_function again([returned](const py::object &) { return returned; });
  return callSlow(dispatcher, Grid(again.ptr()), call, nullptr);
}

void noteChoice(Dispatcher *dispatcher, const LaunchRecord &record) {
  PyObject *choice = record.choice;
  if (choice && choice != dispatcher->lastChoice) {
    Py_INCREF(choice);
    Py_XSETREF(dispatcher->lastChoice, choice);
  }
}

/// Tells hooks of a launch.
class HooksListener final : public LaunchListener {
public:
  HooksListener(const Dispatcher &dispatcher, const LaunchRecord &record,
                const Signature &signature, const LaunchCall &call)
      : dispatcher(dispatcher), record(record), signature(signature), call(call) {}

  [[gnu::cold]] py::object enter(const Variant &variant) override {
    py::tuple values(signature.parameters.size());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = signature.values[i] ? py::reinterpret_borrow<py::object>(signature.values[i])
                                      : py::none();
    py::tuple grid = py::make_tuple(call.extents[0], call.extents[1], call.extents[2]);
    py::int_ handle(call.stream);
    return finish(callPython([&] {
      return PyObject_CallFunctionObjArgs(launchHooks.enter, dispatcher.slow, variant.result.ptr(),
                                          grid.ptr(), values.ptr(), record.options, handle.ptr(),
                                          nullptr);
    }));
  }
  [[gnu::cold]] void leave(const py::object &told) override {
    finish(callPython([&] { return PyObject_CallOneArg(launchHooks.exit, told.ptr()); }));
  }

private:
  static py::object finish(PyObject *returned) {
    if (!returned)
      throw py::error_already_set();
    return py::reinterpret_steal<py::object>(returned);
  }

  const Dispatcher &dispatcher;
  const LaunchRecord &record;
  const Signature &signature;
  const LaunchCall &call;
};

/// Raises what a launch has failed with; no exception where `slow` has to do it.
[[gnu::cold]] void raiseFailure(const Dispatcher *dispatcher, TsrStatus status) {
  bool isMissing =
      status == TSR_OK || status == TSR_OUTSIDE_LIMITS || status == TSR_NO_CLUSTER_ROOM;
  if (isMissing || (status == TSR_CANCELLED && PyErr_Occurred()))
    return;
  try {
    check(status);
  } catch (py::error_already_set &error) {
    // `fail` raises what the core's error means to a user.
    py::object value = error.value();
    callPython([&] { return PyObject_CallOneArg(dispatcher->fail, value.ptr()); });
    hideOwnFrames();
  }
}

/// The stream of a launch on a GPU; false with an exception.
bool findStream(const LaunchRecord &record, uint64_t &stream) {
  stream = record.fixedStream;
  if (!record.findsStream() || findTorchStream(record.stream, record.device, stream))
    return true;
  py::object device = py::reinterpret_steal<py::object>(PyLong_FromLong(record.device));
  py::object found = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_CallOneArg(record.stream, device.ptr()); }));
  stream = found ? PyLong_AsUnsignedLongLong(found.ptr()) : 0;
  return !PyErr_Occurred();
}

/// Makes the stream of a launch wait for those on which its arrays are computed. False if it fails,
/// with an exception, or if `slow` has to do the launch.
bool orderStreams(const Dispatcher &dispatcher, const LaunchRecord &record,
                  const ArrayStreams &streams, uint64_t stream) {
  // Code of an array that was exported may have changed torch's current stream.
  if (streams.exportedTo && !isSameStream(*streams.exportedTo, stream))
    return false;
  for (uint64_t other : streams) {
    if (isSameStream(stream, other))
      continue;
    TsrStatus status;
    {
      WithoutGIL released;
      status = tsr_cuda_wait_for_stream(record.device, stream, other);
    }
    if (status != TSR_OK) {
      raiseFailure(&dispatcher, status);
      return false;
    }
  }
  return true;
}

/// Null without an exception where `slow` has to do the launch.
PyObject *launchKnown(Dispatcher *dispatcher, const LaunchRecord &record,
                      const Signature &signature, const int32_t extents[3]) {
  LaunchCall call{extents, signature.slots.data(), signature.slots.size()};
  call.isWarm = true;
  if (record.device >= 0) {
    // Beside arrays on a GPU, those in the host's memory were pinned; these may not be.
    if (!findStream(record, call.stream) ||
        !std::all_of(signature.hostAddresses.begin(), signature.hostAddresses.end(),
                     [&](uint64_t address) { return tsr_cuda_reaches(record.device, address); }))
      return nullptr;
    if (!orderStreams(*dispatcher, record, signature.streams, call.stream))
      return nullptr;
  }
  HooksListener listener(*dispatcher, record, signature, call);
  if (hasLaunchHooks())
    call.listener = &listener;
  LaunchOutcome outcome = launchRecord(record, call);
  if (outcome.result) {
    noteChoice(dispatcher, record);
    return outcome.result.release().ptr();
  }
  raiseFailure(dispatcher, outcome.status);
  return nullptr;
}

} // namespace

PyObject *tessera::python::launchOver(PyObject *object, const Grid &grid,
                                      const CallArguments &call) {
  auto *dispatcher = reinterpret_cast<Dispatcher *>(object);
  auto takeSlowWay = [&](const Signature *signature) {
    return callSlow(dispatcher, grid, call, signature);
  };
  if (dispatcher->generation != currentGeneration)
    forgetEntries(dispatcher);
  if (dispatcher->isRetired)
    return takeSlowWay(nullptr);
  Signature signature(*dispatcher->parameters);
  if (!signature.bind(call.args, call.count, call.keywords) || !signature.specialise())
    return takeSlowWay(&signature);
  Entry *known = findEntry(dispatcher, signature);
  if (!known)
    return takeSlowWay(&signature);
  // Held, since the table may change while the kernel, a check or a grid function runs.
  py::object held = known->object;
  const LaunchRecord &record = known->getRecord();
  int32_t extents[3];
  if (!grid.read(extents)) {
    if (!PyCallable_Check(grid.getGiven()))
      return takeSlowWay(nullptr);
    py::object found = callGridFunction(grid.getGiven(), signature, record);
    if (!Grid(found.ptr()).read(extents))
      return refuseGrid(dispatcher, std::move(found), call);
  }
  // The kernel is checked after the grid was read: that may run the user's code, which may change
  // what the kernel was compiled with.
  if (dispatcher->generation == currentGeneration && record.family &&
      record.family->getUsual().isCurrent()) {
    PyObject *result = launchKnown(dispatcher, record, signature, extents);
    if (result || PyErr_Occurred())
      return result;
  } else {
    forgetRecord(dispatcher, record, signature.hash());
  }
  return callSlow(dispatcher, Grid(extents), call, &signature);
}

namespace {

/// The record for the arguments of a call, whose signature is filled in; null if there is none.
py::object findCurrent(Dispatcher *dispatcher, const CallArguments &call, Signature &signature) {
  if (dispatcher->generation != currentGeneration)
    forgetEntries(dispatcher);
  if (dispatcher->isRetired || !signature.bind(call.args, call.count, call.keywords) ||
      !signature.specialise())
    return py::object();
  Entry *known = findEntry(dispatcher, signature);
  if (!known)
    return py::object();
  py::object held = known->object;
  const LaunchRecord &record = known->getRecord();
  if (record.family && !record.family->getUsual().isCurrent()) {
    forgetRecord(dispatcher, record, signature.hash());
    return py::object();
  }
  noteChoice(dispatcher, record);
  return held;
}

} // namespace

py::object tessera::python::findRecord(PyObject *object, const CallArguments &call) {
  auto *dispatcher = reinterpret_cast<Dispatcher *>(object);
  Signature signature(*dispatcher->parameters);
  return findCurrent(dispatcher, call, signature);
}

PyObject *tessera::python::findKnown(PyObject *object, PyObject *grid, const CallArguments &call) {
  auto *dispatcher = reinterpret_cast<Dispatcher *>(object);
  Signature signature(*dispatcher->parameters);
  py::object found = findCurrent(dispatcher, call, signature);
  if (!found)
    return callSlow(dispatcher, Grid(grid), call, dispatcher->isRetired ? nullptr : &signature);
  const auto &record = *reinterpret_cast<const LaunchRecord *>(found.ptr());
  return Py_NewRef(record.choice ? record.choice : record.family->getUsual().result.ptr());
}

namespace {

PyObject *newDispatcher(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *parameters = nullptr, *slow = nullptr, *fail = nullptr;
  if (!PyArg_ParseTuple(args, "O!OO", &PyTuple_Type, &parameters, &slow, &fail))
    return nullptr;
  if (PyTuple_GET_SIZE(parameters) > Py_ssize_t(kMaxParams)) {
    PyErr_SetString(PyExc_ValueError, "too many parameters for the fast path");
    return nullptr;
  }
  auto *self = reinterpret_cast<Dispatcher *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->generation = currentGeneration;
  self->parameters = new std::vector<Parameter>;
  self->entries = new Entries;
  Py_INCREF(self->slow = slow);
  Py_INCREF(self->fail = fail);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parameters); ++i) {
    PyObject *name = nullptr, *defaults = nullptr;
    int isConstexpr = 0, onValue = 0, onAlignment = 0, isTuned = 0, isKey = 0, expected = 0;
    int number = 0, passing = 0;
    // The default comes in a tuple, empty where there is none.
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(parameters, i), "UO!ppp|ppiii", &name, &PyTuple_Type,
                          &defaults, &isConstexpr, &onValue, &onAlignment, &isTuned, &isKey,
                          &expected, &number, &passing)) {
      Py_DECREF(self);
      return nullptr;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    PyObject *value = PyTuple_GET_SIZE(defaults) ? PyTuple_GET_ITEM(defaults, 0) : nullptr;
    Py_XINCREF(value);
    self->parameters->push_back({name, value, isConstexpr != 0, onValue != 0, onAlignment != 0,
                                 isTuned != 0, isKey != 0, static_cast<char>(expected),
                                 static_cast<TsrDType>(number), static_cast<Passing>(passing)});
  }
  return reinterpret_cast<PyObject *>(self);
}

int traverseDispatcher(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->slow);
  Py_VISIT(self->fail);
  Py_VISIT(self->lastChoice);
  if (self->parameters)
    for (const Parameter &parameter : *self->parameters)
      Py_VISIT(parameter.defaultValue);
  if (self->entries)
    for (const auto &[hash, entry] : *self->entries)
      if (int stop = entry.traverse(visit, arg))
        return stop;
  return 0;
}

PyObject *clearEntries(PyObject *self, PyObject *) {
  forgetEntries(reinterpret_cast<Dispatcher *>(self));
  Py_RETURN_NONE;
}

/// The parameters are others now: those who hold a launch still go the slow way for good.
PyObject *retire(PyObject *self, PyObject *) {
  reinterpret_cast<Dispatcher *>(self)->isRetired = true;
  return clearEntries(self, nullptr);
}

int clearDispatcher(PyObject *object) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  Py_CLEAR(self->slow);
  Py_CLEAR(self->fail);
  Py_CLEAR(self->lastChoice);
  if (self->entries)
    Py_DECREF(clearEntries(object, nullptr));
  if (self->parameters)
    for (Parameter &parameter : *self->parameters)
      Py_CLEAR(parameter.defaultValue);
  return 0;
}

void deallocDispatcher(PyObject *object) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clearDispatcher(object);
  for (const Parameter &parameter : *self->parameters) {
    Py_DECREF(parameter.name);
    Py_XDECREF(parameter.defaultValue);
  }
  delete self->parameters;
  delete self->entries;
  type->tp_free(object);
  Py_DECREF(type);
}

/// The configuration that the last launch of a tuned kernel had, or None.
PyObject *getLastChoice(PyObject *self, PyObject *) {
  PyObject *choice = reinterpret_cast<Dispatcher *>(self)->lastChoice;
  return Py_NewRef(choice ? choice : Py_None);
}

/// The same for a launch that this had no part in.
PyObject *setLastChoice(PyObject *self, PyObject *choice) {
  Py_INCREF(choice);
  Py_XSETREF(reinterpret_cast<Dispatcher *>(self)->lastChoice, choice);
  Py_RETURN_NONE;
}

PyMethodDef dispatcherMethods[] = {
    {"bind", bindGrid, METH_O, "A callable that launches the kernel over a grid."},
    {"clear", clearEntries, METH_NOARGS, "Forget every specialisation."},
    {"retire", retire, METH_NOARGS, "Leave every launch to `slow` from now on."},
    {"last_choice", getLastChoice, METH_NOARGS,
     "The configuration of the last launch of a tuned kernel."},
    {"set_last_choice", setLastChoice, METH_O, "Note that of a launch by other ways."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot dispatcherSlots[] = {
    {Py_tp_doc,
     const_cast<char *>("Dispatcher(parameters, slow, fail): the warm path of launches")},
    {Py_tp_new, reinterpret_cast<void *>(newDispatcher)},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocDispatcher)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverseDispatcher)},
    {Py_tp_clear, reinterpret_cast<void *>(clearDispatcher)},
    {Py_tp_methods, dispatcherMethods},
    {0, nullptr}};
PyType_Spec dispatcherSpec = {"tessera._C.Dispatcher", sizeof(Dispatcher), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, dispatcherSlots};

} // namespace

void tessera::python::registerDispatcher(py::module_ &module) {
  PyObject *dispatcher = PyType_FromSpec(&dispatcherSpec);
  if (!dispatcher)
    throw py::error_already_set();
  dispatcherType = reinterpret_cast<PyTypeObject *>(dispatcher);
  module.add_object("Dispatcher", py::reinterpret_steal<py::object>(dispatcher));
  module.def(
      "is_current", [](const py::tuple &checks) { return allHold(checks.ptr()); },
      "Whether all of these checks hold (frontend/reads.py).");
  module.def(
      "advance_generation", [] { ++currentGeneration; },
      "Have every launch look again at what it depends on.");
  module.def("generation", [] { return currentGeneration; }, "How often that was.");
  module.def(
      "learn_launch_hooks",
      [](const py::function &areSet, const py::function &enter, const py::function &exit) {
        launchHooks.areSet = areSet.inc_ref().ptr();
        launchHooks.enter = enter.inc_ref().ptr();
        launchHooks.exit = exit.inc_ref().ptr();
      },
      py::arg("are_set"), py::arg("enter"), py::arg("exit"),
      "Have launches call enter(slow, kernel, grid, values, options, stream) before and\n"
      "exit(what that returned) after, where are_set() is True.");
  module.def(
      "learn_slow_warning",
      [](const py::function &warn) { warnOfSlowLaunches = warn.inc_ref().ptr(); }, py::arg("warn"),
      "Have launches call warn(slow, name, value, count) when `count` of a dispatcher could not "
      "be\n"
      "learned; `name` is the argument that the core does not know, or None.");
  registerSignature(module);
  registerLaunchRecord(module);
}
