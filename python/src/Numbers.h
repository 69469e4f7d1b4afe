// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Specialises numbers and addresses of arguments: their type, their divisor, and the special case
// 1. This is the only place of these rules. The warm path calls it (Signature.cpp), and the slow
// path does through `_C.specialise_number` and its kin (runtime/specialize.py).

#ifndef TESSERA_PYTHON_NUMBERS_H
#define TESSERA_PYTHON_NUMBERS_H

#include "tessera/CAPI/Tessera.h"

#include <Python.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tessera::python {

/// The largest of 16, 8 and 4 that divides a number, or 0.
inline char alignmentClass(uint64_t value) {
  if (value % 16 == 0)
    return 16;
  if (value % 8 == 0)
    return 8;
  return value % 4 == 0 ? 4 : 0;
}

/// A number, rounded to float32, as the low bits of a slot.
inline uint32_t float32Bits(double value) {
  float rounded = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return bits;
}

/// The same for the 16-bit formats: to the nearest, ties to even. It rounds once, from the double
/// itself. Rounding to float32 first could turn a number next to a tie into a tie.
inline uint16_t bfloat16Bits(double value) {
  float toOdd = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &toOdd, sizeof(bits));
  if (value != value)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  // If the double is no float32, take the neighbour whose last bit is odd: it lies on the double's
  // side of every tie. If the nearest float32 is even, step to the other one.
  if (toOdd != value && (bits & 1) == 0)
    bits = std::fabs(toOdd) < std::fabs(value) ? bits + 1 : bits - 1;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline uint16_t float16Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  if (value != value)
    return static_cast<uint16_t>(sign | 0x7E00);
  double magnitude = value < 0 ? -value : value;
  if (magnitude >= 65520.0)
    return static_cast<uint16_t>(sign | 0x7C00);
  // Scaled by its exponent, the last place of a float16 is 1.
  int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
  int shift = exponent < -14 ? 24 : 10 - exponent;
  double scaled = std::ldexp(magnitude, shift);
  auto rounded = static_cast<uint32_t>(std::nearbyint(scaled));
  // A carry out of the fraction is one into the exponent.
  uint32_t place = exponent < -14 ? 0 : static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign | (place + rounded));
}

struct SpecialisedNumber {
  TsrDType dtype; ///< TSR_VOID for the integer 1, which becomes a constant
  char alignment;
  uint64_t slot;
};

enum class NumberStatus { Fine, NoNumber, FitsNoType };

/// Specialises an integer, which gets the narrower of int32 and int64.
[[gnu::always_inline]] inline SpecialisedNumber specialiseInteger(int64_t integer, bool onValue,
                                                                  bool onAlignment) {
  auto slot = static_cast<uint64_t>(integer);
  if (integer == 1 && onValue)
    return {TSR_VOID, 0, slot};
  return {integer == static_cast<int32_t>(integer) ? TSR_INT32 : TSR_INT64,
          onValue && onAlignment ? alignmentClass(slot) : char(0), slot};
}

/// Specialises a Python bool, int or float; objects of subclasses are refused. Integers beyond
/// int64 are of type uint64.
inline NumberStatus specialiseNumber(PyObject *value, bool onValue, bool onAlignment,
                                     SpecialisedNumber &result) {
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
      result = specialiseInteger(integer, onValue, onAlignment);
      return NumberStatus::Fine;
    }
    uint64_t slot = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      return NumberStatus::FitsNoType;
    }
    result = {TSR_UINT64, onValue && onAlignment ? alignmentClass(slot) : char(0), slot};
  } else if (PyFloat_CheckExact(value)) {
    result = {TSR_FP32, 0, float32Bits(PyFloat_AS_DOUBLE(value))};
  } else if (PyBool_Check(value)) {
    result = {TSR_INT1, 0, value == Py_True};
  } else {
    return NumberStatus::NoNumber;
  }
  return NumberStatus::Fine;
}

/// True if an integer fits the type. `overflow` is 1 for an integer above int64 that fits uint64,
/// and -1 for one below int64.
inline bool fitsInteger(TsrDType dtype, int64_t integer, int overflow) {
  auto isIn = [&](int64_t low, int64_t high) {
    return !overflow && low <= integer && integer <= high;
  };
  switch (dtype) {
  case TSR_INT8:
    return isIn(INT8_MIN, INT8_MAX);
  case TSR_INT16:
    return isIn(INT16_MIN, INT16_MAX);
  case TSR_INT32:
    return isIn(INT32_MIN, INT32_MAX);
  case TSR_INT64:
    return !overflow;
  case TSR_UINT8:
    return isIn(0, UINT8_MAX);
  case TSR_UINT16:
    return isIn(0, UINT16_MAX);
  case TSR_UINT32:
    return isIn(0, UINT32_MAX);
  case TSR_UINT64:
    return overflow > 0 || (!overflow && integer >= 0);
  default:
    return false;
  }
}

/// The double that rounds to the narrow floats as a Python number does: an integer of more than 53
/// bits is rounded to odd, or it would be rounded twice. False, with an exception set, if it is
/// beyond all doubles, or no number.
inline bool readForNarrowFloat(PyObject *value, double &result) {
  result = PyFloat_AsDouble(value);
  if (result == -1.0 && PyErr_Occurred())
    return false;
  if (!PyLong_Check(value) || std::fabs(result) < 0x1p53)
    return true;
  PyObject *nearest = PyLong_FromDouble(result);
  if (!nearest)
    return false;
  int isBelow = PyObject_RichCompareBool(nearest, value, Py_LT);
  int isAbove = PyObject_RichCompareBool(nearest, value, Py_GT);
  Py_DECREF(nearest);
  if (isBelow < 0 || isAbove < 0)
    return false;
  uint64_t bits;
  std::memcpy(&bits, &result, sizeof(bits));
  if ((isBelow || isAbove) && (bits & 1) == 0)
    result = std::nextafter(result, isBelow ? HUGE_VAL : -HUGE_VAL);
  return true;
}

/// A Python number as the slot of a float argument of this type, rounded once. False, with an
/// exception set, if it is beyond all doubles, or no number.
inline bool findFloatSlot(PyObject *value, TsrDType dtype, uint64_t &slot) {
  double number;
  if (dtype == TSR_FP64) {
    number = PyFloat_AsDouble(value);
    std::memcpy(&slot, &number, sizeof(number));
    return number != -1.0 || !PyErr_Occurred();
  }
  if (!readForNarrowFloat(value, number))
    return false;
  slot = dtype == TSR_FP16   ? float16Bits(number)
         : dtype == TSR_BF16 ? bfloat16Bits(number)
                             : float32Bits(number);
  return true;
}

/// The same for a number whose type an annotation gives. Returns NoNumber if the object is no
/// number of such a type.
inline NumberStatus specialiseNumberAs(PyObject *value, TsrDType dtype, bool onValue,
                                       bool onAlignment, SpecialisedNumber &result) {
  bool isInteger = PyLong_CheckExact(value) || PyBool_Check(value);
  if (!isInteger && !PyFloat_CheckExact(value))
    return NumberStatus::NoNumber;
  if (dtype == TSR_FP16 || dtype == TSR_BF16 || dtype == TSR_FP32 || dtype == TSR_FP64) {
    result = {dtype, 0, 0};
    if (!findFloatSlot(value, dtype, result.slot)) {
      PyErr_Clear();
      return NumberStatus::FitsNoType;
    }
    return NumberStatus::Fine;
  }
  if (!isInteger)
    return NumberStatus::NoNumber;
  int overflow = 0;
  int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  auto slot = static_cast<uint64_t>(integer);
  if (overflow > 0) {
    slot = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return NumberStatus::FitsNoType;
    }
  }
  if (!fitsInteger(dtype, integer, overflow))
    return NumberStatus::FitsNoType;
  result = {dtype, onValue && onAlignment ? alignmentClass(slot) : char(0), slot};
  return NumberStatus::Fine;
}

} // namespace tessera::python

#endif // TESSERA_PYTHON_NUMBERS_H
