// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files in a private folder, one program, its log.
//
// A ptxas that is started early is given the name of a FIFO, and stays in its `open` until
// somebody writes there. It opens its input twice, though, the second time asking for its
// size. So once there is PTX, a file takes over the name, and who waits in the FIFO gets the
// same text from there.
//
// After its last word ptxas gives its memory back, piece by piece, and the system what is
// left of it. Where the log and the cubin show that nothing is missing, nobody waits for that.

#include "tessera/Target/NVPTX/Ptxas.h"

#include "tessera/Support/UserError.h"
#include "tessera/Target/NVPTX/ChildProcess.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

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

void writeFile(const std::string &path, StringRef text) {
  std::error_code error;
  raw_fd_ostream stream(path, error);
  stream << text;
  stream.close();
  if (error || stream.has_error()) {
    stream.clear_error();
    throw UserError("E061", "cannot write '" + path + "'",
                    "set TMPDIR to a folder with space left");
  }
}

[[noreturn]] void throwCannotRun(const std::string &program, const std::string &why) {
  throw UserError("E063", "cannot run '" + program + "': " + why,
                  "set TESSERA_PTXAS to the path of ptxas");
}

/// Most of what a short run takes is page faults, 4 KB each, of memory that ptxas allocates:
/// huge pages where the system gives them to who asks, and memory from it in larger steps.
std::string getAllocationVariable() {
  std::string variable = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432";
  if (const char *own = std::getenv("GLIBC_TUNABLES"))
    variable += ":" + std::string(own);
  return variable;
}

/// Of "Cuda compilation tools, release 13.0, V13.0.88", the last word's number.
StringRef findVersion(StringRef text) {
  StringRef said = text.split("Cuda compilation tools, release ").second;
  StringRef version = said.split(", V").second;
  return version.take_while([](char c) { return isDigit(c) || c == '.'; });
}

/// The release of the program that made a cubin. It is asked once, and only if the cubin does
/// not say: that takes as long as a small kernel.
std::string getVersionOf(StringRef cubin, const std::string &path) {
  if (StringRef version = findVersion(cubin); !version.empty())
    return version.str();
  static std::mutex mutex;
  static auto *known = new StringMap<std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, isNew] = known->try_emplace(path);
  if (isNew) {
    try {
      entry->second = getPtxasVersion(path);
    } catch (const UserError &) {
      // What is no NVIDIA's has no release.
    }
  }
  return entry->second;
}

/// One run of ptxas and its files.
class Run {
public:
  explicit Run(const PtxasOptions &options) : options(options) {
    source = folder.file("kernel.ptx"), cubin = folder.file("kernel.cubin");
    log = folder.file("log");
  }

  void start() {
    std::vector<std::string> command = {options.path, "-v", "-arch=" + options.arch,
                                        source,       "-o", cubin};
    if (options.lineInfo)
      command.push_back("-lineinfo");
    if (options.maxRegisters)
      command.push_back("-maxrregcount=" + std::to_string(options.maxRegisters));
    append_range(command, options.arguments);
    std::string error = process.start(command, log, getAllocationVariable());
    if (!error.empty())
      throwCannotRun(options.path, error);
  }

  PtxasResult getResult(std::optional<int> status);
  /// Whether all is there that it writes about the only function of the PTX.
  bool hasSaidAll() const;

  const PtxasOptions &options;
  PrivateFolder folder;
  std::string source, cubin, log;
  ChildProcess process;
};

PtxasResult Run::getResult(std::optional<int> status) {
  PtxasResult result;
  result.log = readFile(log);
  if (!status)
    throw UserError("E063",
                    "ptxas took longer than " + std::to_string(int(options.timeoutSeconds)) + " s",
                    "give it smaller tiles, or more time with TESSERA_PTXAS_TIMEOUT");
  // An instruction alone takes more: wgmma has all of its sums in registers.
  if (*status != 0 && StringRef(result.log).contains("(C7602)"))
    throw UserError("E063", "a product takes more registers than a thread may have",
                    "use more warps, smaller tiles, or a higher maxnreg");
  if (*status != 0)
    throw InternalError("ptxas rejects the PTX: " + StringRef(result.log).trim().str());
  result.cubin = readFile(cubin);
  if (result.cubin.empty())
    throw InternalError("ptxas wrote no cubin: " + StringRef(result.log).trim().str());
  result.version = getVersionOf(result.cubin, options.path);
  parsePtxasLog(result.log, result);
  return result;
}

/// Whether the file is as long as its header says: NVIDIA's have the segments' table at the end.
bool isWhole(StringRef cubin) {
  ELF::Elf64_Ehdr header;
  if (cubin.size() < sizeof(header))
    return false;
  std::memcpy(&header, cubin.data(), sizeof(header));
  return header.checkMagic() && header.e_phnum != 0 &&
         header.e_phoff + uint64_t(header.e_phnum) * header.e_phentsize == cubin.size();
}

/// Of several functions, some may be missing in a log that seems to be whole.
bool hasOneFunction(StringRef ptx) { return ptx.count(".entry ") + ptx.count(".func ") == 1; }

bool Run::hasSaidAll() const {
  std::string text = readFile(log);
  StringRef said = text;
  // Not every version ends like that; those are waited for.
  return said.consume_back("\n") && said.rsplit('\n').second.contains("Compile time = ") &&
         isWhole(readFile(cubin));
}

/// Held by who has the writing end of a FIFO open. A process forked meanwhile would hold it
/// open too, and ptxas would wait for the end of its input for as long as that one lives.
std::mutex &getWritingMutex() {
  static std::mutex mutex;
  static int atFork =
      pthread_atfork([] { getWritingMutex().lock(); }, [] { getWritingMutex().unlock(); },
                     [] { getWritingMutex().unlock(); });
  (void)atFork;
  return mutex;
}

/// Writes to a FIFO whose reader may be gone, which is no reason to end this process.
void writeWhileRead(int fifo, StringRef text) {
  sigset_t pipeSignal, before, pending;
  sigemptyset(&pipeSignal);
  sigaddset(&pipeSignal, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipeSignal, &before);
  while (!text.empty()) {
    ssize_t written = write(fifo, text.data(), text.size());
    if (written >= 0) {
      text = text.drop_front(written);
      continue;
    }
    if (errno == EINTR)
      continue;
    timespec none = {};
    if (errno == EPIPE && !sigismember(&pending, SIGPIPE))
      sigtimedwait(&pipeSignal, nullptr, &none);
    break;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace

std::string tessera::findPtxas(StringRef setting) {
  if (setting == "driver")
    return "";
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
  return "";
}

std::string tessera::getPtxasVersion(StringRef path) {
  PrivateFolder folder;
  std::string log = folder.file("log");
  ChildProcess process;
  std::string error = process.start({path.str(), "--version"}, log);
  if (!error.empty())
    throwCannotRun(path.str(), error);
  if (process.wait(/*timeoutSeconds=*/30) != 0)
    throw UserError("E063", "'" + path.str() + "' does not tell its version",
                    "set TESSERA_PTXAS to the path of ptxas");
  return findVersion(readFile(log)).str();
}

std::string tessera::findVersionInCubin(StringRef cubin) { return findVersion(cubin).str(); }

PtxasResult tessera::runPtxas(StringRef ptx, const PtxasOptions &options) {
  Run run(options);
  writeFile(run.source, ptx);
  run.start();
  return run.getResult(run.process.wait(options.timeoutSeconds));
}

class EarlyPtxas::Waiting {
public:
  explicit Waiting(const PtxasOptions &options) : run(options) {
    fifo = run.folder.file("fifo"), complete = run.folder.file("complete.ptx");
    ready = mkfifo(fifo.c_str(), 0600) == 0 && link(fifo.c_str(), run.source.c_str()) == 0;
    if (ready)
      run.start();
  }

  ~Waiting() {
    run.process.stop();
    // Where it is a script, what that one has started may be in the FIFO.
    if (int writer = open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC); writer >= 0)
      close(writer);
  }

  std::optional<PtxasResult> assemble(StringRef ptx) {
    writeFile(complete, ptx);
    if (rename(complete.c_str(), run.source.c_str()) != 0)
      return std::nullopt;
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration<double>(run.options.timeoutSeconds);
    bool written = false, mayLeave = hasOneFunction(ptx);
    std::optional<int> status;
    while (!(status = run.process.poll()) && std::chrono::steady_clock::now() < end) {
      written = written || writeIfWaitedFor(ptx);
      if (mayLeave && run.hasSaidAll()) {
        run.process.abandon();
        status = 0;
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    // Whatever it did not like, it shall say about a plain file.
    if (status && *status != 0)
      return std::nullopt;
    return run.getResult(status);
  }

  bool ready;

private:
  /// Whoever has found the FIFO under the name of the source waits for us in it, or soon will.
  bool writeIfWaitedFor(StringRef ptx) {
    std::lock_guard<std::mutex> guard(getWritingMutex());
    int writer = open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (writer < 0)
      return false;
    fcntl(writer, F_SETFL, fcntl(writer, F_GETFL) & ~O_NONBLOCK);
    writeWhileRead(writer, ptx);
    close(writer);
    return true;
  }

  Run run;
  std::string fifo, complete;
};

EarlyPtxas::EarlyPtxas(const PtxasOptions &options) : options(options) {
  try {
    waiting = std::make_unique<Waiting>(this->options);
  } catch (const UserError &) {
    // The one that is started later has the same trouble, and reports it.
  }
}

EarlyPtxas::~EarlyPtxas() = default;

PtxasResult EarlyPtxas::assemble(StringRef ptx) {
  std::unique_ptr<Waiting> run = std::move(waiting);
  if (run && run->ready)
    if (std::optional<PtxasResult> result = run->assemble(ptx))
      return *result;
  return runPtxas(ptx, options);
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

std::string tessera::findSourcePlace(StringRef ptx, unsigned line) {
  StringRef file, position, rest = ptx;
  for (unsigned number = 0; number < line && !rest.empty(); ++number) {
    auto [text, others] = rest.split('\n');
    rest = others;
    text = text.trim();
    if (text.contains(".entry ") || text.contains(".func "))
      position = "";
    // .loc 1 8 15
    if (text.consume_front(".loc"))
      std::tie(file, position) = text.ltrim().split(' ');
  }
  if (position.empty())
    return "";
  auto [row, column] = position.ltrim().split(' ');
  column = column.take_while(isDigit);
  // .file 1 "name", at the end of the PTX
  for (rest = ptx; !rest.empty();) {
    auto [text, others] = rest.split('\n');
    rest = others;
    text = text.trim();
    if (!text.consume_front(".file"))
      continue;
    auto [number, name] = text.ltrim().split(' ');
    if (number == file)
      return (name.trim().trim('"') + ":" + row + ":" + column).str();
  }
  return "";
}
