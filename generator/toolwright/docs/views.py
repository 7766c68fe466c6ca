"""What a page says of a server, as plain values.

Takes the IR of a manifest and the manifest itself; gives what the template shows. It lays nothing out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolwright import naming
from toolwright.codegen.source.docstrings import deprecation
from toolwright.docs import cost, shared, tables
from toolwright.http import split
from toolwright.jsonschema import dialects
from toolwright_runtime.mcp import revisions, vocabulary

if TYPE_CHECKING:
    from toolwright import ir
    from toolwright.diagnostics import Pointer
    from toolwright.docs.tables import Home, Table

_POLICIES: Final = {
    "timeout": "Timeout",
    "rateLimit": "Rate limit",
    "scopes": "Required scopes",
    "concurrency": "Concurrency limit",
    "maxResultBytes": "Maximum result size",
    "maxArgumentBytes": "Maximum argument size",
    "confirm": "Requires confirmation",
    "redact": "Redacted from logs",
    "sanitize": "Cleaned in results",
    "onStateLoss": "On loss of state",
}
_TONES: Final = {"read-only": "calm", "destructive": "grave"}
_TASKS: Final = {"optional": "may run as a task", "required": "runs as a task only"}


@dataclass(frozen=True, slots=True)
class Badge:
    """A word or two about a tool; `tone` is `calm`, `grave` or empty."""

    text: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A line such as a policy: what it is, and its values."""

    name: str
    values: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A schema of an entry under a heading; `id` is where its tables are."""

    id: str
    heading: str
    text: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """Where a shared schema is used: the anchor, whose it is, and as what, in words."""

    id: str
    key: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A shared schema: its table, those that it alone leads to, the keys of its instances, and who uses it."""

    home: Home
    tables: tuple[Table, ...]
    keys: tuple[str, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its answer, as JSON texts; `answer` is None where the manifest has none."""

    name: str
    description: str | None
    request: str
    answer: str | None
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a prompt, or a variable of a URI template, with the values that are offered for it."""

    name: str
    description: str | None
    required: bool
    offered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool, resource, template or prompt; what it does not have is empty."""

    id: str
    key: str
    title: str | None
    description: str | None
    deprecated: str | None
    badges: tuple[Badge, ...]
    facts: tuple[Fact, ...]
    arguments: tuple[Argument, ...]
    parts: tuple[Part, ...]
    messages: tuple[tuple[str, str], ...]
    examples: tuple[Example, ...]
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of entries."""

    id: str
    heading: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Something to copy, and what to do with it."""

    heading: str
    text: str
    language: str
    code: str


@dataclass(frozen=True, slots=True)
class Newer:
    """A field that not every revision has: since when, and what of the server uses it."""

    field: str
    since: str
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """All that a page says."""

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
    newer: tuple[Newer, ...]
    tokens: int

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """The keys of each shared schema's instances, by its anchor."""
        return {model.home.id: model.keys for model in self.models}


@dataclass(frozen=True, slots=True)
class _Planned:
    """A part whose tables wait for the shared schemas."""

    id: str
    heading: str
    text: str
    schema: ir.Schema | None


def view(manifest: ir.Manifest, entry: Mapping[str, Any]) -> View:
    """What the page of a server says.

    Args:
        manifest: The lowered manifest.
        entry: The manifest as it is written, for what is no part of the IR: default policies and `protocol`.
    """
    server = manifest.server
    defaults = _mapping(entry.get("policy"))
    planned = [[*_parts_of_tool(tool)] for tool in manifest.tools]
    planned += [[*_questions(_id(one), one.questions)] for ones in manifest.primitives.values() for one in ones]
    schemas = [part.schema for parts in planned for part in parts if part.schema is not None]
    catalogue = shared.collect(schemas, manifest.shared)
    homes = iter(catalogue.homes)
    parts = iter([tuple(_part(one, homes) for one in parts) for parts in planned])
    tools = tuple(
        _tool(tool, extension, defaults, next(parts))
        for tool, extension in zip(manifest.tools, _extensions(manifest, vocabulary.TOOLS), strict=True)
    )
    sections = [_section(vocabulary.TOOLS, tools)]
    for section, primitives in manifest.primitives.items():
        entries = zip(primitives, _extensions(manifest, section), strict=True)
        sections.append(_section(section, tuple(_primitive(one, extension, next(parts)) for one, extension in entries)))
    return View(
        source=manifest.source,
        name=str(server["name"]),
        title=_text(server.get("title")) or str(server["name"]),
        version=str(server["version"]),
        description=_text(server.get("description")),
        instructions=_text(server.get("instructions")),
        website=_website(server.get("websiteUrl")),
        sections=tuple(section for section in sections if section.entries),
        models=tuple(_models(catalogue, [one for section in sections for one in section.entries])),
        defaults=tuple(_policies(defaults, {})),
        snippets=tuple(_snippets(manifest)),
        oldest=_text(_mapping(entry.get("protocol")).get("min")),
        newer=tuple(_newer(manifest)),
        tokens=sum(tool.tokens or 0 for tool in tools),
    )


def _extensions(manifest: ir.Manifest, section: vocabulary.Section) -> Iterator[Mapping[str, Any]]:
    """What stands under `toolwright` in each entry of a section."""
    return (_mapping(entry.get("toolwright")) for entry in manifest.document.get(section.name) or ())


def _section(section: vocabulary.Section, entries: tuple[Entry, ...]) -> Section:
    return Section(f"{_short(section)}s", f"{section.noun}s".capitalize(), entries)


def _short(section: vocabulary.Section) -> str:
    """The last word of what an entry is called, which addresses on the page start with."""
    return section.noun.rpartition(" ")[2]


def _parts_of_tool(tool: ir.Tool) -> Iterator[_Planned]:
    id_ = f"tool-{tool.names.method}"
    yield _Planned(f"{id_}-input", "Arguments", "", tool.sent)
    if tool.output is not None:
        yield _Planned(f"{id_}-output", "Result", "", tool.output)
    yield from _questions(id_, tool.questions)


def _part(planned: _Planned, homes: Iterator[Mapping[Pointer, Home]]) -> Part:
    found = () if planned.schema is None else tables.tables(planned.schema, next(homes))
    return Part(planned.id, planned.heading, planned.text, found)


def _models(catalogue: shared.Catalogue, entries: Sequence[Entry]) -> Iterator[Model]:
    found = [(one.home, tables.tables(one.schema, one.homes, one.start)) for one in catalogue.shared]
    uses: dict[str, dict[str, Use]] = {home.id: {} for home, _ in found}
    for entry in entries:
        for part in entry.parts:
            for home in _homes(part.tables):
                use = uses[home.id].get(entry.id) or Use(part.id, entry.key, ())
                uses[home.id][entry.id] = Use(use.id, use.key, (*use.words, part.heading.lower()))
    for user, its in found:
        for home in _homes(its):
            if home != user:
                uses[home.id][user.id] = Use(user.id, user.name, ())
    for home, its in found:
        keys = dict.fromkeys(row.name for row in its[0].rows if row.is_key and row.depth == 0)
        yield Model(home, its, tuple(keys), tuple(uses[home.id].values()))


def _homes(found: Sequence[Table]) -> Iterable[Home]:
    """What tables refer to elsewhere on the page, each once."""
    kinds = (kind for table in found for row in (table.whole, *table.rows) for kind in row.kinds)
    return dict.fromkeys(kind.home for kind in kinds if kind.home is not None)


def _tool(tool: ir.Tool, extension: Mapping[str, Any], defaults: Mapping[str, Any], parts: tuple[Part, ...]) -> Entry:
    support = _mapping(tool.definition.get("execution")).get("taskSupport")
    hints = [
        hint.means(value) for hint in vocabulary.HINTS if isinstance(value := tool.annotations.get(hint.name), bool)
    ]
    badges = [Badge(text, _TONES.get(text, "")) for text in hints]
    badges += [Badge(_TASKS[support])] if support in _TASKS else []
    title = _text(tool.definition.get("title")) or _text(tool.annotations.get("title"))
    return Entry(
        id=f"tool-{tool.names.method}",
        key=tool.name,
        title=title,
        description=tool.description,
        deprecated=deprecation(tool.deprecated),
        badges=tuple(badges),
        facts=tuple(_policies(_mapping(extension.get("policy")), defaults)),
        arguments=(),
        parts=parts,
        messages=(),
        examples=tuple(_examples(tool, extension)),
        tokens=cost.tokens(tool.definition),
    )


def _examples(tool: ir.Tool, extension: Mapping[str, Any]) -> Iterator[Example]:
    for example, given in zip(tool.examples, extension.get("examples") or (), strict=True):
        yield Example(
            name=example.name,
            description=_text(given.get("description")),
            request=_json({"name": tool.name, "arguments": example.input}),
            answer=_json(example.output) if example.has_output else None,
            is_exact=given.get("exact") is True,
        )


def _id(primitive: ir.Primitive) -> str:
    return f"{_short(primitive.section)}-{primitive.names.method}"


def _primitive(primitive: ir.Primitive, extension: Mapping[str, Any], parts: tuple[Part, ...]) -> Entry:
    definition = primitive.definition
    by_uri = primitive.section.key != "name"
    offered = _mapping(extension.get("complete"))
    facts = [Fact("MIME type", (definition["mimeType"],))] if _text(definition.get("mimeType")) else []
    facts += [Fact("Size", (f"{definition['size']} bytes",))] if isinstance(definition.get("size"), int) else []
    messages = [
        (str(message.get("role", "user")), message.get("text") or "(an image, a sound or a resource)")
        for message in extension.get("messages") or ()
    ]
    return Entry(
        id=_id(primitive),
        key=primitive.key,
        title=_text(definition.get("title")) or (_text(definition.get("name")) if by_uri else None),
        description=_text(definition.get("description")),
        deprecated=deprecation(primitive.deprecated),
        badges=(),
        facts=tuple(facts),
        arguments=tuple(
            Argument(one.name, one.description, one.required, _offered(offered.get(one.name)))
            for one in primitive.arguments or ()
        ),
        parts=parts,
        messages=tuple(messages),
        examples=(),
        tokens=None,
    )


def _offered(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _questions(id_: str, questions: Sequence[ir.Question]) -> Iterator[_Planned]:
    for question in questions:
        how = "" if question.schema is not None else " (opens a page)"
        heading = f"May ask: {question.name}{how}"
        yield _Planned(f"{id_}-asks-{question.name}", heading, question.message, question.schema)


def _policies(policy: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Fact]:
    """The policy's parts, and those that hold for all tools."""
    for key, name in _POLICIES.items():
        if key in policy or key in defaults:
            yield Fact(name, _values(policy.get(key, defaults.get(key))), "" if key in policy else "default")


def _values(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(map(str, value)) or ("none",)
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, dict):
        return tuple(f"{key}: {inner}" for key, inner in value.items()) or ("yes",)
    return (str(value),)


def _snippets(manifest: ir.Manifest) -> Iterator[Snippet]:
    name = str(manifest.server["name"])
    if "server" in manifest.emit:
        local = {"command": "python", "args": ["-m", manifest.package]}
        yield Snippet(
            "On this machine (stdio)",
            "The entry that most clients take; `python` is one that has the package on its path.",
            "JSON",
            _json({"mcpServers": {name: local}}),
        )
        remote = {"type": "http", "url": "http://127.0.0.1:8000/mcp"}
        yield Snippet(
            "Over HTTP",
            f"After `python -m {manifest.package} --http 127.0.0.1:8000`.",
            "JSON",
            _json({"mcpServers": {name: remote}}),
        )
    if "client" in manifest.emit:
        client = naming.client_class(manifest.stem)
        yield Snippet(
            "From Python",
            "One typed method for each tool, resource and prompt.",
            "Python",
            f"from {manifest.package} import {client}\n\n"
            f'async with {client}.connect("http://127.0.0.1:8000/mcp") as client:\n    ...',
        )


def _newer(manifest: ir.Manifest) -> Iterator[Newer]:
    """The fields that not all revisions have, the oldest first."""
    users: dict[tuple[str, str], list[str]] = {}
    for field, since in revisions.SINCE["server"].items():
        if field in manifest.server:
            users.setdefault((since, field), []).append("the server")
    definitions = [(vocabulary.TOOLS, tool.name, tool.definition) for tool in manifest.tools]
    definitions += [(section, one.key, one.definition) for section, ones in manifest.primitives.items() for one in ones]
    for section, key, definition in definitions:
        for field, since in revisions.SINCE[section.name].items():
            if field in definition:
                users.setdefault((since, field), []).append(key)
    for tool in manifest.tools:
        if tool.output is not None and tool.output.wire.get("type") != "object":
            users.setdefault((revisions.since("any_output"), "an outputSchema that is not for an object"), []).append(
                tool.name
            )
        dialect = next(one for one in dialects.DIALECTS if one.uri == tool.input.dialect)
        if any(
            isinstance(one, dict) and vocabulary.HEADER in one
            for _, one in dialects.subschemas(tool.input.wire, dialect)
        ):
            users.setdefault((revisions.since("parameter_headers"), vocabulary.HEADER), []).append(tool.name)
    for (since, field), names in sorted(users.items(), key=lambda one: one[0]):
        yield Newer(field, since, tuple(names))


def _website(url: Any) -> str | None:
    """A web address that a page may lead to; no script hides in it."""
    text = _text(url)
    parts = None if text is None else split(text)
    return text if parts is not None and parts.scheme in ("http", "https") else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
