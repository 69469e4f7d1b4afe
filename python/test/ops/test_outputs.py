# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`out=` of operators, and the rules of torch: of a third of them by default, `--every-combination` for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tessera  # noqa: E402
from tessera import ops  # noqa: E402
from tessera.calls.outputs import library_of  # noqa: E402

from . import scheme  # noqa: E402
from .test_operators import CASES, NAMES  # noqa: E402

IN_PLACE = {name for name in NAMES if name.endswith("_step")}
WITHOUT = IN_PLACE | {"unique", "unique_consecutive"}
"""Steps write in place; the shape of these depends on elements."""


def called(case: scheme.Case, library: str) -> Any:
    """A function of out= that calls the case, and the results without."""
    dtype = case.dtypes[0]
    layout = scheme.LAYOUTS[len(case.name) % len(scheme.LAYOUTS)]
    args = list(case.make(scheme.Maker(dtype, layout, 7)))
    settings = dict(case.settings)
    if library == "numpy":
        args = [scheme._in("numpy", each) for each in args]
        settings = {key: scheme._in("numpy", each) for key, each in settings.items()}

    def call(**out: Any) -> Any:
        return case.op(*args, **settings, **out)

    return call, args


def some_cases() -> list[scheme.Case]:
    """A case of each operator that the table calls by name."""
    found: dict[str, scheme.Case] = {}
    for case in CASES:
        # Others are lambdas, which choose arguments.
        name = getattr(case.op, "__name__", "")
        name = case.name.split()[0] if name == "<lambda>" else name
        if name in NAMES and name not in WITHOUT:
            found.setdefault(name, case)
    return list(found.values())


SOME = some_cases()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    scheme.parametrize(metafunc, [case.name for case in SOME], 3)


def accepts(call: Any, out: Any) -> Any:
    try:
        return call(out=out)
    except TypeError as error:  # a lambda that passes nothing on
        pytest.skip(str(error))


def empty_like(result: Any, kind: str) -> Any:
    """An array for a result: dense, with gaps, or of a wider type, filled with another value."""
    is_torch = library_of(result) == "torch"
    wide = {"float32": "float64", "int32": "int64", "bool": "uint8"}
    name = str(result.dtype).removeprefix("torch.")
    dtype = wide.get(name, name) if kind == "wider" else name
    shape = tuple(result.shape)
    if kind == "gaps" and shape:
        shape = (*shape[:-1], 2 * shape[-1])
    made = torch.empty(shape, dtype=getattr(torch, dtype)) if is_torch else np.empty(shape, dtype)
    made[...] = 77
    return made[..., ::2] if kind == "gaps" and shape else made


def test_all_operators(number: int) -> None:
    case = SOME[number]
    for library, kinds in (("torch", ("dense", "wider")), ("numpy", ("gaps",))):
        if library not in case.libraries or (library == "numpy" and number % 3):
            continue
        call, args = called(case, library)
        before = [each.clone() if torch.is_tensor(each) else each for each in args]
        expected = call()
        results = scheme.as_tuple(expected)
        for kind in kinds:
            outs = tuple(empty_like(each, kind) for each in results)
            found = accepts(call, outs if isinstance(expected, tuple) else outs[0])
            for out, one, want in zip(outs, scheme.as_tuple(found), results, strict=True):
                assert one is out
                a, b = np.asarray(out), np.asarray(want)
                np.testing.assert_array_equal(a, b.astype(a.dtype))
        for each, was in zip(args, before):
            assert not torch.is_tensor(each) or torch.equal(each, was)


def test_kernels_write_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense arrays of the result's type are outputs of the launch itself, and are not copied to."""
    from tessera.ops import outputs

    copied: list[Any] = []
    monkeypatch.setattr(outputs, "_MAX_COPIED", 0)
    monkeypatch.setattr(outputs, "assign", lambda target, result: copied.append(target))
    x = torch.randn(4, 8)
    index = torch.randint(8, (4, 8))
    for call in (
        lambda out: ops.softmax(x, 1, out=out[0]),
        lambda out: ops.layer_norm(x, (8,), out=out[0]),
        lambda out: ops.cumsum(x, 1, out=out[0]),
        lambda out: ops.cummax(x, 1, out=out),
        lambda out: ops.sort(x, out=out),
        lambda out: ops.gather(x, 1, index, out=out[0]),
        lambda out: ops.argmax(x[None].expand(8, 4, 8), 0, out=out[1]),
        lambda out: ops.dropout(x, seed=1, out=out[0]),
    ):
        call((torch.zeros(4, 8), torch.zeros(4, 8, dtype=torch.int64)))
    assert not copied
    ops.softmax(x, 1, out=x.t().contiguous().t())
    assert len(copied) == 1


def test_an_argument_is_out() -> None:
    for make in (torch.from_numpy, lambda x: x):
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        want = np.cumsum(x, 0)
        given = make(x)
        assert ops.cumsum(given, 0, out=given) is given
        np.testing.assert_array_equal(x, want)
        x[...] = np.arange(12).reshape(3, 4)
        want = x[:2, ::-1].cumsum(1)[:, :3] if library_of(given) == "numpy" else None
        if want is not None:
            ops.cumsum(x[:2, ::-1], 1, out=np.zeros((2, 4), np.float32))
            ops.cumsum(x[:2, 1:], 1, out=x[1:, :3])
            np.testing.assert_array_equal(x[1:, :3], [[1, 3, 6], [5, 11, 18]])


def test_rules_of_torch() -> None:
    x = torch.randn(3, 4)
    empty = torch.empty(0)
    assert ops.softmax(x, 1, out=empty) is empty
    torch.testing.assert_close(empty, x.softmax(1))
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    ops.topk(x, 2, out=(values, places))
    torch.testing.assert_close(values, x.topk(2)[0])
    y = torch.zeros(3, 4)
    version = y._version
    ops.softmax(x, 1, out=y)
    assert y._version > version
    assert ops.sum(x, 1, out=torch.zeros(3, dtype=torch.float64)).dtype == torch.float64
    with torch.no_grad():
        ops.softmax(x.requires_grad_(), 1, out=y)
    assert not y.requires_grad


def test_refused() -> None:
    x = torch.randn(3, 4)
    base = torch.zeros(8)
    with torch.inference_mode():
        inner = torch.zeros(3, 4)
        assert ops.softmax(x, 1, out=inner) is inner
    for out, why in (
        (inner, "inference tensor"),
        (torch.zeros(4, 3), r"shape \(4, 3\), and the result \(3, 4\)"),
        (torch.zeros(3, 4, dtype=torch.int64), "elements of int64, and the result float32"),
        (torch.zeros(3, 4, dtype=torch.complex64), "elements of torch.complex64"),
        (torch.zeros(4).expand(3, 4), "several elements in one place"),
        (np.zeros((3, 4), np.float32), "arrays of torch on cpu, and an array of numpy"),
        ((torch.zeros(3, 4), torch.zeros(3, 4)), "2 arrays as out, and has 1 results"),
        (3, "which is an int"),
    ):
        with pytest.raises(tessera.ArgumentError, match=why) as error:
            ops.softmax(x, 1, out=out)
        assert "E093" in str(error.value) and "\nfix: pass" in str(error.value)
    with pytest.raises(tessera.ArgumentError, match="E093.*share memory"):
        ops.var_mean(torch.randn(4, 3), 1, out=(base[:4], base[3:7]))
    with pytest.raises(tessera.ArgumentError, match="E093.*2 results"):
        ops.sort(x, out=torch.zeros(3, 4))
    fixed = np.zeros((3, 4), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(tessera.ArgumentError, match="E093.*read-only"):
        ops.softmax(x.numpy(), 1, out=fixed)
    for given, out in (
        (x.clone().requires_grad_(), torch.zeros(3, 4)),
        (x, torch.zeros(3, 4).requires_grad_()),
    ):
        with pytest.raises(tessera.ArgumentError, match="E094.*requires a gradient"):
            ops.softmax(given, 1, out=out)
    with pytest.raises(tessera.ArgumentError, match="E094.*requires a gradient"):
        ops.stack([x.clone().requires_grad_(), x], out=torch.zeros(2, 3, 4))
    jnp = pytest.importorskip("jax.numpy")
    with pytest.raises(tessera.ArgumentError, match="E093.*never changes"):
        ops.softmax(jnp.ones(3), out=jnp.ones(3))


def test_nothing_stays_behind() -> None:
    """A call that fails, or has no launch, leaves no array for the next one."""
    x, y = torch.randn(3, 4), torch.full((3, 4), 5.0)
    with pytest.raises(tessera.ArgumentError):
        ops.softmax(x, 7, out=y)
    ops.softmax(x, 1)
    assert (y == 5).all()


def test_a_draw_is_done_once() -> None:
    """Also where `out` has another type, so that later draws are those of a call without `out`."""
    x, found = torch.ones(64), []
    for out in (None, torch.empty(64, dtype=torch.float64), torch.empty(0)):
        torch.manual_seed(5)
        found.append((ops.dropout(x, out=out).float(), ops.dropout(x)))
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


def test_enabled_functions() -> None:
    """torch's functions with out= are ours inside of enable(), or torch's where theirs resizes."""
    x, y = torch.randn(3, 4), torch.zeros(3, 4)
    want = torch.cumsum(x, 1)
    with ops.enable() as used:
        torch.cumsum(x, 1, out=y)
        torch.clamp(x, 0, out=x)
    torch.testing.assert_close(y, want)
    assert used.taken == {"cumsum": 1, "clamp": 1} and (x >= 0).all()
    with ops.enable() as used, pytest.warns(UserWarning, match="resized"):
        torch.cumsum(x, 1, out=torch.zeros(2))
    assert "shape (2,)" in str(used.refused["cumsum"])
