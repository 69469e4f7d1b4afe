// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files in a private folder, one program, its log. No signal handler is installed: LLVM's
// temporary files and its waiting with a timeout both would.

#include "tessera/Target/NVPTX/Ptxas.h"

#include "tessera/Support/UserError.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace llvm;
using namespace tessera;

namespace {

/// A folder that only this process uses, gone at the end.
class PrivateFolder {
public:
  PrivateFolder() {
    if (std::error_code error = sys::fs::createUniqueDirectory("tessera", path))
      throw UserError("E061", "cannot make a temporary folder: " + error.message(),
                      "set TMPDIR to a folder that can be written to");
  }
  ~PrivateFolder() {
    for (const std::string &file : files)
      sys::fs::remove(file);
    sys::fs::remove(path);
  }
  std::string file(StringRef name) {
    SmallString<128> full(path);
    sys::path::append(full, name);
    files.push_back(std::string(full));
    return files.back();
  }

private:
  SmallString<128> path;
  std::vector<std::string> files;
};

std::string readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Runs a program with its output going to `log`. Returns the exit status; -1 after the
/// timeout, which ends it.
int runProgram(StringRef program, ArrayRef<StringRef> arguments, StringRef log,
               double timeoutSeconds) {
  SmallVector<StringRef> command{program};
  append_range(command, arguments);
  std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  std::string error;
  bool failed = false;
  sys::ProcessInfo process =
      sys::ExecuteNoWait(program, command, std::nullopt, redirects, 0, &error, &failed);
  if (failed)
    throw UserError("E063", "cannot run '" + program.str() + "': " + error,
                    "set TESSERA_PTXAS to the path of ptxas");
  auto start = std::chrono::steady_clock::now();
  while (true) {
    // Zero seconds is a look, without waiting and so without an alarm.
    sys::ProcessInfo done = sys::Wait(process, /*SecondsToWait=*/0u, &error, nullptr,
                                      /*Polling=*/true);
    if (done.Pid == process.Pid)
      return done.ReturnCode;
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (taken.count() > timeoutSeconds) {
      kill(process.Pid, SIGKILL);
      sys::Wait(process, std::nullopt);
      return -1;
    }
    // Longer pauses would be noticed: most runs take some 20 ms.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

} // namespace

std::string tessera::findPtxas(StringRef setting) {
  if (!setting.empty()) {
    if (!sys::fs::can_execute(setting))
      throw UserError("E063", "'" + setting.str() + "' is no program that can be run",
                      "set TESSERA_PTXAS to the path of ptxas");
    return setting.str();
  }
  SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable))
      folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string &folder : folders)
    if (sys::fs::can_execute(folder + "/ptxas"))
      return folder + "/ptxas";
  if (auto found = sys::findProgramByName("ptxas"))
    return *found;
  throw UserError("E063", "ptxas is not found",
                  "install the package nvidia-cuda-nvcc or a CUDA toolkit, or set TESSERA_PTXAS");
}

std::string tessera::getPtxasVersion(StringRef path) {
  PrivateFolder folder;
  std::string log = folder.file("log");
  if (runProgram(path, {"--version"}, log, /*timeoutSeconds=*/30) != 0)
    throw UserError("E063", "'" + path.str() + "' does not tell its version",
                    "set TESSERA_PTXAS to the path of ptxas");
  std::string text = readFile(log);
  // "Cuda compilation tools, release 13.0, V13.0.88"
  StringRef version = StringRef(text).split(", V").second;
  return version.take_while([](char c) { return isDigit(c) || c == '.'; }).str();
}

PtxasResult tessera::runPtxas(StringRef ptx, const PtxasOptions &options) {
  PrivateFolder folder;
  std::string source = folder.file("kernel.ptx"), cubin = folder.file("kernel.cubin");
  std::string log = folder.file("log");
  {
    std::error_code error;
    raw_fd_ostream stream(source, error);
    stream << ptx;
    stream.close();
    if (error || stream.has_error()) {
      stream.clear_error();
      throw UserError("E061", "cannot write '" + source + "'",
                      "set TMPDIR to a folder with space left");
    }
  }
  std::vector<std::string> arguments = {"-v", "-arch=" + options.arch, source, "-o", cubin};
  if (options.lineInfo)
    arguments.push_back("-lineinfo");
  if (options.maxRegisters)
    arguments.push_back("-maxrregcount=" + std::to_string(options.maxRegisters));
  append_range(arguments, options.arguments);
  SmallVector<StringRef> views(arguments.begin(), arguments.end());
  int status = runProgram(options.path, views, log, options.timeoutSeconds);

  PtxasResult result;
  result.log = readFile(log);
  if (status == -1)
    throw UserError("E063",
                    "ptxas took longer than " + std::to_string(int(options.timeoutSeconds)) + " s",
                    "give it smaller tiles, or more time with TESSERA_PTXAS_TIMEOUT");
  if (status != 0)
    throw InternalError("ptxas rejects the PTX: " + StringRef(result.log).trim().str());
  result.cubin = readFile(cubin);
  if (result.cubin.empty())
    throw InternalError("ptxas wrote no cubin: " + StringRef(result.log).trim().str());
  parsePtxasLog(result.log, result);
  return result;
}

/// The integer in front of `unit`, as in "12 bytes spill stores".
static int numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return 0;
  StringRef digits = line.take_front(at).rtrim();
  digits = digits.take_back(digits.size() - digits.find_last_not_of("0123456789") - 1);
  int value = 0;
  digits.getAsInteger(10, value);
  return value;
}

void tessera::parsePtxasLog(StringRef log, PtxasResult &result) {
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    line = line.trim();
    if (line.contains("Compiling entry function '")) {
      PtxasFunction function;
      function.name = line.split('\'').second.split('\'').first.str();
      result.functions.push_back(function);
      continue;
    }
    if (line.contains("warning") || line.contains("(C7"))
      result.warnings.push_back(line.str());
    if (result.functions.empty())
      continue;
    PtxasFunction &function = result.functions.back();
    if (line.contains("bytes stack frame")) {
      function.stackBytes = numberBefore(line, " bytes stack frame");
      function.spillStoreBytes = numberBefore(line, " bytes spill stores");
      function.spillLoadBytes = numberBefore(line, " bytes spill loads");
    }
    if (line.contains("Used ") && line.contains(" registers")) {
      function.registers = numberBefore(line, " registers");
      function.barriers = numberBefore(line, " barriers");
      function.staticSharedBytes = numberBefore(line, " bytes smem");
    }
  }
}
