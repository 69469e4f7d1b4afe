// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Letting the GIL go, taking it back, and calling Python, in an interpreter that may be
// ending meanwhile.
//
// CPython up to 3.13 ends a daemon thread that wants the GIL of an ending interpreter by
// pthread_exit, which unwinds the thread's stack: through destructors, which would give
// back references without the GIL, and through handlers of all exceptions, where glibc
// aborts the process. Such a thread waits here for the end of the process instead, as
// CPython 3.14 has it wait.

#ifndef TESSERA_PYTHON_INTERPRETER_H
#define TESSERA_PYTHON_INTERPRETER_H

#include <pybind11/pybind11.h>

#include <cxxabi.h>
#include <unistd.h>

namespace tessera::python {

[[noreturn]] inline void waitForEndOfProcess() {
  for (;;)
    pause();
}

/// The result of `function`, which may take the GIL or run Python.
template <typename Function> auto callPython(Function &&function) -> decltype(function()) {
  try {
    return function();
  } catch (abi::__forced_unwind &) {
    waitForEndOfProcess(); // leaving the handler would abort
  }
}

/// Clears an exception of `kind`, if one is set. Any other one is thrown: KeyboardInterrupt, or
/// what a signal handler of the user's has raised.
inline void clearError(PyObject *kind) {
  if (!PyErr_Occurred())
    return;
  if (!PyErr_ExceptionMatches(kind))
    throw pybind11::error_already_set();
  PyErr_Clear();
}

/// The GIL is let go for as long as one of these lives.
class WithoutGIL {
public:
  WithoutGIL() : state(PyEval_SaveThread()) {}
  ~WithoutGIL() {
    callPython([&] { PyEval_RestoreThread(state); });
  }
  WithoutGIL(const WithoutGIL &) = delete;
  WithoutGIL &operator=(const WithoutGIL &) = delete;

private:
  PyThreadState *state;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_INTERPRETER_H
