// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A layout as something a person can read: a table of places in the shape of the tile, or
// a drawing of it. And back: a layout from the name of its constructor.

#ifndef TESSERA_LAYOUT_LAYOUTPRINTER_H
#define TESSERA_LAYOUT_LAYOUTPRINTER_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// The places of each element, row by row (higher dimensions one matrix after another):
/// "w1 l5 r2" for warp 1, lane 5, register 2; "o17" for offset 17. Copies follow a comma.
void printTable(const LinearLayout &layout, llvm::raw_ostream &os);

/// A layout of memory by banks: a row for each 128 bytes, and a column for each of the 32 banks,
/// with the coordinates of the element there. `bits` is the element's width.
void printBanks(const LinearLayout &memory, unsigned bits, llvm::raw_ostream &os);

/// The table as an SVG: a cell an element, coloured by the lane (the bank, for memory) of
/// its first place, labelled with all of it. `bits` is the element's width, for banks.
void drawSvg(const LinearLayout &layout, unsigned bits, llvm::raw_ostream &os);

/// A layout from text such as
///
///     blocked 64x32 registers=2,4 lanes=8,4 warps=2,1 order=1,0
///     mma-accumulator 64x64 warps=2,2            wgmma-accumulator 64x128 groups=1,1
///     mma-operand-a 64x32 bits=16 k=2 warps=2,2  mma-operand-b 32x64 bits=16 k=2 warps=2,2
///     wgmma-operand-a 64x16 bits=16 groups=1,1
///     swizzle 16x64 vec=8 per-phase=1 max-phase=8
///     nvidia-swizzle 16x64 width=128 bits=16
///     columns 8x8 reg=1,2 lane=4,8,16,0,0 warp=32        columns 2x2 offset=1,2
///
/// The last form takes the columns themselves, as element numbers.
/// On a mistake: nothing, and `error` says what is wrong.
std::optional<LinearLayout> parseLayout(llvm::StringRef text, std::string &error);

} // namespace tessera

#endif // TESSERA_LAYOUT_LAYOUTPRINTER_H
