// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions of tensor cores, as tilegpu-accelerate-matmul and the passes before it know
// them. A class says of one instruction which dots it can do, from where it reads their operands
// and in which order, and makes its op. The op's interfaces say the rest to the passes behind it
// (DotInterfaces.h). A dialect adds instructions by DotInstructionDialectInterface.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_DOTINSTRUCTION_H
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_DOTINSTRUCTION_H

#include "mlir/IR/DialectInterface.h"
#include "tessera/Dialect/TileGPU/IR/FloatParts.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/MMAShape.h"

#include <optional>
#include <string>

namespace tessera::tilegpu {

/// A dot: its types and extents, of which m, n and k are the powers of two.
struct DotExtents {
  explicit DotExtents(tile::DotOp op);

  /// The dot of the transposed operands, in the other order (swap-AB): its result transposed.
  DotExtents swapped() const;

  bool isBatched() const { return shape.size() > 2; }
  bool isFloat8() const { return mlir::isa<mlir::FloatType>(element) && bits == 8; }
  /// True if instructions for 8-bit floats take both operands: e4m3 and e5m2, also one of each.
  bool isOfFloat8MMA() const { return isNativeFloat8(element) && isNativeFloat8(other); }
  /// The parts that operands are split into.
  FloatParts getParts() const;
  /// Bits of an element of an operand as the instruction has it.
  unsigned getOperandBits() const;
  /// The elements that an instruction multiplies; none for these types.
  std::optional<MMAElement> getMMAElement() const;

  mutable tile::DotOp op;
  mlir::Type element, other, accumulator;
  llvm::ArrayRef<int64_t> shape;
  unsigned bits, m, n, k;
  bool isSwapped = false;
};

/// The GPU and the program's warps.
struct DotMachine {
  unsigned warps;
  const GPUMachine &gpu;
};

class DotInstruction {
public:
  virtual ~DotInstruction() = default;

  /// "wgmma", for remarks.
  virtual llvm::StringRef getName() const = 0;
  virtual bool isOf(const GPUMachine &gpu) const = 0;
  virtual MMAShape getShape() const = 0;
  /// Multiply-adds of 16-bit elements that an SM does in a cycle.
  virtual int64_t getRate(const GPUMachine &gpu) const = 0;

  /// Why the instruction cannot do a dot; empty if it can.
  virtual std::string whyNot(const DotExtents &dot, const DotMachine &machine) const = 0;

  /// True if operands are in shared memory, the first one there or in registers, and its op is an
  /// AsyncDotOp. If not, both are in registers.
  virtual bool readsSharedMemory() const = 0;
  /// True if it multiplies elements of these types where copies bring them, without conversions.
  virtual bool multipliesAsCopied(tile::DotOp dot) const = 0;
  /// True if it reads f32 operands that are split into parts, the second one in a ring.
  virtual bool takesParts() const { return false; }
  /// True if an operand of so many bits in shared memory has to lie along K.
  bool needsKMajor(unsigned bits) const { return getShape().needsKMajor(bits); }
  /// The element type to which 8-bit floats in registers are converted for it; null for none.
  virtual mlir::Type getWiderType(const DotExtents &, const DotMachine &) const { return {}; }

  /// The op with these operands.
  virtual mlir::Operation *create(mlir::OpBuilder &builder, const DotExtents &dot,
                                  const DotMachine &machine, mlir::Value a, mlir::Value b,
                                  mlir::Value acc) const = 0;
};

/// A dialect whose ops are instructions.
class DotInstructionDialectInterface
    : public mlir::DialectInterface::Base<DotInstructionDialectInterface> {
public:
  explicit DotInstructionDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}
  virtual llvm::ArrayRef<const DotInstruction *> getInstructions() const = 0;
};

/// The instructions in the order in which a dot is offered to them: those of other dialects, then
/// those that read shared memory, then the one that reads registers.
llvm::SmallVector<const DotInstruction *> getDotInstructions(mlir::MLIRContext *context);

/// Attach the rule of layouts of DotOpInterface::getFragment to all registered dots that have no
/// other one. A dialect with instructions calls it when it is loaded.
void attachFragmentRules(mlir::MLIRContext *context);

/// The first instruction of a GPU that reads shared memory; null if there is none.
const DotInstruction *findSharedMemoryInstruction(mlir::MLIRContext *context,
                                                  const GPUMachine &gpu);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_DOTINSTRUCTION_H
