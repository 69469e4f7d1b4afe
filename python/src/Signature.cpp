// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Signature.h"

#include "DLPack.h"
#include "Interpreter.h"
#include "Numbers.h"
#include "TorchTensors.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

using namespace tessera::python;

namespace {

char kindOfNumber(TsrDType dtype) { return static_cast<char>(kNumber + dtype); }

/// Whether a compiled kernel takes an argument of this kind for one that it expects, with the bits
/// that are in its slot.
bool isAccepted(char expected, char kind) {
  return expected == kAny || kind == expected ||
         (expected == kindOfNumber(TSR_INT64) && kind == kindOfNumber(TSR_INT32));
}

/// What a compiled kernel expects that takes a number of this type; kAny where no number is passed
/// to it as it is.
char expectNumber(int dtype) {
  switch (dtype) {
  case TSR_INT1:
  case TSR_INT32:
  case TSR_INT64:
  case TSR_FP32:
    return kindOfNumber(static_cast<TsrDType>(dtype));
  default:
    return kAny;
  }
}

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
  // Of arrays that say by protocols where they are.
  PyObject *dlpack = PyUnicode_InternFromString("__dlpack__");
  PyObject *dlpackDevice = PyUnicode_InternFromString("__dlpack_device__");
  PyObject *maxVersion = PyUnicode_InternFromString("max_version");
  PyObject *arrayInterface = PyUnicode_InternFromString("__array_interface__");
  PyObject *cudaInterface = PyUnicode_InternFromString("__cuda_array_interface__");
  PyObject *data = PyUnicode_InternFromString("data");
  PyObject *typestr = PyUnicode_InternFromString("typestr");
  PyObject *mask = PyUnicode_InternFromString("mask");
  PyObject *stream = PyUnicode_InternFromString("stream");
  PyObject *device = PyUnicode_InternFromString("device");
  PyObject *id = PyUnicode_InternFromString("id");
  PyObject *value = PyUnicode_InternFromString("value"); ///< of a tl.constexpr
  // Of a tensor descriptor.
  PyObject *base = PyUnicode_InternFromString("base");
  PyObject *shape = PyUnicode_InternFromString("shape");
  PyObject *ofInstance = PyUnicode_InternFromString("__dict__");
  PyObject *strides = PyUnicode_InternFromString("strides");
  PyObject *blockShape = PyUnicode_InternFromString("block_shape");
  PyObject *padding = PyUnicode_InternFromString("padding");
  PyObject *roundsToTF32 = PyUnicode_InternFromString("round_f32_to_tf32");
  PyObject *coreId = PyUnicode_InternFromString("_core_id"); ///< of a dtype of the language
};

const Names &names() {
  static const Names result;
  return result;
}

/// What the objects of a Python type are. Those behind Torch are classes that `slow` has told of.
enum class ArrayKind { None, NumPy, Torch, DLPack, CUDA, Interface, Record, Integer, Float, Bool };

ArrayKind findArrayKind(PyTypeObject *type) {
  if (std::strcmp(type->tp_name, "numpy.ndarray") == 0)
    return ArrayKind::NumPy;
  if (std::strcmp(type->tp_name, "Tensor") && std::strcmp(type->tp_name, "Parameter"))
    return ArrayKind::None;
  PyObject *module = callPython(
      [&] { return PyObject_GetAttr(reinterpret_cast<PyObject *>(type), names().module); });
  clearError(PyExc_AttributeError);
  const char *text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  bool isTorch = text && (!std::strcmp(text, "torch") || !std::strcmp(text, "torch.nn.parameter"));
  Py_XDECREF(module);
  PyErr_Clear(); // a text that UTF-8 does not have
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

/// What `slow` has told of a class.
struct LearnedClass {
  ArrayKind kind;
  bool isImmutable = false;                        ///< of arrays: whatever an interface says
  std::vector<std::pair<PyObject *, bool>> fields; ///< of a record: its name, and if it is constant
};

/// Python's dtype objects by identity; they are few and live as long as the process.
/// Filled by `slow` (through Dispatcher.learn_dtype), so that no name is parsed here.
struct TypeTables {
  DTypeTable<PyObject *> dtypes;
  std::unordered_map<PyTypeObject *, ArrayKind> arrays; ///< those types that are of arrays
  std::unordered_map<PyTypeObject *, LearnedClass> learned;
  DTypeTable<unsigned> dlpackTypes;               ///< by code and bits
  std::unordered_map<std::string, char> typestrs; ///< of arrays that have no dtype
  PyTypeObject *constant = nullptr;               ///< tl.constexpr, once it is loaded
  TorchTensors torch;
  PyTypeObject *descriptor = nullptr; ///< the class of tensor descriptors, once it is loaded
  PyTypeObject *wrapper = nullptr;    ///< tessera.TensorWrapper, once it is loaded
  PyObject *refuse = nullptr;         ///< raises what a failing array means to a user
  bool expectsCUDA = false;           ///< where the last tensor was
  // Nearly every array is of the type that the last one had.
  PyTypeObject *lastType = nullptr;
  ArrayKind lastKind = ArrayKind::None;

  ArrayKind getKind(PyTypeObject *type);
  /// Of a type with one of the later kinds.
  const LearnedClass &getLearned(PyTypeObject *type) const;
  /// False if the dtype is not known.
  bool findDType(PyObject *dtype, char &id) { return dtypes.find(dtype, id); }
  bool findDType(const DLPackArray &array, char &id) {
    return array.lanes == 1 && dlpackTypes.find(array.code << 8 | array.bits, id);
  }
};

ArrayKind TypeTables::getKind(PyTypeObject *type) {
  if (type == lastType)
    return lastKind;
  auto found = arrays.find(type);
  if (found == arrays.end()) {
    ArrayKind kind = findArrayKind(type);
    // Any other class may come, and goes when nobody else has it.
    if (kind == ArrayKind::None)
      return kind;
    Py_INCREF(type); // or another type might come to lie at its address
    found = arrays.emplace(type, kind).first;
  }
  lastType = type;
  return lastKind = found->second;
}

const LearnedClass &TypeTables::getLearned(PyTypeObject *type) const {
  return learned.find(type)->second;
}

TypeTables &typeTables() {
  static TypeTables *tables = new TypeTables; // outlives the interpreter's teardown
  return *tables;
}

/// An attribute of an object, or null if it has none.
py::object getAttribute(PyObject *object, PyObject *name) {
  PyObject *found = callPython([&] { return PyObject_GetAttr(object, name); });
  clearError(PyExc_AttributeError);
  return py::reinterpret_steal<py::object>(found);
}

/// The list or tuple that an object has by this name, as a tuple if all its items are plain
/// integers. Null otherwise.
py::tuple getIntegers(PyObject *object, PyObject *name) {
  py::object items = getAttribute(object, name);
  if (!items || !(PyTuple_Check(items.ptr()) || PyList_Check(items.ptr())))
    return py::reinterpret_steal<py::tuple>(nullptr);
  // A list may change while the launch runs Python.
  py::tuple found =
      py::reinterpret_steal<py::tuple>(callPython([&] { return PySequence_Tuple(items.ptr()); }));
  if (!found)
    throw py::error_already_set();
  for (size_t i = 0; i < found.size(); ++i)
    if (!PyLong_CheckExact(PyTuple_GET_ITEM(found.ptr(), i)))
      return py::reinterpret_steal<py::tuple>(nullptr);
  return found;
}

/// Whether Python's equality is the right one between two objects of this type.
bool comparesByValue(PyObject *value) {
  return PyLong_CheckExact(value) || PyUnicode_CheckExact(value);
}

/// Tuples in tuples are looked into so far; what is deeper is compared by identity.
constexpr int kMaxDepth = 8;

size_t hashConstant(PyObject *value, int depth = 0) {
  if (comparesByValue(value))
    return static_cast<size_t>(PyObject_Hash(value));
  if (PyTuple_CheckExact(value) && depth < kMaxDepth) {
    size_t result = static_cast<size_t>(PyTuple_GET_SIZE(value));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      result = result * 1000003 + hashConstant(PyTuple_GET_ITEM(value, i), depth + 1);
    return result;
  }
  if (PyFloat_CheckExact(value))
    return std::hash<double>()(PyFloat_AS_DOUBLE(value));
  return reinterpret_cast<size_t>(value) >> 4;
}

/// Floats are compared by their bits, since 0.0 equals -0.0 and no NaN equals itself.
bool areSameConstants(PyObject *left, PyObject *right, int depth = 0) {
  if (left == right)
    return true;
  if (Py_TYPE(left) != Py_TYPE(right))
    return false;
  if (PyTuple_CheckExact(left) && depth < kMaxDepth) {
    Py_ssize_t size = PyTuple_GET_SIZE(left);
    if (size != PyTuple_GET_SIZE(right))
      return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!areSameConstants(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i), depth + 1))
        return false;
    return true;
  }
  if (PyFloat_CheckExact(left)) {
    double values[] = {PyFloat_AS_DOUBLE(left), PyFloat_AS_DOUBLE(right)};
    return std::memcmp(&values[0], &values[1], sizeof(double)) == 0;
  }
  return comparesByValue(left) && PyObject_RichCompareBool(left, right, Py_EQ) == 1;
}

void acceptTensor(const py::object &tensor, uint64_t address, int coreId, bool isOrdinary) {
  if (isOrdinary || findArrayKind(Py_TYPE(tensor.ptr())) == ArrayKind::Torch)
    typeTables().torch.accept(tensor.ptr(), address, static_cast<char>(coreId));
}

/// The class goes on to live, since it is known by its address.
LearnedClass &learnClass(const py::type &cls, ArrayKind kind) {
  auto *type = reinterpret_cast<PyTypeObject *>(cls.ptr());
  TypeTables &tables = typeTables();
  if (tables.arrays.emplace(type, kind).second)
    cls.inc_ref();
  LearnedClass &learned = tables.learned[type];
  learned.kind = kind;
  return learned;
}

void learnDLPack(const py::type &cls, bool isImmutable, unsigned code, unsigned bits, int coreId) {
  learnClass(cls, ArrayKind::DLPack).isImmutable = isImmutable;
  typeTables().dlpackTypes.learn(code << 8 | bits, static_cast<char>(coreId));
}

void learnArrayInterface(const py::type &cls) { learnClass(cls, ArrayKind::Interface); }

void learnCUDAInterface(const py::type &cls, const std::string &typestr, int coreId) {
  learnClass(cls, ArrayKind::CUDA);
  if (!typestr.empty())
    typeTables().typestrs[typestr] = static_cast<char>(coreId);
}

void learnRecord(const py::type &cls, const std::vector<std::pair<py::str, bool>> &fields) {
  LearnedClass &learned = learnClass(cls, ArrayKind::Record);
  if (!learned.fields.empty())
    return;
  for (auto [name, isConstant] : fields) {
    PyObject *interned = name.release().ptr();
    PyUnicode_InternInPlace(&interned);
    learned.fields.push_back({interned, isConstant});
  }
}

void learnScalar(const py::type &cls, const std::string &kind) {
  learnClass(cls, kind == "int"     ? ArrayKind::Integer
                  : kind == "float" ? ArrayKind::Float
                                    : ArrayKind::Bool);
}

void learnDType(const py::object &dtype, int coreId) {
  if (typeTables().dtypes.learn(dtype.ptr(), static_cast<char>(coreId)))
    dtype.inc_ref(); // known by its address from now on
}

} // namespace

/// The one string of this text by which names are compared. Keywords that are written in a call are
/// that; those of a dict that was read from a file, say, need not be. Borrowed: whoever gave
/// `name`, or the other one, holds it.
static PyObject *getInterned(PyObject *name) {
  if (PyUnicode_CHECK_INTERNED(name))
    return name;
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  Py_DECREF(name);
  return name;
}

bool Signature::bind(PyObject *const *args, size_t count, PyObject *keywords) {
  // What is in a local variable is not read again after each store.
  const Parameter *const all = parameters.data();
  const size_t numParameters = parameters.size();
  const size_t numGiven = std::min(count, numParameters);
  size_t numByPlace = 0;
  for (; numByPlace < numGiven && all[numByPlace].passing == Passing::Any; ++numByPlace) {
    if (all[numByPlace].isTuned)
      return false;
    values[numByPlace] = args[numByPlace];
  }
  bool hasRest = numByPlace < numParameters && all[numByPlace].passing == Passing::Rest;
  if (numByPlace < count && !hasRest)
    return false;
  for (size_t i = numByPlace; i < numParameters; ++i)
    values[i] = nullptr;
  size_t numKeywords = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  for (size_t i = 0; i < numKeywords; ++i) {
    PyObject *name = getInterned(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i)));
    PyObject *value = args[count + i];
    size_t at = 0;
    while (at < numParameters && (all[at].name != name || all[at].passing == Passing::Rest))
      ++at;
    if (at == numParameters) {
      if (options.size() == kMaxOptions)
        return false;
      options.push_back({name, value});
      continue;
    }
    if (values[at])
      return false;
    values[at] = value;
  }
  for (size_t i = numByPlace; i < numParameters; ++i) {
    if (all[i].isTuned) {
      if (values[i])
        return false;
      continue;
    }
    if (all[i].passing == Passing::Rest) {
      size_t numRest = count - std::min(count, i);
      rest = py::reinterpret_steal<py::object>(PyTuple_New(static_cast<Py_ssize_t>(numRest)));
      if (!rest)
        throw py::error_already_set();
      for (size_t item = 0; item < numRest; ++item)
        PyTuple_SET_ITEM(rest.ptr(), static_cast<Py_ssize_t>(item), Py_NewRef(args[i + item]));
      values[i] = rest.ptr();
    }
    if (!values[i])
      values[i] = all[i].defaultValue;
    if (!values[i])
      return false;
  }
  return true;
}

bool Signature::specialise() {
  const Parameter *const all = parameters.data();
  const size_t numParameters = parameters.size();
  for (size_t i = 0; i < numParameters; ++i) {
    const Parameter &parameter = all[i];
    PyObject *value = values[i];
    if (!value)
      continue; // tuned
    size_t at = bytes.size(), slot = slots.size();
    bool isFine = true;
    if (parameter.isConstexpr && parameter.passing == Passing::Rest)
      return false; // a new tuple each time
    if (parameter.isConstexpr)
      addConstant(value);
    else
      isFine = addPlainTensor(parameter, value) || addPlainInteger(parameter, value) ||
               addValue(parameter, value);
    if (!isFine || !isAccepted(parameter.expected, bytes[at]))
      return false;
    if (parameter.isKey && !parameter.isConstexpr) {
      if (PyLong_Check(value) || PyFloat_CheckExact(value)) {
        constants.push_back(value);
      } else if (bytes[at] == kPointer) { // an array is told from others by its address
        if (bytes.size() + sizeof(uint64_t) > kAllBytes)
          return false;
        for (unsigned shift = 0; shift < 64; shift += 8)
          bytes.push_back(static_cast<char>(slots[slot] >> shift));
      } else if (bytes[at] != kNone) {
        return false;
      }
    }
  }
  for (auto [name, value] : options) {
    constants.push_back(name);
    addConstant(value);
    // What arrays are computed on may be another one, which is waited for.
    if (name == names().stream && stream != kNoStream)
      return false;
  }
  return true;
}

/// An argument that is no constexpr, or an item of one.
bool Signature::addValue(const Parameter &parameter, PyObject *value) {
  if (!hasRoom())
    return false;
  if (value == Py_None) {
    bytes.push_back(kNone);
  } else if (PyTuple_Check(value)) {
    return addTuple(parameter, value);
  } else if (PyList_CheckExact(value)) {
    // It may change while the launch runs Python, or the kernel, and what was in it be freed.
    py::object items = py::reinterpret_steal<py::object>(PyList_AsTuple(value));
    if (!items)
      throw py::error_already_set();
    owned.push_back(std::move(items));
    return addTuple(parameter, owned.back().ptr());
  } else if (Py_TYPE(value) == typeTables().constant) {
    PyObject *held = own(getAttribute(value, names().value));
    if (!held)
      return false;
    addConstant(held);
  } else if (parameter.number != TSR_VOID &&
             (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value))) {
    return addNumberAs(parameter, value);
  } else if (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyBool_Check(value)) {
    return addNumber(parameter, value);
  } else {
    return addArray(parameter, value);
  }
  return true;
}

/// Holds an object for as long as the launch takes; null if there is none, and no exception.
PyObject *Signature::own(py::object object) {
  if (!object)
    return nullptr;
  owned.push_back(std::move(object));
  return owned.back().ptr();
}

/// An instance of a dataclass or an aggregate, as the tuple of its fields.
bool Signature::addRecord(const Parameter &parameter, PyObject *value) {
  const LearnedClass &learned = typeTables().getLearned(Py_TYPE(value));
  size_t size = learned.fields.size();
  numItems += 1 + size;
  if (numItems > kMaxItems)
    return false;
  bytes.push_back(kTupleOfClass);
  constants.push_back(reinterpret_cast<PyObject *>(Py_TYPE(value)));
  addSize(size);
  for (size_t i = 0; i < size; ++i) {
    auto [name, isConstant] = typeTables().getLearned(Py_TYPE(value)).fields[i];
    PyObject *item = own(getAttribute(value, name));
    if (!item)
      return false;
    if (isConstant && Py_TYPE(item) != typeTables().constant)
      addConstant(item);
    else if (!addValue(parameter, item))
      return false;
  }
  return true;
}

/// A number of a class that is not Python's own: one of NumPy's, or of a subclass of int.
bool Signature::addScalar(const Parameter &parameter, PyObject *value, bool isInteger) {
  PyObject *number = nullptr;
  if (PyLong_Check(value)) { // whatever its class makes of itself
    int overflow = 0;
    int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    number = overflow ? nullptr : PyLong_FromLongLong(integer);
  } else if (PyFloat_Check(value)) {
    number = PyFloat_FromDouble(PyFloat_AS_DOUBLE(value));
  } else {
    number = callPython([&] { return isInteger ? PyNumber_Index(value) : PyNumber_Float(value); });
  }
  clearError(PyExc_TypeError);
  PyObject *held = own(py::reinterpret_steal<py::object>(number));
  if (!held || !(PyLong_CheckExact(held) || PyFloat_CheckExact(held)))
    return false;
  return parameter.number != TSR_VOID ? addNumberAs(parameter, held) : addNumber(parameter, held);
}

bool Signature::addTuple(const Parameter &parameter, PyObject *value) {
  auto size = static_cast<size_t>(PyTuple_GET_SIZE(value));
  numItems += 1 + size;
  // So tuples are not in one another too deeply.
  if (numItems > kMaxItems)
    return false;
  bool isPlain = PyTuple_CheckExact(value);
  bytes.push_back(isPlain ? kTuple : kTupleOfClass);
  if (!isPlain)
    constants.push_back(reinterpret_cast<PyObject *>(Py_TYPE(value)));
  addSize(size);
  for (size_t i = 0; i < size; ++i)
    if (!addValue(parameter, PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(i))))
      return false;
  return true;
}

/// A number of the type that an annotation says; what does not fit that `slow` refuses.
bool Signature::addNumberAs(const Parameter &parameter, PyObject *value) {
  SpecialisedNumber number;
  if (specialiseNumberAs(value, parameter.number, parameter.onValue, parameter.onAlignment,
                         number) != NumberStatus::Fine)
    return false;
  bytes.push_back(kNumberAs);
  bytes.push_back(number.alignment);
  slots.push_back(number.slot);
  return true;
}

/// The number of a tuple's items.
void Signature::addSize(size_t size) {
  static_assert(kMaxItems <= UINT16_MAX);
  bytes.append<2>({static_cast<char>(size), static_cast<char>(size >> 8)});
}

void Signature::addConstant(PyObject *value) {
  bytes.push_back(kConstant);
  constants.push_back(value);
}

bool Signature::addNumber(const Parameter &parameter, PyObject *value) {
  SpecialisedNumber number;
  if (specialiseNumber(value, parameter.onValue, parameter.onAlignment, number) !=
      NumberStatus::Fine)
    return false;
  if (number.dtype == TSR_VOID) {
    bytes.push_back(kOne);
    return true;
  }
  bytes.push_back(kindOfNumber(number.dtype));
  if (PyLong_CheckExact(value))
    bytes.push_back(number.alignment);
  slots.push_back(number.slot);
  return true;
}

/// What is not a tensor is nearly always this. False, and nothing done, for all else.
inline bool Signature::addPlainInteger(const Parameter &parameter, PyObject *value) {
  return PyLong_CheckExact(value) && parameter.number == TSR_VOID && hasRoom() &&
         addNumber(parameter, value);
}

bool Signature::addArray(const Parameter &parameter, PyObject *value) {
  TypeTables &tables = typeTables();
  if (Py_TYPE(value) == tables.descriptor)
    return addDescriptor(parameter, value);
  if (Py_TYPE(value) == tables.wrapper)
    return addReinterpreted(parameter, value);
  ArrayKind kind = tables.getKind(Py_TYPE(value));
  bool isArray = kind <= ArrayKind::Interface;
  if (isArray && parameter.number != TSR_VOID)
    return false;
  switch (kind) {
  case ArrayKind::None:
    return false;
  case ArrayKind::NumPy:
    break;
  case ArrayKind::Torch:
    return addTensor(parameter, value);
  case ArrayKind::DLPack:
    return addDLPack(parameter, value);
  case ArrayKind::CUDA:
    return addCUDAInterface(parameter, value);
  case ArrayKind::Interface:
    return addArrayInterface(parameter, value);
  case ArrayKind::Record:
    return addRecord(parameter, value);
  case ArrayKind::Integer:
  case ArrayKind::Float:
    return addScalar(parameter, value, kind == ArrayKind::Integer);
  case ArrayKind::Bool: {
    int isTrue = callPython([&] { return PyObject_IsTrue(value); });
    if (isTrue < 0)
      throw py::error_already_set();
    PyObject *plain = isTrue ? Py_True : Py_False;
    return parameter.number != TSR_VOID ? addNumberAs(parameter, plain)
                                        : addNumber(parameter, plain);
  }
  }
  const auto *array = reinterpret_cast<const NumPyArray *>(value);
  char dtype;
  if (!array->data || !tables.findDType(array->dtype, dtype))
    return false;
  addPointer(parameter, reinterpret_cast<uint64_t>(array->data), dtype,
             !(array->flags & kNumPyWriteable), /*device=*/-1);
  return true;
}

bool tessera::python::findTorchStream(PyObject *function, int32_t device, uint64_t &stream) {
  return typeTables().torch.findStream(function, device, stream);
}

bool Signature::addTensorOn(long ordinal, const Parameter &parameter, uint64_t address,
                            char dtype) {
  if (ordinal < -1 || ordinal > 127)
    return false;
  // The launch is on torch's stream then, and waits for others.
  hasTensorOnGPU |= ordinal >= 0;
  if (hasTensorOnGPU && stream != kNoStream)
    return false;
  addPointer(parameter, address, dtype, /*readOnly=*/false, static_cast<char>(ordinal));
  return true;
}

/// A tensor of torch's like nearly all arguments of launches. False, and nothing done, for all
/// else.
[[gnu::always_inline]] inline bool Signature::addPlainTensor(const Parameter &parameter,
                                                             PyObject *value) {
  TorchTensors &torch = typeTables().torch;
  TensorPlace place;
  return torch.knowsClass(Py_TYPE(value)) && parameter.number == TSR_VOID && torch.isPlain(value) &&
         slots.size() < kAllSlots && bytes.size() + 4 <= kAllBytes && torch.read(value, place) &&
         place.address >= kLowestAddress &&
         addTensorOn(place.ordinal, parameter, place.address, place.dtype);
}

/// A tensor of torch's, on the CPU or on a GPU. What is wrong with one `slow` says.
bool Signature::addTensor(const Parameter &parameter, PyObject *value) {
  TypeTables &tables = typeTables();
  if (addPlainTensor(parameter, value))
    return true;
  if (tables.torch.knowsClass(Py_TYPE(value)) && !tables.torch.isPlain(value))
    return false;
  // Torch's own functions, whose exceptions `slow` meets again: of a batch under vmap, say.
  auto own = [](PyObject *found) {
    clearError(PyExc_Exception);
    return py::reinterpret_steal<py::object>(found);
  };
  auto get = [&](PyObject *name) {
    return own(callPython([&] { return PyObject_GetAttr(value, name); }));
  };
  auto call = [&](PyObject *name) {
    return own(callPython([&] { return PyObject_CallMethodNoArgs(value, name); }));
  };
  bool isCUDA = tables.expectsCUDA;
  bool isReachable = get(isCUDA ? names().isCUDA : names().isCPU).ptr() == Py_True;
  if (!isReachable) {
    tables.expectsCUDA = isCUDA = !isCUDA;
    isReachable = get(isCUDA ? names().isCUDA : names().isCPU).ptr() == Py_True;
  }
  py::object dtype = isReachable ? get(names().dtype) : py::object();
  char id;
  if (!dtype || !tables.findDType(dtype.ptr(), id))
    return false;
  py::object device = isCUDA ? call(names().getDevice) : py::object();
  py::object address = call(names().dataPtr);
  if (!address || !PyLong_Check(address.ptr()) ||
      (isCUDA && !(device && PyLong_Check(device.ptr()))))
    return false;
  uint64_t bits = PyLong_AsUnsignedLongLongMask(address.ptr());
  bool isSpecial = tables.torch.knowsBits() ? !tables.torch.isPlain(value)
                                            : call(names().isNegative).ptr() == Py_True ||
                                                  get(names().isNested).ptr() == Py_True;
  if (bits < kLowestAddress || isSpecial)
    return false;
  int overflow = 0;
  long ordinal = isCUDA ? PyLong_AsLongAndOverflow(device.ptr(), &overflow) : -1;
  return !overflow && addTensorOn(ordinal, parameter, bits, id);
}

/// Throws what `slow` raises where asking an array for something has raised the exception that is
/// set. An array that lacks it, or has an older form of it, is left to `slow`: the exception is
/// cleared.
[[gnu::cold]] static void refuseFailed(const Parameter &parameter, PyObject *value,
                                       const char *asked) {
  if (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    return;
  }
  py::error_already_set error;
  py::handle refuse(error.matches(PyExc_Exception) ? typeTables().refuse : nullptr);
  if (refuse)
    callPython(
        [&] { refuse(py::handle(value), py::handle(parameter.name), asked, error.value()); });
  throw error;
}

/// An attribute of an array, which may be code of the user's. Null for what is left to `slow`.
static py::object askFor(const Parameter &parameter, PyObject *value, PyObject *name) {
  PyObject *found = callPython([&] { return PyObject_GetAttr(value, name); });
  if (!found)
    refuseFailed(parameter, value, "asking it where its elements are");
  return py::reinterpret_steal<py::object>(found);
}

/// An item of a dictionary, or null. It is held: a key that is compared may change the dictionary.
static py::object getItem(PyObject *dictionary, PyObject *key) {
  auto item = py::reinterpret_borrow<py::object>(
      callPython([&] { return PyDict_GetItemWithError(dictionary, key); }));
  if (PyErr_Occurred())
    throw py::error_already_set();
  return item;
}

/// The place in memory that an array's interface names: an integer, and whether it is read-only, a
/// bool. Null for anything else, and for an array with a mask.
static py::tuple getPlace(PyObject *interface) {
  py::object data = getItem(interface, names().data), mask = getItem(interface, names().mask);
  bool isPlace = data && PyTuple_Check(data.ptr()) && PyTuple_GET_SIZE(data.ptr()) == 2 &&
                 PyLong_CheckExact(PyTuple_GET_ITEM(data.ptr(), 0)) &&
                 PyBool_Check(PyTuple_GET_ITEM(data.ptr(), 1)) && (!mask || mask.is_none());
  return py::reinterpret_steal<py::tuple>(isPlace ? data.release().ptr() : nullptr);
}

static bool areIntegers(PyObject *tuple) {
  if (!PyTuple_Check(tuple))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(tuple, i)))
      return false;
  return true;
}

/// True if an instance has the attribute itself. An attribute of its class does not count.
static bool hasOfItsOwn(PyObject *object, PyObject *name) {
  py::object own = getAttribute(object, names().ofInstance);
  return own && PyDict_Check(own.ptr()) && getItem(own.ptr(), name);
}

/// An array in the host's memory that exports DLPack. What is wrong with one `slow` says, and
/// those on GPUs it waits for.
bool Signature::addDLPack(const Parameter &parameter, PyObject *value) {
  static PyObject *const keywords = PyTuple_Pack(1, names().maxVersion);
  static PyObject *const version = Py_BuildValue("(ii)", 1, 1);
  auto give = [&](PyObject *found) {
    if (!found)
      refuseFailed(parameter, value, "__dlpack__()");
    return py::reinterpret_steal<py::object>(found);
  };
  py::object device =
      give(callPython([&] { return PyObject_CallMethodNoArgs(value, names().dlpackDevice); }));
  if (!device || !PyTuple_Check(device.ptr()) || PyTuple_GET_SIZE(device.ptr()) != 2)
    return false;
  // Of an IntEnum, perhaps.
  PyObject *place = PyTuple_GET_ITEM(device.ptr(), 0);
  int overflow = 0;
  long kind = PyLong_Check(place) ? PyLong_AsLongAndOverflow(place, &overflow) : -1;
  if (!isHostDevice(kind))
    return false;
  PyObject *arguments[] = {value, version};
  PyObject *capsule = own(give(callPython(
      [&] { return PyObject_VectorcallMethod(names().dlpack, arguments, 1, keywords); })));
  DLPackArray array;
  if (!capsule || !readDLPackArray(capsule, array) || array.lanes != 1 || !array.hasElements ||
      !isHostDevice(array.device))
    return false;
  TypeTables &tables = typeTables();
  char id;
  if (!tables.findDType(array, id) || !array.address)
    return false;
  bool isReadOnly = array.isReadOnly || tables.getLearned(Py_TYPE(value)).isImmutable;
  addPointer(parameter, array.address, id, isReadOnly, /*device=*/-1);
  return true;
}

/// An array that says by NumPy's protocol where it is. What is wrong with one `slow` says.
bool Signature::addArrayInterface(const Parameter &parameter, PyObject *value) {
  PyObject *found = callPython([&] { return PyObject_GetAttr(value, names().arrayInterface); });
  if (!found)
    refuseFailed(parameter, value, "__array_interface__");
  PyObject *interface = own(py::reinterpret_steal<py::object>(found));
  py::object dtype = askFor(parameter, value, names().dtype);
  char id;
  // `slow` asks an object for `data_ptr` first.
  if (!interface || !PyDict_CheckExact(interface) || !dtype ||
      !typeTables().findDType(dtype.ptr(), id) || hasOfItsOwn(value, names().dataPtr))
    return false;
  py::object shape = getItem(interface, names().shape);
  py::tuple where = getPlace(interface);
  if (!where || !shape || !areIntegers(shape.ptr()))
    return false;
  PyObject *place = PyTuple_GET_ITEM(where.ptr(), 0);
  PyObject *isReadOnly = PyTuple_GET_ITEM(where.ptr(), 1);
  int overflow = 0;
  int64_t address = PyLong_AsLongLongAndOverflow(place, &overflow);
  if (overflow || address < static_cast<int64_t>(kLowestAddress))
    return false;
  addPointer(parameter, static_cast<uint64_t>(address), id, isReadOnly == Py_True, /*device=*/-1);
  return true;
}

/// An array of CuPy's, Numba's and the like. The stream that one is computed on decides about that
/// of the launch, so it is in the signature; where there is another stream, `slow` waits for it.
bool Signature::addCUDAInterface(const Parameter &parameter, PyObject *value) {
  PyObject *found = callPython([&] { return PyObject_GetAttr(value, names().cudaInterface); });
  if (!found)
    refuseFailed(parameter, value, "__cuda_array_interface__");
  auto interface = py::reinterpret_steal<py::object>(found);
  if (!interface || !PyDict_CheckExact(interface.ptr()))
    return false;
  py::object typestr = getItem(interface.ptr(), names().typestr);
  py::object onStream = getItem(interface.ptr(), names().stream);
  py::tuple where = getPlace(interface.ptr());
  if (!where || !typestr || !PyUnicode_Check(typestr.ptr()))
    return false;
  PyObject *place = PyTuple_GET_ITEM(where.ptr(), 0);
  PyObject *isReadOnly = PyTuple_GET_ITEM(where.ptr(), 1);
  uint64_t address = PyLong_AsUnsignedLongLongMask(place);
  const char *spelled = PyUnicode_AsUTF8(typestr.ptr());
  if (!spelled)
    PyErr_Clear(); // a text that UTF-8 does not have
  if (!spelled || *spelled == '>' || address < kLowestAddress)
    return false;
  TypeTables &tables = typeTables();
  char id;
  if (py::object dtype = askFor(parameter, value, names().dtype)) {
    if (!tables.findDType(dtype.ptr(), id))
      return false;
  } else {
    auto known = tables.typestrs.find(spelled);
    if (known == tables.typestrs.end())
      return false;
    id = known->second;
  }
  int32_t ordinal = -1;
  py::object device = getAttribute(value, names().device);
  py::object number = device ? getAttribute(device.ptr(), names().id) : py::object();
  if (number && PyLong_CheckExact(number.ptr())) {
    int overflow = 0;
    ordinal = static_cast<int32_t>(PyLong_AsLongAndOverflow(number.ptr(), &overflow));
  } else if (tsr_cuda_pointer_device(address, &ordinal) != TSR_OK) {
    return false;
  }
  if (ordinal < 0 || ordinal > 127)
    return false;
  addPointer(parameter, address, id, isReadOnly == Py_True, static_cast<char>(ordinal));
  bytes.push_back(kAny); // which begins no argument: a tensor of torch's is on torch's stream
  if (!onStream || onStream.is_none())
    return true;
  if (!PyLong_CheckExact(onStream.ptr()))
    return false;
  uint64_t handle = PyLong_AsUnsignedLongLongMask(onStream.ptr());
  if (handle == 0 || handle == kNoStream || hasTensorOnGPU ||
      (stream != kNoStream && stream != handle))
    return false;
  stream = handle;
  constants.push_back(own(std::move(onStream)));
  return true;
}

/// A tensor descriptor in the order in which runtime/specialize.py takes it apart. What is wrong
/// with one `slow` says.
bool Signature::addDescriptor(const Parameter &parameter, PyObject *value) {
  py::object base = getAttribute(value, names().base);
  py::tuple shape = getIntegers(value, names().shape);
  py::tuple strides = getIntegers(value, names().strides);
  py::tuple block = getIntegers(value, names().blockShape);
  py::object padding = getAttribute(value, names().padding);
  py::object rounds = getAttribute(value, names().roundsToTF32);
  size_t rank = shape ? shape.size() : 0;
  if (rank == 0 || rank > kMaxDescriptorRank || !strides || strides.size() != rank || !block ||
      block.size() != rank || !padding || !PyUnicode_Check(padding.ptr()) || !rounds ||
      !PyBool_Check(rounds.ptr()) || !base || Py_TYPE(base.ptr()) == typeTables().descriptor)
    return false;
  bool isNaN = PyUnicode_CompareWithASCIIString(padding.ptr(), "nan") == 0;
  if (!isNaN && PyUnicode_CompareWithASCIIString(padding.ptr(), "zero") != 0)
    return false;
  bytes.push_back(kDescriptor);
  bytes.push_back(static_cast<char>(rank << 2 | (isNaN ? 2 : 0) | (rounds.ptr() == Py_True)));
  if (!addArray(parameter, base.ptr()))
    return false;
  auto readInteger = [](const py::tuple &items, size_t index) {
    int overflow = 0;
    return PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(items.ptr(), index), &overflow);
  };
  for (size_t i = 0; i < rank; ++i)
    if (!addNumber(parameter, PyTuple_GET_ITEM(shape.ptr(), i)))
      return false;
  for (size_t i = 0; i + 1 < rank; ++i)
    if (!addNumber(parameter, PyTuple_GET_ITEM(strides.ptr(), i)))
      return false;
  if (readInteger(strides, rank - 1) != 1)
    return false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t extent = readInteger(block, i); // -1 where it does not fit
    if (extent <= 0 || (extent & (extent - 1)))
      return false;
    bytes.push_back(static_cast<char>(__builtin_ctzll(static_cast<uint64_t>(extent))));
  }
  return true;
}

/// An array that is seen as elements of another type: what is said of its base, but for the type.
bool Signature::addReinterpreted(const Parameter &parameter, PyObject *value) {
  py::object base = getAttribute(value, names().base);
  py::object dtype = getAttribute(value, names().dtype);
  py::object id = dtype ? getAttribute(dtype.ptr(), names().coreId) : py::object();
  // `slow` looks through wrappers of wrappers, of which there may be any number.
  if (!base || Py_TYPE(base.ptr()) == typeTables().wrapper || !id || !PyLong_CheckExact(id.ptr()))
    return false;
  size_t at = bytes.size();
  if (!addArray(parameter, own(base)) || bytes[at] != kPointer)
    return false;
  bytes[at + 1] = static_cast<char>(PyLong_AsLong(id.ptr()));
  return true;
}

void Signature::addPointer(const Parameter &parameter, uint64_t address, char dtype, bool readOnly,
                           char device) {
  char alignment = parameter.onValue && parameter.onAlignment ? alignmentClass(address) : char(0);
  auto known = static_cast<char>(alignment | (readOnly ? 1 : 0));
  bytes.append<4>({kPointer, dtype, known, device});
  slots.push_back(address);
  if (device < 0)
    hostAddresses.push_back(address);
}

size_t Signature::hash() const {
  size_t result = std::hash<std::string_view>()({bytes.data(), bytes.size()});
  for (PyObject *constant : constants)
    result = result * 1000003 + hashConstant(constant);
  return result;
}

bool Signature::matches(const KnownSignature &known) const {
  return std::equal(bytes.begin(), bytes.end(), known.bytes.begin(), known.bytes.end()) &&
         std::equal(constants.begin(), constants.end(), known.constants.begin(),
                    known.constants.end(),
                    [](PyObject *left, PyObject *right) { return areSameConstants(left, right); });
}

KnownSignature::KnownSignature(const Signature &signature)
    : bytes(signature.bytes.begin(), signature.bytes.end()),
      constants(signature.constants.begin(), signature.constants.end()) {
  for (PyObject *constant : constants)
    Py_INCREF(constant);
}

KnownSignature::~KnownSignature() {
  for (PyObject *constant : constants)
    Py_DECREF(constant);
}

int KnownSignature::traverse(visitproc visit, void *arg) const {
  for (PyObject *constant : constants)
    Py_VISIT(constant);
  return 0;
}

static py::object specialise(const py::object &value, bool onValue, bool onAlignment) {
  SpecialisedNumber number;
  switch (specialiseNumber(value.ptr(), onValue, onAlignment, number)) {
  case NumberStatus::Fine:
    return py::make_tuple(static_cast<int>(number.dtype), static_cast<int>(number.alignment),
                          number.dtype == TSR_UINT64 ? py::int_(number.slot)
                                                     : py::int_(static_cast<int64_t>(number.slot)));
  case NumberStatus::FitsNoType:
    return py::none();
  case NumberStatus::NoNumber:
    break;
  }
  throw py::type_error("a plain bool, int or float is wanted");
}

void tessera::python::registerSignature(py::module_ &module) {
  module.attr("MAX_PARAMETERS") = kMaxParams;
  module.attr("EXPECT_CONSTANT") = static_cast<int>(kConstant);
  module.attr("EXPECT_POINTER") = static_cast<int>(kPointer);
  module.def(
      "expect_number", [](int dtype) { return static_cast<int>(expectNumber(dtype)); },
      py::arg("dtype"), "What the warm path expects of such a number; 0 if it is not for those.");
  module.def(
      "specialise_number", &specialise, py::arg("value"), py::arg("on_value"),
      py::arg("on_alignment"),
      "What a kernel takes a number for: the number of its dtype, or 0 for the integer 1;\n"
      "what divides it; its slot, which is signed but of a uint64. None if it fits no type.");
  module.def(
      "alignment_class", [](uint64_t address) { return static_cast<int>(alignmentClass(address)); },
      py::arg("value"), "The largest of 16, 8 and 4 that divides an address, or 0.");
  module.def(
      "float_bits",
      [](const py::object &value, int dtype) {
        uint64_t slot = 0;
        if (!findFloatSlot(value.ptr(), static_cast<TsrDType>(dtype), slot))
          throw py::error_already_set();
        return slot;
      },
      py::arg("value"), py::arg("dtype"),
      "A Python number, rounded once to the float type of that number, as an integer.");
  module.def(
      "learn_descriptor",
      [](const py::type &cls) {
        typeTables().descriptor = reinterpret_cast<PyTypeObject *>(cls.inc_ref().ptr());
      },
      py::arg("cls"), "Have the warm path take arguments of this class: tensor descriptors.");
  module.def(
      "learn_wrapper",
      [](const py::type &cls) {
        typeTables().wrapper = reinterpret_cast<PyTypeObject *>(cls.inc_ref().ptr());
      },
      py::arg("cls"),
      "Have the warm path take instances of this class for their `base`, with elements of their\n"
      "`dtype`.");
  module.def(
      "learn_constexpr",
      [](const py::type &cls) {
        typeTables().constant = reinterpret_cast<PyTypeObject *>(cls.inc_ref().ptr());
      },
      py::arg("cls"), "Have the warm path take instances of this class for what they wrap.");
  module.def("learn_dlpack", &learnDLPack, py::arg("cls"), py::arg("is_immutable"), py::arg("code"),
             py::arg("bits"), py::arg("core_id"),
             "Have the warm path take arrays of this class, and this DLPack type for that dtype.");
  module.def("learn_array_interface", &learnArrayInterface, py::arg("cls"),
             "Have the warm path take arrays of this class, by `__array_interface__` and `dtype`.");
  module.def("learn_cuda_interface", &learnCUDAInterface, py::arg("cls"), py::arg("typestr"),
             py::arg("core_id"),
             "Have the warm path take arrays of this class; and of those without a dtype, if\n"
             "`typestr` is not empty, elements spelled like that.");
  module.def(
      "learn_refusal",
      [](const py::function &refuse) { typeTables().refuse = refuse.inc_ref().ptr(); },
      py::arg("refuse"),
      "Have the warm path call refuse(array, name, asked, error), which raises, where asking an\n"
      "array has raised `error`.");
  module.def("learn_record", &learnRecord, py::arg("cls"), py::arg("fields"),
             "Have the warm path take instances of this class for a tuple of the attributes of\n"
             "these names, which with True are constants.");
  module.def(
      "learn_scalar", &learnScalar, py::arg("cls"), py::arg("kind"),
      "Have the warm path take objects of this class for an \"int\", \"float\" or \"bool\".");
  module.def("learn_dtype", &learnDType, py::arg("dtype"), py::arg("core_id"),
             "Have the warm path take arrays with this dtype object of NumPy's or torch's.");
  module.def(
      "learn_negative_bit",
      [](const TorchTensors::Probes &plain, const TorchTensors::Probes &negative) {
        return typeTables().torch.learnNegativeBit(plain, negative);
      },
      py::arg("plain"), py::arg("negative"),
      "Have the warm path know torch's tensors with the negative bit by looking at some\n"
      "without and with it: (tensor, its `_cdata`) each. Whether it does now.");
  module.def(
      "accept_tensor", &acceptTensor, py::arg("tensor"), py::arg("address"), py::arg("core_id"),
      py::arg("is_ordinary") = false,
      "Have the warm path take torch's tensors that are as plain as this one, which lies at\n"
      "`address` and has elements of that dtype. A subclass has to be ordinary: its tensors "
      "answer\n"
      "as torch's own do.");
  module.def(
      "learn_torch_stream",
      [](const py::object &function) { typeTables().torch.learnStream(function.ptr()); },
      py::arg("function"),
      "Have the warm path ask torch's C interface where it would call this function of torch's,\n"
      "for the current stream of a GPU.");
}
