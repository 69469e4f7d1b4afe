// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A number that a program computes from its place in the grid and from arguments, and that must
// not be negative in any program of a launch: the height of the group of tiles that the program's
// tile is in, by which an index is divided. No sum of products of arguments says so. The launcher
// computes instead between which numbers it lies, all programs taken together:
//
//     (min32 (sub32 (div32 (add32 i32:3 127) 128) (mul32 (div32 program:0 i32:4) 8)) 8)
//
//     program:0 in [0, 63], i32:3 = 1024, i32:4 = 64:   [min(8 - 0 * 8, 8), min(8 - 0 * 8, 8)]
//
// A grid of more programs than there are tiles makes it negative, and is launched otherwise.

#ifndef TESSERA_RUNTIME_CUDA_PROGRAMBOUND_H
#define TESSERA_RUNTIME_CUDA_PROGRAMBOUND_H

#include "tessera/Runtime/CUDA/tessera_limits.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cuda {

/// Text is a number, or
///
///     i32:N, i64:N         argument N
///     program:A, extent:A  the program's place along an axis of the grid, and the grid's extent
///     (add32 X Y), ...     add, sub, mul, div, rem, min and max, of signed integers of 32 bits,
///                          and the same of 64; quotients are rounded towards 0
///     (loop X Y), (loop64 X Y), ...
///                          a number from X on that is less than Y: X plus a multiple of 64; X
///                          where there is none
///     (unsigned X)         X, which must not be negative
class ProgramBound {
public:
  /// Nothing if the text is none or too deep, or names an argument that there is not.
  static std::optional<ProgramBound> parse(std::string_view text, size_t numArguments);
  const std::string &getText() const { return text; }
  /// The formula of tessera_limits.h, with its end.
  const std::vector<tessera_step> &getSteps() const { return steps; }

  /// True if the number is not negative in any program; false also where that cannot be told: a
  /// number may be 0 that is divided by, or leaves its bits. Arguments are in slots of 8 bytes.
  bool holds(const uint64_t *slots, const int32_t grid[3]) const;

  /// Numbers from the least to the most, each of them the least plus a multiple of `step`; 0 for a
  /// single number.
  struct Range {
    int64_t least, most, step;
  };
  /// The numbers that it may be in the programs; nothing where they cannot be told.
  std::optional<Range> getRange(const uint64_t *slots, const int32_t grid[3]) const;

  /// The number, where it is the same in all programs and can be told.
  std::optional<int64_t> evaluate(const uint64_t *slots, const int32_t grid[3]) const;

  /// The number in one program, if the launch determines it.
  std::optional<int64_t> evaluate(const uint64_t *slots, const int32_t grid[3],
                                  const int32_t program[3]) const;

private:
  struct Parser;

  /// Of operators in operators.
  static constexpr unsigned kMaxDepth = 32;
  static_assert(kMaxDepth + 1 < TESSERA_MAX_OPERANDS);

  std::string text;
  std::vector<tessera_step> steps;
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_PROGRAMBOUND_H
