// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variants of one kernel, and which of them does a launch.
//
// One specialisation of a kernel is compiled more than once, with other options each time, because
// the fastest code relies on something that not every launch has:
//
//     Usual        relies on the launch conditions of its metadata: indices do not wrap, arrays do
//                  not overlap, TMA can move boxes of them
//     Unlimited    relies on none of that (the option tensor_maps=False)
//     SplitIn2/4/8 has clusters of so many blocks, which divide a sum of dots (num_ctas, split_k)
//     PairOfTiles  has clusters of two blocks, which divide the program's tiles
//
// A persistent kernel is no variant: the launcher itself starts fewer programs. That it can count
// its programs in 32 bits is one of the launch conditions.
//
// A family begins with the usual variant alone. The caller of a launch compiles another variant
// when it is needed first, and adds it. So a launch has three steps:
//
//     choose       Few programs: the division that DivisibleSum prefers, if its variant accepts the
//                  launch. Else Unlimited, if it is there and Usual does not accept. Else Usual.
//     launch       A variant that is not there is compiled first. If that fails: `giveUp`.
//     retry        A variant that refuses has run nothing; its code says which one is next:
//
//                      refused by        OutsideLimits     NoClusterRoom
//                      a division        Usual             Usual, and never divide again
//                      Usual             Unlimited         -
//                      Unlimited         -                 -
//
// For example, the first launch of a kernel with an index that wraps: Usual is chosen and refuses
// with OutsideLimits, Unlimited is compiled and runs. The next such launch chooses Unlimited right
// away, because asking Usual is cheaper than a launch that fails.
//
// The table ends after three launches: no step leads back. Where it has no entry, the error of the
// last variant is the user's.
//
// A family has no lock: its owner's guards it (the GIL, for launches from Python).

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
enum class VariantKind { Usual, Unlimited, SplitIn2, SplitIn4, SplitIn8, PairOfTiles };
inline constexpr size_t kNumVariantKinds = 6;

/// The interface of a kernel in a family.
class FamilyMember {
public:
  /// True if a launch meets the kernel's launch conditions.
  virtual bool accepts(llvm::ArrayRef<int32_t> grid,
                       llvm::ArrayRef<uint64_t> args) const noexcept = 0;
  /// With which clusters a variant of the kernel would do a launch best; one block: as it is.
  virtual cuda::Division chooseDivision(int device, llvm::ArrayRef<int32_t> grid,
                                        llvm::ArrayRef<uint64_t> args) const noexcept = 0;

protected:
  ~FamilyMember() = default;
};

class KernelFamily {
public:
  /// `mayDivide`: whether the options leave the number of blocks of a program to launches.
  explicit KernelFamily(bool mayDivide) : mayDivide(mayDivide) {}

  /// Adds or replaces a variant; null removes it. It outlives the family, or is removed before.
  void setMember(VariantKind kind, const FamilyMember *member) {
    members[static_cast<size_t>(kind)] = member;
  }

  /// False if `choose` is sure to be Usual.
  bool hasChoice() const { return mayDivide || getMember(VariantKind::Unlimited); }

  /// The variant that a launch begins with, which need not be there. Usual is. `device` is a GPU,
  /// or -1 for the CPU; `grid` has three extents.
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
