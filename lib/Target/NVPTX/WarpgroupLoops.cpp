// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps ptxas from unrolling short loops of wgmma. Release 13.5 loses instructions of the copies. A
// loop of two to four iterations, in a kernel of several blocks a program, had one wgmma of nothing
// in their place. It stored the results of the iteration before (sm_90a; seed 20263350 of the
// fuzzer).

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "WarpgroupDot.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"

using namespace llvm;
using namespace tessera;

/// ptxas unrolled loops of up to four iterations. It leaves longer ones as they are.
static constexpr unsigned kMaxTrips = 16;

void tessera::keepWarpgroupLoops(LoopInfo &loops, ScalarEvolution &evolution) {
  for (Loop *loop : loops.getLoopsInPreorder()) {
    if (!any_of(loop->blocks(), hasWarpgroupDot))
      continue;
    unsigned trips = evolution.getSmallConstantMaxTripCount(loop);
    if (trips != 0 && trips <= kMaxTrips)
      loop->setLoopAlreadyUnrolled();
  }
}
