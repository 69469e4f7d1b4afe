// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles plans that the verifier refuses. A planner sets its best schedule on the loops of a
// function and verifies it at once. If the verifier refuses it, the function is restored, a remark
// (`schedule-refused`) gives the reason, and the planner tries its next plan, down to none:
//
//     tilegpu-warp-specialize   copies by TMA             without dots in flight   none
//     tilegpu-pipeline          asynchronous copies       without dots in flight   none
//     tilegpu-load-rows-ahead   rows an iteration ahead   none
//
// A refusal is a mistake of the planner, which should check the same conditions as the verifier. It
// must neither end a user's compilation nor remain unnoticed. With `strict` it is an error; tests
// and fuzzers set that (TESSERA_STRICT_SCHEDULES).

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULETRIAL_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULETRIAL_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/GPUMachine.h"

#include <optional>
#include <string>

namespace tessera::tilegpu {

/// The plans of a loop, in the order in which they are tried.
enum class PlanKind : unsigned {
  Full,  ///< all that the planner can do
  Plain, ///< copies alone: each dot is waited for where it is begun
  None,
};

/// The plan to try after this one.
inline PlanKind getNextPlan(PlanKind plan) {
  return plan == PlanKind::Full ? PlanKind::Plain : PlanKind::None;
}

/// The diagnostics of a verifier, while they are captured.
class RefusalListener {
public:
  explicit RefusalListener(mlir::MLIRContext *context);

  bool hasRefused() const { return place.has_value(); }
  /// Emits a remark on `loop` that says what was refused and why.
  void emitRemark(mlir::Location loop, llvm::StringRef schedule) const;

private:
  std::optional<mlir::Location> place; ///< of the first error
  std::string why;
  llvm::SmallVector<std::pair<mlir::Location, std::string>, 2> notes;
  mlir::ScopedDiagnosticHandler handler;
};

/// How plans are tried.
struct TrialOptions {
  /// A refusal is an error.
  bool isStrict = false;
  /// For tests: plans of each loop, from the first on, that are taken for refused.
  unsigned refused = 0;
};

/// The verifier's verdict on the schedules of some loops.
struct TrialOutcome {
  /// True if a refusal is an error, which has been emitted.
  bool isError = false;
  /// The loop whose schedule is refused, by its place among those that were given.
  std::optional<size_t> refused;
};

/// One plan for a function, which can be taken back.
class ScheduleTrial {
public:
  ScheduleTrial(tile::FuncOp function, const GPUMachine &machine, const TrialOptions &options)
      : function(function), machine(machine), options(options) {}

  /// Keeps a copy of the function. Call it before the first change.
  void begin();
  bool hasBegun() const { return static_cast<bool>(copy); }

  /// Verifies the schedules of `loops`, of which `plans` are tried, and the function's schedule.
  /// `schedule` names what is tried, for the remark. If a schedule is refused, the function
  /// becomes what it was before `begin`, and `loops` dangle.
  TrialOutcome finish(llvm::ArrayRef<mlir::scf::ForOp> loops, llvm::ArrayRef<PlanKind> plans,
                      llvm::StringRef schedule);

private:
  std::optional<size_t> findRefused(llvm::ArrayRef<mlir::scf::ForOp> loops,
                                    llvm::ArrayRef<PlanKind> plans);

  tile::FuncOp function;
  const GPUMachine &machine;
  const TrialOptions &options;
  mlir::OwningOpRef<tile::FuncOp> copy;
};

/// Proposes a plan of a loop: calls `begin` before the first change. False if it has none.
using ProposePlan = llvm::function_ref<bool(mlir::scf::ForOp loop, PlanKind plan,
                                            llvm::function_ref<void()> begin)>;

/// Gives each loop of a function, in the order of a walk, its best plan that the verifier accepts.
/// A refused plan is followed by the one that `next` names. Fails if a refusal is an error.
mlir::LogicalResult planLoops(tile::FuncOp function, const GPUMachine &machine,
                              const TrialOptions &options, llvm::StringRef schedule,
                              llvm::function_ref<PlanKind(PlanKind)> next, ProposePlan propose);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULETRIAL_H
