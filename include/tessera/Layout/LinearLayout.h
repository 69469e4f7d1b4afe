// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear layouts: where the elements of a tile live.
//
// A tile with extents that are powers of two has indices that are bit strings. So have
// the places where its elements can be: register r of lane l of warp w of block b, or
// offset o of shared memory. A layout is a linear map over F2 from places to elements:
//
//     L(reg, lane, warp, block) = the element that is there
//
// It is linear: its columns are the elements at the places with a single bit set. The element at
// any other place is the XOR of the columns of that place's bits. It maps places to elements,
// because a place holds one element, while an element may be in several places. In that case a
// column is 0, or columns are linearly dependent.
//
// Elements are numbered in row-major order, the last dimension in the low bits. With
// that numbering a reshape changes no column, and a transposition permutes the bits of
// each.
//
// Worked example: a 4x4 tile over 4 lanes with 4 registers each, a row of 4 a lane.
//
//     reg  columns  1, 2         registers count along the row:   bit 0, bit 1 of the column
//     lane columns  4, 8         lanes count rows:                bit 0, bit 1 of the row
//
//     element   (0,0) (0,1) (0,2) (0,3)  (1,0) ...
//     is at     l0r0  l0r1  l0r2  l0r3   l1r0  ...
//
// Register 3 of lane 2 is at bits reg = 11, lane = 10, so it holds 1 ^ 2 ^ 8 = 11 = (2, 3).
// Swap the two lists and lanes hold columns of the tile; set a lane column to 0 and two
// lanes hold copies.
//
// Two classes of layouts occur on types, and every shape operation stays within its class:
//  - distributed (registers): each column is 0 or a distinct power of two, every element
//    is somewhere. Registers are sorted and zero register columns are dropped (canonical),
//    because the name of a register means nothing: layouts that differ by that alone are
//    equal.
//  - memory (`Offset`): an invertible matrix. Columns with several bits are swizzles.
//
// An extent odd * 2^k has its 2^k part in the map; the odd factor is an outermost repeat,
// whole copies of the map one after another (`odd`).

#ifndef TESSERA_LAYOUT_LINEARLAYOUT_H
#define TESSERA_LAYOUT_LINEARLAYOUT_H

#include "tessera/Layout/F2Matrix.h"

#include <array>
#include <string>

namespace llvm {
class raw_ostream;
}

namespace tessera {

/// The parts of a place.
enum class HwDim : uint8_t { Reg, Lane, Warp, Block, Offset };
inline constexpr unsigned kNumHwDims = 5;
inline constexpr std::array<HwDim, kNumHwDims> kAllHwDims = {HwDim::Reg, HwDim::Lane, HwDim::Warp,
                                                             HwDim::Block, HwDim::Offset};

/// "reg", "lane", "warp", "block", "offset".
llvm::StringRef getName(HwDim dim);

/// A set of parts of a place.
class HwDimSet {
public:
  HwDimSet(std::initializer_list<HwDim> dims = {}) {
    for (HwDim dim : dims)
      bits |= 1u << static_cast<unsigned>(dim);
  }
  bool contains(HwDim dim) const { return bits >> static_cast<unsigned>(dim) & 1; }

private:
  unsigned bits = 0;
};

/// A place: one number for each part.
using Place = std::array<uint64_t, kNumHwDims>;

class LinearLayout {
public:
  LinearLayout() = default;
  /// A layout of a tile of these extents with no columns yet. Extents are powers of two
  /// or odd * 2^k.
  explicit LinearLayout(llvm::ArrayRef<int64_t> shape);

  // --- What it is ---------------------------------------------------------------

  llvm::ArrayRef<uint64_t> columns(HwDim dim) const { return in[static_cast<unsigned>(dim)]; }
  f2::Columns &columns(HwDim dim) { return in[static_cast<unsigned>(dim)]; }
  /// All columns, in the order Reg, Lane, Warp, Block, Offset.
  f2::Columns allColumns() const;

  unsigned rank() const { return log2.size(); }
  /// log2 of the power-of-two part of an extent, and its odd part.
  unsigned dimBits(unsigned dim) const { return log2[dim]; }
  uint32_t oddFactor(unsigned dim) const { return odd[dim]; }
  int64_t extent(unsigned dim) const { return int64_t(odd[dim]) << log2[dim]; }
  llvm::SmallVector<int64_t> shape() const;
  /// Bits of an element's number: the sum of dimBits.
  unsigned elementBits() const;
  /// The position of bit 0 of a dimension in an element's number.
  unsigned dimShift(unsigned dim) const;
  /// The bits of a dimension in an element's number.
  uint64_t dimMask(unsigned dim) const;

  bool operator==(const LinearLayout &other) const;
  bool operator!=(const LinearLayout &other) const { return !(*this == other); }

  /// The element at a place.
  uint64_t apply(const Place &place) const;
  /// An element's number as coordinates (of one repeat), and back.
  llvm::SmallVector<int64_t> coordinates(uint64_t element) const;
  uint64_t element(llvm::ArrayRef<int64_t> coordinates) const;

  bool isSurjective() const;
  bool isInjective() const;

  /// The reason why this is not a distributed (memory) layout; empty if it is one.
  std::string whyNotDistributed() const;
  std::string whyNotMemory() const;

  /// For a memory layout: the offset of each bit of an element's number, by XOR. With block columns
  /// it is the offset in the memory of the block that has the element. Nothing if two elements
  /// would be at one place.
  std::optional<f2::Columns> memoryOffsets() const;

  /// Registers sorted, zero register columns dropped.
  LinearLayout canonical() const;

  /// The bits of each part that only distinguish copies. The place with all of these 0 is the
  /// representative of its element. Bits of registers are preferred to those of lanes, then of
  /// warps, then of blocks.
  Place freeBits() const;

  // --- What shape operations make of it --------------------------------------------

  /// The same elements in row-major order under another shape. Nothing if that would cut
  /// through an odd factor.
  std::optional<LinearLayout> reshape(llvm::ArrayRef<int64_t> shape) const;
  /// Dimension d of the result is dimension `order[d]`.
  LinearLayout transpose(llvm::ArrayRef<unsigned> order) const;
  LinearLayout expandDims(unsigned axis) const;
  /// A new last dimension of 2, in a register.
  LinearLayout join() const;
  /// The inverse of join. Nothing if the last dimension is not of 2 in a register.
  std::optional<LinearLayout> split() const;
  /// The layout after `axis` is reduced away: copies where the axis was.
  LinearLayout project(unsigned axis) const;
  /// The same with the whole tile in each block: what blocks had a part of, registers count.
  LinearLayout inEachBlock() const;

  // --- Making layouts --------------------------------------------------------------

  /// `inner` tiled by `outer`: outer counts whole tiles of inner, dimension by dimension.
  static LinearLayout product(const LinearLayout &inner, const LinearLayout &outer);
  /// Adds columns that count the next `size` indices of `dim` (a power of two; of
  /// nothing, i.e. copies, if `dim` is none). `used` is the number of bits of each
  /// dimension that earlier atoms took.
  void addAtom(HwDim hw, std::optional<unsigned> dim, uint64_t size,
               llvm::SmallVectorImpl<unsigned> &used);

  void print(llvm::raw_ostream &os) const;

private:
  std::array<f2::Columns, kNumHwDims> in;
  llvm::SmallVector<uint8_t, 4> log2;
  llvm::SmallVector<uint32_t, 4> odd;
};

} // namespace tessera

#endif // TESSERA_LAYOUT_LINEARLAYOUT_H
