// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ArgumentTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;

namespace {

/// With fewer items, selects take fewer cycles than a load of the parameters.
constexpr size_t kMinTableItems = 5;
constexpr unsigned kSlotBytes = 8;
/// The room that launchers ahead of time have (tessera_aot_cuda.c).
constexpr size_t kMaxTables = 16;
/// Since CUDA 12.1, for all GPUs from compute capability 7.0 on.
constexpr uint64_t kMaxParameterBytes = 32764;

/// The type that an item has in its slot; null if a load cannot give it.
Type getSlotType(Type item) {
  if (isa<tile::PointerType>(item))
    return IntegerType::get(item.getContext(), 64);
  bool isPlain = isa<IntegerType, Float16Type, BFloat16Type, Float32Type, Float64Type>(item);
  return isPlain && item.getIntOrFloatBitWidth() >= 8 ? item : Type();
}

/// True if the items are consecutive arguments of the kernel, enough of them for a table.
bool isOfTable(tile::LookupOp lookup, tile::FuncOp kernel) {
  OperandRange items = lookup.getItems();
  if (items.size() < kMinTableItems || !getSlotType(lookup.getType()))
    return false;
  Block &entry = kernel.getBody().front();
  auto first = dyn_cast<BlockArgument>(items.front());
  for (auto [place, item] : llvm::enumerate(items)) {
    auto argument = dyn_cast<BlockArgument>(item);
    if (!argument || argument.getOwner() != &entry ||
        argument.getArgNumber() != first.getArgNumber() + place)
      return false;
  }
  return true;
}

/// At most as many bytes as the parameters of the kernel take.
uint64_t countParameterBytes(tile::FuncOp kernel) {
  uint64_t bytes = 0;
  for (Type type : kernel.getArgumentTypes())
    bytes += isa<tilegpu::TensorMapType>(type) ? tilegpu::kTensorMapBytes : kSlotBytes;
  return bytes;
}

BlockArgument addTable(tile::FuncOp kernel, int64_t count) {
  MLIRContext *context = kernel.getContext();
  Type type = LLVM::LLVMArrayType::get(IntegerType::get(context, 64), count);
  NamedAttribute attribute(StringAttr::get(context, kArgumentTableAttr), TypeAttr::get(type));
  unsigned number = kernel.getNumArguments();
  if (failed(kernel.insertArgument(number, LLVM::LLVMPointerType::get(context),
                                   DictionaryAttr::get(context, {attribute}), kernel.getLoc())))
    return {};
  return kernel.getArgument(number);
}

void replaceByLoad(tile::LookupOp lookup, Value table) {
  OpBuilder builder(lookup);
  Location loc = lookup.getLoc();
  Value index = lookup.getIndex();
  Value last = arith::ConstantOp::create(
      builder, loc, builder.getIntegerAttr(index.getType(), lookup.getItems().size() - 1));
  index = arith::MinUIOp::create(builder, loc, index, last);
  Type i64 = builder.getI64Type();
  if (index.getType() != i64)
    index = arith::ExtUIOp::create(builder, loc, i64, index);
  Value slot = LLVM::GEPOp::create(builder, loc, table.getType(), i64, table,
                                   ArrayRef<LLVM::GEPArg>{index}, LLVM::GEPNoWrapFlags::inbounds);
  Value item = LLVM::LoadOp::create(builder, loc, getSlotType(lookup.getType()), slot, kSlotBytes,
                                    /*isVolatile=*/false, /*isNonTemporal=*/false,
                                    /*isInvariant=*/true);
  if (isa<tile::PointerType>(lookup.getType()))
    item = tile::IntToPtrOp::create(builder, loc, lookup.getType(), item);
  lookup.replaceAllUsesWith(item);
  lookup.erase();
}

} // namespace

void tessera::makeArgumentTables(ModuleOp module) {
  auto launch = module->getAttrOfType<tilegpu::LaunchAttr>(tilegpu::kLaunchAttr);
  if (!launch)
    return;
  for (auto kernel : module.getOps<tile::FuncOp>()) {
    if (!kernel.isKernel())
      continue;
    // By the first argument and the number of them.
    llvm::MapVector<std::pair<int64_t, int64_t>, SmallVector<tile::LookupOp>> lookups;
    kernel.walk([&](tile::LookupOp lookup) {
      if (!isOfTable(lookup, kernel))
        return;
      int64_t first = cast<BlockArgument>(lookup.getItems().front()).getArgNumber();
      lookups[{first, lookup.getItems().size()}].push_back(lookup);
    });
    if (lookups.empty())
      continue;
    SmallVector<int64_t> tables;
    uint64_t bytes = countParameterBytes(kernel);
    for (auto &[range, ofRange] : lookups) {
      bytes += kSlotBytes * range.second;
      if (tables.size() == 2 * kMaxTables || bytes > kMaxParameterBytes)
        break;
      BlockArgument table = addTable(kernel, range.second);
      if (!table)
        return;
      tables.append({range.first, range.second});
      for (tile::LookupOp lookup : ofRange)
        replaceByLoad(lookup, table);
    }
    module->setAttr(tilegpu::kLaunchAttr, launch.withTables(tables));
  }
}
