# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random launches: the warm path does what the whole path does.

    python -m tessera.testing.fuzz.launches --count 100000 --seed 1 --threads 2

Each launch goes by `kernel[grid](...)` and again by the whole path, with the same arguments and an
output of its own. Both must give the same compiled kernel and the same output, or the same error,
and call a grid function once. Arguments are of all kinds that kernels take, and of some that they
refuse: in any order, by place or by name. Between launches objects change in place, and so does
what all launches depend on: globals of kernels, hooks, settings, the compiled kernels. Threads
launch the same kernels with arguments of their own; only one thread changes what they share.

Torch and JAX have a part if they are installed.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import random
import sys
import threading
import time
import warnings
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

import tessera
import tessera.language as tl
from tessera.errors import MemoryAccessWarning, RecompilationWarning, SlowLaunchWarning
from tessera.runtime.hooks import hooks
from tessera.settings import note_change, settings
from tessera.tools.tensor_descriptor import TensorDescriptor

__all__ = ["Counts", "run"]

_SIZE = 16
_SENTINEL = 77
_CALLS = 100
"""So many combinations of arguments are in use."""
_PLAIN_NUMBERS = (1, 16, 8, 12, 7, 15, 0)
_DTYPES = (np.float32, np.int32, np.float64, np.int8)

SCALE = tl.constexpr(3)
"""A global of kernels, which changes."""


@tessera.jit
def _plain(x, out, n, factor=2, MODE: tl.constexpr = None, B: tl.constexpr = 16):  # type: ignore[no-untyped-def]
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0) * factor, mask=i < n)


@tessera.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x"])
def _loosely(x, out, n: tl.int64, factor: tl.float32 = 1, *, MODE: tl.constexpr = None):  # type: ignore[no-untyped-def,assignment]
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0) * factor * SCALE, mask=i < n)


@tessera.jit
def _parts(of, out, n=16):  # type: ignore[no-untyped-def]
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(of[0] + i, mask=i < of[1], other=0), mask=i < n)


@tessera.jit
def _fields(of, out, n=16):  # type: ignore[no-untyped-def]
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(of.data + i, mask=i < of.size, other=0), mask=i < n)


@tessera.jit
def _described(x, out, n=16):  # type: ignore[no-untyped-def]
    tl.store(out + tl.arange(0, 16), x.load([0]))


@tessera.jit
def _rest(out, *xs):  # type: ignore[no-untyped-def]
    i = tl.arange(0, 16)
    for k in tl.static_range(len(xs)):
        tl.store(out + i, tl.load(xs[k] + i))


class _Mode(enum.Enum):
    FAST = 1


class _Size(enum.IntEnum):
    LARGE = 16


class _Odd(int):
    """An int of a class of its own."""


@dataclasses.dataclass(frozen=True)
class _Frozen:
    value: int


@dataclasses.dataclass
class _Changing:
    """A constant that is compared by its members, which change."""

    value: int

    def __hash__(self) -> int:
        return hash(self.value)


@dataclasses.dataclass
class _Record:
    data: Any
    size: Any


class _Pair(NamedTuple):
    data: Any
    size: Any


@tessera.aggregate
class _Aggregate:
    data: tl.tensor
    size: tl.tensor


class _Pointed:
    """An array by `data_ptr()` and `dtype`; it may fail."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype, self.fails = array, array.dtype, False

    def data_ptr(self) -> int:
        if self.fails:
            raise RuntimeError("not now")
        return int(self.array.ctypes.data)


class _Exported:
    """An array by DLPack."""

    def __init__(self, array: Any) -> None:
        self.array, self.fails = array, False

    def __dlpack__(self, **asked: Any) -> Any:
        if self.fails:
            raise RuntimeError("not now")
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class _Interfaced:
    """An array by NumPy's interface."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


def _array(rng: random.Random, dtype: Any, fill: Optional[int] = None) -> Any:
    """An array at an address that is divisible by 16, 8 or the size of an element."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros(_SIZE * itemsize + 32, np.int8)
    start = -memory.ctypes.data % 16 + rng.choice((0, 0, 0, itemsize, 8))
    array = memory[start : start + _SIZE * itemsize].view(dtype)
    array[:] = np.arange(_SIZE) + rng.randrange(9) if fill is None else fill
    return array


@dataclasses.dataclass
class Counts:
    """The numbers of launches, and the differences."""

    launches: int = 0
    warm: int = 0
    errors: int = 0
    findings: list[str] = dataclasses.field(default_factory=list)


class _Worker:
    """Launches from one thread, with objects of its own, some of which it uses again."""

    def __init__(self, seed: int, changes_globals: bool, counts: Counts) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.changes_globals = changes_globals
        self.counts = counts
        self.kept: dict[str, list[Any]] = collections.defaultdict(list)
        self.kept_calls: list[tuple[Any, dict[str, Any], Any, int]] = []
        self.calls = 0

    def again(self, kind: str, make: Callable[[], Any]) -> Any:
        """An object of before, mostly, or a new one."""
        kept = self.kept[kind]
        if kept and (len(kept) >= 12 or self.rng.random() < 0.8):
            return self.rng.choice(kept)
        kept.append(make())
        return kept[-1]

    # --- What is passed -----------------------------------------------------------------------

    def array(self) -> Any:
        rng = self.rng
        plain = self.again("array", lambda: _array(rng, rng.choice(_DTYPES)))
        kind = rng.randrange(16)
        if kind < 4:
            return plain
        if kind == 4:
            return self.again("pointed", lambda: _Pointed(plain))
        if kind == 5:
            return self.again("exported", lambda: _Exported(plain))
        if kind == 6:
            return self.again("interfaced", lambda: _Interfaced(plain))
        if kind == 7:
            return tessera.reinterpret(plain, plain.dtype)
        if kind == 8:
            return self.again("eight bits", self.eight_bits)
        if kind == 9:
            # Kernels read beyond these arrays, but no other memory than this.
            memory = _array(rng, np.float32)
            return rng.choice((memory[:0], memory[:1].reshape(()), None, 5, "x"))
        if kind == 10 and "jax" in sys.modules:
            import jax.numpy

            return self.again("jax", lambda: jax.numpy.arange(16.0) + rng.randrange(9))
        if "torch" in sys.modules:
            return self.again("torch", self.tensor)
        return plain

    def eight_bits(self) -> Any:
        return tessera.reinterpret(_array(self.rng, np.int8), tl.float8e5)

    def tensor(self) -> Any:
        import torch

        rng = self.rng
        if rng.random() < 0.1:
            return torch.complex(torch.ones(16), torch.ones(16)).conj().imag  # negative
        dtype = rng.choice((torch.float32, torch.int32, torch.float16, torch.bfloat16))
        made = torch.arange(32).to(dtype)[rng.choice((0, 0, 1, 2)) :]
        if dtype.is_floating_point and rng.random() < 0.2:
            return torch.nn.Parameter(made)
        return made

    def number(self) -> Any:
        rng = self.rng
        kind = rng.randrange(20)
        if kind < 10:
            return rng.choice(_PLAIN_NUMBERS)
        return rng.choice(
            (2**33, 2**63 + 8, -1, 2**64, True, False, 2.5, 1.0, -0.0, float("nan"), _Odd(16))
            + (np.int64(16), np.int32(7), np.uint8(8), np.float32(1.5), np.bool_(True))
            + (_Size.LARGE, np.float64(2), np.array(3), None, "7", tl.constexpr(16))
        )

    def constant(self) -> Any:
        rng = self.rng
        if rng.random() < 0.2:
            return self.again("changing", lambda: _Changing(rng.randrange(3)))
        return rng.choice(
            (None, None, 1, 1.0, True, 0.0, -0.0, "fast", "".join(("fa", "st")), (1, "a"))
            + ((1.0, ("b", True)), _Mode.FAST, tl.float32, np.int64(3), np.float32(0.5))
            + (_Frozen(rng.randrange(2)), [1], np.array(3), float("nan"), 2**40, tl.constexpr(1))
        )

    def grid(self) -> Any:
        rng = self.rng
        extents = rng.choice(((1,), (1, 1), (1, 1, 1), (2,), (0,), (np.int64(1),), (1, np.int8(1))))
        kind = rng.randrange(12)
        if kind < 5:
            return extents
        if kind == 5:
            return list(extents)
        if kind == 6:
            return rng.choice((1, np.int32(1), True, np.array([1])))
        if kind == 7:
            return rng.choice(((-1,), (1.5,), "1", (1, 1, 1, 1), (), None, (2**31,)))

        def made(meta: Any) -> Any:
            self.calls += 1
            if meta.get("n") == 7 and kind == 11:
                raise ValueError("seven")
            return list(extents) if kind == 8 else extents[0] if kind == 9 else extents

        return made

    def call(self) -> tuple[Any, dict[str, Any], Any, int]:
        """A kernel and its arguments by name; of the output, the dtype and the alignment."""
        rng = self.rng
        return (*self.given(), rng.choice(_DTYPES), rng.choice((0, 0, 0, 8)))

    def given(self) -> tuple[Any, dict[str, Any]]:
        rng = self.rng
        kernel = rng.choice((_plain, _plain, _plain, _loosely, _parts, _fields, _described, _rest))
        if kernel is _rest:
            return kernel, {"xs": tuple(self.array() for _ in range(rng.randrange(1, 3)))}
        if kernel is _described:
            base = self.again("array", lambda: _array(rng, np.float32))

            def describe() -> TensorDescriptor:
                return TensorDescriptor.from_tensor(base, [16])

            is_new = rng.random() < 0.3
            return kernel, {"x": describe() if is_new else self.again("descriptor", describe)}
        if kernel in (_parts, _fields):
            data, size = self.array(), self.number()
            makers: tuple[Any, ...] = (_Record, _Aggregate, _Pair)
            if kernel is _parts:
                makers = (lambda *items: items, lambda *items: list(items), _Pair)
            maker = rng.choice(makers)
            return kernel, {"of": self.again(f"of {maker}", lambda: maker(data, size))}
        given = {"x": self.array(), "n": self.number()}
        for name, make in (("factor", self.number), ("MODE", self.constant)):
            if rng.random() < 0.4:
                given[name] = make()
        return kernel, given

    # --- Changes ------------------------------------------------------------------------------

    def change(self) -> None:
        """Changes something in place."""
        rng = self.rng
        kind = rng.choice(list(self.kept)) if self.kept else ""
        thing: Any = rng.choice(self.kept[kind]) if kind else None
        if kind == "array":
            thing.flags.writeable = rng.random() < 0.7
        elif kind in ("pointed", "exported"):
            thing.fails = rng.random() < 0.3
        elif kind == "changing":
            thing.value = rng.randrange(3)
        elif kind == "descriptor":
            thing.padding = rng.choice(("zero", "nan"))
            thing.shape = rng.choice(([16], (16,), [8], [np.int64(16)]))
        elif kind == "torch" and thing.is_leaf and rng.random() < 0.3:
            thing.data = thing.data.clone()
        elif isinstance(thing, _Record):
            thing.size = self.number()
        elif isinstance(thing, list):
            thing[1] = self.number()
        if self.changes_globals and rng.random() < 0.005:
            self.change_globals()

    def change_globals(self) -> None:
        rng = self.rng
        kind = rng.randrange(5)
        if kind == 0:
            globals()["SCALE"] = tl.constexpr(rng.choice((3, 4)))
        elif kind == 1:
            note_change()
        elif kind == 2:
            rng.choice((_plain, _parts)).device_caches[0][0].clear()
        elif kind == 3:
            hooks.launch_enter.add(_ignore)
        else:
            hooks.launch_enter.remove(_ignore)

    # --- Launches -----------------------------------------------------------------------------

    def outcome(
        self, launch: Callable[..., Any], given: dict[str, Any], dtype: Any, start: int
    ) -> tuple[Any, ...]:
        """The kernel and the output of a launch, or its error; and the calls of the grid."""
        memory = np.full(_SIZE * 8 + 32, _SENTINEL, np.int8)
        memory = memory[-memory.ctypes.data % 16 :][: _SIZE * 8 + 8]
        out = memory[start : start + _SIZE * np.dtype(dtype).itemsize].view(dtype)
        self.calls = 0
        try:
            kernel = launch(out)
        except Exception as error:
            return type(error), str(error), self.calls
        return kernel, memory.tobytes(), self.calls

    def step(self) -> None:
        rng = self.rng
        if rng.random() < 0.2:
            self.change()
        # Nearly every new call would be compiled.
        calls = self.kept_calls
        if len(calls) < _CALLS and (not calls or rng.random() < 0.2):
            calls.append(self.call())
        elif rng.random() < 0.01:
            calls[rng.randrange(len(calls))] = self.call()
        kernel, given, dtype, start = rng.choice(calls)
        given = dict(given)
        if "n" in given and rng.random() < 0.3:
            given["n"] = rng.choice(_PLAIN_NUMBERS)
        grid = self.grid()
        options = {"num_threads": rng.choice((1, 2))} if rng.random() < 0.1 else {}
        if rng.random() < 0.02:
            options[rng.choice(("num_wraps", "n", "out"))] = 1
        count = rng.randrange(3)
        rest = given.pop("xs", ())
        first_name = next((name for name in ("x", "of") if name in given and count), "")
        args = (given.pop(first_name),) if first_name else ()
        names = dict(rng.sample(list(given.items()), len(given)))

        def arrange(out: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            if rest or count == 2:
                return (*args, out, *rest), {**names, **options}
            return args, {**names, "out": out, **options}

        def warm(out: Any) -> Any:
            passed, named = arrange(out)
            return kernel[grid](*passed, **named)

        def whole(out: Any) -> Any:
            passed, named = arrange(out)
            return kernel._run(passed, named, grid, False)[0]

        _took_whole_path()
        first = self.outcome(warm, given, dtype, start)
        self.counts.launches += 1
        self.counts.warm += not _took_whole_path()
        second = self.outcome(whole, given, dtype, start)
        self.counts.errors += isinstance(second[0], type)
        if first[0] is not second[0] or first[1:] != second[1:]:
            self.counts.findings.append(
                f"seed {self.seed}, launch {self.counts.launches}: {kernel.__name__}"
                f"[{grid!r}], args {args!r} {rest!r}, names {names!r}, options {options!r}, "
                f"output {dtype.__name__} + {start}:\n  warm  {first!r}\n  whole {second!r}"
            )


def _ignore(metadata: Any) -> None:
    """A hook."""


_here = threading.local()


def _took_whole_path() -> bool:
    """True if this thread has taken the whole path since it was last asked."""
    taken = getattr(_here, "taken", False)
    _here.taken = False
    return bool(taken)


def run(count: int, seed: int, threads: int = 1, seconds: Optional[float] = None) -> Counts:
    """Does `count` launches in each of `threads` threads, or as many as fit in `seconds`."""
    from tessera.runtime.jit import JITFunction

    whole = JITFunction._run

    def noted(*args: Any, **more: Any) -> Any:
        _here.taken = True
        return whole(*args, **more)

    ends = None if seconds is None else time.monotonic() + seconds
    all_counts = [Counts() for _ in range(threads)]

    def work(number: int) -> None:
        worker = _Worker(seed * 1000 + number, threads == 1, all_counts[number])
        for _ in range(count):
            if ends is not None and time.monotonic() > ends:
                break
            worker.step()

    JITFunction._run = noted
    try:
        with warnings.catch_warnings():
            for category in (MemoryAccessWarning, RecompilationWarning, SlowLaunchWarning):
                warnings.simplefilter("ignore", category)
            if threads == 1:
                work(0)
            else:
                running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
                for thread in running:
                    thread.start()
                for thread in running:
                    thread.join()
    finally:
        JITFunction._run = whole
        hooks.launch_enter.remove(_ignore)
    total = Counts()
    for counts in all_counts:
        total.launches += counts.launches
        total.warm += counts.warm
        total.errors += counts.errors
        total.findings += counts.findings
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10000, help="launches of each thread")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="end after so many")
    arguments = parser.parse_args()
    for package in ("torch", "jax"):
        try:
            __import__(package)
        except ImportError:
            pass
    settings.recompile_warning = 0
    print(f"seed {arguments.seed}", flush=True)
    start = time.monotonic()
    counts = run(arguments.count, arguments.seed, arguments.threads, arguments.seconds)
    for finding in counts.findings[:10]:
        print(finding)
    print(
        f"{counts.launches} launches in {time.monotonic() - start:.0f} s, {counts.warm} of them "
        f"warm, {counts.errors} refused: {len(counts.findings)} differences"
    )
    return 1 if counts.findings else 0


if __name__ == "__main__":
    sys.exit(main())
