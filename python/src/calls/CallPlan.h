// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of an operator for arguments of one key (CallKey.h). A plan makes the results and
// launches one kernel on the arguments, the results and some numbers. A plan with a program
// (CallProgram.h) does several such steps.

#ifndef TESSERA_PYTHON_CALLS_CALLPLAN_H
#define TESSERA_PYTHON_CALLS_CALLPLAN_H

#include "CallProgram.h"
#include "TorchArrays.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::python {

extern PyTypeObject *callPlanType;

/// The bytes of an array that is an argument, from its address on.
struct Span {
  size_t place; ///< of the argument
  int64_t low, high;
  bool isLikeOut; ///< its elements lie as those of the result do
};

/// tessera._C.CallPlan. Never changes once it is made.
struct CallPlan {
  PyObject_HEAD;
  PyObject *kernel; ///< a Launchable; None: nothing is launched. Or a function that does the call
  PyObject *rest;   ///< a tuple: the arguments behind the results
  PyObject *optionNames;  ///< a tuple: the launch options, such as num_warps; or null
  PyObject *optionValues; ///< a tuple
  PyObject *makers;       ///< a tuple of functions that make the results
  PyObject *finish;       ///< if the kernel is a function: checks what it returns; or null
  PyObject *checks;       ///< a tuple of (function, what it has to return)
  PyObject *apply; ///< what a call with a gradient is handed to, behind the plan. None: there is no
                   ///< gradient; NotImplemented: Python does such a call
  std::vector<std::pair<size_t, py::object>> *converted; ///< places of arguments, and functions
  std::vector<Span> *spans; ///< of the arguments and then of the result; only for a given result
  std::vector<TorchLayout> *layouts; ///< of the results, if they are made without `makers`
  CallProgram *program;              ///< does the call instead of `kernel`; or null
  PyObject *gradient; ///< of a program with saved values: computes gradients; or null
  int32_t grid[3];
  bool isFunction; ///< nothing is done but a call of `kernel`

  bool hasGradient() const { return apply != Py_None; }
  /// True if all checks hold.
  bool isCurrent() const;
  /// Calls the function that `kernel` is, with autograd off. A result that is no new tensor is
  /// handed to `finish`, and so are the arguments.
  PyObject *callFunction(PyObject *const *args, size_t count) const;
  /// Makes the results and launches. Returns one, or a tuple of several. If `out` is not null, it
  /// is the only result. Null without an exception if Python has to do the call.
  PyObject *run(PyObject *const *args, size_t count, PyObject *out = nullptr) const;
  /// The same, but stores a new reference to each result from `results` on, which are null before.
  /// Not for functions and programs.
  bool runInto(PyObject *const *args, size_t count, PyObject *out, PyObject **results) const;
  /// Runs the program, and has `kept` be what its gradient needs.
  PyObject *runProgram(PyObject *const *args, size_t count, py::object *kept) const;
  /// False if the result that is given has memory of an argument at other elements.
  bool mayWrite(PyObject *out, PyObject *const *args) const;
};

void registerCallPlan(py::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_CALLS_CALLPLAN_H
