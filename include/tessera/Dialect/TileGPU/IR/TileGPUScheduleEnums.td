// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enums of the attributes of a schedule.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEENUMS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEENUMS_TD

include "mlir/IR/EnumAttr.td"

class TileGPU_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::tilegpu";
}

def TileGPU_NodeRole : TileGPU_Enum<"NodeRole", "what an op of a scheduled loop is", [
  I32EnumAttrCase<"Copy", 0, "copy">, I32EnumAttrCase<"MMA", 1, "mma">,
  I32EnumAttrCase<"Vector", 2, "vector">, I32EnumAttrCase<"Store", 3, "store">]>;

def TileGPU_CopyKind : TileGPU_Enum<"CopyKind", "what fills the slots of a ring", [
  I32EnumAttrCase<"CpAsync", 0, "cp_async">, I32EnumAttrCase<"TMA", 1, "tma">,
  I32EnumAttrCase<"Threads", 2, "threads">]>;

def TileGPU_ProgramOrder : TileGPU_Enum<"ProgramOrder", "which programs come first", [
  I32EnumAttrCase<"Grid", 0, "grid">, I32EnumAttrCase<"Reversed", 1, "reversed">,
  I32EnumAttrCase<"Balanced", 2, "balanced">]>;

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEENUMS_TD
