# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of clusters, in the LLVM dialect, whose blocks exchange values step by step.

Each has as many waits as it needs and none more: without any of them two accesses meet. So
the simulator has to be silent about the kernel, whatever the order, and has to find something
in whatever order without any one of its waits.
"""

from __future__ import annotations

import dataclasses
import random

import numpy as np

ASM = "llvm.inline_asm has_side_effects asm_dialect = att"
WAIT = (
    "{{\\n.reg .pred over;\\nagain:\\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;"
    "\\n@!over bra again;\\n}}"
).format()


@dataclasses.dataclass
class Kernel:
    """A kernel's text, what it computes, and which waits it has."""

    text: str
    """A line of a wait ends with "// NAME"."""
    waits: list[str]
    result: np.ndarray
    """An int32 for each thread."""

    def without(self, wait: str) -> str:
        lines = self.text.split("\n")
        return "\n".join(line for line in lines if not line.endswith(f"// {wait}"))


class Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.size = self.random.choice([2, 2, 4, 8])
        self.warps = self.random.choice([1, 2])
        self.threads = 32 * self.warps
        self.lines: list[str] = []
        self.waits: list[str] = []
        self.names = 0
        self.blocks = 0
        self.phase = 0

    def add(self, line: str, wait: str = "") -> None:
        self.lines.append("    " + line + (f" // {wait}" if wait else ""))

    def name(self) -> str:
        self.names += 1
        return f"%x{self.names}"

    def value(self, text: str) -> str:
        name = self.name()
        self.add(f"{name} = {text}")
        return name

    def constant(self, number: int) -> str:
        return self.value(f"llvm.mlir.constant({number} : i32) : i32")

    def add_wait(self) -> str:
        self.waits.append(f"wait {len(self.waits)}")
        return self.waits[-1]

    def meet(self, is_memory: bool = True) -> None:
        """All blocks meet, and see what was written before."""
        kind = self.random.randrange(3)
        if kind == 0 and is_memory:
            fence = self.add_wait()
            self.add(f'{ASM} "fence.acq_rel.cluster;", "" : () -> ()', fence)
        wait = self.add_wait()
        if kind == 0 or not is_memory:
            self.add("nvvm.cluster.arrive.relaxed {aligned}", wait)
            self.add("nvvm.cluster.wait {aligned}", wait)
        elif kind == 1:
            self.add("nvvm.cluster.arrive {aligned}", wait)
            self.add("nvvm.cluster.wait {aligned}", wait)
        else:
            self.add(f'{ASM} "barrier.cluster.arrive.release.aligned;", "" : () -> ()', wait)
            self.add(f'{ASM} "barrier.cluster.wait.acquire.aligned;", "" : () -> ()', wait)

    def place(self, index: str) -> str:
        return self.value(
            f"llvm.getelementptr %shared[{index}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32"
        )

    def map(self, pointer: str, block: str) -> str:
        return self.value(f"nvvm.mapa {pointer}, {block} : !llvm.ptr<3> -> !llvm.ptr<7>")

    def load(self, pointer: str) -> str:
        kind = self.random.randrange(3)
        if kind == 0:
            return self.value(f"llvm.load {pointer} : !llvm.ptr<7> -> i32")
        if kind == 1:
            text = '"ld.shared::cluster.b32 $0, [$1];", "=r,r"'
            return self.value(f"{ASM} {text} {pointer} : (!llvm.ptr<7>) -> i32")
        generic = self.value(f"llvm.addrspacecast {pointer} : !llvm.ptr<7> to !llvm.ptr")
        return self.value(f"llvm.load {generic} : !llvm.ptr -> i32")

    def by_first(self, emit) -> None:
        """What the first thread does alone."""
        self.blocks += 1
        here = self.blocks
        self.add(f"llvm.cond_br %isFirst, ^do{here}, ^after{here}")
        self.lines.append(f"  ^do{here}:")
        emit()
        self.add(f"llvm.br ^after{here}")
        self.lines.append(f"  ^after{here}:")

    def wait_for_bytes(self) -> None:
        parity = self.constant(self.phase & 1)
        self.phase += 1
        wait = self.add_wait()
        self.add(f'{ASM} "{WAIT}", "r,r" %full, {parity} : (!llvm.ptr<3>, i32) -> ()', wait)

    def expect_bytes(self) -> None:
        bytes = self.constant(4 * self.threads)
        text = '"@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,b"'
        self.add(f"{ASM} {text} %full, {bytes}, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()")


def choose_steps(rng: random.Random, size: int) -> list[tuple[str, int]]:
    """What the steps do, and how far away the block is that each block does it with.

    What a block has read by a pull is written next by another block, or else no wait is needed
    between.
    """
    steps: list[tuple[str, int]] = []
    for _ in range(rng.randrange(2, 5)):
        isAfterPull = bool(steps) and steps[-1][0] == "pull"
        kinds = ["pull"] if isAfterPull and size == 2 else ["pull", "push", "send", "copy"]
        kind = rng.choice(kinds)
        apart = isAfterPull and kind != "pull"
        distances = [d for d in range(1, size) if not (apart and d == steps[-1][1])]
        steps.append((kind, rng.choice(distances)))
    return steps


def make_kernel(seed: int) -> Kernel:
    """A kernel of one cluster, which stores a word a thread to its argument."""
    w = Writer(seed)
    rng = w.random
    size, threads = w.size, w.threads
    steps = choose_steps(rng, size)
    kinds = [kind for kind, _ in steps]
    hasBarrier = "send" in kinds or "copy" in kinds

    for name, number in (("c0", 0), ("c1", 1), ("three", 3), ("thousand", 1000)):
        w.add(f"%{name} = llvm.mlir.constant({number} : i32) : i32")
    w.add(f"%last = llvm.mlir.constant({size - 1} : i32) : i32")
    w.add(f"%mask = llvm.mlir.constant({threads - 1} : i32) : i32")
    w.add(f"%threads = llvm.mlir.constant({threads} : i32) : i32")
    w.add("%t = nvvm.read.ptx.sreg.tid.x : i32")
    w.add("%rank = nvvm.read.ptx.sreg.cluster.ctarank : i32")
    w.add("%shared = llvm.mlir.addressof @shared : !llvm.ptr<3>")
    w.add("%full = llvm.getelementptr %shared[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
    w.add('%isFirst = llvm.icmp "eq" %t, %c0 : i32')
    w.add("%mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32")
    # What a copy is made from lies apart.
    w.add("%source = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
    w.add("%own = llvm.getelementptr %source[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32")
    product = w.value("llvm.mul %rank, %thousand : i32")
    v = w.value(f"llvm.add {product}, %t : i32")
    ranks, lanes = np.indices((size, threads))
    values = (1000 * ranks + lanes).astype(np.uint32)

    if hasBarrier:
        w.add("nvvm.mbarrier.init %full, %c1, predicate = %isFirst : !llvm.ptr<3>, i32, i1")
        w.add("nvvm.fence.mbarrier.init")
        if kinds[0] == "pull":
            w.add("nvvm.barrier0")  # for the block's own warps
    if kinds[0] != "pull":
        # To know that all have begun, and which barriers there are, needs no order of memory.
        w.meet(is_memory=False)

    for number, (kind, step) in enumerate(steps):
        # What a thread alone has read it may write.
        isFree = number + 1 == len(steps) or kinds[number + 1] == "pull"
        distance = w.constant(step)
        far = w.value(f"llvm.add %rank, {distance} : i32")
        peer = w.value(f"llvm.and {far}, %last : i32")
        odd, offset = 2 * rng.randrange(threads // 2) + 1, rng.randrange(threads)
        scaled = w.value(f"llvm.mul %t, {w.constant(odd)} : i32")
        moved = w.value(f"llvm.add {scaled}, {w.constant(offset)} : i32")
        index = w.value(f"llvm.and {moved}, %mask : i32")
        where = (lanes * odd + offset) & (threads - 1)
        to = (ranks + step) % size
        got = np.empty_like(values)
        if kind == "pull":
            # Each reads a word of another block.
            w.add(f"llvm.store {v}, %mine : i32, !llvm.ptr<3>")
            w.meet()
            x = w.load(w.map(w.place(index), peer))
            got = values[to, where]
            w.meet()
        elif kind == "push":
            # Each stores to a word of another block.
            pointer = w.map(w.place(index), peer)
            w.add(f"llvm.store {v}, {pointer} : i32, !llvm.ptr<7>")
            w.meet()
            x = w.value("llvm.load %mine : !llvm.ptr<3> -> i32")
            got[to, where] = values
            if not isFree:
                w.meet()
        elif kind == "send":
            # The same, and the other one counts the bytes.
            w.expect_bytes()
            pointer, report = w.map(w.place(index), peer), w.map("%full", peer)
            text = (
                '"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];"'
            )
            types = "(!llvm.ptr<7>, i32, !llvm.ptr<7>) -> ()"
            w.add(f'{ASM} {text}, "r,r,r" {pointer}, {v}, {report} : {types}')
            w.wait_for_bytes()
            x = w.value("llvm.load %mine : !llvm.ptr<3> -> i32")
            got[to, where] = values
            if not isFree:
                w.meet()
        else:
            # A copy of all words to another block.
            w.expect_bytes()
            w.add(f"llvm.store {v}, %own : i32, !llvm.ptr<3>")
            fence = w.add_wait()
            kindOf = "kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>"
            w.add(f"nvvm.fence.proxy {{{kindOf}}}", fence)
            if w.warps > 1:
                w.add("nvvm.barrier0", w.add_wait())
            else:
                w.add("nvvm.barrier0")
            pointer, report = w.map("%shared", peer), w.map("%full", peer)
            bytes = w.constant(4 * threads)
            text = (
                '"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes'
                ' [$0], [$1], $2, [$3];", "r,r,r,r"'
            )
            types = "(!llvm.ptr<7>, !llvm.ptr<3>, i32, !llvm.ptr<7>) -> ()"
            w.by_first(
                lambda: w.add(f"{ASM} {text} {pointer}, %source, {bytes}, {report} : {types}")
            )
            w.wait_for_bytes()
            x = w.value(f"llvm.load {w.place(index)} : !llvm.ptr<3> -> i32")
            got[to] = values[ranks]
            got = got[ranks, where]
            # The source has to be there until the other one has it; a pull sees to that, too.
            if number + 1 < len(steps) and kinds[number + 1] == "pull":
                w.add("nvvm.barrier0")
            else:
                w.meet()
        tripled = w.value(f"llvm.mul {v}, %three : i32")
        v = w.value(f"llvm.add {tripled}, {x} : i32")
        values = values * np.uint32(3) + got

    base = w.value("llvm.mul %rank, %threads : i32")
    i = w.value(f"llvm.add {base}, %t : i32")
    out = w.value(f"llvm.getelementptr %out[{i}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32")
    w.add(f"llvm.store {v}, {out} : i32, !llvm.ptr<1>")
    attributes = (
        f"nvvm.kernel, nvvm.reqntid = array<i32: {threads}, 1, 1>, "
        f"nvvm.cluster_dim = array<i32: {size}, 1, 1>"
    )
    text = "\n".join(
        [
            'module attributes {tilegpu.shared_bytes = 3072 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {',
            "  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>",
            f"  llvm.func @exchange(%out: !llvm.ptr<1>) attributes {{{attributes}}} {{",
            *w.lines,
            "    llvm.return",
            "  }",
            "}",
        ]
    )
    return Kernel(text, w.waits, values.astype(np.int32).reshape(-1))
