# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads, stores, block pointers, descriptors and atomics: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

import tessera.language as tl
from language.building import Build, check

# expression, type of its value, text in the IR
MEMORY = [
    ("tl.load(p)", "fp32", "tile.load"),
    ("tl.load(p + i)", "fp32[8]", "tile.load"),
    ("tl.load(hp + i, mask=c, other=0)", "fp16[8]", "tile.load"),
    ('tl.load(p + i, c, 0.0, cache_modifier=".cg")', "fp32[8]", "cache = 2"),
    ('tl.load(p + i, eviction_policy="evict_first")', "fp32[8]", "evict = 1"),
    ("tl.load(p + i, volatile=True)", "fp32[8]", "isVolatile"),
    ("tl.load(bp + i)", "int1[8]", "tile.load"),
    ("tl.load(lp + i).to(tl.pointer_type(tl.float32))", "*fp32[8]", "tile.int_to_ptr"),
    ("tl.store(p + i, x, mask=c)", "the constant None", "tile.store"),
    ("(p + i).store(1)", "the constant None", "tile.store"),
    ("tl.load(tl.make_block_ptr(p, (n, n), (n, 1), (0, 0), (16, 8), (1, 0)))", "fp32[16, 8]", ""),
    (
        "tl.load(tl.advance(tl.make_block_ptr(p, (n,), (1,), (0,), (16,), (0,)), (16,)), "
        'boundary_check=(0,), padding_option="zero")',
        "fp32[16]",
        "tile.advance",
    ),
    (
        "tl.make_tensor_descriptor(p, [n, n], [m, 1], [16, 16]).load([0, 0])",
        "fp32[16, 16]",
        "tile.descriptor_load",
    ),
    (
        "tl.make_tensor_descriptor(p, [n, n], [m, 1], [16, 16]).store([n, 0], "
        "tl.zeros((16, 16), tl.float32))",
        "the constant None",
        "tile.descriptor_store",
    ),
    (
        "tl.make_tensor_descriptor(p, [n, n], [m, 1], [1, 16]).gather(i, 0)",
        "fp32[8, 16]",
        "tile.descriptor_gather",
    ),
    (
        "tl.make_tensor_descriptor(p, [n, n], [m, 1], [1, 16])"
        ".scatter(tl.zeros((8, 16), tl.float32), i, 0)",
        "the constant None",
        "tile.descriptor_scatter",
    ),
    (
        "tl.make_tensor_descriptor(p, [n, n], [m, 1], [16, 16]).atomic_add([0, 0], "
        "tl.zeros((16, 16), tl.float32))",
        "the constant None",
        "tile.descriptor_reduce",
    ),
    ("tl.atomic_add(p + i, x)", "fp32[8]", "fadd"),
    ("tl.atomic_add(ip + i, 1, mask=c)", "int32[8]", "add"),
    ("tl.atomic_max(ip, n)", "int32", "max"),
    ("tl.atomic_min(ip + i, i)", "int32[8]", "min"),
    ("tl.atomic_and(ip, 1)", "int32", "and"),
    ("tl.atomic_or(ip, 1)", "int32", "or"),
    ("tl.atomic_xor(ip, 1)", "int32", "xor"),
    ('tl.atomic_xchg(p + i, x, sem="release", scope="sys")', "fp32[8]", "xchg"),
    ("tl.atomic_cas(ip, 0, 1)", "int32", "atomic_cas"),
    ("tl.atomic_load(ip + i, c)", "int32[8]", "atomic_load"),
    ("tl.atomic_store(ip + i, i)", "the constant None", "atomic_store"),
]


@pytest.mark.parametrize("expression, type, text", MEMORY, ids=[row[0] for row in MEMORY])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)


def test_all_dtypes_load_and_store(build: Build) -> None:
    for name in ("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "bfloat16", "float32", "float64"):  # fmt: skip
        dtype = getattr(tl, name)
        built = build(
            "tl.load(q)",
            f"q = m.to(tl.pointer_type(tl.{name})) + tl.arange(0, 8)",
            "tl.store(q, tl.load(q))",
        )
        assert built.value.dtype == dtype
