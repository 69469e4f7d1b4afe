# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One configuration of a kernel: values of some parameters, and options of its compilation."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from tessera.errors import ArgumentError
from tessera.wording import shown

OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")
"""The options of a compilation that a configuration has of its own."""


class Config:
    """Values for parameters of a kernel (`kwargs`) and options of its compilation.

    `pre_hook` is called with a dict of all arguments before each launch with this
    configuration. Two configurations are equal if all of their values are.

    Example:
        import tessera

        config = tessera.Config({"BLOCK": 256}, num_warps=8)
        assert config.kwargs == {"BLOCK": 256}
        assert config.all_kwargs() == {"BLOCK": 256, "num_warps": 8, "num_stages": 3, "num_ctas": 1}
        assert config != tessera.Config({"BLOCK": 256}, num_warps=4)
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: Optional[int] = None,
        pre_hook: Optional[Callable[[dict[str, Any]], Any]] = None,
        ir_override: Optional[str] = None,
    ) -> None:
        try:
            self.kwargs: dict[str, Any] = dict(kwargs)
        except (TypeError, ValueError):
            raise ArgumentError(
                "E059",
                f"the values of a Config are {shown(kwargs)}, and not a dict",
                'name the parameters: Config({"BLOCK": 128}, num_warps=4)',
            ) from None
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def options(self) -> dict[str, Any]:
        """The options that it sets, by name."""
        mine = self.__dict__
        return {name: mine[name] for name in OPTIONS if mine[name] is not None}

    def all_kwargs(self) -> dict[str, Any]:
        """All that it adds to a launch, by name."""
        return {**self.kwargs, **self.options()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # Attributes that older releases did not have get their defaults. Attributes that others set
        # stay: Inductor sets `extra_options` on one from its cache, and sends it to another
        # process.
        self.__dict__.update({**Config({}).__dict__, **state})

    def __str__(self) -> str:
        values = self.all_kwargs()
        values.setdefault("maxnreg", None)
        return ", ".join(f"{name}: {value}" for name, value in values.items())

    def __repr__(self) -> str:
        arguments = [repr(self.kwargs)]
        for name, value in Config({}).__dict__.items():
            if name != "kwargs" and getattr(self, name) != value:
                arguments.append(f"{name}={getattr(self, name)!r}")
        return f"Config({', '.join(arguments)})"

    def _identity(self) -> tuple[Any, ...]:
        return (*sorted(self.all_kwargs().items(), key=lambda item: item[0]), self.pre_hook)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def shortly(config: Config) -> str:
    """A configuration in one line, without the options that are as always."""
    usual = Config({}).options()
    options = {name: value for name, value in config.options().items() if value != usual.get(name)}
    values = {**config.kwargs, **options}
    return ", ".join(f"{name}={_plain(value)}" for name, value in values.items()) or "the defaults"


def _plain(value: Any) -> str:
    return str(getattr(value, "__name__", value))
