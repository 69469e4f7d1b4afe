// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work that takes long, such as a compilation, of which Ctrl-C must be able to get rid.

#ifndef TESSERA_PYTHON_LONGWORK_H
#define TESSERA_PYTHON_LONGWORK_H

#include "Handles.h"

#include <functional>
#include <string>

namespace tessera::python {

/// When to say that something takes long, and how: called once, with the GIL and with what took how
/// long until then (tsr_compile_clock_print), as a dict.
struct SlowNotice {
  double seconds = 0; ///< 0: never
  py::object notice;
};

/// How work ended, and if it failed, what tsr_last_error said.
struct Outcome {
  TsrStatus status = TSR_OK;
  std::string error;
};

/// Runs `work` without the GIL. On the main thread, where Python handles signals, it is done
/// by another thread, and signals are looked for twenty times a second. If a handler raises an
/// exception, as that of Ctrl-C does, the work is cancelled and left alone, and the exception
/// is thrown: so `work` owns all that it works with.
Outcome runLongWork(std::function<TsrStatus()> work, const SlowNotice &slow);

/// Has launches on the CPU that take long look for signals between programs.
void lookForSignalsInLaunches();

/// The class by which Python ends what its other threads compile.
void registerLongWork(py::module_ &module);

/// Throws what the outcome says, unless that is fine.
void check(const Outcome &outcome);

} // namespace tessera::python

#endif // TESSERA_PYTHON_LONGWORK_H
