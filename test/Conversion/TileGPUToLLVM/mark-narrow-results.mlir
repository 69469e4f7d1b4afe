// RUN: tessera-opt %s --split-input-file --tilegpu-mark-narrow-results | FileCheck %s

#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: @rounded
  tile.func private @rounded(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    // CHECK: math.exp %{{.+}} {tilegpu.narrow_result}
    %e = math.exp %x : tensor<32xf32, #line>
    %y = arith.mulf %e, %e : tensor<32xf32, #line>
    %z = tile.fp_to_fp %y : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }

  // A difference has fewer bits than what it is made of.
  // CHECK-LABEL: @cancelled
  tile.func private @cancelled(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %y = arith.subf %e, %x : tensor<32xf32, #line>
    %z = tile.fp_to_fp %y : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }

  // CHECK-LABEL: @also_whole
  tile.func private @also_whole(%x: tensor<32xf32, #line>) -> (tensor<32xf32, #line>, tensor<32xbf16, #line>) {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %z = tile.fp_to_fp %e : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %e, %z : tensor<32xf32, #line>, tensor<32xbf16, #line>
  }
}

// -----

#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.deterministic, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: @deterministic
  tile.func private @deterministic(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %z = tile.fp_to_fp %e : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }
}
