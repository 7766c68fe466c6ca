"""A bundle put together: its tools in order, with prefixes and overlays applied, and the outlines of its schemas.

Takes a structurally valid bundle and gives views into its documents, each with its place. It changes no value and
judges nothing.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import pydantic_core

from toolwright import naming
from toolwright.diagnostics import Place
from toolwright.schemas import bundling, dialects
from toolwright.schemas.circles import circles
from toolwright.schemas.references import Folder, Key, Outline, is_plain

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from toolwright.ir import Json
    from toolwright.source import Bundle, Fragment


@dataclass(frozen=True, slots=True)
class Declared:
    """One tool, resource, resource template or prompt as it is declared.

    `name` is its name on the wire, with the prefixes of the fragments that it came through. `wire` is the whole entry
    as written, and `data` the same as JSON. `ours` is what stands under its `toolwright` key and in overlays, merged;
    `layers` are those parts with their places, the strongest last. `names` are its Python names.
    """

    name: str
    prefix: str
    wire: Mapping[str, Json]
    data: bytes
    place: Place
    ours: Mapping[str, Json]
    layers: tuple[tuple[Place, Mapping[str, Json]], ...]
    names: naming.Names

    def said(self, *keys: str) -> Place:
        """Where what `ours` has at `keys` is said: the place in the strongest layer that has it."""
        for place, layer in reversed(self.layers):
            value: Json = layer
            for key in keys:
                if not isinstance(value, dict) or key not in value:
                    break
                value, place = value[key], place / key
            else:
                return place
        return self.place


@dataclass(frozen=True)
class Assembly:
    """A whole bundle.

    `outlines` has the input and output schema of each tool by its place; `offers` has the resources, resource templates
    and prompts, in order; `shared` has the schemas under `schemas` of
    the manifest and its fragments, in order, then those of other files that one of these refers to. `asides` are the
    other schemas of ours: questions and states of handles.
    """

    bundle: Bundle
    tools: tuple[Declared, ...]
    offers: Mapping[Section, tuple[Declared, ...]]
    outlines: Mapping[Place, Outline]
    shared: Mapping[Key, Outline]
    asides: Mapping[Place, Outline]

    @property
    def entry(self) -> Mapping[str, Json]:
        """The manifest itself."""
        value: Mapping[str, Json] = self.bundle.documents[self.bundle.entry].value
        return value

    @property
    def declared(self) -> tuple[Declared, ...]:
        """All tools, resources, resource templates and prompts."""
        return (*self.tools, *(one for offers in self.offers.values() for one in offers))

    def schemas(self, tool: Declared) -> Iterator[tuple[str, Outline]]:
        """The outlines of `inputSchema` and, where there is one, `outputSchema`."""
        for field in SCHEMA_FIELDS:
            found = self.outlines.get(tool.place / field)
            if found is not None:
                yield field, found

    def everything(self) -> tuple[Outline, ...]:
        """All outlines."""
        return (*self.outlines.values(), *self.asides.values(), *self.shared.values())

    def closure(self, root: Outline) -> tuple[Outline, ...]:
        """`root` and all shared schemas that it leads to, in the order in which they are first reached."""
        others = (self.shared[key] for key in self.reached(root))
        return (root, *(found for found in others if found is not root))

    def reached(self, root: Outline) -> tuple[Key, ...]:
        """The shared schemas that `root` leads to, in the order in which they are first reached."""
        reached = dict.fromkeys(root.shared())
        waiting = [*reached]
        for key in waiting:  # grows while it is read
            for other in self.shared[key].shared():
                if other not in reached:
                    reached[other] = None
                    waiting.append(other)
        return tuple(waiting)

    @cached_property
    def circles(self) -> Mapping[Key, tuple[Key, ...]]:
        """For each shared schema those that it leads to and that lead to it, itself among them, in a fixed order."""
        found = circles({key: found.shared() for key, found in self.shared.items()})
        return {key: tuple(sorted(members)) for members in found for key in members}

    @cached_property
    def bundled(self) -> bundling.Kept:
        """What bundling has made of its shared schemas."""
        return bundling.Kept()


Section: TypeAlias = Literal["resources", "resourceTemplates", "prompts"]
"""A list of a manifest beside its tools."""

SECTIONS: Final[tuple[Section, ...]] = get_args(Section)

SCHEMA_FIELDS = ("inputSchema", "outputSchema")
"""The fields of a tool that are schemas (MCP 2025-06-18, Tools)."""


def assemble(bundle: Bundle) -> Assembly:
    """Put a bundle together."""
    declared = tools(bundle)
    offered = {section: offers(bundle, section) for section in SECTIONS}
    saved = _saved(bundle)
    folder = Folder(
        posixpath.dirname(bundle.entry),
        {
            path: document.value["schemas"] if isinstance(document.value.get("schemas"), dict) else {}
            for path, document in bundle.documents.items()
            if path not in saved
        },
    )

    def outlined(place: Place, schema: Json, *, plain: bool = False) -> Outline:
        return Outline(place, schema, dialects.of(schema) or dialects.DRAFT_2020_12, folder, plain)

    outlines = {
        tool.place / field: outlined(tool.place / field, tool.wire[field], plain=is_plain(tool.data))
        for tool in declared
        for field in SCHEMA_FIELDS
        if isinstance(tool.wire.get(field), dict)
    }
    asides = {place: outlined(place, schema) for place, schema in _asides(bundle, declared, offered)}
    shared = {
        Key(path, name): outlined(Place(path, ("schemas", name)), schema)
        for path, manifest in manifests(bundle)
        for name, schema in (manifest.get("schemas") or {}).items()
    }
    waiting = [*outlines.values(), *asides.values(), *shared.values()]
    for found in waiting:  # grows while it is read: schemas of files that are only referred to
        for key in found.shared():
            if key not in shared:
                schema = bundle.documents[key.file].value["schemas"][key.name]
                shared[key] = outlined(Place(key.file, ("schemas", key.name)), schema)
                waiting.append(shared[key])
    return Assembly(bundle, declared, offered, outlines, shared, asides)


def _saved(bundle: Bundle) -> frozenset[str]:
    return frozenset(fragment.path for fragment in bundle.fragments if fragment.kind == "tools-list")


def _asides(
    bundle: Bundle, declared: tuple[Declared, ...], offered: Mapping[Section, tuple[Declared, ...]]
) -> Iterator[tuple[Place, Json]]:
    for one in (*declared, *(one for offers in offered.values() for one in offers)):
        for place, layer in one.layers:
            for name, question in (layer.get("ask") or {}).items():
                if isinstance(question.get("schema"), dict | bool):
                    yield place / "ask" / name / "schema", question["schema"]
    for path, manifest in manifests(bundle):
        for name, handle in (manifest.get("handles") or {}).items():
            if isinstance(handle.get("state"), dict | bool):
                yield Place(path, ("handles", name, "state")), handle["state"]


def tools(bundle: Bundle) -> tuple[Declared, ...]:
    """All tools, in the order of `tools/list`: the manifest's own, then each fragment's.

    An overlay names tools as its own file sees them, that is, before the prefixes with which that file is included.
    Mappings merge key by key, anything else is replaced, and an including file's overlay wins over an included one's.
    """
    added: dict[str, list[tuple[Place, Mapping[str, Json]]]] = {}
    for fragment, place, overlay in overlays(bundle):
        added.setdefault(fragment.prefix + str(place.pointer[-1]), []).insert(0, (place, overlay))
    return tuple(
        _declared(fragment, place, wire, added)
        for fragment in bundle.fragments
        for place, wire in entries(bundle, fragment.path, "tools")
    )


def offers(bundle: Bundle, section: Section) -> tuple[Declared, ...]:
    """All resources, resource templates or prompts, in the order of their list."""
    kind: Literal["prompt", "read"] = "prompt" if section == "prompts" else "read"
    found = []
    for fragment in bundle.fragments:
        for place, wire in entries(bundle, fragment.path, section):
            name, ours = fragment.prefix + wire["name"], wire.get("toolwright") or {}
            names = naming.offer(kind, name, ours.get("pythonName"))
            layers = ((place / "toolwright", ours),)
            found.append(Declared(name, fragment.prefix, wire, to_json(wire), place, ours, layers, names))
    return tuple(found)


def meant(use: str, tool: Declared, names: Container[str]) -> str:
    """The tool that `tool` calls `use`: one that came through the same prefixes, else one of that very name."""
    return tool.prefix + use if tool.prefix + use in names else use


def overlays(bundle: Bundle) -> Iterator[tuple[Fragment, Place, Mapping[str, Json]]]:
    """Each tool's entry in each `overlay`, with the fragment and the place it stands in."""
    for fragment in bundle.fragments:
        if fragment.kind == "manifest":
            overlay = bundle.documents[fragment.path].value.get("overlay") or {}
            for name, entry in (overlay.get("tools") or {}).items():
                yield fragment, Place(fragment.path, ("overlay", "tools", name)), entry or {}


def entries(bundle: Bundle, path: str, section: str) -> Iterator[tuple[Place, Mapping[str, Json]]]:
    """What the list `section` (`tools`, `prompts`, …) of one document holds, with places."""
    for index, entry in enumerate(bundle.documents[path].value.get(section) or ()):
        yield Place(path, (section, index)), entry


def manifests(bundle: Bundle) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """The entry and its included manifests, each once, in order; saved `tools/list` results are left out."""
    paths = dict.fromkeys(fragment.path for fragment in bundle.fragments if fragment.kind == "manifest")
    return ((path, bundle.documents[path].value) for path in paths)


def merged(under: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """`under` with what `over` says: mappings merge key by key, anything else is replaced."""
    both = dict(under)
    for key, value in over.items():
        mine = both.get(key)
        both[key] = merged(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return both


def package_place(entry: str, manifest: Mapping[str, Json]) -> Place:
    """Where the package of the manifest at `entry` gets its name."""
    keys = ("python", "package") if (manifest.get("python") or {}).get("package") else ("server", "name")
    return Place(entry, keys)


def _declared(
    fragment: Fragment,
    place: Place,
    wire: Mapping[str, Json],
    added: Mapping[str, list[tuple[Place, Mapping[str, Json]]]],
) -> Declared:
    name = fragment.prefix + wire["name"]
    own = wire.get("toolwright") or {}
    layers = [(place / "toolwright", own), *added.get(name, ())]
    ours: Mapping[str, Json] = own
    for _, layer in layers[1:]:
        ours = merged(ours, layer)
    names = naming.tool(name, ours.get("pythonName"))
    return Declared(name, fragment.prefix, wire, to_json(wire), place, ours, tuple(layers), names)


def to_json(value: Json) -> bytes:
    """A value as JSON, the same for the same value in the same order."""
    return pydantic_core.to_json(value)  # `json` takes several times as long
