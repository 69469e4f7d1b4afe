// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warm path of a launch: a specialisation that has been launched before is found by the
// signature of its arguments (Signature.h). Whatever is not common or not known goes to the
// Python function `slow`, which does the whole launch and returns a pair: what the launch returns,
// and the record (LaunchRecord.h) by which the next launch of the same kind goes, or None.
//
// A tuned kernel (tessera/tuning) is launched the same way: its configuration fills in some
// parameters, which a caller leaves out. And `findKnown` looks a kernel or a configuration up
// without launching, for `warmup` and for configurations that have hooks.
//
// Two kinds of objects launch by it: `kernel[grid]` (Launch.cpp), and `kernel.run`, which other
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

/// Grows with each change of what every launch depends on: settings, the language's modules.
extern uint64_t currentGeneration;

/// Whether hooks are to be told of launches.
bool hasLaunchHooks();

/// Arguments as a vectorcall has them: `count` by place, then those named by `keywords`, which may
/// be null.
struct CallArguments {
  PyObject *const *args;
  size_t count;
  PyObject *keywords;
};

/// Launches. What the launch returns, or null with an exception. It may throw
/// py::error_already_set, too (translateErrors).
PyObject *launchOver(PyObject *dispatcher, const Grid &grid, const CallArguments &call);

/// What a launch with these arguments would have: the configuration of a tuned kernel, or what
/// the launch returns. `slow` says so the first time.
PyObject *findKnown(PyObject *dispatcher, PyObject *grid, const CallArguments &call);

/// Drops the frames of our own from the exception that is set, if it is about a mistake of the
/// user's.
void hideOwnFrames();

/// Has Python see what this throws.
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

/// dispatcher.bind(grid): what `kernel[grid]` is (Launch.cpp).
PyObject *bindGrid(PyObject *dispatcher, PyObject *grid);

} // namespace tessera::python

#endif // TESSERA_PYTHON_DISPATCHER_H
