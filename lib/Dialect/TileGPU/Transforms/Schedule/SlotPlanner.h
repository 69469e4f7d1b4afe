// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last step of the planner (SchedulePlanner.h): the slots of the rings, the programs that share
// an SM, and persistence. There is one candidate for each kind of schedule. It says how many slots
// are asked for, how many would be too few, and how many fit; the rest is the same for all:
//
//     candidate                   asks for
//     rows behind layouts         two slots, for as many programs as have registers
//     copies by all threads       the stages; more if copies arrive in time then
//     the program's first thread  the stages, with as many programs as its threads allow
//     a producer, dots in flight  copies in time, rather in a persistent kernel
//     a producer, other dots      several programs on an SM; else a persistent kernel

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SLOTPLANNER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SLOTPLANNER_H

#include "SchedulePlan.h"

namespace tessera::tilegpu {

class SlotPlanner {
public:
  SlotPlanner(SchedulePlan &plan, MemoryOrder &order, AccessAnalysis &analysis)
      : plan(plan), order(order), analysis(analysis), resources(plan.getResources()) {}

  /// False if the rings do not fit; a remark says so.
  bool run();

private:
  bool bound();
  bool boundRows();
  void boundByThreads();
  void boundWithoutProducer();
  void boundWithDotsInFlight();
  void boundWithOtherDots();

  int64_t countFitting(bool isStored) const;
  int64_t getStored() const;
  int64_t getTimelySlots(int64_t others) const;
  int64_t countUsefulSlots() const;
  void planPrograms(llvm::function_ref<bool(int64_t)> fits);
  void planPersistence(bool isWithoutLoads);
  void planPingPong();
  bool planProgramCopies();
  void planProgramSlots();
  void dropDotsInFlight();

  SchedulePlan &plan;
  MemoryOrder &order;
  AccessAnalysis &analysis;
  RingResources resources;
  /// True if loops are within others, so that rings are filled while results are stored.
  bool isInLoop = false;
  /// Bytes of barriers, and of results that are stored while rings are filled.
  int64_t barriers = 0, stored = 0;
  /// The slots that fit, those that are asked for, and those below which a remark says so.
  int64_t fitting = 0, wanted = 0, least = 0;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SLOTPLANNER_H
