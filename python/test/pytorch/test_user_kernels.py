# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of users' own within compiled functions: what they give, and what torch is told that they
write to, for it copies whatever is written and read again."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tessera
import tessera.language as tl
import tessera.torch

pytestmark = pytest.mark.usefixtures("fresh_compiler")

SCALE = tl.constexpr(3.0)


@tessera.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + tl.load(y_ptr + at, mask=at < n), mask=at < n)


@tessera.constexpr_function
def half(n):
    return n // 2


@tessera.jit
def scaled(x):
    return x * SCALE + half(4)


@tessera.jit
def scale_in_place(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, scaled(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


@tessera.jit
def count(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.atomic_add(bins_ptr + x, 1, mask=at < n)


@tessera.jit
def by_rows(x_ptr, out_ptr, rows, columns, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    from_ptr, to_ptr = x_ptr, out_ptr
    for _ in range(rows):
        x = tl.load(from_ptr + at, mask=at < columns)
        if FLAG:
            tl.store(to_ptr + at, x + 1, mask=at < columns)
        from_ptr += columns
        to_ptr += columns


@tessera.jit
def either(x_ptr, y_ptr, which, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if which > 0:
        chosen = x_ptr
    else:
        chosen = y_ptr
    tl.store(chosen + at, 7.0)


@tessera.autotune([tessera.Config({"BLOCK": 64}), tessera.Config({"BLOCK": 256})], key=["n"])
@tessera.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) - 1, mask=at < n)


def written(kernel, **arguments) -> set[str]:
    """What torch takes a kernel to write to."""
    from torch._higher_order_ops import triton_kernel_wrap as wrap
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        given = {
            name: torch.empty(value) if isinstance(value, tuple) else value
            for name, value in arguments.items()
        }
    find = getattr(wrap, "identify_accessed_tensors", None)
    if find is None:  # torch 2.11
        return set(wrap.identify_mutated_tensors(kernel, given, {}))
    return {access.name for access in find(kernel, given, {}).read_writes.writes}


def test_what_is_written_is_found_in_the_ir(caplog) -> None:
    three = {"x_ptr": (8,), "y_ptr": (8,), "out_ptr": (8,), "n": 8, "BLOCK": 8}
    assert written(add, **three) == {"out_ptr"}
    assert written(scale_in_place, x_ptr=(8,), n=8, BLOCK=8) == {"x_ptr"}
    rows = {"x_ptr": (8,), "out_ptr": (8,), "rows": 2, "columns": 4, "BLOCK": 8}
    assert written(by_rows, **rows, FLAG=True) == {"out_ptr"}
    assert written(by_rows, **rows, FLAG=False) == set()
    assert written(either, x_ptr=(8,), y_ptr=(8,), which=1, BLOCK=8) == {"x_ptr", "y_ptr"}
    assert written(tuned, x_ptr=(8,), out_ptr=(8,), n=8) == {"out_ptr"}
    assert "assuming every input is mutated" not in caplog.text


def test_counts_are_written() -> None:
    def function(x):
        bins = torch.zeros(5, dtype=torch.int32)
        count[(tessera.cdiv(x.numel(), 64),)](x, bins, x.numel(), BLOCK=64)
        return bins * 2

    x = torch.randint(5, (300,), dtype=torch.int32)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    assert compiled(x).equal(torch.bincount(x, minlength=5).int() * 2)


def sum_of_two(x, y):
    out = torch.empty_like(x)
    add[(tessera.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out.relu() * 2


def sum_with_itself(x, y):
    add[(tessera.cdiv(x.numel(), 128),)](x, x, x, x.numel(), BLOCK=128)
    return x + y


def kept_and_scaled(x, y):
    scaled = x * 2
    kept = scaled + y
    scale_in_place[(tessera.cdiv(x.numel(), 64),)](scaled, x.numel(), BLOCK=64)
    return kept, scaled + kept


def with_a_grid_of_a_function(x, y):
    out = torch.zeros_like(x)
    tuned[lambda meta: (tessera.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out * y


FUNCTIONS = [sum_of_two, sum_with_itself, kept_and_scaled, with_a_grid_of_a_function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_as_eagerly(function) -> None:
    x, y = torch.randn(1000), torch.randn(1000)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    given, wanted = (x.clone(), y.clone()), (x.clone(), y.clone())
    torch.testing.assert_close(compiled(*given), function(*wanted))
    torch.testing.assert_close(given, wanted)


# --- Through views ----------------------------------------------------------------------------


@tessera.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@tessera.jit
def triple_rows(x_ptr, stride, rows, columns, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    mask = (i < rows) & (j < columns)
    at = x_ptr + i * stride + j
    tl.store(at, tl.load(at, mask=mask) * 3, mask=mask)


@tessera.jit
def five_and_six(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 5.0, mask=at < n)
    tl.store(y_ptr + n + at, 6.0, mask=at < n)


@tessera.autotune([tessera.Config({"BLOCK": 64}), tessera.Config({"BLOCK": 256})], key=["n"])
@tessera.jit
def tuned_in_place(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) - 1, mask=at < n)


def doubled(view) -> None:
    double[(1,)](view, view, 3, BLOCK=32)


def of_an_intermediate(x):
    y = x + 1
    doubled(y[1:])
    return y


def of_an_argument(x):
    doubled(x[1:])
    return x * 2


def of_columns(x):
    y = (x + 1).view(4, 5)
    for view in (y[:, 1:4], y[:, :3]):
        triple_rows[(1,)](view, view.stride(0), 4, 3, BLOCK=8)
    return y


def of_a_transposed_tensor(x):
    y = (x + 1).view(4, 5).t()
    view = y[1:, 1:]
    triple_rows[(1,)](view, view.stride(1), 3, 4, BLOCK=4)
    return y, y.contiguous()


def of_parts(x):
    y = x + 1
    first, second = y.split(10)
    doubled(second)
    doubled(y.view(4, 5).unbind(0)[1])
    doubled((y + 2).view(4, 5)[1:3].reshape(-1))
    return y, first + second


def of_another_type(x):
    y = x + 1
    view = y.view(torch.int32)[2:]
    double[(1,)](view, view, 1, BLOCK=32)
    return y


def of_a_view_of_a_view(x):
    y = x + 1
    first = y[2:]
    doubled(first)
    second = first[1:]
    doubled(second)
    z = y * 2
    double[(1,)](y[1:], z[3:], 3, BLOCK=32)
    return y, z, second.clone()


def with_values_that_stay(x):
    y = x + 1
    view = y[1:]
    before, other = y * 4, view * 3
    doubled(view)
    return y, before, other, view + 1


def by_two_arguments(x):
    y = x + 1
    five_and_six[(1,)](y[1:], y[1:], 3, BLOCK=16)
    z = x + 2
    five_and_six[(1,)](z, z[2:], 3, BLOCK=16)
    return y, z


def by_two_arguments_of_ones_own(x):
    five_and_six[(1,)](x, x, 3, BLOCK=16)
    return x + 1


def by_two_views_of_an_argument(x):
    five_and_six[(1,)](x[1:], x[2:], 3, BLOCK=16)
    return x + 1


def what_is_measured(x):
    y, z = x + 1, x + 2
    tuned_in_place[(1,)](y[1:], 5)
    tuned_in_place[(1,)](z, 5)
    return y, z


THROUGH_VIEWS = [
    of_an_intermediate, of_an_argument, of_columns, of_a_transposed_tensor, of_parts,
    of_another_type, of_a_view_of_a_view, with_values_that_stay, by_two_arguments,
    by_two_arguments_of_ones_own, by_two_views_of_an_argument, what_is_measured,
]  # fmt: skip


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", THROUGH_VIEWS)
def test_writes_through_views(function, dynamic) -> None:
    """Of an argument that begins within its memory, too."""
    compiled = torch.compile(function, backend="tessera", fullgraph=True, dynamic=dynamic)
    for start in (0, 7) if dynamic is None else (7,):
        given, wanted = (torch.arange(40.0)[start : start + 20] for _ in range(2))
        results, right = compiled(given), function(wanted)
        torch.testing.assert_close(results, right)
        torch.testing.assert_close(given, wanted)


def test_calls_that_write_to_copies_keep_eager_values(monkeypatch) -> None:
    """A kernel may have their strides as numbers, and Inductor lays its arguments out so."""
    from torch._inductor.fx_passes import post_grad

    from tessera.torch.inductor_patches import patch_inductor

    patch_inductor()
    decompose = post_grad.decompose_triton_kernel_wrapper_functional
    operators = torch.ops.higher_order
    before, after = [], []

    def find_eager_views(graph, target):
        calls = graph.find_nodes(op="call_function", target=target)
        return [call.meta["eager_input_vals"][1]["kwargs"]["x_ptr"] for call in calls]

    def decompose_and_look(graph):
        before.extend(find_eager_views(graph, operators.triton_kernel_wrapper_functional))
        decompose(graph)
        after.extend(find_eager_views(graph, operators.triton_kernel_wrapper_mutation))

    monkeypatch.setattr(post_grad, "decompose_triton_kernel_wrapper_functional", decompose_and_look)
    with torch._inductor.config.patch(fx_graph_cache=False):
        torch.compile(of_an_intermediate, backend="tessera", fullgraph=True)(torch.arange(20.0))
    assert len(before) == len(after) == 1 and before[0] is after[0]


def with_halves_of_elements(x):
    y = x + 1
    view = y[1:].view(torch.int16)
    double[(1,)](view, view, 3, BLOCK=32)
    return y


def with_parts_of_complex_numbers(x):
    y = torch.complex(x, x)
    view = torch.view_as_real(y[2:])
    double[(1,)](view, view, 3, BLOCK=32)
    return y.real


@pytest.mark.parametrize("function", [with_halves_of_elements, with_parts_of_complex_numbers])
def test_views_of_elements_of_another_size_are_refused(function) -> None:
    """Inductor's copy of them is wrong, and of their tensor none can be made that all versions view."""
    with pytest.raises(Exception, match="E087") as error:
        torch.compile(function, backend="tessera", fullgraph=True)(torch.arange(20.0))
    text = str(error.value)
    assert "kernel `double` writes to memory that it gets as `out_ptr`, in this compiled" in text
    line = function.__code__.co_firstlineno + 3
    assert f"{__file__}:{line}:1: error[E087]" in text


def test_views_of_a_copy_that_inductor_drops() -> None:
    """Their offsets count from the copy, and the argument begins within its memory."""

    def function(x):
        y = x.clone()
        view = y.view(2, 12)[:, 3:]
        double[(1,)](view[1], view[1], 4, BLOCK=32)
        double[(1,)](view[0], view[0], 4, BLOCK=32)
        return y, view * 1

    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    for begin in (0, 5):
        x = torch.arange(34.0)[begin : begin + 24]
        torch.testing.assert_close(compiled(x), function(x))


def to_an_expanded_tensor(x):
    y = x[:1] + 1
    double[(1,)](y.expand(4), y.expand(4), 1, BLOCK=16)
    return y


def to_an_expanded_matrix(x):
    y = x + 1
    tuned_in_place[(1,)](y[:, None].expand(20, 3), 5)
    return y


@pytest.mark.parametrize("function", [to_an_expanded_tensor, to_an_expanded_matrix])
@pytest.mark.parametrize("dynamic", [None, True])
def test_writes_to_expanded_tensors_are_refused(function, dynamic) -> None:
    """torch's graph would have a sum of all elements for each that was expanded."""
    compiled = torch.compile(function, backend="tessera", fullgraph=True, dynamic=dynamic)
    with pytest.raises(Exception, match=r"E054.*is written in a compiled function, and is an exp"):
        compiled(torch.arange(20.0))


def test_an_extent_of_one_is_no_expansion() -> None:
    def function(x):
        y = x[:1] + 1
        doubled_one = y.expand(1, 1)
        double[(1,)](doubled_one, doubled_one, 1, BLOCK=16)
        return y

    x = torch.arange(20.0)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))


def test_expanded_tensors_are_read() -> None:
    def function(x):
        y = torch.empty_like(x)
        double[(1,)]((x[:1] + 1).expand(20), y, 1, BLOCK=16)
        return y[:1]

    x = torch.arange(20.0)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))


def test_what_is_written_to_an_argument_is_put_behind_the_kernel() -> None:
    """Not in front of it, though its value is a tensor that is there before."""
    from tessera.torch.outlining import move_updates

    graph = torch.fx.Graph()
    with torch._subclasses.FakeTensorMode():
        values = torch.zeros(8), torch.zeros(8)
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.clone.default, (x,))
    view = graph.call_function(torch.ops.aten.alias.default, (y,))
    kernel = graph.call_function(
        torch.ops.higher_order.triton_kernel_wrapper_mutation, (), {"kwargs": {"x_ptr": view}}
    )
    update = graph.call_function(torch.ops.aten.copy_.default, (x, y))
    graph.output(())
    for node, value in zip((x, y, view, update), (values[0], *values[1:] * 2, values[0])):
        node.meta["val"] = value
    move_updates(graph)
    nodes = list(graph.nodes)
    assert nodes.index(kernel) < nodes.index(update)


def test_operators_that_write_through_views() -> None:
    @tessera.torch.op("tessera_test::double_", mutates_args=["x"])
    def in_place(x: torch.Tensor) -> None:
        doubled(x)

    @torch.library.triton_op("tessera_test::double_traced_", mutates_args={"x"})
    def traced(x: torch.Tensor) -> None:
        torch.library.wrap_triton(double)[(1,)](x, x, 3, BLOCK=32)

    def function(x):
        y = x + 1
        in_place(y[1:])
        traced(y[2:])
        traced(x[3:])
        return y

    given, wanted = torch.arange(20.0), torch.arange(20.0)
    compiled = torch.compile(function, backend="tessera", fullgraph=True)
    torch.testing.assert_close(compiled(given), function(wanted))
    torch.testing.assert_close(given, wanted)


def test_operators_that_wrap_kernels_trace() -> None:
    @torch.library.triton_op("tessera_test::add", mutates_args={})
    def operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        torch.library.wrap_triton(add)[(tessera.cdiv(x.numel(), 64),)](
            x, y, out, x.numel(), BLOCK=64
        )
        return out

    x, y = torch.randn(200), torch.randn(200)
    compiled = torch.compile(lambda x, y: operator(x, y) + 1, backend="tessera", fullgraph=True)
    torch.testing.assert_close(compiled(x, y), x + y + 1)


def test_a_mistake_in_a_kernel_is_told() -> None:
    @tessera.jit
    def wrong(x_ptr, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), undefined)  # noqa: F821

    def function(x):
        wrong[(1,)](x, BLOCK=16)
        return x + 1

    with pytest.raises(Exception, match=r"E012"):
        torch.compile(function, backend="tessera", fullgraph=True)(torch.zeros(16))
