# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""Whether a value is valid under a tool's schema, and if not, why, in words that a model can act on.

Takes a JSON Schema of any dialect from draft-04 to 2020-12 and a JSON value; gives one line for each violation. The
schema decides, never a Python model. It fetches nothing, and a regular expression that would run for ever is a
violation instead of a hang.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from jsonschema_rs import FancyRegexOptions, ValidationError, ValidationErrorKind, validator_for

from .expressions import translated
from .instances import located, told
from .texts import steps

if TYPE_CHECKING:
    import jsonschema_rs

    from .tools import Tool

_BACKTRACKS: Final = 100_000
"""Steps of one match, about 2 ms; expressions without look-around and back-references need none."""

_SHOWN: Final = 10
_BIG: Final = 100_000  # characters of JSON; above it one violation is told, since finding all may take seconds
_WIDTH: Final = 60

Path = tuple[str | int, ...]


@cache
def input_validator(tool: Tool) -> Validator:
    """The validator of the tool's arguments, compiled at the first call and kept."""
    return Validator(tool.definition["inputSchema"], formats=tool.asserts_formats, redact=tool.redacted)


@cache
def output_validator(tool: Tool) -> Validator | None:
    """The validator of the tool's result, compiled at the first call and kept; `None` without an `outputSchema`."""
    schema = tool.definition.get("outputSchema")
    return None if schema is None else Validator(schema, formats=tool.asserts_formats)


def compiled(schema: Any, *, formats: bool) -> jsonschema_rs.Validator:
    """The library's validator of a schema, whose patterns are put into other words where it does not take them.

    Raises:
        ValueError: The schema is not valid in its dialect, or refers to what it does not hold.
    """
    options = FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    compile_ = partial(validator_for, validate_formats=formats, pattern_options=options, offline=True)
    try:
        return compile_(schema)
    except ValueError:
        said = translated(schema)
        if said == schema:
            raise
        return compile_(said)


class Validator:
    """One schema, compiled."""

    def __init__(self, schema: Any, *, formats: bool = False, redact: Sequence[str] = ()) -> None:
        """Compile a schema.

        Args:
            schema: In the dialect that its `$schema` names, by default 2020-12.
            formats: Whether `format` is checked; else it is an annotation (JSON Schema 2020-12, Validation, 7.2).
            redact: JSON Pointers to values that are never shown.

        Raises:
            ValueError: The schema is not valid in its dialect, or refers to what it does not hold.
        """
        self._schema = schema
        self._redacted = [told(steps(pointer)) for pointer in redact]
        self._validator = compiled(schema, formats=formats)

    def violations(self, value: Any, root: str = "arguments", *, size: int | None = None) -> list[str]:
        """What is wrong with `value`: one line each, at most ten and one that counts the rest; none where it is valid.

        Args:
            value: What `json.loads` gives.
            root: What to call the value itself.
            size: How large it is as JSON, in bytes or characters, where that is known, and so that it is JSON.
        """
        if size is None:
            try:
                size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
            except UnicodeEncodeError:
                return [f"{root}: holds half of a surrogate pair, which is no character"]
            except RecursionError:
                return [f"{root}: is nested too deeply"]
            except (TypeError, ValueError) as error:
                return [self._strange(value, error, root)]
        if self._validator.is_valid(value):
            return []
        lines = list(
            dict.fromkeys(line for error in self._errors(value, size) for line in self._lines(error, value, root))
        )
        if len(lines) > _SHOWN:
            return [*lines[:_SHOWN], f"… and {len(lines) - _SHOWN} more"]
        return lines

    def _strange(self, value: Any, error: Exception, root: str) -> str:
        """The line for a value that is not JSON."""
        try:
            path, stray = next(_strays(value))
        except (RecursionError, StopIteration):  # it holds itself, or has keys that are no strings
            return f"{root}: is not JSON: {error}"
        shown = str(stray) if isinstance(stray, float) else f"a value of type {type(stray).__name__}"
        return f"{self._place(path, root)}: expected a JSON value, got {shown}"

    def _errors(self, value: Any, size: int) -> Iterable[ValidationError]:
        if size <= _BIG:
            return self._validator.iter_errors(value)
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return (error,)
        return ()

    def _lines(self, error: ValidationError, value: Any, root: str) -> Iterator[str]:
        """The lines for one error: several where it names several keys, or one alternative was clearly meant."""
        path, _ = located(error, value)
        match error.kind:
            case ValidationErrorKind.Required(name):
                if self._hidden(path):
                    yield f"{self._place(path, root)}: a required key is missing in it"
                else:
                    yield f"{self._place((*path, name), root)}: required, but missing{self._written(error, name)}"
            case ValidationErrorKind.AdditionalProperties(names) | ValidationErrorKind.UnevaluatedProperties(names):
                known = self._known(error)
                if self._hidden(path):
                    yield f"{self._place(path, root)}: not all of its keys are known"
                    return
                for number, name in enumerate(names):
                    near = _nearest(name, known) if number < _SHOWN else None
                    hint = f"; did you mean {_quoted(near)}?" if near else ""
                    yield f"{self._place((*path, name), root)}: not a known key{hint}"
            case ValidationErrorKind.UnevaluatedItems(items):
                yield f"{self._place(path, root)}: {_count(len(items), 'item')} more than the schema allows"
            case ValidationErrorKind.AnyOf(branches) | ValidationErrorKind.OneOfNotValid(branches):
                yield from self._alternatives(error, branches, value, root)
            case ValidationErrorKind.OneOfMultipleValid(branches):
                fitting = [str(number) for number, errors in enumerate(branches, 1) if not errors]
                yield f"{self._place(path, root)}: must fit exactly one alternative, but fits {' and '.join(fitting)}"
            case ValidationErrorKind.PropertyNames(inner):
                key = inner.instance if isinstance(inner.instance, str) else ""
                yield f"{self._place((*path, key), root)}: not allowed as a key; expected {_expected(inner)}"
            case ValidationErrorKind.FalseSchema():
                yield f"{self._place(path, root)}: not allowed here"
            case _:
                yield f"{self._place(path, root)}: expected {_expected(error)}{self._got(error)}"

    def _alternatives(
        self, error: ValidationError, branches: list[list[ValidationError]], value: Any, root: str
    ) -> Iterator[str]:
        """Why no alternative fits: the one that was meant, where that is clear, else all in short."""
        depth = len(error.instance_path)
        path, _ = located(error, value)
        if all(len(branch) == 1 and len(branch[0].instance_path) == depth for branch in branches):
            simple = [branch[0] for branch in branches]
            if not any(isinstance(inner.kind, _NESTED) for inner in simple):
                wanted = " or ".join(dict.fromkeys(_expected(inner) for inner in simple))
                yield f"{self._place(path, root)}: expected {wanted}{self._got(error)}"
                return
        right_type = [b for b in branches if not any(_is(e, depth, ValidationErrorKind.Type) for e in b)]
        right_tag = [b for b in right_type if not any(_is(e, depth + 1, _TAGS) for e in b)]
        meant = right_tag or right_type or branches
        if len(meant) == 1:
            for inner in meant[0]:
                yield from self._lines(inner, value, root)
            return
        if wrong := None if right_tag else _wrong_tags(right_type, depth):
            options = [*{json.dumps(one): one for inner in wrong for one in _options(inner.kind)}.values()]
            place = self._place(located(wrong[0], value)[0], root)
            yield f"{place}: expected one of {_listed(options)}{self._got(wrong[0], options)}"
            return
        told_by = [
            [
                line
                for inner in branch[:_SHOWN]
                if not isinstance(inner.kind, _CHOICES)
                for line in self._lines(inner, value, root)
            ]
            for branch in meant
        ]
        if every := [line for line in dict.fromkeys(told_by[0]) if all(line in lines for lines in told_by)]:
            yield from every
            return
        shown = [next(self._lines(branch[0], value, root), "") for branch in meant[:3] if branch]
        reasons = "; ".join(f"({number}) {line}" for number, line in enumerate(shown, 1))
        yield f"{self._place(path, root)}: fits none of the {len(branches)} alternatives: {reasons}"

    def _got(self, error: ValidationError, options: Iterable[Any] = ()) -> str:
        """What stands there, with the one of `options`, or of the values that are allowed, that comes near."""
        path = tuple(error.instance_path)
        value = error.instance
        if self._hidden(path) or (isinstance(value, str) and self._holds_secret(path)):
            return ""
        options = options or (error.kind.options if isinstance(error.kind, ValidationErrorKind.Enum) else ())
        near = _nearest(value, [one for one in options if isinstance(one, str)]) if isinstance(value, str) else None
        return f", got {_shown(value)}{f'; did you mean {_quoted(near)}?' if near else ''}"

    def _written(self, error: ValidationError, missing: str) -> str:
        """A hint where a key that the schema does not know looks like the one that is missing."""
        if not isinstance(error.instance, dict) or self._hidden(tuple(error.instance_path)):
            return ""
        known = {*self._known(error), missing}
        near = _nearest(missing, [key for key in error.instance if key not in known])
        return f"; {_quoted(near)} looks like it" if near else ""

    def _known(self, error: ValidationError) -> list[str]:
        """The properties that the schema names beside the keyword that failed."""
        schema: Any = self._schema
        for step in error.schema_path[:-1]:
            try:
                schema = schema[step]
            except (IndexError, KeyError, TypeError):
                return []  # below an `$id` of its own, paths start there; there is no hint then
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        return list(properties) if isinstance(properties, Mapping) else []

    def _hidden(self, path: Path) -> bool:
        return self._redacted_length(path) is not None

    def _holds_secret(self, path: Path) -> bool:
        """Whether a secret belongs below `path`; a text that stands there may be JSON that has it."""
        shown = told(path)
        return shown != () and any(secret[: len(shown)] == shown for secret in self._redacted)

    def _redacted_length(self, path: Path) -> int | None:
        shown = told(path)
        return next((len(secret) for secret in self._redacted if shown[: len(secret)] == secret), None)

    def _place(self, path: Path, root: str) -> str:
        """`path` as people write it; below a secret it ends where the secret starts."""
        place = ""
        for step in path[: self._redacted_length(path)]:
            if isinstance(step, int):
                place += f"[{step}]" if place else f"{root}[{step}]"
            elif _PLAIN.fullmatch(step):
                place += f".{step}" if place else step
            else:
                place += f"[{_quoted(step)}]" if place else f"{root}[{_quoted(step)}]"
        return place or root


_CHOICES: Final = (ValidationErrorKind.AnyOf, ValidationErrorKind.OneOfNotValid)
_NESTED: Final = (
    ValidationErrorKind.Required,
    ValidationErrorKind.AdditionalProperties,
    ValidationErrorKind.UnevaluatedProperties,
    ValidationErrorKind.UnevaluatedItems,
    ValidationErrorKind.AnyOf,
    ValidationErrorKind.OneOfNotValid,
    ValidationErrorKind.OneOfMultipleValid,
    ValidationErrorKind.PropertyNames,
)
_TAGS: Final = (ValidationErrorKind.Constant, ValidationErrorKind.Enum)
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


def _is(error: ValidationError, depth: int, kinds: type[ValidationErrorKind] | tuple[type, ...]) -> bool:
    return len(error.instance_path) == depth and isinstance(error.kind, kinds)


def _wrong_tags(branches: Sequence[Sequence[ValidationError]], depth: int) -> list[ValidationError]:
    """The error of each alternative about one key that tells them apart; none where there is no such key."""
    tags = [{error.instance_path[-1]: error for error in branch if _is(error, depth + 1, _TAGS)} for branch in branches]
    keys = [key for key in (tags[0] if tags else ()) if all(key in one for one in tags)]
    return [one[keys[0]] for one in tags] if keys else []


def _options(kind: ValidationErrorKind) -> Sequence[Any]:
    match kind:
        case ValidationErrorKind.Constant(value):
            return [value]
        case ValidationErrorKind.Enum(options):
            return list(options)
        case _:
            return []


def _expected(error: ValidationError) -> str:
    """What the keyword that failed wants, to be read after "expected"."""
    kind = error.kind
    match kind:
        case ValidationErrorKind.Type(types):
            return " or ".join(_with_article(name) for name in types)
        case ValidationErrorKind.Enum(options):
            return f"one of {_listed(options)}" if len(options) > 1 else _listed(options)
        case ValidationErrorKind.Constant(value):
            return _json(value)
        case ValidationErrorKind.Minimum(limit):
            return f"at least {limit}"
        case ValidationErrorKind.Maximum(limit):
            return f"at most {limit}"
        case ValidationErrorKind.ExclusiveMinimum(limit):
            return f"more than {limit}"
        case ValidationErrorKind.ExclusiveMaximum(limit):
            return f"less than {limit}"
        case ValidationErrorKind.MultipleOf(number):
            return f"a multiple of {number}"
        case ValidationErrorKind.MinLength(limit):
            return f"at least {_count(limit, 'character')}"
        case ValidationErrorKind.MaxLength(limit):
            return f"at most {_count(limit, 'character')}"
        case ValidationErrorKind.Pattern(pattern):
            return f"a match of the pattern {_cut(pattern)}"
        case ValidationErrorKind.BacktrackLimitExceeded() | ValidationErrorKind.RegexEngineFailure():
            return "a value whose pattern can be checked in bounded time"
        case ValidationErrorKind.Format(name):
            return f"the format {_quoted(name)}"
        case ValidationErrorKind.MinItems(limit):
            return f"at least {_count(limit, 'item')}"
        case ValidationErrorKind.MaxItems(limit) | ValidationErrorKind.AdditionalItems(limit):
            return f"at most {_count(limit, 'item')}"
        case ValidationErrorKind.UniqueItems():
            return "items that all differ"
        case ValidationErrorKind.Contains():
            return "other items (see `contains` in the schema)"
        case ValidationErrorKind.MinProperties(limit):
            return f"at least {_count(limit, 'key')}"
        case ValidationErrorKind.MaxProperties(limit):
            return f"at most {_count(limit, 'key')}"
        case ValidationErrorKind.Not(schema):
            return f"what does not fit {_json(schema)}"
        case ValidationErrorKind.FalseSchema():
            return "nothing here"
        case _:
            return f"what `{kind.name}` in the schema allows"


def _with_article(name: str) -> str:
    return name if name == "null" else f"{'an' if name[0] in 'aio' else 'a'} {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(options: Sequence[Any]) -> str:
    shown = ", ".join(_json(option) for option in options[:20])
    return f"{shown}, … ({len(options)} in all)" if len(options) > 20 else shown


def _strays(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """What JSON has nothing for in a value, with its places."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _strays(below, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from _strays(below, (*path, index))
    elif not (isfinite(value) if isinstance(value, float) else value is None or isinstance(value, str | int)):
        yield path, value


def _shown(value: Any) -> str:
    """A value in short; what objects and arrays hold is not shown, since a part of it may be secret."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {_count(len(value), 'item')}"
    return f"the string {_json(value)}" if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str))


def _quoted(name: str) -> str:
    return _json(name)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant: the same but for case and punctuation, else one that is spelt much alike."""
    names = list(islice(names, 200))
    bare = {_bare(other): other for other in names}
    if (same := bare.get(_bare(name))) is not None:
        return same
    near = get_close_matches(name[:100], names, n=1, cutoff=0.7)
    return near[0] if near else None


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
