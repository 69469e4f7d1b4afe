/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whether a launch is within what a specialisation takes for granted. The rules are those of
 * lib/Runtime/CUDA/{ProgramBound,TensorMap}.cpp, which launches from Python go by.
 */
#include "tessera_aot.h"

__extension__ typedef __int128 wide;

/* Numbers from the least to the most, each the least plus a multiple of `by`; 0 for a single one. */
typedef struct interval {
  int64_t least, most, by;
} interval;

static wide smaller(wide x, wide y) { return x < y ? x : y; }
static wide larger(wide x, wide y) { return x < y ? y : x; }

/* Of products and quotients: the ends of the result are among those of the operands' ends. */
static void find_corners(int operation, interval x, interval y, wide *least, wide *most) {
  const int64_t xs[2] = {x.least, x.most}, ys[2] = {y.least, y.most};
  for (int i = 0; i < 4; ++i) {
    wide a = xs[i / 2], b = ys[i % 2], result = operation == TESSERA_MUL ? a * b : a / b;
    *least = i ? smaller(*least, result) : result;
    *most = i ? larger(*most, result) : result;
  }
}

static int64_t find_divisor(int64_t x, int64_t y) {
  while (y) {
    int64_t rest = x % y;
    x = y, y = rest;
  }
  return x < 0 ? -x : x;
}

/* Of (a + i s) (b + j t), which is a b and multiples of a t, b s and s t. */
static int64_t find_step_of_product(interval x, interval y) {
  int64_t of_x = 0, of_y = 0, of_both = 0;
  if (__builtin_mul_overflow(x.least, y.by, &of_x) ||
      __builtin_mul_overflow(y.least, x.by, &of_y) ||
      __builtin_mul_overflow(x.by, y.by, &of_both) || of_x == INT64_MIN || of_y == INT64_MIN)
    return 1;
  return find_divisor(find_divisor(of_x, of_y), of_both);
}

/* Of numbers that are of one interval or of the other. */
static int64_t find_step_of_both(interval x, interval y) {
  const wide apart = (wide)x.least - y.least;
  const int is_narrow = apart > INT64_MIN && apart <= INT64_MAX;
  return is_narrow ? find_divisor(find_divisor(x.by, y.by), (int64_t)apart) : 1;
}

/* 0 where the result cannot be told. */
static int apply(const tessera_step *step, interval *result, interval y) {
  const interval x = *result;
  const wide limit = (wide)1 << (step->bits - 1);
  wide least = 0, most = 0;
  int64_t by = 1;
  if (x.least < -limit || x.most >= limit || y.least < -limit || y.most >= limit)
    return 0;
  switch (step->operation) {
  case TESSERA_ADD:
    least = (wide)x.least + y.least, most = (wide)x.most + y.most;
    by = find_divisor(x.by, y.by);
    break;
  case TESSERA_SUB:
    least = (wide)x.least - y.most, most = (wide)x.most - y.least;
    by = find_divisor(x.by, y.by);
    break;
  case TESSERA_DIV:
    if (y.least <= 0 && y.most >= 0)
      return 0;
    /* fall through */
  case TESSERA_MUL:
    find_corners(step->operation, x, y, &least, &most);
    by = step->operation == TESSERA_MUL ? find_step_of_product(x, y) : 1;
    break;
  case TESSERA_REM:
    if (x.least < 0 || y.least <= 0)
      return 0;
    least = x.most < y.least ? x.least : 0;
    most = smaller(x.most, (wide)y.most - 1);
    break;
  case TESSERA_MIN:
    least = smaller(x.least, y.least), most = smaller(x.most, y.most);
    by = find_step_of_both(x, y);
    break;
  case TESSERA_MAX:
    least = larger(x.least, y.least), most = larger(x.most, y.most);
    by = find_step_of_both(x, y);
    break;
  case TESSERA_LOOP:
    least = x.least, most = larger(x.least, (wide)y.most - 1);
    by = find_divisor(x.by, step->number);
    most -= (most - least) % by;
    break;
  default:
    return 0;
  }
  if (least < -limit || most >= limit)
    return 0;
  result->least = (int64_t)least;
  result->most = (int64_t)most;
  result->by = least == most ? 0 : by;
  return 1;
}

/* 0 where the number cannot be told. */
static int evaluate(const tessera_step *formula, const int32_t *grid, const uint64_t *slots,
                    interval *result) {
  enum { MOST_OPERANDS = 40 }; /* limits.py makes no formula that needs more */
  interval stack[MOST_OPERANDS];
  int size = 0;
  for (const tessera_step *step = formula; step->operation != TESSERA_END; ++step) {
    int64_t number = step->number;
    switch (step->operation) {
    case TESSERA_PROGRAM:
      stack[size].least = 0, stack[size].by = 1;
      stack[size++].most = grid[number] > 0 ? grid[number] - 1 : 0;
      continue;
    case TESSERA_UNSIGNED:
      if (stack[size - 1].least < 0)
        return 0;
      continue;
    case TESSERA_ARGUMENT:
      number = (int64_t)slots[number];
      if (step->bits == 32) /* nobody says what is in the rest of its slot */
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
    stack[size].by = 0;
    ++size;
  }
  *result = stack[0];
  return 1;
}

/* The same, of a number that no place in the grid is in. */
static int find_number(const tessera_step *formula, const int32_t *grid, const uint64_t *slots,
                       int64_t *number) {
  interval found;
  if (!evaluate(formula, grid, slots, &found))
    return 0;
  *number = found.least;
  return 1;
}

/* The first byte of an array, and that behind the last; the two are equal where there is none. 0
 * where they cannot be told. */
static int find_bytes(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
                      uint64_t *begin, uint64_t *end) {
  int64_t down = 0, up = 0; /* to the first and the last element, in elements */
  *begin = *end = slots[array->argument];
  for (int i = 0; i < array->rank; ++i) {
    const tessera_step *begins = array->dims[i].first;
    interval first = {0, 0, 0};
    int64_t extent = 0, stride = 0, last = 0, reaches[2];
    if (!find_number(array->dims[i].extent, grid, slots, &extent))
      return 0;
    if (extent < 1)
      return 1;
    if (!find_number(array->dims[i].stride, grid, slots, &stride) ||
        (begins && !evaluate(begins, grid, slots, &first)) ||
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

static int are_apart(const tessera_array_pair *pair, const int32_t *grid, const uint64_t *slots) {
  uint64_t first = 0, first_end = 0, second = 0, second_end = 0;
  if (!find_bytes(&pair->first, grid, slots, &first, &first_end) ||
      !find_bytes(&pair->second, grid, slots, &second, &second_end))
    return 0;
  return first == first_end || second == second_end || first_end <= second || second_end <= first;
}

/* 0 if TMA cannot move boxes of the array: it is empty or too large, or its base or a stride is no
 * multiple of 16 bytes. */
static int find_shape(const tessera_array *array, const int32_t *grid, const uint64_t *slots,
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

int tessera_accepts(const tessera_limits *limits, const int32_t *grid, const uint64_t *slots,
                    tessera_shape *shapes) {
  interval found;
  for (int axis = 0; axis < 3; ++axis)
    if (limits->most_programs && grid[axis] > limits->most_programs)
      return 0;
  for (int i = 0; i < limits->num_conditions; ++i)
    if (!evaluate(limits->conditions[i], grid, slots, &found) || found.least < 0)
      return 0;
  for (int i = 0; i < limits->num_apart; ++i)
    if (!are_apart(&limits->apart[i], grid, slots))
      return 0;
  for (int i = 0; i < limits->num_maps; ++i)
    if (!find_shape(&limits->maps[i].array, grid, slots, &shapes[i]))
      return 0;
  return 1;
}
