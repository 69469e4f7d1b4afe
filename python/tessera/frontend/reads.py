# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records a compilation's reads outside the kernel's own text, and detects changes of them.

Every name, attribute and item that the front-end reads from Python is recorded here with its value.
As long as all values are the same, the front-end would build the same IR.

Within the process, every launch makes *checks*, tuples that tessera._C verifies in a few
nanoseconds each (`_C.is_current`). Entries of dicts are verified only after the dict has changed:

    (dict, name, value)     the dict has that very value
    (dict, name)            the dict lacks the name
    (cell, value), (cell,)  a closure's variable has it, or is not assigned
    (function, code, defaults, keyword defaults)
    (function, None, None)  calling it gives True
    (object, name, value)   the attribute is that very value

The language's own modules and values of a `constexpr` are excluded. They signal assignments, after
which everything is checked again (`library`).

For another process a read has a *path* from the kernel and its constant arguments, as steps
("name", "attribute", "item", "argument"). If a kernel reads a value without a path, or runs Python
code while it is compiled, it has no paths (`portable` is None).
"""

from __future__ import annotations

import builtins
import enum
import functools
import sys
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Iterator, Mapping, NamedTuple, Optional

from tessera.frontend.host_functions import is_description
from tessera.frontend.scope import MISSING
from tessera.language import types
from tessera.language.aggregate import fields_of
from tessera.language.callables import ConstexprFunction, JITCallable
from tessera.language.tensor import is_builtin, tensor
from tessera.settings import note_change

Check = tuple[Any, ...]
Path = tuple[tuple[str, Any], ...]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.dtype, range, slice)
_FIXED = (*_PLAIN, enum.Enum, type, ModuleType, FunctionType, BuiltinFunctionType)
"""Types that hold nothing for `_watch` to check."""

# A function that reaches more than this is not followed further.
_MAX_FOLLOWED = 2000

_ours: dict[str, bool] = {}
"""Answers of `is_ours`, which a first call asks for hundreds of times, by the module."""


class Name(NamedTuple):
    """The place where a function finds a name: a dict, a cell or nothing (Python's own)."""

    place: Any
    value: Any


def is_ours(module: Optional[str]) -> bool:
    """True if a module is part of the language and the front-end."""
    # Kernels that come with the package are its users.
    name = module or ""
    known = _ours.get(name)
    if known is not None:
        return known
    if name.startswith("triton"):
        # The names that tessera.compat.triton has for the language.
        package = sys.modules.get("triton")
        is_language = name == "triton" or name.startswith("triton.language")
        return is_language and getattr(package, "__tessera__", False) is True
    found = name == "tessera" or name.startswith(("tessera.language", "tessera.frontend"))
    if len(_ours) < _MAX_FOLLOWED:
        _ours[name] = found
    return found


def is_own_builtin(function: Any) -> bool:
    """True for a function of the package that kernels which it writes call, and that is no kernel."""
    module = getattr(function, "__module__", None) or ""
    return is_builtin(function) and module.startswith("tessera.")


def _is_pure(value: Any) -> bool:
    """True if what a value's attributes and items give is all in the value."""
    if isinstance(value, ModuleType):  # nearly all owners of attributes are
        return False
    if isinstance(value, _PLAIN) or is_description(value):
        return True
    return is_ours(type(value).__module__) and not isinstance(
        value, (JITCallable, ConstexprFunction, type)
    )


class _WatchedModule(ModuleType):
    """A module that signals assignments to its names, but for the first import of a submodule, which
    changes nothing that a kernel can have read."""

    def __setattr__(self, name: str, value: Any) -> None:
        submodule = sys.modules.get(f"{self.__name__}.{name}", self)
        imported = name not in vars(self) and submodule is value
        super().__setattr__(name, value)
        if not imported:
            note_change()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        note_change()


def watch_module(module: Any) -> None:
    """Has launches look again at all they depend on after an assignment to the module."""
    if type(module) is ModuleType:
        module.__class__ = _WatchedModule


def find_name(fn: JITCallable, name: str) -> Name:
    """The value of a function's free name: a closure's variable or a module's."""
    function = fn.fn
    if function.__closure__ and name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return Name(cell, cell.cell_contents)
        except ValueError:  # not assigned yet
            return Name(cell, MISSING)
    namespace = function.__globals__
    return Name(namespace, namespace.get(name, MISSING))


class Reads:
    """The reads of one compilation of `kernel`; see the module."""

    def __init__(self, kernel: JITCallable) -> None:
        self.checks: dict[Any, Check] = {}
        self.library: dict[Any, Check] = {}
        self.portable: Optional[dict[Path, Any]] = {}
        self.files: dict[str, str] = {}
        """Hashes of the files of libraries, by their paths."""
        self._paths: dict[int, Path] = {}
        self._kept: list[Any] = []
        self._place(kernel, ())
        self._place(tensor, (("tensor", None),))

    def hot(self) -> tuple[Check, ...]:
        """The checks of a launch."""
        return tuple(self.checks.values())

    def full(self) -> tuple[Check, ...]:
        """Those, and the ones of the language's own modules."""
        return (*self.checks.values(), *self.library.values())

    # --- Reads of the front-end -----------------------------------------------------

    def argument(self, index: int, value: Any) -> None:
        """A constant argument of the kernel."""
        self._watch(value)
        self._place(value, (("argument", index),))

    def function(self, fn: JITCallable) -> None:
        """A function whose body is built."""
        if is_ours(fn.__module__):
            return
        for name in ("fn", "noinline"):  # which signal assignments
            self._check((vars(fn), name, vars(fn)[name]), True)
        self._check_function(fn.fn)
        for default in (*(fn.fn.__defaults__ or ()), *(fn.fn.__kwdefaults__ or {}).values()):
            self._watch(default)

    def name(self, fn: JITCallable, name: str) -> Any:
        """The value of a free name of `fn`, MISSING if there is none."""
        is_library = is_ours(fn.__module__)
        if is_library:
            watch_module(sys.modules.get(fn.__module__))
        place, value = find_name(fn, name)
        if isinstance(place, CellType):
            self._check((place,) if value is MISSING else (place, value), is_library)
            place = fn.fn.__globals__
            if value is MISSING and name in place:
                value = place[name]
                self._check((place, name, value), is_library)
        elif value is not MISSING:
            self._check((place, name, value), is_library)
        if value is MISSING:
            value = getattr(builtins, name, MISSING)
            self._check((place, name), is_library)
            self._check_entry(vars(builtins), name, is_library)
        self._note(fn, ("name", name), value)
        return value

    def attribute(self, owner: Any, name: str) -> Any:
        """The value of an attribute, MISSING if there is none."""
        watched = isinstance(owner, ModuleType) and is_ours(owner.__name__)
        if watched:
            watch_module(owner)
        value = getattr(owner, name, MISSING)
        if _is_pure(owner) or (isinstance(owner, tuple) and name in getattr(owner, "_fields", ())):
            return value
        members = vars(owner) if isinstance(owner, ModuleType) else None
        if members is not None and (name in members or value is MISSING):
            self._check_entry(members, name, watched)
        elif value is MISSING:
            self._check((lambda: not hasattr(owner, name), None, None), watched, (owner, name))
        elif getattr(owner, name, MISSING) is value:
            self._check((owner, name, value), watched or owner is tensor)
        elif isinstance(value, MethodType):  # made anew each time
            function = value.__func__
            unchanged = lambda: getattr(getattr(owner, name, None), "__func__", None) is function
            self._check((unchanged, None, None), watched, (owner, name))
        else:
            kept = _Equal(owner, name, value)
            self._check((kept, None, None), watched, (owner, name))
        self._note(owner, ("attribute", name), value)
        return value

    def item(self, owner: Any, key: Any, value: Any) -> None:
        """`owner[key]` gave `value`."""
        if isinstance(owner, tuple) and (
            id(owner) not in self._paths or any(isinstance(part, tensor) for part in owner)
        ):
            return  # of arguments, or what the kernel has made itself
        if not _is_pure(owner) and id(value) not in self._paths:
            self._note(owner, ("item", key), value)

    def called(self, function: Any) -> None:
        """Python code of the user's that runs while the kernel is compiled."""
        if is_ours(getattr(function, "__module__", None)) or is_own_builtin(function):
            return
        if isinstance(getattr(function, "__self__", MISSING), (*_PLAIN, tuple)):
            return  # a method of a constant
        self.portable = None
        _Follower(self, function).follow(function)

    # --- Noting ---------------------------------------------------------------------

    def _check(self, check: Check, is_library: bool = False, key: Any = None) -> None:
        owner, name = key or (check[0], check[1] if len(check) > 1 else None)
        if not isinstance(name, str):
            name = None
        checks = self.library if is_library else self.checks
        checks.setdefault((id(owner), name), check)
        self._kept.append(owner)

    def _check_entry(self, members: Mapping[str, Any], name: str, is_library: bool = False) -> None:
        present = (members, name, members[name]) if name in members else (members, name)
        self._check(present, is_library)

    def _check_function(self, function: FunctionType) -> None:
        keywords = function.__kwdefaults__
        self._check((function, function.__code__, function.__defaults__, keywords))
        for name, value in (keywords or {}).items():
            self._check((keywords, name, value))

    def _note(self, owner: Any, step: tuple[str, Any], value: Any) -> None:
        self._watch(value)
        if self.portable is None:
            return
        path = self._paths.get(id(owner))
        if path is None:
            if not isinstance(owner, JITCallable) or not is_ours(owner.__module__):
                self.portable = None
            return
        path = (*path, step)
        self.portable.setdefault(path, value)
        self._place(value, path)

    def _place(self, value: Any, path: Path) -> None:
        while isinstance(value, types.constexpr):
            self._kept.append(value)
            value = value.value
        if not isinstance(value, _PLAIN) and id(value) not in self._paths:
            self._kept.append(value)
            self._paths[id(value)] = path
        if isinstance(value, tuple):
            for index, item in enumerate(value):
                self._place(item, (*path, ("item", index)))

    def _watch(self, value: Any, depth: int = 0) -> None:
        """Checks that what can change in a value has not."""
        if isinstance(value, _FIXED) or value is MISSING:
            return
        if depth > 20 or (id(value), "contents") in self.checks:
            return
        if isinstance(value, types.constexpr):
            self._check((vars(value), "value", value.value), True)
            self._watch(value.value, depth + 1)
        elif isinstance(value, (tuple, frozenset)):
            for item in value:
                self._watch(item, depth + 1)
        elif not isinstance(value, (JITCallable, ConstexprFunction, MethodType)):
            contents = _contents(value)
            if contents is None:
                return
            self._check((_Unchanged(value, contents), None, None), key=(value, "contents"))
            self.portable = None
            for item in contents:
                self._watch(item, depth + 1)


def _contents(value: Any) -> Optional[list[Any]]:
    """The contents of an object, as far as Python shows them."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, set)):
        return list(value)
    try:
        return [bytes(memoryview(value).cast("B"))]
    except (TypeError, ValueError, BufferError):
        pass
    held: list[Any] = []
    members = getattr(value, "__dict__", None)
    if isinstance(members, dict):
        held += [*members.keys(), *members.values()]
    for cls in type(value).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            held += [getattr(value, name, MISSING)]
    return held or None


class _Unchanged:
    """A check that an object still holds the same contents."""

    def __init__(self, value: Any, contents: list[Any]) -> None:
        self.value = value
        self.contents = contents

    def __call__(self) -> bool:
        now = _contents(self.value) or []
        return len(now) == len(self.contents) and all(
            a is b or (type(a) is bytes and a == b) for a, b in zip(now, self.contents)
        )


class _Equal:
    """A check that an attribute that is made anew at each reading gives the same constant."""

    def __init__(self, owner: Any, name: str, value: Any) -> None:
        self.owner = owner
        self.name = name
        self.value = _exact(value)

    def __call__(self) -> bool:
        return self.value is not None and _exact(getattr(self.owner, self.name)) == self.value


def _exact(value: Any) -> Any:
    """Equal for constants that are the same in type and value; None for other things."""
    if isinstance(value, types.constexpr):
        value = value.value
    if isinstance(value, tuple):
        items = [_exact(item) for item in value]
        return None if None in items else (type(value), *items)
    return (type(value), repr(value)) if isinstance(value, _PLAIN) else None


class _Follower:
    """Records the reads of Python code, as far as the names in it show them."""

    def __init__(self, reads: Reads, start: Any) -> None:
        self.reads = reads
        self.package = (getattr(start, "__module__", None) or "").partition(".")[0]
        self.seen: set[tuple[int, int]] = set()
        self.kept: list[Any] = []

    def follow(self, value: Any, names: frozenset[str] = frozenset()) -> None:
        """`value` is called, or read by code that spells `names`."""
        known = (id(value), id(names))
        if isinstance(value, _PLAIN) or known in self.seen or len(self.seen) > _MAX_FOLLOWED:
            return
        self.seen.add(known)
        self.kept += [value, names]  # and so their ids stay theirs
        reads = self.reads
        reads._watch(value)
        if isinstance(value, (ConstexprFunction, JITCallable)):
            reads._check((vars(value), "fn", value.fn))
            self.follow(value.fn)
        elif isinstance(value, FunctionType):
            if (id(value), 0) not in self.seen:
                self.seen.add((id(value), 0))
                self._function(value)
        elif isinstance(value, MethodType):
            self.follow(value.__func__)
            owner, code = value.__self__, getattr(value.__func__, "__code__", None)
            # The fields of an aggregate are values of the kernel; the rest is its class's.
            owner = owner if fields_of(owner) is None else type(owner)
            self.follow(owner, names.union(_code_names(code)) if code is not None else names)
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self.follow(part, names)
        elif isinstance(value, (tuple, list, set, frozenset)):
            for item in value:
                self.follow(item, names)
        elif isinstance(value, dict):
            for item in value.values():
                self.follow(item, names)
        elif isinstance(value, types.constexpr):
            self.follow(value.value, names)
        elif isinstance(value, ModuleType):
            if not is_ours(value.__name__):
                for name in sorted(names.intersection(vars(value))):
                    reads._check_entry(vars(value), name)
                    self.follow(vars(value)[name], names)
        else:
            cls = value if isinstance(value, type) else type(value)
            if (id(cls), 0) not in self.seen:
                self.seen.add((id(cls), 0))
                self._class(cls)
            for name in sorted(names):
                self._attribute(value, name, names)

    def _class(self, cls: type) -> None:
        for base in cls.__mro__:
            if not self._is_followed(base):
                continue
            for name, member in list(vars(base).items()):
                member = getattr(member, "__func__", getattr(member, "fget", None) or member)
                if isinstance(member, FunctionType):
                    self._attribute(base, name, frozenset())
                    self.follow(member)

    def _attribute(self, owner: Any, name: str, names: frozenset[str]) -> None:
        value = getattr(owner, name, MISSING)
        if value is MISSING or isinstance(value, MethodType):
            return
        if getattr(owner, name, MISSING) is value:
            self.reads._check((owner, name, value))
        self.follow(value, names)

    def _function(self, function: FunctionType) -> None:
        if not self._is_followed(function):
            return
        reads = self.reads
        reads._check_function(function)
        names = frozenset(_code_names(function.__code__))
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.follow(value, names)
        for cell in function.__closure__ or ():
            try:
                reads._check((cell, cell.cell_contents))
            except ValueError:
                reads._check((cell,))
                continue
            self.follow(cell.cell_contents, names)
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self.follow(wrapped)
        namespace = function.__globals__
        if is_ours(namespace.get("__name__")):
            return  # what a decorator of ours has made
        for name in sorted(names):
            if name in namespace:
                reads._check((namespace, name, namespace[name]))
                self.follow(namespace[name], names)
            elif hasattr(builtins, name):
                reads._check((namespace, name))

    def _is_followed(self, value: Any) -> bool:
        """True if it is the user's code, and not that of a library."""
        module = getattr(value, "__module__", None) or ""
        if is_ours(module) or module == "builtins":
            return False
        if module.partition(".")[0] == self.package:
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        return file is not None and not file.startswith(_library_folders())


@functools.lru_cache(maxsize=None)
def _library_folders() -> tuple[str, ...]:
    import sysconfig

    paths = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _code_names(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that code spells, as strings too (`getattr`)."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant
