// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contents of a tensor map, as an attribute of its kernel argument.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUTENSORMAPATTR_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUTENSORMAPATTR_TD

include "tessera/Dialect/TileGPU/IR/TileGPULayoutAttr.td"

def TileGPU_TensorMapAttr : TileGPU_Attr<"TensorMap", "tensor_map", []> {
  let summary = "The recipe of a tensor map that the launcher makes, and its boxes";
  let description = [{
    On a kernel argument of type `!tilegpu.tensor_map`, as `tilegpu.tensor_map`. The array begins at
    the pointer that is argument number `base`. Its dimensions are given outermost first; the last
    one is that of neighbours, with a stride of 1. `extents` and `strides` (in elements) are known
    when the kernel is launched: polynomials of the kernel's integer arguments, symbol `s<n>` being
    argument number n. An unknown extent is 2^31. One copy moves `box` elements, which lie in shared
    memory in rows of the last dimension, swizzled over `swizzle` bytes.

    Rules: (D1) there are 1 to 5 dimensions, as many extents as strides as entries of the
    box; (D2) extents and strides have no dimensions (`d0`), and are sums of products of
    symbols and constants; (D3) the last stride is 1; (D4) a box has 1 to 256 elements along a
    dimension, and its rows are a multiple of 16 bytes; (D5) the swizzle is over 0 (none),
    32, 64 or 128 bytes, and a row is not longer than that.

    ```mlir
    #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1, s2] -> (s1, s2),
        strides = ()[s0, s1, s2] -> (s2, 1), box = [128, 64], swizzle = 128>
    ```
  }];
  let parameters = (ins "unsigned":$base, "::mlir::Type":$element, "::mlir::AffineMap":$extents,
                        "::mlir::AffineMap":$strides, ArrayRefParameter<"int64_t">:$box,
                        "unsigned":$swizzle);
  let assemblyFormat = [{
    `<` `base` `=` $base `,` `element` `=` $element `,` `extents` `=` $extents `,`
        `strides` `=` $strides `,` `box` `=` `[` $box `]` `,` `swizzle` `=` $swizzle `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getRank() const { return getBox().size(); }
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUTENSORMAPATTR_TD
