"""A manifest's APIs with overlays applied, and the tool arguments that they bind.

An overlay on an API is a JSON merge patch (RFC 7396).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright.compile import binds as binding
from stubwright.compile import overlays
from stubwright.diagnostics import Place
from stubwright_runtime.http.templates import HOLE

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from stubwright.compile.source import Bundle
    from stubwright.ir import Json

_CONSTANT = ("headers", "query")
"""The parts of a request that an API can set defaults for."""


@dataclass(frozen=True, slots=True)
class Api:
    """A declared API. `settings` includes `patches`, which come from overlays. Later patches take precedence."""

    name: str
    place: Place
    settings: Mapping[str, Json]
    patches: tuple[overlays.Patch, ...] = ()


def list_declared(bundle: Bundle) -> tuple[Api, ...]:
    """Return all APIs in file order, including duplicates."""
    patches: dict[str, list[overlays.Patch]] = {}
    for place, name, patch in list_patches(bundle):
        patches.setdefault(name, []).insert(0, (place, patch))
    return tuple(
        Api(name, Place(path, ("apis", name)), _apply_patches(api, patches.get(name, ())), tuple(patches.get(name, ())))
        for path in dict.fromkeys(each.path for each in bundle.fragments if each.kind == "manifest")
        for name, api in (bundle.documents[path].value.get("apis") or {}).items()
    )


def list_patches(bundle: Bundle) -> Iterator[tuple[Place, str, Mapping[str, Json]]]:
    """Yield each API's entry in each `overlay`. Including files come first."""
    for path in dict.fromkeys(each.path for each in bundle.fragments if each.kind == "manifest"):
        overlay = bundle.documents[path].value.get("overlay") or {}
        for name, patch in (overlay.get("apis") or {}).items():
            yield Place(path, ("overlay", "apis", name)), name, patch or {}


def list_binds(
    api: Api, wire: Mapping[str, Json], http: Mapping[str, Json]
) -> Iterator[tuple[Place, Mapping[str, Json]]]:
    """Yield the bindings that a tool inherits from its API, with their locations. Later bindings take precedence.

    The sources are the API's `bind`, and headers and query parameters that both the API and the tool's call set.

    Args:
        api: The API that the tool calls.
        wire: The tool as `tools/list` returns it.
    """
    properties = binding.get_properties(wire.get("inputSchema"))
    for section in _CONSTANT:
        values: Mapping[str, Json] = api.settings.get(section) or {}
        for key, value in (http.get(section) or {}).items():
            argument = HOLE.fullmatch(value["value"] if isinstance(value, dict) else value)
            name = next((name for name in values if _matches(section, name, key)), "")
            constant = values.get(name)
            if constant is not None and argument is not None and argument[1] in properties:
                source = {"value": constant} if isinstance(constant, str) else constant
                yield api.place / section / name, {argument[1]: source}
    if own := {name: source for name, source in (api.settings.get("bind") or {}).items() if name in properties}:
        yield api.place, own


def drop_bound_arguments(examples: Json, binds: Container[str]) -> list[Json]:
    """Remove bound arguments from a tool's examples."""
    return [
        {
            **example,
            "input": {name: value for name, value in (example.get("input") or {}).items() if name not in binds},
        }
        for example in examples
    ]


def _apply_patches(
    api: Mapping[str, Json], patches: tuple[overlays.Patch, ...] | list[overlays.Patch]
) -> Mapping[str, Json]:
    for _, patch in patches:
        api = overlays.merge_patch(api, patch)
    return api


def _matches(section: str, left: str, right: str) -> bool:
    return left == right or (section == "headers" and left.lower() == right.lower())
