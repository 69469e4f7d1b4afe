// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MemoryTile.h"

#include "DotOperands.h"
#include "Nests/StripEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera {

std::optional<MemoryTile> findMemoryTile(Value buffer, strips::DotOp dot, AccessAnalysis &access) {
  auto group = dyn_cast_or_null<strips::GroupOp>(findFiller(buffer, dot));
  if (!group || !group->isBeforeInBlock(dot) || !writesOnlyFor(group, 1))
    return std::nullopt;
  auto write = *group.getBody().getOps<strips::WriteOp>().begin();
  auto load = write.getValue().getDefiningOp<tile::LoadOp>();
  auto type = cast<MemRefType>(buffer.getType());
  if (!load || load->getParentOp() != group || load.getIsVolatile() ||
      write.getTarget() != buffer || tile::getShape(load.getType()) != type.getShape() ||
      getElementTypeOrSelf(load.getType()) != type.getElementType())
    return std::nullopt;
  const AccessForm &form = access.getForm(load.getPtr());
  if (form.opaque.any() || !form.strides[1].isOne())
    return std::nullopt;
  MemoryTile tile{buffer, group, load, {}};
  if (load.getMask())
    tile.terms = access.getMask(load.getMask());
  bool isGeneral =
      llvm::any_of(tile.terms, [](const MaskTerm &term) { return term.kind == MaskTerm::General; });
  return isGeneral ? std::nullopt : std::optional(tile);
}

TilePlace MemoryTile::locate(OpBuilder &b) {
  AccessAnalysis access;
  StripEmitter emitter(group, access);
  Location loc = load.getLoc();
  Type i64 = b.getI64Type();
  auto addressOf = [&](int64_t row) {
    IndexTuple at(2);
    at[0].offset = row;
    return emitter.evaluate(load.getPtr(), at).value;
  };
  auto evaluate = [&](Value value) {
    return emitter.evaluate(value, IndexTuple(tile::getShape(value.getType()).size())).value;
  };
  // True if the last element is in bounds. It does not wrap: the bound is further from the first.
  auto reachesLast = [&](const MaskTerm &term) -> Value {
    Value left = evaluate(term.left), right = evaluate(term.right);
    OpBuilder &b = emitter.atEnd();
    auto widen = [&](Value value) -> Value {
      if (value.getType() == i64)
        return value;
      if (term.isSigned)
        return arith::ExtSIOp::create(b, loc, i64, value);
      return arith::ExtUIOp::create(b, loc, i64, value);
    };
    using Predicate = arith::CmpIPredicate;
    Predicate order = term.isSigned ? Predicate::sle : Predicate::ule;
    Value isOrdered = arith::CmpIOp::create(b, loc, order, left, right);
    Value distance = arith::SubIOp::create(b, loc, widen(right), widen(left));
    int64_t reach = term.step * (tile::getShape(load.getType())[term.dim] - 1);
    Value isFar = arith::CmpIOp::create(b, loc, term.inclusive ? Predicate::uge : Predicate::ugt,
                                        distance, arith::ConstantIntOp::create(b, loc, reach, 64));
    return arith::AndIOp::create(b, loc, isOrdered, isFar);
  };
  Value first = addressOf(0), second = addressOf(1);
  TilePlace place{first, arith::SubIOp::create(emitter.atEnd(), loc, second, first), {}};
  for (const MaskTerm &term : terms) {
    Value holds = term.kind == MaskTerm::Uniform ? evaluate(term.value) : reachesLast(term);
    place.isWhole =
        place.isWhole ? arith::AndIOp::create(emitter.atEnd(), loc, place.isWhole, holds) : holds;
  }
  return place;
}

} // namespace tessera
