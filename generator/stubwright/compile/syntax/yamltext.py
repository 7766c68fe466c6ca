"""Parses YAML into JSON values and token trees.

Scalars follow the YAML 1.2 core schema (section 10.3.2): `on`, `no`, dates and `12:30` are strings. YAML without a JSON
equivalent is rejected: non-string keys, duplicate keys, infinities, tags, merge keys, multiple documents, and aliases
that are cyclic or expand exponentially.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

import yaml

from stubwright.compile.syntax.jsontext import check_number, report_lone_surrogate
from stubwright.compile.syntax.positions import (
    MAX_DEPTH,
    Lines,
    Node,
    Problem,
    find_odd_space,
    report_depth,
    report_duplicate,
    report_empty,
)
from stubwright.diagnostics.suggestions import find_nearest, shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from stubwright.ir import Json

MAX_ALIASED = 100_000
"""Maximum number of values from expanded aliases. A few lines could expand to millions."""

MAX_BASED = 3500
"""Maximum length of a hexadecimal or octal number. The value then has less than `MAX_DIGITS` decimal digits."""


class _PythonLoader(yaml.SafeLoader):
    """A loader that accepts `?` in plain scalars, as in `{a?: string}`, like libyaml (YAML 1.2.2, section 7.3.3)."""

    _plain_start: int | None = None

    def scan_plain(self) -> Any:
        self._plain_start = self.index
        try:
            return super().scan_plain()
        finally:
            self._plain_start = None

    def peek(self, index: int = 0) -> str:
        # Mask a `?` inside a plain scalar, because PyYAML would end the scalar there.
        character = str(super().peek(index))
        is_inside = self._plain_start is not None and self.index + index > self._plain_start
        return "_" if character == "?" and is_inside else character


# without libyaml, PyYAML only has its slower parser
_LOADER: Any = getattr(yaml, "CSafeLoader", _PythonLoader)

_UNPRINTABLE: re.Pattern[str] = yaml.reader.Reader.NON_PRINTABLE
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAPPING_TAG = "tag:yaml.org,2002:map"
_LIST_TAG = "tag:yaml.org,2002:seq"
_STRING_TAGS = {"!", "tag:yaml.org,2002:str"}

# libyaml rejects escaped surrogates, even in pairs. Private use escapes, which differ in one letter, replace them
# while parsing; afterwards the values are restored.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD](?=[89a-fA-F][0-9a-fA-F]{2})")
_STAND_IN = re.compile(r"\\u[eE](?=[89a-fA-F][0-9a-fA-F]{2})")
_STAND_IN_CHARACTER = re.compile("[\ue800-\uefff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_CHECK_INDENTATION = "check the indentation, and quote text that contains quotes, `:` or `#`"
_SYNTAX: Final = {  # part of libyaml's message: whether to use its context's position, our message, and the fix
    "mapping values are not allowed": (False, "a mapping cannot start at this `:`", _CHECK_INDENTATION),
    "found unknown escape": (False, "unknown escape in YAML", "use single quotes, or double the backslash"),
    "expected ',' or '}'": (True, "this `{` is not closed, or a comma is missing in it", "close it with `}`"),
    "expected ',' or ']'": (True, "this `[` is not closed, or a comma is missing in it", "close it with `]`"),
    "expected '-'": (False, "a list item should start here", "start it with `- `, or check the indentation"),
    "did not find expected key": (False, "expected a key", _CHECK_INDENTATION),
    "could not find expected ':'": (True, "a `:` is missing after this key", _CHECK_INDENTATION),
    "found undefined tag handle": (False, "unknown tag", "remove the tag"),
    "found incompatible YAML document": (False, "unknown version of YAML", "remove the `%YAML` line"),
    "did not find expected node content": (False, "a value is missing here", "write one, and close each bracket"),
    "found a tab character": (False, "YAML cannot be indented with tabs", "indent with spaces"),
}


def parse(text: str, *, any_keys: bool = False) -> tuple[Json, list[Problem]]:
    """Parse YAML. Return the value, which is None if the YAML is invalid, and the problems.

    `any_keys` converts plain keys that are numbers, booleans or null to strings, such as `200:` in OpenAPI.
    """
    if not _SURROGATE_ESCAPE.search(text):
        try:
            return _parse_fast(text, any_keys=any_keys), []
        except (_NeedsBuilderError, yaml.YAMLError):  # the builder reports the position
            pass
    builder = _read(text, any_keys=any_keys)
    return (None if builder.problems else builder.value), builder.problems


def read_lenient(text: str, *, any_keys: bool = False) -> Json:
    """Parse YAML and ignore errors if possible: the last duplicate key wins, and `<<` is an ordinary key."""
    return _read(text, any_keys=any_keys).value


def parse_tree(text: str) -> Node:
    """Parse YAML into a token tree, up to the first syntax error."""
    return _read(text).root


class _NeedsBuilderError(ValueError):
    """The text is invalid or has tags or anchors, so the slower builder must parse it."""


def _parse_fast(text: str, *, any_keys: bool) -> Json:
    """Parse valid YAML without tags and anchors, at more than twice the builder's speed.

    Raises:
        _NeedsBuilderError: The text must be parsed by the builder.
        yaml.YAMLError: The text is invalid.
    """
    next_event: Callable[[], Any] = _LOADER(text).get_event
    next_event()  # the start of the stream
    if type(next_event()) is not yaml.DocumentStartEvent:
        raise _NeedsBuilderError
    value = _build(next_event(), next_event, any_keys, 0)
    next_event()  # the end of the document
    if type(next_event()) is not yaml.StreamEndEvent:
        raise _NeedsBuilderError
    return value


def _build(event: Any, next_event: Callable[[], Any], any_keys: bool, depth: int) -> Json:
    """Build the value that starts with `event`. `next_event` returns the following events."""
    if event.anchor is not None or event.tag is not None:  # aliases also have an anchor
        raise _NeedsBuilderError
    if type(event) is yaml.ScalarEvent:
        return event.value if event.style else _resolve_scalar(event.value)
    if depth == MAX_DEPTH:
        raise _NeedsBuilderError
    if type(event) is yaml.SequenceStartEvent:
        items: list[Json] = []
        while type(event := next_event()) is not yaml.SequenceEndEvent:
            items.append(_build(event, next_event, any_keys, depth + 1))
        return items
    entries: dict[str, Json] = {}
    while type(event := next_event()) is not yaml.MappingEndEvent:
        if type(event) is not yaml.ScalarEvent or event.anchor is not None or event.tag is not None:
            raise _NeedsBuilderError
        key = event.value if event.style or any_keys else _resolve_scalar(event.value)
        if type(key) is not str or key in entries or (key == "<<" and not event.style):
            raise _NeedsBuilderError
        entries[key] = _build(next_event(), next_event, any_keys, depth + 1)
    return entries


@cache
def _resolve_scalar(text: str) -> Json:
    """Resolve a plain scalar per the core schema. Raises _NeedsBuilderError for a scalar without a JSON equivalent."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    # anything else is a string, so most scalars skip the patterns (`<` is for `<<`)
    if text[0] not in "+-.0123456789<":
        return text
    if _FLOAT.fullmatch(text):
        if any(check_number(text, 0, 0)):
            raise _NeedsBuilderError
        return int(text) if _INT.fullmatch(text) else float(text)
    if _BASED.fullmatch(text) and len(text) <= MAX_BASED:
        return int(text, 0)
    if text == "<<" or _BASED.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        raise _NeedsBuilderError
    return text


def _read(text: str, *, any_keys: bool = False) -> _Builder:
    masked = bool(_SURROGATE_ESCAPE.search(text))
    builder = _Builder(text, masked=masked, any_keys=any_keys)
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        at = unprintable.start()
        message = f"the character U+{ord(text[at]):04X} is not allowed in YAML"
        fix = 'remove it, or write it as an escape in double quotes, such as "\\u0007"'
        builder.report("SW004", message, at, at + 1, fix)
    elif masked and (_STAND_IN.search(text) or _STAND_IN_CHARACTER.search(text)):
        at = builder.surrogate_at
        message = "surrogate escapes are not supported in a text with characters from U+E800 to U+EFFF"
        builder.report("SW004", message, at, at + 6, "write the character itself, or `\\U` and eight digits")
    else:
        fed = _SURROGATE_ESCAPE.sub(lambda match: _swap_escape(match[0]), text) if masked else text
        try:
            _run(builder, fed, _LOADER)
        except _TooDeepError:
            builder = _Builder(text, masked=masked, any_keys=any_keys)
            _run(builder, fed, yaml.SafeLoader)
    return builder


class _TooDeepError(Exception):
    """The text is nested too deeply for libyaml, which does not report a position."""


def _run(builder: _Builder, text: str, loader: Any) -> None:
    try:
        for event in yaml.parse(text, Loader=loader):
            if not builder.handle(event):
                return
    except yaml.MarkedYAMLError as error:
        if loader is not yaml.SafeLoader and "nesting depth" in str(error.problem):
            raise _TooDeepError from error
        builder.problems.append(_report_syntax(text, error))
    except yaml.YAMLError as error:
        builder.report("SW004", f"this is not YAML: {shorten(str(error), 120)}", 0, 1)


@dataclass(slots=True)
class _Frame:
    """An open container. `size` and `height` count values and levels after alias expansion."""

    value: dict[str, Json] | list[Json]
    node: Node
    anchor: str | None
    key: tuple[str | None, Node] | None = None
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchor:
    value: Json
    node: Node
    size: int
    height: int


class _Builder:
    """Builds values and tokens from parser events, without recursion."""

    def __init__(self, text: str, *, masked: bool, any_keys: bool) -> None:
        self.value: Json = None
        self.root = Node(0, 0)
        self.problems: list[Problem] = []
        self._text = text
        self._masked = masked
        self._any_keys = any_keys
        self._stack: list[_Frame] = []
        self._anchors: dict[str, _Anchor | None] = {}  # None while the anchored container is open
        self._documents = 0
        self._aliased = 0
        self._handlers: dict[type[yaml.Event], Callable[[Any], bool]] = {
            yaml.DocumentStartEvent: self._start_document,
            yaml.ScalarEvent: self._add_scalar,
            yaml.MappingStartEvent: self._open,
            yaml.SequenceStartEvent: self._open,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
            yaml.StreamEndEvent: self._end_stream,
        }

    @property
    def surrogate_at(self) -> int:
        match = _SURROGATE_ESCAPE.search(self._text)
        return match.start() if match else 0

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._text)

    def report(self, code: str, message: str, start: int, end: int, fix: str | None = None) -> None:
        self.problems.append(Problem(code, message, start, end, fix))

    def handle(self, event: yaml.Event) -> bool:
        handler = self._handlers.get(type(event))
        return handler is None or handler(event)

    def _start_document(self, event: yaml.DocumentStartEvent) -> bool:
        self._documents += 1
        if self._documents > 1:
            start, _ = _offsets(event)
            self.report(
                "SW009",
                "a second YAML document starts here",
                start,
                start + 3,
                "move it to its own file, and add the file to `include`",
            )
        return self._documents == 1

    def _end_stream(self, _event: yaml.StreamEndEvent) -> bool:
        if not self._documents:
            self.problems.append(report_empty("the file contains only comments"))
        return False

    def _add_scalar(self, event: yaml.ScalarEvent) -> bool:
        start, end = _offsets(event)
        node = Node(start, end)
        is_plain = event.style is None or event.style == ""
        if event.tag is None and is_plain:
            value = self._check_scalar(event.value, start, end)
        else:
            value = event.value
            if event.tag is not None and event.tag not in _STRING_TAGS:
                self._refuse_tag(event.tag, start)
        if self._masked and isinstance(value, str):
            value = _unmask(value)
            if _SURROGATE.search(value):
                self.problems.append(report_lone_surrogate(start, end))
        self._add(value, node)
        if event.anchor:
            self._anchors[event.anchor] = _Anchor(value, node, 1, 0)
        return True

    def _check_scalar(self, text: str, start: int, end: int) -> Json:
        """Resolve a plain scalar per the core schema. Report a scalar without a JSON equivalent."""
        try:
            return _resolve_scalar(text)
        except _NeedsBuilderError:
            if text == "<<":
                self.report("SW009", "merge keys (`<<`) are not part of YAML 1.2", start, end, "write out the entries")
                return text
            if _BASED.fullmatch(text):
                self.report("SW007", "this number has too many digits", start, end, "write it as a string")
            elif _NOT_FINITE.fullmatch(text):
                fix = "JSON only has finite numbers; quote it if it is a string"
                self.report("SW007", f"`{text}` is not a JSON value", start, end, fix)
                return float(text.replace(".", ""))
            self.problems += check_number(text, start, end) if _FLOAT.fullmatch(text) else ()
            return None

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> bool:
        start, _ = _offsets(event)
        node = Node(start, start, {}, flow=bool(event.flow_style))
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        value: dict[str, Json] | list[Json] = {} if is_mapping else []
        if event.tag is not None and event.tag != (_MAPPING_TAG if is_mapping else _LIST_TAG):
            self._refuse_tag(event.tag, start)
        self._add(value, node)
        self._stack.append(_Frame(value, node, event.anchor))
        if event.anchor:
            self._anchors[event.anchor] = None
        if len(self._stack) > MAX_DEPTH:
            self.problems.append(report_depth(start, start + 1))
            return False
        return True

    def _close(self, event: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> bool:
        frame = self._stack.pop()
        _, frame.node.end = _offsets(event)
        if frame.anchor:
            self._anchors[frame.anchor] = _Anchor(frame.value, frame.node, frame.size, frame.height)
        if self._stack:
            parent = self._stack[-1]
            parent.size += frame.size
            parent.height = max(parent.height, frame.height + 1)
        return True

    def _alias(self, event: yaml.AliasEvent) -> bool:
        start, end = _offsets(event)
        if event.anchor not in self._anchors:
            near = find_nearest(str(event.anchor), list(self._anchors))
            fix = f"did you mean `*{near}`?" if near else f"put `&{event.anchor}` before its value"
            self.report("SW004", f"the anchor `&{event.anchor}` is not defined before this alias", start, end, fix)
            self._add(None, Node(start, end))
            return True
        target = self._anchors[event.anchor]
        if target is None:
            self.report(
                "SW009",
                f"the alias `*{event.anchor}` is inside its own anchor",
                start,
                end,
                "use `$ref` in schemas",
            )
            return False
        self._aliased += target.size
        if self._aliased > MAX_ALIASED:
            message = f"aliases expand to more than {MAX_ALIASED:,} values up to here"
            self.report("SW008", message, start, end, "use `$ref` in schemas")
            return False
        if len(self._stack) + target.height > MAX_DEPTH:
            self.problems.append(report_depth(start, end))
            return False
        self._add(target.value, Node(start, end, target.node.children, flow=True))
        if self._stack:
            parent = self._stack[-1]
            parent.size += target.size
            parent.height = max(parent.height, target.height + 1)
        return True

    def _add(self, value: Json, node: Node) -> None:
        if not self._stack:
            self.value, self.root = value, node
            return
        parent = self._stack[-1]
        children = parent.node.children
        if children is None:
            raise AssertionError("only containers are pushed")
        if isinstance(parent.value, list):
            children[len(parent.value)] = (None, node)
            parent.value.append(value)
        elif parent.key is None:
            parent.key = (self._check_key(parent, value, node), node)
        else:
            name, key_node = parent.key
            parent.key = None
            if name is not None:
                children[name] = (key_node, node)
                parent.value[name] = value

    def _check_key(self, parent: _Frame, value: Json, node: Node) -> str | None:
        if self._any_keys and not isinstance(value, (str, dict, list)):
            value = self._text[node.start : node.end]
        if not isinstance(value, str):
            text = shorten(self._text[node.start : node.end])
            if isinstance(value, (dict, list)):
                fix = "quote it if it is text"
                message = f"a key must be a string, not a {'mapping' if isinstance(value, dict) else 'list'}"
            elif not text:
                message, fix = (
                    "a key is missing before this `:`",
                    "write one, or put text that starts with `:` in quotes",
                )
            else:
                kind = "`null`" if value is None else "a boolean" if isinstance(value, bool) else "a number"
                message, fix = f"a key must be a string, and `{text}` is {kind}", f'quote it: `"{text}"`'
            self.report("SW006", message, node.start, node.end, fix)
            return None
        first = (parent.node.children or {}).get(value)
        if first is not None and first[0] is not None:
            line, _ = self._lines.find_position(first[0].start)
            self.problems.append(report_duplicate(value, line, node))
        return value

    def _refuse_tag(self, tag: str, start: int) -> None:
        shown = tag.replace("tag:yaml.org,2002:", "!!")
        message = f"the tag `{shorten(shown)}` is not supported"
        self.report("SW009", message, start, start + 1, "write the value without a tag")


def _offsets(event: yaml.Event) -> tuple[int, int]:
    if event.start_mark is None or event.end_mark is None:
        raise AssertionError("parser events always have marks")
    return event.start_mark.index, event.end_mark.index


def _swap_escape(escape: str) -> str:
    return escape[:2] + {"d": "e", "D": "E", "e": "d", "E": "D"}[escape[2]]


def _unmask(value: str) -> str:
    """Restore surrogates that `_swap_escape` replaced, and join surrogate pairs."""
    literal = _STAND_IN.sub(lambda match: _swap_escape(match[0]), value)
    raw = _STAND_IN_CHARACTER.sub(lambda match: chr(ord(match[0]) - 0x1000), literal)
    return raw.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_ODD_SPACE: Final = re.compile(r"(?:^|[-:,?\[\]{}])[ \t]*[^ \t\S]", re.MULTILINE)
"""An unusual space at the start of a line or after punctuation. Between words, the space could be intentional."""

_UNQUOTED_REFERENCE: Final = re.compile(r"""(\$ref["']?:[ \t]+)(#/[^\s,}\]]*)""")


def _find_commented_reference(text: str, before: int) -> Problem | None:
    """Return a problem for the last unquoted reference before the offset `before`, which YAML parses as a comment."""
    comments = [*_UNQUOTED_REFERENCE.finditer(text, 0, before)]
    if not comments:
        return None
    fix = f'quote the reference: `$ref: "{shorten(comments[-1][2])}"`'
    start, end = comments[-1].span(2)
    return Problem("SW004", "a `#` after a space starts a comment: the rest of this line is ignored", start, end, fix)


def _report_syntax(text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    at: int = mark.index if mark is not None else 0
    words = f"{error.context or ''} {error.problem or ''}".strip()
    if "flow" in words and (commented := _find_commented_reference(text, at)) is not None:
        return commented
    first = at if error.context_mark is None else min(at, error.context_mark.index)
    for match in _ODD_SPACE.finditer(text, text.rfind("\n", 0, first) + 1, at + 1):
        if (odd := find_odd_space(text, match.end() - 1)) is not None:
            return odd
    char = text[at : at + 1]
    if "unexpected end of stream" in words and error.context_mark is not None:
        at = error.context_mark.index
        return Problem("SW004", "this quote is not closed", at, at + 1, f"close it with `{text[at : at + 1]}`")
    if "cannot start any token" in words:
        if char == "\t":
            return Problem("SW004", "YAML cannot be indented with tabs", at, at + 1, "indent with spaces")
        return Problem("SW004", f"a value cannot start with `{char}`", at, at + 1, "quote the value")
    for part, (in_context, message, fix) in _SYNTAX.items():
        if part in words:
            if in_context and error.context_mark is not None:
                at = error.context_mark.index
            return Problem("SW004", message, at, at + 1, fix)
    return Problem("SW004", f"this is not YAML: {shorten(words, 120)}", at, at + 1, _CHECK_INDENTATION)
