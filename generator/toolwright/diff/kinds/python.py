"""Changes of the Python side: what handlers must have, and what typed callers and readers of models see.

Takes two lowered manifests and compares the surfaces of their packages, so that names, types, defaults and roles are
those that users meet. Only what the two differ in is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from toolwright.codegen.surface import Class, ClientMethod, Enumeration, Field, HandlerMethod, Parameter, Surface, Type
from toolwright.diagnostics import Place
from toolwright.diagnostics.suggestions import quoted
from toolwright.diff.changes import Change, Impact
from toolwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.diff.kinds.tools import Pair
    from toolwright.pycode import Code

Use: TypeAlias = Literal["input", "output", "both"]
"""Whether handlers read instances of a class, make them, or both may be."""


def changes(pair: Pair) -> Iterator[Change]:
    """All changes of the Python side."""
    yield from _package(pair.old, pair.new)
    if not pair.old.emit & pair.new.emit:
        return
    from toolwright.codegen.models import datamodel

    before, after = (datamodel.surface_of(manifest) for manifest in _narrowed(pair))
    olds, news = (dict(_places(manifest)) for manifest in (pair.old, pair.new))
    sides = _Sides(before, after, _led(olds, news), _led(news, olds))
    yield from _handlers(sides)
    yield from _client(sides)
    yield from _classes(sides)
    yield from _enumerations(sides)


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


def _handlers(sides: _Sides) -> Iterator[Change]:
    old, new = _by_name(sides.old.handlers), _by_name(sides.new.handlers)
    for name, method in new.items():
        was = old.get(name)
        about = sides.about(f"handler `{name}`", was, method)
        if was is None:
            why = "without it the server does not start; `toolwright generate` shows the stub"
            yield about.change("TW581", "breaking", "handlers must have this method", why)
        elif not _is_same_signature(was, method):
            message = f"its signature was `{_signature(was)}`, and is `{_signature(method)}`"
            yield about.change("TW583", "may break" if _is_same(was.returns, method.returns) else "breaking", message)
    for name, gone in old.items():
        if name not in new:
            why = "nothing calls it any more; its annotations may name classes that are gone"
            yield sides.about(f"handler `{name}`", gone, None).change(
                "TW582", "may break", "the method is no longer called", why
            )


def _client(sides: _Sides) -> Iterator[Change]:
    old, new = _by_name(sides.old.client), _by_name(sides.new.client)
    for name, gone in old.items():
        if name not in new:
            yield sides.about(f"client `{name}`", gone, None).change("TW582", "breaking", "the method is gone")
    for name, method in new.items():
        was = old.get(name)
        about = sides.about(f"client `{name}`", was, method)
        if was is None:
            yield about.change("TW590", "compatible", "a new method")
        else:
            yield from _call(was, method, about)


def _call(was: ClientMethod, method: ClientMethod, about: _About) -> Iterator[Change]:
    """Changes of a method of the client."""
    old, new = _by_name(was.parameters), _by_name(method.parameters)
    for name, now in new.items():
        then = old.get(name)
        if then is None:
            needed = now.default is None
            message = f"the {'required' if needed else 'optional'} parameter `{name}` is new"
            yield about.change("TW584", "breaking" if needed else "compatible", message)
            continue
        if then.default is not None and now.default is None:
            yield about.change("TW584", "breaking", f"the parameter `{name}` is required now")
        elif then.default is None and now.default is not None:
            yield about.change("TW584", "compatible", f"the parameter `{name}` is no longer required")
        less, more = _without(then.given, now.given), _without(now.given, then.given)
        if (less or more) and not _is_same(then.given.text, now.given.text):
            message = f"`{name}` was `{then.given.text}`, and is `{now.given.text}`"
            yield about.change("TW585", "may break" if less else "compatible", message)
    for name in old:
        if name not in new:
            yield about.change("TW584", "breaking", f"the parameter `{name}` is gone")
    if not _is_same(was.returns.text, method.returns.text):
        message = f"it gave `{was.returns.text}`, and gives `{method.returns.text}`"
        yield about.change("TW585", "breaking", message)


def _classes(sides: _Sides) -> Iterator[Change]:
    old, new = _by_name(sides.old.classes), _by_name(sides.new.classes)
    for name, was in old.items():
        about = sides.about(f"class `{name}`", was, new.get(name))
        if name in new:
            yield from _fields(was, new[name], about)
            yield from _values(was, new[name], about)
        else:
            yield about.change("TW586", "breaking", "the class is gone")


def _enumerations(sides: _Sides) -> Iterator[Change]:
    """Changes of the types of shared enumerations."""
    old, new = _by_name(sides.old.enumerations), _by_name(sides.new.enumerations)
    for name, was in old.items():
        now = new.get(name)
        about = sides.about(f"type `{name}`", was, now)
        if now is None:
            yield about.change("TW586", "breaking", "the type is gone")
        elif not _is_same(was.type.text, now.type.text):
            less, more = _without(was.type, now.type), _without(now.type, was.type)
            message = f"`{name}` was `{was.type.text}`, and is `{now.type.text}`"
            yield about.change("TW588", "may break", message, _why_retyped("both", more, less))


def _fields(was: Class, now: Class, about: _About) -> Iterator[Change]:
    """Changes of the attributes of a class; those that it inherits from the same one as before are that one's."""
    use = _use(now)
    is_read = use == "input" and now.is_root  # callers give its attributes as keywords
    makers = f"{'handlers' if use == 'output' else 'typed callers'} that make one must give it"
    is_heir = was.base is not None and (was.base, was.is_alias) == (now.base, now.is_alias)
    old, new = (_by_name(each.fields if is_heir else each.all_fields) for each in (was, now))
    for name, field in new.items():
        if name in old:
            yield from _field(old[name], field, about, use, None if is_read else makers)
            continue
        impact: Impact = "compatible" if is_read or field.default is not None else "breaking"
        message = f"the attribute `{name}` is new"
        yield about.change("TW587", impact, message, makers if impact == "breaking" else None)
    for name in old:
        if name not in new:
            yield about.change("TW587", "breaking", f"the attribute `{name}` is gone")


def _values(was: Class, now: Class, about: _About) -> Iterator[Change]:
    """A change of what a class holds as a mapping."""
    before, after = (each.values.text if each.values is not None else None for each in (was, now))
    if before == after or (before is not None and after is not None and _is_same(before, after)):
        return
    if before is None or after is None:
        gone = "no longer" if after is None else "now"
        yield about.change("TW588", "may break", f"it is {gone} a mapping of keys to `{before or after}`")
    else:
        yield about.change("TW588", "may break", f"its values were `{before}`, and are `{after}`")


def _field(was: Field, now: Field, about: _About, use: Use, makers: str | None) -> Iterator[Change]:
    """Changes of one attribute; `makers` is what to tell those who make the class, where somebody does."""
    less, more = _without(was.type, now.type), _without(now.type, was.type)
    needed = was.default is not None and now.default is None
    if not _is_same(was.type.text, now.type.text) and not (needed and less == {"None"} and not more):
        message = f"`{now.name}` was `{was.type.text}`, and is `{now.type.text}`"
        impact: Impact = "compatible" if less and not more and makers is None else "may break"
        why = _why_retyped(use, more, less) if impact == "may break" else None
        yield about.change("TW588", impact, message, why)
    if was.default == now.default:
        return
    if needed:
        message = f"`{now.name}` had the default `{was.default}`, and has none"
        yield about.change("TW589", "compatible" if makers is None else "breaking", message, makers)
    elif was.default is None:
        message = f"`{now.name}` had no default, and has `{now.default}`"
        yield about.change("TW589", "compatible", message)
    else:
        message = f"the default of `{now.name}` was `{was.default}`, and is `{now.default}`"
        yield about.change("TW589", "may break", message)


def _why_retyped(use: Use, more: frozenset[Code], less: frozenset[Code]) -> str | None:
    """Whom another type of an attribute may break: it has `more` alternatives, and no longer `less`."""
    if not more and not less:
        return None
    if more:
        readers = {"input": "handlers that read", "output": "typed callers that read", "both": "code that reads"}
        return f"{readers[use]} it must expect {quoted(sorted(more))}"
    makers = {"input": "typed callers that give", "output": "handlers that give", "both": "code that gives"}
    return f"{makers[use]} it {quoted(sorted(less))} must change"


def _use(made: Class) -> Use:
    """Who reads a class, and who makes it."""
    if made.roles == {"output"}:
        return "output"
    return "input" if made.roles <= {"input", "arguments", "variables"} else "both"


def _narrowed(pair: Pair) -> tuple[ir.Manifest, ir.Manifest]:
    """The manifests without the tools in which both are alike."""
    alike = {
        tool.name
        for old, tool in pair.both()
        if (old.name, old.definition, old.names, old.questions, old.deprecated, old.input.shared, old.bound)
        == (tool.name, tool.definition, tool.names, tool.questions, tool.deprecated, tool.input.shared, tool.bound)
    }
    old, new = (
        replace(manifest, tools=tuple(tool for tool in manifest.tools if tool.name not in alike))
        for manifest in (pair.old, pair.new)
    )
    return old, new


_Named = TypeVar("_Named", Class, ClientMethod, Enumeration, Field, HandlerMethod, Parameter)


def _by_name(those: Iterable[_Named]) -> Mapping[str, _Named]:
    return {each.name: each for each in those}


def _is_same_signature(one: HandlerMethod, other: HandlerMethod) -> bool:
    """Whether two methods take and give the same, in whatever order a type names its alternatives."""
    if len(one.parameters) != len(other.parameters) or not _is_same(one.returns, other.returns):
        return False
    return all(
        (was.name, was.default, was.can_be_omitted) == (now.name, now.default, now.can_be_omitted)
        and _is_same(was.given.text, now.given.text)
        for was, now in zip(one.parameters, other.parameters, strict=True)
    )


def _is_same(one: Code, other: Code) -> bool:
    """Whether two types are the same to a type checker: the order of a union and of a `Literal` says nothing."""
    return one == other or _ordered(one) == _ordered(other)


def _without(given: Type, other: Type) -> frozenset[Code]:
    """The alternatives of a type that another has not, in whatever order they name their own."""
    known = frozenset(map(_ordered, other.choices))
    return frozenset(choice for choice in given.choices if _ordered(choice) not in known)


@lru_cache(maxsize=4096)
def _ordered(source: Code) -> str:
    """The source of a type with its unions and literals sorted."""
    return ast.unparse(_Sorted().visit(ast.parse(source.strip(), mode="eval")))


class _Sorted(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """A union, sorted by the source of its alternatives."""
        alternatives = sorted(map(self._source, _alternatives(node)))
        return ast.parse(" | ".join(alternatives), mode="eval").body

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """A `Literal`, sorted by the source of its values; of other types, what is inside."""
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            node.slice = ast.Tuple(sorted(values, key=ast.unparse), ast.Load())
            return node
        return self.generic_visit(node)

    def _source(self, node: ast.expr) -> str:
        return ast.unparse(self.visit(node))


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    """The alternatives of a union, which may nest to the left."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node


def _signature(method: HandlerMethod) -> str:
    return f"({', '.join(parameter.source for parameter in method.parameters)}) -> {method.returns}"


_Compared: TypeAlias = Class | ClientMethod | Enumeration | HandlerMethod
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _About:
    """What is compared: how it is called, and where it comes from on both sides."""

    what: str
    old: Place | None
    new: Place | None

    def change(self, code: str, impact: Impact, message: str, why: str | None = None) -> Change:
        """A change of it."""
        return Change(code, "python", impact, self.what, message, self.old, self.new, why)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both surfaces, and where the places of primitives that both sides have lead to on the other one."""

    old: Surface
    new: Surface
    forward: Mapping[Place, Place]
    back: Mapping[Place, Place]

    def about(self, what: str, old: _Compared | None, new: _Compared | None) -> _About:
        """What is there on one side at least."""
        before = old.place if old is not None else None
        after = new.place if new is not None else None
        return _About(
            what,
            self.back.get(after) if before is None and after is not None else before,
            self.forward.get(before) if after is None and before is not None else after,
        )


def _places(manifest: ir.Manifest) -> Iterator[tuple[_Key, Place]]:
    """Where each primitive and shared schema stands, by its section and its name or URI."""
    for tool in manifest.tools:
        yield (vocabulary.TOOLS.name, tool.name), tool.place
    for primitive in (*manifest.resources, *manifest.templates, *manifest.prompts):
        yield (primitive.section.name, primitive.key), primitive.place
    for shared in manifest.shared:
        yield ("schemas", shared.name), shared.schema.place


def _led(here: Mapping[_Key, Place], there: Mapping[_Key, Place]) -> Mapping[Place, Place]:
    return {place: there[key] for key, place in here.items() if key in there}
