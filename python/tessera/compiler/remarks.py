# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks of the compiler and the assembler about a kernel: lines of text that are records.

    for remark in kernel.remarks:
        print(remark)  # "kernel.py:12:9: dot of 64x64x64 of f16 by wgmma"
        if remark.kind == "dot":
            print(remark.line, remark.values["instruction"])  # 12 wgmma

The text is for people, and may be worded anew; kinds and names of values stay. docs/Remarks.md lists
them.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from tessera.wording import shown_place


class Remark(str):
    """A line that names its place, with what it says as attributes."""

    kind: str
    """Its kind, such as "dot" or "fewer-stages"."""
    message: str
    """The text without the place."""
    file: str
    """The file that it is about; empty where none is known."""
    line: int
    """The line in it, counted from 1; 0 where none is known."""
    column: int
    """The column in it, counted from 1; 0 where none is known."""
    values: Mapping[str, Union[int, str]]
    """The values in the text, by name."""

    def __new__(
        cls,
        text: str,
        kind: str = "other",
        message: Optional[str] = None,
        file: str = "",
        line: int = 0,
        column: int = 0,
        values: Optional[Mapping[str, Union[int, str]]] = None,
    ) -> Remark:
        remark = super().__new__(cls, text)
        remark.kind = kind
        remark.message = text if message is None else message
        remark.file, remark.line, remark.column = file, line, column
        remark.values = dict(values or {})
        return remark

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Remark:
        """The remark that the compiler's record of it stands for."""
        file, line, message = record["file"], record["line"], record["message"]
        place = shown_place(file, line, record["column"]) if line else file
        return cls(f"{place}: {message}" if place else message, **record)
