// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cubin is: an ELF file for NVIDIA's GPUs, with a section of code for each kernel.
//
// A ptxas that runs out of disk ends as if all were well, and what it leaves behind must
// neither reach the driver nor be kept.

#ifndef TESSERA_TARGET_NVPTX_CUBIN_H
#define TESSERA_TARGET_NVPTX_CUBIN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tessera {

/// What is wrong with a cubin that shall hold these kernels; empty if nothing is: its headers,
/// its sections and the code of each kernel lie whole in the file.
std::string findProblemOfCubin(llvm::StringRef cubin, llvm::ArrayRef<std::string> kernels);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_CUBIN_H
