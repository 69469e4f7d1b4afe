// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost of a loop that clusters could split, for launches, as an attribute of the module.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUDIVISIBLESUMATTR_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUDIVISIBLESUMATTR_TD

include "tessera/Dialect/TileGPU/IR/TileGPULayoutAttr.td"

def TileGPU_DivisibleSumAttr : TileGPU_Attr<"DivisibleSum", "divisible_sum", []> {
  let summary = "A loop that accumulates dots, and could be split among the blocks of a cluster";
  let description = [{
    On a module without clusters, as `tilegpu.divisible_sum`: tilegpu-split-k would split the loop
    of its kernel. It runs from `lower` to `upper`, the text of a program bound
    (tessera/Runtime/CUDA/ProgramBound.h), in steps of `step`. An iteration takes `iteration` cycles
    of an SM, and `busy` if all SMs load. Behind the loop, the barrier of the blocks takes `meet`
    cycles. Each other block adds `wait` cycles of latency, and `exchange` for its part.

    ```mlir
    #tilegpu.divisible_sum<"i32:5", lower = 0, step = 64, iteration = 256, busy = 300, meet = 1256, wait = 1437, exchange = 1024>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$upper, "int64_t":$lower, "int64_t":$step,
                        "int64_t":$iteration, "int64_t":$busy, "int64_t":$meet, "int64_t":$wait,
                        "int64_t":$exchange);
  let assemblyFormat = [{
    `<` $upper `,` `lower` `=` $lower `,` `step` `=` $step `,` `iteration` `=` $iteration `,`
        `busy` `=` $busy `,` `meet` `=` $meet `,` `wait` `=` $wait `,` `exchange` `=` $exchange `>`
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUDIVISIBLESUMATTR_TD
