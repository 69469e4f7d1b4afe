# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`triton.compile(ASTSource(...))`."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Mapping, Optional, Union

import tessera
import tessera.compiler.sending  # noqa: F401  (kernels of workers are pickled)
from tessera.compiler.compile import build
from tessera.frontend.signature import DescriptorSpec, TupleSpec, ValueSpec, kernel_name
from tessera.language import types
from tessera.language.callables import JITCallable
from tessera.machine.devices import GPUTarget
from tessera.runtime.compiling import compile_file, compile_specialised
from tessera.runtime.hooks import LazyDict
from tessera.runtime.kernel import CompiledKernel
from tessera.runtime.match import leaves
from tessera.runtime.signatures import value_spec
from triton.compiler.effects import Effects
from triton.backends.compiler import TesseraBackend
from triton.runtime.cache import get_cache_manager, triton_key
from triton.runtime.driver import driver

__all__ = [
    "ASTSource",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "compile",
    "make_backend",
    "triton_key",
    "type_of_argument",
]

_SIZES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


class ASTSource:
    """A kernel and the types of its arguments.

    `signature` has a type for each parameter by name, "constexpr" for a constant; `constexprs`
    the values of constants, by name or by `(index,)`; `attrs` what divides arguments, as
    `{(index,): [["tt.divisibility", 16]]}`.
    """

    def __init__(
        self,
        fn: JITCallable,
        signature: Mapping[str, Any],
        constexprs: Optional[Mapping[Any, Any]] = None,
        attrs: Optional[Mapping[Any, Any]] = None,
    ) -> None:
        for name in signature:
            if not isinstance(name, str):
                raise TypeError(f"the signature names parameters, got {name!r}")
        names = [param.name for param in fn.params]
        self.fn = fn
        self.name = fn.__name__
        self.ext = "ttir"
        self.signature = signature
        self.constants: dict[tuple[int, ...], Any] = {
            (names.index(key),) if isinstance(key, str) else tuple(key): value
            for key, value in (constexprs or {}).items()
        }
        self.attrs = dict(attrs or {})

    def hash(self) -> str:
        """Equal for sources that give the same kernel."""
        from tessera.digests import digest

        constants = [(place, repr(value)) for place, value in sorted(self.constants.items())]
        fields = (self.fn.cache_key, self.signature, constants, self.attrs)
        return digest(*map(repr, fields)).hex()

    def make_ir(
        self, target: GPUTarget, options: Any, codegen_fns: Any, module_map: Any, context: Any
    ) -> Effects:
        """The facts that callers need about the kernel's IR: which arguments it stores to."""
        # torch 2.11 has the values of this call's numbers for constants; others may come.
        plain = {
            (param.num,): self.constants[(param.num,)]
            for param in self.fn.params
            if not param.is_constexpr and self.constants.get((param.num,)) is not None
        }
        known = {path: value for path, value in self.constants.items() if path not in plain}
        specs = _specs(self, known)
        name = kernel_name(self.fn, specs)
        stored = set(build(self.fn, specs, options).module.stored_arguments(name))
        slot = count = 0
        pointers: list[int] = []
        written: list[int] = []
        for index, spec in enumerate(specs):
            # A parameter becomes several arguments. The first one is the pointer, if there is one.
            slots = len(list(leaves("", spec)))
            if slots and is_pointer(spec):
                pointers.append(count)
                if stored & set(range(slot, slot + slots)):
                    written.append(count)
            slot += slots
            # To torch a descriptor has as many strides as extents.
            extents = len(spec.block_shape) if isinstance(spec, DescriptorSpec) else 0
            count += 1 + 2 * extents if slots and (index,) not in plain else 0
        return Effects(name, count, pointers, written)


class IRSource:
    """The file of a stage, to go on compiling from."""

    def __init__(
        self, path: Union[str, "os.PathLike[str]"], context: Any = None, backend: Any = None
    ):
        self.path = os.fspath(path)
        self.ext = self.path.rpartition(".")[2]
        with open(self.path, encoding="utf-8") as file:
            self.src = file.read()


def compile(
    src: Union[ASTSource, IRSource, str],
    target: Optional[GPUTarget] = None,
    options: Optional[Mapping[str, Any]] = None,
    **_: Any,
) -> CompiledKernel:
    """Compiles a kernel without launching it, for this machine or another `target`.

    The caller of machine code for a GPU passes only the arguments. So the code takes no tensor
    maps, and no launch is refused. With the option `tensor_maps`, the result is the kernel that a
    launch of a `@jit` function compiles. On a CPU the kernel itself does the launches, those
    outside the limits of its code by other code. Machine code for a GPU is put where
    TRITON_CACHE_DIR says, as `<key of kernel.hash>/<name>.cubin`.
    """
    if target is None:
        target = driver.active.get_current_target()
    if not hasattr(target, "backend"):
        raise TypeError(f"the target is a GPUTarget, got {type(target).__name__}")
    on_cpu = target.backend == "cpu"
    # Kernels for Triton promise what does not hold, and `debug` there is about assertions alone.
    # Inductor always asks for it, and its matmuls promise runs that wrap at the last row.
    unchecked = {"sanitize_accesses": False, "sanitize_promises": False}
    given = {"tensor_maps": on_cpu, **unchecked, **(options or {})}
    parsed = make_backend(target).parse_options(given)
    if not isinstance(src, ASTSource):
        path = src.path if isinstance(src, IRSource) else os.fspath(src)
        return compile_file(path, parsed)
    specs = _specs(src)
    kernel = compile_specialised(src.fn, (src.hash(),), specs, parsed)[0]
    kernel.src = src
    if on_cpu and kernel._has_limits:
        without = dataclasses.replace(parsed, tensor_maps=False)
        kernel._extend(compile_specialised(src.fn, (src.hash(),), specs, without)[0])
    if target.backend == "cuda" and os.environ.get("TRITON_CACHE_DIR") and "cubin" in kernel.asm:
        get_cache_manager(kernel.hash).put(kernel.asm["cubin"], f"{kernel.name}.cubin")
    return kernel


def make_backend(target: GPUTarget) -> TesseraBackend:
    """The compiler for a target."""
    return TesseraBackend(target)


def _specs(src: ASTSource, constants: Optional[Mapping[Any, Any]] = None) -> list[Any]:
    """The specialisation of each parameter."""
    known = src.constants if constants is None else constants
    from tessera.frontend.signature import ConstSpec

    def spec(path: tuple[int, ...], type: Any, default: Any) -> Any:
        if path in known:
            return ConstSpec(known[path])
        if isinstance(type, tuple):
            cls = type.__class__ if hasattr(type, "_fields") else None
            items = [spec((*path, index), item, None) for index, item in enumerate(type)]
            return TupleSpec(items, cls)
        if type is None or type == "constexpr":
            return ConstSpec(default)
        divisibility = 0
        for name, value in src.attrs.get(path, ()):
            if name == "tt.divisibility":
                divisibility = value
        text = str(type)
        if text.startswith("tensordesc"):
            return _descriptor_spec(text, DescriptorSpec)
        return value_spec(types.str_to_ty(text), divisibility)

    specs = []
    for index, param in enumerate(src.fn.params):
        if param.name not in src.signature and (index,) not in src.constants:
            if not param.has_default:
                raise tessera.ArgumentError(
                    "E051", f"the signature of `{src.name}` lacks the parameter `{param.name}`"
                )
        default = types.unwrap(param.default) if param.has_default else None
        specs.append(spec((index,), src.signature.get(param.name), default))
    return specs


def is_pointer(spec: Any) -> bool:
    """True if memory lies behind a parameter."""
    if isinstance(spec, TupleSpec):
        return any(map(is_pointer, spec.items))
    if isinstance(spec, ValueSpec):
        return bool(spec.type.kind == types.KIND_POINTER)
    return isinstance(spec, DescriptorSpec)


def _descriptor_spec(text: str, kind: Any) -> Any:
    """The specialisation for a type such as "tensordesc<fp16[64, 32]>"."""
    name, _, shape = text.partition("<")[2].rstrip(">").partition("[")
    block = tuple(int(extent) for extent in shape.rstrip("]").split(","))
    pointer = value_spec(types.str_to_ty("*" + name), 16)
    shapes = [value_spec(types.int32) for _ in block]
    strides = [value_spec(types.int64, 16) for _ in block[1:]]
    from tessera.frontend.signature import KnownSpec

    return kind((pointer, *shapes, *strides, KnownSpec(1)), block, "zero")


def type_of_argument(arg: Any, specialize: bool = False) -> str:
    """How signatures call the type that an argument has in a kernel."""
    from tessera.runtime.arrays import pointer_of
    from tessera.runtime.specialize import integer_type, is_descriptor
    from triton._utils import canonicalize_dtype

    if arg is None or isinstance(arg, (str, JITCallable)):
        return "constexpr"
    if isinstance(arg, bool):
        return "u1"
    if isinstance(arg, int):
        return (
            "constexpr" if specialize and arg == 1 else canonicalize_dtype(integer_type(arg, "arg"))
        )
    if isinstance(arg, float):
        return "fp32"
    if is_descriptor(arg):
        block = ", ".join(str(int(extent)) for extent in arg.block_shape)
        return f"tensordesc<{type_of_argument(arg.base)[1:]}[{block}]>"
    pointer = pointer_of(arg, "arg")
    if pointer is None:
        raise TypeError(f"failed to specialize argument of type: {type(arg)}")
    return "*" + canonicalize_dtype(pointer.dtype)
