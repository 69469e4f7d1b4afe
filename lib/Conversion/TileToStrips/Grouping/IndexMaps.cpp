// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "IndexMaps.h"

#include "GroupRoots.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

#include <map>

using namespace mlir;

namespace tessera {

namespace {

/// How often an element may be computed, on average, before a buffer is better: it costs about as
/// much as two loads. If it is made of scalars, a buffer also hides the facts about it.
constexpr double kMaxUsesPerElement = 2, kMaxUsesPerElementOfScalars = 16;
/// Maximum of distinct parts of an element's index maps; more of them count as too often.
constexpr unsigned kMaxMapsPerValue = 64;

/// One step from the index of a value to that of an operand.
struct MapStep {
  AffineMap map;           ///< null for an index that is not one of those of the result
  int64_t number = 0;      ///< what else tells it from others: an operand of several, or anything
  Operation *op = nullptr; ///< without a map: whose operand it is
  /// The shapes before and after, if elements keep their order.
  SmallVector<int64_t> result = {}, source = {};

  auto key() const { return std::make_tuple(map.getAsOpaquePointer(), number, op); }
  bool operator<(const MapStep &other) const { return key() < other.key(); }
};

/// Index maps as numbers: each is another one and a step, 0 is the index of the nest. Maps of many
/// steps are not composed, since they would grow exponentially.
class IndexMaps {
public:
  /// An index that has nothing to do with that of the nest.
  unsigned makeFresh() { return intern(0, {{}, int64_t(parents.size())}); }
  /// The map to an operand of what is asked for by `map`; none if the operand is not needed.
  std::optional<unsigned> follow(unsigned map, OpOperand &operand, OpResult result);

private:
  unsigned intern(unsigned parent, MapStep step) {
    auto [it, isNew] = numbers.try_emplace({parent, step}, parents.size());
    if (isNew) {
      parents.push_back(parent);
      steps.push_back(std::move(step));
    }
    return it->second;
  }
  unsigned merge(unsigned parent, MapStep step) {
    return step.map.isIdentity() ? parent : intern(parent, std::move(step));
  }

  std::map<std::pair<unsigned, MapStep>, unsigned> numbers;
  SmallVector<unsigned> parents{0};
  SmallVector<MapStep> steps{MapStep()};
};

bool movesElements(Operation *op) {
  std::optional<tile::Motion> motion = tile::getMotion(op);
  return motion == tile::Motion::Dimensions || motion == tile::Motion::Renumbers;
}

std::optional<unsigned> IndexMaps::follow(unsigned map, OpOperand &operand, OpResult result) {
  Operation *op = operand.getOwner();
  unsigned number = operand.getOperandNumber();
  if (!movesElements(op))
    return intern(map, {{}, number, op});
  MapStep last = steps[map], step{tile::getSourceMap(operand, result.getResultNumber()), number};
  if (tile::onlyReshapes(op) && !tile::movesDimensions(op)) {
    step.result.assign(tile::getShape(result.getType()).begin(),
                       tile::getShape(result.getType()).end());
    step.source.assign(tile::getShape(operand.get().getType()).begin(),
                       tile::getShape(operand.get().getType()).end());
  }
  if (!last.map)
    return intern(map, std::move(step));
  // The operand may be known, of several.
  AffineExpr which = cast<tile::MoveOpInterface>(op).getSourceOperand();
  auto known = dyn_cast<AffineConstantExpr>(which.replaceDims(last.map.getResults()));
  if (known && known.getValue() != number)
    return std::nullopt;
  // Steps that undo each other leave no trace.
  bool isOrdered = !last.result.empty() && !step.result.empty();
  if (isOrdered) {
    step.map = tile::getReshapeMap(step.source, last.result, op->getContext());
    step.result = last.result;
    return merge(parents[map], std::move(step));
  }
  AffineMap both = step.map.compose(last.map);
  if (!known || !both.isProjectedPermutation(/*allowZeroInResults=*/true))
    return intern(map, std::move(step));
  return merge(parents[map], {both, last.number});
}

/// The maps by which a value is asked for, with the part of its elements that each asks for.
using Uses = SmallVector<std::pair<unsigned, double>, 4>;

/// How much more often the elements of an operand are computed than those of a result. If an index
/// does not say which of several operands it is, all of them are computed and one is selected.
double getPart(Operation *op) {
  return movesElements(op) ? double(op->getNumOperands()) / op->getNumResults() : 1;
}

} // namespace

SmallVector<Value> findRecomputed(ArrayRef<Operation *> ops, ArrayRef<Value> roots,
                                  function_ref<bool(Value)> isLeaf) {
  if (llvm::none_of(ops, movesElements))
    return {};
  IndexMaps maps;
  DenseMap<Value, Uses> uses;
  auto note = [&](Value value, unsigned map, double part) {
    Uses &all = uses[value];
    auto it = llvm::find_if(all, [&](auto &use) { return use.first == map; });
    if (it == all.end())
      all.push_back({map, part});
    else
      it->second = std::max(it->second, part);
  };
  for (Value root : roots)
    note(root, 0, 1);
  SmallVector<Value> recomputed;
  for (Operation *op : llvm::reverse(ops))
    for (OpResult result : op->getResults()) {
      auto found = uses.find(result);
      if (found == uses.end() || isLeaf(result))
        continue;
      Uses here = std::move(found->second);
      double times = 0;
      for (auto [map, part] : here)
        times += part;
      bool isMany = here.size() > kMaxMapsPerValue;
      bool isOften = times > kMaxUsesPerElement && !movesElements(op);
      if (isMany ||
          (isOften && (times > kMaxUsesPerElementOfScalars || !isRematerializable(result)))) {
        recomputed.push_back(result);
        here = {{maps.makeFresh(), 1}};
      }
      for (OpOperand &operand : op->getOpOperands()) {
        Value source = operand.get();
        if (!isa<RankedTensorType>(source.getType()) || isLeaf(source))
          continue;
        bool isMoved = movesElements(op) ||
                       tile::getShape(source.getType()) != tile::getShape(result.getType());
        for (auto [map, part] : here) {
          if (!isMoved) {
            note(source, map, part);
            continue;
          }
          if (std::optional<unsigned> next = maps.follow(map, operand, result))
            note(source, *next, part * getPart(op));
        }
      }
    }
  std::reverse(recomputed.begin(), recomputed.end());
  return recomputed;
}

} // namespace tessera
