# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in programs of JAX (tessera.jax), on the CPU."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

import tessera
import tessera.jax
import tessera.language as tl
from tessera import _C, untried
from tessera.jax import calls, interface, trial


@tessera.function("x[*n], y -> out[*n / BLOCK]")
@tessera.jit
def add(x, y, out, n, BLOCK: tl.constexpr = 128):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + y, mask=i < n)


@tessera.jit
def add_arrays(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@tessera.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@tessera.jit
def add_another_number(x, number, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + number + 1, mask=i < n)


@tessera.jit
def where_am_i(out):
    place = tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2)
    at = tl.program_id(0) + 2 * tl.program_id(1) + 6 * tl.program_id(2)
    tl.store(out + at, place + 1000 * tl.num_programs(2))


@tessera.jit
def positive(x, out):
    value = tl.load(x)
    tl.device_assert(value > 0, "not positive")
    tl.store(out, value)


@tessera.jit
def both(x, out):
    tl.store(out, tl.load(x))
    tl.store(x, tl.load(out))


def sum_of(x, y):
    return tessera.jax.call(
        add_arrays, x, y, out_shape=x, grid=(tessera.cdiv(x.size, 64),), n=x.size, BLOCK=64
    )


def doubled(x):
    return tessera.jax.call(
        double, x, x.size, out_shape=x, grid=lambda meta: (tessera.cdiv(meta["n"], 64),), BLOCK=64,
        input_output_aliases={0: 0},
    )  # fmt: skip


def numbers(*shape: int, dtype="float32"):
    return jnp.asarray(np.arange(np.prod(shape)).reshape(shape) % 97, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "int8", "uint32"])
@pytest.mark.parametrize("shape", [(1000,), (3, 7), (), (0, 4)])
def test_inside_and_outside_of_jit(dtype: str, shape: tuple[int, ...]) -> None:
    x = numbers(*shape, dtype=dtype)
    for function in (sum_of, jax.jit(sum_of)):
        result = function(x, x)
        assert isinstance(result, jax.Array) and result.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(result), np.asarray(x + x))


def test_wide_types() -> None:
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        x = numbers(70, dtype="float64") / 3
        assert sum_of(x, x).dtype == np.float64
        np.testing.assert_array_equal(np.asarray(sum_of(x, x)), np.asarray(x * 2))
        big = numbers(70, dtype="int64") + (1 << 40)
        np.testing.assert_array_equal(np.asarray(add(big, -(1 << 41))), np.asarray(big - (1 << 41)))


def test_between_operations_of_jax() -> None:
    @jax.jit
    def program(x):
        y = jnp.sin(x).T
        return sum_of(y, add(y, 2.0)) @ x

    x = numbers(40, 30) / 97
    y = jnp.sin(x).T
    np.testing.assert_allclose(program(x), (y + (y + 2.0)) @ x, rtol=1e-5)


def test_plain_calls() -> None:
    x = numbers(300)
    np.testing.assert_array_equal(add(x, 1.0), x + 1)
    np.testing.assert_array_equal(add(x, 2), x + 2)
    np.testing.assert_array_equal(jax.jit(lambda x: add(x, 1.5, BLOCK=32))(x), x + 1.5)
    result = jax.eval_shape(lambda x: add(x, 1.0), x)
    assert (result.shape, result.dtype) == (x.shape, x.dtype)


def test_the_kernel_of_a_plain_call_with_a_grid() -> None:
    function = tessera.function("x[*n], y -> out[*n / BLOCK]")(add_arrays)
    x = numbers(100)
    result = tessera.jax.call(function, x, x, out_shape=x, grid=(2,), n=100, BLOCK=64)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(x + x))


def test_programs_are_shown_with_what_they_call() -> None:
    text = str(jax.make_jaxpr(lambda x: add(x, 2.5))(numbers(30)))
    assert "tessera_launch" in text and "2.5" in text and "0x" not in text


def test_tuned_kernels_and_heuristics() -> None:
    tuned = tessera.autotune([tessera.Config({"BLOCK": 32})], key=["n"])(add.fn)

    @tessera.heuristics({"BLOCK": lambda args: tessera.next_power_of_2(args["x"].size)})
    @tessera.jit
    def whole(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + BLOCK, mask=i < n)

    x = numbers(300)
    grid = lambda meta: (tessera.cdiv(meta["n"], meta["BLOCK"]),)
    call = tessera.jax.call
    result = jax.jit(lambda x: call(tuned, x, 1.0, out_shape=x, grid=grid, n=300))(x)
    np.testing.assert_array_equal(result, x + 1)
    result = jax.jit(lambda x: call(whole, x, out_shape=x, grid=(1,), n=300))(x)
    np.testing.assert_array_equal(result, x + 512)


def test_control_flow_and_threads() -> None:
    @jax.jit
    def counted(x):
        return jax.lax.fori_loop(0, 20, lambda _, x: add(x, 1.0), x)

    inputs = [numbers(3000) + i for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(10):
            for x, result in zip(inputs, pool.map(counted, inputs)):
                np.testing.assert_array_equal(result, x + 20)


def test_arrays_of_numpy_among_them() -> None:
    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(jax.jit(lambda y: sum_of(y, x))(jnp.asarray(x)), x + x)


def test_constants_are_told_apart() -> None:
    x = numbers(30)
    results = [jax.jit(lambda x: add(x, number))(x)[0] for number in (1, 2, 1.0, -1, -0.5)]
    assert [float(result) for result in results] == [1, 2, 1, -1, -0.5]


def test_arguments_that_change_in_place() -> None:
    x = numbers(200)
    before = np.asarray(x).copy()
    np.testing.assert_array_equal(doubled(x), 2 * before)
    np.testing.assert_array_equal(x, before)  # XLA copies what is still in use
    np.testing.assert_array_equal(jax.jit(lambda x: doubled(x) + x)(x), 3 * before)
    np.testing.assert_array_equal(
        jax.jit(doubled, donate_argnums=0)(jnp.asarray(before)), 2 * before
    )
    text = jax.jit(doubled).lower(x).as_text()
    assert "output_operand_alias" in text


def test_several_outputs() -> None:
    @tessera.jit
    def split(x, low, high, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < n)
        tl.store(low + i, value - 1, mask=i < n)
        tl.store(high + i, (value + 1).to(tl.float16), mask=i < n)

    x = numbers(50)
    shapes = [x, jax.ShapeDtypeStruct((50,), jnp.float16)]
    low, high = tessera.jax.call(split, x, out_shape=shapes, grid=(1,), n=50, BLOCK=64)
    np.testing.assert_array_equal(low, x - 1)
    np.testing.assert_array_equal(high, (x + 1).astype(jnp.float16))


# --- vmap ---------------------------------------------------------------------------------


def launches_of(function, *args) -> int:
    text = jax.jit(function).lower(*args).as_text()
    assert "while" not in text
    return text.count("@tessera_launch(")


@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (0, None), (None, 1)])
def test_vmap(axes) -> None:
    x = numbers(6, 6, 70) if axes[0] is not None else numbers(6, 70)
    y = numbers(6, 6, 70) + 5 if axes[1] is not None else numbers(6, 70)
    mapped = jax.vmap(sum_of, in_axes=axes)
    np.testing.assert_array_equal(mapped(x, y), jax.vmap(jnp.add, in_axes=axes)(x, y))
    assert launches_of(mapped, x, y) == 1


def test_vmap_of_vmap() -> None:
    x, y = numbers(3, 4, 50), numbers(4, 50)
    mapped = jax.vmap(jax.vmap(sum_of), in_axes=(0, None))
    np.testing.assert_array_equal(mapped(x, y), x + y)
    other = jax.vmap(jax.vmap(sum_of, in_axes=(0, None)), in_axes=(1, 0))
    np.testing.assert_array_equal(
        other(x, y), jax.vmap(jax.vmap(jnp.add, in_axes=(0, None)), in_axes=(1, 0))(x, y)
    )
    assert launches_of(mapped, x, y) == launches_of(other, x, y) == 1


def test_vmap_in_place() -> None:
    x = numbers(5, 30)
    np.testing.assert_array_equal(jax.vmap(doubled)(x), 2 * x)
    both = jax.vmap(lambda x, y: (doubled(x), y), in_axes=(None, 0))(x[0], x)
    np.testing.assert_array_equal(both[0], [2 * x[0]] * 5)  # which is not mapped at all

    def scaled_by(x, y):  # the argument that changes is not mapped, and another one is
        @tessera.jit
        def kernel(x, y, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x + i, tl.load(x + i, mask=i < n) * tl.load(y), mask=i < n)

        return tessera.jax.call(
            kernel, x, y, out_shape=x, grid=(1,), n=30, BLOCK=32, input_output_aliases={0: 0}
        )

    scales = numbers(4, 1) + 1
    np.testing.assert_array_equal(
        jax.vmap(scaled_by, in_axes=(None, 0))(x[0], scales), x[0] * scales
    )


def test_vmap_where_the_last_axis_is_taken() -> None:
    def places(_):
        out = jax.ShapeDtypeStruct((2 * 3 * 4,), jnp.int32)
        return tessera.jax.call(where_am_i, out_shape=out, grid=(2, 3, 4))

    expected = [4000 + x + 10 * y + 100 * z for z in range(4) for y in range(3) for x in range(2)]

    def mapped(x):
        # Without an array that is mapped there would be one call for all.
        return tessera.jax.call(add_places, x, out_shape=out_shape, grid=(2, 3, 4))

    @tessera.jit
    def add_places(x, out):
        at = tl.program_id(0) + 2 * tl.program_id(1) + 6 * tl.program_id(2)
        place = tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2)
        tl.store(out + at, place + 1000 * tl.num_programs(2) + tl.load(x))

    out_shape = jax.ShapeDtypeStruct((24,), jnp.int32)
    np.testing.assert_array_equal(places(0), expected)
    x = jnp.arange(5, dtype=jnp.int32)[:, None]
    np.testing.assert_array_equal(jax.vmap(mapped)(x), np.asarray(expected) + np.asarray(x))


def test_vmap_of_a_kernel_that_reads_the_last_axis() -> None:
    @tessera.jit
    def kernel(x, out):
        tl.store(out, tl.load(x) + 100 * tl.program_id(2) + 1000 * tl.num_programs(2))

    def one(x):
        return tessera.jax.call(kernel, x, out_shape=x, grid=(1,))

    x = jnp.arange(5, dtype=jnp.int32)[:, None]
    np.testing.assert_array_equal(jax.vmap(one)(x), x + 1000)


def test_vmap_of_more_than_a_grid_holds() -> None:
    x = numbers(70000, 2)
    np.testing.assert_array_equal(jax.vmap(lambda x: add(x, 1.0))(x), x + 1)


# --- derivatives ------------------------------------------------------------------------


def test_a_derivative_of_ones_own() -> None:
    @jax.custom_vjp
    def scaled(x):
        return add(add(x, 1.0), 1.0)

    scaled.defvjp(lambda x: (scaled(x), None), lambda _, gradient: (add(gradient, 0.0),))
    x = numbers(30)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (3 * scaled(x)).sum()))(x), 3 + 0 * x)
    rows = jax.vmap(jax.grad(lambda x: (scaled(x) ** 2).sum()))(x.reshape(5, 6))
    np.testing.assert_array_equal(rows, 2 * (x.reshape(5, 6) + 2))


def test_the_example() -> None:
    root = Path(__file__).resolve().parents[3]
    subprocess.run([sys.executable, str(root / "python/examples/with_jax.py")], check=True)


# --- programs that are kept ---------------------------------------------------------------


def test_another_process_runs_what_was_exported(tmp_path) -> None:
    pytest.importorskip("flatbuffers")  # which jax.export needs
    check = jax.export.DisabledSafetyCheck.custom_call("tessera_launch")
    exported = jax.export.export(jax.jit(lambda x: add(x, 4.0)), disabled_checks=[check])
    (tmp_path / "program").write_bytes(exported(numbers(30)).serialize())
    program = (
        "import sys, jax, numpy, tessera.jax\n"
        "tessera.jax.register()\n"
        "kept = jax.export.deserialize(bytearray(open(sys.argv[1], 'rb').read()))\n"
        "x = numpy.arange(30, dtype=numpy.float32)\n"
        "assert (kept.call(x) == x + 4).all()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "program")], check=True)


# --- mistakes ------------------------------------------------------------------------------


def mistake(id: str, message: str):
    return pytest.raises(tessera.ArgumentError, match=f"(?s){id}.*{message}")


def test_a_tracer_at_a_launch() -> None:
    x = numbers(8)
    with mistake("E057", "`x` is a tracer of JAX.*tessera.jax.call"):
        jax.jit(lambda x: add[(1,)](x, 1.0, x, 8))(x)
    with mistake("E057", "tracer"):
        jax.vmap(lambda x: double[(1,)](x, 8, 8))(x.reshape(2, 4))


def test_a_tracer_that_has_left_its_program() -> None:
    kept = []
    jax.jit(lambda x: kept.append(x) or x)(numbers(8))
    with pytest.raises(jax.errors.UnexpectedTracerError):
        add(kept[0], 1.0)


def test_a_write_to_an_input() -> None:
    x = numbers(8)
    with mistake("E057", "writes to argument `x`.*input_output_aliases"):
        jax.jit(lambda x: tessera.jax.call(both, x, out_shape=x, grid=(1,)))(x)
    with mistake("E057", "out_shape is empty"):
        tessera.jax.call(double, x, 8, out_shape=(), grid=(1,), BLOCK=8)


def test_mistakes_in_calls() -> None:
    x = numbers(8)

    def call(*args, kernel=add_arrays, out_shape=x, grid=(1,), **kwargs):
        return tessera.jax.call(kernel, *args, out_shape=out_shape, grid=grid, **kwargs)

    with mistake("E057", "out_shape has an int"):
        call(x, x, out_shape=3, n=8, BLOCK=8)
    with mistake("E003", "got a builtin"):
        call(x, kernel=len)
    with mistake("E051", "takes 5 arguments, got 6"):
        call(x, x, x, 1, 2, 3)
    with mistake("E051", "no parameter for output 0"):
        call(x, x, x, 8, 8)
    with mistake("E051", "got `out` by name, which is an output"):
        call(x, x, out=x, n=8, BLOCK=8)
    with mistake("E051", "without `n`"):
        call(x, x, BLOCK=8)
    with mistake("E051", "input_output_aliases has 5: 0"):
        call(x, x, n=8, BLOCK=8, input_output_aliases={5: 0})
    with mistake("E057", "the same shape and type"):
        call(x, 8, kernel=double, out_shape=numbers(9), BLOCK=8, input_output_aliases={0: 0})
    with mistake("E057", "pass the arrays one by one"):
        call((x, x), x, n=8, BLOCK=8)
    with mistake("E057", "drop `stream`"):
        call(x, x, n=8, BLOCK=8, stream=3)
    with mistake("E057", "has no derivative.*custom_vjp"):
        jax.grad(lambda x: call(x, x, n=8, BLOCK=8).sum())(x)
    with pytest.raises(tessera.LaunchError, match="E052"):
        call(x, x, n=8, BLOCK=8, grid=(1, 2, 3, 4))
    with mistake("E054", "no kernel takes an array of complex64"):
        call(x.astype(jnp.complex64), x, n=8, BLOCK=8)


def test_an_assertion_that_does_not_hold() -> None:
    function = jax.jit(lambda x: tessera.jax.call(positive, x, out_shape=x, grid=(1,), debug=True))
    np.testing.assert_array_equal(function(jnp.ones(1)), [1])
    with pytest.raises(Exception, match=r"error\[E065\].*not positive"):
        function(-jnp.ones(1)).block_until_ready()


def test_versions_that_are_not_known(tmp_path, monkeypatch) -> None:
    assert _C.xla_handler(False, 0, 0) is None and _C.xla_handler(True, 1, 1) is None
    assert _C.xla_handler(False, 0, 9) is not None  # XLA itself judges
    header = tmp_path / "xla" / "ffi" / "api" / "c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 7\n#define XLA_FFI_API_MINOR 1\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    register = interface._register.__wrapped__
    with pytest.raises(tessera.LaunchError, match="E077.*version 7.1"):
        register()
    header.unlink()
    with pytest.raises(tessera.LaunchError, match="E077.*does not report"):
        register()


@pytest.fixture
def newer_jax(monkeypatch) -> None:
    monkeypatch.setattr(jax, "__version__", "99.1.0")
    monkeypatch.setattr(untried, "_verdicts", {})
    monkeypatch.setattr(untried, "_warned_of", set())


def test_a_newer_version_is_tried_once(newer_jax) -> None:
    x = jnp.arange(8, dtype=jnp.float32)

    @jax.jit
    def program(x):  # whose trace does not see what is tried meanwhile
        return tessera.jax.call(add_arrays, x, x, out_shape=x, grid=(1,), n=8, BLOCK=8)

    with pytest.warns(tessera.errors.UntriedVersionWarning, match="JAX 99.1.0 .*0.5 to") as caught:
        np.testing.assert_array_equal(program(x), x + x)
        tessera.jax.register()
    assert len(caught) == 1


def test_a_newer_version_that_does_not_fit_is_refused(newer_jax, monkeypatch) -> None:
    monkeypatch.setattr(trial, "_add_number", add_another_number)
    for _ in range(2):
        with pytest.raises(tessera.LaunchError, match="E077.*JAX 99.1.0.*a wrong result") as raised:
            tessera.jax.register()
        assert isinstance(raised.value.__cause__, RuntimeError)


def test_damaged_calls_are_refused() -> None:
    def lowered(**changes):
        attributes = {
            "kernel": np.zeros(3, np.uint8),
            "key": "nothing",
            "slots": np.array([1, 0], np.int64),
            "grid": np.array([1, 1, 1], np.int64),
            **changes,
        }
        attributes = {name: value for name, value in attributes.items() if value is not None}
        shape = jax.ShapeDtypeStruct((4,), np.float32)
        call = jax.ffi.ffi_call(interface.TARGET, shape, vmap_method="sequential")
        return jax.jit(lambda x: call(x, **attributes))(jnp.ones(4)).block_until_ready()

    tessera.jax.register()
    with pytest.raises(Exception, match="tessera: "):
        lowered()
    with pytest.raises(Exception, match="E057.*'key' is missing"):
        lowered(key=None)
    with pytest.raises(Exception, match="E057.*'kernel' has elements of another type"):
        lowered(kernel=np.zeros(3, np.int64))
    plan = calls.Plan(
        add_arrays, (calls.Input(0), calls.Input(0), calls.Output(0), calls.Constant(4), calls.Constant(4)),
        (((4,), np.dtype("float32")),), (), (1, 1, 1), (),
    )  # fmt: skip
    kernel = calls.compile_plan(plan, [((4,), np.dtype("float32"))], None)
    good = {"kernel": np.frombuffer(kernel.kernel, np.uint8), "key": kernel.key}
    with pytest.raises(Exception, match="E057.*no buffer 7"):
        lowered(slots=np.array([1, 7], np.int64), **good)
    with pytest.raises(Exception, match="E051"):
        lowered(slots=np.array([1, 0], np.int64), **good)
    assert (lowered(slots=np.array(kernel.slots, np.int64), **good) == 2).all()
