"""Redacts secrets in recorded messages, without changing messages on the wire.

Once a value was redacted by name or by a manifest, it is redacted everywhere.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from html.entities import codepoint2name
from typing import Any, Final
from urllib.parse import quote

from stubwright.importers.contracts.secrets import hide_tokens
from stubwright_runtime.observability.logs import redact_jwts
from stubwright_runtime.observability.redaction import REDACTED, Secret, redact
from stubwright_runtime.values.text import split_pointer

_SHORTEST: Final = 4
"""The minimum length of a secret; shorter values match parts of words by chance."""

_VOCABULARY: Final = """
jsonrpc method params result error code message data name title description arguments content structuredContent isError
type role user assistant text image audio resource resource_link mimeType blob contents messages resultType complete
input_required level debug info notice warning critical alert emergency object array string number integer boolean null
true false tools resources prompts properties required
"""
_WORDS: Final = frozenset(_VOCABULARY.split())
"""MCP and JSON Schema words, which are redacted only where they are the secret value itself."""

_SHORTEST_BASE64: Final = 8
"""The minimum length of base64 to search for within longer base64; shorter strings match by chance."""

_LONGEST_ENCODED: Final = 4096
"""The maximum length of a secret to search for in base64 and hex; longer values are not keys or passwords."""

_LONGEST_ESCAPED: Final = 512
"""The maximum length of a secret to search for with individually escaped characters, to limit the pattern's cost."""

_ESCAPE: Final = re.compile(r"[%\\=&]")
"""The characters that start an escape sequence."""

_LETTERS: Final = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
"""Characters that JSON escapes with a letter (RFC 8259, 7)."""

_REPEATED: Final = "{1,8}"
"""The repetitions of a backslash: three levels of nested JSON double it three times."""

_UNITS: Final = re.compile(r"\\+|[^\\]", re.DOTALL)

_SOFT_BREAK: Final = r"(?:=\r?\n)?"
"""A line break that quoted-printable inserts (RFC 2045, 6.7)."""

# Possessive and anchored at the start of a word, to avoid quadratic time for long lines.
_WRAPPED: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+(?:\r?\n[A-Za-z0-9+/_-]++=*+)+")
"""Base64 or hex split into lines, such as 76 characters in MIME (RFC 2045, 6.8) and 64 in PEM."""

_PERCENT: Final = re.compile("%[0-9A-F]{2}")
_PARTS: Final = re.compile(re.escape(REDACTED))


class Redactor:
    """Redacts one run's messages."""

    def __init__(
        self, names: Iterable[str] = (), secrets: Iterable[str] = (), tools: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Set the secrets.

        Args:
            names: Property names, case-insensitive.
            secrets: Secret values.
            tools: JSON Pointers to arguments to redact, keyed by tool name.
        """
        self._names = frozenset(name.casefold() for name in names)
        self._tools = tools or {}
        self._secrets: dict[str, _Forms] = {}
        self.add_secrets(secrets)

    def add_secrets(self, texts: Iterable[str]) -> None:
        """Add secrets; the longest are replaced first, since a shorter one can be a prefix."""
        new = {text for text in texts if len(text) >= _SHORTEST and text not in _WORDS and text != REDACTED}
        if new <= self._secrets.keys():
            return
        self._secrets |= {text: _Forms(text) for text in new - self._secrets.keys()}
        self._secrets = dict(sorted(self._secrets.items(), key=lambda item: -len(item[0])))

    def redact(self, message: Any, *, lists: bool = False) -> Any:
        """Return a copy of a message without secrets.

        Args:
            message: A JSON-RPC message.
            lists: True if it contains the server's lists. Their schemas have property names but no values.
        """
        message = self._redact_arguments(message)
        if self._names and not lists:
            message = self._redact_names(message, schemas=_is_question(message))
        masked = self._mask(message)
        if isinstance(message, dict) and isinstance(message.get("id"), int):
            masked["id"] = message["id"]  # links a response to its request
        return masked

    def _mask(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._mask_text(_change_json(value, self._mask))
        if isinstance(value, list):
            return [self._mask(item) for item in value]
        if isinstance(value, dict):
            return {self._mask_text(key): self._mask(item) for key, item in value.items()}
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return REDACTED if is_number and json.dumps(value) in self._secrets else value

    def _mask_text(self, text: str) -> str:
        text = self._mask_forms(text)
        if "\n" in text:
            text = _WRAPPED.sub(self._mask_lines, text)
        return hide_tokens(redact_jwts(text, REDACTED), REDACTED)

    def _mask_forms(self, text: str) -> str:
        for forms in self._secrets.values():
            text = forms.replace(text)
        return text

    def _mask_lines(self, lines: re.Match[str]) -> str:
        """Join lines to redact secrets that continue on the next line. Return lines without secrets unchanged."""
        joined = "".join(lines[0].split())
        masked = self._mask_forms(joined)
        return lines[0] if masked == joined else masked

    def _redact_arguments(self, message: Any) -> Any:
        if not isinstance(message, dict) or message.get("method") != "tools/call":
            return message
        params = message.get("params")
        arguments = params.get("arguments") if isinstance(params, dict) else None
        pointers = self._tools.get(str(params.get("name"))) if isinstance(params, dict) else None
        if not pointers or not isinstance(params, dict) or not isinstance(arguments, dict):
            return message
        for pointer in pointers:
            self.add_secrets(_list_texts(_follow(arguments, split_pointer(pointer))))
        return {**message, "params": {**params, "arguments": redact(arguments, pointers)}}

    def _redact_names(self, value: Any, *, schemas: bool = False) -> Any:
        """Redact the values of properties with redacted names. With `schemas`, leave form schemas unchanged."""
        if isinstance(value, dict):
            return {key: self._redact_property(key, item, schemas) for key, item in value.items()}
        if isinstance(value, list):
            return [self._redact_names(item, schemas=schemas) for item in value]
        return _change_json(value, self._redact_names) if isinstance(value, str) else value

    def _redact_property(self, name: str, value: Any, schemas: bool) -> Any:
        if schemas and name == "requestedSchema":
            return value
        if name.casefold() not in self._names or value is None:
            return self._redact_names(value, schemas=schemas)
        self.add_secrets(_list_texts(value))
        return REDACTED


def list_parts(credentials: str) -> Iterator[str]:
    """Yield a header's value with and without its scheme, and the password in Basic credentials (RFC 7617)."""
    token = credentials.rpartition(" ")[2]
    yield from (credentials, token)
    if credentials[:6].lower() == "basic ":
        with suppress(ValueError):
            pair = base64.b64decode(token, validate=True)
            for encoding in ("utf-8", "latin-1"):  # the scheme does not specify which
                with suppress(UnicodeDecodeError):
                    text = pair.decode(encoding)
                    yield from (text, text.partition(":")[2])  # the user is not secret, and often a common word


@dataclass(frozen=True, eq=False)
class _Forms:
    """The forms of a secret to search for, computed on first use."""

    text: str

    def replace(self, text: str) -> str:
        for form in self.texts:
            text = text.replace(form, REDACTED)
        if len(self.text) <= _LONGEST_ESCAPED and _ESCAPE.search(text):
            text = self.pattern.sub(REDACTED, text)
        return text

    @cached_property
    def texts(self) -> Sequence[str]:
        """The whole secret: plain, escaped, in base64 and in hex, longest first."""
        forms = {*Secret(self.text).forms}
        if len(self.text) <= _LONGEST_ENCODED:
            data = self.text.encode("utf-8", "surrogatepass")
            forms |= {data.hex(), data.hex().upper()}
            for form in _list_base64(data):
                escaped = quote(form, safe="")
                forms |= {form, form.replace("/", "\\/"), escaped, _PERCENT.sub(lambda code: code[0].lower(), escaped)}
        return sorted(forms, key=lambda form: (-len(form), form))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The secret as a pattern in which any character can be escaped in any way."""
        return re.compile(_SOFT_BREAK.join(map(_match_escaped, _UNITS.findall(self.text))))


def _match_escaped(unit: str) -> str:
    """Return a regular expression for a character, plain or escaped (URL, JSON, e-mail, HTML).

    A backslash can be repeated, since JSON is often a string within JSON.

    Args:
        unit: The character, or a run of backslashes, whose escapes are ambiguous.
    """
    character, count = unit[0], len(unit)
    code = ord(character)
    codes = [_match_hex(f"{byte:02x}") for byte in character.encode("utf-8", "surrogatepass")]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        re.escape(character),
        "".join(f"%{byte}" for byte in codes),
        _SOFT_BREAK.join(f"={byte}" for byte in codes),
        "".join(rf"\\{_REPEATED}x{byte}" for byte in codes),
        "".join(rf"\\{_REPEATED}u{_match_hex(units[at : at + 4])}" for at in range(0, len(units), 4)),
        f"&#(?:0{{,4}}{code}|[xX]0{{,4}}{_match_hex(f'{code:x}')});",
    ]
    if character == " ":
        forms.append(r"\+")
    if character in _LETTERS:
        forms.append(rf"\\{_REPEATED}{_LETTERS[character]}")
    if character in "\"'/":
        forms.append(rf"\\{_REPEATED}{character}")
    if (name := codepoint2name.get(code)) is not None:
        forms.append(f"&{name};")
    if character == "\\":
        return rf"(?:\\{{{count},{8 * count}}}|(?:{'|'.join(forms[1:])}){{{count}}})"
    return f"(?:{'|'.join(forms)})"


def _match_hex(digits: str) -> str:
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


def _list_base64(data: bytes) -> Iterator[str]:
    """Yield the base64 of `data` in both alphabets.

    Also yield the part that is the same at every offset in longer data.
    """
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode().rstrip("=")
        for before in range(3):  # three bytes become four characters
            length = before + len(data)
            text = encode(bytes(before) + data).decode()
            part = text[-(-before * 8 // 6) : length * 8 // 6]
            if len(part) >= _SHORTEST_BASE64:
                yield part


def matches(recorded: Any, sent: Any) -> bool:
    """Return whether a value could equal the recorded one; redacted values match any value."""
    if recorded == REDACTED:
        return True
    if isinstance(recorded, str) and REDACTED in recorded:
        pattern = ".*".join(re.escape(part) for part in _PARTS.split(recorded))
        return isinstance(sent, str) and re.fullmatch(pattern, sent, re.DOTALL) is not None
    if isinstance(recorded, dict) and isinstance(sent, dict):
        return recorded.keys() == sent.keys() and all(matches(value, sent[key]) for key, value in recorded.items())
    if isinstance(recorded, list) and isinstance(sent, list):
        return len(recorded) == len(sent) and all(map(matches, recorded, sent))
    return type(recorded) is type(sent) and bool(recorded == sent)


def _is_question(message: Any) -> bool:
    """Return whether a message asks the user to fill in a form. The form's schema has property names but no values."""
    if not isinstance(message, dict):
        return False
    result = message.get("result")
    is_round = isinstance(result, dict) and result.get("resultType") == "input_required"
    return is_round or message.get("method") == "elicitation/create"


def _change_json(text: str, change: Callable[[Any], Any]) -> str:
    """Apply a change to a string that contains JSON, such as the text in a tool's result.

    Return other strings unchanged.
    """
    if text[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(text)
        changed = change(value)
        return text if changed == value else json.dumps(changed, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _follow(value: Any, way: Sequence[str]) -> Any:
    for step in way:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _list_texts(value: Any) -> Iterator[str]:
    """Yield the strings and numbers in a secret value, but not its objects' keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _list_texts(item)
