// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses that every program of a kernel makes (Analysis/Boxes/CertainAccess.h), in the form of
// its metadata. By them a launch can find that the kernel will access elements outside of an array.

#ifndef TESSERA_COMPILER_KERNELACCESS_H
#define TESSERA_COMPILER_KERNELACCESS_H

#include "tessera/Support/AccessFault.h"
#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// One access. A sum is a list of texts (Runtime/CUDA/ProgramBound.h).
struct KernelAccess {
  using Sum = std::vector<std::string>;
  struct Dim {
    int64_t extent = 1;
    Sum stride; ///< in elements
    /// The bounds of a mask, if it has them: an index is less than `upper`, and `lower` plus an
    /// index is not negative.
    std::optional<Sum> upper, lower;
  };
  std::string access; ///< "load", "store" or "atomic"
  std::string file;
  int line = 0;
  int column = 0;
  int argument = 0;
  int64_t bytes = 1; ///< of an element
  bool isMasked = false;
  Sum offset; ///< of the tile's first element, in elements
  std::vector<Dim> dims;
  std::vector<Sum> guards; ///< the access is not made where one of them is negative

  /// The element that lies outside of the memory behind the argument, in one of the programs at the
  /// corners of the grid. Nothing if all elements lie inside, or if that is not certain.
  std::optional<AccessFault> findFault(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t> args,
                                       const ArgumentMemory &memory) const;
};

} // namespace tessera

#endif // TESSERA_COMPILER_KERNELACCESS_H
