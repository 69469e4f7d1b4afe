# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The line of progress while a model is compiled."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch")

from tessera import settings
from tessera.torch import progress


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_REFRESH_SECONDS", 0.02)


@pytest.fixture
def graph():
    return torch.fx.symbolic_trace(lambda x: torch.relu(x + 1))


def work(graph, seconds=0.3):
    with progress.told(graph):
        progress.stage("lowering it")
        with progress.told(graph):  # a part of it
            time.sleep(seconds)


def test_a_terminal_has_a_line_that_is_written_over(graph, monkeypatch):
    ours, terminal = os.openpty()
    parts: list[bytes] = []

    def read() -> None:  # meanwhile, as a terminal's buffer is small
        with contextlib.suppress(OSError):  # which ends it
            while part := os.read(ours, 4096):
                parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with open(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        work(graph)
    reader.join()
    os.close(ours)
    text = b"".join(parts).decode()
    first, *others, last = text.split("\r")
    assert first == "" and last == "\n"
    assert others.count("tessera: compiling a graph of 2 operations: lowering it, 0 s") > 2
    assert re.fullmatch(r"tessera: compiled a graph of 2 operations in 0\.\d s", others[-1])


def test_a_notebook_has_it_too(graph, monkeypatch):
    written = []
    stream = type("OutStream", (), {"__module__": "ipykernel.iostream"})()
    stream.write, stream.flush, stream.isatty = written.append, lambda: None, lambda: False
    monkeypatch.setattr(sys, "stderr", stream)
    work(graph)
    assert written[0].startswith("\rtessera: compiling a graph of 2 operations: lowering it")
    assert written[-1].startswith("tessera: compiled a graph of 2 operations in 0.")


def test_elsewhere_the_log_has_it(graph, capsys, caplog):
    caplog.set_level(logging.INFO, "tessera")
    work(graph)
    first, last = [record.getMessage() for record in caplog.records]
    assert first == "compiling a graph of 2 operations: lowering it, 0 s"
    assert last.startswith("compiled a graph of 2 operations in 0.")
    assert capsys.readouterr().err == ""


def test_what_is_asked_for(graph, capsys, caplog):
    caplog.set_level(logging.INFO, "tessera")
    with settings.override(tune_progress="plain"):
        work(graph)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2 and said[0].startswith("tessera: compiling a graph")
        work(graph, seconds=0)  # nothing of what is quick
    with settings.override(tune_progress="off"):
        work(graph)
    assert capsys.readouterr().err == "" and not caplog.records


def test_what_fails_is_not_called_compiled(graph, capsys):
    with settings.override(tune_progress="plain"):
        with pytest.raises(ZeroDivisionError), progress.told(graph):
            time.sleep(0.1)
            1 / 0
    assert "compiled" not in capsys.readouterr().err


def test_stages_of_a_compilation(inductor, monkeypatch, capsys):
    stages = []

    class Noted(progress._Progress):
        def __setattr__(self, name, value):
            if name == "stage":
                stages.append(value)
            super().__setattr__(name, value)

    monkeypatch.setattr(progress, "_Progress", Noted)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    x = torch.randn(16, 33)
    with settings.override(tune_progress="plain"):
        result = torch.compile(lambda x: torch.softmax(x * 3, 0), backend="tessera")(x)
    torch.testing.assert_close(result, torch.softmax(x * 3, 0))
    assert stages == ["preparing it", "lowering it", "generating code", "compiling kernels"]
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("tessera: compiling a graph of 2 operations: preparing it")
    assert said[-1].startswith("tessera: compiled a graph of 2 operations in ")
