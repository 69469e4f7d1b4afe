// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix and stmatrix: when they move a tile between registers and shared memory, and
// with which addresses.
//
// Both instructions move 1, 2 or 4 matrices of 8 rows of 16 bytes. A row lies in one piece in
// memory, at the address that one lane gives: row i of matrix j at that of lane 8j + i. In
// registers a matrix is one word of 32 bits a lane. Lane l has word l mod 4 of row l / 4.
// Transposed, it has the 16 bits of *column* l / 4 in rows 2(l mod 4) and 2(l mod 4) + 1: one
// element each, or two neighbours of 8 bits.
//
// The columns of a layout decide whether it fits. Let C be the places in memory of registers, lanes
// and warps (in elements), with 2^k elements per word and 2^t per row. Plain:
//
//     registers 1, 2, .. of the word -> 1, .. 2^(k-1)      lanes 1, 2 -> 2^k, 2^(k+1)
//
// and transposed: lanes 4, 8, 16 -> 1, 2, 4 (of bytes 2, 4, 8, and a register of the word -> 1).
// Every other column must leave the low t bits alone: it moves whole rows (a register may move
// elements within the word too, since a register's name means nothing). The addresses follow. A
// row's lane number counts lanes 4, 8, 16 of the tile (transposed: the register within the word,
// then lanes 1, 2). Its upper two bits count the registers that number the matrices of one
// instruction. Worked example: 16 x 16 f16 of mma operand A in rows of 16 elements, C = reg (1,
// 128, 8), lane (2, 4, 16, 32, 64):
//
//     word: reg bit 0 -> 1.  matrices: reg bits 1, 2 -> 128, 8.  lane 8j + i gives
//     the address 16 i + 128 (j mod 2) + 8 (j / 2):   one ldmatrix.x4

#ifndef TESSERA_LAYOUT_MATRIXACCESS_H
#define TESSERA_LAYOUT_MATRIXACCESS_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// The instructions with which a warp moves the registers of one repeat of a tile: one for
/// each setting of `otherBits`.
struct MatrixAccess {
  /// The form with `.trans`.
  bool isTransposed = false;
  /// Bits of the register number: those of the elements in one word, low first; those that
  /// count the matrices of an instruction (at most two); and all others.
  llvm::SmallVector<unsigned, 2> wordBits, matrixBits;
  llvm::SmallVector<unsigned, 8> otherBits;
  /// The place of the row whose address lane l gives, in elements. It is the XOR of the columns of
  /// l (five), of the warp's number, and of the instruction's (columns of `otherBits`). Lanes that
  /// give no address have columns of 0.
  f2::Columns laneOffsets, warpOffsets, instructionOffsets;
  /// The change of the order of elements within a word by the register bits of a matrix and an
  /// instruction. Renaming registers compensates for it.
  f2::Columns matrixShifts, otherShifts;

  unsigned numMatrices() const { return 1u << matrixBits.size(); }
  unsigned numInstructions() const { return 1u << otherBits.size(); }
  unsigned elementsPerWord() const { return 1u << wordBits.size(); }

  /// The register that element `element` of word `matrix` of an instruction is.
  unsigned getRegister(unsigned instruction, unsigned matrix, unsigned element) const;
  /// The part of the row addresses that is an instruction's own.
  uint64_t getOffset(unsigned instruction) const {
    return f2::apply(instructionOffsets, instruction);
  }
};

/// How ldmatrix and stmatrix move a tile of `layout` (distributed) from and to `memory`,
/// for elements of `bits` bits; nothing where they do not fit. The start of the memory is
/// 16 bytes aligned.
///
/// `registerOrder` lists bits of the register number that are to be taken first, for the
/// word of the transposed form, then for matrices. The first two of an mma operand's k are
/// best there: what a word holds is then what the dot takes, without moving bytes.
std::optional<MatrixAccess> matchMatrixAccess(const LinearLayout &layout,
                                              const LinearLayout &memory, unsigned bits,
                                              llvm::ArrayRef<unsigned> registerOrder = {});

/// The number of 128-byte wavefronts that one of its instructions takes: at best one a
/// matrix.
unsigned wavefronts(const MatrixAccess &access, unsigned bits);

} // namespace tessera

#endif // TESSERA_LAYOUT_MATRIXACCESS_H
