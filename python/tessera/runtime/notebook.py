# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a notebook shows a compiled kernel (what it needs, remarks, and the IR of each stage), its
metadata, and a tuned kernel (choices, and the times of the last tuning).

All text is escaped: names, remarks and IR may have anything in them.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Iterable, Sequence

from tessera.errors import TesseraError

if TYPE_CHECKING:
    from tessera.compiler.metadata import KernelMetadata
    from tessera.runtime.kernel import CompiledKernel
    from tessera.tuning.autotuner import Autotuner

_MOST_LINES = 1000
"""So many lines of a stage are shown: a page with more of them is slow."""


def kernel_facts(kernel: CompiledKernel) -> list[tuple[str, str]]:
    """What there is to know about a kernel in a line each: a name, and a text."""
    metadata = kernel.metadata
    facts = [("target", str(metadata["arch"] or metadata["cpu"]))]
    if metadata["target"] == "cuda":
        facts += [
            ("warps", str(kernel.num_warps)),
            ("registers", f"{metadata['num_registers']} a thread"),
            ("spilled", f"{metadata['spill_bytes']} bytes a thread"),
            ("shared memory", f"{kernel.shared} bytes"),
        ]
        if metadata["assembler"] == "driver":
            # The driver alone knows, once it has assembled the kernel.
            facts[2:4] = [("registers", "as the driver assembles it")]
    else:
        facts += [
            ("vectors", f"{metadata['vector_bits']} bits"),
            ("memory for tiles", f"{metadata['scratch_bytes']} bytes a thread"),
        ]
    milliseconds = sum(time for _, time in metadata["stage_ms"])
    return [*facts, ("compiled in", f"{milliseconds:.0f} ms")]


def kernel_html(kernel: CompiledKernel) -> str:
    """The kernel as HTML: a table of facts, remarks, and the stages, each to be unfolded."""
    parts = [f"<b>Compiled kernel <code>{escape(kernel.name)}</code></b>"]
    parts += [_facts(kernel_facts(kernel)), _list("Remarks", kernel.remarks)]
    try:
        stages = [(name, kernel.stages[name]) for name in kernel.stages]
    except TesseraError as error:  # where they have to be made once more
        stages = []
        parts.append(f"<p>There are no stages to show: {escape(str(error))}</p>")
    parts += [_stage(name, content) for name, content in stages]
    return f"<div>{''.join(parts)}</div>"


def metadata_html(metadata: KernelMetadata) -> str:
    """What is known about a kernel as HTML: a table of names and values, and the remarks."""
    facts = [(name, str(value)) for name, value in metadata.items() if name != "remarks"]
    title = f"<b>Metadata of <code>{escape(metadata.name)}</code></b>"
    return f"<div>{title}{_facts(facts)}{_list('Remarks', metadata['remarks'])}</div>"


def tuner_html(tuner: Autotuner) -> str:
    """A tuned kernel as HTML: its choices, and of the last tuning each configuration's time. The
    choice is bold; the configurations that failed are to be unfolded, with the reasons."""
    from tessera.tuning.config import shortly
    from tessera.tuning.progress import WHY_NOT_FASTEST, reasons, shown_ms

    count = len(tuner.keys)
    parts = [f"<b>Autotuned kernel <code>{escape(tuner._name)}</code></b>"]
    if not tuner.cache:
        parts.append("<p>Nothing is chosen yet: the first launch tunes it.</p>")
    else:
        head = [*tuner.keys, "types and device", "choice"]
        rows = [
            [*map(str, key[:count]), ", ".join(map(str, key[count:])), shortly(config)]
            for key, config in tuner.cache.items()
        ]
        parts.append(_table(head, rows))
    timed = {c: times for c, times in tuner.configs_timings.items() if times[0] != float("inf")}
    if timed:
        order = sorted(timed, key=lambda config: timed[config][0])
        chosen = set(tuner.cache.values())
        rows = [[shortly(config), *map(shown_ms, timed[config])] for config in order]
        is_bold = [config in chosen for config in order]
        parts.append("<p>The last tuning:</p>")
        parts.append(_table(["configuration", "median", "fast", "slow"], rows, is_bold))
        if not is_bold[0]:
            parts.append(f"<p>Where others have lower times: {escape(WHY_NOT_FASTEST)}.</p>")
    parts.append(_list("Failed", reasons(tuner.failures)))
    return f"<div>{''.join(parts)}</div>"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts
    )
    return f"<table>{rows}</table>"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], is_bold: Sequence[bool] = ()) -> str:
    def row(kind: str, cells: Sequence[str], bold: bool = False) -> str:
        shown = (f"<b>{escape(cell)}</b>" if bold else escape(cell) for cell in cells)
        items = (f"<{kind} style='text-align:left'>{cell}</{kind}>" for cell in shown)
        return f"<tr>{''.join(items)}</tr>"

    bold = [*is_bold, *[False] * len(rows)]
    body = "".join(row("td", cells, bold[number]) for number, cells in enumerate(rows))
    return f"<table>{row('th', head)}{body}</table>"


def _list(title: str, items: Sequence[str]) -> str:
    """Lines to be unfolded; nothing if there are none."""
    lines = "".join(f"<li><code>{escape(item)}</code></li>" for item in items)
    return _folded(f"{title} ({len(items)})", f"<ul>{lines}</ul>") if lines else ""


def _stage(name: str, content: object) -> str:
    if not isinstance(content, str):
        size = len(content) if isinstance(content, bytes) else 0
        return f"<div><code>{escape(name)}</code>: {size} bytes of machine code</div>"
    lines = content.splitlines()
    text = "\n".join(lines[:_MOST_LINES])
    note = ""
    if len(lines) > _MOST_LINES:
        note = f"<p>{len(lines) - _MOST_LINES} more lines: see <code>.stages[{escape(repr(name))}]</code></p>"
    title = f"<code>{escape(name)}</code> ({len(lines)} lines)"
    box = "max-height:30em;overflow:auto"
    return _folded(title, f"<pre style='{box}'>{escape(text)}</pre>{note}", is_html=True)


def _folded(title: str, body: str, is_html: bool = False) -> str:
    return f"<details><summary>{title if is_html else escape(title)}</summary>{body}</details>"
