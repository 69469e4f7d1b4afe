# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Explains why a kernel was compiled again: the argument, option or global that differed, and a
fix.

A kernel records the specialisation of each compilation (`Made`). The rest is computed on demand: by
`kernel.compilations`, or for the warning E056.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Hashable, Iterator, NamedTuple, Optional, Sequence

from tessera import _C
from tessera.frontend.signature import (
    ArgSpec,
    ConstSpec,
    DescriptorSpec,
    KnownSpec,
    TupleSpec,
    ValueSpec,
    spell,
)
from tessera.language import types
from tessera.runtime.specialize import constant_key
from tessera.wording import counted, shown

if TYPE_CHECKING:
    from tessera.compiler.options import CompileOptions
    from tessera.runtime.jit import JITFunction

__all__ = ["Compilation", "Difference"]

_FEW = 4
"""So many values of an argument are named."""


Made = tuple[Sequence[ArgSpec], Sequence[int], "CompileOptions", str]
"""The cause of a compilation: the arguments, their slots, the options, and changed dependencies, if
any."""


class Difference(NamedTuple):
    """Something that a compilation had otherwise than an earlier one."""

    what: str
    """As "argument `n`", "constexpr `BLOCK`", "option num_warps"."""
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.what}: {self.now}, was {self.before}"


class Compilation(NamedTuple):
    """One time that a kernel was compiled, or read from the disk."""

    reason: str
    differences: tuple[Difference, ...]
    """From the one before that is most like it."""

    def __str__(self) -> str:
        return self.reason


class _Item(NamedTuple):
    """An argument or a part of one, or an option, as one compilation had it."""

    key: Hashable
    """Equal where the same code would do."""
    text: str
    """Its class for the compiler."""
    value: str
    """Its value in the launch, as an example of its class."""
    spec: Optional[ArgSpec]


_Items = dict[str, _Item]


def _items(fn: "JITFunction[Any, Any]", made: Made) -> _Items:
    found: _Items = {}
    specs, numbers, options, _ = made
    slots = iter(numbers)
    for param, spec in zip(fn.params, specs):
        is_constant = param.is_constexpr or isinstance(spec, ConstSpec)
        kind = "constexpr" if is_constant else "argument"
        for name, leaf in _leaves(param.name, spec):
            found[f"{kind} `{name}`"] = _describe(leaf, slots)
        if isinstance(spec, DescriptorSpec):
            block = f"blocks {spec.block_shape}, padding {spec.padding}"
            found[f"argument `{param.name}`"] = _Item((block, spec.rounds_to_tf32), block, "", spec)
    for name, value in options.key:
        found[f"option {name}"] = _Item(repr(value), shown(value), "", None)
    return found


def _leaves(name: str, spec: ArgSpec) -> Iterator[tuple[str, ArgSpec]]:
    if isinstance(spec, DescriptorSpec):
        rank = len(spec.items) // 2
        yield f"{name}.base", spec.items[0]
        for index, item in enumerate(spec.items[1:]):
            what = "shape" if index < rank else "strides"
            yield f"{name}.{what}[{index % rank}]", item
    elif isinstance(spec, TupleSpec):
        for index, item in enumerate(spec.items):
            yield from _leaves(f"{name}[{index}]", item)
    else:
        yield name, spec


def _describe(spec: ArgSpec, slots: Iterator[int]) -> _Item:
    if isinstance(spec, ConstSpec):
        try:
            key: Hashable = constant_key(spec.value)
        except TypeError:
            key = id(spec.value)
        return _Item(key, shown(spec.value, 40), "", spec)
    if isinstance(spec, KnownSpec):
        return _Item(("known", spec.value), f"the integer {spec.value}", "", spec)
    assert isinstance(spec, ValueSpec)
    slot = next(slots, 0)
    text = str(spell(spec._replace(divisibility=0)))
    is_integer = spec.type.kind == types.KIND_NUMBER and text[0] in "iu" and text != "i1"
    if spec.divisibility:
        text += f" divisible by {spec.divisibility}"
    elif is_integer or spec.type.kind == types.KIND_POINTER:
        text += " divisible by nothing known"
    value = ""
    if is_integer:
        value = str(slot)
    return _Item((text,), text, value, spec)


def _difference(before: _Items, now: _Items) -> list[Difference]:
    def text(item: Optional[_Item]) -> str:
        if item is None:
            return "nothing"
        return f"{item.value} ({item.text})" if item.value else item.text

    found = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if (old and old.key) != (new and new.key):
            found.append(Difference(name, text(old), text(new)))
    return found


def list_compilations(fn: "JITFunction[Any, Any]") -> list[Compilation]:
    """Each time that a kernel was compiled, and why."""
    result: list[Compilation] = []
    earlier: list[_Items] = []
    for made in list(fn._made):
        items, stale = _items(fn, made), made[-1]
        if not earlier:
            result.append(Compilation("the first one", ()))
        elif stale:
            result.append(Compilation(f"{stale} was changed", ()))
        else:
            nearest = min((_difference(one, items) for one in reversed(earlier)), key=len)
            reason = "; ".join(map(str, nearest))
            if not reason:
                reason = "what was compiled before is gone, or a setting was changed"
            result.append(Compilation(reason, tuple(nearest)))
        earlier.append(items)
    return result


def find_stale(checks: Sequence[Any]) -> str:
    """The changed dependencies of a kernel (`tessera.frontend.reads` has the checks)."""
    for check in checks:
        if _C.is_current((check,)):
            continue
        place = check[0]
        if isinstance(place, dict):
            return f"the global `{check[1]}`"
        if hasattr(place, "cell_contents"):
            return "a variable of an enclosing function"
        if len(check) == 3 and isinstance(check[1], str):
            return f"`{check[1]}` of {shown(place)}"
        return f"the function `{getattr(place, '__name__', place)}`"
    return "something that it uses"


class _Suspect(NamedTuple):
    """The parameter that differs most between the compilations."""

    number: int
    text: str
    fix: str


def _suspects(fn: "JITFunction[Any, Any]") -> list[_Suspect]:
    seen: dict[str, dict[Hashable, _Item]] = {}
    changed: dict[str, int] = {}
    for made in list(fn._made):
        if stale := made[-1]:
            changed[stale] = changed.get(stale, 0) + 1
        for name, item in _items(fn, made).items():
            seen.setdefault(name, {}).setdefault(item.key, item)
    found = [_suspect(name, list(items.values())) for name, items in seen.items() if len(items) > 1]
    for what, times in changed.items():
        fix = "pass what changes as an argument"
        found.append(_Suspect(times + 1, f"{what}, changed {counted(times, 'time')}", fix))
    return sorted(found, key=lambda one: -one.number)


def _suspect(name: str, items: list[_Item]) -> _Suspect:
    values = [f"{item.value} ({item.text})" if item.value else item.text for item in items[:_FEW]]
    listed = ", ".join(values) + (", ..." if len(items) > _FEW else "")
    is_constant = name.startswith("constexpr")
    kinds = "values" if is_constant or name.startswith("option") else "kinds"
    text = f"{name}, of {len(items)} {kinds}: {listed}"
    parameter = name[name.find("`") + 1 :].rstrip("`").partition("[")[0].partition(".")[0]
    return _Suspect(len(items), text, _find_fix(name, parameter, [item.spec for item in items]))


def _find_fix(name: str, parameter: str, specs: list[Any]) -> str:
    if name.startswith("option"):
        return f"launch with the same {name.removeprefix('option ')} each time"
    if name.startswith("constexpr"):
        if all(isinstance(getattr(spec, "value", None), (int, float)) for spec in specs):
            return (
                f"make `{parameter}` a plain argument, without tl.constexpr; or if it is the extent "
                "of a tile, give it fewer values, as tessera.next_power_of_2 does"
            )
        return f"give `{parameter}` fewer values"
    if any(isinstance(spec, KnownSpec) for spec in specs):
        return f'@tessera.jit(do_not_specialize=["{parameter}"])'
    if len({spec._replace(divisibility=0) for spec in specs if isinstance(spec, ValueSpec)}) == 1:
        return f'@tessera.jit(do_not_specialize_on_alignment=["{parameter}"])'
    if all(isinstance(spec, ValueSpec) and spec.type.kind == types.KIND_NUMBER for spec in specs):
        return f"annotate `{parameter}` with its type, as tl.int64"
    return f"pass arrays of the same type for `{parameter}`"


def describe_recompilations(fn: "JITFunction[Any, Any]") -> str:
    """The text of the warning that a kernel is compiled again and again."""
    suspects = _suspects(fn)
    # The argument with the most values, and others with nearly as many.
    told = [one for one in suspects[:3] if 2 * one.number >= suspects[0].number]
    text = (
        f"tessera: kernel `{fn.__name__}` has been compiled {counted(len(fn._made), 'time')} (E056)"
    )
    if told:
        text += "; what changes most is " + "; and ".join(one.text for one in told)
        text += "\nfix: " + "; ".join(dict.fromkeys(one.fix for one in told))
    return text + (
        f"\n`{fn.__name__}.compilations` says why each time; TESSERA_RECOMPILE_WARNING sets the "
        "number, 0 never"
    )
