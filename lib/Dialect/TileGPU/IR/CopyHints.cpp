// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/CopyHints.h"

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr llvm::StringLiteral kCacheAttr = TileGPUDialect::CacheAttrHelper::getNameStr(),
                                     kEvictAttr = TileGPUDialect::EvictAttrHelper::getNameStr();

CopyHints CopyHints::of(Operation *access) {
  if (auto load = dyn_cast<tile::LoadOp>(access))
    return {load.getCache(), load.getEvict()};
  auto store = cast<tile::StoreOp>(access);
  return {store.getCache(), store.getEvict()};
}

CopyHints CopyHints::attachedTo(Operation *copy) {
  CopyHints hints;
  if (auto cache = copy->getAttrOfType<StringAttr>(kCacheAttr))
    hints.cache = tile::symbolizeCacheModifier(cache.getValue()).value_or(hints.cache);
  if (auto evict = copy->getAttrOfType<StringAttr>(kEvictAttr))
    hints.evict = tile::symbolizeEvictionPolicy(evict.getValue()).value_or(hints.evict);
  return hints;
}

void CopyHints::attachTo(Operation *copy) const {
  Builder builder(copy->getContext());
  if (cache != tile::CacheModifier::None)
    copy->setAttr(kCacheAttr, builder.getStringAttr(tile::stringifyCacheModifier(cache)));
  if (evict != tile::EvictionPolicy::Normal)
    copy->setAttr(kEvictAttr, builder.getStringAttr(tile::stringifyEvictionPolicy(evict)));
}

tile::EvictionPolicy CopyHints::getPolicy() const {
  if (evict == tile::EvictionPolicy::Normal && cache == tile::CacheModifier::CS)
    return tile::EvictionPolicy::First;
  return evict;
}
