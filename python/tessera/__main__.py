# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of `python -m tessera`. `doctor` describes this machine. `cache` manages the kernels
on disk, and `tune` the results of tuning. `run --as-triton script.py` runs a program that imports
triton. `build kernel.py:name` compiles kernels for C programs. `explain E022` explains the id of an
error.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from typing import Optional, Sequence

from tessera.errors import SettingError, TesseraError


def doctor() -> int:
    """Prints what a bug report needs: versions, the CPU, GPUs, threads, settings."""
    import tessera
    from tessera import _C
    from tessera.compiler.toolchain import find_ptxas, miscompiles, ptxas_version
    from tessera.settings import settings

    print(f"tessera     {tessera.__version__}, build {_C.build_id()}")
    print(f"python      {sys.version.split()[0]} at {sys.executable}")
    print(f"system      {platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}")
    info = _C.host_info()
    print(f"llvm        {info['llvm']}")
    print(f"packages    {', '.join(_packages())}")
    features = [name[1:] for name in info["features"].split(",") if name.startswith("+")]
    print(f"cpu         {info['cpu']}, vectors of {info['vector_bits']} bits")
    measured = f"measured on {info['measured']}" if info["measured"] else "by its vendor's figures"
    print(f"row         {info['machine']}, {measured}")
    if settings.cpu_row:
        print(f"            with {settings.cpu_row.partition(':')[2]}, of TESSERA_CPU_ROW")
    print(f"threads     {info['threads']} ({info['thread_provider']}) on {info['cpus']} cpus")
    print(f"features    {' '.join(features)}")
    for index in range(_C.cuda_device_count() if _C.cuda_is_available() else 0):
        gpu = _C.cuda_device_info(index)
        major, minor = gpu["capability"]
        driver = gpu["driver_version"]
        print(
            f"gpu {index}       {gpu['name']}, capability {major}.{minor}, "
            f"{gpu['multiprocessors']} SMs, CUDA {driver // 1000}.{driver % 1000 // 10}"
        )
    ptxas = find_ptxas()
    version = ptxas_version(ptxas) if ptxas else ""
    print(
        f"ptxas       {' '.join((ptxas, version)) if ptxas else 'none: the driver assembles PTX'}"
    )
    if miscompiles(version):
        print("            is known to miscompile for sm_90a: pip install 'nvidia-cuda-nvcc>=13.3'")
    described = list(settings.describe())
    width = max(len(variable) for variable, *_ in described) + 2
    for variable, _, value, _ in described:
        print(f"{variable:<{width}}{value!r}")
    return 0


def _packages() -> list[str]:
    """The packages that are used with Tessera, with their versions; none is loaded."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in ("torch", "numpy", "jax", "nvidia-cuda-nvcc", "triton"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            if name in ("torch", "numpy", "jax"):
                found.append(f"no {name}")
    return found


def cache(command: str, size: Optional[str]) -> int:
    """Looks at the cache or tidies it up; the status is 1 if `verify` found damage."""
    from tessera.compiler.cache import default_cache

    kept = default_cache()
    if command == "path":
        print(kept.root)
    elif command == "list":
        for entry in sorted(kept.entries(), key=lambda entry: entry.used):
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            print(f"{entry.key}  {entry.size:>10}  {used}")
    elif command == "stats":
        entries = list(kept.entries())
        total = sum(entry.size for entry in entries)
        print(f"{len(entries)} entries, {total} bytes of at most {kept.max_bytes}, in {kept.root}")
    elif command == "verify":
        damaged = list(kept.verify())
        for entry, why in damaged:
            print(f"{entry.key}  {why}")
        print(f"{len(damaged)} entries cannot be used")
        return 1 if damaged else 0
    elif command == "prune":
        limit = kept.max_bytes if size is None else _size_of_option(size)
        print(f"{kept.prune(limit)} entries removed")
    elif command == "clear":
        print(f"{kept.clear()} entries removed")
    return 0


def _size_of_option(text: str) -> int:
    """The bytes that `--size` says."""
    from tessera.settings import Settings

    try:
        return Settings.cache_size.parse(text.strip())
    except ValueError as error:
        raise SettingError(
            "E062", f"--size is {text!r}, which is not {error}", "write --size 500M"
        ) from None


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs a command; returns the exit status."""
    given_arguments = list(sys.argv[1:] if arguments is None else arguments)
    if given_arguments[:1] == ["run"]:  # what follows is for the program
        from tessera.tools.run import run

        return run(given_arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m tessera", description=__doc__)
    parser.add_argument("--version", action="store_true", help="print the version")
    if given_arguments == ["--version"]:  # before anything large is loaded
        from tessera.version import version

        print(f"tessera {version()}")
        return 0
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="versions, CPU, threads and settings, for a bug report")
    caching = commands.add_parser("cache", help="look after the compiled kernels on disk")
    caching.add_argument("what", choices=["path", "stats", "list", "verify", "prune", "clear"])
    caching.add_argument("--size", help="what `prune` leaves, such as 500M")
    commands.add_parser("run", help="run a script or -m module, perhaps --as-triton")
    explaining = commands.add_parser("explain", help="what an error's id means, and what to do")
    explaining.add_argument("id", nargs="*", help="such as E022; all of them if there is none")
    from tessera.tuning import command as tuning

    tuning.add_arguments(commands.add_parser("tune", help="look after the results of tuning"))
    from tessera.aot import command as building

    building.add_arguments(
        commands.add_parser("build", help="compile kernels for programs without Python")
    )
    given = parser.parse_args(given_arguments)
    if given.command == "doctor":
        return doctor()
    if given.command == "tune" and given.what == "ops":
        from tessera.ops import tuner

        return tuner.run(given)
    if given.command == "tune":
        return tuning.run(given)
    if given.command == "build":
        return building.run(given)
    if given.command == "explain":
        from tessera.tools.explain import explain

        return explain(given.id)
    return cache(given.what, given.size)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        sys.exit(main())  # errors are those of the program
    try:
        status = main()
        sys.stdout.flush()
        sys.exit(status)
    except BrokenPipeError:  # who reads has seen enough: `doctor | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except TesseraError as error:
        sys.exit("\n".join([str(error), *getattr(error, "__notes__", ())]))
