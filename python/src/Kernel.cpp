// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera._C.Kernel: compiles, saves and runs kernels. Everything slow runs without the GIL.

#include "Handles.h"
#include "Interpreter.h"
#include "KernelArguments.h"
#include "LongWork.h"

#include <memory>
#include <string>
#include <vector>

using namespace tessera::python;

namespace {

Kernel own(TsrKernel *handle) { return Kernel{OwnedKernel(handle)}; }

/// The inputs and the result of a compilation.
struct CompileWork {
  OwnedModule module;
  std::string text, name, options;
  OwnedKernel kernel;

  TsrStatus run() {
    TsrKernel *handle = nullptr;
    TsrStatus status =
        module ? tsr_compile(module.get(), options.c_str(), &handle)
               : tsr_compile_text(text.data(), text.size(), name.c_str(), options.c_str(), &handle);
    kernel.reset(handle);
    return status;
  }
};

Kernel compile(Module &module, const std::string &options, double slowSeconds, py::object notice) {
  auto work = std::make_shared<CompileWork>();
  work->options = options;
  work->module = module.take();
  Outcome outcome = runLongWork([work] { return work->run(); }, {slowSeconds, std::move(notice)});
  module.handle = std::move(work->module);
  check(outcome);
  return Kernel{std::move(work->kernel)};
}

Kernel compileText(const std::string &text, const std::string &name, const std::string &options,
                   double slowSeconds, py::object notice) {
  auto work = std::make_shared<CompileWork>();
  work->text = text;
  work->name = name;
  work->options = options;
  check(runLongWork([work] { return work->run(); }, {slowSeconds, std::move(notice)}));
  return Kernel{std::move(work->kernel)};
}

void interpret(Module &module, const std::string &kernel, const py::tuple &grid,
               const py::sequence &args, const py::object &memory, bool reportWraps) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  Memory behind(memory, slots.size());
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_interpret(module.get(), kernel.c_str(), extents.data(), slots.data(), slots.size(),
                           behind.get(), reportWraps);
  }
  check(status);
}

void launch(Kernel &kernel, const py::tuple &grid, const py::sequence &args, int numThreads) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_kernel_launch(kernel.handle.get(), extents.data(), slots.data(), slots.size(),
                               numThreads);
  }
  check(status);
}

void launchChecked(Kernel &kernel, const py::tuple &grid, const py::sequence &args,
                   const py::object &memory, int numThreads) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  Memory behind(memory, slots.size());
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_kernel_launch_checked(kernel.handle.get(), extents.data(), slots.data(),
                                       slots.size(), behind.get(), numThreads);
  }
  check(status);
}

void checkAccesses(Kernel &kernel, const py::tuple &grid, const py::sequence &args,
                   const py::object &memory) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  Memory behind(memory, slots.size());
  check(tsr_kernel_check_accesses(kernel.handle.get(), extents.data(), slots.data(), slots.size(),
                                  behind.get()));
}

void launchCUDA(Kernel &kernel, int device, uint64_t stream, const py::tuple &grid,
                const py::sequence &args) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_kernel_launch_cuda(kernel.handle.get(), device, stream, extents.data(),
                                    slots.data(), slots.size());
  }
  check(status);
}

py::object deviceFacts(Kernel &kernel, int device) {
  const char *json = nullptr;
  check(tsr_kernel_device_facts(kernel.handle.get(), device, &json));
  return parseJSON(json);
}

py::object estimate(Kernel &kernel, int device, const py::tuple &grid, const py::sequence &args,
                    const py::sequence &bytes) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  std::vector<int64_t> sizes;
  for (py::handle size : bytes)
    sizes.push_back(py::cast<int64_t>(size));
  if (sizes.size() != slots.size())
    throw py::value_error("there are as many sizes as arguments");
  const char *json = nullptr;
  check(tsr_kernel_estimate(kernel.handle.get(), device, extents.data(), slots.data(), sizes.data(),
                            slots.size(), &json));
  return parseJSON(json);
}

py::object stage(Kernel &kernel, const std::string &name) {
  const char *text = nullptr;
  size_t length = 0;
  check(tsr_kernel_stage(kernel.handle.get(), name.c_str(), &text, &length));
  if (!text)
    return py::none();
  if (name == "object" || name == "cubin")
    return py::bytes(text, length);
  return py::str(text, length);
}

py::object limits(Kernel &kernel) {
  const char *json = nullptr;
  check(tsr_kernel_limits(kernel.handle.get(), &json));
  return parseJSON(json);
}

bool accepts(Kernel &kernel, const py::tuple &grid, const py::sequence &args) {
  GridSizes extents = toGrid(grid);
  std::vector<uint64_t> slots = toSlots(args);
  return tsr_kernel_accepts(kernel.handle.get(), extents.data(), slots.data(), slots.size()) != 0;
}

/// The handler as jaxlib takes it, or None for a version of the interface that is not known.
py::object xlaHandler(bool onGPU, int majorVersion, int minorVersion) {
  void *handler = tsr_xla_handler(onGPU, majorVersion, minorVersion);
  if (!handler)
    return py::none();
  return py::capsule(handler, "xla._CUSTOM_CALL_TARGET");
}

void show(Kernel &kernel, bool toPerf, bool toGDB) {
  uint32_t tools = (toPerf ? uint32_t(TSR_TOOL_PERF) : 0) | (toGDB ? uint32_t(TSR_TOOL_GDB) : 0);
  check(tsr_kernel_show(kernel.handle.get(), tools));
}

py::bytes serialize(Kernel &kernel) {
  const char *bytes = nullptr;
  size_t length = 0;
  check(tsr_kernel_serialize(kernel.handle.get(), &bytes, &length));
  return py::bytes(bytes, length);
}

Kernel deserialize(const py::bytes &bytes) {
  TsrKernel *handle = nullptr;
  check(tsr_kernel_deserialize(PyBytes_AS_STRING(bytes.ptr()),
                               static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())), &handle));
  return own(handle);
}

} // namespace

void tessera::python::registerKernel(py::module_ &module) {
  py::class_<Kernel>(module, "Kernel", "A compiled kernel.")
      .def("launch", &launch, py::arg("grid"), py::arg("args"), py::arg("num_threads") = 0,
           "Run a grid of programs; `args` are integers, one 8-byte slot each.")
      .def("launch_checked", &launchChecked, py::arg("grid"), py::arg("args"), py::arg("memory"),
           py::arg("num_threads") = 0,
           "The same, with what lies behind each argument: (begin, end, name), or None.")
      .def("check_accesses", &checkAccesses, py::arg("grid"), py::arg("args"), py::arg("memory"),
           "Fail with E088 if a launch leaves what lies behind an argument for certain.")
      .def("launch_cuda", &launchCUDA, py::arg("device"), py::arg("stream"), py::arg("grid"),
           py::arg("args"), "Put a grid on a stream of a GPU; 0 is the legacy default stream.")
      .def("device_facts", &deviceFacts, py::arg("device"),
           "What the driver has made of the kernel: registers and local memory of a thread.")
      .def("estimate", &estimate, py::arg("device"), py::arg("grid"), py::arg("args"),
           py::arg("bytes"), "What a launch is expected to take, as a dict; nothing runs.")
      .def("limits", &limits,
           "What the kernel takes for granted of a launch: the fields of tessera_limits, or None.")
      .def("accepts", &accepts, py::arg("grid"), py::arg("args"),
           "Whether a launch is within the limits that the kernel was compiled for.")
      .def("stage", &stage, py::arg("name"),
           "The text of a named stage (bytes for machine code), or None if it was not kept.")
      .def("metadata",
           [](Kernel &self) { return parseJSON(tsr_kernel_metadata(self.handle.get())); })
      .def("show", &show, py::kw_only(), py::arg("perf"), py::arg("gdb"),
           "Tell perf and gdb the names of a CPU kernel's functions, as long as it lives.")
      .def("serialize", &serialize, "The kernel as bytes, for a cache.")
      .def_static("deserialize", &deserialize, py::arg("data"));
  module.def(
      "compile", &compile, py::arg("module"), py::arg("options"), py::arg("slow_seconds") = 0.0,
      py::arg("notice") = py::none(),
      "Compile a module's kernel; `options` is JSON. The module is lowered in place.\n"
      "After so many seconds, if not 0, `notice` is called once, with a dict: \"parts\", a list\n"
      "of [name, seconds], and \"schedules\", how many the kernel was compiled with. An\n"
      "exception of a signal handler, such as KeyboardInterrupt, ends it; the module is gone\n"
      "then.");
  module.def("compile_text", &compileText, py::arg("text"), py::arg("name"), py::arg("options"),
             py::arg("slow_seconds") = 0.0, py::arg("notice") = py::none(),
             "Compile the text of a stage, with `start_stage` in the options.");
  module.def("interpret", &interpret, py::arg("module"), py::arg("kernel"), py::arg("grid"),
             py::arg("args"), py::arg("memory") = py::none(), py::arg("report_wraps") = false,
             "Run a kernel of tile IR with the reference interpreter.");
  module.def(
      "xla_handler", &xlaHandler, py::arg("on_gpu"), py::arg("major_version"),
      py::arg("minor_version"),
      "The handler of XLA's foreign function interface that launches kernels, as a capsule;\n"
      "None where the version of the interface is not known.");
  module.def(
      "host_info", [] { return parseJSON(tsr_host_info()); },
      "About the host: CPU, features, vector bits, threads.");
}
