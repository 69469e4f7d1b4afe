# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of docs/Ops.md, made of the docstrings of tessera.ops."""

from __future__ import annotations

import inspect
import re

_FIELD = r"{}:\s+((?:[^.]|\.\w)*)\."


def field(text: str, name: str) -> str:
    """A sentence `Name: text.` of a docstring, on one line; empty if there is none."""
    found = re.search(_FIELD.format(name), text)
    return " ".join(found.group(1).split()) if found else ""


def tables() -> list[str]:
    """A table for each family."""
    from tessera import ops

    lines: list[str] = []
    for family, operators in ops.FAMILIES.items():
        lines += [f"### {family}", "", "| operator | is | types | missing of torch's |",
                  "|---|---|---|---|"]  # fmt: skip
        for operator in operators:
            text = inspect.cleandoc(operator.__doc__ or "")
            formula = " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
            function = getattr(operator, "function", operator)
            parameters = inspect.signature(getattr(function, "fn", function)).parameters.values()
            shown = ", ".join(
                each.name + ("=" + repr(each.default) if each.default is not each.empty else "")
                for each in parameters
                if each.name != "out"  # which most take, as the page says
            )
            lines.append(
                f"| `{operator.__name__}({shown})` | {formula} | {field(text, 'Types')} "
                f"| {field(text, 'Missing')} |"
            )
        lines.append("")
    return lines


def renewed(page: str) -> str:
    """The page with tables of today."""
    head, _, rest = page.partition("<!-- operators -->\n")
    tail = rest.partition("<!-- end -->")[2]
    return head + "\n".join(["<!-- operators -->", *tables(), "<!-- end -->"]) + tail
