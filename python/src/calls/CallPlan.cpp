// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallPlan.h"

#include "../Dispatcher.h"
#include "../NumPyArray.h"

#include <structmember.h>

#include <algorithm>
#include <array>

using namespace tessera::python;

PyTypeObject *tessera::python::callPlanType = nullptr;

namespace {

/// Arguments, results, the rest and launch options together.
constexpr size_t kMaxValues = 128;

/// References to a few objects.
class References {
public:
  References() = default;
  References(const References &) = delete;
  References &operator=(const References &) = delete;
  ~References() {
    for (size_t i = 0; i < count; ++i)
      Py_DECREF(objects[i]);
  }
  /// Takes the reference to an object, which may be null.
  PyObject *take(PyObject *object) {
    if (object)
      objects[count++] = object;
    return object;
  }

private:
  std::array<PyObject *, kMaxValues> objects; ///< set up to `count`
  size_t count = 0;
};

PyObject *callMaker(PyObject *function) {
  return callPython([&] { return PyObject_CallNoArgs(function); });
}

/// `kernel[grid](*values)`. The values of launch options follow the `count` values that the kernel
/// gets by place; `options` has their names, or is null.
PyObject *launchKernel(PyObject *kernel, const int32_t (&grid)[3], PyObject *const *values,
                       size_t count, PyObject *options) {
  const auto *launchable = reinterpret_cast<const Launchable *>(kernel);
  if (launchable->dispatcher && Py_TYPE(launchable->dispatcher) == dispatcherType &&
      launchable->generation == static_cast<int64_t>(currentGeneration) &&
      (!launchable->below || launchable->below == Py_None)) {
    auto held = py::reinterpret_borrow<py::object>(launchable->dispatcher);
    return launchOver(held.ptr(), Grid(grid), {values, count, options});
  }
  py::tuple extents = py::make_tuple(grid[0], grid[1], grid[2]);
  auto launch = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_GetItem(kernel, extents.ptr()); }));
  if (!launch)
    return nullptr;
  return callPython([&] { return PyObject_Vectorcall(launch.ptr(), values, count, options); });
}

} // namespace

bool CallPlan::isCurrent() const {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(checks); ++i) {
    PyObject *check = PyTuple_GET_ITEM(checks, i);
    auto found = py::reinterpret_steal<py::object>(callMaker(PyTuple_GET_ITEM(check, 0)));
    if (!found)
      throw py::error_already_set();
    if (found.ptr() != PyTuple_GET_ITEM(check, 1))
      return false;
  }
  return true;
}

PyObject *CallPlan::callFunction(PyObject *const *args, size_t count) const {
  const TorchArrays &arrays = torchArrays();
  py::object result;
  {
    bool hasGradients = arrays.isGradEnabled();
    if (hasGradients)
      arrays.setGradEnabled(false);
    result = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_Vectorcall(kernel, args, count, nullptr); }));
    if (hasGradients)
      arrays.setGradEnabled(true);
  }
  if (!result || (finish && arrays.isNew(result.ptr(), args, count)) || !finish)
    return result.release().ptr();
  std::array<PyObject *, kMaxValues> values;
  if (count >= kMaxValues)
    throw py::value_error("too many arguments for a plan");
  values[0] = result.ptr();
  std::copy(args, args + count, values.begin() + 1);
  auto finished = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_Vectorcall(finish, values.data(), count + 1, nullptr); }));
  return finished ? result.release().ptr() : nullptr;
}

bool CallPlan::mayWrite(PyObject *out, PyObject *const *args) const {
  auto findAddress = [](PyObject *array) {
    if (getNumPyDType(array))
      return reinterpret_cast<intptr_t>(reinterpret_cast<NumPyArray *>(array)->data);
    return static_cast<intptr_t>(torchArrays().getAddress(array));
  };
  intptr_t written = findAddress(out);
  return std::all_of(spans->begin(), spans->end() - 1, [&](const Span &span) {
    intptr_t begin = findAddress(args[span.place]);
    return begin + span.high <= written + spans->back().low ||
           written + spans->back().high <= begin + span.low || (begin == written && span.isLikeOut);
  });
}

PyObject *CallPlan::run(PyObject *const *args, size_t count, PyObject *out) const {
  // A launch may clear the table that holds the plan.
  auto self = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject *>(const_cast<CallPlan *>(this)));
  if (isFunction)
    return callFunction(args, count);
  if (program)
    return out ? nullptr : program->run(args, count, nullptr);
  if (out && (spans->empty() || !mayWrite(out, args)))
    return nullptr;
  auto numResults = out ? 1 : static_cast<size_t>(PyTuple_GET_SIZE(makers));
  if (numResults == 1) {
    PyObject *result = nullptr;
    if (runInto(args, count, out, &result))
      return result;
    Py_XDECREF(result);
    return nullptr;
  }
  auto several = py::reinterpret_steal<py::object>(
      PyTuple_New(static_cast<Py_ssize_t>(numResults))); // of nulls
  if (!several || !runInto(args, count, nullptr, &PyTuple_GET_ITEM(several.ptr(), 0)))
    return nullptr;
  return several.release().ptr();
}

PyObject *CallPlan::runProgram(PyObject *const *args, size_t count, py::object *kept) const {
  auto self = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject *>(const_cast<CallPlan *>(this)));
  return program->run(args, count, kept);
}

bool CallPlan::runInto(PyObject *const *args, size_t count, PyObject *out,
                       PyObject **results) const {
  auto numResults = out ? 1 : static_cast<size_t>(PyTuple_GET_SIZE(makers));
  auto numRest = static_cast<size_t>(PyTuple_GET_SIZE(rest));
  auto numOptions = optionValues ? static_cast<size_t>(PyTuple_GET_SIZE(optionValues)) : size_t(0);
  if (count + numResults + numRest + numOptions > kMaxValues || converted->size() > kMaxValues)
    return false;
  std::array<PyObject *, kMaxValues> values;
  std::copy(args, args + count, values.begin());
  References held;
  for (const auto &[place, convert] : *converted) {
    PyObject *function = convert.ptr(), *given = args[place];
    values[place] = held.take(callPython([&] { return PyObject_CallOneArg(function, given); }));
    if (!values[place])
      return false;
  }
  if (out)
    results[0] = Py_NewRef(out);
  for (size_t i = 0; !out && i < numResults; ++i) {
    PyObject *maker = PyTuple_GET_ITEM(makers, static_cast<Py_ssize_t>(i));
    if (maker == Py_None)
      results[i] = Py_NewRef(Py_None);
    else if (!layouts->empty())
      results[i] = torchArrays().make((*layouts)[i]);
    if (!results[i] && !PyErr_Occurred())
      results[i] = callMaker(maker);
    if (!results[i])
      return false;
  }
  if (kernel != Py_None) {
    PyObject **behind = std::copy(results, results + numResults, values.data() + count);
    for (size_t i = 0; i < numRest; ++i)
      behind[i] = PyTuple_GET_ITEM(rest, static_cast<Py_ssize_t>(i));
    for (size_t i = 0; i < numOptions; ++i)
      behind[numRest + i] = PyTuple_GET_ITEM(optionValues, static_cast<Py_ssize_t>(i));
    auto launched = py::reinterpret_steal<py::object>(
        launchKernel(kernel, grid, values.data(), count + numResults + numRest, optionNames));
    if (!launched)
      return false;
  }
  if (out && finish && !torchArrays().countWrite(out)) {
    auto finished = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_CallOneArg(finish, out); }));
    if (!finished)
      return false;
  }
  return true;
}

namespace {

/// CallPlan(kernel, grid, rest, makers, ...)
PyObject *newPlan(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static const char *names[] = {"kernel",    "grid",     "rest",    "makers", "examples",
                                "converted", "checks",   "apply",   "finish", "spans",
                                "program",   "gradient", "options", nullptr};
  PyObject *kernel = nullptr, *grid = nullptr, *rest = nullptr, *makers = nullptr,
           *examples = nullptr;
  PyObject *converted = nullptr, *checks = nullptr, *apply = Py_None, *finish = nullptr,
           *spans = nullptr, *program = nullptr, *gradient = nullptr, *options = nullptr;
  if (!PyArg_ParseTupleAndKeywords(
          args, keywords, "OO!O!O!|O!O!O!OOO!O!OO!", const_cast<char **>(names), &kernel,
          &PyTuple_Type, &grid, &PyTuple_Type, &rest, &PyTuple_Type, &makers, &PyTuple_Type,
          &examples, &PyTuple_Type, &converted, &PyTuple_Type, &checks, &apply, &finish,
          &PyTuple_Type, &spans, &PyTuple_Type, &program, &gradient, &PyDict_Type, &options))
    return nullptr;
  return translateErrors([&]() -> PyObject * {
    bool isFunction = kernel != Py_None && !PyObject_TypeCheck(kernel, launchableType);
    if (isFunction && (!PyCallable_Check(kernel) || PyTuple_GET_SIZE(makers)))
      throw py::type_error("the kernel is neither a Launchable nor a function without makers");
    auto extents = py::reinterpret_borrow<py::tuple>(grid);
    if (extents.size() > 3)
      throw py::value_error("a grid has up to three axes");
    auto made = py::reinterpret_steal<py::object>(type->tp_alloc(type, 0));
    if (!made)
      return nullptr;
    auto *self = reinterpret_cast<CallPlan *>(made.ptr());
    self->kernel = Py_NewRef(kernel);
    self->rest = Py_NewRef(rest);
    if (options && PyDict_GET_SIZE(options)) {
      auto given = py::reinterpret_borrow<py::dict>(options);
      py::tuple names(given.size()), chosen(given.size());
      size_t at = 0;
      for (auto [name, value] : given) {
        // Launches compare names by address.
        PyObject *interned = Py_NewRef(name.ptr());
        PyUnicode_InternInPlace(&interned);
        names[at] = py::reinterpret_steal<py::object>(interned);
        chosen[at++] = value;
      }
      self->optionNames = names.release().ptr();
      self->optionValues = chosen.release().ptr();
    }
    self->makers = Py_NewRef(makers);
    self->checks = checks ? Py_NewRef(checks) : PyTuple_New(0);
    self->apply = Py_NewRef(apply);
    self->finish = Py_XNewRef(finish);
    for (size_t i = 0; i < 3; ++i)
      self->grid[i] = i < extents.size() ? extents[i].cast<int32_t>() : 1;
    self->isFunction = isFunction;
    self->gradient = Py_XNewRef(gradient);
    self->converted = new std::vector<std::pair<size_t, py::object>>;
    self->layouts = new std::vector<TorchLayout>;
    self->spans = new std::vector<Span>;
    if (program)
      self->program = new CallProgram(py::reinterpret_borrow<py::tuple>(program));
    for (Py_ssize_t i = 0; spans && i < PyTuple_GET_SIZE(spans); ++i) {
      auto span = py::reinterpret_borrow<py::tuple>(PyTuple_GET_ITEM(spans, i));
      self->spans->push_back({span[0].cast<size_t>(), span[1].cast<int64_t>(),
                              span[2].cast<int64_t>(), span[3].cast<bool>()});
    }
    for (Py_ssize_t i = 0; converted && i < PyTuple_GET_SIZE(converted); ++i) {
      auto pair = py::reinterpret_borrow<py::tuple>(PyTuple_GET_ITEM(converted, i));
      self->converted->emplace_back(pair[0].cast<size_t>(), pair[1]);
    }
    TorchFacts facts;
    for (Py_ssize_t i = 0; examples && i < PyTuple_GET_SIZE(examples); ++i) {
      PyObject *example = PyTuple_GET_ITEM(examples, i);
      bool isNone = example == Py_None && i < PyTuple_GET_SIZE(makers) &&
                    PyTuple_GET_ITEM(makers, i) == Py_None;
      if (!isNone && (!torchArrays().canMake() || !torchArrays().read(example, facts))) {
        self->layouts->clear();
        break;
      }
      self->layouts->push_back(isNone ? TorchLayout() : TorchLayout(facts));
    }
    return made.release().ptr();
  });
}

int traversePlan(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<CallPlan *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->kernel);
  Py_VISIT(self->rest);
  Py_VISIT(self->optionValues);
  Py_VISIT(self->makers);
  Py_VISIT(self->checks);
  Py_VISIT(self->apply);
  Py_VISIT(self->finish);
  Py_VISIT(self->gradient);
  if (self->program)
    if (int found = self->program->traverse(visit, arg))
      return found;
  if (self->converted)
    for (const auto &[place, function] : *self->converted)
      Py_VISIT(function.ptr());
  return 0;
}

// No tp_clear, as of tuples: a plan does not change, so that a circle through it has something else
// that does.
void deallocPlan(PyObject *object) {
  auto *self = reinterpret_cast<CallPlan *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->kernel);
  Py_XDECREF(self->rest);
  Py_XDECREF(self->optionNames);
  Py_XDECREF(self->optionValues);
  Py_XDECREF(self->makers);
  Py_XDECREF(self->checks);
  Py_XDECREF(self->apply);
  Py_XDECREF(self->finish);
  Py_XDECREF(self->gradient);
  delete self->program;
  delete self->converted;
  delete self->layouts;
  delete self->spans;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMemberDef planMembers[] = {{"gradient", T_OBJECT, offsetof(CallPlan, gradient), READONLY,
                              "What computes gradients of a program, or None."},
                             {nullptr, 0, 0, 0, nullptr}};

PyType_Slot planSlots[] = {
    {Py_tp_doc,
     const_cast<char *>(
         "CallPlan(kernel, grid, rest, makers, examples=(), converted=(), checks=(), apply=None):\n"
         "what an operator does with arguments of one kind: makes results, each by a function of\n"
         "`makers` or None for None, and launches kernel[grid](*args, *results, *rest). Without a "
         "kernel "
         "nothing\n"
         "is launched. Results are made without Python if `examples` are tensors like them.\n"
         "`converted` has pairs of the place of an argument and a function of it, and `checks`\n"
         "pairs of a function and what it has to return. A call with a gradient is\n"
         "apply(plan, *args), or apply(*args) if `kernel` is a function. If it is NotImplemented,\n"
         "Python does the call.\n"
         "A `kernel` that is a function does all of the call, with autograd off: kernel(*args).\n"
         "finish(result, *args) then raises for a bad result; it is not called for a new tensor.\n"
         "`spans` are for calls with `out`: (place, first byte, one after the last, whether "
         "elements\n"
         "lie as those of `out` do) of each array, then of `out`. finish(out) then counts a "
         "write\n"
         "to a tensor of torch, unless that is done without Python.\n"
         "A `program` does the call instead: (number of arguments, constants, steps, results,\n"
         "saved, results without a gradient). Values are numbered: arguments, constants, then "
         "what\n"
         "steps make. A step is (plan or function, inputs, number of outputs), or (None, "
         "(input,),\n"
         "1, example, offset) for a view. gradient(wanted, *saved, *gradients of results) is a\n"
         "tuple with a gradient, or None, for each argument.\n"
         "`options` are those of the launch, such as num_warps.")},
    {Py_tp_new, reinterpret_cast<void *>(newPlan)},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocPlan)},
    {Py_tp_traverse, reinterpret_cast<void *>(traversePlan)},
    {Py_tp_members, planMembers},
    {0, nullptr}};
PyType_Spec planSpec = {"tessera._C.CallPlan", sizeof(CallPlan), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, planSlots};

} // namespace

void tessera::python::registerCallPlan(py::module_ &module) {
  PyObject *plan = PyType_FromSpec(&planSpec);
  if (!plan)
    throw py::error_already_set();
  callPlanType = reinterpret_cast<PyTypeObject *>(plan);
  module.add_object("CallPlan", py::reinterpret_steal<py::object>(plan));
}
