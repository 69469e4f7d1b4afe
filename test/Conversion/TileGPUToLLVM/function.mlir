// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline | FileCheck %s

// A kernel whose programs have an SM each lets the next one begin, and waits for the
// one before it, before it does anything else; functions that it calls do not.

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
                   tilegpu.shared_bytes = 131072 : i32} {
// CHECK-LABEL: llvm.func @kernel
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.launch_dependents;", "" : () -> ()
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.wait;", "" : () -> ()
tile.func @kernel(%p: !tile.ptr<f32>) {
  %x = tile.load %p : !tile.ptr<f32>
  %y = tile.call @twice(%x) : (f32) -> f32
  tile.store %p, %y : !tile.ptr<f32>
  tile.return
}
// CHECK-LABEL: llvm.func internal @twice
// CHECK-NOT: griddepcontrol
tile.func private @twice(%x: f32) -> f32 attributes {noinline} {
  %y = arith.addf %x, %x : f32
  tile.return %y : f32
}
}

// -----

// Small programs would only be held up.
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
                   tilegpu.shared_bytes = 65536 : i32} {
// CHECK-LABEL: llvm.func @small
// CHECK-NOT: griddepcontrol
tile.func @small(%p: !tile.ptr<f32>) {
  %x = tile.load %p : !tile.ptr<f32>
  tile.store %p, %x : !tile.ptr<f32>
  tile.return
}
}

// -----

// Before sm_90 there is no such thing.
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_89">,
                   tilegpu.shared_bytes = 98304 : i32} {
// CHECK-LABEL: llvm.func @older
// CHECK-NOT: griddepcontrol
tile.func @older(%p: !tile.ptr<f32>) {
  %x = tile.load %p : !tile.ptr<f32>
  tile.store %p, %x : !tile.ptr<f32>
  tile.return
}
}
