// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of Python's types that launches read: the kind of each class of arguments, and the
// element types of other libraries' dtype objects. The whole path of a launch fills them
// (runtime/arrays.py, runtime/specialize.py), so that no name is parsed at a warm launch.

#ifndef TESSERA_PYTHON_ARGUMENTTYPES_H
#define TESSERA_PYTHON_ARGUMENTTYPES_H

#include "DLPack.h"
#include "Handles.h"
#include "Interpreter.h"
#include "TorchTensors.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera::python {

/// The names of attributes, interned once.
struct Names {
  PyObject *dataPtr = PyUnicode_InternFromString("data_ptr");
  PyObject *dtype = PyUnicode_InternFromString("dtype");
  PyObject *isCPU = PyUnicode_InternFromString("is_cpu");
  PyObject *isCUDA = PyUnicode_InternFromString("is_cuda");
  PyObject *getDevice = PyUnicode_InternFromString("get_device");
  PyObject *isNegative = PyUnicode_InternFromString("is_neg");
  PyObject *isNested = PyUnicode_InternFromString("is_nested");
  PyObject *isConjugate = PyUnicode_InternFromString("is_conj");
  PyObject *layout = PyUnicode_InternFromString("layout");
  PyObject *module = PyUnicode_InternFromString("__module__");
  // For arrays with protocols.
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
  PyObject *index = PyUnicode_InternFromString("index");
  PyObject *type = PyUnicode_InternFromString("type");
  PyObject *id = PyUnicode_InternFromString("id");
  PyObject *value = PyUnicode_InternFromString("value"); ///< of a tl.constexpr
  // For tensor descriptors.
  PyObject *base = PyUnicode_InternFromString("base");
  PyObject *shape = PyUnicode_InternFromString("shape");
  PyObject *strides = PyUnicode_InternFromString("strides");
  PyObject *stride = PyUnicode_InternFromString("stride");
  PyObject *blockShape = PyUnicode_InternFromString("block_shape");
  PyObject *padding = PyUnicode_InternFromString("padding");
  PyObject *roundsToTF32 = PyUnicode_InternFromString("round_f32_to_tf32");
  PyObject *coreId = PyUnicode_InternFromString("_core_id"); ///< of a dtype of the language
};

inline const Names &names() {
  static const Names result;
  return result;
}

/// The kinds of arguments. Kinds behind Torch are those of classes that the whole path has learned.
enum class ArrayKind {
  None,
  NumPy,
  Torch,
  Pointer, ///< by `data_ptr()` and `dtype`
  DLPack,
  CUDA,
  Interface,
  Record,
  Integer,
  Float,
  Bool
};

/// No program has memory below: a tensor there has lost its storage, or has no elements.
constexpr uint64_t kLowestAddress = 4 << 20;

/// The facts that are learned about a class.
struct LearnedClass {
  ArrayKind kind = ArrayKind::None;
  bool isImmutable = false;                        ///< of arrays: whatever an interface says
  bool hasBuffer = false;                          ///< of DLPack: Python's buffer says the same
  std::vector<std::pair<PyObject *, bool>> fields; ///< of a record: its name, and if it is constant
};

/// Python's classes, which the tables do not keep alive, and its dtype objects, which are few and
/// live as long as the process. Filled by `slow`, so that no name is parsed here.
struct TypeTables {
  DTypeTable<PyObject *> dtypes;
  std::unordered_map<PyTypeObject *, ArrayKind> arrays; ///< those types that are of arrays
  std::unordered_map<PyTypeObject *, LearnedClass> learned;
  DTypeTable<unsigned> dlpackTypes;               ///< by code and bits
  std::unordered_map<std::string, char> typestrs; ///< of arrays that have no dtype
  std::unordered_map<std::string, char> formats;  ///< of buffers
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
  /// The facts about a class that was learned.
  const LearnedClass &getLearned(PyTypeObject *type) const;
  /// False if the dtype is not known.
  bool findDType(PyObject *dtype, char &id) { return dtypes.find(dtype, id); }
  bool findDType(const DLPackArray &array, char &id) {
    return array.lanes == 1 && dlpackTypes.find(array.code << 8 | array.bits, id);
  }
};

inline TypeTables &typeTables() {
  static TypeTables *tables = new TypeTables; // outlives the interpreter's teardown
  return *tables;
}

/// Removes a class from the tables when it is deleted, since another one may get its address.
void forgetWhenDeleted(PyTypeObject *type);

/// An attribute of an object, or null if it has none.
py::object getAttribute(PyObject *object, PyObject *name);

/// Adds the function that makes tensor descriptors.
void registerDescriptors(py::module_ &module);

/// The functions by which Python tells of types.
void registerArgumentTypes(py::module_ &module);

} // namespace tessera::python

#endif // TESSERA_PYTHON_ARGUMENTTYPES_H
