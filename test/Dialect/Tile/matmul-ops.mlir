// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @dot
tile.func private @dot(%a: tensor<64x32xf16>, %b: tensor<32x128xf16>, %c: tensor<64x128xf32>, %h: tensor<64x128xf16>,
                       %x: tensor<4x16x8xf32>, %y: tensor<4x8x16xf32>, %z: tensor<4x16x16xf32>,
                       %i: tensor<16x32xi8>, %j: tensor<32x16xi8>, %k: tensor<16x16xi32>,
                       %e5: tensor<16x32xf8E5M2>, %e4: tensor<32x16xf8E4M3FN>, %w: tensor<16x16xf32>) {
  // CHECK: tile.dot %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf32>
  // CHECK: tile.dot %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf16>
  %1 = tile.dot %a, %b, %h : tensor<64x32xf16>, tensor<32x128xf16> -> tensor<64x128xf16>
  // CHECK: tile.dot %{{.+}}, %{{.+}}, %{{.+}} {precision = 0 : i32} : tensor<4x16x8xf32>, tensor<4x8x16xf32> -> tensor<4x16x16xf32>
  %2 = tile.dot %x, %y, %z {precision = 0 : i32} : tensor<4x16x8xf32>, tensor<4x8x16xf32> -> tensor<4x16x16xf32>
  // CHECK: tile.dot %{{.+}}, %{{.+}}, %{{.+}} : tensor<16x32xi8>, tensor<32x16xi8> -> tensor<16x16xi32>
  %3 = tile.dot %i, %j, %k : tensor<16x32xi8>, tensor<32x16xi8> -> tensor<16x16xi32>
  // CHECK: tile.dot %{{.+}}, %{{.+}}, %{{.+}} {max_imprecise_acc = 128 : i32} : tensor<16x32xf8E5M2>, tensor<32x16xf8E4M3FN> -> tensor<16x16xf32>
  %4 = tile.dot %e5, %e4, %w {max_imprecise_acc = 128 : i32} : tensor<16x32xf8E5M2>, tensor<32x16xf8E4M3FN> -> tensor<16x16xf32>
  tile.return
}

// CHECK-LABEL: tile.func private @dot_scaled
tile.func private @dot_scaled(%a: tensor<64x32xi8>, %sa: tensor<64x2xi8>, %b: tensor<64x128xf8E4M3FN>, %sb: tensor<128x4xi8>,
                              %c: tensor<64x128xf32>, %h: tensor<64x64xbf16>) {
  // CHECK: tile.dot_scaled %{{.+}} scale %{{.+}} as e2m1, %{{.+}} scale %{{.+}} as e4m3, %{{.+}} : tensor<64x32xi8> scale tensor<64x2xi8>, tensor<64x128xf8E4M3FN> scale tensor<128x4xi8> -> tensor<64x128xf32>
  %0 = tile.dot_scaled %a scale %sa as e2m1, %b scale %sb as e4m3, %c : tensor<64x32xi8> scale tensor<64x2xi8>, tensor<64x128xf8E4M3FN> scale tensor<128x4xi8> -> tensor<64x128xf32>
  // CHECK: tile.dot_scaled %{{.+}} as bf16, %{{.+}} as e4m3, %{{.+}} {fast_math} : tensor<64x64xbf16>, tensor<64x128xf8E4M3FN> -> tensor<64x128xf32>
  %1 = tile.dot_scaled %h as bf16, %b as e4m3, %c {fast_math} : tensor<64x64xbf16>, tensor<64x128xf8E4M3FN> -> tensor<64x128xf32>
  tile.return
}

// CHECK-LABEL: tile.func private @dot_scaled_batches
tile.func private @dot_scaled_batches(%a: tensor<4x64x32xi8>, %s: tensor<4x64x4xf8E4M3FN>, %b: tensor<4x64x16xbf16>, %c: tensor<4x64x16xf32>) {
  // CHECK: tile.dot_scaled %{{.+}} scale %{{.+}} as e2m1, %{{.+}} as bf16, %{{.+}} : tensor<4x64x32xi8> scale tensor<4x64x4xf8E4M3FN>, tensor<4x64x16xbf16> -> tensor<4x64x16xf32>
  %0 = tile.dot_scaled %a scale %s as e2m1, %b as bf16, %c : tensor<4x64x32xi8> scale tensor<4x64x4xf8E4M3FN>, tensor<4x64x16xbf16> -> tensor<4x64x16xf32>
  tile.return
}
