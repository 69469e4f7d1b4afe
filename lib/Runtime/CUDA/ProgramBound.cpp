// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/ProgramBound.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace tessera::cuda {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

struct ProgramBound::Parser {
  std::string_view rest;
  size_t numArguments;
  std::vector<Step> &steps;

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
  Step step;
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
    step.kind = Kind::Argument;
    step.bits = name == "i32" ? 32 : 64;
    if (static_cast<uint64_t>(step.number) >= numArguments)
      return false;
  } else if (name == "program" || name == "extent") {
    step.kind = name == "program" ? Kind::Program : Kind::Extent;
    if (step.number >= 3)
      return false;
  } else {
    return false;
  }
  steps.push_back(step);
  return true;
}

bool ProgramBound::Parser::parseOperator(unsigned depth) {
  static constexpr std::pair<std::string_view, Kind> kOperators[] = {
      {"add", Kind::Add}, {"sub", Kind::Sub}, {"mul", Kind::Mul}, {"div", Kind::Div},
      {"rem", Kind::Rem}, {"min", Kind::Min}, {"max", Kind::Max}};
  std::string_view word = takeWord();
  Step step;
  bool isUnary = word == "unsigned";
  if (isUnary) {
    step.kind = Kind::Unsigned;
  } else if (word.substr(0, 4) == "loop") {
    step.kind = Kind::Loop;
    step.number = 1;
    if (word.size() > 4 && (!readNumber(word.substr(4), step.number) || step.number < 1))
      return false;
  } else {
    std::string_view name = word.substr(0, std::min<size_t>(word.size(), 3));
    std::string_view bits = word.substr(name.size());
    const auto *found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto &entry) { return entry.first == name; });
    if (found == std::end(kOperators) || (bits != "32" && bits != "64"))
      return false;
    step.kind = found->second;
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
  bound.text = text;
  return bound;
}

//===----------------------------------------------------------------------===//
// Computing
//===----------------------------------------------------------------------===//

/// What products of numbers of two ranges are a multiple of, but for the product of the least two:
/// (a + i s) (b + j t) is a b and multiples of a t, b s and s t.
static int64_t findStepOfProduct(const ProgramBound::Range &x, const ProgramBound::Range &y) {
  int64_t ofX = 0, ofY = 0, ofBoth = 0;
  if (__builtin_mul_overflow(x.least, y.step, &ofX) ||
      __builtin_mul_overflow(y.least, x.step, &ofY) ||
      __builtin_mul_overflow(x.step, y.step, &ofBoth) || ofX == INT64_MIN || ofY == INT64_MIN)
    return 1;
  return std::gcd(std::gcd(ofX, ofY), ofBoth);
}

/// Replaces the first operand by the result; false where that cannot be told. `Wide` has all
/// results of numbers of as many bits as the operator has.
template <typename Wide> bool ProgramBound::apply(const Step &step, Range &x, const Range &y) {
  Wide limit = Wide(1) << (step.bits - 1);
  auto isIn = [&](Wide number) { return number >= -limit && number < limit; };
  if (!isIn(x.least) || !isIn(x.most) || !isIn(y.least) || !isIn(y.most))
    return false;
  Wide least = 0, most = 0;
  int64_t by = 1;
  auto corners = [&](auto compute) {
    if (y.least == y.most) {
      Wide all[] = {compute(x.least, y.least), compute(x.most, y.least)};
      least = std::min(all[0], all[1]), most = std::max(all[0], all[1]);
      return;
    }
    Wide all[] = {compute(x.least, y.least), compute(x.least, y.most), compute(x.most, y.least),
                  compute(x.most, y.most)};
    least = *std::min_element(std::begin(all), std::end(all));
    most = *std::max_element(std::begin(all), std::end(all));
  };
  // Of numbers that are of one range or of the other.
  auto stepOfBoth = [&] {
    Wide apart = Wide(x.least) - y.least;
    bool isNarrow = apart > INT64_MIN && apart <= INT64_MAX;
    return isNarrow ? std::gcd(std::gcd(x.step, y.step), static_cast<int64_t>(apart)) : 1;
  };
  switch (step.kind) {
  case Kind::Add:
    least = Wide(x.least) + y.least, most = Wide(x.most) + y.most;
    by = std::gcd(x.step, y.step);
    break;
  case Kind::Sub:
    least = Wide(x.least) - y.most, most = Wide(x.most) - y.least;
    by = std::gcd(x.step, y.step);
    break;
  case Kind::Mul:
    corners([](Wide a, Wide b) { return a * b; });
    by = findStepOfProduct(x, y);
    break;
  case Kind::Div:
    if (y.least <= 0 && y.most >= 0)
      return false;
    corners([](Wide a, Wide b) { return a / b; });
    break;
  case Kind::Rem:
    if (x.least < 0 || y.least <= 0)
      return false;
    least = x.most < y.least ? x.least : 0;
    most = std::min(Wide(x.most), Wide(y.most) - 1);
    break;
  case Kind::Min:
    least = std::min(x.least, y.least), most = std::min(x.most, y.most);
    by = stepOfBoth();
    break;
  case Kind::Max:
    least = std::max(x.least, y.least), most = std::max(x.most, y.most);
    by = stepOfBoth();
    break;
  case Kind::Loop:
    // It is asked for in iterations alone, and so below an end that Y has.
    least = x.least, most = std::max(Wide(x.least), Wide(y.most) - 1);
    by = std::gcd(x.step, step.number);
    most -= (most - least) % by;
    break;
  default:
    return false;
  }
  if (!isIn(least) || !isIn(most))
    return false;
  x = {static_cast<int64_t>(least), static_cast<int64_t>(most), least == most ? 0 : by};
  return true;
}

bool ProgramBound::holds(const uint64_t *slots, const int32_t grid[3]) const {
  std::optional<Range> range = getRange(slots, grid);
  return range && range->least >= 0;
}

std::optional<int64_t> ProgramBound::evaluate(const uint64_t *slots, const int32_t grid[3]) const {
  std::optional<Range> range = getRange(slots, grid);
  return range && range->least == range->most ? std::optional(range->least) : std::nullopt;
}

std::optional<ProgramBound::Range> ProgramBound::getRange(const uint64_t *slots,
                                                          const int32_t grid[3]) const {
  // One operand of each operator that is not done, and what is on top of them.
  Range stack[kMaxDepth + 2];
  unsigned size = 0;
  for (const Step &step : steps) {
    int64_t number = step.number;
    switch (step.kind) {
    case Kind::Constant:
      stack[size++] = {number, number, 0};
      break;
    case Kind::Argument:
      number = static_cast<int64_t>(slots[number]);
      // Nobody says what is in the rest of a narrow argument's slot.
      if (step.bits == 32)
        number = static_cast<int32_t>(number);
      stack[size++] = {number, number, 0};
      break;
    case Kind::Program:
      stack[size++] = {0, std::max<int64_t>(0, int64_t(grid[number]) - 1), 1};
      break;
    case Kind::Extent:
      stack[size++] = {grid[number], grid[number], 0};
      break;
    case Kind::Unsigned:
      if (stack[size - 1].least < 0)
        return std::nullopt;
      break;
    default:
      --size;
      if (!(step.bits == 32 ? apply<int64_t>(step, stack[size - 1], stack[size])
                            : apply<__int128>(step, stack[size - 1], stack[size])))
        return std::nullopt;
    }
  }
  return stack[0];
}

} // namespace tessera::cuda
