"""Checked manifest to IR: fragments in order, names prefixed, overlays applied, references bundled.

Takes an assembly without errors and gives the `ir.Manifest` that planning reads. It checks nothing and changes no value
of the documents: what goes on the wire is as it was written, key order, nulls and unknown fields included,
but for prefixes, bundled references and our own keys.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolwright import ir, naming
from toolwright.assembly import SECTIONS, Assembly, Declared, Section, manifests, meant
from toolwright.pycode import Name
from toolwright.schemas.bundling import bundle as bundled
from toolwright.uritemplates import variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolwright.diagnostics import Place
    from toolwright.schemas.references import Key, Outline
    from toolwright.source import File

FORMAT = 1
"""The version of the manifest's format, and of `manifest.json`."""

_ONLY_OURS = frozenset({"toolwright"})
_NOT_SERVED = frozenset({"lint"})
_OF_ALL = ("cache", "pageSize", "policy")
_KEYS: Final[Mapping[Section, str]] = {"resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}

_BINARY = re.compile(r"(image/(?!svg)|audio/|video/|font/|application/(octet-stream|pdf|zip|gzip))", re.IGNORECASE)
"""MIME types of what is never text, whatever its bytes are."""


def lower(assembly: Assembly, source: str) -> ir.Manifest:
    """Lower a manifest.

    Args:
        assembly: A manifest that `rules.check` finds no error in.
        source: Its path as headers of generated files show it.
    """
    entry = assembly.entry
    python = entry.get("python") or {}
    server = entry["server"]
    formats: ir.Formats = "assert" if entry.get("formats") == "assert" else "annotate"
    wire_names = frozenset(tool.name for tool in assembly.tools)
    lowered = [_tool(tool, assembly, wire_names) for tool in assembly.tools]
    offers = {section: [_offer(one, section, assembly) for one in assembly.offers[section]] for section in SECTIONS}
    listed: dict[str, Sequence[tuple[ir.Tool | ir.Offer, Mapping[str, ir.Json]]]] = {
        "tools": lowered,
        **{section: offers[section] for section in SECTIONS},
    }
    return ir.Manifest(
        source=source,
        server=server,
        package=Name(python["package"]) if python.get("package") else naming.package(server["name"]),
        stem=naming.server_stem(server["name"]),
        handlers=python.get("handlers"),
        tools=tuple(tool for tool, _ in lowered),
        resources=tuple(offer for offer, _ in offers["resources"]),
        templates=tuple(offer for offer, _ in offers["resourceTemplates"]),
        prompts=tuple(offer for offer, _ in offers["prompts"]),
        files={_packed(file): file.data for file in assembly.bundle.files.values()},
        shared=tuple(
            ir.SharedSchema(key.name, naming.shared(key.name), _schema(found, assembly), circle=_circle(key, assembly))
            for key, found in assembly.shared.items()
            if isinstance(found.schema, dict)
        ),
        emit=frozenset(entry.get("emit") or ("server", "client")),
        formats=formats,
        document={
            "toolwright": FORMAT,
            "server": server,
            "formats": formats,
            **{key: entry[key] for key in _OF_ALL if entry.get(key)},
            **({"apis": apis} if (apis := _apis(assembly)) else {}),
            **{
                section: [{**one.definition, "toolwright": ours} if ours else one.definition for one, ours in ones]
                for section, ones in listed.items()
                if ones or section == "tools"
            },
        },
    )


def _apis(assembly: Assembly) -> dict[str, ir.Json]:
    """The APIs that tools call, of all files."""
    return {
        name: api for _, manifest in manifests(assembly.bundle) for name, api in (manifest.get("apis") or {}).items()
    }


def _tool(declared: Declared, assembly: Assembly, names: frozenset[str]) -> tuple[ir.Tool, Mapping[str, ir.Json]]:
    """A tool, and what the package's `manifest.json` keeps of ours."""
    wire, ours = declared.wire, dict(declared.ours)
    deprecated = ours.get("deprecated")
    if deprecated and "use" in deprecated:
        deprecated = {**deprecated, "use": meant(deprecated["use"], declared, names)}
        ours["deprecated"] = deprecated
    schemas = {field: _schema(found, assembly) for field, found in assembly.schemas(declared)}
    changed = {"name": declared.name} | {field: schema.wire for field, schema in schemas.items()}
    annotations = wire.get("annotations")
    description = wire.get("description")
    http: Mapping[str, ir.Json] = ours.get("http") or {}
    policy = {**(assembly.entry.get("policy") or {}), **(ours.get("policy") or {})}
    tool = ir.Tool(
        name=declared.name,
        names=declared.names,
        description=description if isinstance(description, str) else None,
        definition={key: changed.get(key, value) for key, value in wire.items() if key not in _ONLY_OURS},
        input=schemas["inputSchema"],
        output=schemas.get("outputSchema"),
        annotations=annotations if isinstance(annotations, dict) else {},
        examples=_examples(ours.get("examples") or (), declared.said("examples")),
        deprecated=deprecated,
        questions=_questions(declared, assembly),
        place=declared.place,
        policy={key: value for key, value in policy.items() if not key.startswith("x-")},
        call=f"{http.get('method', 'GET')} {http['url']}" if http else None,
    )
    return tool, {key: value for key, value in ours.items() if key not in _NOT_SERVED}


def _offer(declared: Declared, section: Section, assembly: Assembly) -> tuple[ir.Offer, Mapping[str, ir.Json]]:
    """A resource, a template or a prompt, and what the package's `manifest.json` keeps of ours."""
    wire, ours = declared.wire, declared.ours
    completed: Mapping[str, ir.Json] = ours.get("complete") or {}
    offer = ir.Offer(
        section=section,
        key=declared.name if section == "prompts" else wire[_KEYS[section]],
        names=declared.names,
        definition={
            key: declared.name if key == "name" else value for key, value in wire.items() if key not in _ONLY_OURS
        },
        handled=not ours.keys() & {"text", "file", "messages"},
        arguments=None if section == "resources" else _arguments(wire, section),
        completed=tuple(completed),
        completes="handler" in completed.values(),
        questions=_questions(declared, assembly),
        deprecated=ours.get("deprecated"),
        place=declared.place,
    )
    kept = {key: value for key, value in ours.items() if key not in _NOT_SERVED}
    at = declared.place / "toolwright"
    if "file" in kept:
        kept |= _content(at, wire.get("mimeType"), assembly)
    if "messages" in kept:
        kept["messages"] = [
            {
                key: (
                    {**part, **_content(at / "messages" / index / key, part.get("mimeType"), assembly)}
                    if isinstance(part, dict) and "file" in part
                    else part
                )
                for key, part in message.items()
            }
            for index, message in enumerate(kept["messages"])
        ]
    return offer, kept


def _arguments(wire: Mapping[str, ir.Json], section: Section) -> tuple[ir.Argument, ...]:
    if section == "prompts":
        return tuple(
            ir.Argument(argument["name"], argument.get("description"), argument.get("required") is True)
            for argument in wire.get("arguments") or ()
        )
    return tuple(ir.Argument(one.name, None, one.required, one.many) for one in variables(wire["uriTemplate"]))


def _content(at: Place, mime_type: str | None, assembly: Assembly) -> dict[str, ir.Json]:
    """What the package knows of a file: where it lies inside, and whether it is text."""
    file = assembly.bundle.files[at / "file"]
    return {"file": _packed(file), "binary": not _is_text(file.data, mime_type or "")}


def _packed(file: File) -> str:
    return f"files/{file.path}"


def _is_text(data: bytes, mime_type: str) -> bool:
    if b"\0" in data or _BINARY.match(mime_type):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _questions(declared: Declared, assembly: Assembly) -> tuple[ir.Question, ...]:
    asks: Mapping[str, ir.Json] = declared.ours.get("ask") or {}
    return tuple(
        ir.Question(
            name=name,
            message=question["message"],
            schema=None if question.get("mode") == "url" else _schema(assembly.asides[at / "schema"], assembly),
            answer=naming.answer(declared.names, name),
            place=at,
        )
        for name, question in asks.items()
        for at in [declared.said("ask", name)]
    )


def _schema(found: Outline, assembly: Assembly) -> ir.Schema:
    made = bundled(found, assembly)
    dialect, place = found.dialect.uri, found.place
    return ir.Schema(wire=made.wire, dialect=dialect, place=place, shared=made.shared, own=made.own)


def _circle(key: Key, assembly: Assembly) -> str | None:
    """What the shared schemas are called by that lead to each other, this one among them."""
    members = assembly.circles[key]
    return min(each.name for each in members) if len(members) > 1 else None


def _examples(entries: Sequence[ir.Json], place: Place) -> tuple[ir.Example, ...]:
    return tuple(
        ir.Example(
            name=entry.get("name") or f"example {index + 1}",
            input=entry.get("input", {}),
            output=entry.get("output"),
            has_output="output" in entry,
            place=place / index,
        )
        for index, entry in enumerate(entries)
    )
