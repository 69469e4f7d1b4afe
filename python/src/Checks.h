// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel was compiled with, and whether it still is that (frontend/reads.py).

#ifndef TESSERA_PYTHON_CHECKS_H
#define TESSERA_PYTHON_CHECKS_H

#include "Handles.h"

#include <vector>

namespace tessera::python {

/// Something that a kernel was compiled with, which has to be what it was then. The kinds are
/// those of frontend/reads.py. What it refers to belongs to the tuple that it was made of.
struct Check {
  enum Kind { Entry, Cell, Function, Call, Attribute, Never } kind = Never;
  PyObject *owner = nullptr;
  PyObject *name = nullptr;
  PyObject *expected = nullptr; ///< null where there was nothing
  PyObject *defaults = nullptr, *keywordDefaults = nullptr;

  explicit Check(PyObject *tuple);
  bool holds() const;
};

std::vector<Check> readChecks(PyObject *tuple);

/// Whether all of them hold. What raises an exception is not what it was.
bool allHold(const std::vector<Check> &checks);

} // namespace tessera::python

#endif // TESSERA_PYTHON_CHECKS_H
