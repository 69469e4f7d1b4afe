// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that the simulator runs: functions decoded once into instructions with numbered
// registers. Running one is a call by pointer and a loop over 32 lanes.
//
// A register is a row of 32 lanes of 64 bits. A value of the IR has one for each of its scalars;
// integers are zero-extended, floats are their bits, pointers their address. Ops that only regroup
// scalars (struct and vector accesses at fixed places, casts of equal width) are not instructions:
// they name the same registers.

#ifndef TESSERA_LIB_SIMULATOR_BYTECODE_H
#define TESSERA_LIB_SIMULATOR_BYTECODE_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tessera::simulator {

class Warp;
struct Code;
struct Instr;

constexpr unsigned kLanes = 32;
/// A set of lanes.
using Lanes = uint32_t;
constexpr Lanes kAllLanes = 0xffffffff;

struct Row {
  uint64_t lane[kLanes];
};

/// A register of the frame if not negative, else constant ~number of the image.
using Register = int32_t;
constexpr Register kNoRegister = INT32_MIN;

using Handler = void (*)(Warp &, const Instr &, Lanes);

/// The effect of an instruction on the loop that runs it.
enum class Flow : uint8_t {
  Next,   ///< nothing
  Memory, ///< other warps may run after it
  Branch, ///< ends a block: edge `operand` of the lane, by `selectEdge`
  Call,
  Return,
};

/// A way to another block, and what its arguments get there.
struct Edge {
  unsigned block = 0;
  uint32_t target = 0; ///< the block's first instruction
  std::vector<std::pair<Register, Register>> copies;
  bool isParallel = false; ///< a copy reads what another one writes
};

struct Instr {
  Handler run = nullptr;
  Flow flow = Flow::Next;
  uint8_t width = 0;      ///< bits of the operands
  uint8_t fromWidth = 0;  ///< of a conversion, its source's
  bool isNegated = false; ///< the predicate is
  Register predicate = kNoRegister;
  uint32_t number = 0;   ///< in the image
  uint64_t mask = ~0ull; ///< as many bits as `width`
  int64_t immediate = 0;
  llvm::SmallVector<Register, 2> results;
  llvm::SmallVector<Register, 4> operands;
  uint32_t firstEdge = 0, numEdges = 0;
  const Code *callee = nullptr;
  mlir::Operation *op = nullptr; ///< where it comes from
  const void *detail = nullptr;  ///< of the instruction's kind
};

/// A function.
struct Code {
  std::string name;
  std::vector<Instr> instrs;
  std::vector<Edge> edges;
  std::vector<Register> arguments;
  uint32_t numRegisters = 0;
  uint32_t localBytes = 0; ///< of a thread
};

/// A module, taken apart.
/// Global memory of the module, which is zero where a launch begins.
struct ModuleMemory {
  std::unique_ptr<uint8_t[]> bytes;
  uint64_t begin = 0, size = 0;
};

struct Image {
  std::map<std::string, std::unique_ptr<Code>> functions;
  std::deque<Row> constants;
  std::deque<std::string> data; ///< constant data, where the program finds it
  std::deque<ModuleMemory> memory;
  std::deque<std::shared_ptr<void>> details;
  uint32_t sharedBytes = 0;
  uint32_t numInstrs = 0;
};

inline uint64_t maskOf(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }
inline int64_t signExtend(uint64_t bits, unsigned width) {
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

/// Calls `f(lane)` for each lane of the set.
template <typename F> inline void forEachLane(Lanes lanes, F &&f) {
  if (lanes == kAllLanes) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      f(lane);
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    f(static_cast<unsigned>(__builtin_ctz(lanes)));
}

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_BYTECODE_H
