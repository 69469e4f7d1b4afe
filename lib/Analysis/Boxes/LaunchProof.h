// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proves that indices are not negative, and that the program's arithmetic does not wrap. A proof
// holds in every launch, or in those that meet the conditions that it collects.

#ifndef TESSERA_LIB_ANALYSIS_BOXES_LAUNCHPROOF_H
#define TESSERA_LIB_ANALYSIS_BOXES_LAUNCHPROOF_H

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"

#include "llvm/ADT/SetVector.h"

namespace tessera::box {

/// True if a factor is known at the launch.
bool isArgument(const ScalarFactor &factor);
bool isKnownAtLaunch(const ScalarPolynomial &polynomial);
LaunchExpr toLaunchExpr(const ScalarPolynomial &polynomial, mlir::MLIRContext *context);

/// True if an op keeps its operand's elements, or extends them.
bool isMove(mlir::Operation *op);
/// True for such an op, and for sums, differences and products of pointers and indices.
bool isSumOrProduct(mlir::Operation *op);

/// The conditions that a launch has to meet.
struct LaunchNeeds {
  /// None of them is negative.
  llvm::SmallVector<LaunchExpr, 0> conditions;
  /// The programs that a launch has at most; 0 for any number.
  int64_t mostPrograms = 0;
  /// See BoxAccess.
  llvm::SmallVector<std::string, 0> programBounds;

  bool isEmpty() const { return conditions.empty() && !mostPrograms && programBounds.empty(); }
};

class LaunchProof {
public:
  LaunchProof(AccessAnalysis &analysis, tile::FuncOp kernel) : analysis(analysis), kernel(kernel) {}

  const LaunchNeeds &getNeeds() const { return needs; }
  void setNeeds(LaunchNeeds other) { needs = std::move(other); }

  /// Asks of a launch that this is not negative.
  bool require(const ScalarPolynomial &condition);
  /// Asks of a launch that it keeps to limits.
  void relyOn(const LaunchLimits &limits);
  /// Asks of a launch that it has no more programs than this (writeProgramBound).
  void requirePrograms(const std::string &bound);

  bool isAtLeast(mlir::Value value, int64_t least);
  /// True if a factor of a coordinate is not negative.
  bool isIndex(mlir::Value factor);

  /// The values that the pointers are sums and products of do not wrap: the address is valid.
  void setAddress(mlir::Value pointers);
  llvm::ArrayRef<mlir::Value> getAddressParts() const { return addressParts.getArrayRef(); }
  /// True if the program's index is what its form says, in arithmetic that does not wrap.
  bool isAsComputed(mlir::Value index, unsigned depth = 0);
  /// At most the least value of a coordinate in any iteration. Where it goes down with a loop, that
  /// is the one of the last iteration.
  ScalarPolynomial getLeast(const ScalarPolynomial &coordinate);

private:
  bool proves(mlir::Value value, llvm::function_ref<bool(IntegerRanges &)> holds);
  bool fits(mlir::Operation *op);
  bool fitsAtLaunch(mlir::Operation *op);

  AccessAnalysis &analysis;
  tile::FuncOp kernel;
  LaunchNeeds needs;
  llvm::SetVector<mlir::Value> addressParts;
};

} // namespace tessera::box

#endif // TESSERA_LIB_ANALYSIS_BOXES_LAUNCHPROOF_H
