# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples on several GPUs, without any: processes on the CPU that share memory, and one GPU of
several in the simulator, whose peers have given their signals beforehand."""

from __future__ import annotations

import importlib
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tessera
import tessera.gpu
import tessera.language as tl

torch = pytest.importorskip("torch")
pytest.importorskip("torch.distributed")

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
PAD = 512
"""Words of a signal pad."""


@pytest.fixture(autouse=True)
def examples_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def example(name: str) -> Any:
    return importlib.import_module(name)


# --- On the CPU, a process for each "GPU" --------------------------------------------------

PROCESS = """
import os, sys
sys.path.insert(0, EXAMPLES)
import numpy as np
from all_reduce import one_shot_kernel, two_shot_kernel
from all_gather_matmul import all_gather_matmul_kernel

world, path = int(sys.argv[1]), sys.argv[2]
# One process loads everything, torch too, and is forked for each "GPU".
children = []
for rank in range(world):
    children.append(os.fork())
    if children[-1] == 0:
        break
else:
    sys.exit(any([os.waitpid(child, 0)[1] for child in children]))

n, m, N, K = 5000, 40, 24, 20

def mapped(name, peer, shape, dtype):
    return np.memmap(f"{path}/{name}{peer}", dtype, "r+", shape=shape)

peers = range(world)
pads = [mapped("pad", peer, (512,), np.int32) for peer in peers]
addresses = np.array([pad.ctypes.data for pad in pads])
exact = sum(np.random.default_rng(peer).standard_normal(n, np.float32) for peer in peers)
x = np.random.default_rng(rank).standard_normal(n, np.float32)
buffers = tuple(mapped("x", peer, (n,), np.float32) for peer in peers)
for repeat in range(8):
    buffers[rank][:] = x + repeat
    out = np.full(n, np.nan, np.float32)
    one_shot_kernel[(3,)](buffers, out, addresses, n, rank, WORLD=world, BLOCK=256)
    np.testing.assert_allclose(out, exact + world * repeat, rtol=1e-4, atol=1e-4)
    # What was read may change at once.
    buffers[rank][:] = x - repeat
    two_shot_kernel[(3,)](buffers, addresses, n, rank, WORLD=world, BLOCK=256)
    np.testing.assert_allclose(buffers[rank], exact - world * repeat, rtol=1e-4, atol=1e-4)

rows = np.concatenate([np.random.default_rng(peer).standard_normal((m, K), np.float32) for peer in peers])
b = np.random.default_rng(100 + rank).standard_normal((K, N), np.float32)
gathered = tuple(mapped("a", peer, (world * m, K), np.float32) for peer in peers)
in_turns = gathered[rank:] + gathered[:rank]
for repeat in range(3):
    gathered[rank][rank * m:(rank + 1) * m] = rows[rank * m:(rank + 1) * m] + repeat
    arrived = np.zeros(3 * world, np.int32)
    c = np.full((world * m, N), np.nan, np.float32)
    all_gather_matmul_kernel[(2 + 3 * 2 * world,)](
        in_turns, b, c, arrived, addresses, m, N, K, rank, WORLD=world, COPIERS=2,
        BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, COPIED=64)
    np.testing.assert_array_equal(gathered[rank], rows + repeat)
    np.testing.assert_allclose(c, (rows + repeat) @ b, rtol=1e-3, atol=1e-3)
print("right", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("world", [2, 3])
def test_processes_with_shared_memory(tmp_path, world):
    for peer in range(world):
        for name, size in (("pad", 4 * PAD), ("x", 4 * 5000), ("a", 4 * world * 40 * 20)):
            (tmp_path / f"{name}{peer}").write_bytes(bytes(size))
    script = tmp_path / "process.py"
    script.write_text(PROCESS.replace("EXAMPLES", repr(str(EXAMPLES))))
    command = [sys.executable, str(script), str(world), str(tmp_path)]
    # A group of its own, of which none outlives a test that fails.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    # Where nothing is buffered, a line and its end are two writes.
    assert process.returncode == 0 and sorted(out) == sorted("right\n" * world), err
    for peer in range(world):
        assert not any((tmp_path / f"pad{peer}").read_bytes()), "signals are as they were"


# --- In the simulator ----------------------------------------------------------------------


def pads_of(world: int, rank: int, channels: int) -> list[np.ndarray]:
    """Signal pads on which a GPU finds the signals of all others, which take it for one that they
    have waited for."""
    pads = [np.zeros(PAD, np.int32) for _ in range(world)]
    pads[rank][: channels * world] = np.tile(np.arange(world) != rank, channels)
    return pads


def check_pads(pads: list[np.ndarray], rank: int, channels: int) -> None:
    """That it has taken all signals, and given one to each of the others."""
    world = len(pads)
    assert not pads[rank].any()
    for peer in set(range(world)) - {rank}:
        given = pads[peer][: channels * world].reshape(channels, world)
        assert (given == (np.arange(world) == rank)).all() and given.sum() == pads[peer].sum()


def addresses_of(arrays: list[np.ndarray]) -> np.ndarray:
    return np.array([array.ctypes.data for array in arrays])


@pytest.mark.parametrize("world, rank", [(2, 0), (2, 1), (3, 1)])
def test_sums_in_the_simulator(rng, world, rank):
    n, programs = 3000, 2
    all_reduce = example("all_reduce")
    buffers = tuple(rng.standard_normal(n).astype(np.float16) for _ in range(world))
    before = [x.copy() for x in buffers]
    want = sum(x.astype(np.float32) for x in before).astype(np.float16)

    pads, out = pads_of(world, rank, 2 * programs), np.full(n, np.nan, np.float16)
    kernel = tessera.gpu.simulate(all_reduce.one_shot_kernel, memory=pads, unwritten=[out])
    kernel[(programs,)](buffers, out, addresses_of(pads), n, rank, WORLD=world, BLOCK=256).check()
    np.testing.assert_array_equal(out, want)
    check_pads(pads, rank, 2 * programs)
    assert all((a == b).all() for a, b in zip(buffers, before))

    pads = pads_of(world, rank, 2 * programs)
    kernel = tessera.gpu.simulate(all_reduce.two_shot_kernel, memory=pads)
    kernel[(programs,)](buffers, addresses_of(pads), n, rank, WORLD=world, BLOCK=256).check()
    check_pads(pads, rank, 2 * programs)
    share = -(-(-(-n // world)) // 256) * 256
    is_share = np.arange(n) // share == rank
    for a, b in zip(buffers, before):
        np.testing.assert_array_equal(a, np.where(is_share, want, b))


def gather_and_multiply(rng: Any, kernel: Any, world: int = 3, rank: int = 2) -> Any:
    m, N, K, copiers = 40, 64, 48, 2
    a = rng.standard_normal((world * m, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    gathered = [np.zeros_like(a) for _ in range(world)]
    for peer in range(world):
        gathered[peer][peer * m : (peer + 1) * m] = a[peer * m : (peer + 1) * m]
    pieces = 3
    pads, arrived = pads_of(world, rank, 2 * copiers), np.zeros(pieces * world, np.int32)
    c = np.full((world * m, N), np.nan, np.float16)
    run = tessera.gpu.simulate(kernel, memory=pads)[(copiers + pieces * 2 * world,)](
        tuple(gathered[rank:] + gathered[:rank]), b, c, arrived, addresses_of(pads), m, N, K, rank,
        WORLD=world, COPIERS=copiers, BLOCK_M=16, BLOCK_N=32, BLOCK_K=16, COPIED=256,
    )  # fmt: skip
    np.testing.assert_array_equal(gathered[rank], a)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=0, atol=0.05)
    check_pads(pads, rank, 2 * copiers)
    assert (arrived == (np.arange(pieces * world) // pieces != rank)).all()
    return run


def test_gathering_in_the_simulator(rng):
    gather_and_multiply(rng, example("all_gather_matmul").all_gather_matmul_kernel).check()


def test_without_waiting_for_rows_there_is_a_race(rng, tmp_path, monkeypatch):
    text = (EXAMPLES / "all_gather_matmul.py").read_text()
    line = 'arrived + owner * pieces + piece, 1, sem="acquire"'
    assert line in text
    (tmp_path / "careless.py").write_text(text.replace(line, line.replace("acquire", "relaxed")))
    monkeypatch.syspath_prepend(str(tmp_path))
    findings = gather_and_multiply(rng, example("careless").all_gather_matmul_kernel).findings
    assert findings and {finding.kind for finding in findings} == {"race"}


# --- As kernels for Triton do it -----------------------------------------------------------


@tessera.jit
def cas_barrier(pads, channel, rank, WORLD: tl.constexpr):
    for peer in tl.static_range(WORLD):
        theirs = tl.load(pads + peer).to(tl.pointer_type(tl.int32)) + channel * WORLD + rank
        while tl.atomic_cas(theirs, 0, 1, sem="release", scope="sys") != 0:
            pass
    own = tl.load(pads + rank).to(tl.pointer_type(tl.int32)) + channel * WORLD
    for peer in tl.static_range(WORLD):
        while tl.atomic_cas(own + peer, 1, 0, sem="acquire", scope="sys") != 1:
            pass


@tessera.jit
def sum_by_addresses(
    buffers, pads, out, n, rank, DTYPE: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr
):
    buffers = buffers.to(tl.pointer_type(tl.uint64))
    pads = pads.to(tl.pointer_type(tl.uint64))
    program = tl.program_id(0)
    cas_barrier(pads, program, rank, WORLD)
    i = program * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(WORLD):
        buffer = tl.load(buffers + (rank + step) % WORLD).to(tl.pointer_type(DTYPE))
        total += tl.load(tl.multiple_of(buffer, 16) + i, mask=i < n, other=0).to(tl.float32)
    tl.store(out + i, total, mask=i < n)


@pytest.mark.parametrize("world, rank", [(2, 1), (4, 2)])
def test_addresses_as_integers_and_signals_by_cas(rng, world, rank):
    n, programs = 1000, 4
    buffers = [rng.standard_normal(n).astype(np.float16) for _ in range(world)]
    pads, out = pads_of(world, rank, programs), np.full(n, np.nan, np.float32)
    tables = [addresses_of(buffers), addresses_of(pads)]
    kernel = tessera.gpu.simulate(sum_by_addresses, memory=[*buffers, *pads, *tables])
    arguments = (tables[0].ctypes.data, tables[1].ctypes.data, out, n, rank)
    constants = {"DTYPE": tl.float16, "WORLD": world, "BLOCK": 256}
    kernel[(programs,)](*arguments, **constants).check()
    np.testing.assert_allclose(out, sum(x.astype(np.float32) for x in buffers), rtol=0, atol=1e-3)
    check_pads(pads, rank, programs)
    ptx = sum_by_addresses.warmup(*arguments, **constants, target="sm_90a").asm["ptx"]
    assert "atom.release.sys.global.cas.b32" in ptx and "atom.acquire.sys.global.cas.b32" in ptx
    # And by the CPU's code, whose signals are there again.
    signals = pads_of(world, rank, programs)
    for pad, signal in zip(pads, signals):
        pad[:] = signal
    again = np.full_like(out, np.nan)
    sum_by_addresses[(programs,)](
        *(table.ctypes.data for table in tables), again, n, rank, **constants
    )
    np.testing.assert_allclose(again, out, rtol=0, atol=1e-5)
    check_pads(pads, rank, programs)


# --- What it is compiled to ----------------------------------------------------------------


def test_code_for_gpus():
    x = tuple(tessera.MockTensor(tl.bfloat16) for _ in range(4))
    out, pads = tessera.MockTensor(tl.bfloat16), tessera.MockTensor(tl.int64)
    one_shot = example("all_reduce").one_shot_kernel
    kernel = one_shot.warmup(
        x, out, pads, 1 << 20, 3, WORLD=4, BLOCK=4096, num_warps=16, target="sm_90a"
    )
    ptx = kernel.asm["ptx"]
    for what in ("ld.relaxed.sys.global", "st.release.sys.global", "ld.acquire.sys.global"):
        assert what in ptx, what
    assert ".gpu.global" not in ptx
    assert ptx.count("ld.global.v4.b32") == 4, "16 bytes of each peer by a thread"
    gather = example("all_gather_matmul").all_gather_matmul_kernel
    kernel = gather.warmup(
        x, out, out, tessera.MockTensor(tl.int32), pads, 4096, 4096, 8192, 3, WORLD=4, COPIERS=16,
        BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, COPIED=8192, num_warps=8, num_stages=3,
        target="sm_90a",
    )  # fmt: skip
    assert any(remark.endswith("by wgmma") for remark in kernel.remarks)
    assert kernel.n_spills == 0
    # What a launch before this one has written is waited for before a peer is told of it.
    ptx = kernel.asm["ptx"]
    assert ptx.index("griddepcontrol.wait") < ptx.index("st.release.sys")


# --- Mistakes ------------------------------------------------------------------------------


def peers_of(**given: Any) -> Any:
    """`Peers` without a group."""
    peers = object.__new__(example("peers").Peers)
    peers.own = torch.zeros(12, 8, dtype=torch.bfloat16)
    peers.world, peers.rank, peers.channels = 2, 0, 256
    peers.buffers = (peers.own, peers.own)
    peers.pads = torch.zeros(2, dtype=torch.int64)
    vars(peers).update(given)
    return peers


def test_what_the_examples_refuse():
    one_shot = example("all_reduce").one_shot
    gather = example("all_gather_matmul").all_gather_matmul
    peers = peers_of()
    for out, text in (
        (torch.zeros(12, 8), "elements of torch.float32"),
        (torch.zeros(8, 12, dtype=torch.bfloat16).t(), "not contiguous"),
        (torch.zeros(12, 8, dtype=torch.bfloat16, device="meta"), "out is on meta"),
        (torch.zeros(96, dtype=torch.bfloat16), r"shape \(96,\), peers \(12, 8\)"),
    ):
        with pytest.raises(ValueError, match=text):
            one_shot(peers, out)
    b, out = torch.zeros(8, 16, dtype=torch.bfloat16), torch.zeros(12, 16, dtype=torch.bfloat16)
    arrived = torch.zeros(2, dtype=torch.int32)
    with pytest.raises(ValueError, match="12 rows are not the same number on each of 5 GPUs"):
        gather(peers_of(world=5), b, out, arrived)
    with pytest.raises(ValueError, match="less than 2 elements of int32"):
        gather(peers, b, out, arrived[:1])
    with pytest.raises(ValueError, match=r"have the shapes \(8, 16\) and \(12, 8\)"):
        gather(peers, b, out[:, :8], arrived)
    with pytest.raises(ValueError, match="b is not contiguous"):
        gather(peers, torch.zeros(16, 8, dtype=torch.bfloat16).t(), out, arrived)


def test_without_a_group_or_gpus():
    with pytest.raises(RuntimeError, match="init_process_group"):
        example("peers").Peers((16,), torch.bfloat16)
    if torch.cuda.device_count() < 2:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "all_reduce.py")], capture_output=True, text=True
        )
        assert done.returncode == 1 and "needs two GPUs" in done.stderr
