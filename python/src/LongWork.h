// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs slow work, such as a compilation, so that Ctrl-C can end it.

#ifndef TESSERA_PYTHON_LONGWORK_H
#define TESSERA_PYTHON_LONGWORK_H

#include "Handles.h"

#include <functional>
#include <string>

namespace tessera::python {

/// When and how to report that work is slow. `notice` is called once, with the GIL, and receives a
/// dict of the time that each part took (tsr_compile_clock_print).
struct SlowNotice {
  double seconds = 0; ///< 0: never
  py::object notice;
};

/// The status of finished work, and the text of tsr_last_error if it failed.
struct Outcome {
  TsrStatus status = TSR_OK;
  std::string error;
};

/// Runs `work` without the GIL. On the main thread, where Python handles signals, a worker does it,
/// and signals are checked twenty times a second. If a handler raises an exception, as that of
/// Ctrl-C does, this cancels the work, does not wait for it, and throws the exception. So `work`
/// must own all its data.
Outcome runLongWork(std::function<TsrStatus()> work, const SlowNotice &slow);

/// Makes launches on the CPU check for signals between programs.
void lookForSignalsInLaunches();

/// Registers the class by which Python ends compilations of its other threads.
void registerLongWork(py::module_ &module);

/// Throws the error of an outcome that failed.
void check(const Outcome &outcome);

} // namespace tessera::python

#endif // TESSERA_PYTHON_LONGWORK_H
