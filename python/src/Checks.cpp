// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checks.h"

#include "Interpreter.h"

#include <algorithm>
#include <array>

using namespace tessera::python;

Check::Check(PyObject *tuple) {
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

bool Check::holds() const {
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
    found = callPython([&] { return PyObject_CallNoArgs(owner); });
    Py_XDECREF(found);
    return found == Py_True;
  case Attribute:
    found = callPython([&] { return PyObject_GetAttr(owner, name); });
    Py_XDECREF(found); // whatever is expected is held by the tuple
    return found == expected;
  case Never:
    return false;
  }
  return false;
}

Checks::Checks(PyObject *tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    Check check(PyTuple_GET_ITEM(tuple, i));
    if (check.kind != Check::Entry) {
      others.push_back(check);
      continue;
    }
    entries.push_back(check);
    auto isIts = [&](const Dict &known) { return known.dict == check.owner; };
    if (dicts.size() <= kMaxDicts && std::none_of(dicts.begin(), dicts.end(), isIts))
      dicts.push_back({check.owner, /*version=*/0});
  }
}

static bool holdsOrClears(const Check &check) {
  bool holds = check.holds();
  if (!holds)
    clearError(PyExc_AttributeError);
  return holds;
}

bool tessera::python::allHold(PyObject *tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!holdsOrClears(Check(PyTuple_GET_ITEM(tuple, i))))
      return false;
  return true;
}

bool Checks::holdEntries() const {
  // Versions are read before the lookups and stored after them. A lookup may run Python, which may
  // change a dict or launch the kernel from another thread.
  std::array<uint64_t, kMaxDicts> versions{};
  size_t numVersions = dicts.size() <= kMaxDicts ? dicts.size() : 0;
  for (size_t i = 0; i < numVersions; ++i)
    versions[i] = getVersion(dicts[i].dict);
  bool hold = std::all_of(entries.begin(), entries.end(), holdsOrClears);
  for (size_t i = 0; i < numVersions; ++i)
    dicts[i].version = hold ? versions[i] : 0;
  return hold;
}

bool Checks::holdOthers() const { return std::all_of(others.begin(), others.end(), holdsOrClears); }
