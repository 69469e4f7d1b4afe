// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading the capsule that `__dlpack__` returns. The structs follow DLPack's stable ABI, and other
// frameworks fill them in. Only the fields that a kernel needs are read. The capsule remains
// unconsumed, so its owner frees the tensor with it.

#include "DLPack.h"

#include <algorithm>

using namespace tessera::python;

namespace {

struct DLDevice {
  int32_t type;
  int32_t id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  char *data;
  DLDevice device;
  int32_t rank;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byteOffset;
};

/// The form since DLPack 1.0. The older one is a DLTensor with its owner behind it.
struct VersionedTensor {
  uint32_t major;
  uint32_t minor;
  void *owner;
  void (*release)(VersionedTensor *);
  uint64_t flags;
  DLTensor tensor;
};

constexpr uint64_t kReadOnlyFlag = 1;

/// The tensor of a capsule, or null; of a version that is not known, `version` is that.
const DLTensor *findTensor(PyObject *capsule, bool &isReadOnly, uint32_t &version) {
  version = 1;
  isReadOnly = false;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto *versioned =
        static_cast<const VersionedTensor *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    version = versioned->major;
    if (version != 1)
      return nullptr;
    isReadOnly = versioned->flags & kReadOnlyFlag;
    return &versioned->tensor;
  }
  if (PyCapsule_IsValid(capsule, "dltensor"))
    return static_cast<const DLTensor *>(PyCapsule_GetPointer(capsule, "dltensor"));
  return nullptr;
}

DLPackArray readTensor(const DLTensor &tensor, bool isReadOnly) {
  bool hasElements =
      std::find(tensor.shape, tensor.shape + tensor.rank, 0) == tensor.shape + tensor.rank;
  return {reinterpret_cast<uintptr_t>(tensor.data) + tensor.byteOffset,
          tensor.device.type,
          tensor.device.id,
          tensor.dtype.code,
          tensor.dtype.bits,
          tensor.dtype.lanes,
          isReadOnly,
          hasElements};
}

py::tuple readDLPack(const py::object &capsule) {
  bool isReadOnly;
  uint32_t version;
  const DLTensor *tensor = findTensor(capsule.ptr(), isReadOnly, version);
  if (version != 1)
    throw py::value_error("DLPack version " + std::to_string(version) + " is not known here");
  if (!tensor)
    throw py::type_error("no DLPack capsule, or one that was used before");
  DLPackArray array = readTensor(*tensor, isReadOnly);
  return py::make_tuple(array.address, array.code, array.bits, array.lanes, array.isReadOnly,
                        array.hasElements);
}

} // namespace

bool tessera::python::readDLPackArray(PyObject *capsule, DLPackArray &array) {
  bool isReadOnly;
  uint32_t version;
  const DLTensor *tensor = findTensor(capsule, isReadOnly, version);
  if (tensor)
    array = readTensor(*tensor, isReadOnly);
  return tensor;
}

bool tessera::python::isHostDevice(long type) {
  constexpr long cpu = 1, cudaHost = 3, rocmHost = 11;
  return type == cpu || type == cudaHost || type == rocmHost;
}

bool tessera::python::isCUDADevice(long type) {
  constexpr long cuda = 2, cudaManaged = 13;
  return type == cuda || type == cudaManaged;
}

void tessera::python::registerDLPack(py::module_ &module) {
  module.def(
      "read_dlpack", &readDLPack, py::arg("capsule"),
      "Address, type code, bits, lanes, whether read-only and whether there are elements, of\n"
      "a DLPack capsule. The memory lives as long as the capsule.");
}
