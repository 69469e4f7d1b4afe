// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the user's, in files of LLVM IR, as bitcode or text.
//
// Such a file comes from anywhere: another compiler, another release of LLVM, for another
// machine. Whatever is wrong with it is the user's to know, by the place of the call; what
// LLVM would end the process for is looked for before LLVM sees it.

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

/// Links the functions, and of their libraries what they need, into the module; nothing of it is
/// seen from outside. Afterwards they call only functions of libdevice and those that the driver
/// provides.
///
/// Throws UserError (E071) if a file cannot be read, is no LLVM IR that this LLVM reads or is for
/// another machine than an NVIDIA GPU; lacks a function or has it with other types; or calls an
/// unknown function.
void linkExternFunctions(llvm::Module &module, llvm::ArrayRef<ExternFunction> functions);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_EXTERNLIBRARY_H
