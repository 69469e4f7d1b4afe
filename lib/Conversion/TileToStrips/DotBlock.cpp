// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DotBlock.h"

#include <algorithm>
#include <limits>

namespace tessera {

/// Cycles for one step of k on a core with two multiply-add units of latency 4 and
/// two loads a cycle; what current x86 and AArch64 cores have.
static double stepCost(int64_t rows, int64_t vectors) {
  if (rows == 0 || vectors == 0)
    return 0;
  double multiplies = rows * vectors / 2.0, loads = (rows + vectors) / 2.0;
  return std::max({multiplies, loads, 4.0}) + 0.5;
}

/// The block with which M rows by `vectors` vectors of columns take the least time.
BlockShape chooseBlock(int64_t M, int64_t vectors, int64_t registers) {
  BlockShape best{1, 1};
  double bestCost = std::numeric_limits<double>::infinity();
  for (int64_t v : {4, 2, 3, 1, 8, 6}) {
    for (int64_t r = 1; r <= 12; ++r) {
      // A row alone multiplies straight from memory; more rows hold a row of b.
      int64_t used = r * v + (r > 1 ? v : 1) + 1;
      if (used > registers || r > M || v > vectors)
        continue;
      auto columnsCost = [&](int64_t rows) {
        return (vectors / v) * stepCost(rows, v) + stepCost(rows, vectors % v);
      };
      double cost = (M / r) * columnsCost(r) + columnsCost(M % r);
      // A block of another shape for what is left over has to be compiled, too.
      cost *= 1.0 + 0.03 * ((M % r != 0) + (vectors % v != 0));
      if (cost < bestCost) {
        bestCost = cost;
        best = {r, v};
      }
    }
  }
  return best;
}

} // namespace tessera
