"""Reads a server's publication metadata from `[project]` and `[tool.stubwright.publish]`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stubwright.diagnostics import Diagnostic
from stubwright.diagnostics.suggestions import did_you_mean
from stubwright.project.config import Keys

TABLE: Final = "tool.stubwright.publish"
_KEYS: Final = ("name", "description", "url", "image", "index", "scopes")
_NAME: Final = re.compile(r"[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+/[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?")
"""A server's name in the registry: a reversed domain, a slash and a name (server.schema.json, `name`)."""

_IMAGE: Final = re.compile(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9._/-]+")
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Publication:
    """The metadata to publish.

    Attributes:
        name: The server's name in the registry, such as `io.github.acme/shop`.
        distribution: The project's name on a package index.
        version: The project's version.
        description: A one-line description that replaces the manifest's; None to use the manifest's.
        url: The server's HTTP endpoint, if any.
        image: The server's container image without a tag, if any.
        is_indexed: True if the distribution is on PyPI.
        scopes: The scopes granted to users whose clients start the server, who have no token.
        readme: The README for the package index, if any.
        script: The command that the distribution installs, if any.
        author: The project's author.
        license: The project's license (SPDX), if any.
        repository: The URL of the source code, if any.
        python: The Python versions that the project supports.
    """

    name: str
    distribution: str
    version: str
    description: str | None
    url: str | None
    image: str | None
    is_indexed: bool
    scopes: tuple[str, ...]
    readme: str | None
    script: str | None
    author: str
    license: str | None
    repository: str | None
    python: str


def read(file: str, text: str, scopes: Sequence[str]) -> Publication | list[Diagnostic]:
    """Return the metadata in a `pyproject.toml`, or the problems with it.

    Args:
        file: The file's path, for locations.
        text: The file's content, which is valid TOML.
        scopes: The scopes that the manifest declares.
    """
    value = tomllib.loads(text)
    project: Mapping[str, Any] = value.get("project") or {}
    table = value["tool"]["stubwright"].get("publish")
    scripts = [*(project.get("scripts") or {})]
    problems = [
        *_find_problems(table, scopes, Keys(file, text, TABLE)),
        *_find_lacking(project, Keys(file, text, "project")),
    ]
    if not problems and table.get("index", True) and project["name"] not in scripts:
        message = f"the project has no script `{project['name']}`, which clients start with uvx"
        fix = "give a script the distribution's name, or set `index = false` if it is not on PyPI"
        problems.append(Diagnostic("SW410", message, Keys(file, text, "project.scripts").find_span(), fix))
    if problems:
        return problems
    urls: Mapping[str, str] = project.get("urls") or {}
    sources = [url for name, url in urls.items() if name.lower() in ("repository", "source", "source code", "github")]
    authors = [author["name"] for author in project.get("authors") or () if "name" in author]
    readme = project.get("readme")
    license_ = project.get("license")
    return Publication(
        name=table["name"],
        distribution=project["name"],
        version=project["version"],
        description=table.get("description"),
        url=table.get("url"),
        image=table.get("image"),
        is_indexed=table.get("index", True),
        scopes=tuple(table.get("scopes", ())),
        readme=readme if isinstance(readme, str) else None,
        script=project["name"] if project["name"] in scripts else next(iter(scripts), None),
        author=", ".join(authors) or table["name"].partition("/")[0],
        license=license_ if isinstance(license_, str) else None,
        repository=sources[0] if sources else None,
        python=project.get("requires-python", ">=3.11"),
    )


def _find_problems(table: object, scopes: Sequence[str], keys: Keys) -> Iterator[Diagnostic]:
    if not isinstance(table, dict):
        fix = f'write `[{TABLE}]` with `name = "io.github.OWNER/NAME"`'
        yield Diagnostic(
            "SW410", f"`[{TABLE}]` is missing; it sets the server's name in the registry", keys.find_span(), fix
        )
        return
    for key in sorted(set(table) - {*_KEYS}):
        known = ", ".join(f"`{name}`" for name in _KEYS)
        yield Diagnostic(
            "SW410", f"unknown key `{key}` in `[{TABLE}]`", keys.find_span(key), help=f"the valid keys are {known}"
        )
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        fix = "write your domain in reverse, a slash and a name, such as `io.github.acme/shop`"
        yield Diagnostic("SW410", f"`name` in `[{TABLE}]` is not a valid registry name", keys.find_span("name"), fix)
    for key in ("description", "url", "image"):
        if key in table and not isinstance(table[key], str):
            yield Diagnostic("SW410", f"`{key}` in `[{TABLE}]` must be a string", keys.find_span(key))
    if isinstance(table.get("url"), str) and not re.fullmatch(r"https://[^\s/]+/\S*", table["url"]):
        fix = "write the endpoint's full URL, such as `https://shop.example.com/mcp`"
        yield Diagnostic("SW410", f"`url` in `[{TABLE}]` is not a public URL", keys.find_span("url"), fix)
    if isinstance(table.get("image"), str) and not _IMAGE.fullmatch(table["image"]):
        fix = "write it with its registry and without a tag, such as `ghcr.io/acme/shop`"
        yield Diagnostic("SW410", f"`image` in `[{TABLE}]` is not an image name", keys.find_span("image"), fix)
    if not isinstance(table.get("index", True), bool):
        yield Diagnostic("SW410", f"`index` in `[{TABLE}]` must be true or false", keys.find_span("index"))
    granted = table.get("scopes", [])
    if not isinstance(granted, list) or not all(isinstance(scope, str) for scope in granted):
        yield Diagnostic("SW410", f"`scopes` in `[{TABLE}]` must be a list of strings", keys.find_span("scopes"))
        return
    for scope in granted:
        if scope not in scopes:
            message = f"`scopes` in `[{TABLE}]` lists `{scope}`, which the manifest does not declare"
            yield Diagnostic("SW410", message, keys.find_span("scopes"), did_you_mean(scope, scopes, "scopes"))


def _find_lacking(project: Mapping[str, Any], keys: Keys) -> Iterator[Diagnostic]:
    for key in ("name", "version"):
        if not isinstance(project.get(key), str):
            message = f"`[project]` has no `{key}`, which the registry requires"
            yield Diagnostic(
                "SW410", message, keys.find_span(key), f"set `{key}` in `[project]`; dynamic values are not read"
            )
