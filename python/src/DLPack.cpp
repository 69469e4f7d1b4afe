// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading the capsule that `__dlpack__` returns. The structs are those of DLPack's
// stable ABI, which other frameworks fill in; only what a kernel needs is read, and
// the capsule is left unconsumed, so that its owner frees the tensor with it.

#include "Handles.h"

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

py::tuple readDLPack(const py::object &capsule) {
  const DLTensor *tensor = nullptr;
  bool readOnly = false;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto *versioned = static_cast<const VersionedTensor *>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (versioned->major != 1)
      throw py::value_error("DLPack version " + std::to_string(versioned->major) +
                            " is not known here");
    tensor = &versioned->tensor;
    readOnly = versioned->flags & kReadOnlyFlag;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    tensor = static_cast<const DLTensor *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  } else {
    throw py::type_error("no DLPack capsule, or one that was used before");
  }
  bool hasElements =
      std::find(tensor->shape, tensor->shape + tensor->rank, 0) == tensor->shape + tensor->rank;
  return py::make_tuple(reinterpret_cast<uintptr_t>(tensor->data) + tensor->byteOffset,
                        tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes, readOnly,
                        hasElements);
}

} // namespace

void tessera::python::registerDLPack(py::module_ &module) {
  module.def(
      "read_dlpack", &readDLPack, py::arg("capsule"),
      "Address, type code, bits, lanes, whether read-only and whether there are elements, of\n"
      "a DLPack capsule. The memory lives as long as the capsule.");
}
