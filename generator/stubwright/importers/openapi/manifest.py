"""Converts an OpenAPI document to a manifest, with a tool for each operation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from stubwright import naming as python_names
from stubwright.importers import acceptance, collisions, cost, large_results
from stubwright.importers.acceptance import CheckedManifest, ImportResult
from stubwright.importers.document_reader import DocumentError
from stubwright.importers.openapi import apis, arguments, descriptions, hints, naming, operations, pages, results
from stubwright.importers.openapi.documents import UnsupportedError, explain
from stubwright.importers.openapi.media import EVENT_STREAM, strip_parameters
from stubwright.importers.openapi.options import Options
from stubwright.importers.openapi.schemas.conversion import Schemas
from stubwright_runtime.http.templates import list_used

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stubwright.importers.openapi.apis import Apis, Credential
    from stubwright.importers.openapi.documents import Documents
    from stubwright.importers.openapi.naming import Selection
    from stubwright.importers.openapi.operations import Operation
    from stubwright.ir import Json


@dataclass(frozen=True, slots=True)
class _ConvertedTool:
    tool: dict[str, Any]
    uses: frozenset[str]
    withheld: Sequence[Credential]
    no_schema_reason: str | None
    is_linked: bool
    examples: Sequence[Mapping[str, Json]]
    notes: Sequence[str]


def make_manifest(
    documents: Documents, selection: Selection, name: str | None = None, options: Options | None = None
) -> ImportResult:
    """Return a manifest for a server that calls the API described in `documents`.

    Args:
        documents: The OpenAPI document and the files that it refers to.
        selection: The selected operations and their tool names.
        name: The server's name; by default the document's title.
        options: The user's preferences where the document allows a choice.

    Raises:
        DocumentError: A required part of the document is invalid.
        SelectionError: The selection does not match the document.
        UnfixableError: The manifest is invalid even after removing parts.
    """
    options = options or Options()
    notes: list[str] = []
    server = _make_server(documents, name)
    listed = operations.list_operations(documents, notes)
    wanted = naming.select(listed, selection, server["name"], _list_tags(documents))
    api_list = apis.Apis(documents, server["name"], options.server, options.auth)
    notes += api_list.report_other_servers()
    schemas = Schemas(documents, _find_taken_stems(server["name"], [wire for wire, *_ in wanted]))
    converted_tools: list[_ConvertedTool] = []
    for wire, operation, is_renamed in wanted:
        try:
            converted_tools.append(_convert_tool(wire, operation, schemas, api_list, options))
        except (UnsupportedError, RecursionError) as error:
            notes.append(f"{operation.label} was omitted: {explain(error)}")
        else:
            if is_renamed:
                notes.append(f"{operation.label} has the same name as another operation; its tool is named `{wire}`")
            notes += [f"{operation.label}: {note}" for note in converted_tools[-1].notes]
            if operation.at.get_field("callbacks"):
                notes.append(f"{operation.label}: its callbacks were omitted, because the API sends them")
    draft: dict[str, Any] = {"stubwright": 1, "server": server}
    draft["apis"] = api_list.entries
    draft["schemas"] = schemas.list_shared({use for converted in converted_tools for use in converted.uses})
    draft["tools"] = [converted.tool for converted in converted_tools]
    if options.longest is not None:
        _truncate_descriptions(draft, options.longest)
    if options.pages:
        notes += _add_pages(converted_tools, draft["schemas"])
    notes += _report_withheld(converted_tools)
    notes += _report_idempotency_headers(converted_tools)
    notes += _report_missing_output_schemas(converted_tools)
    notes += _report_streams(converted_tools)
    notes += [*documents.recovered, *dict.fromkeys(schemas.notes), *documents.report_followed()]
    notes += collisions.resolve(draft)
    checked = acceptance.repair(draft)
    if checked.unfillable:
        checked, relaxed_notes = _relax(checked)
        notes += relaxed_notes
    draft = {**checked.manifest}
    notes += _report_invalid_examples(converted_tools, checked.listed)
    guesses = hints.report_guesses([tool["name"] for tool in draft["tools"] if _get_call(tool)["method"] == "POST"])
    unspecified = {http["api"] for http in map(_get_call, draft["tools"]) if "security" not in http}
    _prune(draft)
    count = len(draft["tools"])
    summary = f"{server['name']} {server['version']}: {count} tool{'' if count == 1 else 's'}"
    notes += _report_unsecured(draft.get("apis") or {}, unspecified, api_list)
    notes += [*checked.notes, *_report_variables(draft.get("apis") or {}, api_list.bases)]
    unlisted = cost.ToolSizes(checked.listed).measure_outputs()  # no tool of an imported API lists it
    sizes = cost.ToolSizes([{key: tool[key] for key in tool if key != "outputSchema"} for tool in checked.listed])
    results_listed = {tool["name"]: tool["outputSchema"] for tool in checked.listed if "outputSchema" in tool}
    cost_notes = large_results.report(large_results.estimate_tokens(results_listed))
    cost_notes += cost.report_cost(sizes, _find_savings(sizes, options), _group_by_tag(wanted), unlisted)
    return ImportResult(draft, summary, tuple(notes), checked.warnings, tuple(cost_notes), tuple(guesses))


def _relax(checked: CheckedManifest) -> tuple[CheckedManifest, list[str]]:
    """Replace `oneOf` with `anyOf` in tools without valid arguments, because the alternatives often overlap."""
    manifest = checked.manifest
    wanted = [tool for tool in manifest["tools"] if tool["name"] in checked.unfillable]
    reached = acceptance.select_used(manifest.get("schemas") or {}, [tool["inputSchema"] for tool in wanted])
    relaxed = {
        **manifest,
        "schemas": {
            **(manifest.get("schemas") or {}),
            **{name: _to_any_of(schema) for name, schema in reached.items()},
        },
        "tools": [
            {**tool, "inputSchema": _to_any_of(tool["inputSchema"])} if tool in wanted else tool
            for tool in manifest["tools"]
        ],
    }
    rechecked = acceptance.repair(relaxed)
    helped = [f"`{name}`" for name in checked.unfillable if name not in rechecked.unfillable]
    notes = acceptance.report_unfillable(rechecked.unfillable)
    if not helped:
        return checked, notes
    why = "`oneOf` was replaced with `anyOf`, because every value that matches one alternative also matches another"
    return replace(rechecked, notes=checked.notes), [*notes, f"{_list_names(helped)}: {why}"]


def _to_any_of(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_to_any_of(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_relaxed = isinstance(schema.get("oneOf"), list) and "anyOf" not in schema
    return {"anyOf" if is_relaxed and key == "oneOf" else key: _to_any_of(value) for key, value in schema.items()}


def _get_call(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    call: Mapping[str, Any] = tool["stubwright"]["http"]
    return call


def _report_invalid_examples(
    converted_tools: Sequence[_ConvertedTool], listed: Sequence[Mapping[str, Any]]
) -> list[str]:
    from stubwright_runtime.schema.validation import Validator

    schemas: dict[str, Mapping[str, Any]] = {tool["name"]: tool["inputSchema"] for tool in listed}
    shown = [each for each in converted_tools if each.examples and each.tool["name"] in schemas]
    count, invalid = 0, dict[str, int]()
    for converted in shown:
        name, call = converted.tool["name"], {**_get_call(converted.tool)}
        call.pop("body", None)
        required = [each for each in schemas[name].get("required", ()) if each not in list_used(call)]
        validator = Validator({**schemas[name], "required": required})
        count += len(converted.examples)
        if wrong := sum(bool(validator.find_errors(example)) for example in converted.examples):
            invalid[name] = wrong
    if not invalid:
        return []
    names, total = _list_names([f"`{name}`" for name in invalid]), sum(invalid.values())
    what = f"{total} of the document's {count} request examples do not match its own schemas: {names}"
    return [f"{what}; such calls are rejected, unless `input: lenient` is set for the API or for these tools"]


def _report_unsecured(api_entries: Mapping[str, Any], unspecified: set[str], api_list: Apis) -> list[str]:
    names = [name for name, api in api_entries.items() if name in unspecified and "auth" not in api]
    if not names:
        return []
    described = _list_names([f"`{scheme}`" for scheme in api_list.list_schemes()])
    declared = f"requires none of its security schemes ({described})" if described else "declares no security"
    listed = _list_names([f"`{name}`" for name in names])
    bearer = f"{{token: {{type: bearer, env: {apis.make_variable(api_list.name, 'token')}}}}}"
    overlay = f"overlay: {{apis: {{{names[0]}: {{auth: {bearer}, security: [[token]]}}}}}}"
    what = f"the document {declared}, so calls to {listed} have no credentials; if the API requires them"
    return [f"{what}, import it with `--auth bearer` or another `--auth`, or write `{overlay}`"]


def _truncate_descriptions(value: dict[str, Any], most: int) -> None:
    value["schemas"] = {name: descriptions.truncate_schema(schema, most) for name, schema in value["schemas"].items()}
    for tool in value["tools"]:
        if "description" in tool:
            tool["description"] = descriptions.truncate(tool["description"], most)
        for key in ("inputSchema", "outputSchema"):
            if key in tool:
                tool[key] = descriptions.truncate_schema(tool[key], most)


_SHORT: Final = 200
"""The suggested maximum length of descriptions; notes report the savings."""


def _find_savings(sizes: cost.ToolSizes, options: Options) -> dict[str, int]:
    savings = {}
    if options.longest is None:
        savings[f"--trim-descriptions {_SHORT}"] = sizes.measure_all(
            lambda schema: descriptions.count_saved(schema, _SHORT), "saved"
        )
    return savings


def _list_tags(documents: Documents) -> list[str]:
    listed = (tag.get_field("name") for tag in documents.root.list_items("tags"))
    return [name for name in listed if isinstance(name, str)]


def _group_by_tag(wanted: Sequence[tuple[str, Operation, bool]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for wire, operation, _ in wanted:
        for tag in operation.tags:
            groups.setdefault(tag, []).append(wire)
    return groups


def _make_server(documents: Documents, name: str | None) -> dict[str, Json]:
    at = documents.root.get("info")
    try:
        info = None if at is None else documents.follow(at, "`info`").value
    except UnsupportedError as error:
        raise DocumentError(f"its `info` cannot be read: {error}") from error
    if not isinstance(info, dict):
        raise DocumentError("it has no `info` with the API's title and version")
    title = info.get("title")
    title = title.strip() if isinstance(title, str) and title.strip() else None
    server_name = name or title
    if server_name is None:
        raise DocumentError("its `info` has no title; name the server with --name")
    server: dict[str, Json] = {"name": server_name, "version": str(info.get("version") or "0.0.0")}
    if title is not None and title != server_name:
        server["title"] = title
    description = info.get("summary") or info.get("description")
    if isinstance(description, str) and description.strip():
        server["description"] = description.strip()
    return server


def _find_taken_stems(server: str, tools: Sequence[str]) -> set[str]:
    from stubwright.codegen.pages.exports import ALWAYS

    stem = python_names.name_server_stem(server)
    taken = {
        *ALWAYS,
        *python_names.MODEL_NAMES,
        python_names.name_handlers_class(stem),
        python_names.name_client_class(stem),
    }
    for name in tools:
        names = python_names.name_tool(name)
        taken |= {python_names.name_input_class(names), python_names.name_output_class(names)}
    return taken


def _convert_tool(
    wire: str, operation: Operation, schemas: Schemas, api_list: Apis, options: Options
) -> _ConvertedTool:
    keys = api_list.find_credentials(operation)
    converted = arguments.make_arguments(operation, schemas, options, keys)
    result = results.make_result(operation, schemas, options)
    target = api_list.find_target(operation)
    tool: dict[str, Any] = {"name": wire, "title": operation.title, "description": operation.description}
    tool["inputSchema"] = converted.schema
    if result.schema is not None:
        tool["outputSchema"] = result.schema
    tool["annotations"] = hints.make_annotations(operation.method, operation.title)
    http: dict[str, Any] = {"api": target.api, "method": operation.method.upper(), **converted.http}
    if result.accept is not None:
        http["accept"] = result.accept
    if result.headers:
        http["responseHeaders"] = result.headers
    if target.security is not None:
        http["security"] = [list(alternative) for alternative in target.security]
    tool["stubwright"] = {"http": http}
    if "idempotencyHeader" in http:
        tool["stubwright"]["policy"] = {"once": {"key": "request"}}
    if operation.at.get_field("deprecated") is True:
        tool["stubwright"]["deprecated"] = {}
    is_linked = pages.is_linked(schemas.documents, operation)
    uses = converted.uses | result.uses
    return _ConvertedTool(
        tool, uses, converted.withheld, result.no_schema_reason, is_linked, converted.examples, converted.notes
    )


def _add_pages(tools: Sequence[_ConvertedTool], shared: Mapping[str, Any]) -> list[str]:
    found_pages: list[str] = []
    for converted in tools:
        page = pages.recognize(converted.tool, shared, linked=converted.is_linked)
        if page is not None:
            converted.tool["stubwright"]["http"]["page"] = page
            found_pages.append(f"`{converted.tool['name']}` (by {page['by']})")
    return (
        [f"pages: {', '.join(found_pages)}"] if found_pages else ["no operation in the document describes pagination"]
    )


def _report_withheld(tools: Iterable[_ConvertedTool]) -> list[str]:
    keys = dict.fromkeys(key for converted in tools for key in converted.withheld)
    return [
        f"the parameter `{key.name}` ({key.where}) is the credential for `{key.scheme}`, so it is not an argument"
        for key in keys
    ]


def _report_idempotency_headers(tools: Iterable[_ConvertedTool]) -> list[str]:
    by_header: dict[str, list[str]] = {}
    for converted in tools:
        if (header := _get_call(converted.tool).get("idempotencyHeader")) is not None:
            by_header.setdefault(header, []).append(f"`{converted.tool['name']}`")
    return [
        f"{_list_names(names)}: the server generates the header `{header}`, so it is not an argument; "
        "calls with the same key from the client (`once: {key: request}`) send the same value"
        for header, names in by_header.items()
    ]


def _report_missing_output_schemas(tools: Iterable[_ConvertedTool]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for converted in tools:
        if converted.no_schema_reason is not None:
            reasons.setdefault(converted.no_schema_reason, []).append(f"`{converted.tool['name']}`")
    return [f"{_list_names(names)}: the `outputSchema` was omitted: {why}" for why, names in reasons.items()]


def _report_streams(tools: Iterable[_ConvertedTool]) -> list[str]:
    calls = [(converted.tool["name"], _get_call(converted.tool)) for converted in tools]
    names = [f"`{name}`" for name, call in calls if strip_parameters(call.get("accept", "")) == EVENT_STREAM]
    if not names:
        return []
    what = "the API responds with an event stream, and the result contains the data of all events received"
    return [f"{_list_names(names)}: {what}; an endless stream is cut off shortly before `timeout` (30 s)"]


def _list_names(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def _prune(value: dict[str, Any]) -> None:
    """Remove unused parts, and move the tools' most common security to their API."""
    value["schemas"] = acceptance.select_used(value["schemas"], value["tools"])
    bindings = [tool["stubwright"]["http"] for tool in value["tools"]]
    called = {http["api"]: [binding for binding in bindings if binding["api"] == http["api"]] for http in bindings}
    value["apis"] = {name: api for name, api in value["apis"].items() if name in called}
    for name, api in value["apis"].items():
        _share_security(api, called[name])
    for section in ("apis", "schemas"):
        if not value[section]:
            del value[section]


def _share_security(api: dict[str, Any], bindings: Sequence[dict[str, Any]]) -> None:
    used = {scheme for http in bindings for alternative in http.get("security", ()) for scheme in alternative}
    auth = {scheme: credential for scheme, credential in api.pop("auth", {}).items() if scheme in used}
    if not auth:
        for http in bindings:
            http.pop("security", None)
        return
    api["auth"] = auth
    required = [http.get("security") for http in bindings]
    most_common = max((requirement for requirement in required if requirement), key=required.count)
    api["security"] = most_common
    for http in bindings:
        if http.get("security") == most_common:
            del http["security"]
        elif "security" not in http:
            http["security"] = []


_VALUES: Final = 8
"""The maximum number of a variable's values listed in a note."""


def _report_variables(api_entries: Mapping[str, Any], bases: Mapping[str, str]) -> list[str]:
    notes = []
    for name, api in api_entries.items():
        for variable, entry in (api.get("variables") or {}).items():
            listed = f" to one of {', '.join(entry['enum'][:_VALUES])}" if "enum" in entry else ""
            more = ", …" if len(entry.get("enum", ())) > _VALUES else ""
            notes.append(
                f"`{variable}` of the base URL is `{entry['default']}`, unless `{entry['env']}` is set{listed}{more}"
            )
        if "baseUrl" not in api:
            example = f", such as https://HOST{bases[name]}" if bases[name] else ""
            notes.append(f"the document has no host; the server calls the URL in `{api['baseUrlEnv']}`{example}")
        if (certificate := api.get("clientCertificate")) is not None:
            files = " and ".join(f"`{certificate[key]}`" for key in ("certificateEnv", "keyEnv"))
            notes.append(f"for `{name}`, the server sends the client certificate from the files in {files}")
        for scheme, auth in (api.get("auth") or {}).items():
            if auth["type"] == "oauth2":
                keys = [auth[key] for key in ("clientIdEnv", "clientSecretEnv", "refreshTokenEnv") if key in auth]
                listed = ", ".join(f"`{key}`" for key in keys)
                notes.append(
                    f"for `{scheme}`, the server gets tokens from {auth['tokenUrl']} with {listed}; "
                    f"without these, it sends the bearer token in `{auth['env']}`"
                )
                continue
            variables = [f"`{auth[key]}`" for key in ("env", "usernameEnv", "passwordEnv") if key in auth]
            notes.append(
                f"for `{scheme}`, the server reads its {auth['type']} credentials from {' and '.join(variables)}"
            )
    return list(dict.fromkeys(notes))
