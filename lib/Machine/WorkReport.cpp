// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/WorkReport.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <utility>

using namespace tessera;

/// Up to six digits, and no zeros behind them.
static llvm::format_object<double> number(double amount) { return llvm::format("%.6g", amount); }

static void printUse(llvm::raw_ostream &out, const ResourceUse &use) {
  llvm::StringRef separator = "; ";
  for (unsigned i = 0; i < kNumResources; ++i)
    if (use.amounts[i] != 0)
      out << std::exchange(separator, ", ") << stringify(Resource(i)) << " "
          << number(use.amounts[i]);
}

static void printTraffic(llvm::raw_ostream &out,
                         const std::map<int, std::pair<double, double>> &traffic) {
  for (const auto &[argument, bytes] : traffic) {
    out << "; ";
    if (argument < 0)
      out << "unknown array:";
    else
      out << "argument " << argument << ":";
    if (bytes.first > 0)
      out << " " << number(bytes.first) << " read";
    if (bytes.second > 0)
      out << " " << number(bytes.second) << " written";
  }
}

static void printBlock(llvm::raw_ostream &out, const SkeletonBlock &block, size_t place,
                       const double *visits) {
  out << "b" << place;
  llvm::ListSeparator choice(" or ");
  for (size_t i = 0; i < block.successors.size(); ++i)
    out << (i ? "" : " -> ") << choice << "b" << block.successors[i];
  if (block.successors.size() > 1) {
    out << " (" << (block.condition < 0 ? "unknown" : "computed");
    if (block.loop == SkeletonBlock::Loop::Remainder)
      out << ", a remainder: leaves by b" << block.successors[1 - block.guess];
    else if (block.loop == SkeletonBlock::Loop::Guessed)
      out << ", a loop: stays by b" << block.successors[block.guess];
    else
      out << ", guess b" << block.successors[block.guess];
    out << ")";
  }
  out << ":";
  if (visits)
    out << " " << number(*visits) << " visits;";
  out << " latency " << number(block.latency);
  if (block.pending > 0)
    out << ", loads pending until " << number(block.pending);
  if (block.waitsForPending)
    out << ", waits for pending loads";
  printUse(out, block.work);
  printTraffic(out, block.traffic);
  out << "\n";
}

std::string tessera::describeSkeleton(const KernelSkeleton &skeleton) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (size_t i = 0; i < skeleton.blocks.size(); ++i)
    printBlock(out, skeleton.blocks[i], i, nullptr);
  return text;
}

std::string tessera::describeWork(const KernelSkeleton &skeleton, const ProgramWork &work) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "program: latency " << number(work.latency) << " (longest " << number(work.longest)
      << "), " << (work.isCertain ? "certain" : "guessed");
  printUse(out, work.use);
  printTraffic(out, work.traffic);
  out << "\n";
  for (size_t i = 0; i < work.visits.size(); ++i)
    if (work.visits[i] > 0)
      printBlock(out, skeleton.blocks[i], i, &work.visits[i]);
  return text;
}
