// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of CPUs and their properties. Every choice of width, unrolling and blocking depends on
// it alone. It is data alone. A CPU with other registers, caches or instructions is another row in
// HostMachine.cpp and no change to a pass (docs/HowTo/AddACPU.md).

#ifndef TESSERA_MACHINE_HOSTMACHINE_H
#define TESSERA_MACHINE_HOSTMACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tessera {

/// An instruction that multiplies words of 32 bits, each of which holds neighbours along k,
/// and adds the products of their elements to a lane of 32 bits.
struct DotInstruction {
  /// A form of it for vectors of so many bits, by the name of LLVM's intrinsic, which takes
  /// the accumulators and the two operands.
  struct Form {
    unsigned bits;
    llvm::StringRef intrinsic;
  };

  llvm::StringRef features;   ///< of the CPUs that have it, as LLVM writes them: "+avxvnni"
  unsigned steps;             ///< elements of a word
  bool isLhsUnsigned;         ///< of the first operand, where both are integers
  llvm::ArrayRef<Form> forms; ///< the widest first

  /// The intrinsic for vectors of `bits`; empty if there is none.
  llvm::StringRef getIntrinsic(unsigned bits) const;
};

/// An instruction that multiplies two rows of bytes by two columns. It adds the four sums to a
/// vector of 32-bit lanes: those of the first row, then those of the second.
struct MatrixInstruction {
  llvm::StringRef features;  ///< of the CPUs that have it, as LLVM writes them: "+i8mm"
  unsigned steps;            ///< bytes of a row
  llvm::StringRef intrinsic; ///< LLVM's, of the accumulators and the two operands
};

/// An instruction on AMX's tile registers, which multiplies 16 rows of a by 16 columns of b, and
/// adds the products to 16x16 sums of 32 bits. A row of a register is 16 words, each of which holds
/// neighbours along k.
struct AMXInstruction {
  static constexpr int64_t kRegisters = 8, kRows = 16, kWords = 16, kWordBytes = 4;

  llvm::StringRef features;  ///< of the CPUs that have it, as LLVM writes them: "+amx-bf16"
  unsigned steps;            ///< elements of a word
  llvm::StringRef intrinsic; ///< LLVM's, of the numbers of the registers: sums, a, b
};

/// A level of the cache of one core.
struct CacheLevel {
  int64_t bytes, ways;
};

struct HostMachine {
  llvm::StringRef name;     ///< of the row
  llvm::StringRef arch;     ///< "x86", "aarch64"; empty: any
  llvm::StringRef cpus;     ///< LLVM's names between blanks; empty: any with the features
  llvm::StringRef features; ///< that a CPU of this row has, as LLVM writes them

  /// Width of the vectors that strips are made of. Not always the widest there is: some CPUs
  /// clock down for 512-bit code.
  unsigned vectorBits;
  unsigned vectorRegisters;
  double multiplyAdds; ///< vectors multiplied and added a cycle
  double loads;        ///< vectors loaded a cycle
  unsigned latency;    ///< of a multiply-add, in cycles
  double gatherCost;   ///< of one lane that has no neighbour in memory, in vector instructions
  double runCost;      ///< the same of a few neighbours that are part of a strip
  unsigned swapBits;   ///< the most that is compared and swapped at once
  unsigned strips;     ///< of one iteration of a loop, so that its own instructions do not count
  CacheLevel l1, l2;   ///< l1 for data
  const DotInstruction *int8Dot;       ///< integers of 8 bits; null: widened to f32
  const DotInstruction *bf16Dot;       ///< bf16, where that is faster than widening; null: widened
  const MatrixInstruction *int8Matrix; ///< signed bytes; null: int8Dot
  llvm::StringRef f16Features;         ///< with which there are conversions of f16; empty: always
  bool hasF16Conversion;
  /// The CPU on which these figures were measured; empty: they are the vendor's.
  llvm::StringRef measured;
  const AMXInstruction *int8AMX = nullptr; ///< integers of 8 bits; null: int8Dot
  const AMXInstruction *bf16AMX = nullptr; ///< null: bf16Dot
  /// True if a pass over a row, the program's only one, fetches the next program's row. The CPU's
  /// own prefetchers may be faster alone.
  bool fetchesInOnePass = true;
  /// True if weights of few rows are fetched into the first-level cache; false: into the second.
  bool fetchesIntoL1 = true;
  /// True if vectors of f32 are rounded to bf16 by an instruction. A CPU with `bf16Dot` of x86 has
  /// it as well.
  bool hasBF16Conversion = false;

  static constexpr int64_t kLineBytes = 64; ///< of a cache line, on all of them

  /// The first row that a CPU fits: of this architecture, by its name, and by its features, which
  /// `has` knows ("+avx2,+fma": all of them). Features that this very CPU lacks are removed.
  static HostMachine find(llvm::StringRef arch, llvm::StringRef cpu,
                          llvm::function_ref<bool(llvm::StringRef)> has);

  /// "neon+int8-dot+bf16-dot+int8-matrix+f16": a row, and what this CPU has of its instructions.
  /// Without an addition there is none of them. Figures that differ from the row's follow, as
  /// `withFigures` takes them. None: not such a text.
  static std::optional<HostMachine> parse(llvm::StringRef text);
  std::string print() const;

  /// The same with measured figures in place of the row's: "bits=256+l1=49152/12+l2=2097152/16",
  /// and "int8-dot=no" or "bf16-dot=no" for an instruction that does not pay. Bits are at most the
  /// row's. None: not such a text.
  std::optional<HostMachine> withFigures(llvm::StringRef text) const;

  /// All rows, the most particular first.
  static llvm::ArrayRef<HostMachine> getTable();
};

} // namespace tessera

#endif // TESSERA_MACHINE_HOSTMACHINE_H
