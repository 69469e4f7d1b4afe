// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One include for the tilegpu dialect: where tiles live on a GPU.

#ifndef TESSERA_DIALECT_TILEGPU_IR_TILEGPU_H
#define TESSERA_DIALECT_TILEGPU_IR_TILEGPU_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Layout/LayoutConversion.h"
#include "tessera/Layout/LinearLayout.h"
#include "tessera/Layout/MemoryExchange.h"
#include "tessera/Layout/TensorMapBox.h"
#include "tessera/Machine/GPUMachine.h"

namespace tessera {

/// For the uniquing of attributes.
llvm::hash_code hash_value(const LinearLayout &layout);

} // namespace tessera

namespace tessera::tilegpu {

/// The GPU that the module around an op is for; the oldest there is if it does not say.
const GPUMachine &getMachine(mlir::Operation *op);

/// The matrices that the GPU moves between registers and shared memory.
MatrixInstructions getMatrixInstructions(const GPUMachine &machine);

/// Lanes of a warp, as bits of a place.
inline constexpr unsigned kLaneBits = 5;
static_assert(1 << kLaneBits == GPUMachine::kWarpSize);

/// The start of a ring's slot is a multiple of so many bytes.
inline constexpr int64_t kSlotAlignment = 128;

/// A tensor map has so many bytes, and is at a multiple of them.
inline constexpr int64_t kTensorMapBytes = 128;

/// One thread may do the op, without the others of its program (TileGPU_ForOneThread).
template <typename ConcreteType>
class ForOneThread : public mlir::OpTrait::TraitBase<ConcreteType, ForOneThread> {};

/// The layouts that operands and results of ops may have (Transforms/Layouts/LayoutRules.h).
class LayoutRules;

/// The type of the first tile among an op's results, or else its operands; null if it has none.
mlir::RankedTensorType getFirstTile(mlir::Operation *op);

/// The resource that ops on shared memory read and write.
struct SharedMemory : public mlir::SideEffects::Resource::Base<SharedMemory> {
  llvm::StringRef getName() final { return "shared memory"; }
};

/// The warps of a program, from the module around `op`; none if it does not say.
std::optional<unsigned> getNumWarps(mlir::Operation *op);

/// The blocks that do a program together, a power of two: the cluster's. 1 where the module around
/// `op` does not say; and the same as bits of a place.
unsigned getNumBlocks(mlir::Operation *op);
unsigned getBlockBits(mlir::Operation *op);

/// The blocks of a cluster that each run a part of a program independently, a power of two. 1 if
/// the module around `op` does not set it.
unsigned getNumParts(mlir::Operation *op);
/// The blocks of the cluster that runs a program, by a split sum or by parts.
unsigned getClusterSize(mlir::Operation *op);

/// The most blocks of a cluster that any GPU with clusters takes.
inline constexpr unsigned kMaxBlocks = 8;

/// The number of warps, for a pass that cannot do without: an error if the module does not say.
mlir::FailureOr<unsigned> requireNumWarps(mlir::ModuleOp module);

/// The GPU that a module is for; an error if it does not say.
mlir::FailureOr<const GPUMachine *> requireMachine(mlir::ModuleOp module);

/// The warps that a launch of `function` has: those of the program, and of what
/// `tilegpu.warp_specialize` adds.
std::optional<unsigned> getNumLaunchWarps(mlir::FunctionOpInterface function);

/// True if `op` is in the partition of a `tilegpu.warp_specialize` or in a `tilegpu.one_thread`,
/// which one thread runs.
bool isInPartition(mlir::Operation *op);

/// The warps of a warpgroup, which wgmma takes and which does things on its own.
inline constexpr unsigned kWarpsOfWarpgroup = GPUMachine::kWarpsOfWarpgroup;

/// Verify that warpgroups can act separately at an op. It is an error if the op is not in the
/// default region of a `tilegpu.warp_specialize`, or its warps are not two to four warpgroups.
mlir::LogicalResult verifyWarpgroups(mlir::Operation *op);

/// Shuffles that each register of the destination takes in a conversion within warps: more
/// than one where it depends on the lane in which register the element is.
unsigned countShuffles(const Conversion &conversion);

/// True if a conversion of elements of so many bytes goes through shared memory.
bool needsMemory(const Conversion &conversion, int64_t bytes);

/// In how many rounds an op goes through its scratch (kScratchRoundsAttr).
unsigned getScratchRounds(mlir::Operation *op);

/// The first of `possible` numbers of rounds, in ascending order, that is more than the op has
/// now; 0 if there is none.
unsigned getRoundsAfter(mlir::Operation *op, llvm::ArrayRef<unsigned> possible);

/// Bytes that an element of a tile takes in memory: one for i1, eight for a pointer.
int64_t getElementBytes(mlir::Type element);
/// The cost of all elements of a tile.
int64_t getTileBytes(mlir::RankedTensorType tile);

/// True if an element is an 8-bit float that GPUs have instructions for: e4m3 or e5m2.
bool isNativeFloat8(mlir::Type element);

} // namespace tessera::tilegpu

#include "tessera/Dialect/TileGPU/IR/TileGPUScheduleEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tessera/Dialect/TileGPU/IR/TileGPUAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/TileGPU/IR/TileGPUDialect.h.inc"
#include "tessera/Dialect/TileGPU/IR/TileGPUTypes.h.inc"

#include "tessera/Dialect/TileGPU/IR/TileGPUInterfaces.h.inc"
#define GET_OP_CLASSES
#include "tessera/Dialect/TileGPU/IR/TileGPUOps.h.inc"

namespace tessera::tilegpu {

/// Names of attributes that passes leave; what they say is in TileGPUDialect.td.
inline constexpr llvm::StringLiteral kNumWarpsAttr =
    TileGPUDialect::NumWarpsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kNumCTAsAttr = TileGPUDialect::NumCtasAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kNumPartsAttr =
    TileGPUDialect::NumPartsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kOccupancyAttr =
    TileGPUDialect::OccupancyAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kPersistentProgramsAttr =
    TileGPUDialect::PersistentProgramsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kReversedAxesAttr =
    TileGPUDialect::ReversedAxesAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kGroupedRowsAttr =
    TileGPUDialect::GroupedRowsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kTargetAttr = TileGPUDialect::TargetAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kDeterministicAttr =
    TileGPUDialect::DeterministicAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kFlushResultsAttr =
    TileGPUDialect::FlushResultsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kSharedOffsetAttr =
    TileGPUDialect::SharedOffsetAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kScratchOffsetAttr =
    TileGPUDialect::ScratchOffsetAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kScratchRoundsAttr =
    TileGPUDialect::ScratchRoundsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kTensorMapAttr =
    TileGPUDialect::TensorMapAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kLaunchConditionsAttr =
    TileGPUDialect::LaunchConditionsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kLaunchAttr = TileGPUDialect::LaunchAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kDivisibleSumAttr =
    TileGPUDialect::DivisibleSumAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kDivisibleProgramAttr =
    TileGPUDialect::DivisibleProgramAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kCandidatesAttr =
    TileGPUDialect::CandidatesAttrHelper::getNameStr();

/// The layout of a tile; null for a scalar or where none is assigned.
inline LayoutAttr getLayoutAttr(mlir::Type type) {
  return llvm::dyn_cast_or_null<LayoutAttr>(tile::getEncoding(type));
}

/// The layout of a tile that has one.
inline const LinearLayout &getLayout(mlir::Type type) { return getLayoutAttr(type).getLayout(); }

/// The attribute of a tensor map; null if it has none.
TensorMapAttr getTensorMap(mlir::Value map);

/// The boxes of a map that a buffer is; none if it is not in such boxes.
std::optional<TensorMapBox> matchBoxes(MemDescType buffer, TensorMapAttr map);

/// True if each box of a tile of this layout is in the registers of one warpgroup. Boxes are dealt
/// round-robin to so many groups along each dimension.
bool areOfGroups(LayoutAttr layout, const TensorMapBox &box, llvm::ArrayRef<int32_t> groups);

/// The tile type with this layout, in canonical form.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, const LinearLayout &layout);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_IR_TILEGPU_H
