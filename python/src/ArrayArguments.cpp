// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds arrays and tensor descriptors to a signature, by the protocol of each class. These functions
// return false for bad arrays, so that the whole path raises the error.

#include "ArgumentTypes.h"
#include "Reinterpreted.h"
#include "Signature.h"

#include <cstring>
#include <string>

using namespace tessera::python;

using Extents = FixedVector<int64_t, kMaxDescriptorRank>;

/// Reads the list or tuple that an object has by this name. False unless all its items are plain
/// integers of 64 bits, and a descriptor may have as many.
static bool readIntegers(PyObject *object, PyObject *name, Extents &found) {
  py::object items = getAttribute(object, name);
  if (!items || !(PyTuple_Check(items.ptr()) || PyList_Check(items.ptr())) ||
      PySequence_Fast_GET_SIZE(items.ptr()) > static_cast<Py_ssize_t>(kMaxDescriptorRank))
    return false;
  int overflow = 0;
  for (Py_ssize_t i = 0; !overflow && i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
    PyObject *item = PySequence_Fast_GET_ITEM(items.ptr(), i);
    if (!PyLong_CheckExact(item))
      return false;
    found.push_back(PyLong_AsLongLongAndOverflow(item, &overflow));
  }
  return !overflow;
}

/// Adds a tensor of torch's, on the CPU or on a GPU.
bool Signature::addTensor(const Parameter &parameter, PyObject *value) {
  TypeTables &tables = typeTables();
  if (tables.torch.knowsClass(Py_TYPE(value)) && !tables.torch.isPlain(value))
    return false;
  // Torch's own functions, whose exceptions `slow` meets again: of a batch under vmap, say.
  auto own = [](PyObject *found) {
    clearError(PyExc_Exception);
    return py::reinterpret_steal<py::object>(found);
  };
  auto get = [&](PyObject *name) {
    return own(callPython([&] { return PyObject_GetAttr(value, name); }));
  };
  auto call = [&](PyObject *name) {
    return own(callPython([&] { return PyObject_CallMethodNoArgs(value, name); }));
  };
  bool isCUDA = tables.expectsCUDA;
  bool isReachable = get(isCUDA ? names().isCUDA : names().isCPU).ptr() == Py_True;
  if (!isReachable) {
    tables.expectsCUDA = isCUDA = !isCUDA;
    isReachable = get(isCUDA ? names().isCUDA : names().isCPU).ptr() == Py_True;
  }
  py::object dtype = isReachable ? get(names().dtype) : py::object();
  char id;
  if (!dtype || !tables.findDType(dtype.ptr(), id))
    return false;
  py::object device = isCUDA ? call(names().getDevice) : py::object();
  py::object address = call(names().dataPtr);
  if (!address || !PyLong_Check(address.ptr()) ||
      (isCUDA && !(device && PyLong_Check(device.ptr()))))
    return false;
  uint64_t bits = PyLong_AsUnsignedLongLongMask(address.ptr());
  bool isSpecial = tables.torch.knowsBits() ? !tables.torch.isPlain(value)
                                            : call(names().isNegative).ptr() == Py_True ||
                                                  get(names().isNested).ptr() == Py_True;
  if (bits < kLowestAddress || isSpecial)
    return false;
  int overflow = 0;
  long ordinal = isCUDA ? PyLong_AsLongAndOverflow(device.ptr(), &overflow) : -1;
  // A class may come to a kernel that is known, so that `slow` never accepts it.
  tables.torch.accept(value, bits, id);
  return !overflow && addTensorOn(ordinal, parameter, bits, id);
}

[[gnu::cold]] void Signature::refuseFailed(const Parameter &parameter, PyObject *value,
                                           const char *asked) {
  if (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    return;
  }
  // The whole path refuses an unknown option first.
  if (options.size() && PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();
    return;
  }
  py::error_already_set error;
  py::handle refuse(error.matches(PyExc_Exception) ? typeTables().refuse : nullptr);
  std::string name = py::str(parameter.name);
  for (uint16_t index : path)
    name += "[" + std::to_string(index) + "]";
  if (refuse)
    callPython([&] { refuse(py::handle(value), name, asked, error.value()); });
  throw error;
}

py::object Signature::askFor(const Parameter &parameter, PyObject *value, PyObject *name) {
  PyObject *found = callPython([&] { return PyObject_GetAttr(value, name); });
  if (!found)
    refuseFailed(parameter, value, kAsking);
  return py::reinterpret_steal<py::object>(found);
}

bool Signature::askForOptional(const Parameter &parameter, PyObject *value, PyObject *name,
                               py::object &found) {
  PyObject *attribute = nullptr;
  int status = lookUpAttribute(value, name, &attribute);
  if (status < 0)
    refuseFailed(parameter, value, kAsking);
  found = py::reinterpret_steal<py::object>(attribute);
  return status >= 0;
}

/// An item of a dictionary, or null. It is held: a key that is compared may change the dictionary.
static py::object getItem(PyObject *dictionary, PyObject *key) {
  auto item = py::reinterpret_borrow<py::object>(
      callPython([&] { return PyDict_GetItemWithError(dictionary, key); }));
  if (PyErr_Occurred())
    throw py::error_already_set();
  return item;
}

/// Reads the place in memory that an array's interface names: an integer, and whether it is
/// read-only, a bool. False for anything else, and for an array with a mask.
static bool readPlace(PyObject *interface, uint64_t &address, bool &isReadOnly) {
  py::object data = getItem(interface, names().data), mask = getItem(interface, names().mask);
  if (!data || !PyTuple_Check(data.ptr()) || PyTuple_GET_SIZE(data.ptr()) != 2)
    return false;
  PyObject *place = PyTuple_GET_ITEM(data.ptr(), 0), *flag = PyTuple_GET_ITEM(data.ptr(), 1);
  int overflow = 0;
  int64_t found = PyLong_CheckExact(place) ? PyLong_AsLongLongAndOverflow(place, &overflow) : 0;
  address = static_cast<uint64_t>(found);
  isReadOnly = flag == Py_True;
  return PyBool_Check(flag) && (!mask || mask.is_none()) && !overflow &&
         found >= static_cast<int64_t>(kLowestAddress);
}

static bool areIntegers(PyObject *tuple) {
  if (!PyTuple_Check(tuple))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(tuple, i)))
      return false;
  return true;
}

static bool isText(PyObject *object, const char *text) {
  return PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, text) == 0;
}

/// An object with `data_ptr()` and `dtype`, such as a wrapper of a tensor or an instance of a
/// subclass that answers for itself. It is asked what runtime/arrays.py asks.
bool Signature::addByPointer(const Parameter &parameter, PyObject *value) {
  py::object device, type, layout, isNested;
  if (!askForOptional(parameter, value, names().device, device) ||
      !askForOptional(parameter, value, names().layout, layout) ||
      !askForOptional(parameter, value, names().isNested, isNested) ||
      (device && !askForOptional(parameter, device.ptr(), names().type, type)) ||
      (isNested && isNested.ptr() != Py_False) ||
      (layout && py::str(layout).cast<std::string_view>() != "torch.strided"))
    return false;
  bool isCUDA = type && isText(type.ptr(), "cuda");
  if (type && !isCUDA && !isText(type.ptr(), "cpu"))
    return false;
  auto call = [&](const py::object &method, const char *asked) {
    PyObject *found = callPython([&] { return PyObject_CallNoArgs(method.ptr()); });
    if (!found)
      refuseFailed(parameter, value, asked);
    return py::reinterpret_steal<py::object>(found);
  };
  for (PyObject *name : {names().isConjugate, names().isNegative}) {
    py::object ask;
    if (!askForOptional(parameter, value, name, ask) ||
        (ask && !ask.is_none() && call(ask, kAsking).ptr() != Py_False))
      return false;
  }
  py::object dtype = askFor(parameter, value, names().dtype);
  py::object method = askFor(parameter, value, names().dataPtr);
  char id;
  if (!dtype || !method || !typeTables().findDType(dtype.ptr(), id))
    return false;
  // On a GPU, torch's dtypes say on whose stream an array is.
  long ordinal = -1;
  if (isCUDA) {
    py::object index = askFor(parameter, device.ptr(), names().index);
    if (!index || std::strcmp(Py_TYPE(dtype.ptr())->tp_name, "torch.dtype") != 0)
      return false;
    int overflow = 0;
    ordinal = PyLong_CheckExact(index.ptr()) ? PyLong_AsLongAndOverflow(index.ptr(), &overflow) : 0;
    if (ordinal < 0 || !(PyLong_CheckExact(index.ptr()) || index.is_none()))
      return false;
  }
  py::object address = call(method, "data_ptr()");
  if (!address || !PyLong_CheckExact(address.ptr()))
    return false;
  int overflow = 0;
  int64_t bits = PyLong_AsLongLongAndOverflow(address.ptr(), &overflow);
  return !overflow && bits >= static_cast<int64_t>(kLowestAddress) &&
         addTensorOn(ordinal, parameter, static_cast<uint64_t>(bits), id);
}

/// Adds an array by NumPy's protocol. `slow` asks an object for `data_ptr` first.
bool Signature::addArrayInterface(const Parameter &parameter, PyObject *value) {
  py::object method;
  if (!askForOptional(parameter, value, names().dataPtr, method) || method)
    return false;
  PyObject *found = callPython([&] { return PyObject_GetAttr(value, names().arrayInterface); });
  if (!found)
    refuseFailed(parameter, value, "__array_interface__");
  PyObject *interface = own(py::reinterpret_steal<py::object>(found));
  py::object dtype = askFor(parameter, value, names().dtype);
  char id;
  if (!interface || !PyDict_CheckExact(interface) || !dtype ||
      !typeTables().findDType(dtype.ptr(), id))
    return false;
  py::object shape = getItem(interface, names().shape);
  uint64_t address;
  bool isReadOnly;
  if (!readPlace(interface, address, isReadOnly) || !shape || !areIntegers(shape.ptr()))
    return false;
  addPointer(parameter, address, id, isReadOnly, /*device=*/-1);
  return true;
}

/// Finds the element type of an array that has a type string, and may have a dtype.
static bool findElements(PyObject *typestr, PyObject *dtype, char &id) {
  const char *spelled = PyUnicode_AsUTF8(typestr);
  if (!spelled)
    PyErr_Clear(); // a text that UTF-8 does not have
  if (!spelled || *spelled == '>')
    return false;
  TypeTables &tables = typeTables();
  if (dtype)
    return tables.findDType(dtype, id);
  auto known = tables.typestrs.find(spelled);
  if (known == tables.typestrs.end())
    return false;
  id = known->second;
  return true;
}

/// The GPU that has the memory of an array, or -1 if that is unknown. CuPy's arrays know it.
static int32_t findOrdinal(PyObject *array, uint64_t address) {
  py::object device = getAttribute(array, names().device);
  py::object number = device ? getAttribute(device.ptr(), names().id) : py::object();
  int32_t ordinal = -1;
  if (number && PyLong_CheckExact(number.ptr())) {
    int overflow = 0;
    long found = PyLong_AsLongAndOverflow(number.ptr(), &overflow);
    return found < 0 || found > INT32_MAX ? -1 : static_cast<int32_t>(found);
  }
  return tsr_cuda_pointer_device(address, &ordinal) == TSR_OK ? ordinal : -1;
}

/// An array of CuPy's, Numba's and the like, which may name the stream that it is computed on.
bool Signature::addCUDAInterface(const Parameter &parameter, PyObject *value) {
  PyObject *found = callPython([&] { return PyObject_GetAttr(value, names().cudaInterface); });
  if (!found)
    refuseFailed(parameter, value, "__cuda_array_interface__");
  auto interface = py::reinterpret_steal<py::object>(found);
  if (!interface || !PyDict_CheckExact(interface.ptr()))
    return false;
  py::object typestr = getItem(interface.ptr(), names().typestr);
  py::object onStream = getItem(interface.ptr(), names().stream);
  uint64_t address;
  bool isReadOnly;
  if (!readPlace(interface.ptr(), address, isReadOnly) || !typestr ||
      !PyUnicode_Check(typestr.ptr()))
    return false;
  py::object dtype = askFor(parameter, value, names().dtype);
  char id;
  int32_t ordinal = findElements(typestr.ptr(), dtype.ptr(), id) ? findOrdinal(value, address) : -1;
  if (ordinal < 0 || ordinal > 127)
    return false;
  addPointer(parameter, address, id, isReadOnly, static_cast<char>(ordinal));
  bytes.push_back(kAny); // which begins no argument: a tensor of torch's is on torch's stream
  return !onStream || onStream.is_none() || streams.addNamed(own(std::move(onStream)));
}

/// Adds the parts of a tensor descriptor in the order of runtime/specialize.py.
bool Signature::addDescriptor(const Parameter &parameter, PyObject *value) {
  Extents shape, strides, block;
  if (!readIntegers(value, names().shape, shape) ||
      !readIntegers(value, names().strides, strides) ||
      !readIntegers(value, names().blockShape, block))
    return false;
  size_t rank = shape.size();
  py::object base = getAttribute(value, names().base);
  py::object padding = getAttribute(value, names().padding);
  py::object rounds = getAttribute(value, names().roundsToTF32);
  if (rank == 0 || strides.size() != rank || strides[rank - 1] != 1 || block.size() != rank ||
      !padding || !rounds || !PyBool_Check(rounds.ptr()) || !base ||
      Py_TYPE(base.ptr()) == typeTables().descriptor)
    return false;
  bool isNaN = isText(padding.ptr(), "nan");
  if (!isNaN && !isText(padding.ptr(), "zero"))
    return false;
  bytes.push_back(kDescriptor);
  bytes.push_back(static_cast<char>(rank << 2 | (isNaN ? 2 : 0) | (rounds.ptr() == Py_True)));
  if (!addArray(parameter, base.ptr()))
    return false;
  for (int64_t extent : shape)
    addInteger(parameter, extent);
  for (size_t i = 0; i + 1 < rank; ++i)
    addInteger(parameter, strides[i]);
  for (int64_t extent : block) {
    if (extent <= 0 || (extent & (extent - 1)))
      return false;
    bytes.push_back(static_cast<char>(__builtin_ctzll(static_cast<uint64_t>(extent))));
  }
  return true;
}

/// An array that is seen as elements of another type: what is said of its base, but for the type.
bool Signature::addReinterpreted(const Parameter &parameter, PyObject *value) {
  const auto &wrapper = *reinterpret_cast<const Reinterpreted *>(value);
  auto base = py::reinterpret_borrow<py::object>(wrapper.base);
  py::object id = wrapper.dtype ? getAttribute(wrapper.dtype, names().coreId) : py::object();
  // `slow` looks through wrappers of wrappers, of which there may be any number.
  if (!base || Py_TYPE(base.ptr()) == typeTables().wrapper || !id || !PyLong_CheckExact(id.ptr()))
    return false;
  size_t at = bytes.size();
  if (!addArray(parameter, own(base)) || bytes[at] != kPointer)
    return false;
  bytes[at + 1] = static_cast<char>(PyLong_AsLong(id.ptr()));
  if (!exports.empty() && exports.back().place == at)
    exports.back().dtype = bytes[at + 1];
  return true;
}
