// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (F1) of func: a kernel has no results.
// expected-error@+1 {{'tile.func' op is a kernel, and a kernel returns nothing}}
tile.func @results() -> i32 {
  %0 = tile.program_id 0
  tile.return %0 : i32
}

// -----

// (F2) of func: what a kernel takes.
// expected-error@+1 {{'tile.func' op is a kernel, and its argument #1 is a 'tensor<64xf32>'; kernels take scalars, pointers and descriptors}}
tile.func @tile_argument(%n: i32, %x: tensor<64xf32>) {
  tile.return
}

// -----

// expected-error@+1 {{'tile.func' op is a kernel, and its argument #0 is a '!tile.block_ptr<tensor<64xf32>>'; kernels take scalars, pointers and descriptors}}
tile.func @block_pointer_argument(%x: !tile.block_ptr<tensor<64xf32>>) {
  tile.return
}

// -----

// expected-error@+1 {{'tile.func' op is a kernel, and its argument #0 is a 'index'; kernels take scalars, pointers and descriptors}}
tile.func @index_argument(%x: index) {
  tile.return
}

// -----

// (F3) of func: one block.
// expected-error@+1 {{'tile.func' op has more than one block; control flow in tile IR is scf}}
tile.func @blocks() {
  cf.br ^bb1
^bb1:
  tile.return
}

// -----

// expected-error@+1 {{'tile.func' op has no body}}
tile.func private @declared()

// -----

// (R1) of return: the function's results.
tile.func private @return_types() -> i32 {
  // expected-error@+1 {{'tile.return' op gives (), but the function returns ('i32')}}
  tile.return
}

// -----

// (C1) of call: the callee is a function.
tile.func @no_callee() {
  // expected-error@+1 {{'tile.call' op calls @missing, which is not a tile.func}}
  tile.call @missing() : () -> ()
  tile.return
}

// -----

// (C1) of call: not a kernel.
tile.func @calls_kernel() {
  // expected-error@+1 {{'tile.call' op calls @calls_kernel, which is a kernel}}
  tile.call @calls_kernel() : () -> ()
  tile.return
}

// -----

// (C2) of call: the callee's type.
tile.func @call_types(%n: i64) {
  // expected-error@+1 {{'tile.call' op does not fit the callee's type '(i32) -> ()'}}
  tile.call @takes_i32(%n) : (i64) -> ()
  tile.return
}
tile.func private @takes_i32(%n: i32) {
  tile.return
}

// -----

// (P1) of program_id and num_programs: the axis.
tile.func @program_axis() {
  // expected-error@+1 {{'tile.program_id' op attribute 'axis' failed to satisfy constraint: 32-bit signless integer attribute whose minimum value is 0 whose maximum value is 2}}
  %0 = tile.program_id 3
  tile.return
}

// -----

tile.func @programs_axis() {
  // expected-error@+1 {{'tile.num_programs' op attribute 'axis' failed to satisfy constraint}}
  %0 = tile.num_programs -1
  tile.return
}

// -----

// (P1) of print: one entry an operand.
tile.func @print_signs(%n: i32) {
  // expected-error@+1 {{'tile.print' op has 1 operands but 2 entries in is_signed}}
  tile.print "n" : %n {hex = false, is_signed = array<i32: 1, 0>} : i32
  tile.return
}

// -----

// (P2) of print: one line has an element of each tile.
tile.func @print_shapes(%n: i32) {
  %x = tile.range 0 to 4 : tensor<4xi32>
  %y = tile.expand_dims %x {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  // expected-error@+1 {{'tile.print' op prints tiles of several shapes}}
  tile.print "n" : %x, %n, %y {hex = false, is_signed = array<i32: 1, 1, 1>} : tensor<4xi32>, i32, tensor<1x4xi32>
  tile.return
}

// -----

// (H1) of hint: something is promised.
tile.func @hint_nothing(%n: i32) {
  // expected-error@+1 {{'tile.hint' op promises nothing}}
  %0 = tile.hint %n : i32
  tile.return
}

// -----

// (H2) of hint: one entry a dimension.
tile.func private @hint_rank(%x: tensor<4x16xi32>) {
  // expected-error@+1 {{'tile.hint' op contiguity has 1 entries for a value of rank 2}}
  %0 = tile.hint %x {contiguity = array<i64: 4>} : tensor<4x16xi32>
  tile.return
}

// -----

// (H3) of hint: positive entries.
tile.func @hint_zero(%n: i32) {
  // expected-error@+1 {{'tile.hint' op divisibility has the entry 0, which is not positive}}
  %0 = tile.hint %n {divisibility = array<i64: 0>} : i32
  tile.return
}

// -----

// (L1) of lookup: there is an item.
tile.func @lookup_nothing(%n: i32) {
  // expected-error@+1 {{'tile.lookup' op has no items}}
  %0 = tile.lookup %n, [] : i32, f32
  tile.return
}

// -----

// (L2) of lookup: items have the type of the result.
tile.func @lookup_types(%n: i32, %p: !tile.ptr<f32>) {
  // expected-error@+1 {{'tile.lookup' op gives 'i32', but an item is '!tile.ptr<f32>'}}
  %0 = "tile.lookup"(%n, %n, %p) : (i32, i32, !tile.ptr<f32>) -> i32
  tile.return
}
