"""Creates `server.json`, a server's entry in the MCP registry (schema 2025-12-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from stubwright.diagnostics import Diagnostic, Place
from stubwright.project.variables import Variable, list_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright import ir
    from stubwright.publishing.settings import Publication

FILE: Final = "server.json"

_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_LONGEST: Final = 100
"""The maximum length of a title or description (server.schema.json)."""

_PICTURES: Final = ("image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp")
_PORT: Final = "8000"


def describe(manifest: ir.Manifest, publication: Publication) -> str:
    """Return the description from the publishing table or, by default, the manifest; empty if neither has one."""
    described = publication.description or manifest.server.get("description") or ""
    return " ".join(str(described).split())


def find_problems(manifest: ir.Manifest, publication: Publication, entry: str) -> Iterator[Diagnostic]:
    """Yield the problems for which the registry would reject the listing.

    Args:
        publication: The metadata to publish.
        entry: The manifest's path, for locations.
    """
    description = describe(manifest, publication)
    at = Place(entry, ("server", "description") if manifest.server.get("description") else ("server", "name"))
    if not description:
        yield Diagnostic(
            "SW410", "the server has no `description`, which the registry requires", at, "add a one-line description"
        )
    elif len(description) > _LONGEST:
        message = f"the `description` has {len(description)} characters; the registry allows {_LONGEST}"
        fix = "shorten it, or set a short `description` in `[tool.stubwright.publish]`"
        yield Diagnostic("SW410", message, at, fix)
    if len(str(manifest.server.get("title", ""))) > _LONGEST:
        at = Place(entry, ("server", "title"))
        yield Diagnostic("SW410", f"the registry allows a `title` of at most {_LONGEST} characters", at, "shorten it")
    if manifest.server["version"] != publication.version:
        message = f"the server has version {manifest.server['version']}, although the project has {publication.version}"
        fix = "use the same version in both, because the registry looks for the server's version on the package index"
        yield Diagnostic("SW410", message, Place(entry, ("server", "version")), fix)
    if not (publication.is_indexed or publication.image or publication.url):
        yield Diagnostic("SW410", "the entry would be empty: `index` is false, and neither `image` nor `url` is set")


def make(manifest: ir.Manifest, publication: Publication) -> dict[str, Any]:
    """Return the content of `server.json`."""
    server = manifest.server
    value = {
        "$schema": _SCHEMA,
        "name": publication.name,
        "title": server.get("title"),
        "description": describe(manifest, publication),
        "repository": _make_repository(publication.repository),
        "version": server["version"],
        "websiteUrl": server.get("websiteUrl"),
        "icons": [icon for icon in server.get("icons") or () if _is_taken(icon)],
        "packages": [*_list_packages(manifest, publication)],
        "remotes": [{"type": "streamable-http", "url": publication.url}] if publication.url else [],
    }
    return {key: each for key, each in value.items() if each}


def _make_repository(url: str | None) -> dict[str, str] | None:
    host = urlsplit(url).hostname if url else None
    known = {"github.com": "github", "gitlab.com": "gitlab"}
    return {"url": url, "source": known[host]} if url and host in known else None


def _is_taken(icon: Mapping[str, Any]) -> bool:
    return str(icon.get("src", "")).startswith("https://") and icon.get("mimeType", _PICTURES[0]) in _PICTURES


def _list_packages(manifest: ir.Manifest, publication: Publication) -> Iterator[dict[str, Any]]:
    variables = [_make_input(variable) for variable in list_variables(manifest.document)]
    environment = {"environmentVariables": variables} if variables else {}
    if publication.is_indexed:
        granted = [{"type": "named", "name": "--scope", "value": scope} for scope in publication.scopes]
        yield {
            "registryType": "pypi",
            "identifier": publication.distribution,
            "version": publication.version,
            "runtimeHint": "uvx",
            "transport": {"type": "stdio"},
            **({"packageArguments": granted} if granted else {}),
            **environment,
        }
    if publication.image:
        port = {"type": "named", "name": "-p", "value": f"{_PORT}:{_PORT}"}
        passed = [{"type": "named", "name": "-e", "value": variable["name"]} for variable in variables]
        yield {
            "registryType": "oci",
            "identifier": f"{publication.image}:{publication.version}",
            "runtimeHint": "docker",
            "runtimeArguments": [port, *passed],
            "transport": {"type": "streamable-http", "url": f"http://localhost:{_PORT}/mcp"},
            **environment,
        }


def _make_input(variable: Variable) -> dict[str, Any]:
    value = {
        "name": variable.name,
        "description": variable.description,
        "isRequired": variable.default is None,
        "isSecret": variable.is_secret,
        "default": variable.default,
    }
    return {key: each for key, each in value.items() if each not in (None, False)}
