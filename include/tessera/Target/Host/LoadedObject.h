// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A relocatable object linked into this process.

#ifndef TESSERA_TARGET_HOST_LOADEDOBJECT_H
#define TESSERA_TARGET_HOST_LOADEDOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace tessera::host {

class LoadedObject {
public:
  /// Links the object and finds `symbol` in it. Throws InternalError if the object is damaged, or
  /// uses a symbol that is neither its own nor a runtime symbol.
  static std::unique_ptr<LoadedObject> load(llvm::StringRef object, llvm::StringRef symbol);
  /// Frees the code. No thread may be running it.
  ~LoadedObject();
  LoadedObject(const LoadedObject &) = delete;
  LoadedObject &operator=(const LoadedObject &) = delete;

  void *getAddress() const { return address; }

private:
  struct Session;
  struct Code;
  static Session &getSession();
  LoadedObject();

  std::unique_ptr<Code> code;
  void *address = nullptr;
};

/// A symbol that generated code may call.
struct RuntimeSymbol {
  llvm::StringLiteral name;
  void *address;
};

/// The closed table of these symbols: every function that the code generator may call on any CPU,
/// and the runtime's entry points. An object that needs others fails to load.
llvm::ArrayRef<RuntimeSymbol> getRuntimeSymbols();

} // namespace tessera::host

#endif // TESSERA_TARGET_HOST_LOADEDOBJECT_H
