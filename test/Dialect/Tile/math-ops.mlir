// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @integers
tile.func private @integers(%a: tensor<64xi32>, %b: i64) {
  // CHECK: tile.div_int signed %{{.+}}, %{{.+}} : tensor<64xi32>
  %0 = tile.div_int signed %a, %a : tensor<64xi32>
  // CHECK: tile.rem_int unsigned %{{.+}}, %{{.+}} : i64
  %1 = tile.rem_int unsigned %b, %b : i64
  // CHECK: tile.shift left %{{.+}}, %{{.+}} : i64
  %2 = tile.shift left %b, %b : i64
  // CHECK: tile.shift right_logical %{{.+}}, %{{.+}} : tensor<64xi32>
  %3 = tile.shift right_logical %a, %a : tensor<64xi32>
  // CHECK: tile.shift right_arithmetic %{{.+}}, %{{.+}} : tensor<64xi32>
  %4 = tile.shift right_arithmetic %a, %a : tensor<64xi32>
  // CHECK: tile.mulhi %{{.+}}, %{{.+}} : tensor<64xi32>
  %5 = tile.mulhi %a, %a : tensor<64xi32>
  tile.return
}

// CHECK-LABEL: tile.func private @floats
tile.func private @floats(%x: tensor<64xf32>, %s: f64) {
  // CHECK: tile.fp_to_int signed %{{.+}} : tensor<64xf32> -> tensor<64xi8>
  %0 = tile.fp_to_int signed %x : tensor<64xf32> -> tensor<64xi8>
  // CHECK: tile.fp_to_int unsigned %{{.+}} : f64 -> i64
  %1 = tile.fp_to_int unsigned %s : f64 -> i64
  // CHECK: tile.fp_to_fp %{{.+}} {rounding = 1 : i32} : tensor<64xf32> -> tensor<64xbf16>
  %2 = tile.fp_to_fp %x {rounding = 1 : i32} : tensor<64xf32> -> tensor<64xbf16>
  // CHECK: tile.fp_to_fp %{{.+}} : tensor<64xbf16> -> tensor<64xf8E4M3FN>
  %3 = tile.fp_to_fp %2 : tensor<64xbf16> -> tensor<64xf8E4M3FN>
  // CHECK: tile.clamp %{{.+}}, %{{.+}}, %{{.+}} {propagate_nan} : tensor<64xf32>
  %4 = tile.clamp %x, %x, %x {propagate_nan} : tensor<64xf32>
  // CHECK: tile.precise_sqrt %{{.+}} : tensor<64xf32>
  %5 = tile.precise_sqrt %x : tensor<64xf32>
  // CHECK: tile.precise_div %{{.+}}, %{{.+}} : f64
  %6 = tile.precise_div %s, %s : f64
  tile.return
}

// CHECK-LABEL: tile.func private @foreign
tile.func private @foreign(%x: tensor<64xf32>, %y: tensor<64xi32>) {
  // CHECK: tile.extern_elementwise "__nv_asinf" %{{.+}} {pure} : (tensor<64xf32>) -> tensor<64xf32>
  %0 = tile.extern_elementwise "__nv_asinf" %x {pure} : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: tile.extern_elementwise "soften" %{{.+}} {digest = "0123", library = "/opt/soften.bc"} : (tensor<64xf32>) -> tensor<64xf32>
  %soft = tile.extern_elementwise "soften" %x {library = "/opt/soften.bc", digest = "0123"} : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: tile.inline_asm "shl.b32 $0, $1, 3;" constraints("=r,r") pure packed 1 %{{.+}} : (tensor<64xi32>) -> tensor<64xi32>
  %1 = tile.inline_asm "shl.b32 $0, $1, 3;" constraints("=r,r") pure packed 1 %y : (tensor<64xi32>) -> tensor<64xi32>
  // CHECK: tile.inline_asm "" constraints("=r,=r") packed 4 : () -> (tensor<64xi8>, tensor<64xi8>)
  %2:2 = tile.inline_asm "" constraints("=r,=r") packed 4 : () -> (tensor<64xi8>, tensor<64xi8>)
  // CHECK: tile.map_elementwise %{{.+}}, %{{.+}} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32> {
  // CHECK: ^bb0(%{{.+}}: f32, %{{.+}}: i32):
  // CHECK: tile.map_return %{{.+}} : f32
  %3 = tile.map_elementwise %x, %y : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: i32):
    %c = arith.sitofp %b : i32 to f32
    tile.map_return %c : f32
  }
  tile.return
}
