"""Formats manifests as YAML and adds headers to imported and locked files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from stubwright_runtime.values.terminal import HIDDEN

# numbers in YAML 1.2; PyYAML already quotes strings that look like YAML 1.1 numbers
_CORE_NUMBERS = re.compile(r"^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$")


class _Dumper(yaml.SafeDumper):
    """A dumper that indents lists below their keys and writes no anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's name
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's name
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    if HIDDEN.search(value):  # some of these are line breaks in YAML 1.1, but not in YAML 1.2
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"')
    several = "\n" in value.strip("\n") and not any(line != line.rstrip() for line in value.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if several else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)  # Python identifiers
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _CORE_NUMBERS, list("-+0123456789."))


_NOTE = "Imported by stubwright. Import again to replace this file, or delete this line to keep what you write."
_FIRST_LINES = (f"# {_NOTE}\n", f'{{\n  "x-imported": "{_NOTE}",\n')
_LOCKED = (
    "# A contract of an MCP server, by `stubwright lock`. Lock it again to change it: the next line is a digest.\n"
)


@dataclass(frozen=True, slots=True)
class Origin:
    """An imported file's origin: the import command, if repeatable, and whether a user edited the file."""

    command: str | None
    is_edited: bool


def format_imported(value: Mapping[str, Any], path: str = "", command: str | None = None) -> str:
    """Format an imported manifest, with a header that contains its origin and a digest of the rest.

    Args:
        value: The manifest.
        path: The file's path. The format is JSON if the path ends in `.json`.
        command: The command that repeats the import.
    """
    if path.lower().endswith(".json"):
        line = "" if command is None else f'  "x-command": {json.dumps(command)},\n'
        text = json.dumps(value, indent=2, ensure_ascii=False)
        text = HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f"), text) + "\n"
        body = text.removeprefix("{\n")
        return f'{_FIRST_LINES[1]}{line}  "x-digest": "{_digest(body)}",\n{body}'
    line = "" if command is None else f"# {''.join(char if char.isprintable() else '?' for char in command)}\n"
    body = format_manifest(value)
    return f"{_FIRST_LINES[0]}{line}# {_digest(body)}\n{body}"


def is_imported(text: str) -> bool:
    """Return whether a file was imported or locked, so that its texts come from another server."""
    return _start(text).startswith((*_FIRST_LINES, _LOCKED))


def format_locked(value: Mapping[str, Any]) -> str:
    """Format a contract, with a header that contains a digest of the rest."""
    body = format_manifest(value)
    return f"{_LOCKED}# {_digest(body)}\n{body}"


def is_locked(text: str) -> bool:
    """Return whether a file has the header that `stubwright lock` writes."""
    return _start(text).startswith(_LOCKED)


def _start(text: str) -> str:
    # Do not copy the whole text, which can be large.
    return text[: 2 * max(map(len, (*_FIRST_LINES, _LOCKED)))].replace("\r\n", "\n")


def is_intact(text: str) -> bool:
    """Return whether the digest on a contract's second line matches the rest."""
    digest, _, body = text.replace("\r\n", "\n").removeprefix(_LOCKED).partition("\n")
    return digest == f"# {_digest(body)}"


def parse_origin(text: str) -> Origin | None:
    """Return an imported file's origin, or None for other files. A file without a digest counts as unedited."""
    text = text.replace("\r\n", "\n")
    start = next((lines for lines in _FIRST_LINES if text.startswith(lines)), None)
    if start is None:
        return None
    command, rest = None, text[len(start) :]
    line = rest.partition("\n")[0]
    if line.startswith(("# stubwright ", '  "x-command": "')):
        command = line[2:] if line.startswith("#") else json.loads(line.partition(": ")[2].rstrip(","))
        rest = rest.partition("\n")[2]
    line, _, body = rest.partition("\n")
    digest = _DIGEST.fullmatch(line)
    return Origin(command, digest is not None and digest[1] != _digest(body))


_DIGEST = re.compile(r"""(?:# |  "x-digest": ")(sha256:[0-9a-f]{64})(?:",)?""")


def _digest(body: str) -> str:
    return f"sha256:{hashlib.sha256(body.encode('utf-8', 'surrogatepass')).hexdigest()}"


def format_manifest(value: Any) -> str:
    """Format a manifest as YAML, with escapes for hidden characters."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return HIDDEN.sub(lambda match: f"\\U{ord(match[0]):08X}", text)
