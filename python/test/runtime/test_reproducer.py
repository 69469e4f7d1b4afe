# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A failing pass, reached from Python, leaves what tessera-opt replays."""

import os
import pickle
import subprocess

import pytest

import tessera
from tessera import settings

# Well-formed IR that the front-end never makes and one pass refuses: a fault, injected.
FAULT = """
module {
  tile.func @k(%p: !tile.ptr<i32>, %a: i32) {
    %n = arith.constant 4 : index
    %x = memref.alloca(%n) : memref<?x64xf32>
    %y = memref.alloca() : memref<64x64xf32>
    strips.dot %x, %y, %x : memref<?x64xf32>, memref<64x64xf32>, memref<?x64xf32>
    tile.store %p, %a : !tile.ptr<i32>
    tile.return
  }
}
"""


@pytest.fixture
def stage_file(tmp_path):
    path = tmp_path / "k.tile-opt.mlir"
    path.write_text(FAULT)
    return path


def test_a_failing_pass_leaves_a_reproducer(stage_file, tmp_path):
    with settings.override(reproducer_dir=str(tmp_path / "reproducers")):
        with pytest.raises(tessera.InternalError) as caught:
            tessera.compile(stage_file)
    error = caught.value
    assert os.path.dirname(error.reproducer) == str(tmp_path / "reproducers")
    for part in ("please report it", error.reproducer, "dynamic shape", "k.tile-opt.mlir:7:5"):
        assert part in str(error)
    package = os.path.dirname(tessera.__file__)
    build = os.path.dirname(os.path.dirname(os.path.realpath(f"{package}/libtessera.so")))
    tool = os.path.join(build, "bin", "tessera-opt")
    if not os.path.exists(tool):
        pytest.skip("tessera-opt is not built")
    replay = subprocess.run(
        [tool, "--run-reproducer", error.reproducer], capture_output=True, text=True
    )
    assert replay.returncode != 0 and "dynamic shape" in replay.stderr


def test_without_the_setting_nothing_is_written(stage_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tessera.InternalError, match="TESSERA_REPRODUCER_DIR") as caught:
        tessera.compile(stage_file)
    assert caught.value.reproducer == ""
    assert os.listdir(tmp_path) == [stage_file.name]


def test_errors_travel_between_processes():
    for error in [
        tessera.InternalError("broken", "/tmp/x.mlir"),
        tessera.LaunchError("E052", "the grid is 5", "use (5,)"),
        tessera.ArgumentError("E054", "a list"),
        tessera.CompilationError("E012", "no `laod`", "use `load`", "k.py", 3, 4),
    ]:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
