// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/IR/DialectImplementation.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

#include "tessera/Dialect/TileGPU/IR/TileGPUScheduleEnums.cpp.inc"

/// Not of a GPU: a ring of more slots is a mistake.
static constexpr unsigned kMaxSlots = 64;

/// One of the words of an enum.
template <typename Enum>
static ParseResult parseWord(AsmParser &parser, std::optional<Enum> (*symbolize)(StringRef),
                             Enum &result) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Enum> found = symbolize(word);
  if (!found)
    return parser.emitError(loc, "unknown word '") << word << "'";
  result = *found;
  return success();
}

/// `, name = value` or `, name` again and again, up to the `>`. Each name comes once.
static ParseResult parseEntries(AsmParser &parser, bool isFirst,
                                llvm::function_ref<ParseResult(StringRef, SMLoc)> parseEntry) {
  SmallVector<StringRef, 8> seen;
  while (failed(parser.parseOptionalGreater())) {
    if (!isFirst && parser.parseComma())
      return failure();
    isFirst = false;
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    if (llvm::is_contained(seen, name))
      return parser.emitError(loc, "") << name << " is given twice";
    seen.push_back(name);
    if (parseEntry(name, loc))
      return failure();
  }
  return success();
}

static ParseResult refuseEntry(AsmParser &parser, StringRef name, SMLoc loc) {
  return parser.emitError(loc, "no entry is called '") << name << "' here";
}

template <typename Int> static ParseResult parseNumber(AsmParser &parser, Int &number) {
  return failure(parser.parseEqual() || parser.parseInteger(number));
}

//===----------------------------------------------------------------------===//
// ChannelAttr
//===----------------------------------------------------------------------===//

Attribute ChannelAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  unsigned number = 0, slots = 0;
  CopyKind copy = CopyKind::CpAsync;
  if (parser.parseLess() || parser.parseInteger(number) ||
      parseEntries(parser, /*isFirst=*/false, [&](StringRef name, SMLoc at) -> ParseResult {
        if (name == "slots")
          return parseNumber(parser, slots);
        if (name == "copy")
          return failure(parser.parseEqual() || parseWord(parser, symbolizeCopyKind, copy));
        return refuseEntry(parser, name, at);
      }))
    return {};
  return parser.getChecked<ChannelAttr>(loc, parser.getContext(), number, slots, copy);
}

void ChannelAttr::print(AsmPrinter &printer) const {
  printer << '<' << getNumber() << ", slots = " << getSlots()
          << ", copy = " << stringifyCopyKind(getCopy()) << '>';
}

LogicalResult ChannelAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned,
                                  unsigned slots, CopyKind) {
  if (slots < 1 || slots > kMaxSlots)
    return emitError() << "a ring has 1 to " << kMaxSlots << " slots, not " << slots;
  return success();
}

/// `= [<0, ...>, <1, ...>]`
static ParseResult parseChannels(AsmParser &parser, SmallVectorImpl<ChannelAttr> &channels) {
  return failure(parser.parseEqual() ||
                 parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
                   auto channel = dyn_cast_or_null<ChannelAttr>(ChannelAttr::parse(parser, {}));
                   if (!channel)
                     return failure();
                   channels.push_back(channel);
                   return success();
                 }));
}

static void printChannels(AsmPrinter &printer, ArrayRef<ChannelAttr> channels) {
  printer << "channels = [";
  llvm::interleaveComma(channels, printer, [&](ChannelAttr channel) { channel.print(printer); });
  printer << ']';
}

static LogicalResult verifyNumbers(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<ChannelAttr> channels) {
  // Not of a GPU: sets of numbers keep the largest two of 16 bits for themselves.
  constexpr unsigned kMaxNumber = 65535;
  llvm::SmallDenseSet<unsigned> numbers;
  for (ChannelAttr channel : channels) {
    if (channel.getNumber() > kMaxNumber)
      return emitError() << "the number of a channel is above " << kMaxNumber << ": "
                         << channel.getNumber();
    if (!numbers.insert(channel.getNumber()).second)
      return emitError() << "two channels have number " << channel.getNumber();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ScheduleAttr
//===----------------------------------------------------------------------===//

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<ChannelAttr> channels;
  bool isPingPong = false;
  uint64_t cycles = 0;
  if (parser.parseLess() ||
      parseEntries(parser, /*isFirst=*/true, [&](StringRef name, SMLoc at) -> ParseResult {
        if (name == "channels")
          return parseChannels(parser, channels);
        if (name == "cycles")
          return parseNumber(parser, cycles);
        if (name != "ping_pong")
          return refuseEntry(parser, name, at);
        isPingPong = true;
        return success();
      }))
    return {};
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(), ArrayRef(channels), isPingPong,
                                         cycles);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printChannels(printer, getChannels());
  if (getPingPong())
    printer << ", ping_pong";
  if (getCycles() != 0)
    printer << ", cycles = " << getCycles();
  printer << '>';
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<ChannelAttr> channels, bool, uint64_t) {
  return verifyNumbers(emitError, channels);
}

//===----------------------------------------------------------------------===//
// NodeAttr
//===----------------------------------------------------------------------===//

NodeAttr NodeAttr::get(MLIRContext *context, NodeRole role, int stage, int order) {
  return get(context, role, stage, order, std::nullopt, 0, std::nullopt, std::nullopt, Type(),
             /*multicast=*/false, /*slices=*/0, /*ahead=*/0);
}

NodeAttr NodeAttr::getCopy(MLIRContext *context, int stage, int order, unsigned channel, Type tile,
                           std::optional<unsigned> producer, std::optional<int> wait,
                           bool multicast) {
  return get(context, NodeRole::Copy, stage, order, wait, 0, channel, producer, tile, multicast,
             /*slices=*/0, /*ahead=*/0);
}

NodeAttr NodeAttr::getMMA(MLIRContext *context, int stage, int order, std::optional<int> wait,
                          unsigned inFlight) {
  return get(context, NodeRole::MMA, stage, order, wait, inFlight, std::nullopt, std::nullopt,
             Type(), /*multicast=*/false, /*slices=*/0, /*ahead=*/0);
}

NodeAttr NodeAttr::getSliced(MLIRContext *context, unsigned slices, unsigned ahead) {
  return get(context, NodeRole::MMA, /*stage=*/0, /*order=*/0, std::nullopt, 0, std::nullopt,
             std::nullopt, Type(), /*multicast=*/false, slices, ahead);
}

/// `= producer`, or `= producer[1]` for another one than the first.
static ParseResult parseProducer(AsmParser &parser, std::optional<unsigned> &producer) {
  unsigned number = 0;
  if (parser.parseEqual() || parser.parseKeyword("producer"))
    return failure();
  if (succeeded(parser.parseOptionalLSquare()) &&
      (parser.parseInteger(number) || parser.parseRSquare()))
    return failure();
  producer = number;
  return success();
}

Attribute NodeAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  NodeRole role = NodeRole::Vector;
  int stage = 0, order = 0, waitOrder = 0;
  unsigned inFlight = 0, channelNumber = 0, slices = 0, ahead = 0;
  std::optional<int> wait;
  std::optional<unsigned> channel, producer;
  Type tile;
  bool isMulticast = false;
  if (parser.parseLess() || parseWord(parser, symbolizeNodeRole, role) ||
      parseEntries(parser, /*isFirst=*/false, [&](StringRef name, SMLoc at) -> ParseResult {
        if (name == "stage")
          return parseNumber(parser, stage);
        if (name == "order")
          return parseNumber(parser, order);
        if (name == "in_flight")
          return parseNumber(parser, inFlight);
        if (name == "wait") {
          if (parseNumber(parser, waitOrder))
            return failure();
          wait = waitOrder;
          return success();
        }
        if (name == "channel") {
          if (parseNumber(parser, channelNumber))
            return failure();
          channel = channelNumber;
          return success();
        }
        if (name == "warps")
          return parseProducer(parser, producer);
        if (name == "tile")
          return failure(parser.parseEqual() || parser.parseType(tile));
        if (name == "slices")
          return parseNumber(parser, slices);
        if (name == "ahead")
          return parseNumber(parser, ahead);
        if (name != "multicast")
          return refuseEntry(parser, name, at);
        isMulticast = true;
        return success();
      }))
    return {};
  return parser.getChecked<NodeAttr>(loc, parser.getContext(), role, stage, order, wait, inFlight,
                                     channel, producer, tile, isMulticast, slices, ahead);
}

void NodeAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyNodeRole(getRole());
  if (getStage() != 0)
    printer << ", stage = " << getStage();
  if (getOrder() != 0)
    printer << ", order = " << getOrder();
  if (getWait())
    printer << ", wait = " << *getWait();
  if (getInFlight() != 0)
    printer << ", in_flight = " << getInFlight();
  if (getChannel())
    printer << ", channel = " << *getChannel();
  if (getProducer())
    printer << ", warps = producer";
  if (getProducer().value_or(0) != 0)
    printer << '[' << *getProducer() << ']';
  if (getTile())
    printer << ", tile = " << getTile();
  if (getSlices() != 0)
    printer << ", slices = " << getSlices();
  if (getAhead() != 0)
    printer << ", ahead = " << getAhead();
  printer << (getMulticast() ? ", multicast>" : ">");
}

LogicalResult NodeAttr::verify(function_ref<InFlightDiagnostic()> emitError, NodeRole role,
                               int stage, int order, std::optional<int> wait, unsigned inFlight,
                               std::optional<unsigned> channel, std::optional<unsigned> producer,
                               Type tile, bool multicast, unsigned slices, unsigned ahead) {
  if ((role == NodeRole::Copy) != channel.has_value())
    return emitError() << (channel ? "only a copy has a channel" : "a copy needs a channel");
  if (tile && !(channel && isa<MemDescType>(tile)))
    return emitError() << "only a copy has a tile, whose type is a buffer's";
  if (producer && role != NodeRole::Copy)
    return emitError() << "a producer runs copies only";
  if (multicast && !producer)
    return emitError() << "only copies of a producer are multicast";
  if (inFlight > 1 || (inFlight == 1 && (role != NodeRole::MMA || !wait)))
    return emitError() << "only an MMA with a wait is in flight past its iteration, and at most "
                          "one iteration longer";
  if (wait && role != NodeRole::MMA && role != NodeRole::Copy)
    return emitError() << "only an MMA or a copy is waited for";
  if (order < 0 || wait.value_or(0) < 0)
    return emitError() << "an order is at least 0";
  if (slices != 0 && (role != NodeRole::MMA || wait || stage != 0))
    return emitError() << "only an MMA of stage 0 without a wait has slices";
  if (slices != 0 && !llvm::isPowerOf2_32(slices))
    return emitError() << "there are " << slices << " slices, which is not a power of two";
  if (ahead > 1 || (ahead == 1 && slices == 0))
    return emitError() << "only an MMA with slices has a slice ahead, and at most one";
  return success();
}

//===----------------------------------------------------------------------===//
// KernelScheduleAttr
//===----------------------------------------------------------------------===//

/// Not of a GPU: the product of a group and an extent of the grid has 32 bits.
static constexpr unsigned kMaxProgramsPerGroup = 1024;

static LogicalResult refuseGroup(function_ref<InFlightDiagnostic()> emitError, unsigned group) {
  return emitError() << "a group has 1 to " << kMaxProgramsPerGroup
                     << " programs along axis 0, not " << group;
}

/// `= 4`, or `= [4, 1]` for several producers, or `= 0` for none.
static ParseResult parseProducerWarps(AsmParser &parser, SmallVectorImpl<int32_t> &warps) {
  auto parse = [&] { return parser.parseInteger(warps.emplace_back()); };
  if (parser.parseEqual())
    return failure();
  if (succeeded(parser.parseOptionalLSquare()))
    return failure(parser.parseCommaSeparatedList(parse) || parser.parseRSquare());
  if (parse())
    return failure();
  if (warps.front() == 0)
    warps.clear();
  return success();
}

Attribute KernelScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  unsigned registers = 0, occupancy = 1, group = 0;
  SmallVector<int32_t> warps, ofProducers;
  ProgramOrder order = ProgramOrder::Grid;
  bool isPersistent = false, hasGroup = false;
  SmallVector<ChannelAttr> channels;
  if (parser.parseLess() ||
      parseEntries(parser, /*isFirst=*/true, [&](StringRef name, SMLoc at) -> ParseResult {
        if (name == "producer_warps")
          return parseProducerWarps(parser, warps);
        if (name == "registers")
          return failure(parser.parseEqual() || parser.parseLSquare() ||
                         parser.parseInteger(registers) || parser.parseComma() ||
                         parser.parseCommaSeparatedList(
                             [&] { return parser.parseInteger(ofProducers.emplace_back()); }) ||
                         parser.parseRSquare());
        if (name == "occupancy")
          return parseNumber(parser, occupancy);
        if (name == "order")
          return failure(parser.parseEqual() || parseWord(parser, symbolizeProgramOrder, order));
        if (name == "channels")
          return parseChannels(parser, channels);
        hasGroup |= name == "group";
        if (name == "group")
          return parseNumber(parser, group);
        if (name != "persistent")
          return refuseEntry(parser, name, at);
        isPersistent = true;
        return success();
      }))
    return {};
  if (hasGroup && group == 0) {
    (void)refuseGroup([&] { return parser.emitError(loc, ""); }, group);
    return {};
  }
  return parser.getChecked<KernelScheduleAttr>(loc, parser.getContext(), ArrayRef(warps), registers,
                                               ArrayRef(ofProducers), occupancy, isPersistent,
                                               order, group, ArrayRef(channels));
}

void KernelScheduleAttr::print(AsmPrinter &printer) const {
  ArrayRef<int32_t> warps = getProducerWarps();
  printer << "<producer_warps = ";
  if (warps.size() > 1)
    printer << '[';
  llvm::interleaveComma(warps, printer);
  printer << (warps.empty() ? "0" : warps.size() > 1 ? "]" : "");
  if (getRegisters() != 0) {
    printer << ", registers = [" << getRegisters() << ", ";
    llvm::interleaveComma(getProducerRegisters(), printer);
    printer << ']';
  }
  if (getOccupancy() != 1)
    printer << ", occupancy = " << getOccupancy();
  if (getPersistent())
    printer << ", persistent";
  if (getOrder() != ProgramOrder::Grid)
    printer << ", order = " << stringifyProgramOrder(getOrder());
  if (getGroup() != 0)
    printer << ", group = " << getGroup();
  if (!getChannels().empty())
    printChannels(printer << ", ", getChannels());
  printer << '>';
}

LogicalResult KernelScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                         ArrayRef<int32_t> warps, unsigned registers,
                                         ArrayRef<int32_t> ofProducers, unsigned occupancy,
                                         bool isPersistent, ProgramOrder order, unsigned group,
                                         ArrayRef<ChannelAttr> channels) {
  if (llvm::any_of(warps, [](int32_t count) { return count < 1; }))
    return emitError() << "each producer has at least one warp";
  if (warps.empty() && (isPersistent || registers != 0))
    return emitError() << "only a kernel with producer warps is persistent, or exchanges registers "
                          "between warps";
  if (ofProducers.size() != (registers == 0 ? 0 : warps.size()) ||
      llvm::any_of(ofProducers, [](int32_t count) { return count < 1; }))
    return emitError() << "registers are given for the program and each producer or for none";
  if (occupancy == 0)
    return emitError() << "an SM runs at least one program";
  if (!isPersistent && (order != ProgramOrder::Grid || group != 0))
    return emitError() << "a kernel that is not persistent has the grid's order of programs";
  if (group > kMaxProgramsPerGroup)
    return refuseGroup(emitError, group);
  if (order == ProgramOrder::Balanced && group != 0)
    return emitError() << "a balanced order of programs has no given group";
  if (llvm::any_of(channels, [&](ChannelAttr channel) {
        return warps.empty() || channel.getCopy() != CopyKind::TMA;
      }))
    return emitError() << "only producer warps fill the channels of a kernel, by TMA";
  return verifyNumbers(emitError, channels);
}
