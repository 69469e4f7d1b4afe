// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @checks
tile.func @checks(%x: !tile.ptr<f32>, %p: !tile.ptr<f32>, %m: i1, %e: i64) {
  // CHECK: tile.check_access %arg1 of %arg0 {access = "load", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> i1
  %a = tile.check_access %p of %x {access = "load", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> i1
  // CHECK: tile.check_access %arg1 of %arg0, %arg2 exact %arg3 {access = "atomic", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32>, i1 exact i64 -> i1
  %b = tile.check_access %p of %x, %m exact %e {access = "atomic", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32>, i1 exact i64 -> i1
  // CHECK: %{{.*}}, %{{.*}} = tile.argument_memory 0
  %begin, %end = tile.argument_memory 0
  // CHECK: tile.report_access %arg2, %arg3 {access = "store", argument = 0 : i32, bytes = 4 : i32, wraps}
  tile.report_access %m, %e {access = "store", argument = 0 : i32, bytes = 4 : i32, wraps}
  tile.return
}
