// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MadeTensorMaps.h"

#include "InlinePTX.h"
#include "MemoryOps.h"

#include "llvm/ADT/StringSwitch.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

constexpr unsigned kMapBytes = 128, kMaxDims = cuda::TensorMapShape::kMaxRank;

/// The map as it is in memory here.
struct Fields {
  uint64_t base;
  uint32_t rank, element, interleave, swizzle, fill; ///< the rank less 1
  uint32_t box[kMaxDims];
  uint32_t extents[kMaxDims];
  uint32_t rest;
  uint64_t strides[kMaxDims - 1];
  uint32_t steps[kMaxDims];
};
static_assert(sizeof(Fields) <= kMapBytes);

/// The place of a field, and its bytes; 0 if it is not a field.
std::pair<size_t, unsigned> findField(StringRef name, unsigned number) {
  return llvm::StringSwitch<std::pair<size_t, unsigned>>(name)
      .Case("global_address", {offsetof(Fields, base), 8})
      .Case("rank", {offsetof(Fields, rank), 4})
      .Case("elemtype", {offsetof(Fields, element), 4})
      .Case("interleave_layout", {offsetof(Fields, interleave), 4})
      .Case("swizzle_mode", {offsetof(Fields, swizzle), 4})
      .Case("fill_mode", {offsetof(Fields, fill), 4})
      .Case("box_dim", {offsetof(Fields, box) + 4 * number, 4})
      .Case("global_dim", {offsetof(Fields, extents) + 4 * number, 4})
      .Case("element_stride", {offsetof(Fields, steps) + 4 * number, 4})
      .Case("global_stride", {offsetof(Fields, strides) + 8 * number, 8})
      .Default({0, 0});
}

/// By PTX's numbers of types of elements.
struct ElementType {
  cuda::TensorMapElement element;
  unsigned bytes;
};
constexpr ElementType kElements[] = {
    {cuda::TensorMapElement::UInt8, 1},    {cuda::TensorMapElement::UInt16, 2},
    {cuda::TensorMapElement::UInt32, 4},   {cuda::TensorMapElement::Int32, 4},
    {cuda::TensorMapElement::UInt64, 8},   {cuda::TensorMapElement::Int64, 8},
    {cuda::TensorMapElement::Float16, 2},  {cuda::TensorMapElement::Float32, 4},
    {cuda::TensorMapElement::Float32, 4},  {cuda::TensorMapElement::Float64, 8},
    {cuda::TensorMapElement::BFloat16, 2},
};

/// The contents of the bytes; nothing, and reported, if they are not a map.
std::optional<TensorMap> read(Warp &warp, const Instr &instr, const uint8_t *bytes,
                              uint64_t address) {
  Fields fields;
  std::memcpy(&fields, bytes, sizeof(fields));
  auto refuse = [&](const char *why) {
    warp.machine.report(FindingKind::OutOfBounds, instr, warp, 0, address,
                        std::string("makes a tensor map ") + why);
    return std::nullopt;
  };
  if (fields.rank >= kMaxDims)
    return refuse("of more than 5 dimensions");
  if (fields.element >= std::size(kElements))
    return refuse("of elements that there are not");
  if (fields.swizzle > 3)
    return refuse("with a swizzle that there is not");
  if (fields.interleave != 0 || fields.fill != 0)
    return refuse("that interleaves elements, or fills with other than zeros");
  TensorMap map;
  map.element = kElements[fields.element].element;
  map.elementBytes = kElements[fields.element].bytes;
  map.swizzleBytes = fields.swizzle ? 16u << fields.swizzle : 0;
  map.shape.base = fields.base;
  map.shape.rank = static_cast<int>(fields.rank) + 1;
  constexpr uint64_t kAlignment = 16;
  if (fields.base % kAlignment != 0)
    return refuse("of an array that lies at no multiple of 16 bytes");
  for (int dim = 0; dim < map.shape.rank; ++dim) {
    map.shape.box[dim] = fields.box[dim];
    map.shape.extents[dim] = fields.extents[dim];
    map.shape.strides[dim] = dim ? fields.strides[dim - 1] : map.elementBytes;
    if (fields.steps[dim] != 1)
      return refuse("that leaves elements out");
    if (fields.box[dim] < 1 || fields.box[dim] > 256)
      return refuse("whose boxes have not 1 to 256 elements along a dimension");
    if (dim && fields.strides[dim - 1] % kAlignment != 0)
      return refuse("with a stride that is no multiple of 16 bytes");
  }
  if (map.swizzleBytes && map.shape.box[0] * map.elementBytes > map.swizzleBytes)
    return refuse("whose boxes have rows longer than the swizzle");
  return map;
}

/// All lanes copy the bytes to global memory. Operands: to, from.
void publish(Warp &warp, const Instr &instr, Lanes lanes) {
  if (!warp.checkWhole(instr, lanes, "makes a tensor map"))
    return;
  uint64_t to = warp.in(instr, 0)[0], from = warp.in(instr, 1)[0];
  constexpr unsigned kWord = kMapBytes / kLanes;
  warp.countExecution(instr);
  MadeTensorMap made;
  bool isWhole = to % kMapBytes == 0 && from % kMapBytes == 0;
  if (!isWhole)
    warp.machine.report(FindingKind::Misaligned, instr, warp, 0, to % kMapBytes ? to : from,
                        "copies a tensor map from or to an address that is no multiple of 128");
  forEachLane(lanes, [&](unsigned lane) {
    const uint8_t *word = resolve(warp, instr, lane, from + kWord * lane, kWord, kWord,
                                  Space::Shared, AccessKind::Read, nullptr);
    if (word)
      std::memcpy(made.bytes.data() + kWord * lane, word, kWord);
    uint8_t *place =
        word ? resolve(warp, instr, lane, to + kWord * lane, kWord, kWord, Space::Global,
                       AccessKind::Write, made.bytes.data() + kWord * lane)
             : nullptr;
    isWhole &= place != nullptr;
    if (place)
      std::memcpy(place, made.bytes.data() + kWord * lane, kWord);
  });
  warp.meetLanes();
  if (!isWhole)
    return;
  std::optional<TensorMap> map = read(warp, instr, made.bytes.data(), to);
  if (!map)
    return;
  warp.machine.tensorMaps.everMade.push_back(*map);
  made.map = &warp.machine.tensorMaps.everMade.back();
  warp.machine.tensorMaps.made[to] = made;
}

/// From here on, a program finds the made map at the address.
void fence(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0);
  forEachLane(lanes, [&](unsigned lane) {
    if (auto found = warp.machine.tensorMaps.made.find(addresses[lane]);
        found != warp.machine.tensorMaps.made.end())
      found->second.known.insert(warp.cta.number);
  });
}

} // namespace

const TensorMap *simulator::findMadeMap(Warp &warp, const Instr &instr, unsigned lane,
                                        uint64_t address) {
  auto found = warp.machine.tensorMaps.made.find(address);
  if (found == warp.machine.tensorMaps.made.end())
    return nullptr;
  const MadeTensorMap &made = found->second;
  auto report = [&](const char *what) {
    warp.machine.report(FindingKind::UnorderedProxy, instr, warp, static_cast<int>(lane), address,
                        what);
  };
  if (!made.known.count(warp.cta.number))
    report("copies by a tensor map that has been made here, and not fenced since");
  else if (std::memcmp(reinterpret_cast<const void *>(address), made.bytes.data(), kMapBytes) != 0)
    report("copies by a tensor map that has been written to since it was made");
  // Seen on an H100, be the copy inside of the array or not.
  constexpr uint64_t kMaxElements = uint64_t(1) << 31;
  for (int dim = 0; dim < made.map->shape.rank; ++dim)
    if (uint64_t extent = made.map->shape.extents[dim]; extent == 0 || extent > kMaxElements)
      warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), address,
                          "copies by a tensor map with an extent of " + std::to_string(extent) +
                              " elements: an illegal instruction");
  return made.map;
}

bool simulator::decodeMaking(Decoder &decoder, const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  if (instr.words.front() == "fence" && has("tensormap::generic")) {
    // A release comes with the copy here.
    if (!has("acquire") || operands.size() != 2 || operands[1].offset != kMapBytes)
      return false;
    decoder.emit(fence, {}, {operands[0].registers.front()}, Flow::Memory);
    return true;
  }
  if (instr.words.front() != "tensormap" || instr.words.size() < 2)
    return false;
  // tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned to, from
  if (instr.words[1] == "cp_fenceproxy") {
    if (!has("tensormap::generic") || !has("release") || !has("aligned") || operands.size() != 3 ||
        operands[2].offset != kMapBytes)
      return false;
    decoder.emit(publish, {}, {operands[0].registers.front(), operands[1].registers.front()},
                 Flow::Memory);
    return true;
  }
  // tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [map], 0, value
  if (instr.words[1] != "replace" || instr.words.size() != 7 || instr.words[2] != "tile" ||
      instr.words[5] != "b1024" || operands.size() < 2 || operands.size() > 3)
    return false;
  unsigned number = operands.size() == 3 ? operands[1].offset : 0;
  auto [offset, bytes] = findField(instr.words[3], number);
  if (bytes == 0 || number >= kMaxDims || getPTXWidth(instr.words[6]) != 8 * bytes)
    return false;
  WarpAccess access;
  access.space = instr.words[4] == "global" ? Space::Global : Space::Shared;
  access.bytes = access.alignment = bytes;
  access.offset = static_cast<int64_t>(offset) + operands[0].offset;
  decoder
      .emit(runStore, {}, {operands[0].registers.front(), operands.back().registers.front()},
            Flow::Memory)
      .detail = decoder.keep(access);
  return true;
}
