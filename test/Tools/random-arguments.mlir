// RUN: tessera-interpret %s --arg i8:8=random --arg f8E4M3FN:8=random | FileCheck %s

// The numbers of `random` are small, of both signs, and the same in every run.
// CHECK: arg 0 i8:8 = 0, -3, -7, 4, 0, -8, -3, 0
// CHECK: arg 1 f8E4M3FN:8 = 0, -0.375, -0.875, 0.5, 0, -1, -0.375, 0
tile.func @nothing(%x: !tile.ptr<i8>, %y: !tile.ptr<f8E4M3FN>) {
  tile.return
}
