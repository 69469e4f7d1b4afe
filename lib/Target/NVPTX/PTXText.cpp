// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/PTXText.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <tuple>

using namespace llvm;
using namespace tessera;

/// The digits behind the first `.minnctapersm`; an empty string at the start of the PTX if there
/// is none.
static StringRef findProgramsPerSM(StringRef ptx) {
  constexpr StringLiteral directive = ".minnctapersm ";
  size_t at = ptx.find(directive);
  if (at == StringRef::npos)
    return ptx.take_front(0);
  return ptx.drop_front(at + directive.size()).take_while(isDigit);
}

int tessera::getProgramsPerSM(StringRef ptx) {
  int number = 0;
  findProgramsPerSM(ptx).getAsInteger(10, number);
  return number;
}

void tessera::setProgramsPerSM(std::string &ptx, int programs) {
  StringRef place = findProgramsPerSM(ptx);
  if (!place.empty())
    ptx.replace(place.data() - ptx.data(), place.size(), std::to_string(programs));
  else if (size_t at = ptx.find(".reqntid"); at != std::string::npos)
    ptx.insert(ptx.find('\n', at), " .minnctapersm " + std::to_string(programs));
}

void tessera::limitRegisters(std::string &ptx, int registers) {
  std::string limited;
  for (StringRef rest = ptx; !rest.empty();) {
    auto [line, others] = rest.split('\n');
    if (!line.starts_with(".minnctapersm"))
      limited += line.str() + "\n";
    if (line.starts_with(".reqntid"))
      limited += ".maxnreg " + std::to_string(registers) + "\n";
    rest = others;
  }
  ptx = std::move(limited);
}

/// True if a loop loads, and neither stores, nor waits for other threads.
static bool isStreaming(ArrayRef<StringRef> lines) {
  auto has = [&](StringRef word) {
    return llvm::any_of(lines, [&](StringRef line) { return line.contains(word); });
  };
  return has("ld.global") && !has("st.global") && !has("st.shared") && !has("shfl.sync") &&
         !has("bar.") && !has("barrier") && !has("atom.") && !has("red.");
}

/// True if the lines of one of the loops meet the condition.
static bool anyLoop(StringRef ptx, function_ref<bool(ArrayRef<StringRef>)> condition) {
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n');
  StringMap<size_t> labels;
  for (size_t at = 0; at < lines.size(); ++at) {
    StringRef line = lines[at].trim();
    if (line.starts_with("$") && line.ends_with(":")) {
      labels[line.drop_back()] = at;
      continue;
    }
    size_t branch = line.find("bra");
    if (branch == StringRef::npos)
      continue;
    StringRef target = line.substr(line.rfind('$')).rtrim(';');
    auto begin = labels.find(target);
    if (begin != labels.end() &&
        condition(ArrayRef(lines).slice(begin->second, at - begin->second)))
      return true;
  }
  return false;
}

bool tessera::hasLoops(StringRef ptx) {
  return anyLoop(ptx, [](ArrayRef<StringRef>) { return true; });
}

bool tessera::needsRegisters(StringRef ptx) {
  return ptx.contains("cp.async") || ptx.contains("mma") || anyLoop(ptx, isStreaming);
}

/// Adds the registers that a line names.
static void addRegisters(StringRef line, SmallVectorImpl<StringRef> &registers) {
  for (size_t at = 0; (at = line.find('%', at)) != StringRef::npos; ++at)
    registers.push_back(
        line.substr(at).take_until([](char c) { return !isAlnum(c) && c != '%' && c != '_'; }));
}

bool tessera::hasEarlyLoads(StringRef ptx, unsigned instructions) {
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n');
  for (auto [at, load] : llvm::enumerate(lines)) {
    size_t address = load.find('[');
    if (!load.contains("ld.global") || address == StringRef::npos)
      continue;
    // A predicate stands in front of the instruction.
    SmallVector<StringRef> loaded;
    addRegisters(load.slice(load.find("ld.global"), address), loaded);
    unsigned passed = 0;
    for (StringRef line : ArrayRef(lines).drop_front(at + 1)) {
      line = line.trim();
      if (passed == instructions)
        return true;
      if (line.starts_with("$L__BB") || line.contains("bra") || line.contains("bar.sync"))
        break;
      passed += line.contains(';');
      SmallVector<StringRef> named;
      addRegisters(line, named);
      if (llvm::none_of(named, [&](StringRef name) { return llvm::is_contained(loaded, name); }))
        continue;
      // A move can be as late as what uses its result.
      if (!line.starts_with("mov") && !line.starts_with("cvt"))
        break;
      llvm::append_range(loaded, named);
    }
  }
  return false;
}

bool tessera::meetsAtBarriers(StringRef ptx) {
  constexpr StringLiteral barrier = "bar.sync";
  if (!hasLoops(ptx))
    return ptx.contains(barrier);
  return anyLoop(ptx, [&](ArrayRef<StringRef> lines) {
    return llvm::any_of(lines, [&](StringRef line) { return line.contains(barrier); });
  });
}

int tessera::findRaisedRegisters(StringRef ptx) {
  constexpr StringLiteral instruction = "setmaxnreg.inc.sync.aligned.u32";
  int most = 0;
  for (size_t at = 0; (at = ptx.find(instruction, at)) != StringRef::npos;) {
    at += instruction.size();
    int registers = 0;
    if (!ptx.drop_front(at).ltrim().consumeInteger(10, registers))
      most = std::max(most, registers);
  }
  return most;
}

bool tessera::waitsForEarlierKernels(StringRef ptx) { return ptx.contains("griddepcontrol.wait"); }

std::optional<StringRef> tessera::findInlineAssembly(StringRef ptx, unsigned line) {
  SmallVector<StringRef> lines;
  ptx.split(lines, '\n');
  if (line == 0 || line > lines.size())
    return std::nullopt;
  bool isInside = false;
  for (StringRef text : ArrayRef(lines).take_front(line - 1)) {
    isInside |= text.contains("// begin inline asm");
    isInside &= !text.contains("// end inline asm");
  }
  return isInside ? std::optional(lines[line - 1].trim()) : std::nullopt;
}

std::string tessera::findSourcePlace(StringRef ptx, unsigned line) {
  StringRef file, position, rest = ptx;
  for (unsigned number = 0; number < line && !rest.empty(); ++number) {
    auto [text, others] = rest.split('\n');
    rest = others;
    text = text.trim();
    if (text.contains(".entry ") || text.contains(".func "))
      position = "";
    // .loc 1 8 15
    if (text.consume_front(".loc"))
      std::tie(file, position) = text.ltrim().split(' ');
  }
  if (position.empty())
    return "";
  auto [row, column] = position.ltrim().split(' ');
  column = column.take_while(isDigit);
  // .file 1 "name", at the end of the PTX
  for (rest = ptx; !rest.empty();) {
    auto [text, others] = rest.split('\n');
    rest = others;
    text = text.trim();
    if (!text.consume_front(".file"))
      continue;
    auto [number, name] = text.ltrim().split(' ');
    if (number == file)
      return (name.trim().trim('"') + ":" + row + ":" + column).str();
  }
  return "";
}

std::string tessera::findFirstSourcePlace(StringRef ptx) {
  std::string place;
  for (unsigned line = 1, lines = ptx.count('\n'); place.empty() && line <= lines; ++line)
    place = findSourcePlace(ptx, line);
  return place;
}
