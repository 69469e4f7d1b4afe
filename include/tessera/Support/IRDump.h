// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files with the IR of a compilation: dumps at named points, and a reproducer when a pass fails.
//
// A reproducer is a file that `tessera-opt --run-reproducer FILE` replays: the IR as it was before
// the pass that failed, with the one-pass pipeline that fails on it. A pass instrumentation of ours
// writes it. MLIR's crash recovery would install signal handlers, which a library in a Python
// process must not do.

#ifndef TESSERA_SUPPORT_IRDUMP_H
#define TESSERA_SUPPORT_IRDUMP_H

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>

namespace mlir {
class PassManager;
} // namespace mlir

namespace tessera {

/// Writes text as `<directory>/<name>`, all of it or nothing, and makes the directory if
/// it is missing. Returns the path, or nothing with the reason in `error`.
std::string writeDump(llvm::StringRef directory, llvm::StringRef name, llvm::StringRef text,
                      std::string &error);

/// The text of an op with its locations, as dumps hold it.
std::string printForDump(mlir::Operation *op);

struct IRDumpOptions {
  /// The first part of the files' names, e.g. the kernel.
  std::string name;
  /// The folder for the IR after each pass that changed it, `<name>.<number>-<pass>.mlir`, if not
  /// empty.
  std::string passDirectory;
  /// The folder for the `<name>.<pass>.reproducer.mlir` of a failing pass, if not empty.
  std::string reproducerDirectory;
};

/// Watches the passes of one pass manager, which must run in one thread.
class IRDump : public mlir::PassInstrumentation {
public:
  /// `onReproducer` gets the path of the reproducer, or the reason why there is none; the other one
  /// is empty.
  using ReproducerCallback = std::function<void(std::string path, std::string error)>;

  IRDump(IRDumpOptions options, ReproducerCallback onReproducer);

  /// Adds an IRDump to a pass manager, unless the options ask for nothing.
  static void attach(mlir::PassManager &manager, IRDumpOptions options,
                     ReproducerCallback onReproducer = {});

  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override;

private:
  IRDumpOptions options;
  ReproducerCallback onReproducer;
  /// The whole IR before the pass that runs now.
  mlir::OwningOpRef<mlir::Operation *> before;
  std::string lastText;
  unsigned number = 0;
  bool failed = false;
};

} // namespace tessera

#endif // TESSERA_SUPPORT_IRDUMP_H
