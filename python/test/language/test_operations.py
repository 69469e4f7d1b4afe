# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation builds, gives the type it should and makes the IR it should."""

from __future__ import annotations

import pytest

import tessera.language as tl
from conftest import Build

SETUP = (
    "i = tl.arange(0, 8)",
    "x = i.to(tl.float32)",
    "t = tl.full((4, 8), 1.5, tl.float32)",
    "k = tl.full((4, 8), 3, tl.int32)",
    "c = i < 4",
)

# expression, type of its value, text in the IR
CREATION = [
    ("tl.arange(3, 11)", "int32[8]", "tile.range 3 to 11"),
    ("tl.arange(0, 192)", "int32[192]", "tile.range 0 to 192"),
    ("tl.full((4, 8), 2, tl.float16)", "fp16[4, 8]", "dense<2.000000e+00> : tensor<4x8xf16>"),
    ("tl.full((4,), f, tl.float64)", "fp64[4]", "tile.splat"),
    ("tl.full((), 1, tl.int64)", "int64", "i64"),
    ("tl.zeros([4, 8], tl.int8)", "int8[4, 8]", "dense<0> : tensor<4x8xi8>"),
    ("tl.zeros_like(t)", "fp32[4, 8]", "dense<0.000000e+00> : tensor<4x8xf32>"),
    ("tl.zeros_like(h)", "fp16", "f16"),
    ("tl.to_tensor(True)", "int1 (= True)", ""),
    ("tl.to_tensor(7)", "int32 (= 7)", ""),
    ("tl.to_tensor(2**31)", "uint32 (= 2147483648)", ""),
    ("tl.to_tensor(2**32)", "int64 (= 4294967296)", ""),
    ("tl.to_tensor(2**63)", "uint64 (= 9223372036854775808)", ""),
    ("tl.to_tensor(0.5)", "fp32 (= 0.5)", ""),
    ("tl.to_tensor(1e300)", "fp64 (= 1e+300)", ""),
    ("tl.to_tensor(1e-40)", "fp64 (= 1e-40)", ""),
    ("tl.cast(x, tl.int32)", "int32[8]", "tensor<8xf32> -> tensor<8xi32>"),
    ("x.to(tl.bfloat16)", "bf16[8]", "tile.fp_to_fp"),
    ('x.to(tl.bfloat16, fp_downcast_rounding="rtz")', "bf16[8]", "rounding = 1"),
    ("x.to(tl.int32, bitcast=True)", "int32[8]", "tile.bitcast"),
    ("i.to(tl.uint32)", "uint32[8]", ""),
    ("m.to(tl.pointer_type(tl.float32))", "*fp32", "tile.int_to_ptr"),
    ("p.to(tl.int64)", "int64", "tile.ptr_to_int"),
    ("p.to(tl.pointer_type(tl.int8))", "*int8", "tile.bitcast"),
    ("tl.full((1,), 3, tl.int32).item()", "int32", ""),
]

SHAPE = [
    ("x[:, None]", "fp32[8, 1]", "tile.expand_dims"),
    ("x[None, :]", "fp32[1, 8]", "tile.expand_dims"),
    ("x[None, :, None]", "fp32[1, 8, 1]", "tile.expand_dims"),
    ("t[:, None, :]", "fp32[4, 1, 8]", "tile.expand_dims"),
    ("t[..., None]", "fp32[4, 8, 1]", "tile.expand_dims"),
    ("tl.expand_dims(x, -1)", "fp32[8, 1]", "tile.expand_dims"),
    ("x.expand_dims((0, 2))", "fp32[1, 8, 1]", "tile.expand_dims"),
    ("tl.broadcast(x, t)", "fp32[4, 8], fp32[4, 8]", "tile.broadcast"),
    ("tl.broadcast_to(x[None, :], (4, 8))", "fp32[4, 8]", "tile.broadcast"),
    ("x[None, :].broadcast_to(4, 8)", "fp32[4, 8]", "tile.broadcast"),
    ("tl.broadcast_to(f, (4,))", "fp32[4]", "tile.splat"),
    ("tl.reshape(t, (8, 4))", "fp32[8, 4]", "tile.reshape"),
    ("t.reshape(32)", "fp32[32]", "tile.reshape"),
    ("t.view(2, 16)", "fp32[2, 16]", "tile.reshape"),
    ("tl.ravel(t)", "fp32[32]", "tile.reshape"),
    ("t.T", "fp32[8, 4]", "tile.trans"),
    ("tl.trans(t)", "fp32[8, 4]", "tile.trans"),
    ("tl.permute(t[None, :, :], (2, 0, 1))", "fp32[8, 1, 4]", "tile.trans"),
    ("t.permute(-1, 0)", "fp32[8, 4]", "tile.trans"),
    ("tl.join(x, x)", "fp32[8, 2]", "tile.join"),
    ("tl.join(x, x).split()", "fp32[8], fp32[8]", "tile.split"),
    ("tl.interleave(x, x)", "fp32[16]", "tile.join"),
    ("tl.cat(x, x)", "fp32[16]", "tile.cat"),
    ("tl.cat(x, x, can_reorder=True)", "fp32[16]", "tile.cat"),
    ("tl.cat(t, t, dim=1)", "fp32[4, 16]", "tile.cat"),
    ("tl.flip(t)", "fp32[4, 8]", "tile.gather"),
    ("x.flip(0)", "fp32[8]", "tile.gather"),
    ("tl.gather(t, k, 1)", "fp32[4, 8]", "tile.gather"),
    ("tl.squeeze(x[None, :], 0)", "fp32[8]", "tile.reshape"),
    ("tl.unsqueeze(x, -1)", "fp32[8, 1]", "tile.expand_dims"),
    ("tl.histogram(i, 16)", "int32[16]", "tile.histogram"),
]

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

# Operators: rules 1 to 5 of language.md 2.7.
ARITHMETIC = [
    ("i + 1", "int32[8]", "arith.addi"),
    ("1 + i", "int32[8]", "arith.addi"),
    ("s + 1", "int8", "arith.addi"),
    ("s + n", "int32", "arith.addi"),
    ("n + m", "int64", "arith.addi"),
    ("n + u", "uint32", "arith.addi"),
    ("h + 1.5", "fp16", "arith.addf"),
    ("h + g", "fp16", "arith.addf"),
    ("h + f", "fp32", "arith.addf"),
    ("g + g", "bf16", "arith.addf"),
    ("f + d", "fp64", "arith.addf"),
    ("n + 0.5", "fp32", "arith.addf"),
    ("n - m", "int64", "arith.subi"),
    ("2 - x", "fp32[8]", "arith.subf"),
    ("x * x", "fp32[8]", "arith.mulf"),
    ("n / n", "fp32", "arith.divf"),
    ("h / h", "fp32", "arith.divf"),
    ("n // 3", "int32", "tile.div_int"),
    ("n % 3", "int32", "tile.rem_int"),
    ("f % 2.0", "fp32", "remf"),
    ("n << 3", "int32", "left"),
    ("n >> 3", "int32", "right_arithmetic"),
    ("u >> 3", "uint32", "right_logical"),
    ("n & 3", "int32", "arith.andi"),
    ("n | 3", "int32", "arith.ori"),
    ("n ^ 3", "int32", "arith.xori"),
    ("~n", "int32", "arith.xori"),
    ("-n", "int32", "arith.subi"),
    ("-f", "fp32", "arith.negf"),
    ("+n", "int32", ""),
    ("not b", "int1", "arith.xori"),
    ("n < 3", "int1", "slt"),
    ("u < 3", "int1", "ult"),
    ("x >= 0", "int1[8]", "oge"),
    ("x == x", "int1[8]", "oeq"),
    ("x != x", "int1[8]", "une"),
    ("n > 0 and m > 0", "int1", "arith.andi"),
    ("n > 0 or m > 0", "int1", "arith.ori"),
    ("0 <= n < 8", "int1", "arith.andi"),
    ("p + i", "*fp32[8]", "tile.addptr"),
    ("i + p", "*fp32[8]", "tile.addptr"),
    ("p - 1", "*fp32", "tile.addptr"),
    ("tl.add(n, 1)", "int32", "arith.addi"),
    ("tl.sub(n, m)", "int64", "arith.subi"),
    ("tl.mul(1, n, sanitize_overflow=False)", "int32", "arith.muli"),
    ("tl.maximum(n, 0)", "int32", "maxsi"),
    ("tl.maximum(u, 1)", "uint32", "maxui"),
    ("tl.maximum(x, 0.0)", "fp32[8]", "maxnumf"),
    ("tl.minimum(x, t)", "fp32[4, 8]", "minnumf"),
    ("tl.minimum(x, 0, propagate_nan=tl.PropagateNan.ALL)", "fp32[8]", "minimumf"),
    ("tl.maximum(g, g)", "bf16", ""),
    ("max(n, m, 3)", "int64", "maxsi"),
    ("tl.clamp(x, 0.0, 1.0)", "fp32[8]", "clamp"),
    ("tl.clamp(n, 0, 7)", "int32", ""),
    ("tl.where(c, x, 0)", "fp32[8]", "arith.select"),
    ("tl.where(c, 1, 2)", "int32[8]", "arith.select"),
    ("tl.where(c[None, :], t, i)", "fp32[4, 8]", "arith.select"),
    ("tl.cdiv(n, 4)", "int32", "tile.div_int"),
    ("tl.umulhi(u, u)", "uint32", "tile.mulhi"),
    ("tl.fdiv(x, 3.0)", "fp32[8]", "arith.divf"),
    ("tl.div_rn(x, x)", "fp32[8]", "tile.precise_div"),
    ("tl.sqrt_rn(x)", "fp32[8]", "tile.precise_sqrt"),
    ("tl.fma(x, x, 1.0)", "fp32[8]", "math.fma"),
    ("tl.abs(i)", "int32[8]", "absi"),
    ("x.abs()", "fp32[8]", "absf"),
    ("abs(f)", "fp32", "absf"),
    ("tl.sigmoid(x)", "fp32[8]", "math.exp"),
    ("tl.softmax(t)", "fp32[4, 8]", "math.exp"),
    ("tl.softmax(t, 1)", "fp32[4, 8]", "math.exp"),
] + [
    (f"tl.{name}(x)", "fp32[8]", "")
    for name in (
        "exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil",
        "tan", "tanh", "log1p", "expm1", "math.exp", "math.sqrt",
    )
]  # fmt: skip

MATMUL = [
    (
        "tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 64), tl.float16))",
        "fp32[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((16, 32), tl.float16), tl.zeros((32, 64), tl.float16), "
        "out_dtype=tl.float16)",
        "fp16[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((16, 32), tl.float32), tl.zeros((32, 64), tl.float32), "
        "tl.zeros((16, 64), tl.float32), allow_tf32=False)",
        "fp32[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((16, 32), tl.int8), tl.zeros((32, 64), tl.int8))",
        "int32[16, 64]",
        "tile.dot",
    ),
    (
        "tl.dot(tl.zeros((2, 16, 32), tl.float64), tl.zeros((2, 32, 64), tl.float64))",
        "fp64[2, 16, 64]",
        "tile.dot",
    ),
]

REDUCTION = [
    ("tl.sum(x)", "fp32", "tile.reduce"),
    ("tl.sum(t, axis=0)", "fp32[8]", "tile.reduce"),
    ("t.sum(1)", "fp32[4]", "tile.reduce"),
    ("t.sum(axis=-1, keep_dims=True)", "fp32[4, 1]", "tile.reduce"),
    ("t.sum(keep_dims=True)", "fp32[1, 1]", "tile.reduce"),
    ("tl.sum(i.to(tl.int8))", "int32", "tile.reduce"),
    ("tl.sum(i.to(tl.uint16))", "uint32", "tile.reduce"),
    ("tl.sum(c)", "int32", "tile.reduce"),
    ("tl.sum(x.to(tl.float16))", "fp16", "tile.reduce"),
    ("tl.sum(i.to(tl.int8), dtype=tl.int64)", "int64", "tile.reduce"),
    ("tl.max(t, 1)", "fp32[4]", "maxnumf"),
    ("tl.max(x.to(tl.bfloat16))", "fp32", "tile.reduce"),
    ("tl.max(i.to(tl.int8))", "int32", "tile.reduce"),
    ("tl.min(i)", "int32", "minsi"),
    ("tl.max(t, 1, return_indices=True)", "fp32[4], int32[4]", "tile.reduce"),
    ("x.min(0, return_indices=True, return_indices_tie_break_left=False)", "fp32, int32", ""),
    ("tl.argmax(t, 1)", "int32[4]", "tile.reduce"),
    ("t.argmin(0, keep_dims=True)", "int32[1, 8]", "tile.reduce"),
    ("tl.xor_sum(i)", "int32", "arith.xori"),
    ("tl.reduce_or(i, 0)", "int32", "arith.ori"),
    ("tl.cumsum(x)", "fp32[8]", "tile.scan"),
    ("t.cumsum(1, reverse=True)", "fp32[4, 8]", "reverse"),
    ("tl.cumprod(t, axis=1)", "fp32[4, 8]", "tile.scan"),
    ("tl.cumsum(i.to(tl.int16))", "int32[8]", "tile.scan"),
]

PROGRAM = [
    ("tl.program_id(0)", "int32", "tile.program_id 0"),
    ("tl.num_programs(axis=2)", "int32", "tile.num_programs 2"),
    ("tl.multiple_of(n, 16)", "int32", "16"),
    ("tl.max_contiguous(tl.multiple_of(i, 8), 8)", "int32[8]", ""),
    ("tl.max_constancy(k, (4, 8))", "int32[4, 8]", ""),
    ("tl.assume(n > 0)", "the constant None", "tile.assume"),
    ("tl.expect_zero(i, c)", "int32[8]", "tile.assert"),
    ("tl.sort(x)", "fp32[8]", "tile.sort"),
    ("t.sort(0, descending=True)", "fp32[4, 8]", "tile.sort"),
    ("tl.argsort(x)", "int32[8]", "tile.sort"),
    ("tl.topk(t, 4)", "fp32[4, 4]", "tile.gather"),
    ("tl.topk(i, 1, return_indices=True)", "int32[1], int32[1]", "tile.gather"),
    ("tl.debug_barrier()", "the constant None", "tile.barrier"),
    ('tl.device_print("x", x, n)', "the constant None", "tile.print"),
    ('print("x", x)', "the constant None", "tile.print"),
    ('tl.device_assert(n > 0, "n")', "the constant None", "tile.assert"),
    ("tl.swizzle2d(n, n, 8, 8, 2)", "int32, int32", "tile.div_int"),
    (
        'tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [i], tl.int32, True, 1)',
        "int32[8]",
        "asm",
    ),
    ("tl.rand(n, i)", "fp32[8]", "tile.mulhi"),
    ("tl.randn(n, i)", "fp32[8]", "math.cos"),
    ("tl.randint(n, i)", "uint32[8]", "tile.mulhi"),
    ("tl.randint(m, i.to(tl.int64))", "uint64[8]", "tile.mulhi"),
    ("tl.rand4x(n, i)", "fp32[8], fp32[8], fp32[8], fp32[8]", ""),
    ("tl.randn4x(n, i)", "fp32[8], fp32[8], fp32[8], fp32[8]", ""),
]

TABLE = CREATION + SHAPE + MEMORY + ARITHMETIC + MATMUL + REDUCTION + PROGRAM


@pytest.mark.parametrize("expression, type, text", TABLE, ids=[row[0] for row in TABLE])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    built = build(expression, *SETUP)
    assert built.type == type
    assert text in built.ir


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


def test_reduce_with_a_function_of_ones_own(build: Build) -> None:
    import tessera

    @tessera.jit
    def pair(a, b, c, d):
        return a + c, tl.maximum(b, d)

    built = build("tl.reduce((x, x), 0, F)", "x = tl.arange(0, 8)", F=pair)
    assert built.type == "int32, int32"
    built = build("tl.associative_scan((x, x), 0, F, reverse=True)", "x = tl.arange(0, 8)", F=pair)
    assert built.type == "int32[8], int32[8]"


def test_loop_hints(build: Build) -> None:
    loop = "for k in tl.range(0, n, 2, num_stages=3, loop_unroll_factor=4, flatten=True):"
    ir = build("x", "x = 0", f"{loop}\n    x += k").ir
    for text in ("tile.num_stages = 3", "tile.loop_unroll_factor = 4", "tile.flatten"):
        assert text in ir
    ir = build(
        "x",
        "x = 0",
        "for k in tl.range(0, n, warp_specialize=True, disallow_acc_multi_buffer=True, "
        "disable_licm=True):\n    x += k",
    ).ir
    assert "scf.for" in ir


def test_while_condition_wrapper(build: Build) -> None:
    ir = build("n", "while tl.condition(n > 0, disable_licm=True):\n    n -= 1").ir
    assert "scf.while" in ir


def test_constant_loops_are_unrolled(build: Build) -> None:
    built = build("x", "x = n", "for k in tl.static_range(0, 6, 2):\n    x += k * 100")
    assert "scf" not in built.ir and built.ir.count("arith.addi") == 3
    built = build("x", "k: tl.constexpr = 8", "x = n",
                  "while k > 1:\n    k: tl.constexpr = k // 2\n    x += k")  # fmt: skip
    assert "scf" not in built.ir and built.ir.count("arith.addi") == 3


def test_a_loop_that_is_never_left_stays_a_for(build: Build) -> None:
    body = "    if LEAVES and k > 3:\n        break\n    x += k"
    ir = build("x", "x = n", f"for k in range(n):\n{body}", LEAVES=False).ir
    assert "scf.for" in ir and "scf.while" not in ir
    ir = build("x", "x = n", f"for k in range(n):\n{body}", LEAVES=True).ir
    assert "scf.while" in ir and "scf.for" not in ir


def test_early_return_is_one_if(build: Build) -> None:
    ir = build("n", "if n > 3:\n    return", "tl.store(ip, n)", "if n < 0:\n    return").ir
    assert ir.count("scf.if") == 2 and "scf.yield" not in ir


def test_dead_names_are_not_merged(build: Build) -> None:
    # x has two types in the two branches; that matters to nobody.
    ir = build("y", "if n > 3:\n    x = f\n    y = 1\nelse:\n    x = n\n    y = 2").ir
    assert ir.count("scf.yield") == 2


@pytest.mark.parametrize(
    "expression, words",
    [("n // 0", "all ones"), ("n % 0", "x itself"), ("n << 40", "shifts by 32"), ("n >> -1", "0")],
)
def test_warning(build: Build, expression: str, words: str) -> None:
    from tessera.frontend import CompilationWarning

    with pytest.warns(CompilationWarning, match=words) as caught:
        build("x", "y = n", f"x = {expression}")
    assert caught[0].lineno == 7 and caught[0].filename.startswith("<expression")


def test_condition_of_one_element(build: Build) -> None:
    ir = build("y", "y = n", "if (tl.arange(0, 1) + n) > 3:\n    y = 1").ir
    assert "scf.if" in ir


def test_constants_stay_constants(build: Build) -> None:
    for expression, value in {
        "tl.cdiv(B, 3)": 22, "B // 3 * 2 - 1": 41, "-7 // 2": -4, "2 ** 5": 32, "min(B, 7)": 7,
        "max((3, 9, 4))": 9, "len((1, 2))": 2, "B if B > 8 else 0": 64, "B == 64 and True": True,
        "(1, 2)[1]": 2, "[x * 2 for x in (1, 2, 3) if x != 2]": (2, 6), "float('inf')": float("inf"),
        "int(3.9)": 3, "isinstance(B, tl.constexpr)": True, "isinstance(n, tl.tensor)": True,
        "isinstance(B, int)": True, "hasattr(n, 'shape')": True, "hasattr(n, 'nothing')": False,
        "getattr(tl, 'float32')": tl.float32, "n.dtype": tl.int32, "n.dtype.is_int()": True,
        "tl.arange(0, 8).shape": (8,), "tl.arange(0, 8).shape[0]": 8, "B.value": 64,
        "f'{B}-{n.dtype}'": "64-int32", "None is None": True, "n is None": False,
        "3 in (1, 2, 3)": True, "(1, 2) + (3,)": (1, 2, 3), "(0,) * 3": (0, 0, 0),
        "'ab'.upper()": "AB", "not B": False, "tl.float16.primitive_bitwidth": 16,
        "tl.constexpr(5)": 5, "1 < 2 < 3": True, "list(range(0, 3))": (0, 1, 2),
    }.items():  # fmt: skip
        assert build(expression, B=64).value == value, expression


def test_assigned_numbers_are_tensors_that_are_known(build: Build) -> None:
    built = build("x", "x = 3")
    assert built.type == "int32 (= 3)"
    # They promote as tensors: an i32 widens an int8.
    assert build("s + x", "x = 3").type == "int32"
    assert build("s + x", "x: tl.constexpr = 3").type == "int8"
    # And may still be extents.
    assert build("tl.arange(0, x * 2)", "x = 8").type == "int32[16]"
    assert "arith.constant" not in build("x", "x = 3").ir


def test_condition_on_a_known_number_takes_one_branch(build: Build) -> None:
    built = build("y", "x = 3", "if x > 2:\n    y = n\nelse:\n    y = p")
    assert built.type == "int32" and "scf.if" not in built.ir
