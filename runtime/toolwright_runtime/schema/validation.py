"""Whether a value is valid under a tool's schema, and if not, why, in words that a model can act on.

Takes a JSON Schema of any dialect from draft-04 to 2020-12 and a JSON value; gives one line for each violation. The
schema decides, never a Python model. It fetches nothing, and a regular expression that would run for ever is a
violation instead of a hang. What it says of alternatives, and what takes long, is in `alternatives` and `violations`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache, partial
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from jsonschema_rs import (
    FancyRegexOptions,
    ValidationError,
    ValidationErrorKind,
    validator_for,
)

from ..observability.logs import log
from ..values.json import Json, is_list, is_mapping
from ..values.locations import told
from ..values.text import steps
from .errors import Fault, Kind, Path, Surplus
from .errors import told as fault_of

if TYPE_CHECKING:
    import jsonschema_rs

    from ..package import Package, Tool
    from .complexity import Reckoning
    from .error_tree import Cuts


_BACKTRACKS: Final = 100_000
"""Steps of one match, about 2 ms; expressions without look-around and back-references need none."""

_SHOWN: Final = 10
_BIG: Final = 100_000  # characters of JSON; above it one violation is told, since finding all may take seconds
_WIDTH: Final = 60


@cache
def input_validator(tool: Tool) -> Validator:
    """The validator of the tool's arguments, compiled at the first call and kept."""
    return validator(tool, tool.accepts, tool.redacted)


@cache
def output_validator(tool: Tool) -> Validator | None:
    """The validator of the tool's result, compiled at the first call and kept; `None` without an `outputSchema`."""
    schema = tool.definition.get("outputSchema")
    return None if schema is None else validator(tool, schema)


def validator(tool: Tool, schema: Any, redact: Sequence[str] = ()) -> Validator:
    """A validator of a schema of the tool's."""
    return validator_of(tool.package, schema, redact)


def validator_of(package: Package, schema: Any, redact: Sequence[str] = ()) -> Validator:
    """A validator of a schema of the package's."""
    return Validator(schema, formats=package.asserts_formats, redact=redact)


def compiled(schema: Any, *, formats: bool) -> jsonschema_rs.Validator:
    """The library's validator of a schema, whose patterns are put into other words where it does not take them.

    Raises:
        ValueError: The schema is not valid in its dialect, or refers to what it does not hold.
    """
    try:
        return _compiled(schema, formats=formats)
    except ValueError:
        from .patterns import translated

        said = translated(schema)
        if said == schema:
            raise
        return _compiled(said, formats=formats)


def _compiled(schema: Any, *, formats: bool) -> jsonschema_rs.Validator:
    options = FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    return validator_for(schema, validate_formats=formats, pattern_options=options, offline=True)


class Validator:
    """One schema, compiled. What takes long, or takes many words to explain, is only looked at where it can happen."""

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
        self._compile = partial(compiled, formats=formats)
        self._validator = self._compile(schema)
        self._reckoning: Reckoning | None = None
        self._cuts: Cuts | None = None
        if _may_multiply(schema):
            from .complexity import Reckoning

            self._reckoning = Reckoning(schema, self._compile)

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
        if self._is_too_complex(value, size):
            return [f"{root}: too complex: the schema allows so many ways to read it that checking would take too long"]
        if self._validator.is_valid(value):
            return []
        looking = self._looking(value, size)
        found = dict.fromkeys(line for fault in looking for line in self.lines(fault, root))
        lines = [*found] or [f"{root}: does not fit the schema"]
        if len(lines) > _SHOWN:
            return [*lines[:_SHOWN], f"… and {len(lines) - _SHOWN} more"]
        return lines

    def details(self, value: Any, root: str) -> Iterator[tuple[Path, str, list[str]]]:
        """What is wrong with a value: where, the keyword that failed, and the lines that `violations` has for it."""
        size = len(json.dumps(value))
        for fault in () if self._is_too_complex(value, size) else self._looking(value, size):
            yield fault.path, str(fault.schema_path[-1]) if fault.schema_path else "", [*self.lines(fault, root)]

    def places(self, value: Any) -> list[Path]:
        """Where the violations of `value` are, one path each; none where it is valid or too complex."""
        size = len(json.dumps(value))
        if self._is_too_complex(value, size) or self._validator.is_valid(value):
            return []
        return [fault.path for fault in self._looking(value, size)]

    def _is_too_complex(self, value: Any, size: int) -> bool:
        """Whether it would take too long to validate a value; see `complexity`."""
        return self._reckoning is not None and self._reckoning.forbids(value, size)

    def _strange(self, value: Any, error: Exception, root: str) -> str:
        """The line for a value that is not JSON."""
        try:
            path, stray = next(_strays(value))
        except (RecursionError, StopIteration):  # it holds itself, or has keys that are no strings
            return f"{root}: is not JSON: {error}"
        shown = str(stray) if isinstance(stray, float) else f"a value of type {type(stray).__name__}"
        return f"{self.place(path, root)}: expected a JSON value, got {shown}"

    def _looking(self, value: Any, size: int) -> Iterator[Fault]:
        """What is wrong with a value; one thing of a big value, since finding all may take seconds."""
        faults = self._faults(value, size)
        return faults if size <= _BIG else islice(faults, 1)

    def _faults(self, value: Any, size: int) -> Iterator[Fault]:
        """What is wrong with a value: with all reasons at once where they are few."""
        if self._reckoning is None:
            yield from self._all_faults(value, size)
            return
        from .error_tree import Cuts, Looking

        try:
            if self._reckoning.has_few_reasons(value, size):
                yield from self._all_faults(value, size)
                return
            self._cuts = self._cuts or Cuts(self._schema, self._compile)
            yield from Looking(self._cuts, value).faults()
        except (RecursionError, ValueError) as error:  # a reference that the cuts have cut, or a path too long
            log().debug("the reasons of a violation were not found: %s", error)

    def _all_faults(self, value: Any, size: int) -> Iterator[Fault]:
        return (fault_of(error, value) for error in self._errors(value, size))

    def _errors(self, value: Any, size: int) -> Iterable[ValidationError]:
        if size <= _BIG:
            return self._validator.iter_errors(value)
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return (error,)
        return ()

    def lines(self, fault: Fault, root: str, depth: int = 0) -> Iterator[str]:
        """The lines for one fault: several where it names several keys, or one alternative was clearly meant."""
        path = fault.path
        if fault.branches is not None:
            from .alternative_errors import reasons

            yield from reasons(self, fault, fault.branches(), root, depth)
            return
        match fault.kind:
            case None:
                yield f"{self.place(path, root)}: does not fit the schema"
            case ValidationErrorKind.Required(name):
                if self._hidden(path):
                    yield f"{self.place(path, root)}: a required key is missing in it"
                else:
                    yield f"{self.place((*path, name), root)}: required, but missing{self._written(fault, name)}"
            case (
                ValidationErrorKind.AdditionalProperties(names)
                | ValidationErrorKind.UnevaluatedProperties(names)
                | Surplus(names)
            ):
                known = self._known(fault)
                if self._hidden(path):
                    yield f"{self.place(path, root)}: not all of its keys are known"
                    return
                for number, name in enumerate(names):
                    near = _nearest(name, known) if number < _SHOWN else None
                    hint = f"; did you mean {_quoted(near)}?" if near else ""
                    yield f"{self.place((*path, name), root)}: not a known key{hint}"
            case ValidationErrorKind.UnevaluatedItems(items):
                yield f"{self.place(path, root)}: {_count(len(items), 'item')} more than the schema allows"
            case ValidationErrorKind.OneOfMultipleValid(branches):
                fitting = [number for number, errors in enumerate(branches, 1) if not errors]
                yield f"{self.place(path, root)}: {several(fitting)}"
            case ValidationErrorKind.PropertyNames(inner):
                key = inner.instance if isinstance(inner.instance, str) else ""
                yield f"{self.place((*path, key), root)}: not allowed as a key; expected {expected(inner.kind)}"
            case ValidationErrorKind.FalseSchema():
                yield f"{self.place(path, root)}: not allowed here"
            case kind:
                yield f"{self.place(path, root)}: expected {expected(kind)}{self.got(fault)}"

    def got(self, fault: Fault, options: Iterable[Any] = ()) -> str:
        """What stands there, with the one of `options`, or of the values that are allowed, that comes near."""
        path, value, kind = fault.path, fault.instance, fault.kind
        if self._hidden(path) or (isinstance(value, str) and self._holds_secret(path)):
            return ""
        options = options or (kind.options if isinstance(kind, ValidationErrorKind.Enum) else ())
        near = _nearest(value, [one for one in options if isinstance(one, str)]) if isinstance(value, str) else None
        counted = isinstance(kind, ValidationErrorKind.MinProperties | ValidationErrorKind.MaxProperties)
        return f", got {_shown(value, counted=counted)}{f'; did you mean {_quoted(near)}?' if near else ''}"

    def _written(self, fault: Fault, missing: str) -> str:
        """A hint where a key that the schema does not know looks like the one that is missing."""
        instance: Json = fault.instance
        if not isinstance(instance, dict) or self._hidden(fault.path):
            return ""
        known = {*self._known(fault), missing}
        near = _nearest(missing, [key for key in instance if key not in known])
        return f"; {_quoted(near)} looks like it" if near else ""

    def _known(self, fault: Fault) -> list[str]:
        """The properties that the schema names beside the keyword that failed."""
        schema: Any = self._schema if fault.schema is None else fault.schema
        for step in fault.schema_path[:-1]:
            try:
                schema = schema[step]
            except (IndexError, KeyError, TypeError):
                return []  # below an `$id` of its own, paths start there; there is no hint then
        properties: Json = schema.get("properties") if is_mapping(schema) else None
        return list(properties) if isinstance(properties, dict) else []

    def _hidden(self, path: Path) -> bool:
        return self._redacted_length(path) is not None

    def _holds_secret(self, path: Path) -> bool:
        """Whether a secret belongs below `path`; a text that stands there may be JSON that has it."""
        shown = told(path)
        return shown != () and any(secret[: len(shown)] == shown for secret in self._redacted)

    def _redacted_length(self, path: Path) -> int | None:
        shown = told(path)
        return next((len(secret) for secret in self._redacted if shown[: len(secret)] == secret), None)

    def place(self, path: Path, root: str) -> str:
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


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


_REFERENCES: Final = ("$dynamicRef", "$recursiveRef", "$ref")
_MANY: Final = 1_000
"""Keys of a schema; with fewer, only references can have the validator look at one value in many ways."""


def _may_multiply(schema: Json) -> bool:
    """Whether the validator may have to look at one value in many ways."""
    waiting, count = [schema], 0
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            count += len(here)
            if count > _MANY or any(isinstance(here.get(keyword), str) for keyword in _REFERENCES):
                return True
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return False


def several(fitting: Sequence[int]) -> str:
    """What is wrong where more than one alternative fits."""
    return f"must fit exactly one alternative, but fits {' and '.join(map(str, fitting))}"


def expected(kind: Kind | None) -> str:
    """What the keyword that failed wants, to be read after "expected"."""
    match kind:
        case None:
            return "what the schema allows"
        case ValidationErrorKind.Type(types):
            return " or ".join(_with_article(name) for name in types)
        case ValidationErrorKind.Enum(options):
            return f"one of {listed(options)}" if len(options) > 1 else listed(options)
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
        case ValidationErrorKind.FalseSchema() | Surplus():
            return "nothing here"
        case _:
            return f"what `{kind.name}` in the schema allows"


def _with_article(name: str) -> str:
    return name if name == "null" else f"{'an' if name[0] in 'aio' else 'a'} {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(options: Sequence[Any]) -> str:
    """Values in a row, at most twenty."""
    shown = ", ".join(_json(option) for option in options[:20])
    return f"{shown}, … ({len(options)} in all)" if len(options) > 20 else shown


def _strays(value: Any, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """What JSON has nothing for in a value, with its places."""
    if is_mapping(value):
        for key, below in value.items():
            yield from _strays(below, (*path, str(key)))
    elif is_list(value):
        for index, below in enumerate(value):
            yield from _strays(below, (*path, index))
    elif not (isfinite(value) if isinstance(value, float) else value is None or isinstance(value, str | int)):
        yield path, value


def _shown(value: Json, *, counted: bool = False) -> str:
    """A value in short; what objects and arrays hold is not shown, since a part of it may be secret."""
    if isinstance(value, dict):
        return f"an object with {_count(len(value), 'key')}" if counted else "an object"
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
