// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The base of all families of builtins: locations, numbered values, and the stack of open regions.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

BuilderBase::BuilderBase(ModuleOp module)
    : module(module), builder(module.getContext()), location(builder.getUnknownLoc()) {
  MLIRContext *context = module.getContext();
  context
      ->loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
  builder.setInsertionPointToEnd(module.getBody());
  frames.push_back({"", location});
  values.emplace_back(); // number 0 is none
}

//===----------------------------------------------------------------------===//
// Locations
//===----------------------------------------------------------------------===//

void BuilderBase::setLocation(StringRef file, int line, int column) {
  frames.back().location = FileLineColLoc::get(context(), file, line, column);
  updateLocation();
}

void BuilderBase::pushFrame(StringRef functionName) {
  frames.push_back({functionName.str(), frames.back().location});
  updateLocation();
}

void BuilderBase::popFrame() {
  if (frames.size() == 1)
    throw InternalError("pop_frame without push_frame");
  frames.pop_back();
  updateLocation();
}

void BuilderBase::updateLocation() {
  location = frames.front().location;
  for (const Frame &frame : llvm::drop_begin(frames)) {
    Location callee = NameLoc::get(builder.getStringAttr(frame.name), frame.location);
    location = CallSiteLoc::get(callee, location);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const TileValue &BuilderBase::get(ValueId value) const {
  if (value.index == 0 || value.index >= values.size())
    throw InternalError("value " + std::to_string(value.index) + " is not of this builder");
  const TileValue &typed = values[value.index];
  if (!typed.ir)
    throw InternalError("value " + std::to_string(value.index) + " was discarded with its region");
  return typed;
}

ValueId BuilderBase::add(TileValue value) {
  values.push_back(std::move(value));
  return {static_cast<uint32_t>(values.size() - 1)};
}

//===----------------------------------------------------------------------===//
// Open regions
//===----------------------------------------------------------------------===//

BuilderBase::OpenRegion &BuilderBase::open(RegionKind kind, Operation *op) {
  OpenRegion region;
  region.kind = kind;
  region.op = op;
  region.after = builder.saveInsertionPoint();
  region.firstValue = values.size();
  openRegions.push_back(std::move(region));
  return openRegions.back();
}

BuilderBase::OpenRegion &BuilderBase::innermost(RegionKind kind, StringRef caller) {
  if (openRegions.empty() || openRegions.back().kind != kind)
    throw InternalError((caller + " does not match the innermost open region").str());
  return openRegions.back();
}

void BuilderBase::close() {
  builder.restoreInsertionPoint(openRegions.back().after);
  openRegions.pop_back();
}

void BuilderBase::discardRegion() {
  if (openRegions.empty())
    throw InternalError("discard_region without an open region");
  OpenRegion &region = openRegions.back();
  for (size_t i = region.firstValue; i < values.size(); ++i)
    values[i].ir = {};
  region.op->erase();
  close();
}

BuilderBase::Values BuilderBase::addArguments(Block *block, ArrayRef<ValueType> types) {
  Values arguments;
  for (const ValueType &type : types)
    arguments.push_back({block->addArgument(ir(type), loc()), type});
  return arguments;
}
