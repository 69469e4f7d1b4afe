# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/dev/check_conventions.py finds about index maps, in files made for it."""

from __future__ import annotations


import pytest

from tools.loading import TOOLS, load

MARKED = "// Not an index map: a cost.\n"


@pytest.fixture(scope="module")
def checker():
    return load(TOOLS / "check_conventions.py")


@pytest.mark.parametrize(
    "name, text, count",
    [
        ("lib/Analysis/A.cpp", "if (isa<tile::TransOp>(op))\n", 1),
        ("lib/Analysis/A.cpp", "if (auto split = dyn_cast<SplitOp>(op))\n", 1),
        ("lib/Analysis/A.cpp", ".Case<tile::BroadcastOp>(f)\n.Case<tile::CatOp>(g)\n", 2),
        ("lib/Analysis/A.cpp", MARKED + "if (isa<tile::TransOp>(op))\n", 0),
        ("lib/Analysis/A.cpp", MARKED + "\n" * 9 + "if (isa<tile::TransOp>(op))\n", 1),
        ("lib/Analysis/A.cpp", "// TransOp permutes.\n", 0),
        ("lib/Analysis/A.cpp", "tile::ReshapeOp::create(b, loc, type, value);\n", 0),
        ("lib/Analysis/A.cpp", "rewriter.replaceOpWithNewOp<JoinOp>(op, left, right);\n", 0),
        ("lib/Analysis/A.cpp", "vector::BroadcastOp lanes;\n", 0),
        ("lib/Interpreter/A.cpp", "if (isa<tile::TransOp>(op))\n", 0),
        ("docs/a.md", "TransOp\n", 0),
    ],
)
def test_index_maps(checker, tmp_path, name, text, count) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert len(checker.check_index_maps(tmp_path, [path])) == count
