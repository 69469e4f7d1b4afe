# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stream of a launch on a GPU and those of its arrays: what the driver is called with, in which
order, and for which stream arrays are exported. Each launch goes the whole way first, then the
warm one. The driver is a fake one (fake_gpu.py)."""

from __future__ import annotations

from runtime.fake_gpu import HOST_TENSOR, driver, pytestmark, run  # noqa: F401

ARRAYS = '''
        import gc, itertools, os, threading

        class DLTensor(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("device", ctypes.c_int32),
                        ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                        ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

        class Versioned(ctypes.Structure):
            _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("owner", ctypes.c_void_p),
                        ("release", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]

        api = ctypes.pythonapi
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        destroyed = []
        destroy = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda capsule: destroyed.append(1))

        class Exporter:
            """An array on a GPU that has DLPack alone."""
            name = b"dltensor_versioned"
            error, is_counted = None, False
            def __init__(self, address=(1 << 40) + 1024, device=0, read_only=False):
                self.shape = (ctypes.c_int64 * 1)(64)
                tensor = DLTensor(address, 2, device, 1, 2, 32, 1, self.shape)
                self.made = Versioned(1, 0, None, None, read_only, tensor)
                self.asked, self.meanwhile = [], lambda: None
            def __dlpack_device__(self):
                return (2, self.made.tensor.device)
            def __dlpack__(self, *, stream=None, max_version=None):
                self.asked.append(stream)
                self.meanwhile()
                if self.error:
                    raise self.error
                # Python as a destructor would meet the exceptions that others raise.
                destructor = ctypes.cast(destroy, ctypes.c_void_p) if self.is_counted else None
                return api.PyCapsule_New(ctypes.addressof(self.made), self.name, destructor)

        class Interface:
            """As of CuPy."""
            device = SimpleNamespace(id=0)
            def __init__(self, stream=None):
                self.stream = stream
            @property
            def __cuda_array_interface__(self):
                return {"shape": (64,), "typestr": "<f4", "data": ((1 << 40) + 512, False),
                        "version": 3, "stream": self.stream}

        def calls():
            noted = (ctypes.c_char * 4096).in_dll(fake, "fake_calls")
            text = noted.value.decode()
            noted.value = b""
            # 1 is another name of the legacy default stream.
            return [" ".join("0" if word == "1" else word for word in call.split())
                    for call in text.split("; ")[:-1]]

        def expected(arrays, given):
            """The stream of a launch, by the rule of the page, and the driver's calls."""
            named = [array.stream for array in arrays if isinstance(array, Interface) and array.stream]
            if given is not None:
                stream = given
            elif any(isinstance(array, Tensor) for array in arrays):
                stream = current[0]
            else:
                stream = named[0] if named else 0
            stream = 0 if stream == 1 else stream
            others = list(dict.fromkeys(0 if each == 1 else each for each in named))
            orders = [(f"record {each:x}", f"wait {stream:x} for {each:x}")
                      for each in others if each != stream]
            return stream, sorted(orders), f"launch {stream:x}"

        def check(arrays, given=None):
            for array in arrays:
                if isinstance(array, Exporter):
                    array.asked.clear()
            options = {} if given is None else {"stream": given}
            add[(1,)](*arrays, 1000, BLOCK=256, **options)
            stream, orders, launched = expected(arrays, given)
            found = calls()
            assert found[-1] == launched, (found, launched)
            pairs = list(zip(found[:-1:2], found[1:-1:2]))
            assert sorted(pairs) == orders and len(found) == 2 * len(orders) + 1, (found, orders)
            for array in arrays:
                if isinstance(array, Exporter):
                    assert set(array.asked) == {stream or 1}, (array.asked, stream)
            assert number("waits") == 0 and number("events") == 0
'''


def test_all_combinations(run):
    run(ARRAYS + """
        kinds = [x, Exporter(), Interface(), Interface(1), Interface(2), Interface(0x44), Interface(0x45)]
        cases = [(arrays, torchs, given) for arrays in itertools.product(kinds, repeat=3)
                 for torchs in (0, 0x77) for given in (None, 0, 0x44)]
        for time in range(3):
            known = len(slow)
            for arrays, torchs, given in cases:
                current[0] = torchs
                check(arrays, given)
            assert time < 2 or len(slow) == known, (known, len(slow))
        # An export is undone when the launch returns.
        kinds[1].is_counted = True
        for _ in range(3):
            check([kinds[1], kinds[1], x])
        assert len(destroyed) == 6
        # A stream's object is read by the whole path where an array is exported.
        for _ in range(3):
            add[(1,)](x, kinds[1], kinds[5], 1000, BLOCK=256, stream=SimpleNamespace(cuda_stream=0x99))
            assert calls() == ["record 44", "wait 99 for 44", "launch 99"]
            assert kinds[1].asked[-1] == 0x99
        """)


def test_arrays_in_tuples_descriptors_and_wrappers(run):
    run(ARRAYS + """
        from tessera.tools.tensor_descriptor import TensorDescriptor

        @tessera.jit
        def parts(pair, of, out, n):
            i = tl.arange(0, 64)
            tl.store(out + i, tl.load(pair[0] + i) + of.load([0]) + pair[1].to(tl.float32))

        current[0] = 0x77
        first, second, third = Exporter(), Exporter(1 << 40), Exporter((1 << 40) + 4)
        described = TensorDescriptor(second, [64], [1], [64])
        for time in range(4):
            known = len(slow)
            for out in (y, tessera.reinterpret(third, tl.float32), tessera.reinterpret(third, tl.int32)):
                parts[(1,)]((first, 3), described, out, 5)
                launched = calls()[-1]
                assert launched == ("launch 77" if out is y else "launch 0")
                wanted = 0x77 if out is y else 1
                assert first.asked[-1] == second.asked[-1] == wanted
                assert list(last().arguments[:1]) == [(1 << 40) + 1024]
            assert time < 2 or len(slow) == known
        # The compiled kernel, too.
        kernel = add[(1,)](x, first, y, 1000, BLOCK=256)
        for time in range(4):
            calls()
            kernel[(1,)](x, first, y, 1000)
            assert calls() == ["launch 77"] and first.asked[-1] == 0x77
        """)


def test_pinned_memory_beside_other_libraries_arrays(run):
    run(HOST_TENSOR + ARRAYS + """
        # A tensor of torch in the host's memory does not decide about the stream.
        current[0] = 0x77
        good, held = Exporter(), HostTensor(pinned)
        for time in range(4):
            known = len(slow)
            for named in (None, 0x44):
                add[(1,)](held, good, Interface(named), 1000, BLOCK=256)
                assert calls() == [f"launch {named or 0:x}"] and good.asked[-1] == (named or 1)
                assert last().arguments[0] == pinned
            assert time < 2 or len(slow) == known
        asked = len(good.asked)
        for address in (1 << 30, elsewhere):
            with expect(tessera.ArgumentError, "E054", "`x_ptr` is in the CPU's memory", "pin_memory"):
                add[(1,)](HostTensor(address), good, y, 1000, BLOCK=256)
        # An exporter whose memory is pinned, which needs no stream.
        host = Exporter(pinned + 4096)
        host.made.tensor.kind = 3
        host.__class__ = type("Pinned", (Exporter,), {"__dlpack_device__": lambda self: (3, 0)})
        for time in range(4):
            known = len(slow)
            add[(1,)](x, host, y, 1000, BLOCK=256)
            assert calls() == ["launch 77"] and host.asked[-1] is None
            assert last().arguments[1] == pinned + 4096
            assert time < 2 or len(slow) == known
        """)


def test_what_goes_wrong_while_an_array_is_exported(run):
    run(ARRAYS + """
        good = Exporter()
        launch = lambda *arrays: add[(1,)](*arrays, 1000, BLOCK=256)
        def is_warm():
            known = len(slow)
            check([x, good, y])
            return len(slow) == known
        for time in range(3):
            warm = is_warm()
        assert warm
        launches = number("launches")
        for time in range(2):
            bad = Exporter()
            for error, says in ((RuntimeError("not now"), "not now"), (BufferError("no"), "no")):
                bad.error = error
                with expect(tessera.ArgumentError, "E058", "`y_ptr`", "__dlpack__", says):
                    launch(x, bad, y)
            for error in (KeyboardInterrupt, MemoryError):
                bad.error = error
                try:
                    launch(x, bad, y)
                except error:
                    pass
                else:
                    raise AssertionError("no " + error.__name__)
            consumed = Exporter()
            consumed.name = b"used_dltensor_versioned"
            with expect(tessera.ArgumentError, "E058", "`y_ptr`", "used before"):
                launch(x, consumed, y)
            with expect(tessera.ArgumentError, "E054", "`out_ptr`", "read-only"):
                launch(x, good, Exporter(read_only=True))
            with expect(tessera.ArgumentError, "E054", "on GPU 1"):
                launch(x, Exporter(1 << 41, device=1), y)
            with expect(tessera.ArgumentError, "E054", "address 0"):
                launch(x, Exporter(0), y)
        assert number("launches") == launches and is_warm()
        # The driver may refuse to wait, as where one of the streams is recorded into a graph.
        ctypes.c_int.in_dll(fake, "fake_fail_wait").value = 1
        for time in range(3):
            with expect(tessera.LaunchError, "E066", "waiting for another stream"):
                launch(x, Interface(0x44), y)
        ctypes.c_int.in_dll(fake, "fake_fail_wait").value = 0
        assert number("launches") == launches + 1 and number("events") == 0
        calls()

        # One that lies elsewhere each time is right, too.
        moving = Exporter()
        def move():
            moving.made.tensor.data += 1024
        moving.meanwhile = move
        for time in range(4):
            launch(x, moving, y)
            assert last().arguments[1] == moving.made.tensor.data
        # And one whose export changes torch's current stream.
        changing = Exporter()
        def change():
            current[0] = 0x77 if len(changing.asked) % 2 else 0
        changing.meanwhile = change
        for time in range(4):
            calls()
            launch(x, changing, y)
            assert calls()[-1] == f"launch {changing.asked[-1] & ~1:x}" or changing.asked[-1] == 0x77
        """)


def test_threads_and_forks(run):
    run(ARRAYS + """
        import numpy as np
        good, other = Exporter(), Interface(0x44)
        for time in range(3):
            check([x, good, other])
        failed = []
        def work():
            try:
                for _ in range(200):
                    add[(1,)](x, good, other, 1000, BLOCK=256)
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        calls()
        assert not failed and number("events") == 0 and set(good.asked) == {1}
        child = os.fork()
        if child == 0:
            a = np.ones(4, np.float32)
            out_of_child = np.zeros(4, np.float32)
            add[(1,)](a, a, out_of_child, 4, BLOCK=4)
            os._exit(int(out_of_child.tolist() != [2.0] * 4))
        assert os.waitpid(child, 0)[1] == 0
        # Arrays that are gone: another one at the same address, of the same class.
        for time in range(20):
            check([x, Exporter((1 << 40) + 16 * time), other])
        class Other(Exporter):
            pass
        for time in range(3):
            check([x, Other(), other])
        del Other
        gc.collect()
        check([x, good, other])
        """)
