// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/ProgramBound.h"

#include <algorithm>
#include <charconv>

namespace tessera::cuda {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

struct ProgramBound::Parser {
  std::string_view rest;
  size_t numArguments;
  std::vector<tessera_step> &steps;

  bool parse(unsigned depth);

private:
  bool parseOperator(unsigned depth);
  bool parseLeaf(std::string_view word);
  std::string_view takeWord() {
    size_t length = std::min(rest.find_first_of("() "), rest.size());
    std::string_view word = rest.substr(0, length);
    rest.remove_prefix(length);
    return word;
  }
  bool take(char expected) {
    if (rest.empty() || rest.front() != expected)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  static bool readNumber(std::string_view text, int64_t &number) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }
};

bool ProgramBound::Parser::parseLeaf(std::string_view word) {
  tessera_step step = {TESSERA_CONSTANT, 64, 0};
  size_t colon = word.find(':');
  if (colon == std::string_view::npos) {
    if (!readNumber(word, step.number))
      return false;
    steps.push_back(step);
    return true;
  }
  std::string_view name = word.substr(0, colon);
  if (!readNumber(word.substr(colon + 1), step.number) || step.number < 0)
    return false;
  if (name == "i32" || name == "i64") {
    step.operation = TESSERA_ARGUMENT;
    step.bits = name == "i32" ? 32 : 64;
    if (static_cast<uint64_t>(step.number) >= numArguments)
      return false;
  } else if (name == "program" || name == "extent") {
    step.operation = name == "program" ? TESSERA_PROGRAM : TESSERA_EXTENT;
    if (step.number >= 3)
      return false;
  } else {
    return false;
  }
  steps.push_back(step);
  return true;
}

bool ProgramBound::Parser::parseOperator(unsigned depth) {
  static constexpr std::pair<std::string_view, tessera_operation> kOperators[] = {
      {"add", TESSERA_ADD}, {"sub", TESSERA_SUB}, {"mul", TESSERA_MUL}, {"div", TESSERA_DIV},
      {"rem", TESSERA_REM}, {"min", TESSERA_MIN}, {"max", TESSERA_MAX}};
  std::string_view word = takeWord();
  tessera_step step = {TESSERA_UNSIGNED, 64, 0};
  bool isUnary = word == "unsigned";
  if (!isUnary && word.substr(0, 4) == "loop") {
    step.operation = TESSERA_LOOP;
    step.number = 1;
    if (word.size() > 4 && (!readNumber(word.substr(4), step.number) || step.number < 1))
      return false;
  } else if (!isUnary) {
    std::string_view name = word.substr(0, std::min<size_t>(word.size(), 3));
    std::string_view bits = word.substr(name.size());
    const auto *found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto &entry) { return entry.first == name; });
    if (found == std::end(kOperators) || (bits != "32" && bits != "64"))
      return false;
    step.operation = found->second;
    step.bits = bits == "32" ? 32 : 64;
  }
  if (!take(' ') || !parse(depth + 1))
    return false;
  if (!isUnary && (!take(' ') || !parse(depth + 1)))
    return false;
  steps.push_back(step);
  return take(')');
}

bool ProgramBound::Parser::parse(unsigned depth) {
  if (depth == kMaxDepth)
    return false;
  return take('(') ? parseOperator(depth) : parseLeaf(takeWord());
}

std::optional<ProgramBound> ProgramBound::parse(std::string_view text, size_t numArguments) {
  ProgramBound bound;
  Parser parser{text, numArguments, bound.steps};
  if (!parser.parse(0) || !parser.rest.empty())
    return std::nullopt;
  bound.steps.push_back({TESSERA_END, 0, 0});
  bound.text = text;
  return bound;
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

bool ProgramBound::holds(const uint64_t *slots, const int32_t grid[3]) const {
  std::optional<Range> range = getRange(slots, grid);
  return range && range->least >= 0;
}

std::optional<int64_t> ProgramBound::evaluate(const uint64_t *slots, const int32_t grid[3]) const {
  std::optional<Range> range = getRange(slots, grid);
  return range && range->least == range->most ? std::optional(range->least) : std::nullopt;
}

std::optional<int64_t> ProgramBound::evaluate(const uint64_t *slots, const int32_t grid[3],
                                              const int32_t program[3]) const {
  std::vector<tessera_step> inProgram(steps);
  for (tessera_step &step : inProgram)
    if (step.operation == TESSERA_PROGRAM)
      step = {TESSERA_CONSTANT, 64, program[step.number]};
  tessera_range range;
  bool isKnown = tessera_find_range(inProgram.data(), grid, slots, &range);
  return isKnown && range.least == range.most ? std::optional(range.least) : std::nullopt;
}

std::optional<ProgramBound::Range> ProgramBound::getRange(const uint64_t *slots,
                                                          const int32_t grid[3]) const {
  tessera_range range;
  if (!tessera_find_range(steps.data(), grid, slots, &range))
    return std::nullopt;
  return Range{range.least, range.most, range.step};
}

std::string describeBrokenBound(std::string_view text) {
  // Minus a remainder is a condition that there is none.
  if (text.substr(0, 15) == "(sub64 0 (rem64")
    return "a loop that does pairs of iterations may have an odd number of them in one of its "
           "programs";
  // The distance to 2^30 (kMaxLoopEnd in ProgramBounds.h).
  constexpr std::string_view kLoopEnd = "(sub64 1073741824 ";
  if (text.substr(0, kLoopEnd.size()) == kLoopEnd)
    return "a loop over places in an array may go beyond 2^30 in one of its programs, so that an "
           "index might wrap";
  return "a number that an index is divided by may be negative in one of its programs: there are "
         "more of them than tiles";
}

} // namespace tessera::cuda
