"""Rules about tools that are HTTP calls: their APIs, URLs, arguments, headers and credentials."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import find_nearest, quote, suggest
from stubwright.http import CONTROL, TOKEN, is_reserved, is_token_url, split, steers
from stubwright.jsonschema.references import LocalTarget, SharedSchema
from stubwright_runtime.http.servers import is_part
from stubwright_runtime.http.templates import BODIED, HOLE, find_holes, list_texts, list_used

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.references import Outline

_BODILESS = frozenset({"GET", "HEAD", "OPTIONS"})
_SECTIONS = ("query", "headers", "cookies")
_DELIMITED: Final = ("spaceDelimited", "pipeDelimited", "tabDelimited")
_STYLES: Final = {
    "query": ("form", *_DELIMITED, "deepObject"),
    "headers": ("simple", *_DELIMITED),
    "cookies": ("form", "cookie"),
}
_REQUIRED_KEYS: Final = {
    "bearer": ("env",),
    "basic": ("usernameEnv", "passwordEnv"),
    "apiKey": ("env", "name"),
    "oauth2": ("flow", "tokenUrl", "clientIdEnv", "env"),
}
_FLOW_KEYS: Final = {"clientCredentials": ("clientSecretEnv",), "authorizationCode": ("refreshTokenEnv",)}
_EXCHANGE_KEYS = ("audience", "resource")
_RESERVED_HEADERS: Final = {
    "authorization": "declare credentials under `auth`, which hides them in logs and responses",
    "cookie": "declare credentials under `auth`, and other cookies in a tool's `http.cookies`",
    "content-type": "write `contentType` in the tools' `http`",
}
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"})
_WHITESPACE = re.compile(r"[\s\x00-\x20\x7f]")
_HOST = re.compile(r"https?://[^/?#{}@\s]+")


def check_apis(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each API is declared once, with a base URL and complete credentials."""
    first: dict[str, Place] = {}
    for place, name, api in _list_apis(resolved):
        if name in first:
            other = resolved.bundle.documents[first[name].file].find_span(first[name].point_at_key())
            yield Diagnostic(
                "SW261",
                f"the API `{name}` is already declared at {other.file}:{other.line}:{other.column}",
                place.point_at_key(),
                "rename one: names under `apis` are shared by all files of the manifest",
            )
        first.setdefault(name, place)
        yield from _check_base_url(place, name, api)
        yield from _check_certificate(place, name, api)
        for scheme, settings in (api.get("auth") or {}).items():
            needed = (*_REQUIRED_KEYS[settings["type"]], *_FLOW_KEYS.get(settings.get("flow", ""), ()))
            lacking = [key for key in needed if key not in settings]
            if lacking:
                yield Diagnostic(
                    "SW263",
                    f"`{scheme}` has the type `{settings['type']}`, which requires "
                    f"{quote(lacking).replace(' or ', ' and ')}",
                    (place / "auth" / scheme).point_at_key(),
                    "specify an environment variable that contains it: secrets do not belong in a manifest",
                )
            flow = settings.get("flow")
            for key in _EXCHANGE_KEYS if flow != "tokenExchange" else ():
                if key in settings:
                    message = f"`{key}` requires the flow `tokenExchange`, which `{scheme}` does not have"
                    yield Diagnostic(
                        "SW263", message, (place / "auth" / scheme / key).point_at_key(), f"remove `{key}`"
                    )
            if flow == "tokenExchange" and not resolved.entry.get("auth"):
                yield Diagnostic(
                    "SW336",
                    f"`{scheme}` exchanges callers' tokens, but no `auth` declares their issuer",
                    (place / "auth" / scheme).point_at_key(),
                    "declare `auth`, or pass a `token_verifier` to `asgi_app`",
                )
            yield from _check_token_url(settings.get("tokenUrl"), place / "auth" / scheme / "tokenUrl")
        yield from _check_security(api.get("security"), place / "security", api, name)


def _check_token_url(url: str | None, place: Place) -> Iterator[Diagnostic]:
    """Check that a token endpoint uses `https` or is local (RFC 6749, section 3.2)."""
    if url is not None and not is_token_url(url):
        fix = "write a complete `https` URL; `http` is only allowed on this machine"
        yield Diagnostic("SW263", f"secrets cannot be sent to `{url}`", place, fix)


def check_complete(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each call has a URL. Overlays cannot turn a tool into a call."""
    for tool in resolved.tools:
        if tool.extension.get("http") and "url" not in tool.extension["http"]:
            yield Diagnostic(
                "SW262",
                f"`{tool.name}` has no URL to call",
                tool.place_of("http").point_at_key(),
                "the tool itself is not an HTTP call: add `url`, or remove `http`",
            )


def check_declared(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that calls refer to existing APIs."""
    known = [name for _, name, _ in _list_apis(resolved)]
    for tool, http in list_calls(resolved):
        if "api" in http and http["api"] not in known:
            near = find_nearest(http["api"], known)
            yield Diagnostic(
                "SW261",
                f"the API `{http['api']}` is not declared",
                tool.place_of("http", "api"),
                suggest(http["api"], near) if near else "declare it under `apis`",
            )


def check_urls(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that call URLs are valid and have a fixed host."""
    for tool, http in list_calls(resolved):
        url: str = http["url"]
        if re.search(r"[{}]", HOLE.sub("", url)):
            problem, fix = (
                "has an unmatched brace",
                "write arguments as `{name}`, and double a literal brace",
            )
        elif "#" in url or _WHITESPACE.search(url):
            problem, fix = "has a fragment or whitespace, which a request cannot contain", "remove it"
        elif "api" in http and not url.startswith("/"):
            problem, fix = (
                "is relative to a base URL, but does not start with `/`",
                "write the path, such as `/v1/{location}`",
            )
        elif "api" not in http and not (_HOST.match(url) and split(HOLE.sub("a", url))):
            problem = "is not an `http` or `https` URL with a fixed host"
            fix = "write the complete URL, such as `https://api.example.com/v1/{location}`, or specify an `api`"
        else:
            continue
        yield Diagnostic("SW262", f"the URL `{url}` {problem}", tool.place_of("http", "url"), fix)


def check_arguments(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that names in braces and under `path` are arguments of the tool."""
    for tool, http in list_calls(resolved):
        known = find_argument_names(resolved, tool)
        for place, text in _list_texts(tool, http):
            for name in dict.fromkeys(find_holes(text)):
                if name not in known:
                    yield Diagnostic(
                        "SW260",
                        f"`{tool.name}` has no argument `{name}`",
                        place,
                        _suggest_nearest(name, known) or "add it to the `properties` of its `inputSchema`",
                    )
        inside = find_holes(http["url"])
        for name in http.get("path") or ():
            if name not in inside:
                yield Diagnostic(
                    "SW260",
                    f"`{{{name}}}` is not in the URL",
                    tool.place_of("http", "path", name).point_at_key(),
                    _suggest_nearest(name, inside) or "remove it: `path` is only for arguments in the URL",
                )


def check_securities(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each call's API declares the call's credentials."""
    known = {name: api for _, name, api in _list_apis(resolved)}
    for tool, http in list_calls(resolved):
        if "api" not in http or http["api"] in known:
            api = known.get(http.get("api", ""), {})
            yield from _check_security(http.get("security"), tool.place_of("http", "security"), api, http.get("api"))


def check_parts(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the method allows a body, and that each argument style is allowed in its section."""
    for tool, http in list_calls(resolved):
        method = http.get("method", "GET")
        for key in ("body", "contentType"):
            if key in http and method in _BODILESS:
                yield Diagnostic(
                    "SW264",
                    f"a {method} request cannot have a body",
                    tool.place_of("http", key).point_at_key(),
                    "use another `method`, or move the arguments to `query`",
                )
        for section in _SECTIONS:
            for name, value in (http.get(section) or {}).items():
                style = value.get("style") if isinstance(value, dict) else None
                if style is not None and style not in _STYLES[section]:
                    yield Diagnostic(
                        "SW264",
                        f"`{section}` cannot have the style `{style}`",
                        tool.place_of("http", section, name, "style"),
                        f"write {quote(_STYLES[section])}",
                    )


def check_headers(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that headers are valid, and that no argument controls a request's host or framing."""
    for place, _, api in _list_apis(resolved):
        for scheme, settings in (api.get("auth") or {}).items():
            if settings["type"] == "apiKey" and settings.get("in", "header") == "header" and "name" in settings:
                yield from _check_header_name(settings["name"], place / "auth" / scheme / "name", filled=True)
        for name, value in (api.get("headers") or {}).items():
            if name.lower() in _RESERVED_HEADERS:
                message = f"an API cannot set the header `{name}`"
                yield Diagnostic(
                    "SW265", message, (place / "headers" / name).point_at_key(), _RESERVED_HEADERS[name.lower()]
                )
            yield from _check_header_name(
                name, (place / "headers" / name).point_at_key(), filled=not isinstance(value, str)
            )
            yield from _check_header_value(
                value if isinstance(value, str) else value.get("default", ""), place / "headers" / name
            )
    for tool, http in list_calls(resolved):
        for key in ("accept", "contentType"):
            yield from _check_header_value(http.get(key, ""), tool.place_of("http", key))
        for name, header in (http.get("headers") or {}).items():
            place = tool.place_of("http", "headers", name)
            text = header["value"] if isinstance(header, dict) else header
            yield from _check_header_name(name, place.point_at_key(), filled=bool(find_holes(text)))
            yield from _check_header_value(text, place / "value" if isinstance(header, dict) else place)
        if "idempotencyHeader" in http:
            yield from _check_idempotency_header(tool, http)


def check_bound_by_apis(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each argument that an API binds exists in some tool of the API."""
    for api in resolved.apis:
        known = {
            name: None
            for tool, http in list_calls(resolved)
            if http.get("api") == api.name
            for name in (tool.wire["inputSchema"].get("properties") or {})
        }
        for name in api.settings.get("bind") or {}:
            if name not in known:
                message = f"no tool of `{api.name}` has an argument `{name}` in its own `properties`"
                yield Diagnostic(
                    "SW258", message, (api.place / "bind" / name).point_at_key(), _suggest_nearest(name, known)
                )


def _check_idempotency_header(tool: Declaration, http: Mapping[str, Json]) -> Iterator[Diagnostic]:
    name, place = http["idempotencyHeader"], tool.place_of("http", "idempotencyHeader")
    yield from _check_header_name(name, place, filled=True)
    if name.lower() in {each.lower() for each in http.get("headers") or ()}:
        yield Diagnostic(
            "SW265", f"`{name}` is also in `headers`", place, "remove it from `headers`: the server sets it"
        )


def _check_header_name(name: str, place: Place, *, filled: bool) -> Iterator[Diagnostic]:
    if not TOKEN.fullmatch(name):
        problem = "is not a valid header name"
        fix = "use letters, digits and `-` (RFC 9110, section 5.6.2)"
    elif is_reserved(name):
        problem = "controls the framing or routing of a request, so a manifest cannot set it"
        fix = "remove it: the server sets it if needed"
    elif filled and steers(name):
        problem = "cannot contain an argument"
        fix = "write the host into the URL" if name.lower() == "host" else "use `cookies`"
    else:
        return
    yield Diagnostic("SW265", f"`{name}` {problem}", place, fix)


def _check_header_value(text: str, place: Place) -> Iterator[Diagnostic]:
    if CONTROL.search(text):
        message = "a header cannot contain line breaks or control characters"
        yield Diagnostic("SW265", message, place, "remove them")


def check_unused_arguments(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a call uses every argument."""
    for tool, http in list_calls(resolved):
        if http.get("method", "GET") in BODIED and "body" not in http:
            continue
        used = set(list_used(http))
        schema = tool.wire.get("inputSchema")
        for name in (schema.get("properties") or {}) if isinstance(schema, dict) else ():
            if name not in used:
                yield Diagnostic(
                    "SW334",
                    f"the call does not use the argument `{name}` of `{tool.name}`",
                    tool.place_of("http").point_at_key(),
                    f"use `{{{name}}}` in the URL, `query`, `headers`, `cookies` or `body`",
                )


def list_calls(resolved: ResolvedBundle) -> Iterator[tuple[Declaration, Mapping[str, Json]]]:
    """Yield the tools that are HTTP calls, with their `http`."""
    for tool in resolved.tools:
        if "url" in (tool.extension.get("http") or {}):
            yield tool, tool.extension["http"]


def _list_apis(resolved: ResolvedBundle) -> Iterator[tuple[Place, str, Mapping[str, Json]]]:
    return ((api.place, api.name, api.settings) for api in resolved.apis)


def _check_base_url(place: Place, name: str, api: Mapping[str, Json]) -> Iterator[Diagnostic]:
    if "baseUrl" not in api:
        if "baseUrlEnv" not in api:
            fix = "add `baseUrl`, or specify an environment variable with `baseUrlEnv`"
            yield Diagnostic("SW262", f"the API `{name}` has no base URL", place.point_at_key(), fix)
        return
    url: str = api["baseUrl"]
    yield from _check_variables(place, url, api.get("variables") or {})
    url = HOLE.sub(lambda match: str((api.get("variables") or {}).get(match[1], {}).get("default", match[0])), url)
    parts = split(url)
    if (
        not _HOST.match(url)
        or parts is None
        or parts.query
        or parts.fragment
        or _WHITESPACE.search(url)
        or re.search(r"[{}]", url)
    ):
        fix = "write a scheme, a host and, if needed, a path, such as `https://api.example.com/v1`"
        if undeclared := find_holes(url):
            fix = f"declare `{undeclared[0]}` under `variables`, with an `env` and a `default`"
        yield Diagnostic("SW262", f"`{url}` is not a base URL", place / "baseUrl", fix)


def _check_certificate(place: Place, name: str, api: Mapping[str, Json]) -> Iterator[Diagnostic]:
    if "clientCertificate" in api and str(api.get("baseUrl", "https:")).partition(":")[0].lower() != "https":
        message = f"`{name}` has a client certificate, which only works over HTTPS"
        yield Diagnostic("SW262", message, place / "baseUrl", "write `https://`, or remove `clientCertificate`")


def _check_variables(place: Place, url: str, variables: Mapping[str, Json]) -> Iterator[Diagnostic]:
    """Check that a base URL contains each declared variable, and that the variables' defaults are valid."""
    inside = find_holes(url)
    for name, variable in variables.items():
        at = place / "variables" / name
        if name not in inside:
            fix = _suggest_nearest(name, inside) or "remove it, or use it in braces in `baseUrl`"
            yield Diagnostic("SW262", f"`{{{name}}}` is not in `baseUrl`", at.point_at_key(), fix)
        listed = variable.get("enum")
        for where, value in [(at / "default", variable["default"])] + [
            (at / "enum" / index, value) for index, value in enumerate(listed or ())
        ]:
            if not is_part(value):
                fix = "use letters, digits, `.`, `_`, `~` and `-`; use `baseUrlEnv` for anything else"
                yield Diagnostic("SW262", f"`{value}` cannot be part of a URL", where, fix)
        if listed is not None and variable["default"] not in listed:
            yield Diagnostic(
                "SW262",
                f"`{variable['default']}` is not one of the values of `{name}`",
                at / "default",
                "add it to `enum`",
            )


def _check_security(
    security: list[list[str]] | None, place: Place, api: Mapping[str, Json], name: str | None
) -> Iterator[Diagnostic]:
    known = list(api.get("auth") or {})
    for index, alternative in enumerate(security or ()):
        for inner, scheme in enumerate(alternative):
            if scheme not in known:
                where = "`auth` of the API" if name is None else f"`auth` of `{name}`"
                yield Diagnostic(
                    "SW263",
                    f"{where} does not declare `{scheme}`",
                    place / index / inner,
                    _suggest_nearest(scheme, known) or "declare the scheme there",
                )


def _list_texts(tool: Declaration, http: Mapping[str, Json]) -> Iterator[tuple[Place, str]]:
    """Yield the strings in a call that can contain argument names, with their locations."""
    yield tool.place_of("http", "url"), http["url"]
    for section in _SECTIONS:
        for name, value in (http.get(section) or {}).items():
            place = tool.place_of("http", section, name)
            yield (place / "value", value["value"]) if isinstance(value, dict) else (place, value)
    for name, part in (http.get("parts") or {}).items():
        for key, text in part.items():
            if isinstance(text, str):
                yield tool.place_of("http", "parts", name, key), text
    for text in list_texts(http.get("body")):
        yield tool.place_of("http", "body"), text


def find_argument_names(resolved: ResolvedBundle, tool: Declaration) -> set[str]:
    """Return a tool's argument names, including names in subschemas that apply to the root."""
    root = dict(resolved.list_schemas(tool)).get("inputSchema")
    names: set[str] = set()
    waiting: list[tuple[Outline, Pointer]] = [] if root is None else [(root, ())]
    for outline, start in waiting:  # grows during the loop
        here = [
            pointer
            for pointer in outline.schemas
            if pointer[: len(start)] == start and _is_in_place(pointer[len(start) :])
        ]
        for pointer in here:
            schema = outline.schemas[pointer]
            names |= (schema.get("properties") or {}).keys() if isinstance(schema, dict) else set()
        for reference in outline.references:
            if reference.pointer in here:
                match reference.target:
                    case LocalTarget(pointer):
                        step = (outline, pointer)
                    case SharedSchema(key):
                        step = (resolved.shared[key], ())
                    case _:
                        continue
                if not any(other is step[0] and at == step[1] for other, at in waiting):
                    waiting.append(step)
    return names


def _is_in_place(pointer: Pointer) -> bool:
    """Return whether a nested schema applies to the root's instance."""
    steps = list(pointer)
    while steps:
        keyword = steps.pop(0)
        if keyword not in _IN_PLACE:
            return False
        if keyword not in ("if", "then", "else") and steps:
            steps.pop(0)
    return True


def _suggest_nearest(name: str, known: Iterable[str]) -> str | None:
    near = find_nearest(name, known)
    return suggest(name, near) if near else None
