// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links the user's functions from files of LLVM IR, as bitcode or text.
//
// Such a file may come from another compiler, another release of LLVM, or be for another machine.
// Every mistake in it is a user error at the location of the call. Anything for which LLVM would
// end the process is checked before LLVM uses the file.

#ifndef TESSERA_TARGET_NVPTX_EXTERNLIBRARY_H
#define TESSERA_TARGET_NVPTX_EXTERNLIBRARY_H

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace tessera {

/// A function that a module declares and a library has.
struct ExternFunction {
  std::string symbol;
  std::string library;  ///< the path of the file
  std::string location; ///< "file:line:column" of a call, for errors
};

/// Links the functions, and the parts of their libraries that they need, into the module, with
/// internal linkage. Afterwards they call only functions of libdevice and of the driver.
///
/// Throws UserError (E071) if a file cannot be read, is not LLVM IR that this LLVM reads, or is for
/// another machine than an NVIDIA GPU. Also throws it if a library lacks a function, has it with
/// other types, or calls an unknown function.
void linkExternFunctions(llvm::Module &module, llvm::ArrayRef<ExternFunction> functions);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_EXTERNLIBRARY_H
