// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILE_TILEATTRIBUTES_TD
#define TESSERA_DIALECT_TILE_TILEATTRIBUTES_TD

include "mlir/IR/EnumAttr.td"
include "tessera/Dialect/Tile/IR/TileDialect.td"

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::tile";
}

def Tile_CacheModifier : Tile_Enum<"CacheModifier", "where in the caches an access should stay", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"CA", 1, "ca">, I32EnumAttrCase<"CG", 2, "cg">, I32EnumAttrCase<"CS", 3, "cs">,
  I32EnumAttrCase<"CV", 4, "cv">, I32EnumAttrCase<"WB", 5, "wb">, I32EnumAttrCase<"WT", 6, "wt">]>;

def Tile_EvictionPolicy : Tile_Enum<"EvictionPolicy", "how soon a cache line may leave", [
  I32EnumAttrCase<"Normal", 0, "evict_normal">, I32EnumAttrCase<"First", 1, "evict_first">,
  I32EnumAttrCase<"Last", 2, "evict_last">]>;

def Tile_MemSemantic : Tile_Enum<"MemSemantic", "memory ordering of an atomic", [
  I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
  I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcquireRelease", 3, "acq_rel">]>;

def Tile_MemScope : Tile_Enum<"MemScope", "who must see an atomic in order", [
  I32EnumAttrCase<"CTA", 0, "cta">, I32EnumAttrCase<"GPU", 1, "gpu">, I32EnumAttrCase<"System", 2, "sys">]>;

def Tile_AtomicKind : Tile_Enum<"AtomicKind", "what an atomic read-modify-write does", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"FAdd", 1, "fadd">,
  I32EnumAttrCase<"And", 2, "and">, I32EnumAttrCase<"Or", 3, "or">, I32EnumAttrCase<"Xor", 4, "xor">,
  I32EnumAttrCase<"Max", 5, "max">, I32EnumAttrCase<"Min", 6, "min">,
  I32EnumAttrCase<"UMax", 7, "umax">, I32EnumAttrCase<"UMin", 8, "umin">,
  I32EnumAttrCase<"FMax", 9, "fmax">, I32EnumAttrCase<"FMin", 10, "fmin">,
  I32EnumAttrCase<"Exchange", 11, "xchg">]>;

def Tile_Padding : Tile_Enum<"Padding", "what a load outside the array gives", [
  I32EnumAttrCase<"Zero", 0, "zero">, I32EnumAttrCase<"NaN", 1, "nan">]>;

def Tile_RoundingMode : Tile_Enum<"RoundingMode", "how a narrower float is chosen", [
  I32EnumAttrCase<"NearestEven", 0, "rtne">, I32EnumAttrCase<"TowardZero", 1, "rtz">]>;

def Tile_InputPrecision : Tile_Enum<"InputPrecision", "how f32 operands of a dot may be rounded", [
  I32EnumAttrCase<"TF32", 0, "tf32">, I32EnumAttrCase<"TF32x3", 1, "tf32x3">, I32EnumAttrCase<"IEEE", 2, "ieee">,
  I32EnumAttrCase<"BF16x3", 3, "bf16x3">, I32EnumAttrCase<"BF16x6", 4, "bf16x6">]>;

def Tile_ScaleFormat : Tile_Enum<"ScaleFormat", "element format of an operand of dot_scaled", [
  I32EnumAttrCase<"E2M1", 0, "e2m1">, I32EnumAttrCase<"E4M3", 1, "e4m3">, I32EnumAttrCase<"E5M2", 2, "e5m2">,
  I32EnumAttrCase<"BF16", 3, "bf16">, I32EnumAttrCase<"FP16", 4, "fp16">]>;

def Tile_Signedness : Tile_Enum<"Signedness", "how the bits of an integer are read", [
  I32EnumAttrCase<"Signed", 0, "signed">, I32EnumAttrCase<"Unsigned", 1, "unsigned">]>;

def Tile_ShiftKind : Tile_Enum<"ShiftKind", "direction of a shift and what it shifts in", [
  I32EnumAttrCase<"Left", 0, "left">, I32EnumAttrCase<"RightLogical", 1, "right_logical">,
  I32EnumAttrCase<"RightArithmetic", 2, "right_arithmetic">]>;

#endif // TESSERA_DIALECT_TILE_TILEATTRIBUTES_TD
