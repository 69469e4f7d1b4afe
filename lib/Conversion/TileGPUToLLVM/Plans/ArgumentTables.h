// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of arguments. A kernel that picks one of many arguments by an index reads it from a table
// in its parameters. The arguments themselves stay parameters, too, so their numbers and all facts
// about them stay the same. A launch passes the tables behind the tensor maps.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_ARGUMENTTABLES_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_ARGUMENTTABLES_H

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// On a pointer argument of a tile.func: the type of the table that it points to.
inline constexpr llvm::StringLiteral kArgumentTableAttr = "tessera.argument_table";

/// Replaces lookups of consecutive arguments of the module's kernel by loads from tables, and adds
/// the tables to the module's `tilegpu.launch`. Does nothing if the module has none, since a launch
/// passes the arguments alone then. Few items stay for selects, which are as fast.
void makeArgumentTables(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_ARGUMENTTABLES_H
