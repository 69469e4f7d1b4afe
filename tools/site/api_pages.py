# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pages of the reference with their public names, and the names that must have an entry."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import generate_docs
import markdown
import reference
from reference import Reference

ROOT = markdown.ROOT

LANGUAGE = "tessera.language"

# Pages of the API: title, what it says first, and modules with names (all where none are given).
API: Sequence[tuple[str, str, str, Sequence[tuple[str, Sequence[str]]]]] = [
    (
        "Host", "Kernels from Python",
        "What a program imports to define, compile and launch kernels.",
        [
            ("tessera", ["jit", "constexpr_function", "constexpr", "aggregate", "must_use_result", "compile",
                         "interpret", "cdiv", "next_power_of_2", "reinterpret", "TensorWrapper", "MockTensor",
                         "host_info", "settings"]),
            ("tessera.tools.tensor_descriptor", []),
            ("tessera.compat.triton", []),
        ],
    ),
    (
        "Kernels", "Kernels and compiled kernels",
        "What `@tessera.jit` makes of a function, and what compiling that gives.",
        [
            ("tessera", ["JITFunction", "CompiledKernel"]),
            ("tessera.compiler.stages", ["Stages"]),
            ("tessera.runtime.kernel", ["KernelSource"]),
            ("tessera.compiler.metadata", ["KernelMetadata"]),
        ],
    ),
    (
        "Options", "Options of a launch",
        "Given as keywords to `kernel[grid](...)`, `kernel.warmup(...)` and `tessera.compile(...)`, beside the "
        "kernel's own arguments.",
        [("tessera.compiler.options", ["CompileOptions"])],
    ),
    ("Settings", "Settings", "", [("tessera.settings", [])]),
    (
        "Tuning", "Tuning",
        "Choosing among configurations by measuring them. How to: [Tune a kernel](../HowTo/TuneAKernel.md).",
        [("tessera.tuning", []), ("tessera", ["autotune", "heuristics", "Config", "tune"])],
    ),
    ("Testing", "Testing and benchmarking", "", [("tessera.testing", []), ("tessera.testing.puzzles", [])]),
    (
        "Simulator", "The simulator of GPUs",
        "How to: [Simulate](../HowTo/Simulate.md).",
        [("tessera.gpu", [])],
    ),
    (
        "Views", "Views",
        "How to: [Launch kernels](../HowTo/LaunchKernels.md#elements-that-kernels-do-not-have).",
        [("tessera.views", [])],
    ),
    (
        "Hooks", "Hooks",
        "How to: [Launch kernels](../HowTo/LaunchKernels.md#hooks).",
        [("tessera.runtime.hooks", [])],
    ),
    (
        "Exceptions", "Exceptions and warnings",
        "What each id means is on [Errors](../Errors.md).",
        [("tessera.errors", []), ("tessera", [])],
    ),
]  # fmt: skip

# Modules every public name of which must have an entry.
PUBLIC = ["tessera", LANGUAGE, *(f"{LANGUAGE}.extra.{name}" for name in ("libdevice", "cuda")),
          "tessera.tuning", "tessera.testing", "tessera.gpu", "tessera.errors", "tessera.settings",
          "tessera.views", "tessera.tools.tensor_descriptor", "tessera.compat.triton"]  # fmt: skip


def source_pages() -> dict[str, str]:
    """The page of the reference by the source file that a page of the project may link to."""
    found: dict[str, str] = {}
    for stem, _, _, modules in API:
        file = reference.load(modules[0][0]).__file__
        if file is not None and modules[0][0] != "tessera":
            found[pathlib.Path(file).resolve().relative_to(ROOT).as_posix()] = f"docs/API/{stem}.md"
    return found


def required_names() -> list[str]:
    """The full names that the reference must have."""
    return [
        f"{module}.{name}"
        for module in PUBLIC
        for name in reference.public_names(reference.load(module))
    ]


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of each page."""
    yield from reference_pages()
    yield "docs/API/CommandLine.md", command_line_page()


def reference_pages() -> Iterator[tuple[str, str]]:
    """The pages with entries of names."""
    entries = Reference()
    yield from language_pages(entries)
    done: set[str] = set()
    for stem, title, text, modules in API:
        lines = [f"# {title}", "", text, ""]
        for module_name, names in modules:
            module = reference.load(module_name)
            wanted = [name for name in names or reference.public_names(module)]
            wanted = [name for name in wanted if f"{module_name}.{name}" not in done]
            if module_name == "tessera" and not names:
                wanted = [name for name in wanted if name in reference.public_names(module)]
            if len(modules) > 1 and wanted:
                lines += [f"## `{module_name}`", ""]
            if not names or len(modules) == 1:
                lines += [introduction(module), ""] if module_name != "tessera" else []
            if module_name not in done:
                lines += [f"```{{py:module}} {module_name}", "```", ""]
            done.add(module_name)
            for name in wanted:
                done.add(f"{module_name}.{name}")
                lines += entry(entries, module, module_name, name)
        yield f"docs/API/{stem}.md", "\n".join(lines)


def entry(entries: Reference, module: ModuleType, full: str, name: str) -> list[str]:
    value = getattr(module, name)
    return entries.entry(full, name, value, doc_of(module, name))


def doc_of(module: ModuleType, name: str) -> str:
    """The text under an assignment, here or in the module that defines the value."""
    found = reference.attribute_docs(module).get(name, "")
    if found:
        return found
    origin = sys.modules.get(reference.home(getattr(module, name)))
    return reference.attribute_docs(origin).get(name, "") if origin is not None else ""


def introduction(module: ModuleType) -> str:
    """The docstring of a module; a table of its files is for those who work on it."""
    text = inspect.cleandoc(module.__doc__ or "")
    kept = [part for part in text.split("\n\n") if not re.match(r"\s{2,}\S+\.py\s", part)]
    kept = [part for part in kept if not part.startswith("    ")]
    return reference.prose("\n\n".join(kept))


def family_stem(title: str) -> str:
    """The name of a family's page."""
    return title.replace("'", "").title().replace(" ", "")


def family_pages() -> dict[str, str]:
    """The page of each family by the anchor that its heading has in docs/Language.md."""
    return {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(
            " ", "-"
        ): f"docs/Language/{family_stem(title)}.md"
        for title, _ in generate_docs.FAMILIES
    }


# Functions that are written in the language itself stand with those that readers look for there.
TOPICS = {
    "Creation": ("zeros", "zeros_like"),
    "Maths": ("cdiv", "sigmoid", "softmax"),
    "Memory": ("atomic_poll",),
    "Programs and loops": ("swizzle2d",),
    "Reductions and scans": ("argmax", "argmin", "cumprod", "cumsum", "max", "min", "reduce_or", "sum", "xor_sum"),
    "Shape": ("flip", "interleave", "ravel", "squeeze", "unsqueeze"),
}  # fmt: skip


def language_pages(entries: Reference) -> Iterator[tuple[str, str]]:
    """A page for each family of operations, and the first one, which says what is promised."""
    language = reference.load(LANGUAGE)
    left = reference.public_names(language)
    families: list[tuple[str, str, list[str]]] = []
    for title, name in generate_docs.FAMILIES:
        try:
            module = reference.load(f"{LANGUAGE}.{name}")
        except ModuleNotFoundError:
            continue
        stem = family_stem(title)
        here = [
            other
            for other in left
            if topic_of(other) == title
            or (not topic_of(other) and belongs(language, other, module))
        ]
        if not here and not public_apart(module):
            continue
        left = [other for other in left if other not in here]
        lines = [f"# {title}", "", introduction(module), ""]
        names = list(here)
        for other in here:
            lines += entry(entries, language, LANGUAGE, other)
        lines += own_names(entries, module, names, language)
        families.append((title, stem, names))
        yield f"docs/Language/{stem}.md", "\n".join(lines)
    if left:
        lines = ["# Other names", ""]
        for other in left:
            lines += entry(entries, language, LANGUAGE, other)
        families.append(("Other names", "OtherNames", left))
        yield "docs/Language/OtherNames.md", "\n".join(lines)
    yield "docs/Language.md", language_index(language, families)


def topic_of(name: str) -> str:
    """The family that TOPICS gives a name; empty for all others."""
    return next((title for title, names in TOPICS.items() if name in names), "")


def public_apart(module: ModuleType) -> bool:
    """True if users write the module's name, as in `tl.math.pow`."""
    return module.__name__ in PUBLIC or module.__name__.rpartition(".")[2] in (
        "math",
        "target_info",
    )


def belongs(language: ModuleType, name: str, module: ModuleType) -> bool:
    """True if a name of the language is described with this module."""
    value = getattr(language, name)
    if isinstance(value, ModuleType):
        return value is module
    if reference.home(value) == module.__name__:
        return True
    is_plain = not inspect.isclass(value) and not callable(value)
    return (
        is_plain
        and name in vars(module)
        and name in (getattr(module, "__all__", None) or vars(module))
    )


def own_names(
    entries: Reference, module: ModuleType, names: list[str], language: ModuleType
) -> Iterator[str]:
    """Entries of what a module has that the language does not name: `tl.math.x`."""
    short = module.__name__.removeprefix(f"{LANGUAGE}.")
    others = [
        name
        for name in reference.public_names(module)
        if module.__name__ in PUBLIC
        or getattr(language, name, None) is not getattr(module, name, None)
    ]
    if not others or not public_apart(module):
        return
    yield f"## `tl.{short}`"
    yield ""
    table = getattr(module, "FUNCTIONS", None) if short == "extra.libdevice" else None
    for name in others:
        names.append(f"{short}.{name}")
        lines = entry(entries, module, module.__name__, name)
        function = table.get(name) if table is not None else None
        if function is not None:
            takes = "; ".join(", ".join(map(str, one.arguments)) for one in function.signatures)
            gives = "; ".join(str(one.result) for one in function.signatures)
            text = [function.text, f"Takes {takes}; gives {gives}." if takes else ""]
            head = f"{name}{reference.signature(getattr(module, name))}"
            place = f":module: {module.__name__}"
            lines = reference.directive("function", head, [" ".join(text)], place)
        yield from lines


def language_index(language: ModuleType, families: Sequence[tuple[str, str, list[str]]]) -> str:
    """The page of guarantees on every target, with links to the families."""
    lines = ["# The language", "", inspect.cleandoc(language.__doc__ or ""), "", "## Names", ""]
    lines += ["Where a signature says `Operand`, a tensor or a number may be passed.", ""]
    lines += ["| | |", "|---|---|"]
    for title, stem, names in families:
        shown = ", ".join(
            f"{{py:obj}}`{name} <{LANGUAGE}.{name}>`"
            for name in names
            if not name.startswith("extra.lib")
        )
        lines.append(f"| [{title}](Language/{stem}.md) | {shown or 'as in CUDA'} |")
    lines += [
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(f"Language/{stem}" for _, stem, _ in families),
        "```",
        "",
    ]
    text = "\n".join(lines)
    return text.replace("docs/Numerics.md", "[Numerics](Numerics.md)").replace(
        "docs/Errors.md", "[Errors](Errors.md)"
    )


def command_line_page() -> str:
    """The page of the programs' help texts."""
    lines = ["# Command line", ""]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "88"}
    for command in (
        ["tessera"], ["tessera", "doctor"], ["tessera", "cache"], ["tessera", "run"], ["tessera", "explain"], ["tessera", "tune"],
        ["tessera.testing.fuzz"],
    ):  # fmt: skip
        shown = f"python -m {' '.join(command)}"
        result = subprocess.run(
            [sys.executable, "-m", *command, "--help"],
            env=environment,
            capture_output=True,
            text=True,
        )
        if result.returncode:
            raise SystemExit(f"{shown} --help:\n{result.stderr}")
        lines += [f"## `{shown}`", "", markdown.fenced(result.stdout, "text"), ""]
    lines += [
        "## Tools for the IR",
        "",
        "They are in `build/dev/bin` after `cmake --build build/dev`.",
        "",
    ]
    for file in sorted((ROOT / "tools").glob("tessera-*/tessera-*.cpp")):
        lines += [f"### `{file.stem}`", "", *tool_text(file), ""]
    return "\n".join(lines)


def tool_text(file: pathlib.Path) -> Iterator[str]:
    """The comment at the head of a tool's source; what is indented there is a command."""
    comment = []
    for line in file.read_text().splitlines()[1:]:
        if not line.startswith("//"):
            break
        comment.append(line[2:].removeprefix(" "))
    text = "\n".join(comment).strip()
    name = f"{file.stem}: "
    text = text.removeprefix(name)
    text = text[:1].upper() + text[1:]
    for part in text.split("\n\n"):
        if part.startswith("  "):
            part = markdown.fenced(textwrap.dedent(part), "bash")
        elif "\n  " in part and file.stem in part:
            words, _, commands = part.partition("\n  ")
            part = words + "\n\n" + markdown.fenced(textwrap.dedent("  " + commands), "bash")
        yield part
        yield ""
