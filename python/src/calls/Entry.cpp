// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of operators (tessera/calls) that have been called before with arguments of the same kind.
//
// `Entry` is the base of the classes of operators. A class defines `__call__` in Python, which does
// every call, and finds a plan (CallPlan.h) for arguments of a kind. Once `learn` has a plan, calls
// by vectorcall look it up by the key of the arguments (CallKey.h) and do not run Python.
// `__call__` does all others: those with unknown keys, those that torch has to see, and those of
// Dynamo, which traces it.

#include "CallKey.h"
#include "CallPlan.h"
#include "TorchArrays.h"

#include "../ArgumentTypes.h"
#include "../Dispatcher.h"
#include "../NumPyArray.h"

#include <pybind11/stl.h>
#include <structmember.h>

#include <algorithm>
#include <array>

#include <unordered_map>
#include <utility>
#include <vector>

using namespace tessera::python;

namespace {

constexpr size_t kMaxPlans = 1024;
constexpr size_t kMaxArguments = 64;
constexpr size_t kNumSeen = 256;

/// True while a call is recorded on this thread: Python then does all calls.
thread_local bool isRecording = false;

struct Known {
  std::vector<int64_t> key;
  std::vector<py::object> named; ///< what the key has by address
  py::object plan;

  const CallPlan &getPlan() const { return *reinterpret_cast<const CallPlan *>(plan.ptr()); }
};

using Plans = std::unordered_multimap<size_t, Known>;

struct Entry {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  Plans *plans;
  const Known *last;
  /// The names of arguments whose values are parts of the key, interned, and their defaults.
  std::vector<std::pair<py::object, py::object>> *options;
  /// The names of parameters, interned, and their defaults (null: none). If `takesValues`,
  /// arguments are passed by place or by these names, and those that are no arrays are parts of the
  /// key. Otherwise they are passed by place.
  std::vector<std::pair<py::object, py::object>> *parameters;
  size_t numPositional;      ///< parameters that may be passed by place
  std::vector<size_t> *seen; ///< hashes of keys that were asked about; empty until the first
  bool takesValues;
  uint64_t constants;  ///< a bit for each argument whose value is part of the key
  bool takesOut;       ///< `out=` is an array that the result is written to
  bool ignoresLayouts; ///< plans are for arrays of a rank, with any extents
};

void forget(Entry *self) {
  // Taken out first: what is released may run Python.
  Plans plans;
  plans.swap(*self->plans);
  self->last = nullptr;
}

/// The arguments of a call in the order of the parameters.
class Placed {
public:
  /// False if an argument is missing or too much.
  bool place(const Entry *self, PyObject *const *given, size_t numGiven, PyObject *keywords);

  PyObject *const *args;
  size_t count;
  PyObject *keywords;

private:
  /// Adds the defaults of parameters behind the arguments. Arguments passed by name follow.
  bool addDefaults(const std::vector<std::pair<py::object, py::object>> &parameters,
                   PyObject *const *given, size_t numGiven, size_t numNamed);

  std::array<PyObject *, kMaxArguments> placed;
};

bool Placed::addDefaults(const std::vector<std::pair<py::object, py::object>> &parameters,
                         PyObject *const *given, size_t numGiven, size_t numNamed) {
  if (parameters.size() + numNamed > kMaxArguments)
    return false;
  std::copy(given, given + numGiven, placed.begin());
  for (size_t i = numGiven; i < parameters.size(); ++i) {
    placed[i] = parameters[i].second.ptr();
    if (!placed[i])
      return false;
  }
  std::copy(given + numGiven, given + numGiven + numNamed, placed.begin() + parameters.size());
  args = placed.data();
  count = parameters.size();
  return true;
}

bool Placed::place(const Entry *self, PyObject *const *given, size_t numGiven, PyObject *names) {
  args = given;
  count = numGiven;
  keywords = names;
  if (self->parameters->empty() && (!self->takesValues || !names))
    return true;
  const auto &parameters = *self->parameters;
  size_t numNamed = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0, numRead = 0;
  if (!self->takesValues)
    return numGiven >= parameters.size() || addDefaults(parameters, given, numGiven, numNamed);
  if (numGiven > self->numPositional || parameters.size() > kMaxArguments)
    return false;
  std::copy(given, given + numGiven, placed.begin());
  for (size_t i = numGiven; i < parameters.size(); ++i) {
    placed[i] = parameters[i].second.ptr();
    for (size_t at = 0; at < numNamed; ++at)
      if (PyTuple_GET_ITEM(names, at) == parameters[i].first.ptr()) {
        placed[i] = given[numGiven + at];
        ++numRead;
      }
    if (!placed[i])
      return false;
  }
  args = placed.data();
  count = parameters.size();
  keywords = nullptr;
  return numRead == numNamed;
}

/// Reads the arguments of a call, and where its result is to go, or null. False if no plan is for
/// them.
bool readKey(const Entry *self, PyObject *const *args, size_t count, PyObject *keywords,
             CallKey &key, PyObject *&out) {
  if (self->takesValues)
    return std::all_of(args, args + count,
                       [&](PyObject *each) { return key.addArrayOrOption(each); });
  for (size_t i = 0; i < count; ++i) {
    bool isConstant = i < 64 && (self->constants >> i & 1);
    if (isConstant ? !key.addOption(args[i]) : !key.add(args[i]))
      return false;
  }
  Py_ssize_t numNamed = keywords ? PyTuple_GET_SIZE(keywords) : 0, numRead = 0;
  for (const auto &[name, usual] : *self->options) {
    PyObject *value = usual.ptr();
    for (Py_ssize_t i = 0; i < numNamed; ++i)
      if (PyTuple_GET_ITEM(keywords, i) == name.ptr()) {
        value = args[count + static_cast<size_t>(i)];
        ++numRead;
      }
    if (!key.addOption(value))
      return false;
  }
  static PyObject *const outName = PyUnicode_InternFromString("out");
  for (Py_ssize_t i = 0; self->takesOut && i < numNamed; ++i)
    if (PyTuple_GET_ITEM(keywords, i) == outName) {
      ++numRead;
      if (args[count + static_cast<size_t>(i)] == Py_None)
        continue; // as a call without it
      out = args[count + static_cast<size_t>(i)];
      key.beginOut();
      if (!key.add(out))
        return false;
    }
  return numRead == numNamed;
}

const Known *findKnown(Entry *self, const CallKey &key) {
  if (self->last && key.equals(self->last->key))
    return self->last;
  auto [begin, end] = self->plans->equal_range(key.hash());
  for (auto at = begin; at != end; ++at)
    if (key.equals(at->second.key))
      return self->last = &at->second;
  return nullptr;
}

/// Does a call by its plan. Null without an exception if Python has to do it.
PyObject *callKnown(Entry *self, PyObject *const *given, size_t numGiven, PyObject *keywords) {
  CallKey key(!self->ignoresLayouts);
  PyObject *out = nullptr;
  Placed placed;
  if (self->plans->empty() || isRecording || !placed.place(self, given, numGiven, keywords))
    return nullptr;
  PyObject *const *args = placed.args;
  size_t count = placed.count;
  if (!readKey(self, args, count, placed.keywords, key, out))
    return nullptr;
  const Known *known = findKnown(self, key);
  if (!known)
    return nullptr;
  // Held from here on: another thread may forget the plans while Python answers.
  py::object held = known->plan;
  const CallPlan &plan = known->getPlan();
  if ((key.hasTorch() && !torchArrays().isQuiet()) || !plan.isCurrent())
    return nullptr;
  if (!plan.hasGradient() || !torchArrays().isGradEnabled())
    return plan.run(args, count, out);
  if (count > kMaxArguments || plan.apply == Py_NotImplemented || out)
    return nullptr;
  if (plan.isFunction)
    return callPython([&] { return PyObject_Vectorcall(plan.apply, args, count, nullptr); });
  std::array<PyObject *, kMaxArguments + 1> values;
  values[0] = held.ptr();
  std::copy(args, args + count, values.begin() + 1);
  return callPython(
      [&] { return PyObject_Vectorcall(plan.apply, values.data(), count + 1, nullptr); });
}

PyObject *callEntry(PyObject *object, PyObject *const *args, size_t flags, PyObject *keywords) {
  auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  return translateErrors([&]() -> PyObject * {
    PyObject *result = callKnown(reinterpret_cast<Entry *>(object), args, count, keywords);
    if (result || PyErr_Occurred())
      return result;
    if (Py_TYPE(object)->tp_call == PyVectorcall_Call)
      throw py::type_error("a class of operators defines __call__");
    py::tuple positional(count);
    for (size_t i = 0; i < count; ++i)
      positional[i] = py::reinterpret_borrow<py::object>(args[i]);
    py::object named;
    if (keywords) {
      named = py::dict();
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i)
        if (PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(keywords, i),
                           args[count + static_cast<size_t>(i)]) < 0)
          return nullptr;
    }
    return callPython(
        [&] { return Py_TYPE(object)->tp_call(object, positional.ptr(), named.ptr()); });
  });
}

/// learn(plan, *args, **options)
PyObject *learn(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
  auto *self = reinterpret_cast<Entry *>(object);
  return translateErrors([&]() -> PyObject * {
    if (count < 1 || Py_TYPE(args[0]) != callPlanType)
      throw py::type_error("the first argument is a CallPlan");
    CallKey key(!self->ignoresLayouts);
    PyObject *out = nullptr;
    Placed placed;
    if (!placed.place(self, args + 1, static_cast<size_t>(count - 1), keywords) ||
        !readKey(self, placed.args, placed.count, placed.keywords, key, out))
      Py_RETURN_FALSE;
    if (const Known *known = findKnown(self, key)) {
      const_cast<Known *>(known)->plan = py::reinterpret_borrow<py::object>(args[0]);
      Py_RETURN_TRUE;
    }
    Known known{key.copy(), {}, py::reinterpret_borrow<py::object>(args[0])};
    auto nameDType = [&](PyObject *array) {
      PyObject *dtype = getNumPyDType(array);
      TorchFacts facts;
      if (dtype)
        known.named.push_back(py::reinterpret_borrow<py::object>(dtype));
      else if (cupyClass && Py_TYPE(array) == cupyClass)
        known.named.push_back(getAttribute(array, names().dtype));
      else if (self->takesValues && !torchArrays().read(array, facts))
        known.named.push_back(py::reinterpret_borrow<py::object>(array));
    };
    std::for_each(placed.args, placed.args + placed.count, nameDType);
    if (out)
      nameDType(out);
    if (self->plans->size() >= kMaxPlans)
      forget(self);
    self->plans->emplace(key.hash(), std::move(known));
    Py_RETURN_TRUE;
  });
}

/// Declares options: pairs of a name and a default.
PyObject *declareOptions(PyObject *object, PyObject *pairs) {
  return translateErrors([&]() -> PyObject * {
    auto *self = reinterpret_cast<Entry *>(object);
    forget(self);
    self->options->clear();
    for (py::handle each : py::reinterpret_borrow<py::object>(pairs)) {
      auto pair = each.cast<py::tuple>();
      PyObject *name = py::str(pair[0]).release().ptr();
      PyUnicode_InternInPlace(&name);
      self->options->emplace_back(py::reinterpret_steal<py::object>(name), pair[1]);
    }
    Py_RETURN_NONE;
  });
}

PyObject *declareConstants(PyObject *object, PyObject *places) {
  return translateErrors([&]() -> PyObject * {
    auto *self = reinterpret_cast<Entry *>(object);
    forget(self);
    self->constants = 0;
    for (py::handle each : py::reinterpret_borrow<py::object>(places)) {
      auto place = each.cast<size_t>();
      if (place >= 64)
        throw py::value_error("constants are among the first 64 arguments");
      self->constants |= uint64_t(1) << place;
    }
    Py_RETURN_NONE;
  });
}

PyObject *declareParameters(PyObject *object, PyObject *parameters, bool takesValues) {
  return translateErrors([&]() -> PyObject * {
    auto *self = reinterpret_cast<Entry *>(object);
    forget(self);
    self->parameters->clear();
    self->takesValues = takesValues;
    self->numPositional = 0;
    for (py::handle each : py::reinterpret_borrow<py::object>(parameters)) {
      auto pair = each.cast<py::tuple>();
      auto usual = pair[1].cast<py::tuple>();
      PyObject *name = py::str(pair[0]).release().ptr();
      PyUnicode_InternInPlace(&name);
      self->parameters->emplace_back(py::reinterpret_steal<py::object>(name),
                                     usual.empty() ? py::object() : py::object(usual[0]));
      if (pair.size() < 3 || pair[2].cast<bool>())
        self->numPositional = self->parameters->size();
    }
    Py_RETURN_NONE;
  });
}

/// Declares the parameters. A parameter is a name, a tuple of its default, which may be empty, and
/// whether it may be passed by place. All arguments that are no arrays are parts of the key.
PyObject *declareValues(PyObject *object, PyObject *parameters) {
  return declareParameters(object, parameters, /*takesValues=*/true);
}

/// Declares the parameters, which are passed by place. A parameter is a name and a tuple of its
/// default, which may be empty.
PyObject *declareDefaults(PyObject *object, PyObject *parameters) {
  return declareParameters(object, parameters, /*takesValues=*/false);
}

/// is_repeated(*args, **named): whether there was such a call with arguments of this key.
PyObject *isRepeated(PyObject *object, PyObject *const *args, Py_ssize_t count,
                     PyObject *keywords) {
  return translateErrors([&]() -> PyObject * {
    auto *self = reinterpret_cast<Entry *>(object);
    CallKey key(!self->ignoresLayouts);
    PyObject *out = nullptr;
    Placed placed;
    if (!placed.place(self, args, static_cast<size_t>(count), keywords) ||
        !readKey(self, placed.args, placed.count, placed.keywords, key, out) ||
        findKnown(self, key))
      Py_RETURN_FALSE;
    self->seen->resize(kNumSeen);
    size_t hash = key.hash(), &last = (*self->seen)[hash % kNumSeen];
    bool isRepeated = last == hash;
    if (last != ~hash)
      last = hash;
    return PyBool_FromLong(isRepeated);
  });
}

/// stop(*args, **named): has is_repeated be false for such arguments.
PyObject *stop(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
  return translateErrors([&]() -> PyObject * {
    auto *self = reinterpret_cast<Entry *>(object);
    CallKey key(!self->ignoresLayouts);
    PyObject *out = nullptr;
    Placed placed;
    if (placed.place(self, args, static_cast<size_t>(count), keywords) &&
        readKey(self, placed.args, placed.count, placed.keywords, key, out)) {
      self->seen->resize(kNumSeen);
      (*self->seen)[key.hash() % kNumSeen] = ~key.hash();
    }
    Py_RETURN_NONE;
  });
}

PyObject *takeOut(PyObject *object, PyObject *) {
  forget(reinterpret_cast<Entry *>(object));
  reinterpret_cast<Entry *>(object)->takesOut = true;
  Py_RETURN_NONE;
}

PyObject *ignoreLayouts(PyObject *object, PyObject *) {
  forget(reinterpret_cast<Entry *>(object));
  reinterpret_cast<Entry *>(object)->ignoresLayouts = true;
  Py_RETURN_NONE;
}

PyObject *forgetPlans(PyObject *object, PyObject *) {
  auto *self = reinterpret_cast<Entry *>(object);
  forget(self);
  self->seen->clear(); // what was stopped may have a plan now
  Py_RETURN_NONE;
}

PyTypeObject *entryType = nullptr;

/// Has calls of objects of a new class look plans up first. CPython calls `__call__` of a class
/// that defines one, unless the class has this flag. A class that replaces the `__call__` of
/// another class of operators does not get it: plans do the calls of that one.
PyObject *initialiseSubclass(PyObject *object, PyObject *const *, Py_ssize_t, PyObject *) {
  static PyObject *const name = PyUnicode_InternFromString("__call__");
  auto *cls = reinterpret_cast<PyTypeObject *>(object);
  int numCalls = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls->tp_mro); ++i) {
    auto *base = reinterpret_cast<PyTypeObject *>(PyTuple_GET_ITEM(cls->tp_mro, i));
    if (base == entryType)
      break;
    int isDefined = base->tp_dict ? PyDict_Contains(base->tp_dict, name) : 0;
    if (isDefined < 0)
      return nullptr;
    numCalls += isDefined;
  }
  if (numCalls <= 1)
    cls->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  else
    cls->tp_flags &= ~static_cast<unsigned long>(Py_TPFLAGS_HAVE_VECTORCALL);
  Py_RETURN_NONE;
}

PyObject *newEntry(PyTypeObject *type, PyObject *, PyObject *) {
  auto *self = reinterpret_cast<Entry *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->vectorcall = callEntry;
  self->plans = new Plans;
  self->options = new std::vector<std::pair<py::object, py::object>>;
  self->parameters = new std::vector<std::pair<py::object, py::object>>;
  self->seen = new std::vector<size_t>;
  return reinterpret_cast<PyObject *>(self);
}

int traverseEntry(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Entry *>(object);
  Py_VISIT(Py_TYPE(object));
  if (self->options)
    for (const auto &[name, usual] : *self->options)
      Py_VISIT(usual.ptr());
  if (self->parameters)
    for (const auto &[name, usual] : *self->parameters)
      Py_VISIT(usual.ptr());
  if (self->plans)
    for (const auto &[hash, known] : *self->plans) {
      Py_VISIT(known.plan.ptr());
      for (const py::object &each : known.named)
        Py_VISIT(each.ptr());
    }
  return 0;
}

int clearEntry(PyObject *object) {
  auto *self = reinterpret_cast<Entry *>(object);
  if (self->plans)
    forget(self);
  return 0;
}

void deallocEntry(PyObject *object) {
  auto *self = reinterpret_cast<Entry *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clearEntry(object);
  delete self->plans;
  delete self->options;
  delete self->parameters;
  delete self->seen;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef entryMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef entryMethods[] = {
    {"_learn", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(learn)),
     METH_FASTCALL | METH_KEYWORDS,
     "_learn(plan, *args, **options): do calls with such arguments by a CallPlan. False if the\n"
     "arguments are of no kind that can be recognised."},
    {"_declare_options", declareOptions, METH_O,
     "_declare_options(pairs): what a plan is for depends on the values of arguments of these\n"
     "names, each with its default. Forgets all plans."},
    {"_declare_constants", declareConstants, METH_O,
     "_declare_constants(places): what a plan is for depends on the values of these arguments.\n"
     "Forgets all plans."},
    {"_declare_defaults", declareDefaults, METH_O,
     "_declare_defaults(parameters): calls may leave out the last arguments. A parameter is a "
     "name\n"
     "and a tuple of its default. Forgets all plans."},
    {"_declare_parameters", declareValues, METH_O,
     "_declare_parameters(parameters): each argument is an array, or a value on which a plan\n"
     "depends. A parameter is a name, a tuple of its default, and whether it may be passed by\n"
     "place. Forgets all plans."},
    {"_is_repeated", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(isRepeated)),
     METH_FASTCALL | METH_KEYWORDS,
     "_is_repeated(*args, **named): True if this was asked of such arguments before, and there\n"
     "is no plan for them. A bounded table may forget some."},
    {"_stop", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(stop)),
     METH_FASTCALL | METH_KEYWORDS,
     "_stop(*args, **named): have _is_repeated be False for such arguments."},
    {"_take_out", takeOut, METH_NOARGS,
     "Have plans be for calls with `out=` an array, too. Forgets all plans."},
    {"_ignore_layouts", ignoreLayouts, METH_NOARGS,
     "Have plans be for arrays of a rank, with any extents and strides. Forgets all plans."},
    {"_forget", forgetPlans, METH_NOARGS, "Forget all plans, and what was stopped."},
    {"__init_subclass__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(initialiseSubclass)),
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS, "Has calls of objects look up plans first."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot entrySlots[] = {
    {Py_tp_doc, const_cast<char *>("A base of operators that are called, by `__call__` or by a\n"
                                   "plan that was learned.")},
    {Py_tp_new, reinterpret_cast<void *>(newEntry)},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocEntry)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverseEntry)},
    {Py_tp_clear, reinterpret_cast<void *>(clearEntry)},
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_members, entryMembers},
    {Py_tp_methods, entryMethods},
    {0, nullptr}};
PyType_Spec entrySpec = {"tessera._C.Entry", sizeof(Entry), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                             Py_TPFLAGS_HAVE_VECTORCALL,
                         entrySlots};

} // namespace

void tessera::python::registerEntry(py::module_ &module) {
  registerCallPlan(module);
  PyObject *entry = PyType_FromSpec(&entrySpec);
  if (!entry)
    throw py::error_already_set();
  entryType = reinterpret_cast<PyTypeObject *>(entry);
  module.add_object("Entry", py::reinterpret_steal<py::object>(entry));
  module.def(
      "set_recording", [](bool isOn) { return std::exchange(isRecording, isOn); }, py::arg("is_on"),
      "Have Python do all calls on this thread, or not. Returns whether it did.");
  module.def(
      "learn_cupy_class",
      [](const py::type &cls) {
        PyTypeObject *known = cupyClass;
        cupyClass = reinterpret_cast<PyTypeObject *>(Py_NewRef(cls.ptr()));
        Py_XDECREF(known);
      },
      py::arg("cls"), "Have operators read arrays of exactly this class as CuPy's.");
  module.def(
      "learn_torch_calls",
      [](const std::vector<py::type> &classes, const py::object &requiresGrad,
         std::vector<QuietAnswer> answers, std::vector<QuietValue> values) {
        return torchArrays().learn(classes, requiresGrad, std::move(answers), std::move(values));
      },
      py::arg("classes"), py::arg("requires_grad"), py::arg("answers"), py::arg("values"),
      "Have operators read tensors of exactly these classes, as long as nothing in torch watches\n"
      "calls: as long as each function of `answers` returns what it is paired with, and each\n"
      "(dictionary, name, value) of `values` holds. False if torch lacks the functions for it.");
}
