// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The address and element type of an array that exports DLPack.

#ifndef TESSERA_PYTHON_DLPACK_H
#define TESSERA_PYTHON_DLPACK_H

#include "Handles.h"

#include <cstdint>

namespace tessera::python {

struct DLPackArray {
  uint64_t address;
  int32_t device; ///< its type
  int32_t ordinal;
  unsigned code; ///< of elements
  unsigned bits;
  unsigned lanes;
  bool isReadOnly;
  bool hasElements;
};

/// Returns false if the capsule has no known version. The memory lives as long as the capsule.
bool readDLPackArray(PyObject *capsule, DLPackArray &array);

/// True if the CPU can access memory of this DLPack device type.
bool isHostDevice(long type);

/// True if this DLPack device type is memory of NVIDIA GPUs.
bool isCUDADevice(long type);

} // namespace tessera::python

#endif // TESSERA_PYTHON_DLPACK_H
