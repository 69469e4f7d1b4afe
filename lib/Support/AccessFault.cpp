// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/AccessFault.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace tessera;

UserError tessera::describeAccessFault(const AccessFault &fault) {
  std::string name = fault.memory.name.empty() ? llvm::formatv("argument {0}", fault.argument).str()
                                               : llvm::formatv("`{0}`", fault.memory.name).str();
  auto element = [&](int64_t bytes) { return llvm::divideFloorSigned(bytes, fault.elementBytes); };
  int64_t size = fault.memory.end - fault.memory.begin;
  // Counted from where the argument points, as the kernel does; that need not be the first one.
  std::string extent = "which has none";
  if (size >= fault.elementBytes)
    extent = llvm::formatv(
        "whose memory holds elements {0} to {1}",
        llvm::divideCeilSigned(fault.memory.begin - fault.pointer, fault.elementBytes),
        element(fault.memory.end - fault.elementBytes - fault.pointer));
  std::string what =
      llvm::formatv("{0} of element {1} of {2}", fault.access, element(fault.offset), name);
  std::string where = llvm::formatv("in program ({0}, {1}, {2}) of kernel '{3}'", fault.program[0],
                                    fault.program[1], fault.program[2], fault.kernel);
  UserError error =
      fault.wraps
          ? UserError("E081",
                      llvm::formatv("the offset for the {0}{1}, {2}, wraps: it does not fit the "
                                    "integers that it is computed in",
                                    what, fault.memory.isKnown() ? ", " + extent : "", where),
                      "compute it in 64 bits: put .to(tl.int64) on an index before it is "
                      "multiplied or added to")
          : UserError("E080", llvm::formatv("{0}, {1}, {2}", what, extent, where),
                      "mask the lanes that are outside, or pass a larger array");
  error.location = fault.location;
  return error;
}
