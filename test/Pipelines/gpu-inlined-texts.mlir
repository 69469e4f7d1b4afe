// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "debug": true}' | FileCheck %s
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_80", "debug": true}' | FileCheck %s

// Texts and tables are the module's own, and lie at no line of a function: where what needs them was
// inlined, MLIR's pass that gives scopes to lines looks for the function around them.

// CHECK-DAG: tessera_text
// CHECK-DAG: assertfail
// CHECK-DAG: vprintf
// CHECK-LABEL: .entry inlined
tile.func @inlined(%p: !tile.ptr<i32>) {
  %i = tile.range 0 to 64 : tensor<64xi32> loc(#inlined)
  %c = arith.constant dense<32> : tensor<64xi32> loc(#inlined)
  %ok = arith.cmpi slt, %i, %c : tensor<64xi32> loc(#inlined)
  tile.assert %ok, "too large" : tensor<64xi1> loc(#inlined)
  tile.print "i = " : %i {hex = false, is_signed = array<i32: 1>} : tensor<64xi32> loc(#inlined)
  %t = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>> loc(#inlined)
  %q = tile.addptr %t, %i : tensor<64x!tile.ptr<i32>>, tensor<64xi32> loc(#inlined)
  tile.store %q, %i : tensor<64x!tile.ptr<i32>> loc(#inlined)
  tile.return
}

#callee = loc("kernel.py":3:5)
#caller = loc("kernel.py":9:5)
#inlined = loc(callsite(#callee at #caller))
