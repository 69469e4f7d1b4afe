// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block pointers and tensor descriptors: blocks of an array with shape and
// strides. Both become a list of (address, inside the array) in row-major order
// of the block.

#include "Program.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

static SmallVector<int64_t> readSigned(OperandRange values, Program &p) {
  return llvm::map_to_vector(values, [&](Value value) { return p.signedScalar(value); });
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

struct Lane {
  uint64_t address;
  bool inside;
};

/// The element at `position` of the array. Only the dimensions in `checked` can put
/// it outside.
static Lane locate(const ArrayView &view, ArrayRef<int64_t> position, ArrayRef<int32_t> checked) {
  int64_t bytes = std::max(8u, getBitWidth(view.block.getElementType())) / 8;
  Lane lane{view.base, true};
  for (auto [coordinate, stride] : llvm::zip_equal(position, view.strides))
    lane.address += static_cast<uint64_t>(coordinate) * static_cast<uint64_t>(stride) * bytes;
  for (int32_t dim : checked)
    lane.inside &= position[dim] >= 0 && position[dim] < view.shape[dim];
  return lane;
}

/// The elements of the block at `offsets`.
static std::vector<Lane> locateBlock(const ArrayView &view, ArrayRef<int64_t> offsets,
                                     ArrayRef<int32_t> checked) {
  std::vector<Lane> lanes;
  for (int64_t i = 0, count = view.block.getNumElements(); i < count; ++i) {
    SmallVector<int64_t> position = delinearize(i, view.block.getShape());
    for (auto [coordinate, offset] : llvm::zip_equal(position, offsets))
      coordinate += offset;
    lanes.push_back(locate(view, position, checked));
  }
  return lanes;
}

/// The elements of one row an index, from a column on.
static std::vector<Lane> locateRows(const ArrayView &view, const Tile &rows, int64_t column) {
  std::vector<Lane> lanes;
  unsigned width = getBitWidth(rows.element());
  for (uint64_t row : rows.bits)
    for (int64_t j = 0; j < view.block.getDimSize(1); ++j)
      lanes.push_back(locate(view, {asSigned(row, width), column + j}, {0, 1}));
  return lanes;
}

static SmallVector<int32_t> allDims(const ArrayView &view) {
  return llvm::to_vector(llvm::seq<int32_t>(0, view.block.getRank()));
}

/// Elements inside the array must be inside the memory that the array was made of. Nothing is known
/// of one whose base lies in no argument's memory.
static void checkLanes(Operation *op, Program &p, StringRef access, const ArrayView &view,
                       ArrayRef<Lane> lanes) {
  auto base = static_cast<int64_t>(view.base);
  const auto *found = llvm::find_if(p.options.memory, [&](const ArgumentMemory &memory) {
    return memory.isKnown() && memory.begin <= base && base < memory.end;
  });
  if (found == p.options.memory.end())
    return;
  int64_t bytes = std::max(8u, getBitWidth(view.block.getElementType())) / 8;
  for (const Lane &lane : lanes) {
    auto address = static_cast<int64_t>(lane.address);
    if (lane.inside && (address < found->begin || address > found->end - bytes))
      p.failAccess(op, access, found - p.options.memory.begin(), view.base, bytes, address - base,
                   /*wraps=*/false);
  }
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

/// Lanes outside read the padding.
static Tile loadLanes(Type type, ArrayRef<Lane> lanes, tile::Padding padding) {
  Tile result(type);
  Type element = result.element();
  uint64_t outside = padding == tile::Padding::NaN
                         ? encodeFloat(element, std::numeric_limits<double>::quiet_NaN())
                         : 0;
  for (auto [bits, lane] : llvm::zip_equal(result.bits, lanes))
    bits = lane.inside ? loadElement(lane.address, element) : outside;
  return result;
}

static void storeLanes(ArrayRef<Lane> lanes, const Tile &value) {
  for (auto [bits, lane] : llvm::zip_equal(value.bits, lanes))
    if (lane.inside)
      storeElement(lane.address, value.element(), bits);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static void addBlockPointerOps(OpTable &table) {
  table.addResult<tile::MakeBlockPtrOp>([](tile::MakeBlockPtrOp op, Program &p) {
    return ArrayView{p.scalar(op.getBase()),         op.getType().getBlockType(),
                     readSigned(op.getShape(), p),   readSigned(op.getStrides(), p),
                     readSigned(op.getOffsets(), p), tile::Padding::Zero};
  });
  table.addResult<tile::AdvanceOp>([](tile::AdvanceOp op, Program &p) {
    ArrayView view = p.view(op.getSource());
    for (auto [offset, by] : llvm::zip_equal(view.offsets, readSigned(op.getOffsets(), p)))
      offset += by;
    return view;
  });
  table.addResult<tile::BlockLoadOp>([](tile::BlockLoadOp op, Program &p) {
    const ArrayView &view = p.view(op.getSource());
    std::vector<Lane> lanes = locateBlock(view, view.offsets, op.getBoundaryCheck());
    checkLanes(op, p, "load", view, lanes);
    return loadLanes(op.getType(), lanes, op.getPadding());
  });
  table.add<tile::BlockStoreOp>([](tile::BlockStoreOp op, Program &p) {
    const ArrayView &view = p.view(op.getTarget());
    std::vector<Lane> lanes = locateBlock(view, view.offsets, op.getBoundaryCheck());
    checkLanes(op, p, "store", view, lanes);
    storeLanes(lanes, p.tile(op.getValue()));
  });
}

static void addDescriptorAccesses(OpTable &table) {
  table.addResult<tile::MakeDescriptorOp>([](tile::MakeDescriptorOp op, Program &p) {
    RankedTensorType block = op.getType().getBlockType();
    return ArrayView{p.scalar(op.getBase()),
                     block,
                     readSigned(op.getShape(), p),
                     readSigned(op.getStrides(), p),
                     SmallVector<int64_t>(block.getRank(), 0),
                     op.getPadding()};
  });
  table.addResult<tile::DescriptorExtentOp>([](tile::DescriptorExtentOp op, Program &p) {
    return Tile(op.getType(), static_cast<uint32_t>(p.view(op.getSource()).shape[op.getDim()]));
  });
  table.addResult<tile::DescriptorStrideOp>([](tile::DescriptorStrideOp op, Program &p) {
    return Tile(op.getType(), static_cast<uint64_t>(p.view(op.getSource()).strides[op.getDim()]));
  });
  table.addResult<tile::DescriptorLoadOp>([](tile::DescriptorLoadOp op, Program &p) {
    const ArrayView &view = p.view(op.getSource());
    std::vector<Lane> lanes = locateBlock(view, readSigned(op.getOffsets(), p), allDims(view));
    checkLanes(op, p, "load", view, lanes);
    return loadLanes(op.getType(), lanes, view.padding);
  });
  table.add<tile::DescriptorStoreOp>([](tile::DescriptorStoreOp op, Program &p) {
    const ArrayView &view = p.view(op.getTarget());
    std::vector<Lane> lanes = locateBlock(view, readSigned(op.getOffsets(), p), allDims(view));
    checkLanes(op, p, "store", view, lanes);
    storeLanes(lanes, p.tile(op.getValue()));
  });
  table.addResult<tile::DescriptorGatherOp>([](tile::DescriptorGatherOp op, Program &p) {
    const ArrayView &view = p.view(op.getSource());
    std::vector<Lane> lanes =
        locateRows(view, p.tile(op.getRows()), p.signedScalar(op.getColumn()));
    checkLanes(op, p, "load", view, lanes);
    return loadLanes(op.getType(), lanes, view.padding);
  });
  table.add<tile::DescriptorScatterOp>([](tile::DescriptorScatterOp op, Program &p) {
    const ArrayView &view = p.view(op.getTarget());
    std::vector<Lane> lanes =
        locateRows(view, p.tile(op.getRows()), p.signedScalar(op.getColumn()));
    checkLanes(op, p, "store", view, lanes);
    storeLanes(lanes, p.tile(op.getValue()));
  });
  table.add<tile::DescriptorReduceOp>([](tile::DescriptorReduceOp op, Program &p) {
    const ArrayView &view = p.view(op.getTarget());
    const Tile &value = p.tile(op.getValue());
    std::vector<Lane> lanes = locateBlock(view, readSigned(op.getOffsets(), p), allDims(view));
    checkLanes(op, p, "atomic", view, lanes);
    for (auto [bits, lane] : llvm::zip_equal(value.bits, lanes)) {
      if (!lane.inside)
        continue;
      uint64_t old = loadElement(lane.address, value.element());
      storeElement(lane.address, value.element(),
                   combineAtomic(op.getKind(), value.element(), old, bits));
    }
  });
}

void interpreter::addDescriptorOps(OpTable &table) {
  addBlockPointerOps(table);
  addDescriptorAccesses(table);
}
