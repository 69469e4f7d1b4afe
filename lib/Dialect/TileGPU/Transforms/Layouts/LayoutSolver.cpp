// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/Transforms/LayoutSolver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Allocator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

using namespace tessera::tilegpu;

namespace {

/// A labelling of a region: that of its boundary, and the labellings of the two regions
/// that it was merged from.
struct State {
  llvm::SmallString<8> boundary;
  double cost = 0;
  unsigned left = 0, right = 0;
};

struct LayoutRegion {
  std::vector<unsigned> boundary;
  std::vector<State> states;
  std::optional<unsigned> node; ///< of a region of one node
  unsigned left = 0, right = 0; ///< of any other
};

class Solver {
public:
  Solver(const LabellingProblem &problem, unsigned maxStates)
      : problem(problem), maxStates(maxStates), regionOf(problem.nodes.size()),
        incident(problem.nodes.size()) {}

  std::vector<unsigned> run();

private:
  std::optional<std::pair<unsigned, unsigned>> choosePair();
  void merge(unsigned left, unsigned right);
  void drop(LayoutRegion &region) const;
  void read(unsigned region, unsigned state, std::vector<unsigned> &labels) const;

  const LabellingProblem &problem;
  unsigned maxStates;
  std::vector<LayoutRegion> regions;
  std::vector<unsigned> regionOf;
  std::vector<std::vector<unsigned>> incident;
  /// The edges whose ends are in different regions, and perhaps others.
  std::vector<const LabellingProblem::Edge *> between;
  /// By how much the labels at its ends can change the cost of an edge.
  std::vector<double> spread;
};

} // namespace

/// The two neighbours that are cheapest to merge; of those the first.
std::optional<std::pair<unsigned, unsigned>> Solver::choosePair() {
  llvm::erase_if(between, [&](const LabellingProblem::Edge *edge) {
    return regionOf[edge->from] == regionOf[edge->to];
  });
  std::optional<std::pair<unsigned, unsigned>> best;
  size_t bestSize = 0;
  for (const LabellingProblem::Edge *edge : between) {
    unsigned from = regionOf[edge->from], to = regionOf[edge->to];
    size_t size = regions[from].states.size() * regions[to].states.size();
    if (!best || size < bestSize) {
      best = {from, to};
      bestSize = size;
    }
  }
  return best;
}

/// Drops labellings that cannot be part of a solution: replacing them by the cheapest labelling of
/// the region would save more than all edges to other regions together cost. Edges within the
/// region also count if both ends are on the boundary, which only makes it drop fewer.
void Solver::drop(LayoutRegion &region) const {
  double slack = 0, least = region.states.front().cost;
  for (unsigned node : region.boundary)
    for (unsigned edge : incident[node])
      slack += spread[edge];
  for (const State &state : region.states)
    least = std::min(least, state.cost);
  // Somewhat more, so that how sums are rounded decides nothing.
  double most = least + slack + 1e-6 * (std::abs(least) + slack);
  llvm::erase_if(region.states, [&](const State &state) { return state.cost > most; });
}

void Solver::merge(unsigned left, unsigned right) {
  const LayoutRegion &a = regions[left], &b = regions[right];
  unsigned id = regions.size();
  auto positionIn = [](const LayoutRegion &region, unsigned node) {
    return static_cast<unsigned>(llvm::find(region.boundary, node) - region.boundary.begin());
  };

  // Edges between the two, as positions in the boundaries.
  struct Crossing {
    unsigned inA, inB;
    const LabellingProblem::Edge *edge;
    bool fromA;
  };
  llvm::SmallVector<Crossing> crossings;
  for (unsigned node : a.boundary)
    for (unsigned index : incident[node]) {
      const LabellingProblem::Edge &edge = problem.edges[index];
      unsigned other = edge.from == node ? edge.to : edge.from;
      if (regionOf[other] == right)
        crossings.push_back({positionIn(a, node), positionIn(b, other), &edge, edge.from == node});
    }

  // Nodes that still have edges to others.
  LayoutRegion merged;
  merged.left = left;
  merged.right = right;
  llvm::SmallVector<std::pair<bool, unsigned>> sources;
  for (bool inB : {false, true})
    for (auto [position, node] : llvm::enumerate((inB ? b : a).boundary))
      if (llvm::any_of(incident[node], [&, node = node](unsigned index) {
            const LabellingProblem::Edge &edge = problem.edges[index];
            unsigned other = regionOf[edge.from == node ? edge.to : edge.from];
            return other != left && other != right;
          })) {
        merged.boundary.push_back(node);
        sources.push_back({inB, static_cast<unsigned>(position)});
      }

  llvm::StringMap<unsigned, llvm::BumpPtrAllocator> known;
  llvm::SmallString<64> boundary;
  for (auto [indexA, stateA] : llvm::enumerate(a.states))
    for (auto [indexB, stateB] : llvm::enumerate(b.states)) {
      double cost = stateA.cost + stateB.cost;
      for (const Crossing &crossing : crossings) {
        unsigned labelA = static_cast<uint8_t>(stateA.boundary[crossing.inA]);
        unsigned labelB = static_cast<uint8_t>(stateB.boundary[crossing.inB]);
        unsigned from = crossing.fromA ? labelA : labelB, to = crossing.fromA ? labelB : labelA;
        cost += crossing.edge->costs[from * problem.nodes[crossing.edge->to].size() + to];
      }
      boundary.clear();
      for (auto [inB, position] : sources)
        boundary.push_back((inB ? stateB : stateA).boundary[position]);
      // There are tens of thousands of these in a merge, most of which agree on the boundary with
      // one that is known.
      auto [slot, inserted] = known.try_emplace(boundary, merged.states.size());
      if (inserted)
        merged.states.emplace_back().boundary = boundary;
      else if (!(cost < merged.states[slot->second].cost))
        continue;
      State &state = merged.states[slot->second];
      state.cost = cost;
      state.left = indexA;
      state.right = indexB;
    }
  drop(merged);
  if (merged.states.size() > maxStates) {
    auto isCheaper = [](const State &x, const State &y) {
      return std::tie(x.cost, x.left, x.right) < std::tie(y.cost, y.left, y.right);
    };
    std::nth_element(merged.states.begin(), merged.states.begin() + maxStates, merged.states.end(),
                     isCheaper);
    merged.states.resize(maxStates);
    llvm::sort(merged.states, isCheaper);
  }
  for (unsigned &region : regionOf)
    if (region == left || region == right)
      region = id;
  regions.push_back(std::move(merged));
}

void Solver::read(unsigned region, unsigned state, std::vector<unsigned> &labels) const {
  const LayoutRegion &of = regions[region];
  if (of.node) {
    labels[*of.node] = static_cast<uint8_t>(of.states[state].boundary[0]);
    return;
  }
  read(of.left, of.states[state].left, labels);
  read(of.right, of.states[state].right, labels);
}

std::vector<unsigned> Solver::run() {
  for (auto [index, edge] : llvm::enumerate(problem.edges)) {
    // An edge from a node to itself is counted with the node.
    if (edge.from == edge.to)
      continue;
    incident[edge.from].push_back(index);
    incident[edge.to].push_back(index);
  }
  for (const LabellingProblem::Edge &edge : problem.edges) {
    auto [least, most] = std::minmax_element(edge.costs.begin(), edge.costs.end());
    spread.push_back(*most - *least);
    between.push_back(&edge);
  }
  for (auto [node, costs] : llvm::enumerate(problem.nodes)) {
    LayoutRegion region;
    region.node = node;
    region.boundary.push_back(node);
    for (auto [label, cost] : llvm::enumerate(costs)) {
      State state;
      state.boundary.push_back(static_cast<char>(label));
      state.cost = cost;
      region.states.push_back(std::move(state));
    }
    regionOf[node] = node;
    regions.push_back(std::move(region));
  }
  for (const LabellingProblem::Edge &edge : problem.edges)
    if (edge.from == edge.to) {
      size_t count = problem.nodes[edge.from].size();
      for (size_t label = 0; label < count; ++label)
        regions[edge.from].states[label].cost += edge.costs[label * count + label];
    }

  for (LayoutRegion &region : regions)
    drop(region);

  while (auto pair = choosePair())
    merge(pair->first, pair->second);

  std::vector<unsigned> labels(problem.nodes.size());
  std::vector<bool> done(regions.size());
  for (unsigned region : regionOf) {
    if (done[region])
      continue;
    done[region] = true;
    const std::vector<State> &states = regions[region].states;
    auto best = std::min_element(states.begin(), states.end(),
                                 [](const State &x, const State &y) { return x.cost < y.cost; });
    read(region, best - states.begin(), labels);
  }
  return labels;
}

std::vector<unsigned> tessera::tilegpu::solveLabelling(const LabellingProblem &problem,
                                                       unsigned maxStates) {
  return Solver(problem, maxStates).run();
}
