// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/MatrixAccess.h"

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/MatrixCopy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tessera {

/// A row of a matrix, and a lane's word of it.
static constexpr unsigned kRowBits = 8 * MatrixCopy::kRowBytes,
                          kBankBits = 8 * GPUMachine::kBankBytes;

unsigned MatrixAccess::getRegister(unsigned instruction, unsigned matrix, unsigned element) const {
  unsigned number = 0;
  element ^= f2::apply(otherShifts, instruction) ^ f2::apply(matrixShifts, matrix);
  auto deposit = [&](ArrayRef<unsigned> bits, unsigned value) {
    for (auto [index, bit] : llvm::enumerate(bits))
      number |= (value >> index & 1) << bit;
  };
  deposit(otherBits, instruction);
  deposit(matrixBits, matrix);
  deposit(wordBits, element);
  return number;
}

namespace {

/// The places in memory of the parts of a place, and its registers that are already used.
class Matcher {
public:
  Matcher(const LinearLayout &layout, ArrayRef<uint64_t> address, unsigned bits, bool isOperand)
      : wordElements(kBankBits / bits), rowElements(kRowBits / bits) {
    auto compose = [&](HwDim dim) {
      f2::Columns result;
      for (uint64_t column : layout.columns(dim))
        result.push_back(f2::apply(address, column));
      return result;
    };
    registers = compose(HwDim::Reg);
    lanes = compose(HwDim::Lane);
    warps = compose(HwDim::Warp);
    orderRegisters(layout, isOperand);
  }

  std::optional<MatrixAccess> matchPlain() {
    MatrixAccess access;
    for (uint64_t offset = 1; offset < wordElements; offset *= 2) {
      auto *at = llvm::find(registers, offset);
      if (at == registers.end())
        return std::nullopt;
      access.wordBits.push_back(at - registers.begin());
    }
    if (lanes[0] != wordElements || lanes[1] != 2 * wordElements)
      return std::nullopt;
    return finish(std::move(access), /*columnLanes=*/{0, 1}, {lanes[2], lanes[3], lanes[4]});
  }

  /// Any register that moves rows can select the half of a word. Take the one with the fewest
  /// conflicts between the rows it makes, and the first one of equals.
  std::optional<MatrixAccess> matchTransposed() {
    uint64_t half = wordElements / 2;
    if (half == 0 || lanes[2] != half || lanes[3] != 2 * half || lanes[4] != 4 * half)
      return std::nullopt;
    // Both bytes of a half come along.
    SmallVector<unsigned, 1> withinHalf;
    if (half == 2) {
      auto *at = llvm::find(registers, 1);
      if (at == registers.end())
        return std::nullopt;
      withinHalf.push_back(at - registers.begin());
    }
    std::optional<MatrixAccess> best;
    for (unsigned bit : order) {
      if (!movesRows(registers[bit]))
        continue;
      MatrixAccess access;
      access.isTransposed = true;
      llvm::append_range(access.wordBits, withinHalf);
      access.wordBits.push_back(bit);
      std::optional<MatrixAccess> matched = finish(std::move(access), /*columnLanes=*/{2, 3, 4},
                                                   {registers[bit], lanes[0], lanes[1]});
      if (!matched)
        return std::nullopt;
      if (!best || wavefronts(*matched, kBankBits / wordElements) <
                       wavefronts(*best, kBankBits / wordElements))
        best = std::move(matched);
    }
    return best;
  }

private:
  /// Orders the register bits. For an operand, neighbouring registers of an instruction become
  /// neighbouring operands of an MMA. It takes the words of `a` by rows, then by steps of k, and
  /// those of `b` by steps of k.
  void orderRegisters(const LinearLayout &layout, bool isOperand) {
    ArrayRef<uint64_t> elements = layout.columns(HwDim::Reg), lane = layout.columns(HwDim::Lane);
    auto add = [&](unsigned bit) {
      if (bit < elements.size() && !llvm::is_contained(order, bit))
        order.push_back(bit);
    };
    auto prefer = [&](uint64_t column) {
      if (column != 0)
        add(llvm::find(elements, column) - elements.begin());
    };
    if (isOperand) {
      uint64_t nextStep = 2 * lane[1], nextRow = 2 * lane[4];
      if (wordElements > 1)
        prefer(lane[0] / 2);
      bool isB = lane[0] > lane[4];
      prefer(isB ? nextStep : nextRow);
      prefer(isB ? nextRow : nextStep);
    }
    for (unsigned bit = 0; bit < elements.size(); ++bit)
      add(bit);
  }

  bool movesRows(uint64_t offset) const { return (offset & (rowElements - 1)) == 0; }

  /// With the word given: everything else has to move whole rows.
  std::optional<MatrixAccess> finish(MatrixAccess access, ArrayRef<unsigned> columnLanes,
                                     f2::Columns rowOffsets) {
    for (auto [index, offset] : llvm::enumerate(lanes))
      if (!llvm::is_contained(columnLanes, index) && !movesRows(offset))
        return std::nullopt;
    if (!llvm::all_of(warps, [&](uint64_t offset) { return movesRows(offset); }))
      return std::nullopt;
    for (unsigned bit : order) {
      if (llvm::is_contained(access.wordBits, bit))
        continue;
      // A register may also move elements within a word, or its half: a matter of names.
      uint64_t together = access.isTransposed ? wordElements / 2 : wordElements;
      if (!movesRows(registers[bit] & ~(together - 1)))
        return std::nullopt;
      if (access.matrixBits.size() < 2)
        access.matrixBits.push_back(bit);
      else
        access.otherBits.push_back(bit);
    }
    // Instructions in order of register numbers, whatever was preferred for the rest.
    llvm::sort(access.otherBits);
    auto split = [&](ArrayRef<unsigned> bits, f2::Columns &rows, f2::Columns &shifts) {
      for (unsigned bit : bits) {
        rows.push_back(registers[bit] & ~(rowElements - 1));
        shifts.push_back(registers[bit] & (rowElements - 1));
      }
    };
    access.laneOffsets = std::move(rowOffsets);
    split(access.matrixBits, access.laneOffsets, access.matrixShifts);
    access.laneOffsets.resize(5, 0);
    access.warpOffsets = warps;
    split(access.otherBits, access.instructionOffsets, access.otherShifts);
    return access;
  }

  uint64_t wordElements, rowElements;
  f2::Columns registers, lanes, warps;
  SmallVector<unsigned> order;
};

} // namespace

std::optional<MatrixAccess> matchMatrixAccess(const LinearLayout &layout,
                                              const LinearLayout &memory, unsigned bits,
                                              bool isOperand) {
  if (bits > kBankBits || layout.columns(HwDim::Lane).size() != 5)
    return std::nullopt;
  std::optional<f2::Columns> address = memory.memoryOffsets();
  if (!address)
    return std::nullopt;
  Matcher matcher(layout, *address, bits, isOperand);
  if (std::optional<MatrixAccess> access = matcher.matchPlain())
    return access;
  return matcher.matchTransposed();
}

unsigned wavefronts(const MatrixAccess &access, unsigned bits) {
  // The rows of one matrix are read at once.
  f2::Columns words, banks;
  for (uint64_t offset : ArrayRef(access.laneOffsets).take_front(3))
    words.push_back(offset * bits / kBankBits);
  for (uint64_t word = 1; word < kRowBits / kBankBits; word *= 2)
    words.push_back(word);
  for (uint64_t word : words)
    banks.push_back(word & (GPUMachine::kBanks - 1));
  return access.numMatrices() << (f2::rank(words) - f2::rank(banks));
}

} // namespace tessera
