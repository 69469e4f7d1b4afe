# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of tessera.torch share. They are skipped where there is no torch of a version that is
supported. (The folder is not called torch, which is on the path of all tests.)"""

from __future__ import annotations

import os
import tempfile

import pytest

_OF_INSTALLING = ("PYTHONPATH", "TESSERA_AS_TRITON")


@pytest.fixture(scope="session")
def inductor():
    """Tessera as Inductor's `triton` in this process, with caches of the tests' own."""
    import tessera
    import tessera.torch

    # Programs that other tests start shall find no `triton`.
    before = {name: os.environ.get(name) for name in _OF_INSTALLING}
    try:
        tessera.torch.activate()
    except tessera.TesseraError as error:
        if error.id == "E075":  # the order of tests is wrong (python/test/conftest.py)
            raise
        pytest.skip(str(error))
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    import torch
    import torch._inductor.config as config

    with tempfile.TemporaryDirectory(prefix="tessera-inductor-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        # What the tests of a process compile is compiled there; test_activation.py has workers.
        config.compile_threads = 1
        yield torch
        del os.environ["TORCHINDUCTOR_CACHE_DIR"]


@pytest.fixture
def fresh_compiler(inductor):
    """Each test compiles by itself."""
    inductor.manual_seed(0)
    inductor._dynamo.utils.counters.clear()
    yield
    inductor.compiler.reset()


@pytest.fixture
def one_configuration(fresh_compiler):
    """Inductor's kernels have one configuration each, where it would compile and measure several.
    For tests of graphs; those of models have them all."""
    from torch._inductor import config

    with config.patch({"triton.autotune_pointwise": False}):
        yield
