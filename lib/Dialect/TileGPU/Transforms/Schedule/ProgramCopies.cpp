// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramCopies.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

std::optional<ScheduledCopy> tessera::tilegpu::getProgramCopy(tile::FuncOp kernel,
                                                              tile::LoadOp load, std::string &why) {
  auto refuse = [&](const Twine &reason) {
    why = reason.str();
    return std::nullopt;
  };
  if (load->getBlock() != &kernel.getBody().front())
    return refuse("it does not run exactly once in each program");
  ScheduledCopy copy;
  copy.load = load;
  for (Operation *user : load->getUsers()) {
    auto buffer = dyn_cast<LocalAllocOp>(user);
    if (!buffer || buffer->getBlock() != load->getBlock())
      return refuse("threads use its tile");
    if (!copy.buffers.empty() && copy.buffers.front().getType() != buffer.getType())
      return refuse("dots use its tile in two layouts");
    copy.buffers.push_back(buffer);
    for (Operation *use : getUses(buffer))
      if (!isa<AsyncDotOp, LocalLoadOp, LocalDeallocOp>(use))
        return refuse("its tile is used by " + use->getName().getStringRef());
  }
  if (getReaders(copy).empty())
    return refuse("its tile is unused");
  copy.tile = copy.buffers.front().getType();
  return copy;
}

SmallVector<Operation *> tessera::tilegpu::getReaders(const ScheduledCopy &copy) {
  Block *block = tile::LoadOp(copy.load)->getBlock();
  SmallVector<Operation *> readers;
  for (LocalAllocOp buffer : copy.buffers)
    for (Operation *use : getUses(buffer)) {
      Operation *around = block->findAncestorOpInBlock(*use);
      if (!isa<LocalDeallocOp>(use) && !llvm::is_contained(readers, around))
        readers.push_back(around);
    }
  llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return readers;
}

FailureOr<SmallVector<ScheduledCopy, 1>>
tessera::tilegpu::readProgramCopies(tile::FuncOp kernel, KernelScheduleAttr attr) {
  SmallVector<ScheduledCopy, 1> copies;
  ArrayRef<ChannelAttr> channels = attr ? attr.getChannels() : ArrayRef<ChannelAttr>();
  for (tile::LoadOp load : kernel.getBody().front().getOps<tile::LoadOp>()) {
    auto node = load->getAttrOfType<NodeAttr>(kNodeAttr);
    if (!node || node.getRole() != NodeRole::Copy)
      continue;
    if (!node.getProducer() ||
        node != NodeAttr::getCopy(kernel.getContext(), /*stage=*/0, /*order=*/0, *node.getChannel(),
                                  Type(), node.getProducer()))
      return load.emitError(
          "is copied by a producer once in each program: its node can have a channel only");
    std::string why;
    std::optional<ScheduledCopy> copy = getProgramCopy(kernel, load, why);
    if (!copy)
      return load.emitError("cannot be copied once in each program: ") << why;
    unsigned number = *node.getChannel();
    auto isIt = [&](ChannelAttr channel) { return channel.getNumber() == number; };
    copy->channel = llvm::find_if(channels, isIt) - channels.begin();
    if (copy->channel == channels.size())
      return load.emitError("fills channel ")
             << number << ", which the kernel's schedule does not have";
    if (llvm::any_of(copies, [&](const auto &other) { return other.channel == copy->channel; }))
      return load.emitError("fills channel ")
             << number << ", which a load before it fills; each needs its own";
    copies.push_back(std::move(*copy));
  }
  for (unsigned index = 0; index < channels.size(); ++index)
    if (llvm::none_of(copies, [&](const auto &copy) { return copy.channel == index; }))
      return kernel.emitError("has channel ")
             << channels[index].getNumber() << ", which no load outside of its loops fills";
  return copies;
}
