// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matches copies of tiles between registers and shared memory with ldmatrix and stmatrix, and
// computes their addresses.
//
// Both instructions move 1, 2 or 4 matrices of 8 rows of 16 bytes. A row is contiguous in memory,
// at the address of one lane: row i of matrix j at that of lane 8j + i. In registers a matrix is
// one word of 32 bits a lane. Lane l has word l mod 4 of row l / 4. If it is transposed, the word
// has 16 bits of *column* l / 4 in each of the rows 2(l mod 4) and 2(l mod 4) + 1. These are one
// element each, or two neighbours of 8 bits.
//
// The columns of a layout decide if it fits. Let C be the places in memory of registers, lanes and
// warps (in elements), with 2^k elements per word and 2^t per row. Plain:
//
//     registers 1, 2, .. of the word -> 1, .. 2^(k-1)      lanes 1, 2 -> 2^k, 2^(k+1)
//
// and transposed: lanes 4, 8, 16 -> 1, 2, 4 (of bytes 2, 4, 8, and a register of the word -> 1).
// Every other column must not change the low t bits, so that it moves whole rows. A register is an
// exception: it may permute elements within the word, since registers can be renamed. The addresses
// follow. A row's lane number counts lanes 4, 8, 16 of the tile (transposed: the register within
// the word, then lanes 1, 2). Its upper two bits count the registers that number the matrices of
// one instruction. Worked example: 16 x 16 f16 of mma operand A in rows of 16 elements, C = reg (1,
// 128, 8), lane (2, 4, 16, 32, 64):
//
//     word: reg bit 0 -> 1.  matrices: reg bits 1, 2 -> 128, 8.  lane 8j + i gives
//     the address 16 i + 128 (j mod 2) + 8 (j / 2):   one ldmatrix.x4

#ifndef TESSERA_LAYOUT_MATRIXACCESS_H
#define TESSERA_LAYOUT_MATRIXACCESS_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// The instructions by which a warp copies the registers of one repeat of a tile: one for each
/// value of `otherBits`.
struct MatrixAccess {
  /// The form with `.trans`.
  bool isTransposed = false;
  /// The bits of the register number: those of the elements in one word, low ones first; at most
  /// two that count the matrices of an instruction; and all others.
  llvm::SmallVector<unsigned, 2> wordBits, matrixBits;
  llvm::SmallVector<unsigned, 8> otherBits;
  /// The offset of the row whose address lane l provides, in elements. It is the XOR of the columns
  /// of l (five), of the warp's number, and of the instruction's (columns of `otherBits`). Lanes
  /// without an address have columns of 0.
  f2::Columns laneOffsets, warpOffsets, instructionOffsets;
  /// The change of the order of elements within a word by the register bits of a matrix and an
  /// instruction. Renaming registers compensates for it.
  f2::Columns matrixShifts, otherShifts;

  unsigned numMatrices() const { return 1u << matrixBits.size(); }
  unsigned numInstructions() const { return 1u << otherBits.size(); }
  unsigned elementsPerWord() const { return 1u << wordBits.size(); }

  /// The register of element `element` of word `matrix` of an instruction.
  unsigned getRegister(unsigned instruction, unsigned matrix, unsigned element) const;
  /// The part of the row addresses that depends on the instruction.
  uint64_t getOffset(unsigned instruction) const {
    return f2::apply(instructionOffsets, instruction);
  }
};

/// Matches a copy of a tile of `layout` (distributed) from or to `memory`, for elements of `bits`
/// bits, with ldmatrix and stmatrix. Returns nothing if they do not fit. The start of the memory
/// must be 16-byte aligned.
///
/// With `isOperand`, words and matrices follow the order in which an MMA reads a fragment. It then
/// reads the registers that one instruction wrote, without moves. Otherwise they follow the numbers
/// of registers.
std::optional<MatrixAccess> matchMatrixAccess(const LinearLayout &layout,
                                              const LinearLayout &memory, unsigned bits,
                                              bool isOperand = false);

/// The number of 128-byte wavefronts of one instruction: at best one a matrix.
unsigned wavefronts(const MatrixAccess &access, unsigned bits);

} // namespace tessera

#endif // TESSERA_LAYOUT_MATRIXACCESS_H
