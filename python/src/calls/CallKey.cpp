// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallKey.h"

#include "../ArgumentTypes.h"
#include "../NumPyArray.h"
#include "TorchArrays.h"

#include <algorithm>
#include <cstring>

using namespace tessera::python;

namespace {

/// The first byte of each argument.
enum Kind : int64_t {
  kNumPyArray,
  kCuPyArray,
  kTorchTensor,
  kBool,
  kInteger,
  kFloat,
  kNone,
  kTuple,
  kList,
  kText,
  kObject
};

/// Room for one more argument without a layout, whose words are few.
constexpr size_t kReserved = 4;
constexpr size_t kMaxWords = 256 - kReserved;

} // namespace

template <typename Integer>
bool CallKey::addLayout(int64_t rank, const Integer *shape, const Integer *strides) {
  if (!hasLayouts)
    return true;
  if (words.size() + 2 * static_cast<size_t>(rank) > kMaxWords)
    return false;
  for (int64_t i = 0; i < rank; ++i)
    words.push_back(shape[i]);
  for (int64_t i = 0; i < rank; ++i)
    words.push_back(strides[i]);
  return true;
}

bool CallKey::add(PyObject *value) {
  if (words.size() > kMaxWords)
    return false;
  if (PyFloat_CheckExact(value)) {
    words.push_back(kFloat);
    return true;
  }
  if (PyLong_CheckExact(value) || PyBool_Check(value)) {
    words.push_back(PyBool_Check(value) ? kBool : kInteger);
    return true;
  }
  if (value == Py_None) {
    words.push_back(kNone);
    return true;
  }
  bool fits = true;
  return addArray(value, fits) && fits;
}

bool CallKey::addArray(PyObject *value, bool &fits) {
  TorchFacts facts;
  if (torchArrays().read(value, facts)) {
    hasTensor = true;
    words.push_back(kTorchTensor | int64_t(torchArrays().requiresGrad(value)) << 8 |
                    (facts.rank & 0xff) << 16 | int64_t(facts.dtype & 0xffff) << 24 |
                    int64_t(facts.device & 0xff) << 40 | int64_t(facts.deviceType & 0xff) << 48);
    fits = addLayout(facts.rank, facts.shape, facts.strides);
    return true;
  }
  if (cupyClass && Py_TYPE(value) == cupyClass) {
    fits = addCuPy(value);
    return true;
  }
  if (typeTables().getKind(Py_TYPE(value)) != ArrayKind::NumPy)
    return false;
  const auto *array = reinterpret_cast<const NumPyArray *>(value);
  words.push_back(kNumPyArray | int64_t(array->rank) << 16);
  words.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(array->dtype)));
  fits = addLayout(array->rank, array->shape, array->strides);
  return true;
}

bool CallKey::addCuPy(PyObject *value) {
  py::object dtype = getAttribute(value, names().dtype);
  py::object device = getAttribute(value, names().device);
  py::object number = device ? getAttribute(device.ptr(), names().id) : py::object();
  py::object shape = getAttribute(value, names().shape);
  py::object strides = getAttribute(value, names().strides);
  if (!dtype || !number || !PyLong_Check(number.ptr()) || !shape || !PyTuple_Check(shape.ptr()) ||
      !strides || !PyTuple_Check(strides.ptr()))
    return false;
  Py_ssize_t rank = PyTuple_GET_SIZE(shape.ptr());
  if (words.size() + 2 * static_cast<size_t>(rank) > kMaxWords)
    return false;
  words.push_back(kCuPyArray | int64_t(rank) << 16 | int64_t(PyLong_AsLong(number.ptr())) << 40);
  words.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(dtype.ptr())));
  if (!hasLayouts)
    return true;
  for (PyObject *extents : {shape.ptr(), strides.ptr()})
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(extents); ++i) {
      if (!PyLong_Check(PyTuple_GET_ITEM(extents, i)))
        return false;
      words.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(extents, i)));
    }
  return true;
}

bool CallKey::addArrayOrOption(PyObject *value) {
  bool fits = words.size() <= kMaxWords;
  if (!fits || addArray(value, fits))
    return fits;
  return addOption(value, true);
}

bool CallKey::addOption(PyObject *value, bool hasObjects) {
  if (words.size() > kMaxWords)
    return false;
  if (value == Py_None || PyBool_Check(value)) {
    words.push_back(value == Py_None ? kNone : kBool | int64_t(value == Py_True) << 8);
    return true;
  }
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    words.push_back(kInteger);
    words.push_back(PyLong_AsLongLongAndOverflow(value, &overflow));
    return !overflow;
  }
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    int64_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    words.push_back(kFloat);
    words.push_back(bits);
    return true;
  }
  if (PyUnicode_CheckExact(value)) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) {
      PyErr_Clear(); // a lone surrogate
      return false;
    }
    auto numWords = (static_cast<size_t>(size) + 7) / 8;
    if (words.size() + numWords > kMaxWords)
      return false;
    words.push_back(kText | size << 8);
    for (size_t i = 0; i < numWords; ++i) {
      int64_t word = 0;
      std::memcpy(&word, text + 8 * i, std::min<size_t>(8, static_cast<size_t>(size) - 8 * i));
      words.push_back(word);
    }
    return true;
  }
  // Only a plain tuple, and torch.Size, which add nothing to the elements.
  bool isTuple =
      PyTuple_CheckExact(value) || (PyTuple_Check(value) && Py_TYPE(value)->tp_as_sequence &&
                                    std::strcmp(Py_TYPE(value)->tp_name, "torch.Size") == 0);
  if (isTuple || PyList_CheckExact(value)) {
    Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    words.push_back((isTuple ? kTuple : kList) | size << 8);
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!addOption(PySequence_Fast_GET_ITEM(value, i)))
        return false;
    return true;
  }
  if (!hasObjects || PyTuple_Check(value) || PyList_Check(value) || PyDict_Check(value))
    return false;
  words.push_back(kObject);
  words.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(value)));
  return true;
}

size_t CallKey::hash() const {
  uint64_t result = words.size();
  for (int64_t word : words)
    result = (result ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15 + (result >> 29);
  return result;
}

bool CallKey::equals(const std::vector<int64_t> &other) const {
  return words.size() == other.size() && std::equal(words.begin(), words.end(), other.begin());
}
