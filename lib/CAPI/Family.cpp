// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Families of kernels.

#include "Errors.h"
#include "Handles.h"

#include "tessera/Compiler/KernelFamily.h"

using namespace tessera;
using namespace tessera::capi;

struct TsrFamily {
  KernelFamily family;
};

static_assert(int(VariantKind::Unlimited) == TSR_VARIANT_UNLIMITED &&
              int(VariantKind::SplitIn2) == TSR_VARIANT_SPLIT_2 &&
              int(VariantKind::SplitIn4) == TSR_VARIANT_SPLIT_4 &&
              int(VariantKind::SplitIn8) == TSR_VARIANT_SPLIT_8 &&
              int(VariantKind::PairOfTiles) == TSR_VARIANT_PAIR_OF_TILES &&
              int(VariantKind::ShortLoops) == TSR_VARIANT_SHORT_LOOPS &&
              kNumVariantKinds == TSR_NUM_VARIANTS);

static TsrVariant toVariant(std::optional<VariantKind> kind) {
  return kind ? static_cast<TsrVariant>(*kind) : TSR_NUM_VARIANTS;
}

extern "C" {

TsrStatus tsr_family_create(int may_divide, TsrFamily **family) TSR_NOEXCEPT {
  return guarded([&] { *family = new TsrFamily{KernelFamily(may_divide != 0)}; });
}

void tsr_family_destroy(TsrFamily *family) TSR_NOEXCEPT { delete family; }

void tsr_family_set(TsrFamily *family, TsrVariant variant, TsrKernel *kernel) TSR_NOEXCEPT {
  family->family.setMember(static_cast<VariantKind>(variant),
                           kernel ? kernel->kernel.get() : nullptr);
}

int tsr_family_has_choice(const TsrFamily *family) TSR_NOEXCEPT {
  return family->family.hasChoice();
}

TsrVariant tsr_family_choose(const TsrFamily *family, int32_t device, const int32_t grid[3],
                             const uint64_t *args, size_t num_args) TSR_NOEXCEPT {
  return toVariant(family->family.choose(device, llvm::ArrayRef<int32_t>(grid, 3),
                                         llvm::ArrayRef<uint64_t>(args, num_args)));
}

TsrVariant tsr_family_retry(TsrFamily *family, TsrVariant refused, TsrStatus status) TSR_NOEXCEPT {
  if (status != TSR_OUTSIDE_LIMITS && status != TSR_NO_CLUSTER_ROOM)
    return TSR_NUM_VARIANTS;
  return toVariant(
      family->family.retry(static_cast<VariantKind>(refused), static_cast<Refusal>(status)));
}

TsrVariant tsr_family_give_up(TsrFamily *family, TsrVariant variant) TSR_NOEXCEPT {
  return toVariant(family->family.giveUp(static_cast<VariantKind>(variant)));
}

} // extern "C"
