// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/Cubin.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Error.h"

using namespace llvm;
using namespace tessera;

using File = object::ELFFile<object::ELF64LE>;

/// True if a range lies within the file. The numbers are untrusted and may overflow.
static bool isInside(uint64_t offset, uint64_t size, uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

/// Checks that a kernel is a function in a section of its own.
static Error checkKernel(const File &file, File::Elf_Shdr_Range sections, StringRef name) {
  for (const auto &table : sections) {
    if (table.sh_type != ELF::SHT_SYMTAB)
      continue;
    auto symbols = file.symbols(&table);
    auto names = file.getStringTableForSymtab(table, sections);
    if (!symbols || !names)
      return joinErrors(symbols.takeError(), names.takeError());
    for (const auto &symbol : *symbols) {
      Expected<StringRef> found = symbol.getName(*names);
      if (!found)
        return found.takeError();
      if (*found != name || symbol.getType() != ELF::STT_FUNC)
        continue;
      uint64_t index = symbol.st_shndx;
      if (index == 0 || index >= sections.size())
        break;
      const auto &code = sections[index];
      Expected<StringRef> section = file.getSectionName(code);
      if (!section)
        return section.takeError();
      if (*section == (".text." + name).str() && code.sh_type == ELF::SHT_PROGBITS &&
          symbol.st_size != 0 && isInside(symbol.st_value, symbol.st_size, code.sh_size))
        return Error::success();
    }
  }
  return createStringError("it lacks the code of kernel '" + name + "'");
}

/// True if a section of this type has no bytes in the file. For global and shared memory that
/// starts as zeros, ptxas writes the usual type or one of NVIDIA's.
static bool hasNoBytes(uint32_t type) {
  constexpr uint32_t kGlobal = ELF::SHT_LOPROC + 7, kShared = ELF::SHT_LOPROC + 10;
  return type == ELF::SHT_NOBITS || type == ELF::SHT_NULL || type == kGlobal || type == kShared;
}

static Error check(StringRef cubin, ArrayRef<std::string> kernels) {
  if (cubin.empty())
    return createStringError("it is empty");
  Expected<File> file = File::create(cubin);
  if (!file)
    return file.takeError();
  const auto &header = file->getHeader();
  if (!header.checkMagic() || header.getFileClass() != ELF::ELFCLASS64 ||
      header.getDataEncoding() != ELF::ELFDATA2LSB)
    return createStringError("it is no ELF file");
  if (header.e_machine != ELF::EM_CUDA)
    return createStringError("it is for machine " + Twine(header.e_machine) + ", not for a GPU");
  Expected<File::Elf_Shdr_Range> sections = file->sections();
  if (!sections)
    return sections.takeError();
  if (sections->empty())
    return createStringError("it has no sections");
  for (const auto &section : *sections) {
    if (!hasNoBytes(section.sh_type) && !isInside(section.sh_offset, section.sh_size, cubin.size()))
      return createStringError("a section goes beyond its end");
    if (Expected<StringRef> name = file->getSectionName(section); !name)
      return name.takeError();
  }
  Expected<File::Elf_Phdr_Range> segments = file->program_headers();
  if (!segments)
    return segments.takeError();
  for (const auto &segment : *segments)
    if (!isInside(segment.p_offset, segment.p_filesz, cubin.size()))
      return createStringError("a segment goes beyond its end");
  for (const std::string &name : kernels)
    if (Error error = checkKernel(*file, *sections, name))
      return error;
  return Error::success();
}

std::string tessera::findProblemOfCubin(StringRef cubin, ArrayRef<std::string> kernels) {
  // The tables are read in place, so the bytes must be aligned as in a mapped file.
  std::vector<uint64_t> aligned((cubin.size() + 7) / 8);
  if (!cubin.empty())
    std::memcpy(aligned.data(), cubin.data(), cubin.size());
  return toString(
      check(StringRef(reinterpret_cast<const char *>(aligned.data()), cubin.size()), kernels));
}
