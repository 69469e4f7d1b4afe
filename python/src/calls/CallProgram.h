// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of a call that launches several times, or hands views of arrays to a launch. Python
// records them (tessera/calls/recording.py) while it does such a call once.
//
// Values are numbered: the arguments, then constants, then what the steps make. A step is a plan
// (CallPlan.h), a function of Python, or a view of a tensor.

#ifndef TESSERA_PYTHON_CALLS_CALLPROGRAM_H
#define TESSERA_PYTHON_CALLS_CALLPROGRAM_H

#include "TorchArrays.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::python {

class CallProgram {
public:
  /// Reads (arguments, constants, steps, results, saved) as Python has them. `results` is a number
  /// or a tuple of numbers; -1 is None. Throws if they do not fit.
  explicit CallProgram(const py::tuple &parts);

  /// Runs the steps. Returns the result, or a tuple of results; null without an exception if Python
  /// has to do the call. If `kept` is not null, it becomes the tuple of values that are saved.
  PyObject *run(PyObject *const *args, size_t count, py::object *kept) const;

  /// True if there are values to save, for a gradient.
  bool hasSaved() const { return !saved.empty(); }
  /// The places of results that have no gradient.
  const std::vector<size_t> &getConstantResults() const { return constantResults; }
  int traverse(visitproc visit, void *arg) const;

private:
  enum class Kind { Plan, Function, View };

  struct Step {
    Kind kind;
    py::object callee; ///< null for a view
    std::vector<size_t> inputs;
    size_t numOutputs;
    std::vector<size_t> dead; ///< values that no later step needs
    TorchLayout view;
    int64_t offset; ///< of a view, from the first element of the tensor on
  };

  void findDead();
  bool runStep(const Step &step, PyObject **values, size_t at) const;

  size_t numArguments;
  std::vector<py::object> constants;
  std::vector<Step> steps;
  bool isOne;
  std::vector<int64_t> results;
  std::vector<size_t> saved, constantResults;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_CALLS_CALLPROGRAM_H
