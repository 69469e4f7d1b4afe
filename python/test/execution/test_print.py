# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""device_print: a line for each element, with its place."""

import numpy as np

import tessera
import tessera.language as tl


@tessera.jit
def show(x_ptr):
    pid = tl.program_id(0)
    tl.device_print("x", tl.load(x_ptr + pid * 2 + tl.arange(0, 2)))
    tl.device_print("both:", pid, pid + 10)
    tl.device_print("hex ", pid + 254, hex=True)
    if pid == 1:
        tl.device_print("only text")


def test_lines_of_a_print(run, capfd):
    run(show, (2,), np.array([0.5, -2, 3, 1.5], np.float32))
    # Programs may print in any order.
    lines = sorted(capfd.readouterr().out.splitlines())
    want = [
        "pid (0, 0, 0) both: 0, 10",
        "pid (0, 0, 0) hex: 0x000000fe",
        "pid (0, 0, 0) idx (0) x: 0.5",
        "pid (0, 0, 0) idx (1) x: -2",
        "pid (1, 0, 0) both: 1, 11",
        "pid (1, 0, 0) hex: 0x000000ff",
        "pid (1, 0, 0) idx (0) x: 3",
        "pid (1, 0, 0) idx (1) x: 1.5",
        "pid (1, 0, 0) only text",
    ]
    assert lines == want


@tessera.jit
def show_shapes(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 2))
    tl.device_print("row and tile", x, x[:, None] + tl.zeros((1, 2), tl.float32), 7)


def test_tiles_of_several_shapes_are_broadcast(run, capfd):
    run(show_shapes, (1,), np.array([0.5, -2], np.float32))
    lines = sorted(capfd.readouterr().out.splitlines())
    want = [
        "pid (0, 0, 0) idx (0, 0) row and tile: 0.5, 0.5, 7",
        "pid (0, 0, 0) idx (0, 1) row and tile: -2, 0.5, 7",
        "pid (0, 0, 0) idx (1, 0) row and tile: 0.5, -2, 7",
        "pid (0, 0, 0) idx (1, 1) row and tile: -2, -2, 7",
    ]
    assert lines == want
