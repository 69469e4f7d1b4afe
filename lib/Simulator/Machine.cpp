// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules programs and warps, and divides a warp's lanes at branches.

#include "Machine.h"

#include "mlir/IR/Location.h"
#include "tessera/Support/Cancellation.h"
#include "tessera/Support/UserError.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

std::string simulator::describeLocation(Operation *op) {
  if (!op)
    return {};
  auto place = op->getLoc()->findInstanceOf<FileLineColLoc>();
  if (!place)
    return {};
  return llvm::formatv("{0}:{1}:{2}", place.getFilename().getValue(), place.getLine(),
                       place.getColumn())
      .str();
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

Warp::Warp(Machine &machine, Cta &cta, unsigned id, const Code &kernel,
           llvm::ArrayRef<uint64_t> args)
    : machine(machine), cta(cta), id(id), constants(machine.image.constants) {
  times.of[id] = 1;
  registers = machine.entryRegisters;
  pushFrame(kernel, kAllLanes, nullptr);
  for (auto [reg, value] : llvm::zip_equal(kernel.arguments, args))
    std::fill_n(rows[reg].lane, kLanes, value);
}

void Warp::pushFrame(const Code &code, Lanes lanes, const Instr *call) {
  Frame frame;
  frame.code = &code;
  frame.firstRow = frames.empty() ? 0 : frames.back().firstRow + frames.back().code->numRegisters;
  frame.active = frame.live = lanes;
  frame.call = call;
  if (rows.size() < frame.firstRow + code.numRegisters)
    rows.resize(frame.firstRow + code.numRegisters);
  // A thread's memory is its first frames': there is no recursion of functions with memory.
  if (localMemory.threadBytes < code.localBytes) {
    localMemory.threadBytes = code.localBytes;
    localMemory.bytes.assign(kLanes * localMemory.threadBytes, 0xcd);
  }
  frames.push_back(frame);
}

GlobalAccessor Warp::globalAccessor(const Instr &instr, unsigned lane) const {
  GlobalAccessor who;
  who.access.program = who.program = cta.number;
  who.access.clock = times.of[id];
  who.access.lanes = who.lane = Lanes(1) << lane;
  who.access.agent = who.warp = id;
  who.access.instr = instr.number;
  who.lanesMet = lanesMet;
  who.acquired = &times;
  who.execution = executions.empty() ? 0 : executions[instr.number];
  return who;
}

Accessor Warp::accessor(unsigned lane) const {
  Accessor who;
  who.agent = id;
  who.rank = who.observer = cta.rank;
  who.lane = lane;
  who.clock = times.of[id];
  who.acquired = &times;
  who.firstProgram = cta.cluster.firstProgram;
  return who;
}

uint32_t Warp::countExecution(const Instr &instr) {
  if (executions.empty())
    executions.resize(machine.image.numInstrs);
  return ++executions[instr.number];
}

bool Warp::checkWhole(const Instr &instr, Lanes lanes, const char *what) {
  if (lanes == kAllLanes)
    return true;
  unsigned missing = __builtin_ctz(~lanes);
  machine.report(FindingKind::Divergence, instr, *this, static_cast<int>(missing), 0,
                 llvm::formatv("{0} is run by {1} lanes of the warp, and not by this one", what,
                               __builtin_popcount(lanes)));
  return false;
}

static Lanes lanesWhere(const uint64_t *values) {
  Lanes lanes = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    lanes |= Lanes(values[lane] & 1) << lane;
  return lanes;
}

void Warp::run(unsigned accesses) {
  wait.isSpinning = wait.repeats = false;
  unsigned budget = 20000;
  while (!frames.empty() && state == WarpState::Runnable) {
    Frame &frame = frames.back();
    const Instr &instr = frame.code->instrs[frame.pc];
    Lanes lanes = frame.active;
    if (instr.predicate != kNoRegister) {
      Lanes holds = lanesWhere(row(instr.predicate));
      lanes &= instr.isNegated ? ~holds : holds;
    }
    ++machine.work.instructions;
    machine.work.laneOperations += __builtin_popcount(lanes);
    switch (instr.flow) {
    case Flow::Next:
      if (lanes)
        instr.run(*this, instr, lanes);
      ++frame.pc;
      break;
    case Flow::Memory:
      if (lanes)
        instr.run(*this, instr, lanes);
      if (wait.repeats)
        break;
      ++frame.pc;
      if (accesses-- == 0)
        return;
      break;
    case Flow::Branch:
      takeBranch(instr);
      break;
    case Flow::Call: {
      ++frame.pc;
      uint32_t caller = frame.firstRow;
      pushFrame(*instr.callee, lanes, &instr); // `frame` is gone
      Frame &callee = frames.back();
      for (auto [to, from] : llvm::zip_equal(instr.callee->arguments, instr.operands)) {
        const Row &source = from >= 0 ? rows[caller + from] : constants[~from];
        rows[callee.firstRow + to] = source;
      }
      break;
    }
    case Flow::Return:
      returnFrom(instr);
      break;
    }
    if (wait.isSpinning || --budget == 0)
      return;
  }
}

void Warp::follow(const Edge &edge, Lanes lanes) {
  if (edge.copies.empty())
    return;
  Row *registers = &rows[frames.back().firstRow];
  if (edge.isParallel) {
    if (scratch.size() < edge.copies.size())
      scratch.resize(edge.copies.size());
    for (auto [i, copy] : llvm::enumerate(edge.copies))
      std::copy_n(row(copy.second), kLanes, scratch[i].lane);
    for (auto [i, copy] : llvm::enumerate(edge.copies)) {
      const uint64_t *from = scratch[i].lane;
      uint64_t *to = registers[copy.first].lane;
      forEachLane(lanes, [&](unsigned lane) { to[lane] = from[lane]; });
    }
    return;
  }
  for (const auto &[target, source] : edge.copies) {
    const uint64_t *from = row(source);
    uint64_t *to = registers[target].lane;
    forEachLane(lanes, [&](unsigned lane) { to[lane] = from[lane]; });
  }
}

/// Operand 0 is the number of the edge; a branch without one has a single edge.
void Warp::takeBranch(const Instr &instr) {
  Frame &frame = frames.back();
  const Edge *edges = &frame.code->edges[instr.firstEdge];
  Lanes left = frame.active;
  std::array<uint64_t, kLanes> choice{};
  if (instr.run)
    instr.run(*this, instr, left);
  if (!instr.operands.empty()) {
    const uint64_t *numbers = in(instr, 0);
    std::copy_n(numbers, kLanes, choice.begin());
  }
  bool isFirst = true;
  while (left) {
    uint64_t number = choice[__builtin_ctz(left)];
    Lanes group = 0;
    forEachLane(left, [&](unsigned lane) {
      if (choice[lane] == number)
        group |= Lanes(1) << lane;
    });
    const Edge &edge = edges[number];
    follow(edge, group);
    left &= ~group;
    if (isFirst && !left && frame.active == frame.live) {
      frame.pc = edge.target;
      return;
    }
    isFirst = false;
    forEachLane(group, [&](unsigned lane) { frame.where[lane] = edge.target; });
  }
  regroup(frame);
}

void Warp::regroup(Frame &frame) {
  uint32_t first = ~0u;
  forEachLane(frame.live, [&](unsigned lane) { first = std::min(first, frame.where[lane]); });
  frame.active = 0;
  forEachLane(frame.live, [&](unsigned lane) {
    if (frame.where[lane] == first)
      frame.active |= Lanes(1) << lane;
  });
  frame.pc = first;
}

void Warp::returnFrom(const Instr &instr) {
  Frame &frame = frames.back();
  if (frame.call) {
    uint32_t caller = frames[frames.size() - 2].firstRow;
    for (auto [number, to] : llvm::enumerate(frame.call->results)) {
      const uint64_t *from = in(instr, number);
      uint64_t *result = rows[caller + to].lane;
      forEachLane(frame.active, [&](unsigned lane) { result[lane] = from[lane]; });
    }
  }
  frame.live &= ~frame.active;
  if (frame.live)
    return regroup(frame);
  frames.pop_back();
  if (!frames.empty())
    return;
  state = WarpState::Done;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (!stores[lane].isRead())
      machine.report(FindingKind::Race, *stores[lane].last, *this, static_cast<int>(lane), 0,
                     "copies from shared memory, and does not wait for that before it ends");
  cta.cluster.leave(*this);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void Cta::arrive(Warp &warp, unsigned number, unsigned expected, bool waits) {
  Barrier &barrier = barriers[number];
  barrier.expected = expected;
  barrier.times.join(warp.times);
  ++barrier.arrived;
  warp.tick();
  if (waits) {
    warp.meetLanes();
    warp.state = WarpState::AtBarrier;
    warp.wait.barrier = number;
    barrier.waiting.push_back(&warp);
  }
  if (barrier.arrived < expected)
    return;
  for (Warp *waiting : barrier.waiting) {
    waiting->state = WarpState::Runnable;
    waiting->wait.at = nullptr;
    waiting->times.join(barrier.times);
  }
  barrier = Barrier();
}

bool Cta::isDone() const {
  return llvm::all_of(warps, [](const auto &warp) { return warp->state == WarpState::Done; });
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

Machine::Machine(const Image &image, const Code &kernel, std::array<int32_t, 3> grid,
                 std::array<int32_t, 3> cluster, unsigned numWarps, unsigned entryRegisters,
                 llvm::ArrayRef<uint64_t> values, std::vector<TensorMap> maps,
                 llvm::ArrayRef<uint64_t> slots, const SimulatorOptions &options)
    : image(image), kernel(kernel), grid(grid), cluster(cluster),
      clusterSize(static_cast<unsigned>(cluster[0] * cluster[1] * cluster[2])), numWarps(numWarps),
      entryRegisters(entryRegisters), options(options), tensorMaps{std::move(maps), {}, {}},
      args(values), regions(options.memory), random(options.seed) {
  for (const TensorMap &map : tensorMaps.given)
    args.push_back(reinterpret_cast<uint64_t>(&map));
  for (int first : options.argumentTables)
    args.push_back(reinterpret_cast<uint64_t>(&slots[first]));
  if (!regions.empty() && !options.argumentTables.empty())
    regions.push_back({reinterpret_cast<uint64_t>(slots.begin()),
                       reinterpret_cast<uint64_t>(slots.end()), /*isReadOnly=*/true});
  if (!regions.empty())
    for (const std::string &data : image.data) {
      auto begin = reinterpret_cast<uint64_t>(data.data());
      regions.push_back({begin, begin + data.size(), /*isReadOnly=*/true});
    }
  for (const ModuleMemory &memory : image.memory) {
    std::memset(memory.bytes.get() +
                    (memory.begin - reinterpret_cast<uint64_t>(memory.bytes.get())),
                0, memory.size);
    if (!regions.empty())
      regions.push_back({memory.begin, memory.begin + memory.size, /*isReadOnly=*/false});
  }
  llvm::sort(regions,
             [](const MemoryRegion &a, const MemoryRegion &b) { return a.begin < b.begin; });
  instrs.resize(image.numInstrs);
  std::vector<uint32_t> sites(image.numInstrs);
  llvm::DenseMap<mlir::Attribute, uint32_t> numbers;
  for (const auto &[name, code] : image.functions)
    for (const Instr &instr : code->instrs) {
      instrs[instr.number] = &instr;
      if (instr.op)
        sites[instr.number] =
            numbers.try_emplace(LocationAttr(instr.op->getLoc()), numbers.size() + 1).first->second;
    }
  if (!options.watchesGlobal)
    return;
  shadow = std::make_unique<GlobalShadow>(std::move(sites), clusterSize,
                                          [this](uint64_t address) { land(address); });
  for (const MemoryRegion &region : regions)
    if (region.isUnwritten)
      shadow->setUnwritten(region.begin, region.end);
}

/// The coordinates of number `number` in a box of `extents`, x first.
static std::array<int32_t, 3> placeInBox(uint32_t number, std::array<uint32_t, 3> extents) {
  return {static_cast<int32_t>(number % extents[0]),
          static_cast<int32_t>(number / extents[0] % extents[1]),
          static_cast<int32_t>(number / extents[0] / extents[1])};
}

std::array<int32_t, 3> Machine::getCluster(uint32_t number) const {
  std::array<uint32_t, 3> clusters;
  for (int axis = 0; axis < 3; ++axis)
    clusters[axis] = static_cast<uint32_t>(grid[axis] / cluster[axis]);
  return placeInBox(number / clusterSize, clusters);
}

std::array<int32_t, 3> Machine::getBlock(uint32_t number) const {
  std::array<uint32_t, 3> extents;
  llvm::copy(cluster, extents.begin());
  std::array<int32_t, 3> block = placeInBox(number % clusterSize, extents),
                         first = getCluster(number);
  for (int axis = 0; axis < 3; ++axis)
    block[axis] += first[axis] * cluster[axis];
  return block;
}

std::string Machine::describeBlock(uint32_t number) const {
  std::array<int32_t, 3> id = getCluster(number);
  std::string program = llvm::formatv("program ({0}, {1}, {2})", id[0], id[1], id[2]);
  return clusterSize == 1 ? program
                          : llvm::formatv("block {0} of {1}", number % clusterSize, program).str();
}

/// Removes and returns an element of a list, chosen by `bits`.
template <typename T> static T takeAny(std::vector<T> &list, uint64_t bits) {
  std::swap(list[bits % list.size()], list.back());
  T taken = std::move(list.back());
  list.pop_back();
  return taken;
}

void Machine::run() {
  uint64_t total = uint64_t(grid[0]) * grid[1] * grid[2] / clusterSize, next = 0;
  auto limit = static_cast<size_t>(std::max(1, options.resident));
  InterruptPoll interrupts(options.isInterrupted);
  while (true) {
    interrupts.look();
    while (resident.size() < limit && next < total)
      resident.push_back(std::make_unique<Cluster>(*this, static_cast<uint32_t>(next++)));
    if (resident.empty())
      break;
    size_t chosen = resident.size() == 1 ? 0 : drawBits() % resident.size();
    if (runSome(*resident[chosen]))
      continue;
    retire(*resident[chosen]);
    resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  while (!leftStores.empty())
    takeAny(leftStores, drawBits())->write();
}

/// Writes that a program has begun continue without it; its reads arrive.
void Machine::retire(Cluster &cluster) {
  while (!cluster.copies.empty())
    cluster.arriveCopy(0);
  for (std::shared_ptr<BulkStore> &store : cluster.stores) {
    store->read();
    if (!store->isDone)
      leftStores.push_back(std::move(store));
  }
  cluster.stores.clear();
  if (options.copies == CopyTimes::Random && !leftStores.empty() && drawBits() & 1)
    takeAny(leftStores, drawBits())->write();
}

void Machine::land(uint64_t address) {
  auto landIn = [&](std::vector<std::shared_ptr<BulkStore>> &stores) {
    for (std::shared_ptr<BulkStore> &store : stores)
      if (llvm::any_of(store->rows,
                       [&](const BulkStore::Row &row) { return address - row.target < row.bytes; }))
        store->write();
    llvm::erase_if(stores, [](const auto &store) { return store->isDone; });
  };
  for (const auto &cluster : resident)
    landIn(cluster->stores);
  landIn(leftStores);
}

/// Runs a warp of a cluster for a while. False if there will be nothing more to run.
bool Machine::runSome(Cluster &cluster) {
  llvm::SmallVector<Warp *, kMaxWarps> runnable;
  for (const auto &cta : cluster.ctas)
    for (const auto &warp : cta->warps)
      if (warp->state == WarpState::Runnable)
        runnable.push_back(warp.get());
  if (runnable.empty()) {
    if (!cluster.isDone())
      reportDeadlock(cluster);
    return false;
  }
  cluster.stepEngines(/*isStuck=*/cluster.idleRuns > 4 * runnable.size());
  Warp &warp = *runnable[drawBits() % runnable.size()];
  warp.run(static_cast<unsigned>(drawBits() % 16));
  cluster.idleRuns = warp.wait.isSpinning ? cluster.idleRuns + 1 : 0;
  // All warps have been scheduled many times over, and no copy is in flight.
  if (cluster.idleRuns > 1000 * runnable.size() && cluster.copies.empty()) {
    reportDeadlock(cluster);
    return false;
  }
  if (work.instructions > options.maxInstructions)
    throw UserError("E068", llvm::formatv("kernel '{0}' has not ended after {1} instructions",
                                          kernel.name, work.instructions));
  return true;
}

void Machine::reportDeadlock(Cluster &cluster) {
  std::string endedBlocks;
  for (const auto &cta : cluster.ctas)
    if (cta->isDone())
      endedBlocks += (endedBlocks.empty() ? "" : ", ") + std::to_string(cta->rank);
  for (const auto &cta : cluster.ctas) {
    std::string ended;
    for (const auto &warp : cta->warps)
      if (warp->state == WarpState::Done)
        ended += (ended.empty() ? "" : ", ") + std::to_string(warp->id);
    for (const auto &warp : cta->warps) {
      std::string message;
      if (warp->state == WarpState::Runnable && warp->wait.isSpinning) {
        message = llvm::formatv("warp {0} waits for {1}", warp->id, warp->wait.reason);
      } else if (warp->state == WarpState::AtBarrier) {
        const Barrier &barrier = cta->barriers[warp->wait.barrier];
        message = llvm::formatv("warp {0} waits at barrier {1}, where {2} of {3} warps have come",
                                warp->id, warp->wait.barrier, barrier.arrived, barrier.expected);
        if (!ended.empty())
          message += "; warps that have ended: " + ended;
      } else if (warp->state == WarpState::AtClusterBarrier) {
        auto [arrived, expected] = cluster.countArrived();
        message = llvm::formatv("warp {0} waits at the barrier of the cluster, where {1} of {2} "
                                "threads have come",
                                warp->id, arrived, expected);
      } else {
        continue;
      }
      if (!endedBlocks.empty())
        message += "; blocks that have ended: " + endedBlocks;
      report(FindingKind::Deadlock, *warp->wait.at, *warp, 0, 0, std::move(message));
    }
  }
}

void Machine::report(FindingKind kind, const Instr &instr, const Warp &warp, int lane,
                     uint64_t address, std::string message) {
  if (reportAgain(kind, instr))
    return;
  observations.findingOf[{kind, instr.number}] = observations.findings.size();
  Finding finding;
  finding.kind = kind;
  finding.kernel = kernel.name;
  finding.location = describeLocation(instr.op);
  finding.program = getCluster(warp.cta.number);
  finding.block = clusterSize == 1 ? -1 : static_cast<int>(warp.cta.rank);
  finding.thread = static_cast<int>(warp.threadOf(static_cast<unsigned>(lane)));
  finding.address = address;
  if (const MemoryRegion *region = findRegion(address)) {
    finding.array = region->name;
    finding.element = static_cast<int64_t>((address - region->begin) / region->elementBytes);
  }
  finding.message = std::move(message);
  observations.findings.push_back(std::move(finding));
}

bool Machine::reportAgain(FindingKind kind, const Instr &instr) {
  auto found = observations.findingOf.find({kind, instr.number});
  if (found == observations.findingOf.end())
    return false;
  ++observations.findings[found->second].count;
  return true;
}

const MemoryRegion *Machine::findRegion(uint64_t address) const {
  for (const MemoryRegion &region : llvm::reverse(regions))
    if (address >= region.begin && address < region.end && !region.name.empty())
      return &region;
  return nullptr;
}

const char *Machine::checkGlobal(uint64_t address, uint64_t size, bool isWrite) const {
  if (regions.empty())
    return nullptr;
  auto after = llvm::upper_bound(
      regions, address, [](uint64_t at, const MemoryRegion &region) { return at < region.begin; });
  // Regions may overlap: arguments may be views of one array.
  const char *problem = "is in none of the launch's arrays";
  for (auto region = after; region != regions.begin();) {
    --region;
    if (address + size > region->end)
      continue;
    if (!isWrite || !region->isReadOnly)
      return nullptr;
    problem = "is in an array that may not be written";
  }
  return problem;
}

void Machine::noteShared(const Instr &instr, const char *name, unsigned wavefronts,
                         unsigned ideal) {
  auto &[op, access] = observations.sharedAccesses[instr.number];
  op = instr.op;
  access.instruction = name;
  ++access.executions;
  access.wavefronts += wavefronts;
  access.ideal += ideal;
}

SimulatorReport Machine::takeReport() {
  SimulatorReport result;
  result.findings = std::move(observations.findings);
  std::map<uint32_t, SharedAccess> ordered;
  for (auto &[number, entry] : observations.sharedAccesses) {
    entry.second.location = describeLocation(entry.first);
    ordered[number] = std::move(entry.second);
  }
  for (auto &[number, access] : ordered)
    result.sharedAccesses.push_back(std::move(access));
  result.instructions = work.instructions;
  result.laneOperations = work.laneOperations;
  return result;
}
