// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stream of a launch on a GPU, and the streams on which its arrays are computed. The launch has
// the first of these:
//
//     the stream that is given with it
//     torch's current stream, if a tensor of torch's is on the GPU
//     the first stream that an array names
//     the legacy default stream
//
// Arrays that export DLPack receive it as the consumer's stream. It waits for the streams that
// other arrays name. runtime/cuda.py has this rule for the whole path.

#ifndef TESSERA_PYTHON_ARRAYSTREAMS_H
#define TESSERA_PYTHON_ARRAYSTREAMS_H

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tessera::python {

/// The legacy default stream's number in the protocols of arrays. The driver's handle of it is 0,
/// and the driver takes this number, too.
constexpr uint64_t kLegacyStream = 1;

/// True if two handles are of the same stream.
inline bool isSameStream(uint64_t left, uint64_t right) {
  return left == right || (left <= kLegacyStream && right <= kLegacyStream);
}

class ArrayStreams {
public:
  /// Adds a tensor of torch's on a GPU.
  void addTensor(int32_t ordinal) {
    if (tensorDevice < 0)
      tensorDevice = ordinal;
  }
  /// Adds the stream that an array names, an integer that lives as long as the launch. False for
  /// numbers that are not allowed, and if there are too many.
  bool addNamed(PyObject *number);
  /// Adds the value of the option `stream`.
  void setGiven(PyObject *value) {
    if (value != Py_None)
      given = value;
  }

  /// The number of the named stream that decides about the launch, or null.
  PyObject *getDeciding() const { return given || tensorDevice >= 0 ? nullptr : first; }
  /// Finds the stream of the launch. False if only Python can find it.
  bool find(uint64_t &stream) const;
  /// The streams that arrays name, each once.
  const uint64_t *begin() const { return named.data(); }
  const uint64_t *end() const { return named.data() + numNamed; }

  /// The stream that exported arrays were computed for; none if no array was exported.
  std::optional<uint64_t> exportedTo;

private:
  static constexpr size_t kMaxNamed = 16;
  std::array<uint64_t, kMaxNamed> named;
  size_t numNamed = 0;
  PyObject *first = nullptr, *given = nullptr; ///< borrowed
  int32_t tensorDevice = -1;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_ARRAYSTREAMS_H
