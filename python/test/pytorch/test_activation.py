# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a program comes to have its kernels compiled by Tessera, and what stands in the way."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tessera.errors import UnsupportedError
from tessera.torch.versions import is_tested

pytest.importorskip("torch")


def run(program: str, *arguments: str, **environment: str) -> str:
    """What a program of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        # Workers are processes that load torch, too: test_workers_compile_and_send_back has them.
        env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", **environment},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


FORKS = """
import json, os, sys
prelude, *programs = sys.argv[1:]
exec(prelude)
printed = []
for program in programs:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        try:
            exec(compile(program, "<program>", "exec"), globals())
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)
    os.close(writing)
    with open(reading) as pipe:
        text = pipe.read().strip()
    printed.append(text if os.waitpid(child, 0)[1] == 0 else f"failed: {text}")
print(json.dumps(printed))
"""
"""Loads what all of the programs load once, which takes longest, and runs each in a fork."""


def run_forks(prelude: str, programs: dict[str, str], **environment: str) -> dict[str, str]:
    """What each program prints that is begun by `prelude`."""
    texts = [textwrap.dedent(text) for text in (prelude, *programs.values())]
    return dict(zip(programs, json.loads(run(FORKS, *texts, **environment).splitlines()[-1])))


@pytest.mark.parametrize("version", ["2.11.0", "2.12.1+cu130", "2.13.0+cpu", "2.15.1a0"])
def test_versions_that_were_tested(version: str) -> None:
    assert is_tested(version)


@pytest.mark.parametrize("version", ["2.16.0", "2.16.0a0+git1234567", "3.0.0"])
def test_versions_that_are_newer(version: str) -> None:
    assert not is_tested(version)


@pytest.mark.parametrize("version", ["2.10.2", "1.13.1", "unknown"])
def test_versions_that_are_too_old(version: str) -> None:
    with pytest.raises(UnsupportedError, match="2.11 to 2.15") as raised:
        is_tested(version)
    assert raised.value.id == "E077" and "torch>=2.11,<2.16" in raised.value.fix


def test_importing_tessera_does_not_import_torch() -> None:
    assert run("import tessera, sys; print('torch' in sys.modules)") == "False"


WITH_TORCH = {
    "enable": """
        import tessera.torch
        def f(x): return x.exp().sum(-1)
        x = torch.randn(5, 30)
        assert not tessera.torch.is_enabled()
        tessera.torch.enable()
        assert tessera.torch.is_enabled()
        from torch._inductor.utils import run_and_get_code
        result, (code,) = run_and_get_code(torch.compile(f), x)
        torch.testing.assert_close(result, f(x))
        print(code.count("async_compile.triton("), code.count("cpp_pybinding("))
    """,
    "dynamo before": """
        from torch._dynamo.backends.registry import list_backends
        list_backends()
        import tessera.torch
        tessera.torch.activate()
        f = torch.compile(lambda x: torch.softmax(x, -1), backend="tessera")
        x = torch.randn(5, 30)
        torch.testing.assert_close(f(x), torch.softmax(x, -1))
        print("right")
    """,
    "newer": """
        import warnings
        import tessera.torch
        torch.__version__ = "2.99.0"
        f = torch.compile(lambda x: torch.softmax(x, -1), backend=tessera.torch.compile_graph)
        x = torch.randn(5, 30, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # In the middle of Dynamo's trace, and once more.
            torch.testing.assert_close(f(x), torch.softmax(x, -1))
            f(x).square().sum().backward()
            tessera.torch.activate()
        print([str(warning.message) for warning in caught if "tessera" in str(warning.message)])
    """,
    "newer, without a part": """
        import tessera.torch
        torch.__version__ = "2.99.0"
        del torch._TorchCompileInductorWrapper  # as where it was renamed
        for _ in range(2):
            try:
                tessera.torch.activate()
            except tessera.errors.UnsupportedError as error:
                print(error.id, error.message, type(error.__cause__).__name__, sep=" | ")
    """,
    "newer, wrong": """
        import tessera.torch, tessera.torch.trial as trial
        torch.__version__ = "2.99.0"
        layer, calls = trial._layer, []
        def another(x, weight, bias, gradient):
            calls.append(1)  # the compiled one is the first
            return tuple(y + (len(calls) > 1) for y in layer(x, weight, bias, gradient))
        trial._layer = another
        try:
            tessera.torch.enable()
        except tessera.errors.UnsupportedError as error:
            print(error.id, tessera.torch.is_enabled(), error.message)
    """,
    "workers": """
        import tessera.torch
        torch.__version__ = "2.14.0"
        os.environ["TORCH_CUSTOM_PYTHONPATH"] = "/with/another/triton"
        tessera.torch.activate()
        from torch._inductor.compile_worker import subproc_pool
        paths = subproc_pool.python_subprocess_env()["PYTHONPATH"].split(os.pathsep)
        print(paths == [tessera.compat.triton.FOLDER, "/with/another/triton"])
    """,
    "Inductor before": """
        import torch._inductor.runtime.triton_heuristics, tessera.torch
        try:
            tessera.torch.enable()
        except tessera.errors.SettingError as error:
            print(error.id, error.fix)
        f = torch.compile(lambda x: x + 1, backend=tessera.torch.compile_graph)
        try:
            f(torch.ones(3))
        except Exception as error:
            print("E075" in str(error))
    """,
}


@pytest.fixture(scope="module")
def with_torch() -> dict[str, str]:
    return run_forks("import torch, sympy, torch.fx.experimental.symbolic_shapes", WITH_TORCH)


def test_enable_is_for_programs_that_know_nothing_of_it(with_torch) -> None:
    assert with_torch["enable"] == "1 0"


def test_dynamo_may_be_loaded_before(with_torch) -> None:
    # As it is where `backend="tessera"` is found by the package's entry point.
    assert with_torch["dynamo before"] == "right"


def test_workers_look_for_ours_first(with_torch) -> None:
    assert with_torch["workers"] == "True"


def test_a_newer_version_is_tried_once(with_torch) -> None:
    (warning,) = ast.literal_eval(with_torch["newer"])
    assert "torch 2.99.0 is newer" in warning and "torch 2.11 to 2.15" in warning


def test_a_newer_version_that_does_not_fit_is_refused(with_torch) -> None:
    first, second = with_torch["newer, without a part"].splitlines()
    assert first == second and first.startswith("E077 | torch 2.99.0 does not fit")
    assert "AttributeError: " in first and "_TorchCompileInductorWrapper" in first


def test_a_newer_version_that_computes_something_else_is_refused(with_torch) -> None:
    assert with_torch["newer, wrong"].startswith("E077 False torch 2.99.0 does not fit")
    assert "AssertionError: Tensor-likes are not close" in with_torch["newer, wrong"]


OTHER_TRITON = {
    "triton": """
        from triton.runtime.autotuner import Config
        from triton import backends, compiler, knobs, language, runtime
        __version__ = "3.6.0"
    """,
    "triton.knobs": "",
    "triton.backends": "from triton.backends import compiler\nbackends = {}",
    "triton.backends.compiler": "class GPUTarget: ...",
    "triton.compiler": "from triton.compiler.compiler import ASTSource, CompiledKernel",
    "triton.compiler.compiler": "class ASTSource: ...\nclass CompiledKernel: ...",
    "triton.language": "from triton.language import core, extra, math\nclass dtype: ...",
    "triton.language.core": "def view(input, shape, _semantic=None): ...",
    "triton.language.math": "",
    "triton.language.standard": "def _log2(i): ...",
    "triton.language.extra": "from triton.language.extra import libdevice",
    "triton.language.extra.libdevice": "",
    "triton.runtime": "from triton.runtime import autotuner, cache, errors, jit",
    "triton.runtime.autotuner": """
        from triton.runtime.errors import OutOfResources, PTXASError
        class Config: ...
    """,
    "triton.runtime.cache": "def triton_key(): return 'other'",
    "triton.runtime.errors": "class OutOfResources(Exception): ...\nclass PTXASError(Exception): ...",
    "triton.runtime.jit": """
        class JITFunction:
            def __init__(self, fn): self.fn = fn
        class KernelInterface: ...
    """,
}
"""What torch looks at of a `triton` that is no Tessera."""


LOADED = """
    import torch, sys
    from torch._dynamo.backends.registry import list_backends
    list_backends()
    assert "other" in sys.modules["triton"].__file__
"""
USES = [
    "import triton.language as tl",
    "import user",
    "kernels = __import__('user').make_kernels(); del sys.modules['user']",
    "sys.modules['torch._inductor.runtime.triton_helpers'] = sys  # has defined functions",
]


@pytest.fixture(scope="module")
def with_other_triton(tmp_path_factory) -> dict[str, str]:
    """What programs print after LOADED, where there is another `triton`, as machines with torch for
    CUDA have one: that it gives way, or for each of USES that it does not."""
    path = tmp_path_factory.mktemp("other_triton")
    folders = {name.rpartition(".")[0] for name in OTHER_TRITON}
    user = """
        from triton.runtime.jit import JITFunction
        def make_kernels(): return [JITFunction(lambda x: x)]
    """
    for name, text in {**OTHER_TRITON, "user": user}.items():
        file = path / "other" / name.replace(".", "/")
        file = file / "__init__.py" if name in folders else file.with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text) + "\n")
    gives_way = """
        import tessera.torch
        tessera.torch.activate()
        f = torch.compile(lambda x: torch.softmax(x, -1), backend="tessera")
        x = torch.randn(5, 30)
        torch.testing.assert_close(f(x), torch.softmax(x, -1))
        import triton, torch.utils.flop_counter as counter
        print(triton.__tessera__, counter._JITFunction is triton.runtime.jit.JITFunction)
    """
    stays = """
        import tessera.torch
        try:
            tessera.torch.activate()
        except tessera.errors.SettingError as error:
            print(error.id, "other" in sys.modules["triton"].__file__)
    """
    programs = {"gives way": gives_way}
    programs.update((use, use + textwrap.dedent(stays)) for use in USES)
    paths = os.pathsep.join([str(path / "other"), os.environ.get("PYTHONPATH", "")])
    return run_forks(LOADED, programs, PYTHONPATH=paths)


def test_another_triton_that_torch_alone_has_loaded_gives_way(with_other_triton) -> None:
    """As with `torch.compile(model, backend="tessera")` and nothing before it."""
    assert with_other_triton["gives way"] == "True True"


@pytest.mark.parametrize("use", USES)
def test_another_triton_that_is_in_use_stays(with_other_triton, use) -> None:
    assert with_other_triton[use] == "E062 True"


def test_inductor_without_triton_is_too_early(with_torch) -> None:
    if run("import importlib.util; print(importlib.util.find_spec('triton'))") != "None":
        pytest.skip("there is a Triton")
    assert with_torch["Inductor before"].splitlines() == [
        "E075 call tessera.torch.activate() before the first torch.compile",
        "True",
    ]


@pytest.fixture(scope="module")
def with_workers(tmp_path_factory) -> list[str]:
    """What a program prints whose kernels are compiled by workers, and are kept when they arrive."""
    program = """
        import copy, pickle, torch, tessera.torch
        tessera.torch.activate()
        from torch._inductor.async_compile import AsyncCompile
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
        from tessera.compiler.sending import FunctionOutline
        precompile, kept = CachingAutotuner.precompile, []
        def keep(self, *arguments, **options):
            if isinstance(self.fn, FunctionOutline):
                taken_out = self.prepare_for_pickle()
                kept.append(pickle.dumps(copy.deepcopy(self)))
                self.restore_after_unpickle(taken_out)
            return precompile(self, *arguments, **options)
        def compile_and_compare(function):
            x = torch.randn(50, 300)
            found = torch.compile(function, backend="tessera")(x)
            torch.testing.assert_close(found, function(x), rtol=1e-4, atol=1e-4)
        def main():
            from torch._dynamo.utils import counters
            AsyncCompile.wait_pool_ready()
            compile_and_compare(lambda x: (torch.softmax(x, -1), x.sum(0)))
            print(AsyncCompile.use_process_pool(), counters["inductor"]["async_compile_cache_miss"] > 0)
            CachingAutotuner.precompile = keep
            compile_and_compare(lambda x: torch.softmax(x * 2, -1))
            again = [pickle.loads(data) for data in kept]
            for autotuner in again:
                autotuner.restore_after_unpickle(None)
            print(len(again) > 0, {type(autotuner.fn).__name__ for autotuner in again})
        if __name__ == "__main__":
            main()
    """
    folder = tmp_path_factory.mktemp("with_workers")
    environment = {
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TESSERA_CACHE_DIR": str(folder / "tessera"),
    }
    return run(program, **environment).splitlines()


def test_workers_compile_and_send_back(with_workers) -> None:
    assert with_workers[0] == "True True"


def test_what_a_worker_sent_can_be_kept_for_other_processes(with_workers) -> None:
    """As torch's bundle of static launchers does on a GPU with what has arrived."""
    assert with_workers[1] == "True {'FunctionOutline'}"


def test_a_worker_knows_of_the_gpu_as_torch_does(inductor, monkeypatch) -> None:
    # In a process forked from one that used it the driver does not start.
    from triton.backends import backends

    monkeypatch.setattr(inductor.cuda, "is_available", lambda: True)
    assert backends["nvidia"].driver.is_active() and not backends["cpu"].driver.is_active()


def test_code_on_disk_is_not_used_by_another_version(tmp_path) -> None:
    prelude = """
        import torch, tessera.torch
        tessera.torch.activate()
        from tessera.torch import lowering
        from torch._dynamo.utils import counters
    """
    program = """
        result = torch.compile(lambda x: x.exp() + 1, backend="tessera")(torch.randn(50))
        print(counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"])
    """
    other = 'lowering.source_digest = lambda: "another version"' + textwrap.dedent(program)
    programs = {"first": program, "second": program, "other": other}
    hits = run_forks(prelude, programs, TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    assert (hits["first"], hits["other"]) == ("0", "0") and int(hits["second"]) > 0


# The back end's name, without activate() and without a wheel that tells torch of it.
NAMED = {
    "torch first": "import tessera.torch",
    "after torch has looked": "import torch._dynamo; torch._dynamo.list_backends(); import tessera.torch",
}
"""After torch."""


# tools/gpu_run.sh puts the wheel's packages, and so its metadata, on the path of its checkout.
of_a_checkout = pytest.mark.skipif(
    any(list(pathlib.Path(folder).glob("tessera-*.dist-info")) for folder in sys.path if folder),
    reason="a wheel is installed beside the checkout",
)


@of_a_checkout
def test_a_checkout_makes_the_back_end_known() -> None:
    shown = "print('tessera' in torch._dynamo.list_backends())"
    programs = {name: f"{program}; {shown}" for name, program in NAMED.items()}
    programs["without tessera.torch"] = shown
    expected = {**dict.fromkeys(NAMED, "True"), "without tessera.torch": "False"}
    assert run_forks("import torch", programs) == expected
    assert run(f"import tessera.torch, torch; {shown}") == "True"


def test_a_checkout_compiles_by_the_back_ends_name(tmp_path) -> None:
    program = """
    import torch
    import tessera.torch
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend="tessera")
    x = torch.randn(1000)
    assert torch.equal(compiled(x), torch.relu(x) + 1)
    import tessera.runtime.jit
    import triton
    print(triton.jit is tessera.jit)
    """
    assert run(program, TORCHINDUCTOR_CACHE_DIR=str(tmp_path)) == "True"


def test_importing_tessera_torch_loads_no_torch() -> None:
    program = "import sys, tessera.torch; print('torch' in sys.modules, 'importlib.metadata' in sys.modules)"
    assert run(program) == "False False"


@of_a_checkout
def test_the_metadata_of_a_checkout_is_its_own() -> None:
    program = """
    import importlib.metadata as metadata
    import tessera.torch
    assert metadata.version("tessera") == tessera.__version__
    print([entry.value for entry in metadata.entry_points(group="torch_dynamo_backends") if entry.name == "tessera"])
    """
    assert run(program) == "['tessera.torch:compile_graph']"
