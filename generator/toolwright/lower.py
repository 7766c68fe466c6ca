"""Checked manifest to IR: fragments in order, names prefixed, overlays applied, references bundled.

Takes an assembly without errors and gives the `ir.Manifest` that planning reads. It checks nothing and changes no value
of the documents: what goes on the wire is as it was written, key order, nulls and unknown fields included,
but for prefixes, bundled references and our own keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwright import ir, naming
from toolwright.assembly import Assembly, Declared, meant
from toolwright.schemas.bundling import bundle as bundled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolwright.diagnostics import Place
    from toolwright.schemas.references import Outline

FORMAT = 1
"""The version of the manifest's format, and of `manifest.json`."""

_ONLY_OURS = frozenset({"toolwright"})
_NOT_SERVED = frozenset({"lint"})


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
    return ir.Manifest(
        source=source,
        server=server,
        package=python.get("package") or naming.package(server["name"]),
        stem=naming.server_stem(server["name"]),
        handlers=python.get("handlers"),
        tools=tuple(tool for tool, _ in lowered),
        shared=tuple(
            ir.SharedSchema(key.name, naming.shared(key.name), _schema(found, assembly))
            for key, found in assembly.shared.items()
            if isinstance(found.schema, dict)
        ),
        emit=frozenset(entry.get("emit") or ("server", "client")),
        formats=formats,
        document={
            "toolwright": FORMAT,
            "server": server,
            "formats": formats,
            "tools": [{**tool.definition, "toolwright": ours} if ours else tool.definition for tool, ours in lowered],
        },
    )


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
        place=declared.place,
    )
    return tool, {key: value for key, value in ours.items() if key not in _NOT_SERVED}


def _schema(found: Outline, assembly: Assembly) -> ir.Schema:
    made = bundled(found, assembly)
    return ir.Schema(wire=made.wire, dialect=found.dialect.uri, place=found.place, shared=made.shared)


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
