// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LayoutCosts.h"

#include "LayoutRules.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// A barrier of all warps, with what it costs to wait.
static constexpr double kBarrier = 30;
/// A shuffle, or a wavefront of shared memory, and what goes with it.
static constexpr double kExchange = 2;
/// An atomic on shared memory, per element.
static constexpr double kAtomic = 32;

static unsigned countColumns(const LinearLayout &layout, HwDim dim, uint64_t mask) {
  return llvm::count_if(layout.columns(dim), [&](uint64_t column) { return column & mask; });
}

double LayoutCosts::ofConversion(Type element, LayoutAttr from, LayoutAttr to) {
  if (from == to)
    return 0;
  auto [slot, inserted] = kinds.try_emplace({from, to}, ConversionKind::Rename);
  if (inserted)
    slot->second = classify(from.getLayout(), to.getLayout()).kind;
  double words = std::max<double>(getElementBytes(element) / 4.0, 0.5);
  double read = from.getNumRegisters(), written = to.getNumRegisters();
  switch (slot->second) {
  case ConversionKind::Rename:
    return 0;
  case ConversionKind::Select:
    return warps * written * words;
  case ConversionKind::Warp:
    return warps * written * std::max(words, 1.0) * 2 * kExchange;
  case ConversionKind::Block:
  case ConversionKind::Cluster:
    return warps * (read + written) * words * kExchange + 3 * kBarrier;
  }
  llvm_unreachable("covered switch");
}

double LayoutCosts::ofAccess(Operation *op, LayoutAttr label) {
  auto slot = patterns.find(op);
  if (slot == patterns.end())
    slot = patterns.try_emplace(op, getAccessPattern(op, analysis)).first;
  const AccessPattern &pattern = slot->second;
  double registers = label.getNumRegisters();
  // The cache works on sectors, for atomics twice.
  double issue = 4, sector = 2;
  if (!isa<tile::LoadOp, tile::StoreOp>(op)) {
    issue = 8;
    sector = 4;
  }
  double accesses = registers / (1u << pattern.vectorBits(label.getLayout()));
  return warps * accesses * (issue + sector * pattern.sectors(label.getLayout()));
}

/// A reduction, or a scan, which `keepsAll` elements.
double LayoutCosts::ofFold(LayoutAttr label, unsigned axis, bool keepsAll) {
  const LinearLayout &layout = label.getLayout();
  uint64_t mask = layout.dimMask(axis);
  double registers = label.getNumRegisters();
  double left =
      keepsAll ? registers
               : registers / (layout.oddFactor(axis) << countColumns(layout, HwDim::Reg, mask));
  double cost = warps * registers;
  cost += warps * left * countColumns(layout, HwDim::Lane, mask) * (kExchange + 1);
  if (countColumns(layout, HwDim::Warp, mask))
    cost += warps * left * 2 * kExchange + 2 * kBarrier;
  return cost;
}

/// Each bit of the axis is compared and exchanged once for itself and each higher bit.
double LayoutCosts::ofSort(LayoutAttr label, unsigned axis) {
  const LinearLayout &layout = label.getLayout();
  double registers = label.getNumRegisters(), cost = 0;
  unsigned shift = layout.dimShift(axis), bits = layout.dimBits(axis);
  for (unsigned bit = 0; bit < bits; ++bit) {
    uint64_t column = uint64_t(1) << (shift + bit);
    double step = 2 * warps * registers;
    if (llvm::is_contained(layout.columns(HwDim::Lane), column))
      step += warps * registers * kExchange;
    if (llvm::is_contained(layout.columns(HwDim::Warp), column))
      step += 2 * warps * registers * kExchange + 2 * kBarrier;
    cost += step * (bits - bit);
  }
  return cost;
}

/// By multiply-add, with operands read from shared memory: a block of rows and columns in
/// registers uses each element of an operand several times.
double LayoutCosts::ofDot(Operation *op, LayoutAttr label) {
  const LinearLayout &layout = label.getLayout();
  unsigned m = layout.rank() - 2, n = layout.rank() - 1;
  double rows = uint64_t(layout.oddFactor(m))
                << countColumns(layout, HwDim::Reg, layout.dimMask(m));
  double columns = uint64_t(layout.oddFactor(n))
                   << countColumns(layout, HwDim::Reg, layout.dimMask(n));
  double registers = label.getNumRegisters();
  double inner = tile::getShape(op->getOperand(0).getType()).back();
  double reads = (rows + columns) * registers / (rows * columns);
  return warps * inner * (registers + reads * kExchange);
}

double LayoutCosts::ofOp(Operation *op, LayoutAttr label) {
  if (isa<tile::CallOp, tile::ReturnOp, tile::ExpandDimsOp, tile::BroadcastOp, tile::TransOp,
          tile::ReshapeOp, tile::JoinOp, tile::SplitOp, tile::CatOp, tile::HintOp, tile::PrintOp,
          tile::AssertOp>(op))
    return 0;
  if (getAccessedPointers(op))
    return ofAccess(op, label);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return reduce.getNumOperands() * ofFold(label, reduce.getAxis(), /*keepsAll=*/false);
  if (auto scan = dyn_cast<tile::ScanOp>(op))
    return scan.getNumOperands() * ofFold(label, scan.getAxis(), /*keepsAll=*/true);
  if (auto sort = dyn_cast<tile::SortOp>(op))
    return sort.getNumOperands() * ofSort(label, sort.getAxis());
  if (isa<tile::DotOp, tile::DotScaledOp>(op))
    return ofDot(op, label);
  double registers = label.getNumRegisters();
  if (isa<tile::HistogramOp>(op))
    return warps * registers * kAtomic;
  if (isa<tile::GatherOp>(op))
    return warps * registers * 2 * kExchange + 2 * kBarrier;
  bool isFunction = isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
                    isa<arith::DivFOp, tile::PreciseDivOp, tile::PreciseSqrtOp, tile::DivIntOp,
                        tile::RemIntOp, tile::ExternElementwiseOp, tile::MapElementwiseOp>(op);
  return warps * registers * (isFunction ? 8 : 1);
}
