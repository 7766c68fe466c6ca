"""Validates values against a tool's schema, with errors that a model can act on.

References are not fetched, and regular expressions have a step limit. `alternative_errors` explains alternatives;
`complexity` and `error_tree` handle expensive schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
from ..values.locations import normalize_path
from ..values.text import split_pointer
from .errors import ErrorNode, Kind, Path, UnknownKeys, to_error_node
from .numbers import ExactSchema, make_exact_schema, may_compare_large_numbers
from .suggestions import (
    find_causes,
    find_envelope,
    find_equal_items,
    find_missing_tag,
    suggest_exclusive_keys,
    suggest_form,
    suggest_patterns,
)

if TYPE_CHECKING:
    from ..package import Package, Tool
    from .complexity import Cost
    from .error_tree import ShallowSchema
    from .numbers import CompiledSchema


_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

_BACKTRACKS: Final = 100_000
"""The maximum steps in a match, about 2 ms. Only expressions with look-around or back-references backtrack."""

_SHOWN: Final = 10
_BIG: Final = 100_000  # JSON characters from which only the first error is reported, since listing all can take seconds
_WIDTH: Final = 60


@cache
def get_input_validator(tool: Tool) -> Validator:
    """Return the cached validator for a tool's arguments."""
    return compile_validator(tool, tool.accepts, tool.redacted)


@cache
def get_output_validator(tool: Tool) -> Validator | None:
    """Return the cached validator for a tool's result, or `None` if it has no `outputSchema`."""
    schema = tool.definition.get("outputSchema")
    return None if schema is None else compile_validator(tool, schema)


def compile_validator(tool: Tool, schema: Any, redact: Sequence[str] = ()) -> Validator:
    """Compile a schema with a tool's format settings."""
    return compile_package_validator(tool.package, schema, redact)


def compile_package_validator(package: Package, schema: Any, redact: Sequence[str] = ()) -> Validator:
    """Compile a schema with a package's format settings."""
    return Validator(schema, formats=package.asserts_formats, exact=package.has_exact_formats, redact=redact)


def compile_schema(schema: Any, *, formats: bool, exact: bool = False) -> CompiledSchema:
    """Compile a schema with jsonschema-rs, translating unsupported patterns.

    Args:
        schema: The schema.
        formats: Whether `format` is checked.
        exact: Whether formats with Python types accept only strings that the types represent exactly.

    Raises:
        ValueError: The schema is invalid in its dialect or has an external reference.
    """
    try:
        return _compile_schema(schema, formats=formats, exact=exact)
    except ValueError:
        from .patterns import translate_patterns

        translated = translate_patterns(schema)
        if translated == schema:
            raise
        return _compile_schema(translated, formats=formats, exact=exact)


def _compile_schema(schema: Any, *, formats: bool, exact: bool) -> CompiledSchema:
    options = FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    # A foreign schema must not make a server fetch URLs.
    settings: Any = {"validate_formats": formats, "pattern_options": options, "offline": True}
    if exact:
        from .exact_formats import get_settings

        settings |= get_settings(schema, formats=formats)
    if may_compare_large_numbers(schema):
        return ExactSchema(validator_for(make_exact_schema(schema), **settings))
    return validator_for(schema, **settings)


class Validator:
    """A compiled schema. Simple schemas skip expensive checks."""

    def __init__(self, schema: Any, *, formats: bool = False, exact: bool = False, redact: Sequence[str] = ()) -> None:
        """Compile a schema.

        Args:
            schema: The schema, in the dialect of its `$schema`, by default 2020-12.
            formats: Whether `format` is checked, not just an annotation (JSON Schema 2020-12, Validation, 7.2).
            exact: Whether formats with Python types accept only strings that the types represent exactly.
            redact: JSON Pointers to values to redact in messages.

        Raises:
            ValueError: The schema is invalid in its dialect or has an external reference.
        """
        self._schema = schema
        self._redacted = [normalize_path(split_pointer(pointer)) for pointer in redact]
        self._exact = exact
        self._compile = partial(compile_schema, formats=formats, exact=exact)
        self._validator = self._compile(schema)
        self._cost: Cost | None = None
        self._shallow: ShallowSchema | None = None
        if _may_multiply(schema):
            from .complexity import Cost

            self._cost = Cost(schema, self._compile)

    def find_errors(self, value: Any, root: str = "arguments", *, size: int | None = None) -> list[str]:
        """Return up to ten validation errors in `value`, and a line that counts the rest. Empty if it is valid.

        Args:
            value: The value to validate.
            root: The name of the value in messages.
            size: The size of the value as JSON, if it is known to be JSON.
        """
        if size is None:
            try:
                size = len(_encode(value).encode())
            except UnicodeEncodeError:
                return [f"{root}: contains a lone surrogate, which is not a character"]
            except RecursionError:
                return [f"{root}: is nested too deeply"]
            except (TypeError, ValueError) as error:
                return [self._explain_non_json(value, error, root)]
        if self._cost is not None and self._cost.forbids(value, size):
            return [f"{root}: too complex: the schema can match it in so many ways that validation would take too long"]
        if self._validator.is_valid(value):
            return []
        nodes = self._find_few_errors(value, size)
        distinct = dict.fromkeys(line for node in nodes for line in self.explain(node, root))
        lines = [*distinct] or [f"{root}: does not match the schema"]
        if len(lines) > _SHOWN:
            return [*lines[:_SHOWN], f"… and {len(lines) - _SHOWN} more"]
        return lines

    def accepts(self, value: Any) -> bool:
        """Return whether a value is valid, without explaining errors."""
        try:
            size = len(_encode(value).encode())
        except (TypeError, ValueError, RecursionError):  # not JSON, or a lone surrogate
            return False
        return not self._is_too_complex(value, size) and self._validator.is_valid(value)

    def describe_errors(self, value: Any, root: str) -> Iterator[tuple[Path, str, list[str]]]:
        """Yield each validation error's path, keyword and lines."""
        size = len(json.dumps(value))
        for node in () if self._is_too_complex(value, size) else self._find_few_errors(value, size):
            yield node.path, str(node.schema_path[-1]) if node.schema_path else "", [*self.explain(node, root)]

    def find_error_paths(self, value: Any) -> list[Path]:
        """Return the paths of the validation errors in `value`, or none if it is too complex."""
        size = len(json.dumps(value))
        if self._is_too_complex(value, size) or self._validator.is_valid(value):
            return []
        return [node.path for node in self._find_few_errors(value, size)]

    def _is_too_complex(self, value: Any, size: int) -> bool:
        return self._cost is not None and self._cost.forbids(value, size)

    def _explain_non_json(self, value: Any, error: Exception, root: str) -> str:
        try:
            path, stray = next(find_non_json(value))
        except (RecursionError, StopIteration):  # a cycle, or keys that are not strings
            return f"{root}: is not JSON: {error}"
        shown = str(stray) if isinstance(stray, float) else f"a value of type {type(stray).__name__}"
        return f"{self.format_path(path, root)}: expected a JSON value, got {shown}"

    def _find_few_errors(self, value: Any, size: int) -> Iterator[ErrorNode]:
        errors = self._find_errors(value, size)
        return errors if size <= _BIG else islice(errors, 1)

    def _find_errors(self, value: Any, size: int) -> Iterator[ErrorNode]:
        """Yield the errors in a value, on demand if collecting all errors is expensive."""
        if self._cost is None:
            yield from self._find_all_errors(value, size)
            return
        from .error_tree import ErrorTree, ShallowSchema

        try:
            if self._cost.can_list_errors(value, size):
                yield from self._find_all_errors(value, size)
                return
            self._shallow = self._shallow or ShallowSchema(self._schema, self._compile)
            yield from ErrorTree(self._shallow, value).find_errors()
        except (RecursionError, ValueError) as error:  # a reference into a cut, or a long path
            log().debug("a validation error cannot be explained: %s", error)

    def _find_all_errors(self, value: Any, size: int) -> Iterator[ErrorNode]:
        return (to_error_node(error, value) for error in self._errors(value, size))

    def _errors(self, value: Any, size: int) -> Iterable[ValidationError]:
        if size <= _BIG:
            return self._validator.iter_errors(value)
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return (error,)
        return ()

    def explain(self, node: ErrorNode, root: str, depth: int = 0) -> Iterator[str]:
        """Yield the lines that explain an error: one per affected key, or those for the intended alternative."""
        path = node.path
        if node.branches is not None:
            from .alternative_errors import explain_alternatives

            yield from explain_alternatives(self, node, node.branches(), root, depth)
            return
        match node.kind:
            case None:
                yield f"{self.format_path(path, root)}: does not match the schema"
            case ValidationErrorKind.Required(name):
                if self._is_redacted(path):
                    yield f"{self.format_path(path, root)}: a required key is missing"
                else:
                    hint = self._explain_required(node, name)
                    yield f"{self.format_path((*path, name), root)}: required, but missing{hint}"
            case (
                ValidationErrorKind.AdditionalProperties(names)
                | ValidationErrorKind.UnevaluatedProperties(names)
                | UnknownKeys(names)
            ):
                known = self._list_known_keys(node)
                if self._is_redacted(path):
                    yield f"{self.format_path(path, root)}: has unknown keys"
                    return
                patterns = suggest_patterns(self._find_holder(node))
                for number, name in enumerate(names):
                    near = _find_nearest(name, known) if number < _SHOWN else None
                    similar = f"; did you mean {_quote(near)}?" if near else ""
                    hint = _suggest_unwrapping(node, known) or similar or patterns
                    yield f"{self.format_path((*path, name), root)}: unknown key{hint}"
            case ValidationErrorKind.UnevaluatedItems(items):
                yield f"{self.format_path(path, root)}: {_count(len(items), 'item')} too many"
            case ValidationErrorKind.OneOfMultipleValid(branches):
                yield self.explain_several(node, [at for at, errors in enumerate(branches, 1) if not errors], root)
            case ValidationErrorKind.UniqueItems():
                pair = find_equal_items(node.instance)
                place = self.format_path(path, root)
                which = f"{place}[{pair[0]}] and {place}[{pair[1]}] are equal" if pair else "two are equal"
                yield f"{place}: expected unique items, but {which}"
            case ValidationErrorKind.Contains():
                wanted = _describe_contained(self._find_holder(node), node.schema_path[-1])
                yield f"{self.format_path(path, root)}: expected {wanted}{self.describe_actual(node)}"
            case ValidationErrorKind.PropertyNames(inner):
                key = inner.instance if isinstance(inner.instance, str) else ""
                wanted = describe_expected(inner.kind)
                yield f"{self.format_path((*path, key), root)}: not allowed as a key; expected {wanted}"
            case ValidationErrorKind.FalseSchema():
                yield f"{self.format_path(path, root)}: not allowed here"
            case kind:
                yield f"{self.format_path(path, root)}: expected {describe_expected(kind)}{self.describe_actual(node)}"

    def explain_several(self, node: ErrorNode, fitting: Sequence[int], root: str) -> str:
        """Explain that a value matches several alternatives, possibly because a discriminating key is missing."""
        alternatives = self.list_alternatives(node)
        if line := self.explain_missing_tag(node, alternatives, root):
            return line
        schema = self._schema if node.schema is None else node.schema
        meant = [alternatives[number - 1] for number in fitting] if alternatives else []
        hint = "" if self._is_redacted(node.path) else suggest_exclusive_keys(schema, meant)
        listing = " and ".join(map(str, fitting))
        return f"{self.format_path(node.path, root)}: must match exactly one alternative, but matches {listing}{hint}"

    def explain_missing_tag(self, node: ErrorNode, alternatives: Sequence[Json], root: str) -> str:
        """Explain that a value lacks the alternatives' discriminating key, or return an empty string."""
        schema = self._schema if node.schema is None else node.schema
        tag = None if self._is_redacted(node.path) else find_missing_tag(schema, alternatives, node.instance)
        if tag is None:
            return ""
        key, options = tag
        place = self.format_path((*node.path, key), root)
        return f"{place}: required, but missing; expected one of {list_values(options)}"

    def list_alternatives(self, node: ErrorNode) -> Sequence[Json]:
        """Return the alternatives of a failed choice, or an empty list if they are unknown."""
        holder = self._find_holder(node)
        alternatives: Json = holder.get(node.schema_path[-1]) if is_mapping(holder) else None
        return alternatives if is_list(alternatives) else ()

    def describe_actual(self, node: ErrorNode, options: Iterable[Any] = (), kinds: Iterable[Kind | None] = ()) -> str:
        """Describe the actual value, with a suggestion.

        Args:
            node: The error.
            options: The allowed values. By default the values in the error.
            kinds: The failed keywords of several alternatives. By default the error's keyword.
        """
        path, value, kind = node.path, node.instance, node.kind
        if self._is_redacted(path) or (isinstance(value, str) and self._holds_secret(path)):
            return ""
        options = options or (kind.options if isinstance(kind, ValidationErrorKind.Enum) else ())
        near = (
            _find_nearest(value, [option for option in options if isinstance(option, str)])
            if isinstance(value, str)
            else None
        )
        counted = isinstance(kind, ValidationErrorKind.MinProperties | ValidationErrorKind.MaxProperties)
        hint = f"; did you mean {_quote(near)}?" if near else self._suggest_text(value, kinds or (kind,))
        if value is None and self._is_optional(node):
            hint = "; omit the key if it has no value"
        return f", got {_describe(value, counted=counted)}{hint}"

    def _is_optional(self, node: ErrorNode) -> bool:
        *_, properties, name, _ = ("", "", "", *node.schema_path)
        if properties != "properties" or not node.path or node.path[-1] != name:
            return False
        holder = self._find_holder(replace(node, schema_path=node.schema_path[:-2]))
        return is_mapping(holder) and name not in holder.get("required", ())

    def _suggest_text(self, value: Any, kinds: Iterable[Kind | None]) -> str:
        if not isinstance(value, str):
            return ""
        if self._exact:
            from .exact_formats import is_inexact, suggest

            forms = [name for kind in kinds if (name := _get_format(kind)) is not None]
            if hint := next(filter(None, (suggest(form, value) for form in forms)), ""):
                return f"; {hint}"
            if any(is_inexact(form, value) for form in forms):
                return ""  # the format's hint would not help
        forms = [str(kind.format) for kind in kinds if isinstance(kind, ValidationErrorKind.Format)]
        if form := next(filter(None, map(suggest_form, forms)), ""):
            return f"; {form}"
        return _suggest_no_text(value, kinds)

    def _explain_required(self, node: ErrorNode, missing: str) -> str:
        """Return the reason that a key is required, or a suggestion."""
        instance: Json = node.instance
        keyword = node.schema_path[-1] if node.schema_path else ""
        if keyword in ("dependentRequired", "dependencies") and isinstance(instance, dict):
            causes = find_causes(self._find_holder(node), str(keyword), instance, missing)
            if causes:
                return f"; {_quote(causes[0])} requires it"
        return self._suggest_misspelt(node, missing) or _suggest_unwrapping(node, self._list_known_keys(node))

    def _suggest_misspelt(self, node: ErrorNode, missing: str) -> str:
        instance: Json = node.instance
        if not isinstance(instance, dict) or self._is_redacted(node.path):
            return ""
        known = {*self._list_known_keys(node), missing}
        near = _find_nearest(missing, [key for key in instance if key not in known])
        return f"; {_quote(near)} may be a misspelling of it" if near else ""

    def _list_known_keys(self, node: ErrorNode) -> list[str]:
        """Return the properties declared next to the failed keyword."""
        schema = self._find_holder(node)
        properties: Json = schema.get("properties") if is_mapping(schema) else None
        return list(properties) if isinstance(properties, dict) else []

    def _find_holder(self, node: ErrorNode) -> Any:
        """Return the schema that contains the failed keyword, or `None` under an `$id`, where paths restart."""
        schema: Any = self._schema if node.schema is None else node.schema
        for step in node.schema_path[:-1]:
            try:
                schema = schema[step]
            except (IndexError, KeyError, TypeError):
                return None
        return schema

    def _is_redacted(self, path: Path) -> bool:
        return self._find_redacted_length(path) is not None

    def _holds_secret(self, path: Path) -> bool:
        """Return whether a redacted value is at or below `path`. A string there can be JSON that contains the value."""
        shown = normalize_path(path)
        return shown != () and any(secret[: len(shown)] == shown for secret in self._redacted)

    def _find_redacted_length(self, path: Path) -> int | None:
        shown = normalize_path(path)
        return next((len(secret) for secret in self._redacted if shown[: len(secret)] == secret), None)

    def format_path(self, path: Path, root: str) -> str:
        """Format a path, up to the first redacted value."""
        place = ""
        for step in path[: self._find_redacted_length(path)]:
            if isinstance(step, int):
                place += f"[{step}]" if place else f"{root}[{step}]"
            elif _PLAIN.fullmatch(step):
                place += f".{step}" if place else step
            else:
                place += f"[{_quote(step)}]" if place else f"{root}[{_quote(step)}]"
        return place or root


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


_REFERENCES: Final = ("$dynamicRef", "$recursiveRef", "$ref")
_MANY: Final = 1_000
"""The number of keys from which a schema can be expensive without references."""


def _may_multiply(schema: Json) -> bool:
    """Return whether the validator might visit a value many times."""
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


def _suggest_unwrapping(node: ErrorNode, known: Sequence[str]) -> str:
    name = None if node.path else find_envelope(node.instance, known)
    return f"; send the arguments themselves, not inside {_quote(name)}" if name else ""


def _get_format(kind: Kind | None) -> str | None:
    match kind:
        case ValidationErrorKind.Format(name):
            return str(name)
        case ValidationErrorKind.Custom():  # our only custom keyword; see `exact_formats`
            return "base64"
        case _:
            return None


def _suggest_no_text(value: str, kinds: Iterable[Kind | None]) -> str:
    """Suggest sending an object or array itself instead of a string with its JSON."""
    wanted = {name for kind in kinds if isinstance(kind, ValidationErrorKind.Type) for name in kind.types}
    if value.lstrip()[:1] not in ("{", "["):
        return ""
    try:
        name = "array" if isinstance(json.loads(value), list) else "object"
    except (ValueError, RecursionError):
        return ""
    return f"; send the {name} itself, not a string with its JSON" if name in wanted else ""


def _describe_contained(holder: Any, keyword: str | int) -> str:
    """Describe the items that `contains` requires, or `maxContains` limits."""
    if not is_mapping(holder) or "contains" not in holder:
        return "items that satisfy `contains` in the schema"
    least = holder.get("minContains", 1)
    bound, number = f"at least {least}", least
    if keyword == "maxContains":
        number = holder[keyword]
        bound = f"{bound} and at most {number}" if least else f"at most {number}"
    items, verb = ("item", "fits") if number == 1 else ("items", "fit")
    return f"{bound} {items} that {verb} {_write_json(holder['contains'])}"


def describe_expected(kind: Kind | None) -> str:
    """Describe the failed keyword's requirement, to follow "expected"."""
    match kind:
        case None:
            return "a value that the schema allows"
        case ValidationErrorKind.Type(types):
            return " or ".join(_add_article(name) for name in types)
        case ValidationErrorKind.Enum(options):
            return f"one of {list_values(options)}" if len(options) > 1 else list_values(options)
        case ValidationErrorKind.Constant(value):
            return _write_json(value)
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
            return f"a match for the pattern {_truncate(pattern)}"
        case ValidationErrorKind.BacktrackLimitExceeded() | ValidationErrorKind.RegexEngineFailure():
            return "a value that can be checked against the pattern in bounded time"
        case ValidationErrorKind.Format(name):
            return f"the format {_quote(name)}"
        case ValidationErrorKind.Custom():
            return "base64"
        case ValidationErrorKind.MinItems(limit):
            return f"at least {_count(limit, 'item')}"
        case ValidationErrorKind.MaxItems(limit) | ValidationErrorKind.AdditionalItems(limit):
            return f"at most {_count(limit, 'item')}"
        case ValidationErrorKind.UniqueItems():
            return "unique items"
        case ValidationErrorKind.Contains():
            return "items that satisfy `contains` in the schema"
        case ValidationErrorKind.MinProperties(limit):
            return f"at least {_count(limit, 'key')}"
        case ValidationErrorKind.MaxProperties(limit):
            return f"at most {_count(limit, 'key')}"
        case ValidationErrorKind.Not(schema):
            return f"a value that does not match {_write_json(schema)}"
        case ValidationErrorKind.FalseSchema() | UnknownKeys():
            return "no value here"
        case _:
            return f"a value that satisfies `{kind.name}` in the schema"


def _add_article(name: str) -> str:
    return name if name == "null" else f"{'an' if name[0] in 'aio' else 'a'} {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def list_values(options: Sequence[Any]) -> str:
    """Format up to twenty values."""
    shown = ", ".join(_write_json(option) for option in options[:20])
    return f"{shown}, … ({len(options)} in all)" if len(options) > 20 else shown


def find_non_json(value: Any, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield each part that JSON cannot represent, such as an infinite number, with its path."""
    if is_mapping(value):
        for key, below in value.items():
            yield from find_non_json(below, (*path, str(key)))
    elif is_list(value):
        for index, below in enumerate(value):
            yield from find_non_json(below, (*path, index))
    elif not (isfinite(value) if isinstance(value, float) else value is None or isinstance(value, str | int)):
        yield path, value


def _describe(value: Json, *, counted: bool = False) -> str:
    """Describe a value briefly, without the contents of objects and arrays, which may be secret."""
    if isinstance(value, dict):
        return f"an object with {_count(len(value), 'key')}" if counted else "an object"
    if isinstance(value, list):
        return f"an array of {_count(len(value), 'item')}"
    return f"the string {_write_json(value)}" if isinstance(value, str) else _write_json(value)


def _write_json(value: Any) -> str:
    return _truncate(json.dumps(value, ensure_ascii=False, default=str))


def _quote(name: str) -> str:
    return _write_json(name)


def _truncate(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _find_nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar name. Matches that differ only in case or punctuation come first."""
    names = list(islice(names, 200))
    bare = {_strip_punctuation(other): other for other in names}
    if (same := bare.get(_strip_punctuation(name))) is not None:
        return same
    # Limit the length and number of names, because difflib takes quadratic time.
    near = get_close_matches(name[:100], names, n=1, cutoff=0.7)
    return near[0] if near else None


def _strip_punctuation(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
