# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a notebook shows a tuned kernel: its choices, and the times of the last tuning."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tessera.notebook import list_html, table_html
from tessera.tuning.config import shortly
from tessera.tuning.progress import WHY_NOT_FASTEST, reasons, shown_ms

if TYPE_CHECKING:
    from tessera.tuning.autotuner import Autotuner


def tuner_html(tuner: Autotuner) -> str:
    """A tuned kernel as HTML: its choices, and of the last tuning each configuration's time. The
    choice is bold; the configurations that failed are to be unfolded, with the reasons."""
    count = len(tuner.keys)
    parts = [f"<b>Autotuned kernel <code>{escape(tuner._name)}</code></b>"]
    if not tuner.cache:
        parts.append("<p>Nothing is chosen yet: the first launch tunes it.</p>")
    else:
        head = [*tuner.keys, "types and device", "choice"]
        rows = [
            [*map(str, key[:count]), ", ".join(map(str, key[count:])), shortly(config)]
            for key, config in tuner.cache.items()
        ]
        parts.append(table_html(head, rows))
    timed = {c: times for c, times in tuner.configs_timings.items() if times[0] != float("inf")}
    if timed:
        order = sorted(timed, key=lambda config: timed[config][0])
        chosen = set(tuner.cache.values())
        rows = [[shortly(config), *map(shown_ms, timed[config])] for config in order]
        is_bold = [config in chosen for config in order]
        parts.append("<p>The last tuning:</p>")
        parts.append(table_html(["configuration", "median", "fast", "slow"], rows, is_bold))
        if not is_bold[0]:
            parts.append(f"<p>Where others have lower times: {escape(WHY_NOT_FASTEST)}.</p>")
    parts.append(list_html("Failed", reasons(tuner.failures)))
    return f"<div>{''.join(parts)}</div>"
