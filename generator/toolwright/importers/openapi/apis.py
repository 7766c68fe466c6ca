"""Whom the tools call: base URLs and credentials, both from the environment.

Takes the servers and security schemes that operations name; gives the entries of `apis` in the manifest. Secrets are
never in a document, so each scheme becomes the name of a variable, made from the server's name and the scheme's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from toolwright import http, naming
from toolwright.diagnostics.suggestions import shorten
from toolwright.importers.openapi import operations
from toolwright.importers.openapi.documents import UnsupportedError, mapping
from toolwright.importers.openapi.naming import SelectionError
from toolwright_runtime.http import servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolwright.importers.openapi.documents import Documents, Located
    from toolwright.importers.openapi.operations import Operation
    from toolwright.ir import Json


_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")
"""A scope (RFC 6749, section 3.3)."""

_LISTED: Final = 5
"""How many servers a note names."""


@dataclass(frozen=True, slots=True)
class Called:
    """Whom an operation calls: the name of an API, and the security that it asks for; None is the API's own."""

    api: str
    security: Sequence[Sequence[str]] | None


@dataclass(frozen=True, slots=True)
class Credential:
    """A key that the server sends: its security scheme, and the place and the name that the key has in a request."""

    scheme: str
    where: str
    name: str

    def is_at(self, where: str, name: str) -> bool:
        """Whether it goes where a parameter does; names of headers have no case (RFC 9110, 5.1)."""
        same = self.name.lower() == name.lower() if where == "header" else self.name == name
        return self.where == where and same


@dataclass(slots=True)
class Apis:
    """The APIs of a document, as they come up.

    Attributes:
        documents: The document.
        name: The name of the server that is made.
        server: Which of the document's servers is called, where it has several; by default the first.
        made: The entries of `apis`.
    """

    documents: Documents
    name: str
    server: str | None = None
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    _by_base: dict[str, str] = field(default_factory=dict)

    def credentials(self, operation: Operation) -> Sequence[Credential]:
        """The keys that calls of an operation send in a place that a parameter could have.

        An operation that says that it needs none has none here: what it takes is its own.

        Raises:
            UnsupportedError: As `called`.
        """
        if self._security(operation.at) == []:
            return []
        return _keys({name: auth for each in self._schemes(operation) or () for name, auth in each.items()})

    def called(self, operation: Operation) -> Called:
        """Whom an operation calls.

        Raises:
            UnsupportedError: It needs a way to say who one is that is not supported.
        """
        schemes = self._schemes(operation)
        server = self._server(operation)
        url = server.url
        if url not in self._by_base:
            name = self._name(url)
            self._by_base[url] = name
            base: dict[str, Any] = {"baseUrl": url} if "://" in url else {}
            own = [] if name == _slug(self.name) else [name]
            base["baseUrlEnv"] = variable(self.name, *own, "base url")
            if server.variables:
                base["variables"] = {
                    one: {"env": variable(self.name, *own, one), **said} for one, said in server.variables.items()
                }
            base["output"] = "lenient"  # documents promise what their APIs do not keep
            self.made[name] = base
        api = self.made[self._by_base[url]]
        used = {scheme: auth for each in schemes or () for scheme, auth in each.items()}
        if used:
            api.setdefault("auth", {}).update(
                {key: auth for key, auth in used.items() if key not in api.get("auth", {})}
            )
        for scheme, scopes in self._scopes(operation):
            if api.get("auth", {}).get(scheme, {}).get("type") == "oauth2" and scheme in used:
                listed = [*api["auth"][scheme].get("scopes", ()), *scopes]
                api["auth"][scheme] |= {"scopes": [*dict.fromkeys(listed)]} if listed else {}
        return Called(self._by_base[url], None if schemes is None else [list(each) for each in schemes])

    @property
    def bases(self) -> dict[str, str]:
        """The base URL of each API, or its path where the document names no host."""
        return {name: url for url, name in self._by_base.items()}

    def _name(self, url: str) -> str:
        own = _slug(self.name)
        if not self._by_base:
            return own
        parts = urlsplit(url)
        name = _slug(f"{parts.netloc} {parts.path}")
        while name in self.made:
            name += "_"
        return name

    def _url(self, operation: Operation | None) -> str:
        return self._server(operation).url

    def _server(self, operation: Operation | None) -> Base:
        """The server of an operation, or of the document: the one that is wanted, else the first."""
        own = () if operation is None else (operation.at, operation.item)
        for holder in (*own, self.documents.root):
            bases = self._servers(holder)
            if bases:
                number = int(self.server) if self.server is not None and self.server.isdecimal() else None
                if number is not None:
                    return bases[number - 1] if holder.pointer == () and 0 < number <= len(bases) else bases[0]
                return next((base for at, base in self._told(holder) if self._is_wanted(at)), bases[0])
        return Base(self._origin_path(), {}, "")

    def _origin_path(self) -> str:
        origin = self.documents.origin
        return "" if origin is None else urljoin(origin, "/").rstrip("/")

    def _servers(self, holder: Located) -> list[Base]:
        return [base for _, base in self._told(holder)]

    def _told(self, holder: Located) -> list[tuple[Located, Base]]:
        return [(at, _base(at, self.documents.origin)) for at in self.documents.items(holder, "servers")]

    def _is_wanted(self, server: Located) -> bool:
        wanted = (self.server or "").rstrip("/")
        url, description = server.field("url"), server.field("description")
        return bool(wanted) and wanted in (str(url).rstrip("/"), str(description).strip())

    def checked(self) -> list[str]:
        """A note on the servers of the document that are not called, where there are any.

        Raises:
            SelectionError: The one that is wanted is none of them.
        """
        told = self._told(self.documents.root)
        called = self._server(None)
        if self.server is not None:
            is_number = self.server.isdecimal() and 0 < int(self.server) <= len(told)
            if not is_number and not any(self._is_wanted(at) for at, _ in told):
                known = "; ".join(f"{number}: {base.shown}" for number, (_, base) in enumerate(told, 1)) or "none"
                raise SelectionError(f"`{self.server}` is none of the document's servers ({known})")
        others = [f"`{shorten(base.shown, 100)}`" for _, base in told if base.url != called.url]
        if not others:
            return []
        more = f" and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        variable_ = variable(self.name, "base url")
        there = f"the server calls `{called.url}`; the document has {', '.join(others[:_LISTED])}{more} as well"
        return [f"{there}, which --server takes, and so does `{variable_}` in the environment"]

    def _schemes(self, operation: Operation) -> list[dict[str, dict[str, Json]]] | None:
        """The alternatives of an operation, each with its schemes; None where nothing is said of it.

        One that needs none although the others of the document do goes without, and only when it is refused with what
        the others need, since documents say so of what does need it; on another host it always goes without. So does
        one with a parameter where the key would go, which would be there twice. Where both will do, who calls is said.
        """
        own = self._security(operation.at)
        asked = own or self._security(self.documents.root)
        if asked is None:
            return None
        found: list[dict[str, dict[str, Json]]] = []
        refused = ""
        for requirement in asked:
            try:
                found.append({name: self._scheme(name) for name in mapping(requirement)})
            except UnsupportedError as error:
                refused = str(error)
        if own == []:
            if self._url(operation) != self._url(None):
                return []
            taken = operations.places(self.documents, operation)
            others = [each for each in found if not any(key.is_at(*place) for key in _keys(each) for place in taken)]
            return [{}, *(each for each in others if each)]
        if refused and not found:
            raise UnsupportedError(refused)
        return sorted(found, key=lambda each: not each)

    def _scopes(self, operation: Operation) -> Iterator[tuple[str, list[str]]]:
        """The scopes that an operation asks for, by scheme."""
        for requirement in self._security(operation.at) or self._security(self.documents.root) or ():
            for name, scopes in mapping(requirement).items():
                listed = scopes if isinstance(scopes, list) else []
                yield name, [one for one in listed if isinstance(one, str) and _SCOPE.fullmatch(one)]

    def _security(self, holder: Located) -> list[Json] | None:
        """What an operation, or the document, says of who may call; None where it says nothing."""
        at = holder.get("security")
        found = None if at is None else self.documents.instead(at, "`security`").value
        return found if isinstance(found, list) else None

    def _scheme(self, name: str) -> dict[str, Json]:
        components = self.documents.root.get("components")
        holder = None if components is None else self.documents.instead(components, "`components`")
        described = [] if holder is None else self.documents.entries(holder, "securitySchemes")
        at = dict(described).get(name)
        if at is None:
            raise UnsupportedError(f"it needs the security scheme `{name}`, which is not described")
        at = self.documents.resolved(at)
        kind, scheme = at.field("type"), str(at.field("scheme") or "").lower()
        env = variable(self.name, name)
        if kind == "oauth2" and (grant := self._grant(at, env)):
            return {"type": "oauth2", **grant, "env": env}
        if kind in ("oauth2", "openIdConnect") or (kind == "http" and scheme == "bearer"):
            return {"type": "bearer", "env": env}
        if kind == "http" and scheme == "basic":
            return {"type": "basic", "usernameEnv": f"{env}_USERNAME", "passwordEnv": f"{env}_PASSWORD"}
        where, key = at.field("in"), at.field("name")
        if where == "header" and isinstance(key, str) and not _can_hold_a_key(key):
            raise UnsupportedError(f"it needs the security scheme `{name}`, whose key cannot be in the header `{key}`")
        if kind == "apiKey" and where in ("header", "query", "cookie") and isinstance(key, str) and key:
            return {"type": "apiKey", "in": where, "name": key, "env": env}
        raise UnsupportedError(f"it needs the security scheme `{name}`, which is {kind} {scheme}".rstrip())

    def _grant(self, scheme: Located, env: str) -> dict[str, Json]:
        """How the server gets tokens by itself; nothing where it cannot, so that it is given one."""
        flows = dict(scheme.entries("flows"))
        for flow in ("clientCredentials", "authorizationCode"):
            url = flows[flow].field("tokenUrl") if flow in flows else None
            whole = urljoin(f"{self._url(None)}/", url.strip()) if isinstance(url, str) else ""
            if http.is_token_url(whole):
                own = {"clientIdEnv": f"{env}_CLIENT_ID", "clientSecretEnv": f"{env}_CLIENT_SECRET"}
                if flow == "authorizationCode":
                    own["refreshTokenEnv"] = f"{env}_REFRESH_TOKEN"
                return {"flow": flow, "tokenUrl": whole, **own}
        return {}


def _keys(schemes: Mapping[str, Mapping[str, Json]]) -> list[Credential]:
    """The keys of schemes that have a place and a name of their own in a request."""
    return [
        Credential(scheme, str(auth["in"]), str(auth["name"]))
        for scheme, auth in schemes.items()
        if auth["type"] == "apiKey"
    ]


def _can_hold_a_key(header: str) -> bool:
    return bool(http.TOKEN.fullmatch(header)) and not http.is_ours(header) and not http.steers(header)


def variable(*parts: str) -> str:
    """An environment variable: the words of its parts in capitals, each group once: `PETSTORE_API_KEY`."""
    words: list[str] = []
    for part in parts:
        spaced = re.sub(r"(?<=\d)(?=[A-Z])", " ", part.replace("OAuth", "Oauth"))
        found = [word.upper() for word in naming.words(spaced) if word.isascii()]
        if words and found[: len(words)] == words:
            found = found[len(words) :]
        words += found
    text = "_".join(words)
    return text if text[:1].isalpha() else f"API_{text}"


def _slug(name: str) -> str:
    return "_".join(word.lower() for word in naming.words(name)) or "api"


@dataclass(frozen=True, slots=True)
class Base:
    """A server of a document: its URL without the slash at its end, perhaps with variables in braces, and these.

    A URL without a host is a path. `shown` is how the document calls it.
    """

    url: str
    variables: Mapping[str, Mapping[str, Json]]
    shown: str


def _base(server: Located, origin: str | None) -> Base:
    """A server, in which variables have their values but for those that the environment can set.

    Args:
        server: Where it stands.
        origin: The URL that the document is from, which a URL without a host is relative to.
    """
    url = server.field("url")
    description = server.field("description")
    shown = f"{url} ({description})" if isinstance(description, str) and description.strip() else str(url)
    if not isinstance(url, str):
        return Base("", {}, shown)
    described = {name: one for name, one in server.entries("variables") if f"{{{name}}}" in url}
    open_ = {name: one for name, one in described.items() if _can_be_set(name, one, url)}
    closed = {name: one.field("default") for name, one in described.items() if name not in open_}
    template = http.VARIABLE.sub(lambda found: str(closed.get(found[1], found[0])), url).strip()
    filled = http.VARIABLE.sub(
        lambda found: str(open_[found[1]].field("default")) if found[1] in open_ else found[0], template
    )
    if origin is not None and not http.VARIABLE.search(filled) and "://" not in template.partition("/")[0] + "//":
        template = filled = urljoin(origin, filled)
    parts = http.split(filled)
    if parts is None:
        return Base("", {}, shown)
    is_whole = parts.scheme in ("http", "https") and parts.netloc and not http.VARIABLE.search(filled)
    if is_whole and not (parts.query or parts.fragment or parts.username):
        variables = {name: _variable(one) for name, one in open_.items()}
        return Base(template.rstrip("/"), variables, shown)
    return Base(parts.path.rstrip("/") if not parts.scheme else "", {}, shown)


def _can_be_set(name: str, variable: Located, url: str) -> bool:
    """Whether the environment can say what a variable is: it stays in its place, and there is more than one value."""
    values = _variable(variable)
    listed = values.get("enum")
    if url.startswith(f"{{{name}}}"):
        return isinstance(listed, list) and {*listed} == {"http", "https"}
    every = [values["default"], *(listed if isinstance(listed, list) else ())]
    return (listed is None or len(listed) > 1) and all(servers.is_part(str(one)) for one in every)


def _variable(variable: Located) -> dict[str, Any]:
    """A variable's default, and the values that it may have; the default is one of them (3.1.1, section 4.8.6)."""
    default, listed = str(variable.field("default") or ""), variable.field("enum")
    if not isinstance(listed, list) or not listed:
        return {"default": default}
    return {"default": default, "enum": [*dict.fromkeys([default, *map(str, listed)])]}
