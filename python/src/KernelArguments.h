// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grids, arguments and their memory, from the form that Python passes them in to that of the C API.

#ifndef TESSERA_PYTHON_KERNELARGUMENTS_H
#define TESSERA_PYTHON_KERNELARGUMENTS_H

#include "Handles.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::python {

using GridSizes = std::array<int32_t, 3>;

inline GridSizes toGrid(const py::tuple &grid) {
  if (grid.size() != 3)
    throw py::value_error("a grid has three extents here, got " + std::to_string(grid.size()));
  return {grid[0].cast<int32_t>(), grid[1].cast<int32_t>(), grid[2].cast<int32_t>()};
}

/// One slot an argument: what is negative is sign-extended by being a Python integer.
inline std::vector<uint64_t> toSlots(const py::sequence &args) {
  std::vector<uint64_t> slots;
  slots.reserve(args.size());
  for (py::handle arg : args) {
    slots.push_back(PyLong_AsUnsignedLongLongMask(arg.ptr()));
    if (PyErr_Occurred())
      throw py::error_already_set();
  }
  return slots;
}

/// The memory ranges behind the arguments: (begin, end, name) where it is known, else None. If no
/// range is known, the whole object may be None.
class Memory {
public:
  Memory(const py::object &memory, size_t numArgs) : ranges(numArgs, {0, INT64_MAX, nullptr}) {
    if (memory.is_none())
      return;
    py::sequence items(memory);
    if (items.size() != numArgs)
      throw py::value_error("there is not one piece of memory for each argument");
    names.resize(numArgs);
    for (size_t i = 0; i < numArgs; ++i) {
      py::object item = items[i];
      if (item.is_none())
        continue;
      py::tuple fields(item);
      names[i] = fields[2].cast<std::string>();
      ranges[i] = {fields[0].cast<int64_t>(), fields[1].cast<int64_t>(), names[i].c_str()};
    }
  }
  const TsrArgumentMemory *get() const { return ranges.data(); }

private:
  std::vector<std::string> names;
  std::vector<TsrArgumentMemory> ranges;
};

} // namespace tessera::python

#endif // TESSERA_PYTHON_KERNELARGUMENTS_H
