# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches on a CUDA driver that only notes them down (fake_cuda.c): cold, warm, refused."""

from __future__ import annotations

import os

import pytest

from runtime.fake_gpu import (
    HOST_TENSOR,
    MATMUL,
    MATMUL_OF_TILES,
    driver,
    pytestmark,
    run,
)  # noqa: F401


def test_a_launch_may_begin_before_the_one_in_front_of_it_has_ended(run):
    # Programs for sm_90 wait by themselves, where one alone fits an SM: for small
    # ones the wait takes too long. Those for sm_80 do not know how.
    run("""
        @tessera.jit
        def turn(x_ptr, out_ptr, n, m, M: tl.constexpr, N: tl.constexpr):
            i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
            tile = tl.load(x_ptr + i * n + j)
            tl.store(out_ptr + j * m + i, tile)

        for target, columns, early in (("sm_90a", 256, 1), ("sm_90a", 64, 0), ("sm_80", 128, 0)):
            kernel = tessera.compile(turn, f"*fp32:16, *fp32:16, i32:16, i32:16, 128, {columns}", target=target, num_warps=8)
            assert kernel.metadata["waits_for_stream"] == bool(early)
            assert kernel.stages["ptx"].count("griddepcontrol.wait") == early
        for columns, early in ((256, 1), (64, 0)):
            noted = number("early"), number("launches")
            turn[(5, 2)](x, out, 1024, 1024, M=128, N=columns, num_warps=8)
            assert (number("early"), number("launches")) == (noted[0] + early, noted[1] + 1)
    """)


def test_a_wait_of_the_kernels_own_makes_no_launch_early(run):
    # What such a kernel does before it would be done too soon.
    run("""
        @tessera.jit
        def late(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets)
            x = tl.inline_asm_elementwise("griddepcontrol.wait; mov.b32 $0, $1;", "=r,r", [x],
                                          dtype=tl.float32, is_pure=False, pack=1)
            tl.store(out_ptr + offsets, x, mask=offsets < n)

        kernel = late[(1 << 16,)](x, y, out, 1000, BLOCK=256)
        assert "griddepcontrol.wait" in kernel.stages["ptx"]
        assert not kernel.metadata["waits_for_stream"] and number("early") == 0
    """)


def test_a_launch_reaches_the_driver(run):
    run("""
        kernel = add[(5, 2)](x, y, out, 1000, BLOCK=256, num_warps=8)
        note = last()
        assert list(note.grid) == [5, 2, 1] and list(note.block) == [256, 1, 1]
        assert list(note.arguments[:3]) == [x.address, y.address, out.address]
        assert note.arguments[3] & 0xffffffff == 1000 and note.name == b"add"
        assert kernel.metadata["arch"] == "sm_90a" and kernel.metadata["target"] == "cuda"
        assert not note.stream
        add[(0,)](x, y, out, 1000, BLOCK=256, num_warps=8)
        assert number("launches") == 1
        """)


def test_pinned_memory_of_the_host_goes_beside_a_gpus(run):
    run(HOST_TENSOR + """
        current[0] = 77
        for time in range(4):
            known = len(slow)
            add[(5,)](HostTensor(pinned + 64 * time), y, out, 1000, BLOCK=256)
            assert list(last().arguments[:3]) == [pinned + 64 * time, y.address, out.address]
            assert last().stream == 77
            assert len(slow) == known or time < 2
        asked = number("pinned_asked")
        add[(5,)](HostTensor(pinned), y, out, 1000, BLOCK=256)
        assert number("pinned_asked") == asked + 1  # each launch, without Python
        launched = number("launches")
        # Of the same kinds, and not pinned; or where the GPU sees it at another address.
        for address in (1 << 30, elsewhere):
            for time in range(2):
                with expect(tessera.ArgumentError, "E054", "`x_ptr` is in the CPU's memory",
                            "`y_ptr` is on GPU 0", "x_ptr.to('cuda:0')", "x_ptr.pin_memory()"):
                    add[(5,)](HostTensor(address), y, out, 1000, BLOCK=256)
        with expect(tessera.ArgumentError, "E054", "on GPU 1"):
            add[(5,)](HostTensor(pinned), Tensor(1 << 41, 1), out, 1000, BLOCK=256)
        assert number("launches") == launched
        # The output, too; the compiled kernel as well as the function.
        kernel = add[(5,)](x, y, HostTensor(pinned), 1000, BLOCK=256)
        kernel[(5,)](x, y, HostTensor(pinned + 4096), 1000)
        assert last().arguments[2] == pinned + 4096
        kernel[(5,)](x, y, HostTensor(pinned + 8192), 1000)
        assert last().arguments[2] == pinned + 8192
        with expect(tessera.ArgumentError, "E054", "pin_memory"):
            kernel[(5,)](x, y, HostTensor(1 << 30), 1000)
        """)


def test_pinned_memory_alone_goes_where_the_target_says(run):
    run(HOST_TENSOR + """
        tensors = [HostTensor(pinned + (i << 20)) for i in range(3)]
        current[1] = 88
        for time in range(3):
            add[(5,)](*tensors, 1000, BLOCK=256, target="cuda")
            assert last().stream == 88 and list(last().arguments[:3]) == [t.address for t in tensors]
        with expect(tessera.ArgumentError, "E054", "`y_ptr`", "the target is 'cuda'", "pin"):
            add[(5,)](tensors[0], HostTensor(1 << 30), tensors[1], 1000, BLOCK=256, target="cuda")
        """)


def test_pinned_memory_is_not_copied_by_tensor_maps(run):
    run(MATMUL + HOST_TENSOR + """
        a = HostTensor(pinned)
        a.dtype = half
        for time in range(3):
            known = len(slow)
            kernel = launch(8192, 8192, 4096)
            assert kernel.metadata["tensor_maps"] == [] and last().arguments[0] == pinned
            assert len(slow) == known or time < 2
        # One that was compiled with them is told apart.
        with_maps = launch(8192, 8192, 4096, num_stages=2)
        assert with_maps.metadata["tensor_maps"] == []
        a = array(1 << 40)
        with_maps = matmul.warmup(a, b, c, 8192, 8192, 4096, 1 << 15, 8192, 4096)
        assert with_maps.metadata["tensor_maps"]
        a = HostTensor(pinned)
        a.dtype = half
        with expect(tessera.LaunchError, "E070", "pinned memory", "tensor_maps=False"):
            with_maps[(128, 128)](a, b, c, 8192, 8192, 4096, 1 << 15, 8192, 4096)
        """)


def test_hooks_are_told_once_a_launch_and_on_which_stream(run):
    run("""
        from tessera.runtime.hooks import hooks
        seen = []
        hooks.launch_enter.add(lambda data: seen.append((data.get()["name"], data.get()["stream"])))
        current[0] = 77
        for time in range(4):
            known, launched = len(slow), number("launches")
            add[(5,)](x, y, out, 1000, BLOCK=256)
            assert number("launches") == launched + 1 and (len(slow) == known or time < 2)
        assert seen == [("add", 77)] * 4
        # Outside the limits of the first kernel, and inside them again.
        for programs in (1 << 24, 1 << 24, 1 << 24, 5):
            seen.clear()
            add[(programs,)](x, y, out, 1000, BLOCK=256)
            assert list(last().grid) == [programs, 1, 1] and len(seen) == 1
        seen.clear()
        fail_with(700)
        with expect(tessera.LaunchError, "E066"):
            add[(5,)](x, y, out, 1000, BLOCK=256)
        assert len(seen) == 1
        """)


def test_warm_launches_do_without_python(run):
    run("""
        for step in range(10):
            current[0] = 0x1000 + step
            add[(step + 1,)](x, y, out, 1000 + 16 * step, BLOCK=256)
            note = last()
            assert note.stream == 0x1000 + step and note.grid[0] == step + 1
            assert note.arguments[3] & 0xffffffff == 1000 + 16 * step
        assert number("launches") == 10 and number("loads") <= 2 and len(slow) <= 2, slow
        """)


def test_names_made_at_run_time_are_the_same_names(run):
    run("""
        for step in range(5):
            # As of a dict that was read from a file: equal to the parameter's name, and another object.
            options = {"".join(["BLO", "CK"]): 256, "".join(["num_", "warps"]): 8, "".join(["n"]): 1000}
            add[(4,)](x, y, out, **options)
        assert number("launches") == 5 and len(slow) <= 2, slow
        """)


def test_a_device_is_part_of_what_is_known(run):
    run("""
        on_second = [Tensor((1 << 41) + 64 * i, 1) for i in range(3)]
        current[1] = 0x77
        contexts = set()
        for repeat in range(3):
            add[(1,)](x, y, out, 1000, BLOCK=256)
            assert not last().stream
            contexts.add((0, last().context))
            add[(1,)](*on_second, 1000, BLOCK=256)
            assert last().stream == 0x77
            contexts.add((1, last().context))
        assert (len(contexts), number("loads")) == (2, 2) and len(slow) <= 3
        for repeat in range(2):
            with expect(tessera.ArgumentError, "E054", "`y_ptr` is on GPU 1", "`x_ptr` is on GPU 0"):
                add[(1,)](x, on_second[1], out, 1000, BLOCK=256)
        """)


def test_buffers_of_peers_are_a_tuple(run):
    # As torch's symmetric memory gives them: each on the GPU that launches, wherever it lies.
    run("""
        @tessera.jit
        def total(buffers, out_ptr, n, WORLD: tl.constexpr, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(buffers[0] + i, mask=i < n)
            for peer in tl.static_range(1, WORLD):
                x += tl.load(buffers[peer] + i, mask=i < n)
            tl.store(out_ptr + i, x, mask=i < n)

        set_current = ctypes.CDLL("libcuda.so.1").cuCtxSetCurrent
        get_current = lambda: (fake.cuCtxGetCurrent(ctypes.byref(found)), found.value)[1]
        found = ctypes.c_void_p()
        current.update({0: 0x50, 1: 0x51})
        for device in (1, 0):
            out = Tensor(1 << 39, device)
            contexts = set()
            for time in range(4):
                known = len(slow)
                peers = tuple(Tensor((1 << 40) + (peer << 32) + (time << 20), device) for peer in range(3))
                set_current(ctypes.c_void_p(0x1234560))
                total[(2,)](peers, out, 1000, WORLD=3, BLOCK=256)
                assert get_current() == 0x1234560, "what was current stays so"
                assert list(last().arguments) == [x.address for x in (*peers, out)] + [0] * 4
                assert last().stream == 0x50 + device
                assert len(slow) == known or time < 2
                contexts.add(last().context)
            assert len(contexts) == 1 and 0x1234560 not in contexts
            for time in range(2):
                mixed = (peers[0], Tensor(1 << 41, 1 - device), peers[2])
                with expect(tessera.ArgumentError, "E054", f"is on GPU {1 - device}", f"is on GPU {device}"):
                    total[(2,)](mixed, out, 1000, WORLD=3, BLOCK=256)
        """)


def test_a_stream_that_is_given_stays(run):
    run("""
        current[0] = 5
        stream = SimpleNamespace(cuda_stream=0x99)
        for repeat in range(3):
            add[(1,)](x, y, out, 1000, BLOCK=256, stream=stream)
            assert last().stream == 0x99
            add[(1,)](x, y, out, 1000, BLOCK=256, stream=0x88)
            assert last().stream == 0x88
            add[(1,)](x, y, out, 1000, BLOCK=256)
            assert last().stream == 5
        assert len(slow) <= 4
        """)


def test_other_arrays_and_their_streams(run):
    run("""
        class CudaArray:
            def __init__(self, stream):
                self.__cuda_array_interface__ = {
                    "shape": (4,), "typestr": "<f4", "data": ((1 << 40) + 512, False),
                    "version": 3, "stream": stream,
                }
        add[(1,)](CudaArray(0x44), CudaArray(0x44), CudaArray(None), 1000, BLOCK=256)
        assert last().stream == 0x44 and number("waits") == 0
        add[(1,)](x, CudaArray(0x44), out, 1000, BLOCK=256)
        calls = (ctypes.c_char * 4096).in_dll(fake, "fake_calls").value.decode()
        assert calls == "launch 44; record 44; wait 0 for 44; launch 0; " and number("waits") == 0
        """)


CLASS_OF_CUDA_ARRAYS = """
        class CudaArray:
            # As of CuPy.
            def __init__(self, stream=None, address=(1 << 40) + 512, device=0, read_only=False, mask=None):
                self.stream, self.address, self.read_only, self.mask = stream, address, read_only, mask
                self.device = SimpleNamespace(id=device)
            @property
            def __cuda_array_interface__(self):
                return {"shape": (4,), "typestr": "<f4", "data": (self.address, self.read_only),
                        "version": 3, "stream": self.stream, "mask": self.mask}
"""


def test_arrays_of_cupy_are_launched_warm(run):
    run(CLASS_OF_CUDA_ARRAYS + """
        def launch(*streams, **more):
            arrays = [CudaArray(stream, **more) for stream in streams]
            add[(1,)](*arrays, 1000, BLOCK=256)
            return last().stream
        for time in range(4):
            for stream in (None, 1, 0x44, 0x45):
                known = len(slow)
                assert launch(stream, stream, None) == stream
                assert list(last().arguments[:3]) == [(1 << 40) + 512] * 3
                assert len(slow) == known or time < 2, (time, stream)
            # On another GPU, at another address.
            for device in (1, 0):
                known = len(slow)
                assert launch(0x46, None, None, device=device, address=(1 << 40) + 1024 * time) == 0x46
                assert len(slow) == known or time < 2
                contexts = last().context
        assert number("waits") == 0
        # And what is wrong stays so.
        for time in range(2):
            for more, text in (({"read_only": True}, "read-only"), ({"mask": 1}, "has a mask"),
                               ({"address": 0}, "address 0")):
                with expect(tessera.ArgumentError, "E054", text):
                    launch(None, None, None, **more)
            with expect(tessera.ArgumentError, "E054", "names stream 0"):
                launch(0, None, None)
            with expect(tessera.ArgumentError, "E054", "is on GPU 1"):
                add[(1,)](CudaArray(), CudaArray(device=1), CudaArray(), 1000, BLOCK=256)
        """)


@pytest.mark.parametrize("torch_first", [True, False])
def test_arrays_without_a_stream_are_not_on_that_of_torch(run, torch_first):
    run(CLASS_OF_CUDA_ARRAYS + f"""
        current[0] = 0x77
        for time in range(4):
            for of_torch in ({torch_first}, {not torch_first}):
                known = len(slow)
                arrays = (x, y, out) if of_torch else [CudaArray() for _ in range(3)]
                add[(1,)](*arrays, 1000, BLOCK=256)
                assert last().stream == (0x77 if of_torch else None), (time, of_torch)
                assert len(slow) == known or time < 2
        """)


def test_refusals_name_kernel_grid_and_cause(run):
    run("""
        with expect(tessera.LaunchError, "E066", "\'add\'", "(1, 70000, 1)", "axis 1 has 70000"):
            add[(1, 70000)](x, y, out, 1000, BLOCK=256)
        add[(7,)](x, y, out, 1000, BLOCK=256)
        fail_with(700)
        for repeat in range(2):
            with expect(tessera.LaunchError, "E066", "ILLEGAL_ADDRESS", "\'add\' with grid (7, 1, 1)"):
                add[(1,)](x, y, out, 1000, BLOCK=256)
        """)


def test_a_cubin_for_another_gpu_is_told(run):
    run("""
        kernel = tessera.compile(add, "*fp32, *fp32, *fp32, i32, 256", target="sm_80")
        with expect(tessera.LaunchError, "E066", "capability 8.0", "fake GPU 0", "has 9.0"):
            kernel[(1,)](x, y, out, 1000)
        kernel = tessera.compile(add, "*fp32, *fp32, *fp32, i32, 256", target="cuda")
        kernel[(3,)](x, y, out, 1000)
        assert last().grid[0] == 3
        """)


def test_devices_are_described(run):
    run("""
        from tessera import _C
        assert _C.cuda_is_available() and _C.cuda_device_count() == 2
        info = _C.cuda_device_info(1)
        assert info["name"] == "fake GPU 1" and info["capability"] == [9, 0]
        assert info["multiprocessors"] == 132 and info["l2_bytes"] == 1024
        assert info["memory_clock_khz"] == 2619000 and info["memory_bus_bits"] == 5120
        assert [_C.cuda_pointer_device(p) for p in (4096, 1 << 40, 1 << 41)] == [-1, 0, 1]
        try:
            _C.cuda_device_info(2)
        except _C.CoreError as error:
            assert error.info["id"] == "E066" and "no GPU 2" in error.info["message"]
        else:
            raise AssertionError
        """)


def test_the_target_is_asked_of_the_driver_once(run):
    """Host code of public kernels asks several times a launch."""
    run("""
        from tessera.machine import devices
        assert devices.current_target() == ("cuda", 90, 32)
        asked = number("attributes")
        assert asked > 0
        for _ in range(3):
            assert devices.current_target() == ("cuda", 90, 32)
        assert number("attributes") == asked
        """)


def test_the_disk_cache_serves_another_process(run):
    code = """
        from tessera.compiler import compile as compiling
        from tessera.compiler.cache import default_cache
        made = []
        compile_module = compiling._compile
        compiling._compile = lambda *a, **k: made.append(1) or compile_module(*a, **k)
        kernel = add[(3,)](x, y, out, 1000, BLOCK=256)
        assert last().grid[0] == 3 and kernel.metadata["arch"] == "sm_90a"
        print(len(made), default_cache().bad, kernel.n_regs > 0)
        """
    assert [run(code) for _ in range(2)] == ["1 0 True\n", "0 0 True\n"]


WITHOUT_PTXAS = """
        import warnings
        from tessera.compiler.toolchain import ToolchainWarning
        tessera.settings.ptxas = "driver"
        caught = []
        warnings.showwarning = lambda message, category, *place: caught.append((category, str(message)))
        warnings.simplefilter("always")
        def jit_with(code): ctypes.c_int.in_dll(fake, "fake_jit").value = code
"""


def test_without_ptxas_the_driver_assembles(run):
    run(WITHOUT_PTXAS + """
        kernel = add[(3,)](x, y, out, 1000, BLOCK=256)
        assert last().grid[0] == 3 and number("loads") == 1
        assert kernel.metadata["assembler"] == "driver"
        assert kernel.n_regs == 32 and kernel.n_spills == 32, "as the driver has them"
        assert ".visible .entry add" in kernel.asm["ptx"] and "cubin" not in kernel.asm
        with expect(tessera.LaunchError, "E063", "'add' has no cubin".replace("'", "`"), "nvidia-cuda-nvcc"):
            kernel.asm["cubin"]
        assert "registers" in kernel._kernel.device_facts(0)["log"]
        # Once a process: that of a driver of CUDA 13.0.
        add[(3,)](x, y, out, 1000, BLOCK=512)
        (category, text), = caught
        assert category is ToolchainWarning and "CUDA 13.0's driver is known to" in text

        # From the disk, and ahead of time.
        copy = tessera._C.Kernel.deserialize(kernel._kernel.serialize())
        assert copy.stage("ptx") == kernel.asm["ptx"] and copy.stage("cubin") is None
        copy.launch_cuda(0, 0, (4, 1, 1), [x.address, y.address, out.address, 10])
        assert last().grid[0] == 4
        ahead = tessera.compile(add, "*fp32, *fp32, *fp32, i32, 256", target="sm_80")
        assert ".target sm_80" in ahead.asm["ptx"] and list(ahead.asm)[-1] == "ptx"
        """)


def test_the_disk_cache_keeps_ptx_apart_from_cubins(run):
    code = """
        from tessera.compiler import compile as compiling
        made = []
        compile_module = compiling._compile
        compiling._compile = lambda *a, **k: made.append(1) or compile_module(*a, **k)
        for ptxas in ("driver", ""):
            tessera.settings.ptxas = ptxas
            kernel = add[(3,)](x, y, out, 1000, BLOCK=256 if ptxas else 512)
            assert (kernel.metadata["assembler"] == "driver") == bool(ptxas)
            assert last().grid[0] == 3
        print(len(made))
        # What one has made is not what the other asks for.
        tessera.settings.ptxas = "driver"
        kernel = add[(3,)](x, y, out, 1000, BLOCK=128)
        assert kernel.metadata["assembler"] == "driver"
        """
    assert [run(code) for _ in range(2)] == ["2\n", "0\n"]
    swapped = code.replace("BLOCK=128", "BLOCK=1024").replace(
        "256 if ptxas else 512", "512 if ptxas else 256"
    )
    assert run(swapped) == "2\n"


def test_what_the_drivers_assembler_refuses(run):
    run(WITHOUT_PTXAS + """
        for code, *texts in (
            (218, "kernel 'add'", "there is no ptxas", "more registers than a thread may have"),
            (222, "kernel 'add'", "line 7; words", "nvidia-cuda-nvcc, or a newer driver"),
            (221, "nvidia-cuda-nvcc, or all of the driver"),
            (201, "kernel 'add'", "line 7; words"),
        ):
            jit_with(code)
            with expect(tessera.LaunchError, "E066", *texts):
                add[(3,)](x, y, out, 1000, BLOCK=256)
        jit_with(0)
        add[(3,)](x, y, out, 1000, BLOCK=256)
        assert number("launches") == 1
        """)


def test_a_missing_ptxas_is_found_missing(run, monkeypatch):
    if os.path.exists("/usr/local/cuda/bin/ptxas"):
        pytest.skip("there is a toolkit where they are looked for")
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, "/nowhere")
    run(WITHOUT_PTXAS.replace('"driver"', '""') + """
        import importlib.util
        importlib.util.find_spec = lambda name: None
        assert add[(3,)](x, y, out, 1000, BLOCK=256).metadata["assembler"] == "driver"
        assert len(caught) == 2 and "there is no ptxas" in caught[0][1]
        """)


def test_a_setting_that_names_no_program_is_no_missing_ptxas(run):
    run("""
        with tessera.settings.override(ptxas="/nowhere/ptxas"):
            with expect(tessera.LaunchError, "E063", "'/nowhere/ptxas' is not a program"):
                add[(3,)](x, y, out, 1000, BLOCK=256)
        """)


def test_releases_that_miscompile_are_warned_of_once(run):
    run("""
        import warnings
        from tessera.compiler import toolchain
        from tessera.compiler.toolchain import ToolchainWarning, miscompiles, ptxas_version
        version = ptxas_version(toolchain.find_ptxas())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for block in (256, 512):
                kernel = add[(3,)](x, y, out, 1000, BLOCK=block)
                assert kernel.metadata["assembler"] == version
        texts = [str(item.message) for item in caught]
        assert len(texts) == miscompiles(version), texts
        assert all(f"ptxas {version} is known to miscompile" in text for text in texts)

        def warned(version, arch="sm_90a"):
            toolchain._warned_of.clear()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                toolchain.warn_of_assembler(version, arch)
                toolchain.warn_of_assembler(version, arch)
            assert len(caught) <= 1 and all(item.category is ToolchainWarning for item in caught)
            return len(caught)
        for version, bad in (("12.7.2", 0), ("12.8.61", 1), ("12.9.86", 1), ("13.0.88", 1),
                             ("13.1.80", 0), ("13.4.59", 0), ("driver 12.8", 1),
                             ("driver 13.1", 0), ("", 0), ("driver", 1)):  # none is there
            assert warned(version) == bad, version
        assert not warned("13.0.88", "sm_80")
        """)


def test_a_launch_that_names_libraries_stays_warm(run, tmp_path):
    library = tmp_path / "library.ll"
    library.write_text("define float @half(float %x) { %y = fmul float %x, 0.5\n ret float %y }")
    run(f"""
        @tl.core.extern
        def half(x):
            return tl.extern_elementwise("mine", "", [x], {{(tl.float32,): ("half", tl.float32)}}, True)

        @tessera.jit
        def halve(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(out_ptr + i, half(tl.load(x_ptr + i)), mask=i < n)

        libraries = {{"mine": {str(library)!r}}}
        for repeat in range(4):
            kernel = halve[(repeat + 1,)](x, y, out, 1000, BLOCK=256, extern_libs=libraries)
            assert last().grid[0] == repeat + 1
        assert number("loads") == 1 and len(slow) <= 2 and "0f3F000000" in kernel.asm["ptx"]
        """)


def test_a_list_that_is_indexed_is_a_table_of_the_parameters(run):
    run("""
        @tessera.jit
        def each(tensors, scales, out_ptr, BLOCK: tl.constexpr):
            k, i = tl.program_id(0), tl.arange(0, BLOCK)
            tl.store(out_ptr + i, tl.load(tensors[k] + i) * scales[k])

        set = lambda name, value: setattr(ctypes.c_int.in_dll(fake, "fake_" + name), "value", value)
        for count in (17, 300):
            set("arguments", 2 * count + 1), set("maps", 2)  # what lies behind the arguments
            for time in range(3):
                tensors = [Tensor((1 << 40) + (k << 20) + (time << 12)) for k in range(count)]
                known = len(slow)
                kernel = each[(count,)](tensors, list(range(2, count + 2)), out, BLOCK=256)
                assert len(slow) == known or time < 2
                assert list(last().maps[0]) == [x.address for x in tensors[:16]]
                assert list(last().maps[1]) == list(range(2, 18))
            assert kernel.metadata["argument_tables"] == [0, count]
            alone = each.warmup(tensors, list(range(2, count + 2)), out, BLOCK=256, tensor_maps=False)
            assert not alone.metadata["argument_tables"], "for launchers of others"
        """)


def test_tensor_maps_are_made_at_each_launch(run):
    run(MATMUL_OF_TILES + """
        a, b, c = array(1 << 40), array((1 << 40) + (1 << 20)), Tensor((1 << 40) + (1 << 21))
        def launch(m, n, k, lda=4096, ldb=8192):
            return matmul[(1, 1)](a, b, c, m, n, k, lda, ldb, 4096, BM=64, BN=64,
                                  tensor_maps=True)
        kernel = launch(100, 200, 300)
        assert len(kernel.metadata["tensor_maps"]) >= 2, "of what is loaded first"
        assert len(kernel.metadata["arguments"]) == 9
        set = lambda name, value: setattr(ctypes.c_int.in_dll(fake, "fake_" + name), "value", value)
        set("arguments", 9), set("maps", 2)

        def check(m, n, k, lda, ldb):
            note = last()
            for words, base, extents, stride in (
                (note.maps[0], a, (k, m), 2 * lda), (note.maps[1], b, (n, k), 2 * ldb),
            ):
                assert words[0] & 0xffff == 6 | 2 << 8, "two dimensions of float16"
                assert words[1] == base.address and (words[2], words[3]) == extents
                assert words[7] == stride and words[10] == words[11] == 64

        for m, n, k, lda, ldb in ((100, 200, 300, 4096, 8192), (1000, 7, 33, 64, 128)):
            launch(m, n, k, lda, ldb)
            check(m, n, k, lda, ldb)
        launches = number("launches")
        known = len(slow)
        launch(500, 600, 700)
        check(500, 600, 700, 4096, 8192)
        assert len(slow) == known, "a warm launch needs no Python"
        warps = last().block[0]

        # No map has an extent of 0 or one below: these go without, the next ones with them.
        set("maps", 0)
        for k in (0, -4):
            kernel = launch(100, 200, k)
            assert not kernel.metadata["tensor_maps"] and last().block[0] < warps
        set("maps", 2)
        launch(100, 200, 304)
        check(100, 200, 304, 4096, 8192)
        assert number("launches") == launches + 4

        # The same from the disk, in a kernel that is loaded.
        loaded = launch(64, 64, 64)._kernel
        copy = tessera._C.Kernel.deserialize(loaded.serialize())
        assert copy.metadata()["tensor_maps"] == loaded.metadata()["tensor_maps"] != []
        slots = [a.address, b.address, c.address, 10, 20, 30, 64, 128, 4096]
        copy.launch_cuda(0, 0, (1, 1, 1), slots)
        check(10, 20, 30, 64, 128)
        # Which array, and what is wrong with it.
        for changed, value, *texts in (
            (5, 0, "argument 0 (counted from 0)", "extents (10, 0) and strides (64, 1)"),
            (5, -4 % 2**32, "argument 0", "extents (10, -4)"),
            (7, 4, "argument 1", "strides (4, 1) in elements of 2 bytes"),
            (1, b.address + 8, "argument 1", f"at 0x{b.address + 8:X} with extents"),
        ):
            wrong = [*slots]
            wrong[changed] = value
            with expect(tessera.LaunchError, "E070", "'matmul', launched with grid (3, 2, 1)",
                        "tensor_maps=False", *texts):
                try:
                    copy.launch_cuda(0, 0, (3, 2, 1), wrong)
                except tessera._C.CoreError as error:
                    tessera.errors.raise_core_error(error)
        """)


def test_arrays_that_overlap_are_loaded_in_turn(run):
    """What a loop around the dot stores, the next dot must not have loaded before."""
    run("""
        @tessera.jit
        def powers(w_ptr, x_ptr, y_ptr, N, count):
            i = tl.arange(0, 64)
            for _ in range(count):
                acc = tl.zeros((64, 64), dtype=tl.float32)
                for k in range(0, N, 64):
                    w = tl.load(w_ptr + i[:, None] * N + (k + i)[None, :],
                                mask=(i[:, None] < N) & ((k + i)[None, :] < N))
                    x = tl.load(x_ptr + (k + i)[:, None] * N + i[None, :],
                                mask=((k + i)[:, None] < N) & (i[None, :] < N))
                    acc = tl.dot(w, x, acc)
                tl.store(y_ptr + i[:, None] * N + i[None, :], acc.to(tl.float16),
                         mask=(i[:, None] < N) & (i[None, :] < N))

        N, bytes = 64, 64 * 64 * 2
        begin = 1 << 40
        def launch(x, y, n=N):
            return powers[(1,)](array(begin + (1 << 20)), array(x), array(y), n, 3)
        def set(name, value): ctypes.c_int.in_dll(fake, "fake_" + name).value = value
        set("arguments", 5)

        for y, apart in (
            (begin + bytes, True), (begin - bytes, True), (begin, False),
            (begin + bytes - 128, False), (begin - bytes + 128, False),
        ):
            set("maps", 2 if apart else 0)
            kernel = launch(begin, y)
            assert bool(kernel.metadata["tensor_maps"]) == apart, hex(y - begin)
            if apart:
                assert len(kernel.metadata["tensor_maps"]) == 3
                assert kernel.metadata["arrays_apart"]
        # Fewer rows, and of these fewer columns.
        set("maps", 2)
        assert launch(begin, begin + 32 * 32 * 2, 32).metadata["tensor_maps"]

        # Compiled ahead of time there is no other variant.
        kernel = launch(begin, begin + bytes)._kernel
        copy = tessera._C.Kernel.deserialize(kernel.serialize())
        assert copy.metadata()["arrays_apart"] == kernel.metadata()["arrays_apart"]
        with expect(tessera.LaunchError, "E070", "arguments 1 and 2 (counted from 0) overlap"):
            try:
                copy.launch_cuda(0, 0, (1, 1, 1), [begin + (1 << 20), begin, begin + 128, N, 3])
            except tessera._C.CoreError as error:
                tessera.errors.raise_core_error(error)
        """)


def test_more_programs_than_tiles_are_launched_without_boxes(run):
    """The height of a group of tiles, by which an index is divided, is negative in some of them."""
    run("""
        @tessera.jit
        def grouped(a_ptr, b_ptr, c_ptr, M, N, K):
            pid, blocks_m, blocks_n = tl.program_id(0), tl.cdiv(M, 64), tl.cdiv(N, 64)
            first_m = pid // (2 * blocks_n) * 2
            group = min(blocks_m - first_m, 2)
            i = (first_m + pid % (2 * blocks_n) % group) * 64 + tl.arange(0, 64)
            j = pid % (2 * blocks_n) // group * 64 + tl.arange(0, 64)
            k = tl.arange(0, 64)
            acc = tl.zeros((64, 64), dtype=tl.float32)
            for at in range(0, K, 64):
                x = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :],
                            mask=(i[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
                y = tl.load(b_ptr + (at + k)[:, None] * N + j[None, :],
                            mask=((at + k)[:, None] < K) & (j[None, :] < N), other=0.0)
                acc = tl.dot(x, y, acc)
            tl.store(c_ptr + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))

        a, b, c = array(1 << 40), array((1 << 40) + (1 << 20)), Tensor((1 << 40) + (1 << 21))
        def set(name, value): ctypes.c_int.in_dll(fake, "fake_" + name).value = value
        set("arguments", 6), set("maps", 2)
        # 3 x 2 tiles in groups of two rows.
        for programs, fits in ((6, True), (8, True), (9, False), (600, False), (1, True)):
            set("maps", 2 if fits else 0)
            kernel = grouped[(programs,)](a, b, c, 192, 128, 64, tensor_maps=True)
            assert bool(kernel.metadata["tensor_maps"]) == fits, programs
            assert bool(kernel.metadata["program_bounds"]) == fits, programs

        # From the disk, in a kernel that is loaded; compiled ahead of time it has no other variant.
        loaded = kernel._kernel
        copy = tessera._C.Kernel.deserialize(loaded.serialize())
        slots = [a.address, b.address, c.address, 192, 128, 64]
        copy.launch_cuda(0, 0, (8, 1, 1), slots)
        with expect(tessera.LaunchError, "E070", "'grouped', launched with grid (9, 1, 1)",
                    "divided by may be negative"):
            try:
                copy.launch_cuda(0, 0, (9, 1, 1), slots)
            except tessera._C.CoreError as error:
                tessera.errors.raise_core_error(error)
        """)
