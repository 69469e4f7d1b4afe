#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes kernels at random and compiles them with the front-end: each must be accepted or refused.

The kernels are those of python/examples and python/test. A seed chooses a kernel, and a change of
its signature or its syntax tree (constants, names, operators, arguments, statements, expressions of
other kernels). The expected result is tile IR that verifies, or an error with an id and a place.
Another exception, an internal error, a signal or a compilation without end is a finding, which is
written as a file.

    tools/dev/mutate_kernels.py --count 20000 --seed 1 --jobs 2 --out /tmp/kernels
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import dataclasses
import json
import linecache
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 400  # kernels for one process
SECONDS = 30.0  # more than that for one kernel is a compilation without end
MEMORY = 8 << 30
HEAD = "import math\nimport tessera\nimport tessera.language as tl\nfrom tessera import jit\n\n\n"
TYPES = ("*fp32", "i32", "*i32", "*fp16", "fp32", "*i64", "i64", "*bf16", "*u8", "*fp64", "u32", "*i8",
         "*i1", "i1", "fp16", "*fp8e5", "i8", "u64")  # fmt: skip


@dataclasses.dataclass
class Kernel:
    """A function, the text of what is around it, and a signature that it can be compiled for."""

    path: str
    context: str
    node: ast.FunctionDef
    signature: dict[str, Any]


# --- The kernels that there are -----------------------------------------------------------


def is_jit(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        re.fullmatch(r"(tessera\.)?jit(\(.*\))?", ast.unparse(item)) for item in node.decorator_list
    )


def read_kernels() -> list[tuple[str, str, ast.FunctionDef]]:
    """File, context and function of every kernel in the repository."""
    found = []
    for folder in ("examples", "test"):
        for path in sorted((ROOT / "python" / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            functions = [node for node in tree.body if is_jit(node)]
            context = [
                node
                for node in tree.body
                if is_jit(node) or isinstance(node, ast.Assign) and "constexpr" in ast.unparse(node)
            ]
            for node in functions:
                others = "\n".join(ast.unparse(other) for other in context if other is not node)
                assert isinstance(node, ast.FunctionDef)
                # Decorators with options are dropped, since the body is tested.
                plain = copy.deepcopy(node)
                plain.decorator_list = [ast.parse("tessera.jit", mode="eval").body]
                found.append((str(path.relative_to(ROOT)), others, plain))
    return found


def guess_signature(node: ast.FunctionDef, rng: random.Random, attempt: int) -> dict[str, Any]:
    signature: dict[str, Any] = {}
    names = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    for argument in names:
        annotation = ast.unparse(argument.annotation) if argument.annotation else ""
        if "constexpr" in annotation:
            signature[argument.arg] = rng.choice((16, 32, 64, 1, 2, True, 4, 8))
        elif attempt < 6 and re.search(r"ptr|^[a-z]$|out|^x|^y|in\d|dst|src", argument.arg):
            signature[argument.arg] = rng.choice(TYPES[:5:2] if attempt > 2 else TYPES[:1])
        elif attempt < 12:
            signature[argument.arg] = rng.choice(TYPES[:5])
        else:
            signature[argument.arg] = rng.choice((*TYPES, 16))
    return signature


# --- Compiling ------------------------------------------------------------------------------


def define(text: str, name: str, file: str) -> Optional[Any]:
    """The function of a text; None where Python itself refuses to define it."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {"__name__": "tessera_mutants"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, file, "exec"), namespace)
        return namespace.get(name)
    except Exception:
        return None


def build(text: str, name: str, signature: dict[str, Any], file: str) -> str:
    """The outcome of a kernel: "undefined", "built", "refused", or the finding."""
    import tessera
    from tessera.compiler.compile import build_module
    from tessera.compiler.options import CompileOptions
    from tessera.errors import CompilationError, InternalError, TesseraError
    from tessera.runtime.jit import JITFunction
    from tessera.runtime.signatures import parse_signature

    fn = define(text, name, file)
    if not isinstance(fn, JITFunction):
        return "undefined"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = CompileOptions.of({}).resolved(None)
            known = {key: value for key, value in signature.items() if key in fn.arg_names}
            build_module(fn, parse_signature(fn, known, {}), options)
        return "built"
    except InternalError as error:
        return f"internal error: {str(error)[:300]}"
    except CompilationError as error:
        shown = str(error)
        if not re.search(r"error\[E\d+\]", shown):
            return f"no id: {shown[:200]}"
        if not re.search(r":\d+:\d+", shown):
            return f"no place: {shown[:200]}"
        return "refused"
    except TesseraError as error:
        return "refused" if getattr(error, "id", "") else f"no id: {str(error)[:200]}"
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f"{frame.name}:{frame.lineno}" for frame in frames if "/tessera/" in frame.filename]
        return f"{type(error).__name__}: {str(error)[:150]} in {' '.join(ours[-2:])}"
    finally:
        linecache.cache.pop(file, None)
        del tessera


def find_kernels() -> list[Kernel]:
    """The kernels for which a signature was found that they compile for."""
    kernels = []
    rng = random.Random(0)
    for path, context, node in read_kernels():
        for attempt in range(20):
            signature = guess_signature(node, rng, attempt)
            text = f"{HEAD}{context}\n\n\n{ast.unparse(node)}\n"
            if build(text, node.name, signature, f"<{node.name}>") == "built":
                kernels.append(Kernel(path, context, node, signature))
                break
    return kernels


# --- Changing a kernel ------------------------------------------------------------------------


CONSTANTS = (0, 1, -1, 2, 3, 7, 16, 17, 64, 1024, 2**20 + 1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, 2**63,
             2**64, -(2**63) - 1, 10**30, 0.0, -0.0, 1.5, 1e38, 1e39, 1e308, float("inf"), float("nan"),
             True, False, None, "text", "", b"x", Ellipsis, 1j, "ieee", ".ca")  # fmt: skip
STATEMENTS = ("break", "continue", "return", "return x", "pass", "assert n", "raise ValueError", "import os",
              "global x", "del x", "with x: pass", "try:\n    pass\nexcept Exception:\n    pass",
              "def f(): pass", "class C: pass", "x: tl.constexpr = 3", "x = x", "x, y = y, x", "x += 1", "x[0] = 1",
              "x.y = 1", "(x, *y) = (1, 2, 3)", "print(x)", "tl.static_print(x)", "tl.static_assert(x)",
              "tl.device_assert(x)", "for x in x: pass", "while x: pass", "while True:\n    break",
              "for i in range(x):\n    x = x + 1", "for i in tl.static_range(3):\n    x = i", "if x: y = x", "x = lambda: 1",
              "match x:\n    case 1: pass", "yield x", "await x", "nonlocal x", "x = [i for i in range(3)]",
              "x = y = x", "tl.debug_barrier()", "x = tl.range(3)", "for i in range(3, 0, -1): y = i\nelse: y = 0",
              "async def f(): pass", "x: int", "type X = int")  # fmt: skip
WRAPPERS = ("({0})[None, :]", "({0})[:, None]", "({0})[0]", "({0}, {0})", "[{0}]", "({0}).to(tl.int8)", "({0}).shape",
            "({0}).dtype", "({0}).T", "not ({0})", "-({0})", "~({0})", "({0}) if ({0}) else ({0})", "lambda: ({0})",
            "f'{{ {0} }}'", "({0})()", "len({0})", "range({0})", "int({0})", "float({0})", "min({0}, 1)", "abs({0})",
            "tl.constexpr({0})", "tl.sum({0})", "tl.sum({0}, 0)", "tl.load({0})", "tl.arange(0, {0})", "tl.zeros({0}, tl.float32)",
            "tl.full(({0},), {0}, tl.int32)", "({0}).x", "({0}) and ({0})", "({0}) < ({0}) < ({0})", "({0}) @ ({0})",
            "({0}) ** 2", "({0}) in ({0},)", "({0}) is None", "[i for i in ({0},)]", "{{'a': ({0})}}", "{{ {0} }}", "str({0})",
            "isinstance({0}, tl.tensor)", "tl.cast({0}, {0})", "tl.reshape({0}, {0})", "tl.trans({0})",
            "tl.static_range({0})", "({0}).type", "({0}).value", "tl.broadcast_to({0}, (16, 16))", "tl.where({0}, {0}, 0)",
            "(y := ({0}))", "({0})[1:2]", "({0})[...]", "(*({0}),)", "tl.dot({0}, {0})", "tl.sort({0})", "tl.cat({0}, {0})",
            "tl.atomic_add({0}, {0})", "tl.make_block_ptr({0}, (16,), (1,), (0,), (16,), (0,))", "tl.reduce({0}, 0, {0})",
            "tl.associative_scan({0}, 0, {0})", "tl.split({0})", "tl.join({0}, {0})", "tl.gather({0}, {0}, 0)",
            "tl.histogram({0}, 16)", "tl.inline_asm_elementwise('', '=r', [{0}], tl.int32, True, 1)",
            "tl.make_tensor_descriptor({0}, ({0},), (1,), (16,))", "tl.device_print('x', {0})", "tl.rand({0}, {0})",
            "tl.program_id({0})", "tl.cdiv({0}, {0})", "tl.flip({0})", "tl.max({0}, axis={0})", "tl.exp({0})")  # fmt: skip
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitOr,
             ast.BitAnd, ast.BitXor, ast.MatMult)  # fmt: skip
COMPARISONS = (
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.Is,
    ast.IsNot,
    ast.In,
    ast.NotIn,
)


class Mutator:
    """Changes copies of one kernel's tree, or its signature."""

    def __init__(self, kernel: Kernel, kernels: list[Kernel], rng: random.Random) -> None:
        import tessera.language as tl

        self.rng = rng
        self.kernels = kernels
        self.node = copy.deepcopy(kernel.node)
        self.signature = dict(kernel.signature)
        self.language = [name for name in dir(tl) if not name.startswith("_")]

    def places(self, *kinds: type) -> list[Any]:
        body = ast.Module(self.node.body, [])
        return [node for node in ast.walk(body) if isinstance(node, kinds)]

    def names(self) -> list[str]:
        names = {node.id for node in self.places(ast.Name)} | set(self.signature)
        return sorted(names | {"nothing", "len", "tl", "tessera", "math", "print", "self"})

    def expression(self) -> ast.expr:
        kind = self.rng.random()
        if kind < 0.3:
            return ast.Constant(self.rng.choice(CONSTANTS))
        if kind < 0.5:
            return ast.Name(self.rng.choice(self.names()), ast.Load())
        if kind < 0.6:
            return ast.parse(f"tl.{self.rng.choice(self.language)}", mode="eval").body
        source = self.node if kind < 0.8 else self.rng.choice(self.kernels).node
        found = [node for node in ast.walk(source) if isinstance(node, ast.expr)]
        found = [node for node in found if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]
        return copy.deepcopy(self.rng.choice(found)) if found else ast.Constant(1)

    def statements(self) -> list[list[ast.stmt]]:
        lists = [self.node.body]
        for node in self.places(ast.stmt):
            lists += [part for name in ("body", "orelse") if (part := getattr(node, name, None))]
        return lists

    def replace(self, old: ast.expr, new: ast.expr) -> None:
        for parent in ast.walk(self.node):
            for name, value in ast.iter_fields(parent):
                if value is old:
                    setattr(parent, name, new)
                elif isinstance(value, list):
                    value[:] = [new if item is old else item for item in value]

    def loads(self) -> list[Any]:
        """Expressions that are read."""
        found = self.places(ast.expr)
        return [node for node in found if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]

    # Each of these changes one thing.

    def change_constant(self) -> None:
        if places := self.places(ast.Constant):
            place = self.rng.choice(places)
            near = place.value + 1 if isinstance(place.value, (int, float)) else 2
            place.value = self.rng.choice((near, self.rng.choice(CONSTANTS)))

    def change_name(self) -> None:
        if places := self.places(ast.Name):
            self.rng.choice(places).id = self.rng.choice(self.names())

    def change_attribute(self) -> None:
        if places := self.places(ast.Attribute):
            self.rng.choice(places).attr = self.rng.choice(
                self.language + ["to", "shape", "x", "T"]
            )

    def change_operator(self) -> None:
        if places := self.places(ast.BinOp, ast.AugAssign, ast.Compare, ast.UnaryOp, ast.BoolOp):
            place = self.rng.choice(places)
            if isinstance(place, ast.Compare):
                place.ops[0] = self.rng.choice(COMPARISONS)()
            elif isinstance(place, ast.UnaryOp):
                place.op = self.rng.choice((ast.Not, ast.USub, ast.UAdd, ast.Invert))()
            elif isinstance(place, ast.BoolOp):
                place.op = self.rng.choice((ast.And, ast.Or))()
            else:
                place.op = self.rng.choice(OPERATORS)()

    def change_arguments(self) -> None:
        places = self.places(ast.Call)
        if not places:
            return
        call = self.rng.choice(places)
        kind = self.rng.randrange(7)
        if kind == 0 and call.args:
            call.args.pop(self.rng.randrange(len(call.args)))
        elif kind == 1:
            call.args.insert(self.rng.randint(0, len(call.args)), self.expression())
        elif kind == 2 and call.args:
            call.args[self.rng.randrange(len(call.args))] = self.expression()
        elif kind == 3 and call.keywords:
            call.keywords.pop(self.rng.randrange(len(call.keywords)))
        elif kind == 4 and call.keywords:
            self.rng.choice(call.keywords).value = self.expression()
        elif kind == 5 and len(call.args) > 1:
            self.rng.shuffle(call.args)
        else:
            known = [item.arg for k in self.kernels[:: 7] for node in ast.walk(k.node)
                     if isinstance(node, ast.Call) for item in node.keywords if item.arg]  # fmt: skip
            name = self.rng.choice(known + ["axis", "mask", "dtype", "nothing"])
            if name not in [item.arg for item in call.keywords]:
                call.keywords.append(ast.keyword(name, self.expression()))

    def change_expression(self) -> None:
        if places := self.loads():
            self.replace(self.rng.choice(places), self.expression())

    def wrap_expression(self) -> None:
        if places := self.loads():
            place = self.rng.choice(places)
            try:
                text = self.rng.choice(WRAPPERS).format(ast.unparse(place))
                self.replace(place, ast.parse(text, mode="eval").body)
            except (SyntaxError, ValueError):
                pass

    def drop_statement(self) -> None:
        body = self.rng.choice(self.statements())
        body.pop(self.rng.randrange(len(body)))
        if not body:
            body.append(ast.Pass())

    def move_statement(self) -> None:
        body, other = self.rng.choice(self.statements()), self.rng.choice(self.statements())
        statement = body[self.rng.randrange(len(body))]
        other.insert(self.rng.randint(0, len(other)), copy.deepcopy(statement))

    def add_statement(self) -> None:
        body = self.rng.choice(self.statements())
        if self.rng.random() < 0.3:
            other = self.rng.choice(self.kernels).node.body
            added: list[ast.stmt] = [copy.deepcopy(self.rng.choice(other))]
        else:
            text = self.rng.choice(STATEMENTS)
            for name in ("x", "y", "n"):
                text = re.sub(rf"\b{name}\b", self.rng.choice(self.names()), text)
            try:
                added = ast.parse(text).body
            except SyntaxError:
                return
        at = self.rng.randint(0, len(body))
        body[at:at] = added

    def nest_statement(self) -> None:
        body = self.rng.choice(self.statements())
        at = self.rng.randrange(len(body))
        head = self.rng.choice(("if x:", "while x:", "for i in range(x):", "for x in tl.static_range(2):",
                                "for i in range(0, 3):", "if x == 0:"))  # fmt: skip
        text = re.sub(r"\bx\b", self.rng.choice(self.names()), head) + "\n    pass"
        nest: Any = ast.parse(text).body[0]
        nest.body = [body[at]]
        body[at] = nest

    def change_signature(self) -> None:
        if self.signature:
            name = self.rng.choice(list(self.signature))
            self.signature[name] = self.rng.choice((*TYPES, *CONSTANTS[:20]))

    def change_parameter(self) -> None:
        arguments = self.node.args.args
        if not arguments:
            return
        argument = self.rng.choice(arguments)
        kind = self.rng.randrange(4)
        if kind == 0:
            argument.annotation = self.expression()
        elif kind == 1:
            argument.annotation = None
        elif kind == 2:
            argument.annotation = ast.parse("tl.constexpr", mode="eval").body
        else:
            self.node.args.defaults = [self.expression()]

    def change(self) -> None:
        """One to four changes."""
        changes = (
            [self.change_constant] * 3 + [self.change_name] * 2 + [self.change_attribute] * 2
            + [self.change_operator] * 2 + [self.change_arguments] * 4 + [self.change_expression] * 3
            + [self.wrap_expression] * 4 + [self.drop_statement] * 2 + [self.move_statement]
            + [self.add_statement] * 3 + [self.nest_statement] + [self.change_signature] * 2
            + [self.change_parameter]
        )  # fmt: skip
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 4))):
            self.rng.choice(changes)()


def mutate(seed: int, kernels: list[Kernel]) -> tuple[str, str, dict[str, Any]]:
    """Text, name and signature of the kernel of a seed."""
    rng = random.Random(seed)
    kernel = rng.choice(kernels)
    mutator = Mutator(kernel, kernels, rng)
    mutator.change()
    ast.fix_missing_locations(mutator.node)
    try:
        text = ast.unparse(mutator.node)
    except Exception:
        text = ""
    return f"{HEAD}{kernel.context}\n\n\n{text}\n", kernel.node.name, mutator.signature


# --- Running ------------------------------------------------------------------------------------


def work(seeds: range) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    kernels = find_kernels()
    print(f"kernels {len(kernels)}", flush=True)
    for seed in seeds:
        print(f"seed {seed}", flush=True)
        text, name, signature = mutate(seed, kernels)
        sys.stdout.flush()
        null = os.open(os.devnull, os.O_WRONLY)
        kept = os.dup(1)
        os.dup2(null, 1)  # what kernels print while they are compiled
        try:
            outcome = build(text, name, signature, f"<mutant {seed}>")
            sys.stdout.flush()
        finally:
            os.dup2(kept, 1)
            os.close(null)
            os.close(kept)
        print(f"outcome {json.dumps(outcome)}", flush=True)
    return 0


def supervise(seeds: range, out: pathlib.Path) -> tuple[collections.Counter[str], list[str]]:
    outcomes: collections.Counter[str] = collections.Counter()
    findings: list[str] = []

    def report(seed: int, outcome: str) -> None:
        findings.append(f"{seed}: {outcome}")
        print(f"FOUND seed {seed}: {outcome}", flush=True)
        with open(out / "findings.txt", "a") as file:
            file.write(f"seed {seed}: {outcome}\n")

    start = seeds.start
    while start < seeds.stop:
        command = [sys.executable, __file__, "--worker", "--seed", str(start)]
        command += ["--count", str(seeds.stop - start)]
        seed = start
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as child:
            watch = threading.Timer(300, child.kill)
            watch.start()
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith("seed "):
                    seed = int(line.split()[1])
                    watch.cancel()
                    watch = threading.Timer(SECONDS, child.kill)
                    watch.start()
                elif line.startswith("outcome "):
                    outcome = json.loads(line[8:])
                    if outcome in ("undefined", "built", "refused"):
                        outcomes[outcome] += 1
                    else:
                        outcomes["found"] += 1
                        report(seed, outcome)
            watch.cancel()
        if child.returncode == 0:
            break
        outcomes["found"] += 1
        report(seed, f"the process ended with status {child.returncode}")
        start = seed + 1
    return outcomes, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="start no more batches after that")
    parser.add_argument("--out", default="/tmp/mutated-kernels")
    parser.add_argument("--show", action="store_true", help="print the kernels, run nothing")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    if options.worker:
        return work(seeds)
    if options.show:
        kernels = find_kernels()
        for seed in seeds:
            text, name, signature = mutate(seed, kernels)
            print(f"# seed {seed}: {name} {signature}\n{text}")
        return 0
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    parts = [seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH)]

    def one(part: range) -> tuple[collections.Counter[str], list[str]]:
        if options.seconds and time.monotonic() - started > options.seconds:
            return collections.Counter(), []
        return supervise(part, out)

    total: collections.Counter[str] = collections.Counter()
    findings: list[str] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcomes, found in pool.map(one, parts):
            total.update(outcomes)
            findings += found
    summary = {
        "first_seed": options.seed, "kernels": sum(total.values()), **total, "findings": findings,
        "seconds": round(time.monotonic() - started),
    }  # fmt: skip
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps({**summary, "findings": len(findings)}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
