// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A made-up instruction of tensor cores: each warp multiplies 32 rows of a tile in shared memory
// and goes on meanwhile. It differs from the real ones in its rows, warps, fragments and waits. No
// pass knows it. It has an instruction class and the interfaces of its ops, and its lowering: it
// becomes a dot by multiply-adds where it begins.

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace {

constexpr unsigned kRowBits = 5, kMaxPending = 3;
constexpr int64_t kRate = 512;

/// Gives the bits of a place to lanes and warps, and the others to registers.
LinearLayout spread(ArrayRef<int64_t> shape, ArrayRef<uint64_t> bits, unsigned warps) {
  LinearLayout layout(shape);
  for (auto [number, bit] : llvm::enumerate(bits)) {
    HwDim dim = number < kLaneBits                          ? HwDim::Lane
                : number < kLaneBits + llvm::Log2_32(warps) ? HwDim::Warp
                                                            : HwDim::Reg;
    layout.columns(dim).push_back(bit);
  }
  return layout.canonical();
}

/// The fragment of a result, or of an operand in registers: a lane has a whole row.
LinearLayout getRows(ArrayRef<int64_t> shape, unsigned warps) {
  LinearLayout numbers(shape);
  SmallVector<uint64_t> bits;
  for (unsigned dim : {0u, 1u})
    for (unsigned bit = 0; bit < numbers.dimBits(dim); ++bit)
      bits.push_back(uint64_t(1) << (numbers.dimShift(dim) + bit));
  return spread(shape, bits, warps);
}

/// Any layout, for operands of multiply-adds.
LinearLayout getNeighbours(ArrayRef<int64_t> shape, unsigned warps) {
  SmallVector<uint64_t> bits;
  for (unsigned bit = 0; bit < LinearLayout(shape).elementBits(); ++bit)
    bits.push_back(uint64_t(1) << bit);
  return spread(shape, bits, warps);
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

class RowDotOp
    : public Op<RowDotOp, OpTrait::ZeroRegions, OpTrait::OneResult, OpTrait::ZeroSuccessors,
                OpTrait::NOperands<3>::Impl, MemoryEffectOpInterface::Trait, DotOpInterface::Trait,
                AsyncOpInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RowDotOp)

  using Op::Op;
  static StringRef getOperationName() { return "row_dot.dot"; }
  static ArrayRef<StringRef> getAttributeNames() {
    static const StringRef names[] = {"in_flight"};
    return names;
  }
  static RowDotOp create(OpBuilder &builder, Location loc, Value a, Value b, Value acc) {
    OperationState state(loc, getOperationName(), {a, b, acc}, acc.getType());
    return cast<RowDotOp>(builder.create(state));
  }

  Value getA() { return getOperand(0); }
  Value getB() { return getOperand(1); }
  Value getAcc() { return getOperand(kAccOperand); }
  void getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
    for (OpOperand &operand : getOperation()->getOpOperands())
      if (isa<MemDescType>(operand.get().getType()))
        effects.emplace_back(MemoryEffects::Read::get(), &operand, SharedMemory::get());
  }

  int64_t getCycles(const GPUMachine &) {
    auto type = cast<RankedTensorType>(getAcc().getType());
    return type.getNumElements() * cast<MemDescType>(getB().getType()).getShape().front() / kRate;
  }
  std::optional<LinearLayout> getFragment(unsigned operand) {
    ArrayRef<int64_t> shape = tile::getShape(getOperand(operand).getType());
    return getRows(shape, *tilegpu::getNumWarps(getOperation()));
  }

  bool isInFlight() { return getOperation()->hasAttr("in_flight"); }
  void setInFlight() { getOperation()->setAttr("in_flight", UnitAttr::get(getContext())); }
  bool isGroup() { return true; }
  unsigned getMaxPendingGroups() { return kMaxPending; }
  Operation *createWait(OpBuilder &builder, Location loc, ValueRange results, unsigned pending);
};

class RowWaitOp : public Op<RowWaitOp, OpTrait::ZeroRegions, OpTrait::VariadicResults,
                            OpTrait::ZeroSuccessors, OpTrait::VariadicOperands,
                            MemoryEffectOpInterface::Trait, GroupWaitOpInterface::Trait> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RowWaitOp)

  using Op::Op;
  static StringRef getOperationName() { return "row_dot.wait"; }
  static ArrayRef<StringRef> getAttributeNames() {
    static const StringRef names[] = {"pending"};
    return names;
  }
  static RowWaitOp create(OpBuilder &builder, Location loc, ValueRange results, unsigned pending) {
    OperationState state(loc, getOperationName(), results, results.getTypes());
    state.addAttribute("pending", builder.getI32IntegerAttr(pending));
    return cast<RowWaitOp>(builder.create(state));
  }
  void getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
    effects.emplace_back(MemoryEffects::Read::get(), SharedMemory::get());
    effects.emplace_back(MemoryEffects::Write::get(), SharedMemory::get());
  }
  unsigned getPendingGroups() {
    return getOperation()->getAttrOfType<IntegerAttr>("pending").getInt();
  }
  bool isFor(Operation *work) { return isa<RowDotOp>(work); }
};

Operation *RowDotOp::createWait(OpBuilder &builder, Location loc, ValueRange results,
                                unsigned pending) {
  return RowWaitOp::create(builder, loc, results, pending);
}

//===----------------------------------------------------------------------===//
// The instruction
//===----------------------------------------------------------------------===//

class RowDotInstruction : public DotInstruction {
public:
  StringRef getName() const override { return "row_dot"; }
  bool isOf(const GPUMachine &) const override { return true; }
  MMAShape getShape() const override { return {1 << kRowBits, 8, 32, 1, 16}; }
  int64_t getRate(const GPUMachine &) const override { return kRate; }
  std::string whyNot(const DotExtents &dot, const DotMachine &machine) const override {
    if (dot.isBatched() || !dot.element.isF16() || !dot.accumulator.isF32())
      return "it multiplies matrices of f16 alone";
    if (dot.m < getShape().rows * machine.warps)
      return "a warp has less than 32 rows";
    return "";
  }
  bool readsSharedMemory() const override { return true; }
  bool multipliesAsCopied(tile::DotOp dot) const override {
    return getElementTypeOrSelf(dot.getA().getType()).isF16();
  }
  Operation *create(OpBuilder &builder, const DotExtents &dot, const DotMachine &, Value a, Value b,
                    Value acc) const override {
    return RowDotOp::create(builder, tile::DotOp(dot.op).getLoc(), a, b, acc);
  }
};

class RowDotInstructions : public DotInstructionDialectInterface {
public:
  using DotInstructionDialectInterface::DotInstructionDialectInterface;
  ArrayRef<const DotInstruction *> getInstructions() const override {
    static const RowDotInstruction instruction;
    static const DotInstruction *const all[] = {&instruction};
    return all;
  }
};

class RowDotDialect : public Dialect {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RowDotDialect)

  explicit RowDotDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<RowDotDialect>()) {
    addOperations<RowDotOp, RowWaitOp>();
    addInterfaces<RowDotInstructions>();
    attachFragmentRules(context);
  }
  static StringRef getDialectNamespace() { return "row_dot"; }
};

//===----------------------------------------------------------------------===//
// The lowering
//===----------------------------------------------------------------------===//

struct TestRowDotPass : public PassWrapper<TestRowDotPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestRowDotPass)

  TestRowDotPass() = default;
  TestRowDotPass(const TestRowDotPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-row-dot"; }
  StringRef getDescription() const final {
    return "Offer dots to a made-up instruction, and lower it here where `lower` is set";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<RowDotDialect>();
  }

  void runOnOperation() final {
    if (!lower)
      return;
    getOperation().walk([](RowWaitOp wait) {
      wait.getOperation()->replaceAllUsesWith(wait.getOperation()->getOperands());
      wait.erase();
    });
    getOperation().walk([](RowDotOp dot) {
      OpBuilder builder(dot);
      auto read = [&](Value operand) -> Value {
        auto buffer = dyn_cast<MemDescType>(operand.getType());
        if (!buffer)
          return operand;
        auto layout = LayoutAttr::get(
            builder.getContext(),
            getNeighbours(buffer.getShape(), *tilegpu::getNumWarps(dot.getOperation())));
        auto type = RankedTensorType::get(buffer.getShape(), buffer.getElementType(), layout);
        return LocalLoadOp::create(builder, dot.getLoc(), type, operand);
      };
      Value a = read(dot.getA()), b = read(dot.getB());
      dot.replaceAllUsesWith(
          tile::DotOp::create(builder, dot.getLoc(), a, b, dot.getAcc()).getResult());
      dot.erase();
    });
  }

  Option<bool> lower{*this, "lower", llvm::cl::desc("Replace its ops by multiply-adds"),
                     llvm::cl::init(false)};
};

} // namespace

namespace tessera::test {
void registerTestRowDotPass() { PassRegistration<TestRowDotPass>(); }
} // namespace tessera::test
