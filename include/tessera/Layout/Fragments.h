// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registers of MMA instructions: who holds which elements of a result and of operands.

#ifndef TESSERA_LAYOUT_FRAGMENTS_H
#define TESSERA_LAYOUT_FRAGMENTS_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// The accumulator of mma.sync m16n8 (f32, s32, f16), over `warpsM` x `warpsN` warps, n
/// fastest. The shape is (M, N).
LinearLayout mmaAccumulator(llvm::ArrayRef<int64_t> shape, unsigned warpsM, unsigned warpsN);

/// Operand A (M, K) or B (K, N) of mma.sync for elements of `bits` bits: `kRegisters`
/// registers of 32 bits along k (2 for m16n8k16 of 16-bit elements). Warps as in the
/// accumulator: those along the other operand's dimension hold copies.
LinearLayout mmaOperandA(llvm::ArrayRef<int64_t> shape, unsigned bits, unsigned kRegisters,
                         unsigned warpsM, unsigned warpsN);
LinearLayout mmaOperandB(llvm::ArrayRef<int64_t> shape, unsigned bits, unsigned kRegisters,
                         unsigned warpsM, unsigned warpsN);

/// The accumulator of wgmma m64nN over warpgroups along m, then `groupsN` along n.
LinearLayout wgmmaAccumulator(llvm::ArrayRef<int64_t> shape, unsigned groupsM, unsigned groupsN);

/// Operand A of wgmma in registers, for elements of `bits` bits. The shape is (M, K).
LinearLayout wgmmaOperandA(llvm::ArrayRef<int64_t> shape, unsigned bits, unsigned groupsM,
                           unsigned groupsN);

} // namespace tessera

#endif // TESSERA_LAYOUT_FRAGMENTS_H
