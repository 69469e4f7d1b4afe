# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX of every atomic: each operation and type in each order and scope, on each target.

LLVM would drop orders and scopes, so the instructions are text of ours; ptxas has the last
word on whether they are there. What has no instruction is a loop of compare-and-swap, or is
refused.
"""

from __future__ import annotations

import re

import pytest
from execution.running import make_kernel

import tessera
from tessera.compiler import toolchain

ORDERS = ["relaxed", "acquire", "release", "acq_rel"]
SCOPES = ["cta", "gpu", "sys"]
TYPES = {
    "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32",
    "int64": "i64", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32",
    "float64": "fp64",
}  # fmt: skip
OPERATIONS = ["add", "max", "min", "and", "or", "xor", "xchg", "cas"]

_INTEGERS = {
    f"{sign}int{bits}": {
        "add": f"add.u{bits}",
        "max": f"max.{'u' if sign else 's'}{bits}",
        "min": f"min.{'u' if sign else 's'}{bits}",
        "and": f"and.b{bits}",
        "or": f"or.b{bits}",
        "xor": f"xor.b{bits}",
        "xchg": f"exch.b{bits}",
        "cas": f"cas.b{bits}",
    }
    for sign in ("", "u")
    for bits in (32, 64)
}
_FLOATS = {
    f"float{bits}": {
        "add": f"add.f{bits}",
        "max": f"cas.b{bits}",
        "min": f"cas.b{bits}",
        "xchg": f"exch.b{bits}",
        "cas": f"cas.b{bits}",
    }
    for bits in (32, 64)
}
# What is not here is refused.
INSTRUCTIONS: dict[str, dict[str, str]] = {
    **_INTEGERS,
    **_FLOATS,
    "int16": {"cas": "cas.b16"},
    "uint16": {"cas": "cas.b16"},
    "float16": {"add": "add.noftz.f16", "cas": "cas.b16"},
    "bfloat16": {"add": "add.noftz.bf16", "cas": "cas.b16"},
    "int8": {},
    "uint8": {},
}


def call(operation: str, order: str, scope: str) -> str:
    values = "x, y" if operation == "cas" else "x"
    return f'tl.atomic_{operation}(p, {values}, sem="{order}", scope="{scope}")'


@pytest.mark.skipif(not toolchain.find_ptxas(), reason="there is no ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", [dtype for dtype in TYPES if INSTRUCTIONS[dtype]])
def test_order_scope_and_type_are_in_the_instruction(dtype, target):
    operations = [name for name in OPERATIONS if name in INSTRUCTIONS[dtype]]
    every = [(name, o, s) for name in operations for o in ORDERS for s in SCOPES]
    lines = [f"    tl.store(q + {i}, {call(*one)})" for i, one in enumerate(every)]
    kernel = make_kernel("\n".join(
        ["@tessera.jit", "def kernel(p, q):", "    x, y = tl.load(q), tl.load(q + 1)", *lines]
    ))  # fmt: skip
    pointer = f"*{TYPES[dtype]}:16"
    ptx = tessera.compile(kernel, f"{pointer}, {pointer}", target=target).asm["ptx"]
    found = re.findall(r"\batom\.(\w+)\.(\w+)\.global\.([\w.]+)", ptx)
    expected = []
    for name, order, scope in every:
        instruction = INSTRUCTIONS[dtype][name]
        if (dtype, name, target) == ("bfloat16", "add", "sm_80"):
            instruction = "cas.b16"  # its sum came with sm_90
        expected.append((order, scope, instruction))
    assert found == expected


@pytest.mark.parametrize("dtype", TYPES)
def test_what_there_is_not_is_refused(dtype):
    pointer = f"*{TYPES[dtype]}:16"
    for operation in OPERATIONS:
        if operation in INSTRUCTIONS[dtype]:
            continue
        kernel = make_kernel(f"""
@tessera.jit
def kernel(p, q):
    x, y = tl.load(q), tl.load(q)
    tl.store(q, {call(operation, "relaxed", "gpu")})
""")
        with pytest.raises(tessera.TesseraError) as caught:
            tessera.compile(kernel, f"{pointer}, {pointer}", target="sm_90a")
        message = str(caught.value)
        assert f"error[E047]: atomic_{operation} of " in message and "fix: " in message
        assert ":8:17:" in message
