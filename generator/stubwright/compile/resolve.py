"""Resolves a bundle: applies prefixes and overlays to tools, and outlines schemas."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pydantic_core

from stubwright import naming
from stubwright.compile import apis as calling
from stubwright.compile import binds as binding
from stubwright.compile import overlays as overlaying
from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects
from stubwright.jsonschema.bundling import SharedSchemas, bundle
from stubwright.jsonschema.inlining import InlinedSchema, inline
from stubwright.jsonschema.references import Folder, Key, LocalTarget, Outline, is_plain
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from stubwright.compile.source import Bundle, Fragment
    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json, Refs
    from stubwright.jsonschema.bundling import BundledSchema
    from stubwright.jsonschema.dialects import Dialect

LOOSE: Final = ("patternProperties", "additionalProperties", "unevaluatedProperties")
"""Keywords that allow unnamed properties."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared tool, resource, resource template or prompt.

    Attributes:
        section: The manifest section that lists it.
        name: Its name on the wire, including prefixes.
        prefix: The prefixes of the file that declares it.
        wire: The entry with overlays applied.
        data: `wire` as JSON.
        place: The entry's location in the source.
        extension: The `stubwright` key with overlays applied.
        layers: The parts of `extension` with their locations. Later layers take precedence.
        names: The Python names.
        patches: The overlays on `wire` with their locations. Later overlays take precedence.
        unbound: Arguments that this tool excludes from bindings in `auth` or its API. Not part of `extension`.
    """

    section: vocabulary.Section
    name: str
    prefix: str
    wire: Mapping[str, Json]
    data: bytes
    place: Place
    extension: Mapping[str, Json]
    layers: tuple[tuple[Place, Mapping[str, Json]], ...]
    names: naming.Names
    patches: tuple[overlaying.Patch, ...] = ()
    unbound: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The identifier in requests: a name, a URI or a URI template."""
        return self.name if self.section.key == "name" else str(self.wire[self.section.key])

    def place_of(self, *keys: str) -> Place:
        """Return the location of the value at `keys` in the last layer that sets the value.

        By default, return the entry's location.
        """
        for place, layer in reversed(self.layers):
            value: Json = layer
            for key in keys:
                if not isinstance(value, dict) or key not in value:
                    break
                value, place = value[key], place / key
            else:
                return place
        return self.place


@dataclass(frozen=True, slots=True)
class ResolvedBundle:
    """A manifest in which names, overlays, bindings and schemas are resolved.

    Attributes:
        bundle: The manifest's files.
        apis: The APIs with overlays applied.
        tools: The tools, in order.
        primitives: The resources, resource templates and prompts, in order.
        outlines: The input and output schemas of tools, keyed by location.
        shared_schemas: The `schemas` in the manifest and its fragments, then other referenced schemas.
        extension_schemas: The schemas for questions, completions and handle state, keyed by location.
    """

    bundle: Bundle
    apis: tuple[calling.Api, ...]
    tools: tuple[Declaration, ...]
    primitives: Mapping[vocabulary.Section, tuple[Declaration, ...]]
    outlines: Mapping[Place, Outline]
    shared_schemas: SharedSchemas
    extension_schemas: Mapping[Place, Outline]
    _inlined: dict[Place, InlinedSchema] = field(default_factory=dict, init=False, repr=False, compare=False)
    _cheap: dict[Place, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def entry(self) -> Mapping[str, Json]:
        """The parsed entry file."""
        value: Mapping[str, Json] = self.bundle.documents[self.bundle.entry].value
        return value

    @property
    def serves(self) -> bool:
        """True if the manifest emits a server."""
        return "server" in (self.entry.get("emit") or ("server",))

    @property
    def shared(self) -> Mapping[Key, Outline]:
        """The shared schemas' outlines, by key."""
        return self.shared_schemas.outlines

    @property
    def declared(self) -> tuple[Declaration, ...]:
        """All tools, resources, resource templates and prompts."""
        return (*self.tools, *(primitive for primitives in self.primitives.values() for primitive in primitives))

    def list_schemas(self, tool: Declaration) -> Iterator[tuple[str, Outline]]:
        """Yield the outlines of `inputSchema` and, if declared, `outputSchema`."""
        for name in vocabulary.SCHEMAS:
            outline = self.outlines.get(tool.place / name)
            if outline is not None:
                yield name, outline

    def list_outlines(self) -> tuple[Outline, ...]:
        """Return the outlines of all schemas, including extension schemas and shared schemas."""
        return (*self.outlines.values(), *self.extension_schemas.values(), *self.shared.values())

    def find_closure(self, root: Outline) -> tuple[Outline, ...]:
        """Return `root` and all shared schemas that it references, in order of first use."""
        return self.shared_schemas.find_closure(root)

    def bundle_schema(self, root: Outline) -> BundledSchema:
        """Bundle into `root` all shared schemas that it references."""
        known = self.shared_schemas.bundled
        if root.place not in known:
            known[root.place] = bundle(root, self.shared_schemas)
        return known[root.place]

    @property
    def refs(self) -> Refs:
        """The `wire: {refs: …}` setting, or `bundled` if no server is emitted."""
        refs: Refs = (self.entry.get("wire") or {}).get("refs") or "auto"
        return refs if self.serves else "bundled"

    @property
    def inlines(self) -> bool:
        """True if schemas are sent without references (`wire: {refs: inlined}`)."""
        return self.refs == "inlined"

    def sends_inlined(self, root: Outline) -> bool:
        """Return whether a schema is sent without references.

        With `auto`, schemas with shared parts are inlined if they grow by less than a fifth.
        """
        if self.refs != "auto" or root.plain or not root.references:
            return self.inlines
        known = self._cheap
        if root.place not in known:
            bundled = self.bundle_schema(root)
            known[root.place] = bool(bundled.shared) and self._is_cheap(root, bundled)
        return known[root.place]

    def _is_cheap(self, root: Outline, bundled: BundledSchema) -> bool:
        inlined = self.inline(root)
        return inlined.kept is None and len(to_json(inlined.wire)) * 5 < len(to_json(bundled.wire)) * 6

    @property
    def splits_types(self) -> bool:
        """True if type lists are sent as `anyOf` (`wire: {nullable: anyOf}`)."""
        return self.serves and (self.entry.get("wire") or {}).get("nullable") == "anyOf"

    def inline(self, root: Outline) -> InlinedSchema:
        """Replace the references in `root` with their targets."""
        if root.plain:
            return InlinedSchema(root.schema)
        known = self._inlined
        if root.place not in known:
            known[root.place] = inline(self.bundle_schema(root).wire, root.dialect, root.place)
        return known[root.place]


def resolve(bundle: Bundle) -> ResolvedBundle:
    """Resolve a loaded manifest: names, prefixes, overlays, bindings and schemas."""
    apis = calling.list_declared(bundle)
    declared = list_tools(bundle, {api.name: api for api in apis})
    declared_primitives = {section: list_primitives(bundle, section) for section in vocabulary.PRIMITIVES}
    saved = _list_saved(bundle)
    folder = Folder(
        posixpath.dirname(bundle.entry),
        {
            path: document.value["schemas"] if isinstance(document.value.get("schemas"), dict) else {}
            for path, document in bundle.documents.items()
            if path not in saved
        },
    )

    def outline(place: Place, schema: Json, *, plain: bool = False) -> Outline:
        return Outline(place, schema, dialects.find_dialect(schema) or dialects.DRAFT_2020_12, folder, plain)

    outlines = {
        tool.place / field: outline(tool.place / field, tool.wire[field], plain=is_plain(tool.data))
        for tool in declared
        for field in vocabulary.SCHEMAS
        if isinstance(tool.wire.get(field), dict)
    }
    extension_schemas = {
        place: outline(place, schema) for place, schema in _extension_schemas(bundle, declared, declared_primitives)
    }
    shared = {
        Key(path, name): outline(Place(path, ("schemas", name)), schema)
        for path, manifest in list_manifests(bundle)
        for name, schema in (manifest.get("schemas") or {}).items()
    }
    waiting = [*outlines.values(), *extension_schemas.values(), *shared.values()]
    for fragment in waiting:  # grows during the loop, by schemas from files that are only referenced
        for key in fragment.list_shared():
            if key not in shared:
                schema = bundle.documents[key.file].value["schemas"][key.name]
                shared[key] = outline(Place(key.file, ("schemas", key.name)), schema)
                waiting.append(shared[key])
    return ResolvedBundle(
        bundle, apis, declared, declared_primitives, outlines, SharedSchemas(shared), extension_schemas
    )


def _list_saved(bundle: Bundle) -> frozenset[str]:
    return frozenset(fragment.path for fragment in bundle.fragments if fragment.kind == "tools-list")


def _extension_schemas(
    bundle: Bundle,
    declared: tuple[Declaration, ...],
    declared_primitives: Mapping[vocabulary.Section, tuple[Declaration, ...]],
) -> Iterator[tuple[Place, Json]]:
    for entry in (*declared, *(entry for primitives in declared_primitives.values() for entry in primitives)):
        for place, layer in entry.layers:
            for name, question in (layer.get("ask") or {}).items():
                if isinstance(question.get("schema"), dict | bool):
                    yield place / "ask" / name / "schema", question["schema"]
            offers = (layer.get("complete") or {}).items()
            yield from ((place / "complete" / name, offer) for name, offer in offers if isinstance(offer, dict))
    for path, manifest in list_manifests(bundle):
        for name, handle in (manifest.get("handles") or {}).items():
            if isinstance(handle.get("state"), dict | bool):
                yield Place(path, ("handles", name, "state")), handle["state"]


def list_tools(bundle: Bundle, apis: Mapping[str, calling.Api]) -> tuple[Declaration, ...]:
    """Return all tools, in the order of `tools/list`: the manifest's own, then each fragment's.

    Overlays use the tool names from their own file, without the prefixes of including files. Overlays in including
    files take precedence. Bindings in `auth` and in APIs apply unless the tool overrides them.
    """
    auth = bundle.documents[bundle.entry].value.get("auth") or {}
    overlays_by_tool: dict[str, list[tuple[Place, Mapping[str, Json]]]] = {}
    for fragment, place, overlay in list_overlays(bundle):
        # Including files come first but take precedence, so later overlays are inserted in front.
        overlays_by_tool.setdefault(fragment.prefix + str(place.pointer[-1]), []).insert(0, (place, overlay))
    return tuple(
        _declare(fragment, place, wire, overlays_by_tool, apis, auth, bundle.entry)
        for fragment in bundle.fragments
        for place, wire in _list_tools(bundle, fragment.path)
    )


def _list_tools(bundle: Bundle, path: str) -> Iterator[tuple[Place, Mapping[str, Json]]]:
    hints = (bundle.documents[path].value.get("defaults") or {}).get("annotations") or {}
    for place, wire in list_entries(bundle, path, vocabulary.TOOLS):
        if own := {**hints, **(wire.get("annotations") or {})}:
            wire = {**wire, "annotations": {name: value for name, value in own.items() if value is not None}}
        yield place, wire


def list_primitives(bundle: Bundle, section: vocabulary.Section) -> tuple[Declaration, ...]:
    """Return all resources, resource templates or prompts, in order."""
    declared = []
    for fragment in bundle.fragments:
        for place, wire in list_entries(bundle, fragment.path, section):
            name, extension = fragment.prefix + wire["name"], wire.get("stubwright") or {}
            names = naming.name_primitive(section.noun, name, extension.get("pythonName"))
            layers = ((place / "stubwright", extension),)
            declared.append(
                Declaration(section, name, fragment.prefix, wire, to_json(wire), place, extension, layers, names)
            )
    return tuple(declared)


def resolve_use(use: str, tool: Declaration, names: Container[str]) -> str:
    """Return the tool name that `use` refers to, with the prefix of `tool` if a tool has that name."""
    return tool.prefix + use if tool.prefix + use in names else use


def find_argument_names(schema: Json, dialect: Dialect) -> tuple[str, ...] | None:
    """Return the names of a tool's arguments, or None if the schema also allows arguments with other names."""
    if any(isinstance(schema.get(key), dict) for key in LOOSE):
        return None
    outline = Outline(Place(""), schema, dialect, Folder("", {}))
    names: dict[str, None] = {}
    places: list[Pointer] = [()]
    for place in places:  # grows during the loop, by targets of references
        for pointer, part in outline.find_having("properties"):
            if place in outline.find_folded(pointer):
                names |= dict.fromkeys(part["properties"])
        for reference in outline.references:
            target = reference.target
            if (
                isinstance(target, LocalTarget)
                and target.pointer not in places
                and place in outline.find_folded(reference.pointer)
            ):
                places.append(target.pointer)
    return tuple(names)


def list_overlays(bundle: Bundle) -> Iterator[tuple[Fragment, Place, Mapping[str, Json]]]:
    """Yield each tool's entry in each `overlay`, with its fragment and location."""
    for fragment in bundle.fragments:
        if fragment.kind == "manifest":
            overlay = bundle.documents[fragment.path].value.get("overlay") or {}
            for name, entry in (overlay.get("tools") or {}).items():
                yield fragment, Place(fragment.path, ("overlay", "tools", name)), entry or {}


def list_entries(bundle: Bundle, path: str, section: vocabulary.Section) -> Iterator[tuple[Place, Mapping[str, Json]]]:
    """Yield the entries of a list in a document, with their locations."""
    for index, entry in enumerate(bundle.documents[path].value.get(section.name) or ()):
        yield Place(path, (section.name, index)), entry


def list_manifests(bundle: Bundle) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Return the entry and each included manifest once, in order, but not saved `tools/list` results."""
    paths = dict.fromkeys(fragment.path for fragment in bundle.fragments if fragment.kind == "manifest")
    return ((path, bundle.documents[path].value) for path in paths)


def merge(under: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """Merge `over` into `under`. Mappings are merged by key, other values are replaced."""
    both = dict(under)
    for key, value in over.items():
        mine = both.get(key)
        both[key] = merge(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return both


def locate_package(entry: str, manifest: Mapping[str, Json]) -> Place:
    """Return the location of `python.package`, or of the server's name, which the package name is derived from."""
    keys = ("python", "package") if (manifest.get("python") or {}).get("package") else ("server", "name")
    return Place(entry, keys)


def _declare(
    fragment: Fragment,
    place: Place,
    wire: Mapping[str, Json],
    overlays_by_tool: Mapping[str, list[tuple[Place, Mapping[str, Json]]]],
    apis: Mapping[str, calling.Api],
    auth: Mapping[str, Json],
    entry: str,
) -> Declaration:
    name = fragment.prefix + wire["name"]
    own = wire.get("stubwright") or {}
    layers = [(place / "stubwright", own)]
    patches: list[overlaying.Patch] = []
    for at, overlay in overlays_by_tool.get(name, ()):
        fields, settings = overlaying.split(overlay)
        layers.append((at, settings))
        if fields:
            patches.append((at, fields))
    if patches:
        wire = overlaying.patch(wire, patches, place.file, posixpath.dirname(entry))
    extension: Mapping[str, Json] = own
    for _, layer in layers[1:]:
        extension = merge(extension, layer)
    http = extension.get("http") or {}
    api = apis.get(http.get("api", ""))
    of_api = () if api is None else tuple(calling.list_binds(api, wire, http))
    of_all = binding.select(auth, wire.get("inputSchema"))
    bound = (*([(Place(entry, ("auth",)), of_all)] if of_all else []), *of_api)
    layers[:0] = [(at, {"bind": bindings}) for at, bindings in bound]
    inherited = {name: source for _, bindings in bound for name, source in bindings.items()}
    own_bindings: Mapping[str, Json] = extension.get("bind") or {}
    unbound = tuple(name for name, source in own_bindings.items() if source is None)
    if inherited or unbound:
        binds = {name: source for name, source in {**inherited, **own_bindings}.items() if source is not None}
        extension = {key: value for key, value in extension.items() if key != "bind"}
        if binds:
            extension["bind"] = binds
        if "examples" in extension:  # examples omit arguments bound in another file
            elsewhere = [bindings for at, bindings in bound if at.pointer[0] == "apis" or at.file != place.file]
            hidden = binds.keys() & {name for bindings in elsewhere for name in bindings}
            extension["examples"] = calling.drop_bound_arguments(extension["examples"], hidden)
    names = naming.name_tool(name, extension.get("pythonName"))
    data = to_json(wire)
    return Declaration(
        vocabulary.TOOLS,
        name,
        fragment.prefix,
        wire,
        data,
        place,
        extension,
        tuple(layers),
        names,
        tuple(patches),
        unbound,
    )


def to_json(value: Json) -> bytes:
    """Convert a manifest value to JSON."""
    return pydantic_core.to_json(value)  # the standard `json` is several times slower
