// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and makes torch's tensors for operators that are called (Entry.cpp), without Python and
// without linking to torch.
//
// Torch's stable C interface gives shapes and strides, and makes tensors. Functions of torch in C++
// do the rest; their mangled names have the types of their arguments. Where one of those is
// missing, Python does its work.

#ifndef TESSERA_PYTHON_CALLS_TORCHARRAYS_H
#define TESSERA_PYTHON_CALLS_TORCHARRAYS_H

#include "../Handles.h"

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera::python {

/// A tensor without its values. The arrays belong to the tensor.
struct TorchFacts {
  int64_t rank;
  const int64_t *shape, *strides; ///< in elements
  int32_t dtype, deviceType, device;
  bool isOnHost;
};

/// All that it takes to make a tensor without values.
struct TorchLayout {
  TorchLayout() = default;
  explicit TorchLayout(const TorchFacts &facts)
      : shape(facts.shape, facts.shape + facts.rank),
        strides(facts.strides, facts.strides + facts.rank), dtype(facts.dtype),
        deviceType(facts.deviceType), device(facts.device), isOnHost(facts.isOnHost) {}

  std::vector<int64_t> shape, strides;
  int32_t dtype = 0, deviceType = 0, device = 0;
  bool isOnHost = false;
};

/// The functions of torch's stable interface that are used. They return 0 for success and throw
/// nothing.
struct TensorInterface {
  int32_t (*getRank)(void *, int64_t *) = nullptr;
  int32_t (*getSizes)(void *, int64_t **) = nullptr;
  int32_t (*getStrides)(void *, int64_t **) = nullptr;
  int32_t (*getDType)(void *, int32_t *) = nullptr;
  int32_t (*getAddress)(void *, void **) = nullptr;
  int32_t (*getOffset)(void *, int64_t *) = nullptr;
  size_t (*getElementBytes)(int32_t) = nullptr;
  int32_t (*getDeviceType)(void *, int32_t *) = nullptr;
  int32_t (*getDevice)(void *, int32_t *) = nullptr;
  int32_t (*findHost)() = nullptr, (*findCUDA)() = nullptr;
  bool (*isGradEnabled)() = nullptr;
  void (*setGradEnabled)(bool) = nullptr;
  int32_t (*makeStrided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t,
                         void **) = nullptr;
  int32_t (*makeView)(void *, int64_t, const int64_t *, const int64_t *, int64_t,
                      void **) = nullptr;
  int32_t (*release)(void *) = nullptr;

  void find();
  bool canRead() const {
    return getRank && getSizes && getStrides && getDType && getDeviceType && getDevice &&
           findHost && getAddress && getOffset && getElementBytes && isGradEnabled &&
           setGradEnabled;
  }
};

/// The types of torch that `InnerInterface` passes by value, with torch's layouts.
struct TorchExtents { // c10::ArrayRef<int64_t>
  const int64_t *data;
  size_t size;
};
struct TorchDevice { // c10::Device
  int8_t type, index;
};
struct TorchHandle { // at::TensorBase
  TorchHandle(const TorchHandle &) = delete;
  ~TorchHandle() {} // so that functions return it in memory; `TensorInterface::release` ends it
  void *implementation;
};

/// Functions of torch in C++. A tensor is the address of an at::Tensor.
struct InnerInterface {
  PyObject *(*wrap)(void *) = nullptr;          ///< makes Python's object of a tensor, and takes it
  bool (*requiresGrad)(const void *) = nullptr; ///< given the address of its c10::TensorImpl
  void (*bumpVersion)(const void *) = nullptr;
  int64_t (*countDispatchModes)() = nullptr;
  int64_t (*countFunctionModes)() = nullptr;
  void *const *(*findTransforms)() = nullptr; ///< what torch.func keeps of this thread, or null
  bool (*isInference)(const void *) = nullptr;
  TorchHandle (*makeOnCUDA)(TorchExtents, TorchExtents, int8_t,
                            std::optional<TorchDevice>) = nullptr;

  void find();
  bool canWatch() const { return countDispatchModes && countFunctionModes && findTransforms; }
};

/// A function of torch without arguments, and what it returns while nothing watches calls.
using QuietAnswer = std::pair<py::object, py::object>;
/// A dictionary, a name in it, and the value while nothing watches calls.
using QuietValue = std::tuple<py::dict, py::str, py::object>;

class TorchArrays {
public:
  /// Starts to read tensors of exactly these classes, while nothing watches calls. `requiresGrad`
  /// is the attribute of the class of tensors. False if
  /// torch has not what it takes.
  bool learn(const std::vector<py::type> &classes, const py::object &requiresGrad,
             std::vector<QuietAnswer> answers, std::vector<QuietValue> values);

  /// Reads a tensor that has memory of its own. False for all others, and for what is no tensor.
  bool read(PyObject *value, TorchFacts &facts) const;
  /// The attribute of a tensor that `read` accepts.
  bool requiresGrad(PyObject *tensor) const;
  /// Counts a write to a tensor that `read` accepts. False if Python has to do it.
  bool countWrite(PyObject *tensor) const;
  /// The address of the first element of a tensor that `read` accepts; 0 if it has none.
  uint64_t getAddress(PyObject *tensor) const;
  /// True for a tensor that `read` accepts whose memory is that of none of the arguments.
  bool isNew(PyObject *value, PyObject *const *args, size_t count) const;
  /// False if something has to see calls of operators: a mode, a transform, a tracer.
  bool isQuiet() const;
  /// True unless a context such as torch.no_grad() is entered.
  bool isGradEnabled() const { return torch.isGradEnabled(); }
  void setGradEnabled(bool isEnabled) const { torch.setGradEnabled(isEnabled); }

  /// True if `make` may be called.
  bool canMake() const { return torch.makeStrided && torch.release && inner.wrap; }
  /// A new tensor without values. Null if torch fails: Python says why.
  PyObject *make(const TorchLayout &layout) const;
  /// True if `makeView` may be called.
  bool canView() const { return torch.makeView && canMake(); }
  /// A tensor of other elements of a tensor's memory, whose first one is `offset` behind its first.
  /// It counts its own versions, so it is for launches alone. Null if torch fails.
  PyObject *makeView(PyObject *tensor, const TorchLayout &layout, int64_t offset) const;

private:
  /// Calls `makeOnCUDA`.
  void *makeOnCUDA(const TorchLayout &layout) const;
  /// Python's object for a tensor that torch made.
  PyObject *wrap(void *handle) const;
  /// The start of the memory of a tensor; 0 if it has none or on failure.
  uint64_t findMemory(PyObject *tensor, const TorchFacts &facts) const;

  TensorInterface torch;
  InnerInterface inner;
  int32_t host = -1, cuda = -1;        ///< torch's numbers of these types of devices
  std::vector<PyTypeObject *> classes; ///< empty: no tensors are read
  PyGetSetDef *requiresGradAttribute = nullptr;
  std::vector<QuietAnswer> answers;
  std::vector<QuietValue> values;
};

/// Those of the process.
inline TorchArrays &torchArrays() {
  static TorchArrays *arrays = new TorchArrays; // outlives the interpreter's teardown
  return *arrays;
}

} // namespace tessera::python

#endif // TESSERA_PYTHON_CALLS_TORCHARRAYS_H
