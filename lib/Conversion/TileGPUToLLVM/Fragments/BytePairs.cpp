// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BytePairs.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

std::pair<Value, Value> tessera::splitPair(ThreadBuilder &thread, Value word) {
  Value bytes = thread.bitcast(word, VectorType::get({2}, thread.intType(8)));
  Value lower = thread.create<LLVM::ExtractElementOp>(bytes, thread.i32(0));
  Value upper = thread.create<LLVM::ExtractElementOp>(bytes, thread.i32(1));
  return {lower, upper};
}

/// The word of which these are the lower and the upper byte; null if there is none.
static Value findPair(Value lower, Value upper) {
  auto isByte = [](LLVM::ExtractElementOp extract, int64_t number) {
    APInt position;
    return extract &&
           extract.getVector().getType() ==
               VectorType::get({2}, IntegerType::get(extract.getContext(), 8)) &&
           matchPattern(extract.getPosition(), m_ConstantInt(&position)) && position == number;
  };
  auto first = lower.getDefiningOp<LLVM::ExtractElementOp>();
  auto second = upper.getDefiningOp<LLVM::ExtractElementOp>();
  if (!isByte(first, 0) || !isByte(second, 1) || first.getVector() != second.getVector())
    return {};
  auto word = first.getVector().getDefiningOp<LLVM::BitcastOp>();
  return word && word.getArg().getType().isInteger(16) ? word.getArg() : Value();
}

Value tessera::buildVector(ThreadBuilder &thread, ArrayRef<Value> elements) {
  Type type = elements.front().getType();
  auto vectorType = VectorType::get({static_cast<int64_t>(elements.size())}, type);
  SmallVector<Value> words;
  if (type.isInteger(8) && elements.size() % 2 == 0) {
    for (size_t index = 0; index < elements.size(); index += 2) {
      Value word = findPair(elements[index], elements[index + 1]);
      if (!word)
        break;
      words.push_back(word);
    }
    if (words.size() * 2 == elements.size())
      return thread.bitcast(words.size() == 1 ? words.front() : buildVector(thread, words),
                            vectorType);
  }
  Value vector = thread.create<LLVM::PoisonOp>(vectorType);
  for (auto [index, element] : llvm::enumerate(elements))
    vector = thread.create<LLVM::InsertElementOp>(vector, element, thread.i32(index));
  return vector;
}
