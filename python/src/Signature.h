// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The properties of a launch's arguments that select a kernel. For common kinds of arguments, this
// does the same as runtime/specialize.py; both specialise numbers by Numbers.h. A signature has
// everything that the slow path of a launch reads, so equal signatures mean equal outcomes:
//
//     one byte a parameter   its kind: constant, pointer, the type of a number, ...
//     three bytes a pointer  element type; alignment and read-only; GPU, -1 for the host
//     one byte a number      alignment, of an integer, and of any number whose type an annotation
//                            says (which is the same in all launches)
//     two bytes a tuple      how many items, which follow; its class, if it has one of its own, is
//                            among the constants; so for dataclasses and aggregates
//     an array on a GPU by `__cuda_array_interface__` or DLPack
//                            a byte behind the pointer
//     a tensor descriptor    rank, padding and rounding; its array; its shape and strides as
//                            integers are; the binary logarithms of its block's extents
//     a stream               that an array names, if it is that of the launch: the last constant
//     the constants          numbers, strings and tuples of these by value, all else by identity
//
// The configuration of a tuned kernel (tessera/tuning) has the values of some parameters. Callers
// omit these, and so does the signature. The configuration was chosen by measurements for the
// values of some other parameters (`key`). So the signature has the values of these, even if they
// do not select a kernel.

#ifndef TESSERA_PYTHON_SIGNATURE_H
#define TESSERA_PYTHON_SIGNATURE_H

#include "ArrayStreams.h"
#include "DLPack.h"
#include "Handles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::python {

constexpr size_t kMaxParams = 255;
/// The most tuples and records, and the most items in them together.
constexpr size_t kMaxItems = 1023;
constexpr size_t kMaxOptions = 32;
constexpr size_t kMaxDescriptorRank = 5;
/// The most that one argument needs: a descriptor of that rank, with an array, a shape, and all
/// strides but the last.
constexpr size_t kMaxSlots = 2 * kMaxDescriptorRank;
constexpr size_t kMaxBytes = 6 + 5 * kMaxDescriptorRank;
/// The most that all arguments together may need, without constexprs.
constexpr size_t kAllSlots = 1408;
constexpr size_t kAllBytes = 7168;

/// The first byte of an argument; for a number, kNumber plus its TsrDType.
enum ArgumentKind : char {
  kAny, ///< of no argument; what a kernel expects that is compiled when it is launched
  kConstant,
  kNone,
  kOne, ///< the integer 1, which became a constant
  kPointer,
  kDescriptor,
  kNumberAs, ///< a number of the type that the parameter's annotation says
  kTuple,    ///< or a list
  kTupleOfClass,
  kNumber,
};

/// The ways to pass an argument: by position or name; by name only (after `*`); or with all further
/// positional ones (`*args`).
enum class Passing : char { Any, ByName, Rest };

struct Parameter {
  PyObject *name; ///< interned
  PyObject *defaultValue;
  bool isConstexpr;
  bool onValue;
  bool onAlignment;
  bool isTuned;    ///< a configuration has its value, no caller does
  bool isKey;      ///< its value, too, decides what is launched
  char expected;   ///< the kind that a compiled kernel takes
  TsrDType number; ///< what an annotation has numbers be; TSR_VOID if there is none
  Passing passing;
};

/// An argument that belongs to no parameter.
struct Option {
  PyObject *name, *value;
};

/// A vector of few items without allocation. Items are not initialised before they are added.
template <typename T, size_t capacity> class FixedVector {
  static_assert(std::is_trivially_default_constructible_v<T>);

public:
  void push_back(T item) { items[count++] = item; }
  /// Appends several items at once, which is one store for a few bytes.
  template <size_t size> void append(const std::array<T, size> &several) {
    std::copy(several.begin(), several.end(), items.begin() + count);
    count += size;
  }
  void pop_back() { --count; }
  void assign(const T *first, size_t size) {
    std::copy(first, first + size, items.begin());
    count = size;
  }
  const T *begin() const { return items.data(); }
  const T *end() const { return items.data() + count; }
  const T *data() const { return items.data(); }
  size_t size() const { return count; }
  const T &operator[](size_t index) const { return items[index]; }
  T &operator[](size_t index) { return items[index]; }

private:
  std::array<T, capacity> items;
  size_t count = 0;
};

/// If `function` is torch's function for a device's current stream, which `slow` has registered,
/// and torch gives the stream without Python, sets `stream` and returns true.
bool findTorchStream(PyObject *function, int32_t device, uint64_t &stream);

/// A stored signature, with which later launches compare theirs. Owns its constants.
class KnownSignature {
public:
  explicit KnownSignature(const class Signature &signature);
  ~KnownSignature();
  KnownSignature(const KnownSignature &) = delete;
  KnownSignature &operator=(const KnownSignature &) = delete;
  int traverse(visitproc visit, void *arg) const;

  const std::vector<char> bytes;
  const std::vector<PyObject *> constants;
};

/// The signature of a launch, while its arguments are read.
class Signature {
public:
  explicit Signature(const std::vector<Parameter> &parameters) : parameters(parameters) {}

  /// False if the warm path does not support the arguments.
  bool bind(PyObject *const *args, size_t count, PyObject *keywords);
  bool specialise();
  size_t hash() const;
  bool matches(const KnownSignature &known) const;

  const std::vector<Parameter> &parameters;
  bool isComplete = false; ///< whether `specialise` has returned true
  /// The place of the parameter whose argument takes the whole path, if there is one.
  std::optional<size_t> refused;
  std::array<PyObject *, kMaxParams> values; ///< borrowed, one a parameter; null if it is tuned
  py::object rest;                           ///< the tuple that `*args` is
  ArrayStreams streams;
  std::vector<py::object> owned; ///< what was made of arguments, for as long as the launch takes
  FixedVector<Option, kMaxOptions> options; ///< borrowed
  FixedVector<uint64_t, kAllSlots> slots;
  FixedVector<uint64_t, kAllSlots> hostAddresses; ///< of the arrays in the host's memory
  FixedVector<char, kAllBytes + kMaxItems + kMaxParams + kMaxOptions> bytes;
  FixedVector<PyObject *, kMaxItems + 2 * kMaxParams + 2 * kMaxOptions> constants; ///< borrowed

private:
  // For messages.
  static constexpr const char *kExporting = "__dlpack__()";
  static constexpr const char *kAsking = "asking it where its elements are";
  /// An array on a GPU that is exported when all arguments have been seen.
  struct Export {
    PyObject *array; ///< owned by the launch
    const Parameter *parameter;
    size_t place, slot;        ///< of its bytes and of its address
    std::optional<char> dtype; ///< that it is reinterpreted as
    std::vector<uint16_t> path;
  };

  /// True if there is room for any argument.
  bool hasRoom() const {
    return slots.size() + kMaxSlots <= kAllSlots && bytes.size() + kMaxBytes <= kAllBytes;
  }
  bool addValue(const Parameter &parameter, PyObject *value);
  bool addTuple(const Parameter &parameter, PyObject *value);
  bool addNumberAs(const Parameter &parameter, PyObject *value);
  void addConstant(PyObject *value);
  void addSize(size_t size);
  bool addNumber(const Parameter &parameter, PyObject *value);
  void addInteger(const Parameter &parameter, int64_t integer);
  void addSpecialised(const struct SpecialisedNumber &number, bool isInteger);
  bool addArray(const Parameter &parameter, PyObject *value);
  bool addDescriptor(const Parameter &parameter, PyObject *value);
  bool addReinterpreted(const Parameter &parameter, PyObject *value);
  bool addPlainTensor(const Parameter &parameter, PyObject *value);
  bool addPlainInteger(const Parameter &parameter, PyObject *value);
  bool addTensor(const Parameter &parameter, PyObject *value);
  bool addTensorOn(long ordinal, const Parameter &parameter, uint64_t address, char dtype);
  bool addByPointer(const Parameter &parameter, PyObject *value);
  bool addBuffer(const Parameter &parameter, PyObject *value);
  bool addDLPack(const Parameter &parameter, PyObject *value);
  bool exportArray(const Parameter &parameter, PyObject *value, PyObject *consumer,
                   DLPackArray &array, char &dtype);
  /// Exports the arrays on GPUs that have DLPack. False if the launch takes the whole path.
  bool exportArrays();
  bool addArrayInterface(const Parameter &parameter, PyObject *value);
  bool addCUDAInterface(const Parameter &parameter, PyObject *value);
  bool addRecord(const Parameter &parameter, PyObject *value);
  bool addScalar(const Parameter &parameter, PyObject *value, bool isInteger);
  PyObject *own(py::object object);
  /// The bytes of a pointer.
  static std::array<char, 4> makePointer(const Parameter &parameter, uint64_t address, char dtype,
                                         bool readOnly, char device);
  void addPointer(const Parameter &parameter, uint64_t address, char dtype, bool readOnly,
                  char device);

  /// Throws the whole path's error for the exception that an array has raised. Clears an
  /// AttributeError and a TypeError: the array lacks something or has an older form of it, and
  /// takes the whole path.
  void refuseFailed(const Parameter &parameter, PyObject *value, const char *asked);
  /// Gets an attribute of an array, which may run code of the user's. Null if the array takes the
  /// whole path.
  py::object askFor(const Parameter &parameter, PyObject *value, PyObject *name);
  /// Gets an attribute that an array need not have: null if it has none. False if the array takes
  /// the whole path.
  bool askForOptional(const Parameter &parameter, PyObject *value, PyObject *name,
                      py::object &found);

  size_t numItems = 0;                   ///< of tuples, and they themselves
  FixedVector<uint16_t, kMaxItems> path; ///< the items in items that are being added
  std::vector<Export> exports;
};

/// Registers the functions by which Python describes array types.
void registerSignature(py::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_SIGNATURE_H
