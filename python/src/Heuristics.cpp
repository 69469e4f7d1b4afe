// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches that fill in some arguments first. Functions of the others compute them (the base of
// tuning/heuristics.py), or a tuned kernel above heuristics finds them in its configuration.

#include "CallableType.h"
#include "Dispatcher.h"
#include "Interpreter.h"
#include "LaunchRecord.h"
#include "ObjectMembers.h"

#include <algorithm>
#include <utility>
#include <vector>

using namespace tessera::python;

namespace {

py::object steal(PyObject *object) {
  if (!object)
    throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

void setItem(const py::object &dictionary, PyObject *key, PyObject *value) {
  if (PyDict_SetItem(dictionary.ptr(), key, value) < 0)
    throw py::error_already_set();
}

/// The values that functions have computed, by name. There are few, so a dictionary would take
/// longer.
class Computed {
public:
  PyObject *find(PyObject *name) const {
    for (const auto &[known, value] : items)
      if (isSame(known.ptr(), name))
        return value.ptr();
    return nullptr;
  }
  void set(py::object name, py::object value) {
    for (auto &[known, old] : items)
      if (isSame(known.ptr(), name.ptr())) {
        std::swap(old, value); // what is released may run Python
        return;
      }
    if (items.empty())
      items.reserve(8);
    items.emplace_back(std::move(name), std::move(value));
  }
  auto begin() const { return items.begin(); }
  auto end() const { return items.end(); }
  size_t size() const { return items.size(); }

private:
  static bool isSame(PyObject *left, PyObject *right) {
    if (left == right)
      return true;
    return PyUnicode_Check(left) && PyUnicode_Check(right) && PyUnicode_Compare(left, right) == 0;
  }

  std::vector<std::pair<py::object, py::object>> items;
};

/// True if a dictionary, which may be null, has a name.
bool hasName(const py::object &dictionary, PyObject *name) {
  int found = dictionary ? PyDict_Contains(dictionary.ptr(), name) : 0;
  if (found < 0)
    throw py::error_already_set();
  return found != 0;
}

/// `kernel[grid](*call)` with the values of `computed` and of the dictionary `filled`, which may be
/// null. If several have a name, `computed` counts, then `filled`.
PyObject *launchWith(PyObject *kernel, PyObject *grid, const CallArguments &call,
                     const py::object &filled, const Computed &computed) {
  Py_ssize_t numGiven = call.keywords ? PyTuple_GET_SIZE(call.keywords) : 0;
  auto most = static_cast<size_t>(numGiven + (filled ? PyDict_GET_SIZE(filled.ptr()) : 0)) +
              computed.size();
  constexpr size_t kFew = 64;
  PyObject *few[kFew];
  std::vector<PyObject *> many(call.count + 2 * most > kFew ? call.count + 2 * most : 0);
  PyObject **names = many.empty() ? few : many.data(), **values = names + most;
  std::copy(call.args, call.args + call.count, values);
  size_t numNames = 0;
  auto add = [&](PyObject *name, PyObject *value) {
    values[call.count + numNames] = value;
    names[numNames++] = name;
  };
  for (Py_ssize_t i = 0; i < numGiven; ++i) {
    PyObject *name = PyTuple_GET_ITEM(call.keywords, i);
    if (!computed.find(name) && !hasName(filled, name))
      add(name, call.args[call.count + static_cast<size_t>(i)]);
  }
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; filled && PyDict_Next(filled.ptr(), &at, &name, &value);)
    if (!computed.find(name))
      add(name, value);
  for (const auto &[computedName, computedValue] : computed)
    add(computedName.ptr(), computedValue.ptr());
  py::object keywords = steal(PyTuple_New(static_cast<Py_ssize_t>(numNames)));
  for (size_t i = 0; i < numNames; ++i)
    PyTuple_SET_ITEM(keywords.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(names[i]));
  if (PyObject *dispatcher = findDispatcher(kernel)) {
    auto held = py::reinterpret_borrow<py::object>(dispatcher);
    return launchOver(dispatcher, Grid(grid), {values, call.count, keywords.ptr()});
  }
  py::object launch = steal(callPython([&] { return PyObject_GetItem(kernel, grid); }));
  return callPython(
      [&] { return PyObject_Vectorcall(launch.ptr(), values, call.count, keywords.ptr()); });
}

struct Heuristics {
  PyObject_HEAD;
  PyObject *fn;       ///< the kernel below
  PyObject *argNames; ///< a list
  PyObject *values;   ///< a mapping from names to functions
};

bool isPlainValue(PyObject *value) {
  return value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
         PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
}

PyObject *subscriptHeuristics(PyObject *object, PyObject *grid);

/// Null for a kernel of another type, and for one that defines `self[grid]` anew.
const Heuristics *asHeuristics(PyObject *kernel) {
  PyMappingMethods *methods = Py_TYPE(kernel)->tp_as_mapping;
  return methods && methods->mp_subscript == subscriptHeuristics
             ? reinterpret_cast<const Heuristics *>(kernel)
             : nullptr;
}

/// Adds the values of the heuristics to `computed`, and to `named`, which has all arguments. Each
/// function gets a copy of `named`, but the last one of all gets `named` itself.
void evaluate(const Heuristics *self, const py::object &named, Computed &computed,
              bool isLast = true) {
  auto object = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject *>(const_cast<Heuristics *>(self)));
  auto values = py::reinterpret_borrow<py::object>(self->values);
  if (!PyDict_CheckExact(values.ptr()))
    values = py::dict(values);
  PyObject *nextName = nullptr, *nextFunction = nullptr;
  Py_ssize_t numLeft = PyDict_GET_SIZE(values.ptr()) + (isLast ? 0 : 1);
  for (Py_ssize_t at = 0; PyDict_Next(values.ptr(), &at, &nextName, &nextFunction);) {
    // Held, since a function may change the dictionary.
    auto name = py::reinterpret_borrow<py::object>(nextName);
    auto function = py::reinterpret_borrow<py::object>(nextFunction);
    py::object arguments = --numLeft > 0 ? steal(PyDict_Copy(named.ptr())) : named;
    auto value = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_CallOneArg(function.ptr(), arguments.ptr()); }));
    if (!value) {
      py::error_already_set error;
      if (error.matches(PyExc_Exception))
        callPython([&] { return object.attr("_raise")(name, function, error.value()); });
      throw error;
    }
    if (!isPlainValue(value.ptr()))
      callPython([&] { return object.attr("_check")(name, function, value); });
    if (numLeft > 0)
      setItem(named, name.ptr(), value.ptr());
    computed.set(std::move(name), std::move(value));
  }
}

/// Adds the arguments that are passed by place to a dictionary.
void addByPlace(const Heuristics *self, PyObject *const *args, size_t count,
                const py::object &named) {
  py::object names = steal(PySequence_Fast(self->argNames, "`arg_names` is a list"));
  size_t known = std::min(count, static_cast<size_t>(PySequence_Fast_GET_SIZE(names.ptr())));
  for (size_t i = 0; i < known; ++i)
    setItem(named, PySequence_Fast_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i)), args[i]);
}

/// heuristics._evaluated(args, kwargs): `kwargs` with the values of the heuristics.
PyObject *evaluateForPython(PyObject *object, PyObject *arguments) {
  PyObject *args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs))
    return nullptr;
  return translateErrors([&] {
    auto *self = reinterpret_cast<Heuristics *>(object);
    py::object named = steal(PyDict_New()), results = steal(PyDict_Copy(kwargs));
    Computed computed;
    addByPlace(self, PySequence_Fast_ITEMS(args), static_cast<size_t>(PyTuple_GET_SIZE(args)),
               named);
    if (PyDict_Update(named.ptr(), kwargs) < 0)
      throw py::error_already_set();
    evaluate(self, named, computed);
    for (const auto &[name, value] : computed)
      setItem(results, name.ptr(), value.ptr());
    return results.release().ptr();
  });
}

/// A launch some of whose arguments are filled in first.
struct FilledLaunch {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  PyObject *owner;  ///< a Heuristics, or a tuned kernel (a Launchable)
  PyObject *finder; ///< the dispatcher of a tuned kernel, or null
  PyObject *grid;
};

using FilledLaunchMembers =
    ObjectMembers<FilledLaunch, &FilledLaunch::owner, &FilledLaunch::finder, &FilledLaunch::grid>;

PyTypeObject *filledLaunchType = nullptr;

/// Fills in the configuration that a tuned kernel has for these arguments, and then the values of
/// all heuristics below.
PyObject *callFilled(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  return translateErrors([&]() -> PyObject * {
    auto *self = reinterpret_cast<FilledLaunch *>(object);
    CallArguments call{args, static_cast<size_t>(PyVectorcall_NARGS(flags)), keywords};
    auto numNamed = static_cast<size_t>(keywords ? PyTuple_GET_SIZE(keywords) : 0);
    auto kernel = py::reinterpret_borrow<py::object>(self->owner);
    py::object filled;
    if (self->finder) {
      py::object record = findRecord(self->finder, call);
      if (!record) {
        static PyObject *name = PyUnicode_InternFromString("_find_and_launch");
        std::vector<PyObject *> all{self->owner, self->finder, self->grid};
        all.insert(all.end(), args, args + call.count + numNamed);
        return callPython(
            [&] { return PyObject_VectorcallMethod(name, all.data(), 3 + call.count, keywords); });
      }
      filled = py::reinterpret_borrow<py::object>(
          reinterpret_cast<const LaunchRecord *>(record.ptr())->options);
      kernel =
          py::reinterpret_borrow<py::object>(reinterpret_cast<Launchable *>(self->owner)->below);
    }
    Computed computed;
    if (const Heuristics *next = asHeuristics(kernel.ptr())) {
      py::object named = steal(filled ? PyDict_Copy(filled.ptr()) : PyDict_New());
      addByPlace(next, args, call.count, named);
      for (size_t i = 0; i < numNamed; ++i) {
        PyObject *name = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i));
        if (!hasName(filled, name))
          setItem(named, name, args[call.count + i]);
      }
      while (const Heuristics *heuristics = next) {
        auto below = py::reinterpret_borrow<py::object>(heuristics->fn);
        next = asHeuristics(below.ptr());
        evaluate(heuristics, named, computed, /*isLast=*/!next);
        kernel = std::move(below);
      }
    }
    return launchWith(kernel.ptr(), self->grid, call, filled, computed);
  });
}

/// The memory of a launch that is over, as in Launch.cpp.
FilledLaunch *spareFilledLaunch = nullptr;

PyObject *makeFilledLaunch(PyObject *owner, PyObject *finder, PyObject *grid) {
  FilledLaunch *made = std::exchange(spareFilledLaunch, nullptr);
  if (made)
    PyObject_Init(reinterpret_cast<PyObject *>(made), filledLaunchType);
  else
    made = PyObject_GC_New(FilledLaunch, filledLaunchType);
  if (!made)
    return nullptr;
  made->vectorcall = callFilled;
  made->owner = Py_NewRef(owner);
  made->finder = Py_XNewRef(finder);
  made->grid = Py_NewRef(grid);
  PyObject_GC_Track(made);
  return reinterpret_cast<PyObject *>(made);
}

void deallocFilledLaunch(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  FilledLaunchMembers::clear(object);
  if (spareFilledLaunch)
    type->tp_free(object);
  else
    spareFilledLaunch = reinterpret_cast<FilledLaunch *>(object);
  Py_DECREF(type);
}

PyObject *subscriptHeuristics(PyObject *object, PyObject *grid) {
  return makeFilledLaunch(object, nullptr, grid);
}

using HeuristicsMembers =
    ObjectMembers<Heuristics, &Heuristics::fn, &Heuristics::argNames, &Heuristics::values>;

PyMemberDef heuristicsMembers[] = {
    {"fn", T_OBJECT_EX, offsetof(Heuristics, fn), 0, "The kernel below."},
    {"arg_names", T_OBJECT_EX, offsetof(Heuristics, argNames), 0, "Its parameters' names."},
    {"values", T_OBJECT_EX, offsetof(Heuristics, values), 0, "The functions, by name."},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef heuristicsMethods[] = {
    {"_evaluated", evaluateForPython, METH_VARARGS,
     "_evaluated(args, kwargs): `kwargs` with the values of the heuristics."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot heuristicsSlots[] = {
    {Py_tp_doc,
     const_cast<char *>("A base of kernels some of whose arguments are computed. The subclass has\n"
                        "`_raise(name, function, error)` and `_check(name, function, value)`.")},
    {Py_tp_dealloc, reinterpret_cast<void *>(HeuristicsMembers::dealloc)},
    {Py_tp_traverse, reinterpret_cast<void *>(HeuristicsMembers::traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(HeuristicsMembers::clear)},
    {Py_mp_subscript, reinterpret_cast<void *>(subscriptHeuristics)},
    {Py_tp_members, heuristicsMembers},
    {Py_tp_methods, heuristicsMethods},
    {0, nullptr}};
PyType_Spec heuristicsSpec = {"tessera._C.Heuristics", sizeof(Heuristics), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                              heuristicsSlots};

} // namespace

PyObject *tessera::python::bindFinder(PyObject *owner, PyObject *grid) {
  return makeFilledLaunch(owner, reinterpret_cast<Launchable *>(owner)->dispatcher, grid);
}

void tessera::python::registerHeuristics(py::module_ &module) {
  filledLaunchType = addCallableType<FilledLaunch>(
      module, "tessera._C.FilledLaunch", "A launch some of whose arguments are filled in; call it.",
      {nullptr, deallocFilledLaunch, FilledLaunchMembers::traverse, nullptr});
  module.add_object("Heuristics", steal(PyType_FromSpec(&heuristicsSpec)));
}
