// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera._C.Builder, Type and Value: convert Python objects to TsrArg and back. The core defines
// the methods and checks their arguments.

#include "Handles.h"

#include <deque>
#include <string>
#include <vector>

using namespace tessera::python;

namespace {

TsrType makeType(int kind, int dtype, bool isConst, const py::sequence &shape) {
  if (kind < TSR_KIND_NUMBER || kind > TSR_KIND_TF32_DESCRIPTOR)
    throw py::value_error("no type kind " + std::to_string(kind));
  if (dtype < TSR_VOID || dtype > TSR_FP64)
    throw py::value_error("no dtype " + std::to_string(dtype));
  if (shape.size() > TSR_MAX_RANK)
    throw py::value_error("a type of rank " + std::to_string(shape.size()) + ": the limit is " +
                          std::to_string(TSR_MAX_RANK));
  TsrType type = {};
  type.kind = static_cast<uint8_t>(kind);
  type.dtype = static_cast<uint8_t>(dtype);
  type.is_const = isConst;
  type.rank = static_cast<uint8_t>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    type.shape[i] = shape[i].cast<int32_t>();
  return type;
}

py::tuple shapeOf(const TsrType &type) {
  py::tuple shape(type.rank);
  for (size_t i = 0; i < type.rank; ++i)
    shape[i] = type.shape[i];
  return shape;
}

py::tuple asTuple(const TsrType &type) {
  return py::make_tuple(type.kind, type.dtype, type.is_const != 0, shapeOf(type));
}

/// Arguments of one call, with the lists that they point to. Strings point into the
/// Python objects, which the caller holds.
class Arguments {
public:
  TsrArg convert(py::handle object) {
    TsrArg arg = {};
    if (object.is_none()) {
      arg.kind = TSR_ARG_NONE;
    } else if (PyBool_Check(object.ptr())) {
      arg.kind = TSR_ARG_BOOL;
      arg.integer = object.ptr() == Py_True;
    } else if (PyLong_Check(object.ptr())) {
      convertInteger(object, arg);
    } else if (PyFloat_Check(object.ptr())) {
      arg.kind = TSR_ARG_FLOAT;
      arg.floating = PyFloat_AS_DOUBLE(object.ptr());
    } else if (PyUnicode_Check(object.ptr())) {
      Py_ssize_t length = 0;
      arg.kind = TSR_ARG_STRING;
      arg.string = PyUnicode_AsUTF8AndSize(object.ptr(), &length);
      if (!arg.string)
        throw py::error_already_set();
      arg.length = static_cast<size_t>(length);
    } else if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) {
      arg.kind = TSR_ARG_LIST;
      arg.items = convertItems(py::reinterpret_borrow<py::sequence>(object), arg.length);
    } else if (py::isinstance<Value>(object)) {
      arg.kind = TSR_ARG_VALUE;
      arg.value = object.cast<const Value &>().id;
    } else if (py::isinstance<TsrType>(object)) {
      arg.kind = TSR_ARG_TYPE;
      arg.type = object.cast<const TsrType &>();
    } else {
      throw py::type_error("the builder takes no " +
                           std::string(py::str(py::type::handle_of(object).attr("__name__"))));
    }
    return arg;
  }

  const TsrArg *convertItems(const py::sequence &items, size_t &length) {
    length = items.size();
    // A deque, so that outer lists stay where they are while inner ones are added.
    lists.emplace_back(length);
    std::vector<TsrArg> &list = lists.back();
    for (size_t i = 0; i < length; ++i)
      list[i] = convert(PySequence_Fast_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)));
    return list.data();
  }

private:
  void convertInteger(py::handle object, TsrArg &arg) {
    int overflow = 0;
    arg.kind = TSR_ARG_INT;
    arg.integer = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    if (overflow > 0) {
      arg.kind = TSR_ARG_UINT;
      arg.unsigned_integer = PyLong_AsUnsignedLongLong(object.ptr());
      if (PyErr_Occurred()) {
        PyErr_Clear();
        overflow = -1;
      }
    }
    if (overflow < 0) {
      PyErr_Format(PyExc_OverflowError, "the integer %S fits no 64-bit type", object.ptr());
      throw py::error_already_set();
    }
    if (PyErr_Occurred())
      throw py::error_already_set();
  }

  std::deque<std::vector<TsrArg>> lists;
};

py::object toPython(const TsrArg &arg);

py::tuple toPython(const TsrArg *items, size_t length) {
  py::tuple result(length);
  for (size_t i = 0; i < length; ++i)
    result[i] = toPython(items[i]);
  return result;
}

py::object toPython(const TsrArg &arg) {
  switch (arg.kind) {
  case TSR_ARG_NONE:
    return py::none();
  case TSR_ARG_BOOL:
    return py::bool_(arg.integer != 0);
  case TSR_ARG_INT:
    return py::int_(arg.integer);
  case TSR_ARG_UINT:
    return py::int_(arg.unsigned_integer);
  case TSR_ARG_FLOAT:
    return py::float_(arg.floating);
  case TSR_ARG_STRING:
    return py::str(arg.string, arg.length);
  case TSR_ARG_TYPE:
    return py::cast(arg.type);
  case TSR_ARG_VALUE:
    return py::cast(Value{arg.value});
  case TSR_ARG_LIST:
    return toPython(arg.items, arg.length);
  }
  throw py::value_error("the core returned an argument of unknown kind");
}

py::tuple call(Builder &builder, const char *name, const py::args &args) {
  Arguments arguments;
  size_t length = 0;
  const TsrArg *converted = arguments.convertItems(args, length);
  const TsrArg *results = nullptr;
  size_t numResults = 0;
  check(tsr_builder_call(builder.handle.get(), name, converted, length, &results, &numResults));
  return toPython(results, numResults);
}

} // namespace

void tessera::python::registerBuilder(py::module_ &module) {
  py::class_<TsrType>(module, "Type", "What a value is: a number, a pointer, a block of them.")
      .def(py::init(&makeType), py::arg("kind"), py::arg("dtype"), py::arg("is_const") = false,
           py::arg("shape") = py::tuple())
      .def_property_readonly("kind", [](const TsrType &self) { return int(self.kind); })
      .def_property_readonly("dtype", [](const TsrType &self) { return int(self.dtype); })
      .def_property_readonly("is_const", [](const TsrType &self) { return self.is_const != 0; })
      .def_property_readonly("shape", &shapeOf)
      .def("__eq__",
           [](const TsrType &self, const py::object &other) {
             return py::isinstance<TsrType>(other) &&
                    asTuple(self).equal(asTuple(other.cast<const TsrType &>()));
           })
      .def("__hash__", [](const TsrType &self) { return py::hash(asTuple(self)); })
      .def("__repr__",
           [](const TsrType &self) { return "Type" + std::string(py::repr(asTuple(self))); });

  py::class_<Value>(module, "Value", "A value of a builder.")
      .def("__eq__",
           [](const Value &self, const py::object &other) {
             return py::isinstance<Value>(other) && self.id == other.cast<const Value &>().id;
           })
      .def("__hash__", [](const Value &self) { return py::hash(py::int_(self.id)); })
      .def("__repr__", [](const Value &self) { return "Value(" + std::to_string(self.id) + ")"; });

  py::class_<Builder>(module, "Builder", "The typed construction of tile IR.")
      .def(py::init([](Module &owner) {
             TsrBuilder *handle = nullptr;
             check(tsr_builder_create(owner.handle.get(), &handle));
             return Builder{Owned<TsrBuilder, tsr_builder_destroy>(handle)};
           }),
           py::arg("module"), py::keep_alive<1, 2>())
      .def("call", &call, "Call a method of the builder by name; always returns a tuple.")
      .def(
          "type_of",
          [](Builder &self, const Value &value) {
            TsrType type = {};
            check(tsr_builder_type_of(self.handle.get(), value.id, &type));
            return type;
          },
          py::arg("value"))
      .def(
          "set_location",
          [](Builder &self, const char *file, int line, int column) {
            tsr_builder_set_location(self.handle.get(), file, line, column);
          },
          py::arg("file"), py::arg("line"), py::arg("column"),
          "The place in the source that what is built next stands for.")
      .def(
          "push_frame",
          [](Builder &self, const char *name) { tsr_builder_push_frame(self.handle.get(), name); },
          py::arg("name"), "Enter an inlined call at the present location.")
      .def(
          "pop_frame", [](Builder &self) { tsr_builder_pop_frame(self.handle.get()); },
          "Leave the innermost inlined call.");
}
