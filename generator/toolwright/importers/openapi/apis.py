"""Whom the tools call: base URLs and credentials, both from the environment.

Takes the servers and security schemes that operations name; gives the entries of `apis` in the manifest. Secrets are
never in a document, so each scheme becomes the name of a variable, made from the server's name and the scheme's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolwright import http, naming
from toolwright.importers.openapi.documents import UnsupportedError, mapping

if TYPE_CHECKING:
    from toolwright.importers.openapi.documents import Documents, Located
    from toolwright.importers.openapi.operations import Operation
    from toolwright.ir import Json


@dataclass(frozen=True, slots=True)
class Called:
    """Whom an operation calls: the name of an API, and the security that it asks for; None is the API's own."""

    api: str
    security: Sequence[Sequence[str]] | None


@dataclass(slots=True)
class Apis:
    """The APIs of a document, as they come up. `name` is the server's name."""

    documents: Documents
    name: str
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    _by_base: dict[str, str] = field(default_factory=dict)

    def called(self, operation: Operation) -> Called:
        """Whom an operation calls.

        Raises:
            UnsupportedError: It needs a way to say who one is that is not supported.
        """
        schemes = self._schemes(operation)
        url = self._url(operation)
        if url not in self._by_base:
            name = self._name(url)
            self._by_base[url] = name
            base: dict[str, Any] = {"baseUrl": url} if urlsplit(url).netloc else {}
            base["baseUrlEnv"] = variable(self.name, *([] if name == _slug(self.name) else [name]), "base url")
            base["output"] = "lenient"  # documents promise what their APIs do not keep
            self.made[name] = base
        api = self.made[self._by_base[url]]
        used = {scheme: auth for each in schemes or () for scheme, auth in each.items()}
        if used:
            api.setdefault("auth", {}).update(
                {key: auth for key, auth in used.items() if key not in api.get("auth", {})}
            )
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
        """The base URL of an operation, or of the document: of its first server, with the defaults of its variables."""
        own = () if operation is None else (operation.at, operation.item)
        for holder in (*own, self.documents.root):
            servers = holder.items("servers")
            if servers:
                return _filled(servers[0])
        return ""

    def _schemes(self, operation: Operation) -> list[dict[str, dict[str, Json]]] | None:
        """The alternatives of an operation, each with its schemes; None where nothing is said of it.

        One that needs none although the others of the document do goes without, and only when it is refused with what
        the others need, since documents say so of what does need it; on another host it always goes without. Where both
        will do, who calls is said.
        """
        own = operation.at.field("security")
        holder = operation.at if isinstance(own, list) and own else self.documents.root
        if not isinstance(holder.field("security"), list):
            return None
        found: list[dict[str, dict[str, Json]]] = []
        refused = ""
        for requirement in holder.items("security"):
            try:
                found.append({name: self._scheme(name) for name in mapping(requirement.value)})
            except UnsupportedError as error:
                refused = str(error)
        if own == []:
            if self._url(operation) != self._url(None):
                return []
            return [{}, *(each for each in found if each)]
        if refused and not found:
            raise UnsupportedError(refused)
        return sorted(found, key=lambda each: not each)

    def _scheme(self, name: str) -> dict[str, Json]:
        components = self.documents.root.get("components")
        schemes = components.get("securitySchemes") if components is not None else None
        at = schemes.get(name) if schemes is not None else None
        if at is None:
            raise UnsupportedError(f"it needs the security scheme `{name}`, which is not described")
        at = self.documents.resolved(at)
        kind, scheme = at.field("type"), str(at.field("scheme") or "").lower()
        env = variable(self.name, name)
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


def _filled(server: Located) -> str:
    """A server's URL with its variables' defaults, without the slash at its end."""
    url = server.field("url")
    if not isinstance(url, str):
        return ""
    defaults = {name: one.field("default") for name, one in server.entries("variables")}
    filled = http.VARIABLE.sub(lambda found: str(defaults.get(found[1], found[0])), url).strip()
    parts = http.split(filled)
    if parts is None:
        return ""
    is_whole = parts.scheme in ("http", "https") and parts.netloc and not http.VARIABLE.search(filled)
    plain = is_whole and not (parts.query or parts.fragment or parts.username)
    return filled.rstrip("/") if plain else parts.path.rstrip("/") if not parts.scheme else ""
