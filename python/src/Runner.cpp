// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches by other compilers' launchers, TorchInductor's among them (runtime/runner.py), and such
// launches once more without the Python that is around them.
//
// A launcher is a Python function of a kernel's arguments. It computes the grid from some of the
// numbers among them, inserts the constants, and calls `kernel.run`. For CPUs that is a Runner. For
// GPUs it is often a function of torch's own, which a NotedRun wraps here. Before the launcher,
// Inductor asks for hooks and profilers. All this takes three times as long as the launch. A
// RepeatedRun replaces all of it. While there are no hooks and those numbers are equal to the last
// launch's, the grid is equal, too. Then it calls the Runner or the wrapped function itself.

#include "CallableType.h"
#include "Checks.h"
#include "Dispatcher.h"
#include "ObjectMembers.h"

#include <algorithm>
#include <array>
#include <vector>

using namespace tessera::python;

namespace {

/// So many arguments of a kernel can be launched from here.
constexpr size_t kMaxArguments = 256;

/// So many arguments precede a kernel's: three extents, the stream, the launcher's own.
constexpr size_t kNumOwn = 9;

PyObject *takeNone(PyObject *result) {
  if (!result)
    return nullptr;
  Py_DECREF(result);
  Py_RETURN_NONE;
}

/// Calls what is not done here, with the same arguments.
PyObject *forward(PyObject *callable, PyObject *const *args, size_t count, PyObject *keywords) {
  return callPython([&] { return PyObject_Vectorcall(callable, args, count, keywords); });
}

PyTypeObject *runnerType = nullptr;

/// `kernel.run` of a kernel for CPUs.
struct Runner {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  PyObject *dispatcher;
  PyObject *slow;         ///< the same in Python, which tells hooks
  PyObject *fixedThreads; ///< the setting: how many threads, or 0
  PyObject *askThreads;   ///< how many else: torch's, or 0 for our own default
  uint64_t generation;    ///< of when the setting was asked
  PyObject *setting;      ///< what it was, a number; null if it was 0
};

/// The last launch by a Runner or a NotedRun on this thread.
struct LastRun {
  const void *runner = nullptr;
  int32_t extents[3] = {};

  void note(const void *newRunner, const int32_t (&newExtents)[3]) {
    runner = newRunner;
    std::copy(newExtents, newExtents + 3, extents);
  }
};
thread_local LastRun lastRun;

/// False unless the first three arguments are a grid of plain integers.
bool readExtents(PyObject *const *args, int32_t (&extents)[3]) {
  for (size_t i = 0; i < 3; ++i) {
    int overflow = 0;
    int64_t extent =
        PyLong_CheckExact(args[i]) ? PyLong_AsLongLongAndOverflow(args[i], &overflow) : -1;
    if (extent < 0 || extent > INT32_MAX)
      return false;
    extents[i] = static_cast<int32_t>(extent);
  }
  return true;
}

/// A new reference to the number of threads, or null with an exception.
PyObject *findNumThreads(Runner *self) {
  if (self->generation != currentGeneration) {
    uint64_t now = currentGeneration; // of before it is asked: what changes meanwhile is seen
    PyObject *setting = callPython([&] { return PyObject_CallNoArgs(self->fixedThreads); });
    if (!setting)
      return nullptr;
    bool isFixed = PyObject_IsTrue(setting) == 1;
    Py_XSETREF(self->setting, isFixed ? Py_NewRef(setting) : nullptr);
    Py_DECREF(setting);
    self->generation = now;
  }
  if (self->setting)
    return Py_NewRef(self->setting);
  return callPython([&] { return PyObject_CallNoArgs(self->askThreads); });
}

/// Launches with these values, one a parameter, behind which there is room for one more.
PyObject *run(Runner *self, const int32_t (&extents)[3], PyObject **values, size_t count) {
  static PyObject *keywords = [] {
    PyObject *name = PyUnicode_InternFromString("num_threads");
    return name ? PyTuple_Pack(1, name) : nullptr;
  }();
  py::object numThreads = py::reinterpret_steal<py::object>(findNumThreads(self));
  if (!numThreads || !keywords)
    return nullptr;
  values[count] = numThreads.ptr();
  PyObject *result = launchOver(self->dispatcher, Grid(extents), {values, count, keywords});
  if (result)
    lastRun.note(self, extents);
  return takeNone(result);
}

PyObject *callRunner(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  auto *self = reinterpret_cast<Runner *>(object);
  size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  return translateErrors([&] {
    int32_t extents[3];
    std::array<PyObject *, kMaxArguments + 1> values;
    if (keywords || count < kNumOwn || count - kNumOwn > kMaxArguments ||
        !readExtents(args, extents) || hasLaunchHooks())
      return forward(self->slow, args, count, keywords);
    std::copy(args + kNumOwn, args + count, values.begin());
    return run(self, extents, values.data(), count - kNumOwn);
  });
}

PyObject *newRunner(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *dispatcher = nullptr, *slow = nullptr, *fixedThreads = nullptr, *askThreads = nullptr;
  if (!PyArg_ParseTuple(args, "O!OOO", dispatcherType, &dispatcher, &slow, &fixedThreads,
                        &askThreads))
    return nullptr;
  auto *self = reinterpret_cast<Runner *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->vectorcall = callRunner;
  self->dispatcher = Py_NewRef(dispatcher);
  self->slow = Py_NewRef(slow);
  self->fixedThreads = Py_NewRef(fixedThreads);
  self->askThreads = Py_NewRef(askThreads);
  self->generation = ~uint64_t(0);
  return reinterpret_cast<PyObject *>(self);
}

using RunnerMembers = ObjectMembers<Runner, &Runner::dispatcher, &Runner::slow,
                                    &Runner::fixedThreads, &Runner::askThreads, &Runner::setting>;

PyTypeObject *notedType = nullptr;

/// Calls something that a launcher would call, and notes the grid: its first three arguments, of
/// which the fourth is the stream.
struct NotedRun {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  PyObject *target;
};

PyObject *callNoted(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  auto *self = reinterpret_cast<NotedRun *>(object);
  size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  PyObject *result = forward(self->target, args, count, keywords);
  int32_t extents[3];
  if (result && count > 3 && readExtents(args, extents))
    lastRun.note(self, extents);
  return result;
}

PyObject *newNoted(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *target = nullptr;
  if (!PyArg_ParseTuple(args, "O", &target))
    return nullptr;
  auto *self = reinterpret_cast<NotedRun *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->vectorcall = callNoted;
  self->target = Py_NewRef(target);
  return reinterpret_cast<PyObject *>(self);
}

using NotedMembers = ObjectMembers<NotedRun, &NotedRun::target>;

/// A launch by another object at the same address is none of the one that is gone.
template <typename Members> void deallocRun(PyObject *object) {
  if (lastRun.runner == object)
    lastRun.runner = nullptr;
  Members::dealloc(object);
}

/// Where a value that a launcher passes on comes from.
struct Source {
  Py_ssize_t place;   ///< that of an argument of the launcher, or -1
  PyObject *constant; ///< borrowed from the tuple that says so; null if it has a place
};

struct RepeatedRun {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  PyObject *slow;     ///< what this stands for
  PyObject *launcher; ///< what that calls where nobody watches
  PyObject *runner;   ///< what the launcher calls, a Runner or a NotedRun
  PyObject *read;     ///< the tuple that has what is checked
  PyObject *given;    ///< the tuple that `sources` was read from
  Checks *checks;
  std::vector<Source> *sources;
  std::vector<Py_ssize_t> *numbers; ///< the places of arguments that decide the grid
  std::vector<PyObject *> *last;    ///< what they were
  bool hasLast;                     ///< whether there was a launch
  size_t numArguments;              ///< of the launcher, without the stream
  int32_t extents[3];               ///< the grid of the last launch
};

/// True if the keywords are `stream` alone.
bool isStream(PyObject *keywords) {
  static PyObject *name = PyUnicode_InternFromString("stream");
  if (!keywords || PyTuple_GET_SIZE(keywords) != 1)
    return false;
  PyObject *given = PyTuple_GET_ITEM(keywords, 0);
  return given == name || PyUnicode_Compare(given, name) == 0;
}

/// True if two arguments are one number. Only integers are compared by value.
bool isSame(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (!PyLong_CheckExact(a) || !PyLong_CheckExact(b))
    return false;
  int overflow = 0, otherOverflow = 0;
  long long first = PyLong_AsLongLongAndOverflow(a, &overflow);
  long long second = PyLong_AsLongLongAndOverflow(b, &otherOverflow);
  return !overflow && !otherOverflow && first == second;
}

void forgetLast(RepeatedRun *self) {
  std::vector<PyObject *> dropped;
  dropped.swap(*self->last); // taken out first: what is released may run Python
  self->hasLast = false;
  for (PyObject *object : dropped)
    Py_DECREF(object);
}

/// Launches over the grid of the last launch. Behind the arguments comes the stream.
PyObject *runAgain(const RepeatedRun *self, PyObject *const *args) {
  // Three extents and the stream, if the runner is not ours; values; room for one more.
  std::array<PyObject *, 4 + kMaxArguments + 1> values;
  PyObject **own = values.data() + 4;
  size_t count = self->sources->size();
  std::transform(self->sources->begin(), self->sources->end(), own, [&](const Source &source) {
    return source.constant ? source.constant : args[source.place];
  });
  int32_t extents[3];
  std::copy(self->extents, self->extents + 3, extents);
  if (Py_TYPE(self->runner) == runnerType)
    return run(reinterpret_cast<Runner *>(self->runner), extents, own, count);
  std::array<py::object, 3> grid;
  for (size_t i = 0; i < 3; ++i) {
    grid[i] = py::reinterpret_steal<py::object>(PyLong_FromLong(extents[i]));
    if (!grid[i])
      return nullptr;
    values[i] = grid[i].ptr();
  }
  values[3] = args[self->numArguments];
  return takeNone(forward(reinterpret_cast<NotedRun *>(self->runner)->target, values.data(),
                          count + 4, nullptr));
}

PyObject *callRepeated(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  auto *self = reinterpret_cast<RepeatedRun *>(object);
  size_t count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  return translateErrors([&] {
    // Somebody else may forget this while a check or the kernel runs.
    py::object held = py::reinterpret_borrow<py::object>(object);
    if (count != self->numArguments || !isStream(keywords) || hasLaunchHooks() ||
        !self->checks->hold())
      return forward(self->slow, args, count, keywords);
    const std::vector<Py_ssize_t> &numbers = *self->numbers;
    bool isRepeated = self->hasLast;
    for (size_t i = 0; isRepeated && i < numbers.size(); ++i)
      isRepeated = isSame((*self->last)[i], args[numbers[i]]);
    if (isRepeated)
      return runAgain(self, args);
    lastRun.runner = nullptr;
    PyObject *result = forward(self->launcher, args, count, keywords);
    if (result && lastRun.runner == self->runner) {
      forgetLast(self);
      std::copy(lastRun.extents, lastRun.extents + 3, self->extents);
      for (Py_ssize_t place : numbers)
        self->last->push_back(Py_NewRef(args[place]));
      self->hasLast = true;
    }
    return result;
  });
}

/// RepeatedRun(slow, launcher, runner, checks, sources, numbers, count)
PyObject *newRepeated(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *slow = nullptr, *launcher = nullptr, *runner = nullptr;
  PyObject *checks = nullptr, *sources = nullptr, *numbers = nullptr;
  Py_ssize_t count = 0;
  if (!PyArg_ParseTuple(args, "OOOO!O!O!n", &slow, &launcher, &runner, &PyTuple_Type, &checks,
                        &PyTuple_Type, &sources, &PyTuple_Type, &numbers, &count))
    return nullptr;
  if (Py_TYPE(runner) != runnerType && Py_TYPE(runner) != notedType) {
    PyErr_SetString(PyExc_TypeError, "the runner is neither a Runner nor a NotedRun");
    return nullptr;
  }
  if (PyTuple_GET_SIZE(sources) > Py_ssize_t(kMaxArguments)) {
    PyErr_SetString(PyExc_ValueError, "too many arguments for the fast path");
    return nullptr;
  }
  auto readPlace = [&](PyObject *place) {
    Py_ssize_t value = PyLong_AsSsize_t(place);
    if (!PyErr_Occurred() && (value < 0 || value >= count))
      PyErr_SetString(PyExc_ValueError, "there is no argument of that place");
    return value;
  };
  py::object made = py::reinterpret_steal<py::object>(type->tp_alloc(type, 0));
  if (!made)
    return nullptr;
  auto *self = reinterpret_cast<RepeatedRun *>(made.ptr());
  self->vectorcall = callRepeated;
  self->slow = Py_NewRef(slow);
  self->launcher = Py_NewRef(launcher);
  self->runner = Py_NewRef(runner);
  self->read = Py_NewRef(checks);
  self->given = Py_NewRef(sources);
  self->numArguments = static_cast<size_t>(count);
  self->checks = new Checks;
  self->sources = new std::vector<Source>;
  self->numbers = new std::vector<Py_ssize_t>;
  self->last = new std::vector<PyObject *>;
  return translateErrors([&]() -> PyObject * {
    *self->checks = Checks(checks);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); ++i) {
      // The place of an argument, or a constant in a tuple.
      PyObject *source = PyTuple_GET_ITEM(sources, i);
      if (PyTuple_Check(source) && PyTuple_GET_SIZE(source) == 1)
        self->sources->push_back({-1, PyTuple_GET_ITEM(source, 0)});
      else
        self->sources->push_back({readPlace(source), nullptr});
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); ++i)
      self->numbers->push_back(readPlace(PyTuple_GET_ITEM(numbers, i)));
    return PyErr_Occurred() ? nullptr : made.release().ptr();
  });
}

using RepeatedMembers =
    ObjectMembers<RepeatedRun, &RepeatedRun::slow, &RepeatedRun::launcher, &RepeatedRun::runner,
                  &RepeatedRun::read, &RepeatedRun::given>;

int traverseRepeated(PyObject *object, visitproc visit, void *arg) {
  if (const auto *last = reinterpret_cast<RepeatedRun *>(object)->last)
    for (PyObject *number : *last)
      Py_VISIT(number);
  return RepeatedMembers::traverse(object, visit, arg);
}

void deallocRepeated(PyObject *object) {
  auto *self = reinterpret_cast<RepeatedRun *>(object);
  PyObject_GC_UnTrack(object);
  if (self->last)
    forgetLast(self);
  delete self->checks;
  delete self->sources;
  delete self->numbers;
  delete self->last;
  RepeatedMembers::dealloc(object);
}

} // namespace

void tessera::python::registerRunner(py::module_ &module) {
  runnerType =
      addCallableType<Runner>(module, "tessera._C.Runner",
                              "Runner(dispatcher, slow, fixed_threads, threads): launches as\n"
                              "generated launchers spell them (runtime/runner.py).",
                              {newRunner, deallocRun<RunnerMembers>, RunnerMembers::traverse});
  notedType =
      addCallableType<NotedRun>(module, "tessera._C.NotedRun",
                                "NotedRun(target): calls target(x, y, z, stream, *values) and\n"
                                "notes the grid for a RepeatedRun.",
                                {newNoted, deallocRun<NotedMembers>, NotedMembers::traverse});
  addCallableType<RepeatedRun>(
      module, "tessera._C.RepeatedRun",
      "RepeatedRun(slow, launcher, runner, checks, sources, numbers, count):\n"
      "slow(*args, stream=...), of `count` arguments, which calls\n"
      "launcher(*args, stream=...) while all checks hold, which calls the runner\n"
      "over a grid that the arguments at `numbers` decide, with `sources`: the\n"
      "place of an argument, or a constant in a tuple. The runner is a Runner, or\n"
      "a NotedRun, for which the sources are all that follows the stream.",
      {newRepeated, deallocRepeated, traverseRepeated});
}
