// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts for all tiles of a function at once. LayoutGraph.h has the choices, and LayoutSolver.h
// chooses. Here the choice is written into the IR, in one walk. Every op gets the types of its
// label, and every operand in another layout a conversion.

#include "LayoutGraph.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUASSIGNLAYOUTSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

static RankedTensorType withEncoding(Type type, Attribute encoding) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), encoding);
}

namespace {

/// Writes the layouts of one function into it.
class LayoutRewriter {
public:
  LayoutRewriter(const LayoutRules &rules, const LayoutGraph &graph, CheapTiles &cheap)
      : rules(rules), graph(graph), cheap(cheap) {}

  void run(tile::FuncOp function);

private:
  void visit(Operation *op);
  /// Sets an operand to its value in a layout; if none is given, in any layout that the value has.
  void setOperand(OpOperand &operand, LayoutAttr layout);
  Value get(Value value, LayoutAttr layout);
  Value makeCheap(Value value, LayoutAttr layout);
  Value convert(Value value, LayoutAttr layout);

  const LayoutRules &rules;
  const LayoutGraph &graph;
  CheapTiles &cheap;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> made;
};

} // namespace

/// The same tile in another layout, right where it comes to be: for all its users. After
/// what ends there, whose shared memory it may then take.
Value LayoutRewriter::convert(Value value, LayoutAttr layout) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Block *block = builder.getInsertionBlock();
  while (builder.getInsertionPoint() != block->end() &&
         isa<AsyncWaitOp, LocalDeallocOp>(*builder.getInsertionPoint()))
    builder.setInsertionPointAfter(&*builder.getInsertionPoint());
  return ConvertLayoutOp::create(builder, value.getLoc(), withEncoding(value.getType(), layout),
                                 value);
}

/// A copy of what makes a cheap tile, in this layout, beside the original.
Value LayoutRewriter::makeCheap(Value value, LayoutAttr layout) {
  Operation *op = value.getDefiningOp();
  OpBuilder builder(op);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(builder, op->getLoc(),
                                     elements.reshape(withEncoding(value.getType(), layout)));
  }
  LayoutAttr label = rules.fromResult(op, 0, layout);
  IRMapping mapping;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (isTile(operand))
      mapping.map(operand, get(operand, rules.ofOperand(op, index, label)));
  // A value that stands twice among the operands has one layout in both places.
  Operation *copy = builder.clone(*op, mapping);
  copy->getResult(0).setType(withEncoding(value.getType(), layout));
  return copy->getResult(0);
}

Value LayoutRewriter::get(Value value, LayoutAttr layout) {
  if (!cheap.contains(value) && graph.getLayout(value) == layout)
    return value;
  Value &slot = made[{value, layout}];
  if (slot)
    return slot;
  Value result = cheap.contains(value) ? makeCheap(value, layout) : convert(value, layout);
  return made[{value, layout}] = result;
}

void LayoutRewriter::setOperand(OpOperand &operand, LayoutAttr layout) {
  Value value = operand.get();
  if (!isTile(value))
    return;
  if (!layout) {
    layout = cheap.contains(value) ? rules.ofSignature(value.getType()) : graph.getLayout(value);
    if (LayoutAttr whole = rules.ofWholeOperand(operand.getOwner(), layout))
      layout = whole;
  }
  operand.set(get(value, layout));
}

void LayoutRewriter::visit(Operation *op) {
  op->removeAttr(kCandidatesAttr);
  if (isa<scf::YieldOp, scf::ConditionOp>(op)) {
    Operation *parent = op->getParentOp();
    unsigned first = isa<scf::ConditionOp>(op) ? 1 : 0;
    auto loop = dyn_cast<scf::WhileOp>(parent);
    ValueRange targets = loop && isa<scf::YieldOp>(op) ? ValueRange(loop.getBeforeArguments())
                                                       : ValueRange(parent->getResults());
    for (OpOperand &operand : op->getOpOperands().drop_front(first))
      setOperand(operand, graph.getLayout(targets[operand.getOperandNumber() - first]));
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [operand, result] : llvm::zip_equal(loop.getInitsMutable(), loop.getResults()))
      setOperand(operand, graph.getLayout(result));
    return;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [operand, argument] :
         llvm::zip_equal(loop.getInitsMutable(), loop.getBeforeArguments()))
      setOperand(operand, graph.getLayout(argument));
    return;
  }
  LayoutAttr label = graph.getLabel(op);
  if (!label)
    return;
  for (OpOperand &operand : op->getOpOperands())
    if (isTile(operand.get()))
      setOperand(operand, rules.ofOperand(op, operand.getOperandNumber(), label));
}

void LayoutRewriter::run(tile::FuncOp function) {
  // Types first: conversions are made from values that have theirs.
  auto setType = [&](Value value) {
    if (!isTile(value))
      return;
    if (LayoutAttr layout = graph.getLayout(value))
      value.setType(withEncoding(value.getType(), layout));
  };
  SmallVector<Operation *> ops;
  for (Value argument : function.getBody().getArguments())
    setType(argument);
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    ops.push_back(op);
    for (Value result : op->getResults())
      setType(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          setType(argument);
  });
  for (Operation *op : ops)
    visit(op);
  // The cheap tiles without a layout are unused now.
  for (Operation *op : llvm::reverse(ops))
    if (op->getNumResults() == 1 && isTile(op->getResult(0)) && op->use_empty() &&
        cheap.contains(op->getResult(0)))
      op->erase();
}

namespace {

struct TileGPUAssignLayoutsPass
    : tessera::tilegpu::impl::TileGPUAssignLayoutsPassBase<TileGPUAssignLayoutsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<unsigned> warps = requireNumWarps(module);
    if (failed(warps))
      return signalPassFailure();
    LayoutRules rules(&getContext(), llvm::Log2_32(*warps), getBlockBits(module));
    for (auto function : module.getOps<tile::FuncOp>()) {
      if (failed(run(function, rules, *warps)))
        return signalPassFailure();
    }
    if (failed(verifyAssigned(module)))
      signalPassFailure();
  }

private:
  LogicalResult run(tile::FuncOp function, const LayoutRules &rules, unsigned warps);
  LogicalResult verifyAssigned(ModuleOp module);
};

} // namespace

LogicalResult TileGPUAssignLayoutsPass::run(tile::FuncOp function, const LayoutRules &rules,
                                            unsigned warps) {
  auto ofSignature = [&](Type type) -> Type {
    return isa<RankedTensorType>(type) ? withEncoding(type, rules.ofSignature(type)) : type;
  };
  FunctionType type = function.getFunctionType();
  SmallVector<Type> inputs = llvm::map_to_vector(type.getInputs(), ofSignature);
  SmallVector<Type> results = llvm::map_to_vector(type.getResults(), ofSignature);
  function.setFunctionType(FunctionType::get(&getContext(), inputs, results));
  if (function.isExternal())
    return success();

  LayoutCosts costs(warps, getMachine(function));
  CheapTiles cheap;
  LayoutGraph graph(rules, costs, cheap);
  if (failed(graph.build(function)))
    return failure();
  graph.solve();
  LayoutRewriter(rules, graph, cheap).run(function);
  return success();
}

LogicalResult TileGPUAssignLayoutsPass::verifyAssigned(ModuleOp module) {
  auto isAssigned = [](Value value) { return !isTile(value) || getLayoutAttr(value.getType()); };
  WalkResult walked = module.walk([&](Operation *op) {
    bool areArgumentsAssigned = llvm::all_of(op->getRegions(), [&](Region &region) {
      return llvm::all_of(
          region, [&](Block &block) { return llvm::all_of(block.getArguments(), isAssigned); });
    });
    if (areArgumentsAssigned && llvm::all_of(op->getResults(), isAssigned))
      return WalkResult::advance();
    op->emitOpError("has a tile without a layout");
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}
