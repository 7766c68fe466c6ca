"""Converts values to Python source. Manifest text reaches generated code only through this module.

Text cannot terminate its literal, and invisible characters are escaped.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from typing import TYPE_CHECKING

from stubwright.pycode import Code

if TYPE_CHECKING:
    from stubwright.ir import Json

_QUOTE = '"'
_CODING = re.compile("coding[:=]")  # PEP 263: in a file's first two lines, this sets its encoding, for example to UTF-7
_WRITTEN = re.compile(r"""([\"'])(?:\\.|(?!\1)[^\\])*\1""")
_NAMED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def format_literal(value: Json | tuple[Json, ...]) -> Code:
    """Return a one-line expression equal to `value`.

    Args:
        value: A JSON value, or a tuple of JSON values.

    Raises:
        TypeError: The value has another type.
    """
    return Code(_literal(value))


def _literal(value: Json | tuple[Json, ...]) -> str:
    match value:
        case None | bool() | int():
            return repr(value)
        case float():
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        case str():
            return _string(value)
        case list():
            return f"[{', '.join(_literal(item) for item in value)}]"
        case tuple():
            return f"({', '.join(_literal(item) for item in value)}{',' if len(value) == 1 else ''})"
        case dict():
            return f"{{{', '.join(f'{_literal(key)}: {_literal(item)}' for key, item in value.items())}}}"
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


def requote(source: str) -> str:
    """Change a literal's quotes to Black's style: double, unless single quotes save escapes."""
    return _WRITTEN.sub(_as_literal, source) if "'" in source else source


def _as_literal(string: re.Match[str]) -> str:
    text = string[0]
    return text if text[0] == '"' and "\\" not in text else _string(ast.literal_eval(text))


def format_docstring(text: str, indent: int = 0) -> Code:
    """Return a docstring for a line indented by `indent` spaces. The text's lines stay unchanged."""
    lines = [_escape_text(line) for line in inspect.cleandoc(_expand_whitespace(text)).split("\n")]
    body = "\n".join(" " * indent + line if line and number else line for number, line in enumerate(lines))
    body = body.replace('"""', '\\"\\"\\"')
    if len(lines) > 1:
        return Code(f'"""{_before(body)}{body}\n{" " * indent}"""')
    return Code(f'"""{_before(body)}{body}{" " if body.endswith(_QUOTE) else ""}"""')


def format_comment(text: str) -> Code:
    """Return a one-line comment that cannot set the file's encoding."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return Code(f"# {_CODING.sub('coding?', shown)}")


def _string(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(f"\\{char}" if char == quote else _escape_text(char) for char in text) + quote


def _before(body: str) -> str:
    """Return the space that Black inserts before a leading quotation mark or in an empty docstring, or no text."""
    return "" if body and not body.startswith(_QUOTE) else " "


def _expand_whitespace(text: str) -> str:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "\n".join(line.rstrip() for line in plain.split("\n"))


def _escape_text(text: str) -> str:
    return text if text.isprintable() and "\\" not in text else "".join(map(_escape_character, text))


def _escape_character(char: str) -> str:
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if char.isprintable():
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
