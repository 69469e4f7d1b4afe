// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (A1): the value fits the pointers.
tile.func private @load_type(%p: tensor<64x!tile.ptr<i32>>) {
  // expected-error@+1 {{'tile.atomic_load' op has a value of type 'tensor<64xi64>' for pointers of type 'tensor<64x!tile.ptr<i32>>'}}
  %0 = tile.atomic_load acquire, gpu, %p : tensor<64x!tile.ptr<i32>> -> tensor<64xi64>
  tile.return
}

// -----

tile.func private @store_type(%p: !tile.ptr<i32>, %x: i64) {
  // expected-error@+1 {{'tile.atomic_store' op has a value of type 'i64' for pointers of type '!tile.ptr<i32>'}}
  tile.atomic_store relaxed, gpu, %p, %x : !tile.ptr<i32>, i64
  tile.return
}

// -----

tile.func private @rmw_result(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{'tile.atomic_rmw' op takes 'i32' but gives 'i64'}}
  %0 = tile.atomic_rmw add, relaxed, gpu, %p, %x : !tile.ptr<i32>, i32 -> i64
  tile.return
}

// -----

tile.func private @cas_type(%p: !tile.ptr<i32>, %x: i64) {
  // expected-error@+1 {{'tile.atomic_cas' op has a value of type 'i64' for pointers of type '!tile.ptr<i32>'}}
  %0 = tile.atomic_cas acq_rel, gpu, %p, %x, %x : !tile.ptr<i32>, i64
  tile.return
}

// -----

tile.func private @cas_mask(%p: !tile.ptr<i32>, %x: i32, %m: tensor<8xi1>) {
  // expected-error@+1 {{'tile.atomic_cas' op has a mask of type 'tensor<8xi1>' for pointers of type '!tile.ptr<i32>'}}
  %0 = tile.atomic_cas acq_rel, gpu, %p, %x, %x, %m : !tile.ptr<i32>, i32, tensor<8xi1>
  tile.return
}

// -----

// (A2): the mask has the shape of the pointers.
tile.func private @mask(%p: tensor<64x!tile.ptr<i32>>, %x: tensor<64xi32>, %m: i1) {
  // expected-error@+1 {{'tile.atomic_rmw' op has a mask of type 'i1' for pointers of type 'tensor<64x!tile.ptr<i32>>'}}
  %0 = tile.atomic_rmw add, relaxed, gpu, %p, %x, %m : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, i1 -> tensor<64xi32>
  tile.return
}

// -----

// (A3): orderings of loads and stores.
tile.func private @load_order(%p: !tile.ptr<i32>) {
  // expected-error@+1 {{'tile.atomic_load' op is release; an atomic load is relaxed or acquire}}
  %0 = tile.atomic_load release, gpu, %p : !tile.ptr<i32> -> i32
  tile.return
}

// -----

tile.func private @store_order(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{'tile.atomic_store' op is acq_rel; an atomic store is relaxed or release}}
  tile.atomic_store acq_rel, gpu, %p, %x : !tile.ptr<i32>, i32
  tile.return
}

// -----

// (A4): kinds and element types.
tile.func private @float_kind(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{'tile.atomic_rmw' op fadd does not take 'i32'}}
  %0 = tile.atomic_rmw fadd, relaxed, gpu, %p, %x : !tile.ptr<i32>, i32 -> i32
  tile.return
}

// -----

tile.func private @integer_kind(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error@+1 {{'tile.atomic_rmw' op add does not take 'f32'}}
  %0 = tile.atomic_rmw add, relaxed, gpu, %p, %x : !tile.ptr<f32>, f32 -> f32
  tile.return
}
