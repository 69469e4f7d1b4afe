# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choice of tokens: penalties, temperature, top-k, top-p and min-p, and draws with a seed.

A setting is a number, or an array with one for each row.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import tessera.language as tl
from tessera.calls.outputs import library_of
from tessera.calls.pointwise import pointwise
from tessera.calls.recorded import recorded
from tessera.language import types
from tessera.ops.accumulation import launch_onto, zeros
from tessera.ops.arguments import (
    FLOATS,
    FLOATS_AND_INDICES,
    INDICES,
    accumulator_of,
    check,
    check_arrays,
    converted,
    count_of,
    dense,
    dtype_of,
)
from tessera.ops.differentiation import Operator, Results
from tessera.ops.kernels import sampling as kernels
from tessera.ops.kernels.sampling import DIGITS, WAYS
from tessera.ops.launching import Spec, launch, power_of_2
from tessera.ops.outputs import launch_results, takes_out
from tessera.ops.random import drawn_seed
from tessera.ops.scans import cumsum
from tessera.ops.sorting import topk
from tessera.ops.tuning import multiprocessors_of
from tessera.wording import shown

_BLOCK = 1024

_PROGRAMS_PER_SM, _MAX_PARTS = 4, 64
"""Programs that keep a GPU busy, and the parts of a row at most."""


@pointwise
def _penalised(logits, counts: tl.int32, repetition, frequency, presence):
    repeated = tl.where(logits > 0, logits / repetition, logits * repetition)
    lowered = repeated - frequency * counts.to(logits.dtype) - presence
    return tl.where(counts > 0, lowered, logits)


def _check_logits(name: str, logits: Any) -> tuple[int, int]:
    """The number of rows, and of tokens. Raises ArgumentError (E093)."""
    check_arrays(name, FLOATS, logits=logits)
    shape = tuple(logits.shape)
    check(
        len(shape) > 0 and 0 < shape[-1] < 1 << 24,
        f"`logits` of `{name}` has shape {shape}",
        "pass (..., tokens), with 1 to 16777215 tokens",
    )
    return count_of(shape[:-1]), shape[-1]


def _check_setting(
    name: str, key: str, value: Any, logits: Any, least: float, most: float = float("inf")
) -> Any:
    """A setting as a kernel takes it: None, a float, or a line of an element for each row."""
    if value is None:
        return None
    if library_of(value):
        rows = count_of(logits.shape[:-1])
        check_arrays(name, FLOATS_AND_INDICES, logits=logits, **{key: value})
        check(
            count_of(value.shape) == rows,
            f"`{key}` of `{name}` has shape {tuple(value.shape)}, and `logits` {tuple(logits.shape)}",
            f"pass a number, or an array of {rows} elements",
        )
        return dense(value).reshape(-1)
    check(
        isinstance(value, (int, float)) and least <= value <= most,
        f"`{name}` got {key}={shown(value)}",
        f"pass a number from {least}" + ("" if most == float("inf") else f" to {most}"),
    )
    return float(value)


@recorded
@takes_out
def apply_penalties(
    logits: Any, tokens: Any, *, repetition: Any = 1.0, frequency: Any = 0.0, presence: Any = 0.0
) -> Any:
    """Logits of tokens that were there: x / repetition (x * repetition, if negative) - penalties.

    The penalties are frequency times the number of times, and presence. Others stay as they are.
    tokens: those of each row. One that is not in the vocabulary, such as -1, fills a row up.
    repetition, frequency, presence: numbers, or an array with one for each row.
    Shapes: logits (..., tokens), tokens (..., n) with the same first dimensions. Types: floats; tokens of
    int32 or int64. Errors: E093. torch has no such function.

    Example:
        import numpy as np
        from tessera import ops

        logits, seen = np.array([[2.0, -2.0, 1.0]]), np.array([[0, 1, 0, -1]])
        y = ops.apply_penalties(logits, seen, repetition=2.0, frequency=0.5)
        assert y.tolist() == [[0, -4.5, 1]]
    """
    name = "apply_penalties"
    rows, length = _check_logits(name, logits)
    check_arrays(name, FLOATS_AND_INDICES, logits=logits, tokens=tokens)
    check_arrays(name, INDICES, tokens=tokens)
    lead = tuple(logits.shape[:-1])
    check(
        len(tokens.shape) == len(logits.shape) and tuple(tokens.shape[:-1]) == lead,
        f"`tokens` of `{name}` has shape {tuple(tokens.shape)}, and `logits` {tuple(logits.shape)}",
        f"pass tokens of shape {(*lead, 'n')}",
    )
    settings = []
    for key, value in (
        ("repetition", repetition),
        ("frequency", frequency),
        ("presence", presence),
    ):
        least = 1e-30 if key == "repetition" else -float("inf")
        found = _check_setting(name, key, value, logits, least)
        settings.append(found.reshape((*lead, 1)) if library_of(found) else found)
    count = count_of(tokens.shape)
    counts = launch_onto(
        kernels.count_tokens_kernel, -(-count // _BLOCK), (dense(tokens),),
        zeros(logits, logits.shape, types.int32),
        (count, max(1, tokens.shape[-1]), length, _BLOCK),
    )  # fmt: skip
    found = _penalised(logits, counts, *settings)
    return converted(found, dtype_of(logits))


def _settings(
    name: str, logits: Any, temperature: Any, top_k: Any, top_p: Any, min_p: Any
) -> dict[str, Any]:
    """The settings of a choice, checked."""
    _check_logits(name, logits)
    return {
        "temperature": _check_setting(name, "temperature", temperature, logits, 0),
        "top_k": _check_setting(name, "top_k", top_k, logits, 0),
        "top_p": _check_setting(name, "top_p", top_p, logits, 0, 1),
        "min_p": _check_setting(name, "min_p", min_p, logits, 0, 1),
    }


class _Parts(NamedTuple):
    """How programs divide rows: into parts of whole tiles."""

    rows: int
    length: int
    parts: int
    part_length: int
    block: int

    @property
    def programs(self) -> int:
        return self.rows * self.parts

    @property
    def numbers(self) -> tuple[int, int, int]:
        """As kernels take them."""
        return self.length, self.parts, self.part_length


def _parts(x: Any) -> _Parts:
    """A row for each program of a CPU. On a GPU, more, if there are few rows."""
    rows, length, units = count_of(x.shape[:-1]), x.shape[-1], multiprocessors_of(x)
    block = min(power_of_2(length), 4096)
    tiles = -(-length // block)
    parts = min(tiles, -(-_PROGRAMS_PER_SM * units // max(1, rows)), _MAX_PARTS) if units else 1
    part_length = -(-tiles // parts) * block
    return _Parts(rows, length, -(-length // part_length), part_length, block)


_LOWEST_BITS = {types.bfloat16: 16, types.float16: 13}
"""The bits of a logit in float32 that are the same for all, as its own type has fewer."""


def _bounds(x: Any, split: _Parts, settings: dict[str, Any]) -> Any:
    """The least logit of each row that is kept."""
    spec = Spec((split.rows,), types.float32)
    if not multiprocessors_of(x):
        inputs = (x, *settings.values())
        return launch(
            kernels.bound_kernel, split.rows, inputs, [spec], (split.length, split.block)
        )[0]
    top_spec, found_spec = Spec((split.programs,), types.float32), Spec((split.rows,), types.uint32)
    (tops,) = launch(
        kernels.tops_kernel, split.programs, (x,), [top_spec], (*split.numbers, split.block)
    )
    heat, parts = settings["temperature"], power_of_2(split.parts)

    def settled(
        kind: str, least: Any, state: Any, setting: Any, shift: int = 0, ways: int = WAYS
    ) -> Any:
        numbers = (split.length, split.parts, shift, parts, ways, kind)
        inputs = (tops, least, *state, heat, setting)
        return launch(kernels.settled_bound_kernel, split.rows, inputs, [spec], numbers)[0]

    bounds = settled("none", None, (None, None, None), None)
    for kind, ways, bits in (("top_k", DIGITS, 6), ("top_p", WAYS, 3)):
        setting = settings[kind]
        if setting is None:
            continue
        specs = [Spec((split.programs, ways), types.float32), found_spec]
        state: tuple[Any, Any, Any] = (None, None, None)
        for shift in range(30, -1, -bits):
            if kind == "top_k":
                amounts, found = launch(
                    kernels.digits_kernel, split.programs, (x, *state, setting), specs,
                    (*split.numbers, shift, split.block, parts, ways, bits),
                )  # fmt: skip
            else:
                amounts, found = launch(
                    kernels.amounts_kernel, split.programs, (x, tops, bounds, *state, heat, setting),
                    specs, (*split.numbers, shift, min(1024, split.block), parts, ways),
                )  # fmt: skip
            state = (amounts, amounts if state[1] is None else state[1], found)
            if shift <= _LOWEST_BITS.get(dtype_of(x), 0):
                break
        bounds = settled(kind, bounds, state, setting, shift, ways)
    if settings["min_p"] is not None:
        bounds = settled("min_p", bounds, (None, None, None), settings["min_p"])
    return bounds


def _filter_forward(logits: Any, **settings: Any) -> Results:
    x = dense(logits)
    split = _parts(x)
    (out,) = launch_results(
        kernels.filter_kernel, split.programs,
        (x, _bounds(x, split, settings), settings["temperature"]), [Spec(x.shape, dtype_of(x))],
        (*split.numbers, split.block, accumulator_of(dtype_of(x))),
    )  # fmt: skip
    return (out,), ()


def _sample_forward(logits: Any, *, seed: int, **settings: Any) -> Results:
    x = dense(logits)
    split = _parts(x)
    is_whole, out = split.parts == 1, Spec(x.shape[:-1], types.int64)
    inputs = (x, _bounds(x, split, settings), settings["temperature"])
    numbers = (*split.numbers, seed, split.block)
    if is_whole:
        places, _ = launch_results(
            kernels.sample_kernel, split.programs, inputs, [out, None], numbers
        )
        return (places,), ()
    specs = [Spec((split.programs,), types.int64), Spec((split.programs,), types.float32)]
    partial = launch(kernels.sample_kernel, split.programs, inputs, specs, numbers)
    last = (split.parts, power_of_2(split.parts))
    return launch_results(kernels.first_best_kernel, split.rows, partial, [out], last), ()


_filter = Operator("filter_logits", _filter_forward, None)
_sample = Operator("sample", _sample_forward, None)


@recorded
@takes_out
def filter_logits(
    logits: Any, *, temperature: Any = 1.0, top_k: Any = None, top_p: Any = None, min_p: Any = None
) -> Any:
    """logits / temperature for tokens that are kept, and -inf for others.

    With top_k, the k largest logits are kept (0 keeps all). With top_p, the likeliest of these are kept,
    until the sum of their probabilities is top_p. With min_p, tokens are kept that have at least min_p
    times the probability of the likeliest one. Probabilities are those at the temperature, and
    temperature 0 keeps the largest logit only.
    Logits that are equal to the last one kept are kept, too. NaNs are never kept. Logits are compared in
    float32. Settings are numbers, or arrays with one for each row.
    Shapes: (..., tokens). Types: floats. Errors: E093, E094 for a gradient. torch has no such function.

    Example:
        import numpy as np
        from tessera import ops

        logits = np.log([[0.5, 0.25, 0.15, 0.1]])
        for settings in ({"top_k": 2}, {"top_p": 0.7}, {"min_p": 0.5}):
            y = ops.filter_logits(logits, **settings)
            assert np.isfinite(y).tolist() == [[True, True, False, False]]
    """
    return _filter(logits, **_settings("filter_logits", logits, temperature, top_k, top_p, min_p))


@takes_out
def sample(
    logits: Any, *, temperature: Any = 1.0, top_k: Any = None, top_p: Any = None, min_p: Any = None,
    seed: Optional[int] = None,
) -> Any:  # fmt: skip
    """A token of each row, drawn with the probabilities softmax(filter_logits(logits, ...)).

    seed: an integer; one seed draws the same tokens of one shape on every machine. Without one, as of
    dropout. temperature 0 takes the first of the largest logits. A row without a logit gives 0.
    Shapes: (..., tokens); the result is (...), of int64. Types: floats. Errors: E093. torch has no such
    function.

    Example:
        import numpy as np
        from tessera import ops

        logits = np.log(np.tile([0.5, 0.3, 0.2], (5000, 1)))
        shares = np.bincount(ops.sample(logits, top_k=2, seed=1)) / 5000
        assert np.allclose(shares, [0.625, 0.375], atol=0.03)
    """
    plain = logits.detach() if hasattr(logits, "detach") else logits
    settings = _settings("sample", plain, temperature, top_k, top_p, min_p)
    return _sample(plain, seed=drawn_seed("sample", library_of(plain), seed), **settings)


def _draw_forward(input: Any, *, samples: int, seed: int) -> Results:
    count, length, dtype = count_of(input.shape), input.shape[-1], accumulator_of(dtype_of(input))
    (weights,) = launch(
        kernels.clean_weights_kernel, -(-count // _BLOCK), (dense(input),),
        [Spec(input.shape, dtype)], (count, _BLOCK),
    )  # fmt: skip
    sums, drawn = cumsum(weights, len(input.shape) - 1), count // length * samples
    return launch(
        kernels.draw_kernel, -(-drawn // _BLOCK), (sums,),
        [Spec((*input.shape[:-1], samples), types.int64)],
        (drawn, samples, length, seed, _BLOCK, length.bit_length()),
    ), ()  # fmt: skip


def _draw_distinct_forward(input: Any, *, samples: int, seed: int) -> Results:
    count = count_of(input.shape)
    (keys,) = launch(
        kernels.gumbel_keys_kernel, -(-count // _BLOCK), (dense(input),),
        [Spec(input.shape, types.float32)], (count, seed, _BLOCK),
    )  # fmt: skip
    return (topk(keys, samples)[1],), ()


_draw = Operator("multinomial", _draw_forward, None)
_draw_distinct = Operator("multinomial", _draw_distinct_forward, None)


@takes_out
def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, seed: Optional[int] = None
) -> Any:
    """Places of each row, drawn with probabilities input / sum(input).

    Weights are not checked, and are finite. Those that are negative or NaN count as 0. A place of weight 0 is drawn
    only from a row without others.

    replacement: true if a place can be drawn again.
    seed: as of dropout. The statistics are those of torch, and the places are others.
    Shapes: (n,) or (rows, n); the result has num_samples in place of n, and is of int64. Without
    replacement, n is at most 16384 for more than one sample. Types: floats. Errors: E093.

    Example:
        import numpy as np
        from tessera import ops

        y = ops.multinomial(np.array([0.0, 3.0, 1.0]), 8000, True, seed=2)
        assert np.allclose(np.bincount(y) / 8000, [0, 0.75, 0.25], atol=0.02)
        assert sorted(ops.multinomial(np.array([1.0, 0.0, 3.0]), 2, seed=2)) == [0, 2]
    """
    name = "multinomial"
    library = check_arrays(name, FLOATS, input=input)
    shape = tuple(input.shape)
    check(
        len(shape) in (1, 2) and shape[-1] > 0,
        f"`input` of `{name}` has shape {shape}",
        "pass (n,) or (rows, n), with weights",
    )
    check(
        type(num_samples) is int and num_samples > 0 and (replacement or num_samples <= shape[-1]),
        f"`{name}` got num_samples={shown(num_samples)} for {shape[-1]} weights",
        "pass an integer from 1 on, not more than the weights unless with replacement",
    )
    plain = input.detach() if hasattr(input, "detach") else input
    draw = _draw if replacement or num_samples == 1 else _draw_distinct
    return draw(plain, samples=num_samples, seed=drawn_seed(name, library, seed))
