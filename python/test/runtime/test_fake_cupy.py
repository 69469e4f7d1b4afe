# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Known calls of operators with arrays of CuPy, on a CUDA driver that only notes launches down
(fake_cuda.c). The module `cupy` has as much of CuPy as a call looks at."""

from __future__ import annotations

from runtime.fake_gpu import driver, pytestmark, run  # noqa: F401

CUPY = """
        import itertools
        import numpy as np

        del sys.modules["torch"]

        free = itertools.count(1 << 40, 1 << 20)

        class Device:
            def __init__(self, number): self.id = number
            def __eq__(self, other): return self.id == other.id
            def __enter__(self): entered.append(self.id)
            def __exit__(self, *error): pass
        entered = []

        class ndarray:
            base = shape = None
            def __init__(self, shape, dtype, strides=None, address=None, device=0):
                like = np.empty(shape, dtype)
                self.shape, self.dtype, self.size, self.ndim = like.shape, like.dtype, like.size, like.ndim
                self.strides = like.strides if strides is None else strides
                self.flags = SimpleNamespace(c_contiguous=self.strides == like.strides)
                self.data = SimpleNamespace(ptr=next(free) if address is None else address)
                self.device = Device(device)
            def view(self, address=None):
                made = ndarray(self.shape, self.dtype, self.strides, self.data.ptr, self.device.id)
                made.base = self
                return made
            @property
            def __cuda_array_interface__(self):
                return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False),
                        "version": 3, "stream": None, "strides": self.strides}
        ndarray.__module__ = "cupy"

        def empty(shape, dtype):
            made.append(ndarray(shape, dtype, device=entered[-1] if entered else 0))
            return made[-1]
        made = []
        cupy = types.ModuleType("cupy")
        cupy.ndarray, cupy.empty, cupy.result_type = ndarray, empty, np.result_type
        sys.modules["cupy"] = cupy

        import contextlib
        from tessera.calls import function, pointwise
        @contextlib.contextmanager
        def python_refused():
            def refuse(): raise AssertionError("Python did the call")
            was = function.is_tracing
            function.is_tracing = pointwise.is_tracing = refuse
            yield
            function.is_tracing = pointwise.is_tracing = was
"""


def test_known_calls_run_without_python(run):  # type: ignore[no-untyped-def]
    run(CUPY + """
        @tessera.pointwise
        def scaled(x, y, factor):
            return x * factor + y

        @tessera.function("x[*n], y -> out[*n / BLOCK]")
        @tessera.jit
        def shifted(x, y, out, n, BLOCK: tl.constexpr = 256):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i, mask=i < n) + y, mask=i < n)

        f32, f16 = np.dtype("float32"), np.dtype("float16")
        for call in (lambda a: scaled(a, a, 2.0), lambda a: shifted(a, 1.0)):
            for dtype in (f32, f16):
                call(ndarray((30, 100), dtype))
                for device in (0, 1):
                    call(ndarray((30, 100), dtype, device=device))
                    a = ndarray((30, 100), dtype, device=device)
                    launched = number("launches")
                    with python_refused():
                        found = call(a)
                    assert type(found) is ndarray and found is made[-1] and found.device.id == device
                    assert (found.shape, found.dtype) == (a.shape, dtype)
                    assert number("launches") == launched + 1
                    assert last().arguments[0] == a.data.ptr
                    assert found.data.ptr in list(last().arguments)
            # Another layout, type or shape is another kind of call.
            for other in (ndarray((100, 30), f32), ndarray((30, 100), f32, (4, 120)), ndarray((30, 100), np.dtype("float64"))):
                with python_refused():
                    try:
                        call(other)
                    except AssertionError as error:
                        assert "Python did" in str(error)
                    else:
                        raise SystemExit("a plan did a call of another kind")
        """)


def test_lines_of_arrays(run):  # type: ignore[no-untyped-def]
    """CuPy's devices cannot be hashed."""
    run(CUPY + """
        from tessera import ops

        f32 = np.dtype("float32")
        for call in (lambda x: ops.softmax(x, 1), lambda x: ops.cumsum(x, 0)):
            for device in (0, 1):
                for _ in range(3):
                    call(ndarray((30, 100), f32, device=device))
                x = ndarray((30, 100), f32, device=device)
                with python_refused():
                    found = call(x)
                assert found.shape == x.shape and found.device.id == device
                assert last().arguments[0] == x.data.ptr
        """)


def test_options_of_launches_are_part_of_plans(run):  # type: ignore[no-untyped-def]
    # A tuned table may have other numbers of warps than 4.
    run(CUPY + """
        from tessera import ops
        from tessera.calls.recorded import forget_plans
        from tessera.ops import normalizations

        f32 = np.dtype("float32")
        for warps in (2, 8):
            was = normalizations.choose
            normalizations.choose = lambda *args: was(*args)._replace(warps=warps)
            forget_plans()
            for _ in range(3):
                x, weight = ndarray((64, 1000), f32), ndarray((1000,), f32)
                found = ops.rms_norm(x, (1000,), weight)
                assert last().block[0] == 32 * warps
            x, weight = ndarray((64, 1000), f32), ndarray((1000,), f32)
            launched = number("launches")
            with python_refused():
                found = ops.rms_norm(x, (1000,), weight)
            normalizations.choose = was
            assert number("launches") == launched + 1 and found.shape == (64, 1000)
            assert last().block[0] == 32 * warps and last().arguments[0] == x.data.ptr
        """)
