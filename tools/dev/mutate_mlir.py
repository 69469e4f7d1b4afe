#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs changed copies of the lit suite's inputs through tessera-opt, none of which may crash it.

A seed chooses a test, and a change of it: numbers, types, attributes, operands, names, lines; in
the pretty and in the generic form. It also chooses the passes: those of the test's own RUN lines,
the target's whole pipeline, or passes out of order. An error is the expected result. A signal, an
abort or a run without end is a finding, which is written as a file with its command.

Forty changed copies are one input of `--split-input-file`, so that few processes are needed. If one
crashes, the copy that caused it is searched for.

    tools/dev/mutate_mlir.py --count 20000 --seed 1 --jobs 2 --out /tmp/mutants
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 40
SECONDS = 20  # more than that for one copy is a run without end
MEMORY = 8 << 30
MOST_OF_A_BATCH = 3  # one defect is often met by most of a batch

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<value>%[\w$.-]+(?:[:#]\d+)?)"""
    r"""|(?P<symbol>@[\w$.-]+)|(?P<alias>[#!^][\w$.-]*)|(?P<shape>(?:(?:\d+|\?)x)+)"""
    r"""|(?P<number>-?\d+\.\d+(?:[eE][-+]?\d+)?|-?0x[0-9a-fA-F]+|-?\d+)"""
    r"""|(?P<name>[A-Za-z_][\w$.]*)|(?P<space>\s+)|(?P<other>->|::|.)""",
    re.S,
)
TYPES = (
    "i1 i8 i16 i32 i64 f16 bf16 f32 f64 f8E4M3FN f8E5M2 f4E2M1FN index none i3 i128 ui8 si32 f80 tf32"
).split()
NUMBERS = (
    "0 1 -1 2 3 5 7 8 16 31 32 33 64 127 128 255 256 1024 65536 2147483647 2147483648 -2147483648 "
    "4294967295 4294967296 9223372036854775807 -9223372036854775808 18446744073709551615 1.0 "
    "0x7FC00000"
).split()
ATTRIBUTES = (
    '32 : i32|-1 : i32|0 : i64|true|unit|"text"|[]|[0 : i32]|array<i32>|array<i32: 0, 1>|'
    "array<i64: -1>|array<i32: 7, 7, 7>|dense<0> : tensor<2xi32>|1.0 : f32|f32|@symbol|{}|"
    "9223372036854775807 : i64|4 : index"
).split("|")


@dataclasses.dataclass(frozen=True)
class Test:
    """A lit test: its modules, and the options of each of its RUN lines."""

    path: str
    modules: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]


@dataclasses.dataclass
class Corpus:
    """All tests, and what is in them for others to be changed to."""

    tests: list[Test]
    operations: list[str]
    names: list[str]
    types: list[str]
    attributes: list[str]
    passes: list[str]


# --- Reading the suite -----------------------------------------------------------------


def read_test(path: pathlib.Path) -> Test | None:
    text = path.read_text()
    runs = []
    for line in re.findall(r"RUN:(.*(?:\\\n.*RUN:.*)*)", text):
        line = re.sub(r"\\\n.*RUN:", " ", line).split("|")[0]
        try:
            words = shlex.split(line.strip())
        except ValueError:
            continue
        if words[:1] == ["not"]:
            words = words[1:]
        if words[:1] != ["tessera-opt"]:
            continue
        options = tuple(
            word
            for word in words[1:]
            if word.startswith("-")
            and not re.match(r"--?(split-input|verify-diag|o$|debug|dump|repro|mlir-|run-)", word)
        )
        if options not in runs:
            runs.append(options)
    if not runs:
        return None
    plain = "\n".join(line for line in text.split("\n") if not re.match(r"\s*//(?! -----)", line))
    modules = tuple(part.strip("\n") + "\n" for part in re.split(r"// -----.*", plain))
    modules = tuple(part for part in modules if part.strip() and len(part) < 12000)
    if not modules:
        return None
    return Test(str(path.relative_to(ROOT)), modules, tuple(runs))


def read_corpus(opt: str) -> Corpus:
    tests = [
        test
        for path in sorted((ROOT / "test").rglob("*.mlir"))
        if "Inputs" not in path.parts and (test := read_test(path))
    ]
    generic = []
    for test in tests:
        whole = "// -----\n".join(test.modules)
        done = subprocess.run(
            [opt, "--split-input-file", "--mlir-print-op-generic"],
            input=whole, capture_output=True, text=True,
        )  # fmt: skip
        parts = [
            part for part in done.stdout.split("// -----") if '"' in part and len(part) < 12000
        ]
        if parts:
            generic.append(Test(test.path + " (generic)", tuple(parts), test.runs))
    everything = "".join(part for test in tests + generic for part in test.modules)
    operations = sorted(
        set(re.findall(r"\b(?:tile|tilegpu|strips|arith|scf|vector)\.\w+", everything))
    )
    names = sorted(set(re.findall(r"\b[a-z][a-z_0-9]{1,20}\b", everything)))
    types = sorted(
        set(
            re.findall(
                r"![\w.]+<[^<>]*(?:<[^<>]*>)?[^<>]*>|tensor<[^<>]*>|vector<[^<>]*>", everything
            )
        )
    )
    attributes = sorted(set(re.findall(r"#[\w.]+<[^<>\n]*>", everything)))
    listed = subprocess.run([opt, "--help"], capture_output=True, text=True).stdout
    passes = re.findall(
        r"^ +--((?:strips|tile|tilegpu|convert-tile|tessera)[\w-]*|canonicalize|cse|sccp|inline) +- ",
        listed, re.M,
    )  # fmt: skip
    return Corpus(tests + generic, operations, names, types, attributes, passes)


# --- Changing a module -------------------------------------------------------------------


def change(text: str, rng: random.Random, corpus: Corpus) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        changed = rng.choice(_CHANGES)(text, rng, corpus)
        # MLIR's own parser ends at an array of anything else.
        if not re.search(r"array<(?!(?:i\d+|f16|bf16|f32|f64)\b)", changed):
            text = changed
    return text


def _tokens(text: str) -> list[tuple[str, str]]:
    return [(match.lastgroup or "", match.group()) for match in TOKEN.finditer(text)]


def _replace(text: str, rng: random.Random, kinds: str, make: object) -> str:
    """One token of one of these kinds becomes what `make` gives for it."""
    tokens = _tokens(text)
    places = [i for i, (kind, _) in enumerate(tokens) if kind in kinds.split()]
    if not places:
        return text
    place = rng.choice(places)
    words = [word for _, word in tokens]
    words[place] = make(words[place])  # type: ignore[operator]
    return "".join(words)


def _number(text: str, rng: random.Random, corpus: Corpus) -> str:
    def make(word: str) -> str:
        try:
            value = int(word, 0)
        except ValueError:
            return rng.choice(NUMBERS)
        near = [str(value + 1), str(value - 1), str(value * 2), str(-value), str(value // 2)]
        return rng.choice((rng.choice(near), rng.choice(NUMBERS)))

    return _replace(text, rng, "number", make)


def _shape(text: str, rng: random.Random, corpus: Corpus) -> str:
    def make(word: str) -> str:
        extents = word[:-1].split("x")
        kind = rng.randrange(4)
        at = rng.randrange(len(extents))
        if kind == 0:
            del extents[at]
        elif kind == 1:
            extents.insert(at, rng.choice(("1", "2", "3", "16")))
        else:
            extents[at] = rng.choice(
                ("0", "1", "2", "3", "4", "7", "8", "16", "24", "64", "128", "512", "1048576", "?")
            )
        return "".join(extent + "x" for extent in extents)

    return _replace(text, rng, "shape", make)


def _everywhere(text: str, rng: random.Random, corpus: Corpus) -> str:
    """A shape, an element type or a number, wherever it is."""
    found = re.findall(r"(?:\d+x)+|\b(?:i1|i8|i16|i32|i64|f16|bf16|f32|f64)\b|\b\d+\b", text)
    if not found:
        return text
    old = rng.choice(found)
    if old.endswith("x"):
        new = "".join(
            rng.choice((part, part, "0", "1", "2", "3", "8", "32", "256")) + "x"
            for part in old[:-1].split("x")
        )
    elif old.isdigit():
        new = rng.choice(NUMBERS)
    else:
        new = rng.choice(TYPES)
    return re.sub(rf"(?<![\w]){re.escape(old)}" + ("" if old.endswith("x") else r"\b"), new, text)


def _element(text: str, rng: random.Random, corpus: Corpus) -> str:
    found = list(re.finditer(r"(?<=[x<\s:(,])(?:i1|i8|i16|i32|i64|f16|bf16|f32|f64|index)\b", text))
    if not found:
        return text
    at = rng.choice(found)
    return text[: at.start()] + rng.choice(TYPES) + text[at.end() :]


def _type(text: str, rng: random.Random, corpus: Corpus) -> str:
    found = list(re.finditer(r"![\w.]+<[^<>]*(?:<[^<>]*>)?[^<>]*>|(?:tensor|vector)<[^<>]*>", text))
    if not found:
        return text
    at = rng.choice(found)
    new = rng.choice((rng.choice(corpus.types), rng.choice(found).group(), rng.choice(TYPES)))
    return text[: at.start()] + new + text[at.end() :]


def _operand(text: str, rng: random.Random, corpus: Corpus) -> str:
    values = [word for kind, word in _tokens(text) if kind == "value"]
    return _replace(text, rng, "value", lambda word: rng.choice(values)) if values else text


def _name(text: str, rng: random.Random, corpus: Corpus) -> str:
    def make(word: str) -> str:
        if "." in word:
            alike = [name for name in corpus.operations if name.split(".")[0] == word.split(".")[0]]
            return rng.choice(rng.choice((alike or corpus.operations, corpus.operations)))
        return rng.choice(corpus.names)

    return _replace(text, rng, "name", make)


def _operation(text: str, rng: random.Random, corpus: Corpus) -> str:
    found = list(re.finditer(r"\b(?:tile|tilegpu|strips|arith|scf|vector)\.\w+", text))
    if not found:
        return text
    at = rng.choice(found)
    alike = [name for name in corpus.operations if name.split(".")[0] == at.group().split(".")[0]]
    return text[: at.start()] + rng.choice(alike) + text[at.end() :]


def _attribute(text: str, rng: random.Random, corpus: Corpus) -> str:
    """`name = value` takes another value."""
    found = list(
        re.finditer(r"(?<=[{,<(\s])([\w.]+) = ([^,{}<>=\n]+(?:<[^<>\n]*>)?)(?=[,}>])", text)
    )
    if not found:
        return text
    at = rng.choice(found)
    if rng.random() < 0.2:
        return text[: at.start()] + text[at.end() :].lstrip(", ")
    new = rng.choice(
        (rng.choice(ATTRIBUTES), rng.choice(found).group(2), rng.choice(corpus.attributes))
    )
    return text[: at.start(2)] + new + text[at.end(2) :]


def _add_attribute(text: str, rng: random.Random, corpus: Corpus) -> str:
    found = list(re.finditer(r"\{(?=[\w.\"]+(?: = |[,}]))", text))
    name = rng.choice(corpus.names)
    known = re.findall(r"[{,] ?([\w.]+) = ", text)
    if known and rng.random() < 0.6:
        name = rng.choice(known)
    if not found:
        found = list(re.finditer(r"(?= : [^\n{]*\n)", text))
        if not found:
            return text
        at = rng.choice(found).start()
        return f"{text[:at]} {{{name} = {rng.choice(ATTRIBUTES)}}}{text[at:]}"
    at = rng.choice(found).end()
    return f"{text[:at]}{name} = {rng.choice(ATTRIBUTES)}, {text[at:]}"


def _line(text: str, rng: random.Random, corpus: Corpus) -> str:
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 2:
        # Under a new name, so that the copy can be more than a redefinition.
        copy = re.sub(r"^(\s*)%[\w]+ =", lambda m: f"{m[1]}%copy{rng.randrange(99)} =", lines[at])
        lines.insert(other, copy)
    else:
        lines.insert(at, lines[other])
    return "\n".join(lines)


def _token(text: str, rng: random.Random, corpus: Corpus) -> str:
    words = [word for _, word in _tokens(text)]
    places = [i for i, word in enumerate(words) if not word.isspace()]
    if not places:
        return text
    at = rng.choice(places)
    kind = rng.randrange(3)
    if kind == 0:
        words[at] = ""
    elif kind == 1:
        words[at] += " " + words[at]
    else:
        other = rng.choice(places)
        words[at], words[other] = words[other], words[at]
    return "".join(words)


def _splice(text: str, rng: random.Random, corpus: Corpus) -> str:
    """Lines of another module."""
    other = rng.choice(rng.choice(corpus.tests).modules).split("\n")
    at = rng.randrange(len(other))
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    lines[place:place] = other[at : at + rng.choice((1, 1, 2, 4))]
    return "\n".join(lines)


_CHANGES = (
    _number, _number, _number, _shape, _shape, _everywhere, _everywhere, _element, _element, _type,
    _type, _operand, _operand, _name, _operation, _attribute, _attribute, _attribute,
    _add_attribute, _line, _line, _token, _splice,
)  # fmt: skip


# --- Running ----------------------------------------------------------------------------


@dataclasses.dataclass
class Finding:
    """A module, the options that it ended tessera-opt with, and what was seen."""

    seed: int
    test: str
    options: tuple[str, ...]
    text: str
    status: int
    signature: str
    log: str


def choose_options(test: Test, rng: random.Random, corpus: Corpus) -> list[tuple[str, ...]]:
    """The test's own passes; a pipeline, or passes out of order."""
    runs = [rng.choice(test.runs)]
    kind = rng.random()
    if kind < 0.2:
        runs.append((rng.choice(("--tessera-host-pipeline", "--tessera-gpu-pipeline")),))
    else:
        count = rng.choice((1, 1, 2, 3))
        runs.append(tuple("--" + rng.choice(corpus.passes) for _ in range(count)))
    if kind > 0.8:
        runs.append((*rng.choice(rng.choice(corpus.tests).runs),))
    return runs


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(
    opt: str, options: tuple[str, ...], modules: list[str], symbols: bool = False
) -> tuple[int, str]:
    """The exit status (124 for a run without end) and what was written to stderr."""
    environment = dict(os.environ)
    if not symbols:
        environment["LLVM_DISABLE_SYMBOLIZATION"] = "1"
    command = [
        opt,
        "--split-input-file",
        "--mlir-disable-threading",
        *options,
        "-",
        "-o",
        os.devnull,
    ]
    try:
        done = subprocess.run(
            command,
            input="\n// -----\n".join(modules), capture_output=True, text=True, errors="replace",
            timeout=SECONDS + 0.5 * len(modules), preexec_fn=_limit, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, "does not end"
    return done.returncode, done.stderr


def ended(status: int) -> bool:
    return status < 0 or status >= 124


def sign(status: int, log: str) -> str:
    """The signature of a defect: the assertion, or the first function of Tessera's in the stack."""
    asserted = re.search(r"Assertion `(.*?)' failed", log, re.S)
    fatal = re.search(
        r"LLVM ERROR: (.*)|runtime error: (.*)|ERROR: AddressSanitizer: (.*?) on", log
    )
    ours = re.search(
        r"/((?:lib|include|tools|unittest|test)/(?!llvm|x86_64)[^\s:]+\.(?:cpp|h)):(\d+)", log
    )
    frames = re.findall(r"#\d+ 0x[0-9a-f]+ (?:in )?(.*?)(?: /| \(|\n)", log)
    head = asserted.group(1) if asserted else fatal.group() if fatal else f"status {status}"
    return f"{head} in {':'.join(ours.groups()) if ours else frames[4:9]}"


def search(opt: str, options: tuple[str, ...], modules: list[str]) -> list[int]:
    """The places of modules each of which ends the tool by itself."""
    if not ended(run(opt, options, modules)[0]):
        return []
    if len(modules) == 1:
        return [0]
    half = len(modules) // 2
    found = search(opt, options, modules[:half])
    if len(found) < MOST_OF_A_BATCH:
        found += [half + i for i in search(opt, options, modules[half:])]
    return found


def run_batch(seed: int, opt: str, corpus: Corpus, size: int) -> tuple[int, list[Finding]]:
    rng = random.Random(seed)
    test = rng.choice(corpus.tests)
    modules = [change(rng.choice(test.modules), rng, corpus) for _ in range(size)]
    findings = []
    for options in choose_options(test, rng, corpus):
        if not ended(run(opt, options, modules)[0]):
            continue
        for at in search(opt, options, modules):
            status, log = run(opt, options, [modules[at]], symbols=True)
            findings.append(
                Finding(seed, test.path, options, modules[at], status, sign(status, log), log)
            )
    return size, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="changed modules to run")
    parser.add_argument("--seed", type=int, default=0, help="the first batch's seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=0, help="stop after that time")
    parser.add_argument("--opt", default=str(ROOT / "build/dev/bin/tessera-opt"))
    parser.add_argument("--out", default="", help="folder for findings and their summary")
    options = parser.parse_args()
    corpus = read_corpus(options.opt)
    started = time.monotonic()
    out = pathlib.Path(options.out) if options.out else None
    if out:
        out.mkdir(parents=True, exist_ok=True)
    total = 0
    kinds: collections.Counter[str] = collections.Counter()
    seeds = range(options.seed, options.seed + -(-options.count // BATCH))

    def one(seed: int) -> tuple[int, list[Finding]]:
        if options.seconds and time.monotonic() - started > options.seconds:
            return 0, []
        return run_batch(seed, options.opt, corpus, BATCH)

    with ThreadPoolExecutor(options.jobs) as pool:
        for size, findings in pool.map(one, seeds):
            total += size
            for finding in findings:
                kinds[finding.signature] += 1
                if kinds[finding.signature] > 3:
                    continue
                print(f"seed {finding.seed} {finding.test}: {finding.signature}", flush=True)
                if out:
                    command = shlex.join(["tessera-opt", *finding.options])
                    path = out / f"{finding.seed}-{sum(kinds.values())}.mlir"
                    log = "\n".join("// " + line for line in finding.log.splitlines()[-60:])
                    path.write_text(f"// {command}\n{finding.text}\n{log}\n")
                    print(f"  {command} {path}", flush=True)
    summary = {
        "modules": total, "first_seed": options.seed, "batches": -(-total // BATCH),
        "ends": sum(kinds.values()), "kinds": dict(kinds.most_common()),
        "seconds": round(time.monotonic() - started),
    }  # fmt: skip
    print(json.dumps(summary, indent=1))
    if out:
        (out / "summary.json").write_text(json.dumps(summary, indent=1))
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
