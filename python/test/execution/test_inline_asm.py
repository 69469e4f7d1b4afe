# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""inline_asm_elementwise on GPUs: values, several results, elements packed into registers.

What the simulator knows of PTX is enough for these; the other targets refuse it.
"""

from __future__ import annotations

import numpy as np
import pytest
from execution.running import Runner, draw, host_has, make_kernel

from tessera.errors import TesseraError


@pytest.fixture(params=["simulator", "cuda"])
def run(request: pytest.FixtureRequest) -> Runner:
    if not host_has(request.param):
        pytest.skip("there is no GPU")
    return Runner(request.param)


def kernel_of(body: str) -> object:
    """Over 256 elements of x_ptr and y_ptr; `body` stores to out_ptr and more_ptr."""
    return make_kernel(f"""
@tessera.jit
def kernel(x_ptr, y_ptr, out_ptr, more_ptr):
    i = tl.arange(0, 256)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
{body}
""")


@pytest.mark.parametrize("warps", [1, 4])
def test_one_element_a_register(run, rng, warps):
    kernel = kernel_of("""
    z = tl.inline_asm_elementwise("lop3.b32 $0, $1, $2, $3, 0xE8;", "=r,r,r,r", [x, y, x ^ y],
                                  tl.int32, is_pure=True, pack=1)
    tl.store(out_ptr + i, z)
    f = tl.inline_asm_elementwise("fma.rn.f32 $0, $1, $2, $1;", "=f,f,f",
                                  [x.to(tl.float32), y.to(tl.float32)], tl.float32, True, 1)
    tl.store(more_ptr + i, f)
""")
    x, y = draw(rng, 256, "int32"), draw(rng, 256, "int32")
    x[:128] %= 1000
    y[:128] %= 1000
    out, more = np.full(256, 99, np.int32), np.full(256, 99, np.float32)
    run(kernel, (1,), x, y, out, more, num_warps=warps)
    # The majority of three bits.
    np.testing.assert_array_equal(out, (x & y) | ((x ^ y) & (x | y)))
    wide = x[:128].astype(np.float64)
    np.testing.assert_array_equal(more[:128], wide * y[:128] + wide)


@pytest.mark.parametrize("pack, dtype", [(4, "int8"), (2, "int16"), (4, "uint8")])
def test_elements_that_share_a_register(run, rng, pack, dtype):
    """Bytes turned around within each word: the first element of `pack` is lowest."""
    order = {4: "0x0123", 2: "0x1032"}[pack]
    kernel = kernel_of(f"""
    z = tl.inline_asm_elementwise("prmt.b32 $0, $1, $2, {order};", "=r,r,r", [x, y], tl.{dtype},
                                  is_pure=True, pack={pack})
    tl.store(out_ptr + i, z)
""")
    x, y = draw(rng, 256, dtype), draw(rng, 256, dtype)
    out = np.full(256, 99, dtype)
    run(kernel, (1,), x, y, out, out)
    np.testing.assert_array_equal(out, x.reshape(-1, pack)[:, ::-1].reshape(-1))


def test_several_results_of_several_statements(run, rng):
    kernel = kernel_of('''
    low, high = tl.inline_asm_elementwise("""{
        .reg .b32 sum;
        add.u32 sum, $2, $3;
        min.s32 $0, sum, $2;
        max.s32 $1, sum, $2;
    }""", "=&r,=&r,r,r", [x, y], (tl.int32, tl.int32), is_pure=True, pack=1)
    tl.store(out_ptr + i, low)
    tl.store(more_ptr + i, high)
''')
    x, y = draw(rng, 256, "int32"), draw(rng, 256, "int32")
    out, more = np.full(256, 99, np.int32), np.full(256, 99, np.int32)
    run(kernel, (1,), x, y, out, more)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, np.minimum(x + y, x))
        np.testing.assert_array_equal(more, np.maximum(x + y, x))


def test_shapes_are_broadcast_and_scalars_are_filled_up(run, rng):
    kernel = kernel_of("""
    z = tl.inline_asm_elementwise("sub.s32 $0, $1, $2;", "=r,r,r", [x[:, None], tl.load(y_ptr)],
                                  tl.int32, is_pure=True, pack=1)
    tl.store(out_ptr + i[:, None], z)
""")
    x, y = draw(rng, 256, "int32"), draw(rng, 256, "int32")
    out = np.full(256, 99, np.int32)
    run(kernel, (1,), x, y, out, out)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, x - y[0])


@pytest.mark.parametrize("warps", [1, 4])
def test_functions_of_reductions_and_scans(run, rng, warps):
    kernel = make_kernel("""
@tessera.jit
def odd(a, b):
    return tl.inline_asm_elementwise("lop3.b32 $0, $1, $2, $1, 0x3C;", "=r,r,r", [a, b], tl.int32,
                                     is_pure=True, pack=1)

@tessera.jit
def larger(a, i, b, j):
    x = tl.inline_asm_elementwise("max.s32 $0, $1, $2;", "=r,r,r", [a, b], tl.int32, True, 1)
    return x, tl.where(a >= b, i, j)

@tessera.jit
def kernel(x_ptr, out_ptr, more_ptr):
    i = tl.arange(0, 256)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.associative_scan(x, 0, odd))
    value, at = tl.reduce((x.reshape(8, 32), i.reshape(8, 32)), 1, larger)
    tl.store(more_ptr + tl.arange(0, 8), value)
    tl.store(more_ptr + 8 + tl.arange(0, 8), at)
    tl.store(more_ptr + 16, tl.reduce(x, 0, odd))
""")
    x = draw(rng, 256, "int32")
    out, more = np.full(256, 99, np.int32), np.full(32, 99, np.int32)
    run(kernel, (1,), x, out, more, num_warps=warps)
    np.testing.assert_array_equal(out, np.bitwise_xor.accumulate(x))
    rows = x.reshape(8, 32)
    np.testing.assert_array_equal(more[:8], rows.max(1))
    np.testing.assert_array_equal(more[8:16], rows.argmax(1) + 32 * np.arange(8))
    assert more[16] == np.bitwise_xor.reduce(x)


def test_a_cpu_runs_no_assembly():
    kernel = make_kernel("""
@tessera.jit
def add(a, b):
    return tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [a, b], tl.float32, True, 1)

@tessera.jit
def kernel(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(x_ptr, tl.reduce(x, 0, add))
""")
    with pytest.raises(TesseraError, match="`inline_asm_elementwise` is assembly of a GPU") as e:
        kernel[(1,)](np.zeros(16, np.float32))
    assert e.value.id == "E030" and e.value.frames[-1].function == "add"


def test_what_the_simulator_does_not_know_it_refuses(rng):
    kernel = kernel_of("""
    z = tl.inline_asm_elementwise("bfind.u32 $0, $1;", "=r,r", [x], tl.int32, True, 1)
    tl.store(out_ptr + i, z)
""")
    x = draw(rng, 256, "int32")
    with pytest.raises(TesseraError, match="E068.*bfind") as caught:
        Runner("simulator")(kernel, (1,), x, x, np.zeros(256, np.int32), x)
    # A CPU knows it no better.
    assert "CPU" not in str(caught.value)
