// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fixed facts of ldmatrix and stmatrix, which copy small matrices between registers and shared
// memory. They are the same on every GPU that has the instructions.

#ifndef TESSERA_MACHINE_MATRIXCOPY_H
#define TESSERA_MACHINE_MATRIXCOPY_H

namespace tessera {

struct MatrixCopy {
  /// Bytes of a row.
  static constexpr unsigned kRowBytes = 16;
  /// The width of elements of which columns can be copied in place of rows.
  static constexpr unsigned kTransposedBits = 16;
};

} // namespace tessera

#endif // TESSERA_MACHINE_MATRIXCOPY_H
