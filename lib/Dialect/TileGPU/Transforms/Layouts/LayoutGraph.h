// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function as a graph of ops and the tiles that flow between them, each with the
// layouts that it may have.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTGRAPH_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTGRAPH_H

#include "LayoutCosts.h"
#include "LayoutRules.h"
#include "tessera/Dialect/TileGPU/Transforms/LayoutSolver.h"

namespace tessera::tilegpu {

/// On an `scf.if` whose condition mostly holds.
inline constexpr llvm::StringLiteral kIsLikelyAttr =
    TileGPUDialect::IsLikelyAttrHelper::getNameStr();

class LayoutGraph {
public:
  LayoutGraph(const LayoutRules &rules, LayoutCosts &costs, CheapTiles &cheap)
      : rules(rules), costs(costs), cheap(cheap) {}

  /// Fails, with an error at the op, where an op has no rule or no layout.
  mlir::LogicalResult build(tile::FuncOp function);
  void solve();

  /// The label of an op; null for one that has none (its results are cheap).
  LayoutAttr getLabel(mlir::Operation *op) const;
  /// The layout that a value has; null for a cheap one.
  LayoutAttr getLayout(mlir::Value value) const;

private:
  /// An op, or a value with several definitions: one that a loop carries or a branch yields.
  struct Node {
    mlir::Operation *op = nullptr;
    mlir::RankedTensorType type;
    std::vector<LayoutAttr> labels;
    unsigned label = 0;
    bool isPinned = false;
    bool isWhole = false; ///< in each block of a cluster
  };
  /// An edge from a tile to its use. For an op at the end, its result or operand number.
  struct Edge {
    unsigned from, result, to, operand;
    mlir::Value value;
  };

  void findWhole(tile::FuncOp function);
  void addVariable(llvm::ArrayRef<mlir::Value> values, LayoutAttr pinned = {});
  mlir::LogicalResult addNodes(mlir::Operation *op);
  void addEdges(mlir::Operation *op);
  void addEdge(mlir::Value value, unsigned to, unsigned operand);
  void proposeLabels();
  bool addLabel(unsigned node, LayoutAttr label);

  LayoutAttr given(const Edge &edge, LayoutAttr label) const;
  LayoutAttr needed(const Edge &edge, LayoutAttr label) const;

  const LayoutRules &rules;
  LayoutCosts &costs;
  CheapTiles &cheap;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  llvm::DenseMap<mlir::Operation *, unsigned> ofOp;
  llvm::DenseMap<mlir::Value, unsigned> ofVariable;
  /// Ops that each block of a cluster runs separately.
  llvm::DenseSet<mlir::Operation *> whole;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTGRAPH_H
