// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two halves of a torch.autograd.Function whose forward is a plan. Its class, and what the
// context has beside torch's own, are made in tessera/torch/elementwise.py.

#include "CallPlan.h"
#include "TorchArrays.h"

#include "../ArgumentTypes.h"
#include "../Dispatcher.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

using namespace tessera::python;

namespace {

/// The most arguments of a call with a gradient, the one of its result included.
constexpr size_t kMaxNodeValues = 64;

/// The attributes of a context, interned once.
struct ContextNames {
  PyObject *toSave = PyUnicode_InternFromString("to_save");
  PyObject *saved = PyUnicode_InternFromString("saved_tensors");
  PyObject *needed = PyUnicode_InternFromString("needs_input_grad");
  PyObject *numbers = PyUnicode_InternFromString("numbers");
  PyObject *gradients = PyUnicode_InternFromString("gradients");
  PyObject *fit = PyUnicode_InternFromString("fit");
  PyObject *mark = PyUnicode_InternFromString("mark");
  PyObject *plan = PyUnicode_InternFromString("plan");
  PyObject *constant = PyUnicode_InternFromString("non_differentiable");
  PyObject *materialize = PyUnicode_InternFromString("materialize_grads");
  PyObject *function = PyUnicode_InternFromString("_forward_cls");
  PyObject *backward = PyUnicode_InternFromString("backward");
};

const ContextNames &contextNames() {
  static const ContextNames result;
  return result;
}

py::object ask(PyObject *context, PyObject *name) {
  auto found = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_GetAttr(context, name); }));
  if (!found)
    throw py::error_already_set();
  return found;
}

void set(PyObject *context, PyObject *name, const py::object &value) {
  if (callPython([&] { return PyObject_SetAttr(context, name, value.ptr()); }) < 0)
    throw py::error_already_set();
}

/// Saves the tensors of a tuple. Numbers among them go to `numbers`, which has None for each
/// tensor.
void saveValues(PyObject *context, const py::object &values) {
  auto given = py::reinterpret_borrow<py::tuple>(values);
  auto isNumber = [](py::handle each) {
    return typeTables().getKind(Py_TYPE(each.ptr())) != ArrayKind::Torch;
  };
  if (std::none_of(given.begin(), given.end(), isNumber))
    return set(context, contextNames().toSave, values);
  py::list numbers, tensors;
  for (py::handle each : given) {
    numbers.append(isNumber(each) ? py::object(py::make_tuple(each)) : py::none());
    if (!isNumber(each))
      tensors.append(each);
  }
  set(context, contextNames().toSave, py::tuple(tensors));
  set(context, contextNames().numbers, numbers);
}

/// Runs the program of a plan, and saves the values that its gradient needs.
PyObject *runProgram(PyObject *context, PyObject *plan, PyObject *const *args, size_t count) {
  const auto *self = reinterpret_cast<const CallPlan *>(plan);
  py::object kept;
  auto result = py::reinterpret_steal<py::object>(self->runProgram(args, count, &kept));
  if (!result && !PyErr_Occurred())
    throw std::runtime_error("torch makes no view of a tensor");
  if (!result)
    return nullptr;
  saveValues(context, kept);
  set(context, contextNames().plan, py::reinterpret_borrow<py::object>(plan));
  const std::vector<size_t> &places = self->program->getConstantResults();
  if (!places.empty()) {
    py::tuple constant(places.size());
    for (size_t i = 0; i < places.size(); ++i)
      constant[i] = py::reinterpret_borrow<py::object>(
          PyTuple_Check(result.ptr()) ? PyTuple_GET_ITEM(result.ptr(), places[i]) : result.ptr());
    set(context, contextNames().constant, constant);
    // Otherwise torch makes zeros as gradients of these results, which may be as large as the
    // others.
    set(context, contextNames().materialize, py::bool_(false));
  }
  return result.release().ptr();
}

/// run_forward(ctx, plan, *args): runs the plan and saves the arguments. `numbers` has None for
/// each tensor, and a tuple of one for each number; it stays None if there is none.
PyObject *runForward(PyObject *, PyObject *const *args, Py_ssize_t count) {
  return translateErrors([&]() -> PyObject * {
    if (count < 2 || Py_TYPE(args[1]) != callPlanType)
      throw py::type_error("the arguments are a context, a plan and those of the call");
    auto isNumber = [](PyObject *each) {
      return typeTables().getKind(Py_TYPE(each)) != ArrayKind::Torch;
    };
    PyObject *const *given = args + 2, *const *end = args + count;
    if (reinterpret_cast<const CallPlan *>(args[1])->program)
      return runProgram(args[0], args[1], given, static_cast<size_t>(count - 2));
    size_t numNumbers = static_cast<size_t>(std::count_if(given, end, isNumber));
    auto numGiven = static_cast<size_t>(end - given);
    py::tuple tensors(numGiven - numNumbers);
    py::list numbers;
    for (size_t i = 0, at = 0; i < numGiven; ++i) {
      auto each = py::reinterpret_borrow<py::object>(given[i]);
      if (numNumbers)
        numbers.append(isNumber(given[i]) ? py::object(py::make_tuple(each)) : py::none());
      if (!isNumber(given[i]))
        tensors[at++] = each;
    }
    auto result = py::reinterpret_steal<py::object>(
        reinterpret_cast<const CallPlan *>(args[1])->run(given, numGiven));
    if (!result)
      return nullptr;
    set(args[0], contextNames().toSave, tensors);
    if (numNumbers)
      set(args[0], contextNames().numbers, numbers);
    if (PyTuple_Check(result.ptr())) {
      py::object mark = ask(args[0], contextNames().mark);
      callPython([&] { mark(py::handle(args[0]), result); });
    }
    return result.release().ptr();
  });
}

/// True if a gradient has the shape and the element type of the argument.
bool fits(PyObject *gradient, PyObject *argument) {
  TorchFacts facts, wanted;
  return torchArrays().read(gradient, facts) && torchArrays().read(argument, wanted) &&
         facts.rank == wanted.rank && facts.dtype == wanted.dtype &&
         std::equal(facts.shape, facts.shape + facts.rank, wanted.shape);
}

/// The gradients of the plan and the arguments. Null without an exception if Python has to compute
/// them.
PyObject *computeGradients(PyObject *context, PyObject *gradient) {
  const ContextNames &names = contextNames();
  py::object needed = ask(context, names.needed), saved = ask(context, names.saved);
  py::object numbers = ask(context, names.numbers), gradients = ask(context, names.gradients);
  if (gradient == Py_None || !PyTuple_Check(needed.ptr()) || !PyTuple_Check(saved.ptr()) ||
      !PyDict_Check(gradients.ptr()) || !(numbers.is_none() || PyList_Check(numbers.ptr())))
    return nullptr;
  Py_ssize_t numNeeded = PyTuple_GET_SIZE(needed.ptr()), numArguments = numNeeded - 1;
  auto wanted = py::reinterpret_steal<py::object>(PyTuple_GetSlice(needed.ptr(), 1, numNeeded));
  if (!wanted)
    return nullptr;
  auto op = py::reinterpret_borrow<py::object>(
      callPython([&] { return PyDict_GetItemWithError(gradients.ptr(), wanted.ptr()); }));
  if (!op || static_cast<size_t>(numNeeded) > kMaxNodeValues)
    return nullptr;

  std::array<PyObject *, kMaxNodeValues> values;
  values[0] = gradient;
  for (Py_ssize_t i = 0, at = 0; i < numArguments; ++i) {
    PyObject *number = Py_None;
    if (!numbers.is_none())
      number = i < PyList_GET_SIZE(numbers.ptr()) ? PyList_GET_ITEM(numbers.ptr(), i) : nullptr;
    bool isTensor = number == Py_None;
    if (isTensor ? at >= PyTuple_GET_SIZE(saved.ptr()) : !number || !PyTuple_Check(number))
      return nullptr;
    values[static_cast<size_t>(i) + 1] =
        isTensor ? PyTuple_GET_ITEM(saved.ptr(), at++) : PyTuple_GET_ITEM(number, 0);
  }
  auto found = py::reinterpret_steal<py::object>(callPython([&] {
    return PyObject_Vectorcall(op.ptr(), values.data(), static_cast<size_t>(numNeeded), nullptr);
  }));
  if (!found)
    return nullptr;

  py::tuple results(static_cast<size_t>(numNeeded));
  results[0] = py::none();
  bool areSeveral = PyTuple_Check(found.ptr());
  for (Py_ssize_t i = 0, at = 0; i < numArguments; ++i) {
    auto place = static_cast<size_t>(i) + 1;
    if (PyTuple_GET_ITEM(wanted.ptr(), i) != Py_True) {
      results[place] = py::none();
      continue;
    }
    if (areSeveral && at >= PyTuple_GET_SIZE(found.ptr()))
      throw py::value_error("a derivative returns too few gradients");
    auto each = py::reinterpret_borrow<py::object>(areSeveral ? PyTuple_GET_ITEM(found.ptr(), at++)
                                                              : found.ptr());
    if (!fits(each.ptr(), values[place])) {
      py::object fit = ask(context, names.fit);
      each = callPython([&] { return fit(each, py::handle(values[place])); });
    }
    results[place] = each;
  }
  return results.release().ptr();
}

/// The gradients of a plan with a program and the arguments. Null without an exception if Python
/// has to compute them.
PyObject *computeProgramGradients(PyObject *context, PyObject *const *grads, size_t count) {
  const ContextNames &names = contextNames();
  if (torchArrays().isGradEnabled())
    return nullptr;
  py::object needed = ask(context, names.needed), saved = ask(context, names.saved);
  py::object plan = ask(context, names.plan), numbers = ask(context, names.numbers);
  if (!PyTuple_Check(needed.ptr()) || !PyTuple_Check(saved.ptr()) ||
      Py_TYPE(plan.ptr()) != callPlanType || !(numbers.is_none() || PyList_Check(numbers.ptr())))
    return nullptr;
  Py_ssize_t numNeeded = PyTuple_GET_SIZE(needed.ptr()), numTensors = PyTuple_GET_SIZE(saved.ptr());
  Py_ssize_t numSaved = numbers.is_none() ? numTensors : PyList_GET_SIZE(numbers.ptr());
  PyObject *gradient = reinterpret_cast<const CallPlan *>(plan.ptr())->gradient;
  if (!gradient || static_cast<size_t>(numNeeded) > kMaxNodeValues ||
      static_cast<size_t>(numSaved) + count + 1 > kMaxNodeValues)
    return nullptr;
  uint64_t mask = 0;
  for (Py_ssize_t i = 1; i < numNeeded; ++i)
    mask |= uint64_t(PyTuple_GET_ITEM(needed.ptr(), i) == Py_True) << (i - 1);
  auto wanted = py::reinterpret_steal<py::object>(PyLong_FromUnsignedLongLong(mask));
  std::array<PyObject *, kMaxNodeValues> values;
  values[0] = wanted.ptr();
  for (Py_ssize_t i = 0, at = 0; i < numSaved; ++i) {
    PyObject *number = numbers.is_none() ? Py_None : PyList_GET_ITEM(numbers.ptr(), i);
    bool isTensor = number == Py_None;
    if (isTensor ? at >= numTensors : !PyTuple_Check(number))
      return nullptr;
    values[static_cast<size_t>(i) + 1] =
        isTensor ? PyTuple_GET_ITEM(saved.ptr(), at++) : PyTuple_GET_ITEM(number, 0);
  }
  std::copy(grads, grads + count, values.begin() + 1 + numSaved);
  auto found = py::reinterpret_steal<py::object>(callPython([&] {
    return PyObject_Vectorcall(gradient, values.data(), static_cast<size_t>(numSaved) + count + 1,
                               nullptr);
  }));
  if (!found)
    return nullptr;
  if (!PyTuple_Check(found.ptr()) || PyTuple_GET_SIZE(found.ptr()) != numNeeded - 1)
    throw py::value_error("a derivative returns another number of gradients");
  py::tuple results(static_cast<size_t>(numNeeded));
  results[0] = py::none();
  for (Py_ssize_t i = 1; i < numNeeded; ++i)
    results[static_cast<size_t>(i)] =
        py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(found.ptr(), i - 1));
  return results.release().ptr();
}

/// Computes gradients by `compute`, or else by the class's `backward`.
template <typename Compute>
PyObject *runBackwardBy(Compute compute, PyObject *const *args, Py_ssize_t count) {
  return translateErrors([&]() -> PyObject * {
    if (count < 1)
      throw py::type_error("the first argument is a context");
    PyObject *found = compute();
    if (found || PyErr_Occurred())
      return found;
    py::object function = ask(args[0], contextNames().function);
    py::object backward = ask(function.ptr(), contextNames().backward);
    return callPython([&] {
      return PyObject_Vectorcall(backward.ptr(), args, static_cast<size_t>(count), nullptr);
    });
  });
}

/// run_program_backward(ctx, *grads)
PyObject *runProgramBackward(PyObject *, PyObject *const *args, Py_ssize_t count) {
  auto compute = [&] {
    return computeProgramGradients(args[0], args + 1, static_cast<size_t>(count - 1));
  };
  return runBackwardBy(compute, args, count);
}

/// run_backward(ctx, *grads)
PyObject *runBackward(PyObject *, PyObject *const *args, Py_ssize_t count) {
  auto compute = [&] { return count == 2 ? computeGradients(args[0], args[1]) : nullptr; };
  return runBackwardBy(compute, args, count);
}

/// is_new_tensor(value, *args)
PyObject *isNewTensor(PyObject *, PyObject *const *args, Py_ssize_t count) {
  return translateErrors([&]() -> PyObject * {
    if (count < 1)
      throw py::type_error("the first argument is a value");
    return PyBool_FromLong(torchArrays().isNew(args[0], args + 1, static_cast<size_t>(count - 1)));
  });
}

/// The `forward` of a torch.autograd.Function: calls a function, and then `check` unless the result
/// is a new tensor, and `setup`, which may be None.
PyObject *callForward(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  static PyObject *const keywords = Py_BuildValue("(sss)", "ctx", "inputs", "output");
  return translateErrors([&]() -> PyObject * {
    if (count < 1 || count > static_cast<Py_ssize_t>(kMaxNodeValues))
      throw py::type_error("the arguments are a context and those of the call");
    PyObject *call = PyTuple_GET_ITEM(self, 0), *check = PyTuple_GET_ITEM(self, 1);
    PyObject *setup = PyTuple_GET_ITEM(self, 2);
    auto numGiven = static_cast<size_t>(count - 1);
    auto result = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_Vectorcall(call, args + 1, numGiven, nullptr); }));
    if (!result)
      return nullptr;
    if (!torchArrays().isNew(result.ptr(), args + 1, numGiven)) {
      std::array<PyObject *, kMaxNodeValues> values;
      values[0] = result.ptr();
      std::copy(args + 1, args + count, values.begin() + 1);
      auto checked = py::reinterpret_steal<py::object>(callPython(
          [&] { return PyObject_Vectorcall(check, values.data(), numGiven + 1, nullptr); }));
      if (!checked)
        return nullptr;
    }
    if (setup == Py_None)
      return result.release().ptr();
    py::tuple inputs(numGiven);
    for (size_t i = 0; i < numGiven; ++i)
      inputs[i] = py::reinterpret_borrow<py::object>(args[i + 1]);
    PyObject *values[] = {args[0], inputs.ptr(), result.ptr()};
    auto done = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_Vectorcall(setup, values, 0, keywords); }));
    return done ? result.release().ptr() : nullptr;
  });
}

PyMethodDef forwardFunction = {"forward",
                               reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(callForward)),
                               METH_FASTCALL, nullptr};

PyMethodDef functions[] = {
    {"is_new_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(isNewTensor)),
     METH_FASTCALL,
     "is_new_tensor(value, *args): True for a plain tensor that has memory of none of the\n"
     "arguments. False also if that is not known."},
    {"run_forward", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(runForward)),
     METH_FASTCALL, "run_forward(ctx, plan, *args): the `forward` of a torch.autograd.Function."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef backwardFunctions[] = {
    {"run_backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(runBackward)),
     METH_FASTCALL,
     "run_backward(ctx, *grads): the `apply` of the context. Leaves to `backward` what it cannot "
     "do."},
    {"run_program_backward",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(runProgramBackward)), METH_FASTCALL,
     "run_program_backward(ctx, *grads): the same for plans with a program."}};

/// The attribute of a class, as `type` finds it. Torch asks for attributes by names that it makes
/// anew at each call, which Python's cache never has. Python then looks through the metaclass and
/// its bases before it comes to the class, which has them.
PyObject *getClassAttribute(PyObject *object, PyObject *name) {
  auto isSpecial = [](PyObject *text) { // the metaclass may define these
    return PyUnicode_GET_LENGTH(text) > 1 && PyUnicode_READ_CHAR(text, 0) == '_' &&
           PyUnicode_READ_CHAR(text, 1) == '_';
  };
  if (PyUnicode_CheckExact(name) && !isSpecial(name)) {
    PyObject *members = reinterpret_cast<PyTypeObject *>(object)->tp_dict;
    auto own = py::reinterpret_borrow<py::object>(PyDict_GetItemWithError(members, name));
    if (own) {
      descrgetfunc get = Py_TYPE(own.ptr())->tp_descr_get;
      return get ? get(own.ptr(), nullptr, object) : own.release().ptr();
    }
    if (PyErr_Occurred())
      return nullptr;
  }
  return PyType_Type.tp_getattro(object, name);
}

py::object makeNodeMetaclass(const py::type &base) {
  PyType_Slot slots[] = {{Py_tp_getattro, reinterpret_cast<void *>(getClassAttribute)},
                         {0, nullptr}};
  PyType_Spec spec = {"tessera._C.NodeMetaclass", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                      slots};
  auto made = py::reinterpret_steal<py::object>(PyType_FromSpecWithBases(&spec, base.ptr()));
  if (!made)
    throw py::error_already_set();
  return made;
}

} // namespace

void tessera::python::registerAutograd(py::module_ &module) {
  if (PyModule_AddFunctions(module.ptr(), functions) < 0)
    throw py::error_already_set();
  module.def(
      "make_forward",
      [](const py::object &call, const py::object &check, const py::object &setup) {
        py::tuple self = py::make_tuple(call, check, setup);
        return py::reinterpret_steal<py::object>(PyCFunction_New(&forwardFunction, self.ptr()));
      },
      py::arg("call"), py::arg("check"), py::arg("setup_context"),
      "The `forward` of a torch.autograd.Function that calls a function. check(result, *args)\n"
      "raises for a bad result; it is not called for a new tensor.");
  module.def("make_node_metaclass", makeNodeMetaclass, py::arg("base"),
             "A class of classes that has an own attribute of a class found first. `base` defines\n"
             "no attribute that such a class has as well.");
  for (PyMethodDef &each : backwardFunctions) {
    auto function = py::reinterpret_steal<py::object>(PyCFunction_New(&each, nullptr));
    // A function of C is no method of a class that has it: this makes it one.
    PyObject *method = function ? PyInstanceMethod_New(function.ptr()) : nullptr;
    if (!method)
      throw py::error_already_set();
    module.add_object(each.ml_name, py::reinterpret_steal<py::object>(method));
  }
}
