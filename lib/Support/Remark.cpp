// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metadata of a diagnostic are attributes: the kind or id, then names and values by turns.

#include "tessera/Support/Remark.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

static constexpr std::pair<RemarkKind, llvm::StringLiteral> kKinds[] = {
    {RemarkKind::Strips, "strips"},
    {RemarkKind::Access, "access"},
    {RemarkKind::DotOnCPU, "dot-on-cpu"},
    {RemarkKind::Atomic, "atomic"},
    {RemarkKind::Dot, "dot"},
    {RemarkKind::LoadNotPipelined, "load-not-pipelined"},
    {RemarkKind::LoopNotPipelined, "loop-not-pipelined"},
    {RemarkKind::FewerStages, "fewer-stages"},
    {RemarkKind::LoopScheduled, "loop-scheduled"},
    {RemarkKind::RowsCopiedAhead, "rows-copied-ahead"},
    {RemarkKind::LoopNotSpecialized, "loop-not-specialized"},
    {RemarkKind::LoopCopiesWithoutProducer, "loop-copies-without-producer"},
    {RemarkKind::StoreByThreads, "store-by-threads"},
    {RemarkKind::ScheduleRefused, "schedule-refused"},
    {RemarkKind::ProgramsOrdered, "programs-ordered"},
    {RemarkKind::TilesOrdered, "tiles-ordered"},
    {RemarkKind::ProgramDivided, "program-divided"},
    {RemarkKind::ProgramNotDivided, "program-not-divided"},
    {RemarkKind::LoopDivided, "loop-divided"},
    {RemarkKind::LoopNotDivided, "loop-not-divided"},
    {RemarkKind::FlatLoopSplit, "flat-loop-split"},
    {RemarkKind::FlatLoopNotSplit, "flat-loop-not-split"},
    {RemarkKind::TilesSliced, "tiles-sliced"},
    {RemarkKind::SharedMemoryRounds, "shared-memory-rounds"},
    {RemarkKind::CopyAtOnce, "copy-at-once"},
    {RemarkKind::CopyInFirstLevelCache, "copy-in-first-level-cache"},
    {RemarkKind::ScheduleDropped, "schedule-dropped"},
    {RemarkKind::ScheduleChanged, "schedule-changed"},
    {RemarkKind::Spills, "spills"},
    {RemarkKind::Assembler, "assembler"},
    {RemarkKind::Other, "other"},
};

llvm::StringRef tessera::stringify(RemarkKind kind) {
  return llvm::find_if(kKinds, [&](const auto &each) { return each.first == kind; })->second;
}

std::optional<RemarkKind> tessera::symbolizeRemarkKind(llvm::StringRef id) {
  const auto *found = llvm::find_if(kKinds, [&](const auto &each) { return each.second == id; });
  return found == std::end(kKinds) ? std::nullopt : std::optional(found->first);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

SourcePlace SourcePlace::of(Location location) {
  if (auto place = dyn_cast<FileLineColRange>(location))
    return {place.getFilename().str(), static_cast<int>(place.getStartLine()),
            static_cast<int>(place.getStartColumn())};
  if (auto named = dyn_cast<NameLoc>(location))
    return of(named.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return of(call.getCallee());
  if (auto opaque = dyn_cast<OpaqueLoc>(location))
    return of(opaque.getFallbackLocation());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (SourcePlace place = of(part); !place.file.empty())
        return place;
  return {};
}

SourcePlace SourcePlace::parse(llvm::StringRef text) {
  auto [head, column] = text.rsplit(':');
  auto [file, line] = head.rsplit(':');
  SourcePlace place;
  if (line.getAsInteger(10, place.line) || column.getAsInteger(10, place.column))
    return {text.str(), 0, 0};
  place.file = file.str();
  return place;
}

std::string SourcePlace::print() const {
  if (file.empty() || line == 0)
    return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

static StringAttr getString(const DiagnosticArgument &argument) {
  if (argument.getKind() != DiagnosticArgument::DiagnosticArgumentKind::Attribute)
    return {};
  return dyn_cast<StringAttr>(argument.getAsAttribute());
}

static Remark::Value toValue(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto string = dyn_cast<StringAttr>(attribute))
    return string.str();
  std::string text;
  llvm::raw_string_ostream(text) << cast<TypeAttr>(attribute).getValue();
  return text;
}

Remark Remark::of(Diagnostic &diagnostic) {
  Remark remark;
  remark.place = SourcePlace::of(diagnostic.getLocation());
  remark.message = diagnostic.str();
  llvm::ArrayRef<DiagnosticArgument> metadata = diagnostic.getMetadata();
  StringAttr id = metadata.empty() ? StringAttr() : getString(metadata.front());
  std::optional<RemarkKind> kind = id ? symbolizeRemarkKind(id.getValue()) : std::nullopt;
  if (!kind)
    return remark;
  remark.kind = *kind;
  for (metadata = metadata.drop_front(); metadata.size() >= 2; metadata = metadata.drop_front(2))
    remark.values.push_back({getString(metadata[0]).str(), toValue(metadata[1].getAsAttribute())});
  return remark;
}

llvm::StringRef Remark::get(llvm::StringRef name) const {
  for (const auto &[key, value] : values)
    if (const auto *text = std::get_if<std::string>(&value); text && key == name)
      return *text;
  return {};
}

std::string Remark::print() const {
  std::string prefix = place.print();
  return prefix + (prefix.empty() ? "" : ": ") + message;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

static void addMetadata(InFlightDiagnostic &diagnostic, Attribute attribute) {
  if (Diagnostic *underlying = diagnostic.getUnderlyingDiagnostic())
    underlying->getMetadata().push_back(DiagnosticArgument(attribute));
}

static MLIRContext *getContext(InFlightDiagnostic &diagnostic) {
  return diagnostic.getUnderlyingDiagnostic()->getLocation().getContext();
}

RemarkInFlight::RemarkInFlight(InFlightDiagnostic diagnostic, RemarkKind kind)
    : diagnostic(std::move(diagnostic)) {
  addMetadata(this->diagnostic, getString(stringify(kind)));
}

Attribute RemarkInFlight::getInteger(int64_t value) {
  return Builder(getContext(diagnostic)).getI64IntegerAttr(value);
}

Attribute RemarkInFlight::getString(const llvm::Twine &value) {
  return StringAttr::get(getContext(diagnostic), value);
}

void RemarkInFlight::record(llvm::StringRef name, Attribute value) {
  addMetadata(diagnostic, getString(name));
  addMetadata(diagnostic, value);
}

RemarkInFlight tessera::emitRemark(Location place, RemarkKind kind) {
  return RemarkInFlight(mlir::emitRemark(place), kind);
}

RemarkInFlight tessera::emitRemark(Operation *op, RemarkKind kind) {
  return RemarkInFlight(op->emitRemark(), kind);
}

InFlightDiagnostic tessera::emitUserError(Operation *op, llvm::StringLiteral id) {
  InFlightDiagnostic error = op->emitError();
  addMetadata(error, StringAttr::get(op->getContext(), id));
  return error;
}

InFlightDiagnostic tessera::emitUserError(Location place, llvm::StringLiteral id) {
  InFlightDiagnostic error = emitError(place);
  addMetadata(error, StringAttr::get(place.getContext(), id));
  return error;
}

llvm::StringRef tessera::getUserErrorId(Diagnostic &diagnostic) {
  llvm::ArrayRef<DiagnosticArgument> metadata = diagnostic.getMetadata();
  StringAttr id = metadata.empty() ? StringAttr() : getString(metadata.front());
  return diagnostic.getSeverity() == DiagnosticSeverity::Error && id ? id.getValue() : "";
}
