# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tessera build kernel.py:name --signature "*fp32, i32, 64" --target native -o out/`."""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path
from typing import Any, Sequence

from tessera.errors import ArgumentError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `build`."""
    parser.add_argument("kernel", nargs="+", help="file.py:name; several make one library")
    parser.add_argument(
        "--signature",
        "-s",
        action="append",
        required=True,
        help='a type or a constant for each parameter, as in "*fp32:16, i32, 64"; several make '
        'specialisations, the first that fits is called. Of one of several kernels: "add=*fp32, ..."',
    )
    parser.add_argument(
        "--target",
        "-t",
        action="append",
        help='"native" (the default), a CPU such as x86-64-v3, or a GPU such as sm_90a; several '
        "make specialisations, the best machine first",
    )
    parser.add_argument("--out", "-o", default=".", help="the folder to write to")
    parser.add_argument("--name", help="of the library; the first kernel's if there is none")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of a launch, such as num_warps=8",
    )


def run(given: argparse.Namespace) -> int:
    """Builds; returns the exit status."""
    from tessera.aot.build import Request, build_library, load_kernel

    options: dict[str, Any] = {}
    for item in given.option:
        name, equals, value = item.partition("=")
        if not equals:
            raise ArgumentError("E079", f"--option {item} has no value", "write num_warps=8")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    kernels = [load_kernel(place) for place in given.kernel]
    requests = [
        Request(kernel, _signatures_of(kernel.__name__, given.signature)) for kernel in kernels
    ]
    name = given.name or kernels[0].__name__
    library = build_library(name, requests, given.target or ["native"], Path(given.out), **options)
    for path in (library.header, *library.sources, *library.objects, *library.cubins):
        print(path)
    return 0


def _signatures_of(kernel: str, given: Sequence[str]) -> tuple[str, ...]:
    """The signatures that are given for a kernel, or for all."""
    found = []
    for text in given:
        match = re.match(r"\s*([^\W\d]\w*)\s*=(.*)", text, re.DOTALL)
        if match is None or match[1] == kernel:
            found.append(text if match is None else match[2])
    if not found:
        raise ArgumentError(
            "E079", f"there is no signature for `{kernel}`", f'write -s "{kernel}=*fp32, i32, ..."'
        )
    return tuple(found)
