// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules of IR: making, parsing, printing and verifying them. Also what the
// library says about itself.

#include "Errors.h"
#include "Handles.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <elf.h>
#include <link.h>

using namespace tessera;
using namespace tessera::capi;

namespace {

/// The linker's hash over the whole library: it changes whenever any code does.
std::string readBuildId() {
  struct Search {
    ElfW(Addr) within;
    std::string id;
  } search{reinterpret_cast<ElfW(Addr)>(&readBuildId), {}};

  dl_iterate_phdr(
      [](dl_phdr_info *object, size_t, void *data) {
        Search &search = *static_cast<Search *>(data);
        bool found = false;
        for (const ElfW(Phdr) &segment :
             llvm::ArrayRef<ElfW(Phdr)>(object->dlpi_phdr, object->dlpi_phnum)) {
          ElfW(Addr) begin = object->dlpi_addr + segment.p_vaddr;
          found |= segment.p_type == PT_LOAD && search.within >= begin &&
                   search.within < begin + segment.p_memsz;
        }
        if (!found)
          return 0;
        for (const ElfW(Phdr) &segment :
             llvm::ArrayRef<ElfW(Phdr)>(object->dlpi_phdr, object->dlpi_phnum)) {
          if (segment.p_type != PT_NOTE)
            continue;
          const char *at = reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr);
          const char *end = at + segment.p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            const auto *note = reinterpret_cast<const ElfW(Nhdr) *>(at);
            const char *name = at + sizeof(*note);
            const char *content = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && llvm::StringRef(name, 3) == "GNU")
              search.id = llvm::toHex(llvm::StringRef(content, note->n_descsz), /*LowerCase=*/true);
            at = content + ((note->n_descsz + 3) & ~3u);
          }
        }
        return 1;
      },
      &search);
  return search.id;
}

} // namespace

TsrModule::TsrModule() : context(takeContext()) {}

TsrModule::~TsrModule() {
  if (tornStates != tessera::countTornStates())
    (void)module.release();
}

void TsrModule::parse(llvm::StringRef source, const char *fileName,
                      const DiagnosticCollector &collector) {
  mlir::ParserConfig config(context.get());
  module = mlir::parseSourceString<mlir::ModuleOp>(source, config, fileName);
  if (!module)
    throw UserError("E062",
                    "the IR does not parse: " + collector.firstMessage("no reason was given"),
                    "start again from a stage that the compiler has written");
}

extern "C" {

int tsr_api_version(void) TSR_NOEXCEPT { return TSR_API_VERSION; }

const char *tsr_build_id(void) TSR_NOEXCEPT {
  static const std::string id = readBuildId();
  return id.c_str();
}

TsrStatus tsr_module_create(TsrModule **module) TSR_NOEXCEPT {
  return guarded([&] {
    auto handle = std::make_unique<TsrModule>();
    mlir::MLIRContext *context = handle->context.get();
    context->loadDialect<tile::TileDialect>();
    handle->module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context));
    *module = handle.release();
  });
}

TsrStatus tsr_module_parse(const char *text, size_t length, const char *file_name,
                           TsrModule **module) TSR_NOEXCEPT {
  return guardedActivity([&] {
    auto handle = std::make_unique<TsrModule>();
    DiagnosticCollector collector(handle->context.get());
    handle->parse(llvm::StringRef(text, length), file_name ? file_name : "<string>", collector);
    *module = handle.release();
  });
}

TsrStatus tsr_module_print(TsrModule *module, int with_locations, const char **text) TSR_NOEXCEPT {
  return guarded([&] {
    mlir::OpPrintingFlags flags;
    if (with_locations)
      flags.enableDebugInfo();
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    module->module->print(stream, flags);
    module->text = std::move(printed);
    *text = module->text.c_str();
  });
}

TsrStatus tsr_module_verify(TsrModule *module) TSR_NOEXCEPT {
  return guarded([&] {
    DiagnosticCollector collector(module->context.get());
    if (mlir::failed(mlir::verify(*module->module)))
      throw InternalError("the IR is not valid: " + collector.firstMessage("no reason was given"));
  });
}

void tsr_module_destroy(TsrModule *module) TSR_NOEXCEPT { delete module; }

} // extern "C"
