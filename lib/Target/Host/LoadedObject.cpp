// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links objects into the process with ORC and JITLink.
//
// One session serves the process. Every object has a library of its own in it, so two kernels may
// have the same name, and either can be freed. The session works in the calling thread. A forked
// child creates another session, since a thread that no longer exists may have been using the
// parent's. Code that was mapped before the fork remains callable.

#include "tessera/Target/Host/LoadedObject.h"

#include "tessera/Support/UserError.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/TaskDispatch.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>
#include <mutex>
#include <unistd.h>

using namespace llvm;
using namespace tessera;
using namespace tessera::host;

struct LoadedObject::Session {
  pid_t process;
  std::unique_ptr<orc::ExecutionSession> execution;
  std::unique_ptr<orc::ObjectLinkingLayer> layer;
  orc::JITDylib *runtime = nullptr;
  std::atomic<unsigned> numLoaded{0};

  Session();
};

/// The resources of an object in the session.
struct LoadedObject::Code {
  Session *session;
  orc::JITDylib *library;
};

namespace {
template <typename T> T unwrap(Expected<T> value, const char *what) {
  if (!value)
    throw InternalError(std::string(what) + ": " + toString(value.takeError()));
  return std::move(*value);
}

void check(Error error, const char *what) {
  if (error)
    throw InternalError(std::string(what) + ": " + toString(std::move(error)));
}

/// Errors of linking on this thread. ORC reports the cause to the session, and the caller receives
/// only "failed to materialize".
thread_local std::string *linkErrors = nullptr;

class LinkErrorCollector {
public:
  LinkErrorCollector() : before(linkErrors) { linkErrors = &text; }
  ~LinkErrorCollector() { linkErrors = before; }
  std::string text;

private:
  std::string *before;
};
/// Gives a kernel's constants the protection of its code. The number of mappings of a process is
/// limited, and adjacent mappings with the same protection count as one.
class OneMapping : public orc::ObjectLinkingLayer::Plugin {
public:
  void modifyPassConfig(orc::MaterializationResponsibility &, jitlink::LinkGraph &,
                        jitlink::PassConfiguration &config) override {
    config.PostPrunePasses.push_back([](jitlink::LinkGraph &graph) {
      for (jitlink::Section &section : graph.sections())
        if ((section.getMemProt() & orc::MemProt::Write) == orc::MemProt::None)
          section.setMemProt(orc::MemProt::Read | orc::MemProt::Exec);
      return Error::success();
    });
  }
  Error notifyFailed(orc::MaterializationResponsibility &) override { return Error::success(); }
  Error notifyRemovingResources(orc::JITDylib &, orc::ResourceKey) override {
    return Error::success();
  }
  void notifyTransferringResources(orc::JITDylib &, orc::ResourceKey, orc::ResourceKey) override {}
};
} // namespace

LoadedObject::Session::Session() : process(getpid()) {
  auto control = unwrap(orc::SelfExecutorProcessControl::Create(
                            nullptr, std::make_unique<orc::InPlaceTaskDispatcher>()),
                        "cannot start the JIT");
  execution = std::make_unique<orc::ExecutionSession>(std::move(control));
  execution->setErrorReporter([](Error error) {
    std::string text = toString(std::move(error));
    if (linkErrors)
      *linkErrors += (linkErrors->empty() ? "" : "; ") + text;
  });
  layer = std::make_unique<orc::ObjectLinkingLayer>(
      *execution, execution->getExecutorProcessControl().getMemMgr());
  layer->addPlugin(std::make_shared<OneMapping>());

  runtime = &execution->createBareJITDylib("runtime");
  orc::SymbolMap symbols;
  for (const RuntimeSymbol &symbol : getRuntimeSymbols())
    symbols[execution->intern(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                               JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  check(runtime->define(orc::absoluteSymbols(std::move(symbols))), "cannot define runtime symbols");
}

LoadedObject::Session &LoadedObject::getSession() {
  static std::atomic<Session *> current{nullptr};
  Session *session = current.load(std::memory_order_acquire);
  while (!session || session->process != getpid()) {
    auto *made = new Session();
    if (current.compare_exchange_strong(session, made))
      return *made;
    check(made->execution->endSession(), "cannot end a JIT session");
    delete made;
  }
  return *session;
}

LoadedObject::LoadedObject() = default;

std::unique_ptr<LoadedObject> LoadedObject::load(StringRef object, StringRef symbol) {
  Session &session = getSession();
  std::unique_ptr<LoadedObject> loaded(new LoadedObject());
  std::string name = symbol.str() + "." + std::to_string(session.numLoaded.fetch_add(1));
  orc::JITDylib &library = session.execution->createBareJITDylib(std::move(name));
  loaded->code.reset(new Code{&session, &library});
  library.addToLinkOrder(*session.runtime);

  LinkErrorCollector errors;
  check(session.layer->add(library, MemoryBuffer::getMemBufferCopy(object, symbol)),
        "cannot read the kernel's object");
  auto found = session.execution->lookup({&library}, session.execution->intern(symbol));
  if (!found) {
    std::string text = toString(found.takeError());
    throw InternalError("cannot link kernel '" + symbol.str() +
                        "': " + (errors.text.empty() ? text : errors.text));
  }
  loaded->address = found->getAddress().toPtr<void *>();
  return loaded;
}

LoadedObject::~LoadedObject() {
  // A forked child must not use the parent's session.
  if (code && code->session->process == getpid())
    consumeError(code->session->execution->removeJITDylib(*code->library));
}
