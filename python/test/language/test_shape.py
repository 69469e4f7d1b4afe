# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changing the shape of tiles: each operation builds, with the type it should have and the IR it should make."""

from __future__ import annotations

import pytest

from language.building import Build, check

# expression, type of its value, text in the IR
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


@pytest.mark.parametrize("expression, type, text", SHAPE, ids=[row[0] for row in SHAPE])
def test_operation(build: Build, expression: str, type: str, text: str) -> None:
    check(build, expression, type, text)
