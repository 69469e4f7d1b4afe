# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of docs/HostAPI.md, made of signatures, defaults and docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any


def jit_options() -> list[str]:
    """The options of `@jit`, with their defaults."""
    import tessera

    texts = texts_in_docstring(tessera.jit)
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for parameter in inspect.signature(tessera.jit).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            text = texts[parameter.name]
            rows.append(f"| `{parameter.name}` | `{parameter.default!r}` | {cell(text)} |")
    return rows


def texts_in_docstring(function: object) -> dict[str, str]:
    """The texts of a docstring's list of options, by their names."""
    found = re.findall(r"^  (\w+): (.*(?:\n    .*)*)", inspect.getdoc(function) or "", re.M)
    return {name: text for name, text in found}


def launch_options() -> list[str]:
    """The options of a launch, with their defaults."""
    from tessera.compiler.options import CompileOptions

    texts = attribute_texts(CompileOptions)
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(CompileOptions):
        rows.append(f"| `{field.name}` | `{field.default!r}` | {cell(texts[field.name])} |")
    return rows


def attribute_texts(cls: type) -> dict[str, str]:
    """The strings below the attributes of a class, by the attributes' names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found = {}
    for statement, after in zip(body, body[1:]):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[statement.target.id] = inspect.cleandoc(str(after.value.value))
    return found


def exceptions() -> list[str]:
    """The exceptions, and which of Python's own catch them."""
    import tessera.errors as errors

    rows = ["| exception | is also | meaning |", "|---|---|---|"]
    for name in sorted(errors.__all__):
        value = getattr(errors, name)
        if not isinstance(value, type) or not issubclass(value, BaseException):
            continue
        bases = [
            f"`{base.__name__}`"
            for base in value.__mro__[1:]
            if base not in (Exception, BaseException, object) and not base.__name__.startswith("_")
        ]
        rows.append(f"| `{name}` | {', '.join(bases)} | {cell(first_paragraph(value))} |")
    return rows


def members(cls: type, names: Mapping[str, str]) -> list[str]:
    """A table of some of a class's attributes and methods; `names` has how each is written."""
    rows = ["| | |", "|---|---|"]
    for name, spelled in names.items():
        rows.append(f"| `{spelled}` | {cell(first_paragraph(find(cls, name)))} |")
    return rows


def find(cls: type, name: str) -> Any:
    """The attribute of a class by a name, without binding it."""
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


def kernel_members() -> list[str]:
    """The members of a kernel."""
    from tessera.runtime.jit import JITFunction

    return members(
        JITFunction,
        {
            "run": "kernel.run(*args, grid=..., warmup=False, **options)",
            "warmup": "kernel.warmup(*args, grid=(1,), **options)",
            "preload": "kernel.preload(text)",
            "add_pre_run_hook": "kernel.add_pre_run_hook(hook)",
            "device_caches": "kernel.device_caches",
            "compilations": "kernel.compilations",
            "cache_key": "kernel.cache_key",
            "params": "kernel.params",
            "arg_names": "kernel.arg_names",
            "signature": "kernel.signature",
            "src": "kernel.src",
        },
    )


def compiled_members() -> list[str]:
    """The members of a compiled kernel."""
    from tessera.runtime.kernel import CompiledKernel

    names = (
        "name",
        "asm",
        "remarks",
        "n_regs",
        "n_spills",
        "shared",
        "num_warps",
        "num_stages",
        "hash",
    )
    return members(
        CompiledKernel,
        {
            **{name: f"compiled.{name}" for name in names},
            "launch": "compiled.launch(grid, args, num_threads=0, stream=None)",
        },
    )  # fmt: skip


def first_paragraph(value: object) -> str:
    return inspect.cleandoc(getattr(value, "__doc__", None) or "").split("\n\n")[0]


def cell(text: str) -> str:
    """A text as the cell of a table: one line, ending like a phrase."""
    return " ".join(text.split()).replace("|", "\\|").removesuffix(".")


TABLES: dict[str, Callable[[], list[str]]] = {
    "jit options": jit_options,
    "launch options": launch_options,
    "kernel": kernel_members,
    "compiled kernel": compiled_members,
    "exceptions": exceptions,
}


def renewed(page: str) -> str:
    """The page with its tables made anew; the rest is written by hand."""
    for name, table in TABLES.items():
        head, mark, rest = page.partition(f"<!-- {name} -->\n")
        assert mark, f"docs/HostAPI.md has no place for the table of {name}"
        page = "\n".join(
            [head + mark.strip(), *table(), "<!-- end -->" + rest.split("<!-- end -->", 1)[1]]
        )
    return page
