// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All op families, for the generators that want the dialect whole.

include "tessera/Dialect/TileGPU/IR/TileGPUAsyncOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPUClusterOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPULayoutOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPUMBarrierOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPUMatmulOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPUScheduleAttrs.td"
include "tessera/Dialect/TileGPU/IR/TileGPUSharedMemoryOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPUTensorMapOps.td"
include "tessera/Dialect/TileGPU/IR/TileGPUWarpSpecializeOps.td"
