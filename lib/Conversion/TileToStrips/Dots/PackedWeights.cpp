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

std::optional<Words> getWords(strips::DotOp dot, bool isDecoded, const HostMachine &machine,
                              bool deterministic) {
  const AMXInstruction *amx =
      findAMXInstruction(dot, machine, deterministic, /*isPacked=*/!isDecoded);
  // Elements that are computed would be stored before a register loads them.
  if (amx && isDecoded)
    return std::nullopt;
  if (amx) {
    // Floats of 8 bits would have to be converted.
    unsigned bits = cast<MemRefType>(dot.getB().getType()).getElementTypeBitWidth();
    if (bits * amx->steps != AMXInstruction::kWordBytes * 8)
      return std::nullopt;
    return Words{amx->steps, AMXInstruction::kWords};
  }
  int64_t rows = cast<MemRefType>(dot.getA().getType()).getDimSize(0);
  if (findMatrixInstruction(dot, machine) || (isDecoded && rows > kMaxPackedRows))
    return std::nullopt;
  if (const DotInstruction *instruction = findDotInstruction(dot, machine, deterministic))
    return Words{instruction->steps, machine.vectorBits / 32};
  return std::nullopt;
}

/// True if an operation makes a matrix of a tile of words.
bool isMatrixOfWords(Operation *op) {
  // Not an index map: the loops are for the orders that a WeightsFinder knows.
  auto reshape = dyn_cast<tile::ReshapeOp>(op);
  return reshape && reshape.getSource().getDefiningOp<tile::TransOp>();
}

class WeightsFinder {
public:
  WeightsFinder(const HostMachine &machine, bool deterministic)
      : machine(machine), deterministic(deterministic) {}

  std::optional<PackedDot> find(strips::DotOp dot) {
    strips::WriteOp write = findWriteOfB(dot);
    Value source;
    if (!write || !isDecoded(write.getValue(), isMatrixOfWords, source) || !source)
      return std::nullopt;
    Value decoded = write.getValue();
    std::optional<Words> words = getWords(dot, source != decoded, machine, deterministic);
    // Not an index map: the loops are for these orders.
    auto trans = source.getDefiningOp<tile::ReshapeOp>().getSource().getDefiningOp<tile::TransOp>();
    tile::LoadOp load = findLoadOf(trans.getSource());
    if (!words || !load || load.getMask() || load.getIsVolatile() ||
        tile::getShape(load.getType()) != tile::getShape(trans.getSource().getType()))
      return std::nullopt;
    auto group = cast<strips::GroupOp>(write->getParentOp());
    PackedDot result{dot, group, load, source, decoded, 0, std::nullopt};
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
    Operation *loading = load->getParentOp();
    bool isLoadedHere = loading->getBlock() == dot->getBlock() && loading->isBeforeInBlock(dot) &&
                        isUnwrittenBetween(loading, dot, /*readsBuffer=*/false);
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
  WeightsFinder finder(machine, deterministic);
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
  Value bytes = arith::ConstantIntOp::create(b, loc, columnBytes, 64);
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
      int64_t bits = getElementTypeOrSelf(found.load.getType()).getIntOrFloatBitWidth();
      int64_t columns = shape[shape.size() - 2];
      result[found.dot] = {found.source, found.decoded,          first, words, panels,
                           columns,      shape.back() * bits / 8};
    }
  }
  return result;
}

void eraseGroups(const PackedDots &groups) {
  SetVector<Value> buffers;
  for (const auto &entry : groups) {
    for (const PackedDot &found : entry.second) {
      // Not an index map: the tile that the words were loaded to.
      Value tile = found.source.getDefiningOp<tile::ReshapeOp>().getSource();
      tile = tile.getDefiningOp<tile::TransOp>().getSource();
      if (auto read = tile.getDefiningOp<strips::ReadOp>())
        buffers.insert(read.getSource());
    }
    entry.first->erase();
  }
  for (Value buffer : buffers)
    eraseUnread(buffer);
}

} // namespace tessera
