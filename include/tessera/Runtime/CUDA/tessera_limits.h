/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The limits of a kernel's launches. The kernel's code is faster because it assumes that indices
 * do not wrap, that arrays do not overlap, and that TMA can copy boxes of an array. A launch that
 * breaks an assumption is refused, and runs as the kernel's variant without assumptions.
 *
 * These tables describe the limits, and tessera_limits.c evaluates them. Launches from Python use
 * both (LaunchLimits.h), and so do the simulator and libraries that `python -m tessera build`
 * writes, which contain both files. So this is C11 without any other header.
 *
 * A formula has steps, operands first, and ends with TESSERA_END. Its value is a range that
 * contains the results of all programs of the launch. For example, the rows of the last group of 8
 * of a program p in a grid of n programs, min(n - p / 8 * 8, 8):
 *
 *     ARGUMENT 3   PROGRAM 0   CONSTANT 8   DIV   CONSTANT 8   MUL   SUB   CONSTANT 8   MIN   END
 *
 *     argument 3 = 20, 20 programs:   [4, 8], whose least is not negative: accepted
 *     argument 3 = 20, 40 programs:   [-12, 8]: refused
 */
#ifndef TESSERA_LIMITS_H
#define TESSERA_LIMITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a launch outside of the kernel's limits, which has run nothing. It is
 * TSR_OUTSIDE_LIMITS of the C API. */
#define TESSERA_OUTSIDE_LIMITS (-1)

typedef enum tessera_operation {
  TESSERA_END,
  TESSERA_CONSTANT, /* number */
  TESSERA_ARGUMENT, /* the argument of this number, an integer of so many bits */
  TESSERA_PROGRAM,  /* the program's id along an axis of the grid */
  TESSERA_EXTENT,   /* of the grid, along an axis */
  TESSERA_UNSIGNED, /* the operand, which must not be negative */
  TESSERA_LOOP,     /* x plus a multiple of `number`, less than y; x if there is none */
  TESSERA_ADD,      /* from here on: of signed integers of so many bits, which must not overflow */
  TESSERA_SUB,
  TESSERA_MUL,
  TESSERA_DIV, /* rounded towards 0 */
  TESSERA_REM,
  TESSERA_MIN,
  TESSERA_MAX
} tessera_operation;

/* The most operands that wait for an operation at once. */
enum { TESSERA_MAX_OPERANDS = 40 };

typedef struct tessera_step {
  uint8_t operation, bits; /* 32 or 64 */
  int64_t number;
} tessera_step;

/* Numbers from `least` to `most`, each of which is `least` plus a multiple of `step`; 0 for a
 * single number. */
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
  int64_t most_programs;   /* along an axis; 0: no limit */
  int32_t counts_programs; /* 1: the kernel is persistent, and counts all programs in 32 bits */
  int32_t num_conditions, num_apart, num_maps;
  const tessera_step *const *conditions; /* must not be negative */
  const tessera_array_pair *apart;       /* must not overlap */
  const tessera_tensor_map *maps;        /* of a GPU */
} tessera_limits;

/* An array with its address, extents and strides: innermost dimension first, strides in bytes. */
typedef struct tessera_shape {
  uint64_t base, extents[5], strides[5];
  uint32_t box[5];
} tessera_shape;

/* Names contain the version of these tables (TESSERA_AOT_CONVENTION), so that code and runtime of
 * two versions do not link. */
#define tessera_accepts tessera_accepts_v3
#define tessera_find_range tessera_find_range_v3
#define tessera_find_bytes tessera_find_bytes_v3
#define tessera_are_apart tessera_are_apart_v3
#define tessera_find_shape tessera_find_shape_v3

/* In all of these, `grid` has three extents, none negative, and `slots` has 8 bytes for each
 * argument. */

/* 1 if a launch is within limits; then `shapes` has the arrays of its tensor maps. An empty grid is
 * within any limits, and has no shapes. */
int tessera_accepts(const tessera_limits *limits, const int32_t *grid, const uint64_t *slots,
                    tessera_shape *shapes);
/* Evaluates a formula. 0 if the result is unknown: a number overflows its bits, or a divisor may be
 * 0. */
int tessera_find_range(const tessera_step *formula, const int32_t *grid, const uint64_t *slots,
                       tessera_range *range);
/* The first byte of an array, and the one behind the last; equal if the array is empty. 0 if they
 * are unknown. */
int tessera_find_bytes(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                       uint64_t *begin, uint64_t *end);
/* 1 if two arrays do not overlap; 0 also if that is unknown. */
int tessera_are_apart(const tessera_array_pair *pair, const int32_t *grid, const uint64_t *slots);
/* 0 if TMA cannot copy boxes of the array: it is empty or too large, or its base or a stride is no
 * multiple of 16 bytes. */
int tessera_find_shape(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                       tessera_shape *shape);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_LIMITS_H */
