# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What test_stale_code.py does in processes of its own.

They are forks of this program, which has loaded the compiler and nothing else. A fork of the process of
the tests, which holds torch and all tests, took 0.2 CPU seconds.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import pickle
import subprocess
import sys
import traceback
from typing import Any, Callable, Optional

import numpy as np

import tessera


class Server:
    """A process whose forks do what they are asked."""

    def __init__(self) -> None:
        folders = [str(pathlib.Path(file).parents[1]) for file in (__file__, tessera.__file__)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        )

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of this module gives in a process of its own."""
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump((work.__name__, arguments), self._process.stdin)
        self._process.stdin.flush()
        is_fine, answer = pickle.load(self._process.stdout)
        assert is_fine, answer
        return answer

    def stop(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def answer_of(work: Callable[..., Any], *arguments: Any) -> bytes:
    """A pickled pair: true and what `work` gives, or false and the traceback of what it raises."""
    try:
        return pickle.dumps((True, work(*arguments)))
    except BaseException:
        return pickle.dumps((False, traceback.format_exc()))


def serve() -> None:
    """Forks for each request of the standard input, until its end."""
    from tessera.compiler.compile import load_front_end
    from tessera.runtime.loading import load_launching

    # Children would load it again, each by itself: a fifth of a second.
    load_front_end()
    load_launching()
    answers = os.dup(1)
    os.dup2(2, 1)  # what a kernel or a compiler prints is no answer
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        child = os.fork()
        if child == 0:
            with os.fdopen(answers, "wb") as file:
                file.write(answer_of(globals()[name], *arguments))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            os.write(answers, pickle.dumps((False, f"a child ended with status {status}")))


def start(folder: pathlib.Path) -> Any:
    """The module `main` of a folder, which has the cache, too."""
    sys.path.insert(0, str(folder))
    tessera.settings.cache_dir = str(folder / "cache")
    importlib.invalidate_caches()
    return importlib.import_module("main")


def launch(main: Any, argument: str, through: Optional[list[Any]] = None) -> int:
    """What the kernel of `main` stores."""
    out = np.zeros(1, np.int32)
    value = eval(argument, {"main": main, "mod": sys.modules.get("mod")})
    run = through[0] if through else main.kernel[(1,)]
    run(out, value)
    return int(out[0])


def launch_once(folder: pathlib.Path, argument: str) -> int:
    return launch(start(folder), argument)


def launch_and_count(folder: pathlib.Path, argument: str) -> tuple[int, int]:
    """What the kernel stores, and how many entries of the cache were found."""
    from tessera.compiler.cache import default_cache

    return launch(start(folder), argument), default_cache().hits


def find_result_type(folder: pathlib.Path) -> str:
    """The type of the elements that the elementwise operator of `main` makes of floats."""
    return str(start(folder).above(np.ones(3, np.float32)).dtype)


def launch_around(
    folder: pathlib.Path, argument: str, assignment: str
) -> tuple[list[int], list[int]]:
    """What three launches store before an assignment, and three after it."""
    main = start(folder)
    held = [main.kernel[(1,)]]  # a launch that is kept sees it, too
    before = [launch(main, argument) for _ in range(2)]
    before += [launch(main, argument, held)]
    names = {"main": main, "mod": sys.modules.get("mod"), "tl": tessera.language}
    exec(assignment, {**names, "jit": tessera.jit, "tessera": tessera})
    if "fn" in assignment or "D.value" in assignment:
        held = []
    after = [launch(main, argument, held) for _ in range(2)]
    after += [launch(main, argument)]
    return before, after


def count_builds_of_operators(folder: pathlib.Path) -> tuple[int, int]:
    """How many kernels of tessera.ops are compiled for six calls, with the cache in a folder; and how
    many of its functions are parsed."""
    from tessera import ops
    from tessera.compiler import compile
    from tessera.frontend import source

    tessera.settings.cache_dir = str(folder)
    built, build = [], compile.build
    compile.build = lambda *args, **named: built.append(args) or build(*args, **named)
    parsed, read = [], source.read_function
    source.read_function = lambda *args, **named: parsed.append(args) or read(*args, **named)
    x = np.ones((4, 8), np.float32)
    ops.softmax(x, 1)
    ops.cross_entropy(x, np.arange(4))
    ops.dropout(x, seed=1)
    ops.cumsum(x, 0)
    ops.sort(x)
    ops.selu(x)
    found = [[fn for fn, *_ in each if "tessera.ops." in fn.__module__] for each in (built, parsed)]
    return len(found[0]), len(found[1])


if __name__ == "__main__":
    serve()
