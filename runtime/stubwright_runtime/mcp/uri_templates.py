"""Parses, expands (RFC 6570) and matches URI templates. Matching takes linear time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST: Final = 65_536
"""The maximum length of a URI that is matched."""

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?P<name>[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)(?P<modifier>\*|:[1-9][0-9]{0,3})?")
_TRIPLET: Final = re.compile(r"(%[0-9A-Fa-f]{2})")
_FUTURE: Final = "=,!@|"
"""Operators that RFC 6570, section 2.2, reserves for extensions."""

_GENERAL: Final = ":/?#[]@!$&'()*+,;="
"""The reserved characters (RFC 3986, section 2.2), which `{+name}` and `{#name}` do not encode."""


@dataclass(frozen=True, slots=True)
class _Operator:
    """A row of the table in RFC 6570, appendix A, with the characters that end a value in a match."""

    first: str
    separator: str
    ends: str
    is_named: bool = False
    if_empty: str = ""
    keeps_reserved: bool = False


_OPERATORS: Final[Mapping[str, _Operator]] = {
    "": _Operator("", ",", "/?#&,"),
    "+": _Operator("", ",", "?#", keeps_reserved=True),
    "#": _Operator("#", ",", "", keeps_reserved=True),
    ".": _Operator(".", ".", "./?#"),
    "/": _Operator("/", "/", "/?#"),
    ";": _Operator(";", ";", ";/?#", is_named=True),
    "?": _Operator("?", "&", "&#", is_named=True, if_empty="="),
    "&": _Operator("&", "&", "&#", is_named=True, if_empty="="),
}


class TemplateError(ValueError):
    """A template is malformed or cannot be matched.

    Attributes:
        fix: How to correct the template.
    """

    def __init__(self, message: str, fix: str) -> None:
        """Create an error from a message and its fix."""
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in a template.

    Attributes:
        name: The variable's name.
        operator: The expression's operator, or an empty string.
        many: Whether the value is a list (`{/path*}`).
    """

    name: str
    operator: str
    many: bool

    @property
    def spans_segments(self) -> bool:
        """True if a value can contain `/`."""
        return self.many or self.operator in ("+", "#")


_Expression: TypeAlias = "tuple[Variable, ...]"
_Part: TypeAlias = "str | Variable"


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A parsed template.

    Attributes:
        variables: The variables, in order.
        optional: The names of variables in a trailing query, which a URI can omit.
    """

    variables: tuple[Variable, ...]
    optional: frozenset[str]
    _pieces: tuple[str | _Expression, ...]
    _before: tuple[_Part, ...]
    """The parts before the variable that spans segments; empty if there is no such variable."""
    _wide: Variable | None
    _after: tuple[_Part, ...]

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Parse a template.

        Raises:
            TemplateError: The template is malformed (RFC 6570, section 2), or uses a construct that cannot be matched:
                the prefix modifier (`{name:3}`), lists in queries (`{?tags*}`), two variables without a separator, or
                two that can each span several segments.
        """
        return _parse(text)

    def expand(self, values: Mapping[str, str | Sequence[str]]) -> str:
        """Return the URI for the variables' values. Missing variables are omitted (RFC 6570, section 3.2.1)."""
        return "".join(
            piece if isinstance(piece, str) else _expand(_OPERATORS[piece[0].operator], piece, values)
            for piece in self._pieces
        )

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the variables' values from a URI, or `None` if the URI does not match.

        Parameters in a trailing query are optional, in any order, and can be mixed with unknown parameters.
        """
        if len(uri) > LONGEST:
            return None
        if not self.optional:
            return self._match_path(uri)
        path, _, query = uri.partition("#")[0].partition("?")
        values = self._match_path(path)
        if values is not None:
            for pair in reversed(query.split("&")):  # the first duplicate wins
                name, _, value = pair.partition("=")
                if name in self.optional:
                    values[name] = unquote(value)
        return values

    def _match_path(self, uri: str) -> dict[str, str | list[str]] | None:
        wide = self._wide
        after = _match_backward(self._after, uri, is_whole=wide is None)
        if after is None:
            return None
        values, end = after
        if wide is None:
            return values if end == 0 else None
        before = _match_forward(self._before, uri, end)
        if before is None:
            return None
        spanned = _read_wide(wide, uri[before[1] : end])
        return None if spanned is None else {**before[0], wide.name: spanned, **values}


@lru_cache(1024)
def _parse(text: str) -> UriTemplate:
    pieces = tuple(_split(text))
    path, query = _split_query(pieces)
    names = [variable.name for piece in pieces if not isinstance(piece, str) for variable in piece]
    if twice := next((name for index, name in enumerate(names) if name in names[:index]), None):
        raise TemplateError(f"it has the variable `{twice}` twice", "rename the second one")
    if sum(not isinstance(piece, str) and piece[0].operator == "?" for piece in pieces) > 1:
        raise TemplateError("it has two queries", "write one, such as `{?from,to}`")
    parts = list(_flatten(path))
    for left, right in pairwise(parts):
        if isinstance(left, Variable) and isinstance(right, Variable):
            message = f"nothing separates `{right.name}` from the variable before it"
            raise TemplateError(message, "put a `/` between them")
    wide = [index for index, part in enumerate(parts) if isinstance(part, Variable) and part.spans_segments]
    if len(wide) > 1:
        raise TemplateError("two of its variables can each span several segments", "remove one")
    variables = tuple(variable for piece in pieces if not isinstance(piece, str) for variable in piece)
    optional = frozenset(variable.name for expression in query for variable in expression)
    if not wide:
        return UriTemplate(variables, optional, pieces, (), None, tuple(parts))
    part = parts[wide[0]]
    if isinstance(part, str):
        raise TypeError(part)
    return UriTemplate(variables, optional, pieces, tuple(parts[: wide[0]]), part, tuple(parts[wide[0] + 1 :]))


def _split(text: str) -> Iterator[str | _Expression]:
    if stray := re.search(r"[{}]", _EXPRESSION.sub("", text)):
        raise TemplateError(f"it has an unmatched `{stray[0]}`", "write each variable in braces: `{city}`")
    for index, piece in enumerate(_EXPRESSION.split(text)):
        if index % 2:
            yield _parse_expression(piece)
        elif piece:
            yield piece


def _parse_expression(text: str) -> _Expression:
    shown = f"`{{{text}}}`"
    operator = text[:1]
    if operator and operator in _FUTURE:
        raise TemplateError(f"{shown} uses an operator that RFC 6570 reserves", "write `{name}`")
    if operator not in _OPERATORS:
        operator = ""
    variables: list[Variable] = []
    for part in text[len(operator) :].split(","):
        found = _VARIABLE.fullmatch(part)
        if found is None:
            fix = "write names of letters, digits and `_`, such as `{city}`"
            raise TemplateError(f"{shown} is not an RFC 6570 expression", fix)
        many = found["modifier"] == "*"
        if found["modifier"] and not many:
            raise TemplateError(f"{shown} has a prefix modifier, which servers cannot match", "remove it")
        if many and operator not in ("/", ".", ";"):
            raise TemplateError(f"{shown} is a list, which servers cannot match", "write it as `{/path*}`")
        variables.append(Variable(found["name"], operator, many))
    return tuple(variables)


def _split_query(
    pieces: tuple[str | _Expression, ...],
) -> tuple[tuple[str | _Expression, ...], tuple[_Expression, ...]]:
    """Return the pieces before a trailing query, and the query's expressions."""
    query: list[_Expression] = []
    for piece in reversed(pieces):
        if isinstance(piece, str) or piece[0].operator not in ("?", "&"):
            break
        query.insert(0, piece)
    path = pieces[: len(pieces) - len(query)]
    has_other = any(
        set(piece) & set("?#") if isinstance(piece, str) else piece[0].operator in ("?", "#") for piece in path
    )
    if not query or query[0][0].operator != "?" or has_other:
        return pieces, ()
    return path, tuple(query)


def _flatten(pieces: Sequence[str | _Expression]) -> Iterator[_Part]:
    """Yield the literals and variables to match. The literals include the operators' separators."""
    literal = ""
    for piece in pieces:
        if isinstance(piece, str):
            literal += piece
            continue
        operator = _OPERATORS[piece[0].operator]
        for index, variable in enumerate(piece):
            if not variable.many:  # a list includes its own separators
                literal += operator.separator if index else operator.first
                if operator.is_named:
                    literal += variable.name + operator.if_empty
            if literal:
                yield literal
            literal = ""
            yield variable
    if literal:
        yield literal


def _match_backward(
    parts: Sequence[_Part], uri: str, *, is_whole: bool
) -> tuple[dict[str, str | list[str]], int] | None:
    """Match parts from the end of a URI, with each variable as short as possible.

    `is_whole` is true if the first part must be at the start of the URI. Return the values and the position of the
    first part, or `None` without a match.
    """
    values: dict[str, str | list[str]] = {}
    end = len(uri)
    for index in reversed(range(len(parts))):
        part = parts[index]
        if isinstance(part, str):
            if not uri.endswith(part, 0, end):
                return None
            end -= len(part)
            continue
        literal = parts[index - 1] if index else ""
        if not isinstance(literal, str):
            raise TypeError(literal)
        ends = _OPERATORS[part.operator].ends
        start: int
        if part.operator == ";":  # `;name` without `=` has an empty value
            if uri.endswith(literal, 0, end):
                values[part.name] = ""
                continue
            first = max(uri.rfind(each, 0, end) for each in ends) + 1
            equals = uri.find("=", first, end)
            if equals < 0:
                return None
            values[part.name] = unquote(uri[equals + 1 : end])
            end = equals
            continue
        if is_whole and index < 2:
            start = len(literal)
        else:
            found = uri.rfind(literal, 0, end)
            if found < 0:
                return None
            start = found + len(literal)
        value = uri[start:end]
        if start > end or _contains(value, ends):
            return None
        values[part.name] = unquote(value)
        end = start
    return values, end


def _match_forward(parts: Sequence[_Part], uri: str, limit: int) -> tuple[dict[str, str | list[str]], int] | None:
    """Match parts from the start of a URI up to a limit, with each variable as short as possible.

    A literal must follow each variable.
    """
    values: dict[str, str | list[str]] = {}
    start = 0
    for part, literal in pairwise((*parts, "")):
        if isinstance(part, str):
            if not uri.startswith(part, start, limit):
                return None
            start += len(part)
            continue
        if not isinstance(literal, str):
            raise TypeError(literal)
        if part.operator == ";":
            if uri.startswith(literal, start):
                values[part.name] = ""
                continue
            if not uri.startswith("=", start, limit):
                return None
            start += 1
        end = uri.find(literal, start, limit)
        value = uri[start:end]
        if end < 0 or _contains(value, _OPERATORS[part.operator].ends):
            return None
        values[part.name] = unquote(value)
        start = end
    return values, start


def _read_wide(variable: Variable, text: str) -> str | list[str] | None:
    """Parse the value of a variable that spans segments. Return `None` if the text is not a valid value."""
    operator = _OPERATORS[variable.operator]
    if not variable.many:
        return None if _contains(text, operator.ends) else unquote(text)
    if not text:
        return []
    if text[0] != operator.separator or _contains(text, operator.ends.replace(operator.separator, "")):
        return None
    values: list[str] = []
    for item in text[1:].split(operator.separator):
        value = item
        if operator.is_named:
            name, _, value = item.partition("=")
            if name != variable.name:
                return None
        values.append(unquote(value))
    return values


def _contains(text: str, characters: str) -> bool:
    return any(each in text for each in characters)


def _expand(operator: _Operator, expression: _Expression, values: Mapping[str, str | Sequence[str]]) -> str:
    items = [
        item for variable in expression for item in _expand_variable(operator, variable, values.get(variable.name))
    ]
    return operator.first + operator.separator.join(items) if items else ""


def _expand_variable(operator: _Operator, variable: Variable, value: str | Sequence[str] | None) -> list[str]:
    """Return the items to which a variable expands: several for a list, and none for a variable without a value."""
    if value is None or (not isinstance(value, str) and not value):
        return []
    each = [value] if isinstance(value, str) else value
    encoded = [_encode(text, keeps_reserved=operator.keeps_reserved) for text in each]
    items = encoded if variable.many else [",".join(encoded)]
    if not operator.is_named:
        return items
    return [f"{variable.name}={item}" if item else variable.name + operator.if_empty for item in items]


def _encode(text: str, *, keeps_reserved: bool) -> str:
    if not keeps_reserved:
        return quote(text, safe="")
    pieces = _TRIPLET.split(text)  # odd pieces are already encoded (RFC 6570, section 3.2.3)
    return "".join(piece if index % 2 else quote(piece, safe=_GENERAL) for index, piece in enumerate(pieces))
