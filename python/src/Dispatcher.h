// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warm path of a launch. A specialisation that has been launched before is found by the
// signature of its arguments (Signature.h). All other launches call the Python function `slow`,
// which does the whole launch. It returns the launch's result, and the record (LaunchRecord.h) for
// later launches of the same kind, or None.
//
// A tuned kernel (tessera/tuning) is launched the same way; its configuration has the values of the
// parameters that a caller omits. `findKnown` finds a kernel or a configuration without launching,
// for `warmup` and for configurations with hooks.
//
// Two kinds of objects use it: `kernel[grid]` (Launch.cpp), and `kernel.run`, which other
// compilers' launchers call (Runner.cpp).

#ifndef TESSERA_PYTHON_DISPATCHER_H
#define TESSERA_PYTHON_DISPATCHER_H

#include "Grid.h"
#include "Handles.h"
#include "Interpreter.h"

#include <cstdint>
#include <exception>
#include <new>

namespace tessera::python {

/// The type of dispatchers, tessera._C.Dispatcher.
extern PyTypeObject *dispatcherType;

/// Increases when settings or the language's modules change, on which every launch depends.
extern uint64_t currentGeneration;

/// True if launches must call hooks.
bool hasLaunchHooks();

/// The arguments of a vectorcall: `count` positional ones, then those that `keywords` names.
/// `keywords` may be null.
struct CallArguments {
  PyObject *const *args;
  size_t count;
  PyObject *keywords;
};

/// Launches. Returns the launch's result, or null with an exception set. May also throw
/// py::error_already_set (translateErrors).
PyObject *launchOver(PyObject *dispatcher, const Grid &grid, const CallArguments &call);

/// Looks up the record of a launch with these arguments. Null if it is not known or not current.
py::object findRecord(PyObject *dispatcher, const CallArguments &call);

/// Returns the configuration that a launch of a tuned kernel would have, or what a launch of
/// another kernel would return. `slow` finds it the first time.
PyObject *findKnown(PyObject *dispatcher, PyObject *grid, const CallArguments &call);

/// If the current exception is a user's mistake, removes Tessera's frames from it.
void hideOwnFrames();

/// Turns C++ exceptions of `call` into Python's.
template <typename Call> PyObject *translateErrors(Call call) {
  try {
    return callPython(call);
  } catch (py::error_already_set &error) {
    error.restore();
    hideOwnFrames();
  } catch (const py::builtin_exception &error) {
    error.set_error();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

/// dispatcher.bind(grid), the value of `kernel[grid]` (Launch.cpp).
PyObject *bindGrid(PyObject *dispatcher, PyObject *grid);

/// A kernel that is launched by `self[grid]`, which looks at its members at each launch.
struct Launchable {
  PyObject_HEAD;
  PyObject *dispatcher;
  PyObject *below;    ///< the kernel that gets the configuration the dispatcher finds, or None
  int64_t generation; ///< the one in which the dispatcher was found to be right
};

extern PyTypeObject *launchableType;

/// The dispatcher that launches `kernel[grid]`, borrowed. Null if `kernel` has another way.
PyObject *findDispatcher(PyObject *kernel);

/// `owner[grid]` for a Launchable with a kernel below (Heuristics.cpp).
PyObject *bindFinder(PyObject *owner, PyObject *grid);

} // namespace tessera::python

#endif // TESSERA_PYTHON_DISPATCHER_H
