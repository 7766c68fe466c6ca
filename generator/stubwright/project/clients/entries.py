"""Parses the servers in a client's configuration file.

`${NAME}` (Claude Code) and `${env:NAME}` (Cursor and VS Code) expand to environment variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stubwright.compile.syntax.positions import Problem
from stubwright.project.clients import jsonc, toml
from stubwright.project.clients.jsonc import EditError
from stubwright.project.clients.table import CLIENTS

_KEYS: Final = tuple(dict.fromkeys(client.key for client in CLIENTS.values()))
_URLS: Final = ("url", "serverUrl", "httpUrl")
"""The keys for a URL in most clients, in Windsurf, and in Gemini CLI."""

_HEADERS: Final = ("headers", "http_headers")
"""The keys for headers in most clients, and in Codex."""

_VARIABLE: Final = re.compile(r"\$\{(?:env:)?(?P<name>[^}:]*)(?P<more>:[^}]*)?\}")


class EntryError(ValueError):
    """An entry is unusable; the message explains why, without values."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server with a command or a URL.

    `variables` contains the command's environment variables, and the values of expanded variables.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


def find_entries(text: str, path: str) -> Mapping[str, Any]:
    """Return a file's entries, keyed by server name.

    Args:
        text: The file's text.
        path: The file's path; `.toml` files are parsed as TOML.

    Raises:
        EditError: The text is not valid JSON or TOML, or has no servers.
    """
    document = toml.read(text) if path.lower().endswith(".toml") else jsonc.read(text)
    if isinstance(document, dict):
        for key in _KEYS:
            if isinstance(document.get(key), dict):
                entries: Mapping[str, Any] = document[key]
                return entries
    keys = ", ".join(f"`{key}`" for key in _KEYS)
    raise EditError(Problem("SW101", f"the file has no servers: it lacks {keys}", 0, 1))


def is_disabled(entry: Any) -> bool:
    """Return whether an entry is disabled."""
    return isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False)


def parse(entry: Any, environment: Mapping[str, str]) -> Server:
    """Parse an entry into a server.

    Args:
        entry: The entry in the file.
        environment: The environment for expanding variables.

    Raises:
        EntryError: The entry has neither a command nor a URL, or uses a variable without a value.
    """
    if not isinstance(entry, dict):
        raise EntryError("its entry is not an object")
    used: dict[str, str] = {}
    if "command" in entry:
        if entry.get("cwd") not in (None, "", "."):
            raise EntryError("the command runs in the folder in `cwd`; run `stubwright lock -- COMMAND` in that folder")
        words = _expand_all([entry["command"], *_get_list(entry, "args")], environment, used)
        own = _expand_values(_get_mapping(entry, "env"), environment, used)
        return Server(command=tuple(words), variables={**used, **own})
    url = next((entry[key] for key in _URLS if key in entry), None)
    if url is None:
        raise EntryError("its entry has neither a `command` nor a `url`")
    headers: dict[str, str] = {}
    for key in _HEADERS:
        headers |= _expand_values(_get_mapping(entry, key), environment, used)
    if "bearer_token_env_var" in entry:  # in Codex
        headers["Authorization"] = f"Bearer {_look_up(str(entry['bearer_token_env_var']), environment)}"
    return Server(url=_expand_all([url], environment, used)[0], headers=headers, variables=used)


def _get_list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key) or []
    if not isinstance(value, list):
        raise EntryError(f"its `{key}` is not a list")
    return value


def _get_mapping(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = entry.get(key) or {}
    if not isinstance(value, dict):
        raise EntryError(f"its `{key}` is not an object")
    return value


def _expand_values(values: Mapping[str, Any], environment: Mapping[str, str], used: dict[str, str]) -> dict[str, str]:
    return dict(zip(values, _expand_all([*values.values()], environment, used), strict=True))


def _expand_all(texts: list[Any], environment: Mapping[str, str], used: dict[str, str]) -> list[str]:
    def get_value(match: re.Match[str]) -> str:
        default = (match["more"] or "").startswith(":-")
        if match["more"] and not default:
            raise EntryError(f"its client prompts for `{match[0]}`, so the value is unknown")
        value = environment.get(match["name"]) if default else _look_up(match["name"], environment)
        if value is None:
            return match["more"][2:]
        used[match["name"]] = value
        return value

    if not all(isinstance(text, str) for text in texts):
        raise EntryError("its entry has a value that is not a string")
    return [_VARIABLE.sub(get_value, text) for text in texts]


def _look_up(name: str, environment: Mapping[str, str]) -> str:
    if name not in environment:
        raise EntryError(f"it needs the variable `{name}`, which is not set")
    return environment[name]
