/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Calls kernels that `python -m tessera build` has compiled for the CPU (kernels.py).
 */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int check(int status) {
  if (status != TESSERA_OK)
    fprintf(stderr, "%s\n", tessera_error_text());
  return status;
}

int main(void) {
  enum { ROWS = 100, COLUMNS = 999, COUNT = ROWS * COLUMNS };
  static float x[COUNT + 1], out[COUNT + 1];
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)(i % 17);

  tessera_launch blocks = tessera_grid((COUNT + 1023) / 1024, 1, 1);
  if (check(scale(&blocks, x, 2.0f, out, COUNT)))
    return 1;
  for (int i = 0; i < COUNT; ++i)
    if (out[i] != 2 * x[i])
      return 1;
  /* Not aligned: the dispatcher takes the other specialisation. */
  if (check(scale(&blocks, x + 1, 3.0f, out, COUNT - 1)))
    return 1;
  for (int i = 0; i < COUNT - 1; ++i)
    if (out[i] != 3 * x[i + 1])
      return 1;

  tessera_launch rows = tessera_grid(ROWS, 1, 1);
  if (check(softmax(&rows, x, out, COLUMNS)))
    return 1;
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (int i = 0; i < COLUMNS; ++i)
      sum += out[row * COLUMNS + i];
    if (fabs(sum - 1) > 1e-5)
      return 1;
  }
  puts("right");
  return 0;
}
