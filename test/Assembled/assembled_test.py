# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the suite of assembled tests runs a file: not by its RUN lines.

A file is cut at the separators that its own RUN lines use, and every piece goes on from the
stage that it is at to a cubin, for each architecture.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
from typing import Any

import lit.formats
import lit.Test

_PART = re.compile(r"^//--- \S+\.mlir$", re.MULTILINE)
_SEPARATOR = "// -----"


class AssembledTest(lit.formats.FileBasedTest):
    """Assembles all that is in a file.

    `exceptions` says for an architecture of files, by path below the suite's root, why they do
    not assemble. Such a file has to fail: what is listed without need would hide the day on
    which it matters. `not_simulated` says of files that assemble why the simulator does not
    know all of their instructions; it has to know those of all others.
    """

    def __init__(
        self, tool: str, exceptions: dict[str, dict[str, str]], not_simulated: dict[str, str]
    ) -> None:
        self.tool = tool
        self.exceptions = exceptions
        self.not_simulated = not_simulated

    def getTestsForPath(self, suite: Any, path: tuple[str, ...], config: Any, local: Any) -> Any:
        # What is in those is refused.
        if not path[-1].endswith("errors.mlir"):
            yield from super().getTestsForPath(suite, path, config, local)

    def execute(self, test: Any, config: Any) -> tuple[Any, str]:
        if test.config.unsupported:
            return lit.Test.UNSUPPORTED, "there is no ptxas"
        text = pathlib.Path(test.getSourcePath()).read_text()
        result, log = lit.Test.PASS, ""
        for architecture, listed in self.exceptions.items():
            path = "/".join(test.path_in_suite)
            simulated = path not in self.not_simulated
            output = self._assemble(text, architecture, simulated)
            if not simulated and not self._assemble(text, architecture, True):
                return lit.Test.XPASS, f"is simulated for {architecture}, so it need not be listed"
            reason = listed.get(path)
            if reason is None and output:
                return lit.Test.FAIL, log + output
            if reason is not None and not output:
                return lit.Test.XPASS, f"assembles for {architecture}, so it need not be listed"
            if reason is not None:
                result, log = lit.Test.XFAIL, log + f"{reason}\n{output}"
        return result, log

    def _assemble(self, text: str, architecture: str, simulated: bool) -> str:
        """What was said about the text if it does not assemble."""
        # `split-file` makes files of what comes after its markers, and of nothing before them.
        parts = _PART.split(text)[1:]
        source = f"\n{_SEPARATOR}\n".join(parts) if parts else text
        command = [self.tool, "--split-input-file", f"--test-assemble=arch={architecture}"]
        if not simulated:
            command[-1] += " simulated=false"
        result = subprocess.run(
            [*command, "-o", "/dev/null"], input=source, capture_output=True, text=True
        )
        if result.returncode == 0:
            return ""
        return f"for {architecture}:\n{result.stderr}\n"
