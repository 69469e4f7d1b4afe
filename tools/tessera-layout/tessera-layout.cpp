// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-layout: prints or draws a layout, or says how to get from one to another.
//
//     tessera-layout 'blocked 8x8 registers=1,2 lanes=8,4 warps=1,1 order=1,0'
//     tessera-layout --svg 'nvidia-swizzle 8x64 width=128 bits=16' > swizzle.svg
//     tessera-layout --banks --bits=16 'nvidia-swizzle 8x64 width=128 bits=16'
//     tessera-layout --to 'mma-operand-a 64x64 bits=8 k=2 warps=4,1' 'mma-accumulator 64x64
//         warps=4,1'

#include "tessera/Layout/LayoutConversion.h"
#include "tessera/Layout/LayoutPrinter.h"
#include "tessera/Layout/MemoryExchange.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tessera;

static cl::opt<std::string> from(cl::Positional, cl::Required, cl::desc("<layout>"));
static cl::opt<std::string> to("to", cl::desc("say how to convert to this layout"));
static cl::opt<bool> svg("svg", cl::desc("draw instead of printing"));
static cl::opt<bool> banks("banks", cl::desc("print memory by lines of 32 banks"));
static cl::opt<unsigned> bits("bits", cl::init(32),
                              cl::desc("width of an element (banks, swizzles)"));

static cl::opt<bool> hasLdmatrix("ldmatrix", cl::desc("let loads be ldmatrix (sm_75)"));
static cl::opt<bool> hasStmatrix("stmatrix", cl::desc("let stores be stmatrix (sm_90)"));

static std::optional<LinearLayout> parse(StringRef text) {
  std::string error;
  auto layout = parseLayout(text, error);
  if (!layout)
    WithColor::error(errs(), "tessera-layout") << error << "\n";
  return layout;
}

static StringRef describe(ConversionKind kind) {
  switch (kind) {
  case ConversionKind::Rename:
    return "rename: nothing moves";
  case ConversionKind::Select:
    return "select: each thread chooses among its own registers";
  case ConversionKind::Warp:
    return "warp: lanes of a warp exchange";
  case ConversionKind::Block:
    return "block: warps exchange through shared memory";
  case ConversionKind::Cluster:
    return "cluster: blocks exchange";
  }
  llvm_unreachable("covered switch");
}

static void describe(StringRef side, const MemoryAccess &access) {
  outs() << side << ": " << access.instructions << " a warp, ";
  if (access.matrix)
    outs() << (side == "stores" ? "stmatrix.x" : "ldmatrix.x") << access.matrix->numMatrices()
           << (access.matrix->isTransposed ? ".trans" : "");
  else
    outs() << (bits << access.vectorBits) << " bits a lane";
  outs() << ", " << access.wavefronts << " wavefronts\n";
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "Prints, draws and converts layouts\n");
  auto layout = parse(from);
  if (!layout)
    return 1;
  if (to.empty()) {
    if (banks) {
      if (layout->columns(HwDim::Offset).empty()) {
        WithColor::error(errs(), "tessera-layout") << "only layouts of memory have banks\n";
        return 1;
      }
      printBanks(*layout, bits, outs());
    } else if (svg)
      drawSvg(*layout, bits, outs());
    else
      printTable(*layout, outs());
    return 0;
  }
  auto target = parse(to);
  if (!target)
    return 1;
  for (const LinearLayout *side : {&*layout, &*target})
    if (std::string why = side->whyNotDistributed(); !why.empty()) {
      WithColor::error(errs(), "tessera-layout")
          << "only layouts of registers are converted: " << why << "\n";
      return 1;
    }
  if (layout->shape() != target->shape()) {
    WithColor::error(errs(), "tessera-layout") << "the layouts are of different shapes\n";
    return 1;
  }
  Conversion conversion = classify(*layout, *target);
  outs() << describe(conversion.kind) << "\n";
  if (conversion.kind != ConversionKind::Block)
    return 0;
  ExchangePlan plan = planExchange(*layout, *target, bits, {hasLdmatrix, hasStmatrix});
  outs() << "shared memory: ";
  plan.memory.print(outs());
  outs() << "\n";
  describe("stores", plan.store);
  describe("loads", plan.load);
  return 0;
}
