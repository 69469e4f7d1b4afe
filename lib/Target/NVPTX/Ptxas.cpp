// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs ptxas in a private folder, which has its input and its cubin.
//
// A ptxas that starts early is given the name of a FIFO, and blocks in its `open` until this
// process writes there. But ptxas opens its input twice, the second time to find its size. So once
// the PTX exists, a file replaces the FIFO under that name. A ptxas that blocks in the FIFO
// receives the same text from there.
//
// After its last output, ptxas frees its memory piece by piece, and the system frees the rest. If
// the output and the cubin are complete, this process does not wait for that.

#include "tessera/Target/NVPTX/Ptxas.h"

#include "tessera/Support/Cancellation.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/NVPTX/ChildProcess.h"
#include "tessera/Target/NVPTX/Cubin.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace llvm;
using namespace tessera;

namespace {

/// A folder that only this process uses. The destructor removes it with its contents. It is
/// accessed by its descriptor. So if a temporary directory lacks the sticky bit, a user who renames
/// the folder cannot replace it.
class PrivateFolder {
public:
  PrivateFolder() {
    sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
    if (std::error_code error = sys::fs::make_absolute(path))
      fail(error.message());
    sys::path::append(path, "tessera-XXXXXX");
    // mkdtemp requests 0700, but a umask may remove bits, and some file systems add some.
    if (!mkdtemp(const_cast<char *>(path.c_str())) || chmod(path.c_str(), 0700) != 0)
      fail(strerror(errno));
    folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (folder < 0 || fstat(folder, &status) != 0 || status.st_uid != geteuid() ||
        (status.st_mode & 077) != 0)
      fail(folder < 0 ? strerror(errno) : "others may write to it");
  }
  PrivateFolder(const PrivateFolder &) = delete;
  ~PrivateFolder() { remove(); }

  int descriptor() const { return folder; }

  /// The text of a plain file of this user; nothing if there is none.
  std::optional<std::string> read(const char *name) const {
    // Do not block if a FIFO has replaced the file.
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
      return std::nullopt;
    struct stat status;
    std::optional<std::string> text;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
      text.emplace();
      char part[1 << 14];
      ssize_t count;
      while ((count = ::read(file, part, sizeof(part))) > 0 || (count < 0 && errno == EINTR))
        text->append(part, std::max<ssize_t>(count, 0));
      if (count < 0)
        text.reset();
    }
    close(file);
    return text;
  }

  void write(const char *name, StringRef text) const {
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool isFine = file >= 0 && fchmod(file, 0600) == 0;
    while (isFine && !text.empty()) {
      ssize_t written = ::write(file, text.data(), text.size());
      if (written > 0)
        text = text.drop_front(written);
      else
        isFine = written < 0 && errno == EINTR;
    }
    int error = errno;
    if (file >= 0)
      close(file);
    if (!isFine)
      throw UserError("E061",
                      "cannot write '" + std::string(path) + "/" + name + "': " + strerror(error),
                      "set TMPDIR to a folder with space left");
  }

private:
  [[noreturn]] void fail(const std::string &why) {
    remove();
    throw UserError("E061", "cannot make a temporary folder: " + why,
                    "set TMPDIR to a folder that can be written to");
  }

  /// Removes the folder. If ptxas is a script, its children may still be adding files.
  void remove() {
    if (folder < 0) {
      rmdir(path.c_str());
      return;
    }
    for (int tries = 0; tries < 10; ++tries) {
      removeFiles();
      if (rmdir(path.c_str()) == 0 || errno != ENOTEMPTY)
        break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1 << tries));
    }
    close(folder);
    folder = -1;
  }

  void removeFiles() const {
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? nullptr : fdopendir(again);
    if (!list) {
      if (again >= 0)
        close(again);
      return;
    }
    while (const dirent *entry = readdir(list))
      unlinkat(folder, entry->d_name, 0);
    closedir(list);
  }

  SmallString<128> path;
  int folder = -1;
};

[[noreturn]] void throwCannotRun(const std::string &program, const std::string &why) {
  throw UserError("E063", "cannot run '" + program + "': " + why,
                  "set TESSERA_PTXAS to the path of ptxas");
}

/// A short run of ptxas mostly takes page faults, of 4 KB each, for its allocations. So request
/// huge pages, and memory from the system in larger steps.
std::string getAllocationVariable() {
  std::string variable = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=33554432";
  if (const char *own = std::getenv("GLIBC_TUNABLES"))
    variable += ":" + std::string(own);
  return variable;
}

/// The version 13.0.88 in "Cuda compilation tools, release 13.0, V13.0.88".
StringRef findVersion(StringRef text) {
  StringRef said = text.split("Cuda compilation tools, release ").second;
  StringRef version = said.split(", V").second;
  return version.take_while([](char c) { return isDigit(c) || c == '.'; });
}

/// The release of the ptxas that made a cubin. If the cubin does not have it, the program is run
/// once for it, which takes as long as a small kernel.
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
      // A program that is not NVIDIA's has no release.
    }
  }
  return entry->second;
}

/// The names of the kernels in PTX.
std::vector<std::string> findEntries(StringRef ptx) {
  std::vector<std::string> names;
  for (StringRef rest = ptx; !rest.empty();) {
    auto [line, others] = rest.split('\n');
    rest = others;
    auto [qualifiers, name] = line.ltrim().split(".entry ");
    if (!name.empty() && (qualifiers.empty() || qualifiers.starts_with(".")))
      names.push_back(name.ltrim().take_until([](char c) { return c == '(' || isSpace(c); }).str());
  }
  return names;
}

// The files of a run, in its folder.
constexpr const char *kSource = "kernel.ptx", *kCubin = "kernel.cubin";

/// One run of ptxas and its files.
class Run {
public:
  explicit Run(const PtxasOptions &options) : options(options) {}

  void start() {
    SmallString<128> program(options.path); // it runs in a folder of its own
    sys::fs::make_absolute(program);
    std::vector<std::string> command = {
        std::string(program), "-v", "-arch=" + options.arch, kSource, "-o", kCubin};
    if (options.lineInfo)
      command.push_back("-lineinfo");
    if (options.maxRegisters)
      command.push_back("-maxrregcount=" + std::to_string(options.maxRegisters));
    append_range(command, options.arguments);
    std::string error = process.start(command, getAllocationVariable(), folder.descriptor());
    if (!error.empty())
      throwCannotRun(options.path, error);
  }

  /// `ptx` is what was assembled.
  PtxasResult getResult(std::optional<int> status, StringRef ptx);
  /// True if the output and the cubin are complete, for PTX of one function.
  bool hasSaidAll() const;

  const PtxasOptions &options;
  PrivateFolder folder;
  ChildProcess process; // and so it ends before its folder
};

/// The line in which an older ptxas says that it does not know the PTX's version, or the GPU.
std::string findSignOfAge(StringRef log) {
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines)
    if (line.contains("Unsupported .version") || line.contains("not defined for option 'gpu-name'"))
      return line.trim().str();
  return "";
}

PtxasResult Run::getResult(std::optional<int> status, StringRef ptx) {
  PtxasResult result;
  result.log = process.getOutput().str();
  if (!status)
    throw UserError("E063",
                    "ptxas took longer than " + std::to_string(int(options.timeoutSeconds)) + " s",
                    "use smaller tiles, or allow more time with TESSERA_PTXAS_TIMEOUT");
  // A single instruction needs too many: wgmma has all of its accumulators in registers.
  if (*status != 0 && StringRef(result.log).contains("(C7602)"))
    throw InsufficientRegisters("E063", "a dot takes more registers than a thread may have",
                                "use more warps, smaller tiles, or a higher maxnreg");
  if (std::string line = findSignOfAge(result.log); *status != 0 && !line.empty())
    throw UserError("E063", "'" + options.path + "' is too old for this GPU or this PTX: " + line,
                    "set TESSERA_PTXAS to the ptxas of a newer CUDA toolkit, or unset it and "
                    "install the package nvidia-cuda-nvcc");
  if (*status != 0)
    throw InternalError("ptxas rejects the PTX: " + StringRef(result.log).trim().str());
  result.cubin = folder.read(kCubin).value_or("");
  if (std::string problem = findProblemOfCubin(result.cubin, findEntries(ptx)); !problem.empty())
    throw UserError("E063",
                    "'" + options.path + "' reports success, but the cubin that it wrote is " +
                        "incomplete: " + problem,
                    "check that the disk of the temporary directory (TMPDIR) is not full, and that "
                    "TESSERA_PTXAS names NVIDIA's ptxas");
  result.version = getVersionOf(result.cubin, options.path);
  parsePtxasLog(result.log, result);
  return result;
}

/// True if the file has the length of its header: NVIDIA's cubins end with the table of segments.
bool isWhole(StringRef cubin) {
  ELF::Elf64_Ehdr header;
  if (cubin.size() < sizeof(header))
    return false;
  std::memcpy(&header, cubin.data(), sizeof(header));
  return header.checkMagic() && header.e_phnum != 0 &&
         header.e_phoff + uint64_t(header.e_phnum) * header.e_phentsize == cubin.size();
}

/// With several functions, a log that seems to be complete may lack some.
bool hasOneFunction(StringRef ptx) { return ptx.count(".entry ") + ptx.count(".func ") == 1; }

bool Run::hasSaidAll() const {
  StringRef said = process.getOutput();
  // Some versions end differently; this process then waits for their end.
  return said.consume_back("\n") && said.rsplit('\n').second.contains("Compile time = ") &&
         isWhole(folder.read(kCubin).value_or(""));
}

/// Held while the writing end of a FIFO is open. A process forked meanwhile would inherit it, and
/// ptxas would not see the end of its input during that process's lifetime.
std::mutex &getWritingMutex() {
  static std::mutex mutex;
  static int atFork =
      pthread_atfork([] { getWritingMutex().lock(); }, [] { getWritingMutex().unlock(); },
                     [] { getWritingMutex().unlock(); });
  (void)atFork;
  return mutex;
}

/// Writes to a FIFO. If its reader has ended, SIGPIPE must not end this process.
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
      throw UserError("E063", "'" + setting.str() + "' is not a program that can be run",
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
  SmallString<128> program(path);
  sys::fs::make_absolute(program);
  ChildProcess process;
  std::string error = process.start({std::string(program), "--version"}, {}, folder.descriptor());
  if (!error.empty())
    throwCannotRun(path.str(), error);
  if (process.wait(/*timeoutSeconds=*/30) != 0)
    throw UserError("E063", "'" + path.str() + "' does not print its version",
                    "set TESSERA_PTXAS to the path of ptxas");
  return findVersion(process.getOutput()).str();
}

std::string tessera::findVersionInCubin(StringRef cubin) { return findVersion(cubin).str(); }

PtxasResult tessera::runPtxas(StringRef ptx, const PtxasOptions &options) {
  Run run(options);
  run.folder.write(kSource, ptx);
  run.start();
  return run.getResult(run.process.wait(options.timeoutSeconds), ptx);
}

class EarlyPtxas::Waiting {
public:
  explicit Waiting(const PtxasOptions &options) : run(options) {
    int folder = run.folder.descriptor();
    ready = mkfifoat(folder, kFifo, 0600) == 0 && linkat(folder, kFifo, folder, kSource, 0) == 0;
    if (ready)
      run.start();
  }

  ~Waiting() {
    run.process.stop();
    // If ptxas is a script, its child may be blocked in the FIFO.
    if (int writer = openFifo(); writer >= 0)
      close(writer);
  }

  std::optional<PtxasResult> assemble(StringRef ptx) {
    run.folder.write(kComplete, ptx);
    int folder = run.folder.descriptor();
    if (renameat(folder, kComplete, folder, kSource) != 0)
      return std::nullopt;
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration<double>(run.options.timeoutSeconds);
    // ptxas may be about to open the FIFO, but not for long.
    std::chrono::microseconds pause(100);
    bool written = false, mayLeave = hasOneFunction(ptx);
    std::optional<int> status;
    while (!(status = run.process.poll()) && std::chrono::steady_clock::now() < end) {
      throwIfCancelled();
      written = written || writeIfWaitedFor(ptx);
      if (mayLeave && run.hasSaidAll()) {
        run.process.abandon();
        status = 0;
        break;
      }
      run.process.sleep(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(5000));
    }
    // If it fails, run it again on a plain file, for its messages.
    if (status && *status != 0)
      return std::nullopt;
    return run.getResult(status, ptx);
  }

  bool ready;

private:
  /// A ptxas that has opened the FIFO blocks in it, or will soon.
  bool writeIfWaitedFor(StringRef ptx) {
    std::lock_guard<std::mutex> guard(getWritingMutex());
    int writer = openFifo();
    if (writer < 0)
      return false;
    fcntl(writer, F_SETFL, fcntl(writer, F_GETFL) & ~O_NONBLOCK);
    writeWhileRead(writer, ptx);
    close(writer);
    return true;
  }

  /// The FIFO's writing end if it has a reader; else a negative number.
  int openFifo() const {
    return openat(run.folder.descriptor(), kFifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  }

  static constexpr const char *kFifo = "fifo", *kComplete = "complete.ptx";

  Run run;
};

EarlyPtxas::EarlyPtxas(const PtxasOptions &options) : options(options) {
  try {
    waiting = std::make_unique<Waiting>(this->options);
  } catch (const UserError &) {
    // The later start of ptxas fails with the same error, and reports it.
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
