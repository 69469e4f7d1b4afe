// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile in shared memory, as the code of one thread sees it.
//
// The place of an element is a linear map of its number. The element of a register is a linear map
// of lane, warp and register number. So the address of a register is `thread part XOR register
// part`: the thread part is computed once, the register part is a constant. If the thread part
// cannot set any bit of the constant, XOR is addition, and the constant goes into the instruction.
// Registers that lie side by side are moved at once, up to 16 bytes; or, where that is cheaper and
// the GPU has them, by ldmatrix and stmatrix (Layout/MatrixAccess.h).

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_SHAREDTILE_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_SHAREDTILE_H

#include "Fragments/Fragment.h"
#include "tessera/Layout/MemoryExchange.h"

namespace tessera {

/// The memory layout in which elements lie in row-major order.
LinearLayout getRowMajorMemory(llvm::ArrayRef<int64_t> shape);

/// The matrix instructions of the GPU that an op is compiled for.
MatrixInstructions getMatrixInstructions(mlir::Operation *op);

/// Bytes that an element of this type takes, for a type of a register.
int64_t getMemoryBytes(mlir::Type registerType);

class SharedTile {
public:
  /// `memory` has offset columns. `base` is a pointer to shared memory, 16 bytes aligned;
  /// `element` the type of a register. Repeats of odd extents follow one another, at
  /// `repeatBytes` if that is not 0. `matrices` may be used where all lanes of a warp load
  /// or store together.
  SharedTile(mlir::Value base, const LinearLayout &memory, mlir::Type element,
             int64_t repeatBytes = 0, MatrixInstructions matrices = {});

  /// The same tile at another place.
  SharedTile at(mlir::Value newBase) const {
    SharedTile moved = *this;
    moved.base = newBase;
    return moved;
  }

  /// Stores the registers that a thread has in this layout. If several threads have copies of an
  /// element, each stores it.
  void store(ThreadBuilder &thread, const LinearLayout &layout, mlir::ValueRange registers) const;

  /// Loads the registers that a thread has in this layout. With a `distance`: those at
  /// elements whose number differs from the thread's own by these bits. `warp` stands for
  /// the warp's number if it is given: further bits of it can say which part of a tile.
  llvm::SmallVector<mlir::Value> load(ThreadBuilder &thread, const LinearLayout &layout,
                                      uint64_t distance = 0, mlir::Value warp = {}) const;

  /// A pointer to the element at these coordinates (i32).
  mlir::Value getAddress(ThreadBuilder &thread, llvm::ArrayRef<mlir::Value> coordinates) const;

  /// One element from or to such a pointer.
  mlir::Value loadElement(ThreadBuilder &thread, mlir::Value pointer) const;
  void storeElement(ThreadBuilder &thread, mlir::Value pointer, mlir::Value value) const;

  /// Registers that one access moves, in memory order.
  struct Access {
    llvm::SmallVector<int64_t, 16> registers;
    mlir::Value pointer;
  };
  /// The accesses that move the registers of a thread, at a distance as for load.
  llvm::SmallVector<Access> plan(ThreadBuilder &thread, const LinearLayout &layout,
                                 uint64_t distance = 0, mlir::Value warp = {}) const;

private:
  /// Matrix instructions for a layout, if they are there and cheaper.
  std::optional<MatrixAccess> planMatrices(const LinearLayout &layout, bool isThere) const;
  /// The address that a lane gives to each instruction, of each repeat; `distance` and `warp`
  /// as for load.
  llvm::SmallVector<mlir::Value> getRowAddresses(ThreadBuilder &thread, const MatrixAccess &access,
                                                 int64_t repeats, uint64_t distance = 0,
                                                 mlir::Value warp = {}) const;
  void storeMatrices(ThreadBuilder &thread, const MatrixAccess &access,
                     mlir::ValueRange registers) const;
  llvm::SmallVector<mlir::Value> loadMatrices(ThreadBuilder &thread, const MatrixAccess &access,
                                              int64_t repeats, uint64_t distance,
                                              mlir::Value warp) const;
  /// The type that n elements are moved as.
  mlir::Type getAccessType(ThreadBuilder &thread, size_t count) const;

  mlir::Value base;
  LinearLayout memory;
  mlir::Type element;
  int64_t bytes, repeatBytes;
  MatrixInstructions matrices;
  /// The offset in bytes of each bit of an element's number.
  f2::Columns offsets;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_SHAREDTILE_H
