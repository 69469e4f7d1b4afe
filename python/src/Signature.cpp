// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Signature.h"

#include "ArgumentTypes.h"
#include "NumPyArray.h"
#include "Numbers.h"

#include <algorithm>
#include <cstring>
#include <string_view>

using namespace tessera::python;

namespace {

char kindOfNumber(TsrDType dtype) { return static_cast<char>(kNumber + dtype); }

/// True if a compiled kernel that expects one kind takes an argument of the other, with the bits in
/// its slot.
bool isAccepted(char expected, char kind) {
  return expected == kAny || kind == expected ||
         (expected == kindOfNumber(TSR_INT64) && kind == kindOfNumber(TSR_INT32));
}

/// The kind that a compiled kernel expects for a number of this type; kAny for types whose numbers
/// are converted first.
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

/// True if Python's `==` distinguishes objects of this type as kernels do.
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
} // namespace

/// The interned string of this text; names are compared by address. Keywords that are written in a
/// call are interned, keys of a dict from a file may be not. Borrowed: the caller holds `name`, and
/// the parameter holds the other string.
static PyObject *getInterned(PyObject *name) {
  if (PyUnicode_CHECK_INTERNED(name))
    return name;
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  Py_DECREF(name);
  return name;
}

static py::object makeTuple(PyObject *const *begin, PyObject *const *end) {
  auto made = py::reinterpret_steal<py::object>(PyTuple_New(end - begin));
  if (!made)
    throw py::error_already_set();
  for (Py_ssize_t i = 0; i < end - begin; ++i)
    PyTuple_SET_ITEM(made.ptr(), i, Py_NewRef(begin[i]));
  return made;
}

bool Signature::bind(PyObject *const *args, size_t count, PyObject *keywords) {
  // Local variables, since members would be read again after each store.
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
      rest = makeTuple(args + std::min(count, i), args + count);
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
    if (!isFine || !isAccepted(parameter.expected, bytes[at])) {
      refused = i;
      return false;
    }
    if (parameter.isKey && !parameter.isConstexpr) {
      if (PyLong_Check(value) || PyFloat_CheckExact(value)) {
        constants.push_back(value);
      } else if (bytes[at] == kPointer) { // an array is told from others by its address
        bool isExported = !exports.empty() && exports.back().place == at; // later
        if (isExported || bytes.size() + sizeof(uint64_t) > kAllBytes)
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
    if (name == names().stream)
      streams.setGiven(value);
  }
  if (PyObject *deciding = streams.getDeciding())
    constants.push_back(deciding);
  return isComplete = exports.empty() || exportArrays();
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
  // Held, since a property may make the object one of another class.
  auto cls = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(Py_TYPE(value)));
  const LearnedClass &learned = typeTables().getLearned(Py_TYPE(value));
  size_t size = learned.fields.size();
  numItems += 1 + size;
  if (numItems > kMaxItems)
    return false;
  bytes.push_back(kTupleOfClass);
  constants.push_back(own(std::move(cls)));
  addSize(size);
  for (size_t i = 0; i < size; ++i) {
    auto [name, isConstant] = learned.fields[i];
    PyObject *item = own(getAttribute(value, name));
    if (!item)
      return false;
    path.push_back(static_cast<uint16_t>(i));
    if (isConstant && Py_TYPE(item) != typeTables().constant)
      addConstant(item);
    else if (!addValue(parameter, item))
      return false;
    path.pop_back();
  }
  return true;
}

/// Python's own number for one of another class; null with or without an exception.
static PyObject *makePlainNumber(PyObject *value, bool isInteger) {
  if (PyLong_Check(value)) { // whatever its class makes of itself
    int overflow = 0;
    int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? nullptr : PyLong_FromLongLong(integer);
  }
  if (PyFloat_Check(value))
    return PyFloat_FromDouble(PyFloat_AS_DOUBLE(value));
  return callPython([&] { return isInteger ? PyNumber_Index(value) : PyNumber_Float(value); });
}

/// A number of a class that is not Python's own: one of NumPy's, or of a subclass of int.
bool Signature::addScalar(const Parameter &parameter, PyObject *value, bool isInteger) {
  PyObject *number = makePlainNumber(value, isInteger);
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
  for (size_t i = 0; i < size; ++i) {
    path.push_back(static_cast<uint16_t>(i));
    if (!addValue(parameter, PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(i))))
      return false;
    path.pop_back();
  }
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

[[gnu::always_inline]] inline void Signature::addSpecialised(const SpecialisedNumber &number,
                                                             bool isInteger) {
  if (number.dtype == TSR_VOID) {
    bytes.push_back(kOne);
    return;
  }
  bytes.push_back(kindOfNumber(number.dtype));
  if (isInteger)
    bytes.push_back(number.alignment);
  slots.push_back(number.slot);
}

void Signature::addInteger(const Parameter &parameter, int64_t integer) {
  addSpecialised(specialiseInteger(integer, parameter.onValue, parameter.onAlignment),
                 /*isInteger=*/true);
}

bool Signature::addNumber(const Parameter &parameter, PyObject *value) {
  SpecialisedNumber number;
  if (specialiseNumber(value, parameter.onValue, parameter.onAlignment, number) !=
      NumberStatus::Fine)
    return false;
  addSpecialised(number, PyLong_CheckExact(value));
  return true;
}

/// Most arguments are tensors, and most others are such integers. False, and nothing done, for
/// other arguments.
inline bool Signature::addPlainInteger(const Parameter &parameter, PyObject *value) {
  if (!PyLong_CheckExact(value) || parameter.number != TSR_VOID || !hasRoom())
    return false;
  int overflow = 0;
  int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow)
    return addNumber(parameter, value);
  addInteger(parameter, integer);
  return true;
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
    return addPlainTensor(parameter, value) || addTensor(parameter, value);
  case ArrayKind::Pointer:
    return addByPointer(parameter, value);
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
  if (ordinal >= 0)
    streams.addTensor(static_cast<int32_t>(ordinal));
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

std::array<char, 4> Signature::makePointer(const Parameter &parameter, uint64_t address, char dtype,
                                           bool readOnly, char device) {
  char alignment = parameter.onValue && parameter.onAlignment ? alignmentClass(address) : char(0);
  auto known = static_cast<char>(alignment | (readOnly ? 1 : 0));
  return {kPointer, dtype, known, device};
}

void Signature::addPointer(const Parameter &parameter, uint64_t address, char dtype, bool readOnly,
                           char device) {
  bytes.append<4>(makePointer(parameter, address, dtype, readOnly, device));
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
  registerArgumentTypes(module);
}
