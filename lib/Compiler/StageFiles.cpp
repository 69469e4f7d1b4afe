// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stages of a kernel as files.

#include "StageFiles.h"

#include "tessera/Support/UserError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tessera;

std::string tessera::getStagePath(StringRef folder, StringRef kernel, StringRef stage) {
  StringRef suffix = "mlir";
  if (stage == "llvmir")
    suffix = "ll";
  else if (stage == "asm")
    suffix = "s";
  else if (stage == "object")
    suffix = "o";
  // Symbols may hold anything; a file name may not.
  std::string file = kernel.str();
  for (char &c : file)
    if (!isAlnum(c) && c != '_' && c != '-' && c != '.')
      c = '_';
  SmallString<128> path(folder);
  sys::path::append(path, file + "." + stage + "." + suffix);
  return std::string(path);
}

void tessera::writeStageFile(StringRef path, StringRef text) {
  auto fail = [&](std::error_code error) {
    throw UserError("E062", "cannot write '" + path.str() + "': " + error.message(),
                    "name a folder that can be written to");
  };
  if (std::error_code error = sys::fs::create_directories(sys::path::parent_path(path)))
    fail(error);
  std::error_code error;
  raw_fd_ostream stream(path, error);
  if (error)
    fail(error);
  stream << text;
  stream.close();
  if (std::error_code failure = stream.error()) {
    stream.clear_error(); // Its destructor ends the process otherwise.
    fail(failure);
  }
}

std::optional<std::string> tessera::readStageFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return std::nullopt;
  return (*buffer)->getBuffer().str();
}
