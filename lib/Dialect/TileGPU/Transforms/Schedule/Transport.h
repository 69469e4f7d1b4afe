// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The transports by which tiles come to shared memory ahead of their use. They are the candidates
// of the first step of planning. Each answers which loads of a loop it takes, which copies are
// legal, into which slots they go, and what they may not pass. Nothing is changed.
//
//     transport        issued by     protocol   loads                         may not pass
//     BoxTransport     one thread    TMA        of dots, if tiles are boxes   what the kernel did
//     before AsyncTransport   all threads   cp.async   of dots, or all by a hint     earlier
//     iterations RowTransport     all threads   cp.async   of loops that reduce rows     earlier
//     iterations
//
// BoxTransport copies all tiles of a loop or none, since a producer warp runs the loop apart from
// the program. Rows that are no boxes may stay with the program's threads (LoadsAhead.h). If the
// kernel loads the address of an array, the copies of a loop begin where the program reaches it,
// and may pass what is before the loop no more.
//
// RowTransport runs behind the choice of layouts. Each thread copies the elements that it reads, in
// the layout of the load.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_TRANSPORT_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_TRANSPORT_H

#include "LoopSchedule.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Machine/GPUMachine.h"

#include <memory>
#include <string>

namespace tessera::tilegpu {

/// The copy of a load by a transport. It has no buffers where threads read its tile. Its channel is
/// chosen later.
struct PlannedCopy : ScheduledCopy {
  BoxAccess box; ///< of a copy by TMA
  bool isRow() const { return tile::getShape(tile::LoadOp(load).getType()).size() == 1; }
};

/// Why a loop or a load is not copied ahead, with the ops to point to.
struct TransportObstacle {
  std::string why;
  llvm::SmallVector<std::pair<mlir::Operation *, llvm::StringRef>, 2> notes;
};

/// The copies of a loop.
struct TransportPlan {
  llvm::SmallVector<PlannedCopy, 2> copies;
  /// Loads whose copies are illegal, and why.
  llvm::SmallVector<std::pair<tile::LoadOp, std::string>, 1> refused;
  /// Loads that stay with threads though all others are copied, and why they have no copy.
  llvm::SmallVector<std::pair<tile::LoadOp, std::string>, 1> left;

  bool isEmpty() const { return copies.empty() && refused.empty(); }
  /// The loads, refused ones last.
  llvm::SmallVector<tile::LoadOp> getLoads() const;
};

/// The transports, in the order in which they are tried.
enum class TransportKind { Boxes, AsyncCopies, Rows };

class Transport {
public:
  static std::unique_ptr<Transport> make(TransportKind kind, tile::FuncOp function,
                                         bool assumeApart, AccessAnalysis &analysis,
                                         MemoryOrder &order);
  Transport(AccessAnalysis &analysis, MemoryOrder &order) : analysis(analysis), order(order) {}
  virtual ~Transport() = default;

  /// The protocol of its rings.
  virtual CopyKind getKind() const { return CopyKind::CpAsync; }
  /// True if a loop gets all of its copies or none. Planning stops at the first refusal then.
  virtual bool needsAll() const { return true; }
  /// True if it runs before layouts are chosen. Then dots get an order as well.
  virtual bool isBeforeLayouts() const { return true; }
  /// The stages of a loop of which `asked` are asked for, at least two.
  virtual unsigned getStages(mlir::scf::ForOp loop, unsigned asked) const { return asked; }
  /// Why a loop has no copies, whatever it loads.
  virtual std::optional<TransportObstacle> findObstacle(mlir::scf::ForOp loop) {
    return std::nullopt;
  }
  /// True if threads may do a load themselves, if it has no copy.
  virtual bool mayLeave(mlir::scf::ForOp loop, tile::LoadOp load) const { return false; }
  /// The loads of a loop that it takes.
  virtual llvm::SmallVector<tile::LoadOp> getLoads(mlir::scf::ForOp loop) const = 0;
  /// The copy of a load; none if it is illegal, with the reason in `why`.
  virtual std::optional<PlannedCopy> getCopy(mlir::scf::ForOp loop, tile::LoadOp load,
                                             std::string &why) = 0;
  /// Why copies of a loop may not run ahead. Adds the conditions of launches for them to
  /// `conditions`.
  virtual std::optional<TransportObstacle>
  findObstacle(mlir::scf::ForOp loop, const TransportPlan &plan, LaunchConditions &conditions) = 0;

  /// The copies of all loads that it takes.
  TransportPlan plan(mlir::scf::ForOp loop);

protected:
  AccessAnalysis &analysis;
  MemoryOrder &order;
};

class BoxTransport : public Transport {
public:
  BoxTransport(tile::FuncOp kernel, AccessAnalysis &analysis, MemoryOrder &order)
      : Transport(analysis, order), kernel(kernel) {}

  CopyKind getKind() const override { return CopyKind::TMA; }
  std::optional<TransportObstacle> findObstacle(mlir::scf::ForOp loop) override;
  bool mayLeave(mlir::scf::ForOp loop, tile::LoadOp load) const override;
  llvm::SmallVector<tile::LoadOp> getLoads(mlir::scf::ForOp loop) const override;
  std::optional<PlannedCopy> getCopy(mlir::scf::ForOp loop, tile::LoadOp load,
                                     std::string &why) override;
  std::optional<TransportObstacle> findObstacle(mlir::scf::ForOp loop, const TransportPlan &plan,
                                                LaunchConditions &conditions) override;

  /// True if the kernel loads the address of an array, so that copies begin at the loop.
  static bool isInPlace(llvm::ArrayRef<PlannedCopy> copies);

private:
  std::optional<TransportObstacle> findObstacleInPlace(mlir::scf::ForOp loop) const;
  std::optional<TransportObstacle> findObstacleBefore(mlir::scf::ForOp loop,
                                                      const TransportPlan &plan,
                                                      LaunchConditions &conditions);

  tile::FuncOp kernel;
};

class AsyncTransport : public Transport {
public:
  using Transport::findObstacle;

  /// With `assumeApart` copies may pass stores to other arguments, which a launch checks.
  AsyncTransport(AccessAnalysis &analysis, MemoryOrder &order, bool assumeApart)
      : Transport(analysis, order), assumeApart(assumeApart) {}

  bool needsAll() const override { return false; }
  unsigned getStages(mlir::scf::ForOp loop, unsigned asked) const override;
  llvm::SmallVector<tile::LoadOp> getLoads(mlir::scf::ForOp loop) const override;
  std::optional<PlannedCopy> getCopy(mlir::scf::ForOp loop, tile::LoadOp load,
                                     std::string &why) override;
  std::optional<TransportObstacle> findObstacle(mlir::scf::ForOp loop, const TransportPlan &plan,
                                                LaunchConditions &conditions) override;

private:
  std::optional<MemDescType> getSlotType(tile::LoadOp load) const;

  bool assumeApart;
};

class RowTransport : public Transport {
public:
  /// A slot is read, and another one is filled.
  static constexpr unsigned kSlots = 2;

  using Transport::findObstacle;
  using Transport::Transport;

  bool isBeforeLayouts() const override { return false; }
  unsigned getStages(mlir::scf::ForOp loop, unsigned asked) const override { return kSlots; }
  llvm::SmallVector<tile::LoadOp> getLoads(mlir::scf::ForOp loop) const override;
  std::optional<PlannedCopy> getCopy(mlir::scf::ForOp loop, tile::LoadOp load,
                                     std::string &why) override;
  std::optional<TransportObstacle> findObstacle(mlir::scf::ForOp loop, const TransportPlan &plan,
                                                LaunchConditions &conditions) override;
};

/// The reason why iterations cannot be copied ahead by the loop's step; empty if they can.
std::string whyNotCopiedAhead(mlir::scf::ForOp loop);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_TRANSPORT_H
