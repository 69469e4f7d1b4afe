// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ArgumentTypes.h"

#include "Reinterpreted.h"

#include <pybind11/stl.h>

#include <cstring>

using namespace tessera::python;

namespace {

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

} // namespace

ArrayKind TypeTables::getKind(PyTypeObject *type) {
  if (type == lastType)
    return lastKind;
  auto found = arrays.find(type);
  if (found == arrays.end()) {
    ArrayKind kind = findArrayKind(type);
    // An unknown class is not held: it may be deleted.
    if (kind == ArrayKind::None)
      return kind;
    found = arrays.emplace(type, kind).first;
    forgetWhenDeleted(type);
  }
  lastType = type;
  return lastKind = found->second;
}

const LearnedClass &TypeTables::getLearned(PyTypeObject *type) const {
  static const LearnedClass unknown; // of an object that has changed its class
  auto found = learned.find(type);
  return found == learned.end() ? unknown : found->second;
}

void tessera::python::forgetWhenDeleted(PyTypeObject *type) {
  py::cpp_function forget([type](py::handle reference) {
    TypeTables &tables = typeTables();
    tables.arrays.erase(type);
    tables.learned.erase(type);
    tables.lastType = nullptr;
    tables.torch.forgetClass(type);
    reference.dec_ref();
  });
  py::weakref(reinterpret_cast<PyObject *>(type), forget).release();
}

py::object tessera::python::getAttribute(PyObject *object, PyObject *name) {
  PyObject *found = nullptr;
  if (lookUpAttribute(object, name, &found) < 0)
    throw py::error_already_set();
  return py::reinterpret_steal<py::object>(found);
}

namespace {

void acceptTensor(const py::object &tensor, uint64_t address, int coreId, bool isOrdinary) {
  if (isOrdinary || findArrayKind(Py_TYPE(tensor.ptr())) == ArrayKind::Torch)
    typeTables().torch.accept(tensor.ptr(), address, static_cast<char>(coreId));
}

LearnedClass &learnClass(const py::type &cls, ArrayKind kind) {
  auto *type = reinterpret_cast<PyTypeObject *>(cls.ptr());
  TypeTables &tables = typeTables();
  if (tables.arrays.emplace(type, kind).second)
    forgetWhenDeleted(type);
  LearnedClass &learned = tables.learned[type];
  learned.kind = kind;
  return learned;
}

void learnDLPack(const py::type &cls, bool isImmutable, unsigned code, unsigned bits, int coreId) {
  learnClass(cls, ArrayKind::DLPack).isImmutable = isImmutable;
  typeTables().dlpackTypes.learn(code << 8 | bits, static_cast<char>(coreId));
}

/// Learns that arrays of an immutable class have in their buffers what DLPack says. Returns false
/// if the buffer of this one is not at `address`.
bool learnBuffer(const py::object &array, uint64_t address, int coreId) {
  auto view = py::reinterpret_steal<py::object>(
      callPython([&] { return PyMemoryView_FromObject(array.ptr()); }));
  clearError(PyExc_Exception);
  const Py_buffer *buffer = view ? PyMemoryView_GET_BUFFER(view.ptr()) : nullptr;
  if (!buffer || !buffer->format || reinterpret_cast<uintptr_t>(buffer->buf) != address)
    return false;
  typeTables().formats.emplace(buffer->format, static_cast<char>(coreId));
  return learnClass(py::type::of(array), ArrayKind::DLPack).hasBuffer = true;
}

void learnPointer(const py::type &cls) {
  if (findArrayKind(reinterpret_cast<PyTypeObject *>(cls.ptr())) == ArrayKind::None)
    learnClass(cls, ArrayKind::Pointer);
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

void tessera::python::registerArgumentTypes(py::module_ &module) {
  auto defineLearning = [&](const char *name, PyTypeObject *TypeTables::*member, const char *doc) {
    auto learn = [member](const py::type &cls) {
      typeTables().*member = reinterpret_cast<PyTypeObject *>(cls.inc_ref().ptr());
    };
    module.def(name, learn, py::arg("cls"), doc);
  };
  defineLearning("learn_descriptor", &TypeTables::descriptor,
                 "Have the warm path take arguments of this class: tensor descriptors.");
  defineLearning("learn_constexpr", &TypeTables::constant,
                 "Have the warm path take instances of this class for what they wrap.");
  module.def("learn_dlpack", &learnDLPack, py::arg("cls"), py::arg("is_immutable"), py::arg("code"),
             py::arg("bits"), py::arg("core_id"),
             "Have the warm path take arrays of this class, and this DLPack type for that dtype.");
  module.def(
      "learn_buffer", &learnBuffer, py::arg("array"), py::arg("address"), py::arg("core_id"),
      "Have the warm path take arrays of an immutable class by Python's buffer protocol, if\n"
      "that has this one at `address`, with elements of that dtype. Whether it does.");
  module.def("learn_pointer", &learnPointer, py::arg("cls"),
             "Have the warm path take arrays of this class by `data_ptr()`, `dtype` and `device`,\n"
             "unless it has a way of its own for them.");
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
  registerReinterpreted(module);
  registerDescriptors(module);
}
