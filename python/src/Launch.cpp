// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warm path of a launch: `kernel[grid](*args)` for a specialisation that has been
// launched before. What it does for each argument is what runtime/specialize.py does,
// for the common kinds of arguments alone; whatever is not common or not known goes to
// the Python function `slow`, which does the whole launch and returns what the next
// launch of the same kind needs. A signature holds all that `slow` looked at, so that
// equal signatures mean equal outcomes:
//
//     one byte a parameter   its kind: constant, pointer, integer type, float, ...
//     three bytes a pointer  element type; alignment and read-only; GPU, -1 for the host
//     one byte an integer    alignment
//     the constants          numbers and strings by value, all else by identity
//
// A tuned kernel (tessera/tuning) is launched the same way. Its configuration fills in some
// parameters, which a caller leaves out and a signature has nothing of; and what was measured
// to choose the configuration belongs to the values of some others (`key`), so that these are
// in the signature with their values, whatever they are to the kernel.
//
// Signatures live in a table of the dispatcher, which the GIL guards. The types are
// plain CPython, not pybind11, since a vectorcall saves half of what a launch costs.

#include "Handles.h"
#include "Interpreter.h"

#include <pybind11/stl.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

using namespace tessera::python;

namespace {

constexpr size_t kMaxParams = 64;
constexpr size_t kMaxEntries = 512;

enum ArgumentKind : char {
  kConstant,
  kNone,
  kOne, ///< the integer 1, which became a constant
  kBool,
  kFloat,
  kInt32,
  kInt64,
  kUInt64,
  kPointer,
};

struct Parameter {
  PyObject *name; ///< interned
  PyObject *defaultValue;
  bool isConstexpr;
  bool onValue;
  bool onAlignment;
  bool isTuned; ///< a configuration has its value, no caller does
  bool isKey;   ///< its value, too, decides what is launched
};

/// Something that a kernel was compiled with, which has to be what it was then. The kinds are
/// those of frontend/reads.py. What it refers to belongs to the tuple that it was made of.
struct Check {
  enum Kind { Entry, Cell, Function, Call, Attribute, Never } kind = Never;
  PyObject *owner = nullptr;
  PyObject *name = nullptr;
  PyObject *expected = nullptr; ///< null where there was nothing
  PyObject *defaults = nullptr, *keywordDefaults = nullptr;

  explicit Check(PyObject *tuple) {
    Py_ssize_t size = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;
    auto item = [&](Py_ssize_t index) {
      return index < size ? PyTuple_GET_ITEM(tuple, index) : nullptr;
    };
    owner = item(0), name = item(1), expected = item(2);
    if (size == 0)
      return;
    if (PyDict_CheckExact(owner) && (size == 2 || size == 3)) {
      kind = Entry;
    } else if (PyCell_Check(owner) && size <= 2) {
      kind = Cell;
      expected = item(1);
    } else if (PyFunction_Check(owner) && size == 4) {
      kind = Function;
      expected = item(1), defaults = item(2), keywordDefaults = item(3);
    } else if (size == 3) {
      kind = name == Py_None ? Call : Attribute;
    }
  }

  bool holds() const {
    auto orNone = [](PyObject *value) { return value ? value : Py_None; };
    PyObject *found = nullptr;
    switch (kind) {
    case Entry:
      return PyDict_GetItemWithError(owner, name) == expected;
    case Cell:
      return PyCell_GET(owner) == expected;
    case Function:
      return PyFunction_GET_CODE(owner) == expected &&
             orNone(PyFunction_GET_DEFAULTS(owner)) == defaults &&
             orNone(PyFunction_GET_KW_DEFAULTS(owner)) == keywordDefaults;
    case Call:
      found = PyObject_CallNoArgs(owner);
      Py_XDECREF(found);
      return found == Py_True;
    case Attribute:
      found = PyObject_GetAttr(owner, name);
      Py_XDECREF(found); // whatever is expected is held by the tuple
      return found == expected;
    case Never:
      return false;
    }
    return false;
  }
};

std::vector<Check> readChecks(PyObject *tuple) {
  std::vector<Check> checks;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    checks.emplace_back(PyTuple_GET_ITEM(tuple, i));
  return checks;
}

/// Whether all of them hold. What raises an exception is not what it was.
bool allHold(const std::vector<Check> &checks) {
  for (const Check &check : checks)
    if (!check.holds()) {
      PyErr_Clear();
      return false;
    }
  return true;
}

/// What a launch of one signature needs.
struct Entry {
  std::string signature;
  std::vector<PyObject *> constants;
  TsrKernel *kernel = nullptr;
  PyObject *kernelObject = nullptr; ///< the owner of `kernel`
  PyObject *result = nullptr;       ///< what the launch returns
  PyObject *meta = nullptr;         ///< the options, for grid functions
  PyObject *globals = nullptr;      ///< the tuple that has what is checked
  PyObject *choice = nullptr;       ///< the configuration of a tuned kernel
  std::vector<Check> checks;
  int32_t numThreads = 0;
  int32_t device = -1;            ///< a GPU, or -1 for the CPU
  uint64_t stream = 0;            ///< on the GPU, if `findStream` is null
  PyObject *findStream = nullptr; ///< called with the device: its current stream

  int traverse(visitproc visit, void *arg) const {
    for (PyObject *constant : constants)
      Py_VISIT(constant);
    Py_VISIT(kernelObject);
    Py_VISIT(result);
    Py_VISIT(meta);
    Py_VISIT(globals);
    Py_VISIT(choice);
    Py_VISIT(findStream);
    return 0;
  }

  ~Entry() {
    for (PyObject *constant : constants)
      Py_DECREF(constant);
    Py_XDECREF(kernelObject);
    Py_XDECREF(result);
    Py_XDECREF(meta);
    Py_XDECREF(globals);
    Py_XDECREF(choice);
    Py_XDECREF(findStream);
  }
};

struct Dispatcher {
  PyObject_HEAD;
  std::vector<Parameter> *parameters;
  std::unordered_multimap<size_t, std::shared_ptr<Entry>> *entries;
  PyObject *slow;
  PyObject *fail;
  PyObject *lastChoice; ///< the configuration of the last launch, if it had one
  uint64_t generation;  ///< of when the entries were made
  bool isRetired;
};

struct Launch {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  Dispatcher *dispatcher;
  PyObject *grid;
};

/// The names of attributes, interned once.
struct Names {
  PyObject *dataPtr = PyUnicode_InternFromString("data_ptr");
  PyObject *dtype = PyUnicode_InternFromString("dtype");
  PyObject *isCPU = PyUnicode_InternFromString("is_cpu");
  PyObject *isCUDA = PyUnicode_InternFromString("is_cuda");
  PyObject *getDevice = PyUnicode_InternFromString("get_device");
  PyObject *isNegative = PyUnicode_InternFromString("is_neg");
  PyObject *isNested = PyUnicode_InternFromString("is_nested");
  PyObject *module = PyUnicode_InternFromString("__module__");
};

const Names &names() {
  static const Names result;
  return result;
}

/// What sort of array the objects of a Python type are.
enum class ArrayKind { None, NumPy, Torch };

ArrayKind findArrayKind(PyTypeObject *type) {
  if (std::strcmp(type->tp_name, "numpy.ndarray") == 0)
    return ArrayKind::NumPy;
  if (std::strcmp(type->tp_name, "Tensor") && std::strcmp(type->tp_name, "Parameter"))
    return ArrayKind::None;
  PyObject *module = PyObject_GetAttr(reinterpret_cast<PyObject *>(type), names().module);
  const char *text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  bool isTorch = text && (!std::strcmp(text, "torch") || !std::strcmp(text, "torch.nn.parameter"));
  Py_XDECREF(module);
  PyErr_Clear();
  return isTorch ? ArrayKind::Torch : ArrayKind::None;
}

/// The start of NumPy's PyArrayObject, whose layout is part of its stable ABI.
struct NumPyArray {
  PyObject_HEAD;
  char *data;
  int rank;
  intptr_t *shape;
  intptr_t *strides;
  PyObject *base;
  PyObject *dtype;
  int flags;
};
constexpr int kNumPyWriteable = 0x0400;

/// No program has memory below: a tensor there has lost its storage, or has no elements.
constexpr uint64_t kLowestAddress = 4 << 20;

/// Where torch keeps the bits of a tensor that say what is special about it: that the memory
/// holds the values negated, that it is nested, and so on. `is_neg()` of each argument would
/// cost as much as the rest of a launch, and lets the GIL go. Found by looking at tensors
/// with and without the negative bit (learnNegativeBit); while it is not known, tensors are
/// asked. A tensor with bits that no accepted one has had is left to `slow`.
struct TensorBits {
  size_t implementation = 0; ///< offset in the object of the pointer to torch's own
  size_t word = 0;           ///< offset in that of the word with the bits
  bool isKnown = false;
  std::vector<uint64_t> accepted; ///< few: one for each sort of plain tensor
};

/// Python's dtype objects by identity; they are few and live as long as the process.
/// Filled by `slow` (through Dispatcher.learn_dtype), so that no name is parsed here.
struct TypeTables {
  std::unordered_map<PyObject *, char> dtypes;
  std::unordered_map<PyTypeObject *, ArrayKind> arrays;
  TensorBits tensorBits;
  bool expectsCUDA = false; ///< where the last tensor was
};

TypeTables &typeTables() {
  static TypeTables *tables = new TypeTables; // outlives the interpreter's teardown
  return *tables;
}

char alignmentClass(uint64_t value) {
  if (value % 16 == 0)
    return 16;
  if (value % 8 == 0)
    return 8;
  return value % 4 == 0 ? 4 : 0;
}

/// A launch's arguments while they are looked at. `isKnown` becomes false at the first
/// that is not for this path.
class Signature {
public:
  explicit Signature(const Dispatcher &dispatcher) : dispatcher(dispatcher) {}

  /// False where `slow` has to do the launch.
  bool bind(PyObject *const *args, size_t count, PyObject *keywords);
  bool specialise();
  size_t hash() const;
  bool matches(const Entry &entry) const;

  const Dispatcher &dispatcher;
  std::array<PyObject *, kMaxParams> values = {}; ///< borrowed
  std::vector<std::pair<PyObject *, PyObject *>> options;
  std::array<uint64_t, kMaxParams> slots;
  size_t numSlots = 0;
  std::string bytes;
  std::vector<PyObject *> constants; ///< borrowed

private:
  bool addConstant(PyObject *value);
  bool addInteger(const Parameter &parameter, PyObject *value);
  bool addArray(const Parameter &parameter, PyObject *value);
  bool addTensor(const Parameter &parameter, PyObject *value);
  void addPointer(const Parameter &parameter, uint64_t address, char dtype, bool readOnly,
                  char device);
  void addSlot(uint64_t value) { slots[numSlots++] = value; }
};

bool Signature::bind(PyObject *const *args, size_t count, PyObject *keywords) {
  const std::vector<Parameter> &parameters = *dispatcher.parameters;
  if (count > parameters.size())
    return false;
  std::copy(args, args + count, values.begin());
  size_t numKeywords = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  for (size_t i = 0; i < numKeywords; ++i) {
    PyObject *name = PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i));
    PyObject *value = args[count + i];
    // Keywords of a call are interned, as parameters' names are.
    size_t at = 0;
    while (at < parameters.size() && parameters[at].name != name)
      ++at;
    if (at == parameters.size()) {
      options.emplace_back(name, value);
      continue;
    }
    if (values[at])
      return false;
    values[at] = value;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].isTuned) {
      if (values[i])
        return false;
      continue;
    }
    if (!values[i])
      values[i] = parameters[i].defaultValue;
    if (!values[i])
      return false;
  }
  return true;
}

bool Signature::specialise() {
  const std::vector<Parameter> &parameters = *dispatcher.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter &parameter = parameters[i];
    PyObject *value = values[i];
    bool isFine = true;
    if (!value)
      continue; // tuned
    if (parameter.isConstexpr) {
      isFine = addConstant(value);
    } else if (PyLong_CheckExact(value)) {
      isFine = addInteger(parameter, value);
    } else if (PyFloat_CheckExact(value)) {
      float rounded = static_cast<float>(PyFloat_AS_DOUBLE(value));
      uint32_t bits;
      std::memcpy(&bits, &rounded, sizeof(bits));
      bytes += kFloat;
      addSlot(bits);
    } else if (value == Py_None) {
      bytes += kNone;
    } else if (PyBool_Check(value)) {
      bytes += kBool;
      addSlot(value == Py_True);
    } else {
      isFine = addArray(parameter, value);
    }
    if (!isFine)
      return false;
    // Of an array, its element type counts, which is in the signature.
    if (parameter.isKey && !parameter.isConstexpr &&
        (PyLong_Check(value) || PyFloat_CheckExact(value)))
      constants.push_back(value);
  }
  for (auto [name, value] : options) {
    constants.push_back(name);
    if (!addConstant(value))
      return false;
  }
  return true;
}

bool Signature::addConstant(PyObject *value) {
  bytes += kConstant;
  constants.push_back(value);
  return true;
}

bool Signature::addInteger(const Parameter &parameter, PyObject *value) {
  int overflow = 0;
  int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  uint64_t slot = static_cast<uint64_t>(integer);
  if (overflow > 0) {
    slot = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    bytes += kUInt64;
  } else if (overflow < 0) {
    return false;
  } else if (integer == 1 && parameter.onValue) {
    bytes += kOne;
    return true;
  } else {
    bytes += integer == static_cast<int32_t>(integer) ? kInt32 : kInt64;
  }
  bytes += parameter.onValue && parameter.onAlignment ? alignmentClass(slot) : char(0);
  addSlot(slot);
  return true;
}

bool Signature::addArray(const Parameter &parameter, PyObject *value) {
  TypeTables &tables = typeTables();
  PyTypeObject *type = Py_TYPE(value);
  auto found = tables.arrays.find(type);
  if (found == tables.arrays.end()) {
    Py_INCREF(type); // or another type might come to lie at its address
    found = tables.arrays.emplace(type, findArrayKind(type)).first;
  }
  if (found->second == ArrayKind::NumPy) {
    const auto *array = reinterpret_cast<const NumPyArray *>(value);
    auto dtype = tables.dtypes.find(array->dtype);
    if (dtype == tables.dtypes.end() || !array->data)
      return false;
    addPointer(parameter, reinterpret_cast<uint64_t>(array->data), dtype->second,
               !(array->flags & kNumPyWriteable), /*device=*/-1);
    return true;
  }
  return found->second == ArrayKind::Torch && addTensor(parameter, value);
}

uint64_t readWord(const void *object, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, static_cast<const char *>(object) + offset, sizeof(word));
  return word;
}

/// The bits of a tensor whose place is known; all ones where there is no tensor.
uint64_t readTensorBits(const TensorBits &where, PyObject *tensor) {
  uint64_t implementation = readWord(tensor, where.implementation);
  return implementation ? readWord(reinterpret_cast<const void *>(implementation), where.word)
                        : ~uint64_t(0);
}

bool hasAcceptedBits(const TensorBits &where, PyObject *tensor) {
  return std::find(where.accepted.begin(), where.accepted.end(), readTensorBits(where, tensor)) !=
         where.accepted.end();
}

/// A tensor of torch's, on the CPU or on a GPU. What is wrong with one `slow` says.
bool Signature::addTensor(const Parameter &parameter, PyObject *value) {
  auto own = [](PyObject *found) {
    if (!found)
      PyErr_Clear();
    return py::reinterpret_steal<py::object>(found);
  };
  auto get = [&](PyObject *name) {
    return own(callPython([&] { return PyObject_GetAttr(value, name); }));
  };
  auto call = [&](PyObject *name) {
    return own(callPython([&] { return PyObject_CallMethodNoArgs(value, name); }));
  };
  TypeTables &tables = typeTables();
  bool isCUDA = tables.expectsCUDA;
  bool isReachable = get(isCUDA ? names().isCUDA : names().isCPU).ptr() == Py_True;
  if (!isReachable) {
    tables.expectsCUDA = isCUDA = !isCUDA;
    isReachable = get(isCUDA ? names().isCUDA : names().isCPU).ptr() == Py_True;
  }
  py::object dtype = isReachable ? get(names().dtype) : py::object();
  auto known = dtype ? tables.dtypes.find(dtype.ptr()) : tables.dtypes.end();
  if (known == tables.dtypes.end())
    return false;
  py::object device = isCUDA ? call(names().getDevice) : py::object();
  py::object address = call(names().dataPtr);
  if (!address || !PyLong_Check(address.ptr()) ||
      (isCUDA && !(device && PyLong_Check(device.ptr()))))
    return false;
  uint64_t bits = PyLong_AsUnsignedLongLongMask(address.ptr());
  bool isSpecial = tables.tensorBits.isKnown ? !hasAcceptedBits(tables.tensorBits, value)
                                             : call(names().isNegative).ptr() == Py_True ||
                                                   get(names().isNested).ptr() == Py_True;
  if (bits < kLowestAddress || isSpecial)
    return false;
  int overflow = 0;
  long ordinal = isCUDA ? PyLong_AsLongAndOverflow(device.ptr(), &overflow) : -1;
  if (ordinal < -1 || ordinal > 127 || overflow)
    return false;
  addPointer(parameter, bits, known->second, /*readOnly=*/false, static_cast<char>(ordinal));
  return true;
}

void Signature::addPointer(const Parameter &parameter, uint64_t address, char dtype, bool readOnly,
                           char device) {
  char alignment = parameter.onValue && parameter.onAlignment ? alignmentClass(address) : char(0);
  bytes += kPointer;
  bytes += dtype;
  bytes += static_cast<char>(alignment | (readOnly ? 1 : 0));
  bytes += device;
  addSlot(address);
}

/// Whether Python's equality is the right one between two objects of this type.
bool comparesByValue(PyObject *value) {
  return PyLong_CheckExact(value) || PyUnicode_CheckExact(value);
}

size_t hashConstant(PyObject *value) {
  if (comparesByValue(value))
    return static_cast<size_t>(PyObject_Hash(value));
  if (PyFloat_CheckExact(value))
    return std::hash<double>()(PyFloat_AS_DOUBLE(value));
  return reinterpret_cast<size_t>(value) >> 4;
}

/// Floats are compared by their bits, since 0.0 equals -0.0 and no NaN equals itself.
bool areSameConstants(PyObject *left, PyObject *right) {
  if (left == right)
    return true;
  if (Py_TYPE(left) != Py_TYPE(right))
    return false;
  if (PyFloat_CheckExact(left)) {
    double values[] = {PyFloat_AS_DOUBLE(left), PyFloat_AS_DOUBLE(right)};
    return std::memcmp(&values[0], &values[1], sizeof(double)) == 0;
  }
  return comparesByValue(left) && PyObject_RichCompareBool(left, right, Py_EQ) == 1;
}

size_t Signature::hash() const {
  size_t result = std::hash<std::string>()(bytes);
  for (PyObject *constant : constants)
    result = result * 1000003 + hashConstant(constant);
  return result;
}

bool Signature::matches(const Entry &entry) const {
  return bytes == entry.signature &&
         std::equal(constants.begin(), constants.end(), entry.constants.begin(),
                    entry.constants.end(), areSameConstants);
}

/// Grows with each change of what every launch depends on: settings, the language's modules.
uint64_t currentGeneration = 0;

/// The extents of a grid that is a tuple of plain integers.
bool readGrid(PyObject *grid, int32_t extents[3]) {
  if (!PyTuple_Check(grid) || PyTuple_GET_SIZE(grid) < 1 || PyTuple_GET_SIZE(grid) > 3)
    return false;
  extents[1] = extents[2] = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(grid); ++i) {
    PyObject *extent = PyTuple_GET_ITEM(grid, i);
    int overflow = 0;
    int64_t value =
        PyLong_CheckExact(extent) ? PyLong_AsLongLongAndOverflow(extent, &overflow) : -1;
    if (value < 0 || value > INT32_MAX)
      return false;
    extents[i] = static_cast<int32_t>(value);
  }
  return true;
}

/// The same of a grid function, which gets arguments and options by name. A new
/// reference to what it returned, or null with an exception.
PyObject *callGridFunction(PyObject *function, const Signature &signature, const Entry &entry) {
  py::object meta = py::reinterpret_steal<py::object>(PyDict_Copy(entry.meta));
  if (!meta)
    return nullptr;
  const std::vector<Parameter> &parameters = *signature.dispatcher.parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (signature.values[i] &&
        PyDict_SetItem(meta.ptr(), parameters[i].name, signature.values[i]) < 0)
      return nullptr;
  return callPython([&] { return PyObject_CallOneArg(function, meta.ptr()); });
}

/// A user's mistake is shown where the user made it: the traceback of one ends at the
/// launch. Of our own bugs, every frame is wanted.
void hideOwnFrames() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  bool isMistake = value && PyObject_HasAttrString(value, "fix");
  if (isMistake) {
    PyException_SetTraceback(value, Py_None);
    Py_CLEAR(traceback);
  }
  PyErr_Restore(type, value, traceback);
}

PyObject *callSlow(Launch *launch, PyObject *const *args, size_t count, PyObject *keywords,
                   Signature *signature) {
  Dispatcher *dispatcher = launch->dispatcher;
  py::tuple positional(count);
  for (size_t i = 0; i < count; ++i)
    positional[i] = py::reinterpret_borrow<py::object>(args[i]);
  py::dict named;
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    named[py::handle(PyTuple_GET_ITEM(keywords, i))] =
        py::reinterpret_borrow<py::object>(args[count + static_cast<size_t>(i)]);
  py::object returned = py::reinterpret_steal<py::object>(callPython([&] {
    return PyObject_CallFunctionObjArgs(dispatcher->slow, launch->grid, positional.ptr(),
                                        named.ptr(), nullptr);
  }));
  if (!returned) {
    hideOwnFrames();
    return nullptr;
  }
  // (result, None) or (result, (kernel, slots, threads, options, globals, device, stream)),
  // the stream a number or a function of the device; of a tuned kernel, its configuration
  // comes behind that, and the options have what it fills in.
  py::tuple pair(returned);
  py::object result = pair[0];
  if (!signature || pair[1].is_none())
    return result.release().ptr();

  py::tuple recipe = pair[1];
  py::tuple slots = recipe[1];
  bool agrees = slots.size() == signature->numSlots;
  for (size_t i = 0; agrees && i < slots.size(); ++i)
    agrees = PyLong_AsUnsignedLongLongMask(slots[i].ptr()) == signature->slots[i];
  if (!agrees)
    return result.release().ptr();
  auto entry = std::make_shared<Entry>();
  entry->signature = signature->bytes;
  entry->constants = signature->constants;
  for (PyObject *constant : entry->constants)
    Py_INCREF(constant);
  py::object kernel = recipe[0];
  entry->kernel = kernel.cast<Kernel &>().handle.get();
  entry->kernelObject = kernel.release().ptr();
  entry->numThreads = recipe[2].cast<int32_t>();
  entry->meta = py::object(recipe[3]).release().ptr();
  entry->globals = py::object(recipe[4]).release().ptr();
  entry->checks = readChecks(entry->globals);
  entry->device = recipe[5].cast<int32_t>();
  py::object stream = recipe[6];
  if (PyLong_Check(stream.ptr()))
    entry->stream = stream.cast<uint64_t>();
  else
    entry->findStream = stream.release().ptr();
  if (recipe.size() > 7)
    entry->choice = py::object(recipe[7]).release().ptr();
  entry->result = py::object(result).release().ptr();
  if (dispatcher->entries->size() >= kMaxEntries)
    dispatcher->entries->clear();
  dispatcher->entries->emplace(signature->hash(), std::move(entry));
  return result.release().ptr();
}

/// Whether the last launch was of arguments for another variant of the kernel, for one
/// without tensor maps.
bool isForOtherVariant(TsrStatus status) {
  return status == TSR_USER_ERROR && std::strstr(tsr_last_error(), "\"E070\"");
}

/// Null without an exception where `slow` has to do the launch.
PyObject *launchEntry(Launch *launch, const Entry &entry, const Signature &signature,
                      const int32_t extents[3]) {
  uint64_t stream = entry.stream;
  if (entry.findStream) {
    py::object device = py::reinterpret_steal<py::object>(PyLong_FromLong(entry.device));
    py::object found = py::reinterpret_steal<py::object>(
        callPython([&] { return PyObject_CallOneArg(entry.findStream, device.ptr()); }));
    stream = found ? PyLong_AsUnsignedLongLong(found.ptr()) : 0;
    if (PyErr_Occurred())
      return nullptr;
  }
  TsrStatus status;
  {
    WithoutGIL released;
    const uint64_t *slots = signature.slots.data();
    status = entry.device < 0 ? tsr_kernel_launch(entry.kernel, extents, slots, signature.numSlots,
                                                  entry.numThreads)
                              : tsr_kernel_launch_cuda(entry.kernel, entry.device, stream, extents,
                                                       slots, signature.numSlots);
  }
  if (status == TSR_OK) {
    if (entry.choice && entry.choice != launch->dispatcher->lastChoice) {
      Py_INCREF(entry.choice);
      Py_XSETREF(launch->dispatcher->lastChoice, entry.choice);
    }
    Py_INCREF(entry.result);
    return entry.result;
  }
  if (isForOtherVariant(status))
    return nullptr;
  if (status == TSR_CANCELLED && PyErr_Occurred())
    return nullptr;
  try {
    check(status);
  } catch (py::error_already_set &error) {
    // `fail` raises what the core's error means to a user.
    py::object value = error.value();
    callPython([&] { return PyObject_CallOneArg(launch->dispatcher->fail, value.ptr()); });
    hideOwnFrames();
  }
  return nullptr;
}

void forgetEntries(Dispatcher *dispatcher) {
  // Taken out first: what an entry releases may run Python.
  std::unordered_multimap<size_t, std::shared_ptr<Entry>> entries;
  entries.swap(*dispatcher->entries);
  dispatcher->generation = currentGeneration;
}

PyObject *doLaunch(Launch *launch, PyObject *const *args, size_t count, PyObject *keywords) {
  Dispatcher *dispatcher = launch->dispatcher;
  if (dispatcher->generation != currentGeneration)
    forgetEntries(dispatcher);
  if (dispatcher->isRetired)
    return callSlow(launch, args, count, keywords, nullptr);
  Signature signature(*dispatcher);
  if (!signature.bind(args, count, keywords) || !signature.specialise())
    return callSlow(launch, args, count, keywords, nullptr);
  auto [begin, end] = dispatcher->entries->equal_range(signature.hash());
  for (auto at = begin; at != end; ++at) {
    // Held, since the table may change while the kernel or a grid function runs.
    std::shared_ptr<Entry> held = at->second;
    const Entry &entry = *held;
    if (!signature.matches(entry))
      continue;
    if (!allHold(entry.checks)) {
      // A check may have run Python, and that another launch.
      auto [first, last] = dispatcher->entries->equal_range(signature.hash());
      auto same = std::find_if(first, last, [&](const auto &one) { return one.second == held; });
      if (same != last)
        dispatcher->entries->erase(same);
      break;
    }
    int32_t extents[3];
    auto launchKnown = [&] {
      PyObject *result = launchEntry(launch, entry, signature, extents);
      return result || PyErr_Occurred() ? result : callSlow(launch, args, count, keywords, nullptr);
    };
    if (readGrid(launch->grid, extents))
      return launchKnown();
    if (PyCallable_Check(launch->grid)) {
      py::object grid =
          py::reinterpret_steal<py::object>(callGridFunction(launch->grid, signature, entry));
      if (grid && readGrid(grid.ptr(), extents))
        return launchKnown();
      PyErr_Clear(); // `slow` calls it again and says what is wrong
    }
    return callSlow(launch, args, count, keywords, nullptr);
  }
  return callSlow(launch, args, count, keywords, &signature);
}

PyObject *callLaunch(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords) {
  try {
    return callPython([&] {
      return doLaunch(reinterpret_cast<Launch *>(self), args, PyVectorcall_NARGS(flags), keywords);
    });
  } catch (py::error_already_set &error) {
    error.restore();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// --- The two types --------------------------------------------------------------

PyObject *newDispatcher(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *parameters = nullptr, *slow = nullptr, *fail = nullptr;
  if (!PyArg_ParseTuple(args, "O!OO", &PyTuple_Type, &parameters, &slow, &fail))
    return nullptr;
  if (PyTuple_GET_SIZE(parameters) > Py_ssize_t(kMaxParams)) {
    PyErr_SetString(PyExc_ValueError, "too many parameters for the fast path");
    return nullptr;
  }
  auto *self = reinterpret_cast<Dispatcher *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->generation = currentGeneration;
  self->parameters = new std::vector<Parameter>;
  self->entries = new std::unordered_multimap<size_t, std::shared_ptr<Entry>>;
  Py_INCREF(self->slow = slow);
  Py_INCREF(self->fail = fail);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parameters); ++i) {
    PyObject *name = nullptr, *defaults = nullptr;
    int isConstexpr = 0, onValue = 0, onAlignment = 0, isTuned = 0, isKey = 0;
    // The default comes in a tuple, empty where there is none.
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(parameters, i), "UO!ppp|pp", &name, &PyTuple_Type,
                          &defaults, &isConstexpr, &onValue, &onAlignment, &isTuned, &isKey)) {
      Py_DECREF(self);
      return nullptr;
    }
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    PyObject *value = PyTuple_GET_SIZE(defaults) ? PyTuple_GET_ITEM(defaults, 0) : nullptr;
    Py_XINCREF(value);
    self->parameters->push_back(
        {name, value, isConstexpr != 0, onValue != 0, onAlignment != 0, isTuned != 0, isKey != 0});
  }
  return reinterpret_cast<PyObject *>(self);
}

int traverseDispatcher(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->slow);
  Py_VISIT(self->fail);
  Py_VISIT(self->lastChoice);
  if (self->parameters)
    for (const Parameter &parameter : *self->parameters)
      Py_VISIT(parameter.defaultValue);
  // An entry that a launch holds too counts once: its references are the table's, and
  // whoever launches has the dispatcher.
  if (self->entries)
    for (const auto &[hash, entry] : *self->entries)
      if (int stop = entry->traverse(visit, arg))
        return stop;
  return 0;
}

PyObject *clearEntries(PyObject *self, PyObject *) {
  forgetEntries(reinterpret_cast<Dispatcher *>(self));
  Py_RETURN_NONE;
}

/// The parameters are others now: those who hold a launch still go the slow way for good.
PyObject *retire(PyObject *self, PyObject *) {
  reinterpret_cast<Dispatcher *>(self)->isRetired = true;
  return clearEntries(self, nullptr);
}

int clearDispatcher(PyObject *object) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  Py_CLEAR(self->slow);
  Py_CLEAR(self->fail);
  Py_CLEAR(self->lastChoice);
  if (self->entries)
    Py_DECREF(clearEntries(object, nullptr));
  if (self->parameters)
    for (Parameter &parameter : *self->parameters)
      Py_CLEAR(parameter.defaultValue);
  return 0;
}

void deallocDispatcher(PyObject *object) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clearDispatcher(object);
  for (const Parameter &parameter : *self->parameters) {
    Py_DECREF(parameter.name);
    Py_XDECREF(parameter.defaultValue);
  }
  delete self->parameters;
  delete self->entries;
  type->tp_free(object);
  Py_DECREF(type);
}

PyTypeObject *launchType = nullptr;

/// dispatcher.bind(grid): what `kernel[grid]` is.
PyObject *bindGrid(PyObject *self, PyObject *grid) {
  Launch *launch = PyObject_GC_New(Launch, launchType);
  if (!launch)
    return nullptr;
  launch->vectorcall = callLaunch;
  Py_INCREF(self);
  launch->dispatcher = reinterpret_cast<Dispatcher *>(self);
  Py_INCREF(grid);
  launch->grid = grid;
  PyObject_GC_Track(launch);
  return reinterpret_cast<PyObject *>(launch);
}

int traverseLaunch(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Launch *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dispatcher);
  Py_VISIT(self->grid);
  return 0;
}

void deallocLaunch(PyObject *object) {
  auto *self = reinterpret_cast<Launch *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->dispatcher);
  Py_XDECREF(self->grid);
  type->tp_free(object);
  Py_DECREF(type);
}

/// The configuration that the last launch of a tuned kernel had, or None.
PyObject *getLastChoice(PyObject *self, PyObject *) {
  PyObject *choice = reinterpret_cast<Dispatcher *>(self)->lastChoice;
  return Py_NewRef(choice ? choice : Py_None);
}

/// The same for a launch that this had no part in.
PyObject *setLastChoice(PyObject *self, PyObject *choice) {
  Py_INCREF(choice);
  Py_XSETREF(reinterpret_cast<Dispatcher *>(self)->lastChoice, choice);
  Py_RETURN_NONE;
}

PyMethodDef dispatcherMethods[] = {
    {"bind", bindGrid, METH_O, "A callable that launches the kernel over a grid."},
    {"clear", clearEntries, METH_NOARGS, "Forget every specialisation."},
    {"retire", retire, METH_NOARGS, "Leave every launch to `slow` from now on."},
    {"last_choice", getLastChoice, METH_NOARGS,
     "The configuration of the last launch of a tuned kernel."},
    {"set_last_choice", setLastChoice, METH_O, "Note that of a launch by other ways."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot dispatcherSlots[] = {
    {Py_tp_doc,
     const_cast<char *>("Dispatcher(parameters, slow, fail): the warm path of launches")},
    {Py_tp_new, reinterpret_cast<void *>(newDispatcher)},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocDispatcher)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverseDispatcher)},
    {Py_tp_clear, reinterpret_cast<void *>(clearDispatcher)},
    {Py_tp_methods, dispatcherMethods},
    {0, nullptr}};
PyType_Spec dispatcherSpec = {"tessera._C.Dispatcher", sizeof(Dispatcher), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, dispatcherSlots};

PyMemberDef launchMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launch, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot launchSlots[] = {{Py_tp_doc, const_cast<char *>("A kernel and a grid; call it.")},
                             {Py_tp_dealloc, reinterpret_cast<void *>(deallocLaunch)},
                             {Py_tp_traverse, reinterpret_cast<void *>(traverseLaunch)},
                             {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                             {Py_tp_members, launchMembers},
                             {0, nullptr}};
PyType_Spec launchSpec = {"tessera._C.Launch", sizeof(Launch), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                          launchSlots};

using Probes = std::vector<std::pair<py::object, uint64_t>>;

/// The one bit that all of `negative` have set and none of `plain` has, if there is just one.
/// A probe is a tensor and the address of torch's own object behind it.
bool learnNegativeBit(const Probes &plain, const Probes &negative) {
  constexpr size_t objectBytes = 64, implementationBytes = 184; // as in torch 2.13
  TensorBits found;
  auto holdsAddress = [&](const auto &probe) {
    return static_cast<size_t>(Py_TYPE(probe.first.ptr())->tp_basicsize) >=
               found.implementation + sizeof(uint64_t) &&
           readWord(probe.first.ptr(), found.implementation) == probe.second;
  };
  for (found.implementation = sizeof(PyObject); found.implementation < objectBytes;
       found.implementation += sizeof(uint64_t))
    if (std::all_of(plain.begin(), plain.end(), holdsAddress) &&
        std::all_of(negative.begin(), negative.end(), holdsAddress))
      break;
  if (found.implementation >= objectBytes || plain.empty() || negative.empty())
    return false;
  unsigned numFound = 0;
  for (size_t word = 0; word < implementationBytes; word += sizeof(uint64_t)) {
    uint64_t bits = ~uint64_t(0);
    for (const auto &[tensor, address] : negative)
      bits &= readWord(reinterpret_cast<const void *>(address), word);
    for (const auto &[tensor, address] : plain)
      bits &= ~readWord(reinterpret_cast<const void *>(address), word);
    numFound += static_cast<unsigned>(__builtin_popcountll(bits));
    if (bits)
      found.word = word;
  }
  found.isKnown = numFound == 1;
  if (found.isKnown)
    typeTables().tensorBits = found;
  return found.isKnown;
}

void acceptTensor(const py::object &tensor) {
  TypeTables &tables = typeTables();
  if (!tables.tensorBits.isKnown || findArrayKind(Py_TYPE(tensor.ptr())) != ArrayKind::Torch)
    return;
  std::vector<uint64_t> &accepted = tables.tensorBits.accepted;
  constexpr size_t most = 64;
  if (!hasAcceptedBits(tables.tensorBits, tensor.ptr()) && accepted.size() < most)
    accepted.push_back(readTensorBits(tables.tensorBits, tensor.ptr()));
}

void learnDType(const py::object &dtype, int coreId) {
  if (typeTables().dtypes.emplace(dtype.ptr(), static_cast<char>(coreId)).second)
    dtype.inc_ref(); // known by its address from now on
}

} // namespace

void tessera::python::registerLaunch(py::module_ &module) {
  PyObject *dispatcher = PyType_FromSpec(&dispatcherSpec);
  PyObject *launch = PyType_FromSpec(&launchSpec);
  if (!dispatcher || !launch)
    throw py::error_already_set();
  launchType = reinterpret_cast<PyTypeObject *>(launch);
  module.add_object("Dispatcher", py::reinterpret_steal<py::object>(dispatcher));
  module.add_object("Launch", py::reinterpret_borrow<py::object>(launch));
  module.def(
      "is_current", [](const py::tuple &checks) { return allHold(readChecks(checks.ptr())); },
      "Whether all of these checks hold (frontend/reads.py).");
  module.def(
      "advance_generation", [] { ++currentGeneration; },
      "Have every launch look again at what it depends on.");
  module.def("learn_dtype", &learnDType, py::arg("dtype"), py::arg("core_id"),
             "Have the warm path take arrays with this dtype object of NumPy's or torch's.");
  module.def("learn_negative_bit", &learnNegativeBit, py::arg("plain"), py::arg("negative"),
             "Have the warm path know torch's tensors with the negative bit by looking at some\n"
             "without and with it: (tensor, its `_cdata`) each. Whether it does now.");
  module.def("accept_tensor", &acceptTensor, py::arg("tensor"),
             "Have the warm path take torch's tensors that are as plain as this one.");
}
