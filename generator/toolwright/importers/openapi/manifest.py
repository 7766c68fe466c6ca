"""An OpenAPI document as a manifest: each operation a tool, each tool an HTTP call.

Takes a document and what is wanted of it; gives a manifest that `check` accepts, and notes: what was left out, and why,
and which variables of the environment the server will read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolwright import naming as python_names
from toolwright.importers import acceptance, collisions, cost
from toolwright.importers.acceptance import Made
from toolwright.importers.openapi import apis, arguments, descriptions, naming, operations, pages, results
from toolwright.importers.openapi.documents import UnsupportedError, told
from toolwright.importers.openapi.options import Options
from toolwright.importers.openapi.schemas import Schemas
from toolwright.importers.reading import DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolwright.importers.openapi.apis import Apis, Credential
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
    withheld: Sequence[Credential]
    untold: str | None
    is_linked: bool


def manifest(
    documents: Documents, selection: Selection, name: str | None = None, options: Options | None = None
) -> Made:
    """The manifest of a server that calls the API that `documents` describe.

    Args:
        documents: The document.
        selection: Which operations are wanted, and what they are called.
        name: The server's name; by default the document's title.
        options: What the user prefers where the document leaves a choice.

    Raises:
        DocumentError: The document's own parts are not what they must be.
        SelectionError: The selection does not fit the document.
        UnsettledError: Nothing that can be left out would make it a manifest.
    """
    options = options or Options()
    notes: list[str] = []
    server = _server(documents, name)
    wanted = naming.select(operations.every(documents, notes), selection, _tags(documents))
    called = apis.Apis(documents, server["name"], options.server)
    notes += called.checked()
    schemas = Schemas(documents, _taken(server["name"], [wire for wire, *_ in wanted]))
    made: list[_Made] = []
    for wire, operation, meets in wanted:
        try:
            made.append(_tool(wire, operation, schemas, called, options))
        except (UnsupportedError, RecursionError) as error:
            notes.append(f"{operation.shown} was left out: {told(error)}")
        else:
            if meets:
                notes.append(f"{operation.shown} meets another operation; its tool is called `{wire}`")
            if operation.at.field("callbacks"):
                notes.append(f"{operation.shown}: its callbacks were left out, since the API is what calls them")
    value: dict[str, Any] = {"toolwright": 1, "server": server}
    value["apis"] = called.made
    value["schemas"] = schemas.shared({use for one in made for use in one.uses})
    value["tools"] = [one.tool for one in made]
    if options.longest is not None:
        _trim(value, options.longest)
    if options.pages:
        notes += _paged(made, value["schemas"])
    notes += _withheld(made)
    notes += _untold(made)
    notes += [*dict.fromkeys(schemas.notes), *documents.told()]
    notes += collisions.tell_apart(value)
    settled = acceptance.settle(value)
    value = {**settled.manifest}
    _prune(value)
    count = len(value["tools"])
    summary = f"{server['name']} {server['version']}: {count} tool{'' if count == 1 else 's'}"
    notes += [*settled.notes, *_needs(value.get("apis") or {}, called.bases)]
    promised = cost.Lists(settled.listed).outputs()  # no tool of an imported API lists it
    lists = cost.Lists([{key: one[key] for key in one if key != "outputSchema"} for one in settled.listed])
    told_cost = cost.notes(lists, _saving(lists, options), _groups(wanted), promised)
    return Made(value, summary, tuple(notes), settled.warnings, tuple(told_cost))


def _trim(value: dict[str, Any], most: int) -> None:
    """Cut the descriptions of tools and schemas."""
    value["schemas"] = {name: descriptions.of_schema(schema, most) for name, schema in value["schemas"].items()}
    for tool in value["tools"]:
        if "description" in tool:
            tool["description"] = descriptions.cut(tool["description"], most)
        for key in ("inputSchema", "outputSchema"):
            if key in tool:
                tool[key] = descriptions.of_schema(tool[key], most)


_SHORT: Final = 200
"""Characters of a description; what that would save is told."""


def _saving(lists: cost.Lists, options: Options) -> dict[str, int]:
    """The bytes that options would save which were not given."""
    found = {}
    if options.longest is None:
        found[f"--trim-descriptions {_SHORT}"] = lists.measured(
            lambda schema: descriptions.saved(schema, _SHORT), "saved"
        )
    return found


def _tags(documents: Documents) -> list[str]:
    """The tags that the document lists."""
    listed = (tag.field("name") for tag in documents.root.items("tags"))
    return [name for name in listed if isinstance(name, str)]


def _groups(wanted: Sequence[tuple[str, Operation, bool]]) -> dict[str, list[str]]:
    """The tools of each tag."""
    found: dict[str, list[str]] = {}
    for wire, operation, _ in wanted:
        for tag in operation.tags:
            found.setdefault(tag, []).append(wire)
    return found


def _server(documents: Documents, name: str | None) -> dict[str, Json]:
    at = documents.root.get("info")
    try:
        info = None if at is None else documents.instead(at, "`info`").value
    except UnsupportedError as error:
        raise DocumentError(f"its `info` cannot be read: {error}") from error
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
    from toolwright.codegen.pages.exports import ALWAYS

    stem = python_names.server_stem(server)
    taken = {*ALWAYS, *python_names.MODEL_NAMES, python_names.handlers_class(stem), python_names.client_class(stem)}
    for name in tools:
        names = python_names.tool(name)
        taken |= {python_names.input_class(names), python_names.output_class(names)}
    return taken


def _tool(wire: str, operation: Operation, schemas: Schemas, called: Apis, options: Options) -> _Made:
    keys = called.credentials(operation)
    given = arguments.of(operation, schemas, options, keys)
    result = results.of(operation, schemas, options)
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
    is_linked = pages.is_linked(schemas.documents, operation)
    return _Made(tool, given.uses | result.uses, given.withheld, result.untold, is_linked)


def _paged(made: Sequence[_Made], shared: Mapping[str, Any]) -> list[str]:
    """Let tools take and give pages, where that is plain, and tell which do."""
    found: list[str] = []
    for one in made:
        page = pages.recognized(one.tool, shared, linked=one.is_linked)
        if page is not None:
            one.tool["toolwright"]["http"]["page"] = page
            found.append(f"`{one.tool['name']}` (by {page['by']})")
    return [f"pages: {', '.join(found)}"] if found else ["no operation has pages that are plain from the document"]


def _withheld(made: Iterable[_Made]) -> list[str]:
    """A note for each credential that is a parameter, too."""
    keys = dict.fromkeys(key for one in made for key in one.withheld)
    return [
        f"the parameter `{key.name}` ({key.where}) is what `{key.scheme}` sends, so that no tool asks for it"
        for key in keys
    ]


def _untold(made: Iterable[_Made]) -> list[str]:
    """A note for each reason for which tools have no `outputSchema`."""
    reasons: dict[str, list[str]] = {}
    for one in made:
        if one.untold is not None:
            reasons.setdefault(one.untold, []).append(f"`{one.tool['name']}`")
    return [f"{_listed(names)}: the `outputSchema` was left out: {why}" for why, names in reasons.items()]


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


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


_VALUES: Final = 8
"""How many values of a variable a note lists."""


def _needs(made: Mapping[str, Any], bases: Mapping[str, str]) -> list[str]:
    """The variables of the environment that the server reads."""
    notes = []
    for name, api in made.items():
        for one, said in (api.get("variables") or {}).items():
            listed = f", one of {', '.join(said['enum'][:_VALUES])}" if "enum" in said else ""
            more = ", …" if len(said.get("enum", ())) > _VALUES else ""
            notes.append(
                f"`{one}` of the base URL is `{said['default']}`, unless `{said['env']}` says it{listed}{more}"
            )
        if "baseUrl" not in api:
            like = f", such as https://HOST{bases[name]}" if bases[name] else ""
            notes.append(f"the document names no host; the server calls the URL in `{api['baseUrlEnv']}`{like}")
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
