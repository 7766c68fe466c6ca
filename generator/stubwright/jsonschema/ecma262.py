"""Checks patterns against JavaScript's syntax with the `u` flag, which JSON Schema recommends and validators set.

The server's validator is more lenient, like JavaScript without the flag (ECMA-262, Annex B). Newer syntax is rejected.
"""

from __future__ import annotations

import re
from typing import Final

_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|")
_ESCAPABLE: Final = _SYNTAX | {"/"}
_LARGEST: Final = 0x10FFFF
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{([0-9]+)(?:(,)([0-9]*))?\})\??")
_HEX: Final = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]+)\}")
_LOW_HALF: Final = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_NUMBER: Final = re.compile("[1-9][0-9]*")
_NAME: Final = re.compile("k<([^>]+)>")
_GROUP_NAME: Final = re.compile(r"(?:[^\W\d]|\$)[\w$]*")
_NAMED: Final = re.compile(r"\(\?<([^=!>][^>]*)>")
_PROPERTY: Final = re.compile(r"[pP]\{(?:([A-Za-z_]+)=)?([A-Za-z_0-9]+)\}")
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_OF_SCRIPTS: Final = frozenset({"Script", "sc", "Script_Extensions", "scx"})
_OF_CATEGORIES: Final = frozenset({"General_Category", "gc"})
_CATEGORIES_LISTED: Final = """
    C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
    Other Control cntrl Format Unassigned Private_Use Surrogate Letter Cased_Letter Lowercase_Letter
    Modifier_Letter Other_Letter Titlecase_Letter Uppercase_Letter Mark Combining_Mark Spacing_Mark
    Enclosing_Mark Nonspacing_Mark Number Decimal_Number digit Letter_Number Other_Number Punctuation punct
    Connector_Punctuation Dash_Punctuation Close_Punctuation Final_Punctuation Initial_Punctuation
    Other_Punctuation Open_Punctuation Symbol Currency_Symbol Modifier_Symbol Math_Symbol Other_Symbol
    Separator Line_Separator Paragraph_Separator Space_Separator
"""
_CATEGORIES: Final = frozenset(_CATEGORIES_LISTED.split())
_BINARY_LISTED: Final = """
    ASCII AHex ASCII_Hex_Digit Alpha Alphabetic Any Assigned Bidi_C Bidi_Control Bidi_M Bidi_Mirrored CI Cased
    CWCF CWCM CWKCF CWL CWT CWU Case_Ignorable Changes_When_Casefolded Changes_When_Casemapped
    Changes_When_Lowercased Changes_When_NFKC_Casefolded Changes_When_Titlecased Changes_When_Uppercased DI
    Dash Default_Ignorable_Code_Point Dep Deprecated Dia Diacritic EBase EComp EMod EPres Emoji
    Emoji_Component Emoji_Modifier Emoji_Modifier_Base Emoji_Presentation Ext ExtPict Extended_Pictographic
    Extender Gr_Base Gr_Ext Grapheme_Base Grapheme_Extend Hex Hex_Digit IDC IDS IDSB IDST IDS_Binary_Operator
    IDS_Trinary_Operator ID_Continue ID_Start Ideo Ideographic Join_C Join_Control LOE Logical_Order_Exception
    Lower Lowercase Math NChar Noncharacter_Code_Point Pat_Syn Pat_WS Pattern_Syntax Pattern_White_Space QMark
    Quotation_Mark RI Radical Regional_Indicator SD STerm Sentence_Terminal Soft_Dotted Term
    Terminal_Punctuation UIdeo Unified_Ideograph Upper Uppercase VS Variation_Selector White_Space XIDC XIDS
    XID_Continue XID_Start space
"""
_BINARY: Final = frozenset(_BINARY_LISTED.split())
_SCRIPT: Final = re.compile(r"[A-Z][a-z]+(?:_[A-Z]?[a-z]+)*")


class RegexError(Exception):
    """JavaScript rejects a pattern. The message is the rejected part."""


def find_invalid_part(pattern: str) -> str | None:
    """Return the first part of a pattern that JavaScript rejects, or None."""
    try:
        _Reader(pattern).read()
    except RegexError as error:
        return str(error)
    return None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._open: list[bool] = []  # whether each open group is a lookaround
        self._groups = 0
        self._names: set[str] = set()
        self._back_references: list[tuple[str, int]] = []
        self._named_references: list[str] = []

    def read(self) -> None:
        while self._at < len(self._pattern):
            self._read_term()
        if self._open:
            raise RegexError("(")
        # A back-reference may precede its group.
        for text, number in self._back_references:
            if number > self._groups:
                raise RegexError(text)
        for name in self._named_references:
            if name not in self._names:
                raise RegexError(f"\\k<{name}>")

    def _read_term(self) -> None:
        char = self._pattern[self._at]
        self._at += 1
        match char:
            case "|" | "^" | "$":
                self._refuse_quantifier()
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "[":
                self._read_class()
                self._accept_quantifier()
            case "\\" if self._pattern[self._at : self._at + 1] in ("b", "B"):
                self._at += 1
                self._refuse_quantifier()
            case "\\":
                self._read_escape()
                self._accept_quantifier()
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise RegexError(char)
            case _:
                self._accept_quantifier()

    def _open_group(self) -> None:
        rest = self._pattern[self._at :]
        looks_around = rest.startswith(("?=", "?!", "?<=", "?<!"))
        if looks_around:
            self._at += 3 if rest.startswith("?<") else 2
        elif rest.startswith("?:"):
            self._at += 2
        elif rest.startswith("?"):
            named = _NAMED.match(self._pattern, self._at - 1)
            if named is None or not _GROUP_NAME.fullmatch(named[1]) or named[1] in self._names:
                raise RegexError(f"({rest[:2]}" if named is None else named[0])
            self._names.add(named[1])
            self._groups += 1
            self._at = named.end()
        else:
            self._groups += 1
        self._open.append(looks_around)
        self._refuse_quantifier()

    def _close_group(self) -> None:
        if not self._open:
            raise RegexError(")")
        if self._open.pop():
            self._refuse_quantifier()
        else:
            self._accept_quantifier()

    def _refuse_quantifier(self) -> None:
        if match := _QUANTIFIER.match(self._pattern, self._at):
            raise RegexError(self._pattern[self._at - 1 : match.end()])

    def _accept_quantifier(self) -> None:
        match = _QUANTIFIER.match(self._pattern, self._at)
        if match is None:
            return
        low, _, high = match.groups()
        if high and int(low) > int(high):
            raise RegexError(match[0])
        self._at = match.end()
        self._refuse_quantifier()

    def _read_escape(self) -> None:
        if number := _NUMBER.match(self._pattern, self._at):
            self._back_references.append((f"\\{number[0]}", int(number[0])))
            self._at = number.end()
        elif named := _NAME.match(self._pattern, self._at):
            self._named_references.append(named[1])
            self._at = named.end()
        else:
            self._read_character_escape()

    def _read_character_escape(self) -> int | None:
        """Read an escape that is also valid in classes.

        Return the escape's code point, or None for a set of characters.
        """
        char = self._pattern[self._at : self._at + 1]
        following = self._pattern[self._at + 1 : self._at + 2]
        if char in ("x", "u"):
            return self._read_hex()
        if char in ("p", "P"):
            self._read_property()
            return None
        self._at += 1
        if char in _ESCAPABLE:
            return ord(char)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char and char in "dDsSwW":
            return None
        if char == "0" and following not in frozenset("0123456789"):
            return 0
        if char == "c" and following.isascii() and following.isalpha():
            self._at += 1
            return ord(following) % 32
        raise RegexError(f"\\{char}")

    def _read_hex(self) -> int:
        match = _HEX.match(self._pattern, self._at)
        digits = "" if match is None else next(filter(None, match.groups()))
        if match is None or int(digits, 16) > _LARGEST:
            raise RegexError(self._pattern[self._at - 1 : self._at + 1])
        self._at = match.end()
        code = int(digits, 16)
        low = _LOW_HALF.match(self._pattern, self._at)
        # With the `u` flag, the two escapes of a surrogate pair are one character (ECMA-262, 22.2.1).
        if match[2] and 0xD800 <= code <= 0xDBFF and low is not None:
            self._at = low.end()
            return 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return code

    def _read_property(self) -> None:
        match = _PROPERTY.match(self._pattern, self._at)
        if match is None or not _is_property(match[1], match[2]):
            raise RegexError("\\" + (match[0] if match is not None else self._pattern[self._at : self._at + 2]))
        self._at = match.end()

    def _read_class(self) -> None:
        start = self._at - 1
        if self._pattern.startswith("^", self._at):
            self._at += 1
        while not self._pattern.startswith("]", self._at):
            begin = self._at
            low = self._read_member(start)
            if self._pattern.startswith("-", self._at) and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._read_member(start)
                if low is None or high is None or low > high:
                    raise RegexError(self._pattern[begin : self._at])
        self._at += 1

    def _read_member(self, start: int) -> int | None:
        """Read a member of the class that starts at `start`.

        Return the member's code point, or None for a set of characters.
        """
        if self._at >= len(self._pattern):
            raise RegexError(self._pattern[start:])
        char = self._pattern[self._at]
        self._at += 1
        if char != "\\":
            return ord(char)
        following = self._pattern[self._at : self._at + 1]
        if following in ("b", "-"):
            self._at += 1
            return 8 if following == "b" else ord("-")
        return self._read_character_escape()


def _is_property(kind: str | None, value: str) -> bool:
    if kind is None:
        return value in _CATEGORIES or value in _BINARY
    if kind in _OF_CATEGORIES:
        return value in _CATEGORIES
    return kind in _OF_SCRIPTS and _SCRIPT.fullmatch(value) is not None
