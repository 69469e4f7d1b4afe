// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs and functions: ids, func, call, return; promises to the compiler (assume, hint) and
// messages to the user (assert, print).

#ifndef TESSERA_DIALECT_TILE_TILEPROGRAMOPS_TD
#define TESSERA_DIALECT_TILE_TILEPROGRAMOPS_TD

include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "tessera/Dialect/Tile/IR/TileOpBase.td"

def Tile_FuncOp : Tile_Op<"func", [
    Tile_FewRegisters,
    AffineScope, AutomaticAllocationScope, CallableOpInterface, FunctionOpInterface,
    IsolatedFromAbove]> {
  let summary = "A kernel, or a function that kernels call";
  let description = [{
    A public `tile.func` is a kernel, which the grid runs once per program. Its arguments are
    scalars and pointers, and it returns nothing. An argument attribute `tile.divisibility = 16 :
    i64` promises a multiple of 16 (for a pointer, of bytes). A private one is a device function:
    any types, any results, and it is inlined unless it is marked `noinline`.

    The body is one block: control flow is `scf`.

    Rules: (F1) a kernel has no results; (F2) kernel arguments are scalars,
    pointers or descriptors, or of a type of a target that a launch makes; (F3) the body has exactly one block.

    ```mlir
    tile.func @copy(%src: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
      tile.return
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs,
    UnitAttr:$noinline);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
    CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>", "{}">:$attrs,
    CArg<"::llvm::ArrayRef<::mlir::DictionaryAttr>", "{}">:$argAttrs)>];
  let extraClassDeclaration = [{
    /// A kernel is run by a grid; any other function is called from one.
    bool isKernel() { return isPublic() && !isDeclaration(); }
    ::mlir::Region *getCallableRegion() { return isExternal() ? nullptr : &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ReturnOp : Tile_Op<"return", [
    Tile_FewRegisters, Pure, HasParent<"FuncOp">, ReturnLike, Terminator]> {
  let summary = "The end of a function, with its results";
  let description = [{
    Rules: (R1) the operand types are the function's result types.

    ```mlir
    tile.return %sum : tensor<64xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Any>:$operands);
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange{}); }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Tile_CallOp : Tile_Op<"call", [CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A call of a device function";
  let description = [{
    Rules: (C1) the callee is a private `tile.func`; (C2) operand and result
    types are the callee's.

    ```mlir
    %y = tile.call @relu(%x) : (tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Tile_Any>:$operands,
    OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let results = (outs Variadic<Tile_Any>:$results);
  let assemblyFormat = "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)";
  let builders = [OpBuilder<(ins "FuncOp":$callee, "::mlir::ValueRange":$operands), [{
    $_state.addOperands(operands);
    $_state.addAttribute("callee", ::mlir::SymbolRefAttr::get(callee));
    $_state.addTypes(callee.getFunctionType().getResults());
  }]>];
  let extraClassDeclaration = [{
    operand_range getArgOperands() { return getOperands(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() { return getOperandsMutable(); }
    ::mlir::CallInterfaceCallable getCallableForCallee() {
      return (*this)->getAttrOfType<::mlir::SymbolRefAttr>("callee");
    }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      (*this)->setAttr("callee", ::llvm::cast<::mlir::SymbolRefAttr>(callee));
    }
  }];
}

def Tile_ProgramIdOp : Tile_Op<"program_id", [Tile_FewRegisters, Pure]> {
  let summary = "The index of this program along an axis of the grid";
  let description = [{
    Rules: (P1) the axis is 0, 1 or 2.

    ```mlir
    %pid = tile.program_id 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Tile_FewRegisters, Pure]> {
  let summary = "The number of programs along an axis of the grid";
  let description = [{
    Rules: (P1) the axis is 0, 1 or 2.

    ```mlir
    %n = tile.num_programs 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_ClockOp : Tile_Op<"clock", [MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "The time in nanoseconds since an unspecified start";
  let description = [{
    Read once a program, where the op stands among other events. It never goes
    back on one processor.

    ```mlir
    %now = tile.clock
    ```
  }];
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_AssertOp : Tile_Op<"assert", [Tile_NamesProgram, MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "A condition that must hold, or the launch fails";
  let description = [{
    If the condition is false, the launch fails with the message and the place. With a tile, every
    element must hold. The front-end emits it only with the option `debug`.

    ```mlir
    tile.assert %ok, "index out of range" : tensor<64xi1>
    ```
  }];
  let arguments = (ins Tile_BoolLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

def Tile_PrintOp : Tile_Op<"print", [Tile_NamesProgram, MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "Print values while a kernel runs";
  let description = [{
    One line an element: the program's ids, the element's index, the prefix and
    the values. `is_signed` says how each integer operand is read.

    Rules: (P1) `is_signed` has one entry an operand.

    ```mlir
    tile.print "x = " : %x {hex = false, is_signed = array<i32: 1>} : tensor<64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$prefix, BoolAttr:$hex, DenseI32ArrayAttr:$is_signed,
                       Variadic<Tile_AnyLike>:$args);
  let assemblyFormat = "$prefix (`:` $args^)? attr-dict (`:` type($args)^)?";
  let hasVerifier = 1;
}

def Tile_AssumeOp : Tile_Op<"assume", [Tile_FewRegisters, MemoryEffects<[MemWrite<Tile_Events>]>]> {
  let summary = "A condition that the user promises";
  let description = [{
    The compiler may rely on the condition; nothing checks it.

    ```mlir
    tile.assume %positive
    ```
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}

def Tile_BarrierOp : Tile_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All memory operations of the program before it are done";
  let description = [{
    A load that must see what another lane of the same program stored needs one
    between the two.

    ```mlir
    tile.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_HintOp : Tile_Op<"hint", [
    Tile_MoveOpInterface, Tile_CostOpInterface, Tile_FewRegisters, Pure, SameOperandsAndResultType]> {
  let summary = "A value, with promises about its elements";
  let description = [{
    The result is the operand. Each list has one entry per dimension (one entry for a scalar). Along
    dimension d, every aligned run of `contiguity[d]` elements increases by one. Every aligned run
    of `constancy[d]` elements is equal. The first element of every contiguous run is a multiple of
    `divisibility[d]`. Nothing checks it.

    Rules: (H1) at least one list is given; (H2) each list has one entry a
    dimension, at least one; (H3) entries are positive.

    ```mlir
    %q = tile.hint %p {divisibility = array<i64: 16>} : tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_AnyLike:$source, OptionalAttr<DenseI64ArrayAttr>:$divisibility,
    OptionalAttr<DenseI64ArrayAttr>:$contiguity, OptionalAttr<DenseI64ArrayAttr>:$constancy);
  let results = (outs Tile_AnyLike:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static Motion getMotion() { return Motion::Stays; }
    static ElementCost getElementCost() { return ElementCost::None; }
  }];
}

def Tile_LookupOp : Tile_Op<"lookup", [Tile_FewRegisters, Pure]> {
  let summary = "The scalar of a list at an index that is known at run time";
  let description = [{
    The index is unsigned and counts from 0. An index behind the end gives the last item. So the op
    never fails, and passes may move it out of a branch.

    A kernel finds the items that are consecutive arguments in the table of its arguments. All other
    lists become a tree of selects.

    Rules: (L1) there is at least one item; (L2) all items have the type of the result.

    ```mlir
    %r = tile.lookup %i, [%p, %q, %p] : i32, !tile.ptr<f32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[I32, I64]>:$index, Variadic<Tile_Scalar>:$items);
  let results = (outs Tile_Scalar:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // TESSERA_DIALECT_TILE_TILEPROGRAMOPS_TD
