# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each public function of the language and of the host has an example in its docstring, which runs.

An example is the indented end of a docstring, under `Example:`. There are two kinds:

- An example of the language is the body of a kernel, with the functions and classes that it uses
  above it. It runs in the interpreter and on the CPU, or in the simulator if it says `# on a GPU`.
  With `debug=True`, each `assert` in it is checked.
- An example that begins with `import` is a program, which runs as it stands. One of the language
  runs in the interpreter, too. Without a GPU, one that says `# needs a GPU` is only parsed.

If a line ends with `# prints: TEXT`, the example has to print this text.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import itertools
import pathlib
import re
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator

import pytest

import tessera
import tessera.gpu
from docs.pages import ROOT
from tessera.compiler.toolchain import find_libdevice

sys.path[:0] = [str(ROOT / "tools/site"), str(ROOT / "tools/dev")]

import api_pages  # noqa: E402
import generate_docs  # noqa: E402
import reference  # noqa: E402
from execution.on_gpu import has_gpu  # noqa: E402

MODULES = (
    "tessera.language",
    "tessera.language.math",
    "tessera.language.target_info",
    "tessera.language.extra.cuda",
    "tessera",
    "tessera.gpu",
    "tessera.testing",
    "tessera.testing.puzzles",
    "tessera.tools.tensor_descriptor",
    "tessera.tuning",
    "tessera.views",
)
# Without imports and blank lines. Most programs define a kernel and launch it.
MAX_BODY_LINES = 8
MAX_PROGRAM_LINES = 14


@dataclasses.dataclass(frozen=True)
class Example:
    module: str
    name: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_program(self) -> bool:
        return self.text.startswith(("import ", "from "))

    @property
    def targets(self) -> list[str]:
        if "# needs a GPU" in self.text:
            return ["gpu"]
        if self.is_program and not self.module.startswith("tessera.language"):
            return ["as it stands"]
        if "# on a GPU" in self.text:
            return ["simulator"]
        return ["interpreter", "as it stands" if self.is_program else "cpu"]


def examples() -> Iterator[Example]:
    """The example of each function and class that the reference lists; empty if it has none."""
    for module in map(reference.load, MODULES):
        for name in reference.public_names(module):
            value = getattr(module, name)
            if callable(value):
                doc = api_pages.doc_of(module, name) or reference.docstring(value)
                yield Example(module.__name__, name, generate_docs.example(doc))


EXAMPLES = list(examples())
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("examples")


_numbers = itertools.count()


@contextlib.contextmanager
def executed(text: str, folder: pathlib.Path) -> Iterator[types.ModuleType]:
    """A module of this text, in a file, from which kernels are read."""
    module = types.ModuleType(f"example_{next(_numbers)}")
    file = folder / f"{module.__name__}.py"
    file.write_text(text)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, str(file), "exec", dont_inherit=True), vars(module))
        yield module
    finally:
        del sys.modules[module.__name__]


def kernel_of(body: str) -> str:
    """A module with the kernel `example` of this body; functions and classes come before it."""
    lines = body.splitlines()
    above: list[str] = []
    for statement in reversed(ast.parse(body).body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            first = min(node.lineno for node in [statement, *statement.decorator_list])
            above = lines[first - 1 : statement.end_lineno] + above
            del lines[first - 1 : statement.end_lineno]
    return "\n".join(
        ["import tessera", "import tessera.language as tl", *above]
        + ["@tessera.jit", "def example():", textwrap.indent("\n".join(lines), "    "), ""]
    )


def run(example: Example, target: str, folder: pathlib.Path, debug: bool = False) -> None:
    """Runs an example; an exception says what is wrong with it."""
    if target == "gpu" and not has_gpu():
        ast.parse(example.text)
        pytest.skip("there is no GPU: it is parsed, and no more")
    if "libdevice" in example.text and not find_libdevice():
        pytest.skip("there is no libdevice")
    if example.is_program:
        interpret = target == "interpreter"
        debug = debug or interpret
        with warnings.catch_warnings(), tessera.settings.override(interpret=interpret, debug=debug):
            with executed(example.text, folder):
                return
    with executed(kernel_of(example.text), folder) as module:
        kernel = module.example
        if target == "simulator":
            tessera.gpu.simulate(kernel)[(1,)](debug=True).check()
        elif target == "interpreter":
            tessera.interpret(kernel)[(1,)](debug=True)
        else:
            kernel[(1,)](debug=True)


def test_every_name_has_an_example():
    without = [example.id for example in EXAMPLES if not example.text]
    assert not without, f"no `Example:` ends the docstring of {', '.join(without)}"
    assert len(EXAMPLES) >= 200


def test_few_are_only_parsed():
    parsed = {example.name for example in EXAMPLES if example.targets == ["gpu"]}
    of_gpus = {"get_dram_gbps", "get_max_simd_tflops", "get_max_tensorcore_tflops", "nvsmi"}
    assert parsed == of_gpus | {"do_bench_cudagraph"}


@each_example
def test_example(example, folder, capfd):
    for target in example.targets:
        run(example, target, folder)
        printed = capfd.readouterr().out
        for text in re.findall(r"# prints: (.*)", example.text):
            assert text in printed, f"{target} prints:\n{printed}"


def negated(text: str) -> Iterator[str]:
    """The text with one of its asserts turned round, for each of them."""
    count = sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text)))
    for number in range(count):
        tree = ast.parse(text)
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
        found[number].test = ast.UnaryOp(ast.Not(), found[number].test)
        yield ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.targets != ["gpu"]], ids=lambda example: example.id
)
def test_asserts_can_fail(example, folder):
    """An assert that holds whatever a function does says nothing."""
    errors = (AssertionError, tessera.errors.CompileTimeAssertionFailure)
    for text in negated(example.text):
        with pytest.raises(errors):
            run(dataclasses.replace(example, text=text), example.targets[0], folder, debug=True)


@each_example
def test_example_is_short_and_about_its_name(example):
    lines = [line for line in example.text.splitlines() if line.strip()]
    code = [line for line in lines if not line.startswith(("import ", "from "))]
    assert 2 <= len(code) <= (MAX_PROGRAM_LINES if example.is_program else MAX_BODY_LINES)
    assert any(re.search(rf"\b{example.name}\b", line) for line in code)


# What the tests promise, on examples made here.


@pytest.mark.parametrize("target", ["interpreter", "cpu", "simulator"])
@pytest.mark.parametrize("wrong", ["tl.sum(x) == 7", "x < 3", "x.shape == (8,)"])
def test_a_wrong_assert_is_found(wrong, target, folder):
    example = Example("tessera.language", "made", f"x = tl.arange(0, 4)\nassert {wrong}\n")
    with pytest.raises((AssertionError, tessera.errors.CompileTimeAssertionFailure, RuntimeError)):
        run(example, target, folder)


def test_functions_stand_above_the_kernel(folder):
    text = "@tessera.jit\ndef f(x):\n    return 2 * x\n\ny = f(3)\nassert y == 6\n"
    for target in ("interpreter", "cpu"):
        run(Example("tessera.language", "made", text), target, folder)


def test_a_program_sees_what_it_shows_alone(folder):
    example = Example("tessera", "made", "import tessera\n\ntl.float32\n")
    with pytest.raises(NameError, match="tl"):
        run(example, "as it stands", folder)


def test_comments_of_examples_are_no_headings():
    page = reference.prose("# A heading\n\nExample:\n    # why\n    a = 1\n")
    assert page == "**A heading**\n\n**Example**\n\n```python\n# why\na = 1\n```"


def test_an_example_ends_the_docstring():
    assert (
        generate_docs.example("Text.\n\nExample:\n    a = 1\n\n    b = 2\n") == "a = 1\n\nb = 2\n"
    )
    assert generate_docs.example("Text.\n\n    a = 1\n") == ""
