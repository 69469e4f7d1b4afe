# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tutorial's kernels are right on a GPU, a simulated one at least, and its notebooks are its pages.

That the code of the pages runs, and prints what they show, is tested by test_snippets.py.
"""

from __future__ import annotations

import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tessera.gpu
from docs.pages import ROOT, is_like_apart_from_numbers, read
from docs.run_page import Page
from execution import on_gpu

sys.path.insert(0, str(ROOT / "tools/dev"))

import notebooks  # noqa: E402

PAGES = notebooks.pages()
MAX_PICTURE_BYTES = 60_000


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A kernel of a page by its name: the code of the page is run up to it."""
    states: dict[str, Page] = {}

    def named(page: str, name: str):
        if page not in states:
            states[page] = Page(f"docs/Tutorial/{page}.md", tmp_path_factory.mktemp(page))
            for fence in read(states[page].page):
                if name in states[page].names:
                    break
                if fence.label == "python" and not fence.output:
                    states[page].run(fence)
        return states[page].names[name]

    return named


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32).astype(dtype)


def launched(kernel, grid, *arguments, target, **parameters):
    """Launches on a simulated GPU, or on a real one."""
    if target == "cuda":
        on_gpu.launch(kernel, grid, arguments, parameters)
    else:
        tessera.gpu.simulate(kernel)[grid](*arguments, target=target, **parameters).check()


def softmax(x):
    x = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


NEEDS_GPU = pytest.mark.skipif(not on_gpu.has_gpu(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", pytest.param("cuda", marks=NEEDS_GPU)])
class TestOnAGPU:
    def test_vector_add(self, kernel, target):
        x, out = numbers(300), np.full(300, np.nan, np.float32)
        add = kernel("01-VectorAdd", "add_kernel")
        launched(add, (3,), x, x, out, 300, BLOCK=128, target=target)
        np.testing.assert_array_equal(out, x + x)

    @pytest.mark.parametrize("name, block", [("softmax_kernel", 256), ("long_softmax_kernel", 64)])
    def test_softmax(self, kernel, target, name, block):
        x = numbers(3, 200)
        out = np.full_like(x, np.nan)
        found = kernel("02-Softmax", "long_softmax_kernel") and kernel("02-Softmax", name)
        launched(found, (3,), x, out, 200, 200, BLOCK=block, target=target)
        np.testing.assert_allclose(out, softmax(x), atol=1e-6)

    def test_matmul(self, kernel, target):
        a, b = numbers(70, 72, dtype=np.float16), numbers(72, 40, dtype=np.float16)
        c = np.full((70, 40), np.nan, np.float32)
        launched(
            kernel("03-Matmul", "matmul_kernel"), (2, 1), a, b, c, 70, 40, 72, 72, 40, 40,
            BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, RELU=True, target=target,
        )  # fmt: skip
        expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
        np.testing.assert_allclose(c, expected, atol=1e-4)

    def test_layer_norm_backward(self, kernel, target):
        x, grad = numbers(2, 20, 100)
        weight, mean, scale = numbers(100), x.mean(1), 1 / x.std(1)
        of_x, of_weight, of_bias = np.full_like(x, np.nan), *np.full((2, 100), np.nan, np.float32)
        weights = kernel("04-LayerNorm", "weights_kernel")
        launched(
            weights, (2,), x, grad, mean, scale, of_weight, of_bias, 20, 100, ROWS=16, COLUMNS=64,
            target=target,
        )  # fmt: skip
        launched(
            kernel("04-LayerNorm", "backward_kernel"), (20,), x, weight, grad, mean, scale, of_x, 100,
            BLOCK=128, target=target,
        )  # fmt: skip
        normal, g = (x - mean[:, None]) * scale[:, None], grad * weight
        centred = g - g.mean(1, keepdims=True) - normal * (g * normal).mean(1, keepdims=True)
        np.testing.assert_allclose(of_x, scale[:, None] * centred, atol=1e-5)
        np.testing.assert_allclose(of_weight, (grad * normal).sum(0), atol=1e-5)
        np.testing.assert_allclose(of_bias, grad.sum(0), atol=1e-5)

    def test_attention(self, kernel, target):
        q, k, v = numbers(3, 2, 100, 64, dtype=np.float16)
        for causal in (False, True):
            out = np.full(q.shape, np.nan, np.float32)
            launched(
                kernel("05-Attention", "attention_kernel").fn, (2, 2), q, k, v, out, 100, 0.125,
                HEAD=64, CAUSAL=causal, BLOCK_M=64, BLOCK_N=64, target=target,
            )  # fmt: skip
            scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.125
            hidden = np.triu(np.full(scores.shape[1:], -np.inf), 1) if causal else 0
            np.testing.assert_allclose(out, softmax(scores + hidden) @ v, atol=2e-3)


@pytest.mark.parametrize("page", PAGES)
class TestNotebook:
    def test_code_is_that_of_the_page(self, page):
        cells = json.loads((ROOT / page).with_suffix(".ipynb").read_text())["cells"]
        python = [
            "".join(cell["source"])
            for cell in cells
            if cell["cell_type"] == "code" and not "".join(cell["source"]).startswith("%%")
        ]
        fences = [f for f in read(page) if f.label == "python" and not f.output and not f.file]
        assert [code + "\n" for code in python] == [fence.text for fence in fences]
        for code in python:
            ast.parse(code)

    def test_printed_text_is_an_output(self, page):
        cells = json.loads((ROOT / page).with_suffix(".ipynb").read_text())["cells"]
        printed = [
            "".join(output["text"])
            for cell in cells
            for output in cell.get("outputs", ())
            if output["output_type"] == "stream"
        ]
        fences = [fence for fence in read(page) if fence.output]
        assert all(fence.text.strip() for fence in fences)
        assert "".join(printed) == "".join(fence.text for fence in fences)

    def test_pictures_are_there_and_small(self, page):
        text = (ROOT / page).read_text()
        pictures = [match[2] for match in notebooks.PICTURE.finditer(text)]
        drawn = sum("plt.show()" in fence.text for fence in read(page) if not fence.output)
        assert len(pictures) == drawn
        for picture in pictures:
            assert (notebooks.TUTORIAL / picture).stat().st_size <= MAX_PICTURE_BYTES


RUNNER = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        result = shell.run_cell("".join(cell["source"]))
        assert result.success, cell["source"]
"""


def test_a_notebook_runs(tmp_path):
    """This one has cells that write files, and cells of a shell."""
    pytest.importorskip("IPython")
    environment = {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    notebook = notebooks.TUTORIAL / "11-FromC.ipynb"
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, notebook],
        cwd=tmp_path,
        env={**environment, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": f"{ROOT}/python:{tmp_path}"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = [fence.text for fence in read("docs/Tutorial/11-FromC.md") if fence.output]
    assert printed[0] in ran.stdout and printed[-2] in ran.stdout


def test_every_page_is_listed():
    index = (notebooks.TUTORIAL / "README.md").read_text()
    for page in PAGES:
        name = os.path.basename(page)
        assert f"]({name})" in index and f"]({pathlib.Path(name).stem}.ipynb)" in index


def test_no_picture_is_left_over():
    used = "".join((ROOT / page).read_text() for page in PAGES)
    kept = {path.name for path in (notebooks.TUTORIAL / "images").iterdir()}
    assert kept == set(re.findall(r"images/([\w-]+\.svg)", used))


def test_cells_of_a_page():
    text = """# T

Some text.

```python
print(1)
```

<!-- run: output -->
```text
1
```

![x](images/x.svg)

Save this as `k.py`:

```python
import tessera
```

```bash
source tools/activate    # in a checkout only
python k.py
```

```text
a table
```
"""
    cells = notebooks.cells_of("docs/Tutorial/T.md", text)
    assert [(cell.is_code, cell.text.splitlines()[0]) for cell in cells] == [
        (False, "# T"), (True, "print(1)"), (False, "Save this as `k.py`:"), (True, "%%writefile k.py"),
        (True, "%%bash"), (False, "```text"),
    ]  # fmt: skip
    assert cells[1].printed == "1\n" and cells[1].pictures == ["images/x.svg"]
    assert cells[4].text == "%%bash\npython k.py"


def test_numbers_of_a_machine_may_be_others():
    assert is_like_apart_from_numbers("a 1.5 GB/s, -2e-09", "a 1,200.25 GB/s, 7")
    assert not is_like_apart_from_numbers("a 1.5 GB/s", "a 1.5 ms")
