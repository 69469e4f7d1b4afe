// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TorchArrays.h"

#include "../ArgumentTypes.h"
#include "../LoadedLibrary.h"

#include <algorithm>

using namespace tessera::python;

void TensorInterface::find() {
  LoadedLibrary cpu("libtorch_cpu.so");
  cpu.find("aoti_torch_get_dim", getRank);
  cpu.find("aoti_torch_get_sizes", getSizes);
  cpu.find("aoti_torch_get_strides", getStrides);
  cpu.find("aoti_torch_get_dtype", getDType);
  cpu.find("aoti_torch_get_data_ptr", getAddress);
  cpu.find("aoti_torch_get_storage_offset", getOffset);
  cpu.find("aoti_torch_dtype_element_size", getElementBytes);
  cpu.find("aoti_torch_get_device_type", getDeviceType);
  cpu.find("aoti_torch_get_device_index", getDevice);
  cpu.find("aoti_torch_device_type_cpu", findHost);
  cpu.find("aoti_torch_device_type_cuda", findCUDA);
  cpu.find("aoti_torch_grad_mode_is_enabled", isGradEnabled);
  cpu.find("aoti_torch_grad_mode_set_enabled", setGradEnabled);
  cpu.find("aoti_torch_empty_strided", makeStrided);
  cpu.find("aoti_torch__reinterpret_tensor", makeView);
  cpu.find("aoti_torch_delete_tensor_object", release);
}

void InnerInterface::find() {
  LoadedLibrary core("libc10.so"), cpu("libtorch_cpu.so"), python("libtorch_python.so");
  LoadedLibrary gpu("libtorch_cuda.so");
  python.find("_Z16THPVariable_WrapON2at10TensorBaseE", wrap);
  core.find("_ZNK3c1010TensorImpl13requires_gradEv", requiresGrad);
  cpu.find("_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE", bumpVersion);
  core.find("_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", countDispatchModes);
  cpu.find("_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", countFunctionModes);
  cpu.find("_ZN2at9functorch20functorchTLSAccessorEv", findTransforms);
  cpu.find("_ZN2at6native12is_inferenceERKNS_6TensorE", isInference);
  gpu.find(
      "_ZN2at6detail18empty_strided_cudaEN3c108ArrayRefIlEES3_NS1_10ScalarTypeESt8optionalINS1_"
      "6DeviceEE",
      makeOnCUDA);
}

bool TorchArrays::learn(const std::vector<py::type> &learned, const py::object &attribute,
                        std::vector<QuietAnswer> newAnswers, std::vector<QuietValue> newValues) {
  torch.find();
  inner.find();
  if (!torch.canRead() || Py_TYPE(attribute.ptr()) != &PyGetSetDescr_Type || !classes.empty())
    return !classes.empty();
  host = torch.findHost();
  cuda = torch.findCUDA ? torch.findCUDA() : -1;
  requiresGradAttribute =
      reinterpret_cast<PyGetSetDescrObject *>(attribute.inc_ref().ptr())->d_getset;
  answers = std::move(newAnswers);
  values = std::move(newValues);
  for (const py::type &each : learned)
    classes.push_back(reinterpret_cast<PyTypeObject *>(each.inc_ref().ptr()));
  return true;
}

bool TorchArrays::read(PyObject *value, TorchFacts &facts) const {
  const TorchTensors &tensors = typeTables().torch;
  if (std::find(classes.begin(), classes.end(), Py_TYPE(value)) == classes.end() ||
      !tensors.knowsBits() || !tensors.isPlain(value))
    return false;
  void *handle = tensors.getHandle(value);
  int64_t *shape = nullptr, *strides = nullptr;
  if (torch.getRank(handle, &facts.rank) || torch.getSizes(handle, &shape) ||
      torch.getStrides(handle, &strides) || torch.getDType(handle, &facts.dtype) ||
      torch.getDeviceType(handle, &facts.deviceType) || torch.getDevice(handle, &facts.device))
    return false;
  facts.isOnHost = facts.deviceType == host;
  facts.shape = shape;
  facts.strides = strides;
  return true;
}

bool TorchArrays::requiresGrad(PyObject *tensor) const {
  if (inner.requiresGrad)
    return inner.requiresGrad(*static_cast<void **>(typeTables().torch.getHandle(tensor)));
  auto answer = py::reinterpret_steal<py::object>(callPython(
      [&] { return requiresGradAttribute->get(tensor, requiresGradAttribute->closure); }));
  if (!answer)
    throw py::error_already_set();
  return answer.ptr() == Py_True;
}

bool TorchArrays::countWrite(PyObject *tensor) const {
  TorchFacts facts;
  if (!inner.bumpVersion || !inner.isInference || !read(tensor, facts))
    return false;
  const void *handle = typeTables().torch.getHandle(tensor);
  if (!inner.isInference(handle)) // else there is no count
    inner.bumpVersion(handle);
  return true;
}

uint64_t TorchArrays::getAddress(PyObject *tensor) const {
  void *address = nullptr;
  bool hasFailed = torch.getAddress(typeTables().torch.getHandle(tensor), &address);
  return hasFailed ? 0 : reinterpret_cast<uintptr_t>(address);
}

uint64_t TorchArrays::findMemory(PyObject *tensor, const TorchFacts &facts) const {
  uint64_t address = getAddress(tensor);
  int64_t offset = 0;
  if (!address || torch.getOffset(typeTables().torch.getHandle(tensor), &offset))
    return 0;
  return address - static_cast<uint64_t>(offset) * torch.getElementBytes(facts.dtype);
}

bool TorchArrays::isNew(PyObject *value, PyObject *const *args, size_t count) const {
  TorchFacts facts;
  if (!read(value, facts))
    return false;
  uint64_t memory = findMemory(value, facts);
  return std::none_of(args, args + count, [&](PyObject *each) {
    return each == value || (memory && read(each, facts) && findMemory(each, facts) == memory);
  });
}

/// True if the function returns the object.
static bool returns(const py::object &function, PyObject *expected) {
  auto answer = py::reinterpret_steal<py::object>(
      callPython([&] { return PyObject_CallNoArgs(function.ptr()); }));
  if (!answer)
    throw py::error_already_set();
  return answer.ptr() == expected;
}

bool TorchArrays::isQuiet() const {
  for (const auto &[dictionary, name, quiet] : values)
    if (PyDict_GetItemWithError(dictionary.ptr(), name.ptr()) != quiet.ptr())
      return false;
  // Torch keeps the state of transforms after the last one, so Python says whether one is active.
  if (inner.canWatch() && !inner.countDispatchModes() && !inner.countFunctionModes() &&
      !*inner.findTransforms())
    return true;
  return std::all_of(answers.begin(), answers.end(), [](const QuietAnswer &each) {
    return returns(each.first, each.second.ptr());
  });
}

void *TorchArrays::makeOnCUDA(const TorchLayout &layout) const {
  void *handle = operator new(sizeof(TorchHandle));
  try {
    new (handle) TorchHandle(inner.makeOnCUDA(
        {layout.shape.data(), layout.shape.size()}, {layout.strides.data(), layout.strides.size()},
        static_cast<int8_t>(layout.dtype),
        TorchDevice{static_cast<int8_t>(layout.deviceType), static_cast<int8_t>(layout.device)}));
    return handle;
  } catch (...) {
    operator delete(handle);
    return nullptr;
  }
}

PyObject *TorchArrays::make(const TorchLayout &layout) const {
  void *handle = nullptr;
  auto make = [&] {
    if (layout.deviceType == cuda && inner.makeOnCUDA) { // without torch's dispatcher
      handle = makeOnCUDA(layout);
      return;
    }
    int32_t status = torch.makeStrided(static_cast<int64_t>(layout.shape.size()),
                                       layout.shape.data(), layout.strides.data(), layout.dtype,
                                       layout.deviceType, layout.device, &handle);
    if (status)
      handle = nullptr;
  };
  if (layout.isOnHost) {
    make();
  } else {
    // A thread that holds the lock of a GPU's memory may wait for the GIL.
    WithoutGIL released;
    make();
  }
  return handle ? wrap(handle) : nullptr;
}

PyObject *TorchArrays::wrap(void *handle) const {
  PyObject *tensor = callPython([&] { return inner.wrap(handle); });
  torch.release(handle);
  return tensor;
}

PyObject *TorchArrays::makeView(PyObject *tensor, const TorchLayout &layout, int64_t offset) const {
  void *handle = nullptr;
  int32_t status = torch.makeView(typeTables().torch.getHandle(tensor),
                                  static_cast<int64_t>(layout.shape.size()), layout.shape.data(),
                                  layout.strides.data(), offset, &handle);
  return status ? nullptr : wrap(handle);
}
