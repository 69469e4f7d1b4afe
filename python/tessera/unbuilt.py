# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Why `tessera._C`, the compiler itself, cannot be imported, and what to do about it."""

from __future__ import annotations

import glob
import os
import re
import shlex
import sys
import sysconfig

__all__ = ["explain"]


def explain(error: ImportError) -> ImportError:
    """An error to raise in the place of `error`, which the import of `tessera._C` has raised."""
    if "subinterpreter" in str(error):
        return ImportError(
            "Tessera runs in a process's main interpreter alone, and this is a subinterpreter\n"
            "fix: import it in the main interpreter; for mod_wsgi, set "
            "`WSGIApplicationGroup %{GLOBAL}`",
            name="tessera._C",
        )
    package = os.path.dirname(os.path.abspath(__file__))
    here = "%d.%d" % sys.version_info[:2]
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    files = sorted(glob.glob(os.path.join(package, "_C.*.so")))
    if any(path.endswith("/_C" + suffix) for path in files):
        # It is there, but does not load: the system's reason is the one to read.
        return ImportError(f"tessera._C does not load: {error}", name="tessera._C")
    root = os.path.dirname(os.path.dirname(package))
    is_checkout = os.path.exists(os.path.join(root, "CMakeLists.txt"))
    if not files:
        what = f"Tessera is not built in {package}"
        fix = f"build it: {os.path.join(root, 'tools', 'demo')}, or pip install {root}"
    else:
        built = ", ".join(sorted({_version(path) for path in files}))
        what = f"Tessera in {package} is built for Python {built}, and this is Python {here}"
        what += f" ({sys.executable})"
        build = os.path.dirname(os.path.dirname(os.path.realpath(files[0])))
        fix = f"run it with Python {built}"
        if os.path.exists(os.path.join(build, "CMakeCache.txt")):
            q = shlex.quote
            fix += (
                f", or build it for this one, too: cmake -DPython3_EXECUTABLE={q(sys.executable)} "
                f"{q(build)} && cmake --build {q(build)} --target tessera_python"
            )
    if not is_checkout:
        fix = "install the wheel for this Python, or run it with the Python it was installed for"
    return ImportError(f"{what}\nfix: {fix}", name="tessera._C")


def _version(path: str) -> str:
    """The Python that an extension is for, by its name."""
    match = re.search(r"_C\.cpython-(\d)(\d+)(t?)-", os.path.basename(path))
    return f"{match[1]}.{match[2]}{match[3]}" if match else os.path.basename(path)
