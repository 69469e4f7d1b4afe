# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gallery of operators: a page for each family of tessera.ops.

An operator has its formula and example, from the docstring, and the code of its function and kernels.
traces.py draws a picture of one program from a launch. If docs/benchmarks has figures of the operator,
there is a chart of its speed beside torch's. An operator needs nothing here to be on its page. SAMPLES has calls on arrays
that fill several programs; any other operator is drawn from the example of its docstring.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import json
import pathlib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import charts
import gallery
import markdown
import numpy as np
import ops_page
import traces

from tessera import ops
from tessera.errors import TesseraError

ROOT = markdown.ROOT
MODULE = "tessera.ops"

_ROWS, _COLUMNS = 48, 100
_MAX_SPEED = 8.0
"""A bar of a chart ends there."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """An operator as its page shows it."""

    name: str
    text: str
    """The docstring."""
    code: str
    kernels: Sequence[tuple[str, str, str]]
    """Name, file and text of each kernel of tessera.ops.kernels."""
    picture: str
    caption: str


def _floats(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape or (_ROWS, _COLUMNS), dtype=np.float32)


def _samples() -> dict[str, Sequence[Any]]:
    """The arguments of calls, by family or by operator."""
    x, y, row = _floats(), _floats() + 1, _floats(_COLUMNS)
    places = np.random.default_rng(0).integers(0, _ROWS, (_ROWS, _COLUMNS))
    norm = (x, (_COLUMNS,), row, row + 1)
    images, channels = _floats(2, 6, 200), _floats(6)
    samples: dict[str, Sequence[Any]] = {
        "Activations": (x,), "Gated activations": (x, y), "Random": (x,), "Softmax": (x,),
        "Losses": (x, y / 2), "Reductions": (x, 1), "Scans and sorting": (x, 1),
        "glu": (x,), "threshold": (x, 0.5, 0.0), "prelu": (x, row), "clamp": (x, 0.2, 0.8),
        "where": (x > 0.5, x, y), "lerp": (x, y, 0.3), "addcmul": (x, x, y), "addcdiv": (x, x, y),
        "cross_entropy": (x, np.arange(_ROWS)), "nll_loss": (x, np.arange(_ROWS)),
        "layer_norm": norm, "rms_norm": norm[:3], "add_layer_norm": (x, y, *norm[1:]),
        "add_rms_norm": (x, y, *norm[1:3]), "group_norm": (images, 3, channels, channels),
        "instance_norm": (images,), "batch_norm": (images, None, None, channels, channels, True),
        "apply_rotary_emb": (_floats(1, 2, 12, 64), _floats(12, 32), _floats(12, 32)),
        "logsumexp": (x, 1), "topk": (x, 4), "gather": (x, 0, places),
        "scatter_add": (x, 0, places, y), "scatter_reduce": (x, 0, places, y, "sum"),
        "index_select": (x, 0, places[:, 0].copy()),
        "index_add": (x, 0, np.array([4, 1, 1]), y[:3].copy()),
        "embedding": (places[:, 0].copy(), x),
        "embedding_bag": (np.array([5, 1, 1, 3, 0]), x, np.array([0, 2, 5])),
        "one_hot": (np.arange(300) % 40, 40),
        "alpha_dropout": (x, 0.5, True), "feature_alpha_dropout": (_floats(12, 5, 100), 0.5, True),
    }  # fmt: skip
    return samples


def entries() -> Iterator[tuple[str, list[Entry]]]:
    """The families, with their operators."""
    samples = _samples()
    drawn: dict[Any, tuple[str, int]] = {}
    for family, operators in ops.FAMILIES.items():
        found = []
        for operator in operators:
            name = operator.__name__
            launches = traced(operator, samples, family)
            picture, caption = _picture(launches, drawn)
            found.append(
                Entry(
                    name, inspect.cleandoc(operator.__doc__ or ""), code(operator),
                    list(kernels(launches)), picture, caption,
                )
            )  # fmt: skip
        yield family, found


def traced(operator: Any, samples: Mapping[str, Sequence[Any]], family: str) -> list[traces.Launch]:
    """The launches of a call of an operator, or of the example of its docstring.

    The arguments of a family need not suit each of its operators.
    """
    name = operator.__name__
    if name in samples:
        return traces.launches_of(lambda: operator(*samples[name]))
    if family in samples:
        with contextlib.suppress(TypeError, TesseraError):
            return traces.launches_of(lambda: operator(*samples[family]))
    example = textwrap.dedent((operator.__doc__ or "").partition("Example:")[2])
    program = compile(example, f"{name}.py", "exec")
    return traces.launches_of(lambda: exec(program, {}))


def _picture(
    launches: Sequence[traces.Launch], drawn: dict[Any, tuple[str, int]]
) -> tuple[str, str]:
    """The picture of a call, and its caption. Kernels that differ in their function alone share one."""
    launch = max(launches, key=lambda each: each.size, default=None)
    if launch is None or not launch.size:  # arrays of another library than NumPy
        return "", ""
    name = launch.kernel.fn.__name__
    shapes = [
        (parameter, array.shape, str(array.dtype))
        for parameter, value in zip(launch.kernel.arg_names, launch.values)
        for array in traces.arrays_of(value)
    ]
    kind = name if launch.kernel.fn.__module__.startswith(f"{MODULE}.kernels") else "elements"
    key = (kind, launch.grid, tuple(shapes))
    if key not in drawn:
        drawn[key] = traces.picture(launch)
    svg, program = drawn[key]
    total = launch.grid[0]
    caption = (
        f"Program {program} of {total} of `{name}`" if total > 1 else f"The one program of `{name}`"
    )
    caption += ": blue is stored by it, and yellow is what these elements depend on."
    if len(launches) > 1:
        names = dict.fromkeys(each.kernel.fn.__name__ for each in launches)
        shown = ", ".join(f"`{each}`" for each in names)
        caption += f" The call makes {len(launches)} launches, of {shown}."
    return svg, caption


def code(operator: Any) -> str:
    """The function of an operator without its docstring: a scalar function, or one of arrays."""
    function = getattr(operator, "function", operator)
    return without_docstring(inspect.getsource(getattr(function, "fn", function)))


def kernels(launches: Sequence[traces.Launch]) -> Iterator[tuple[str, str, str]]:
    """Name, file and text of the kernels of a call that are in tessera.ops.kernels."""
    done = set()
    for launch in launches:
        function = launch.kernel.fn
        if function.__module__.startswith(f"{MODULE}.kernels") and function not in done:
            done.add(function)
            file = pathlib.Path(inspect.getfile(function)).resolve().relative_to(ROOT)
            yield function.__name__, file.as_posix(), without_docstring(inspect.getsource(function))


def without_docstring(source: str) -> str:
    """The text of a function without its docstring, and without notes to the formatter."""
    source = textwrap.dedent(source)
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    first = function.body[0]
    lines = source.splitlines()
    if ast.get_docstring(function) is not None and len(function.body) > 1:
        lines[first.lineno - 1 : first.end_lineno] = []
    return re.sub(
        r"  # (fmt: skip|type: ignore.*|noqa.*)$", "", "\n".join(lines), flags=re.MULTILINE
    )


_ROWS_OF = {
    "apply_rotary_emb": ("rotary",), "filter_logits": ("top-k", "top-p"), "sgd_step": ("SGD",),
    "adamw_step": ("AdamW",), "adafactor_step": ("Adafactor",), "adamw8bit_step": ("AdamW8bit",),
    "lion8bit_step": ("Lion8bit",),
}  # fmt: skip
"""The rows of operators that have other names in the benchmark."""

_FIGURES = {"name", "pass", "rows", "columns", "tessera", "torch"}
"""What a row of python/benchmarks/ops.py has."""


@functools.cache
def measured(folder: pathlib.Path) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """The files of figures of operators: their content, and their rows."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        rows = content.get("rows") if isinstance(content, dict) else None
        if isinstance(rows, list) and rows and _FIGURES <= set(rows[0]):
            found[path.name] = content, rows
    return found


def speed(name: str) -> Iterator[str]:
    """A chart for each machine on which an operator was measured, relative to torch's."""
    for file, (content, rows) in measured(ROOT / "docs/benchmarks").items():
        groups = [
            charts.Group(
                f"{row['name']}, {row['pass']}, {row['rows']} × {row['columns']}",
                [charts.Bar("Tessera", row["torch"] / row["tessera"]), charts.Bar("torch", 1.0)],
            )
            for row in rows
            if row["name"].split()[0] in _ROWS_OF.get(name, (name,))
        ]
        if not groups:
            continue
        title = "Speed relative to torch, longer is faster"
        yield gallery.html(charts.bars(title, groups, 1.0, _MAX_SPEED))
        machine = content.get("environment", content)
        facts = [content["machine"], f"torch {machine.get('torch', '')}", str(machine["date"])[:10]]
        yield f"Measured on {', '.join(facts)}; the figures are in `docs/benchmarks/{file}`."


def section(entry: Entry, shown: dict[str, str]) -> Iterator[str]:
    """The part of a page that is about one operator. `shown` has the operator of each kernel that the
    page has already."""
    formula, _, rest = entry.text.partition("\n\n")
    yield from (f"## `{entry.name}`", "", formula.replace("*", r"\*"), "")
    types = ops_page.field(entry.text, "Types")
    if types:
        yield from (f"Types: {types}.", "")
    if entry.picture:
        yield from (gallery.html(entry.picture), "", entry.caption, "")
    yield from (markdown.fenced(entry.code, "python"), "")
    for name, file, text in entry.kernels:
        if name in shown:
            where = f"[`{shown[name]}`](#{anchor(shown[name])})"
            yield from (f"The kernel `{name}` is that of {where}.", "")
            continue
        shown[name] = entry.name
        yield from (f"The kernel `{name}`, of [{pathlib.Path(file).name}](../../{file}):", "")
        yield from (markdown.fenced(text, "python"), "")
    example = textwrap.dedent(rest.partition("Example:")[2]).strip()
    if example:
        yield from ("An example:", "", markdown.fenced(example, "python"), "")
    for line in speed(entry.name):
        yield from (line, "")


def stem(family: str) -> str:
    return "Operators" + "".join(word.capitalize() for word in family.split())


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of each page."""
    families = list(entries())
    lines = [
        "# Gallery of operators", "",
        "Every operator of [tessera.ops](../Ops.md): its formula, a picture of what one program does, its code, "
        "and its speed beside torch's where that was measured. The pictures are made by running the "
        "operators: blue elements are stored by the program, and yellow ones are what these depend on.", "",
    ]  # fmt: skip
    for family, found in families:
        names = ", ".join(
            f"[`{entry.name}`]({stem(family)}.md#{anchor(entry.name)})" for entry in found
        )
        lines += [f"- [{family}]({stem(family)}.md): {names}"]
    lines += [
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(stem(family) for family, _ in families),
        "```",
        "",
    ]
    for family, found in families:
        text = [
            f"# {family}",
            "",
            f"Operators of the family, from [Ops](../Ops.md#{anchor(family)}).",
            "",
        ]
        shown: dict[str, str] = {}
        for entry in found:
            text += section(entry, shown)
        yield f"docs/Gallery/{stem(family)}.md", "\n".join(text)
    yield "docs/Gallery/Operators.md", "\n".join(lines)


def anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
