// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variants of one kernel, and the choice of one for each launch.
//
// One specialisation of a kernel is compiled more than once, with different options. The fastest
// code relies on properties that not every launch has:
//
//     Usual        relies on the launch conditions of its metadata: indices do not wrap, arrays do
//                  not overlap, TMA can move boxes of them
//     Unlimited    relies on none of that (the option tensor_maps=False)
//     SplitIn2/4/8 has clusters of so many blocks, which divide a sum of dots (num_ctas, split_k)
//     PairOfTiles  has clusters of two blocks, which divide the program's tiles
//     ShortLoops   has few loads in flight, and so more programs an SM (short_loops)
//
// A persistent kernel is no variant: the launcher itself starts fewer programs. One of the launch
// conditions is that 32 bits can count its programs.
//
// A family begins with the usual variant alone. The caller of a launch compiles another variant
// when it is needed first, and adds it. So a launch has three steps:
//
//     choose       Few programs: the division that DivisibleSum prefers, if its variant accepts the
//                  launch. Short loops: their variant, in the same way. Else Unlimited, if it is
//                  there and Usual does not accept. Else Usual.
//     launch       A variant that is not there is compiled first. If that fails: `giveUp`.
//     retry        A variant that refuses has run nothing; its code says which one is next:
//
//                      refused by        OutsideLimits     NoClusterRoom
//                      a division        Usual             Usual, and never divide again
//                      ShortLoops        Usual             -
//                      Usual             Unlimited         -
//                      Unlimited         -                 -
//
// For example, a kernel is launched first with an index that wraps. Usual is chosen and refuses
// with OutsideLimits, and Unlimited is compiled and runs. The next such launch chooses Unlimited
// directly, since checking Usual's limits is cheaper than a launch that fails.
//
// The table ends after three launches: no step leads back. If it has no entry, the user gets the
// error of the last variant.
//
// A family has no lock; its owner must guard it (with the GIL, for launches from Python).

#ifndef TESSERA_COMPILER_KERNELFAMILY_H
#define TESSERA_COMPILER_KERNELFAMILY_H

#include "tessera/Runtime/CUDA/DivisibleSum.h"
#include "tessera/Support/LaunchRefused.h"
#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <cstdint>
#include <optional>

namespace tessera {

/// The numbers are those of TsrVariant (CAPI/Tessera.h).
enum class VariantKind { Usual, Unlimited, SplitIn2, SplitIn4, SplitIn8, PairOfTiles, ShortLoops };
inline constexpr size_t kNumVariantKinds = 7;

/// The interface of a kernel in a family.
class FamilyMember {
public:
  /// True if a launch meets the kernel's launch conditions.
  virtual bool accepts(llvm::ArrayRef<int32_t> grid,
                       llvm::ArrayRef<uint64_t> args) const noexcept = 0;
  /// The clusters, or the loops, with which a variant of the kernel would run a launch fastest; one
  /// block and no short loops: no variant.
  virtual cuda::Division chooseDivision(int device, llvm::ArrayRef<int32_t> grid,
                                        llvm::ArrayRef<uint64_t> args) const noexcept = 0;

protected:
  ~FamilyMember() = default;
};

/// The variant that divides a launch so; without a division Usual, or ShortLoops.
VariantKind getVariant(const cuda::Division &division);

class KernelFamily {
public:
  /// `mayDivide`: launches may choose the number of blocks of a program, since the options do not,
  /// and the variant for short loops.
  explicit KernelFamily(bool mayDivide) : mayDivide(mayDivide) {}

  /// Adds or replaces a variant; null removes it. It outlives the family, or is removed before.
  void setMember(VariantKind kind, const FamilyMember *member) {
    members[static_cast<size_t>(kind)] = member;
  }

  /// False if `choose` is sure to be Usual.
  bool hasChoice() const { return mayDivide || getMember(VariantKind::Unlimited); }

  /// The variant that a launch tries first. It may be missing, unless it is Usual. `device` is a
  /// GPU, or -1 for the CPU; `grid` has three extents.
  VariantKind choose(int device, llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args) const;

  /// The variant after one that has refused the launch. Nothing if there is none.
  std::optional<VariantKind> retry(VariantKind refused, Refusal refusal);

  /// The variant instead of one that cannot be compiled. Nothing if there is none.
  std::optional<VariantKind> giveUp(VariantKind kind);

private:
  const FamilyMember *getMember(VariantKind kind) const {
    return members[static_cast<size_t>(kind)];
  }

  std::array<const FamilyMember *, kNumVariantKinds> members{};
  bool mayDivide;
};

} // namespace tessera

#endif // TESSERA_COMPILER_KERNELFAMILY_H
