"""Manifests as text for people: YAML with block scalars, in the order it is given.

Takes JSON values and gives YAML that reads back as the same values, for readers of YAML 1.1 and 1.2 alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from toolwright_runtime.values.terminal import HIDDEN

# What a YAML 1.2 reader takes for something else than a string, beside what PyYAML knows of YAML 1.1.
_CORE_NUMBERS = re.compile(r"^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$")


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and never writes an anchor."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's name
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's name
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    if HIDDEN.search(value):  # among these are line breaks of YAML 1.1 that are none of YAML 1.2
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"')
    several = "\n" in value.strip("\n") and not any(line != line.rstrip() for line in value.split("\n"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if several else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, _text)  # of Python names
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _CORE_NUMBERS, list("-+0123456789."))


_NOTE = "Imported by toolwright. Import again to replace this file, or delete this line to keep what you write."
_FIRST_LINES = (f"# {_NOTE}\n", f'{{\n  "x-imported": "{_NOTE}",\n')


def imported(value: Mapping[str, Any], path: str = "", command: str | None = None) -> str:
    """An imported manifest as the text of a file. The first line tells what it is.

    Args:
        value: The manifest.
        path: The file, which is in JSON where its name says so.
        command: What imports it, for the line after the first.
    """
    if path.lower().endswith(".json"):
        head = {"x-imported": _NOTE} if command is None else {"x-imported": _NOTE, "x-command": command}
        text = json.dumps({**head, **value}, indent=2, ensure_ascii=False)
        return HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f"), text) + "\n"
    line = "" if command is None else f"# {''.join(char if char.isprintable() else '?' for char in command)}\n"
    return _FIRST_LINES[0] + line + manifest(value)


def is_imported(text: str) -> bool:
    """Whether a file is as it was imported, so that another import may replace it."""
    return text.startswith(_FIRST_LINES)


def manifest(value: Any) -> str:
    """A manifest as YAML text. Where a text holds what no terminal should get, it is in quotes, and that an escape."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return HIDDEN.sub(lambda match: f"\\U{ord(match[0]):08X}", text)
