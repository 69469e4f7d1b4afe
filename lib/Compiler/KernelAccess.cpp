// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Compiler/KernelAccess.h"

#include "tessera/Runtime/CUDA/ProgramBound.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace tessera;

namespace {

/// Numbers of one program of a launch. Nothing if the launch does not determine them.
struct Program {
  llvm::ArrayRef<int32_t> grid;
  llvm::ArrayRef<uint64_t> args;
  std::array<int32_t, 3> place;

  /// `size` gets the terms' magnitudes.
  std::optional<int64_t> evaluate(const KernelAccess::Sum &sum, int64_t &size) const {
    int64_t total = 0;
    for (const std::string &text : sum) {
      std::optional<cuda::ProgramBound> term = cuda::ProgramBound::parse(text, args.size());
      std::optional<int64_t> number =
          term ? term->evaluate(args.data(), grid.data(), place.data()) : std::nullopt;
      if (!number || *number == std::numeric_limits<int64_t>::min() ||
          llvm::AddOverflow(total, *number, total) ||
          llvm::AddOverflow(size, std::abs(*number), size))
        return std::nullopt;
    }
    return total;
  }
  std::optional<int64_t> evaluate(const KernelAccess::Sum &sum) const {
    int64_t size = 0;
    return evaluate(sum, size);
  }
};

/// The first and the last element of an access.
using Elements = std::pair<int64_t, int64_t>;

} // namespace

/// Nothing where the access is not made, too.
static std::optional<Elements> findElements(const KernelAccess &access, const Program &program) {
  for (const KernelAccess::Sum &guard : access.guards)
    if (program.evaluate(guard).value_or(-1) < 0)
      return std::nullopt;
  int64_t size = 0;
  std::optional<int64_t> offset = program.evaluate(access.offset, size);
  if (!offset)
    return std::nullopt;
  Elements elements(*offset, *offset);
  for (const KernelAccess::Dim &dim : access.dims) {
    int64_t first = 0, last = dim.extent - 1, from = 0, to = 0;
    std::optional<int64_t> stride = program.evaluate(dim.stride);
    std::optional<int64_t> upper = dim.upper ? program.evaluate(*dim.upper) : dim.extent;
    std::optional<int64_t> lower = dim.lower ? program.evaluate(*dim.lower) : 0;
    if (!stride || !upper || !lower || *upper < 1 || *lower <= -dim.extent)
      return std::nullopt;
    last = std::min(last, *upper - 1);
    first = std::max(first, -*lower);
    if (first > last || llvm::MulOverflow(first, *stride, from) ||
        llvm::MulOverflow(last, *stride, to) ||
        llvm::AddOverflow(size, std::max(std::abs(from), std::abs(to)), size))
      return std::nullopt;
    elements.first += std::min(from, to);
    elements.second += std::max(from, to);
  }
  // Larger numbers may wrap in the program.
  if (size > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return elements;
}

std::optional<AccessFault> KernelAccess::findFault(llvm::ArrayRef<int32_t> grid,
                                                   llvm::ArrayRef<uint64_t> args,
                                                   const ArgumentMemory &memory) const {
  if (!memory.isKnown())
    return std::nullopt;
  // The last program first: it is the one that people forget.
  for (unsigned corner = 8; corner-- > 0;) {
    Program program{grid, args, {}};
    bool isNew = true;
    for (unsigned axis = 0; axis < 3; ++axis) {
      bool isLast = corner >> axis & 1;
      if (grid[axis] < 1)
        return std::nullopt;
      isNew &= isLast || grid[axis] > 1;
      program.place[axis] = isLast ? grid[axis] - 1 : 0;
    }
    std::optional<Elements> elements = isNew ? findElements(*this, program) : std::nullopt;
    if (!elements)
      continue;
    auto base = static_cast<int64_t>(args[argument]);
    int64_t from = elements->first * bytes, to = elements->second * bytes;
    bool isAbove = base + to + bytes > memory.end;
    if (!isAbove && base + from >= memory.begin)
      continue;
    AccessFault fault;
    fault.access = access;
    llvm::copy(program.place, fault.program);
    fault.argument = argument;
    fault.pointer = base;
    fault.memory = memory;
    fault.elementBytes = bytes;
    fault.offset = isAbove ? to : from;
    if (!file.empty())
      fault.location = file + ":" + std::to_string(line) + ":" + std::to_string(column);
    return fault;
  }
  return std::nullopt;
}
