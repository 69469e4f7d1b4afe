// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars of a program as text that the launcher can bound, for all programs of a launch taken
// together (include/tessera/Runtime/CUDA/ProgramBound.h says what the text means).

#ifndef TESSERA_ANALYSIS_ACCESS_PROGRAMBOUNDS_H
#define TESSERA_ANALYSIS_ACCESS_PROGRAMBOUNDS_H

#include "tessera/Analysis/Access/Access.h"

#include <optional>
#include <string>

namespace tessera {

/// The text of a scalar integer; none where it is made of more than arguments, the program's place
/// and arithmetic, or is too long.
std::optional<std::string> writeProgramBound(mlir::Value value);

/// The same of what is exactly that number in each program: neither the variable of a loop, nor the
/// place of another program.
std::optional<std::string> writeExactNumber(mlir::Value value);

/// The text of a number that is not negative where a divisor is positive.
std::optional<std::string> writeDivisorBound(mlir::Value divisor);

/// The text of a number that is not negative where a tile number, which a loop carries and
/// advances, does not wrap. None for other carried values.
std::optional<std::string> writeCarriedBound(mlir::BlockArgument carried);

/// The text of a number that is not negative where a loop ends early enough that its variable plus
/// the places in a tile do not wrap. None if the end is constant, or of another width.
std::optional<std::string> writeEndBound(mlir::scf::ForOp loop);

/// A loop that `writeEndBound` is asked for does not go beyond this.
inline constexpr int64_t kMaxLoopEnd = int64_t(1) << 30;

/// The text of a sum of products, which is computed without wrapping, but for the terms that have
/// no text: these are added to a list. None where it is too long.
std::optional<std::string> writeProgramBound(const ScalarPolynomial &sum, AccessAnalysis &analysis,
                                             llvm::SmallVectorImpl<ScalarTerm> &others);

} // namespace tessera

#endif // TESSERA_ANALYSIS_ACCESS_PROGRAMBOUNDS_H
