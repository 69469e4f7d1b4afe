// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-outline-parts: functions that are too long for LLVM are divided.
//
// Blocks are divided from the inside out: a loop whose body became calls counts as a few
// operations in the block around it.

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/FoldUtils.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSOUTLINEPARTS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// True if a value is built again in each function that uses it: constants, and views of memory,
/// which no call takes or returns.
bool isRebuilt(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def)
    return false;
  return matchPattern(def, m_Constant()) || isa<MemRefType, LLVM::LLVMStructType>(value.getType());
}

unsigned countOps(Region &region) {
  unsigned count = 0;
  region.walk([&](Operation *) { ++count; });
  return count;
}

/// Divides one function.
class FunctionDivider {
public:
  FunctionDivider(func::FuncOp function, unsigned limit, unsigned partSize)
      : function(function), limit(limit), partSize(partSize) {}

  void run() {
    if (countOps(function.getBody()) <= limit)
      return;
    foldConstants();
    divideRegion(function.getBody());
  }

private:
  using Values = llvm::SetVector<Value>;

  void foldConstants();

  unsigned divideRegion(Region &region);
  unsigned divideBlock(Block &block);
  Location findPlace(ArrayRef<Operation *> ops);
  void outline(ArrayRef<Operation *> ops);
  static void findLeaves(Value value, function_ref<bool(Value)> isLeaf, Values &leaves);
  static Value rebuild(Value value, OpBuilder &builder, IRMapping &mapping);

  func::FuncOp function;
  unsigned limit, partSize;
  unsigned numParts = 0;
};

/// The type in which a part takes or returns values. Masks are bytes: LLVM 22 fails to pass a
/// vector of one bit, and has no register for others without AVX-512.
static Type getPassedType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || !vector.getElementType().isInteger(1))
    return type;
  return vector.clone(IntegerType::get(type.getContext(), 8));
}

static Value toPassed(Value value, OpBuilder &builder) {
  Type type = getPassedType(value.getType());
  if (type == value.getType())
    return value;
  return arith::ExtUIOp::create(builder, value.getLoc(), type, value);
}

static Value fromPassed(Value passed, Type type, OpBuilder &builder) {
  if (passed.getType() == type)
    return passed;
  return arith::TruncIOp::create(builder, passed.getLoc(), type, passed);
}

/// A value computed from constants counts as one, too. In another part it would be unknown, and a
/// division by it would need the machine's instruction.
void FunctionDivider::foldConstants() {
  SmallVector<Operation *> ops;
  function.getBody().walk([&](Operation *op) { ops.push_back(op); });
  OperationFolder folder(function.getContext());
  for (Operation *op : ops)
    if (op->getNumOperands() != 0 && llvm::all_of(op->getOperands(), [](Value operand) {
          return matchPattern(operand, m_Constant());
        }))
      (void)folder.tryToFold(op);
}

/// Divides the contents of a region; returns the number of operations that remain there.
unsigned FunctionDivider::divideRegion(Region &region) {
  unsigned size = countOps(region);
  if (size <= limit)
    return size;
  size = 0;
  for (Block &block : region)
    size += divideBlock(block);
  return size;
}

unsigned FunctionDivider::divideBlock(Block &block) {
  SmallVector<Operation *> part;
  unsigned size = 0, left = 0;
  auto finish = [&] {
    if (size > partSize / 2) {
      outline(part);
      size = 1;
    }
    left += size;
    part.clear();
    size = 0;
  };
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    unsigned opSize = 1;
    for (Region &region : op.getRegions())
      opSize += divideRegion(region);
    // Ops that would be rebuilt in any case stay, if they use nothing of the part.
    if ((op.getNumOperands() == 0 || part.empty()) && op.getNumResults() == 1 &&
        isRebuilt(op.getResult(0))) {
      if (!part.empty())
        op.moveBefore(part.front());
      continue;
    }
    if (size + opSize > partSize)
      finish();
    part.push_back(&op);
    size += opSize;
  }
  finish();
  return left;
}

/// The values that `value` is built from, each either in a register or known to `isLeaf`.
void FunctionDivider::findLeaves(Value value, function_ref<bool(Value)> isLeaf, Values &leaves) {
  if (isLeaf(value) || !isRebuilt(value)) {
    leaves.insert(value);
    return;
  }
  for (Value operand : value.getDefiningOp()->getOperands())
    findLeaves(operand, isLeaf, leaves);
}

Value FunctionDivider::rebuild(Value value, OpBuilder &builder, IRMapping &mapping) {
  if (Value done = mapping.lookupOrNull(value))
    return done;
  if (!isRebuilt(value))
    return value;
  Operation *def = value.getDefiningOp();
  for (Value operand : def->getOperands())
    mapping.map(operand, rebuild(operand, builder, mapping));
  builder.clone(*def, mapping);
  return mapping.lookup(value);
}

/// A place in the source, which calls in a function with debug information need.
Location FunctionDivider::findPlace(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (op->getLoc()->findInstanceOf<FileLineColLoc>())
      return op->getLoc();
  return function.getLoc();
}

void FunctionDivider::outline(ArrayRef<Operation *> ops) {
  DenseSet<Operation *> inside;
  DenseSet<Value> defined;
  for (Operation *op : ops)
    op->walk([&](Operation *inner) {
      inside.insert(inner);
      defined.insert(inner->result_begin(), inner->result_end());
      for (Region &region : inner->getRegions())
        for (Block &block : region)
          defined.insert(block.args_begin(), block.args_end());
    });
  Values used, taken, usedBehind, returned;
  for (Operation *op : ops) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!defined.contains(operand))
          used.insert(operand);
    });
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        usedBehind.insert(result);
  }
  for (Value value : used)
    findLeaves(value, [](Value) { return false; }, taken);
  for (Value value : usedBehind)
    findLeaves(value, [&](Value leaf) { return !defined.contains(leaf); }, returned);
  returned.remove_if([&](Value value) { return !defined.contains(value); });

  // The part, before the function.
  OpBuilder builder(function);
  auto types = [](const Values &values) {
    return llvm::map_to_vector(values, [](Value value) { return getPassedType(value.getType()); });
  };
  Location loc = findPlace(ops);
  auto part =
      func::FuncOp::create(builder, loc, (function.getName() + ".part" + Twine(numParts++)).str(),
                           builder.getFunctionType(types(taken), types(returned)));
  part.setPrivate();
  part->setAttr("passthrough", builder.getStrArrayAttr({"noinline"}));

  OpBuilder here(ops.front());
  auto arguments = llvm::map_to_vector(taken, [&](Value value) { return toPassed(value, here); });
  auto call = func::CallOp::create(here, loc, part, arguments);

  Block *body = part.addEntryBlock();
  OpBuilder inner = OpBuilder::atBlockBegin(body);
  IRMapping atHand;
  for (auto [outside, argument] : llvm::zip_equal(taken, body->getArguments()))
    atHand.map(outside, fromPassed(argument, outside.getType(), inner));
  for (Value value : used)
    rebuild(value, inner, atHand);
  for (Operation *op : ops) {
    op->moveBefore(body, body->end());
    op->walk([&](Operation *user) {
      for (OpOperand &operand : user->getOpOperands())
        if (Value value = atHand.lookupOrNull(operand.get()))
          operand.set(value);
    });
  }
  inner.setInsertionPointToEnd(body);
  auto results = llvm::map_to_vector(returned, [&](Value value) {
    Value passed = toPassed(value, inner);
    if (passed != value)
      inside.insert(passed.getDefiningOp());
    return passed;
  });
  inside.insert(func::ReturnOp::create(inner, loc, results));

  // The values that are used behind it.
  here.setInsertionPointAfter(call);
  IRMapping behind;
  for (auto [inPart, result] : llvm::zip_equal(returned, call.getResults()))
    behind.map(inPart, fromPassed(result, inPart.getType(), here));
  for (Value value : used)
    behind.map(value, value);
  for (auto [outside, inPart] : atHand.getValueMap())
    behind.map(inPart, outside);
  for (Value value : usedBehind) {
    Value fresh = rebuild(value, here, behind);
    value.replaceUsesWithIf(fresh,
                            [&](OpOperand &use) { return !inside.contains(use.getOwner()); });
  }
}

struct StripsOutlineParts : impl::StripsOutlinePartsBase<StripsOutlineParts> {
  using StripsOutlinePartsBase::StripsOutlinePartsBase;

  void runOnOperation() override {
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!function.isDeclaration())
        FunctionDivider(function, limit, partSize).run();
  }
};

} // namespace
} // namespace tessera
