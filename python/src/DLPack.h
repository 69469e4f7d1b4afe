// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel needs of an array that exports DLPack.

#ifndef TESSERA_PYTHON_DLPACK_H
#define TESSERA_PYTHON_DLPACK_H

#include "Handles.h"

#include <cstdint>

namespace tessera::python {

struct DLPackArray {
  uint64_t address;
  int32_t device; ///< its type
  unsigned code;  ///< of elements
  unsigned bits;
  unsigned lanes;
  bool isReadOnly;
  bool hasElements;
};

/// False if it is no capsule of a version that is known. The memory lives as long as the capsule.
bool readDLPackArray(PyObject *capsule, DLPackArray &array);

/// Whether the CPU reaches what is on a device of this type of DLPack's.
bool isHostDevice(long type);

} // namespace tessera::python

#endif // TESSERA_PYTHON_DLPACK_H
