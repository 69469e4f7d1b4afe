# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters, asked for and chosen by launches, on a CUDA driver that only notes launches down."""

from __future__ import annotations

from runtime.fake_gpu import MATMUL, MATMUL_OF_TILES, driver, pytestmark, run  # noqa: F401


def test_a_cluster_of_blocks_does_a_program(run):
    run("""
        for blocks in (2, 4, 8):
            kernel = add[(5, 2)](x, y, out, 1000, BLOCK=256, num_warps=8, num_ctas=blocks)
            note = last()
            assert list(note.grid) == [5 * blocks, 2, 1] and list(note.block) == [256, 1, 1]
            assert number("cluster") == blocks
            assert kernel.metadata.cluster_dims == (blocks, 1, 1)
            assert kernel.metadata.num_ctas == kernel.metadata["num_ctas"] == blocks
            assert f".reqnctapercluster {blocks}" in kernel.stages["ptx"]
        # Once for each kernel, when it is loaded.
        asked = number("clusters_asked")
        assert asked == 3
        add[(7,)](x, y, out, 1000, BLOCK=256, num_warps=8, num_ctas=2)
        assert number("clusters_asked") == asked and list(last().grid) == [14, 1, 1]
        add[(7,)](x, y, out, 1000, BLOCK=256, num_warps=8)
        assert number("clusters_asked") == asked and list(last().grid) == [7, 1, 1]
        with expect(tessera.LaunchError, "E066", "1073741824 programs", "the most is 1073741823"):
            add[(1 << 30,)](x, y, out, 1000, BLOCK=256, num_warps=8, num_ctas=2)
        """)


def test_few_programs_divide_their_sums(run):
    run(MATMUL + """
        kernel = launch(1024, 1024, 4096)
        assert kernel.metadata["divisible_sum"]["upper"] == "(div32 (add32 i32:5 63) 64)"
        assert kernel.metadata.num_ctas == 1
        # The GPU has 132 SMs.
        for m, n, blocks in ((64, 4096, 2), (128, 1024, 4), (64, 1024, 8), (64, 64, 8), (1024, 1024, 1)):
            for time in range(3):
                known = len(slow)
                assert launch(m, n, 16384).metadata.num_ctas == blocks
                assert blocks == 1 or number("cluster") == blocks
                assert len(slow) == known or time < 2, "a warm launch needs no Python"
        # What is known of one stays known of the others.
        known = len(slow)
        for n, blocks in ((4096, 2), (1024, 8), (4096, 2), (64, 8)):
            assert launch(64, n, 16384).metadata.num_ctas == blocks == number("cluster")
        assert len(slow) == known
        # Too little to be divided, or not to be.
        for options in ({"split_k": False}, {"deterministic": True}):
            assert launch(64, 64, 16384, **options).metadata.num_ctas == 1
        assert launch(64, 64, 128).metadata.num_ctas == 1
        assert launch(64, 64, 16384, num_ctas=2).metadata.num_ctas == 2
        # One kernel for both: of launches alone.
        assert launch(64, 64, 16384, split_k=True) is launch(64, 64, 16384)
        """)


def test_few_programs_divide_their_tiles(run):
    run(MATMUL_OF_TILES + """
        a, b, c = array(1 << 40), array((1 << 40) + (1 << 26)), Tensor((1 << 40) + (1 << 30))
        def launch(m, n, k, BM=256, BN=128, **options):
            grid = (-(-m // BM), -(-n // BN))
            return matmul[grid](a, b, c, m, n, k, 1 << 15, 8192, 4096, BM=BM, BN=BN,
                                **{"num_warps": 8, "num_stages": 4, **options})

        def is_divided_along_tiles(kernel):
            return "num_parts" in kernel.asm["tilegpu"]

        # The GPU has 132 SMs. More blocks than two divide the sum; with 128 columns and rows, too much
        # comes by multicast.
        for m, n, k, BM, BN, blocks, by_tiles in (
            (256, 6144, 4096, 256, 128, 2, True), (512, 3072, 16384, 256, 128, 2, True),
            (256, 1024, 4096, 256, 128, 8, False), (256, 4096, 16384, 128, 128, 2, False),
            (1024, 4096, 4096, 256, 128, 1, False),
        ):
            for time in range(3):
                known = len(slow)
                kernel = launch(m, n, k, BM, BN)
                assert kernel.metadata.num_ctas == blocks, (m, n, k, kernel.metadata.num_ctas)
                assert blocks == 1 or number("cluster") == blocks
                assert is_divided_along_tiles(kernel) == by_tiles
                assert len(slow) == known or time < 2, "a warm launch needs no Python"
        # What is known of one stays known of the others.
        known = len(slow)
        for m, n, by_tiles in ((256, 6144, True), (256, 1024, False), (512, 3072, True)):
            assert is_divided_along_tiles(launch(m, n, 4096)) == by_tiles
        assert len(slow) == known
        # Arrays that overlap: a block would load what another one has stored.
        apart, c = launch(256, 6144, 4096), Tensor(1 << 40)
        assert launch(256, 6144, 4096).metadata.num_ctas == 1 and apart.metadata.num_ctas == 2
        c = Tensor((1 << 40) + (1 << 30))
        assert launch(256, 6144, 4096) is apart
        for options in ({"split_k": False}, {"deterministic": True}, {"tensor_maps": False}):
            assert not is_divided_along_tiles(launch(256, 6144, 4096, **options))
        # With a cluster that somebody asks for nothing is chosen.
        assert launch(256, 6144, 4096, num_ctas=4).metadata.num_ctas == 4
        """)


def test_sums_are_divided_among_clusters_that_run_at_once(run):
    run(MATMUL + """
        # 132 SMs as before, of which no more than 29 clusters of four blocks can be made.
        groups = (ctypes.c_int * 8).in_dll(fake, "fake_groups")
        groups[:] = [18, 18, 18, 18, 18, 18, 14, 10]
        for m, n, blocks in ((128, 1024, 2), (64, 4096, 2), (64, 1920, 2), (64, 1856, 4), (64, 512, 8)):
            found = launch(m, n, 16384).metadata.num_ctas
            assert found == blocks == number("cluster"), (m, n, found, number("cluster"))
        """)


def test_sums_are_not_divided_among_clusters_that_a_gpu_refuses(run):
    run(MATMUL + """
        ctypes.c_int.in_dll(fake, "fake_most_blocks").value = 2
        for m, n, blocks in ((64, 1024, 2), (64, 64, 2), (1024, 1024, 1)):
            assert launch(m, n, 16384).metadata.num_ctas == blocks
        ctypes.c_int.in_dll(fake, "fake_most_blocks").value = 1
        with expect(tessera.LaunchError, "E066", "loading kernel"):
            launch(64, 64, 16384, num_ctas=4)
        """)


def test_persistent_programs_are_as_many_as_clusters_fit(run):
    run("""
        @tessera.jit
        def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
            rows = tl.program_id(0) * BM + tl.arange(0, BM)
            columns = tl.program_id(1) * BN + tl.arange(0, BN)
            k = tl.arange(0, 64)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for at in range(0, K, 64):
                x = tl.load(a_ptr + rows[:, None] * K + (at + k)[None, :],
                            mask=(rows[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
                y = tl.load(b_ptr + (at + k)[:, None] * N + columns[None, :],
                            mask=((at + k)[:, None] < K) & (columns[None, :] < N), other=0.0)
                acc = tl.dot(x, y, acc)
            tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc,
                     mask=(rows[:, None] < M) & (columns[None, :] < N))

        a, b, c = array(1 << 40), array((1 << 40) + (1 << 26)), Tensor((1 << 40) + (1 << 27))
        def launch(programs):
            kernel = matmul[(programs, 4)](a, b, c, 256 * programs, 512, 512, BM=256, BN=128,
                                           num_ctas=2, num_warps=8, num_stages=4)
            assert kernel.metadata["persistent_programs"] == 1 and number("cluster") == 2
            return last().grid[0] // 2
        ctypes.c_int.in_dll(fake, "fake_fitting").value = 60
        assert launch(4) == 16
        # Of 132 SMs; not all of them have a neighbour.
        assert launch(64) == 60
        """)


def test_without_room_for_clusters_nothing_is_divided(run):
    run(MATMUL + """
        ctypes.c_int.in_dll(fake, "fake_fitting").value = 0
        for time in range(3):
            known = len(slow)
            assert launch(64, 64, 16384).metadata.num_ctas == 1
            assert len(slow) == known or time < 2
        assert number("clusters_asked") == 3 and number("cluster") == 0
        """)


def test_a_cluster_that_fits_no_gpu_is_told(run):
    run("""
        ctypes.c_int.in_dll(fake, "fake_fitting").value = 0
        with expect(tessera.LaunchError, "E066", "no room for a cluster of 4 blocks", "num_ctas"):
            add[(5, 2)](x, y, out, 1000, BLOCK=256, num_ctas=4)
        kernel = add.warmup(x, y, out, 1000, BLOCK=256, num_ctas=4)._kernel
        try:
            kernel.launch_cuda(0, 0, (5, 2, 1), [x.address, y.address, out.address, 1000])
        except tessera._C.CoreError as error:
            assert error.status == tessera._C.Status.NO_CLUSTER_ROOM
        else:
            raise AssertionError("the kernel was launched")
        assert number("launches") == 0
        with expect(tessera.LaunchError, "E053", "num_ctas is 2", "sm_80 has no clusters"):
            add[(5, 2)](x, y, out, 1000, BLOCK=256, num_ctas=2, arch="sm_80")
        """)


def test_a_division_that_cannot_be_compiled_is_not_tried_again(run):
    run(MATMUL + """
        from tessera.compiler.options import CompileOptions

        asked = []
        of_variant = CompileOptions.for_variant
        def for_variant(options, variant):
            asked.append(variant)
            if variant != tessera._C.Variant.UNLIMITED:
                raise tessera.LaunchError("E053", "not this one", "")
            return of_variant(options, variant)
        CompileOptions.for_variant = for_variant
        for time in range(3):
            assert launch(64, 64, 16384).metadata.num_ctas == 1
        assert asked == [tessera._C.Variant.SPLIT_8]
        """)
