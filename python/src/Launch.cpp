// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warm path of a launch: `kernel[grid](*args)` for a specialisation that has been
// launched before, found by the signature of its arguments (Signature.h). Whatever is not
// common or not known goes to the Python function `slow`, which does the whole launch and
// returns what the next launch of the same kind needs.
//
// A tuned kernel (tessera/tuning) is launched the same way: its configuration fills in some
// parameters, which a caller leaves out. And `find` looks a kernel or a configuration up without
// launching, for `warmup` and for configurations that have hooks.
//
// Signatures live in a table of the dispatcher, which the GIL guards. The types are
// plain CPython, not pybind11, since a vectorcall saves half of what a launch costs.

#include "Checks.h"
#include "Handles.h"
#include "Interpreter.h"
#include "Signature.h"

#include <pybind11/stl.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace tessera::python;

namespace {

constexpr size_t kMaxEntries = 512;

/// A reference, counted.
class Reference {
public:
  Reference() = default;
  explicit Reference(py::object object) : object(object.release().ptr()) {}
  ~Reference() { Py_XDECREF(object); }
  Reference(Reference &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  Reference &operator=(Reference &&other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  PyObject *get() const { return object; }
  explicit operator bool() const { return object; }

private:
  PyObject *object = nullptr;
};

/// A compiled kernel, and what was read when it was compiled.
struct Variant {
  TsrKernel *kernel = nullptr;
  Reference owner;  ///< of `kernel`
  Reference result; ///< what a launch returns
  Reference read;   ///< the tuple that has what is checked
  std::vector<Check> checks;

  Variant() = default;
  /// Of (result, kernel, checks).
  explicit Variant(const py::tuple &tuple)
      : owner(tuple[1]), result(tuple[0]), read(tuple[2]), checks(readChecks(read.get())) {
    kernel = tuple[1].cast<Kernel &>().handle.get();
  }

  int traverse(visitproc visit, void *arg) const {
    Py_VISIT(owner.get());
    Py_VISIT(result.get());
    Py_VISIT(read.get());
    return 0;
  }
};

/// What a launch of one signature needs.
struct Entry {
  explicit Entry(const Signature &signature) : signature(signature) {}

  KnownSignature signature;
  Variant usual; ///< no kernel in what is looked up alone
  /// For launches outside the limits of the usual one, which have taken it before; no kernel where
  /// there was no such launch.
  Variant outside;
  /// For launches of few programs: those of clusters of 2, 4 and 8 blocks, as far as there were
  /// such launches; and whether there may be any.
  std::array<Variant, 3> divided;
  bool mayDivide = false;
  Reference meta;   ///< the options, for grid functions
  Reference choice; ///< the configuration of a tuned kernel
  int32_t numThreads = 0;
  int32_t device = -1;  ///< a GPU, or -1 for the CPU
  uint64_t stream = 0;  ///< on the GPU, if there is no `findStream`
  Reference findStream; ///< called with the device: its current stream
  size_t numHolders = 0;

  int traverse(visitproc visit, void *arg) const {
    if (int stop = signature.traverse(visit, arg))
      return stop;
    for (const Variant *variant : {&usual, &outside, &divided[0], &divided[1], &divided[2]})
      if (int stop = variant->traverse(visit, arg))
        return stop;
    Py_VISIT(meta.get());
    Py_VISIT(choice.get());
    Py_VISIT(findStream.get());
    return 0;
  }
};

/// Shares an entry. Its count is the GIL's, like all else here: an atomic one takes longer than
/// what it is for.
class EntryHolder {
public:
  explicit EntryHolder(Entry *entry) : entry(entry) { ++entry->numHolders; }
  EntryHolder(const EntryHolder &other) : EntryHolder(other.entry) {}
  EntryHolder &operator=(const EntryHolder &) = delete;
  ~EntryHolder() {
    if (--entry->numHolders == 0)
      delete entry;
  }
  Entry *get() const { return entry; }

private:
  Entry *entry;
};

using Entries = std::unordered_multimap<size_t, EntryHolder>;

struct Dispatcher {
  PyObject_HEAD;
  std::vector<Parameter> *parameters;
  Entries *entries;
  Entry *last; ///< of `entries`, the one launched last, or null
  PyObject *slow;
  PyObject *fail;
  PyObject *lastChoice; ///< the configuration of the last launch, if it had one
  uint64_t generation;  ///< of when the entries were made
  bool isRetired;
};

struct Launch {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  Dispatcher *dispatcher;
  PyObject *grid;
};

/// Grows with each change of what every launch depends on: settings, the language's modules.
uint64_t currentGeneration = 0;

/// The functions that tell hooks of launches, and the one that says whether there are any, which is
/// asked when something has changed that launches depend on.
struct LaunchHooks {
  PyObject *enter = nullptr, *exit = nullptr, *areSet = nullptr;
  uint64_t generation = ~uint64_t(0);
  bool isOn = false;
};
LaunchHooks launchHooks;

bool hasLaunchHooks() {
  if (launchHooks.generation != currentGeneration && launchHooks.areSet) {
    launchHooks.generation = currentGeneration;
    py::object answer = py::reinterpret_steal<py::object>(
        callPython([] { return PyObject_CallNoArgs(launchHooks.areSet); }));
    launchHooks.isOn = answer.ptr() == Py_True;
    PyErr_Clear();
  }
  return launchHooks.isOn;
}

/// The extents of a grid that is a tuple of plain integers.
bool readGrid(PyObject *grid, int32_t extents[3]) {
  if (!PyTuple_Check(grid) || PyTuple_GET_SIZE(grid) < 1 || PyTuple_GET_SIZE(grid) > 3)
    return false;
  extents[1] = extents[2] = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(grid); ++i) {
    PyObject *extent = PyTuple_GET_ITEM(grid, i);
    int overflow = 0;
    int64_t value =
        PyLong_CheckExact(extent) ? PyLong_AsLongLongAndOverflow(extent, &overflow) : -1;
    if (value < 0 || value > INT32_MAX)
      return false;
    extents[i] = static_cast<int32_t>(value);
  }
  return true;
}

/// The same of a grid function, which gets arguments and options by name. A new
/// reference to what it returned, or null with an exception.
PyObject *callGridFunction(PyObject *function, const Signature &signature, const Entry &entry) {
  py::object meta = py::reinterpret_steal<py::object>(PyDict_Copy(entry.meta.get()));
  if (!meta)
    return nullptr;
  const std::vector<Parameter> &parameters = signature.parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (signature.values[i] &&
        PyDict_SetItem(meta.ptr(), parameters[i].name, signature.values[i]) < 0)
      return nullptr;
  return callPython([&] { return PyObject_CallOneArg(function, meta.ptr()); });
}

/// A user's mistake is shown where the user made it: the traceback of one ends at the
/// launch. Of our own bugs, every frame is wanted.
void hideOwnFrames() {
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

void forgetEntries(Dispatcher *dispatcher) {
  // Taken out first: what an entry releases may run Python.
  Entries entries;
  entries.swap(*dispatcher->entries);
  dispatcher->last = nullptr;
  dispatcher->generation = currentGeneration;
}

/// Takes an entry out of the table, if it still is there.
void forgetEntry(Dispatcher *dispatcher, const EntryHolder &held, size_t hash) {
  if (dispatcher->last == held.get())
    dispatcher->last = nullptr;
  auto [first, last] = dispatcher->entries->equal_range(hash);
  auto same =
      std::find_if(first, last, [&](const auto &one) { return one.second.get() == held.get(); });
  if (same != last)
    dispatcher->entries->erase(same);
}

/// The entry for a signature, or null.
Entry *findEntry(Dispatcher *dispatcher, const Signature &signature) {
  Entry *last = dispatcher->last;
  if (last && signature.matches(last->signature))
    return last;
  auto [begin, end] = dispatcher->entries->equal_range(signature.hash());
  for (auto at = begin; at != end; ++at)
    if (signature.matches(at->second.get()->signature))
      return dispatcher->last = at->second.get();
  return nullptr;
}

/// The place of the variant for clusters of 2, 4 or 8 blocks.
size_t findDivided(int blocks) { return blocks == 2 ? 0 : blocks == 4 ? 1 : 2; }

/// Makes an entry of what `slow` returned: (variant, slots, threads, options, device, stream,
/// variant for launches outside the limits of the first or None, variants of clusters by the
/// number of their blocks or None), the stream a number or a function of the device, a variant as
/// (result, kernel, checks), or None for a configuration that is looked up alone. Of a tuned
/// kernel, its configuration comes behind that, and the options have what it fills in.
void learn(Dispatcher *dispatcher, const Signature &signature, const py::tuple &recipe) {
  bool hasKernel = !recipe[0].is_none();
  py::tuple slots = recipe[1];
  if (hasKernel && slots.size() != signature.slots.size())
    return;
  for (size_t i = 0; hasKernel && i < slots.size(); ++i)
    if (PyLong_AsUnsignedLongLongMask(slots[i].ptr()) != signature.slots[i])
      return;
  EntryHolder made(new Entry(signature));
  Entry &entry = *made.get();
  if (hasKernel)
    entry.usual = Variant(py::tuple(recipe[0]));
  entry.numThreads = recipe[2].cast<int32_t>();
  entry.meta = Reference(recipe[3]);
  entry.device = recipe[4].cast<int32_t>();
  if (PyLong_Check(recipe[5].ptr()))
    entry.stream = recipe[5].cast<uint64_t>();
  else
    entry.findStream = Reference(recipe[5]);
  if (!recipe[6].is_none())
    entry.outside = Variant(py::tuple(recipe[6]));
  if (!recipe[7].is_none()) {
    entry.mayDivide = true;
    for (auto [blocks, variant] : py::dict(recipe[7]))
      entry.divided[findDivided(blocks.cast<int>())] =
          Variant(py::reinterpret_borrow<py::tuple>(variant));
  }
  if (recipe.size() > 8)
    entry.choice = Reference(recipe[8]);
  size_t hash = signature.hash();
  if (Entry *old = findEntry(dispatcher, signature))
    forgetEntry(dispatcher, EntryHolder(old), hash);
  if (dispatcher->entries->size() >= kMaxEntries)
    forgetEntries(dispatcher);
  dispatcher->entries->emplace(hash, made);
  dispatcher->last = made.get();
}

/// Does a launch the whole way, and keeps what it finds out for the next of that signature.
PyObject *callSlow(Dispatcher *dispatcher, PyObject *grid, PyObject *const *args, size_t count,
                   PyObject *keywords, const Signature *signature) {
  py::tuple positional(count);
  for (size_t i = 0; i < count; ++i)
    positional[i] = py::reinterpret_borrow<py::object>(args[i]);
  py::dict named;
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    named[py::handle(PyTuple_GET_ITEM(keywords, i))] =
        py::reinterpret_borrow<py::object>(args[count + static_cast<size_t>(i)]);
  py::object returned = py::reinterpret_steal<py::object>(callPython([&] {
    return PyObject_CallFunctionObjArgs(dispatcher->slow, grid, positional.ptr(), named.ptr(),
                                        nullptr);
  }));
  if (!returned) {
    hideOwnFrames();
    return nullptr;
  }
  py::tuple pair(returned);
  if (signature && !pair[1].is_none())
    learn(dispatcher, *signature, pair[1]);
  return py::object(pair[0]).release().ptr();
}

/// Whether the last launch was of arguments for another variant of the kernel, for one
/// without tensor maps.
bool isForOtherVariant(TsrStatus status) {
  return status == TSR_USER_ERROR && std::strstr(tsr_last_error(), "\"E070\"");
}

void noteChoice(Dispatcher *dispatcher, const Entry &entry) {
  PyObject *choice = entry.choice.get();
  if (choice && choice != dispatcher->lastChoice) {
    Py_INCREF(choice);
    Py_XSETREF(dispatcher->lastChoice, choice);
  }
}

/// Tells hooks of a launch. What they are to be told when it is done, or null with an exception.
py::object enterHooks(const Launch *launch, const Entry &entry, const Variant &variant,
                      const Signature &signature, const int32_t extents[3], uint64_t stream) {
  py::tuple values(signature.parameters.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        signature.values[i] ? py::reinterpret_borrow<py::object>(signature.values[i]) : py::none();
  py::tuple grid = py::make_tuple(extents[0], extents[1], extents[2]);
  py::int_ handle(stream);
  return py::reinterpret_steal<py::object>(callPython([&] {
    return PyObject_CallFunctionObjArgs(launchHooks.enter, launch->dispatcher->slow,
                                        variant.result.get(), grid.ptr(), values.ptr(),
                                        entry.meta.get(), handle.ptr(), nullptr);
  }));
}

/// Null without an exception where `slow` has to do the launch.
PyObject *launchEntry(Launch *launch, const Entry &entry, const Signature &signature,
                      const int32_t extents[3]) {
  uint64_t stream = entry.stream;
  if (entry.findStream && !findTorchStream(entry.findStream.get(), entry.device, stream)) {
    py::object device = py::reinterpret_steal<py::object>(PyLong_FromLong(entry.device));
    py::object found = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_CallOneArg(entry.findStream.get(), device.ptr()); }));
    stream = found ? PyLong_AsUnsignedLongLong(found.ptr()) : 0;
    if (PyErr_Occurred())
      return nullptr;
  }
  // Beside arrays on a GPU, those in the host's memory were pinned; these may not be.
  if (entry.device >= 0 &&
      !std::all_of(signature.hostAddresses.begin(), signature.hostAddresses.end(),
                   [&](uint64_t address) { return tsr_cuda_reaches(entry.device, address); }))
    return nullptr;
  const uint64_t *slots = signature.slots.data();
  size_t numSlots = signature.slots.size();
  const Variant *variant = &entry.usual;
  if (entry.mayDivide) {
    int blocks = tsr_kernel_choose_blocks(variant->kernel, entry.device, extents, slots, numSlots);
    if (blocks > 1) {
      const Variant &divided = entry.divided[findDivided(blocks)];
      if (!divided.kernel || !allHold(divided.checks))
        return nullptr;
      if (tsr_kernel_accepts(divided.kernel, extents, slots, numSlots))
        variant = &divided;
    }
  }
  // A launch that fails takes longer than one that does not.
  if (variant == &entry.usual && entry.outside.kernel &&
      !tsr_kernel_accepts(variant->kernel, extents, slots, numSlots)) {
    variant = &entry.outside;
    if (!allHold(variant->checks))
      return nullptr;
  }
  py::object told;
  if (hasLaunchHooks()) {
    if (!tsr_kernel_accepts(variant->kernel, extents, slots, numSlots))
      return nullptr; // before they are told, who shall be told once
    told = enterHooks(launch, entry, *variant, signature, extents, stream);
    if (!told)
      return nullptr;
  }
  TsrStatus status;
  {
    WithoutGIL released;
    status = entry.device < 0
                 ? tsr_kernel_launch(variant->kernel, extents, slots, numSlots, entry.numThreads)
                 : tsr_kernel_launch_cuda(variant->kernel, entry.device, stream, extents, slots,
                                          numSlots);
  }
  if (status == TSR_OK) {
    noteChoice(launch->dispatcher, entry);
    if (told && !py::reinterpret_steal<py::object>(
                    callPython([&] { return PyObject_CallOneArg(launchHooks.exit, told.ptr()); })))
      return nullptr;
    Py_INCREF(variant->result.get());
    return variant->result.get();
  }
  if (isForOtherVariant(status))
    return nullptr;
  if (status == TSR_CANCELLED && PyErr_Occurred())
    return nullptr;
  try {
    check(status);
  } catch (py::error_already_set &error) {
    // `fail` raises what the core's error means to a user.
    py::object value = error.value();
    callPython([&] { return PyObject_CallOneArg(launch->dispatcher->fail, value.ptr()); });
    hideOwnFrames();
  }
  return nullptr;
}

PyObject *doLaunch(Launch *launch, PyObject *const *args, size_t count, PyObject *keywords) {
  Dispatcher *dispatcher = launch->dispatcher;
  auto takeSlowWay = [&](const Signature *signature) {
    return callSlow(dispatcher, launch->grid, args, count, keywords, signature);
  };
  if (dispatcher->generation != currentGeneration)
    forgetEntries(dispatcher);
  if (dispatcher->isRetired)
    return takeSlowWay(nullptr);
  Signature signature(*dispatcher->parameters);
  if (!signature.bind(args, count, keywords) || !signature.specialise())
    return takeSlowWay(nullptr);
  Entry *known = findEntry(dispatcher, signature);
  if (!known)
    return takeSlowWay(&signature);
  // Held, since the table may change while the kernel, a check or a grid function runs.
  EntryHolder held(known);
  const Entry &entry = *known;
  if (!entry.usual.kernel || !allHold(entry.usual.checks)) {
    forgetEntry(dispatcher, held, signature.hash());
    return takeSlowWay(&signature);
  }
  int32_t extents[3];
  auto launchKnown = [&] {
    PyObject *result = launchEntry(launch, entry, signature, extents);
    return result || PyErr_Occurred() ? result : takeSlowWay(&signature);
  };
  if (readGrid(launch->grid, extents))
    return launchKnown();
  if (PyCallable_Check(launch->grid)) {
    py::object grid =
        py::reinterpret_steal<py::object>(callGridFunction(launch->grid, signature, entry));
    if (grid && readGrid(grid.ptr(), extents))
      return launchKnown();
    PyErr_Clear(); // `slow` calls it again and says what is wrong
  }
  return takeSlowWay(nullptr);
}

/// What a launch with these arguments would have: the configuration of a tuned kernel, or what
/// the launch returns. `slow` says so the first time.
PyObject *doFind(Launch *launch, PyObject *const *args, size_t count, PyObject *keywords) {
  Dispatcher *dispatcher = launch->dispatcher;
  auto takeSlowWay = [&](const Signature *signature) {
    return callSlow(dispatcher, launch->grid, args, count, keywords, signature);
  };
  if (dispatcher->generation != currentGeneration)
    forgetEntries(dispatcher);
  Signature signature(*dispatcher->parameters);
  if (dispatcher->isRetired || !signature.bind(args, count, keywords) || !signature.specialise())
    return takeSlowWay(nullptr);
  Entry *known = findEntry(dispatcher, signature);
  if (!known)
    return takeSlowWay(&signature);
  EntryHolder held(known);
  if (!allHold(known->usual.checks)) {
    forgetEntry(dispatcher, held, signature.hash());
    return takeSlowWay(&signature);
  }
  noteChoice(dispatcher, *known);
  return Py_NewRef(known->choice ? known->choice.get() : known->usual.result.get());
}

/// Has Python see what this throws.
template <typename Call> PyObject *translateErrors(Call call) {
  try {
    return callPython(call);
  } catch (py::error_already_set &error) {
    error.restore();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject *callLaunch(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords) {
  return translateErrors([&] {
    return doLaunch(reinterpret_cast<Launch *>(self), args, PyVectorcall_NARGS(flags), keywords);
  });
}

PyObject *callFind(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
  return translateErrors([&] {
    return doFind(reinterpret_cast<Launch *>(self), args, static_cast<size_t>(count), keywords);
  });
}

// --- The two types --------------------------------------------------------------

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
  // An entry that a launch holds too counts once: its references are the table's, and
  // whoever launches has the dispatcher.
  if (self->entries)
    for (const auto &[hash, entry] : *self->entries)
      if (int stop = entry.get()->traverse(visit, arg))
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

PyTypeObject *launchType = nullptr;

/// The memory of a launch that is over: there is one, and then another, nearly always.
Launch *spareLaunch = nullptr;

/// dispatcher.bind(grid): what `kernel[grid]` is.
PyObject *bindGrid(PyObject *self, PyObject *grid) {
  Launch *launch = std::exchange(spareLaunch, nullptr);
  if (launch)
    PyObject_Init(reinterpret_cast<PyObject *>(launch), launchType);
  else
    launch = PyObject_GC_New(Launch, launchType);
  if (!launch)
    return nullptr;
  launch->vectorcall = callLaunch;
  Py_INCREF(self);
  launch->dispatcher = reinterpret_cast<Dispatcher *>(self);
  Py_INCREF(grid);
  launch->grid = grid;
  PyObject_GC_Track(launch);
  return reinterpret_cast<PyObject *>(launch);
}

// There is no tp_clear, as of tuples: a launch never changes, so that a circle through it has
// something else that does.
int traverseLaunch(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Launch *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dispatcher);
  Py_VISIT(self->grid);
  return 0;
}

void deallocLaunch(PyObject *object) {
  auto *self = reinterpret_cast<Launch *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->dispatcher);
  Py_XDECREF(self->grid);
  if (spareLaunch)
    type->tp_free(object);
  else
    spareLaunch = self;
  Py_DECREF(type);
}

// Launchable: what is launched by `self[grid]`, which is asked for at each launch.

PyTypeObject *dispatcherType = nullptr;

struct Launchable {
  PyObject_HEAD;
  PyObject *dispatcher;
  int64_t generation; ///< of when the dispatcher was found to be the way to launch it
};

PyObject *subscriptLaunchable(PyObject *object, PyObject *grid) {
  auto *self = reinterpret_cast<Launchable *>(object);
  if (self->dispatcher && Py_TYPE(self->dispatcher) == dispatcherType &&
      self->generation == static_cast<int64_t>(currentGeneration))
    return bindGrid(self->dispatcher, grid);
  static PyObject *name = PyUnicode_InternFromString("_slow_getitem");
  return callPython([&] { return PyObject_CallMethodOneArg(object, name, grid); });
}

int traverseLaunchable(PyObject *object, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(reinterpret_cast<Launchable *>(object)->dispatcher);
  return 0;
}

int clearLaunchable(PyObject *object) {
  Py_CLEAR(reinterpret_cast<Launchable *>(object)->dispatcher);
  return 0;
}

void deallocLaunchable(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clearLaunchable(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef launchableMembers[] = {
    {"_dispatcher", T_OBJECT, offsetof(Launchable, dispatcher), 0, "The dispatcher, or None."},
    {"_dispatcher_generation", T_LONGLONG, offsetof(Launchable, generation), 0,
     "What `generation` gave when `_dispatcher` was found to be the way to launch it; or -1."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot launchableSlots[] = {
    {Py_tp_doc, const_cast<char *>("A base for what is launched by `self[grid]`: by a method\n"
                                   "`_slow_getitem(grid)`, or by a dispatcher.")},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocLaunchable)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverseLaunchable)},
    {Py_tp_clear, reinterpret_cast<void *>(clearLaunchable)},
    {Py_mp_subscript, reinterpret_cast<void *>(subscriptLaunchable)},
    {Py_tp_members, launchableMembers},
    {0, nullptr}};
PyType_Spec launchableSpec = {"tessera._C.Launchable", sizeof(Launchable), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                              launchableSlots};

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

PyMemberDef launchMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launch, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef launchMethods[] = {
    {"find", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(callFind)),
     METH_FASTCALL | METH_KEYWORDS, "What a launch with these arguments would have."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot launchSlots[] = {{Py_tp_doc, const_cast<char *>("A kernel and a grid; call it.")},
                             {Py_tp_dealloc, reinterpret_cast<void *>(deallocLaunch)},
                             {Py_tp_traverse, reinterpret_cast<void *>(traverseLaunch)},
                             {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                             {Py_tp_members, launchMembers},
                             {Py_tp_methods, launchMethods},
                             {0, nullptr}};
PyType_Spec launchSpec = {"tessera._C.Launch", sizeof(Launch), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                          launchSlots};

} // namespace

void tessera::python::registerLaunch(py::module_ &module) {
  PyObject *dispatcher = PyType_FromSpec(&dispatcherSpec);
  PyObject *launch = PyType_FromSpec(&launchSpec);
  PyObject *launchable = PyType_FromSpec(&launchableSpec);
  if (!dispatcher || !launch || !launchable)
    throw py::error_already_set();
  dispatcherType = reinterpret_cast<PyTypeObject *>(dispatcher);
  launchType = reinterpret_cast<PyTypeObject *>(launch);
  module.add_object("Dispatcher", py::reinterpret_steal<py::object>(dispatcher));
  module.add_object("Launch", py::reinterpret_borrow<py::object>(launch));
  module.add_object("Launchable", py::reinterpret_steal<py::object>(launchable));
  module.def(
      "is_current", [](const py::tuple &checks) { return allHold(readChecks(checks.ptr())); },
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
  registerSignature(module);
}
