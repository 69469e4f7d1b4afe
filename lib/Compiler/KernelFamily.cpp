// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Compiler/KernelFamily.h"

using namespace llvm;
using namespace tessera;

/// True of a variant that a launch may choose, where the usual one would do.
static bool isDivision(VariantKind kind) { return kind >= VariantKind::SplitIn2; }

VariantKind tessera::getVariant(const cuda::Division &division) {
  if (division.blocks > 1 && division.ofTiles)
    return VariantKind::PairOfTiles;
  switch (division.blocks) {
  case 2:
    return VariantKind::SplitIn2;
  case 4:
    return VariantKind::SplitIn4;
  case 8:
    return VariantKind::SplitIn8;
  default:
    return division.hasShortLoops ? VariantKind::ShortLoops : VariantKind::Usual;
  }
}

VariantKind KernelFamily::choose(int device, ArrayRef<int32_t> grid,
                                 ArrayRef<uint64_t> args) const {
  const FamilyMember *usual = getMember(VariantKind::Usual);
  if (mayDivide) {
    VariantKind kind = getVariant(usual->chooseDivision(device, grid, args));
    if (kind != VariantKind::Usual && (!getMember(kind) || getMember(kind)->accepts(grid, args)))
      return kind;
  }
  if (getMember(VariantKind::Unlimited) && !usual->accepts(grid, args))
    return VariantKind::Unlimited;
  return VariantKind::Usual;
}

std::optional<VariantKind> KernelFamily::retry(VariantKind refused, Refusal refusal) {
  if (refusal == Refusal::NoClusterRoom)
    return isDivision(refused) ? giveUp(refused) : std::nullopt;
  if (isDivision(refused))
    return VariantKind::Usual;
  return refused == VariantKind::Usual ? std::optional(VariantKind::Unlimited) : std::nullopt;
}

std::optional<VariantKind> KernelFamily::giveUp(VariantKind kind) {
  if (!isDivision(kind))
    return std::nullopt;
  mayDivide = false;
  return VariantKind::Usual;
}
