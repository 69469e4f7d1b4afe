// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All op families, for the generators that want the dialect whole.

include "tessera/Dialect/Tile/IR/TileCheckOps.td"
include "tessera/Dialect/Tile/IR/TileProgramOps.td"
include "tessera/Dialect/Tile/IR/TileCreationOps.td"
include "tessera/Dialect/Tile/IR/TileShapeOps.td"
include "tessera/Dialect/Tile/IR/TileMemoryOps.td"
include "tessera/Dialect/Tile/IR/TileAtomicOps.td"
include "tessera/Dialect/Tile/IR/TileDescriptorOps.td"
include "tessera/Dialect/Tile/IR/TileMathOps.td"
include "tessera/Dialect/Tile/IR/TileMatmulOps.td"
include "tessera/Dialect/Tile/IR/TileReductionOps.td"
