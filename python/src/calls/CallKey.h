// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All that a plan of an operator's call depends on, in 64-bit words:
//
//     an array    its library, element type, rank, device, whether it requires a gradient; its
//                 shape and strides. NumPy's dtypes, which CuPy has, too, are known by identity
//     a number    its type; the same for None
//     an option   its value: None, a bool, a number, a text, or a tuple or list of such. If
//                 `hasObjects`, anything else by identity, such as a type of elements
//
// Calls with equal keys are done by one plan (CallPlan.h).

#ifndef TESSERA_PYTHON_CALLS_CALLKEY_H
#define TESSERA_PYTHON_CALLS_CALLKEY_H

#include "../Handles.h"
#include "../Signature.h"

#include <cstdint>
#include <vector>

namespace tessera::python {

/// The class of CuPy's arrays, once one has been an argument.
inline PyTypeObject *cupyClass = nullptr;

class CallKey {
public:
  /// If not `hasLayouts`, arrays of one rank have the same words whatever their extents are.
  explicit CallKey(bool hasLayouts) : hasLayouts(hasLayouts) {}

  /// Adds an argument. False if no plan is for it.
  bool add(PyObject *value);
  /// Separates the arguments from an array that the result is written to.
  void beginOut() { words.push_back(-1); }
  /// Adds an argument whose value decides.
  bool addOption(PyObject *value, bool hasObjects = false);
  /// Adds an array, or a value that decides.
  bool addArrayOrOption(PyObject *value);

  /// True if an argument is a tensor of torch's.
  bool hasTorch() const { return hasTensor; }
  size_t hash() const;
  bool equals(const std::vector<int64_t> &other) const;
  std::vector<int64_t> copy() const { return {words.begin(), words.end()}; }

private:
  /// Adds an array. False, and nothing is added, if it is none. `fits` is false if there is no
  /// room.
  bool addArray(PyObject *value, bool &fits);
  /// Adds an array of CuPy's. Asks it for attributes, without running Python's code.
  bool addCuPy(PyObject *value);
  /// Adds words for the extents of an array, unless there is no room.
  template <typename Integer>
  bool addLayout(int64_t rank, const Integer *shape, const Integer *strides);

  FixedVector<int64_t, 256> words;
  bool hasLayouts, hasTensor = false;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_CALLS_CALLKEY_H
