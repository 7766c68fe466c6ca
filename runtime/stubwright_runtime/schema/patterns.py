r"""Translates JavaScript regular expressions for the validator.

Escapes from other languages, such as `\Z`, are not translated and are rejected.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from jsonschema_rs import validator_for

from ..values.json import Json

_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED_SCHEMAS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_QUANTIFIER: Final = re.compile(r"\{\d+(?:,\d*)?\}")
_NAMED: Final = re.compile(r"\(\?<(?![=!])([^>]*)>")
_REFERENCE: Final = re.compile(r"\\k<([^>]*)>")
_ESCAPE: Final = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[pPu]\{[^}]*\}|c.|.)", re.DOTALL)
_SETS: Final = frozenset("dDpPsSwW")

_REFERENCES: Final = ("$ref", "$dynamicRef")
_URI: Final = (
    "%#/:?&=@!$'()*+,;~"  # characters that `quote` leaves unencoded, besides letters, digits, `_`, `.` and `-`
)
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def translate_patterns(schema: Json) -> Json:
    """Translate each `pattern`, key of `patternProperties` and reference into the validator's syntax."""
    if isinstance(schema, list):
        return [translate_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _value(key, value) for key, value in schema.items()}


def _value(keyword: str, value: Json) -> Json:
    if keyword == "pattern" and isinstance(value, str):
        return _translate_if_needed(value)
    if keyword in _REFERENCES and isinstance(value, str):
        return quote(_LONE_PERCENT.sub("%25", value), safe=_URI)
    if keyword in _DATA:
        return value
    if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
        is_pattern = keyword == "patternProperties"
        return {
            _translate_if_needed(name) if is_pattern else name: translate_patterns(each) for name, each in value.items()
        }
    return translate_patterns(value)


def _translate_if_needed(pattern: str) -> str:
    try:
        validator_for({"pattern": pattern})
    except ValueError:
        return translate_pattern(pattern)
    return pattern


def translate_pattern(pattern: str) -> str:
    """Translate a regular expression into the validator's syntax."""
    parts: list[str] = []
    groups = _groups(pattern)
    at = 0
    while at < len(pattern):
        if (named := _REFERENCE.match(pattern, at)) is not None and named[1] in groups:
            # A group keeps a following digit out of the number.
            parts.append(f"(?:\\{groups[named[1]]})")
            at = named.end()
        elif (quantifier := _QUANTIFIER.match(pattern, at)) is not None:
            parts.append(quantifier[0])
            at = quantifier.end()
        elif pattern[at] == "[":
            end = _class_end(pattern, at)
            parts.append(_class(pattern[at + 1 : end]) if end < len(pattern) else pattern[at:])
            at = end + 1
        elif pattern[at] == "\\":
            escape = _ESCAPE.match(pattern, at)
            parts.append("\\x00" if _is_zero(pattern, at) else escape[0] if escape else "\\")
            at = escape.end() if escape else at + 1
        else:
            # In JavaScript, a brace without a quantifier is literal (Annex B.1.2).
            parts.append(f"\\{pattern[at]}" if pattern[at] in "{}" else pattern[at])
            at += 1
    return "".join(parts)


def _groups(pattern: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    count = at = 0
    while at < len(pattern):
        if pattern[at] == "[":
            at = _class_end(pattern, at)
        elif pattern[at] == "(" and (pattern[at + 1 : at + 2] != "?" or _NAMED.match(pattern, at)):
            count += 1
            if (named := _NAMED.match(pattern, at)) is not None:
                numbers[named[1]] = count
        at += 2 if pattern[at : at + 1] == "\\" else 1
    return numbers


def _class_end(pattern: str, start: int) -> int:
    """Return the end index of a character class, or of the pattern if the class is not closed."""
    at = start + 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at


def _class(inner: str) -> str:
    """Translate the contents of a character class."""
    negated = "^" if inner.startswith("^") else ""
    atoms: list[str] = re.findall(rf"{_ESCAPE.pattern}|[^\\]", inner[len(negated) :], re.DOTALL)
    if not atoms:
        # In JavaScript, `[^]` matches any character, and `[]` matches none.
        return "[\\s\\S]" if negated else "[^\\s\\S]"
    parts: list[str] = []
    for index, atom in enumerate(atoms):
        beside = (*atoms[max(index - 1, 0) : index], *atoms[index + 1 : index + 2])
        if atom == "-" and any(len(neighbor) > 1 and neighbor[1] in _SETS for neighbor in beside):
            parts.append("\\-")  # a hyphen next to a set such as `\\w` does not form a range
        elif atom in ("\\b", "\\0"):
            parts.append("\\x08" if atom == "\\b" else "\\x00")
        else:
            # The validator supports nested classes and operators such as `&&`, but JavaScript does not.
            parts.append(f"\\{atom}" if atom in ("[", "&", "~") else atom)
    return f"[{negated}{''.join(parts)}]"


def _is_zero(pattern: str, at: int) -> bool:
    return pattern[at + 1 : at + 2] == "0" and not pattern[at + 2 : at + 3].isdigit()
