// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera._C.Module: a module of IR.

#include "Handles.h"
#include "Interpreter.h"

#include <pybind11/stl.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

using namespace tessera::python;

namespace {

Module createModule() {
  TsrModule *handle = nullptr;
  check(tsr_module_create(&handle));
  return Module{OwnedModule(handle)};
}

Module parseModule(const std::string &text, const std::string &name) {
  TsrModule *handle = nullptr;
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_module_parse(text.data(), text.size(), name.c_str(), &handle);
  }
  check(status);
  return Module{OwnedModule(handle)};
}

py::str printModule(Module &module, bool locations) {
  const char *text = nullptr;
  check(tsr_module_print(module.get(), locations, &text));
  return py::str(text);
}

std::vector<size_t> storedArguments(Module &module, const std::string &kernel) {
  size_t count = 0;
  check(tsr_module_stored_arguments(module.get(), kernel.c_str(), nullptr, 0, &count));
  std::vector<uint8_t> stored(count);
  check(tsr_module_stored_arguments(module.get(), kernel.c_str(), stored.data(), count, &count));
  std::vector<size_t> result;
  for (size_t i = 0; i < count; ++i)
    if (stored[i])
      result.push_back(i);
  return result;
}

void lowerForCUDA(Module &module, const std::string &options) {
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_module_lower_cuda(module.get(), options.c_str());
  }
  check(status);
}

/// Memory that a simulated kernel may touch: begin, end, whether it is read-only, whether it
/// holds nothing yet, the bytes of an element, the argument's name.
using SimulatedMemory = std::tuple<uint64_t, uint64_t, bool, bool, uint64_t, std::string>;

std::vector<uint64_t> toSlots(const py::sequence &args) {
  std::vector<uint64_t> slots;
  for (py::handle arg : args) {
    slots.push_back(PyLong_AsUnsignedLongLongMask(arg.ptr()));
    if (PyErr_Occurred())
      throw py::error_already_set();
  }
  return slots;
}

TsrVariant chooseVariant(Module &module, int multiprocessors, const std::array<int32_t, 3> &grid,
                         const py::sequence &args) {
  std::vector<uint64_t> slots = toSlots(args);
  TsrVariant variant = TSR_VARIANT_USUAL;
  check(tsr_module_choose_variant(module.get(), multiprocessors, grid.data(), slots.data(),
                                  slots.size(), &variant));
  return variant;
}

py::object simulate(Module &module, const std::string &kernel, const std::array<int32_t, 3> &grid,
                    const py::sequence &args, const std::vector<SimulatedMemory> &memory,
                    uint64_t seed, int copies, bool watchGlobal, int multiprocessors) {
  std::vector<uint64_t> slots = toSlots(args);
  std::vector<TsrMemory> pieces;
  for (const auto &[begin, end, isReadOnly, isUnwritten, elementBytes, name] : memory)
    pieces.push_back({begin, end, isReadOnly, isUnwritten, elementBytes, name.c_str()});
  TsrSimulation simulation{seed, copies, watchGlobal, multiprocessors};
  const char *report = nullptr;
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_simulate(module.get(), kernel.c_str(), grid.data(), slots.data(), slots.size(),
                          pieces.data(), pieces.size(), &simulation, &report);
  }
  check(status);
  return parseJSON(report);
}

} // namespace

void tessera::python::registerModule(py::module_ &module) {
  py::class_<Module>(module, "Module", "A module of IR, of any stage.")
      .def(py::init(&createModule), "An empty module of tile IR.")
      .def_static("parse", &parseModule, py::arg("text"), py::arg("name") = "<string>",
                  "Parse textual IR; `name` is what errors call it.")
      .def(
          "verify", [](Module &self) { check(tsr_module_verify(self.get())); },
          "Raise CoreError unless the IR is valid.")
      .def("print", &printModule, py::kw_only(), py::arg("locations") = false,
           "The text of the module, with the place of each operation if asked for.")
      .def("stored_arguments", &storedArguments, py::arg("kernel"),
           "The arguments through which a kernel of tile IR may write, by place.")
      .def(
          "check_accesses", [](Module &self) { check(tsr_module_check_accesses(self.get())); },
          "Have each access checked when the module is interpreted, in place.")
      .def("lower_cuda", &lowerForCUDA, py::arg("options"),
           "Bring a kernel for a GPU to the stage \"llvm\", in place.")
      .def("simulate", &simulate, py::arg("kernel"), py::arg("grid"), py::arg("args"),
           py::arg("memory"), py::arg("seed"), py::arg("copies"), py::arg("watch_global"),
           py::arg("multiprocessors") = 0,
           "Run a kernel of that stage with the simulator; its report.")
      .def("choose_variant", &chooseVariant, py::arg("multiprocessors"), py::arg("grid"),
           py::arg("args"), "The variant that a launch of the kernel would try first.")
      .def("__str__", [](Module &self) { return printModule(self, false); });
}
