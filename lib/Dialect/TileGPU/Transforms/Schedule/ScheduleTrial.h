// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Handles plans that the verifier refuses. The planner sets its best schedule on the loops of a
// function and verifies it at once. If the verifier refuses it, the function is restored, a remark
// (`schedule-refused`) gives the reason, and the planner tries its next candidate, down to none:
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
};

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

/// Loops whose schedules are planned together.
using LoopGroup = llvm::SmallVector<mlir::scf::ForOp, 2>;

/// The candidates for schedules of a function.
struct ScheduleCandidates {
  /// Their name in remarks.
  llvm::StringRef name;
  /// The plans of a group, in the order in which they are tried.
  llvm::ArrayRef<PlanKind> kinds;
  /// The groups of loops of a function. A function that a refusal restored has as many.
  llvm::function_ref<llvm::SmallVector<LoopGroup>(tile::FuncOp)> getGroups;
  /// Proposes a plan for a group: calls `begin` before the first change. Gives the loops that got
  /// schedules.
  llvm::function_ref<LoopGroup(llvm::ArrayRef<mlir::scf::ForOp> group, PlanKind plan,
                               llvm::function_ref<void()> begin)>
      propose;
};

/// Gives each group of loops its first plan that the verifier accepts. Fails if a refusal is an
/// error.
mlir::LogicalResult trySchedules(tile::FuncOp function, const GPUMachine &machine,
                                 const TrialOptions &options, const ScheduleCandidates &candidates);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_SCHEDULETRIAL_H
