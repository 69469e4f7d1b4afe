# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""device_print: a line for each element of each argument, with its place."""

import numpy as np
import pytest

import tessera
import tessera.language as tl


def lines_of(capfd):
    # Programs, and on a GPU elements, may be printed in any order.
    return sorted(capfd.readouterr().out.splitlines())


@tessera.jit
def show(x_ptr):
    pid = tl.program_id(0)
    tl.device_print("x", tl.load(x_ptr + pid * 2 + tl.arange(0, 2)))
    tl.device_print("both:", pid, pid + 10)
    tl.device_print("hex ", pid + 254, hex=True)
    if pid == 1:
        tl.device_print("only text")
        print("", pid)


def test_lines_of_a_print(run, capfd):
    run(show, (2,), np.array([0.5, -2, 3, 1e-7], np.float32))
    assert lines_of(capfd) == [
        "pid (0, 0, 0) idx () both: (operand 0) 0",
        "pid (0, 0, 0) idx () both: (operand 1) 10",
        "pid (0, 0, 0) idx () hex: 0x000000fe",
        "pid (0, 0, 0) idx (0) x: 0.500000",
        "pid (0, 0, 0) idx (1) x: -2.000000",
        "pid (1, 0, 0) idx () both: (operand 0) 1",
        "pid (1, 0, 0) idx () both: (operand 1) 11",
        "pid (1, 0, 0) idx () hex: 0x000000ff",
        "pid (1, 0, 0) idx (): 1",
        "pid (1, 0, 0) idx (0) x: 3.000000",
        "pid (1, 0, 0) idx (1) x: 0.000000",
        "pid (1, 0, 0) only text",
    ]


@tessera.jit
def show_shapes(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 2))
    tl.device_print("row and tile", x, x[:, None] + tl.zeros((1, 2), tl.float32), 7)


def test_each_argument_has_its_own_indices(run, capfd):
    run(show_shapes, (1,), np.array([0.5, -2], np.float32))
    assert lines_of(capfd) == [
        "pid (0, 0, 0) idx () row and tile: (operand 2) 7",
        "pid (0, 0, 0) idx (0) row and tile: (operand 0) 0.500000",
        "pid (0, 0, 0) idx (0, 0) row and tile: (operand 1) 0.500000",
        "pid (0, 0, 0) idx (0, 1) row and tile: (operand 1) 0.500000",
        "pid (0, 0, 0) idx (1) row and tile: (operand 0) -2.000000",
        "pid (0, 0, 0) idx (1, 0) row and tile: (operand 1) -2.000000",
        "pid (0, 0, 0) idx (1, 1) row and tile: (operand 1) -2.000000",
    ]


@tessera.jit
def show_wide():
    tl.device_print("i ", tl.arange(0, 16)[:, None] * 1 + tl.arange(0, 1)[None, :])


def test_indices_are_as_wide_as_the_largest(run, capfd):
    run(show_wide, (1,))
    assert lines_of(capfd) == [f"pid (0, 0, 0) idx ({i:2}, 0) i: {i}" for i in range(16)]


@tessera.jit
def show_types(x_ptr, big_ptr):
    x = tl.load(x_ptr + tl.arange(0, 2))
    tl.device_print("i8", x)
    tl.device_print("u8", x.to(tl.uint8, bitcast=True))
    tl.device_print("h8", x, hex=True)
    tl.device_print("bit", x == 5)
    tl.device_print("half", x.to(tl.float16) / 2)
    tl.device_print("float", x.to(tl.float32) + 0.5, hex=True)
    tl.device_print("e5", x.to(tl.float8e5))
    tl.device_print("wide", x.to(tl.int64) * (1 << 40), hex=True)
    tl.device_print("100%d", tl.load(big_ptr))
    tl.device_print("address ", tl.cast(tl.full((), 4660, tl.int64), tl.pointer_type(tl.int32)))


def test_values_of_every_type(run, capfd):
    run(show_types, (1,), np.array([-2, 5], np.int8), np.array([-1.7e308]))
    values = {
        "i8": ("-2", "5"),
        "u8": ("254", "5"),
        "h8": ("0xfe", "0x05"),
        "bit": ("0", "1"),
        "half": ("-1.000000", "2.500000"),
        "float": ("-0x1.8p+0", "0x1.6p+2"),
        "e5": ("-2.000000", "5.000000"),
        "wide": ("0xfffffe0000000000", "0x0000050000000000"),
    }
    lines = [
        f"pid (0, 0, 0) idx ({i}) {name}: {value}"
        for name, pair in values.items()
        for i, value in enumerate(pair)
    ]
    lines += [
        "pid (0, 0, 0) idx () 100%d: " + f"{-1.7e308:.6f}",
        "pid (0, 0, 0) idx () address: 0x1234",
    ]
    assert lines_of(capfd) == sorted(lines)


@tessera.jit
def show_tiles(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    tl.device_print("tile", tile)
    rows, columns = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
        b = tl.load(b_ptr + columns[None, :] * K + ks[:, None])
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


@pytest.mark.parametrize("tile", [(16, 16, 32, 4), (128, 256, 64, 8)], ids=str)
def test_a_program_says_which_one_it_is(run, capfd, tile):
    """Without the print a GPU would give programs other places, and a block several."""
    BM, BN, BK, warps = tile
    a, b = np.ones((4 * BM, 64), np.float16), np.ones((3 * BN, 64), np.float16)
    c = np.zeros((4 * BM, 3 * BN), np.float16)
    run(show_tiles, (12,), a, b, c, 3 * BN, 64, BM=BM, BN=BN, BK=BK, num_warps=warps)
    assert lines_of(capfd) == sorted(f"pid ({i}, 0, 0) idx () tile: {i}" for i in range(12))
    np.testing.assert_array_equal(c, 64)
