// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Queries and edits of PTX text. Some facts exist only there: the line that ptxas reports, and
// directives whose best value is known only after ptxas has assembled the kernel once.

#ifndef TESSERA_TARGET_NVPTX_PTXTEXT_H
#define TESSERA_TARGET_NVPTX_PTXTEXT_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tessera {

/// The programs that are to fit an SM at once, from the first `.minnctapersm`; 0 if there is none.
int getProgramsPerSM(llvm::StringRef ptx);

/// Sets the number of programs that are to fit an SM at once. ptxas limits registers accordingly.
/// Line numbers do not change.
void setProgramsPerSM(std::string &ptx, int programs);

/// Replaces the number of programs of every kernel by a limit of registers a thread (`.maxnreg`).
/// ptxas would ignore such a limit on its command line where it contradicts `.reqntid`.
void limitRegisters(std::string &ptx, int registers);

/// True if the kernel branches back to a label of LLVM's. Waits in inline assembly are no loops.
bool hasLoops(llvm::StringRef ptx);

/// True if registers hold what later work needs: accumulators of tensor cores, or loads in flight
/// over iterations, by cp.async or in a loop that only loads and computes.
bool needsRegisters(llvm::StringRef ptx);

/// True if a load of global memory stands more than so many instructions before the first one that
/// uses it, in straight code.
bool hasEarlyLoads(llvm::StringRef ptx, unsigned instructions);

/// True if the warps of a program wait for each other in a loop, or in code without loops. A few
/// barriers between loops are none of these.
bool meetsAtBarriers(llvm::StringRef ptx);

/// The most registers that a warp gives itself by setmaxnreg.inc; 0 if none does.
int findRaisedRegisters(llvm::StringRef ptx);

/// True if the kernel waits for earlier kernels of its stream (programmatic dependent launch).
bool waitsForEarlierKernels(llvm::StringRef ptx);

/// Line `line` of the PTX, counted from 1, if it stands in inline assembly.
std::optional<llvm::StringRef> findInlineAssembly(llvm::StringRef ptx, unsigned line);

/// "file:line:column" of the source from which line `line` of the PTX came, by the last `.loc`
/// before it; empty if its function has none.
std::string findSourcePlace(llvm::StringRef ptx, unsigned line);

/// The same for the first line that has one.
std::string findFirstSourcePlace(llvm::StringRef ptx);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_PTXTEXT_H
