# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A virtual environment with Tessera as a wheel of this checkout would install it.

The files are those of a wheel: the build's component `wheel`, the Python sources, and the entry points of
pyproject.toml. Nothing is compiled, so every run of the tests can afford it; `tools/wheel --test` is
about real wheels. Packages of the environment that runs this (NumPy, torch) can be imported.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import venv

from docs.pages import ROOT


def install(folder: pathlib.Path) -> None:
    """Makes the environment in a folder that does not exist."""
    venv.create(folder, symlinks=True, system_site_packages=True)
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / name / "site-packages"
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = ["cmake", "--install", "build/dev", "--component", "wheel", "--prefix", str(site)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "python/tessera", site / "tessera", ignore=ignored, dirs_exist_ok=True)
    version = "0.1.0.dev0"
    (site / "tessera/_version.py").write_text(f'version = "{version}"\n')
    info = site / f"tessera-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tessera\nVersion: {version}\n")
    # Sections of entry points are tables of pyproject.toml; Python 3.10 has no parser of it.
    groups = re.findall(
        r"^\[project\.entry-points\.(\w+)\]\n((?:\w.*\n)*)",
        (ROOT / "pyproject.toml").read_text(),
        re.M,
    )
    lines = [f"[{group}]\n{entries.replace(chr(34), '')}" for group, entries in groups]
    (info / "entry_points.txt").write_text("\n".join(lines))
