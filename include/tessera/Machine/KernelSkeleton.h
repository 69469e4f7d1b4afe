// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The skeleton of a kernel: its basic blocks with the work of each, and the integer program that
// decides about the path through them.
//
// A launch's arguments decide how often each block runs. Closed forms of trip counts break down
// where loops nest, wrap or are persistent. So a walk executes the branches of a warp, for the
// arguments and the grid of the launch, and counts. It skips all else that the kernel computes:
// that is a few integers an iteration. The walk samples programs of the grid, and follows each warp
// of them, since warps of a specialised kernel do different things.
//
// Example: a loop over K in steps of 64 has three values (a counter, its increment, a comparison)
// and one block, with its dots, its barriers and its bytes. For K = 4096 the walk visits it 64
// times.
//
// A branch that depends on loaded values or on floats is unknown. The walk then takes a guess, and
// says so (`isCertain`). An unknown loop runs so often that all programs together read an array
// once, if it reads arrays of known sizes: the one that takes most iterations. Any other runs
// kGuessedIterations times. Example: 1,000 programs sum up segments of 64 MB, and an iteration
// reads 4 KB. Then a program has 16 iterations. Programs that differ only along axes of the grid
// that no address depends on read the same part. So 8 columns of programs that share the segments
// count once, and so do the warps of a program that load the same index. A loop for the last
// iterations of one that has several in one runs once. An unknown loop in another loop may have
// less than an iteration each time. Then the branch in front of it skips it as often: a program has
// tiles of few of the segments that it looks at.
//
// Producer warps read tile counts and the like from shared memory, where other warps wrote them. So
// the walk keeps such words from one warp to the next.
//
// Masks are walked, too. An access whose lanes are all masked off looks up no line: most warps of a
// tile of 512 numbers have none of the last 76 of 588. A warp with some of them counts as a whole.
//
// A warp's clock is the sum of its blocks' latencies. A load whose value another block consumes
// does not delay its own block: it is pending until a block that consumes such a value, which
// waits. So loads of the next iteration overlap with this one.

#ifndef TESSERA_MACHINE_KERNELSKELETON_H
#define TESSERA_MACHINE_KERNELSKELETON_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// The resources that a warp's instructions use.
enum class Resource : uint8_t {
  Issue,     ///< instructions
  Integers,  ///< instructions of the integer pipe: comparisons, selections, addresses, conversions
  Floats,    ///< multiply-adds of the pipe for f32 and pairs of f16
  Doubles,   ///< instructions of f64
  Functions, ///< exponentials, reciprocals, ...
  Shared,    ///< wavefronts of shared memory, shuffles included
  Global,    ///< lines that accesses to global memory look up
  Tensor,    ///< cycles of tensor cores
  Barriers,  ///< waits for other warps
  Atomics,   ///< sectors that L2 updates atomically
  AsyncCopy, ///< bytes that copies bring to shared memory or take from there
  Read,      ///< bytes of global memory that are read, those of copies included
  Written,   ///< bytes of global memory that are written
  Requests,  ///< lines that the first-level cache asks L2 for, or that are written there
};
constexpr unsigned kNumResources = unsigned(Resource::Requests) + 1;

/// An amount of each resource.
struct ResourceUse {
  std::array<double, kNumResources> amounts = {};

  double &operator[](Resource resource) { return amounts[unsigned(resource)]; }
  double operator[](Resource resource) const { return amounts[unsigned(resource)]; }
  void add(const ResourceUse &other, double factor = 1);
};

/// "issue", "integers", ...
llvm::StringRef stringify(Resource resource);

/// A value of the integer program.
struct SkeletonValue {
  enum class Op : uint8_t {
    Constant,
    Unknown,
    Argument,
    ProgramId,
    NumPrograms,
    ThreadId,
    NumThreads,
    Word,
    Phi,
    Add,
    Sub,
    Mul,
    SDiv,
    UDiv,
    SRem,
    URem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    Eq,
    Ne,
    SLt,
    SLe,
    SGt,
    SGe,
    ULt,
    ULe,
    UGt,
    UGe,
    Select,
    ZExt,
    SExt,
    Trunc,
    SMin,
    SMax,
    UMin,
    UMax,
    USubSat,
    Abs,
    LeadingZeros,
    TrailingZeros,
    Ones,
  };
  Op op = Op::Unknown;
  unsigned bits = 32;
  /// A constant, an argument's number, an axis, the address of a word, the operand's bits.
  int64_t number = 0;
  std::array<int, 3> operands = {-1, -1, -1};
};

/// The part of an array that a warp reads.
struct ArrayRead {
  /// Axes of the grid, and the threads of a block, that addresses may depend on: a bit each.
  static constexpr unsigned kThreads = 8, kAll = 15;

  double bytes = 0;  ///< at addresses that differ from warp to warp
  double shared = 0; ///< at addresses that all warps have
  unsigned axes = 0;

  void add(const ArrayRead &other);
};

/// Accesses to global memory that look up no line if the lanes of a warp are masked off.
struct MaskedAccess {
  /// Comparisons in the mask. If one is false for the first lane, it is for all lanes.
  std::vector<int> masks;
  ResourceUse use;
  std::map<int, std::pair<double, double>> traffic; ///< as in SkeletonBlock
};

struct SkeletonBlock {
  struct Phi {
    int value;
    std::vector<std::pair<int, int>> incoming; ///< block and value
  };
  std::vector<Phi> phis;
  std::vector<int> values; ///< that it computes, in order
  /// Words of shared memory that it writes, by address: what warps tell other ones.
  std::vector<std::pair<int64_t, int>> words;
  /// A branch takes the first successor if it is true. A switch looks it up.
  int condition = -1;
  std::vector<int64_t> cases; ///< of a switch: the values of all successors but the first
  std::vector<int> successors;
  /// The successor that is taken if the condition is unknown, and how often before the other one.
  int guess = 0;
  enum class Loop : uint8_t {
    None,
    Guessed,
    Remainder ///< of a loop in front, an iteration of which does several of this one's
  };
  Loop loop = Loop::None; ///< that the branch stays in, if its condition is unknown
  int guarded = -1;       ///< the block that decides about the loop that the guess leads to

  ResourceUse work; ///< that of masked accesses included
  std::vector<MaskedAccess> masked;
  double latency = 0;
  /// Cycles from its begin until its last load is there that only other blocks wait for; 0: none.
  double pending = 0;
  bool waitsForPending = false;
  /// Bytes read and written, by the kernel's argument that they belong to (-1: unknown).
  std::map<int, std::pair<double, double>> traffic;
  /// Bytes that lanes store at addresses of their own, by the same. No other lane may store there,
  /// which is not known of a number that a whole warp stores.
  std::map<int, double> stored;
  std::map<int, ArrayRead> reads; ///< the same bytes once for a warp, by the same
};

/// The sizes of a launch.
struct LaunchSizes {
  std::array<int64_t, 3> grid = {1, 1, 1}; ///< as launched: of a persistent kernel its blocks
  int64_t threads = 0;
  /// By the number of the argument, for integers; none for others.
  std::vector<std::optional<int64_t>> arguments;
  /// Bytes of the array behind each argument, tensor maps included; -1 where unknown.
  std::vector<int64_t> arrayBytes = {};
};

/// The work of an average program of a launch.
struct ProgramWork {
  ResourceUse use;    ///< of all its warps
  double latency = 0; ///< cycles of its slowest warp, which never waits for another warp's work
  double longest = 0; ///< the same of the slowest program that was looked at
  std::map<int, std::pair<double, double>> traffic;
  std::map<int, double> stored;
  std::map<int, double> largest; ///< bytes that the block reads which reads most, by the argument
  /// Bytes that a program reads although an earlier loop of it has read them, by the argument.
  std::map<int, double> reread;
  std::vector<double> visits; ///< of each block, by all warps
  double visitsOfBusiest = 0; ///< of the block that issues most in all, by all warps
  bool usesMbarriers = false;
  bool isCertain = true;

  /// The part of `programs` that has work. If branches were guessed, some programs may return at
  /// once, such as those for rows that a list does not have. All of them together store no more
  /// than the arrays of `arrayBytes` (by argument) have. The array with the largest part counts,
  /// for several warps may store the same numbers to another one.
  double getActivePart(double programs, llvm::ArrayRef<int64_t> arrayBytes) const;
};

class KernelSkeleton {
public:
  static constexpr int kGuessedIterations = 8;
  static constexpr double kMaxGuessedIterations = 4096;
  static constexpr int64_t kMaxPrograms = 10;    ///< that a walk looks at
  static constexpr int64_t kMaxVisits = 2000000; ///< of blocks, by a walk

  std::vector<SkeletonValue> values;
  std::vector<SkeletonBlock> blocks; ///< the first one is the entry
  bool usesMbarriers = false;        ///< warps wait for copies, or for each other, by phases

  ProgramWork walk(const LaunchSizes &launch) const;

  /// Numbers alone, in arrays of JSON.
  std::string print() const;
  /// Nothing if `text` is not what print() wrote.
  static std::optional<KernelSkeleton> parse(llvm::StringRef text);
};

} // namespace tessera

#endif // TESSERA_MACHINE_KERNELSKELETON_H
