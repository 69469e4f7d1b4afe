// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-version-promises: a version of a group for promises that hold, and one for others. Tiles
// leave a group through memory alone now, so that versions have nothing to hand on.

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSVERSIONPROMISES
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

struct StripsVersionPromises : impl::StripsVersionPromisesBase<StripsVersionPromises> {
  using StripsVersionPromisesBase::StripsVersionPromisesBase;

  void runOnOperation() override {
    SmallVector<strips::GroupOp> groups;
    getOperation().walk([&](strips::GroupOp group) { groups.push_back(group); });
    for (strips::GroupOp group : groups)
      version(group);
  }

private:
  void version(strips::GroupOp group);
};

/// The choices of a group between a tile of which a promise has been checked, and the same one.
SmallVector<arith::SelectOp> findChoices(strips::GroupOp group) {
  SmallVector<arith::SelectOp> choices;
  for (auto choice : group.getBody().getOps<arith::SelectOp>())
    if (auto hint = choice.getTrueValue().getDefiningOp<tile::HintOp>())
      if (hint->hasAttr(strips::kCheckedAttr) && hint.getSource() == choice.getFalseValue())
        choices.push_back(choice);
  return choices;
}

/// Settles all choices of a group.
void choose(strips::GroupOp group, bool holds) {
  for (arith::SelectOp choice : findChoices(group)) {
    choice.replaceAllUsesWith(holds ? choice.getTrueValue() : choice.getFalseValue());
    choice.erase();
  }
}

} // namespace

void StripsVersionPromises::version(strips::GroupOp group) {
  SmallVector<arith::SelectOp> choices = findChoices(group);
  if (choices.empty())
    return;
  bool isWorthIt = llvm::any_of(group.getBody().front(), llvm::IsaPred<tile::AccessOpInterface>);
  llvm::SetVector<Value> conditions;
  for (arith::SelectOp choice : choices) {
    conditions.insert(choice.getCondition());
    isWorthIt &= !group.getBody().isAncestor(choice.getCondition().getParentRegion());
  }
  if (!isWorthIt)
    return choose(group, /*holds=*/false);
  OpBuilder builder(group);
  Location loc = group.getLoc();
  Value holds;
  for (Value condition : conditions)
    holds = holds ? arith::AndIOp::create(builder, loc, holds, condition) : condition;
  auto versions = scf::IfOp::create(builder, loc, group.getResultTypes(), holds,
                                    /*withElseRegion=*/true);
  OpBuilder yes = versions.getThenBodyBuilder(), no = versions.getElseBodyBuilder();
  auto straight = cast<strips::GroupOp>(yes.clone(*group));
  auto general = cast<strips::GroupOp>(no.clone(*group));
  choose(straight, /*holds=*/true);
  choose(general, /*holds=*/false);
  if (group.getNumResults() != 0) {
    scf::YieldOp::create(yes, loc, straight.getResults());
    scf::YieldOp::create(no, loc, general.getResults());
  }
  group.replaceAllUsesWith(versions.getResults());
  group.erase();
}

} // namespace tessera
