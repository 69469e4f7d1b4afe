# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every environment variable that Tessera reads, in one typed place.

`tessera.settings.settings.<name>` is the value. It comes from the environment at first
use, can be assigned, and is read anew after `settings.reload()`. A value that makes no
sense is an error (E062) where it is used, never a silent default.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Callable, Generic, Iterator, Optional, TypeVar, overload

from tessera.errors import SettingError, warn_of_machine
from tessera.wording import closest

__all__ = ["Settings", "settings"]

T = TypeVar("T")

_TRUE = ("1", "true", "on", "yes")
_FALSE = ("0", "false", "off", "no", "")


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("1 or 0")


def _choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() in values:
            return text.lower()
        raise ValueError(" or ".join(repr(value) for value in values))

    return parse


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 1 << 16:
        return int(text)
    raise ValueError("an integer from 0 to 65535")


def _entries(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31:
        return int(text)
    raise ValueError("a number of files from 1 on")


def _seconds(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) <= 1 << 14:
        return int(text)
    raise ValueError("a number of seconds from 1 to 16384")


_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _size(text: str) -> int:
    number = text.rstrip("kKmMgG")
    unit = text[len(number) :].lower()
    if number.isascii() and number.isdigit() and unit in _SIZES:
        return int(number) * _SIZES[unit]
    raise ValueError("a number of bytes, such as 500M or 2G")


def _path(text: str) -> str:
    if "\0" in text:
        raise ValueError("a path")
    return os.path.expanduser(text)


def _text(text: str) -> str:
    if text.isprintable() and '"' not in text:
        return text
    raise ValueError("a name")


def _features(text: str) -> str:
    for feature in filter(None, text.split(",")):
        name = feature[1:].replace(".", "").replace("-", "").replace("_", "")
        if feature[0] not in "+-" or not (name.isascii() and name.isalnum()):
            raise ValueError("a list such as +avx2,-avx512f")
    return text


def _cpu_row(text: str) -> str:
    """The row in a file that tools/bench machine wrote, as the option `cpu_row` takes it."""
    wanted = "a file that tools/bench machine --store wrote"
    if not text or (":" in text and not os.path.exists(text)):  # has been read
        return text
    import json

    try:
        with open(os.path.expanduser(text), encoding="utf-8") as file:
            stored = json.load(file)
        row, figures = stored["row"], stored["figures"]
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(wanted) from None
    if not (isinstance(row, str) and isinstance(figures, str) and row.isprintable()):
        raise ValueError(wanted)
    return f"{row}:{figures}" if figures else ""


class Setting(Generic[T]):
    """One setting: its environment variable, how its text is read, what it is without one."""

    def __init__(self, variable: str, parse: Callable[[str], T], default: T, doc: str) -> None:
        self.variable = variable
        self.parse = parse
        self.default = default
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Setting[T]": ...
    @overload
    def __get__(self, instance: "Settings", owner: type) -> T: ...
    def __get__(self, instance: Optional["Settings"], owner: type) -> Any:
        if instance is None:
            return self
        for layer in reversed(instance._layers):
            if self.name in layer:
                return layer[self.name]
        values = instance._values
        if self.name not in values:
            instance._check_names()
            text = os.environ.get(self.variable)
            values[self.name] = self.default if text is None else self.read(text)
        return values[self.name]

    def __set__(self, instance: "Settings", value: T) -> None:
        # Within `override`, until the end of that.
        values = instance._layers[-1] if instance._layers else instance._values
        values[self.name] = self.checked(value)
        note_change()

    def checked(self, value: Optional[T]) -> T:
        """The assigned value, which passes the same check as that of the environment."""
        if value is None or value == self.default:
            return self.default
        return self.read(str(int(value)) if isinstance(value, bool) else str(value))

    def read(self, text: str) -> T:
        try:
            return self.parse(text.strip())
        except ValueError as error:
            raise SettingError(
                "E062",
                f"{self.variable} is {text!r}, which is not {error}",
                f"set {self.variable} to {error}, or unset it",
            ) from None


class Settings:
    """The settings from the environment; see the module."""

    cache_dir = Setting[str](
        "TESSERA_CACHE_DIR",
        _path,
        "",
        "where compiled kernels are kept (default: ~/.cache/tessera)",
    )
    cache = Setting[str](
        "TESSERA_CACHE", _choice("rw", "ro", "off"), "rw", "how the cache is used: rw, ro or off"
    )
    cache_size = Setting[int](
        "TESSERA_CACHE_SIZE", _size, 2 << 30, "how large the cache may grow, such as 500M or 2G"
    )
    cache_entries = Setting[int](
        "TESSERA_CACHE_ENTRIES", _entries, 1 << 17, "how many files the cache may have"
    )
    dump_dir = Setting[str](
        "TESSERA_DUMP_DIR", _path, "", "where each stage of each kernel compiled is written"
    )
    override_dir = Setting[str](
        "TESSERA_OVERRIDE_DIR", _path, "", "where a file of a stage's name replaces that stage"
    )
    reproducer_dir = Setting[str](
        "TESSERA_REPRODUCER_DIR", _path, "", "where a bug of the compiler leaves a reproducer"
    )
    num_threads = Setting[int](
        "TESSERA_NUM_THREADS", _count, 0, "threads of a launch on the CPU; 0: one a core"
    )
    symbols = Setting[str](
        "TESSERA_SYMBOLS",
        _choice("off", "perf", "gdb", "all"),
        "off",
        "who is told the names of compiled CPU kernels: perf (in /tmp/perf-PID.map), gdb (with "
        "lines), all or off",
    )
    debug = Setting[bool]("TESSERA_DEBUG", _boolean, False, "whether device_assert is compiled in")
    interpret = Setting[bool](
        "TESSERA_INTERPRET", _boolean, False, "whether kernels run in the reference interpreter"
    )
    cpu = Setting[str]("TESSERA_CPU", _text, "host", "the CPU to compile for, as LLVM names it")
    features = Setting[str](
        "TESSERA_FEATURES", _features, "", "changes to the CPU's features, such as -avx512f"
    )
    cpu_row = Setting[str](
        "TESSERA_CPU_ROW",
        _cpu_row,
        "",
        "a file with figures that tools/bench machine has measured on this CPU, in the place of "
        "those of its row",
    )
    ptxas = Setting[str](
        "TESSERA_PTXAS",
        _path,
        "",
        "the ptxas program (default: of the package nvidia-cuda-nvcc, or of a CUDA toolkit), or "
        "`driver` to leave kernels to the assembler of the GPU's driver",
    )
    ptxas_timeout = Setting[int](
        "TESSERA_PTXAS_TIMEOUT", _seconds, 300, "how long ptxas may take for a kernel, in seconds"
    )
    slow_compile = Setting[int](
        "TESSERA_SLOW_COMPILE",
        _count,
        5,
        "after how many seconds a compilation says that it takes long; 0: never",
    )
    recompile_warning = Setting[int](
        "TESSERA_RECOMPILE_WARNING",
        _count,
        64,
        "after how many times that a kernel was compiled a warning says what keeps changing; 0: "
        "never",
    )
    tune_progress = Setting[str](
        "TESSERA_TUNE_PROGRESS",
        _choice("auto", "plain", "off"),
        "auto",
        "what is told while kernels are tuned, and while torch.compile works for more than 2 s: auto "
        "(a live line on a terminal), plain or off",
    )
    log = Setting[str](
        "TESSERA_LOG",
        _choice("off", "info"),
        "off",
        "whether compilations, the cache, first launches and tuning are told on the standard error "
        "stream: info or off; Python's logger `tessera` has them, too",
    )
    libdevice = Setting[str](
        "TESSERA_LIBDEVICE", _path, "", "the file libdevice.10.bc (default: the one installed)"
    )
    deterministic = Setting[bool](
        "TESSERA_DETERMINISTIC", _boolean, False, "whether every CPU shall give the same bits"
    )
    strict_schedules = Setting[bool](
        "TESSERA_STRICT_SCHEDULES",
        _boolean,
        False,
        "whether it is an error that the compiler refuses a schedule of its own, for tests of the "
        "compiler; else a simpler schedule is taken, and a remark says so",
    )
    deduplicate = Setting[bool](
        "TESSERA_DEDUPLICATE",
        _boolean,
        True,
        "whether layers of a model that repeat are compiled once (tessera.torch)",
    )
    codegen_processes = Setting[int](
        "TESSERA_CODEGEN_PROCESSES",
        _count,
        0,
        "how many processes generate the code of a model at once (tessera.torch); 0: as many as there "
        "are CPUs and workers of Inductor's, up to 12; 1: no others",
    )
    as_triton = Setting[bool](
        "TESSERA_AS_TRITON",
        _boolean,
        False,
        "whether Python finds Tessera as `triton` from its start (tessera.compat.triton)",
    )

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._layers: list[dict[str, Any]] = []
        """The values of `override` blocks, the innermost last."""
        self._names_are_checked = False
        self.generation = 0
        """Grows with each change, so that a launch knows whether it must read settings again."""

    def reload(self) -> None:
        """Forgets what was assigned or read: the environment counts again."""
        self._values.clear()
        for layer in self._layers:
            layer.clear()
        note_change()

    @contextmanager
    def override(self, **values: Any) -> Iterator["Settings"]:
        """Assigns settings for the duration of a `with` block.

        They hold for the whole process: all threads and asyncio tasks have them until the block
        ends. With several blocks, the one that was entered last counts. To change a setting for one
        launch, give the launch an option: `kernel[grid](..., num_threads=1)`.
        """
        known = _by_name()
        for name in values:
            if name not in known:
                raise AttributeError(_no_setting(name))
        # Blocks of several threads may overlap, and end in any order.
        layer: dict[str, Any] = {}
        for name, value in values.items():
            layer[name] = known[name].checked(value)
        self._layers = [*self._layers, layer]
        note_change()
        try:
            yield self
        finally:
            self._layers = [other for other in self._layers if other is not layer]
            note_change()

    def peek(self, name: str) -> Any:
        """The value of a setting without reading the environment for good: its text there, if it has
        not been read yet."""
        for values in (*reversed(self._layers), self._values):
            if name in values:
                return values[name]
        setting = _by_name()[name]
        return os.environ.get(setting.variable, setting.default)

    def _check_names(self) -> None:
        """Warns, once a process, of variables that are nearly those of settings."""
        if self._names_are_checked:
            return
        self._names_are_checked = True
        names = [setting.variable for setting in _by_name().values()]
        for name in os.environ:
            if name.upper().startswith("TES") and name not in names:
                near = closest(name.upper(), names, cutoff=0.86)
                if near:
                    warn_of_machine(f"tessera: there is no setting {name}; did you mean {near}?")

    def __repr__(self) -> str:
        values = [(name, getattr(self, name), item.default) for name, item in _by_name().items()]
        changed = [f"{name}={value!r}" for name, value, default in values if value != default]
        return f"<settings: {', '.join(changed) or 'the defaults'}>"

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name != "generation" and name not in _by_name():
            raise AttributeError(_no_setting(name))
        super().__setattr__(name, value)

    def describe(self) -> Iterator[tuple[str, str, Any, str]]:
        """Variable, name, present value and meaning of each setting."""
        for name, setting in _by_name().items():
            yield setting.variable, name, getattr(self, name), setting.__doc__ or ""


def _no_setting(name: str) -> str:
    known = list(_by_name())
    near = closest(name, known)
    text = f"no setting {name!r}; "
    return text + (f"did you mean {near!r}?" if near else f"there are {', '.join(known)}")


def _by_name() -> dict[str, Setting[Any]]:
    return {name: item for name, item in vars(Settings).items() if isinstance(item, Setting)}


settings = Settings()


def note_change() -> None:
    """Makes every launch repeat its checks."""
    from tessera import _C

    settings.generation += 1
    _C.advance_generation()
    for watch in _watches:
        watch()


_watches: list[Callable[[], None]] = []


def call_after_changes(watch: Callable[[], None]) -> None:
    """Has a function called whenever something has changed that launches depend on."""
    _watches.append(watch)
