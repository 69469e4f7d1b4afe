// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The NVIDIA GPUs of this machine. The first call of one of these functions opens the driver.

#include "Handles.h"
#include "Interpreter.h"

using namespace tessera::python;

namespace {

int deviceCount() {
  int32_t count = 0;
  check(tsr_cuda_device_count(&count));
  return count;
}

py::object deviceInfo(int device) {
  const char *json = nullptr;
  check(tsr_cuda_device_info(device, &json));
  return parseJSON(json);
}

int pointerDevice(uint64_t address) {
  int32_t device = -1;
  check(tsr_cuda_pointer_device(address, &device));
  return device;
}

void synchronize(int device, uint64_t stream) {
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_cuda_synchronize(device, stream);
  }
  check(status);
}

void waitForStream(int device, uint64_t stream, uint64_t other) {
  TsrStatus status;
  {
    WithoutGIL released;
    status = tsr_cuda_wait_for_stream(device, stream, other);
  }
  check(status);
}

} // namespace

void tessera::python::registerCUDA(py::module_ &module) {
  module.def(
      "cuda_is_available", [] { return tsr_cuda_is_available() != 0; },
      "Whether there are a CUDA driver and a GPU.");
  module.def("cuda_device_count", &deviceCount);
  module.def("cuda_device_info", &deviceInfo, py::arg("device"),
             "A dict: name, capability, multiprocessors, max_shared_bytes, ...");
  module.def(
      "gpu_machines", [] { return parseJSON(tsr_gpu_machines()); },
      "The GPUs that there is code for, each a dict: name, capability, instructions, ...");
  module.def(
      "gpu_machine_for_capability",
      [](int major, int minor) { return tsr_gpu_machine_for_capability(major, minor); },
      py::arg("major"), py::arg("minor"), "The name of the one whose code such a GPU runs best.");
  module.def("cuda_pointer_device", &pointerDevice, py::arg("address"),
             "The GPU that memory belongs to, or -1.");
  module.def(
      "cuda_reaches",
      [](int device, uint64_t address) { return tsr_cuda_reaches(device, address) != 0; },
      py::arg("device"), py::arg("address"),
      "Whether a GPU reaches memory of the host: whether it is pinned.");
  module.def("cuda_synchronize", &synchronize, py::arg("device"), py::arg("stream") = 0,
             "Wait for all that was put on a stream.");
  module.def("cuda_wait_for_stream", &waitForStream, py::arg("device"), py::arg("stream"),
             py::arg("other"), "Have later work of a stream wait for what is on another one now.");
}
