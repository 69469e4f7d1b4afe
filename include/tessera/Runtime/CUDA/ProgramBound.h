// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An integer that a program computes from its id and from arguments, and that must not be negative
// in any program of a launch. An example is the height of a program's group of tiles, by which an
// index is divided. No sum of products of arguments can express that. Instead, the launcher
// computes a range that contains the values of all programs:
//
//     (min32 (sub32 (div32 (add32 i32:3 127) 128) (mul32 (div32 program:0 i32:4) 8)) 8)
//
//     program:0 in [0, 63], i32:3 = 1024, i32:4 = 64:   [min(8 - 0 * 8, 8), min(8 - 0 * 8, 8)]
//
// If the grid has more programs than tiles, the integer may be negative, and another variant of the
// kernel is launched.

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
  /// Returns nothing if the text is invalid or nested too deeply, or names a missing argument.
  static std::optional<ProgramBound> parse(std::string_view text, size_t numArguments);
  const std::string &getText() const { return text; }
  /// The formula of tessera_limits.h, with its end.
  const std::vector<tessera_step> &getSteps() const { return steps; }

  /// True if the number is not negative in any program. False also if that is unknown, since a
  /// divisor may be 0 or a result may overflow its bits. Arguments are in slots of 8 bytes.
  bool holds(const uint64_t *slots, const int32_t grid[3]) const;

  /// Numbers from `least` to `most`, each of which is `least` plus a multiple of `step`; 0 for a
  /// single number.
  struct Range {
    int64_t least, most, step;
  };
  /// A range that contains the number in all programs; nothing if it is unknown.
  std::optional<Range> getRange(const uint64_t *slots, const int32_t grid[3]) const;

  /// The number if it is known and the same in all programs.
  std::optional<int64_t> evaluate(const uint64_t *slots, const int32_t grid[3]) const;

  /// The number in one program, if the launch determines it.
  std::optional<int64_t> evaluate(const uint64_t *slots, const int32_t grid[3],
                                  const int32_t program[3]) const;

private:
  struct Parser;

  /// The maximum depth of nested operators.
  static constexpr unsigned kMaxDepth = 32;
  static_assert(kMaxDepth + 1 < TESSERA_MAX_OPERANDS);

  std::string text;
  std::vector<tessera_step> steps;
};

/// Describes a launch in which the number may be negative, for errors.
std::string describeBrokenBound(std::string_view text);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_CUDA_PROGRAMBOUND_H
