# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a notebook shows a compiled kernel: what it needs, remarks, and the IR of each stage.

All text is escaped: names, remarks and IR may have anything in them.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tessera.errors import TesseraError

if TYPE_CHECKING:
    from tessera.runtime.kernel import CompiledKernel

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
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in kernel_facts(kernel)
    )
    parts = [f"<b>Compiled kernel <code>{escape(kernel.name)}</code></b>", f"<table>{rows}</table>"]
    if kernel.remarks:
        items = "".join(f"<li><code>{escape(remark)}</code></li>" for remark in kernel.remarks)
        parts.append(_folded(f"Remarks ({len(kernel.remarks)})", f"<ul>{items}</ul>"))
    try:
        stages = [(name, kernel.stages[name]) for name in kernel.stages]
    except TesseraError as error:  # where they have to be made once more
        stages = []
        parts.append(f"<p>There are no stages to show: {escape(str(error))}</p>")
    parts += [_stage(name, content) for name, content in stages]
    return f"<div>{''.join(parts)}</div>"


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
