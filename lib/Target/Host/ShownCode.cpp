// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Publishes the functions of loaded objects to perf and gdb.
//
// perf reads /tmp/perf-PID.map after the process has ended: a line for each function, with its
// address and size in hexadecimal and its name. Other just-in-time compilers of the process, such
// as Python's, append to the same file. So this file appends, too. It overwrites the lines of freed
// code in place with as many characters, which perf reads as a function without size. It does so
// only when other code occupies the address, so that perf can name functions that ran before.
//
// gdb stops in __jit_debug_register_code and then reads a list of object files from memory. It
// finds the function and the list by their names. LLVM defines them, and libtessera exports both
// (exports.map). gdb receives a copy of the object with the kernel's name, whose code section has
// the address where it was loaded. All other data, such as lines and unwinding, is relative to that
// address, and gdb relocates it.

#include "tessera/Target/Host/ShownCode.h"

#include "tessera/Support/UserError.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <vector>

using namespace llvm;
using namespace tessera;
using namespace tessera::host;

extern "C" void __jit_debug_register_code();
extern "C" jit_descriptor __jit_debug_descriptor;

namespace {

using Object = object::ELFFile<object::ELF64LE>;

struct FunctionRange {
  uint64_t begin;
  uint64_t size;
  std::string name;
};

/// The location of an object's code.
struct Code {
  std::vector<FunctionRange> functions;
  size_t section = 0;     ///< its index
  size_t symbol = 0;      ///< of the kernel, counted from 0
  size_t symbolTable = 0; ///< the section's index
  uint64_t address = 0;   ///< of the section
};

/// The section that has `symbol`, and its functions. Nothing if there is none.
Expected<std::optional<Code>> findCode(const Object &elf, StringRef symbol, uint64_t address,
                                       StringRef name) {
  auto sections = elf.sections();
  if (!sections)
    return sections.takeError();
  for (const Object::Elf_Shdr &table : *sections) {
    if (table.sh_type != llvm::ELF::SHT_SYMTAB)
      continue;
    auto symbols = elf.symbols(&table);
    if (!symbols)
      return symbols.takeError();
    auto names = elf.getStringTableForSymtab(table);
    if (!names)
      return names.takeError();
    auto nameOf = [&](const Object::Elf_Sym &entry) {
      Expected<StringRef> found = entry.getName(*names);
      if (found)
        return *found;
      consumeError(found.takeError());
      return StringRef();
    };
    const auto *kernel = llvm::find_if(
        *symbols, [&](const Object::Elf_Sym &entry) { return nameOf(entry) == symbol; });
    if (kernel == symbols->end() || kernel->st_shndx == 0 || kernel->st_shndx >= sections->size())
      continue;
    Code code;
    code.section = kernel->st_shndx;
    code.symbol = kernel - symbols->begin();
    code.symbolTable = &table - sections->begin();
    code.address = address - kernel->st_value;
    for (const Object::Elf_Sym &entry : *symbols)
      if (entry.getType() == llvm::ELF::STT_FUNC && entry.st_shndx == code.section && entry.st_size)
        code.functions.push_back({code.address + entry.st_value, entry.st_size,
                                  (&entry == kernel ? name : nameOf(entry)).str()});
    return code;
  }
  return std::nullopt;
}

/// A copy of the object for gdb.
std::string placeObject(StringRef object, const Code &code, StringRef name) {
  std::string copy = object.str();
  Object::Elf_Ehdr header;
  std::memcpy(&header, copy.data(), sizeof(header));
  auto change = [&](size_t index, auto edit) {
    char *at = copy.data() + header.e_shoff + index * header.e_shentsize;
    Object::Elf_Shdr section;
    std::memcpy(&section, at, sizeof(section));
    edit(section);
    std::memcpy(at, &section, sizeof(section));
  };
  change(code.section, [&](Object::Elf_Shdr &section) { section.sh_addr = code.address; });
  size_t nameTable = 0, symbolsAt = 0;
  change(code.symbolTable, [&](Object::Elf_Shdr &section) {
    nameTable = section.sh_link;
    symbolsAt = section.sh_offset;
  });
  // The kernel's name goes to the end of a table of names that is moved to the end of the file.
  std::string names;
  change(nameTable, [&](Object::Elf_Shdr &section) {
    names = copy.substr(section.sh_offset, section.sh_size);
    section.sh_offset = copy.size();
    section.sh_size = names.size() + name.size() + 1;
  });
  Object::Elf_Sym kernel;
  char *at = copy.data() + symbolsAt + code.symbol * sizeof(kernel);
  std::memcpy(&kernel, at, sizeof(kernel));
  kernel.st_name = static_cast<uint32_t>(names.size());
  std::memcpy(at, &kernel, sizeof(kernel));
  copy += names;
  copy += name;
  copy += '\0';
  return copy;
}

/// A line of perf's map.
struct Line {
  uint64_t begin;
  uint64_t size;
  std::string text;
  off_t offset = -1; ///< in the file
  bool isLive = true;
};

/// The start of this process, by the clock of file times.
double getStartTime() {
  FILE *file = std::fopen("/proc/self/stat", "re");
  if (!file)
    return 0;
  char text[1024];
  size_t length = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  text[length] = 0;
  const char *at = std::strrchr(text, ')'); // the end of the second field, a name with anything
  for (int field = 2; at && field < 22; ++field)
    at = std::strchr(at + 1, ' ');
  if (!at)
    return 0;
  timespec sinceBoot{}, now{};
  clock_gettime(CLOCK_BOOTTIME, &sinceBoot);
  clock_gettime(CLOCK_REALTIME, &now);
  auto seconds = [](const timespec &time) { return double(time.tv_sec) + 1e-9 * time.tv_nsec; };
  double start = std::strtod(at, nullptr) / double(sysconf(_SC_CLK_TCK));
  return seconds(now) - (seconds(sinceBoot) - start);
}

/// The functions that this process has published to perf and gdb.
class ShownRegister {
public:
  static ShownRegister &get() {
    static ShownRegister *instance = new ShownRegister(); // lives as long as code may be unloaded
    return *instance;
  }

  std::mutex mutex;

  void addToMap(const std::vector<FunctionRange> &functions);
  void removeFromMap(const std::vector<FunctionRange> &functions);
  /// Opens the map, unless this process has done so, and writes the lines of live code.
  void openMap();
  bool hasLines() const { return !lines.empty(); }

private:
  ShownRegister() {
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                   [] { get().mutex.unlock(); });
  }

  void append(Line &line);
  [[noreturn]] void fail(const char *what) const;

  std::vector<Line> lines;
  std::string path;
  int file = -1;
  pid_t process = 0; ///< whose file that is
};

void ShownRegister::fail(const char *what) const {
  throw UserError("E062", "cannot write " + path + ", which TESSERA_SYMBOLS asks for: " + what,
                  "remove that file, or set TESSERA_SYMBOLS to off or gdb");
}

void ShownRegister::append(Line &line) {
  ssize_t written = write(file, line.text.data(), line.text.size());
  if (written != static_cast<ssize_t>(line.text.size()))
    fail(std::strerror(written < 0 ? errno : ENOSPC));
  // The position of this descriptor, even if others append meanwhile.
  line.offset = lseek(file, 0, SEEK_CUR) - written;
}

void ShownRegister::openMap() {
  if (process == getpid())
    return;
  path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  if (file >= 0) // the parent's
    close(file);
  file = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0)
    fail(std::strerror(errno));
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
    close(file);
    file = -1;
    fail("it is another user's, or no plain file");
  }
  process = getpid();
  // Drop the lines of an earlier process with the same id.
  if (double(status.st_mtim.tv_sec) + 1e-9 * status.st_mtim.tv_nsec < getStartTime() - 0.1)
    (void)!ftruncate(file, 0);
  llvm::erase_if(lines, [](const Line &line) { return !line.isLive; });
  for (Line &line : lines)
    append(line);
}

void ShownRegister::addToMap(const std::vector<FunctionRange> &functions) {
  openMap();
  for (const FunctionRange &function : functions) {
    llvm::erase_if(lines, [&](const Line &line) {
      bool isThere =
          line.begin < function.begin + function.size && function.begin < line.begin + line.size;
      if (!isThere)
        return false;
      // With O_APPEND, even pwrite appends on Linux.
      if (int rewritten = open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC); rewritten >= 0) {
        std::string blank(line.text.size(), '0');
        std::memcpy(blank.data() + 1, " 0 ", 3);
        blank.back() = '\n';
        (void)!pwrite(rewritten, blank.data(), blank.size(), line.offset);
        close(rewritten);
      }
      return true;
    });
    Line line{function.begin, function.size, {}};
    char range[40];
    std::snprintf(range, sizeof(range), "%llx %llx ", (unsigned long long)function.begin,
                  (unsigned long long)function.size);
    line.text = range + function.name + "\n";
    append(line);
    lines.push_back(std::move(line));
  }
}

void ShownRegister::removeFromMap(const std::vector<FunctionRange> &functions) {
  for (Line &line : lines)
    for (const FunctionRange &function : functions)
      if (line.begin == function.begin)
        line.isLive = false;
}

} // namespace

struct ShownCode::Parts {
  std::vector<FunctionRange> functions;
  Tools tools;
  std::string object; ///< for gdb
  jit_code_entry entry{};
};

std::unique_ptr<ShownCode> ShownCode::show(StringRef object, StringRef symbol, const void *address,
                                           StringRef name, Tools tools) {
  Expected<Object> elf = Object::create(object);
  if (!elf)
    throw InternalError("cannot read a kernel's object: " + toString(elf.takeError()));
  auto code = findCode(*elf, symbol, reinterpret_cast<uintptr_t>(address), name);
  if (!code)
    throw InternalError("cannot read a kernel's object: " + toString(code.takeError()));
  if (!*code)
    return nullptr;

  auto parts = std::make_unique<Parts>();
  parts->functions = std::move((*code)->functions);
  parts->tools = tools;
  ShownRegister &shown = ShownRegister::get();
  std::lock_guard<std::mutex> lock(shown.mutex);
  if (tools.perf)
    shown.addToMap(parts->functions);
  if (tools.gdb) {
    parts->object = placeObject(object, **code, name);
    jit_code_entry &entry = parts->entry;
    entry.symfile_addr = parts->object.data();
    entry.symfile_size = parts->object.size();
    entry.next_entry = __jit_debug_descriptor.first_entry;
    if (entry.next_entry)
      entry.next_entry->prev_entry = &entry;
    __jit_debug_descriptor.first_entry = &entry;
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.action_flag = JIT_REGISTER_FN;
    __jit_debug_register_code();
  }
  return std::unique_ptr<ShownCode>(new ShownCode(std::move(parts)));
}

ShownCode::ShownCode(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}

ShownCode::~ShownCode() {
  ShownRegister &shown = ShownRegister::get();
  std::lock_guard<std::mutex> lock(shown.mutex);
  if (parts->tools.perf)
    shown.removeFromMap(parts->functions);
  if (parts->tools.gdb) {
    jit_code_entry &entry = parts->entry;
    if (entry.prev_entry)
      entry.prev_entry->next_entry = entry.next_entry;
    else
      __jit_debug_descriptor.first_entry = entry.next_entry;
    if (entry.next_entry)
      entry.next_entry->prev_entry = entry.prev_entry;
    __jit_debug_descriptor.relevant_entry = &entry;
    __jit_debug_descriptor.action_flag = JIT_UNREGISTER_FN;
    __jit_debug_register_code();
    __jit_debug_descriptor.relevant_entry = nullptr;
    __jit_debug_descriptor.action_flag = JIT_NOACTION;
  }
}

void ShownCode::followFork() {
  ShownRegister &shown = ShownRegister::get();
  std::lock_guard<std::mutex> lock(shown.mutex);
  if (shown.hasLines())
    shown.openMap();
}
