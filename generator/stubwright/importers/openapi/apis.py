"""Converts servers and security schemes to `apis`, with base URLs and credentials from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from stubwright import http, naming
from stubwright.diagnostics.suggestions import shorten
from stubwright.importers.openapi import operations
from stubwright.importers.openapi.documents import UnsupportedError, read_mapping
from stubwright.importers.openapi.naming import SelectionError
from stubwright_runtime.http import servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.importers.openapi.documents import Documents, LocatedValue
    from stubwright.importers.openapi.operations import Operation
    from stubwright.importers.openapi.options import Auth
    from stubwright.ir import Json


_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")
"""A scope (RFC 6749, section 3.3)."""

_SHOWN: Final = 5
"""The maximum number of servers listed in a note."""


@dataclass(frozen=True, slots=True)
class Target:
    """An operation's API, and its security if that differs from the API's."""

    api: str
    security: Sequence[Sequence[str]] | None


@dataclass(frozen=True, slots=True)
class Credential:
    """An API key's security scheme, and the key's location and name in requests."""

    scheme: str
    where: str
    name: str

    def is_at(self, where: str, name: str) -> bool:
        """Return whether a parameter has the same location and name.

        The case of header names does not matter (RFC 9110, 5.1).
        """
        same = self.name.lower() == name.lower() if where == "header" else self.name == name
        return self.where == where and same


@dataclass(slots=True)
class Apis:
    """A document's APIs, added as its operations are converted.

    Attributes:
        documents: The document and the files that it refers to.
        name: The name of the generated server.
        server: The selected server from the document; by default the first.
        auth: Replaces the document's authentication.
        entries: The entries of `apis`.
    """

    documents: Documents
    name: str
    server: str | None = None
    auth: Auth | None = None
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    _by_base: dict[str, str] = field(default_factory=dict)

    def find_credentials(self, operation: Operation) -> Sequence[Credential]:
        """Return the keys that an operation sends; empty if its `security` is empty.

        Raises:
            UnsupportedError: See `find_target`.
        """
        if self._find_security(operation.at) == [] and self.auth is None:
            return []
        return _list_credentials(
            {name: auth for alternative in self._find_schemes(operation) or () for name, auth in alternative.items()}
        )

    def find_target(self, operation: Operation) -> Target:
        """Return the target of an operation.

        Raises:
            UnsupportedError: The operation needs an unsupported security scheme.
        """
        schemes = self._find_schemes(operation)
        server = self._find_server(operation)
        url = server.url
        if url not in self._by_base:
            name = self._make_name(url)
            self._by_base[url] = name
            base: dict[str, Any] = {"baseUrl": url} if "://" in url else {}
            prefix_words = [] if name == _make_slug(self.name) else [name]
            base["baseUrlEnv"] = make_variable(self.name, *prefix_words, "base url")
            if server.variables:
                base["variables"] = {
                    variable_name: {"env": make_variable(self.name, *prefix_words, variable_name), **variable_entry}
                    for variable_name, variable_entry in server.variables.items()
                }
            base["output"] = "lenient"  # API responses often differ from the document
            self.entries[name] = base
        api = self.entries[self._by_base[url]]
        used = {scheme: auth for alternative in schemes or () for scheme, auth in alternative.items()}
        if used:
            api.setdefault("auth", {}).update(
                {key: auth for key, auth in used.items() if key not in api.get("auth", {})}
            )
        requirements = self._find_security(operation.at) or self._find_security(self.documents.root) or ()
        if self.auth is None and self._needs_certificate(requirements):
            names = {f"{part}Env": make_variable(self.name, "client", part) for part in ("certificate", "key")}
            api["clientCertificate"] = names
        for scheme, scopes in self._find_scopes(operation):
            if api.get("auth", {}).get(scheme, {}).get("type") == "oauth2" and scheme in used:
                all_scopes = [*api["auth"][scheme].get("scopes", ()), *scopes]
                api["auth"][scheme] |= {"scopes": [*dict.fromkeys(all_scopes)]} if all_scopes else {}
        return Target(self._by_base[url], None if schemes is None else [list(alternative) for alternative in schemes])

    @property
    def bases(self) -> dict[str, str]:
        """Each API's base URL, or its path if the document has no host."""
        return {name: url for url, name in self._by_base.items()}

    def _make_name(self, url: str) -> str:
        own = _make_slug(self.name)
        if not self._by_base:
            return own
        parts = urlsplit(url)
        name = _make_slug(f"{parts.netloc} {parts.path}")
        while name in self.entries:
            name += "_"
        return name

    def _find_url(self, operation: Operation | None) -> str:
        return self._find_server(operation).url

    def _find_server(self, operation: Operation | None) -> Server:
        own = () if operation is None else (operation.at, operation.item)
        for holder in (*own, self.documents.root):
            bases = self._list_servers(holder)
            if bases:
                number = int(self.server) if self.server is not None and self.server.isdecimal() else None
                if number is not None:
                    return bases[number - 1] if holder.pointer == () and 0 < number <= len(bases) else bases[0]
                return next((base for at, base in self._locate_servers(holder) if self._is_wanted(at)), bases[0])
        return Server(self._get_origin_path(), {}, "")

    def _get_origin_path(self) -> str:
        origin = self.documents.origin
        return "" if origin is None else urljoin(origin, "/").rstrip("/")

    def _list_servers(self, holder: LocatedValue) -> list[Server]:
        return [base for _, base in self._locate_servers(holder)]

    def _locate_servers(self, holder: LocatedValue) -> list[tuple[LocatedValue, Server]]:
        return [(at, _read_server(at, self.documents.origin)) for at in self.documents.list_items(holder, "servers")]

    def _is_wanted(self, server: LocatedValue) -> bool:
        wanted = (self.server or "").rstrip("/")
        url, description = server.get_field("url"), server.get_field("description")
        return bool(wanted) and wanted in (str(url).rstrip("/"), str(description).strip())

    def report_other_servers(self) -> list[str]:
        """Return a note on the document's other servers, if any.

        Raises:
            SelectionError: The document does not list the selected server.
        """
        located = self._locate_servers(self.documents.root)
        called_server = self._find_server(None)
        if self.server is not None:
            is_number = self.server.isdecimal() and 0 < int(self.server) <= len(located)
            if not is_number and not any(self._is_wanted(at) for at, _ in located):
                choices = "; ".join(f"{number}: {base.label}" for number, (_, base) in enumerate(located, 1)) or "none"
                raise SelectionError(f"`{self.server}` is not one of the document's servers ({choices})")
        others = [f"`{shorten(base.label, 100)}`" for _, base in located if base.url != called_server.url]
        if not others:
            return []
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        setting = make_variable(self.name, "base url")
        note = f"the server calls `{called_server.url}`; the document also has {', '.join(others[:_SHOWN])}{more}"
        return [f"{note}; choose one with --server, or set `{setting}` in the environment"]

    def _find_schemes(self, operation: Operation) -> list[dict[str, dict[str, Json]]] | None:
        """Return an operation's alternative security schemes, or None if the document specifies none.

        An operation with an empty `security` is first called without credentials. If the API rejects the call, the
        credentials for other operations are sent, because documents often contain this mistake. Credentials are never
        sent to another host or in place of a parameter. Optional credentials are sent.
        """
        if self.auth is not None:
            return [_make_credential(self.auth, self.name)]
        own = self._find_security(operation.at)
        requirements = own or self._find_security(self.documents.root)
        if requirements is None:
            return None
        alternatives: list[dict[str, dict[str, Json]]] = []
        reason = ""
        is_certified = self._needs_certificate(requirements)
        for requirement in requirements:
            if not is_certified and self._has_certificate(requirement):
                continue  # another alternative does not need a certificate
            try:
                names = [name for name in read_mapping(requirement) if not self._is_certificate(name)]
                alternatives.append({name: self._find_scheme(name) for name in names})
            except UnsupportedError as error:
                reason = str(error)
        if own == []:
            if self._find_url(operation) != self._find_url(None):
                return []
            places = operations.list_places(self.documents, operation)
            others = [
                alternative
                for alternative in alternatives
                if not any(key.is_at(*place) for key in _list_credentials(alternative) for place in places)
            ]
            return [{}, *(alternative for alternative in others if alternative)]
        if reason and not alternatives:
            raise UnsupportedError(reason)
        return sorted(alternatives, key=lambda alternative: not alternative)

    def _find_scopes(self, operation: Operation) -> Iterator[tuple[str, list[str]]]:
        if self.auth is not None:
            return
        for requirement in self._find_security(operation.at) or self._find_security(self.documents.root) or ():
            for name, scopes in read_mapping(requirement).items():
                listed = scopes if isinstance(scopes, list) else []
                yield name, [scope for scope in listed if isinstance(scope, str) and _SCOPE.fullmatch(scope)]

    def _find_security(self, holder: LocatedValue) -> list[Json] | None:
        at = holder.get("security")
        value = None if at is None else self.documents.follow(at, "`security`").value
        return value if isinstance(value, list) else None

    def list_schemes(self) -> list[str]:
        """Return the names of the document's security schemes."""
        try:
            return [*self._describe_schemes()]
        except UnsupportedError:
            return []  # operations that need one are omitted, with a note

    def _describe_schemes(self) -> dict[str, LocatedValue]:
        components = self.documents.root.get("components")
        holder = None if components is None else self.documents.follow(components, "`components`")
        return {} if holder is None else dict(self.documents.list_entries(holder, "securitySchemes"))

    def _is_certificate(self, name: str) -> bool:
        at = self._describe_schemes().get(name)
        return at is not None and self.documents.resolve(at).get_field("type") == "mutualTLS"

    def _has_certificate(self, requirement: object) -> bool:
        return any(map(self._is_certificate, read_mapping(requirement)))

    def _needs_certificate(self, requirements: Sequence[object]) -> bool:
        return bool(requirements) and all(map(self._has_certificate, requirements))

    def _find_scheme(self, name: str) -> dict[str, Json]:
        at = self._describe_schemes().get(name)
        if at is None:
            raise UnsupportedError(f"it needs the security scheme `{name}`, which the document does not define")
        at = self.documents.resolve(at)
        kind, scheme = at.get_field("type"), str(at.get_field("scheme") or "").lower()
        env = make_variable(self.name, name)
        if kind == "oauth2" and (grant := self._find_grant(at, env)):
            return {"type": "oauth2", **grant, "env": env}
        if kind in ("oauth2", "openIdConnect") or (kind == "http" and scheme == "bearer"):
            return {"type": "bearer", "env": env}
        if kind == "http" and scheme == "basic":
            return {"type": "basic", "usernameEnv": f"{env}_USERNAME", "passwordEnv": f"{env}_PASSWORD"}
        where, key = at.get_field("in"), at.get_field("name")
        if where == "header" and isinstance(key, str) and not http.is_key_header(key):
            raise UnsupportedError(f"it needs the security scheme `{name}`, whose key cannot be in the header `{key}`")
        if kind == "apiKey" and where in ("header", "query", "cookie") and isinstance(key, str) and key:
            return {"type": "apiKey", "in": where, "name": key, "env": env}
        raise UnsupportedError(f"the security scheme `{name}` has the unsupported type {kind} {scheme}".rstrip())

    def _find_grant(self, scheme: LocatedValue, env: str) -> dict[str, Json]:
        """Return the settings for fetching tokens, or an empty mapping if the server cannot fetch tokens itself."""
        flows = dict(scheme.list_entries("flows"))
        # `implicit` has no token endpoint, and `password` needs a user's password.
        for flow in ("clientCredentials", "authorizationCode"):
            url = flows[flow].get_field("tokenUrl") if flow in flows else None
            token_url = urljoin(f"{self._find_url(None)}/", url.strip()) if isinstance(url, str) else ""
            if http.is_token_url(token_url):
                settings = {"clientIdEnv": f"{env}_CLIENT_ID", "clientSecretEnv": f"{env}_CLIENT_SECRET"}
                if flow == "authorizationCode":
                    settings["refreshTokenEnv"] = f"{env}_REFRESH_TOKEN"
                return {"flow": flow, "tokenUrl": token_url, **settings}
        return {}


def _list_credentials(schemes: Mapping[str, Mapping[str, Json]]) -> list[Credential]:
    return [
        Credential(scheme, str(auth["in"]), str(auth["name"]))
        for scheme, auth in schemes.items()
        if auth["type"] == "apiKey"
    ]


def _make_credential(auth: Auth, server: str) -> dict[str, dict[str, Json]]:
    """Return the security scheme that the user chose, keyed by name."""
    name = {"bearer": "token", "basic": "user", "apiKey": "key", "clientCredentials": "client"}[auth.kind]
    env = make_variable(server, name)
    settings: dict[str, Json] = {"type": auth.kind, "env": env}
    if auth.kind == "basic":
        settings = {"type": "basic", "usernameEnv": make_variable(server, "username")}
        settings["passwordEnv"] = make_variable(server, "password")
    elif auth.kind == "apiKey":
        settings = {"type": "apiKey", "in": auth.where, "name": auth.detail, "env": env}
    elif auth.kind == "clientCredentials":
        settings = {"type": "oauth2", "flow": auth.kind, "tokenUrl": auth.detail}
        settings |= {"clientIdEnv": f"{env}_ID", "clientSecretEnv": f"{env}_SECRET"}
        settings["env"] = make_variable(server, "token")
    return {name: settings}


def make_variable(*parts: str) -> str:
    """Return an environment variable's name, such as `PETSTORE_API_KEY`, without repeated words."""
    words: list[str] = []
    for part in parts:
        # `OAuth` is one word, despite its inner capital.
        spaced = re.sub(r"(?<=\d)(?=[A-Z])", " ", part.replace("OAuth", "Oauth"))
        new_words = [word.upper() for word in naming.split_words(spaced) if word.isascii()]
        if words and new_words[: len(words)] == words:
            new_words = new_words[len(words) :]
        words += new_words
    text = "_".join(words)
    return text if text[:1].isalpha() else f"API_{text}"


def _make_slug(name: str) -> str:
    return "_".join(word.lower() for word in naming.split_words(name)) or "api"


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a document: its URL without a trailing slash, its variables, and its name in messages.

    The URL can contain variables in braces and is just a path if the document has no host.
    """

    url: str
    variables: Mapping[str, Mapping[str, Json]]
    label: str


def _read_server(server: LocatedValue, origin: str | None) -> Server:
    """Read a server. Replace variables that the environment cannot set with their defaults.

    Args:
        server: The Server Object.
        origin: The document's URL, the base for relative URLs.
    """
    url = server.get_field("url")
    description = server.get_field("description")
    label = f"{url} ({description})" if isinstance(description, str) and description.strip() else str(url)
    if not isinstance(url, str):
        return Server("", {}, label)
    described = {name: variable_ for name, variable_ in server.list_entries("variables") if f"{{{name}}}" in url}
    settable = {name: variable_ for name, variable_ in described.items() if _can_be_set(name, variable_, url)}
    fixed = {name: variable_.get_field("default") for name, variable_ in described.items() if name not in settable}
    template = http.VARIABLE.sub(lambda match: str(fixed.get(match[1], match[0])), url).strip()
    filled = http.VARIABLE.sub(
        lambda match: str(settable[match[1]].get_field("default")) if match[1] in settable else match[0], template
    )
    if origin is not None and not http.VARIABLE.search(filled) and "://" not in template.partition("/")[0] + "//":
        template = filled = urljoin(origin, filled)
    parts = http.split(filled)
    if parts is None:
        return Server("", {}, label)
    is_whole = parts.scheme in ("http", "https") and parts.netloc and not http.VARIABLE.search(filled)
    if is_whole and not (parts.query or parts.fragment or parts.username):
        variables = {name: _read_variable(variable_) for name, variable_ in settable.items()}
        return Server(template.rstrip("/"), variables, label)
    return Server(parts.path.rstrip("/") if not parts.scheme else "", {}, label)


def _can_be_set(name: str, variable: LocatedValue, url: str) -> bool:
    """Return whether the environment can set a variable. Each value must be a single safe part of the URL."""
    allowed = _read_variable(variable)
    listed = allowed.get("enum")
    if url.startswith(f"{{{name}}}"):
        # A leading variable could change the host, unless it only selects the scheme.
        return isinstance(listed, list) and {*listed} == {"http", "https"}
    values = [allowed["default"], *(listed if isinstance(listed, list) else ())]
    return (listed is None or len(listed) > 1) and all(servers.is_part(str(value)) for value in values)


def _read_variable(variable: LocatedValue) -> dict[str, Any]:
    """Return a variable's default and its allowed values, which include the default (3.1.1, section 4.8.6)."""
    default, listed = str(variable.get_field("default") or ""), variable.get_field("enum")
    if not isinstance(listed, list) or not listed:
        return {"default": default}
    return {"default": default, "enum": [*dict.fromkeys([default, *map(str, listed)])]}
