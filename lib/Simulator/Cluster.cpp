// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Cluster.h"

#include "Machine.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tessera;
using namespace tessera::simulator;

Cluster::Cluster(Machine &machine, uint32_t number)
    : machine(machine), firstProgram(number * machine.clusterSize), arriving(machine.clusterSize),
      released(machine.clusterSize) {
  for (unsigned rank = 0; rank < machine.clusterSize; ++rank) {
    uint32_t block = firstProgram + rank;
    auto cta = std::make_unique<Cta>(machine, *this, machine.getBlock(block), block,
                                     machine.numWarps, machine.image.sharedBytes);
    for (unsigned i = 0; i < machine.numWarps; ++i)
      cta->warps.push_back(
          std::make_unique<Warp>(machine, *cta, i, machine.kernel, machine.getArguments()));
    ctas.push_back(std::move(cta));
  }
}

Cluster::~Cluster() = default;

bool Cluster::isDone() const {
  return llvm::all_of(ctas, [](const auto &cta) { return cta->isDone(); });
}

//===----------------------------------------------------------------------===//
// The barrier
//===----------------------------------------------------------------------===//

std::pair<unsigned, unsigned> Cluster::countArrived() const {
  unsigned arrived = 0, expected = 0;
  for (const auto &cta : ctas)
    for (const auto &warp : cta->warps)
      if (warp->state != WarpState::Done) {
        arrived += __builtin_popcount(warp->arrival.lanes);
        expected += kLanes;
      }
  return {arrived, expected};
}

void Cluster::arrive(Warp &warp, const Instr &instr, Lanes lanes, bool isRelaxed) {
  if (warp.arrival.isComplete || (warp.arrival.lanes & lanes) != 0)
    machine.report(FindingKind::Divergence, instr, warp, __builtin_ctz(lanes), 0,
                   "comes to the barrier of the cluster twice, and has not waited there between");
  Times &times = arriving[warp.cta.rank];
  if (!isRelaxed)
    times.join(warp.times);
  else if (warp.fenced && warp.fenced->reach >= Reach::Cluster)
    times.join(warp.fenced->times);
  // Barriers in shared memory have a fence of their own, which makes them known in any case.
  for (auto &[address, barrier] : warp.cta.mbarriers)
    if (barrier.maker.agent == warp.id && barrier.isFenced && barrier.publishedIn == ~0u)
      barrier.publishedIn = phase;
  if (!isRelaxed)
    warp.tick();
  warp.arrival.isRelaxed = isRelaxed;
  warp.arrival.lanes |= lanes;
  auto [arrived, expected] = countArrived();
  if (arrived == expected)
    completePhase();
}

void Cluster::completePhase() {
  ++phase;
  idleRuns = 0;
  released = std::move(arriving);
  arriving.assign(ctas.size(), Times());
  for (const auto &cta : ctas)
    for (const auto &warp : cta->warps) {
      if (warp->state == WarpState::Done)
        continue;
      warp->arrival.lanes = 0;
      warp->arrival.isComplete = true;
      if (warp->state == WarpState::AtClusterBarrier) {
        warp->state = WarpState::Runnable;
        wait(*warp, *warp->wait.at, kAllLanes);
      }
    }
}

void Cluster::wait(Warp &warp, const Instr &instr, Lanes lanes) {
  warp.wait.at = &instr;
  if (!warp.arrival.isComplete) {
    if (warp.arrival.lanes) {
      warp.state = WarpState::AtClusterBarrier;
      return;
    }
    machine.report(FindingKind::Divergence, instr, warp, __builtin_ctz(lanes), 0,
                   "waits at the barrier of the cluster, to which it has not come");
    return;
  }
  warp.arrival.isComplete = false;
  warp.wait.at = nullptr;
  ++warp.times.clusterPhases;
  for (const auto &cta : ctas)
    acquire(warp.times, warp.cta.number, released[cta->rank], cta->number);
  if (!warp.arrival.isRelaxed)
    warp.meetLanes();
}

void Cluster::leave(Warp &warp) {
  if (warp.cta.isDone())
    warp.cta.end();
  auto [arrived, expected] = countArrived();
  if (expected != 0 && arrived == expected)
    completePhase();
}

//===----------------------------------------------------------------------===//
// How long shared memory is there
//===----------------------------------------------------------------------===//

void Cta::noteVisit(Visit visit) {
  if (visit.clock == kPending)
    return;
  Visit &last = visits[{visit.instr->number, visit.rank, visit.agent}];
  if (!last.instr || last.clock <= visit.clock)
    last = std::move(visit);
}

void Cta::end() {
  Times known;
  for (const auto &warp : warps)
    known.join(warp->times);
  for (const auto &[key, visit] : visits) {
    Clock acquired = known.of[visit.agent];
    if (visit.rank != rank) {
      Acquired other = known.others.lookup(cluster.firstProgram + visit.rank, visit.agent);
      acquired = visit.isRead ? std::max(other.clock, other.reads) : other.clock;
    }
    if (visit.clock <= acquired)
      continue;
    bool isOwn = &visit.warp->cta == this;
    machine.report(
        FindingKind::BlockNotRunning, *visit.instr, *visit.warp, static_cast<int>(visit.lane),
        visit.address,
        llvm::formatv("{0} at {1} of the shared memory of {2}, which may have ended by then: it "
                      "does not wait for that",
                      visit.what, visit.address,
                      isOwn ? "its own block"
                            : llvm::formatv("block {0} of the cluster", rank).str()));
  }
}
