// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of memory builtins that are given as strings, and the checks that loads,
// stores, atomics and block pointers share. Errors list what is valid.

#ifndef TESSERA_LIB_FRONTEND_MEMORYOPTIONS_H
#define TESSERA_LIB_FRONTEND_MEMORYOPTIONS_H

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Frontend/TileBuilder.h"

namespace tessera {

/// "" or ".ca"; the dot may be left out.
tile::CacheModifier parseCacheModifier(llvm::StringRef text, bool isStore);
tile::EvictionPolicy parseEvictionPolicy(llvm::StringRef text);
/// NaN is for floats alone.
tile::Padding parsePadding(llvm::StringRef text, DType dtype);
tile::MemSemantic parseMemSemantic(llvm::StringRef text, tile::MemSemantic byDefault,
                                   llvm::ArrayRef<tile::MemSemantic> valid);
tile::MemScope parseMemScope(llvm::StringRef text);
/// The read-modify-write called `kind` for this element type (E047).
tile::AtomicKind chooseAtomicKind(llvm::StringRef kind, DType dtype, llvm::StringRef user);

/// The type of a pointer or a tile of pointers (E044).
const ValueType &requirePointer(const Operand &ptr, llvm::StringRef user);
/// Throws for a pointer to const (E046).
void requireWritable(const ValueType &pointer, llvm::StringRef user);
/// Throws unless the mask is none, or bool (E045).
void checkMask(const Operand &mask, llvm::StringRef user);
bool isNumberOperand(const Operand &x);
/// Throws unless `x` can be repeated to the pointers' shape (E045).
void checkBroadcastsTo(const Operand &x, const ValueType &pointer, llvm::StringRef what);

} // namespace tessera

#endif // TESSERA_LIB_FRONTEND_MEMORYOPTIONS_H
