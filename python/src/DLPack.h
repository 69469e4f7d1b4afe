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
  int32_t device;  ///< its type
  int32_t ordinal; ///< of the device among those of its type
  unsigned code;   ///< of elements
  unsigned bits;
  unsigned lanes;
  bool isReadOnly;
  bool hasElements;
};

/// False if it is no capsule of a version that is known. The memory lives as long as the capsule.
bool readDLPackArray(PyObject *capsule, DLPackArray &array);

/// Whether the CPU reaches what is on a device of this type of DLPack's.
bool isHostDevice(long type);

/// The functions in C by which a framework tells of its arrays, without objects of Python's:
/// DLPack's exchange API, which a class has as `__dlpack_c_exchange_api__`, torch's since 2.10.
class DLPackExchange {
public:
  /// Of no class.
  DLPackExchange() = default;
  /// Of a class that may have it, in a version that is known.
  explicit DLPackExchange(PyTypeObject *type);

  explicit operator bool() const { return api; }
  /// False, and no exception, where an array of the class cannot be described. The memory lives as
  /// long as the array.
  bool read(PyObject *array, DLPackArray &read) const;
  /// The stream on which the framework works on a GPU at this moment; false if it does not say.
  bool findStream(int32_t ordinal, uint64_t &stream) const;

private:
  const struct ExchangeAPI *api = nullptr; ///< lives as long as the process
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_DLPACK_H
