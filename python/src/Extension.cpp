// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The extension module tessera._C, and how a failure of the core becomes a Python
// exception.

#include "Handles.h"
#include "Interpreter.h"
#include "LongWork.h"

using namespace tessera::python;

namespace {

// The class outlives the module, as types of extensions do.
PyObject *coreError = nullptr;

} // namespace

py::object tessera::python::parseJSON(const char *text) {
  return callPython([&] { return py::module_::import("json").attr("loads")(py::bytes(text)); });
}

void tessera::python::check(TsrStatus status) { check(status, tsr_last_error()); }

void tessera::python::check(TsrStatus status, const char *text) {
  if (status == TSR_OK)
    return;
  if (status == TSR_CANCELLED && PyErr_Occurred())
    throw py::error_already_set(); // what a signal handler raised
  if (status == TSR_OUT_OF_MEMORY) {
    try {
      PyErr_SetObject(PyExc_MemoryError, parseJSON(text)["message"].ptr());
    } catch (py::error_already_set &) {
      PyErr_NoMemory();
    }
    throw py::error_already_set();
  }
  py::dict info = parseJSON(text);
  py::object error =
      callPython([&] { return py::reinterpret_borrow<py::object>(coreError)(info["message"]); });
  error.attr("info") = info;
  error.attr("status") = status;
  PyErr_SetObject(coreError, error.ptr());
  throw py::error_already_set();
}

void tessera::python::registerErrors(py::module_ &module) {
  py::enum_<TsrStatus>(module, "Status", "How a call of the core ended: TsrStatus of the C API.")
      .value("USER_ERROR", TSR_USER_ERROR)
      .value("INTERNAL_ERROR", TSR_INTERNAL_ERROR)
      .value("OUTSIDE_LIMITS", TSR_OUTSIDE_LIMITS)
      .value("NO_CLUSTER_ROOM", TSR_NO_CLUSTER_ROOM);
  coreError = PyErr_NewExceptionWithDoc(
      "tessera._C.CoreError",
      "A failure of the core. `status` is a Status. `info` is a dict: kind (\"user\" or\n"
      "\"internal\"), message, and where known id, fix, file, line, column, notes and\n"
      "reproducer.",
      PyExc_Exception, nullptr);
  if (!coreError)
    throw py::error_already_set();
  module.add_object("CoreError", py::reinterpret_borrow<py::object>(coreError));
}

// The tables of this module belong to the process, and so do pybind11's. Python code alone can ask
// this in a subinterpreter where the main one has imported the module: no function of pybind11's
// returns there.
static PyObject *isMainInterpreter(PyObject *, PyObject *) {
  return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main());
}

static PyMethodDef plainFunctions[] = {{"is_main_interpreter", isMainInterpreter, METH_NOARGS,
                                        "Whether the calling interpreter is the process's first."},
                                       {nullptr, nullptr, 0, nullptr}};

static void initialise(py::module_ &module) {
  if (PyModule_AddFunctions(module.ptr(), plainFunctions) < 0)
    throw py::error_already_set();
  module.doc() = "The compiler's core, through its C API.";
  if (tsr_api_version() != TSR_API_VERSION)
    throw py::import_error("libtessera.so is of API version " + std::to_string(tsr_api_version()) +
                           ", but this extension needs " + std::to_string(TSR_API_VERSION) +
                           ": install the package again");
  registerErrors(module);
  registerModule(module);
  registerBuilder(module);
  registerKernel(module);
  registerGrid(module);
  registerDispatcher(module);
  registerLaunch(module);
  registerHeuristics(module);
  registerEntry(module);
  registerAutograd(module);
  registerRunner(module);
  registerDLPack(module);
  registerCUDA(module);
  // Compilations that daemon threads are at must not go on while static objects are destroyed.
  Py_AtExit([] { tsr_finish(/*milliseconds=*/10000); });
  lookForSignalsInLaunches();
  registerLongWork(module);
  module.def("build_id", &tsr_build_id, "Changes with anything that changes generated code.");
}

// PYBIND11_MODULE waits in a subinterpreter for a lock that the caller holds.
PYBIND11_PLUGIN_IMPL(_C) {
  PYBIND11_CHECK_PYTHON_VERSION
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "this is a subinterpreter");
    return nullptr;
  }
  PYBIND11_ENSURE_INTERNALS_READY
  static py::module_::module_def definition;
  auto module = py::module_::create_extension_module("_C", nullptr, &definition);
  try {
    initialise(module);
    return module.ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
  return nullptr; // which the macro does up to pybind11 3.0
}
