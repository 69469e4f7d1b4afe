// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the ptxas program, which assembles PTX to a cubin, and reads the figures that it prints.
//
// These figures are part of the result. Registers, spills and serialised tensor-core instructions
// decide the speed of a kernel, and the user can see them.

#ifndef TESSERA_TARGET_NVPTX_PTXAS_H
#define TESSERA_TARGET_NVPTX_PTXAS_H

#include "tessera/Support/UserError.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>
#include <vector>

namespace tessera {

struct PtxasOptions {
  std::string path; ///< the program, from findPtxas
  std::string arch; ///< "sm_90a"
  bool lineInfo = false;
  int maxRegisters = 0;               ///< 0: ptxas decides
  std::vector<std::string> arguments; ///< handed on as they are
  double timeoutSeconds = 300;
};

/// The resources of a kernel.
struct PtxasFunction {
  std::string name;
  int registers = 0;
  int stackBytes = 0;
  int spillStoreBytes = 0;
  int spillLoadBytes = 0;
  int staticSharedBytes = 0;
  int barriers = 0;
};

struct PtxasResult {
  std::string cubin;
  std::string log;
  std::string version; ///< "13.0.88"; empty if the program does not tell
  std::vector<PtxasFunction> functions;
  /// Warnings, and remarks with a code (C7510: wgmma serialised), a line each.
  std::vector<std::string> warnings;
};

/// An instruction alone takes more registers than a thread may have (E063).
struct InsufficientRegisters : UserError {
  using UserError::UserError;
};

/// The program: `setting` if not empty, else the one of a CUDA toolkit, else the one on PATH. An
/// empty string if there is none, or if the setting is "driver": then the driver's assembler is
/// used. Throws UserError (E063) if the setting names no program.
std::string findPtxas(llvm::StringRef setting);

/// "13.0.88", from `ptxas --version`. Throws UserError (E063) if it does not run.
std::string getPtxasVersion(llvm::StringRef path);

/// The release of ptxas in a cubin; empty in those of releases before 13.0.
std::string findVersionInCubin(llvm::StringRef cubin);

/// Assembles PTX. Throws UserError (E063) if ptxas cannot be run or takes too long. If an
/// instruction needs too many registers, throws InsufficientRegisters (E063). If ptxas rejects the
/// PTX otherwise, throws InternalError with its message. Several threads may call it at once.
PtxasResult runPtxas(llvm::StringRef ptx, const PtxasOptions &options);

/// A ptxas that starts before the PTX exists. For a small kernel, ptxas spends half of its time
/// before it opens its input. Starting early hides that time behind the compilation.
class EarlyPtxas {
public:
  /// Starts ptxas. Failures are ignored: `assemble` then starts another.
  explicit EarlyPtxas(const PtxasOptions &options);
  /// Ends ptxas if it still waits for PTX.
  ~EarlyPtxas();

  /// The same as runPtxas with the options of the constructor. May be called once.
  PtxasResult assemble(llvm::StringRef ptx);

private:
  class Waiting;

  PtxasOptions options;
  std::unique_ptr<Waiting> waiting;
};

/// Reads the output of `ptxas -v`.
void parsePtxasLog(llvm::StringRef log, PtxasResult &result);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_PTXAS_H
