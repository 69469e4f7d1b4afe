# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuned tables: the extents of tiles and the warps of the kernels of tessera.ops, by machine.

A launcher asks `choose` for the numbers of a kernel that follow from no argument. The answer is that of
the nearest entry of a table, or the launcher's default. Nothing is measured in a call: tables are made by
`python -m tessera tune ops` (ops/tuner.py), and those in the folder `tuned` are part of the package.

    {"format": "tessera-ops-table", "version": 1,
     "machine": {"kind": "cuda", "name": "NVIDIA H200", "family": "9.0", "units": 132},
     "made": {"date": "2026-11-29", "build": "...", "seconds": 211.4},
     "entries": [{"kernel": "softmax_kernel", "layout": "rows", "bytes": 4, "length": 1024, "lines": 4096,
                  "choice": {"tile": 8192, "warps": 8}, "gain": 1.21}, ...]}

- `family` is the capability of a GPU, and the width of a CPU's vectors. `units` are the GPU's SMs, and
  the threads of a CPU.
- `layout` is how the lines lie: "rows" are dense, "columns" lie side by side, "flat" has none.
- `bytes` are those of an element, `length` and `lines` the extents that were measured.
- `choice` has what differs from the launcher's default. `gain` is the default's time by that of the choice.

The rule for a machine: tables of the same kind and family are considered. Tables for GPUs of the same
major capability come after them. The table whose units are nearest, as a ratio, is used.

The rule for a shape: an entry has to have the kernel, the layout and the element size. Its length differs
at most by a factor of 4, and its lines by 16. The entry that is nearest, as ratios, is used.

Without a table or an entry, the launcher's default is used.

A table of the user's own (`load`) comes before those of the package, entry by entry.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence

from tessera import _C
from tessera.calls import recording
from tessera.calls.outputs import library_of
from tessera.calls.recorded import forget_plans
from tessera.errors import LaunchError
from tessera.machine.devices import MAX_WARPS
from tessera.settings import settings

_FORMAT = "tessera-ops-table"
_VERSION = 1
_FOLDER = Path(__file__).parent / "tuned"
_MAX_ANSWERS = 4096
_MAX_LENGTHS, _MAX_LINES = 2.0, 4.0
"""Powers of 2, by which the length and the lines of an entry may differ from those of a call."""


class Choice(NamedTuple):
    """The numbers of a launch that are tuned. Extents are powers of 2."""

    tile: int = 4096
    """Elements of a tile at most."""
    block: int = 128
    """Elements of a line in a tile at most, if lines lie side by side."""
    lanes: int = 8
    """Lines of a tile at most, if lines are dense."""
    warps: int = 4
    """Warps of a program, on a GPU."""
    programs: int = 1
    """Programs at least, if there are lines enough. Follows from the machine."""


GPU = Choice()
CPU = Choice(tile=1024, block=1, lanes=4)
"""Rows of 1024 elements stay in the first-level cache. Lines that lie side by side are read row by row,
as they lie in memory, by programs that are as wide as such a row."""
GPU_COLUMNS = GPU._replace(tile=8192, block=256, warps=MAX_WARPS)
"""Lines that lie side by side. There are few tiles of them, so each has many warps."""


class Question(NamedTuple):
    """The question of a launcher: which kernel, for which arrays."""

    kernel: str
    layout: str
    bytes: int
    length: int
    lines: int

    @property
    def bucket(self) -> tuple[str, str, int]:
        """The fields that an entry and the question have in common."""
        return self.kernel, self.layout, self.bytes

    def distance(self, other: "Question") -> float:
        """How far the extents are apart, in powers of 2; infinite if one is farther than a table says.

        The length counts twice: it decides the shape of a tile, and the lines only how many there are.
        """
        length = abs(math.log2(max(1, self.length) / max(1, other.length)))
        lines = abs(math.log2(max(1, self.lines) / max(1, other.lines)))
        return 2 * length + lines if length <= _MAX_LENGTHS and lines <= _MAX_LINES else math.inf


class Machine(NamedTuple):
    """A class of machines."""

    kind: str
    name: str
    family: str
    units: int

    def distance(self, other: "Machine") -> float:
        """How far another machine's table is from this machine; infinite if it says nothing."""
        mine, theirs = (each.family.partition(".")[0] for each in (self, other))
        if self.kind != other.kind or mine != theirs or min(self.units, other.units) < 1:
            return math.inf
        return abs(math.log2(self.units / other.units)) + 100 * (self.family != other.family)


class Entry(NamedTuple):
    """The answer that was found for one question."""

    question: Question
    choice: Mapping[str, int]
    """The numbers that the launcher uses, by the names of Choice."""
    gain: float


class Table:
    """The entries of one machine."""

    def __init__(self, machine: Machine, made: Mapping[str, Any], entries: Sequence[Entry]) -> None:
        self.machine, self.made, self.entries = machine, dict(made), list(entries)
        self._buckets: dict[Any, list[Entry]] = {}
        for entry in self.entries:
            self._buckets.setdefault(entry.question.bucket, []).append(entry)

    def find(self, question: Question) -> Optional[Mapping[str, int]]:
        """The choice of the nearest entry; None if none is near."""
        nearest, least = None, math.inf
        for entry in self._buckets.get(question.bucket, ()):
            apart = entry.question.distance(question)
            if apart < least:
                nearest, least = entry.choice, apart
        return nearest

    def text(self) -> str:
        """The table as JSON, with a line for each entry."""
        head = {"format": _FORMAT, "version": _VERSION, "machine": self.machine._asdict()}
        lines = [
            json.dumps({**question._asdict(), "choice": dict(choice), "gain": gain})
            for question, choice, gain in self.entries
        ]
        body = ",\n  ".join(lines)
        return f'{json.dumps({**head, "made": self.made})[:-1]},\n "entries": [\n  {body}\n ]}}\n'


def parse(text: str, path: str = "this") -> Table:
    """The table of a file that `Table.text` made. Raises LaunchError (E059) for other contents."""
    try:
        whole = json.loads(text)
        if whole["format"] != _FORMAT or whole["version"] != _VERSION:
            raise ValueError("it has another format or version")
        machine = Machine(**whole["machine"])
        if [type(each) for each in machine] != [str, str, str, int]:
            raise ValueError("the machine is not one")
        return Table(machine, dict(whole["made"]), [_entry(each) for each in whole["entries"]])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LaunchError(
            "E059",
            f"{path} is no table of tuned operators: {error}",
            "pass a file that `python -m tessera tune ops` wrote",
        ) from None


def _entry(fields: Any) -> Entry:
    choice, gain = fields.pop("choice"), fields.pop("gain")
    question = Question(**fields)
    if [type(each) for each in question] != [str, str, int, int, int]:
        raise ValueError(f"an entry of {question.kernel!r} is not one")
    for name, value in choice.items():
        # Extents and warps are powers of 2.
        if name not in _NAMES or type(value) is not int or not _is_sensible(name, value):
            raise ValueError(f"an entry of `{question.kernel}` has {name}={value!r}")
    return Entry(question, choice, float(gain))


_ROW_NAMES, _COLUMN_NAMES = ("tile", "lanes", "warps"), ("tile", "block", "warps")
_NAMES = ("tile", "block", "lanes", "warps")


def _is_sensible(name: str, value: int) -> bool:
    most = 32 if name == "warps" else 1 << 16
    return 0 < value <= most and value & (value - 1) == 0


Watch = Callable[[Question, Choice, Sequence[str]], Choice]
"""Answers a question, of which the default and the names of the fields are known."""


class _Tables:
    """The tables that are in use, and the answers given so far."""

    def __init__(self) -> None:
        self.own: list[Table] = []
        self.answers: dict[Any, Choice] = {}
        self.watch: Optional[Watch] = None
        """Answers questions while the tuner runs."""
        self._shipped: Optional[list[Table]] = None
        self._machines: dict[int, Machine] = {}

    def shipped(self) -> list[Table]:
        """The tables of the package."""
        if self._shipped is None:
            files = sorted(_FOLDER.glob("*.json"))
            self._shipped = [parse(file.read_text(encoding="utf-8")) for file in files]
        return self._shipped

    def machine(self, device: int) -> Machine:
        """The machine with a device: the number of a GPU, or -1 for the CPU."""
        if device not in self._machines:
            self._machines[device] = _find_machine(device)
        found = self._machines[device]
        if device < 0 and settings.num_threads:
            found = found._replace(units=settings.num_threads)
        return found

    def nearest(self, machine: Machine) -> list[Table]:
        """The tables for a machine: those that were loaded, and the nearest of the package."""

        def apart(table: Table) -> float:
            return machine.distance(table.machine)

        own = [each for each in self.own if apart(each) < math.inf]
        shipped = sorted((each for each in self.shipped() if apart(each) < math.inf), key=apart)
        return own + shipped[:1]

    def search(self, question: Question, machine: Machine) -> Mapping[str, int]:
        """The choice for a question; empty if no table has one."""
        found = (table.find(question) for table in self.nearest(machine))
        return next((choice for choice in found if choice is not None), {})


_tables = _Tables()


def _find_machine(device: int) -> Machine:
    if device >= 0:
        gpu = _C.cuda_device_info(device)
        major, minor = gpu["capability"]
        return Machine("cuda", gpu["name"], f"{major}.{minor}", int(gpu["multiprocessors"]))
    host = _C.host_info()
    return Machine("cpu", host["cpu"], str(host["vector_bits"]), int(host["threads"]))


def device_of(array: Any) -> int:
    """The number of the GPU that an array is on, or -1."""
    library = library_of(array)
    if library == "torch":
        return int(array.get_device()) if array.is_cuda else -1
    if library == "cupy":
        return int(array.device.id)
    if library == "jax":  # an array that JAX traces has no device of its own
        return 0 if sys.modules["jax"].default_backend() in ("gpu", "cuda") else -1
    return -1


def choose(
    kernel: Any, layout: str, like: Any, length: int, lines: int, names: Sequence[str],
    gpu: Choice = GPU, cpu: Choice = CPU,
) -> Choice:  # fmt: skip
    """The numbers for a launch on an array like this: those of a table, or else the default.

    names: the fields of Choice that the launcher uses.
    gpu, cpu: the default for the kind of device.
    """
    if _tables.watch is not None and recording.current() is not None:
        raise recording.NotRecorded  # the answer may be another one at each call
    question = Question(kernel.__name__, layout, like.dtype.itemsize, length, lines)
    device = device_of(like)
    key = (question, device, settings.num_threads)
    found = None if _tables.watch is not None else _tables.answers.get(key)
    if found is not None:
        return found
    machine = _tables.machine(device)
    default = (cpu if device < 0 else gpu)._replace(programs=machine.units)
    if _tables.watch is not None:
        return _tables.watch(question, default, names)
    choice = _tables.search(question, machine)
    kept = {name: value for name, value in choice.items() if name in names}
    if len(_tables.answers) >= _MAX_ANSWERS:
        _tables.answers.clear()
    found = _tables.answers[key] = default._replace(**kept)
    return found


def choose_lines(
    kernel: Any, like: Any, shape: Sequence[int], dim: int, gpu: Choice = GPU, cpu: Choice = CPU
) -> Choice:
    """The numbers for a kernel on the lines of an array along `dim` (launching.make_lines)."""
    # A call of a small operator waits for this.
    device = getattr(like, "device", None)
    if getattr(type(device), "__hash__", None) is None:  # CuPy's cannot be hashed
        device = device_of(like)
    key = (kernel, shape, dim, like.dtype, device, settings.num_threads)
    found = _tables.answers.get(key) if _tables.watch is None else None
    if found is not None:
        return found
    inner, length = math.prod(shape[dim + 1 :]), shape[dim] if shape else 1
    lines = inner * math.prod(shape[:dim])
    layout, names = ("rows", _ROW_NAMES) if inner == 1 else ("columns", _COLUMN_NAMES)
    found = choose(kernel, layout, like, length, lines, names, gpu, cpu)
    if _tables.watch is None:
        _tables.answers[key] = found
    return found


def load(path: str) -> Table:
    """Uses the table of a file in this process, before those of the package. Returns it.

    A table of another family of machines is kept, but has no effect here. The table that was loaded last
    comes first. Raises LaunchError (E059) if the file is no table.
    """
    table = parse(Path(path).read_text(encoding="utf-8", errors="replace"), path)
    _tables.own.insert(0, table)
    _forget()
    return table


def unload() -> None:
    """Forgets the tables that were loaded."""
    _tables.own.clear()
    _forget()


def _forget() -> None:
    _tables.answers.clear()
    forget_plans()  # which have answers in them


def threads_of(array: Any) -> int:
    """The threads of the CPU that an array is on; 0 if it is on a GPU."""
    device = device_of(array)
    return 0 if device >= 0 else _tables.machine(device).units


def multiprocessors_of(array: Any) -> int:
    """The SMs of the GPU that an array is on; 0 if it is on a CPU."""
    device = device_of(array)
    return _tables.machine(device).units if device >= 0 else 0


def machine_of(device: int = -1) -> Machine:
    """The machine with a device: the number of a GPU, or -1 for the CPU."""
    return _tables.machine(device)


def export(path: str, device: int = -1) -> int:
    """Writes the entries that a machine uses to a file, those of loaded tables first. Returns their number.

    device: the number of a GPU, or -1 for the CPU.
    """
    machine, found = _tables.machine(device), dict[Question, Entry]()
    for table in _tables.nearest(machine):
        for entry in table.entries:
            found.setdefault(entry.question, entry)
    Path(path).write_text(Table(machine, {}, list(found.values())).text(), encoding="utf-8")
    return len(found)


@contextlib.contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Has questions of this process answered by a function. For the tuner: one at a time."""
    before, _tables.watch = _tables.watch, watch
    forget_plans()  # calls that are known ask nothing
    try:
        yield
    finally:
        _tables.watch = before
        forget_plans()
