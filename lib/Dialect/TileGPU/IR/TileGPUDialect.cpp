// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tilegpu dialect: its registration, its names for layouts in printed IR, and the
// rules on the attributes of a module.

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

#include "TileGPUWarpSpecializeOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Dialect/Tile/IR/DeclaredAttrs.h"
#include "tessera/Dialect/TileGPU/IR/ShortLoops.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static_assert(kSlotAlignment % GPUMachine::kTMAAlignment == 0, "TMA fills the slots of rings");

#include "tessera/Dialect/TileGPU/IR/TileGPUDialect.cpp.inc"
#include "tessera/Dialect/TileGPU/IR/TileGPUInterfaces.cpp.inc"

namespace {

/// Layouts are long: they are printed once, at the top.
struct TileGPUAsmInterface : public OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const final {
    auto layout = dyn_cast<LayoutAttr>(attr);
    if (!layout)
      return AliasResult::NoAlias;
    os << (layout.isDistributed() ? "layout" : "shared");
    return AliasResult::FinalAlias;
  }
};

} // namespace

void TileGPUDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerOps();
  addInterfaces<TileGPUAsmInterface>();
  attachDotInterfaces(getContext());
}

void TileGPUDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/TileGPU/IR/TileGPUOps.cpp.inc"
      >();
}

Operation *TileGPUDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                               Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute) {
  return tile::verifyDeclared<
      TileGPUDialect::NumWarpsAttrHelper, TileGPUDialect::TargetAttrHelper,
      TileGPUDialect::NumCtasAttrHelper, TileGPUDialect::NumPartsAttrHelper,
      TileGPUDialect::NumStagesAttrHelper, TileGPUDialect::DeterministicAttrHelper,
      TileGPUDialect::FlushResultsAttrHelper, TileGPUDialect::ReversedAxesAttrHelper,
      TileGPUDialect::GroupedRowsAttrHelper, TileGPUDialect::DivisibleSumAttrHelper,
      TileGPUDialect::DivisibleProgramAttrHelper, TileGPUDialect::SharedBytesAttrHelper,
      TileGPUDialect::LaunchAttrHelper, TileGPUDialect::TensorMapAttrHelper,
      TileGPUDialect::LaunchConditionsAttrHelper, TileGPUDialect::ArraysApartAttrHelper,
      TileGPUDialect::OccupancyAttrHelper, TileGPUDialect::PersistentProgramsAttrHelper,
      TileGPUDialect::OverProgramsAttrHelper, TileGPUDialect::WaitsForStreamAttrHelper,
      TileGPUDialect::LaunchWarpsAttrHelper, TileGPUDialect::LibraryAttrHelper,
      TileGPUDialect::ScheduleAttrHelper, TileGPUDialect::NodeAttrHelper,
      TileGPUDialect::KernelScheduleAttrHelper, TileGPUDialect::CandidatesAttrHelper,
      TileGPUDialect::IsLikelyAttrHelper, TileGPUDialect::SharedOffsetAttrHelper,
      TileGPUDialect::ScratchOffsetAttrHelper, TileGPUDialect::ScratchRoundsAttrHelper,
      TileGPUDialect::CacheAttrHelper, TileGPUDialect::EvictAttrHelper,
      TileGPUDialect::AccessAttrHelper, TileGPUDialect::PrefixMasksAttrHelper,
      TileGPUDialect::PartialMasksAttrHelper, TileGPUDialect::RunsAttrHelper,
      TileGPUDialect::BoxRowsAttrHelper, TileGPUDialect::NarrowResultAttrHelper,
      TileGPUDialect::SharedDivisorAttrHelper, TileGPUDialect::DefaultWarpsAttrHelper,
      TileGPUDialect::ElectsAttrHelper, TileGPUDialect::SinksAttrHelper>(op, attribute);
}

LogicalResult TileGPUDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kNumWarpsAttr) {
    auto warps = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op))
      return op->emitOpError("has ") << kNumWarpsAttr << ", which belongs on a module";
    if (!warps || !warps.getType().isInteger(32) || warps.getInt() < 1 ||
        warps.getInt() > GPUMachine::kMaxWarps || !llvm::isPowerOf2_64(warps.getInt()))
      return op->emitOpError("has ")
             << attribute.getValue() << " warps; wanted is a power of two up to 32, as an i32";
  }
  if (attribute.getName() == kNumCTAsAttr) {
    auto blocks = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op))
      return op->emitOpError("has ") << kNumCTAsAttr << ", which belongs on a module";
    if (!blocks || !blocks.getType().isInteger(32) || blocks.getInt() < 1 ||
        blocks.getInt() > kMaxBlocks || !llvm::isPowerOf2_64(blocks.getInt()))
      return op->emitOpError("has clusters of ")
             << attribute.getValue() << " blocks; wanted is a power of two up to " << kMaxBlocks
             << ", as an i32";
  }
  if (attribute.getName() == kSharedOffsetAttr || attribute.getName() == kScratchOffsetAttr) {
    // More than any program has; what lies further on has no address.
    constexpr int64_t kMaxSharedOffset = 1 << 20;
    auto offset = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!offset || !offset.getType().isSignlessIntOrIndex() || offset.getValue().isNegative() ||
        offset.getValue().uge(kMaxSharedOffset))
      return op->emitOpError("has a place in shared memory of ")
             << attribute.getValue() << "; wanted is an integer from 0 to " << kMaxSharedOffset - 1;
  }
  if (attribute.getName() == kReversedAxesAttr || attribute.getName() == kGroupedRowsAttr) {
    // Or what has become of a kernel.
    auto function = dyn_cast<tile::FuncOp>(op);
    if (!isa<FunctionOpInterface>(op) || (function && !function.isKernel()))
      return op->emitOpError("has ")
             << attribute.getName().getValue() << ", which belongs on a kernel";
  }
  if (attribute.getName() == kReversedAxesAttr) {
    auto axes = dyn_cast<DenseI32ArrayAttr>(attribute.getValue());
    if (!axes || llvm::any_of(axes.asArrayRef(), [](int32_t axis) { return axis < 0 || axis > 2; }))
      return op->emitOpError("has the reversed axes ")
             << attribute.getValue() << "; wanted are numbers from 0 to 2, as array<i32: ...>";
  }
  if (attribute.getName() == kTargetAttr && !isa<TargetAttr>(attribute.getValue()))
    return op->emitOpError("has the target ")
           << attribute.getValue() << "; wanted is one such as #tilegpu.target<\"sm_90a\">";
  if (attribute.getName() == kLaunchAttr &&
      (!isa<ModuleOp>(op) || !isa<LaunchAttr>(attribute.getValue())))
    return op->emitOpError("has ")
           << kLaunchAttr << ", which belongs on a module, as #tilegpu.launch";
  if (attribute.getName() == kShortLoopsAttr) {
    auto bounds = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!isa<ModuleOp>(op) || (!isa<UnitAttr>(attribute.getValue()) &&
                               (!bounds || !llvm::all_of(bounds, llvm::IsaPred<StringAttr>))))
      return op->emitOpError("has ")
             << kShortLoopsAttr << ", which belongs on a module, as a list of texts or a unit";
    return success();
  }
  return verifyAttribute(op, attribute);
}

LogicalResult TileGPUDialect::verifyRegionArgAttribute(Operation *op, unsigned region,
                                                       unsigned argument,
                                                       NamedAttribute attribute) {
  if (attribute.getName() != kTensorMapAttr)
    return verifyAttribute(op, attribute);
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || !isa<TensorMapType>(function.getArgumentTypes()[argument]) ||
      !isa<TensorMapAttr>(attribute.getValue()))
    return op->emitOpError("has ")
           << kTensorMapAttr << " on argument #" << argument
           << ", which is not a tensor map, or has another value than a #tilegpu.tensor_map";
  return success();
}

std::optional<unsigned> tessera::tilegpu::getNumWarps(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module)
    return std::nullopt;
  auto warps = module->getAttrOfType<IntegerAttr>(kNumWarpsAttr);
  if (!warps)
    return std::nullopt;
  return warps.getInt();
}

/// A number that a module has; 1 if it has none.
static unsigned getNumber(Operation *op, StringRef attribute) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto number = module ? module->getAttrOfType<IntegerAttr>(attribute) : IntegerAttr();
  return number ? number.getInt() : 1;
}

unsigned tessera::tilegpu::getNumBlocks(Operation *op) { return getNumber(op, kNumCTAsAttr); }

unsigned tessera::tilegpu::getNumParts(Operation *op) { return getNumber(op, kNumPartsAttr); }

unsigned tessera::tilegpu::getClusterSize(Operation *op) {
  return getNumBlocks(op) * getNumParts(op);
}

unsigned tessera::tilegpu::getBlockBits(Operation *op) { return llvm::Log2_32(getNumBlocks(op)); }

FailureOr<unsigned> tessera::tilegpu::requireNumWarps(ModuleOp module) {
  if (std::optional<unsigned> warps = getNumWarps(module))
    return *warps;
  return module.emitError("has no number of warps of a program (") << kNumWarpsAttr << ")";
}

FailureOr<const GPUMachine *> tessera::tilegpu::requireMachine(ModuleOp module) {
  if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttr))
    return target.getMachine();
  return module.emitError("has no target (") << kTargetAttr << ")";
}

const GPUMachine &tessera::tilegpu::getMachine(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttr))
    return *target.getMachine();
  return GPUMachine::getDefault();
}

MatrixInstructions tessera::tilegpu::getMatrixInstructions(const GPUMachine &machine) {
  return {/*forLoads=*/true, /*forStores=*/machine.hasStoreMatrix};
}

RankedTensorType tessera::tilegpu::getFirstTile(Operation *op) {
  for (Type type : op->getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      return tile;
  for (Type type : op->getOperandTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type))
      return tile;
  return {};
}

int64_t tessera::tilegpu::getElementBytes(Type element) {
  if (isa<tile::PointerType>(element))
    return 8;
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

int64_t tessera::tilegpu::getTileBytes(RankedTensorType tile) {
  return tile.getNumElements() * getElementBytes(tile.getElementType());
}

bool tessera::tilegpu::isNativeFloat8(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

RankedTensorType tessera::tilegpu::withLayout(RankedTensorType type, const LinearLayout &layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               LayoutAttr::get(type.getContext(), layout.canonical()));
}

#define GET_OP_CLASSES
#include "tessera/Dialect/TileGPU/IR/TileGPUOps.cpp.inc"
