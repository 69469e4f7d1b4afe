// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchTensors.h"

#include "ArgumentTypes.h"
#include "LoadedLibrary.h"

#include <algorithm>

using namespace tessera::python;

void StableInterface::find() {
  LoadedLibrary library("libtorch_cpu.so");
  int32_t (*findCPU)() = nullptr, (*findCUDA)() = nullptr;
  library.find("aoti_torch_get_data_ptr", getAddress);
  library.find("aoti_torch_get_dtype", getDType);
  library.find("aoti_torch_get_device_type", getDeviceType);
  library.find("aoti_torch_get_device_index", getDeviceIndex);
  library.find("aoti_torch_device_type_cpu", findCPU);
  library.find("aoti_torch_device_type_cuda", findCUDA);
  isComplete = getAddress && getDType && getDeviceType && getDeviceIndex && findCPU && findCUDA;
  if (isComplete) {
    cpu = findCPU();
    cuda = findCUDA();
  }
}

bool TorchTensors::learnNegativeBit(const Probes &plain, const Probes &negative) {
  constexpr size_t objectBytes = 64, implementationBytes = 184; // as in torch 2.13
  Bits found;
  auto holdsAddress = [&](const auto &probe) {
    return static_cast<size_t>(Py_TYPE(probe.first.ptr())->tp_basicsize) >=
               found.implementation + sizeof(uint64_t) &&
           readWord(probe.first.ptr(), found.implementation) == probe.second;
  };
  for (found.implementation = sizeof(PyObject); found.implementation < objectBytes;
       found.implementation += sizeof(uint64_t))
    if (std::all_of(plain.begin(), plain.end(), holdsAddress) &&
        std::all_of(negative.begin(), negative.end(), holdsAddress))
      break;
  if (found.implementation >= objectBytes || plain.empty() || negative.empty())
    return false;
  unsigned numFound = 0;
  for (size_t word = 0; word < implementationBytes; word += sizeof(uint64_t)) {
    uint64_t common = ~uint64_t(0);
    for (const auto &[tensor, address] : negative)
      common &= readWord(reinterpret_cast<const void *>(address), word);
    for (const auto &[tensor, address] : plain)
      common &= ~readWord(reinterpret_cast<const void *>(address), word);
    numFound += static_cast<unsigned>(__builtin_popcountll(common));
    if (common)
      found.word = word;
  }
  found.isKnown = numFound == 1;
  if (found.isKnown)
    bits = found;
  return found.isKnown;
}

void TorchTensors::accept(PyObject *tensor, uint64_t address, char dtype) {
  if (!bits.isKnown)
    return;
  constexpr size_t most = 64;
  if (!isPlain(tensor) && bits.accepted.size() < most)
    bits.accepted.push_back(readBits(tensor));

  if (!torch.isComplete)
    torch.find();
  void *handle = getHandle(tensor), *found = nullptr;
  int32_t number;
  if (!torch.isComplete || !address || torch.getAddress(handle, &found) ||
      reinterpret_cast<uintptr_t>(found) != address || torch.getDType(handle, &number))
    return;
  dtypes.learn(number, dtype);
  PyTypeObject *type = Py_TYPE(tensor);
  if (knowsClass(type))
    return;
  classes.push_back(type);
  forgetWhenDeleted(type);
}

void TorchTensors::learnStream(PyObject *function) {
  if (streamFunction == function)
    return;
  Py_INCREF(function);
  Py_XSETREF(streamFunction, function);
}

bool TorchTensors::findStream(PyObject *function, int32_t device, uint64_t &stream) {
  static int32_t (*const find)(int32_t device, void **stream) = [] {
    int32_t (*found)(int32_t, void **) = nullptr;
    LoadedLibrary("libtorch_cuda.so").find("aoti_torch_get_current_cuda_stream", found);
    return found;
  }();
  void *found = nullptr;
  if (function != streamFunction || !find || find(device, &found))
    return false;
  stream = reinterpret_cast<uintptr_t>(found);
  return true;
}

bool TorchTensors::findCurrentStream(int32_t device, uint64_t &stream) {
  if (!streamFunction)
    return false;
  if (findStream(streamFunction, device, stream))
    return true;
  auto found = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_CallFunction(streamFunction, "i", device); }));
  clearError(PyExc_Exception);
  if (!found || !PyLong_CheckExact(found.ptr()))
    return false;
  stream = PyLong_AsUnsignedLongLong(found.ptr());
  clearError(PyExc_OverflowError);
  return stream != ~uint64_t(0);
}
