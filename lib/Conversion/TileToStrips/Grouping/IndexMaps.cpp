// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "IndexMaps.h"

#include "GroupRoots.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;

namespace tessera {

namespace {

/// How often an element may be computed, on average, before a buffer is better: it costs about as
/// much as two loads. If it is made of scalars, a buffer also hides the facts about it.
constexpr double kMostTimes = 2, kMostTimesFromScalars = 16;
/// Maximum of distinct parts of an element's index maps; more of them count as too often.
constexpr unsigned kMostMaps = 64;

/// One step from the index of a value to that of an operand.
struct Step {
  enum Kind { Begin, Expand, Broadcast, Trans, Reshape, Join, Split, Cat, Other } kind;
  SmallVector<int64_t> data;

  bool operator<(const Step &other) const {
    return std::tie(kind, data) < std::tie(other.kind, other.data);
  }
};

/// Index maps as numbers: each is another one and a step, 0 is the index of the nest.
class IndexMaps {
public:
  /// An index that has nothing to do with that of the nest.
  unsigned makeFresh() { return intern(0, {Step::Begin, {int64_t(parents.size())}}); }
  unsigned intern(unsigned parent, Step step) {
    auto [it, isNew] = numbers.try_emplace({parent, step}, parents.size());
    if (isNew) {
      parents.push_back(parent);
      steps.push_back(std::move(step));
    }
    return it->second;
  }
  /// The map to an operand of what is asked for by `map`; none if the operand is not needed.
  std::optional<unsigned> follow(unsigned map, Step step);

private:
  std::map<std::pair<unsigned, Step>, unsigned> numbers;
  SmallVector<unsigned> parents{0};
  SmallVector<Step> steps{{Step::Begin, {}}};
};

std::optional<unsigned> IndexMaps::follow(unsigned map, Step step) {
  const Step &last = steps[map];
  unsigned parent = parents[map];
  // Steps that undo each other leave no trace.
  if (step.kind == Step::Reshape && last.kind == Step::Reshape) {
    ArrayRef<int64_t> outer = ArrayRef(last.data).take_until([](int64_t e) { return e < 0; });
    ArrayRef<int64_t> inner =
        ArrayRef(step.data).drop_until([](int64_t e) { return e < 0; }).drop_front();
    if (outer == inner)
      return parent;
    SmallVector<int64_t> data(outer);
    data.push_back(-1);
    llvm::append_range(data, inner);
    return intern(parent, {Step::Reshape, data});
  }
  if (step.kind == Step::Trans && last.kind == Step::Trans) {
    SmallVector<int64_t> order =
        llvm::map_to_vector(last.data, [&](int64_t dim) { return step.data[dim]; });
    if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
      return parent;
    return intern(parent, {Step::Trans, order});
  }
  if (step.kind == Step::Join && last.kind == Step::Split) {
    if (step.data == last.data)
      return parent;
    return std::nullopt;
  }
  return intern(map, std::move(step));
}

/// The maps by which a value is asked for, with the part of its elements that each asks for.
using Uses = SmallVector<std::pair<unsigned, double>, 4>;

/// The step to an operand, and how much more often its elements are computed.
std::pair<Step, double> getStep(OpOperand &operand, unsigned resultNumber) {
  Operation *op = operand.getOwner();
  auto number = int64_t(operand.getOperandNumber());
  return TypeSwitch<Operation *, std::pair<Step, double>>(op)
      .Case([&](tile::ExpandDimsOp expand) {
        return std::make_pair(Step{Step::Expand, {int64_t(expand.getAxis())}}, 1.0);
      })
      .Case([&](tile::BroadcastOp) {
        ArrayRef<int64_t> shape = tile::getShape(operand.get().getType());
        return std::make_pair(Step{Step::Broadcast, SmallVector<int64_t>(shape)}, 1.0);
      })
      .Case([&](tile::TransOp trans) {
        auto order = llvm::map_to_vector(trans.getOrder(), [](int32_t d) { return int64_t(d); });
        return std::make_pair(Step{Step::Trans, SmallVector<int64_t>(order)}, 1.0);
      })
      .Case([&](tile::ReshapeOp reshape) {
        SmallVector<int64_t> shapes(tile::getShape(reshape.getType()));
        shapes.push_back(-1);
        llvm::append_range(shapes, tile::getShape(operand.get().getType()));
        return std::make_pair(Step{Step::Reshape, shapes}, 1.0);
      })
      .Case([&](tile::SplitOp) {
        return std::make_pair(Step{Step::Split, {int64_t(resultNumber)}}, 0.5);
      })
      // If the index is not known, both sides are computed and one is selected.
      .Case([&](tile::JoinOp) { return std::make_pair(Step{Step::Join, {number}}, 2.0); })
      .Case([&](tile::CatOp cat) {
        ArrayRef<int64_t> first = tile::getShape(cat.getLhs().getType());
        int64_t border = first[cat.getAxis()];
        return std::make_pair(Step{Step::Cat, {int64_t(cat.getAxis()), border, number}}, 2.0);
      })
      .Default([&](Operation *) {
        auto address = int64_t(reinterpret_cast<intptr_t>(op));
        return std::make_pair(Step{Step::Other, {address, number}}, 1.0);
      });
}

bool movesElements(Operation *op) {
  std::optional<tile::Motion> motion = tile::getMotion(op);
  return motion == tile::Motion::Dimensions || motion == tile::Motion::Renumbers;
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
      bool isMany = here.size() > kMostMaps;
      bool isOften = times > kMostTimes && !movesElements(op);
      if (isMany || (isOften && (times > kMostTimesFromScalars || !isRematerializable(result)))) {
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
          auto [step, factor] = getStep(operand, result.getResultNumber());
          if (std::optional<unsigned> next = maps.follow(map, std::move(step)))
            note(source, *next, part * factor);
        }
      }
    }
  std::reverse(recomputed.begin(), recomputed.end());
  return recomputed;
}

} // namespace tessera
