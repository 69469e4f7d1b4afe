// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Labels for the nodes of a graph at the least sum of node and edge costs.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_LAYOUTSOLVER_H
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_LAYOUTSOLVER_H

#include <vector>

namespace tessera::tilegpu {

struct LabellingProblem {
  struct Edge {
    unsigned from, to;
    /// [label of from][label of to], row by row.
    std::vector<double> costs;
  };
  /// [node][label]; each node has at least one label.
  std::vector<std::vector<double>> nodes;
  std::vector<Edge> edges;
};

/// The label of each node. The same for the same problem, always.
///
/// Regions of nodes are merged two at a time until no edge between regions remains. The boundary of
/// a region are its nodes with edges to other regions. Only the cheapest of the labellings that
/// agree on the boundary can be part of a solution. So one is kept for each labelling of the
/// boundary. That is exact as long as there are at most `maxStates` of them; beyond that the
/// cheapest are kept. Not of a GPU: the default is a limit of the search.
std::vector<unsigned> solveLabelling(const LabellingProblem &problem, unsigned maxStates = 256);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_LAYOUTSOLVER_H
