// The reducer keeps what the script finds interesting: a store.
// RUN: printf '#!/bin/sh\ngrep -q tile.store "$1" && exit 1\nexit 0\n' > %t.sh && chmod +x %t.sh
// RUN: tessera-reduce %s --reduction-tree='traversal-mode=0 test=%t.sh' | FileCheck %s

// CHECK-NOT: @other
// CHECK: tile.func @kernel
// CHECK: tile.store

tile.func @other(%p: !tile.ptr<i32>) {
  tile.return
}

tile.func @kernel(%p: !tile.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  tile.store %p, %c1 : !tile.ptr<i32>
  tile.return
}
