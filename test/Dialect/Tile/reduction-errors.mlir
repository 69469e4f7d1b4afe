// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (R1) of reduce: the axis.
tile.func private @reduce_axis(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.reduce' op has axis 1 for tiles of rank 1}}
  %0 = tile.reduce (%x) {axis = 1 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.reduce_return %a : f32
  }
  tile.return
}

// -----

// (R2) of reduce: an operand.
tile.func private @reduce_operands() {
  // expected-error@+1 {{'tile.reduce' op expected 1 or more operands, but found 0}}
  "tile.reduce"() <{axis = 0 : i32}> ({
    "tile.reduce_return"() : () -> ()
  }) : () -> ()
  tile.return
}

// -----

// (R3) of reduce: what the region takes.
tile.func private @reduce_arguments(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.reduce' op region takes 'f32', wanted is 'f32', 'f32'}}
  %0 = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32):
    tile.reduce_return %a : f32
  }
  tile.return
}

// -----

// (R3) of reduce: what it returns.
tile.func private @reduce_returns(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.reduce' op region does not return 'f32'}}
  %0 = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.reduce_return %a, %b : f32, f32
  }
  tile.return
}

// -----

// The result is the operand without the axis.
tile.func private @reduce_result(%x: tensor<64x32xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{'tile.reduce' op inferred type(s) 'tensor<64xf32>' are incompatible with return type(s) of operation 'tensor<32xf32>'}}
  %0 = tile.reduce (%x) {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<32xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.reduce_return %a : f32
  }
  tile.return
}

// -----

// (R1) of scan: the axis.
tile.func private @scan_axis(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.scan' op has axis -1 for tiles of rank 1}}
  %0 = tile.scan (%x) {axis = -1 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.scan_return %a : f32
  }
  tile.return
}

// -----

// (R3) of scan: the region.
tile.func private @scan_region(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.scan' op region takes 'f64', 'f64', wanted is 'f32', 'f32'}}
  %0 = tile.scan (%x) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: f64, %b: f64):
    tile.scan_return %a : f64
  }
  tile.return
}

// -----

// (R4) of scan: result types.
tile.func private @scan_result(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.scan' op takes 'tensor<64xf32>' but gives 'tensor<64xf16>'}}
  %0 = tile.scan (%x) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf16> {
  ^bb0(%a: f32, %b: f32):
    tile.scan_return %a : f32
  }
  tile.return
}

// -----

// (H1) of histogram: rank 1.
tile.func private @histogram_rank(%x: tensor<16x16xi32>) {
  // expected-error@+1 {{'tile.histogram' op operand #0 must be 1D tensor of 32-bit signless integer values, but got 'tensor<16x16xi32>'}}
  %0 = tile.histogram %x : tensor<16x16xi32> -> tensor<64xi32>
  tile.return
}

// -----

// (H2) of histogram: the mask.
tile.func private @histogram_mask(%x: tensor<256xi32>, %m: tensor<64xi1>) {
  // expected-error@+1 {{'tile.histogram' op has a mask of type 'tensor<64xi1>' for elements of type 'tensor<256xi32>'}}
  %0 = tile.histogram %x, %m : tensor<256xi32>, tensor<64xi1> -> tensor<64xi32>
  tile.return
}

// -----

// (G1) of gather: the axis.
tile.func private @gather_axis(%x: tensor<64xf32>, %i: tensor<16xi32>) {
  // expected-error@+1 {{'tile.gather' op has axis 1 for tiles of rank 1}}
  %0 = tile.gather %x, %i {axis = 1 : i32} : tensor<64xf32>, tensor<16xi32> -> tensor<16xf32>
  tile.return
}

// -----

// (G1) of gather: ranks.
tile.func private @gather_rank(%x: tensor<64xf32>, %i: tensor<16x16xi32>) {
  // expected-error@+1 {{'tile.gather' op has an index of rank 2 for a source of rank 1}}
  %0 = tile.gather %x, %i {axis = 0 : i32} : tensor<64xf32>, tensor<16x16xi32> -> tensor<16x16xf32>
  tile.return
}

// -----

// (G2) of gather: extents but along the axis.
tile.func private @gather_extents(%x: tensor<64x32xf32>, %i: tensor<16x16xi32>) {
  // expected-error@+1 {{'tile.gather' op has extents 32 and 16 in dimension 1}}
  %0 = tile.gather %x, %i {axis = 0 : i32} : tensor<64x32xf32>, tensor<16x16xi32> -> tensor<16x16xf32>
  tile.return
}

// -----

// (G3) of gather: the result.
tile.func private @gather_result(%x: tensor<64xf32>, %i: tensor<16xi32>) {
  // expected-error@+1 {{'tile.gather' op gives 'tensor<64xf32>' from a source of type 'tensor<64xf32>' and an index of type 'tensor<16xi32>'}}
  %0 = tile.gather %x, %i {axis = 0 : i32} : tensor<64xf32>, tensor<16xi32> -> tensor<64xf32>
  tile.return
}

// -----

// (S1) of sort: the axis.
tile.func private @sort_axis(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.sort' op has axis 1 for tiles of rank 1}}
  %0 = tile.sort (%x) {axis = 1 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    tile.sort_return %less : i1
  }
  tile.return
}

// -----

// (S2) of sort: result types.
tile.func private @sort_result(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.sort' op takes 'tensor<64xf32>' but gives 'tensor<64xf16>'}}
  %0 = tile.sort (%x) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf16> {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    tile.sort_return %less : i1
  }
  tile.return
}

// -----

// (S3) of sort: two keys.
tile.func private @sort_region(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.sort' op region takes 'f32', wanted are two keys of 'f32'}}
  %0 = tile.sort (%x) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32):
    %less = arith.cmpf olt, %a, %a : f32
    tile.sort_return %less : i1
  }
  tile.return
}

// -----

// (S3) of sort: an answer.
tile.func private @sort_returns(%x: tensor<64xf32>) {
  %0 = tile.sort (%x) {axis = 0 : i32} : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'tile.sort_return' op operand #0 must be 1-bit signless integer, but got 'f32'}}
    "tile.sort_return"(%a) : (f32) -> ()
  }
  tile.return
}
