// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds arrays that export DLPack to a signature. One in the host's memory is read at once. One on a
// GPU makes itself ready on the consumer's stream, which is known when all arguments have been
// seen. So it gets a place in the signature first, and is exported last.

#include "ArgumentTypes.h"
#include "Signature.h"

using namespace tessera::python;

/// An array that Python's buffer protocol gives as DLPack does, in C. False, and nothing done, for
/// elements that it has no format for, and where it fails: DLPack says why.
bool Signature::addBuffer(const Parameter &parameter, PyObject *value) {
  PyObject *view = callPython([&] { return PyMemoryView_FromObject(value); });
  clearError(PyExc_Exception);
  if (!own(py::reinterpret_steal<py::object>(view)))
    return false;
  const Py_buffer &buffer = *PyMemoryView_GET_BUFFER(view);
  const auto &formats = typeTables().formats;
  auto format = buffer.format ? formats.find(buffer.format) : formats.end();
  auto address = reinterpret_cast<uintptr_t>(buffer.buf);
  if (format == formats.end() || address < kLowestAddress)
    return false;
  addPointer(parameter, address, format->second, /*readOnly=*/true, /*device=*/-1);
  return true;
}

/// Reads what `__dlpack_device__` has returned. Both parts may be of a subclass of int: the type is
/// an IntEnum in most libraries.
static bool readDevice(PyObject *device, long &kind, long &ordinal) {
  if (!PyTuple_Check(device) || PyTuple_GET_SIZE(device) != 2)
    return false;
  PyObject *first = PyTuple_GET_ITEM(device, 0), *second = PyTuple_GET_ITEM(device, 1);
  int isHuge = 0, isHugeOrdinal = 0;
  if (!PyLong_Check(first) || !PyLong_Check(second))
    return false;
  kind = PyLong_AsLongAndOverflow(first, &isHuge);
  ordinal = PyLong_AsLongAndOverflow(second, &isHugeOrdinal);
  return !isHuge && !isHugeOrdinal;
}

bool Signature::addDLPack(const Parameter &parameter, PyObject *value) {
  if (typeTables().getLearned(Py_TYPE(value)).hasBuffer && addBuffer(parameter, value))
    return true;
  PyObject *found =
      callPython([&] { return PyObject_CallMethodNoArgs(value, names().dlpackDevice); });
  if (!found)
    refuseFailed(parameter, value, kExporting);
  auto device = py::reinterpret_steal<py::object>(found);
  long kind, ordinal;
  if (!device || !readDevice(device.ptr(), kind, ordinal))
    return false;
  DLPackArray array;
  char id;
  if (isHostDevice(kind)) {
    if (!exportArray(parameter, value, nullptr, array, id) || !isHostDevice(array.device))
      return false;
    addPointer(parameter, array.address, id, array.isReadOnly, /*device=*/-1);
    return true;
  }
  if (!isCUDADevice(kind) || ordinal < 0 || ordinal > 127)
    return false;
  // Held, since the attribute that it came from may be another object by then.
  own(py::reinterpret_borrow<py::object>(value));
  exports.push_back({value, &parameter, bytes.size(), slots.size(), /*dtype=*/std::nullopt,
                     std::vector<uint16_t>(path.begin(), path.end())});
  addPointer(parameter, /*address=*/0, /*dtype=*/0, /*readOnly=*/false, static_cast<char>(ordinal));
  bytes.push_back(kAny); // as for arrays with `__cuda_array_interface__`
  return true;
}

/// Calls `__dlpack__` for a consumer that works on a stream; null for one on the host.
static PyObject *callExport(PyObject *array, PyObject *consumer) {
  static PyObject *const onHost = PyTuple_Pack(1, names().maxVersion);
  static PyObject *const onGPU = PyTuple_Pack(2, names().maxVersion, names().stream);
  static PyObject *const version = Py_BuildValue("(ii)", 1, 1);
  PyObject *arguments[] = {array, version, consumer};
  return callPython([&] {
    return PyObject_VectorcallMethod(names().dlpack, arguments, 1, consumer ? onGPU : onHost);
  });
}

/// Reads a capsule. False if the whole path has to look at it.
static bool readExport(PyObject *capsule, PyTypeObject *cls, DLPackArray &array, char &dtype) {
  TypeTables &tables = typeTables();
  if (!readDLPackArray(capsule, array) || !array.hasElements || !array.address ||
      !tables.findDType(array, dtype))
    return false;
  array.isReadOnly |= tables.getLearned(cls).isImmutable;
  return true;
}

bool Signature::exportArray(const Parameter &parameter, PyObject *value, PyObject *consumer,
                            DLPackArray &array, char &dtype) {
  PyObject *found = callExport(value, consumer);
  if (!found)
    refuseFailed(parameter, value, kExporting);
  PyObject *capsule = own(py::reinterpret_steal<py::object>(found));
  return capsule && readExport(capsule, Py_TYPE(value), array, dtype);
}

bool Signature::exportArrays() {
  uint64_t stream;
  if (!streams.find(stream))
    return false;
  streams.exportedTo = stream;
  py::int_ consumer(stream == 0 ? kLegacyStream : stream);
  for (const Export &each : exports) {
    DLPackArray array;
    char dtype, *place = &bytes[each.place];
    path.assign(each.path.data(), each.path.size());
    if (!exportArray(*each.parameter, each.array, consumer.ptr(), array, dtype) ||
        !isCUDADevice(array.device) || array.ordinal != place[3])
      return false;
    auto known = makePointer(*each.parameter, array.address, each.dtype.value_or(dtype),
                             array.isReadOnly, place[3]);
    std::copy(known.begin(), known.end(), place);
    slots[each.slot] = array.address;
  }
  return true;
}
