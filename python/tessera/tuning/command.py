# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera tune`: the results of tuning that are on disk."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Optional

from tessera.errors import LaunchError
from tessera.tuning.config import OPTIONS, Config, shortly
from tessera.tuning.progress import WHY_NOT_FASTEST, shown_ms
from tessera.tuning.store import Result, add, export, load, results, stored, unspell
from tessera.wording import closest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command. `ops` is done by tessera/ops/tuner.py."""
    commands = parser.add_subparsers(dest="what", required=True)
    which = "a kernel's name, or the beginning of a result's number"
    listing = commands.add_parser("list", help="a line for each result")
    listing.add_argument("which", nargs="?", help=which)
    show = commands.add_parser("show", help="all configurations of a result, with their times")
    show.add_argument("which", nargs="?", help=which)
    exporting = commands.add_parser("export", help="write results to a file, as JSON")
    exporting.add_argument("file", help="the file, or - for the standard output")
    exporting.add_argument("which", nargs="?", help=which)
    importing = commands.add_parser("import", help="add the results of such a file")
    importing.add_argument("file", help="the file, or - for the standard input")
    clear = commands.add_parser("clear", help="remove results")
    clear.add_argument("which", nargs="?", help=which)
    operators = commands.add_parser(
        "ops", help="make a table of tiles for tessera.ops (needs torch)"
    )
    operators.add_argument("--output", help="the file of the table; printed if there is none")
    operators.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    operators.add_argument("--shapes", nargs="*", default=(), help="such as 4096x1024")
    operators.add_argument("--dtypes", nargs="*", help="such as float32 bfloat16")
    operators.add_argument("--only", nargs="*", default=(), help="parts of names of operators")
    operators.add_argument("--seconds", type=float, default=600.0, help="begin nothing after these")
    operators.add_argument("--threads", type=int, default=8, help="that compile")


def run(given: argparse.Namespace) -> int:
    """Does what the arguments say; returns the exit status."""
    if given.what == "import":
        return _import(given.file)
    chosen = _chosen(given.which)
    if not chosen and given.which is not None:
        kernels = sorted({result.kernel for result in stored()})
        near = closest(given.which, kernels)
        print(
            f"there is no result of a kernel {given.which!r}"
            + (f"; did you mean {near!r}?" if near else "; `tune list` shows all"),
            file=sys.stderr,
        )
    if given.what == "list":
        for result in chosen:
            print(_line(result))
        print(f"{len(chosen)} results in {results().root}")
    elif given.what == "show":
        for result in chosen:
            _show(result)
    elif given.what == "export":
        _write(given.file, export(chosen))
        print(f"{len(chosen)} results exported", file=sys.stderr)
    elif given.what == "clear":
        for result in chosen:
            results().forget(result.id)
        if given.which is None:  # those that cannot be read, too
            results().clear()
        print(f"{len(chosen)} results removed")
    return 0 if chosen or given.which is None else 1


def _chosen(which: Optional[str]) -> list[Result]:
    found = sorted(stored(), key=lambda result: (result.kernel, result.date))
    if which is None:
        return found
    return [item for item in found if _is_named(item, which) or item.id.hex().startswith(which)]


def _is_named(result: Result, name: str) -> bool:
    kernel: str = result.kernel
    return kernel == name or kernel.endswith("." + name)


def config_of(described: dict[str, Any]) -> Config:
    """The configuration that `store.describe` described, for people."""
    values = {name: unspell(value) for name, value in described.items()}
    options = {name: values.pop(name) for name in OPTIONS if name in values}
    return Config(values, **options)


def _line(result: Result) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(result.date))
    timing = result.timings[result.best]
    speed = shown_ms(timing[0]) if timing else "not timed"
    mine = "" if result.build == results().build_id else "  (of another build)"
    best = shortly(config_of(result.configs[result.best]))
    return (
        f"{result.id.hex()[:12]}  {when}  {result.kernel} {_key(result)}  {result.device}: "
        f"{best}, {speed}{mine}"
    )


def _key(result: Result) -> str:
    return "(" + ", ".join(str(unspell(value)) for value in result.key) + ")"


def _show(result: Result) -> None:
    print(_line(result))
    print(f"  tuned in {result.seconds:.1f} s by build {result.build}")
    order = sorted(
        range(len(result.configs)), key=lambda at: (result.timings[at] or [float("inf")])[0]
    )
    for at in order:
        timing = result.timings[at]
        speed = "failed" if timing is None else shown_ms(timing[0])
        mark = "*" if at == result.best else " "
        print(f"  {mark} {speed:>10}  {shortly(config_of(result.configs[at]))}")
    print("  (*: the choice)")
    times = [timing[0] for timing in result.timings if timing is not None]
    chosen = result.timings[result.best]
    if chosen is not None and shown_ms(min(times)) != shown_ms(chosen[0]):
        print(f"  Others have lower times here; {WHY_NOT_FASTEST}.")


def _import(path: str) -> int:
    found = load(_read(path))
    if results().mode != "rw":
        raise LaunchError(
            "E061",
            f"nothing is written where TESSERA_CACHE is {results().mode!r}",
            "unset TESSERA_CACHE",
        )
    other = sum(1 for result in found if result.build != results().build_id)
    for result in found:
        add(result)
    print(f"{len(found)} results imported")
    if other:
        print(f"{other} of them are of another build of Tessera, which alone will use them")
    return 0


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise LaunchError("E061", f"cannot read {path!r}: {error}", "name another file") from None


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LaunchError("E061", f"cannot write {path!r}: {error}", "name another file") from None
