/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Checks that a launch is within a kernel's limits (tessera_limits.h).
 *
 * A result beyond 64 bits is beyond the bits of any operation. So each computation in 64 bits is
 * exact or fails.
 */
#include "tessera_limits.h"

#include <stddef.h>

static int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t larger(int64_t x, int64_t y) { return x < y ? y : x; }

static int has_bits(int64_t number, int bits) { return bits == 64 || number == (int32_t)number; }

/* The product or the quotient; 0 if it does not fit. */
static int combine(int operation, int64_t x, int64_t y, int64_t *result) {
  if (operation == TESSERA_MUL)
    return !__builtin_mul_overflow(x, y, result);
  if (x == INT64_MIN && y == -1)
    return 0;
  *result = x / y;
  return 1;
}

/* The range of a product or quotient, whose ends are among those of the operands' ends. */
static int find_corners(int operation, tessera_range x, tessera_range y, int64_t *least,
                        int64_t *most) {
  const int64_t xs[2] = {x.least, x.most}, ys[2] = {y.least, y.most};
  const int num_xs = x.least == x.most ? 1 : 2, num_ys = y.least == y.most ? 1 : 2;
  for (int i = 0; i < num_xs; ++i)
    for (int j = 0; j < num_ys; ++j) {
      int64_t result = 0;
      if (!combine(operation, xs[i], ys[j], &result))
        return 0;
      *least = i + j ? smaller(*least, result) : result;
      *most = i + j ? larger(*most, result) : result;
    }
  return 1;
}

static int64_t find_divisor(int64_t x, int64_t y) {
  if (x == 1 || y == 1)
    return 1;
  while (y) {
    int64_t rest = y == -1 ? 0 : x % y;
    x = y, y = rest;
  }
  return x < 0 ? -x : x;
}

/* The step of (a + i s) (b + j t), which is a b and multiples of a t, b s and s t. */
static int64_t find_step_of_product(tessera_range x, tessera_range y) {
  int64_t of_x = 0, of_y = 0, of_both = 0;
  if (__builtin_mul_overflow(x.least, y.step, &of_x) ||
      __builtin_mul_overflow(y.least, x.step, &of_y) ||
      __builtin_mul_overflow(x.step, y.step, &of_both) || of_x == INT64_MIN || of_y == INT64_MIN)
    return 1;
  return find_divisor(find_divisor(of_x, of_y), of_both);
}

/* The step of numbers that are in one of two ranges. */
static int64_t find_step_of_both(tessera_range x, tessera_range y) {
  int64_t apart = 0;
  if (__builtin_sub_overflow(x.least, y.least, &apart) || apart == INT64_MIN)
    return 1;
  return find_divisor(find_divisor(x.step, y.step), apart);
}

/* The ends of the result; 0 if they are unknown. */
static int find_ends(const tessera_step *step, tessera_range x, tessera_range y, int64_t *least,
                     int64_t *most) {
  switch (step->operation) {
  case TESSERA_ADD:
    return !__builtin_add_overflow(x.least, y.least, least) &&
           !__builtin_add_overflow(x.most, y.most, most);
  case TESSERA_SUB:
    return !__builtin_sub_overflow(x.least, y.most, least) &&
           !__builtin_sub_overflow(x.most, y.least, most);
  case TESSERA_DIV:
    return (y.least > 0 || y.most < 0) && find_corners(TESSERA_DIV, x, y, least, most);
  case TESSERA_MUL:
    return find_corners(TESSERA_MUL, x, y, least, most);
  case TESSERA_REM:
    if (x.least < 0 || y.least <= 0)
      return 0;
    /* All are a multiple of the divisor apart. The step of a single number is 0. */
    if (x.step % y.least == 0 && y.least == y.most) {
      *least = *most = x.least % y.least;
      return 1;
    }
    *least = x.most < y.least ? x.least : 0;
    *most = smaller(x.most, y.most - 1);
    return 1;
  case TESSERA_MIN:
    *least = smaller(x.least, y.least), *most = smaller(x.most, y.most);
    return 1;
  case TESSERA_MAX:
    *least = larger(x.least, y.least), *most = larger(x.most, y.most);
    return 1;
  case TESSERA_LOOP:
    /* Only iterations use the variable, so it is below the loop's end. */
    *least = x.least, *most = x.least < y.most ? y.most - 1 : x.least;
    return 1;
  default:
    return 0;
  }
}

/* The step of a result that is more than one number. */
static int64_t find_step(const tessera_step *step, tessera_range x, tessera_range y) {
  switch (step->operation) {
  case TESSERA_ADD:
  case TESSERA_SUB:
    return find_divisor(x.step, y.step);
  case TESSERA_MUL:
    return find_step_of_product(x, y);
  case TESSERA_MIN:
  case TESSERA_MAX:
    return find_step_of_both(x, y);
  case TESSERA_LOOP:
    return find_divisor(x.step, step->number);
  default:
    return 1;
  }
}

/* 0 if the result is unknown. */
static int apply(const tessera_step *step, tessera_range *result, tessera_range y) {
  const tessera_range x = *result;
  int64_t least = 0, most = 0, by = 0;
  if (!has_bits(x.least, step->bits) || !has_bits(x.most, step->bits) ||
      !has_bits(y.least, step->bits) || !has_bits(y.most, step->bits) ||
      !find_ends(step, x, y, &least, &most))
    return 0;
  if (least != most)
    by = find_step(step, x, y);
  if (step->operation == TESSERA_LOOP && by)
    most -= (int64_t)(((uint64_t)most - (uint64_t)least) % (uint64_t)by);
  if (!has_bits(least, step->bits) || !has_bits(most, step->bits))
    return 0;
  result->least = least;
  result->most = most;
  result->step = least == most ? 0 : by;
  return 1;
}

int tessera_find_range(const tessera_step *formula, const int32_t *grid, const uint64_t *slots,
                       tessera_range *range) {
  tessera_range stack[TESSERA_MAX_OPERANDS];
  int size = 0;
  for (const tessera_step *step = formula; step->operation != TESSERA_END; ++step) {
    int64_t number = step->number;
    switch (step->operation) {
    case TESSERA_PROGRAM:
      stack[size].least = 0, stack[size].step = 1;
      stack[size++].most = grid[number] > 0 ? grid[number] - 1 : 0;
      continue;
    case TESSERA_UNSIGNED:
      if (stack[size - 1].least < 0)
        return 0;
      continue;
    case TESSERA_ARGUMENT:
      number = (int64_t)slots[number];
      if (step->bits == 32) /* the rest of its slot is undefined */
        number = (int32_t)number;
      break;
    case TESSERA_EXTENT:
      number = grid[number];
      break;
    case TESSERA_CONSTANT:
      break;
    default:
      --size;
      if (!apply(step, &stack[size - 1], stack[size]))
        return 0;
      continue;
    }
    stack[size].least = stack[size].most = number;
    stack[size].step = 0;
    ++size;
  }
  *range = stack[0];
  return 1;
}

/* The same for a number that does not depend on the program's id. */
static int find_number(const tessera_step *formula, const int32_t *grid, const uint64_t *slots,
                       int64_t *number) {
  tessera_range found;
  if (!tessera_find_range(formula, grid, slots, &found))
    return 0;
  *number = found.least;
  return 1;
}

int tessera_find_bytes(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                       uint64_t *begin, uint64_t *end) {
  int64_t down = 0, up = 0; /* to the first and the last element, in elements */
  *begin = *end = slots[array->argument];
  for (int i = 0; i < array->rank; ++i) {
    const tessera_step *begins = array->dims[i].first;
    tessera_range first = {0, 0, 0};
    int64_t extent = 0, stride = 0, last = 0, reaches[2];
    if (!find_number(array->dims[i].extent, grid, slots, &extent))
      return 0;
    if (extent < 1)
      return 1;
    if (!find_number(array->dims[i].stride, grid, slots, &stride) ||
        (begins && !tessera_find_range(begins, grid, slots, &first)) ||
        __builtin_add_overflow(first.most, extent - 1, &last) ||
        __builtin_mul_overflow(first.least, stride, &reaches[0]) ||
        __builtin_mul_overflow(last, stride, &reaches[1]) ||
        __builtin_add_overflow(down, smaller(reaches[0], reaches[1]), &down) ||
        __builtin_add_overflow(up, larger(reaches[0], reaches[1]), &up))
      return 0;
  }
  return !__builtin_add_overflow(up, 1, &up) &&
         !__builtin_mul_overflow(up, (int64_t)array->element_bytes, &up) &&
         !__builtin_mul_overflow(down, (int64_t)array->element_bytes, &down) &&
         !__builtin_add_overflow(slots[array->argument], up, end) &&
         !__builtin_add_overflow(slots[array->argument], down, begin);
}

int tessera_are_apart(const tessera_array_pair *pair, const int32_t *grid, const uint64_t *slots) {
  uint64_t first = 0, first_end = 0, second = 0, second_end = 0;
  if (!tessera_find_bytes(&pair->first, grid, slots, &first, &first_end) ||
      !tessera_find_bytes(&pair->second, grid, slots, &second, &second_end))
    return 0;
  return first == first_end || second == second_end || first_end <= second || second_end <= first;
}

int tessera_find_shape(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                       tessera_shape *shape) {
  /* Coordinates have 31 bits; strides, 40. */
  const int64_t most_elements = (int64_t)1 << 31, most_bytes = (int64_t)1 << 40;
  shape->base = slots[array->argument];
  if (shape->base == 0 || shape->base % 16 != 0)
    return 0;
  for (int i = 0; i < array->rank; ++i) {
    const tessera_dim *dim = &array->dims[array->rank - 1 - i];
    int64_t extent = 0, stride = 0;
    if (!find_number(dim->extent, grid, slots, &extent) || extent < 1 || extent > most_elements)
      return 0;
    shape->extents[i] = (uint64_t)extent;
    shape->box[i] = dim->box;
    shape->strides[i] = (uint64_t)array->element_bytes;
    if (i == 0)
      continue;
    if (!find_number(dim->stride, grid, slots, &stride) || stride < 0 ||
        stride >= most_bytes / array->element_bytes)
      return 0;
    shape->strides[i] *= (uint64_t)stride;
    if (shape->strides[i] % 16 != 0)
      return 0;
  }
  return 1;
}

/* 1 if a grid has more programs than a persistent kernel can count: the id of a program is an i32,
 * and so is the one beyond the last. */
static int are_too_many(const int32_t *grid) {
  const int64_t most = (int64_t)1 << 30, programs = (int64_t)grid[0] * grid[1];
  return programs > most || programs * grid[2] > most;
}

int tessera_accepts(const tessera_limits *limits, const int32_t *grid, const uint64_t *slots,
                    tessera_shape *shapes) {
  tessera_range found;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0)
    return 1; /* there is no program */
  for (int axis = 0; limits->most_programs && axis < 3; ++axis)
    if (grid[axis] > limits->most_programs)
      return 0;
  if (limits->counts_programs && are_too_many(grid))
    return 0;
  for (int i = 0; i < limits->num_conditions; ++i)
    if (!tessera_find_range(limits->conditions[i], grid, slots, &found) || found.least < 0)
      return 0;
  for (int i = 0; i < limits->num_apart; ++i)
    if (!tessera_are_apart(&limits->apart[i], grid, slots))
      return 0;
  for (int i = 0; i < limits->num_maps; ++i)
    if (!tessera_find_shape(&limits->maps[i].array, grid, slots, &shapes[i]))
      return 0;
  return 1;
}
