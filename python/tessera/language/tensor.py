# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tl.tensor`, and how builtins reach the builder of the kernel being compiled.

A tensor is a value of the core's builder, with its type. A number that kernel code assigns to a
variable (`x = 3`) becomes a scalar tensor, too. Its value remains known, and its IR is emitted only
where it is used, in the region of that use. So it is promoted like any i32, and may still be the
extent of a tile.

An argument whose value a launch specialises on (an integer that is 1) is a tensor like any other.
The compiler may use that value to make code faster (an `if` is decided, a stride is seen to be 1),
but not to make it mean something else. Types, wrapping and division are those of the tensor, and
it cannot be used where a constant is needed.
"""

from __future__ import annotations

import functools
import operator
import threading
from contextlib import contextmanager
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterable,
    Iterator,
    Optional,
    Sequence,
    TypeVar,
    Union,
    cast,
    overload,
)

from tessera import _C
from tessera.errors import UserMistake
from tessera.language import types
from tessera.language.types import (
    KIND_BLOCK_POINTER,
    KIND_DESCRIPTOR,
    KIND_NUMBER,
    KIND_POINTER,
    KIND_TF32_DESCRIPTOR,
    block_pointer_type,
    block_type,
    constexpr,
    descriptor_type,
    dtype,
    pointer_type,
    unwrap,
)
from tessera.settings import note_change

if TYPE_CHECKING:
    from types import EllipsisType

    from tessera.language import atomics as _atomics
    from tessera.language import creation as _creation
    from tessera.language import math as _math
    from tessera.language import memory as _memory
    from tessera.language import reduction as _reduction
    from tessera.language import shape as _shape
    from tessera.language import standard as _standard

    _Index = Union[None, slice, EllipsisType]

__all__ = [
    "Operand",
    "builtin",
    "must_use_result",
    "tensor",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Active(threading.local):
    """The compilation that this thread is in."""

    session: Any = None


active = _Active()

# Arguments that third-party builtins written for the Triton language pass along.
_HIDDEN_ARGUMENTS = ("_semantic", "_builder", "_generator")


def builtin(fn: F) -> F:
    """Marks a function as an operation of the language, run while a kernel is compiled.

    Called elsewhere it raises ValueError.

    Example:
        @tl.builtin
        def rank(x):
            return len(x.shape)  # plain Python, run while the kernel is compiled

        assert rank(tl.zeros((4, 8), tl.float32)) == 2
        assert rank(tl.program_id(0)) == 0
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if active.session is None:
            raise ValueError(
                f"`{fn.__name__}` can only be called inside a @jit function; "
                "did you forget to add @jit?"
            )
        for name in _HIDDEN_ARGUMENTS:
            kwargs.pop(name, None)
        return fn(*args, **kwargs)

    wrapper.__tessera_builtin__ = True  # type: ignore[attr-defined]
    return cast(F, wrapper)


@overload
def must_use_result(x: str) -> Callable[[F], F]: ...
@overload
def must_use_result(x: F, s: Any = True) -> F: ...
def must_use_result(x: Any, s: Any = True) -> Any:
    """Makes it an error (E073) to call a function of kernels and drop its result.

    `@must_use_result` or `@must_use_result("and why")`, above `@jit`, `@constexpr_function` or
    `@builtin`. Source: Triton language 3.6/3.9.

    Example:
        import tessera

        @tessera.must_use_result("it changes nothing")
        @tessera.jit
        def doubled(x):
            return 2 * x

        @tessera.jit
        def kernel(n):
            doubled(n)

        try:
            caught = tessera.compile(kernel, "i32")
        except tessera.CompilationError as error:
            caught = error
        assert caught.id == "E073"
    """
    if isinstance(x, str):
        return lambda fn: must_use_result(fn, x)
    x._must_use_result = s
    return x


def is_builtin(value: Any) -> bool:
    """True if `value` is (a method bound to) an operation of the language."""
    return hasattr(value, "__tessera_builtin__")


_INT_LIMITS = {
    entry: (entry.get_int_min_value(), entry.get_int_max_value())
    for entry in types.BY_CORE_ID
    if entry.is_int()
}


def literal_dtype(value: Any) -> dtype:
    """The dtype that a Python number has as a tensor.

    bool: int1; int: the first of int32, uint32, int64, uint64 that holds it; float: float32,
    or float64 where it is subnormal or out of range in float32. Raises UserMistake (E028)
    for an integer that no type holds.
    """
    if isinstance(value, bool):
        return types.int1
    if isinstance(value, int):
        for candidate in (types.int32, types.uint32, types.int64, types.uint64):
            low, high = _INT_LIMITS[candidate]
            if low <= value <= high:
                return candidate
        raise UserMistake(
            "E028",
            f"the integer {value} does not fit any type: int64 ends at {2**63 - 1}, "
            f"uint64 at {2**64 - 1}",
            "use a smaller constant",
        )
    if isinstance(value, float):
        magnitude = abs(value)
        if magnitude == 0 or magnitude != magnitude or magnitude == float("inf"):
            return types.float32
        return types.float32 if 2.0**-126 <= magnitude <= 3.4028234663852886e38 else types.float64
    raise TypeError(f"a {type(value).__name__} is no number")


def fits(value: int, type: dtype) -> bool:
    """True if an integer (or bool) is a value of a type; True and False are of every type."""
    if isinstance(value, bool) or type.is_floating():
        return True
    low, high = _INT_LIMITS.get(type, (0, -1))
    return low <= value <= high


# Reachable, since code written for Triton reads it, but not completed.
_UNLISTED = {"handle"}


class _WatchedClass(type):
    """A class that signals assignments to its names."""

    def __dir__(cls) -> list[str]:
        return sorted({*super().__dir__()} - _UNLISTED)

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        note_change()

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        note_change()


class tensor(metaclass=_WatchedClass):
    """A value of a kernel: a scalar or a tile of numbers or pointers.

    `x.shape` (a tuple of constants), `x.dtype` (of an element), `x.type`, `x.numel`; the
    operators of Python; and as methods every operation whose first argument is a tensor.
    Source: Triton language 3.6/3.9.

    Example:
        x = tl.arange(0, 8).to(tl.float32)
        assert isinstance(x, tl.tensor)
        assert x.shape == (8,) and x.dtype == tl.float32 and x.numel == 8
        assert (x * x + 1).sum() == 148.0  # a method is the function of that name
    """

    __slots__ = ("_handle", "type", "_constant", "_specialised")

    def __init__(self, handle: Any, type: Optional[dtype] = None, constant: Any = None) -> None:
        self._handle = handle
        self.type: dtype = type if type is not None else from_core_type(_type_of(handle))
        self._constant = constant
        """The Python number that this tensor is known to be; None if it is not known."""
        self._specialised: Any = None
        """The value that it has in this specialisation of the kernel; None if none is known."""

    @staticmethod
    def _known(value: Any) -> "tensor":
        """A scalar tensor that is a number known at compile time, of the literal's own type."""
        return tensor(None, literal_dtype(value), value)

    @staticmethod
    def _of_specialised(value: Any) -> "tensor":
        """A scalar tensor that is `value` in this specialisation of the kernel."""
        result = tensor(tensor._known(value)._value)
        result._specialised = value
        return result

    @property
    def _value(self) -> Any:
        """The value in the builder; that of a known number is made anew at each use."""
        if self._handle is not None:
            return self._handle
        (handle,) = active.session.builder.call("constant", self._constant, to_core_type(self.type))
        return handle

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; `()` for a scalar."""
        return self.type.shape if isinstance(self.type, block_type) else ()

    @property
    def dtype(self) -> dtype:
        """The type of an element."""
        return self.type.scalar

    @property
    def numel(self) -> int:
        """The number of elements."""
        return self.type.numel if isinstance(self.type, block_type) else 1

    @property
    def T(self) -> tensor:
        """The transpose of a matrix (the last two dimensions swapped)."""
        return self.trans()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__()} - _UNLISTED)

    def __repr__(self) -> str:
        return f"a tensor of {describe_type(self.type)}"

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise UserMistake(
            "E032",
            f"the truth value of {describe(self)} is not known when the kernel is compiled",
            "use tl.where, or a scalar condition in `if`",
        )

    __hash__ = object.__hash__

    def __add__(self, other: Operand) -> tensor:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> tensor:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> tensor:
        return binary("sub", self, other)

    def __rsub__(self, other: Operand) -> tensor:
        return binary("sub", other, self)

    def __mul__(self, other: Operand) -> tensor:
        return binary("mul", self, other)

    def __rmul__(self, other: Operand) -> tensor:
        return binary("mul", other, self)

    def __truediv__(self, other: Operand) -> tensor:
        return binary("truediv", self, other)

    def __rtruediv__(self, other: Operand) -> tensor:
        return binary("truediv", other, self)

    def __floordiv__(self, other: Operand) -> tensor:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> tensor:
        return binary("floordiv", other, self)

    def __mod__(self, other: Operand) -> tensor:
        return binary("mod", self, other)

    def __rmod__(self, other: Operand) -> tensor:
        return binary("mod", other, self)

    def __and__(self, other: Operand) -> tensor:
        return binary("and_", self, other)

    def __rand__(self, other: Operand) -> tensor:
        return binary("and_", other, self)

    def __or__(self, other: Operand) -> tensor:
        return binary("or_", self, other)

    def __ror__(self, other: Operand) -> tensor:
        return binary("or_", other, self)

    def __xor__(self, other: Operand) -> tensor:
        return binary("xor", self, other)

    def __rxor__(self, other: Operand) -> tensor:
        return binary("xor", other, self)

    def __lshift__(self, other: Operand) -> tensor:
        return binary("shl", self, other)

    def __rlshift__(self, other: Operand) -> tensor:
        return binary("shl", other, self)

    def __rshift__(self, other: Operand) -> tensor:
        return binary("shr", self, other)

    def __rrshift__(self, other: Operand) -> tensor:
        return binary("shr", other, self)

    def __eq__(self, other: object) -> tensor:  # type: ignore[override]
        return binary("eq", self, other)

    def __ne__(self, other: object) -> tensor:  # type: ignore[override]
        return binary("ne", self, other)

    def __lt__(self, other: Operand) -> tensor:
        return binary("lt", self, other)

    def __le__(self, other: Operand) -> tensor:
        return binary("le", self, other)

    def __gt__(self, other: Operand) -> tensor:
        return binary("gt", self, other)

    def __ge__(self, other: Operand) -> tensor:
        return binary("ge", self, other)

    def __neg__(self) -> tensor:
        return unary("neg", self)

    def __pos__(self) -> tensor:
        return unary("plus", self)

    def __invert__(self) -> tensor:
        return unary("invert", self)

    @builtin
    def logical_and(self, other: Operand) -> tensor:
        """`x and y` of each element, as int1. Source: Triton language 3.6/3.9."""
        return binary("logical_and", self, other)

    @builtin
    def logical_or(self, other: Operand) -> tensor:
        """`x or y` of each element, as int1. Source: Triton language 3.6/3.9."""
        return binary("logical_or", self, other)

    if TYPE_CHECKING:
        # The operations of kernels on tensors, and those that `method` and `add_methods` give the
        # class, for readers and type checkers.
        def __getitem__(self, index: Union[_Index, tuple[_Index, ...]]) -> tensor: ...
        def __index__(self) -> int: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __abs__(self) -> tensor: ...
        def advance(self, offsets: Sequence[Operand]) -> tensor: ...

        abs = _math.abs
        argmax = _standard.argmax
        argmin = _standard.argmin
        argsort = _reduction.argsort
        associative_scan = _reduction.associative_scan
        atomic_add = _atomics.atomic_add
        atomic_and = _atomics.atomic_and
        atomic_cas = _atomics.atomic_cas
        atomic_load = _atomics.atomic_load
        atomic_max = _atomics.atomic_max
        atomic_min = _atomics.atomic_min
        atomic_or = _atomics.atomic_or
        atomic_poll = _standard.atomic_poll
        atomic_store = _atomics.atomic_store
        atomic_xchg = _atomics.atomic_xchg
        atomic_xor = _atomics.atomic_xor
        broadcast_to = _shape.broadcast_to
        cast = _creation.cast
        cdiv = _standard.cdiv
        ceil = _math.ceil
        cos = _math.cos
        cumprod = _standard.cumprod
        cumsum = _standard.cumsum
        erf = _math.erf
        exp = _math.exp
        exp2 = _math.exp2
        expand_dims = _shape.expand_dims
        expm1 = _math.expm1
        flip = _standard.flip
        floor = _math.floor
        gather = _shape.gather
        histogram = _shape.histogram
        item = _creation.item
        load = _memory._descriptor_load
        log = _math.log
        log1p = _math.log1p
        log2 = _math.log2
        max = _standard.max
        min = _standard.min
        permute = _shape.permute
        ravel = _standard.ravel
        reduce = _reduction.reduce
        reduce_or = _standard.reduce_or
        reshape = _shape.reshape
        rsqrt = _math.rsqrt
        scatter = _memory.scatter
        sigmoid = _standard.sigmoid
        sin = _math.sin
        softmax = _standard.softmax
        sort = _reduction.sort
        split = _shape.split
        sqrt = _math.sqrt
        sqrt_rn = _math.sqrt_rn
        store = _memory.store
        sum = _standard.sum
        tan = _math.tan
        tanh = _math.tanh
        to = _creation._to
        topk = _reduction.topk
        trans = _shape.trans
        view = _shape.view
        xor_sum = _standard.xor_sum


setattr(tensor, "handle", vars(tensor)["_value"])

Operand = Union[tensor, int, float]
"""What an operation takes: a tensor, or a number, which becomes a scalar of the type that fits."""

N = TypeVar("N", bound=Operand)
"""A tensor, or a number."""


# --- Types to and from the core ----------------------------------------------------


@functools.lru_cache(maxsize=None)
def to_core_type(type: dtype) -> Any:
    """The `_C.Type` of a type of the language."""
    shape: tuple[int, ...] = ()
    if isinstance(type, block_type):
        shape, type = type.shape, type.element_ty
    if isinstance(type, pointer_type):
        element = type.element_ty
        if isinstance(element, pointer_type):
            raise UserMistake(
                "E029", f"{type} is a pointer to a pointer", "load the address as tl.int64"
            )
        return _C.Type(KIND_POINTER, element._core_id, type.const, shape)
    if isinstance(type, block_pointer_type):
        kind = KIND_BLOCK_POINTER
        if isinstance(type, descriptor_type):
            kind = KIND_TF32_DESCRIPTOR if type._rounds_to_tf32 else KIND_DESCRIPTOR
        return _C.Type(kind, type.element_ty._core_id, False, type.block_shape)
    return _C.Type(KIND_NUMBER, type._core_id, False, shape)


def from_core_type(core: Any) -> dtype:
    """The type of the language that a `_C.Type` is."""
    return _from_core(core.kind, core.dtype, core.is_const, tuple(core.shape))


@functools.lru_cache(maxsize=None)
def _from_core(kind: int, core_id: int, is_const: bool, shape: tuple[int, ...]) -> dtype:
    element: dtype = types.BY_CORE_ID[core_id]
    if kind == KIND_BLOCK_POINTER:
        return block_pointer_type(element, shape)
    if kind in (KIND_DESCRIPTOR, KIND_TF32_DESCRIPTOR):
        return descriptor_type(element, shape, kind == KIND_TF32_DESCRIPTOR)
    if kind == KIND_POINTER:
        element = pointer_type(element, const=is_const)
    return block_type(element, shape) if shape else element


def _type_of(handle: Any) -> Any:
    return active.session.builder.type_of(handle)


def describe_type(type: Any) -> str:
    """How error messages spell a type: `int32`, `fp16[64, 32]`, `*fp32[64]`, as the core does."""
    if isinstance(type, block_type):
        return f"{describe_type(type.element_ty)}{list(type.shape)}"
    if isinstance(type, pointer_type):
        return f"*{'const ' if type.const else ''}{type.element_ty}"
    if isinstance(type, block_pointer_type):
        what = "tensor descriptor of" if isinstance(type, descriptor_type) else "block pointer to"
        rounds = isinstance(type, descriptor_type) and type._rounds_to_tf32
        how = " rounded to tf32" if rounds else ""
        return f"{what} {type.element_ty}{list(type.block_shape)}{how}"
    return str(type)


def describe(value: Any) -> str:
    """How error messages spell a value: its type, or the constant itself."""
    value = unwrap(value)
    if isinstance(value, tensor):
        if value._constant is not None:
            return f"{value.type} (= {value._constant!r})"
        return describe_type(value.type)
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"the constant {value!r}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, dtype):
        return f"the type {value}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


# --- Calls of the builder -------------------------------------------------------------


def lower(value: Any) -> Any:
    """A value of the front-end as an argument of `_C.Builder.call`."""
    if isinstance(value, tensor):
        return value._value
    if isinstance(value, constexpr):
        return lower(value.value)
    if isinstance(value, dtype):
        return to_core_type(value)
    if isinstance(value, (tuple, list)):
        return [lower(item) for item in value]
    if value is None or isinstance(value, (bool, str, float)):
        return value
    if isinstance(value, int):
        literal_dtype(value)  # refuses what no type holds
        return value
    raise UserMistake(
        "E044",
        f"expected a tensor or a number, got {describe(value)}",
        "pass a tensor, a number or a tuple of them",
    )


def emit(name: str, *args: Any) -> tuple[Any, ...]:
    """Calls a method of the builder; values come back as tensors."""
    session = active.session
    if session.scalar_function:
        _refuse_in_scalar_function(session.scalar_function, name, args)
    results = session.builder.call(name, *[lower(arg) for arg in args])
    lifted = tuple(_lift(result) for result in results)
    if session.scalar_function:
        _refuse_tiles(session.scalar_function, args, lifted)
    return lifted


def _refuse_tiles(what: str, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
    """A function of scalars may make tiles of one element to read their types. Programs find the
    type of a possibly constant number so. Nothing may be computed from them, so they need no
    code."""
    made = [value for value in results if isinstance(value, tensor)]
    tiles = [value for value in made if value.shape]
    wrong = [value for value in tiles if value.numel != 1]
    if len(tiles) < len(made) or not made:
        wrong += _tiles(args)
    if not wrong:
        return
    raise UserMistake(
        "E030",
        f"the function of {what} makes {describe(wrong[0])}, but may compute with scalars only",
        "compute the tile outside, and pass it as an operand",
    )


def _tiles(args: Any) -> list[Any]:
    """Those of the arguments of an op that are tiles."""
    found = []
    for arg in args:
        arg = arg.value if isinstance(arg, constexpr) else arg
        if isinstance(arg, (tuple, list)):
            found += _tiles(arg)
        elif isinstance(arg, tensor) and arg.shape:
            found.append(arg)
    return found


_EFFECTS = {
    "device_print": "device_print",
    "barrier": "debug_barrier",
    "store": "store",
    "atomic_rmw": "an atomic operation",
    "atomic_cas": "atomic_cas",
    "atomic_load": "atomic_load",
    "atomic_store": "atomic_store",
    "load": "load",
}


def _refuse_in_scalar_function(what: str, name: str, args: tuple[Any, ...]) -> None:
    """Memory, output and barriers belong to programs. Code that runs per element, which a GPU may
    run on several threads, has none of them. The exception are loads in the function of a map,
    which may run any number of times.
    """
    if name not in _EFFECTS:
        return
    once = name == "load" and args[-1]
    if name == "load" and what == "map_elementwise" and not once:
        return
    each = "each element" if what == "map_elementwise" else "pairs of elements"
    raise UserMistake(
        "E030",
        f"the function of {what} calls {'a volatile load' if once else _EFFECTS[name]}, but runs for "
        f"{each}, in any order and on any threads",
        "call it before or after",
    )


@contextmanager
def scalars_only(what: str) -> Iterator[None]:
    """Visits a function that is given one element at a time: it can make no tiles."""
    session = active.session
    before, session.scalar_function = session.scalar_function, what
    try:
        yield
    finally:
        session.scalar_function = before


def emit_one(name: str, *args: Any) -> tensor:
    """Calls a method of the builder that returns one value."""
    result = emit(name, *args)[0]
    assert isinstance(result, tensor)
    return result


def _lift(result: Any) -> Any:
    if result is None or isinstance(result, (bool, int, float, str)):
        return result
    if isinstance(result, (tuple, list)):
        return tuple(_lift(item) for item in result)
    return tensor(result)


def to_tensor_value(value: Any) -> tensor:
    """`value` as a tensor: numbers become known scalars.

    Raises UserMistake (E044) for anything but a number or a tensor.
    """
    value = unwrap(value)
    if isinstance(value, tensor):
        return value
    if isinstance(value, (bool, int, float)):
        return tensor._known(value)
    raise UserMistake(
        "E044",
        f"expected a tensor or a number, got {describe(value)}",
        "pass a tensor or a number",
    )


# --- Operators ----------------------------------------------------------------------


def _truncating_division(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_FOLDED: dict[str, Callable[[int, int], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": _truncating_division,
    "mod": lambda a, b: a - b * _truncating_division(a, b),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _fold(name: str, left: Any, right: Any, specialised: bool = False) -> Optional[tensor]:
    """The result on known integers of one type, where it needs no wrapping; else None.

    With `specialised`, values that this specialisation of the kernel knows count, too.
    """
    function = _FOLDED.get(name)
    if function is None:
        return None
    type = None
    numbers = []
    for operand in (left, right):
        if isinstance(operand, tensor):
            number = specialised_value(operand) if specialised else operand._constant
            if number is None or isinstance(number, (float, tensor)):
                return None
            if type is not None and operand.type != type:
                return None
            type = operand.type
            operand = number
        if isinstance(operand, bool) or not isinstance(operand, int):
            return None
        numbers.append(operand)
    assert type is not None
    low, high = _INT_LIMITS[type]
    if not all(low <= number <= high for number in numbers):
        return None
    if name in ("floordiv", "mod") and numbers[1] == 0:
        return None
    result = function(*numbers)
    # If the literal would have another type, the result is not kept as one.
    known = tensor._known(result) if isinstance(result, bool) or low <= result <= high else None
    return known if known is None or known.type in (type, types.int1) else None


def binary(name: str, left: Any, right: Any) -> tensor:
    """An operator of two operands, at least one of them a tensor."""
    left, right = unwrap(left), unwrap(right)
    folded = _fold(name, left, right)
    if folded is not None:
        return folded
    for operand in (left, right):
        if not isinstance(operand, (tensor, bool, int, float)):
            raise UserMistake(
                "E029",
                f"`{OPERATOR_SYMBOLS.get(name, name)}` takes tensors and numbers, got "
                f"{describe(left)} and {describe(right)}",
                "pass a tensor or a number",
            )
    if name in ("floordiv", "mod", "shl", "shr"):
        _warn_of_constant(name, left, right)
    result = emit_one(name, left, right)
    if is_specialised(left) or is_specialised(right):
        _specialise(result, name, left, right)
    return result


def _specialise(result: tensor, name: str, left: Any, right: Any) -> None:
    """Notes the value that an operator's result has in this specialisation of the kernel."""
    if name in ("logical_and", "logical_or"):
        decisive = name == "logical_or"
        truths = [bool(x) for x in map(specialised_value, (left, right)) if x is not None]
        if decisive in truths:
            result._specialised = decisive
        elif len(truths) == 2:
            result._specialised = not decisive
        return
    folded = _fold(name, left, right, specialised=True)
    if folded is not None and folded.type == result.type:
        result._specialised = folded._constant


def _warn_of_constant(name: str, left: Any, right: Any) -> None:
    """Warns of an integer division by a constant 0, and of a shift by too much."""
    number = known_value(right)
    type = left.dtype if isinstance(left, tensor) else None
    if not isinstance(number, int) or type is None or not type.is_int():
        return
    symbol = OPERATOR_SYMBOLS[name]
    if name in ("floordiv", "mod"):
        if number == 0:
            result = "all ones" if name == "floordiv" else "x itself"
            active.session.warn(
                f"`{describe(left)} {symbol} 0` is {result} for every x", "divide by something else"
            )
    elif not 0 <= number < type.primitive_bitwidth:
        bits = type.primitive_bitwidth
        active.session.warn(
            f"`{describe(left)} {symbol} {number}` shifts by {bits} bits or more, or by less than 0",
            f"shift by 0 to {bits - 1}",
        )


def unary(name: str, operand: tensor) -> tensor:
    """An operator of one tensor."""
    constant = operand._constant
    if name == "not_" and isinstance(constant, bool):
        return tensor._known(not constant)
    if name == "neg" and isinstance(constant, (int, float)) and not isinstance(constant, bool):
        if literal_dtype(-constant) == operand.type:
            return tensor._known(-constant)
    result = emit_one(name, operand)
    value = operand._specialised
    if name == "not_" and isinstance(value, bool):
        result._specialised = not value
    elif name == "neg" and value is not None and literal_dtype(-value) == operand.type:
        result._specialised = -value
    return result


OPERATOR_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "and_": "&", "or_": "|", "xor": "^", "shl": "<<", "shr": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "logical_and": "and", "logical_or": "or", "neg": "-", "invert": "~", "not_": "not",
    "plus": "+",
}  # fmt: skip


# --- Arguments that must be constants ---------------------------------------------------


def known_value(value: Any) -> Any:
    """The constant that `value` is, or `value` itself if it is not a constant."""
    value = unwrap(value)
    if isinstance(value, tensor) and value._constant is not None:
        return value._constant
    return value


def is_specialised(value: Any) -> bool:
    """True if `value` is a tensor whose value this specialisation of the kernel knows."""
    return isinstance(value, tensor) and value._specialised is not None


def specialised_value(value: Any) -> Any:
    """The number that `value` is, as a constant or in this specialisation; None if unknown.

    For what only makes code faster, or is about the specialisation: all else takes constants.
    """
    value = known_value(value)
    return value._specialised if isinstance(value, tensor) else value


# --- Methods ------------------------------------------------------------------------------


def method(fn: F) -> F:
    """Makes a function a method of tensor as well."""
    setattr(tensor, fn.__name__, fn)
    return fn


def add_methods(functions: Iterable[Any]) -> None:
    """Makes library functions methods of tensor."""
    for function in functions:
        setattr(tensor, function.__name__, function)
