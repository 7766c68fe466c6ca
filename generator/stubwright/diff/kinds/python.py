"""Compares generated code for handlers, typed callers and model users.

TypeScript callers have their own names and types.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from stubwright.codegen.pages.renames import find_current_names, match_renamed_methods
from stubwright.codegen.surface import Class, ClientMethod, Field, HandlerMethod, NamedType, Parameter, Surface, Type
from stubwright.diagnostics import Place
from stubwright.diagnostics.suggestions import quote
from stubwright.diff.changes import Change, Impact, Side, Subject
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair
    from stubwright.pycode import Code

Use: TypeAlias = Literal["input", "output", "both"]
"""A class's use by handlers, which read its instances, create them, or both."""

_HALVES = {"server": "server", "client": "client", "typescript": "TypeScript client"}


def compare(pair: ManifestPair) -> Iterator[Change]:
    """Yield all changes to generated code."""
    yield from _compare_packages(pair.old, pair.new)
    emitted = pair.old.emit & pair.new.emit
    renamed = match_renamed_methods(pair.old.document, pair.new.document)
    if emitted - {"typescript"}:
        from stubwright.codegen.models import datamodel

        surfaces = _describe(pair, "python", datamodel.describe_surface, lambda source: source, renamed)
        yield from _compare_handlers(surfaces)
        yield from _compare_clients(surfaces)
        yield from _compare_classes(surfaces)
        yield from _compare_named_types(surfaces)
    if "typescript" in emitted:
        from stubwright.codegen.typescript import surface

        before, after = map(surface.map_members, (pair.old, pair.new))
        members = {before.get(was, was): after.get(now, now) for was, now in renamed.items()}
        surfaces = _describe(pair, "typescript", surface.describe_surface, surface.show_type, members)
        yield from _compare_clients(surfaces)
        if emitted == {"typescript"}:  # otherwise the Python classes have the same names and changes
            yield from _compare_classes(surfaces)
            yield from _compare_named_types(surfaces)


def _describe(
    pair: ManifestPair,
    side: Side,
    describe: Callable[[ir.Manifest], Surface],
    show: Callable[[Code], Code],
    renamed: Mapping[str, str],
) -> _SurfacePair:
    old, new = _drop_unchanged_tools(pair)
    old_places, new_places = (dict(_find_places(manifest)) for manifest in (pair.old, pair.new))
    forward, back = _map_places(old_places, new_places), _map_places(new_places, old_places)
    return _SurfacePair(describe(old), describe(new), forward, back, renamed, side, show)


def _compare_packages(old: ir.Manifest, new: ir.Manifest) -> Iterator[Change]:
    package = Subject("package", Place(old.source), Place(new.source), "python")
    for what, was, now in (("package", old.package, new.package), ("class prefix", old.stem, new.stem)):
        if was != now:
            yield package.at("server").change("SW580", "breaking", f"the {what} changed from `{was}` to `{now}`")
    for half in sorted(old.emit - new.emit):
        yield package.at("emit").change("SW580", "breaking", f"the {_HALVES[half]} is no longer generated")
    for half in sorted(new.emit - old.emit):
        yield package.at("emit").change("SW580", "compatible", f"the {_HALVES[half]} is now generated")


def _compare_handlers(surfaces: _SurfacePair) -> Iterator[Change]:
    old, new = _map_names(surfaces.old.handlers), _map_names(surfaces.new.handlers)
    for name, method in new.items():
        was = old.get(name)
        subject = surfaces.get_subject(f"handler `{name}`", was, method)
        if not method.is_optional and (was is None or was.is_optional):
            old_name = next((was for was, now in surfaces.renamed.items() if now == name and was in old), None)
            remedy = f"rename `{old_name}`" if old_name else "`stubwright generate --stubs` writes a stub"
            why = f"the server does not start without this method; {remedy}"
            yield subject.change("SW581", "breaking", "handlers must have this method", why)
        if was is not None and not _is_same_signature(was, method):
            message = f"its signature changed from `{_show_signature(was)}` to `{_show_signature(method)}`"
            is_harsh = not (_is_same(was.returns, method.returns) or was.is_optional)
            why_optional = "handlers that implement the method must change" if was.is_optional else None
            yield subject.change("SW583", "breaking" if is_harsh else "may break", message, why_optional)
    for name, removed in old.items():
        if name not in new and not removed.is_optional:
            why = surfaces.explain_renaming(name, new) or (
                "the server does not call the method, and its annotations may refer to classes that no longer exist"
            )
            yield surfaces.get_subject(f"handler `{name}`", removed, None).change(
                "SW582", "may break", "the method is no longer called", why
            )


def _compare_clients(surfaces: _SurfacePair) -> Iterator[Change]:
    old, new = _map_names(surfaces.old.client), _map_names(surfaces.new.client)
    for name, removed in old.items():
        if name not in new:
            yield surfaces.get_subject(f"client `{name}`", removed, None).change(
                "SW582", "breaking", "the method was removed", surfaces.explain_renaming(name, new)
            )
    for name, method in new.items():
        was = old.get(name)
        subject = surfaces.get_subject(f"client `{name}`", was, method)
        if was is None:
            yield subject.change("SW590", "compatible", "a new method")
        else:
            yield from _compare_method(was, method, subject, surfaces)


def _compare_method(
    was: ClientMethod, method: ClientMethod, subject: Subject, surfaces: _SurfacePair
) -> Iterator[Change]:
    old, new = surfaces.map_names(was.parameters), surfaces.map_names(method.parameters)
    for name, now in new.items():
        before = old.get(name)
        if before is None:
            needed = now.default is None
            message = f"the {'required' if needed else 'optional'} parameter `{name}` was added"
            yield subject.change("SW584", "breaking" if needed else "compatible", message)
            continue
        if before.default is not None and now.default is None:
            yield subject.change("SW584", "breaking", f"the parameter `{name}` is now required")
        elif before.default is None and now.default is not None:
            yield subject.change("SW584", "compatible", f"the parameter `{name}` is no longer required")
        less, more = surfaces.compare(before.given, now.given)
        if less or more:
            message = f"`{name}` {surfaces.show_change(before.given, now.given)}"
            yield subject.change("SW585", "may break" if less else "compatible", message)
    for name in old:
        if name not in new:
            yield subject.change("SW584", "breaking", f"the parameter `{name}` was removed")
    less, more = surfaces.compare(was.returns, method.returns)
    if less or more:
        message = f"the return type {surfaces.show_change(was.returns, method.returns)}"
        yield subject.change("SW585", "breaking" if more else "compatible", message)


def _compare_classes(surfaces: _SurfacePair) -> Iterator[Change]:
    old, new = _map_names(surfaces.old.classes), _map_names(surfaces.new.classes)
    for name, was in old.items():
        noun = "class" if surfaces.has_handlers else "type"
        subject = surfaces.get_subject(f"{noun} `{name}`", was, new.get(name))
        if name in new:
            yield from _compare_fields(was, new[name], subject, surfaces)
            yield from _compare_values(was, new[name], subject, surfaces)
        else:
            names = find_current_names(name, surfaces.renamed, new)
            why = f"it was renamed to {quote(names)}" if names else None
            yield subject.change("SW586", "breaking", f"the {noun} was removed", why)


def _compare_named_types(surfaces: _SurfacePair) -> Iterator[Change]:
    old, new = _map_names(surfaces.old.named_types), _map_names(surfaces.new.named_types)
    for name, was in old.items():
        now = new.get(name)
        subject = surfaces.get_subject(f"type `{name}`", was, now)
        if now is None:
            yield subject.change("SW586", "breaking", "the type was removed")
            continue
        less, more = surfaces.compare(was.type, now.type)
        if less or more:
            message = f"`{name}` {surfaces.show_change(was.type, now.type)}"
            yield subject.change("SW588", "may break", message, surfaces.explain_new_type("both", more, less))


def _compare_fields(was: Class, now: Class, subject: Subject, surfaces: _SurfacePair) -> Iterator[Change]:
    """Yield changes to a class's attributes, except attributes inherited from an unchanged base."""
    use = _get_use(now)
    is_given = use == "input" and now.is_root  # callers pass its attributes as method arguments
    if is_given and not surfaces.has_handlers:
        return
    is_free = is_given or (use == "output" and not surfaces.has_handlers)
    makers = None if is_free else f"{'handlers' if use == 'output' else 'typed callers'} that create one must set it"
    has_same_base = was.base is not None and (was.base, was.is_alias) == (now.base, now.is_alias)
    old, new = (surfaces.map_names(class_.fields if has_same_base else class_.all_fields) for class_ in (was, now))
    for name, field in new.items():
        if name in old:
            yield from _compare_field(name, old[name], field, subject, use, makers, surfaces)
            continue
        impact: Impact = "compatible" if is_free or field.default is not None else "breaking"
        message = f"the attribute `{name}` was added"
        yield subject.change("SW587", impact, message, makers if impact == "breaking" else None)
    for name in old:
        if name not in new:
            yield subject.change("SW587", "breaking", f"the attribute `{name}` was removed")


def _compare_values(was: Class, now: Class, subject: Subject, surfaces: _SurfacePair) -> Iterator[Change]:
    before, after = (class_.values.text if class_.values is not None else None for class_ in (was, now))
    if before == after or (before is not None and after is not None and _is_same(before, after)):
        return
    if before is None or after is None:
        gone = "no longer" if after is None else "now"
        shown = [surfaces.show(each) for each in (before, after) if each is not None]
        yield subject.change("SW588", "may break", f"it is {gone} a mapping of keys to `{shown[0]}`")
    else:
        message = f"its values changed from `{surfaces.show(before)}` to `{surfaces.show(after)}`"
        yield subject.change("SW588", "may break", message)


def _compare_field(
    name: str, was: Field, now: Field, subject: Subject, use: Use, makers: str | None, surfaces: _SurfacePair
) -> Iterator[Change]:
    """Yield changes to one attribute. `makers` is the help for code that creates instances, or None."""
    less, more = surfaces.compare(was.type, now.type)
    needed = was.default is not None and now.default is None
    if (less or more) and not (needed and less <= {"None", "undefined"} and not more):
        message = f"`{name}` {surfaces.show_change(was.type, now.type)}"
        is_wider = more and not less and use == "input" and not surfaces.has_handlers
        impact: Impact = "compatible" if is_wider or (less and not more and makers is None) else "may break"
        why = surfaces.explain_new_type(use, more, less) if impact == "may break" else None
        yield subject.change("SW588", impact, message, why)
    if was.default == now.default:
        return
    if needed:
        message = f"`{name}` no longer has the default `{was.default}`"
        message = message if surfaces.has_handlers else f"`{name}` is now required"
        yield subject.change("SW589", "compatible" if makers is None else "breaking", message, makers)
    elif was.default is None and surfaces.has_handlers:
        message = f"`{name}` now has the default `{now.default}`"
        yield subject.change("SW589", "compatible", message)
    elif was.default is not None:
        message = f"the default of `{name}` changed from `{was.default}` to `{now.default}`"
        yield subject.change("SW589", "may break", message)


def _get_use(class_: Class) -> Use:
    if class_.roles == {"output"}:
        return "output"
    return "input" if class_.roles <= {"input", "arguments", "variables"} else "both"


def _view(tool: ir.Tool) -> tuple[object, ...]:
    """Return the parts of a tool that determine its generated Python code."""
    wire = (tool.name, tool.definition, tool.deprecated, tool.input.shared, tool.bound)
    return (*wire, tool.names, tool.questions, bool(tool.paginate))


def _drop_unchanged_tools(pair: ManifestPair) -> tuple[ir.Manifest, ir.Manifest]:
    alike = {tool.name for old, tool in pair.list_both() if _view(old) == _view(tool)}
    old, new = (
        replace(manifest, tools=tuple(tool for tool in manifest.tools if tool.name not in alike))
        for manifest in (pair.old, pair.new)
    )
    return old, new


_Named = TypeVar("_Named", Class, ClientMethod, HandlerMethod, NamedType)
_Sent = TypeVar("_Sent", Field, Parameter)


def _map_names(items: Iterable[_Named]) -> Mapping[str, _Named]:
    return {item.name: item for item in items}


def _is_same_signature(old: HandlerMethod, new: HandlerMethod) -> bool:
    """Return whether two methods have the same parameter and return types, ignoring the order of alternatives."""
    if len(old.parameters) != len(new.parameters) or not _is_same(old.returns, new.returns):
        return False
    return all(
        (was.name, was.default, was.can_be_omitted) == (now.name, now.default, now.can_be_omitted)
        and _is_same(was.given.text, now.given.text)
        for was, now in zip(old.parameters, new.parameters, strict=True)
    )


def _is_same(old: Code, new: Code) -> bool:
    return old == new or _sort_alternatives(old) == _sort_alternatives(new)


def _subtract(type_: Type, other: Type) -> frozenset[Code]:
    other_choices = frozenset(map(_sort_alternatives, other.choices))
    return frozenset(
        choice for choice in type_.choices if not _is_assignable(_sort_alternatives(choice), other_choices)
    )


def _is_assignable(choice: str, others: frozenset[str]) -> bool:
    """Return whether a type is assignable to a union (typing specification, "Special types")."""
    if choice in others or "Any" in others or not others.isdisjoint(_PROMOTIONS.get(choice, ())):
        return True
    if choice == "bool":
        return {True, False} <= {
            value for other in others for value in _read_literals(other) if isinstance(value, bool)
        }
    literals = [*_read_literals(choice)]
    if not literals:
        return False
    class_ = type(literals[0]).__name__
    return class_ in others or not others.isdisjoint(_PROMOTIONS.get(class_, ()))


def _read_literals(choice: str) -> Iterator[object]:
    match ast.parse(choice, mode="eval").body:
        case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
            for value in values.elts if isinstance(values, ast.Tuple) else [values]:
                yield ast.literal_eval(value)


_PROMOTIONS: Final = {"bool": ("int", "float"), "int": ("float",)}
"""The types that type checkers also accept for a type: `int` for `float`, and `bool` for `int`."""


@lru_cache(maxsize=4096)
def _sort_alternatives(source: Code) -> str:
    return ast.unparse(_AlternativeSorter().visit(ast.parse(source.strip(), mode="eval")))


class _AlternativeSorter(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        alternatives = sorted(map(self._source, _list_alternatives(node)))
        return ast.parse(" | ".join(alternatives), mode="eval").body

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Sort the values in a `Literal` by source text. Visit the parameters of other types."""
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            node.slice = ast.Tuple(sorted(values, key=ast.unparse), ast.Load())
            return node
        return self.generic_visit(node)

    def _source(self, node: ast.expr) -> str:
        return ast.unparse(self.visit(node))


def _list_alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _list_alternatives(node.left)
        yield from _list_alternatives(node.right)
    else:
        yield node


def _show_signature(method: HandlerMethod) -> str:
    return f"({', '.join(parameter.source for parameter in method.parameters)}) -> {method.returns}"


_Compared: TypeAlias = Class | ClientMethod | HandlerMethod | NamedType
_Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _SurfacePair:
    """The old and new surfaces of generated code.

    Attributes:
        forward: The new locations of primitives and shared schemas, keyed by old location.
        back: The old locations of primitives and shared schemas, keyed by new location.
        renamed: The new method names, keyed by old name.
        side: The side of the reported changes.
        show: Formats a type in the callers' language.
    """

    old: Surface
    new: Surface
    forward: Mapping[Place, Place]
    back: Mapping[Place, Place]
    renamed: Mapping[str, str]
    side: Side
    show: Callable[[Code], Code]

    @property
    def has_handlers(self) -> bool:
        """True if handlers read and create instances of classes. Only then do attributes have defaults."""
        return self.side == "python"

    def map_names(self, items: Iterable[_Sent]) -> Mapping[str, _Sent]:
        return {item.wire if self.side == "typescript" else item.name: item for item in items}

    def compare(self, old: Type, new: Type) -> tuple[frozenset[Code], frozenset[Code]]:
        """Return the removed and the new alternatives of a type. Both are empty if the type is unchanged."""
        if _is_same(old.text, new.text) or self.show(old.text) == self.show(new.text):
            return frozenset(), frozenset()
        return _subtract(old, new), _subtract(new, old)

    def show_change(self, old: Type, new: Type) -> str:
        return f"changed from `{self.show(old.text)}` to `{self.show(new.text)}`"

    def explain_new_type(self, use: Use, more: frozenset[Code], less: frozenset[Code]) -> str | None:
        """Describe the code that a changed type can break. The type gained the alternatives `more` and lost `less`."""
        if not more and not less:
            return None
        shown = quote(sorted(map(self.show, more or less)))
        if more:
            readers = {"input": "handlers that read", "output": "typed callers that read", "both": "code that reads"}
            return f"{readers[use]} it must expect {shown}"
        makers = {"input": "typed callers that set", "output": "handlers that set", "both": "code that sets"}
        return f"{makers[use]} it to {shown} must change"

    def explain_renaming(self, name: str, known: Collection[str]) -> str | None:
        now = self.renamed.get(name)
        return f"it was renamed to `{now}`" if now is not None and now in known else None

    def get_subject(self, name: str, old: _Compared | None, new: _Compared | None) -> Subject:
        before = old.place if old is not None else None
        after = new.place if new is not None else None
        return Subject(
            name,
            self.back.get(after) if before is None and after is not None else before,
            self.forward.get(before) if after is None and before is not None else after,
            self.side,
        )


def _find_places(manifest: ir.Manifest) -> Iterator[tuple[_Key, Place]]:
    """Yield each primitive's and each shared schema's key (section, and name or URI) and location."""
    for tool in manifest.tools:
        yield (vocabulary.TOOLS.name, tool.name), tool.place
    for primitive in (*manifest.resources, *manifest.templates, *manifest.prompts):
        yield (primitive.section.name, primitive.key), primitive.place
    for shared in manifest.shared:
        yield ("schemas", shared.name), shared.schema.place


def _map_places(here: Mapping[_Key, Place], there: Mapping[_Key, Place]) -> Mapping[Place, Place]:
    return {place: there[key] for key, place in here.items() if key in there}
