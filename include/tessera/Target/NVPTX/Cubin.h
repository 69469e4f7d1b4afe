// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of cubins. A cubin is an ELF file for NVIDIA's GPUs, with a section of code for each
// kernel.
//
// If ptxas runs out of disk space, it still returns success. Its incomplete file must not be loaded
// or kept.

#ifndef TESSERA_TARGET_NVPTX_CUBIN_H
#define TESSERA_TARGET_NVPTX_CUBIN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tessera {

/// The problem of a cubin that should hold these kernels. Empty if its headers, its sections and
/// the code of each kernel lie whole in the file.
std::string findProblemOfCubin(llvm::StringRef cubin, llvm::ArrayRef<std::string> kernels);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_CUBIN_H
