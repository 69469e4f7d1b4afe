// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remarks: records of the decisions of passes.
//
// A remark has a kind, a place, a text and values with names. The pass that emits it has the words
// (EmitRemark.h). Text is for people, and its words may change. Kinds and names of values stay, for
// programs that read them (`kernel.remarks`). docs/Remarks.md lists them.

#ifndef TESSERA_SUPPORT_REMARK_H
#define TESSERA_SUPPORT_REMARK_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mlir {
class Diagnostic;
class Location;
} // namespace mlir

namespace tessera {

/// Kinds of remarks. docs/Remarks.md says what each of them means, and which values it has.
enum class RemarkKind {
  // For loops on a CPU.
  Strips,
  Access,
  DotOnCPU,
  Atomic,
  // For a GPU.
  Dot,
  LoadNotPipelined,
  LoopNotPipelined,
  FewerStages,
  LoopScheduled,
  RowsCopiedAhead,
  LoopNotSpecialized,
  LoopCopiesWithoutProducer,
  StoreByThreads,
  ScheduleRefused,
  ProgramsOrdered,
  TilesOrdered,
  ProgramDivided,
  ProgramNotDivided,
  LoopDivided,
  LoopNotDivided,
  FlatLoopSplit,
  FlatLoopNotSplit,
  TilesSliced,
  SharedMemoryRounds,
  CopyAtOnce,
  CopyInFirstLevelCache,
  // For steps after the passes.
  ScheduleDropped,
  ScheduleChanged,
  Spills,
  Assembler,
  // Warnings of MLIR, and other diagnostics without a kind.
  Other,
};

/// "fewer-stages": a remark's kind for programs.
llvm::StringRef stringify(RemarkKind kind);
std::optional<RemarkKind> symbolizeRemarkKind(llvm::StringRef id);

/// The place in a source file that a location stands for.
struct SourcePlace {
  std::string file;
  int line = 0;
  int column = 0;

  /// The place of a location. For an inlined call, it is the innermost: the line that the user
  /// would look at.
  static SourcePlace of(mlir::Location location);
  /// The place of "file:line:column". File names may hold colons.
  static SourcePlace parse(llvm::StringRef text);
  /// "file:line:column", or as much of it as there is.
  std::string print() const;

  bool operator==(const SourcePlace &other) const {
    return file == other.file && line == other.line && column == other.column;
  }
};

/// A remark, once nothing is added to it any more.
struct Remark {
  using Value = std::variant<int64_t, std::string>;

  RemarkKind kind = RemarkKind::Other;
  SourcePlace place;
  std::string message;
  std::vector<std::pair<std::string, Value>> values;

  /// The remark of a diagnostic that is no error.
  static Remark of(mlir::Diagnostic &diagnostic);
  /// The message behind its place.
  std::string print() const;
  /// A value that is text; empty if there is none of that name.
  llvm::StringRef get(llvm::StringRef name) const;

  bool operator==(const Remark &other) const {
    return kind == other.kind && place == other.place && message == other.message &&
           values == other.values;
  }
};

} // namespace tessera

#endif // TESSERA_SUPPORT_REMARK_H
