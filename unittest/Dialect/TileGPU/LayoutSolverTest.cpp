// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The solver against trying all labellings.

#include "tessera/Dialect/TileGPU/Transforms/LayoutSolver.h"

#include "gtest/gtest.h"

#include <limits>
#include <random>

using tessera::tilegpu::LabellingProblem;
using tessera::tilegpu::solveLabelling;

static double costOf(const LabellingProblem &problem, const std::vector<unsigned> &labels) {
  double cost = 0;
  for (size_t node = 0; node < problem.nodes.size(); ++node)
    cost += problem.nodes[node][labels[node]];
  for (const LabellingProblem::Edge &edge : problem.edges)
    cost += edge.costs[labels[edge.from] * problem.nodes[edge.to].size() + labels[edge.to]];
  return cost;
}

static double leastCost(const LabellingProblem &problem) {
  std::vector<unsigned> labels(problem.nodes.size(), 0);
  double best = std::numeric_limits<double>::infinity();
  while (true) {
    best = std::min(best, costOf(problem, labels));
    size_t node = 0;
    while (node < labels.size() && ++labels[node] == problem.nodes[node].size())
      labels[node++] = 0;
    if (node == labels.size())
      return best;
  }
}

/// Integers, so that sums are exact in any order.
static LabellingProblem makeRandom(std::mt19937 &random, unsigned nodes, unsigned edges) {
  auto draw = [&](unsigned below) { return random() % below; };
  LabellingProblem problem;
  for (unsigned node = 0; node < nodes; ++node) {
    std::vector<double> &costs = problem.nodes.emplace_back(1 + draw(4));
    for (double &cost : costs)
      cost = draw(20);
  }
  for (unsigned index = 0; index < edges; ++index) {
    LabellingProblem::Edge edge;
    edge.from = draw(nodes);
    edge.to = draw(nodes);
    edge.costs.resize(problem.nodes[edge.from].size() * problem.nodes[edge.to].size());
    for (double &cost : edge.costs)
      cost = draw(3) == 0 ? 0 : draw(20);
    problem.edges.push_back(edge);
  }
  return problem;
}

TEST(LayoutSolverTest, FindsTheCheapestLabelling) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 500; ++round) {
    unsigned nodes = 1 + random() % 7;
    LabellingProblem problem = makeRandom(random, nodes, random() % (2 * nodes));
    EXPECT_EQ(costOf(problem, solveLabelling(problem)), leastCost(problem)) << "round " << round;
  }
}

TEST(LayoutSolverTest, GivesOneAnswerToOneProblem) {
  std::mt19937 random(11);
  LabellingProblem problem = makeRandom(random, 60, 120);
  EXPECT_EQ(solveLabelling(problem), solveLabelling(problem));
}

/// With few states the answer may cost more, but is still one.
TEST(LayoutSolverTest, HoldsToItsLimit) {
  std::mt19937 random(13);
  for (unsigned round = 0; round < 50; ++round) {
    LabellingProblem problem = makeRandom(random, 7, 14);
    std::vector<unsigned> labels = solveLabelling(problem, /*maxStates=*/2);
    ASSERT_EQ(labels.size(), problem.nodes.size());
    EXPECT_GE(costOf(problem, labels), leastCost(problem));
  }
}

TEST(LayoutSolverTest, TakesNothing) { EXPECT_TRUE(solveLabelling({}).empty()); }

/// A chain: a conversion in the middle costs 5, the wrong end 8.
TEST(LayoutSolverTest, ConvertsWhereItPays) {
  LabellingProblem problem;
  problem.nodes = {{0, 8}, {1, 1}, {8, 0}};
  std::vector<double> conversion = {0, 5, 5, 0};
  problem.edges = {{0, 1, conversion}, {1, 2, conversion}};
  std::vector<unsigned> labels = solveLabelling(problem);
  EXPECT_EQ(labels.front(), 0u);
  EXPECT_EQ(labels.back(), 1u);
  EXPECT_EQ(costOf(problem, labels), 6);
}
