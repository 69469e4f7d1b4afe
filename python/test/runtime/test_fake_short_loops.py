# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The variant of a kernel for launches whose loops are short, on a CUDA driver that only notes launches down."""

from __future__ import annotations

from runtime.fake_gpu import driver, pytestmark, run  # noqa: F401

ROWS = """
        @tessera.jit
        def exponentials(x_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
            x_ptr += tl.program_id(0) * n
            top = tl.full((BLOCK,), -1e30, dtype=tl.float32)
            for start in range(first, n, BLOCK):
                at = start + tl.arange(0, BLOCK)
                top = tl.maximum(top, tl.load(x_ptr + at, mask=at < n, other=-1e30).to(tl.float32))
            best = tl.max(top, 0)
            total = tl.zeros((BLOCK,), dtype=tl.float32)
            for start in range(first, n, BLOCK):
                at = start + tl.arange(0, BLOCK)
                x = tl.load(x_ptr + at, mask=at < n, other=-1e30).to(tl.float32)
                total += tl.exp(x - best)
            tl.store(out_ptr + tl.program_id(0), tl.sum(total, 0))

        values = array((1 << 40) + (1 << 20))
        def launch(n, first=0, rows=4096, BLOCK=2048, **options):
            return exponentials[(rows,)](values, out, first, n, BLOCK=BLOCK, **{"num_warps": 8, **options})

        def is_for_short_loops(kernel):
            return "tilegpu.short_loops}" in kernel.asm["tilegpu"] or "tilegpu.short_loops," in kernel.asm["tilegpu"]
"""


def test_a_launch_of_short_loops_has_fewer_registers(run):
    run(ROWS + """
        kernel = launch(32768)
        assert kernel.metadata["short_loops"] == ["(sub64 (add64 i32:2 4096) i32:3)"]
        assert kernel.n_regs > 32 and not is_for_short_loops(kernel)
        for n, first, short in ((4096, 0, True), (4112, 0, False), (4112, 16, True), (16, 0, True),
                                (16, 4096, True), (-16, 0, True), (1 << 30, 0, False)):
            for time in range(3):
                known = len(slow)
                found = launch(n, first)
                assert is_for_short_loops(found) == short, (n, first)
                assert len(slow) == known or time < 2, "a warm launch needs no Python"
                assert short or found is kernel
        assert launch(4096).n_regs < kernel.n_regs and launch(4096).metadata["short_loops"] == []
        # Not where the options say it.
        assert not is_for_short_loops(launch(4096, split_k=False))
        assert is_for_short_loops(launch(32768, short_loops=True))
        """)


def test_a_kernel_without_long_groups_has_no_such_variant(run):
    run(ROWS + """
        # Two iterations load 128 bytes a thread.
        assert launch(32768, num_warps=2).metadata["short_loops"] == []
        # As many programs as an SM has warps for.
        assert launch(32768, BLOCK=1024).metadata["short_loops"] == []
        """)


def test_a_compiled_kernel_stays_as_it_is(run):
    run(ROWS + """
        kernel = launch(32768)
        known = number("launches")
        kernel[(8, 1, 1)](values, out, 0, 4096)
        assert number("launches") == known + 1
        """)
