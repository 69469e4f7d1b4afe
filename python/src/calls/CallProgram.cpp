// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallProgram.h"

#include "CallPlan.h"

#include "../Interpreter.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>

using namespace tessera::python;

namespace {

constexpr size_t kMaxProgramValues = 192;
constexpr size_t kMaxInputs = 64;

/// References to values, each of which may be null.
struct HeldValues {
  std::array<PyObject *, kMaxProgramValues> values;
  size_t begin, end;

  HeldValues(size_t begin) : begin(begin), end(begin) {}
  HeldValues(const HeldValues &) = delete;
  HeldValues &operator=(const HeldValues &) = delete;
  ~HeldValues() {
    for (size_t i = begin; i < end; ++i)
      Py_XDECREF(values[i]);
  }
};

} // namespace

CallProgram::CallProgram(const py::tuple &parts) {
  numArguments = parts[0].cast<size_t>();
  for (py::handle each : parts[1].cast<py::tuple>())
    constants.push_back(py::reinterpret_borrow<py::object>(each));
  size_t numValues = numArguments + constants.size();
  for (py::handle each : parts[2].cast<py::tuple>()) {
    auto given = each.cast<py::tuple>();
    Step step;
    step.callee = given[0];
    step.numOutputs = given[2].cast<size_t>();
    step.offset = 0;
    for (py::handle input : given[1].cast<py::tuple>())
      step.inputs.push_back(input.cast<size_t>());
    bool isKnown = std::all_of(step.inputs.begin(), step.inputs.end(),
                               [&](size_t input) { return input < numValues; });
    if (!isKnown || step.inputs.size() > kMaxInputs)
      throw py::value_error("a step has inputs that no step before it makes, or too many");
    if (step.callee.is_none()) {
      step.kind = Kind::View;
      TorchFacts facts;
      if (!torchArrays().canView() || !torchArrays().read(given[3].ptr(), facts) ||
          step.inputs.size() != 1)
        throw py::value_error("a view cannot be made");
      step.view = TorchLayout(facts);
      step.offset = given[4].cast<int64_t>();
    } else {
      step.kind = Py_TYPE(step.callee.ptr()) == callPlanType ? Kind::Plan : Kind::Function;
    }
    if (step.kind != Kind::Plan && step.numOutputs != 1)
      throw py::value_error("a function, or a view, makes one value");
    numValues += step.numOutputs;
    steps.push_back(std::move(step));
  }
  isOne = !py::isinstance<py::tuple>(parts[3]);
  if (isOne)
    results.push_back(parts[3].cast<int64_t>());
  else
    results = parts[3].cast<std::vector<int64_t>>();
  saved = parts[4].cast<std::vector<size_t>>();
  constantResults = parts[5].cast<std::vector<size_t>>();
  auto isValue = [&](auto number) { return number < static_cast<decltype(number)>(numValues); };
  if (numValues > kMaxProgramValues || !std::all_of(results.begin(), results.end(), isValue) ||
      !std::all_of(saved.begin(), saved.end(), isValue))
    throw py::value_error("a program has results that no step makes, or too many values");
  findDead();
}

void CallProgram::findDead() {
  size_t numKnown = numArguments + constants.size(), numValues = numKnown;
  for (const Step &step : steps)
    numValues += step.numOutputs;
  std::vector<bool> isNeeded(numValues);
  for (int64_t each : results)
    if (each >= 0)
      isNeeded[static_cast<size_t>(each)] = true;
  for (size_t each : saved)
    isNeeded[each] = true;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    auto note = [&](size_t value) {
      if (value >= numKnown && !isNeeded[value]) {
        isNeeded[value] = true;
        step->dead.push_back(value);
      }
    };
    std::for_each(step->inputs.begin(), step->inputs.end(), note);
    for (size_t i = 0; i < step->numOutputs; ++i)
      note(numValues - 1 - i);
    numValues -= step->numOutputs;
  }
}

bool CallProgram::runStep(const Step &step, PyObject **values, size_t at) const {
  std::array<PyObject *, kMaxInputs> inputs;
  std::transform(step.inputs.begin(), step.inputs.end(), inputs.begin(),
                 [&](size_t input) { return values[input]; });
  if (step.kind == Kind::Plan)
    return reinterpret_cast<const CallPlan *>(step.callee.ptr())
        ->runInto(inputs.data(), step.inputs.size(), nullptr, values + at);
  if (step.kind == Kind::View) {
    values[at] = torchArrays().makeView(inputs[0], step.view, step.offset);
    return values[at];
  }
  values[at] = callPython([&] {
    return PyObject_Vectorcall(step.callee.ptr(), inputs.data(), step.inputs.size(), nullptr);
  });
  return values[at];
}

PyObject *CallProgram::run(PyObject *const *args, size_t count, py::object *kept) const {
  if (count != numArguments)
    return nullptr;
  HeldValues held(numArguments + constants.size());
  PyObject **values = held.values.data();
  std::copy(args, args + count, values);
  std::transform(constants.begin(), constants.end(), values + count,
                 [](const py::object &each) { return each.ptr(); });
  for (const Step &step : steps) {
    size_t at = held.end;
    std::fill_n(values + at, step.numOutputs, nullptr);
    held.end += step.numOutputs;
    if (!runStep(step, values, at))
      return nullptr;
    for (size_t dead : step.dead)
      Py_CLEAR(values[dead]);
  }
  if (kept) {
    py::tuple made(saved.size());
    for (size_t i = 0; i < saved.size(); ++i)
      made[i] = py::reinterpret_borrow<py::object>(values[saved[i]]);
    *kept = made;
  }
  auto find = [&](int64_t number) {
    return Py_NewRef(number < 0 ? Py_None : values[static_cast<size_t>(number)]);
  };
  if (isOne)
    return find(results[0]);
  PyObject *several = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
  for (size_t i = 0; several && i < results.size(); ++i)
    PyTuple_SET_ITEM(several, static_cast<Py_ssize_t>(i), find(results[i]));
  return several;
}

int CallProgram::traverse(visitproc visit, void *arg) const {
  for (const py::object &each : constants)
    Py_VISIT(each.ptr());
  for (const Step &step : steps)
    Py_VISIT(step.callee.ptr());
  return 0;
}
