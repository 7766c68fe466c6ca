"""Rules about references: they must resolve, terminate, use one dialect and allow bundling."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from stubwright.compile.completions import is_completion
from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.jsonschema import dialects
from stubwright.jsonschema.references import (
    BrokenReference,
    LocalTarget,
    Outline,
    Reference,
    SharedSchema,
    get_at,
    name_id_keyword,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.resolve import ResolvedBundle


def check_resolved(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that every reference resolves to a schema inside the manifest's folder."""
    for outline in resolved.list_outlines():
        for reference in outline.references:
            if isinstance(reference.target, BrokenReference):
                broken = reference.target
                yield Diagnostic(broken.code, broken.message, _locate(outline, reference), broken.help)


def check_finite(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no schema applies itself to its own instance forever (JSON Schema 2020-12 Core, 9.4.1)."""
    for outline, loop in find_loops(resolved):
        yield _report_loop(outline, loop)


def find_loops(resolved: ResolvedBundle) -> Iterator[tuple[Outline, list[Reference]]]:
    """Yield each reference cycle that applies a schema to its own instance, with the first reference's schema."""
    outlines = {outline.place: outline for outline in resolved.list_outlines()}
    applied: dict[tuple[Place, Pointer], list[tuple[Place, Reference]]] = defaultdict(list)
    for outline in outlines.values():
        for reference in outline.references:
            for pointer in outline.find_folded(reference.pointer):
                applied[outline.place, pointer].append((outline.place, reference))

    def find_next(place: Place, reference: Reference) -> list[tuple[Place, Reference]]:
        match reference.target:
            case LocalTarget(pointer):
                return applied.get((place, pointer), [])
            case SharedSchema(key):
                return applied.get((resolved.shared[key].place, ()), [])
        return []

    done: set[tuple[Place, Pointer, str]] = set()
    for outline in outlines.values():
        for first in outline.references:
            path: dict[tuple[Place, Pointer, str], Reference] = {}
            waiting = [iter([(outline.place, first)])]
            while waiting:
                step = next(waiting[-1], None)
                if step is None:
                    waiting.pop()
                    if path:
                        done.add(path.popitem()[0])
                    continue
                place, reference = step
                mark = (place, reference.pointer, reference.keyword)
                if mark in path:
                    yield outlines[place], list(path.values())[list(path).index(mark) :]
                elif mark not in done:
                    path[mark] = reference
                    waiting.append(iter(find_next(place, reference)))


def check_one_dialect(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a schema, its subschemas and all referenced schemas use the same dialect."""
    for outline in resolved.list_outlines():
        for reference in outline.references:
            if isinstance(reference.target, SharedSchema) and not is_completion(outline.place):
                other = resolved.shared[reference.target.key]
                if other.dialect != outline.dialect and isinstance(other.schema, dict):
                    yield Diagnostic(
                        "SW224",
                        f"`{reference.target.key.name}` is a {other.dialect.name} schema, but this is "
                        f"a {outline.dialect.name} schema",
                        _locate(outline, reference),
                        f'write both in the same dialect, with "$schema": "{outline.dialect.uri}" in each',
                    )
        for pointer, schema in outline.find_having("$schema"):
            if pointer:
                inner = dialects.find_dialect(schema, outline.dialect)
                if inner != outline.dialect:
                    yield Diagnostic(
                        "SW224",
                        f"part of a {outline.dialect.name} schema cannot use another dialect",
                        outline.locate(pointer) / "$schema",
                        "remove this `$schema`, and use the dialect of the root schema",
                    )


def check_bundled(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that shared schemas can be bundled into the `$defs` of a tool's schema.

    Below a nested `$id`, `#/…` is relative to the nested schema (JSON Schema 2020-12 Core, 8.2.1).
    """
    for outline in resolved.list_outlines():
        for reference in outline.references:
            if is_enclosed(resolved, outline, reference):
                keyword = name_id_keyword(outline.dialect)
                yield Diagnostic(
                    "SW225",
                    f"`{reference.text}` is inside a schema with `{keyword}`, which hides bundled schemas",
                    _locate(outline, reference),
                    f"remove the `{keyword}`: it is never fetched",
                )
            elif reference.keyword == "$recursiveRef" and _is_shared(outline) and not outline.identified:
                yield Diagnostic(
                    "SW225",
                    "in a shared schema, `$recursiveRef` would refer to the schema that it is bundled into",
                    _locate(outline, reference),
                    'write "$ref": "#" instead, or give the shared schema an `$id`',
                )


def is_enclosed(resolved: ResolvedBundle, outline: Outline, reference: Reference) -> bool:
    """Return whether an `$id` hides bundled schemas from a reference. The root `$id` of a tool's schema does not."""
    if not isinstance(reference.target, SharedSchema):
        return False
    itself = resolved.shared[reference.target.key].place == outline.place
    return reference.enclosed or (_is_shared(outline) and outline.identified and not itself)


def check_unique_anchors(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that anchors and identifiers are unique within a schema, including its bundled schemas."""
    for outline in resolved.list_outlines():
        for pointer in outline.repeated:
            yield Diagnostic(
                "SW226",
                f"`{get_at(outline.schema, pointer)}` is used twice in the same schema",
                outline.locate(pointer),
                "rename one",
            )
    if not any(outline.anchors for outline in resolved.shared.values()):
        return
    for root in (*resolved.outlines.values(), *resolved.extension_schemas.values()):
        first: dict[tuple[str, str], Outline] = {}
        for outline in resolved.find_closure(root):
            for base, name in outline.anchors:
                if outline is not root and not base and root.identified:
                    continue
                other = first.setdefault((base, name), outline)
                if other is not outline:
                    yield Diagnostic(
                        "SW226",
                        f"the anchor `{name}` would appear twice when the shared schema "
                        f"`{outline.place.pointer[-1]}` is bundled",
                        outline.locate(outline.anchors[base, name]),
                        "rename the anchor",
                    )


def _is_shared(outline: Outline) -> bool:
    return outline.place.pointer[0] == "schemas"


def _report_loop(outline: Outline, loop: list[Reference]) -> Diagnostic:
    reference = loop[0]
    if len(loop) == 1 and reference.keyword == "$ref":
        message = f"`{reference.text}` refers directly to itself"
    else:
        message = f"`{reference.text}` refers to itself, through {' and '.join(f'`{step.text}`' for step in loop[1:])}"
    return Diagnostic(
        "SW223",
        message,
        _locate(outline, reference),
        "only refer to an enclosing schema below a property or an item: otherwise validation never ends",
    )


def _locate(outline: Outline, reference: Reference) -> Place:
    return outline.locate((*reference.pointer, reference.keyword))
