"""Lowers a checked manifest to the IR.

Prefixes, bundled references and extensions aside, wire documents keep key order, nulls and unknown fields.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stubwright import ir, naming
from stubwright.compile import binds, completions, handles, shape
from stubwright.compile.audience import aliases, toolsets
from stubwright.compile.audience.nullable import split_types
from stubwright.compile.bundles import Bundles
from stubwright.compile.resolve import Declaration, ResolvedBundle, resolve_use
from stubwright.compile.skills import lowering as skills
from stubwright.jsonschema import dialects, formats
from stubwright.jsonschema.pointers import format_pointer
from stubwright.pycode import Name
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.mcp.uri_templates import UriTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stubwright.diagnostics import Place, Pointer
    from stubwright.jsonschema.references import Key, Outline

FORMAT = 1
"""The format version of manifests and of `manifest.json`."""

_EXTENSION = frozenset({"stubwright"})
_NOT_SERVED = frozenset({"lint", "reasons"})
_SETTINGS = ("audit", "auth", "cache", "client", "pageSize", "policy", "storage")


def lower(resolved: ResolvedBundle, source: str) -> ir.Manifest:
    """Lower a manifest.

    Args:
        resolved: A manifest without errors.
        source: The manifest's path, as shown in generated file headers.
    """
    entry = resolved.entry
    python = entry.get("python") or {}
    server = entry["server"]
    meaning = formats.get_meaning(entry)
    wire_names = frozenset(tool.name for tool in resolved.tools)
    apis, handle_kinds = {api.name: api.settings for api in resolved.apis}, handles.get_declared(resolved)
    kinds = [*handles.lower_kinds(resolved)]
    lowered = [_lower_tool(tool, resolved, wire_names, apis, handle_kinds) for tool in resolved.tools]
    bundles = Bundles(resolved)
    as_written = [tool for tool in resolved.tools if not _is_derived(tool)]
    apart = {tool.name: bundles.extract(tool) for tool in as_written}
    primitives = {
        section: [_lower_primitive(primitive, resolved) for primitive in resolved.primitives[section]]
        for section in vocabulary.PRIMITIVES
    }
    skills_served = resolved.bundle.skills if resolved.serves else ()
    attached = [*resolved.bundle.files.values(), *(file for skill in skills_served for file in skill.files.values())]
    listed: dict[vocabulary.Section, Sequence[tuple[ir.Tool | ir.Primitive, Mapping[str, ir.Json]]]] = {
        vocabulary.TOOLS: lowered,
        **primitives,
    }
    return ir.Manifest(
        source=source,
        server=server,
        package=Name(python["package"]) if python.get("package") else naming.name_package(server["name"]),
        stem=naming.name_server_stem(server["name"]),
        handlers=python.get("handlers"),
        tools=tuple(tool for tool, _ in lowered),
        resources=tuple(primitive for primitive, _ in primitives[vocabulary.RESOURCES]),
        templates=tuple(primitive for primitive, _ in primitives[vocabulary.TEMPLATES]),
        prompts=tuple(primitive for primitive, _ in primitives[vocabulary.PROMPTS]),
        files={file.packed: file.data for file in attached},
        shared=(*_lower_shared(resolved), *_lower_states(kinds, resolved)),
        emit=frozenset(entry.get("emit") or ("server", "client")),
        formats=meaning,
        refs=resolved.refs,
        splits_types=resolved.splits_types,
        handles=tuple(kind for kind, _ in kinds),
        targets=tuple(entry.get("targets") or ()),
        budget=entry.get("budget") or {},
        document={
            "stubwright": FORMAT,
            "server": server,
            "formats": "assert" if formats.get_settings(meaning)["formats"] else "annotate",
            **({"exactFormats": True} if formats.get_settings(meaning)["exact"] else {}),
            **_select_settings(entry),
            **({"nulls": "omitted"} if (entry.get("wire") or {}).get("nulls") == "omitted" else {}),
            **({"apis": apis} if apis else {}),
            **({"toolsets": offered} if (offered := toolsets.lower(resolved)) else {}),
            **({"handles": _complete_handles(handle_kinds, kinds, resolved)} if handle_kinds else {}),
            **{
                section.name: [
                    *(
                        _make_entry(
                            primitive.definition,
                            apart.get(primitive.name, {}) if isinstance(primitive, ir.Tool) else {},
                            extension,
                        )
                        for primitive, extension in entries
                    ),
                    *(skills.lower_resources(skills_served) if section is vocabulary.RESOURCES else ()),
                ]
                for section, entries in listed.items()
                if entries or section is vocabulary.TOOLS or (skills_served and section is vocabulary.RESOURCES)
            },
            **({"skills": skills.lower_entries(skills_served)} if skills_served else {}),
            **bundles.make_document(),
        },
    )


def _select_settings(entry: Mapping[str, ir.Json]) -> Mapping[str, ir.Json]:
    """Return server-wide settings, without the bindings in `auth`, which are part of the tools."""
    settings = {key: entry[key] for key in _SETTINGS if entry.get(key)}
    if "bind" in (settings.get("auth") or ()):
        settings["auth"] = {key: value for key, value in settings["auth"].items() if key != "bind"}
    if "result" in (entry.get("budget") or ()):  # only the compiler uses the remaining budgets
        settings["budget"] = {"result": entry["budget"]["result"]}
    return settings


def _is_derived(tool: Declaration) -> bool:
    changes = bool(tool.extension.get("bind") or tool.extension.get("paginate"))
    return changes or not shape.SHAPING.isdisjoint(tool.extension.get("http") or {})


def _make_entry(
    definition: Mapping[str, ir.Json], apart: Mapping[str, ir.Json], extension: Mapping[str, ir.Json]
) -> Mapping[str, ir.Json]:
    """Return an entry for `manifest.json`.

    The schemas in `apart` omit the large shared schemas, and replace the schemas in `definition`.
    """
    if not apart and not extension:
        return definition
    entry = {key: apart.get(key, value) for key, value in definition.items()}
    return {**entry, "stubwright": extension} if extension else entry


def _lower_tool(
    declared: Declaration,
    resolved: ResolvedBundle,
    names: frozenset[str],
    apis: Mapping[str, ir.Json],
    handle_kinds: Mapping[str, ir.Json],
) -> tuple[ir.Tool, Mapping[str, ir.Json]]:
    """Lower a tool. Also return the `stubwright` extension for the tool's entry in `manifest.json`."""
    wire, extension = declared.wire, dict(declared.extension)
    deprecated = extension.get("deprecated")
    if deprecated and "use" in deprecated:
        deprecated = {**deprecated, "use": resolve_use(deprecated["use"], declared, names)}
        extension["deprecated"] = deprecated
    if old_names := aliases.lower(declared):
        extension["aliases"] = old_names
    schemas = {field: _lower_schema(outline, resolved) for field, outline in resolved.list_schemas(declared)}
    sent = {field: schema.wire for field, schema in schemas.items()}
    marked = {field: schema.handles for field, schema in schemas.items()}
    for field, outline in resolved.list_schemas(declared):
        if resolved.sends_inlined(outline):
            sent[field] = resolved.inline(outline).wire
            if marked[field]:
                sent[field], marked[field] = handles.inline_schema(schemas[field])
    http = _complete_http(extension.get("http") or {}, apis)
    if http:
        extension["http"] = http
    if not shape.SHAPING.isdisjoint(http):
        schemas = _shape(schemas, http, declared)
        sent = {field: shape.shape(field, sent.get(field), http) for field in schemas}
    bound: Mapping[str, ir.Json] = extension.get("bind") or {}
    if bound:
        extension["bind"] = binds.add_schemas(sent["inputSchema"], bound)
        sent["inputSchema"] = binds.hide(sent["inputSchema"], bound)
    paginate: Mapping[str, ir.Json] = extension.get("paginate") or {}
    if paginate:
        sent = {field: shape.paginate(field, schema) for field, schema in sent.items()}
        output = schemas["outputSchema"]
        # `own` would put the output schema into `manifest.json` as written.
        schemas["outputSchema"] = replace(output, wire=shape.paginate("outputSchema", output.wire), own=None)
    if resolved.splits_types:
        sent = {field: _split_types(schema, schemas[field], marked.get(field, ())) for field, schema in sent.items()}
    changed: dict[str, ir.Json] = {"name": declared.name, **sent}
    annotations = wire.get("annotations")
    description = handles.describe_handles(wire.get("description"), handles.find_created(marked), handle_kinds)
    if description != wire.get("description"):
        changed["description"] = description
    # The result's text may contain a created handle's ID if there is no `outputSchema`.
    has_handles = bool(handle_kinds) and (any(marked.values()) or "outputSchema" not in schemas)
    if has_handles:
        extension["handles"] = {
            handles.SIDES[field]: handles.format_places(outline) for field, outline in marked.items() if outline
        }
    policy = {**(resolved.entry.get("policy") or {}), **(extension.get("policy") or {})}
    tool = ir.Tool(
        name=declared.name,
        names=declared.names,
        description=description if isinstance(description, str) else None,
        definition={key: value for key, value in {**wire, **changed}.items() if key not in _EXTENSION},
        input=schemas["inputSchema"],
        output=schemas.get("outputSchema"),
        annotations=annotations if isinstance(annotations, dict) else {},
        examples=_lower_examples(extension.get("examples") or (), declared.place_of("examples")),
        deprecated=deprecated,
        questions=_lower_questions(declared, resolved),
        place=declared.place,
        policy={key: value for key, value in policy.items() if not key.startswith("x-")},
        http=http,
        bound=frozenset(bound),
        unbound=declared.unbound,
        has_handles=has_handles,
        aliases=tuple(old_names),
        paginate=paginate,
        reasons={key: value for key, value in (extension.get("reasons") or {}).items() if not key.startswith("x-")},
    )
    return tool, {key: value for key, value in extension.items() if key not in _NOT_SERVED}


def _shape(
    schemas: Mapping[str, ir.Schema], http: Mapping[str, ir.Json], declared: Declaration
) -> dict[str, ir.Schema]:
    """Return the derived schemas of an HTTP call, which can include an undeclared `outputSchema`."""
    derived: dict[str, ir.Schema] = {}
    for field in vocabulary.SCHEMAS:
        before = schemas.get(field)
        wire = shape.shape(field, None if before is None else before.wire, http)
        if before is not None and isinstance(wire, dict):
            derived[field] = replace(
                before, wire=wire, shared=_select_shared(before.shared, wire), own=None, handles={}
            )
        elif isinstance(wire, dict):
            like = schemas["inputSchema"]
            derived[field] = ir.Schema(
                wire, dialects.DRAFT_2020_12.uri, declared.place / field, rich=like.rich, exact=like.exact
            )
    return derived


def _split_types(wire: ir.Json, schema: ir.Schema, marked: Iterable[Pointer]) -> ir.Json:
    """Return a wire schema without type lists. The pointers in `marked` stay valid."""
    return split_types(wire, dialects.find_dialect(wire) or dialects.DRAFT_2020_12, schema.place, marked)


def _select_shared(shared: Mapping[str, str], wire: ir.Json) -> Mapping[str, str]:
    return {
        format_pointer((keyword, name)): shared[format_pointer((keyword, name))]
        for keyword in ("$defs", "definitions")
        for name in wire.get(keyword) or ()
        if format_pointer((keyword, name)) in shared
    }


def _complete_http(http: Mapping[str, ir.Json], apis: Mapping[str, ir.Json]) -> Mapping[str, ir.Json]:
    api: Mapping[str, ir.Json] = apis.get(http.get("api", ""), {})
    return {**http, **{key: api[key] for key in ("input", "output") if key in api and key not in http}}


def _lower_primitive(declared: Declaration, resolved: ResolvedBundle) -> tuple[ir.Primitive, Mapping[str, ir.Json]]:
    """Lower a primitive. Also return the `stubwright` extension for the primitive's entry in `manifest.json`."""
    wire, extension = declared.wire, declared.extension
    completed: Mapping[str, ir.Json] = extension.get("complete") or {}
    primitive = ir.Primitive(
        section=declared.section,
        key=declared.key,
        names=declared.names,
        definition={
            key: declared.name if key == "name" else value for key, value in wire.items() if key not in _EXTENSION
        },
        handled=ir.is_handled(extension),
        arguments=_list_arguments(declared),
        completed=tuple(completed),
        completes=ir.is_completed_by_handlers(extension),
        questions=_lower_questions(declared, resolved),
        deprecated=extension.get("deprecated"),
        place=declared.place,
        scopes=tuple((extension.get("policy") or {}).get("scopes") or ()),
    )
    served = {key: value for key, value in extension.items() if key not in _NOT_SERVED}
    at = declared.place / "stubwright"
    if "complete" in served:
        offered = {
            name: completions.find_values(resolved, place) for name, place, _ in completions.find_references(declared)
        }
        served["complete"] = {**served["complete"], **offered}
    if "file" in served:
        served |= _make_content(at, wire.get("mimeType"), resolved)
    if "messages" in served:
        served["messages"] = [
            {
                key: (
                    {**part, **_make_content(at / "messages" / index / key, part.get("mimeType"), resolved)}
                    if isinstance(part, dict) and "file" in part
                    else part
                )
                for key, part in message.items()
            }
            for index, message in enumerate(served["messages"])
        ]
    return primitive, served


def _list_arguments(declared: Declaration) -> tuple[ir.Argument, ...] | None:
    if declared.section is vocabulary.PROMPTS:
        return tuple(
            ir.Argument(argument["name"], argument.get("description"), argument.get("required") is True)
            for argument in declared.wire.get("arguments") or ()
        )
    if declared.section is vocabulary.TEMPLATES:
        template = UriTemplate.parse(declared.key)
        return tuple(
            ir.Argument(variable.name, None, variable.name not in template.optional, variable.many)
            for variable in template.variables
        )
    return None


def _make_content(at: Place, mime_type: str | None, resolved: ResolvedBundle) -> dict[str, ir.Json]:
    file = resolved.bundle.files[at / "file"]
    return {"file": file.packed, "binary": not file.is_text(mime_type or "")}


def _lower_questions(declared: Declaration, resolved: ResolvedBundle) -> tuple[ir.Question, ...]:
    asks: Mapping[str, ir.Json] = declared.extension.get("ask") or {}
    return tuple(
        ir.Question(
            name=name,
            message=question["message"],
            schema=(
                None
                if question.get("mode") == "url"
                else _lower_schema(resolved.extension_schemas[at / "schema"], resolved)
            ),
            answer=naming.answer(declared.names, name),
            place=at,
        )
        for name, question in asks.items()
        for at in [declared.place_of("ask", name)]
    )


def _lower_schema(outline: Outline, resolved: ResolvedBundle) -> ir.Schema:
    bundled = resolved.bundle_schema(outline)
    dialect, place = outline.dialect.uri, outline.place
    types = (resolved.entry.get("python") or {}).get("formats", "text")
    rich, exact = types != "text", types == "strict"
    return ir.Schema(bundled.wire, dialect, place, bundled.shared, bundled.own, rich, bundled.handles, exact)


def _lower_shared(resolved: ResolvedBundle) -> Iterator[ir.SharedSchema]:
    for key, outline in resolved.shared.items():
        if isinstance(outline.schema, dict):
            schema, circle = _lower_schema(outline, resolved), _find_cycle(key, resolved)
            yield ir.SharedSchema(key.name, naming.name_shared(key.name), schema, circle=circle)


def _lower_states(kinds: Sequence[tuple[ir.Handle, Place]], resolved: ResolvedBundle) -> Iterator[ir.SharedSchema]:
    """Yield the state schemas of handles, except shared schemas. The generated client does not need state schemas."""
    if not resolved.serves:
        return
    for kind, at in kinds:
        outline = resolved.extension_schemas[at]
        if handles.find_shared_whole(outline) is None and isinstance(outline.schema, dict):
            yield ir.SharedSchema(kind.state, naming.name_shared(kind.state), _lower_schema(outline, resolved))


def _complete_handles(
    handle_kinds: Mapping[str, ir.Json], kinds: Sequence[tuple[ir.Handle, Place]], resolved: ResolvedBundle
) -> dict[str, ir.Json]:
    return {
        kind.name: {**handle_kinds[kind.name], "state": resolved.bundle_schema(resolved.extension_schemas[at]).wire}
        for kind, at in kinds
    }


def _find_cycle(key: Key, resolved: ResolvedBundle) -> str | None:
    """Return the name of the reference cycle that contains a shared schema, or None.

    A cycle is named after its first schema in alphabetical order.
    """
    members = resolved.shared_schemas.cycles[key]
    return min(each.name for each in members) if len(members) > 1 else None


def _lower_examples(entries: Sequence[ir.Json], place: Place) -> tuple[ir.Example, ...]:
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
