# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python functions that kernels call: those that are compiled, and those that give constants.

`JITCallable` is the base of everything that kernel code may call by visiting its source:
the runtime's JITFunction and the library functions of `tessera.language.standard`.
"""

from __future__ import annotations

import linecache
from types import CodeType, FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generic,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    TypeVar,
)

from tessera.errors import CompilationError
from tessera.settings import note_change

if TYPE_CHECKING:
    from typing_extensions import ParamSpec
    from typing_extensions import TypeVar as TypeVarWithDefault

    P = ParamSpec("P", default=...)
    R = TypeVarWithDefault("R", default=Any)
else:
    from typing import ParamSpec

    P = ParamSpec("P")
    R = TypeVar("R")

Self = TypeVar("Self")


class Param(NamedTuple):
    """A parameter of a @jit function, as its `def` spells it."""

    name: str
    annotation: Any
    """The evaluated annotation or its text; None where there is none."""
    has_default: bool
    given_default: Any
    kind: str
    """'positional', 'keyword' (after `*`) or 'varargs' (`*args`)."""
    is_constexpr: bool
    num: int = 0
    """Its place, from 0."""
    do_not_specialize: bool = False
    do_not_specialize_on_alignment: bool = False

    @property
    def default(self) -> Any:
        """Its default; `inspect.Parameter.empty` if it has none, which code written for Triton
        compares with."""
        if self.has_default:
            return self.given_default
        from inspect import Parameter

        return Parameter.empty

    @property
    def is_const(self) -> bool:
        """True if it is annotated as a pointer through which nothing is stored."""
        text = self.annotation if isinstance(self.annotation, str) else str(self.annotation)
        name = getattr(self.annotation, "__name__", text).rpartition(".")[2]
        return name == "const" or text.startswith("*k")


class ShownAsFunction:
    """The object that stands for the Python function `fn`, and is shown as that."""

    fn: Any

    @property
    def __wrapped__(self) -> Any:
        """The Python function, for `inspect.signature`, `help` and what shows its source."""
        return self.fn

    def __get__(self: Self, owner: Any, cls: Any = None) -> Self:
        # With this, `help` takes it for a function and shows its parameters. As an attribute of
        # a class it stays what it is, since `self.kernel[grid](...)` is no call of a method.
        return self


class JITCallable(ShownAsFunction):
    """A Python function whose source is compiled rather than run.

    Attributes:
      fn: the Python function.
      noinline: whether a call makes a function of its own instead of inlining.
      params: the parameters in order, found on first use.
    """

    def __init__(self, fn: FunctionType, noinline: bool = False) -> None:
        self.fn: FunctionType = fn
        self.noinline = noinline
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.__annotations__ = fn.__annotations__
        self._text: Optional[Sequence[str]] = None
        """The lines of the file as they were when the function was made."""
        self._parsed: Optional[tuple[CodeType, Any]] = None
        """The front-end's parse (frontend/source.py), and its code."""
        self._written: Optional[tuple[CodeType, Any]] = None
        """Its text and code without a parse (frontend/source.py)."""
        self._params: Optional[tuple[Sequence[Any], Sequence[Param]]] = None
        self._is_rewritten = False
        """True if the text is not that of `fn` any more."""
        if not (fn.__module__ or "").startswith("tessera."):
            self._text = file_lines(fn)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("fn", "noinline") and name in vars(self):
            note_change()
        super().__setattr__(name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        on_the_host = ""
        if self.__name__ == "cdiv" and self.__module__.startswith("tessera."):
            on_the_host = "; in host code, call tessera.cdiv"
        raise ValueError(
            f"`{self.__name__}` can only be called inside a @jit function; "
            f"did you forget to add @jit to the caller?{on_the_host}"
        )

    def __repr__(self) -> str:
        code = self.fn.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return f"<jit function {self.__module__}.{self.__qualname__}({', '.join(names)})>"

    @property
    def params(self) -> Sequence[Param]:
        """Its parameters, in order."""
        known = self._params
        now = _declared(self.fn)
        if known is None or not _are_same(known[0], now):
            known = self._params = now, read_params(self.fn)
        return known[1]

    @property
    def _globals(self) -> Mapping[str, Any]:
        """The values of free names: module globals, overridden by closure variables."""
        closure = self.fn.__closure__
        if not closure:
            return self.fn.__globals__
        merged = dict(self.fn.__globals__)
        for name, cell in zip(self.fn.__code__.co_freevars, closure):
            try:
                merged[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                pass
        return merged


def file_lines(fn: FunctionType) -> Optional[Sequence[str]]:
    """The lines of the file that a function is from, as it is now; None if they are not to be had.

    Functions of one file share them, and for each but the first it is asked only whether the
    file is still the same one.
    """
    file = fn.__code__.co_filename
    linecache.checkcache(file)
    return linecache.getlines(file, fn.__globals__) or None


def _declared(fn: FunctionType) -> Sequence[Any]:
    """The source of the parameters."""
    keywords = fn.__kwdefaults__ or {}
    return (fn.__code__, fn.__defaults__, *keywords, *keywords.values())


def _are_same(before: Sequence[Any], now: Sequence[Any]) -> bool:
    return len(before) == len(now) and all(a is b for a, b in zip(before, now))


def is_constexpr_annotation(annotation: Any) -> bool:
    """True if a parameter's annotation makes it a compile-time constant."""
    if isinstance(annotation, str):
        # Under `from __future__ import annotations`, a string is one within a string.
        return annotation.strip("'\" ").rsplit(".", 1)[-1] == "constexpr"
    return getattr(annotation, "__name__", None) == "constexpr"


def read_params(fn: FunctionType) -> Sequence[Param]:
    """The parameters of `fn`, in order.

    Raises CompilationError (E005) for `**kwargs`.
    """
    code = fn.__code__
    has_varargs, has_kwargs = bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)
    if has_kwargs:
        index = code.co_argcount + code.co_kwonlyargcount + has_varargs
        raise CompilationError.at_function(
            fn,
            "E005",
            f"`{fn.__name__}` takes `**{code.co_varnames[index]}`",
            "name each keyword parameter",
        )
    names = code.co_varnames
    count, keyword_only = code.co_argcount, code.co_kwonlyargcount
    annotations = fn.__annotations__
    defaults = fn.__defaults__ or ()
    keyword_defaults = fn.__kwdefaults__ or {}

    def param(name: str, kind: str, has_default: bool = False, default: Any = None) -> Param:
        annotation = annotations.get(name)
        return Param(
            name, annotation, has_default, default, kind, is_constexpr_annotation(annotation)
        )

    params = []
    for index, name in enumerate(names[:count]):
        position = index - (count - len(defaults))
        if position >= 0:
            params.append(param(name, "positional", True, defaults[position]))
        else:
            params.append(param(name, "positional"))
    if has_varargs:
        params.append(param(names[count + keyword_only], "varargs"))
    for name in names[count : count + keyword_only]:
        has_default = name in keyword_defaults
        params.append(param(name, "keyword", has_default, keyword_defaults.get(name)))
    return tuple(one._replace(num=num) for num, one in enumerate(params))


class ConstexprFunction(Generic[P, R]):
    """A Python function that kernels call on constants while they are compiled.

    Made by the decorator `tessera.constexpr_function`; elsewhere it is called as usual.
    """

    __tessera_constexpr_function__ = True

    def __init__(self, fn: Callable[P, R]) -> None:
        self.fn = fn
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__

    @property
    def src(self) -> str:
        """Its text from the `def` on, not indented."""
        import inspect
        import textwrap

        text = textwrap.dedent(inspect.getsource(self.fn))
        return text[text.index("def ") :]

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The Python function, for `inspect.signature`, `help` and what shows its source."""
        return self.fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<constexpr function {self.__module__}.{self.__name__}>"

    def __get__(self, owner: Any, cls: Any = None) -> Any:
        return self if owner is None else MethodType(self, owner)


def constexpr_function(fn: Callable[P, R]) -> ConstexprFunction[P, R]:
    """Lets kernels call the Python function `fn` on constants; its result is a constant.

    `fn` runs while the kernel is compiled, and gets plain values; elsewhere it is called as
    usual. An argument that is known at run time alone is an error (E019), an exception of `fn`
    is E016. Source: Triton language 3.6/3.9.

    Example:
        import tessera
        import tessera.language as tl

        @tessera.constexpr_function
        def padded(n):
            return max(16, tessera.next_power_of_2(n))

        @tessera.jit
        def kernel(n: tl.constexpr):
            assert tl.zeros((padded(n),), tl.float32).shape == (128,)

        kernel[(1,)](100)
        assert padded(5) == 16
    """
    return ConstexprFunction(fn)
