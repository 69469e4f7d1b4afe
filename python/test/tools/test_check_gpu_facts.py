# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/dev/check_gpu_facts.py: numbers of a GPU and names of instructions, in files made for it."""

from __future__ import annotations

import pathlib
import types

import pytest

from tools.loading import TOOLS, load

PASS = "lib/Dialect/TileGPU/Transforms/Schedule/A.cpp"
REASON = "// Not of a GPU: a limit of the search.\n"
PYTHON = "python/tessera/tuning/automatic.py"


@pytest.fixture(scope="module")
def checker() -> types.ModuleType:
    return load(TOOLS / "check_gpu_facts.py")


@pytest.mark.parametrize(
    "name, text, count",
    [
        (PASS, "constexpr int64_t kRows = 64, kColumns = 64;\n", 2),
        (PASS, "static constexpr int64_t kExchangeBytes = 8 << 10;\n", 1),
        (PASS, "static constexpr int64_t kNarrowestCopy = 4;\n", 1),
        (PASS, "constexpr unsigned kMinSlotsOfLate = 3;\n", 1),
        (PASS, "unsigned along = std::min(groups, dot.m / 64);\n", 1),
        (PASS, "explicit A(int64_t programs) : forCopies(programs > 1 ? 24 : 40) {}\n", 2),
        (PASS, "unsigned warps = getNumWarps(loop).value_or(8);\n", 1),
        (PASS, REASON + "constexpr unsigned kMaxTiles = 64;\n", 0),
        (PASS, REASON + "\n\n\n\nconstexpr unsigned kMaxTiles = 64;\n", 1),
        (PASS, "// A warp has 32 lanes.\n", 0),
        (PASS, 'return refuse("it has less than 64 rows");\n', 0),
        (PASS, "llvm::SmallDenseSet<Operation *, 16> seen;\n", 0),
        (PASS, "if (type.isInteger(32) || type.getWidth() > 64)\n", 0),
        (PASS, "if (getElementTypeOrSelf(f(a)).getIntOrFloatBitWidth() != 32)\n", 0),
        (PASS, "constexpr unsigned kMaxLoopDepth = 400;\n", 0),
        (PASS, "int rank; /* at most 32 */\n", 0),
        (PASS, "uint64_t(1) << 40;\n", 0),
        (PASS, "constexpr MMAShape shape = MMAShape::get(kind);\n", 0),
        (PASS, "constexpr unsigned kAccumulator = 2;\n", 0),
        (PASS, "if (isa<MmaDotOp, WarpgroupDotOp>(op))\n", 2),
        (PASS, 'return refuse("a dot is not for wgmma", dot);\n', 1),
        (PASS, "std::optional mma = machine.findMMA(MMAKind::Warp, element);\n", 1),
        (PASS, "// wgmma reads it.\n", 0),
        (PASS, "if (isa<AsyncDotOp>(op))\n", 0),
        ("lib/Dialect/TileGPU/Transforms/Instructions/A.cpp", "MmaDotOp::create(builder);\n", 0),
        ("lib/Compiler/A.cpp", "constexpr int kMaxWarps = 8;\n", 1),
        ("lib/Layout/A.cpp", 'constexpr auto name = "wgmma-operand-a";\n', 1),
        ("lib/Layout/A.cpp", '// Public name: of a tool.\nauto name = "wgmma";\n', 0),
        ("lib/Layout/Fragments.cpp", "LinearLayout wgmmaAccumulator(unsigned rows);\n", 0),
        ("lib/Layout/Fragments.cpp", "constexpr unsigned kRows = 64;\n", 1),
        ("lib/Support/A.cpp", "constexpr size_t kStackBytes = 1 << 20;\n", 0),
        (PYTHON, "threads = 32 * options.num_warps\n", 1),
        (PYTHON, "if not 1 <= registers <= 255:\n    pass\n", 1),
        (PYTHON, "MAX_WARPS = 32  # of a program\n", 1),
        (PYTHON, 'def f():\n    """32 * warps, by wgmma."""\n    return "a.b"  # mma.sync\n', 0),
        (PYTHON, "rows = 64 * columns\n", 0),
        ("python/tessera/machine/devices.py", "MAX_WARPS = 32\n", 0),
        ("include/tessera/Machine/A.h", "static constexpr int64_t kOfSlice = 128;\n", 0),
        ("lib/Conversion/TileGPUToLLVM/A.cpp", "constexpr int64_t kRows = 64;\n", 0),
    ],
)
def test_facts(
    checker: types.ModuleType, tmp_path: pathlib.Path, name: str, text: str, count: int
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert len(checker.check(tmp_path)) == count
