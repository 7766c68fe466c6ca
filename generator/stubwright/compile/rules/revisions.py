"""Rules about fields that do not exist in the oldest supported revision (`protocol.min`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.compile import shape
from stubwright.compile.resolve import list_entries
from stubwright.diagnostics import Diagnostic, Place
from stubwright_runtime.mcp import revisions, vocabulary
from stubwright_runtime.schema.objects import describes_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json

_NOT_RECEIVED: Final = "remove it, or raise `protocol.min`: clients with older revisions do not receive it"
_ONLY_TEXT: Final = (
    "put the value into a property of an object, or raise `protocol.min`: clients with older revisions only "
    "receive the result as JSON text, without the schema and `structuredContent`"
)


def check_age(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Warn about fields that are newer than `protocol.min`."""
    oldest = (resolved.entry.get("protocol") or {}).get("min")
    if not isinstance(oldest, str):
        return
    for place, subject, revision in _list_dated(resolved):
        if revision > oldest:
            yield Diagnostic(
                "SW340",
                f"{subject} is new in revision {revision}, but this manifest also supports {oldest}",
                place,
                (
                    _ONLY_TEXT
                    if revision == revisions.find_revision("any_output") and "outputSchema" in subject
                    else _NOT_RECEIVED
                ),
            )


def _list_dated(resolved: ResolvedBundle) -> Iterator[tuple[Place, str, str]]:
    bundle = resolved.bundle
    yield from _list_fields(Place(bundle.entry, ("server",)), resolved.entry["server"], "server")
    for path in dict.fromkeys(fragment.path for fragment in bundle.fragments):
        for section in vocabulary.SECTIONS:
            for place, entry in list_entries(bundle, path, section):
                yield from _list_fields(place, entry, section.name)
    for tool in resolved.tools:
        for field, outline in resolved.list_schemas(tool):
            sent = shape.shape(field, resolved.bundle_schema(outline).wire, tool.extension.get("http") or {})
            if field == "outputSchema" and not describes_objects(sent):
                at = outline.place / "type" if "type" in outline.schema else outline.place.point_at_key()
                yield (
                    at,
                    "an `outputSchema` that allows values other than objects",
                    revisions.find_revision("any_output"),
                )
            for pointer, schema in outline.schemas.items():
                if isinstance(schema, dict) and vocabulary.HEADER in schema:
                    at = outline.locate(pointer) / vocabulary.HEADER
                    yield at.point_at_key(), f"`{vocabulary.HEADER}`", revisions.find_revision("parameter_headers")


def _list_fields(place: Place, entry: Mapping[str, Json], section: str) -> Iterator[tuple[Place, str, str]]:
    for field, revision in revisions.SINCE[section].items():
        if field in entry:
            yield (place / field).point_at_key(), f"`{field}`", revision
