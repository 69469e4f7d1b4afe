#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Triton's own tests through tessera.compat and reports the outcome of each.

    tools/dev/upstream_suite.py /path/to/triton --device cpu --jobs 2 --json /tmp/suite.json
    tools/dev/upstream_suite.py /path/to/triton --files language/test_core.py --sample 20
    tools/dev/upstream_suite.py --report /tmp/suite.json --write

FOLDER is a checkout, or the part of one that has python/test. Only names of tests enter the
repository: `--write` renews docs/Conformance.md, with the reasons of
tools/dev/upstream_reasons.txt. Needs torch and pytest, and Tessera from its wheel or on PYTHONPATH.

A few processes run each file's tests, one after the other. A process that crashes or takes too long
is replaced, and the others continue.
"""

from __future__ import annotations

import argparse
import ast
import collections
import importlib
import inspect
import json
import os
import pathlib
import queue
import re
import selectors
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any, Iterator, Optional, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
REASONS = ROOT / "tools" / "dev" / "upstream_reasons.txt"
PAGE = ROOT / "docs" / "Conformance.md"

KINDS = {
    "passed": "passed",
    "words": "refused as wanted, in other words",
    "skipped": "skipped by the test itself",
    "text": "looks at IR or assembly",
    "clusters": "asks for clusters (num_ctas above 1)",
    "failed": "failed",
    "ended": "ended the process",
    "timeout": "took too long",
}

FOLDERS = ("language", "runtime", "tools", ".")
"""Of python/test/unit; of the last one the files directly in it."""


# --- In a worker ---------------------------------------------------------------------------


class Worker:
    """A pytest plugin that runs the tests that its parent names, one by one."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self.reader = reader
        self.writer = writer
        self.reports: list[Any] = []
        self.why: Any = None

    def tell(self, **message: Any) -> None:
        self.writer.write(json.dumps(message) + "\n")
        self.writer.flush()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tell(collection=str(report.longrepr)[-4000:], of=report.nodeid)

    def pytest_runtestloop(self, session: Any) -> bool:
        from _pytest.runner import runtestprotocol

        items = {item.nodeid: item for item in session.items}
        self.tell(
            tests=[
                {
                    "id": item.nodeid,
                    "interpreter": item.get_closest_marker("interpreter") is not None,
                    "num_ctas": _num_ctas(item),
                    "forked": item.get_closest_marker("forked") is not None,
                }
                for item in session.items
            ]
        )
        for line in self.reader:
            item = items[json.loads(line)]
            self.reports, self.why = [], None
            start = time.monotonic()
            runtestprotocol(item, nextitem=None, log=False)
            kind, message = self.judge(item)
            self.tell(kind=kind, message=message, seconds=round(time.monotonic() - start, 3))
        return True

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None and self.why is None:
            self.why = (call.when, call.excinfo)

    def judge(self, item: Any) -> tuple[str, str]:
        if self.why is None:
            return "passed", ""
        import pytest

        when, info = self.why
        text = f"{info.typename}: {info.value}"[:2000]
        if info.errisinstance((pytest.skip.Exception, pytest.xfail.Exception)):
            return "skipped", text
        if item.get_closest_marker("xfail") is not None:
            return "skipped", "xfail: " + text
        if _num_ctas(item) > 1:
            return "clusters", text
        return _kind_of_failure(item, info), text


def _num_ctas(item: Any) -> int:
    params = getattr(getattr(item, "callspec", None), "params", {})
    number = params.get("num_ctas", params.get("NUM_CTAS", 1))
    return number if isinstance(number, int) else 1


def _kind_of_failure(item: Any, info: Any) -> str:
    """The kind of a failure: "text" if only the wording of the IR or of an error differs."""
    if info.typename == "MatchError":  # of the text in comments
        return "text"
    code = item.function.__code__
    lines = [
        entry.lineno + 1 for entry in info.traceback if str(entry.path) == code.co_filename
    ] or [0]
    line = lines[0]  # in the test itself; the others are in what it calls
    source = textwrap.dedent(inspect.getsource(code))
    tree = ast.parse(source)
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    failing = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not isinstance(node, (ast.FunctionDef, ast.For, ast.If, ast.With, ast.Try))
        and any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in lines)
    ]
    texts = _names_of_text(tree)
    about_text = any(_reads_text(statement, texts) for statement in failing)
    if about_text:
        return "text"
    raises = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and "pytest.raises" in ast.unparse(node.items[0])
    ]
    if raises and line >= min(raises)[0] and info.typename in ("AssertionError", "Failed"):
        return "failed" if "DID NOT RAISE" in str(info.value) else "words"
    if info.typename == "AssertionError" and any(
        handler.lineno <= line <= (handler.end_lineno or handler.lineno)
        for handler in ast.walk(tree)
        if isinstance(handler, ast.ExceptHandler) and handler.type is not None
    ):
        return "words"
    # An error of another class, where the test wants one.
    if any(first <= line <= last for first, last in raises) and _is_refusal(info.value):
        return "words"
    return "failed"


def _is_refusal(error: Any) -> bool:
    from tessera.errors import InternalError, TesseraError

    return isinstance(error, TesseraError) and not isinstance(error, InternalError)


_TEXT = re.compile(r"\.asm\b|\bget_sass\b|\brun_filecheck|\bllvm_ir\b|run_parser")


def _names_of_text(tree: ast.AST) -> set[str]:
    """Variables that hold IR, or parts of it."""
    names: set[str] = set()
    for _ in range(3):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and _reads_text(ast.unparse(node.value), names):
                for target in node.targets:
                    names |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names


def _reads_text(statement: str, names: set[str]) -> bool:
    return bool(_TEXT.search(statement)) or any(
        re.search(rf"\b{re.escape(name)}\b", statement) for name in names
    )


def shared_fixtures(device: str) -> Any:
    """A pytest plugin with what checkouts of 3.7 and later have in Triton's own package."""
    import pytest

    class Fixtures:
        @pytest.fixture
        def device(self) -> str:
            return device

        @pytest.fixture
        def fresh_triton_cache(self, tmp_path: Any) -> Iterator[str]:
            knobs = importlib.import_module("triton.knobs")
            with knobs.cache.scope(), knobs.runtime.scope():
                knobs.cache.dir = str(tmp_path)
                yield str(tmp_path)

        def _fresh(self, skipped: set[str]) -> Iterator[Any]:
            testing = importlib.import_module("triton._internal_testing")
            fresh, put_back = testing._fresh_knobs_impl(skipped)
            try:
                yield fresh()
            finally:
                put_back()

        @pytest.fixture
        def fresh_knobs(self) -> Iterator[Any]:
            yield from self._fresh({"build", "nvidia", "amd"})

        @pytest.fixture
        def fresh_knobs_including_libraries(self) -> Iterator[Any]:
            yield from self._fresh(set())

    return Fixtures()


def work(arguments: Sequence[str]) -> int:
    """The main function of a worker: file descriptors to read and write, then pytest's options."""
    from tessera.compat import triton

    triton.install()
    import pytest

    reader = os.fdopen(int(arguments[0]), "r")
    writer = os.fdopen(int(arguments[1]), "w")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--continue-on-collection-errors"]
    plugins: list[Any] = [Worker(reader, writer)]
    given = list(arguments[2:])
    conftest = pathlib.Path(given[given.index("--rootdir") + 1]) / "conftest.py"
    if "--device" not in conftest.read_text(encoding="utf-8"):
        at = given.index("--device")
        plugins.append(shared_fixtures(given[at + 1]))
        del given[at : at + 2]
    return int(pytest.main([*options, *given], plugins=plugins))


def run_tutorial(arguments: Sequence[str]) -> int:
    """Runs a tutorial as a script, its benchmarks only where the second argument is "all"."""
    import runpy

    from tessera.compat import triton

    triton.install()
    path, what = arguments
    if what != "all":
        from tessera.testing import Mark

        Mark.run = lambda self, *args, **kwargs: None  # type: ignore[method-assign]
    sys.argv[:] = [path]
    sys.path.insert(1, os.path.dirname(path))
    runpy.run_path(path, run_name="__main__")
    return 0


# --- Around the workers --------------------------------------------------------------------


class Process:
    """A worker, as its parent sees it."""

    def __init__(self, options: Sequence[str], folder: pathlib.Path, log: Any) -> None:
        theirs_in, ours_out = os.pipe()
        read_end, write_end = os.pipe()
        environment = {**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
        self.process = subprocess.Popen(
            [
                sys.executable,
                os.path.abspath(__file__),
                "--worker",
                str(theirs_in),
                str(write_end),
                *options,
            ],
            pass_fds=(theirs_in, write_end),
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(write_end)
        self.writer = os.fdopen(ours_out, "w")
        self.reader = os.fdopen(read_end, "rb", buffering=0)
        self.buffer = b""

    def say(self, nodeid: str) -> None:
        self.writer.write(json.dumps(nodeid) + "\n")
        self.writer.flush()

    def hear(self, seconds: float) -> Optional[dict[str, Any]]:
        """The next message; None where the worker has ended. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.reader, selectors.EVENT_READ)
            while b"\n" not in self.buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                piece = self.reader.read(1 << 16)
                if not piece:
                    return None
                self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def end(self) -> int:
        try:
            self.writer.close()
        except OSError:
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Suite:
    """The tests of one checkout."""

    def __init__(self, folder: pathlib.Path, given: argparse.Namespace) -> None:
        self.tests = folder / "python" / "test"
        if not self.tests.is_dir():
            sys.exit(f"{folder} has no python/test")
        self.given = given
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.data = {
            "suite": given.name or folder.name,
            "machine": machine(given.device),
            "sample": given.sample,
            "marked": given.interpreter,
            "rows": self.rows,
            "notes": self.notes,
        }
        self.lock = threading.Lock()
        self.log = open(given.log or os.devnull, "a")

    def files(self) -> Iterator[pathlib.Path]:
        unit = self.tests / "unit"
        if self.given.files:
            yield from (unit / name for name in self.given.files)
            return
        for name in FOLDERS:
            yield from sorted((unit / name).glob("test_*.py"))

    def start(self, file: pathlib.Path) -> Process:
        options = [str(file), "--device", self.given.device, "--rootdir", str(self.tests)]
        if self.given.tests:
            options += ["-k", self.given.tests]
        return Process(options, self.tests, self.log)

    def run_file(self, file: pathlib.Path) -> None:
        first = self.start(file)
        tests: Optional[list[dict[str, Any]]] = None
        name = str(file.relative_to(self.tests / "unit"))
        while tests is None:
            try:
                message = first.hear(300)
            except TimeoutError:
                message = None
            if message is None:
                first.kill()
                self.note(name, "cannot be collected")
                return
            if "collection" in message:
                self.note(name, message["collection"].strip().splitlines()[-1])
            tests = message.get("tests")
        if self.given.interpreter:
            tests = [test for test in tests if test["interpreter"]]
        wanted = list(self.sampled(tests))
        todo: "queue.Queue[dict[str, Any]]" = queue.Queue()
        for test in wanted:
            todo.put(test)
        count = max(1, min(self.given.jobs, (len(wanted) + 7) // 8))
        threads = [
            threading.Thread(target=self.serve, args=(file, name, todo, first if k == 0 else None))
            for k in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run_tutorials(self) -> None:
        """Runs each tutorial in a process. Its asserts and its exit status are the result."""
        folder = self.tests.parent / "tutorials"
        wanted = self.given.tutorials or [f"{number:02}" for number in range(1, 10)]
        for path in sorted(folder.glob("[0-9]*.py")):
            if not any(path.name.startswith(name) for name in wanted):
                continue
            print(path.name, flush=True)
            what = "all" if self.given.benchmarks else "asserts"
            command = [sys.executable, os.path.abspath(__file__), "--tutorial", str(path), what]
            environment = {**os.environ, "MPLBACKEND": "Agg"}
            start = time.monotonic()
            try:
                done = subprocess.run(
                    command,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=self.given.limit,
                )
                kind = "passed" if done.returncode == 0 else "failed"
                kind = "ended" if done.returncode < 0 else kind
                message = "" if kind == "passed" else done.stderr[-2000:]
                self.log.write(f"== {path.name}\n{done.stdout}\n{done.stderr}\n")
            except subprocess.TimeoutExpired:
                kind, message = "timeout", ""
            test = {"id": f"tutorials/{path.name}", "interpreter": False, "num_ctas": 1}
            last = message.strip().splitlines()[-1:] or [""]
            self.record(test, "tutorials", kind, last[0], round(time.monotonic() - start, 1))

    def save(self) -> None:
        """Writes the current results to the requested file."""
        if self.given.json:
            pathlib.Path(self.given.json).write_text(json.dumps(self.data, indent=1))

    def note(self, name: str, text: str) -> None:
        self.notes.append(f"{name}: {text}")
        print(f"{name}: {text}", flush=True)

    def sampled(self, tests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        by_function = collections.defaultdict(list)
        for test in tests:
            by_function[function_of(test["id"])].append(test)
        for group in by_function.values():
            most = self.given.sample or len(group)
            if len(group) <= most:
                yield from group
            else:  # spread evenly, and not always on the same values of a parameter
                yield from (group[int((k + 0.5) * len(group) / most)] for k in range(most))

    def serve(self, file: pathlib.Path, name: str, todo: Any, worker: Optional[Process]) -> None:
        fresh = worker is not None
        while True:
            try:
                test = todo.get_nowait()
            except queue.Empty:
                break
            if worker is None:
                worker = self.start(file)
                fresh = False
            kind, message, seconds = "timeout", "", float(self.given.limit)
            try:
                if not fresh:  # it collects first
                    while (heard := worker.hear(300)) is not None and "tests" not in heard:
                        pass
                    fresh = True
                worker.say(test["id"])
                answer = worker.hear(self.given.limit)
            except (TimeoutError, BrokenPipeError) as error:
                answer = {} if isinstance(error, TimeoutError) else None
            if answer:
                kind, message, seconds = answer["kind"], answer["message"], answer["seconds"]
            elif answer is None:
                kind, seconds = "ended", 0.0
                message = f"status {worker.end()}"
                worker = None
            else:
                worker.kill()
                worker = None
            self.record(test, name, kind, message, seconds)
            if test["forked"] and worker is not None:  # it may leave the GPU unusable
                worker.end()
                worker = None
        if worker is not None:
            worker.end()

    def record(self, test: dict[str, Any], file: str, kind: str, message: str, s: float) -> None:
        row = {**test, "file": file, "kind": kind, "message": message, "seconds": s}
        row.pop("forked", None)
        with self.lock:
            self.rows.append(row)
            if kind in ("failed", "ended", "timeout") and not self.given.quiet:
                first = message.strip().splitlines()[0][:200] if message.strip() else ""
                print(f"{kind:8} {test['id'].rpartition('/')[2]}: {first}", flush=True)
            if len(self.rows) % 500 == 0:
                print(f"{len(self.rows)} tests", flush=True)
                self.save()


def function_of(nodeid: str) -> str:
    """`path::function`, the path below python/test/unit."""
    return nodeid.partition("[")[0].removeprefix("unit/")


# --- What is said --------------------------------------------------------------------------


def read_reasons() -> dict[str, str]:
    """Why a function fails for good, by its name: lines `file::function: reason`."""
    reasons = {}
    if REASONS.exists():
        for line in REASONS.read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition(": ")
                reasons[name.strip()] = reason.strip()
    return reasons


def count(rows: Sequence[dict[str, Any]]) -> "collections.Counter[str]":
    return collections.Counter(row["kind"] for row in rows)


def share(rows: Sequence[dict[str, Any]]) -> str:
    """How many of the tests that are run and of meaning here are right."""
    counts = count(rows)
    right = counts["passed"] + counts["words"]
    run = sum(counts.values()) - counts["skipped"] - counts["clusters"]
    return f"{right} of {run} ({100 * right / run:.2f} %)" if run else "none"


def summary(data: dict[str, Any]) -> list[str]:
    rows = data["rows"]
    counts = count(rows)
    lines = [f"{KINDS[kind]}: {counts[kind]}" for kind in KINDS if counts[kind]]
    marked = [row for row in rows if row["interpreter"]]
    lines.append(f"right of all that are run, clusters aside: {share(rows)}")
    lines.append(f"right of those marked `interpreter`, clusters aside: {share(marked)}")
    untexted = [row for row in rows if row["kind"] != "text"]
    lines.append(f"right of those that look at no IR text, clusters aside: {share(untexted)}")
    return lines


def page(runs: Sequence[dict[str, Any]]) -> str:
    """docs/Conformance.md."""
    out = [
        "# Conformance",
        "",
        "This page says how Triton's own tests fare when `tessera.compat.triton` stands for Triton.",
        "`tools/dev/upstream_suite.py` runs them and writes the page. A test is right if it passes, or if",
        "it wants an error and Tessera raises one in its own words (*refused as wanted*). Tests that",
        "search the text of IR or assembly cannot pass, since that text is Tessera's.",
        "",
        "Each function that is not right as a whole has a reason, from `tools/dev/upstream_reasons.txt`.",
        "The page has the names of Triton's tests, and nothing else of them.",
    ]
    reasons = read_reasons()
    for data in runs:
        out += ["", f"## {data['suite']} on {data['machine']}", ""]
        if data.get("sample"):
            out += [f"At most {data['sample']} cases of each function, spread evenly.", ""]
        if data.get("marked"):
            out += ["Only cases that are marked `interpreter`.", ""]
        out += [f"- {line}" for line in summary(data)]
        groups: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
        for row in data["rows"]:
            groups[function_of(row["id"])].append(row)
        whole = [n for n, rows in groups.items() if not set(count(rows)) - {"passed", "skipped"}]
        out += ["", f"{len(whole)} of {len(groups)} functions pass as a whole or skip. The others:"]
        out += ["", "| function | right | failed | other | reason |", "|---|---|---|---|---|"]
        for name, rows in sorted(groups.items()):
            if name in whole:
                continue
            counts = count(rows)
            right = counts["passed"] + counts["words"]
            failed = counts["failed"] + counts["ended"] + counts["timeout"]
            other = ", ".join(
                f"{counts[kind]} {kind}" for kind in ("skipped", "text", "clusters") if counts[kind]
            )
            notes = [reasons[name]] if name in reasons else []
            if counts["words"]:
                notes.append(f"{counts['words']} {KINDS['words']}")
            if counts["ended"] or counts["timeout"]:
                notes.append(f"ended {counts['ended']}, too long {counts['timeout']}")
            out.append(f"| `{name}` | {right} | {failed} | {other} | {'; '.join(notes)} |")
        if data.get("notes"):
            out += ["", "Files that cannot be loaded:", ""]
            for note in data["notes"]:
                name = note.partition(":")[0]
                out.append(f"- `{name}`: {reasons.get(name, note.partition(': ')[2])}")
    return "\n".join(out) + "\n"


def machine(device: str) -> str:
    if device == "cpu":
        return "the CPU"
    import torch

    return str(torch.cuda.get_device_name(0))


def written_by_hand(text: str) -> str:
    """The part of the page that no run of this writes: what became of libraries."""
    before, heading, after = text.partition("\n## Libraries of Triton kernels\n")
    return heading + after


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--worker"]:
        return work(arguments[1:])
    if arguments[:1] == ["--tutorial"]:
        return run_tutorial(arguments[1:])
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="a checkout of Triton's")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--tests", help="an expression as pytest's -k takes")
    parser.add_argument("--files", nargs="*", help="of python/test/unit, such as runtime/test_x.py")
    parser.add_argument("--sample", type=int, default=0, help="at most so many cases a function")
    parser.add_argument("--interpreter", action="store_true", help="only cases marked so")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a test may take")
    parser.add_argument("--tutorials", nargs="*", help="run these instead, or 01 to 09: 03 05 ...")
    parser.add_argument("--benchmarks", action="store_true", help="those of tutorials, too")
    parser.add_argument("--name", help="what to call the suite, such as 'Triton 3.6'")
    parser.add_argument("--json", help="where to put what became of each test")
    parser.add_argument("--log", help="a file for what workers print")
    parser.add_argument("--report", nargs="*", help="such files, to write the page of them")
    parser.add_argument("--write", action="store_true", help="renew docs/Conformance.md")
    parser.add_argument("--quiet", action="store_true", help="do not list failures")
    given = parser.parse_args(arguments)
    runs = [json.loads(pathlib.Path(name).read_text()) for name in given.report or ()]
    if given.folder:
        suite = Suite(pathlib.Path(given.folder).resolve(), given)
        if given.tutorials is not None:
            suite.run_tutorials()
        for file in suite.files() if given.tutorials is None else ():
            suite.run_file(file)
            suite.save()
        suite.save()
        data = suite.data
        runs.append(data)
        print("\n".join(summary(data)))
    elif not runs:
        parser.error("name a folder, or reports")
    if given.write:
        PAGE.write_text(page(runs) + written_by_hand(PAGE.read_text("utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
