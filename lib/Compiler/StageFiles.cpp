// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes and reads the stages of a kernel as files.

#include "StageFiles.h"

#include "tessera/Support/IRDump.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

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
  else if (stage == "ptx" || stage == "cubin")
    suffix = stage;
  // Symbols may have characters that file names may not.
  std::string file = kernel.str();
  for (char &c : file)
    if (!isAlnum(c) && c != '_' && c != '-' && c != '.')
      c = '_';
  SmallString<128> path(folder);
  sys::path::append(path, file + "." + stage + "." + suffix);
  return std::string(path);
}

void tessera::writeStageFile(StringRef path, StringRef text) {
  std::string error;
  if (writeDump(sys::path::parent_path(path), sys::path::filename(path), text, error).empty())
    throw UserError("E062", error, "name a folder that can be written to");
}

std::optional<std::string> tessera::readStageFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return std::nullopt;
  return (*buffer)->getBuffer().str();
}
