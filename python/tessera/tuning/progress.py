# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages about the progress of a tuning, on the standard error stream.

On a terminal that is one line which is written over:

    tessera: tuning matmul (M=4096, N=4096, K=4096): 9 of 36 left, best 0.412 ms with
    BLOCK_M=128, BLOCK_N=256, num_warps=8, at most 2 s

anywhere else a line at the start, one now and then, and one at the end. In both cases, the end
shows the choice, and which configurations failed and why. `settings.tune_progress` ("auto",
"plain", "off") says otherwise.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Mapping, Optional, Sequence

from tessera.settings import settings
from tessera.terminal import columns, is_terminal
from tessera.tuning.config import Config, shortly
from tessera.wording import counted

_REFRESH_SECONDS = 0.1
_PLAIN_SECONDS = 10.0
_MOST_REASONS = 40


WHY_NOT_FASTEST = (
    "in rounds side by side, which count, the choice was as fast, and of those that were it takes "
    "the least registers and shared memory, or comes first"
)
"""Why a configuration with a lower time in the table is not the choice (race.py)."""

WHY_UNCERTAIN = (
    "uncertain: the machine is busy, and the time for measuring was up; the choice holds for this "
    "process and is not stored, so that another one measures again"
)
"""The message if the clock ended a race (race.py)."""


class Progress:
    """The words of one tuning; none of them if it `is_quiet`."""

    def __init__(self, kernel: str, key: Mapping[str, Any], is_quiet: bool = False) -> None:
        values = ", ".join(f"{name}={value}" for name, value in key.items())
        self._title = f"tessera: tuning {kernel}" + (f" ({values})" if values else "")
        self._mode = "off" if is_quiet else settings.tune_progress
        self._is_live = self._mode == "auto" and is_terminal()
        self._start = self._told = time.monotonic()
        self._has_line = False

    def begin(self, count: int) -> None:
        """How many configurations there are."""
        if not self._is_live:
            self._write(f"{self._title}: {counted(count, 'configuration')}\n")

    def compiling(self, done: int, count: int, failed: int) -> None:
        """So many have been compiled, or could not be."""
        trouble = f", {failed} failed" if failed else ""
        self._now(f"compiled {done} of {count}{trouble}", done == count)

    def measuring(self, remaining: int, best: Config, milliseconds: float, left: float) -> None:
        """So many are still in the race, and this one leads."""
        self._now(
            f"{remaining} left, best {shown_ms(milliseconds)} with {shortly(best)}, "
            f"at most {left:.0f} s",
            False,
        )

    def end(
        self,
        best: Config,
        milliseconds: Optional[float],
        failures: Mapping[Config, Exception],
        faster: Optional[tuple[Config, float]] = None,
        is_certain: bool = True,
    ) -> None:
        """The choice, and the configurations that failed. `faster` has the lower time, if another
        one has."""
        took = time.monotonic() - self._start
        speed = f" ({shown_ms(milliseconds)})" if milliseconds is not None else ""
        self._erase()
        self._write(f"{self._title}: {shortly(best)}{speed}, found in {took:.1f} s\n")
        if faster is not None:
            config, time_of_it = faster
            self._write(f"  {shortly(config)} took {shown_ms(time_of_it)}; {WHY_NOT_FASTEST}\n")
        if not is_certain:
            self._write(f"  {WHY_UNCERTAIN}\n")
        for line in reasons(failures):
            self._write(f"  {line}\n")

    def stop(self) -> None:
        """Nothing was chosen."""
        self._erase()

    def _now(self, text: str, is_important: bool) -> None:
        now = time.monotonic()
        if self._is_live:
            if is_important or now - self._told >= _REFRESH_SECONDS or not self._has_line:
                self._told = now
                line = f"{self._title}: {text}"
                self._write(f"\r\x1b[K{line[: columns() - 1]}")
                self._has_line = True
        elif now - self._told >= _PLAIN_SECONDS:
            self._told = now
            self._write(f"{self._title}: {text}\n")

    def _erase(self) -> None:
        if self._has_line:
            self._write("\r\x1b[K")
            self._has_line = False

    def _write(self, text: str) -> None:
        if self._mode == "off":
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # there is no such stream, or it is closed
            pass


def reasons(failures: Mapping[Config, Exception]) -> Sequence[str]:
    """The errors of configurations that failed, with one line for all that have the same error."""
    alike: dict[str, list[Config]] = {}
    for config, error in failures.items():
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        named = "" if "error[" in text else f"{type(error).__name__}: "
        alike.setdefault(named + text, []).append(config)
    lines = []
    for text, configs in list(alike.items())[:_MOST_REASONS]:
        others = len(configs) - 1
        more = f" and {counted(others, 'other')}" if others else ""
        lines.append(f"{shortly(configs[0])}{more}: {text}")
    if len(alike) > _MOST_REASONS:
        lines.append(f"and {len(alike) - _MOST_REASONS} reasons more")
    return lines


def shown_ms(milliseconds: float) -> str:
    """A time in the unit that suits it."""
    if milliseconds >= 1:
        return f"{milliseconds:.3g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds * 1000:.3g} us"
