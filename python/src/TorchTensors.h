// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What launches ask torch about its tensors and streams, without Python: a method of a tensor costs
// as much as the rest of a launch, and may let the GIL go.
//
// Where a tensor lies, and what its elements are, torch's stable C interface says
// (torch/csrc/inductor/aoti_torch/c/shim.h, exported by its libraries since 2.2). That takes the
// address of an at::Tensor, which is within the object of Python's. What it does not say is whether
// a tensor is plain: whether its memory holds the values negated, is nested, and so on. Torch has
// bits for that in its own object. Where they are is found by looking at tensors with and without
// the negative bit, and a tensor with bits that no accepted one has had is left to the whole way of
// a launch.

#ifndef TESSERA_PYTHON_TORCHTENSORS_H
#define TESSERA_PYTHON_TORCHTENSORS_H

#include "DTypeTable.h"
#include "Handles.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace tessera::python {

struct TensorPlace {
  uint64_t address;
  int32_t ordinal; ///< of the GPU, -1 on the host
  char dtype;      ///< the core's number of it
};

/// What of the stable interface is used. Each of the functions returns 0 if all went well; torch's
/// exceptions do not leave them.
struct StableInterface {
  int32_t (*getAddress)(void *tensor, void **address) = nullptr;
  int32_t (*getDType)(void *tensor, int32_t *dtype) = nullptr;
  int32_t (*getDeviceType)(void *tensor, int32_t *type) = nullptr;
  int32_t (*getDeviceIndex)(void *tensor, int32_t *index) = nullptr;
  int32_t cpu = -1, cuda = -1; ///< the types of devices
  bool isComplete = false;

  /// Looks for it, which is in vain before torch is loaded.
  void find();
};

class TorchTensors {
public:
  /// A tensor and the address of torch's own object behind it.
  using Probes = std::vector<std::pair<py::object, uint64_t>>;

  /// Looks for the one bit that all of `negative` have set and none of `plain` has; false if there
  /// is not just one. Nothing else is known before that.
  bool learnNegativeBit(const Probes &plain, const Probes &negative);
  /// Has tensors taken that are of the class of this one and as plain as it is. Its methods say
  /// that it lies at `address` and has elements of `dtype`.
  void accept(PyObject *tensor, uint64_t address, char dtype);
  /// The function of torch that gives the current stream of a GPU.
  void learnStream(PyObject *function);

  /// Whether `isPlain` knows.
  bool knowsBits() const { return bits.isKnown; }
  // Of a few, of which nearly always the first is it: loops that are small where they are called.

  /// Whether a tensor is as plain as one that was accepted.
  bool isPlain(PyObject *tensor) const {
    uint64_t found = readBits(tensor);
    for (uint64_t accepted : bits.accepted)
      if (accepted == found)
        return true;
    return false;
  }
  /// Whether one of this class was accepted, and is what `read` is for.
  bool knowsClass(PyTypeObject *type) const {
    for (PyTypeObject *known : classes)
      if (known == type)
        return true;
    return false;
  }
  /// Of a tensor whose class is known. False where torch does not say it, or the tensor is on no
  /// CPU and no GPU. The memory lives as long as the tensor.
  [[gnu::always_inline]] bool read(PyObject *tensor, TensorPlace &place) {
    void *handle = getHandle(tensor), *address = nullptr;
    int32_t dtype, type;
    if (torch.getAddress(handle, &address) || torch.getDType(handle, &dtype) ||
        !dtypes.find(dtype, place.dtype) || torch.getDeviceType(handle, &type))
      return false;
    place.address = reinterpret_cast<uintptr_t>(address);
    place.ordinal = -1;
    if (type == torch.cpu)
      return true;
    return type == torch.cuda && !torch.getDeviceIndex(handle, &place.ordinal) &&
           place.ordinal >= 0;
  }
  /// What the function gives for a GPU, which is that of `learnStream`; false if it is another.
  bool findStream(PyObject *function, int32_t device, uint64_t &stream);

private:
  struct Bits {
    size_t implementation = 0; ///< offset in the object of the pointer to torch's own
    size_t word = 0;           ///< offset in that of the word with the bits
    bool isKnown = false;
    std::vector<uint64_t> accepted; ///< few: one for each sort of plain tensor
  };
  static uint64_t readWord(const void *object, size_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char *>(object) + offset, sizeof(word));
    return word;
  }
  /// All ones where there is no tensor.
  uint64_t readBits(PyObject *tensor) const {
    uint64_t implementation = readWord(tensor, bits.implementation);
    return implementation ? readWord(reinterpret_cast<const void *>(implementation), bits.word)
                          : ~uint64_t(0);
  }
  /// An at::Tensor, which is nothing but the pointer to torch's own that Python's object holds.
  void *getHandle(PyObject *tensor) const {
    return reinterpret_cast<char *>(tensor) + bits.implementation;
  }

  Bits bits;
  StableInterface torch;      ///< complete once a class is known
  DTypeTable<int32_t> dtypes; ///< by torch's numbers
  std::vector<PyTypeObject *> classes;
  PyObject *streamFunction = nullptr;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_TORCHTENSORS_H
