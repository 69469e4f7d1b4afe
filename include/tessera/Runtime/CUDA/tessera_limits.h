/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the code of a kernel takes for granted of a launch, because it is faster so: that an index
 * does not wrap, that arrays do not overlap, that TMA can move boxes of an array. A launch without
 * that is refused, and done by the kernel's variant that takes nothing for granted.
 *
 * These are the tables that say so, and tessera_limits.c is all that evaluates them: for launches
 * from Python (LaunchLimits.h), for the simulator, and for libraries that
 * `python -m tessera build` writes, which get both files. So it is C11 without any other header.
 *
 * A formula has steps, operands first, and TESSERA_END behind them. What it gives is a range, which
 * holds what the programs of a launch compute, all of them. For example, the rows of the last group
 * of 8 that a program of a grid of n programs has: min(n - p / 8 * 8, 8).
 *
 *     ARGUMENT 3   PROGRAM 0   CONSTANT 8   DIV   CONSTANT 8   MUL   SUB   CONSTANT 8   MIN   END
 *
 *     argument 3 = 20, 20 programs:   [4, 8], of which the least is not negative: the launch is
 * fine argument 3 = 20, 40 programs:   [-12, 8]: it is refused
 */
#ifndef TESSERA_LIMITS_H
#define TESSERA_LIMITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a launch returns that is outside the limits of a kernel; nothing was done then. It is
 * TSR_OUTSIDE_LIMITS of the C API. */
#define TESSERA_OUTSIDE_LIMITS (-1)

typedef enum tessera_operation {
  TESSERA_END,
  TESSERA_CONSTANT, /* number */
  TESSERA_ARGUMENT, /* the argument with this number, an integer of so many bits */
  TESSERA_PROGRAM,  /* the program's place along an axis of the grid */
  TESSERA_EXTENT,   /* of the grid, along an axis */
  TESSERA_UNSIGNED, /* the operand, which must not be negative */
  TESSERA_LOOP,     /* x plus a multiple of `number`, less than y; x where there is none */
  TESSERA_ADD,      /* this and what follows: of signed integers of so many bits, within these */
  TESSERA_SUB,
  TESSERA_MUL,
  TESSERA_DIV, /* rounded towards 0 */
  TESSERA_REM,
  TESSERA_MIN,
  TESSERA_MAX
} tessera_operation;

/* How many operands a formula may have before an operation takes them. */
enum { TESSERA_MAX_OPERANDS = 40 };

typedef struct tessera_step {
  uint8_t operation, bits; /* 32 or 64 */
  int64_t number;
} tessera_step;

/* Numbers from the least to the most, each the least plus a multiple of `step`; 0 for a single
 * one. */
typedef struct tessera_range {
  int64_t least, most, step;
} tessera_range;

typedef struct tessera_dim {
  const tessera_step *extent, *stride; /* in elements */
  uint32_t box;                        /* elements that TMA moves at once */
  const tessera_step *first;           /* index of the first of `extent`; NULL: 0 */
} tessera_dim;

/* The array behind an argument; its dimensions, outermost first. */
typedef struct tessera_array {
  int32_t argument, element_bytes, rank;
  const tessera_dim *dims;
} tessera_array;

typedef struct tessera_array_pair {
  tessera_array first, second;
} tessera_array_pair;

typedef struct tessera_tensor_map {
  tessera_array array;
  int32_t element; /* its type, as the driver numbers them */
  int32_t swizzle_bytes;
} tessera_tensor_map;

typedef struct tessera_limits {
  int64_t most_programs;   /* along an axis; 0: any number */
  int32_t counts_programs; /* whether the kernel counts all programs in 32 bits: it is persistent */
  int32_t num_conditions, num_apart, num_maps;
  const tessera_step *const *conditions; /* must not be negative */
  const tessera_array_pair *apart;       /* must not overlap */
  const tessera_tensor_map *maps;        /* of a GPU */
} tessera_limits;

/* An array whose numbers have been filled in: innermost dimension first, strides in bytes. */
typedef struct tessera_shape {
  uint64_t base, extents[5], strides[5];
  uint32_t box[5];
} tessera_shape;

/* Names say the version of these tables (TESSERA_AOT_CONVENTION), so that code and runtime of two
 * versions do not link. */
#define tessera_accepts tessera_accepts_v3
#define tessera_find_range tessera_find_range_v3
#define tessera_find_bytes tessera_find_bytes_v3
#define tessera_are_apart tessera_are_apart_v3
#define tessera_find_shape tessera_find_shape_v3

/* In all of these `grid` has three extents, none negative, and `slots` 8 bytes for each argument.
 */

/* Whether a launch is within limits; then `shapes` has the arrays of its tensor maps. A grid of
 * nothing is within any, and has none. */
int tessera_accepts(const tessera_limits *limits, const int32_t *grid, const uint64_t *slots,
                    tessera_shape *shapes);
/* What a formula gives; 0 where that cannot be told: a number leaves its bits, or one may be 0 that
 * is divided by. */
int tessera_find_range(const tessera_step *formula, const int32_t *grid, const uint64_t *slots,
                       tessera_range *range);
/* The first byte of an array, and that behind the last; the two are equal where there is none. 0
 * where they cannot be told. */
int tessera_find_bytes(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                       uint64_t *begin, uint64_t *end);
/* Whether two arrays do not overlap; 0 also where that cannot be told. */
int tessera_are_apart(const tessera_array_pair *pair, const int32_t *grid, const uint64_t *slots);
/* 0 if TMA cannot move boxes of the array: it is empty or too large, or its base or a stride is no
 * multiple of 16 bytes. */
int tessera_find_shape(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                       tessera_shape *shape);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_LIMITS_H */
