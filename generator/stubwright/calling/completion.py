"""Completes tools, arguments and values for `call` and `inspect`.

Reads manifests but calls no server, because pressing a key must not start a process.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from stubwright import ir

_VERBS: Final = ("call", "inspect")
_WITH_VALUE: Final = frozenset(
    (
        *("--answer", "--client-id", "--color", "--env", "--format", "--handlers", "--header", "--max-bytes"),
        *("--max-pages", "--output", "--python", "--revision", "--save", "--scope", "--timeout", "--token"),
        *("--toolset", "-o"),
    )
)
_ENDINGS: Final = (".yaml", ".yml", ".json")


def complete(line: str, breaks: str = "") -> list[str]:
    """Return the completions for a line's last word, without the part that the shell treats as an earlier word.

    Args:
        line: The command line up to the cursor.
        breaks: The characters that end a word in the shell, such as `=` in bash.
    """
    words = _split(line)
    last = words.pop() if words and not line.endswith((" ", "\t")) else ""
    if len(words) < 2 or words[1] not in _VERBS or last.startswith("-"):
        return []
    positional = list(_positional(words[2:]))
    named = positional.pop(0) if positional and positional[0].lower().endswith(_ENDINGS) else None
    manifest = _read(named)
    if manifest is None:
        return []
    candidates = _tools(manifest, words[1]) if not positional else _arguments(manifest, positional[0], last, words[1])
    start = max((last.rfind(char) + 1 for char in breaks if char in last), default=0)
    return [word[start:] for word in candidates if word.startswith(last)]


def _split(line: str) -> list[str]:
    for ending in ("", '"', "'"):
        try:
            return shlex.split(line + ending)
        except ValueError:
            continue
    return line.split()


def _positional(words: list[str]) -> Iterator[str]:
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith("-") and word != "-":
            is_value = word in _WITH_VALUE
        else:
            yield word


def _read(path: str | None) -> ir.Manifest | None:
    from stubwright.compile import pipeline
    from stubwright.project import config
    from stubwright.project.files import disk

    if path is None:
        project, _ = config.find()
        if project is None or len(project.manifests) != 1:
            return None
        path = project.manifests[0]
    return pipeline.compile_manifest(path, disk.Disk(), errors_only=True).manifest


def _tools(manifest: ir.Manifest, verb: str) -> list[str]:
    names = [tool.name for tool in manifest.tools]
    if verb == "inspect":
        names += [entry.key for entries in manifest.primitives.values() for entry in entries]
    return names


def _arguments(manifest: ir.Manifest, name: str, last: str, verb: str) -> list[str]:
    tool = next((tool for tool in manifest.tools if tool.name == name), None)
    if tool is None or verb != "call":
        return []
    schema: Mapping[str, Any] = tool.definition["inputSchema"]
    properties: Mapping[str, Any] = schema.get("properties") or {}
    given, equals, _ = last.partition("=")
    if not equals:
        return [f"{each}=" for each in properties]
    return [f"{given}={value}" for value in _values(properties.get(given), schema)]


def _values(schema: Any, root: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values in a schema's `enum`, `const` or alternatives, for completion."""
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        yield from _values((root.get("$defs") or {}).get(reference.removeprefix("#/$defs/")), root)
    for value in [*(schema.get("enum") or ()), *([schema["const"]] if "const" in schema else ())]:
        yield value if isinstance(value, str) else json.dumps(value)
    if schema.get("type") == "boolean":
        yield from ("true", "false")
    for key in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(key) or ():
            yield from _values(each, {})
