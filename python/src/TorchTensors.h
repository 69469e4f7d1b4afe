// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads torch's tensors and streams without Python. A method of a tensor costs as much as the rest
// of a launch, and may release the GIL.
//
// Torch's stable C interface gives a tensor's address and element type
// (torch/csrc/inductor/aoti_torch/c/shim.h, exported by its libraries since 2.2). It takes the
// address of an at::Tensor, which lies within Python's object. It does not tell plain tensors from
// others, such as nested ones or those whose memory holds negated values. Torch stores bits for
// that in its own object. Their offset is found by comparing tensors with and without the negative
// bit. If a tensor has bits that no accepted one had, it is launched on the slow path.

#ifndef TESSERA_PYTHON_TORCHTENSORS_H
#define TESSERA_PYTHON_TORCHTENSORS_H

#include "DTypeTable.h"
#include "Handles.h"

#include <algorithm>
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

/// The functions of the stable interface that are used. Each returns 0 for success and throws
/// nothing.
struct StableInterface {
  int32_t (*getAddress)(void *tensor, void **address) = nullptr;
  int32_t (*getDType)(void *tensor, int32_t *dtype) = nullptr;
  int32_t (*getDeviceType)(void *tensor, int32_t *type) = nullptr;
  int32_t (*getDeviceIndex)(void *tensor, int32_t *index) = nullptr;
  int32_t cpu = -1, cuda = -1; ///< the types of devices
  bool isComplete = false;

  /// Finds the functions in the process; fails before torch is loaded.
  void find();
};

class TorchTensors {
public:
  /// A tensor and the address of torch's own object behind it.
  using Probes = std::vector<std::pair<py::object, uint64_t>>;

  /// Looks for the one bit that all of `negative` have set and none of `plain` has; false if there
  /// is not just one. Nothing else is known before that.
  bool learnNegativeBit(const Probes &plain, const Probes &negative);
  /// Accepts tensors that have the class of this one and the same bits. `address` and `dtype` are
  /// the answers of its methods.
  void accept(PyObject *tensor, uint64_t address, char dtype);
  /// The function of torch that gives the current stream of a GPU.
  void learnStream(PyObject *function);

  /// True once the offset of the bits is known.
  bool knowsBits() const { return bits.isKnown; }
  // Few bit patterns and classes are accepted, and nearly always the first one matches. So these
  // are inline loops.

  /// True if an accepted tensor had the same bits.
  bool isPlain(PyObject *tensor) const {
    uint64_t found = readBits(tensor);
    for (uint64_t accepted : bits.accepted)
      if (accepted == found)
        return true;
    return false;
  }
  /// True if a tensor of this class was accepted; `read` requires it.
  bool knowsClass(PyTypeObject *type) const {
    for (PyTypeObject *known : classes)
      if (known == type)
        return true;
    return false;
  }
  void forgetClass(PyTypeObject *type) {
    classes.erase(std::remove(classes.begin(), classes.end(), type), classes.end());
  }
  /// Reads a tensor whose class is known. Returns false if torch fails, or if the tensor is neither
  /// on the CPU nor on a GPU. The memory lives as long as the tensor.
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
  /// The address of the at::Tensor, which is only the pointer to torch's object within Python's
  /// object.
  void *getHandle(PyObject *tensor) const {
    return reinterpret_cast<char *>(tensor) + bits.implementation;
  }
  /// The current stream of a GPU. Returns false if `function` is not that of `learnStream`.
  bool findStream(PyObject *function, int32_t device, uint64_t &stream);
  /// The same by the function of `learnStream`; false if there is none, or if it fails.
  bool findCurrentStream(int32_t device, uint64_t &stream);

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
  Bits bits;
  StableInterface torch;      ///< complete once a class is known
  DTypeTable<int32_t> dtypes; ///< by torch's numbers
  std::vector<PyTypeObject *> classes;
  PyObject *streamFunction = nullptr;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_TORCHTENSORS_H
