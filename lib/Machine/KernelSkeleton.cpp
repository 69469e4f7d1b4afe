// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/KernelSkeleton.h"

#include "tessera/Machine/GPUMachine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace tessera;

using Op = SkeletonValue::Op;

void ResourceUse::add(const ResourceUse &other, double factor) {
  for (unsigned i = 0; i < kNumResources; ++i)
    amounts[i] += other.amounts[i] * factor;
}

void ArrayRead::add(const ArrayRead &other) {
  bytes += other.bytes;
  shared += other.shared;
  axes |= other.axes;
}

llvm::StringRef tessera::stringify(Resource resource) {
  static constexpr std::array<llvm::StringLiteral, kNumResources> names = {
      "issue",  "integers", "floats",  "doubles", "functions", "shared",  "global",
      "tensor", "barriers", "atomics", "copies",  "read",      "written", "requests"};
  return names[unsigned(resource)];
}

namespace {

using Number = std::optional<int64_t>;

int64_t asSigned(int64_t x, unsigned bits) { return bits >= 64 ? x : llvm::SignExtend64(x, bits); }
uint64_t asUnsigned(int64_t x, unsigned bits) {
  return bits >= 64 ? uint64_t(x) : uint64_t(x) & llvm::maskTrailingOnes<uint64_t>(bits);
}

/// The result in the low bits, sign-extended; none for a division by zero.
Number compute(Op op, int64_t a, int64_t b, unsigned bits) {
  int64_t x = asSigned(a, bits), y = asSigned(b, bits);
  uint64_t u = asUnsigned(a, bits), v = asUnsigned(b, bits);
  switch (op) {
  case Op::Add:
    return asSigned(uint64_t(x) + uint64_t(y), bits);
  case Op::Sub:
    return asSigned(uint64_t(x) - uint64_t(y), bits);
  case Op::Mul:
    return asSigned(uint64_t(x) * uint64_t(y), bits);
  case Op::SDiv:
    return y == 0 || y == -1 ? (y ? Number(asSigned(-uint64_t(x), bits)) : Number())
                             : Number(x / y);
  case Op::SRem:
    return y == 0 ? Number() : Number(y == -1 ? 0 : x % y);
  case Op::UDiv:
    return v == 0 ? Number() : Number(asSigned(u / v, bits));
  case Op::URem:
    return v == 0 ? Number() : Number(asSigned(u % v, bits));
  case Op::Shl:
    return v >= bits ? 0 : asSigned(u << v, bits);
  case Op::LShr:
    return v >= bits ? 0 : asSigned(u >> v, bits);
  case Op::AShr:
    return x >> std::min<uint64_t>(v, bits - 1);
  case Op::And:
    return x & y;
  case Op::Or:
    return x | y;
  case Op::Xor:
    return x ^ y;
  case Op::Eq:
    return u == v;
  case Op::Ne:
    return u != v;
  case Op::SLt:
    return x < y;
  case Op::SLe:
    return x <= y;
  case Op::SGt:
    return x > y;
  case Op::SGe:
    return x >= y;
  case Op::ULt:
    return u < v;
  case Op::ULe:
    return u <= v;
  case Op::UGt:
    return u > v;
  case Op::UGe:
    return u >= v;
  case Op::SMin:
    return std::min(x, y);
  case Op::SMax:
    return std::max(x, y);
  case Op::UMin:
    return asSigned(std::min(u, v), bits);
  case Op::UMax:
    return asSigned(std::max(u, v), bits);
  case Op::USubSat:
    return u > v ? asSigned(u - v, bits) : 0;
  case Op::Abs:
    return asSigned(x < 0 ? -uint64_t(x) : uint64_t(x), bits);
  case Op::LeadingZeros:
    return llvm::countl_zero(u) - (64 - int64_t(bits));
  case Op::TrailingZeros:
    return std::min<int64_t>(llvm::countr_zero(u), bits);
  case Op::Ones:
    return llvm::popcount(u);
  default:
    llvm_unreachable("no operation of two integers");
  }
}

/// The parts of arrays that loops read, by the block that decides and by the array.
using ReadsByLoop = std::map<int, std::map<int, ArrayRead>>;

/// The iterations of unknown loops, from the bytes that they read.
class LoopGuesses {
public:
  explicit LoopGuesses(const KernelSkeleton &skeleton)
      : iterations(skeleton.blocks.size(), KernelSkeleton::kGuessedIterations),
        entered(skeleton.blocks.size(), 1) {}

  /// The iterations of the loop that a block decides about.
  int get(int block) const { return iterations[block]; }
  /// The part of the times that the loop is reached in which it runs at all.
  double getEntered(int block) const { return entered[block]; }
  /// Notes what the warps of a program read in their unknown loops.
  void addProgram(llvm::ArrayRef<ReadsByLoop> warps);
  /// Sets the iterations so that all programs together read an array once. Programs that differ
  /// only along axes that no address depends on read the same part: heads of queries share a key's
  /// head. `samples` of the programs are noted.
  void update(const LaunchSizes &launch, double samples);
  bool hasLoops() const { return !readByLoop.empty(); }

private:
  std::vector<int> iterations;
  std::vector<double> entered;
  ReadsByLoop readByLoop;
  std::vector<int> followers; ///< loops of warps whose unknown loops read nothing
};

void LoopGuesses::addProgram(llvm::ArrayRef<ReadsByLoop> warps) {
  ReadsByLoop ofProgram;
  for (const ReadsByLoop &read : warps) {
    bool readsNothing =
        std::all_of(read.begin(), read.end(), [](const auto &loop) { return loop.second.empty(); });
    for (const auto &[loop, arrays] : read) {
      if (readsNothing)
        followers.push_back(loop);
      auto &noted = ofProgram[loop];
      for (const auto &[argument, each] : arrays) {
        ArrayRead &sum = noted[argument];
        double shared = std::max(sum.shared, each.shared);
        sum.add(each);
        sum.shared = shared;
      }
    }
  }
  for (const auto &[loop, arrays] : ofProgram) {
    auto &noted = readByLoop[loop];
    for (const auto &[argument, each] : arrays)
      noted[argument].add(each);
  }
}

void LoopGuesses::update(const LaunchSizes &launch, double samples) {
  auto getReaders = [&](unsigned axes) {
    double readers = 1;
    for (unsigned axis = 0; axis < launch.grid.size(); ++axis)
      if (axes >> axis & 1)
        readers *= double(launch.grid[axis]);
    return readers;
  };
  int most = -1; // the loop with most iterations
  for (const auto &[loop, arrays] : readByLoop) {
    double factor = 0;
    for (const auto &[argument, read] : arrays)
      if (double bytes = read.bytes + read.shared;
          argument >= 0 && argument < int(launch.arrayBytes.size()) && bytes > 0)
        factor = std::max(factor, double(launch.arrayBytes[argument]) * samples /
                                      getReaders(read.axes) / bytes);
    if (factor <= 0)
      continue;
    double guess = factor * KernelSkeleton::kGuessedIterations;
    iterations[loop] =
        int(std::clamp(std::round(guess), 1.0, KernelSkeleton::kMaxGuessedIterations));
    entered[loop] = std::min(guess, 1.0);
    if (most < 0 || iterations[loop] * entered[loop] > iterations[most] * entered[most])
      most = loop;
  }
  // Warps that compute have as many iterations as those that copy for them.
  if (most >= 0)
    for (int loop : followers)
      iterations[loop] = iterations[most], entered[loop] = entered[most];
}

/// The path of one warp, by its first lane.
class Walker {
public:
  Walker(const KernelSkeleton &skeleton, const LaunchSizes &launch, const LoopGuesses &guesses,
         int64_t maxVisits)
      : skeleton(skeleton), launch(launch), guesses(guesses), left(maxVisits),
        numbers(skeleton.values.size()), taken(skeleton.blocks.size()) {
    visits.resize(skeleton.blocks.size());
    skipped.resize(skeleton.blocks.size());
    for (auto [each, block] : llvm::zip_equal(skipped, skeleton.blocks))
      each.resize(block.masked.size());
    hasGuesses =
        std::any_of(skeleton.blocks.begin(), skeleton.blocks.end(), [](const SkeletonBlock &block) {
          return block.loop == SkeletonBlock::Loop::Guessed;
        });
  }

  /// `words` are those of the program.
  void walk(std::array<int64_t, 3> program, int64_t thread, std::map<int64_t, Number> &words);

  std::vector<int64_t> visits; ///< of each block
  /// The visits of each block in which all lanes of a masked access were masked off.
  std::vector<std::vector<int64_t>> skipped;
  double clock = 0;
  bool isCertain = true;
  /// The reads of unknown loops. An inner loop has what its own iterations read, and an outer one
  /// the rest.
  ReadsByLoop readByLoop;

private:
  static constexpr size_t kMaxPath = 4096;

  void noteIteration(const SkeletonBlock &block, int number);
  void noteMasks(const SkeletonBlock &block, int number);
  Number evaluate(const SkeletonValue &value, const std::map<int64_t, Number> &words) const;
  int choose(const SkeletonBlock &block, int number);

  const KernelSkeleton &skeleton;
  const LaunchSizes &launch;
  const LoopGuesses &guesses;
  int64_t left;
  std::vector<Number> numbers;
  std::vector<int> taken; ///< guesses at the end of each block
  bool hasGuesses = false;
  std::vector<int> path; ///< blocks that belong to no loop's iteration so far
  std::array<int64_t, 3> program = {};
  int64_t thread = 0;
};

Number Walker::evaluate(const SkeletonValue &value, const std::map<int64_t, Number> &words) const {
  auto operand = [&](unsigned i) { return numbers[value.operands[i]]; };
  switch (value.op) {
  case Op::Constant:
    return value.number;
  case Op::Unknown:
  case Op::Phi:
    return std::nullopt;
  case Op::Argument:
    if (size_t(value.number) < launch.arguments.size())
      return launch.arguments[value.number];
    return std::nullopt;
  case Op::ProgramId:
    return program[value.number];
  case Op::NumPrograms:
    return launch.grid[value.number];
  case Op::ThreadId:
    return value.number == 0 ? thread : 0;
  case Op::Word: {
    auto found = words.find(value.number);
    return found == words.end() ? std::nullopt : found->second;
  }
  case Op::NumThreads:
    return value.number == 0 ? launch.threads : 1;
  case Op::ZExt: {
    Number x = operand(0);
    return x ? Number(asUnsigned(*x, value.number)) : x;
  }
  case Op::SExt:
  case Op::Trunc: {
    Number x = operand(0);
    return x ? Number(asSigned(*x, value.op == Op::SExt ? value.number : value.bits)) : x;
  }
  case Op::Select: {
    Number condition = operand(0);
    if (!condition)
      return operand(1) == operand(2) ? operand(1) : std::nullopt;
    return operand(*condition & 1 ? 1 : 2);
  }
  default:
    break;
  }
  Number a = operand(0), b = operand(1);
  // Logic of bits is known if one of them decides.
  if (value.bits == 1 && (value.op == Op::And || value.op == Op::Or)) {
    bool decides = value.op == Op::Or;
    if ((a && bool(*a & 1) == decides) || (b && bool(*b & 1) == decides))
      return decides;
  }
  if (!a || !b)
    return std::nullopt;
  bool compares = value.op >= Op::Eq && value.op <= Op::UGe;
  return compute(value.op, *a, *b, compares ? unsigned(value.number) : value.bits);
}

int Walker::choose(const SkeletonBlock &block, int number) {
  if (block.successors.size() < 2)
    return 0;
  if (block.condition >= 0)
    if (Number condition = numbers[block.condition]) {
      if (block.cases.empty())
        return *condition & 1 ? 0 : 1;
      auto found = std::find(block.cases.begin(), block.cases.end(), *condition);
      return found == block.cases.end() ? 0 : int(found - block.cases.begin()) + 1;
    }
  isCertain = false;
  if (block.loop == SkeletonBlock::Loop::None) {
    double part = block.guarded < 0 ? 1 : guesses.getEntered(block.guarded);
    if (part >= 1)
      return block.guess;
    // All warps of a program skip the loop at the same times, and programs at different ones.
    double count = taken[number]++, begin = 0.618 * double(program[0] + program[1] + program[2]);
    bool enters = std::floor((count + 1) * part + begin) > std::floor(count * part + begin);
    return enters ? block.guess : 1 - block.guess;
  }
  if (block.loop == SkeletonBlock::Loop::Remainder)
    return 1 - block.guess;
  noteIteration(block, number);
  if (++taken[number] % guesses.get(number) != 0)
    return block.guess;
  return 1 - block.guess;
}

void Walker::noteIteration(const SkeletonBlock &block, int number) {
  auto &read = readByLoop[number];
  auto first = std::find(path.rbegin(), path.rend(), block.successors[block.guess]);
  if (first == path.rend())
    return;
  auto begin = std::prev(first.base());
  for (auto at = begin; at != path.end(); ++at)
    for (const auto &[argument, each] : skeleton.blocks[*at].reads)
      read[argument].add(each);
  path.erase(begin, path.end());
}

void Walker::noteMasks(const SkeletonBlock &block, int number) {
  for (auto [masked, times] : llvm::zip_equal(block.masked, skipped[number]))
    times += llvm::any_of(masked.masks,
                          [&](int mask) { return numbers[mask] && !(*numbers[mask] & 1); });
}

void Walker::walk(std::array<int64_t, 3> ofProgram, int64_t ofThread,
                  std::map<int64_t, Number> &words) {
  program = ofProgram;
  thread = ofThread;
  std::fill(visits.begin(), visits.end(), 0);
  std::fill(taken.begin(), taken.end(), 0);
  clock = 0;
  readByLoop.clear();
  path.clear();
  double pendingUntil = 0;
  int number = 0, previous = -1;
  std::vector<Number> incoming;
  while (true) {
    const SkeletonBlock &block = skeleton.blocks[number];
    if (--left < 0) {
      isCertain = false;
      break;
    }
    ++visits[number];
    if (hasGuesses) {
      // So that a search through it stays cheap.
      if (path.size() == kMaxPath)
        path.clear();
      path.push_back(number);
    }
    incoming.clear();
    for (const SkeletonBlock::Phi &phi : block.phis) {
      Number value;
      for (auto [from, each] : phi.incoming)
        if (from == previous)
          value = numbers[each];
      incoming.push_back(value);
    }
    for (size_t i = 0; i < block.phis.size(); ++i)
      numbers[block.phis[i].value] = incoming[i];
    for (int value : block.values)
      numbers[value] = evaluate(skeleton.values[value], words);
    for (auto [address, value] : block.words)
      words[address] = numbers[value];
    noteMasks(block, number);
    if (block.waitsForPending)
      clock = std::max(clock, pendingUntil);
    if (block.pending > 0)
      pendingUntil = std::max(pendingUntil, clock + block.pending);
    clock += block.latency;
    if (block.successors.empty())
      break;
    previous = number;
    number = block.successors[choose(block, number)];
  }
  clock = std::max(clock, pendingUntil);
}

} // namespace

/// Adds what a warp did in a block: `times` visits, without its masked accesses in `skipped` ones.
static void addWarp(const SkeletonBlock &block, double times, llvm::ArrayRef<double> skipped,
                    ProgramWork &result, std::map<int, double> &read) {
  result.use.add(block.work, times);
  auto addTraffic = [&](const std::map<int, std::pair<double, double>> &traffic, double factor) {
    for (const auto &[argument, bytes] : traffic) {
      result.traffic[argument].first += bytes.first * factor;
      result.traffic[argument].second += bytes.second * factor;
      read[argument] += bytes.first * factor;
    }
  };
  addTraffic(block.traffic, times);
  for (auto [masked, count] : llvm::zip_equal(block.masked, skipped)) {
    result.use.add(masked.use, -count);
    addTraffic(masked.traffic, -count);
  }
  for (auto [argument, bytes] : block.stored)
    result.stored[argument] += bytes * times;
}

/// Walks a sample of the programs.
static ProgramWork walkPrograms(const KernelSkeleton &skeleton, const LaunchSizes &launch,
                                int64_t samples, const LoopGuesses &guesses, LoopGuesses &found) {
  const std::vector<SkeletonBlock> &blocks = skeleton.blocks;
  int64_t programs = launch.grid[0] * launch.grid[1] * launch.grid[2];
  int64_t warps = llvm::divideCeil(launch.threads, GPUMachine::kWarpSize);
  int64_t maxVisits = KernelSkeleton::kMaxVisits / std::max<int64_t>(samples * warps, 1);
  ProgramWork result;
  result.visits.resize(blocks.size());
  std::vector<std::map<int, double>> readByBlock(blocks.size());
  for (int64_t sample = 0; sample < samples; ++sample) {
    // The middles of equal parts of the grid.
    int64_t number = (2 * sample + 1) * programs / (2 * samples);
    std::array<int64_t, 3> program = {number % launch.grid[0],
                                      number / launch.grid[0] % launch.grid[1],
                                      number / launch.grid[0] / launch.grid[1]};
    double slowest = 0;
    std::map<int64_t, Number> words;
    std::vector<ReadsByLoop> read;
    for (int64_t warp = 0; warp < warps; ++warp) {
      Walker own(skeleton, launch, guesses, maxVisits);
      own.walk(program, warp * GPUMachine::kWarpSize, words);
      read.push_back(std::move(own.readByLoop));
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (!own.visits[i])
          continue;
        double times = double(own.visits[i]) / double(samples);
        result.visits[i] += times;
        llvm::SmallVector<double> skipped;
        for (int64_t count : own.skipped[i])
          skipped.push_back(double(count) / double(samples));
        addWarp(blocks[i], times, skipped, result, readByBlock[i]);
      }
      slowest = std::max(slowest, own.clock);
      result.isCertain &= own.isCertain;
    }
    found.addProgram(read);
    result.latency += slowest / double(samples);
    result.longest = std::max(result.longest, slowest);
  }
  for (const std::map<int, double> &read : readByBlock)
    for (auto [argument, bytes] : read)
      result.largest[argument] = std::max(result.largest[argument], bytes);
  return result;
}

/// Finds arrays that programs read again: no block reads more than an array has, and all blocks
/// together do. One loop over a row finds its sum, say, and another one reads the row again to
/// divide it. If programs share an array, one block reads it several times.
static void findRereads(const LaunchSizes &launch, ProgramWork &work) {
  constexpr double kTolerance = 1.1; // of last tiles, which masks cut off
  double programs = double(launch.grid[0]) * double(launch.grid[1]) * double(launch.grid[2]);
  for (auto [argument, ofBlock] : work.largest) {
    if (argument < 0 || argument >= int(launch.arrayBytes.size()) ||
        launch.arrayBytes[argument] <= 0)
      continue;
    double part = double(launch.arrayBytes[argument]) / programs;
    double read = work.traffic[argument].first;
    if (ofBlock <= part * kTolerance && read > part * kTolerance)
      work.reread[argument] = read - part;
  }
}

ProgramWork KernelSkeleton::walk(const LaunchSizes &launch) const {
  int64_t samples = std::min(launch.grid[0] * launch.grid[1] * launch.grid[2], kMaxPrograms);
  LoopGuesses found(*this);
  ProgramWork result = walkPrograms(*this, launch, samples, LoopGuesses(*this), found);
  if (found.hasLoops() && !launch.arrayBytes.empty()) {
    found.update(launch, double(samples));
    LoopGuesses ignored(*this);
    result = walkPrograms(*this, launch, samples, found, ignored);
  }
  findRereads(launch, result);
  result.usesMbarriers = usesMbarriers;
  double most = 0;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (double issued = blocks[i].work[Resource::Issue] * result.visits[i]; issued > most) {
      most = issued;
      result.visitsOfBusiest = result.visits[i];
    }
  return result;
}

double ProgramWork::getActivePart(double programs, llvm::ArrayRef<int64_t> arrayBytes) const {
  double part = 0;
  if (!isCertain)
    for (auto [argument, bytes] : stored)
      if (argument >= 0 && argument < int(arrayBytes.size()) && arrayBytes[argument] > 0)
        part = std::max(part, double(arrayBytes[argument]) / (bytes * programs));
  return part > 0 ? std::min(part, 1.0) : 1;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// With a tenth of a unit.
static double roundTenths(double amount) { return std::round(amount * 10) / 10; }

static llvm::json::Array toJSON(const ResourceUse &use) {
  llvm::json::Array amounts;
  for (unsigned i = 0; i < kNumResources; ++i)
    if (use.amounts[i] != 0)
      amounts.push_back(llvm::json::Array{i, roundTenths(use.amounts[i])});
  return amounts;
}

static llvm::json::Array toJSON(const std::map<int, std::pair<double, double>> &traffic) {
  llvm::json::Array rows;
  for (const auto &[argument, bytes] : traffic)
    rows.push_back(llvm::json::Array{argument, bytes.first, bytes.second});
  return rows;
}

static llvm::json::Array toJSON(const SkeletonBlock &block) {
  llvm::json::Array phis, words, stored, reads, masked;
  for (auto [address, value] : block.words)
    words.push_back(llvm::json::Array{address, value});
  for (const SkeletonBlock::Phi &phi : block.phis) {
    llvm::json::Array row{phi.value};
    for (auto [from, value] : phi.incoming) {
      row.push_back(from);
      row.push_back(value);
    }
    phis.push_back(std::move(row));
  }
  for (const MaskedAccess &each : block.masked)
    masked.push_back(
        llvm::json::Array{llvm::json::Array(each.masks), toJSON(each.use), toJSON(each.traffic)});
  for (auto [argument, bytes] : block.stored)
    stored.push_back(llvm::json::Array{argument, bytes});
  for (const auto &[argument, read] : block.reads)
    reads.push_back(llvm::json::Array{argument, read.bytes, read.shared, read.axes});
  return llvm::json::Array{roundTenths(block.latency),
                           roundTenths(block.pending),
                           int(block.waitsForPending),
                           block.condition,
                           block.guess,
                           int(block.loop),
                           llvm::json::Array(block.successors),
                           llvm::json::Array(block.values),
                           std::move(phis),
                           toJSON(block.work),
                           toJSON(block.traffic),
                           llvm::json::Array(block.cases),
                           std::move(words),
                           std::move(stored),
                           std::move(reads),
                           block.guarded,
                           std::move(masked)};
}

std::string KernelSkeleton::print() const {
  llvm::json::Array ofValues, ofBlocks;
  for (const SkeletonValue &value : values)
    ofValues.push_back(llvm::json::Array{int(value.op), value.bits, value.number, value.operands[0],
                                         value.operands[1], value.operands[2]});
  for (const SkeletonBlock &block : blocks)
    ofBlocks.push_back(toJSON(block));
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(
      llvm::json::Array{std::move(ofValues), std::move(ofBlocks), int(usesMbarriers)});
  return text;
}

namespace {

/// Reads arrays of numbers, and notes what is wrong.
class Reader {
public:
  bool isRight = true;

  double number(const llvm::json::Array &array, size_t place) {
    std::optional<double> found =
        place < array.size() ? array[place].getAsNumber() : std::optional<double>();
    isRight &= found.has_value();
    return found.value_or(0);
  }
  /// An integer below `end` and from `begin` on.
  int64_t integer(const llvm::json::Array &array, size_t place, int64_t begin, int64_t end) {
    std::optional<int64_t> found =
        place < array.size() ? array[place].getAsInteger() : std::optional<int64_t>();
    bool fits = found && *found >= begin && *found < end;
    isRight &= fits;
    return fits ? *found : begin;
  }
  const llvm::json::Array &array(const llvm::json::Array &array, size_t place) {
    static const llvm::json::Array none;
    const llvm::json::Array *found = place < array.size() ? array[place].getAsArray() : nullptr;
    isRight &= found != nullptr;
    return found ? *found : none;
  }
};

} // namespace

static SkeletonValue readValue(Reader &reader, const llvm::json::Array &row, int64_t numValues) {
  SkeletonValue value;
  value.op = Op(reader.integer(row, 0, 0, int64_t(Op::Ones) + 1));
  value.bits = reader.integer(row, 1, 1, 65);
  value.number = reader.integer(row, 2, INT64_MIN, INT64_MAX);
  for (unsigned i = 0; i < 3; ++i)
    value.operands[i] = reader.integer(row, 3 + i, -1, numValues);
  unsigned needed = value.op < Op::Add                              ? 0
                    : value.op == Op::Select                        ? 3
                    : value.op >= Op::ZExt && value.op <= Op::Trunc ? 1
                                                                    : 2;
  for (unsigned i = 0; i < needed; ++i)
    reader.isRight &= value.operands[i] >= 0;
  bool isAxis = value.op >= Op::ProgramId && value.op <= Op::NumThreads;
  if (isAxis || value.op == Op::Argument)
    reader.isRight &= value.number >= 0 && (!isAxis || value.number < 3);
  return value;
}

static ResourceUse readUse(Reader &reader, const llvm::json::Array &rows) {
  ResourceUse use;
  for (size_t i = 0; i < rows.size(); ++i) {
    const llvm::json::Array &amount = reader.array(rows, i);
    use.amounts[reader.integer(amount, 0, 0, kNumResources)] = reader.number(amount, 1);
  }
  return use;
}

static std::map<int, std::pair<double, double>> readTraffic(Reader &reader,
                                                            const llvm::json::Array &rows) {
  std::map<int, std::pair<double, double>> traffic;
  for (size_t i = 0; i < rows.size(); ++i) {
    const llvm::json::Array &bytes = reader.array(rows, i);
    traffic[reader.integer(bytes, 0, -1, INT32_MAX)] = {reader.number(bytes, 1),
                                                        reader.number(bytes, 2)};
  }
  return traffic;
}

static MaskedAccess readMasked(Reader &reader, const llvm::json::Array &row, int64_t numValues) {
  MaskedAccess masked;
  const llvm::json::Array &masks = reader.array(row, 0);
  for (size_t i = 0; i < masks.size(); ++i)
    masked.masks.push_back(reader.integer(masks, i, 0, numValues));
  masked.use = readUse(reader, reader.array(row, 1));
  masked.traffic = readTraffic(reader, reader.array(row, 2));
  return masked;
}

static SkeletonBlock readBlock(Reader &reader, const llvm::json::Array &row, int64_t numValues,
                               int64_t numBlocks) {
  SkeletonBlock block;
  block.latency = reader.number(row, 0);
  block.pending = reader.number(row, 1);
  block.waitsForPending = reader.integer(row, 2, 0, 2);
  block.condition = reader.integer(row, 3, -1, numValues);
  block.guess = reader.integer(row, 4, 0, 2);
  block.loop =
      SkeletonBlock::Loop(reader.integer(row, 5, 0, int64_t(SkeletonBlock::Loop::Remainder) + 1));
  const llvm::json::Array &successors = reader.array(row, 6), &values = reader.array(row, 7);
  for (size_t i = 0; i < successors.size(); ++i)
    block.successors.push_back(reader.integer(successors, i, 0, numBlocks));
  for (size_t i = 0; i < values.size(); ++i)
    block.values.push_back(reader.integer(values, i, 0, numValues));
  for (const llvm::json::Value &each : reader.array(row, 8)) {
    const llvm::json::Array none, &phi = each.getAsArray() ? *each.getAsArray() : none;
    SkeletonBlock::Phi read{int(reader.integer(phi, 0, 0, numValues)), {}};
    for (size_t i = 1; i < phi.size(); i += 2)
      read.incoming.push_back({int(reader.integer(phi, i, 0, numBlocks)),
                               int(reader.integer(phi, i + 1, 0, numValues))});
    block.phis.push_back(std::move(read));
  }
  block.work = readUse(reader, reader.array(row, 9));
  block.traffic = readTraffic(reader, reader.array(row, 10));
  for (const llvm::json::Value &each : reader.array(row, 12)) {
    const llvm::json::Array none, &word = each.getAsArray() ? *each.getAsArray() : none;
    block.words.push_back({reader.integer(word, 0, INT64_MIN, INT64_MAX),
                           int(reader.integer(word, 1, 0, numValues))});
  }
  // Kernels that an older compiler stored have no rows for these.
  if (row.size() > 13)
    for (const llvm::json::Value &each : reader.array(row, 13)) {
      const llvm::json::Array none, &bytes = each.getAsArray() ? *each.getAsArray() : none;
      block.stored[reader.integer(bytes, 0, -1, INT32_MAX)] = reader.number(bytes, 1);
    }
  if (row.size() > 14)
    for (const llvm::json::Value &each : reader.array(row, 14)) {
      const llvm::json::Array none, &read = each.getAsArray() ? *each.getAsArray() : none;
      block.reads[reader.integer(read, 0, -1, INT32_MAX)] = {
          reader.number(read, 1), reader.number(read, 2),
          unsigned(reader.integer(read, 3, 0, ArrayRead::kAll + 1))};
    }
  if (row.size() > 15)
    block.guarded = reader.integer(row, 15, -1, numBlocks);
  if (row.size() > 16) {
    const llvm::json::Array &masked = reader.array(row, 16);
    for (size_t i = 0; i < masked.size(); ++i)
      block.masked.push_back(readMasked(reader, reader.array(masked, i), numValues));
  }
  const llvm::json::Array &cases = reader.array(row, 11);
  for (size_t i = 0; i < cases.size(); ++i)
    block.cases.push_back(reader.integer(cases, i, INT64_MIN, INT64_MAX));
  reader.isRight &= block.cases.empty() || block.cases.size() + 1 == block.successors.size();
  reader.isRight &= !block.cases.empty() || block.successors.size() <= 2;
  return block;
}

std::optional<KernelSkeleton> KernelSkeleton::parse(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json) {
    llvm::consumeError(json.takeError());
    return std::nullopt;
  }
  const llvm::json::Array *both = json->getAsArray();
  // Kernels that an older compiler stored have no third part.
  if (!both || both->size() < 2 || both->size() > 3)
    return std::nullopt;
  Reader reader;
  KernelSkeleton skeleton;
  skeleton.usesMbarriers = both->size() > 2 && reader.integer(*both, 2, 0, 2);
  const llvm::json::Array &values = reader.array(*both, 0), &blocks = reader.array(*both, 1);
  for (size_t i = 0; i < values.size(); ++i)
    skeleton.values.push_back(readValue(reader, reader.array(values, i), values.size()));
  for (size_t i = 0; i < blocks.size(); ++i)
    skeleton.blocks.push_back(
        readBlock(reader, reader.array(blocks, i), values.size(), blocks.size()));
  if (!reader.isRight || skeleton.blocks.empty())
    return std::nullopt;
  return skeleton;
}
