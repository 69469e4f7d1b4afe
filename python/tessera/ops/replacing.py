# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The mode of torch that enable() is, and the functions that it replaces.

A call is bound to the parameters of torch's function. Each argument that the operator does not have must
be what torch would do anyway.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, NamedTuple, Sequence

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from tessera.errors import ArgumentError
from tessera.ops import (
    activations,
    bags,
    dropouts,
    elementwise,
    histograms,
    indexing,
    losses,
    normalizations,
    padding,
    products,
    random,
    reductions,
    sampling,
    scans,
    softmaxes,
    sorting,
)
from tessera.ops.arguments import check
from tessera.wording import closest, shown

_MODULES = (
    activations, elementwise, softmaxes, losses, normalizations, reductions, scans, indexing,
    padding, histograms, products, sorting, random, dropouts, sampling, bags,
)  # fmt: skip

# Python functions, whose parameters are known.
_FUNCTIONAL = (
    """relu relu6 hardtanh hardsigmoid hardswish threshold leaky_relu elu selu celu silu mish
softsign tanhshrink glu softmax log_softmax softmin cross_entropy nll_loss binary_cross_entropy
binary_cross_entropy_with_logits kl_div mse_loss l1_loss smooth_l1_loss huber_loss layer_norm rms_norm
group_norm instance_norm batch_norm embedding embedding_bag linear_cross_entropy dropout dropout1d
dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu gumbel_softmax""".split()
)

RANDOM = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "rrelu",
          "gumbel_softmax", "multinomial")  # fmt: skip
"""Operators whose elements are others than torch's, with the same statistics: enable(random=True)."""

# Functions in C++, with their parameters in order.
_BUILTINS: dict[str, tuple[str, tuple[Callable[..., Any], ...]]] = {
    "gelu": ("input", (F.gelu,)),
    "softplus": ("input beta threshold", (F.softplus,)),
    "logsigmoid": ("input", (F.logsigmoid,)),
    "softshrink": ("input lambd", (F.softshrink,)),
    "hardshrink": ("input lambd", (torch.hardshrink, torch.Tensor.hardshrink)),
    "prelu": ("input weight", (torch.prelu, torch.Tensor.prelu)),
    "selu": ("input", (torch.selu,)),
    "celu": ("input alpha", (torch.celu,)),
    "threshold": ("input threshold value", (torch.threshold,)),
    "sigmoid": ("input", (torch.sigmoid, torch.Tensor.sigmoid, torch.special.expit)),
    "tanh": ("input", (torch.tanh, torch.Tensor.tanh)),
    "relu": ("input", (torch.relu, torch.Tensor.relu)),
    "softmax": ("input dim dtype", (torch.softmax, torch.Tensor.softmax, torch.special.softmax)),
    "log_softmax": (
        "input dim dtype",
        (torch.log_softmax, torch.Tensor.log_softmax, torch.special.log_softmax),
    ),
    "clamp": ("input min max", (torch.clamp, torch.Tensor.clamp, torch.clip, torch.Tensor.clip)),
    "where": ("condition input other", (torch.where,)),
    "lerp": ("input end weight", (torch.lerp, torch.Tensor.lerp)),
    "addcmul": ("input tensor1 tensor2", (torch.addcmul, torch.Tensor.addcmul)),
    "addcdiv": ("input tensor1 tensor2", (torch.addcdiv, torch.Tensor.addcdiv)),
    "sum": ("input dim keepdim", (torch.sum, torch.Tensor.sum)),
    "mean": ("input dim keepdim", (torch.mean, torch.Tensor.mean)),
    "prod": ("input dim keepdim", (torch.prod, torch.Tensor.prod)),
    "any": ("input dim keepdim", (torch.any, torch.Tensor.any)),
    "all": ("input dim keepdim", (torch.all, torch.Tensor.all)),
    "var": ("input dim unbiased keepdim", (torch.var, torch.Tensor.var)),
    "std": ("input dim unbiased keepdim", (torch.std, torch.Tensor.std)),
    "var_mean": ("input dim unbiased keepdim", (torch.var_mean,)),
    "vector_norm": ("x ord dim keepdim", (torch.linalg.vector_norm,)),
    "amax": ("input dim keepdim", (torch.amax, torch.Tensor.amax)),
    "amin": ("input dim keepdim", (torch.amin, torch.Tensor.amin)),
    "logsumexp": ("input dim keepdim", (torch.logsumexp, torch.Tensor.logsumexp, torch.special.logsumexp)),
    "argmax": ("input dim keepdim", (torch.argmax, torch.Tensor.argmax)),
    "argmin": ("input dim keepdim", (torch.argmin, torch.Tensor.argmin)),
    "cumsum": ("input dim", (torch.cumsum, torch.Tensor.cumsum)),
    "cumprod": ("input dim", (torch.cumprod, torch.Tensor.cumprod)),
    "logcumsumexp": ("input dim", (torch.logcumsumexp, torch.Tensor.logcumsumexp)),
    "cummax": ("input dim", (torch.cummax, torch.Tensor.cummax)),
    "cummin": ("input dim", (torch.cummin, torch.Tensor.cummin)),
    "sort": ("input dim descending", (torch.sort, torch.Tensor.sort)),
    "argsort": ("input dim descending", (torch.argsort, torch.Tensor.argsort)),
    "topk": ("input k dim largest sorted", (torch.topk, torch.Tensor.topk)),
    "searchsorted": ("sorted_sequence input", (torch.searchsorted,)),
    "bucketize": ("input boundaries", (torch.bucketize,)),
    "gather": ("input dim index", (torch.gather, torch.Tensor.gather)),
    "scatter_add": ("input dim index src", (torch.scatter_add, torch.Tensor.scatter_add)),
    "scatter_reduce": (
        "input dim index src reduce", (torch.scatter_reduce, torch.Tensor.scatter_reduce),
    ),
    "one_hot": ("tensor num_classes", (F.one_hot,)),
    "index_select": ("input dim index", (torch.index_select, torch.Tensor.index_select)),
    "index_add": ("input dim index source", (torch.index_add, torch.Tensor.index_add)),
    "pad": ("input pad mode value", (F.pad,)),
    "roll": ("input shifts dims", (torch.roll, torch.Tensor.roll)),
    "cat": ("tensors dim", (torch.cat, torch.concat, torch.concatenate)),
    "stack": ("tensors dim", (torch.stack,)),
    "bincount": ("input weights minlength", (torch.bincount, torch.Tensor.bincount)),
    "histc": ("input bins min max", (torch.histc, torch.Tensor.histc)),
    "histogram": ("input bins", (torch.histogram, torch.Tensor.histogram)),
    "unique": ("input", (torch.unique, torch.Tensor.unique)),
    "unique_consecutive": (
        "input", (torch.unique_consecutive, torch.Tensor.unique_consecutive),
    ),
    "dropout": ("input p training", (torch.dropout,)),
    "alpha_dropout": ("input p training", (torch.alpha_dropout,)),
    "feature_alpha_dropout": ("input p training", (torch.feature_alpha_dropout,)),
    "rrelu": ("input lower upper training", (torch.rrelu,)),
    "multinomial": ("input num_samples replacement", (torch.multinomial, torch.Tensor.multinomial)),
}  # fmt: skip

_OF_TWO = ("input", "other")
"""The parameters of torch.max and min, which are amax and amin of an array alone."""

# Other functions of torch that an operator computes, with their parameters in order.
_ALIASES: tuple[tuple[str, str, tuple[Callable[..., Any], ...]], ...] = (
    ("where", "input condition other", (torch.Tensor.where,)),
    ("vector_norm", "x p dim keepdim", (torch.norm, torch.Tensor.norm)),
    ("amax", " ".join(_OF_TWO), (torch.max, torch.Tensor.max)),
    ("amin", " ".join(_OF_TWO), (torch.min, torch.Tensor.min)),
)

# The tuples that torch has for results.
_TUPLES = {
    name: getattr(torch.return_types, name)
    for name in ("cummax", "cummin", "histogram", "sort", "topk")
}

# Functions whose floats of 16 bits torch.autocast converts to float32, and the function of aten that
# does so, if a release of torch has it for the device.
_WIDENED = {
    name: aten for names, aten in (
        ("cross_entropy nll_loss", "nll_loss"),
        ("softmax softmin gumbel_softmax", "softmax.int"),
        ("log_softmax", "log_softmax.int"),
        ("sum", "sum.dim_IntList"),
        *((name, name) for name in (
            "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "mse_loss", "l1_loss",
            "smooth_l1_loss", "huber_loss", "layer_norm", "rms_norm", "group_norm", "softplus", "logsumexp",
            "cumsum", "cumprod",
        )),
    ) for name in names.split()
}  # fmt: skip

# Functions that torch.autocast has in its own type, or refuses (binary_cross_entropy on GPUs).
_NARROWED: dict[str, tuple[str, ...]] = {"cpu": ("prelu", "linear_cross_entropy")}
_NARROWED["cuda"] = (*_NARROWED["cpu"], "binary_cross_entropy")

# Parameters of torch's functions that change no result.
_UNSAID = {"_stacklevel"}

# Parameters whose False leaves torch the choice of an order.
_ORDERS = {"sorted", "stable"}


class _Replaced(NamedTuple):
    """A function of torch, and the operator in its place."""

    name: str
    operator: Any
    parameters: tuple[str, ...]
    """Of torch's function, in order."""
    defaults: dict[str, Any]
    ours: frozenset[str]
    """Of the operator."""


def _make(name: str, function: Any, parameters: Sequence[str]) -> _Replaced:
    operator = next(getattr(module, name) for module in _MODULES if hasattr(module, name))
    scalar = getattr(operator, "function", operator)
    ours = frozenset((*inspect.signature(getattr(scalar, "fn", scalar)).parameters, "out"))
    defaults: dict[str, Any] = {}
    if not parameters:
        found = inspect.signature(function).parameters.values()
        parameters = [each.name for each in found]
        defaults = {each.name: each.default for each in found if each.default is not each.empty}
    return _Replaced(name, operator, tuple(parameters), defaults, ours)


def _table() -> dict[Any, _Replaced]:
    # Older releases of torch have no linear_cross_entropy.
    known = [name for name in _FUNCTIONAL if hasattr(F, name)]
    found = {getattr(F, name): _make(name, getattr(F, name), ()) for name in known}
    builtins = ((name, *each) for name, each in _BUILTINS.items())
    for name, parameters, functions in (*builtins, *_ALIASES):
        for function in functions:
            found[function] = _make(name, function, parameters.split())
    return found


_TABLE = _table()
NAMES = tuple(dict.fromkeys(each.name for each in _TABLE.values()))
"""The operators that take torch's calls."""

_IN_PLACE = {
    getattr(owner, f"{name}_"): name
    for name in NAMES for owner in (torch, torch.Tensor, F) if hasattr(owner, f"{name}_")
}  # fmt: skip
"""Functions of torch that write to their argument, which stay torch's."""


class Replacing(TorchFunctionMode):  # type: ignore[misc]
    """The context that enable() returns."""

    def __init__(self, unused: Sequence[str] = (), random: bool = False) -> None:
        super().__init__()
        for name in unused:
            if name not in NAMES:
                similar = closest(name, NAMES)
                fix = f"did you mean {similar}?" if similar else "see docs/Ops.md"
                check(False, f"`enable` got {shown(name)} in unused", fix)
        self.unused = frozenset(unused)
        self.random = bool(random)
        self.taken: dict[str, int] = {}
        self.refused: dict[str, dict[str, int]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        replaced = _TABLE.get(func)
        if replaced is None:
            if func in _IN_PLACE and not torch.compiler.is_compiling():
                self._refuse(_IN_PLACE[func], "it writes to its argument")
            return func(*args, **named)
        if (
            replaced.name in self.unused
            or torch.compiler.is_compiling()
            or any(each not in (torch.Tensor, torch.nn.Parameter) for each in types)
        ):
            return func(*args, **named)
        reason, given = _bound(replaced, args, named)
        device = _autocast_device(given)
        if device in _NARROWED and replaced.name in _NARROWED[device]:
            reason = "torch.autocast converts its arguments"
        if replaced.name in RANDOM and not self.random:
            reason = "its elements would be others: enable(random=True) takes it"
        if not reason:
            if device and _is_widened(replaced.name, device):
                given = {key: _widened(value, device) for key, value in given.items()}
            try:
                result = replaced.operator(**given)
                if replaced.name in _TUPLES:
                    result = _TUPLES[replaced.name](result)
            except (ArgumentError, TypeError) as error:
                reason = str(error).partition("\n")[0]
            else:
                self.taken[replaced.name] = self.taken.get(replaced.name, 0) + 1
                return result
        self._refuse(replaced.name, reason)
        return func(*args, **named)

    def _refuse(self, name: str, reason: str) -> None:
        if name not in self.unused:
            reasons = self.refused.setdefault(name, {})
            reasons[reason] = reasons.get(reason, 0) + 1

    def __repr__(self) -> str:
        return f"<tessera.ops.enable: taken {self.taken}, refused {self.refused}>"


def _autocast_device(given: dict[str, Any]) -> str:
    """The kind of device that the tensors are on, if torch.autocast is in effect there; or ""."""
    for each in given.values():
        if isinstance(each, torch.Tensor):
            kind = str(each.device.type)
            return kind if kind in _NARROWED and torch.is_autocast_enabled(kind) else ""
    return ""


@functools.lru_cache(maxsize=None)
def _is_widened(name: str, device: str) -> bool:
    key = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}[device]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return name in _WIDENED and bool(has_kernel(f"aten::{_WIDENED[name]}", key))


def _widened(value: Any, device: str) -> Any:
    """An argument as torch.autocast converts it."""
    is_narrow = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_narrow and value.device.type == device else value


def _is_usual(value: Any, default: Any) -> bool:
    """True if an argument for which an operator has no parameter changes nothing: it is torch's default."""
    if value is None:
        return True
    return not isinstance(value, torch.Tensor) and bool(value == default)


def _bound(
    replaced: _Replaced, args: Sequence[Any], named: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The operator's arguments by name, or a reason why there are none."""
    if len(args) > len(replaced.parameters):
        return f"it got {len(args)} arguments by place", {}
    given = {**replaced.defaults, **dict(zip(replaced.parameters, args)), **named}
    if type(given.get("dim")) is bool:  # `unbiased`, in an older form of var
        return f"it got {shown(given['dim'])} in place of dim", {}
    is_of_bytes = getattr(given.get("input"), "dtype", None) == torch.uint8
    if replaced.name in ("any", "all") and is_of_bytes:
        return "torch's result is of uint8, too", {}
    if replaced.name in ("any", "all") and given.get("dim") in ((), []):
        return "torch's result has all dimensions", {}
    is_narrow = getattr(given.get("weights"), "dtype", None) in (torch.float16, torch.bfloat16)
    if replaced.name == "bincount" and is_narrow:
        return "torch's result is of float64", {}
    is_extremum = replaced.name == "scatter_reduce" and given.get("reduce") in ("amax", "amin")
    if is_extremum and getattr(given.get("input"), "is_floating_point", bool)():
        return "torch's extrema are NaN where an element is", {}
    if replaced.parameters == _OF_TWO and len(given) > 1:
        return "it has places, or the extrema of two arrays", {}
    for name, alias in (("dim", "axis"), ("keepdim", "keepdims")):
        if alias in given and name not in given:
            given[name] = given.pop(alias)
    if "p" in given and replaced.name == "vector_norm":
        order = given.pop("p")
        if order == "nuc":
            return "it is a norm of matrices", {}
        given["ord"] = 2.0 if order in (None, "fro") else order
    if "self" in given and "input" not in given:
        given["input"] = given.pop("self")
    for name in [name for name in given if name not in replaced.ours]:
        value = given.pop(name)
        if name in _ORDERS and value is False:
            continue
        if name not in _UNSAID and not _is_usual(value, replaced.defaults.get(name)):
            return f"it got {name}={shown(value)}", {}
    # None stands for the operator's own default, as it does for torch's.
    return "", {key: value for key, value in given.items() if value is not None}
