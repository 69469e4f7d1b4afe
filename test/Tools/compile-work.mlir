// What the cost model counts in a kernel, and the visits of each block by a launch.

// RUN: tessera-compile %s --options='{"target": "cuda", "arch": "sm_90a", "num_stages": 1}' --stage=work | FileCheck %s --check-prefix=BLOCKS
// RUN: tessera-compile %s --options='{"target": "cuda", "arch": "sm_90a", "num_stages": 1}' --stage=work --grid=10 --arguments=_,100 | FileCheck %s --check-prefix=LAUNCH
// RUN: tessera-compile %s --options='{"target": "cuda", "arch": "sm_90a", "num_stages": 1}' --stage=work --grid=10 --arguments=_,_ | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera-compile %s --options='{"target": "cuda", "arch": "sm_90a", "num_stages": 1}' --stage=work --grid=10,0 --arguments=_,_ 2>&1 | FileCheck %s --check-prefix=GRID
// RUN: not tessera-compile %s --options='{"target": "cuda", "arch": "sm_90a", "num_stages": 1}' --stage=work --grid=10 --arguments=_,two 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not tessera-compile %s --options='{"target": "cuda", "arch": "sm_90a", "num_stages": 1}' --stage=work --grid=10 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not tessera-compile %s --stage=work 2>&1 | FileCheck %s --check-prefix=CPU

// The loop runs in groups of eight iterations, whose loads come first: of 16 bytes for each of 32 lanes.
// BLOCKS: b[[LOOP:[0-9]+]] -> {{.*}}: latency {{.*}}, loads pending until {{.*}} read 4096, requests 32; argument 0: 4096 read
// BLOCKS: (computed, a loop: stays by b[[LOOP]]): latency

// Four warps of 100 iterations, each of 512 bytes: 13 groups. The last one has four loads beyond the end,
// which are masked off.
// LAUNCH: program: latency {{[0-9.]+}} (longest {{[0-9.]+}}), certain;
// LAUNCH-SAME: argument 0: 204800 read 2048 written
// LAUNCH: a loop: stays by {{.*}}: 52 visits; latency

// UNKNOWN: program: {{.*}}, guessed;

// GRID: error: --grid has the extent 0 [E062]
// NUMBER: error: --arguments has 'two' [E062]
// COUNT: error: --arguments has 0 values, and kernel 'sum' takes 2 [E062]
// CPU: error: kernel 'sum' has no counted work [E062]

tile.func @sum(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %size = arith.constant 512 : i32
  %none = arith.constant dense<0.0> : tensor<512xf32>
  %o = tile.range 0 to 512 : tensor<512xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %total = scf.for %i = %zero to %n step %one iter_args(%sum = %none) -> (tensor<512xf32>) : i32 {
    %first = arith.muli %i, %size : i32
    %far = tile.splat %first : i32 -> tensor<512xi32>
    %at = tile.addptr %xp, %far : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
    %v = tile.load %at : tensor<512x!tile.ptr<f32>>
    %next = arith.addf %sum, %v : tensor<512xf32>
    scf.yield %next : tensor<512xf32>
  }
  tile.store %xp, %total : tensor<512x!tile.ptr<f32>>
  tile.return
}
