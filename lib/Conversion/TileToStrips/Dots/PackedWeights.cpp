// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PackedWeights.h"

#include "AMXDot.h"
#include "DotOperands.h"
#include "GroupedDot.h"
#include "MatrixDot.h"
#include "Nests/StripEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "tessera/Analysis/Access/Access.h"

using namespace mlir;

namespace tessera {
namespace {

/// The words that the instruction of a dot takes at once.
struct Words {
  int64_t steps;   ///< elements of a word
  int64_t columns; ///< of which a panel has a multiple
};

std::optional<Words> getWords(strips::DotOp dot, const HostMachine &machine, bool deterministic) {
  if (const AMXInstruction *amx =
          findAMXInstruction(dot, machine, deterministic, /*isPacked=*/true)) {
    // Floats of 8 bits would have to be converted.
    unsigned bits = cast<MemRefType>(dot.getB().getType()).getElementTypeBitWidth();
    if (bits * amx->steps != AMXInstruction::kWordBytes * 8)
      return std::nullopt;
    return Words{amx->steps, AMXInstruction::kWords};
  }
  if (findMatrixInstruction(dot, machine))
    return std::nullopt;
  if (const DotInstruction *instruction = findDotInstruction(dot, machine, deterministic))
    return Words{instruction->steps, machine.vectorBits / 32};
  return std::nullopt;
}

class Finder {
public:
  Finder(const HostMachine &machine, bool deterministic)
      : machine(machine), deterministic(deterministic) {}

  std::optional<PackedDot> find(strips::DotOp dot) {
    std::optional<Words> words = getWords(dot, machine, deterministic);
    strips::WriteOp write = words ? findWriteOfB(dot) : strips::WriteOp();
    if (!write)
      return std::nullopt;
    // Not an index map: the loops are for these orders.
    auto reshape = write.getValue().getDefiningOp<tile::ReshapeOp>();
    auto trans = reshape ? reshape.getSource().getDefiningOp<tile::TransOp>() : tile::TransOp();
    auto load = trans ? trans.getSource().getDefiningOp<tile::LoadOp>() : tile::LoadOp();
    if (!load || load.getMask() || load.getIsVolatile())
      return std::nullopt;
    PackedDot result{dot, cast<strips::GroupOp>(write->getParentOp()), load, 0, std::nullopt};
    ArrayRef<int32_t> order = trans.getOrder();
    ArrayRef<int64_t> shape = tile::getShape(load.getType());
    unsigned columnDim = shape.size() - 2, stepDim = shape.size() - 1;
    if (order == ArrayRef<int32_t>{1, 3, 0, 2}) {
      result.wordDim = 1;
      result.panelDim = 0;
    } else if (order == ArrayRef<int32_t>{0, 3, 1, 2}) {
      result.panelDim = 1;
    } else if (order != ArrayRef<int32_t>{0, 2, 1}) {
      return std::nullopt;
    }
    auto type = cast<MemRefType>(dot.getB().getType());
    if (shape[stepDim] != words->steps ||
        shape[result.wordDim] * words->steps != type.getDimSize(0))
      return std::nullopt;
    int64_t panels = result.panelDim ? shape[*result.panelDim] : 1;
    if (shape[columnDim] % words->columns != 0 || panels * shape[columnDim] != type.getDimSize(1))
      return std::nullopt;
    const AccessForm &form = access.getForm(load.getPtr());
    bool isRegular = form.opaque.none() && form.strides[stepDim].isOne() &&
                     form.strides[columnDim].getConstant() == words->steps;
    bool isLoadedHere = result.group->getBlock() == dot->getBlock() &&
                        load->getParentOp() == result.group.getOperation() &&
                        isUnwrittenBetween(result.group, dot, /*readsBuffer=*/false);
    return isRegular && isLoadedHere ? std::optional(result) : std::nullopt;
  }

private:
  const HostMachine &machine;
  bool deterministic;
  AccessAnalysis access;
};

} // namespace

PackedDots findPackedDots(Operation *func, const HostMachine &machine, bool deterministic) {
  PackedDots groups;
  Finder finder(machine, deterministic);
  func->walk([&](strips::DotOp dot) {
    if (std::optional<PackedDot> found = finder.find(dot))
      groups[found->group].push_back(*found);
  });
  groups.remove_if([](auto &entry) { return !writesOnlyFor(entry.first, entry.second.size()); });
  return groups;
}

Value PackedPanels::getAddress(OpBuilder &b, Location loc, Value word, Value column) const {
  auto times = [&](Value count, Value bytes) -> Value {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), count);
    return arith::MulIOp::create(b, loc, wide, bytes);
  };
  Value address = arith::AddIOp::create(b, loc, first, times(word, wordBytes));
  if (panelBytes) {
    Value size = arith::ConstantIndexOp::create(b, loc, columns);
    Value panel = arith::DivUIOp::create(b, loc, column, size);
    column = arith::RemUIOp::create(b, loc, column, size);
    address = arith::AddIOp::create(b, loc, address, times(panel, panelBytes));
  }
  Value bytes = arith::ConstantIntOp::create(b, loc, AMXInstruction::kWordBytes, 64);
  return arith::AddIOp::create(b, loc, address, times(column, bytes));
}

DenseMap<Operation *, PackedPanels> emitPanels(const PackedDots &groups) {
  DenseMap<Operation *, PackedPanels> result;
  AccessAnalysis access;
  for (const auto &entry : groups) {
    for (PackedDot found : entry.second) {
      StripEmitter emitter(found.group, access);
      ArrayRef<int64_t> shape = tile::getShape(found.load.getType());
      auto getAddress = [&](std::optional<unsigned> dim) {
        IndexTuple at(shape.size());
        if (dim)
          at[*dim].offset = 1;
        return emitter.evaluate(found.load.getPtr(), at).value;
      };
      Value first = getAddress(std::nullopt);
      auto getStride = [&](unsigned dim) -> Value {
        Value next = getAddress(dim);
        return arith::SubIOp::create(emitter.atEnd(), found.group.getLoc(), next, first);
      };
      Value words = getStride(found.wordDim);
      Value panels = found.panelDim ? getStride(*found.panelDim) : Value();
      result[found.dot] = {first, words, panels, shape[shape.size() - 2]};
    }
  }
  for (const auto &[group, dots] : groups)
    group->erase();
  return result;
}

} // namespace tessera
