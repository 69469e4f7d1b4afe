// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Releases and takes the GIL and calls Python, in an interpreter that may be ending meanwhile.
//
// If a daemon thread takes the GIL of an ending interpreter, CPython up to 3.13 ends the thread by
// pthread_exit, which unwinds its stack. Destructors would then drop references without the GIL,
// and glibc aborts the process in a handler of all exceptions. Instead such a thread waits here
// until the process ends, which CPython 3.14 does itself.

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

/// Clears an exception of `kind`, if one is set. Throws any other one, such as KeyboardInterrupt or
/// an exception of the user's signal handler.
inline void clearError(PyObject *kind) {
  if (!PyErr_Occurred())
    return;
  if (!PyErr_ExceptionMatches(kind))
    throw pybind11::error_already_set();
  PyErr_Clear();
}

/// An attribute of an object: 1 and a new reference, 0 and null if it has none, or -1 with an
/// exception. Makes no AttributeError for one that is missing, which takes longer than a launch.
inline int lookUpAttribute(PyObject *object, PyObject *name, PyObject **found) {
#if PY_VERSION_HEX >= 0x030D0000
  return callPython([&] { return PyObject_GetOptionalAttr(object, name, found); });
#else
  return callPython([&] { return _PyObject_LookupAttr(object, name, found); });
#endif
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
