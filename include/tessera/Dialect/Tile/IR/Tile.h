// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One include for the tile dialect: what a program computes on tiles.

#ifndef TESSERA_DIALECT_TILE_IR_TILE_H
#define TESSERA_DIALECT_TILE_IR_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tessera::tile {

using mlir::getElementTypeOrSelf;

/// The most elements that a tile may have.
inline constexpr int64_t kMaxTileElements = int64_t(1) << 20;

/// True if a dimension of a tile may have this extent: a power of two, or
/// `odd * 2^k` with odd <= 31 and 2^k >= 8. One rule for every target.
bool isLegalExtent(int64_t extent);

/// The smallest legal extent that is not below `extent` (for error messages).
int64_t nextLegalExtent(int64_t extent);

/// The extents of a tile; none for a scalar.
inline llvm::ArrayRef<int64_t> getShape(mlir::Type type) {
  if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type))
    return tensor.getShape();
  return {};
}

/// The encoding of a tile's type; null for a scalar.
inline mlir::Attribute getEncoding(mlir::Type type) {
  if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type))
    return tensor.getEncoding();
  return {};
}

/// `element` for a scalar `like`, a tile of `element` with its shape otherwise.
inline mlir::Type withElementType(mlir::Type like, mlir::Type element) {
  if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(like))
    return tensor.clone(element);
  return element;
}

mlir::LogicalResult verifyLegalTiles(mlir::Operation *op);

/// Checks each tile among an op's operands and results, and that elementwise ops take
/// and give tiles of one encoding (Tile_LegalTiles).
template <typename ConcreteType>
class LegalTiles : public mlir::OpTrait::TraitBase<ConcreteType, LegalTiles> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyLegalTiles(op); }
};

/// Threads of a program may have to meet in the op (Tile_Collective).
template <typename ConcreteType>
class Collective : public mlir::OpTrait::TraitBase<ConcreteType, Collective> {};

/// The op takes few registers besides those of its tiles (Tile_FewRegisters).
template <typename ConcreteType>
class FewRegisters : public mlir::OpTrait::TraitBase<ConcreteType, FewRegisters> {};

/// The op's message names the program's ids (Tile_NamesProgram).
template <typename ConcreteType>
class NamesProgram : public mlir::OpTrait::TraitBase<ConcreteType, NamesProgram> {};

/// The source map of an op that leaves elements where they are (IndexMapOpInterface): the identity,
/// or no results for a scalar operand.
mlir::AffineMap getSameIndex(mlir::Type operand, mlir::Type result);

/// From where an element comes that an op moves (MoveOpInterface).
enum class Motion { Stays, Dimensions, Renumbers, Gathers };

/// The cost of an element (CostOpInterface): none if it is only moved, an instruction or a few, or
/// about twenty and more.
enum class ElementCost { None, Instruction, Function };

/// The op runs foreign code (Tile_ForeignCode). Its results are unknown, and it accesses memory as
/// its effects say, through any of its operands.
template <typename ConcreteType>
class ForeignCode : public mlir::OpTrait::TraitBase<ConcreteType, ForeignCode> {};

/// The resource of ops that have effects without accessing memory: prints, assertions and other
/// failures of a launch, promises. They are not ordered with loads, but their own order is visible
/// to the user.
struct Events : public mlir::SideEffects::Resource::Base<Events> {
  llvm::StringRef getName() final { return "events"; }
};

} // namespace tessera::tile

#include "tessera/Dialect/Tile/IR/TileDialect.h.inc"
#include "tessera/Dialect/Tile/IR/TileEnums.h.inc"
#include "tessera/Dialect/Tile/IR/TileInterfaces.h.inc"
#include "tessera/Dialect/Tile/IR/TileOpInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/Tile/IR/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "tessera/Dialect/Tile/IR/TileOps.h.inc"

namespace tessera::tile {

/// On an `scf.for`: how many bodies an iteration is to have (TileDialect.td).
inline constexpr llvm::StringLiteral kUnrollFactorAttr =
    TileDialect::LoopUnrollFactorAttrHelper::getNameStr();

/// On an argument: what it is a multiple of.
inline constexpr llvm::StringLiteral kDivisibilityAttr =
    TileDialect::DivisibilityAttrHelper::getNameStr();

/// How the op moves elements; none if it does more than that.
inline std::optional<Motion> getMotion(mlir::Operation *op) {
  auto move = llvm::dyn_cast<MoveOpInterface>(op);
  return move ? std::optional(move.getMotion()) : std::nullopt;
}

/// True if the op's only result has elements of its only operand, and no others: through such
/// ops one looks for what they are.
inline bool movesOneTile(mlir::Operation *op) {
  auto move = llvm::dyn_cast<MoveOpInterface>(op);
  return move && move.isOfOneTile();
}

/// True if the op's result has the elements of its operand at the same indices; a scalar
/// operand is all of them.
inline bool keepsElements(mlir::Operation *op) { return getMotion(op) == Motion::Stays; }

/// The cost of an element of the op's first result.
ElementCost getElementCost(mlir::Operation *op);

/// True if the op is there to happen: it writes to Events.
bool isEvent(mlir::Operation *op);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_IR_TILE_H
