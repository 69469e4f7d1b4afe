// RUN: tessera-opt %s --split-input-file --verify-diagnostics

tile.func @shape(%x: !tile.ptr<f32>, %m: i1) {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  // expected-error @+1 {{has a mask of type 'i1' for pointers of type 'tensor<8x!tile.ptr<f32>>'}}
  %ok = tile.check_access %p of %x, %m {access = "load", argument = 0 : i32} : tensor<8x!tile.ptr<f32>>, !tile.ptr<f32>, i1 -> tensor<8xi1>
  tile.return
}

// -----

tile.func @result(%x: !tile.ptr<f32>) {
  // expected-error @+1 {{has a result of type 'tensor<8xi1>' for pointers of type '!tile.ptr<f32>'}}
  %ok = tile.check_access %x of %x {access = "load", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> tensor<8xi1>
  tile.return
}

// -----

tile.func @access(%x: !tile.ptr<f32>) {
  // expected-error @+1 {{checks no access called 'jump'}}
  %ok = tile.check_access %x of %x {access = "jump", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> i1
  tile.return
}

// -----

tile.func @argument(%x: !tile.ptr<f32>) {
  // expected-error @+1 {{attribute 'argument' failed to satisfy constraint}}
  %ok = tile.check_access %x of %x {access = "load", argument = -1 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> i1
  tile.return
}

// -----

tile.func @memory() {
  // expected-error @+1 {{attribute 'argument' failed to satisfy constraint}}
  %b, %e = tile.argument_memory -1
  tile.return
}
