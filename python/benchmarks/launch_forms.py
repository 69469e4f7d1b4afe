# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a warm launch costs the host in each form that public kernels use, beside the plain one.

    python python/benchmarks/launch_forms.py [--device cuda] [--only list] [--json FILE]

A form differs from `kernel[(1,)](x, out, 64, B=64)` in one thing: its grid, how its arguments are
passed, or what an argument is. Each is timed in turns with the plain form, in batches; what is
printed is the median of its microseconds, of the difference to the plain one beside it, and of the
part of that which is the caller's own Python, where there is some: objects made, functions and
methods called, without a launch. Forms whose package is not installed are left out. Where Triton is installed and sees a GPU, it has a
column of the same kernels; `--device cuda` adds the driver's own launch. Needs torch.
"""

# mypy: ignore-errors

from __future__ import annotations

import argparse
import collections
import dataclasses
import enum
import json
import random
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

import numpy as np
import report
import torch

import tessera
from tessera.tools.tensor_descriptor import TensorDescriptor

Launch = Callable[[], Any]


class Form(NamedTuple):
    """A launch, and what the caller's own Python does in it: that of no launch is left out."""

    kind: str
    name: str
    launch: Launch
    own: Optional[Launch] = None


LIMIT_US = {"cpu": 1.0, "cuda": 1.5}
"""What a form may take beyond the plain one."""
LISTS = (16, 256, 300)
LIMIT_OF_300_US = 60.0

SOURCE = """
@jit
def plain(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

@jit
def twenty(x, out, n, a, b, c, d, e, f, g, h, k, l, m, o, p, q, r, s, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

@jit
def described(x, out, n, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), x.load([0]))

@jit
def parts(of, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(of[0] + i, mask=i < n), mask=i < n)

@jit
def fields(of, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(of.data + i, mask=i < of.size), mask=i < n)

@jit
def scaled(x, out, n, factor, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

@jit
def optional(x, out, n, bias, MODE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

@jit
def last_of(xs, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(xs[len(xs) - 1] + i, mask=i < n), mask=i < n)

@jit
def assumed(x, out, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
"""


def load(package: Any) -> types.SimpleNamespace:
    """New kernels of a compiler; those that it does not know the language of are left out."""
    import linecache

    language = sys.modules[f"{package.__name__}.language"]
    made: dict[str, Any] = {}
    for number, text in enumerate(SOURCE.strip().split("\n\n")):
        file = f"<launch_forms {package.__name__} {number}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        names = {"jit": package.jit, "tl": language, "__name__": __name__}
        exec(compile(text, file, "exec"), names)
        made.update((name, value) for name, value in names.items() if hasattr(value, "run"))
    return types.SimpleNamespace(**made)


class Mode(enum.Enum):
    FAST = 1


class Size(enum.IntEnum):
    SMALL = 64


@dataclasses.dataclass
class Record:
    data: Any
    size: Any


Named = collections.namedtuple("Named", ["data", "size"])


@tessera.aggregate
class Aggregate:
    data: tessera.language.tensor
    size: tessera.language.tensor


class Wrapped:
    """An object that says where its memory is, and no more."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.dtype = tensor.dtype
        self.device = tensor.device

    def data_ptr(self) -> int:
        return self.tensor.data_ptr()


class Subclass(torch.Tensor):
    """A tensor with a storage of its own."""


class OnlyDLPack:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **asked: Any) -> Any:
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnStream:
    """What has CUDA's interface alone, and names a stream."""

    def __init__(self, tensor: torch.Tensor, stream: int) -> None:
        self.tensor = tensor
        self.interface = {**tensor.__cuda_array_interface__, "version": 3, "stream": stream}

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.interface


class OnlyInterface:
    """What has NumPy's interface alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.dtype = array.dtype

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


def grids() -> dict[str, Any]:
    """Grids of one program, by what they are."""
    size = torch.empty(1).shape
    return {
        "list": [1],
        "torch.Size": size,
        "integer": 1,
        "NumPy integer": np.int64(1),
        "tuple of a NumPy integer": (np.int64(1),),
        "tuple of a 0-d array": (np.array(1),),
        "tuple of a 0-d tensor": (torch.tensor(1),),
        "function": lambda meta: (1,),
        "function that returns a list": lambda meta: [1],
        "function that returns NumPy integers": lambda meta: (np.int64(1), np.int32(1)),
        "function that returns an integer": lambda meta: 1,
        "function of a constexpr": lambda meta: (tessera.cdiv(64, meta["B"]),),
    }


def forms(package: Any, device: str) -> Iterator[Form]:
    """The forms; the first is the plain one."""
    kernels = load(package)
    tl = sys.modules[f"{package.__name__}.language"]
    x, out = torch.zeros(64, device=device), torch.zeros(64, device=device)
    half = torch.zeros(64, dtype=torch.float16, device=device)
    byte = torch.zeros(64, dtype=torch.int8, device=device)
    plain, scaled, optional = kernels.plain, kernels.scaled, kernels.optional

    # As people write calls: a tuple that is unpacked and a dict of keywords cost more.
    yield Form("plain", "plain", lambda: plain[(1,)](x, out, 64, B=64))
    twenty = kernels.twenty
    yield Form(
        "plain",
        "20 arguments",
        lambda: twenty[(1,)](x, out, 64, x, x, x, x, x, x, x, x, 2, 3, 4, 5, 6, 7, 8, 9, B=64),
    )
    meta = {"x": x, "out": out, "n": 64, "B": 64}
    for name, grid in grids().items():
        own = (lambda grid=grid: grid(meta)) if callable(grid) else None
        yield Form("grid", name, lambda grid=grid: plain[grid](x, out, 64, B=64), own)

    options = {"B": 64, "num_warps": 4}
    yield Form("call", "by name in any order", lambda: plain[(1,)](n=64, B=64, out=out, x=x))
    yield Form("call", "a dict of keywords", lambda: plain[(1,)](x, out, 64, **options))

    for name, (kernel, functions) in stacks(package, kernels.assumed).items():
        yield Form(
            "stack",
            name,
            lambda kernel=kernel: kernel[(1,)](x, out, 64),
            functions and (lambda functions=functions: [function(meta) for function in functions]),
        )

    for name, (array, own) in arrays(x, device).items():
        yield Form("array", name, lambda array=array: plain[(1,)](array, out, 64, B=64), own)
    seen = package.reinterpret(byte, tl.float8e5)
    yield Form("array", "reinterpreted", lambda: plain[(1,)](seen, half, 64, B=64))
    yield Form(
        "array",
        "reinterpreted each time",
        lambda: plain[(1,)](package.reinterpret(byte, tl.float8e5), half, 64, B=64),
        lambda: byte.dtype,
    )

    for name, number in {"NumPy integer": np.int64(64), "IntEnum": Size.SMALL}.items():
        yield Form("number", name, lambda number=number: plain[(1,)](x, out, number, B=64))
    for name, number in {"float": 2.5, "NumPy float": np.float32(2.5), "bool": True}.items():
        yield Form("number", name, lambda number=number: scaled[(1,)](x, out, 64, number, B=64))

    constants = {
        "string": "fast", "None": None, "Enum": Mode.FAST, "dtype": tl.float32, "tuple": (1, "a"),
        "NumPy integer": np.int64(3), "torch.dtype": torch.float32,
    }  # fmt: skip
    for name, constant in constants.items():
        yield Form(
            "constexpr",
            name,
            lambda constant=constant: optional[(1,)](x, out, 64, None, constant, B=64),
        )

    parts = kernels.parts
    yield Form("parts", "tuple", lambda: parts[(1,)]((x, 64), out, 64, B=64), lambda: (x, 64))
    yield Form("parts", "list", lambda: parts[(1,)]([x, 64], out, 64, B=64), lambda: [x, 64])
    if package is not tessera:
        return
    for cls in (Named, Record, Aggregate):
        value = cls(x, 64)
        yield Form(
            "parts",
            cls.__name__.lower(),
            lambda value=value: kernels.fields[(1,)](value, out, 64, B=64),
        )
    descriptor, described = TensorDescriptor.from_tensor(x, [64]), kernels.described
    yield Form("descriptor", "descriptor", lambda: described[(1,)](descriptor, out, 64, B=64))
    yield Form(
        "descriptor",
        "descriptor made each time",
        lambda: described[(1,)](TensorDescriptor.from_tensor(x, [64]), out, 64, B=64),
        lambda: (x.shape, x.stride(), [64]),
    )
    for count in LISTS:
        tensors = [torch.zeros(64, device=device) for _ in range(count)]
        yield Form(
            "list",
            f"{count} tensors",
            lambda tensors=tensors: kernels.last_of[(1,)](tensors, out, 64, B=64),
        )


def stacks(package: Any, kernel: Any) -> dict[str, Any]:
    """`kernel` below decorators that fill in `B` and `EVEN`, and the functions that are called."""

    def find_block(args: dict[str, Any]) -> int:
        return 64

    def find_even(args: dict[str, Any]) -> bool:
        return args["n"] % 2 == 0

    block = package.heuristics({"B": find_block})
    even = package.heuristics({"EVEN": find_even})
    both = package.heuristics({"B": find_block, "EVEN": find_even})
    warps = package.autotune([package.Config({}, num_warps=count) for count in (1, 2)], key=["n"])
    blocks = package.autotune(
        [package.Config({"B": size, "EVEN": True}) for size in (64, 128)], key=["n"]
    )
    functions = [find_block, find_even]
    return {
        "heuristics": (both(kernel), functions),
        "two heuristics": (block(even(kernel)), functions),
        "autotune": (blocks(kernel), None),
        "autotune over heuristics": (warps(both(kernel)), functions),
        "autotune over two heuristics": (warps(block(even(kernel))), functions),
        "heuristics over autotune": (both(warps(kernel)), functions),
        "heuristics over autotune over heuristics": (block(warps(even(kernel))), functions),
    }


def arrays(x: torch.Tensor, device: str) -> dict[str, tuple[Any, Optional[Launch]]]:
    """Arrays of other kinds than torch's plain tensors, and those in other places; and their own
    methods that a launch calls."""
    wrapped = Wrapped(x)
    made: dict[str, tuple[Any, Optional[Launch]]] = {
        "Parameter": (torch.nn.Parameter(x), None),
        "subclass of Tensor": (x.as_subclass(Subclass), None),
        "0-d tensor": (torch.zeros((), device=device), None),
        "wrapped": (wrapped, lambda: (wrapped.data_ptr(), wrapped.dtype, wrapped.device.type)),
    }
    if device == "cpu":
        array = x.numpy()
        exported, interface = OnlyDLPack(array), OnlyInterface(array)
        made |= {
            "NumPy array": (array, None),
            "DLPack alone": (exported, lambda: export(exported, {})),
            "NumPy's interface alone": (interface, lambda: interface.__array_interface__),
        }
        try:
            import jax.numpy

            of_jax = jax.numpy.zeros(64)
            made["array of JAX"] = (of_jax, lambda: memoryview(of_jax))
        except ImportError:
            pass
    else:
        exported = OnlyDLPack(x)
        made["DLPack alone"] = (exported, lambda: export(exported, {"stream": 1}))
        made["CUDA's interface"] = (OnStream(x, 1), None)
        other = torch.cuda.Stream()
        made["CUDA's interface, on another stream"] = (OnStream(x, other.cuda_stream), None)
        try:
            import cupy

            of_cupy = cupy.zeros(64, "float32")
            made["array of CuPy"] = (
                of_cupy,
                lambda: (of_cupy.__cuda_array_interface__, of_cupy.dtype, of_cupy.device.id),
            )
        except ImportError:
            pass
    return made


def export(array: Any, asked: dict[str, Any]) -> Any:
    """What every consumer of DLPack calls."""
    return array.__dlpack_device__(), array.__dlpack__(max_version=(1, 1), **asked)


def measure(forms: list[Form], rounds: int) -> dict[tuple[str, str], Any]:
    """Median microseconds of each launch, of what it takes beyond the plain one, which is timed
    beside it in each round, and of the caller's own part. A form that raises has the error in place
    of figures."""
    plain = forms[0].launch
    found: dict[tuple[str, str], Any] = {}
    batches: dict[Form, int] = {}
    for form in forms:
        try:
            for _ in range(3):
                form.launch()
        except Exception as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            found[form[:2]] = {"error": text}
            continue
        fastest = min(timed(form.launch, 3) for _ in range(10))
        batches[form] = max(1, min(100, int(200e-6 / fastest)))
    times: dict[Form, list[tuple[float, float, float]]] = {form: [] for form in batches}
    order = list(batches)
    for _ in range(rounds):
        random.shuffle(order)
        for form in order:
            beside = timed(plain, 100)
            own = timed(form.own, 100) - timed(nothing, 100) if form.own else 0.0
            times[form].append((timed(form.launch, batches[form]), beside, own))
    for form, measured in times.items():
        found[form[:2]] = {
            "us": statistics.median(mine for mine, _, _ in measured) * 1e6,
            "more_us": statistics.median(mine - beside for mine, beside, _ in measured) * 1e6,
            "own_us": statistics.median(own for _, _, own in measured) * 1e6,
            "least_more_us": (min(m for m, _, _ in measured) - min(b for _, b, _ in measured))
            * 1e6,
        }
    return found


def nothing() -> None:
    """What a lambda costs that does nothing."""


def timed(launch: Launch, count: int) -> float:
    """Seconds of one of `count` launches; what they put on a GPU is done before the next batch."""
    start = time.perf_counter()
    for _ in range(count):
        launch()
    seconds = (time.perf_counter() - start) / count
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return seconds


def find_compilers(device: str) -> dict[str, Any]:
    """The packages to measure: Triton only where it is the real one and has a GPU."""
    found = {"tessera": tessera}
    if device == "cuda":
        try:
            import triton
            import triton.language  # noqa: F401

            found["triton"] = triton
        except ImportError:
            pass
    return found


def is_too_slow(form: tuple[str, str], figures: Any, device: str, own: float = 0.0) -> bool:
    """True if a form takes more than the limit, less `own` microseconds."""
    if form[1] == f"{LISTS[-1]} tensors":
        return bool(figures["us"] > LIMIT_OF_300_US)
    return form[0] != "list" and bool(figures["more_us"] - own > LIMIT_US[device])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="only forms whose kind or name holds this text")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--alone", action="store_true", help="without Triton and the driver")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    columns: dict[str, dict[tuple[str, str], Any]] = {}
    device = "cpu" if arguments.alone else arguments.device
    for compiler, package in find_compilers(device).items():
        chosen = [
            form
            for form in forms(package, arguments.device)
            if form.kind == "plain" or arguments.only in f"{form.kind} {form.name}"
        ]
        columns[compiler] = measure(chosen, arguments.rounds)
    rows = []
    for form in columns["tessera"]:
        row: dict[str, Any] = {"kind": form[0], "form": form[1]}
        for compiler, figures in columns.items():
            row[compiler] = figures.get(form)
        mine = row["tessera"]
        row["over_limit"] = "error" in mine or is_too_slow(form, mine, arguments.device)
        row["over_limit_without_own"] = "error" in mine or is_too_slow(
            form, mine, arguments.device, mine["own_us"]
        )
        rows.append(row)
        print(line(row), flush=True)
    report_of_all: dict[str, Any] = {
        "benchmark": "launch_forms",
        "environment": {**report.environment(), "device": arguments.device},
        "rows": rows,
    }
    if arguments.device == "cuda":
        report_of_all["environment"]["gpu"] = torch.cuda.get_device_name()
    if arguments.device == "cuda" and not arguments.alone:
        import gpu_host

        report_of_all["driver"] = gpu_host.launch_times()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(report_of_all, file, indent=1)
            file.write("\n")
    return 0


def line(row: dict[str, Any]) -> str:
    cells = []
    for compiler in ("tessera", "triton"):
        figures = row.get(compiler)
        if figures and "error" in figures:
            cells.append(figures["error"])
        elif figures:
            own = f"{figures['own_us']:7.2f}" if figures["own_us"] else " " * 7
            cells.append(f"{figures['us']:9.2f} {figures['more_us']:+9.2f}{own}")
    mark = " over the limit" if row["over_limit"] else ""
    if mark and not row["over_limit_without_own"]:
        mark += " by the caller's own part"
    return f"{row['kind']:<11}{row['form']:<42}{'  '.join(cells)}{mark}"


if __name__ == "__main__":
    sys.exit(main())
