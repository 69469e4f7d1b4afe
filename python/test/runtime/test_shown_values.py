# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What values look like where they are printed, and what notebooks show of compiled kernels."""

from __future__ import annotations

import html
import os
import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.language as tl
from tessera.settings import Settings


@tessera.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


SIGNATURE = {"x_ptr": "*fp32", "n": "i32"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tl.float32, "tl.float32"),
        (tl.int1, "tl.int1"),
        (tl.float8e4nv, "tl.float8e4nv"),
        (tl.pointer_type(tl.float16), "tl.pointer_type(tl.float16)"),
        (tl.pointer_type(tl.int8, const=True), "tl.pointer_type(tl.int8, const=True)"),
        (tl.block_type(tl.int8, [4, 2]), "tl.block_type(tl.int8, [4, 2])"),
        (tl.constexpr(3), "constexpr[3]"),
        (tl.range(0, 8, 2), "tl.range(0, 8, 2)"),
        (tl.static_range(4), "tl.static_range(0, 4)"),
        (double, f"<jit function {__name__}.double(x_ptr, n, BLOCK)>"),
        (tl.sum, "<jit function tessera.language.standard.sum(input, axis, keep_dims, dtype)>"),
        (tessera.next_power_of_2, "<constexpr function tessera.next_power_of_2>"),
        (tessera.Config({"BLOCK": 64}, num_warps=8), "Config({'BLOCK': 64}, num_warps=8)"),
        (tessera.Config({}), "Config({})"),
        (tessera.MockTensor(tl.float32, (3,)), "MockTensor(tl.float32, (3,))"),
    ],
)
def test_repr(value: Any, text: str) -> None:
    assert repr(value) == text


def test_types_are_what_their_repr_says() -> None:
    for kind in (tl.float32, tl.int1, tl.pointer_type(tl.float16), tl.block_type(tl.int8, [4])):
        assert eval(repr(kind)) == kind
    config = tessera.Config({"BLOCK": 64}, num_warps=8, num_stages=1)
    assert eval(repr(config), {"Config": tessera.Config}) == config


def test_tensors_in_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    @tessera.jit
    def kernel(x_ptr, BLOCK: tl.constexpr):
        tl.static_print(x_ptr, tl.arange(0, BLOCK), tl.program_id(0) < 3)

    tessera.compile(kernel, signature={"x_ptr": "*fp16"}, constexprs={"BLOCK": 8})
    shown = capsys.readouterr().out.strip()
    assert shown == "a tensor of *fp16 a tensor of int32[8] a tensor of int1"


def test_settings_show_what_is_not_as_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_NUM_THREADS", "3")
    monkeypatch.setenv("TESSERA_CACHE", "off")
    assert "cache='off'" in repr(Settings()) and "num_threads=3" in repr(Settings())


def test_compiled_kernel_for_the_cpu() -> None:
    kernel = tessera.compile(double, SIGNATURE, constexprs={"BLOCK": 64}, cpu="x86-64-v3")
    assert repr(kernel) == "<compiled kernel double for x86-64-v3>"
    assert repr(kernel.asm) == "<stages tile, tile-opt, strips, llvm, llvmir, asm, object>"


def test_compiled_kernel_for_a_gpu() -> None:
    kernel = tessera.compile(double, SIGNATURE, constexprs={"BLOCK": 64}, target="sm_80")
    pattern = r"<compiled kernel double for sm_80(: \d+ registers, 0 bytes spilled)?, 0 bytes of shared memory>"
    assert re.fullmatch(pattern, repr(kernel))


class Balanced(HTMLParser):
    """Raises unless each element is closed, in order; keeps the tags, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        assert all(name == "style" for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


USED = {"b", "code", "details", "div", "li", "p", "pre", "summary", "table", "td", "th", "tr", "ul"}


def test_notebooks_show_stages_and_remarks() -> None:
    kernel = tessera.compile(double, SIGNATURE, constexprs={"BLOCK": 64}, cpu="x86-64-v3")
    shown = Balanced(kernel._repr_html_())
    assert shown.tags <= USED
    assert "x86-64-v3" in shown.text and f"Remarks ({len(kernel.remarks)})" in shown.text
    for name in ("tile", "tile-opt", "strips", "llvm", "llvmir", "asm"):
        assert kernel.stages[name].splitlines()[0] in shown.text
    assert f"object: {len(kernel.stages['object'])} bytes of machine code" in shown.text
    assert all(remark in shown.text for remark in kernel.remarks)


def test_notebooks_show_registers_of_gpus() -> None:
    kernel = tessera.compile(double, SIGNATURE, constexprs={"BLOCK": 64}, target="sm_80")
    shown = Balanced(kernel._repr_html_()).text
    assert "sm_80" in shown and "0 bytes" in shown and ".visible .entry double" in shown
    if kernel.metadata["assembler"] != "driver":
        assert f"{kernel.n_regs} a thread" in shown and "spilled0 bytes a thread" in shown


def test_registers_that_the_driver_alone_knows() -> None:
    with tessera.settings.override(ptxas="driver"):
        kernel = tessera.compile(double, SIGNATURE, constexprs={"BLOCK": 64}, target="sm_80")
        assert repr(kernel) == "<compiled kernel double for sm_80, 0 bytes of shared memory>"
        shown = Balanced(kernel._repr_html_()).text
    assert "as the driver assembles it" in shown and "cubin" not in shown


def test_notebooks_show_metadata() -> None:
    kernel = tessera.compile(double, SIGNATURE, constexprs={"BLOCK": 64}, cpu="x86-64-v3")
    shown = Balanced(kernel.metadata._repr_html_())
    assert shown.tags <= USED
    assert "Metadata of double" in shown.text and "cpux86-64-v3" in shown.text
    assert f"Remarks ({len(kernel.remarks)})" in shown.text


def test_notebooks_show_choices_of_tuners() -> None:
    configs = [tessera.Config({"BLOCK": block}) for block in (16, 64, 100)]
    tuned = tessera.autotune(configs, key=["n"], cache_results=False)(double)
    assert "Nothing is chosen yet" in Balanced(tuned._repr_html_()).text
    x = np.ones(64, np.float32)
    with tessera.settings.override(tune_progress="off"):
        tuned[lambda meta: (tessera.cdiv(64, meta["BLOCK"]),)](x, 64)
    shown = Balanced(tuned._repr_html_())
    assert shown.tags <= USED
    assert "Autotuned kernel double" in shown.text and "Failed (1)" in shown.text
    block = tuned.best_config.kwargs["BLOCK"]
    assert f"<b>BLOCK={block}</b>" in tuned._repr_html_()
    assert "BLOCK=16" in shown.text and "BLOCK=64" in shown.text
    assert "n" in shown.text and "types and device" in shown.text


NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
if sys.argv[1] == "ipykernel":
    named = lambda raw, code, number: f"/tmp/ipykernel_123/{abs(hash(code))}.py"
    shell.compile.get_code_name = named
shell.run_cell("import numpy as np, tessera, tessera.language as tl", store_history=True)
defined = shell.run_cell('''@tessera.jit
def helper(x):
    return x.unknown

@tessera.jit
def kernel(x):
    tl.store(x, helper(x))
''', store_history=True)
launched = shell.run_cell("kernel[(1,)](np.zeros(1, np.float32))", store_history=True)
print("ERROR", launched.error_in_exec)
print("FILE", launched.error_in_exec.file)
"""


@pytest.mark.parametrize("kind", ["IPython", "ipykernel"])
def test_places_in_cells(tmp_path: pathlib.Path, kind: str) -> None:
    """As IPython's own tracebacks have them."""
    pytest.importorskip("IPython")
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, kind],
        capture_output=True,
        text=True,
        env={**os.environ, "IPYTHONDIR": str(tmp_path)},
    )
    shown = done.stdout
    assert "ERROR cell In[2], line 3, column 12: error[E012]: " in shown, shown + done.stderr
    assert "cell In[2], line 7, column 17: note: `helper` called from `kernel`" in shown
    file = "FILE /tmp/ipykernel_123/" if kind == "ipykernel" else "FILE <ipython-input-2-"
    assert file in shown


def test_places_in_cells_without_a_notebook() -> None:
    """Of an error that came from another process, say."""
    error = tessera.CompilationError("E001", "no", file="<ipython-input-7-0123ab>", line=3)
    assert str(error).startswith("cell In[7], line 3: error[E001]")
    error.file, error.column = "/tmp/ipykernel_1/2.py", 4
    assert str(error).startswith("/tmp/ipykernel_1/2.py:3:4: error")


def test_what_is_shown_is_escaped() -> None:
    @tessera.jit(repr=lambda specialisation: "<script>alert(1)</script>")
    def kernel(x_ptr):
        tl.device_print("<b>&amp;</b>", tl.load(x_ptr))

    shown = tessera.compile(kernel, signature={"x_ptr": "*fp32"})._repr_html_()
    assert Balanced(shown).tags <= USED
    assert "<script" not in shown and html.escape("<b>&amp;</b>") in shown


def test_a_launched_kernel_is_shown_too() -> None:
    x = np.ones(100, np.float32)
    kernel = double[(2,)](x, 100, BLOCK=64)
    assert "strips" in repr(kernel.asm)  # and nothing is compiled for that
    assert kernel.asm._rebuild is not None
    shown = Balanced(kernel._repr_html_()).text
    assert "tile.load" in shown and kernel.asm._rebuild is None


def test_a_kernel_with_very_long_stages() -> None:
    @tessera.jit
    def kernel(x_ptr, N: tl.constexpr):
        for i in tl.static_range(N):
            tl.store(x_ptr + i, tl.load(x_ptr + 2 * i) * i)

    shown = tessera.compile(kernel, signature={"x_ptr": "*fp32"}, constexprs={"N": 400})
    text = Balanced(shown._repr_html_()).text
    assert "more lines: see .stages['tile']" in text and len(text) < 1_000_000
