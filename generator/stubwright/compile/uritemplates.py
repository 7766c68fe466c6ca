"""URI templates (RFC 6570): the variables of one, and the parts of the standard that servers cannot match.

Takes a template's text; gives its variables in order. Expanding and matching are the protocol library's work; the
compiler does not load it to know a template's variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stubwright.http import VARIABLE as EXPRESSION

_VARIABLE = re.compile(r"(?P<name>[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)(?P<modifier>\*|:[1-9][0-9]{0,3})?")
_OPERATORS = "+#./;?&"
_RESERVED = "=,!@|"


class TemplateError(ValueError):
    """A template is malformed, or cannot be matched against URIs; the message says why, and `fix` what to do."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: `many` says that it holds a list (`{/path*}`), `required` that every URI of the template has it."""

    name: str
    many: bool
    required: bool


@dataclass(frozen=True, slots=True)
class _Expression:
    operator: str
    names: tuple[tuple[str, bool], ...]
    start: int
    end: int


def parse_variables(template: str) -> tuple[Variable, ...]:
    """Return the variables of a template, in order.

    Raises:
        TemplateError: It is malformed (RFC 6570, section 2), or uses what cannot be matched: the prefix modifier
            (`{name:3}`), lists in queries (`{?tags*}`), two variables with nothing between them, or two that can each
            span several segments.
    """
    expressions = list(_expressions(template))
    tail = _query(template, expressions)
    _check_matchable(expressions[:tail])
    by_name: dict[str, Variable] = {}
    for index, expression in enumerate(expressions):
        for name, many in expression.names:
            if name in by_name:
                raise TemplateError(f"it has the variable `{name}` twice", "rename the second one")
            by_name[name] = Variable(name, many, index < tail)
    return tuple(by_name.values())


def _query(template: str, expressions: list[_Expression]) -> int:
    """Return the index at which the expressions begin that are a query at the end, whose variables may be absent."""
    start, end = len(expressions), len(template)
    while start and expressions[start - 1].operator in ("?", "&") and expressions[start - 1].end == end:
        start, end = start - 1, expressions[start - 1].start
    is_query = start < len(expressions) and expressions[start].operator == "?"
    path = EXPRESSION.sub("", template[:end])
    others = {expression.operator for expression in expressions[:start]}
    return start if is_query and not set(path) & set("?#") and not others & set("?#") else len(expressions)


def _expressions(template: str) -> Iterator[_Expression]:
    if stray := re.search(r"[{}]", EXPRESSION.sub("", template)):
        raise TemplateError(f"it has an unmatched `{stray[0]}`", "write each variable in braces: `{city}`")
    for match in EXPRESSION.finditer(template):
        text = match[1]
        operator = text[:1] if text[:1] and text[:1] in _OPERATORS + _RESERVED else ""
        if operator and operator in _RESERVED:
            raise TemplateError(f"`{match[0]}` uses an operator that RFC 6570 reserves", "write `{name}`")
        names = []
        for part in text[len(operator) :].split(","):
            variable = _VARIABLE.fullmatch(part)
            if variable is None:
                raise TemplateError(
                    f"`{match[0]}` is not an expression of RFC 6570",
                    "write names of letters, digits and `_`, such as `{city}`",
                )
            many = variable["modifier"] == "*"
            if variable["modifier"] and not many:
                raise TemplateError(f"`{match[0]}` has a prefix modifier, which servers cannot match", "remove it")
            if many and operator not in ("/", ".", ";"):
                raise TemplateError(f"`{match[0]}` is a list that servers cannot match", "write it as `{/path*}`")
            names.append((variable["name"], many))
        yield _Expression(operator, tuple(names), match.start(), match.end())


def _check_matchable(expressions: list[_Expression]) -> None:
    end, wide = -1, 0
    for expression in expressions:
        for index, (name, many) in enumerate(expression.names):
            is_apart = not many and (index > 0 or expression.operator not in ("", "+"))
            if not is_apart and (index > 0 or expression.start == end):
                raise TemplateError(f"nothing separates `{name}` from the variable before it", "put a `/` between them")
            wide += many or expression.operator in ("+", "#")
        end = expression.end
    if wide > 1:
        raise TemplateError("two of its variables can each span several segments", "keep one of them")
