"""Changes of the Python side: what handlers must have, and what typed callers and readers of models see.

Takes two lowered manifests and compares the interfaces of the packages that are generated from them, so that names,
types and defaults are those that users meet. Only what the two differ in is generated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolwright.diagnostics import Place
from toolwright.diagnostics.suggestions import quoted
from toolwright.diff.changes import Change, Impact

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.diff.tools import Pair

_MODELS = re.compile(r"models/(?!__init__)(\w+/(?!__init__))?\w+\.py")

Role: TypeAlias = Literal["input", "output", "both"]
"""Whether handlers read instances of a class, make them, or it is shared."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A parameter or an attribute: its type as text, and its default, None where it must be given."""

    type: str
    default: str | None


@dataclass(frozen=True, slots=True)
class _Method:
    """A method: its parameters by name, and the type of what it gives."""

    parameters: Mapping[str, _Member]
    gives: str


@dataclass(frozen=True, slots=True)
class _Interface:
    """What one package offers."""

    handlers: Mapping[str, _Method] = field(default_factory=dict)
    client: Mapping[str, _Method] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, _Member]] = field(default_factory=dict)


def changes(pair: Pair) -> Iterator[Change]:
    """All changes of the Python side."""
    yield from _package(pair.old, pair.new)
    if not pair.old.emit & pair.new.emit:
        return
    old, new = _narrowed(pair)
    before, after = _interface(old), _interface(new)
    places = _Places.of(pair)
    yield from _handlers(before, after, places)
    yield from _client(before, after, places)
    yield from _classes(before, after, places)


def _package(old: ir.Manifest, new: ir.Manifest) -> Iterator[Change]:
    def at(manifest: ir.Manifest, *steps: str) -> Place:
        return Place(manifest.source, steps)

    for what, was, now in (("package", old.package, new.package), ("start of the classes", old.stem, new.stem)):
        if was != now:
            message = f"the {what} was `{was}`, and is `{now}`"
            yield Change("TW580", "python", "breaking", "package", message, at(old, "server"), at(new, "server"))
    for half in sorted(old.emit - new.emit):
        message = f"the {half} is no longer generated"
        yield Change("TW580", "python", "breaking", "package", message, at(old, "emit"), at(new, "emit"))
    for half in sorted(new.emit - old.emit):
        message = f"the {half} is generated now"
        yield Change("TW580", "python", "compatible", "package", message, at(old, "emit"), at(new, "emit"))


def _handlers(before: _Interface, after: _Interface, places: _Places) -> Iterator[Change]:
    for name, method in after.handlers.items():
        was = before.handlers.get(name)
        about = f"handler `{name}`"
        if was is None:
            why = "without it the server does not start; `toolwright generate` shows the stub"
            yield _change("TW581", "breaking", about, "handlers must have this method", places, name, why)
        elif was != method:
            message = f"its signature was {_signature(was)}, and is {_signature(method)}"
            impact: Impact = "may break" if was.gives == method.gives else "breaking"
            yield _change("TW583", impact, about, message, places, name)
    for name in before.handlers:
        if name not in after.handlers:
            why = "nothing calls it any more; its annotations may name classes that are gone"
            yield _change(
                "TW582", "may break", f"handler `{name}`", "the method is no longer called", places, name, why
            )


def _client(before: _Interface, after: _Interface, places: _Places) -> Iterator[Change]:
    for name in before.client:
        if name not in after.client:
            yield _change("TW582", "breaking", f"client `{name}`", "the method is gone", places, name)
    for name, method in after.client.items():
        was = before.client.get(name)
        about = f"client `{name}`"
        if was is None:
            yield _change("TW590", "compatible", about, "a new method", places, name)
            continue
        for parameter, now in method.parameters.items():
            then = was.parameters.get(parameter)
            if then is None:
                impact: Impact = "breaking" if now.default is None else "compatible"
                kind = "required" if now.default is None else "optional"
                yield _change("TW584", impact, about, f"the {kind} parameter `{parameter}` is new", places, name)
                continue
            if then.default is not None and now.default is None:
                yield _change("TW584", "breaking", about, f"the parameter `{parameter}` is required now", places, name)
            elif then.default is None and now.default is not None:
                message = f"the parameter `{parameter}` is no longer required"
                yield _change("TW584", "compatible", about, message, places, name)
            taken, takes = _alternatives(then.type) - {"Omit"}, _alternatives(now.type) - {"Omit"}
            if taken - takes:
                yield _change("TW585", "may break", about, _retyped(parameter, then, now), places, name)
            elif takes - taken:
                yield _change("TW585", "compatible", about, _retyped(parameter, then, now), places, name)
        for parameter in was.parameters:
            if parameter not in method.parameters:
                yield _change("TW584", "breaking", about, f"the parameter `{parameter}` is gone", places, name)
        if was.gives != method.gives:
            message = f"it gave `{was.gives}`, and gives `{method.gives}`"
            yield _change("TW585", "breaking", about, message, places, name)


def _classes(before: _Interface, after: _Interface, places: _Places) -> Iterator[Change]:
    for name, members in before.classes.items():
        if name not in after.classes:
            yield _change("TW586", "breaking", f"class `{name}`", "the class is gone", places, name)
            continue
        yield from _members(name, members, after.classes[name], places)


def _members(
    name: str, before: Mapping[str, _Member], after: Mapping[str, _Member], places: _Places
) -> Iterator[Change]:
    about, role = f"class `{name}`", _role(name)
    is_read = role == "input" and name.endswith(("Input", "Params", "Args"))  # callers give its attributes as keywords
    makers = f"{'handlers' if role == 'output' else 'typed callers'} that make one must give it"
    for attribute, now in after.items():
        was = before.get(attribute)
        if was is None:
            impact: Impact = "compatible" if is_read or now.default is not None else "breaking"
            message = f"the attribute `{attribute}` is new"
            why = makers if impact == "breaking" else None
            yield _change("TW587", impact, about, message, places, name, why)
            continue
        takes, taken = _alternatives(now.type), _alternatives(was.type)
        needed = was.default is not None and now.default is None
        if was.type != now.type and not (needed and taken - takes == {"None"} and takes < taken):
            message = f"`{attribute}` was `{was.type}`, and is `{now.type}`"
            impact = "compatible" if takes < taken and is_read else "may break"
            why = _why_retyped(role, takes - taken, taken - takes) if impact == "may break" else None
            yield _change("TW588", impact, about, message, places, name, why)
        if was.default == now.default:
            continue
        if needed:
            message = f"`{attribute}` had the default `{was.default}`, and has none"
            impact = "compatible" if is_read else "breaking"
            yield _change("TW589", impact, about, message, places, name, None if is_read else makers)
        elif was.default is None:
            message = f"`{attribute}` had no default, and has `{now.default}`"
            yield _change("TW589", "compatible", about, message, places, name)
        else:
            message = f"the default of `{attribute}` was `{was.default}`, and is `{now.default}`"
            yield _change("TW589", "may break", about, message, places, name)
    for attribute in before:
        if attribute not in after:
            yield _change("TW587", "breaking", about, f"the attribute `{attribute}` is gone", places, name)


def _why_retyped(role: Role, more: frozenset[str], less: frozenset[str]) -> str:
    """Whom another type of an attribute may break: it has `more` alternatives, and no longer `less`."""
    if more:
        readers = {"input": "handlers that read", "output": "typed callers that read", "both": "code that reads"}
        return f"{readers[role]} it must expect {quoted(sorted(more))}"
    makers = {"input": "typed callers that give", "output": "handlers that give", "both": "code that gives"}
    return f"{makers[role]} it {quoted(sorted(less))} must change"


def _role(name: str) -> Role:
    """What a class is for, by the stem that its tool gave it."""
    if "Output" in name:
        return "output"
    return "input" if any(word in name for word in ("Input", "Params", "Args")) else "both"


def _narrowed(pair: Pair) -> tuple[ir.Manifest, ir.Manifest]:
    """The manifests without the tools in which both are alike."""
    alike = {
        tool.name
        for old, tool in pair.both()
        if (old.name, old.definition, old.names, old.questions, old.deprecated, old.input.shared)
        == (tool.name, tool.definition, tool.names, tool.questions, tool.deprecated, tool.input.shared)
    }
    old, new = (
        replace(manifest, tools=tuple(tool for tool in manifest.tools if tool.name not in alike))
        for manifest in (pair.old, pair.new)
    )
    return old, new


def _interface(manifest: ir.Manifest) -> _Interface:
    from toolwright.compile import pipeline
    from toolwright.project import lock

    shown = replace(
        manifest, document={**manifest.document, "tools": [dict(tool.definition) for tool in manifest.tools]}
    )
    handlers: dict[str, _Method] = {}
    client: dict[str, _Method] = {}
    classes: dict[str, dict[str, _Member]] = {}
    for artifact in pipeline.generate(shown, lock.Entry("")):
        inside = artifact.path.removeprefix(f"{manifest.package}/")
        if inside not in ("handlers.py", "client.py") and not _MODELS.fullmatch(inside):
            continue
        for node in ast.parse(artifact.data).body:
            if isinstance(node, ast.ClassDef):
                if inside == "handlers.py":
                    handlers |= dict(_methods(node))
                elif inside == "client.py":
                    client |= dict(_methods(node))
                else:
                    classes[node.name] = dict(_attributes(node))
    return _Interface(handlers, client, classes)


def _methods(node: ast.ClassDef) -> Iterator[tuple[str, _Method]]:
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            listed = inner.args
            positional = listed.args[1:]
            defaults: list[ast.expr | None] = [None] * (len(positional) - len(listed.defaults)) + list(listed.defaults)
            members = {
                one.arg: _member(one.annotation, default)
                for one, default in (
                    *zip(positional, defaults, strict=True),
                    *zip(listed.kwonlyargs, listed.kw_defaults, strict=True),
                )
            }
            yield inner.name, _Method(
                members, ast.unparse(inner.returns).removeprefix("_models.") if inner.returns else "None"
            )


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, _Member]]:
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id, _attribute(inner)


def _attribute(node: ast.AnnAssign) -> _Member:
    """An attribute of a model; what `Field` says of its alias is no default."""
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Field":
        said = {keyword.arg: keyword.value for keyword in value.keywords}
        value = value.args[0] if value.args else said.get("default", said.get("default_factory"))
    return _member(node.annotation, value)


def _member(annotation: ast.expr | None, default: ast.expr | None) -> _Member:
    given = None if default is None or ast.unparse(default) == "..." else ast.unparse(default)
    return _Member(ast.unparse(annotation) if annotation else "Any", given)


def _alternatives(text: str) -> frozenset[str]:
    """The members of a union, each value of a `Literal` for itself."""
    found: set[str] = set()
    waiting: list[ast.expr] = [ast.parse(text, mode="eval").body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            waiting += [node.left, node.right]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found |= {f"Literal[{ast.unparse(value)}]" for value in values}
        else:
            found.add(ast.unparse(node))
    return frozenset(found)


def _signature(method: _Method) -> str:
    listed = ", ".join(f"{name}: {one.type}" for name, one in method.parameters.items())
    return f"`({listed}) -> {method.gives}`"


def _retyped(name: str, was: _Member, now: _Member) -> str:
    return f"`{name}` was `{_given(was.type)}`, and is `{_given(now.type)}`"


def _given(text: str) -> str:
    return text.removesuffix(" | Omit")


@dataclass(frozen=True, slots=True)
class _Places:
    """Where Python names come from: the place of each primitive, by its method and the stem of its classes."""

    old: Sequence[tuple[str, str, Place]]
    new: Sequence[tuple[str, str, Place]]

    @classmethod
    def of(cls, pair: Pair) -> _Places:
        """The places of both manifests."""
        sides: list[list[tuple[str, str, Place]]] = []
        for manifest in (pair.old, pair.new):
            listed: list[ir.Tool | ir.Primitive] = [*manifest.tools, *manifest.resources, *manifest.templates]
            listed += manifest.prompts
            sides.append([(one.names.method, one.names.stem, one.place) for one in listed])
        return cls(*sides)

    def find(self, name: str) -> tuple[Place | None, Place | None]:
        """Where a method or a class comes from, on both sides."""
        return _nearest(name, self.old), _nearest(name, self.new)


def _nearest(name: str, known: Sequence[tuple[str, str, Place]]) -> Place | None:
    found = [
        (len(stem), place)
        for method, stem, place in known
        if name in (method, f"complete_{method}") or name.startswith(stem)
    ]
    return max(found, key=lambda one: one[0])[1] if found else None


def _change(
    code: str, impact: Impact, about: str, message: str, places: _Places, name: str, why: str | None = None
) -> Change:
    old, new = places.find(name)
    return Change(code, "python", impact, about, message, old, new, why)
