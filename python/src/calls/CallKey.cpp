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
enum Kind : int64_t { kNumPyArray, kTorchTensor, kBool, kInteger, kFloat, kNone, kTuple };

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
  TorchFacts facts;
  if (torchArrays().read(value, facts)) {
    hasTensor = true;
    words.push_back(kTorchTensor | int64_t(facts.requiresGrad) << 8 | (facts.rank & 0xff) << 16 |
                    int64_t(facts.dtype & 0xffff) << 24 | int64_t(facts.device & 0xff) << 40 |
                    int64_t(facts.deviceType & 0xff) << 48);
    return addLayout(facts.rank, facts.shape, facts.strides);
  }
  if (typeTables().getKind(Py_TYPE(value)) != ArrayKind::NumPy)
    return false;
  const auto *array = reinterpret_cast<const NumPyArray *>(value);
  words.push_back(kNumPyArray | int64_t(array->rank) << 16);
  words.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(array->dtype)));
  return addLayout(array->rank, array->shape, array->strides);
}

bool CallKey::addOption(PyObject *value) {
  auto addInteger = [&](PyObject *number) {
    int overflow = 0;
    int64_t found = PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
    words.push_back(found);
    return PyLong_CheckExact(number) && !overflow;
  };
  if (words.size() > kMaxWords)
    return false;
  if (value == Py_None || PyBool_Check(value)) {
    words.push_back(value == Py_None ? kNone : kBool | int64_t(value == Py_True) << 8);
    return true;
  }
  if (PyLong_CheckExact(value)) {
    words.push_back(kInteger);
    return addInteger(value);
  }
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    int64_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    words.push_back(kFloat);
    words.push_back(bits);
    return true;
  }
  if (!PyTuple_CheckExact(value) ||
      words.size() + static_cast<size_t>(PyTuple_GET_SIZE(value)) > kMaxWords)
    return false;
  words.push_back(kTuple | PyTuple_GET_SIZE(value) << 8);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    if (!addInteger(PyTuple_GET_ITEM(value, i)))
      return false;
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
