// RUN: tessera-opt %s --tilegpu-mark-boxes | FileCheck %s
// RUN: not tessera-opt %s --convert-tilegpu-to-llvm 2>&1 | FileCheck %s --check-prefix=UNMARKED

#tile = #tilegpu.layout<8x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [0, 64]]>
!tile = !tilegpu.memdesc<8x128xbf16, #tile>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: @stored
  tile.func @stored(%p: !tile.ptr<bf16>, %i: i32, %j: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
      #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (64, 128), strides = () -> (128, 1), box = [8, 64], swizzle = 128>}) {
    %out = tilegpu.local_alloc {tilegpu.shared_offset = 2048 : i32} : () -> !tile
    // CHECK: tilegpu.tma_store {{.+}} {tilegpu.box_rows = 8 : i64}
    // UNMARKED: does not say of which boxes it is: tilegpu-mark-boxes notes that
    tilegpu.tma_store %out, %map[%i, %j] : !tile
    tile.return
  }
}
