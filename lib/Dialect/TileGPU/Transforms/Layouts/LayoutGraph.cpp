// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LayoutGraph.h"

#include "mlir/IR/Matchers.h"

#include <deque>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// How often code runs
//===----------------------------------------------------------------------===//

static double getIterations(Operation *loop) {
  // Not of a GPU: a guess at source code.
  constexpr double kUnknownIterations = 8, kMaxIterations = 64;
  auto forOp = dyn_cast<scf::ForOp>(loop);
  if (!forOp)
    return isa<scf::WhileOp>(loop)                                 ? kUnknownIterations
           : isa<scf::IfOp>(loop) && !loop->hasAttr(kIsLikelyAttr) ? 0.5
                                                                   : 1;
  APInt lower, upper, step;
  if (!matchPattern(forOp.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(forOp.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(forOp.getStep(), m_ConstantInt(&step)) || step.getSExtValue() <= 0)
    return kUnknownIterations;
  double iterations =
      std::ceil(double(upper.getSExtValue() - lower.getSExtValue()) / double(step.getSExtValue()));
  return std::clamp(iterations, 1.0, kMaxIterations);
}

static double getFrequency(Operation *op) {
  double frequency = 1;
  for (Operation *parent = op->getParentOp(); parent && !isa<tile::FuncOp>(parent);
       parent = parent->getParentOp())
    frequency *= getIterations(parent);
  return frequency;
}

static double getFrequency(Value value) {
  if (Operation *op = value.getDefiningOp())
    return getFrequency(op);
  Operation *parent = cast<BlockArgument>(value).getOwner()->getParentOp();
  return isa<tile::FuncOp>(parent) ? 1 : getFrequency(parent) * getIterations(parent);
}

/// The loop around a use that a value comes from before; null if there is none.
static Operation *getLoopOfUse(Value value, Operation *user) {
  Region *region = value.getParentRegion();
  for (Operation *parent = user->getParentOp(); parent && parent->getParentRegion();
       parent = parent->getParentOp()) {
    if (region->isAncestor(parent->getParentRegion()) && isa<LoopLikeOpInterface>(parent))
      return parent;
    if (!region->isProperAncestor(parent->getParentRegion()))
      return nullptr;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Nodes and edges
//===----------------------------------------------------------------------===//

void LayoutGraph::addVariable(ArrayRef<Value> values, LayoutAttr pinned) {
  auto type = dyn_cast<RankedTensorType>(values.front().getType());
  if (!type)
    return;
  Node node;
  node.type = type;
  if (pinned) {
    node.labels.push_back(pinned);
    node.isPinned = true;
  }
  node.isWhole = llvm::any_of(values, [&](Value value) {
    return whole.contains(value.getDefiningOp() ? value.getDefiningOp()
                                                : value.getParentBlock()->getParentOp());
  });
  for (Value value : values)
    ofVariable[value] = nodes.size();
  nodes.push_back(std::move(node));
}

LogicalResult LayoutGraph::addNodes(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults()))
      addVariable({argument, result});
    return success();
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (Value argument : loop.getBeforeArguments())
      addVariable(argument);
    for (auto [argument, result] : llvm::zip_equal(loop.getAfterArguments(), loop.getResults()))
      addVariable({argument, result});
    return success();
  }
  if (isa<scf::IfOp>(op)) {
    for (Value result : op->getResults())
      addVariable(result);
    return success();
  }
  if (isa<scf::YieldOp, scf::ConditionOp>(op))
    return success();
  if (llvm::none_of(op->getOperands(), isTile) && llvm::none_of(op->getResults(), isTile))
    return success();
  if (op->getNumResults() == 1 && cheap.contains(op->getResult(0)))
    if (isTile(op->getResult(0)))
      return success();
  Node node;
  node.op = op;
  node.isWhole = whole.contains(op);
  node.type = rules.getLabelType(op);
  if (!node.type)
    return op->emitOpError("takes or gives tiles, but has no rule for their layouts");
  ofOp[op] = nodes.size();
  nodes.push_back(std::move(node));
  return success();
}

void LayoutGraph::addEdge(Value value, unsigned to, unsigned operand) {
  if (!isTile(value) || cheap.contains(value))
    return;
  if (auto variable = ofVariable.find(value); variable != ofVariable.end()) {
    edges.push_back({variable->second, 0, to, operand, value});
    return;
  }
  unsigned from = ofOp.lookup(value.getDefiningOp());
  edges.push_back({from, cast<OpResult>(value).getResultNumber(), to, operand, value});
}

void LayoutGraph::addEdges(Operation *op) {
  auto tie = [&](ValueRange from, ValueRange to) {
    for (auto [value, variable] : llvm::zip_equal(from, to))
      if (isTile(variable))
        addEdge(value, ofVariable.lookup(variable), 0);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    tie(loop.getInitArgs(), loop.getResults());
    tie(loop.getYieldedValues(), loop.getResults());
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    tie(loop.getInits(), loop.getBeforeArguments());
    tie(loop.getConditionOp().getArgs(), loop.getResults());
    tie(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
    return;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (branch.getNumResults() == 0)
      return;
    tie(branch.thenYield().getOperands(), branch.getResults());
    tie(branch.elseYield().getOperands(), branch.getResults());
    return;
  }
  auto node = ofOp.find(op);
  if (node == ofOp.end())
    return;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    addEdge(operand, node->second, index);
}

LayoutAttr LayoutGraph::given(const Edge &edge, LayoutAttr label) const {
  Operation *op = nodes[edge.from].op;
  return op ? rules.ofResult(op, edge.result, label) : label;
}

LayoutAttr LayoutGraph::needed(const Edge &edge, LayoutAttr label) const {
  Operation *op = nodes[edge.to].op;
  return op ? rules.ofOperand(op, edge.operand, label) : label;
}

//===----------------------------------------------------------------------===//
// Ops that each block runs separately
//===----------------------------------------------------------------------===//

/// Notes all that comes before the last sum over blocks, until which these are not at the same
/// place of the program and cannot exchange elements.
void LayoutGraph::findWhole(tile::FuncOp function) {
  Operation *last = nullptr;
  function.walk([&](ClusterSumOp sum) { last = sum; });
  if (!last)
    return;
  (void)function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == last)
      return WalkResult::interrupt();
    if (!isa<ClusterSumOp>(op) && !op->isAncestor(last))
      whole.insert(op);
    return WalkResult::advance();
  });
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

bool LayoutGraph::addLabel(unsigned index, LayoutAttr label) {
  constexpr size_t kMaxLabels = 12;
  Node &node = nodes[index];
  if (node.isWhole && label)
    label = rules.makeWhole(label);
  if (!label || node.isPinned || node.labels.size() >= kMaxLabels ||
      llvm::is_contained(node.labels, label) || (node.op && !rules.isValid(node.op, label)))
    return false;
  node.labels.push_back(label);
  return true;
}

/// Seeds, then what makes neighbours free of conversions, breadth first; the best
/// candidates of all seeds before the second best of any.
void LayoutGraph::proposeLabels() {
  std::vector<std::vector<unsigned>> incident(nodes.size());
  for (auto [index, edge] : llvm::enumerate(edges)) {
    incident[edge.from].push_back(index);
    incident[edge.to].push_back(index);
  }
  std::deque<std::pair<unsigned, LayoutAttr>> queue;
  auto add = [&](unsigned node, LayoutAttr label) {
    if (addLabel(node, label))
      queue.push_back({node, label});
  };
  auto carry = [&] {
    while (!queue.empty()) {
      auto [node, label] = queue.front();
      queue.pop_front();
      for (unsigned index : incident[node]) {
        const Edge &edge = edges[index];
        if (edge.from == node) {
          Operation *op = nodes[edge.to].op;
          LayoutAttr layout = given(edge, label);
          add(edge.to, layout && op ? rules.fromOperand(op, edge.operand, layout) : layout);
        }
        if (edge.to == node) {
          Operation *op = nodes[edge.from].op;
          LayoutAttr layout = needed(edge, label);
          add(edge.from, layout && op ? rules.fromResult(op, edge.result, layout) : layout);
        }
      }
    }
  };

  std::vector<SmallVector<LayoutAttr>> seeds(nodes.size());
  for (auto [index, node] : llvm::enumerate(nodes)) {
    if (node.isPinned) {
      queue.push_back({index, node.labels.front()});
      continue;
    }
    if (!node.op)
      continue;
    if (auto candidates = node.op->getAttrOfType<ArrayAttr>(kCandidatesAttr))
      for (auto candidate : candidates.getAsRange<LayoutAttr>())
        seeds[index].push_back(candidate);
    else
      seeds[index] = rules.proposeOwn(node.op);
  }
  for (size_t rank = 0, most = 1; rank < most; ++rank) {
    for (auto [index, proposed] : llvm::enumerate(seeds)) {
      most = std::max(most, proposed.size());
      if (rank < proposed.size())
        add(index, proposed[rank]);
    }
    carry();
  }
  // Accesses behind a sum over blocks, with the parts that these have of it.
  for (size_t sum = 0; sum < nodes.size(); ++sum) {
    if (!isa_and_nonnull<ClusterSumOp>(nodes[sum].op) || nodes[sum].labels.empty())
      continue;
    LayoutAttr parts = rules.ofResult(nodes[sum].op, 0, nodes[sum].labels.front());
    for (auto [index, proposed] : llvm::enumerate(seeds))
      for (LayoutAttr candidate : proposed)
        if (!nodes[index].isWhole && nodes[index].op->hasAttr(kCandidatesAttr))
          add(index, rules.withBlocksOf(candidate, parts));
    carry();
  }
  // Ops that no seed reaches.
  for (auto [index, node] : llvm::enumerate(nodes)) {
    if (!node.labels.empty())
      continue;
    if (node.op)
      for (LayoutAttr label : rules.propose(node.op))
        add(index, label);
    else
      add(index, rules.ofSignature(node.type));
    carry();
  }
}

LogicalResult LayoutGraph::build(tile::FuncOp function) {
  findWhole(function);
  for (Value argument : function.getBody().getArguments())
    if (isTile(argument))
      addVariable(argument, rules.ofSignature(argument.getType()));
  WalkResult walked = function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    return failed(addNodes(op)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { addEdges(op); });
  proposeLabels();
  for (const Node &node : nodes)
    if (node.labels.empty())
      return node.op->emitOpError("has no layout in which it could be done on tiles of ")
             << node.type;
  return success();
}

void LayoutGraph::solve() {
  LabellingProblem problem;
  for (const Node &node : nodes) {
    std::vector<double> &ofNode = problem.nodes.emplace_back();
    double frequency = node.op ? getFrequency(node.op) : 0;
    for (LayoutAttr label : node.labels)
      ofNode.push_back(node.op ? frequency * costs.ofOp(node.op, label) : 0);
  }
  for (const Edge &edge : edges) {
    LabellingProblem::Edge &ofEdge = problem.edges.emplace_back();
    ofEdge.from = edge.from;
    ofEdge.to = edge.to;
    double frequency = getFrequency(edge.value);
    Type element = getElementTypeOrSelf(edge.value.getType());
    SmallVector<LayoutAttr> wanted;
    for (LayoutAttr label : nodes[edge.to].labels)
      wanted.push_back(needed(edge, label));
    Operation *user = nodes[edge.to].op;
    Operation *loop = user ? getLoopOfUse(edge.value, user) : nullptr;
    double iterations = loop ? getFrequency(loop) * getIterations(loop) : 0;
    for (LayoutAttr label : nodes[edge.from].labels) {
      LayoutAttr layout = given(edge, label);
      for (LayoutAttr need : wanted) {
        double cost = need ? frequency * costs.ofConversion(element, layout, need) : 0;
        if (loop)
          cost += iterations * costs.ofKeeping(edge.value, need ? need : layout);
        ofEdge.costs.push_back(cost);
      }
    }
  }
  std::vector<unsigned> labels = solveLabelling(problem);
  for (auto [node, label] : llvm::zip_equal(nodes, labels))
    node.label = label;
}

LayoutAttr LayoutGraph::getLabel(Operation *op) const {
  auto node = ofOp.find(op);
  return node == ofOp.end() ? LayoutAttr() : nodes[node->second].labels[nodes[node->second].label];
}

LayoutAttr LayoutGraph::getLayout(Value value) const {
  if (auto variable = ofVariable.find(value); variable != ofVariable.end())
    return nodes[variable->second].labels[nodes[variable->second].label];
  Operation *op = value.getDefiningOp();
  LayoutAttr label = op ? getLabel(op) : LayoutAttr();
  return label ? rules.ofResult(op, cast<OpResult>(value).getResultNumber(), label) : LayoutAttr();
}
