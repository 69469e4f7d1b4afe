// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tile-expand-access-checks: checks of accesses in arithmetic that any target has. All lanes are
// compared at once. If any fails, a maximum over the tile finds the largest failing offset, which
// is reported. The access itself is masked, so that the program can go on to its end, as after an
// assertion that does not hold.

#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstdint>

namespace tessera::tile {
#define GEN_PASS_DEF_TILEEXPANDACCESSCHECKSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

class Expansion {
public:
  explicit Expansion(CheckAccessOp op) : op(op), builder(op), loc(op.getLoc()) {}

  Value run();

private:
  Value splat(Value scalar, Type like) {
    Type type = withElementType(like, scalar.getType());
    return isa<RankedTensorType>(type) ? SplatOp::create(builder, loc, type, scalar) : scalar;
  }
  Value constant(int64_t number) { return arith::ConstantIntOp::create(builder, loc, number, 64); }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value isMasked(Value fails) {
    return op.getMask() ? arith::AndIOp::create(builder, loc, fails, op.getMask()) : fails;
  }
  /// All elements of a tile combined to one.
  template <typename Combine> Value reduce(Value tile) {
    return buildReductionToScalar(builder, loc, tile,
                                  [](OpBuilder &b, Location loc, Value left, Value right) -> Value {
                                    return Combine::create(b, loc, left, right);
                                  });
  }
  void report(Value fails, Value offset, bool wraps);

  CheckAccessOp op;
  OpBuilder builder;
  Location loc;
};

void Expansion::report(Value fails, Value offset, bool wraps) {
  if (isa<RankedTensorType>(fails.getType())) {
    // No lane is as far away as that.
    Value none = constant(INT64_MIN);
    Value failing =
        arith::SelectOp::create(builder, loc, fails, offset, splat(none, offset.getType()));
    offset = reduce<arith::MaxSIOp>(failing);
    fails = compare(arith::CmpIPredicate::ne, offset, none);
  }
  int64_t bytes = cast<PointerType>(getElementTypeOrSelf(op.getPtr().getType())).getPointeeBytes();
  ReportAccessOp::create(builder, loc, fails, offset, op.getArgument(), bytes, op.getAccess(),
                         wraps);
}

Value Expansion::run() {
  Type pointers = op.getPtr().getType();
  Type addresses = withElementType(pointers, builder.getI64Type());
  int64_t bytes = cast<PointerType>(getElementTypeOrSelf(pointers)).getPointeeBytes();
  auto memory = ArgumentMemoryOp::create(builder, loc, op.getArgument());
  Value address = PtrToIntOp::create(builder, loc, addresses, op.getPtr());
  Value first = PtrToIntOp::create(builder, loc, builder.getI64Type(), op.getBase());
  Value offset = arith::SubIOp::create(builder, loc, address, splat(first, pointers));
  Value last = arith::SubIOp::create(builder, loc, memory.getEnd(), constant(bytes));
  Value below = compare(arith::CmpIPredicate::slt, address, splat(memory.getBegin(), pointers));
  Value above = compare(arith::CmpIPredicate::sgt, address, splat(last, pointers));
  Value fails = isMasked(arith::OrIOp::create(builder, loc, below, above));
  Value wraps;
  if (Value exact = op.getExact())
    wraps = isMasked(compare(arith::CmpIPredicate::ne, exact, offset));
  Value bad = wraps ? Value(arith::OrIOp::create(builder, loc, fails, wraps)) : fails;
  {
    auto rarely = scf::IfOp::create(builder, loc, reduce<arith::OrIOp>(bad),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(rarely.thenBlock());
    // If an offset wrapped, that is the error, wherever it lands.
    if (wraps)
      report(wraps, op.getExact(), /*wraps=*/true);
    report(fails, offset, /*wraps=*/false);
  }
  fails = bad;
  Value yes = splat(arith::ConstantIntOp::create(builder, loc, 1, 1), pointers);
  Value ok = arith::XOrIOp::create(builder, loc, fails, yes);
  return op.getMask() ? arith::AndIOp::create(builder, loc, ok, op.getMask()) : ok;
}

struct ExpandAccessChecks
    : tessera::tile::impl::TileExpandAccessChecksPassBase<ExpandAccessChecks> {
  void runOnOperation() override {
    getOperation().walk([&](CheckAccessOp op) {
      op.replaceAllUsesWith(Expansion(op).run());
      op.erase();
    });
  }
};

} // namespace
