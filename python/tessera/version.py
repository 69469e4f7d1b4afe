# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of Tessera: that of the build for a wheel, that of git for a checkout.

A commit with the tag v1.2.3 is version 1.2.3; one that comes N commits after it is
1.2.4.devN+gHASH. Before the first tag, N counts from the first commit.
"""

from __future__ import annotations

import os
import re
import subprocess

__all__ = ["version", "version_of_git"]

NEXT_WITHOUT_TAG = "0.1.0"
"""The number of the first release."""


def version() -> str:
    """The version of this package, by PEP 440."""
    try:
        from tessera import _version  # type: ignore[attr-defined]
    except ImportError:
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        return version_of_git(root)
    return str(_version.version)


def version_of_git(root: str) -> str:
    """The version of the checkout `root`, or of sources without git's history."""
    if not os.path.exists(os.path.join(root, ".git")):
        return f"{NEXT_WITHOUT_TAG}.dev0"
    tagged = _git(root, "describe", "--tags", "--long", "--abbrev=9", "--match=v[0-9]*")
    match = re.fullmatch(r"v(\d+(?:\.\d+)*)-(\d+)-(g[0-9a-f]+)", tagged)
    if match:
        release, distance, commit = match.groups()
        if distance == "0":
            return release
        *head, last = release.split(".")
        return f"{'.'.join([*head, str(int(last) + 1)])}.dev{distance}+{commit}"
    count = _git(root, "rev-list", "--count", "HEAD")
    commit = _git(root, "rev-parse", "--short=9", "HEAD")
    if not (count and commit):
        return f"{NEXT_WITHOUT_TAG}.dev0"
    return f"{NEXT_WITHOUT_TAG}.dev{count}+g{commit}"


def _git(root: str, *arguments: str) -> str:
    """The output of git, or nothing if it fails."""
    try:
        run = subprocess.run(
            ["git", "-C", root, *arguments], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
