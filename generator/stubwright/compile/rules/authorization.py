"""Rules about authorization: issuers, scopes, rate limits, and arguments that the server sets."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from stubwright import http
from stubwright.compile import binds
from stubwright.compile.rules.http import find_argument_names
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean, is_slip, quote
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json

_NAMED = 3
"""Messages list at most this many tools."""

_MAX_COMPARED = 300
"""Compare at most this many scopes, since comparing takes quadratic time."""

_SOURCES = ("claim", "value", "env")

_CONSTRAINING = (
    *("allOf", "anyOf", "oneOf", "if", "then", "else", "not"),
    *("dependentRequired", "dependentSchemas", "dependencies"),
)
"""Keywords other than `properties` and `required` that may constrain an argument."""


def check_issuers(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check the URLs of issuers, their keys and this server (RFC 8414, section 2; RFC 9728, section 1.2)."""
    auth = resolved.entry.get("auth") or {}
    at = Place(resolved.bundle.entry, ("auth",))
    for key in ("issuer", "jwksUri"):
        if key in auth and (problem := _find_issuer_problem(auth[key], is_issuer=key == "issuer")):
            fix = "write an `https` URL with only a host and a path; `http` is allowed on this machine"
            yield Diagnostic("SW268", f"`auth.{key}` {problem}", at / key, fix)
    key = "resource" if "resource" in auth else "audience"
    if key in auth and not _is_url(auth[key]):
        fix = "write the URL at which clients reach this server"
        if key == "audience":
            fix += "; if tokens have another audience, write its URL under `auth.resource`"
        yield Diagnostic("SW268", f"`auth.{key}` is not a URL, but clients use it to find the issuer", at / key, fix)
    elif key in auth and (problem := _find_resource_problem(auth[key])):
        yield Diagnostic(
            "SW268", f"`auth.{key}` {problem}", at / key, "write the URL at which clients reach this server"
        )


def check_sources(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `auth` declares an issuer if tools need scopes or claims."""
    entry = resolved.entry
    if entry.get("auth") or not resolved.serves:
        return
    places = [tool.place_of("policy", "scopes") for tool in resolved.tools if _needs_scopes(tool.extension)]
    places += [
        primitive.place_of("policy", "scopes")
        for section in vocabulary.PRIMITIVES
        for primitive in resolved.primitives[section]
        if _needs_scopes(primitive.extension)
    ]
    if _needs_scopes(entry):
        places.insert(0, Place(resolved.bundle.entry, ("policy", "scopes")))
    if places:
        yield Diagnostic(
            "SW336",
            "scopes are required, but no `auth` declares an issuer: over HTTP, no caller has any",
            places[0],
            "declare `auth`, or pass a `token_verifier` to `asgi_app`; on stdio, use `--scope` for the local user",
        )
    for tool in resolved.tools:
        for name, binding in (tool.extension.get("bind") or {}).items():
            if "claim" in binding and "local" not in binding:
                yield Diagnostic(
                    "SW336",
                    f"`{name}` comes from a claim, but no `auth` declares an issuer",
                    tool.place_of("bind", name).point_at_key(),
                    "declare `auth`, or pass a `token_verifier` to `asgi_app`; `local: {env: …}` is for stdio",
                )


def check_spelling(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Warn about scopes that occur once and look like a misspelling of another."""
    granted = list(_list_granted(resolved))
    uses = [*granted, *_list_required(resolved)]
    counts = Counter(scope for scope, _ in uses)
    if len(counts) > _MAX_COMPARED:
        return
    known = {scope for scope, _ in granted}
    order = {scope: index for index, scope in enumerate(counts)}

    def trust(scope: str) -> tuple[bool, bool, int]:
        return counts[scope] > 1, scope in known, -order[scope]

    for scope, place in uses:
        if counts[scope] > 1:
            continue
        others = [other for other in counts if trust(other) > trust(scope) and is_slip(scope, other)]
        if others:
            message = f"the scope `{scope}` appears nowhere else in this manifest"
            yield Diagnostic("SW343", message, place, f"did you mean `{max(others, key=trust)}`?")


def _list_granted(resolved: ResolvedBundle) -> Iterator[tuple[str, Place]]:
    auth = resolved.entry.get("auth") or {}
    at = Place(resolved.bundle.entry, ("auth",))
    yield from _list_places(auth.get("requiredScopes"), at / "requiredScopes")
    for scope, included in (auth.get("scopes") or {}).items():
        yield scope, (at / "scopes" / scope).point_at_key()
        yield from _list_places(included, at / "scopes" / scope)


def _list_required(resolved: ResolvedBundle) -> Iterator[tuple[str, Place]]:
    policy = resolved.entry.get("policy") or {}
    yield from _list_places(policy.get("scopes"), Place(resolved.bundle.entry, ("policy", "scopes")))
    for declared in resolved.declared:
        scopes = (declared.extension.get("policy") or {}).get("scopes")
        yield from _list_places(scopes, declared.place_of("policy", "scopes"))


def _list_places(scopes: list[str] | None, at: Place) -> Iterator[tuple[str, Place]]:
    return ((scope, at / index) for index, scope in enumerate(scopes or ()))


def check_limits(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tools over HTTP have rate limits (MCP 2025-11-25, server/tools, "Security Considerations")."""
    entry = resolved.entry
    of_all = (entry.get("policy") or {}).get("rateLimit")
    if not entry.get("auth") or of_all or not resolved.serves:
        return
    free = [tool.name for tool in resolved.tools if not (tool.extension.get("policy") or {}).get("rateLimit")]
    if free:
        names = ", ".join(f"`{name}`" for name in free[:_NAMED])
        more = f" and {len(free) - _NAMED:,} more" if len(free) > _NAMED else ""
        yield Diagnostic(
            "SW339",
            f"no rate limit applies to {names}{more}",
            Place(resolved.bundle.entry, ("auth",)).point_at_key(),
            "write `policy: {rateLimit: 60/minute}` for all tools or for each one, or `lint: {ignore: [SW339]}` if a "
            "gateway in front of the server limits calls",
        )


def check_one_source(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each bound argument has exactly one source."""
    at = _locate_bindings(resolved)
    for name, binding in _get_bindings(resolved).items():
        yield from _check_source(name, f"`{name}`", binding, at / name)
    for tool in resolved.tools:
        for name, binding in (tool.extension.get("bind") or {}).items():
            place = tool.place_of("bind", name)
            if place != at / name:
                yield from _check_source(name, f"`{name}` of `{tool.name}`", binding, place)


def _check_source(name: str, subject: str, binding: Mapping[str, Json], place: Place) -> Iterator[Diagnostic]:
    sources = [key for key in _SOURCES if key in binding]
    if len(sources) != 1:
        problem = f"comes from {' and '.join(map(quote, zip(sources)))}" if sources else "has no source"
        yield Diagnostic(
            "SW269", f"{subject} {problem}", place.point_at_key(), "write one of `claim`, `value` and `env`"
        )
    for key, source in (("local", "claim"), ("default", "env")):
        if key in binding and sources and source not in sources:
            message = f"`{key}` only applies to `{source}`, which `{name}` does not have"
            yield Diagnostic("SW269", message, (place / key).point_at_key(), f"remove `{key}`")


def check_bound(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that bound arguments exist, and that no other keyword uses them."""
    of_all = _locate_bindings(resolved)
    for tool in resolved.tools:
        schema = resolved.outlines[tool.place / "inputSchema"].schema
        known = binds.get_properties(schema)
        paging: Mapping[str, Json] = (tool.extension.get("http") or {}).get("page") or {}
        for name in tool.extension.get("bind") or ():
            at = tool.place_of("bind", name)
            if name not in known:
                message = f"`{tool.name}` has no argument `{name}` in its own `properties`"
                yield Diagnostic("SW258", message, at.point_at_key(), did_you_mean(name, known, "arguments"))
            elif name == paging.get("argument"):
                message = f"`{name}` of `{tool.name}` cannot be bound: `page` sets it for each page"
                setters = "from `bind` and the API's `bind`, `query` and `headers`"
                otherwise = _advise_unbinding(name) if at == of_all / name else setters
                yield Diagnostic("SW269", message, at.point_at_key(), f"remove it from `page`, or {otherwise}")
            elif keyword := next(
                (key for key in _CONSTRAINING if key in schema and _contains_name(schema[key], name)), None
            ):
                message = f"`{name}` of `{tool.name}` cannot be bound: `{keyword}` also uses it"
                otherwise = _advise_unbinding(name) if at == of_all / name else f"remove `{name}` from `bind`"
                yield Diagnostic(
                    "SW269", message, at.point_at_key(), f"rewrite the schema without `{keyword}`, or {otherwise}"
                )


def check_bound_in_all(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that each argument bound in `auth` exists in some tool."""
    bindings = _get_bindings(resolved)
    if not bindings:
        return
    known = {name: None for tool in resolved.tools for name in binds.get_properties(tool.wire.get("inputSchema"))}
    for name in bindings:
        if name not in known and not any(name in find_argument_names(resolved, tool) for tool in resolved.tools):
            message = f"no tool has an argument `{name}` in its own `properties`"
            at = (_locate_bindings(resolved) / name).point_at_key()
            yield Diagnostic("SW258", message, at, did_you_mean(name, known, "arguments"))


def check_reach(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tools declare bound arguments only in their own `properties`. Elsewhere, callers could set them."""
    bindings = _get_bindings(resolved)
    if not bindings:
        return
    for tool in resolved.tools:
        own = {*tool.unbound, *(tool.extension.get("bind") or ())}
        arguments = find_argument_names(resolved, tool)
        for name in [name for name in bindings if name in arguments and name not in own]:
            yield Diagnostic(
                "SW269",
                f"`{name}` of `{tool.name}` cannot be bound: it is not in the tool's own `properties`",
                tool.place / "inputSchema",
                f"move it there from the referenced or combined schema, or {_advise_unbinding(name)}",
            )


def check_unbound(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that arguments a tool excludes from binding exist, and would otherwise be bound."""
    bindings = _get_bindings(resolved)
    for tool in resolved.tools:
        for name in tool.unbound:
            at = tool.place_of("bind", name).point_at_key()
            if name not in (known := sorted(find_argument_names(resolved, tool))):
                message = f"`{tool.name}` has no argument `{name}`"
                yield Diagnostic("SW258", message, at, did_you_mean(name, known, "arguments"))
            elif name not in bindings and not any((layer.get("bind") or {}).get(name) for _, layer in tool.layers):
                message = f"`{name}` of `{tool.name}` is not bound, so callers can already set it"
                yield Diagnostic("SW269", message, at, f"remove `{name}`, or bind it")


def _get_bindings(resolved: ResolvedBundle) -> Mapping[str, Json]:
    bindings: Mapping[str, Json] = (resolved.entry.get("auth") or {}).get("bind") or {}
    return bindings


def _locate_bindings(resolved: ResolvedBundle) -> Place:
    return Place(resolved.bundle.entry, ("auth", "bind"))


def _advise_unbinding(name: str) -> str:
    return f"let callers of this tool set it: `bind: {{{name}: null}}`"


def _contains_name(part: Json, name: str) -> bool:
    if isinstance(part, dict):
        return any(key == name or _contains_name(value, name) for key, value in part.items())
    return any(_contains_name(each, name) for each in part) if isinstance(part, list) else part == name


def _needs_scopes(extension: Json) -> bool:
    return bool((extension.get("policy") or {}).get("scopes"))


def _find_resource_problem(resource: str) -> str | None:
    """Return the problem with this server's URL as a clause (RFC 9728, section 1.2), or None."""
    fragment = "has a fragment, which resource identifiers do not allow" if "#" in resource else None
    return _find_userinfo(urlsplit(resource)) or fragment


def _find_issuer_problem(text: str, *, is_issuer: bool) -> str | None:
    """Return the problem with the URL of an issuer or of the issuer's keys as a clause, or None."""
    if not _is_url(text):
        return "is not a URL"
    parts = urlsplit(text)
    if userinfo := _find_userinfo(parts):
        return userinfo
    if is_issuer and (parts.query or parts.fragment):
        return "has a query or a fragment, which issuer identifiers do not allow"
    if not http.is_unseen(parts):
        return "is not `https`, so anyone on the network could replace the keys"
    return None


def _find_userinfo(parts: SplitResult) -> str | None:
    has_userinfo = parts.username is not None or parts.password is not None
    return "contains a username or a password, which anyone could read" if has_userinfo else None


def _is_url(text: str) -> bool:
    parts = http.split(text)
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
