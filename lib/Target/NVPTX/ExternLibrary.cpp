// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/ExternLibrary.h"

#include "tessera/Support/UserError.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

#include <map>

using namespace llvm;
using namespace tessera;

namespace {

/// The functions that the driver links to every kernel.
constexpr StringLiteral kDriverFunctions[] = {"vprintf", "malloc", "free", "__assertfail"};

[[noreturn]] void fail(const ExternFunction &function, const Twine &message,
                       const std::string &fix = "") {
  UserError error("E071", message.str(), fix);
  error.location = function.location;
  throw error;
}

/// Collects LLVM's diagnostics during its lifetime. Replaces the context's handler.
class Reports {
public:
  explicit Reports(LLVMContext &context)
      : context(context), before(context.getDiagnosticHandler()) {
    context.setDiagnosticHandler(std::make_unique<Handler>(text));
  }
  ~Reports() { context.setDiagnosticHandler(std::move(before)); }

  std::string text;

private:
  struct Handler : DiagnosticHandler {
    explicit Handler(std::string &text) : text(text) {}
    bool handleDiagnostics(const DiagnosticInfo &info) override {
      if (info.getSeverity() == DS_Error) {
        raw_string_ostream stream(text);
        DiagnosticPrinterRawOStream printer(stream);
        stream << (text.empty() ? "" : "; ");
        info.print(printer);
      }
      return true;
    }
    std::string &text;
  };

  LLVMContext &context;
  std::unique_ptr<DiagnosticHandler> before;
};

std::string print(const Type &type) {
  std::string text;
  raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

/// Reads the library that `function` names. Removes everything that kernels cannot have.
std::unique_ptr<Module> readLibrary(const ExternFunction &function, LLVMContext &context) {
  const std::string &path = function.library;
  SMDiagnostic diagnostic;
  Reports reports(context);
  std::unique_ptr<Module> library = parseIRFile(path, diagnostic, context);
  if (!library || !reports.text.empty()) {
    std::string why = library ? reports.text : diagnostic.getMessage().str();
    fail(function, "cannot read the library '" + path + "' as LLVM IR: " + why,
         "name a file that exists and that clang or llvm-as of LLVM " +
             std::to_string(LLVM_VERSION_MAJOR) + " or before has written");
  }
  std::string problem;
  raw_string_ostream stream(problem);
  if (verifyModule(*library, &stream))
    fail(function,
         "the library '" + path + "' is not valid LLVM IR: " + StringRef(problem).rtrim().str());
  // IR without a triple is for any machine.
  const Triple &triple = library->getTargetTriple();
  if (!triple.str().empty() && triple.getArch() != Triple::nvptx64)
    fail(function, "the library '" + path + "' is for " + triple.str() + ", not for GPUs",
         "compile it for nvptx64-nvidia-cuda");
  for (StringRef name : {"llvm.global_ctors", "llvm.global_dtors"})
    if (library->getNamedGlobal(name))
      fail(function,
           "the library '" + path + "' has initialisers (" + name + "), which kernels cannot run",
           "initialise its globals with constants");

  // If an intrinsic is another machine's, LLVM ends the process.
  for (const Function &each : *library)
    if (Intrinsic::isTargetIntrinsic(each.getIntrinsicID()) &&
        !each.getName().starts_with("llvm.nvvm."))
      fail(function,
           "the library '" + path + "' uses " + each.getName() + ", which is not for GPUs",
           "compile it for nvptx64-nvidia-cuda");

  // These lists would force linking everything, or clash with the module's own.
  for (StringRef name : {"llvm.used", "llvm.compiler.used"})
    if (GlobalVariable *used = library->getNamedGlobal(name))
      used->eraseFromParent();
  StripDebugInfo(*library);
  if (NamedMDNode *flags = library->getModuleFlagsMetadata())
    flags->eraseFromParent();
  for (Function &each : *library) {
    // LLVM does not inline functions of different CPUs into each other.
    each.removeFnAttr("target-cpu");
    each.removeFnAttr("target-features");
  }
  return library;
}

/// Checks that a library defines the function with the declared type. An error suggests a similar
/// name.
void checkFunction(const ExternFunction &function, Module &library, const Function &declared) {
  Function *found = library.getFunction(function.symbol);
  if (!found || found->isDeclaration()) {
    std::string near;
    unsigned best = std::max<size_t>(2, function.symbol.size() / 3) + 1;
    for (const Function &other : library)
      if (!other.isDeclaration() && !other.hasLocalLinkage())
        if (unsigned distance = other.getName().edit_distance(function.symbol, true, best);
            distance < best)
          best = distance, near = other.getName().str();
    fail(function,
         "the library '" + function.library + "' has no function '" + function.symbol + "'",
         near.empty() ? "declare C++ functions as extern \"C\", which gives them their plain names"
                      : "did you mean '" + near + "'?");
  }
  if (found->hasLocalLinkage())
    fail(function,
         "the function '" + function.symbol + "' of the library '" + function.library +
             "' is private to it",
         "give it external linkage");
  if (found->getFunctionType() != declared.getFunctionType())
    fail(function,
         "the function '" + function.symbol + "' of the library '" + function.library + "' is " +
             print(*found->getFunctionType()) + ", and is called as " +
             print(*declared.getFunctionType()),
         "the dtypes of the call must be the types of the function");
}

} // namespace

void tessera::linkExternFunctions(Module &module, ArrayRef<ExternFunction> functions) {
  StringSet<> own;
  for (const GlobalValue &value : module.global_values())
    own.insert(value.getName());
  std::map<std::string, std::unique_ptr<Module>> libraries;
  for (const ExternFunction &function : functions) {
    std::unique_ptr<Module> &library = libraries[function.library];
    if (!library)
      library = readLibrary(function, module.getContext());
    if (const Function *declared = module.getFunction(function.symbol))
      checkFunction(function, *library, *declared);
  }
  StringSet<> linked;
  for (const ExternFunction &function : functions)
    linked.insert(function.symbol);
  for (const ExternFunction &function : functions) {
    std::unique_ptr<Module> library = std::move(libraries[function.library]);
    if (!library)
      continue; // linked with another function of it
    library->setTargetTriple(module.getTargetTriple());
    library->setDataLayout(module.getDataLayout());
    // A library may define functions that are linked from another one, or names of the kernel.
    for (GlobalValue &other : library->global_values())
      if (!other.isDeclaration() && own.contains(other.getName()) &&
          none_of(functions, [&](const ExternFunction &wanted) {
            return wanted.symbol == other.getName() && wanted.library == function.library;
          }))
        other.setLinkage(GlobalValue::InternalLinkage);
    Reports reports(module.getContext());
    if (Linker::linkModules(module, std::move(library), Linker::Flags::LinkOnlyNeeded) ||
        !reports.text.empty())
      fail(function, "cannot link the library '" + function.library + "': " + reports.text);
  }
  for (Function &function : module) {
    bool isNew = !own.contains(function.getName()) || linked.contains(function.getName());
    if (!isNew || function.isIntrinsic())
      continue;
    if (!function.isDeclaration()) {
      function.setLinkage(GlobalValue::InternalLinkage);
      function.setComdat(nullptr);
      continue;
    }
    bool isKnown = function.getName().starts_with("__nv") ||
                   is_contained(kDriverFunctions, function.getName());
    if (isKnown || function.use_empty())
      continue;
    fail(functions.front(),
         "a library calls the function '" + function.getName() +
             "', which neither it nor libdevice has",
         "link what it needs into one file, with llvm-link");
  }
  for (GlobalVariable &global : module.globals())
    if (!own.contains(global.getName()) && !global.isDeclaration()) {
      global.setLinkage(GlobalValue::InternalLinkage);
      global.setComdat(nullptr);
    }
  setReflectedFlush(module, /*flushDenormals=*/false);
}
