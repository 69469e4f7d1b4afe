// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The grid of a launch. Only this file has the rules for valid grids. Launches and runtime/grid.py
// call it, and the latter describes the mistake in any other value.

#ifndef TESSERA_PYTHON_GRID_H
#define TESSERA_PYTHON_GRID_H

#include "Handles.h"

#include <cstdint>

namespace tessera::python {

/// A launch's grid: what the caller gave, or three extents, of which a tuple is made only where
/// Python has to see one.
class Grid {
public:
  explicit Grid(PyObject *given) : given(given) {}
  explicit Grid(const int32_t (&extents)[3]) : extents(extents) {}

  /// Reads the extents: an integer, or a tuple or list of one to three. An integer is anything that
  /// has `__index__`, which is called once. False for a function, which the caller has to call, and
  /// for what is no grid. Throws what `__index__` raises, but for a TypeError.
  bool read(int32_t (&found)[3]) const;
  py::object asObject() const;
  /// Null where there are only extents.
  PyObject *getGiven() const { return given; }

private:
  PyObject *given = nullptr; ///< borrowed
  const int32_t *extents = nullptr;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_GRID_H
