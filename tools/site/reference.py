# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reference pages of Python modules, from signatures and docstrings as they are when imported.

Docstrings are Markdown. Each name becomes an entry of Sphinx's Python domain, so it has an
address, stands in the index and the search, and other projects can link to it (objects.inv).
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import generate_docs
import markdown

_ANY = ("Any", "typing.Any", "'Any'", "Optional[Any]", "'Optional[Any]'")


def target_of(value: Any) -> Any:
    """The Python function behind a kernel, a builtin or a helper."""
    return value if inspect.isclass(value) else getattr(value, "fn", value)


def docstring(value: Any) -> str:
    """The docstring of an object's own; of a plain value there is none."""
    target = target_of(value)
    text = getattr(target, "__doc__", None)
    if not isinstance(text, str) or text == getattr(type(target), "__doc__", None):
        return ""
    if inspect.isclass(target) and "__doc__" not in vars(target):
        return ""
    if dataclass_doc(target, text):
        return ""
    return inspect.cleandoc(text)


def dataclass_doc(target: Any, text: str) -> bool:
    """True if Python itself wrote the docstring, which is then the signature."""
    return hasattr(target, "__dataclass_fields__") and text.startswith(f"{target.__name__}(")


def signature(value: Any, drop_first: bool = False) -> str:
    """The parameters as a user writes them, with the types that say something."""
    try:
        whole = inspect.signature(value)
        if list(whole.parameters) == ["args", "kwargs"] and target_of(value) is not value:
            whole = inspect.signature(target_of(value))
    except (TypeError, ValueError):
        return "()"
    parameters = list(whole.parameters.values())
    if drop_first:
        parameters = parameters[1:]
    shown = [_shown(parameter) for parameter in parameters if not parameter.name.startswith("_")]
    result = whole.return_annotation
    arrow = "" if result is whole.empty or _spelt(result) in _ANY else f" -> {_spelt(result)}"
    text = ", ".join(_with_marks(shown))
    return f"({text}){arrow}"


def _shown(parameter: inspect.Parameter) -> tuple[inspect.Parameter, str]:
    text = parameter.name
    has_type = parameter.annotation is not parameter.empty and (
        _spelt(parameter.annotation) not in _ANY
    )
    if has_type:
        text += f": {_spelt(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        if default.startswith("<"):  # of an object whose text is no expression
            default = "..."
        text += f" = {default}" if has_type else f"={default}"
    if parameter.kind == parameter.VAR_POSITIONAL:
        text = "*" + text
    elif parameter.kind == parameter.VAR_KEYWORD:
        text = "**" + text
    return parameter, text


def _with_marks(shown: Sequence[tuple[inspect.Parameter, str]]) -> Iterator[str]:
    """The texts of parameters with `/` and `*` between them."""
    has_star = False
    for index, (parameter, text) in enumerate(shown):
        if parameter.kind == parameter.VAR_POSITIONAL:
            has_star = True
        if parameter.kind == parameter.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        yield text
        is_last = index + 1 == len(shown)
        if parameter.kind == parameter.POSITIONAL_ONLY and (
            is_last or shown[index + 1][0].kind != parameter.POSITIONAL_ONLY
        ):
            yield "/"


def _spelt(annotation: Any) -> str:
    if isinstance(annotation, str):
        text = annotation.strip("'\"")
    elif isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        text = annotation.__name__
    else:
        text = str(annotation)
    text = re.sub(r"\btyping\.", "", text)
    text = re.sub(r"\btessera\.(?:[a-z_]+\.)+", "", text)
    return text.replace("_C.", "").replace("NoneType", "None")


def attribute_docs(source: Any) -> dict[str, str]:
    """The strings under assignments of a class or a module: `x = 1` and then a text."""
    if source not in _TEXTS:
        _TEXTS[source] = _read_attribute_docs(source)
    return _TEXTS[source]


_TEXTS: dict[Any, dict[str, str]] = {}


def _read_attribute_docs(source: Any) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(source)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(source, type) else tree.body  # type: ignore[attr-defined]
    found: dict[str, str] = {}
    for name, text in _documented(body):
        found.setdefault(name, text)
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            for name, text in _documented(node.body):
                found.setdefault(name, text)
    return found


def _documented(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, following in zip(body, body[1:]):
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        text = following.value.value if is_text else None  # type: ignore[attr-defined]
        if not isinstance(text, str):
            continue
        targets: list[Any] = []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, inspect.cleandoc(text)
            elif isinstance(target, ast.Attribute):
                yield target.attr, inspect.cleandoc(text)


def directive(kind: str, head: str, body: Iterable[str], *options: str) -> list[str]:
    """An entry of the Python domain. Its fence is longer than those of what is inside."""
    lines = [line for part in body for line in part.splitlines() or [""]]
    colons = max(
        (len(match[1]) for line in lines if (match := re.match(r"(:{3,})\{", line))), default=2
    )
    fence = ":" * (colons + 1)
    return [f"{fence}{{py:{kind}}} {head}", *options, "", *lines, fence, ""]


def prose(text: str) -> str:
    """A docstring as Markdown: examples in `>>>` are code, headings become bold."""
    text = generate_docs.with_fences(text)
    text = re.sub(r"^<!-- run:.*?-->\n", "", text, flags=re.MULTILINE | re.DOTALL)
    # Names with their meanings, indented by two, are a list.
    text = re.sub(r"^  (?=\*{0,2}\w+: )", "\n- ", text, flags=re.MULTILINE)
    text = re.sub(r"^- (\*{0,2}\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)
    lines: list[str] = []
    session: list[str] = []
    fence = False
    for line in [*text.splitlines(), ""]:
        if line.lstrip().startswith("```"):
            fence = not fence
        if not fence:
            line = re.sub(r"^#+ (.*)$", r"**\1**", line)
        if not fence and (line.lstrip().startswith(">>>") or (session and line.strip())):
            session.append(line)
            continue
        if session:
            lines += ["", markdown.fenced(textwrap.dedent("\n".join(session)), "pycon")]
            session = []
        lines.append(line)
    return "\n".join(lines).rstrip()


class Reference:
    """Entries of one public module: names as `module.name`, each at one place alone."""

    def __init__(self) -> None:
        self.places: dict[int, str] = {}
        """Where an object has been described, by its identity."""

    def entry(self, module: str, name: str, value: Any, doc: str = "") -> list[str]:
        """The entry of one name."""
        full = f"{module}.{name}"
        place = [f":module: {module}"]
        known = self.places.get(id(value)) if _has_identity(value) else None
        if known is not None:
            kind = "class" if inspect.isclass(value) else "function"
            kind = kind if callable(value) else "data"
            says = f"The same as {{py:obj}}`{known}`."
            head = name + (signature(value) if kind == "function" else "")
            return directive(kind, head, [says], *place, ":no-index-entry:")
        if _has_identity(value):
            self.places[id(value)] = full
        if isinstance(value, ModuleType):
            return directive("data", name, [doc or first_sentence(docstring(value))], *place)
        if inspect.isclass(value) and value.__module__ == "builtins":
            return directive("class", name, [prose(doc)], *place)
        if inspect.isclass(value):
            return self._class(module, name, value)
        if callable(value) and not isinstance(value, type) and _is_function(value):
            body = [prose(docstring(value) or doc)]
            return directive("function", name + signature(value), body, *place)
        body = [prose(doc or docstring(value))]
        kind = type(value).__name__
        options = [*place, f":type: {kind}"]
        if isinstance(value, (int, float, str)) and not isinstance(value, enum.Enum):
            options.append(f":value: {json.dumps(repr(value))}")
        return directive("data", name, body, *options)

    def _class(self, module: str, name: str, cls: type) -> list[str]:
        body = [prose(docstring(cls))]
        head = name
        if f"{cls.__module__}.{cls.__qualname__}" in FIELDS_ONLY:
            pass
        elif not issubclass(cls, (BaseException, enum.Enum)):
            head += signature(cls).partition(" -> ")[0]
        bases = [base for base in cls.__bases__ if not base.__name__.startswith("_")]
        shown = [
            f"`{base.__name__}`"
            for base in bases
            if _is_public(base) or base.__module__ == "builtins"
        ]
        if shown and bases != [object]:
            body = [f"Bases: {', '.join(shown)}", "", *body]
        for member, entry in members(cls, name, self.places).items():
            body += ["", *entry]
        kind = "exception" if issubclass(cls, BaseException) else "class"
        return directive(kind, head, body, f":module: {module}")


def members(cls: type, full: str, places: Mapping[int, str]) -> dict[str, list[str]]:
    """The entries of what a class has that users see: methods, properties, documented fields."""
    found: dict[str, list[str]] = {}
    if issubclass(cls, enum.Enum):
        texts = attribute_docs(cls)
        for member in cls:
            found[member.name] = directive(
                "attribute", f"{full}.{member.name}", [prose(texts.get(member.name, ""))]
            )
        return found
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if not field.name.startswith("_"):
            text = attribute_docs(cls).get(field.name, "")
            found[field.name] = directive(
                "attribute", f"{full}.{field.name}", [prose(text)], *_kind(field)
            )
    if f"{cls.__module__}.{cls.__qualname__}" in FIELDS_ONLY:
        return found
    rest: dict[str, list[str]] = {}
    for base in cls.__mro__:
        if not base.__module__.startswith("tessera") or (base is not cls and _is_public(base)):
            continue
        for name, text in attribute_docs(base).items():
            if not name.startswith("_") and name not in found:
                rest.setdefault(name, directive("attribute", f"{full}.{name}", [prose(text)]))
        for name, value in vars(base).items():
            if name.startswith("_") or name in found or name in rest:
                continue
            entry = _member(f"{full}.{name}", value, places)
            if entry:
                rest[name] = entry
    return {**found, **dict(sorted(rest.items()))}


# Users set only the fields of these; their methods are for the compiler.
FIELDS_ONLY = ("tessera.compiler.options.CompileOptions",)


def _kind(field: dataclasses.Field[Any]) -> list[str]:
    """The options of an entry that say the type and the default of a field."""
    options = []
    if _spelt(field.type) not in _ANY:
        options.append(f":type: {_spelt(field.type)}")
    if field.default is not dataclasses.MISSING and not repr(field.default).startswith("<"):
        options.append(f":value: {json.dumps(repr(field.default))}")
    return options


def _is_public(cls: type) -> bool:
    """True if a class has an entry of its own, which describes its members."""
    return cls.__name__ in getattr(sys.modules.get(cls.__module__), "__all__", ())


def _member(full: str, value: Any, places: Mapping[int, str]) -> list[str]:
    if isinstance(value, property):
        result = ""
        getter = value.fget
        annotation = getattr(getter, "__annotations__", {}).get("return")
        if annotation is not None and _spelt(annotation) not in _ANY:
            result = f":type: {_spelt(annotation)}"
        return directive("property", full, [prose(docstring(value))], *([result] if result else []))
    options = []
    if isinstance(value, (staticmethod, classmethod)):
        options = [f":{type(value).__name__}:"]
        value = value.__func__
    if not _is_function(value):
        return []
    head = full + signature(value, drop_first=":staticmethod:" not in options)
    place = places.get(id(value)) or _function_of(full)
    if not place:
        return directive("method", head, [prose(docstring(value))], *options)
    # A tensor's method is a function of the language.
    text = f"{first_sentence(docstring(value))} The function: {{py:func}}`{place}`."
    return directive("method", head, [text], *options)


def _function_of(full: str) -> str:
    """The function of the language that a method of a tensor stands for."""
    owner, _, name = full.rpartition(".")
    language = "tessera.language"
    is_named = owner == "tensor" and name in public_names(load(language))
    return f"{language}.{name}" if is_named else ""


def _is_function(value: Any) -> bool:
    return isinstance(target_of(value), FunctionType) or inspect.isbuiltin(value)


def _has_identity(value: Any) -> bool:
    return inspect.isclass(value) or _is_function(value) or isinstance(value, ModuleType)


def first_sentence(text: str) -> str:
    """The first paragraph, in one line."""
    return " ".join(text.split("\n\n")[0].split())


def home(value: Any) -> str:
    """The module in which an object is made."""
    return str(getattr(target_of(value), "__module__", "") or "")


def public_names(module: ModuleType) -> list[str]:
    """The names in `__all__`, or all that the module defines."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and home(value) == module.__name__
        ]
    return list(dict.fromkeys(names))


def load(name: str) -> ModuleType:
    """A module by its name."""
    return importlib.import_module(name)
