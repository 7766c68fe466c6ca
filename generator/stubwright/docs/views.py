"""Collects a server page's content as plain values, without layout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright import naming, tokens
from stubwright.codegen.source.docstrings import describe_deprecation
from stubwright.docs import shared_schemas, tables
from stubwright.http import split
from stubwright.jsonschema import dialects
from stubwright_runtime.mcp import revisions, vocabulary

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diagnostics import Pointer
    from stubwright.docs.tables import Anchor, Table

_POLICIES: Final = {
    "timeout": "Timeout",
    "rateLimit": "Rate limit",
    "scopes": "Required scopes",
    "concurrency": "Concurrency limit",
    "maxResultBytes": "Maximum result size",
    "resultTokens": "Maximum result tokens",
    "maxArgumentBytes": "Maximum argument size",
    "confirm": "Requires confirmation",
    "once": "Safe to repeat",
    "redact": "Redacted from logs",
    "sanitize": "Cleaned in results",
    "onStateLoss": "On loss of state",
}
_TONES: Final = {"read-only": "calm", "destructive": "grave"}
_TASKS: Final = {"optional": "can run as a task", "required": "runs only as a task"}


@dataclass(frozen=True, slots=True)
class Badge:
    """A short label on a tool; `tone` is `calm`, `grave` or empty."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its values, such as a policy and its limits."""

    name: str
    values: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class SchemaSection:
    """A schema of an entry, under a heading; `id` is the anchor of its tables."""

    id: str
    heading: str
    text: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a shared schema by a tool or another entry, with the schema's role there."""

    id: str
    key: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A shared schema: its tables, the keys of its instances, and its uses."""

    anchor: Anchor
    tables: tuple[Table, ...]
    keys: tuple[str, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its result, as JSON; `answer` is None if the manifest omits it."""

    name: str
    description: str | None
    request: str
    answer: str | None
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """A prompt's argument or a URI template's variable, with the completions that the server offers."""

    name: str
    description: str | None
    required: bool
    offered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool, resource, template or prompt; fields without content are empty."""

    id: str
    key: str
    title: str | None
    description: str | None
    deprecated: str | None
    facts: tuple[Fact, ...]
    parts: tuple[SchemaSection, ...]
    badges: tuple[Badge, ...] = ()
    arguments: tuple[Argument, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    examples: tuple[Example, ...] = ()
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """The entries of one kind, such as all tools."""

    id: str
    heading: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text to copy, with an instruction."""

    heading: str
    text: str
    language: str
    code: str


@dataclass(frozen=True, slots=True)
class NewerField:
    """A field that older revisions lack: its first revision, and the entries that use it."""

    field: str
    since: str
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A page's content as plain values."""

    source: str
    name: str
    title: str
    version: str
    description: str | None
    instructions: str | None
    website: str | None
    sections: tuple[Section, ...]
    models: tuple[Model, ...]
    defaults: tuple[Fact, ...]
    snippets: tuple[Snippet, ...]
    oldest: str | None
    newer: tuple[NewerField, ...]
    tokens: int

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """The keys of each shared schema's instances, keyed by anchor ID."""
        return {model.anchor.id: model.keys for model in self.models}


@dataclass(frozen=True, slots=True)
class _PlannedPart:
    """A section whose tables are created after the shared schemas are known."""

    id: str
    heading: str
    text: str
    schema: ir.Schema | None


def view(manifest: ir.Manifest, source: Mapping[str, Any]) -> View:
    """Return a server page's content.

    Args:
        manifest: The lowered manifest.
        source: The manifest as written, for parts that the IR omits: default policies and `protocol`.
    """
    server = manifest.server
    defaults = _collect_policies(source)
    planned_parts = [[*_plan_tool_parts(tool)] for tool in manifest.tools]
    planned_parts += [
        [*_plan_questions(make_id(primitive), primitive.questions)]
        for primitives in manifest.primitives.values()
        for primitive in primitives
    ]
    schemas = [part.schema for parts in planned_parts for part in parts if part.schema is not None]
    catalogue = shared_schemas.collect(schemas, manifest.shared)
    anchors = iter(catalogue.anchors)
    parts = iter([tuple(_make_part(part, anchors) for part in parts) for parts in planned_parts])
    tools = tuple(
        _describe_tool(tool, extension, defaults, next(parts), manifest.emit)
        for tool, extension in zip(manifest.tools, _list_extensions(manifest, vocabulary.TOOLS), strict=True)
    )
    sections = [_make_section(vocabulary.TOOLS, tools)]
    for section, primitives in manifest.primitives.items():
        entries = zip(primitives, _list_extensions(manifest, section), strict=True)
        sections.append(
            _make_section(
                section,
                tuple(
                    _describe_primitive(primitive, extension, next(parts), manifest.emit)
                    for primitive, extension in entries
                ),
            )
        )
    return View(
        source=manifest.source,
        name=str(server["name"]),
        title=_to_text(server.get("title")) or str(server["name"]),
        version=str(server["version"]),
        description=_to_text(server.get("description")),
        instructions=_to_text(server.get("instructions")),
        website=_get_website(server.get("websiteUrl")),
        sections=tuple(section for section in sections if section.entries),
        models=tuple(_make_models(catalogue, [entry_ for section in sections for entry_ in section.entries])),
        defaults=tuple(_list_policies(defaults, {})),
        snippets=tuple(_make_snippets(manifest)),
        oldest=_to_text(_to_mapping(source.get("protocol")).get("min")),
        newer=tuple(_find_newer_fields(manifest)),
        tokens=sum(tool.tokens or 0 for tool in tools),
    )


def _list_extensions(manifest: ir.Manifest, section: vocabulary.Section) -> Iterator[Mapping[str, Any]]:
    skill_files = frozenset(manifest.skill_files)
    entries = (entry for entry in manifest.document.get(section.name) or () if entry.get("uri") not in skill_files)
    return (_to_mapping(entry.get("stubwright")) for entry in entries)


def _make_section(section: vocabulary.Section, entries: tuple[Entry, ...]) -> Section:
    return Section(f"{_get_short_noun(section)}s", f"{section.noun}s".capitalize(), entries)


def _get_short_noun(section: vocabulary.Section) -> str:
    """Return the last word of a section's noun, which starts the anchors of its entries."""
    return section.noun.rpartition(" ")[2]


def _plan_tool_parts(tool: ir.Tool) -> Iterator[_PlannedPart]:
    id_ = f"tool-{tool.names.method}"
    yield _PlannedPart(f"{id_}-input", "Arguments", "", tool.sent)
    if tool.output is not None:
        yield _PlannedPart(f"{id_}-output", "Result", "", tool.output)
    yield from _plan_questions(id_, tool.questions)


def _make_part(planned: _PlannedPart, anchors: Iterator[Mapping[Pointer, Anchor]]) -> SchemaSection:
    part_tables = () if planned.schema is None else tables.make_tables(planned.schema, next(anchors))
    return SchemaSection(planned.id, planned.heading, planned.text, part_tables)


def _make_models(catalogue: shared_schemas.Catalogue, entries: Sequence[Entry]) -> Iterator[Model]:
    tables_by_anchor = [
        (shared_schema.anchor, tables.make_tables(shared_schema.schema, shared_schema.anchors, shared_schema.start))
        for shared_schema in catalogue.shared
    ]
    uses: dict[str, dict[str, Use]] = {anchor.id: {} for anchor, _ in tables_by_anchor}
    for entry in entries:
        for part in entry.parts:
            for anchor in _find_anchors(part.tables):
                use = uses[anchor.id].get(entry.id) or Use(part.id, entry.key, ())
                uses[anchor.id][entry.id] = Use(use.id, use.key, (*use.words, part.heading.lower()))
    for anchor_, schema_tables in tables_by_anchor:
        for anchor in _find_anchors(schema_tables):
            if anchor != anchor_:
                uses[anchor.id][anchor_.id] = Use(anchor_.id, anchor_.name, ())
    for anchor, schema_tables in tables_by_anchor:
        keys = dict.fromkeys(row.name for row in schema_tables[0].rows if row.is_key and row.depth == 0)
        yield Model(anchor, schema_tables, tuple(keys), tuple(uses[anchor.id].values()))


def _find_anchors(tables_: Sequence[Table]) -> Iterable[Anchor]:
    kinds = (kind for table in tables_ for row in (table.whole, *table.rows) for kind in row.kinds)
    return dict.fromkeys(kind.anchor for kind in kinds if kind.anchor is not None)


def _describe_tool(
    tool: ir.Tool,
    extension: Mapping[str, Any],
    defaults: Mapping[str, Any],
    parts: tuple[SchemaSection, ...],
    emit: Set[str],
) -> Entry:
    support = _to_mapping(tool.definition.get("execution")).get("taskSupport")
    hints = [
        hint.describe(value) for hint in vocabulary.HINTS if isinstance(value := tool.annotations.get(hint.name), bool)
    ]
    badges = [Badge(text, _TONES.get(text, "")) for text in hints]
    badges += [Badge(_TASKS[support])] if support in _TASKS else []
    title = _to_text(tool.definition.get("title")) or _to_text(tool.annotations.get("title"))
    return Entry(
        id=f"tool-{tool.names.method}",
        key=tool.name,
        title=title,
        description=tool.description,
        deprecated=describe_deprecation(tool.deprecated),
        badges=tuple(badges),
        facts=(
            *_list_policies(_collect_policies(extension), defaults),
            *_list_old_names(tool),
            *_list_methods(tool.names, emit),
        ),
        parts=parts,
        examples=tuple(_make_examples(tool, extension)),
        tokens=tokens.count(tool.listed),
    )


def _list_old_names(tool: ir.Tool) -> Iterator[Fact]:
    for alias in tool.aliases:
        renamed = tuple(f"{old} → {new}" for old, new in (alias.get("arguments") or {}).items())
        until = f"up to version {alias['removeAfter']}" if "removeAfter" in alias else ""
        yield Fact("Old name", (alias["name"], *renamed), until)


def _list_methods(names: naming.Names, emit: Set[str]) -> Iterator[Fact]:
    if "typescript" in emit:
        yield Fact("In TypeScript", (naming.name_member(names),))


def _make_examples(tool: ir.Tool, extension: Mapping[str, Any]) -> Iterator[Example]:
    for example, source in zip(tool.examples, extension.get("examples") or (), strict=True):
        yield Example(
            name=example.name,
            description=_to_text(source.get("description")),
            request=_to_json({"name": tool.name, "arguments": example.input}),
            answer=_to_json(example.output) if example.has_output else None,
            is_exact=source.get("exact") is True,
        )


def make_id(primitive: ir.Primitive) -> str:
    """Return an entry's anchor on its page."""
    return f"{_get_short_noun(primitive.section)}-{primitive.names.method}"


def _describe_primitive(
    primitive: ir.Primitive, extension: Mapping[str, Any], parts: tuple[SchemaSection, ...], emit: Set[str]
) -> Entry:
    definition = primitive.definition
    by_uri = primitive.section.key != "name"
    offered = _to_mapping(extension.get("complete"))
    facts = [Fact("MIME type", (definition["mimeType"],))] if _to_text(definition.get("mimeType")) else []
    facts += [Fact("Size", (f"{definition['size']} bytes",))] if isinstance(definition.get("size"), int) else []
    messages = [
        (str(message.get("role", "user")), message.get("text") or "(an image, a sound or a resource)")
        for message in extension.get("messages") or ()
    ]
    return Entry(
        id=make_id(primitive),
        key=primitive.key,
        title=_to_text(definition.get("title")) or (_to_text(definition.get("name")) if by_uri else None),
        description=_to_text(definition.get("description")),
        deprecated=describe_deprecation(primitive.deprecated),
        facts=(*facts, *_list_methods(primitive.names, emit)),
        arguments=tuple(
            Argument(argument.name, argument.description, argument.required, _to_texts(offered.get(argument.name)))
            for argument in primitive.arguments or ()
        ),
        parts=parts,
        messages=tuple(messages),
    )


def _to_texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _plan_questions(id_: str, questions: Sequence[ir.Question]) -> Iterator[_PlannedPart]:
    for question in questions:
        how = "" if question.schema is not None else " (opens a page)"
        heading = f"May ask: {question.name}{how}"
        yield _PlannedPart(f"{id_}-asks-{question.name}", heading, question.message, question.schema)


def _collect_policies(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    budget = _to_mapping(settings.get("budget"))
    return {**_to_mapping(settings.get("policy")), **({"resultTokens": budget["result"]} if "result" in budget else {})}


def _list_policies(policy: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Fact]:
    for key, name in _POLICIES.items():
        if key in policy or key in defaults:
            yield Fact(name, _show_values(policy.get(key, defaults.get(key))), "" if key in policy else "default")


def _show_values(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value)) or ("none",)
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, dict):
        return tuple(f"{key}: {', '.join(_show_values(inner))}" for key, inner in value.items()) or ("yes",)
    return (str(value),)


def _make_snippets(manifest: ir.Manifest) -> Iterator[Snippet]:
    name = str(manifest.server["name"])
    if "server" in manifest.emit:
        local = {"command": "python", "args": ["-m", manifest.package]}
        yield Snippet(
            "On this machine (stdio)",
            "The entry that most clients accept; `python` must have the package on its path.",
            "JSON",
            _to_json({"mcpServers": {name: local}}),
        )
        remote = {"type": "http", "url": "http://127.0.0.1:8000/mcp"}
        yield Snippet(
            "Over HTTP",
            f"After `python -m {manifest.package} --http 127.0.0.1:8000`.",
            "JSON",
            _to_json({"mcpServers": {name: remote}}),
        )
    client, methods = naming.name_client_class(manifest.stem), "One typed method for each tool, resource and prompt."
    if "client" in manifest.emit:
        yield Snippet(
            "From Python",
            methods,
            "Python",
            f"from {manifest.package} import {client}\n\n"
            f'async with {client}.connect("http://127.0.0.1:8000/mcp") as client:\n    ...',
        )
    if "typescript" in manifest.emit:
        yield Snippet(
            "From TypeScript",
            methods,
            "TypeScript",
            f'import {{ {client} }} from "./generated/typescript/{manifest.package}.ts";\n\n'
            f'await using client = await {client}.connect("http://127.0.0.1:8000/mcp");',
        )


def _find_newer_fields(manifest: ir.Manifest) -> Iterator[NewerField]:
    """Yield the fields that some supported revisions lack, oldest first."""
    users: dict[tuple[str, str], list[str]] = {}
    for field, since in revisions.SINCE["server"].items():
        if field in manifest.server:
            users.setdefault((since, field), []).append("the server")
    definitions = [(vocabulary.TOOLS, tool.name, tool.listed) for tool in manifest.tools]
    definitions += [
        (section, primitive.key, primitive.definition)
        for section, primitives in manifest.primitives.items()
        for primitive in primitives
    ]
    for section, key, definition in definitions:
        for field, since in revisions.SINCE[section.name].items():
            if field in definition:
                users.setdefault((since, field), []).append(key)
    for tool in manifest.tools:
        if tool.output is not None and tool.output.wire.get("type") != "object":
            users.setdefault(
                (revisions.find_revision("any_output"), "an outputSchema for a value other than an object"), []
            ).append(tool.name)
        dialect = next(item for item in dialects.DIALECTS if item.uri == tool.input.dialect)
        if any(
            isinstance(subschema, dict) and vocabulary.HEADER in subschema
            for _, subschema in dialects.iterate_subschemas(tool.input.wire, dialect)
        ):
            users.setdefault((revisions.find_revision("parameter_headers"), vocabulary.HEADER), []).append(tool.name)
    for (since, field), names in sorted(users.items(), key=lambda item: item[0]):
        yield NewerField(field, since, tuple(names))


def _get_website(url: Any) -> str | None:
    text = _to_text(url)
    parts = None if text is None else split(text)
    # Other schemes are unsafe in links.
    return text if parts is not None and parts.scheme in ("http", "https") else None


def _to_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _to_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
