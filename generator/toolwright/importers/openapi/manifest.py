"""An OpenAPI document as a manifest: each operation a tool, each tool an HTTP call.

Takes a document and what is wanted of it; gives a manifest that `check` accepts, and notes: what was left out, and why,
and which variables of the environment the server will read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import naming as python_names
from toolwright.importers import acceptance, collisions
from toolwright.importers.acceptance import Made
from toolwright.importers.openapi import apis, arguments, naming, operations, pages, results
from toolwright.importers.openapi.documents import UnsupportedError
from toolwright.importers.openapi.schemas import Schemas
from toolwright.importers.reading import DocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolwright.importers.openapi.apis import Apis
    from toolwright.importers.openapi.documents import Documents
    from toolwright.importers.openapi.naming import Selection
    from toolwright.importers.openapi.operations import Operation
    from toolwright.ir import Json

_READING = frozenset({"get", "head", "options", "query"})
_REPEATABLE = frozenset({"put", "delete"})


@dataclass(frozen=True, slots=True)
class _Made:
    tool: dict[str, Any]
    uses: frozenset[str]
    is_linked: bool


def manifest(documents: Documents, selection: Selection, name: str | None = None, *, paged: bool = False) -> Made:
    """The manifest of a server that calls the API that `documents` describe.

    Args:
        documents: The document.
        selection: Which operations are wanted, and what they are called.
        name: The server's name; by default the document's title.
        paged: Whether pages that the document makes plain become pages of the tools.

    Raises:
        DocumentError: The document's own parts are not what they must be.
        SelectionError: The selection does not fit the document.
        UnsettledError: Nothing that can be left out would make it a manifest.
    """
    notes: list[str] = []
    server = _server(documents, name)
    wanted = naming.select(operations.every(documents, notes), selection)
    called = apis.Apis(documents, server["name"])
    schemas = Schemas(documents, _taken(server["name"], [wire for wire, *_ in wanted]))
    made: list[_Made] = []
    for wire, operation, meets in wanted:
        try:
            made.append(_tool(wire, operation, schemas, called))
        except (UnsupportedError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            notes.append(f"{operation.shown} was left out: {why}")
        else:
            if meets:
                notes.append(f"{operation.shown} meets another operation; its tool is called `{wire}`")
            if operation.at.field("callbacks"):
                notes.append(f"{operation.shown}: its callbacks were left out, since the API is what calls them")
    value: dict[str, Any] = {"toolwright": 1, "server": server}
    value["apis"] = called.made
    value["schemas"] = schemas.shared({use for one in made for use in one.uses})
    value["tools"] = [one.tool for one in made]
    if paged:
        notes += _paged(made, value["schemas"])
    notes += dict.fromkeys(schemas.notes)
    notes += collisions.tell_apart(value)
    settled = acceptance.settle(value)
    value = {**settled.manifest}
    _prune(value)
    count = len(value["tools"])
    summary = f"{server['name']} {server['version']}: {count} tool{'' if count == 1 else 's'}"
    return Made(
        value, summary, (*notes, *settled.notes, *_needs(value.get("apis") or {}, called.bases)), settled.warnings
    )


def _server(documents: Documents, name: str | None) -> dict[str, Json]:
    info = documents.root.field("info")
    if not isinstance(info, dict):
        raise DocumentError("it has no `info`, which says the API's title and version")
    title = info.get("title")
    title = title.strip() if isinstance(title, str) and title.strip() else None
    made = name or title
    if made is None:
        raise DocumentError("its `info` has no title; name the server with --name")
    server: dict[str, Json] = {"name": made, "version": str(info.get("version") or "0.0.0")}
    if title is not None and title != made:
        server["title"] = title
    description = info.get("summary") or info.get("description")
    if isinstance(description, str) and description.strip():
        server["description"] = description.strip()
    return server


def _taken(server: str, tools: Sequence[str]) -> set[str]:
    """The classes that no shared schema may be called like."""
    from toolwright.compile.rules.names import EXPORTS, MODEL_NAMES

    stem = python_names.server_stem(server)
    taken = {*EXPORTS, *MODEL_NAMES, python_names.handlers_class(stem), python_names.client_class(stem)}
    for name in tools:
        names = python_names.tool(name)
        taken |= {python_names.input_class(names), python_names.output_class(names)}
    return taken


def _tool(wire: str, operation: Operation, schemas: Schemas, called: Apis) -> _Made:
    given = arguments.of(operation, schemas)
    result = results.of(operation, schemas)
    target = called.called(operation)
    tool: dict[str, Any] = {"name": wire}
    if operation.description is not None:
        tool["description"] = operation.description
    tool["inputSchema"] = given.schema
    if result.schema is not None:
        tool["outputSchema"] = result.schema
    tool["annotations"] = _annotations(operation.method)
    http: dict[str, Any] = {"api": target.api, "method": operation.method.upper(), **given.http}
    if result.accept is not None:
        http["accept"] = result.accept
    if target.security is not None:
        http["security"] = [list(each) for each in target.security]
    tool["toolwright"] = {"http": http}
    if operation.at.field("deprecated") is True:
        tool["toolwright"]["deprecated"] = {}
    return _Made(tool, given.uses | result.uses, pages.is_linked(schemas.documents, operation))


def _paged(made: Sequence[_Made], shared: Mapping[str, Any]) -> list[str]:
    """Let tools take and give pages, where that is plain, and tell which do."""
    found: list[str] = []
    for one in made:
        page = pages.recognized(one.tool, shared, linked=one.is_linked)
        if page is not None:
            one.tool["toolwright"]["http"]["page"] = page
            found.append(f"`{one.tool['name']}` (by {page['by']})")
    return [f"pages: {', '.join(found)}"] if found else ["no operation has pages that are plain from the document"]


def _annotations(method: str) -> dict[str, bool]:
    """The hints that follow from the method (RFC 9110, sections 9.2.1 and 9.2.2)."""
    hints: dict[str, bool] = {}
    if method in _READING:
        hints["readOnlyHint"] = True
    if method == "delete":
        hints["destructiveHint"] = True
    if method in _REPEATABLE:
        hints["idempotentHint"] = True
    hints["openWorldHint"] = True
    return hints


def _prune(value: dict[str, Any]) -> None:
    """Take away what no tool that is left uses; say security that all tools of an API share only once."""
    value["schemas"] = acceptance.used(value["schemas"], value["tools"])
    bindings = [tool["toolwright"]["http"] for tool in value["tools"]]
    called = {http["api"]: [one for one in bindings if one["api"] == http["api"]] for http in bindings}
    value["apis"] = {name: api for name, api in value["apis"].items() if name in called}
    for name, api in value["apis"].items():
        _share_security(api, called[name])
    for section in ("apis", "schemas"):
        if not value[section]:
            del value[section]


def _share_security(api: dict[str, Any], bindings: Sequence[dict[str, Any]]) -> None:
    used = {scheme for http in bindings for each in http.get("security", ()) for scheme in each}
    auth = {scheme: one for scheme, one in api.pop("auth", {}).items() if scheme in used}
    if not auth:
        for http in bindings:
            http.pop("security", None)
        return
    api["auth"] = auth
    required = [http.get("security") for http in bindings]
    most = max((one for one in required if one), key=required.count)
    api["security"] = most
    for http in bindings:
        if http.get("security") == most:
            del http["security"]
        elif "security" not in http:
            http["security"] = []


def _needs(made: Mapping[str, Any], bases: Mapping[str, str]) -> list[str]:
    """The variables of the environment that the server reads."""
    notes = []
    for name, api in made.items():
        if "baseUrl" not in api:
            like = f", such as https://HOST{bases[name]}" if bases[name] else ""
            notes.append(f"the document names no host; the server calls the URL in `{api['baseUrlEnv']}`{like}")
        for scheme, auth in (api.get("auth") or {}).items():
            variables = [f"`{auth[key]}`" for key in ("env", "usernameEnv", "passwordEnv") if key in auth]
            notes.append(
                f"for `{scheme}`, the server reads its {auth['type']} credentials from {' and '.join(variables)}"
            )
    return list(dict.fromkeys(notes))
