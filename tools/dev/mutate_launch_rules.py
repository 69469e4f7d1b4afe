#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes each rule of launches out in turn, and says which test files fail then.

A rule distinguishes kernels (the alignment of an address, say) or refuses an argument. The whole
path of a launch has it in Python, the warm path in C++; some rules are shared. For each rule and
path, exactly the one file of python/test/launch_rules that the table names has to fail.

A copy of python/ gets all changes at once: `old` becomes `new if the rule is out else old`. One
build of tessera._C has them all, and an environment variable names the rule that is out. So the
sources of the project have no switch. Tests run in processes that are forked from one that has
loaded torch and JAX.

    tools/dev/mutate_launch_rules.py [--only TEXT] [--work FOLDER] [TEST FILE...]

Needs build/dev.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple, Optional, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIABLE = "TESSERA_RULE_OUT"
SECONDS = 300
"""Tests that take longer have no end."""

FILES = [
    "launch_rules", "runtime/test_array_streams.py", "runtime/test_arrays.py", "runtime/test_grids.py", "runtime/test_launch.py",
    "runtime/test_launch_mistakes.py", "runtime/test_launch_records.py", "runtime/test_runner.py",
    "runtime/test_specialize.py", "runtime/test_tensor_descriptor.py",
    "runtime/test_tensor_subclasses.py", "runtime/test_warm_arguments.py",
    "runtime/test_warm_paths.py", "tuning/test_heuristics.py", "tuning/test_warm_launch.py",
]  # fmt: skip
"""The tests of launches, below python/test."""


LEFT_OUT = (
    "test_lists_of_very_many_arrays", "test_a_new_process_finds_the_kernel",
    "test_numbers_are_rounded_once", "test_arrays_of_a_list_live_until_the_launch_is_done",
    "test_a_damaged_cache_is_compiled_around", "test_many_variants_are_warned_about",
)  # fmt: skip
"""Tests of other things, which take half of the time."""


class Edit(NamedTuple):
    """A change of an expression that occurs once in a file."""

    file: str
    old: str
    new: str
    context: str = "{}"
    """The text around the expression that makes it unique."""


class Rule(NamedTuple):
    name: str
    test: str
    """The test file that fails without the rule."""
    whole: Optional[Edit] = None
    warm: Optional[Edit] = None
    both: Optional[Edit] = None
    """Of a rule that the two paths share."""
    second: Optional[Edit] = None
    """The other place of the same rule in a path."""


SPECIALIZE = "tessera/runtime/specialize.py"
ARRAYS = "tessera/runtime/arrays.py"
LAUNCHING = "tessera/runtime/launching.py"
SIGNATURE = "src/Signature.cpp"
IN_ARRAYS = "src/ArrayArguments.cpp"
DISPATCHER = "src/Dispatcher.cpp"
NUMBERS = "src/Numbers.h"

RULES = [
    Rule(
        "the width of an integer",
        "test_numbers.py",
        both=Edit(NUMBERS, "integer == static_cast<int32_t>(integer)", "false"),
    ),
    Rule(
        "the integer 1 is a constant",
        "test_numbers.py",
        both=Edit(NUMBERS, "integer == 1 && onValue", "false"),
    ),
    Rule(
        "the alignment of an integer",
        "test_numbers.py",
        both=Edit(
            NUMBERS,
            "onValue && onAlignment",
            "false",
            "{} ? alignmentClass(slot) : char(0), slot}};\n}}\n\n/// Specialises a Python bool",
        ),
    ),
    Rule(
        "the range of an annotated number",
        "test_numbers.py",
        whole=Edit(
            SPECIALIZE, "dtype.get_int_min_value() <= number <= dtype.get_int_max_value()", "True"
        ),
        warm=Edit(NUMBERS, "!fitsInteger(dtype, integer, overflow)", "false"),
    ),
    Rule(
        "the alignment of an annotated integer",
        "test_numbers.py",
        whole=Edit(
            SPECIALIZE, "_C.alignment_class(int(number) % (1 << 64)) if aligned else 0", "0"
        ),
        warm=Edit(NUMBERS, "onValue && onAlignment", "false", "result = {{dtype, {} ?"),
    ),
    Rule(
        "the element type of an array",
        "test_pointers.py",
        whole=Edit(SPECIALIZE, "dtype._core_id", "0", 'return ("p", {}, is_const'),
        warm=Edit(SIGNATURE, "dtype", "char(0)", "return {{kPointer, {}, known"),
    ),
    Rule(
        "the alignment of an address",
        "test_pointers.py",
        whole=Edit(SPECIALIZE, "_C.alignment_class(pointer.address) if aligned else 0", "0"),
        warm=Edit(
            SIGNATURE,
            "parameter.onValue && parameter.onAlignment",
            "false",
            "char alignment = {} ? alignmentClass(address)",
        ),
    ),
    Rule(
        "the type that an array is reinterpreted as",
        "test_pointers.py",
        whole=Edit(ARRAYS, "pointer._replace(dtype=value.dtype)", "pointer"),
        warm=Edit(
            IN_ARRAYS,
            "static_cast<char>(PyLong_AsLong(id.ptr()))",
            "bytes[at + 1]",
        ),
    ),
    Rule(
        "constants of other types differ",
        "test_constants.py",
        whole=Edit(
            SPECIALIZE, "cls", '""', 'or isinstance(value, Enum):\n        return ("c", {}, value)'
        ),
        warm=Edit(
            SIGNATURE,
            "Py_TYPE(left) != Py_TYPE(right)",
            "Py_TYPE(left) != Py_TYPE(right) && !(PyLong_Check(left) && PyLong_Check(right))",
        ),
    ),
    Rule(
        "constants that are floats count by their bits",
        "test_constants.py",
        whole=Edit(SPECIALIZE, 'struct.pack("<d", value)', "value"),
        warm=Edit(
            SIGNATURE,
            "std::memcmp(&values[0], &values[1], sizeof(double)) == 0",
            "values[0] == values[1]",
        ),
    ),
    Rule(
        "a constant that may change in place counts by its value",
        "test_constants.py",
        whole=Edit(SPECIALIZE, "may_change(value)", "False", "if not self.changing and {}:"),
    ),
    Rule(
        "the options of a launch",
        "test_constants.py",
        whole=Edit(
            "tessera/runtime/specialisations.py",
            "options.key",
            'tuple(item for item in options.key if item[0] != "enable_fp_fusion")',
            "        tuple(bound.key),\n        {},\n",
        ),
        warm=Edit(
            SIGNATURE, "value", "Py_None", "constants.push_back(name);\n    addConstant({});"
        ),
    ),
    Rule(
        "the class of a tuple",
        "test_tuples.py",
        whole=Edit(SPECIALIZE, "parts.cls", "None", 'return ("t", {}, *keys)'),
        warm=Edit(
            SIGNATURE,
            "reinterpret_cast<PyObject *>(Py_TYPE(value))",
            "Py_None",
            "if (!isPlain)\n    constants.push_back({});",
        ),
    ),
    Rule(
        "the length of a tuple",
        "test_tuples.py",
        warm=Edit(
            SIGNATURE,
            "static_cast<char>(size)",
            "char(0)",
            "bytes.append<2>({{{}, static_cast<char>(size >> 8)",
        ),
    ),
    Rule(
        "the padding of a descriptor",
        "test_descriptors.py",
        whole=Edit(SPECIALIZE, "value.padding", "0", 'key = ("d", block_shape, {}, rounds'),
        warm=Edit(IN_ARRAYS, "(isNaN ? 2 : 0)", "0"),
    ),
    Rule(
        "how a descriptor rounds",
        "test_descriptors.py",
        whole=Edit(SPECIALIZE, "rounds", "0", "{}, *keys)\n        return key, DescriptorSpec"),
        warm=Edit(IN_ARRAYS, "(rounds.ptr() == Py_True)", "0"),
    ),
    Rule(
        "the block of a descriptor",
        "test_descriptors.py",
        whole=Edit(SPECIALIZE, "block_shape", "0", 'key = ("d", {}, '),
        warm=Edit(
            IN_ARRAYS,
            "static_cast<char>(__builtin_ctzll(static_cast<uint64_t>(extent)))",
            "char(0)",
        ),
    ),
    Rule(
        "no kernel writes a read-only array",
        "test_refused_arrays.py",
        whole=Edit(LAUNCHING, "any(item.pointer.read_only for item in bound.pointers)", "False"),
        warm=Edit(SIGNATURE, "readOnly ? 1 : 0", "0"),
    ),
    Rule(
        "no array has the negative bit",
        "test_refused_arrays.py",
        whole=Edit(ARRAYS, "ask()", "False", "is not None and {}:"),
        warm=Edit("src/TorchTensors.h", "accepted == found", "true"),
    ),
    Rule(
        "no array has a mask",
        "test_refused_arrays.py",
        whole=Edit(
            ARRAYS,
            'interface.get("mask") is not None',
            "False",
            '{}:\n        _refuse(array, name, "has a mask", "pass the values and the mask as two arrays")\n    if type(array)',
        ),
        warm=Edit(IN_ARRAYS, "(!mask || mask.is_none())", "true"),
    ),
    Rule(
        "no array lies at address 0",
        "test_refused_arrays.py",
        whole=Edit(ARRAYS, "address == 0 and size != 0", "False"),
        warm=Edit(IN_ARRAYS, "found >= static_cast<int64_t>(kLowestAddress)", "true"),
    ),
    Rule(
        "the values that a compilation has read",
        "test_currency.py",
        whole=Edit("tessera/runtime/specialisations.py", "_C.is_current(self.all_checks)", "True"),
        warm=Edit(
            DISPATCHER,
            "record.family->getUsual().isCurrent()",
            "true",
            "record.family &&\n      {}) {{",
        ),
    ),
    Rule(
        "settings and hooks that change",
        "test_currency.py",
        warm=Edit(
            DISPATCHER,
            "dispatcher->generation != currentGeneration",
            "false",
            "takeSlowWay = [&](const Signature *signature) {{\n    return callSlow(dispatcher, grid, call, signature);\n  }};\n  if ({})",
        ),
        second=Edit(DISPATCHER, "dispatcher->generation == currentGeneration", "true"),
    ),
    Rule(
        "slots that are not the signature's",
        "test_currency.py",
        warm=Edit(
            DISPATCHER,
            "PyLong_AsUnsignedLongLongMask(py::object(slots[i]).ptr()) != signature.slots[i]",
            "false",
        ),
    ),
    Rule(
        "the stream that an array names",
        "test_array_streams.py",
        whole=Edit(
            "tessera/runtime/cuda.py", "pointer.stream is not None", "False", "pointers if {}), 0)"
        ),
        warm=Edit(SIGNATURE, "streams.getDeciding()", "static_cast<PyObject *>(nullptr)"),
    ),
    Rule(
        "the value of a tuned kernel's key",
        "test_warm_launch.py",
        warm=Edit(SIGNATURE, "parameter.isKey && !parameter.isConstexpr", "false"),
    ),
    Rule(
        "one value for each parameter",
        "test_binding.py",
        whole=Edit(
            "tessera/runtime/parameters.py",
            "param.name in rest",
            "False",
            'param.kind == "positional":\n            if {}:',
        ),
        warm=Edit(
            SIGNATURE,
            "values[at]",
            "nullptr",
            "    if ({})\n      return false;\n    values[at] = value;",
        ),
    ),
    Rule(
        "what is passed by name alone",
        "test_binding.py",
        whole=Edit("tessera/runtime/parameters.py", 'param.kind == "positional"', "True"),
        warm=Edit(
            SIGNATURE,
            "all[numByPlace].passing == Passing::Any",
            "all[numByPlace].passing != Passing::Rest",
        ),
    ),
]


def guarded(edit: Edit, name: str, text: str) -> str:
    """The text of a file in which the environment chooses between the two expressions."""
    before, after = edit.context.split("{}") if edit.context.count("{}") == 1 else ("", "")
    before, after = before.replace("{{", "{").replace("}}", "}"), after.replace("{{", "{").replace(
        "}}", "}"
    )
    place = before + edit.old + after
    if text.count(place) != 1:
        raise SystemExit(f"{edit.file}: {text.count(place)} places for the rule `{name}`: {place}")
    if edit.file.endswith(".py"):
        chosen = f"({edit.new} if _rule_is_out({name!r}) else {edit.old})"
    else:
        chosen = f"(tesseraRuleIsOut({json.dumps(name)}) ? ({edit.new}) : ({edit.old}))"
    return text.replace(place, before + chosen + after)


HEADS = {
    ".py": f"""
import os as _os_of_rules


def _rule_is_out(name):
    return _os_of_rules.environ.get("{VARIABLE}") == name


""",
    ".cpp": f"""#ifndef TESSERA_RULE_IS_OUT
#define TESSERA_RULE_IS_OUT
#include <cstdlib>
#include <cstring>
inline bool tesseraRuleIsOut(const char *name) {{
  const char *out = std::getenv("{VARIABLE}");
  return out && !std::strcmp(out, name);
}}
#endif
""",
}
HEADS[".h"] = HEADS[".cpp"]


class Mutant(NamedTuple):
    rule: Rule
    path: str
    edit: Edit

    @property
    def name(self) -> str:
        return f"{self.path}: {self.rule.name}"


def list_mutants() -> list[Mutant]:
    found = []
    for rule in RULES:
        for path in ("both", "whole", "warm"):
            edit = getattr(rule, path)
            if edit is not None:
                found.append(Mutant(rule, path, edit))
    return found


def prepare(work: pathlib.Path) -> None:
    """Copies python/, changes the copy, and builds its tessera._C."""
    python = work / "python"
    # Without links to what is built.
    shutil.copytree(
        ROOT / "python",
        python,
        ignore=shutil.ignore_patterns("__pycache__", "*.so", "examples", "benchmarks"),
        symlinks=True,
    )
    texts: dict[str, str] = {}
    for mutant in list_mutants():
        file = mutant.edit.file
        text = texts.get(file) or (python / file).read_text(encoding="utf-8")
        texts[file] = guarded(mutant.edit, mutant.name, text)
        if mutant.rule.second is not None:
            texts[file] = guarded(mutant.rule.second, mutant.name, texts[file])
    for file, text in texts.items():
        head = HEADS[pathlib.Path(file).suffix]
        if file.endswith(".py"):
            first = "from __future__ import annotations\n"
            text = text.replace(first, first + head, 1)
        else:
            text = head + text
        (python / file).write_text(text, encoding="utf-8")
    build(python)


def build(python: pathlib.Path) -> None:
    """Compiles all sources of the module with the changed headers, and links them."""
    tree = ROOT / "build" / "dev"
    (library,) = tree.glob("lib/_C.*.so")
    commands = subprocess.run(
        ["ninja", "-t", "commands", f"lib/{library.name}"],
        cwd=tree, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    sources = str(ROOT / "python/src")
    compiles = []
    for command in commands:
        if f"{sources}/" in command and " -c " in command:
            # The guards are not all free of warnings.
            command = command.replace(f"{sources}/", f"{python}/src/") + " -Wno-error"
            compiles.append(
                re.sub(
                    r"python/CMakeFiles/tessera_python.dir/(\S+)\.o\b(\.d)?",
                    rf"{python}/\1.o\2",
                    command,
                )
            )
    running: list[subprocess.Popen[bytes]] = []
    for command in compiles:
        while len([process for process in running if process.poll() is None]) >= (
            os.cpu_count() or 1
        ):
            time.sleep(0.2)
        running.append(subprocess.Popen(command, shell=True, cwd=tree))
    if any(process.wait() for process in running):
        raise SystemExit("a changed source does not compile")
    link = re.sub(
        r"python/CMakeFiles/tessera_python.dir/(src/\S+\.o)\b", rf"{python}/\1", commands[-1]
    )
    link = re.sub(rf"-o \S*{re.escape(library.name)}", f"-o {python}/tessera/{library.name}", link)
    link = link.removeprefix(": && ").split(" && ")[0]
    subprocess.run(link, shell=True, cwd=tree, check=True)
    (python / "tessera/libtessera.so").symlink_to(tree / "lib/libtessera.so")


# --- The process that runs tests ---------------------------------------------------------------


def find_failures(files: Sequence[pathlib.Path], rule: str) -> dict[str, str]:
    """The test files that fail without a rule, each with its tests that do. They run in a process
    of their own, and each in one if that is ended by a signal or has no end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.setsid()
        os._exit(_run_tests(files, rule, write))
    os.close(write)
    end = time.monotonic() + SECONDS
    status = 0
    while not os.waitpid(child, os.WNOHANG)[0] and time.monotonic() < end:
        time.sleep(0.02)
    if time.monotonic() >= end:
        os.killpg(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    with os.fdopen(read) as stream:
        said = stream.read().splitlines()
    if not said or said[-1] != "done":
        if len(files) == 1:
            return {files[0].name: "the process ends" if status == 0 else "no end"}
        found: dict[str, str] = {}
        for file in files:
            found |= find_failures([file], rule)
        return found
    found = {}
    for line in said[:-1]:
        name, test = line.split(" ", 1)
        found[name] = f"{found[name]}; {test}" if name in found else test
    return found


def _run_tests(files: Sequence[pathlib.Path], rule: str, write: int) -> int:
    import pytest

    class Reporter:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                path, _, test = report.nodeid.partition("::")
                os.write(write, f"{path.rpartition('/')[2]} {test}\n".encode())

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                os.write(write, f"{report.nodeid.rpartition('/')[2]} is not read\n".encode())

    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    os.environ[VARIABLE] = rule
    # Kernels of equal text would share entries, whose keys lack a rule.
    os.environ["TESSERA_CACHE"] = "off"
    options = ["-q", "-p", "no:cacheprovider", "--no-header", *map(str, files)]
    options += ["-k", " and ".join(f"not {name}" for name in LEFT_OUT)]
    status = int(pytest.main(options, plugins=[Reporter()]))
    os.write(write, b"done\n")
    return status


def run_all(work: pathlib.Path, only: str, names: Sequence[str]) -> int:
    """Prints a row for each rule and path; 1 if one does not fail in its one file."""
    tests = work / "python/test"
    os.chdir(work)
    files = []
    for name in names or FILES:
        path = tests / name
        files += sorted(path.glob("test_*.py")) if path.is_dir() else [path]
    for package in ("torch", "jax.numpy", "pytest", "tessera"):
        try:
            __import__(package)
        except ImportError:
            print(f"without {package}")
    failures = 0
    for rule, test in [("", "")] + [(mutant.name, mutant.rule.test) for mutant in list_mutants()]:
        if only not in rule:
            continue
        start = time.monotonic()
        failed = find_failures(files, rule)
        is_fine = list(failed) == [test] if test else not failed
        failures += not is_fine
        shown = ", ".join(f"{name} ({said})" for name, said in failed.items())
        mark = "ok" if is_fine else f"WRONG, {test or 'no file'} wanted"
        print(
            f"| {rule or 'no rule'} | {shown} | {mark}, {time.monotonic() - start:.0f} s",
            flush=True,
        )
    return 1 if failures else 0


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", help="test files or folders below python/test")
    parser.add_argument("--only", default="", help="only rules whose name holds this text")
    parser.add_argument("--work", help="an empty folder for the changed copy")
    parser.add_argument("--prepared", action="store_true", help="the folder has it already")
    arguments = parser.parse_args()
    work = pathlib.Path(arguments.work or tempfile.mkdtemp(prefix="launch-rules-"))
    if not arguments.prepared:
        prepare(work)
    if os.environ.get("PYTHONPATH") != str(work / "python"):
        command = [sys.executable, __file__, *arguments.files, "--only", arguments.only]
        command += ["--work", str(work), "--prepared"]
        environment = {**os.environ, "PYTHONPATH": str(work / "python")}
        return subprocess.run(command, env=environment).returncode
    return run_all(work, arguments.only, arguments.files)


if __name__ == "__main__":
    sys.exit(main())
