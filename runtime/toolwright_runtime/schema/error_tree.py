"""What is wrong with a value, one level of alternatives at a time.

Takes a schema and a value that it does not accept; gives faults. The validator itself looks for the reasons of every
alternative down to the bottom, which multiplies with each level; here a reference and a choice are only found to fail,
and looked into where somebody asks. For that there is a second schema that accepts the same values, in which each
reference and choice is wrapped twice in `not`: the validator tells of a `not` without a look inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from jsonschema_rs import ValidationErrorKind

from ..values.json import Json
from ..values.text import steps
from .complexity import Compile, identifier, is_old
from .errors import Branches, Fault, Path, told

if TYPE_CHECKING:
    import jsonschema_rs
    from jsonschema_rs import ValidationError

Pointer = tuple[str, ...]

_MARK: Final = "toolwright:cut "
_ROOT: Final = "toolwright:cuts"  # and nothing that a schema of ours is called
_CHOICES: Final = ("anyOf", "oneOf")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_FREE_LOOKS: Final = 30
_FREE_PARTS: Final = 300_000  # of values, in these looks
_PARTS: Final = 100_000  # of values that are looked at; the validator takes up to 10 µs for each
_LOOKS_AT_ONE: Final = 3  # at one choice for one value; a schema that is a choice of itself would go on for ever


@dataclass(frozen=True, slots=True)
class _Cut:
    """A place in the second schema that nobody looks into unasked: a choice of so many, or a reference."""

    keyword: str
    pointer: Pointer
    size: int = 0
    target: str = ""


class Cuts:
    """The second schema of one schema."""

    def __init__(self, schema: Any, compile_: Compile) -> None:
        """Make it.

        Args:
            schema: In the dialect that its `$schema` names.
            compile_: Makes the validator of a schema.
        """
        self._compile = compile_
        self._old = is_old(schema)
        self._identifier = identifier(schema)
        self._cuts: list[_Cut] = []
        self._moved: dict[Pointer, Pointer] = {}
        self._references: list[tuple[dict[str, Any], str, Pointer]] = []
        self.schema = self._schema(schema, (), (), ())
        for holder, keyword, base in self._references:
            holder[keyword] = self._led(holder[keyword], base)
        self._validators: dict[int, jsonschema_rs.Validator] = {}

    def errors(self, number: int, value: Any) -> list[list[ValidationError]]:
        """What the validator says of a value at a cut, for each alternative; -1 is the root."""
        cut = self._cuts[number] if number >= 0 else _Cut("", ())
        if number not in self._validators:
            self._validators[number] = self._compile(self._part(cut))
        found: list[list[ValidationError]] = [[] for _ in range(cut.size or 1)]
        for error in self._validators[number].iter_errors(value):
            found[int(error.evaluation_path[1])].append(error)
        return found

    def cut(self, number: int) -> _Cut:
        """What is cut there."""
        return self._cuts[number]

    def _part(self, cut: _Cut) -> dict[str, Any]:
        """A schema that leads to what is cut."""
        dialect = {"$schema": self.schema["$schema"]} if "$schema" in self.schema else {}
        keyword = self._identifier
        name = str(self.schema.get(keyword, _ROOT)).rstrip("#")
        places = [(*cut.pointer, cut.keyword, str(index)) for index in range(cut.size)] or [cut.pointer]
        return {
            **dialect,
            "definitions" if self._old else "$defs": {"root": {**self.schema, keyword: name}},
            "allOf": [{"$ref": name + _fragment(place)} for place in places],
        }

    def _schema(self, schema: Json, was: Pointer, now: Pointer, base: Pointer) -> Any:
        """The copy of a schema that stood at `was` and will stand at `now`; `base` is where its `$id` is."""
        if isinstance(schema, list):
            return [self._schema(one, (*was, str(n)), (*now, str(n)), base) for n, one in enumerate(schema)]
        if not isinstance(schema, dict):
            return schema
        hides = self._old and isinstance(schema.get("$ref"), str)
        if isinstance(schema.get(self._identifier), str) and not hides:
            base = was
        made: dict[str, Any] = {}
        wrapped: list[Any] = []
        all_of: Json = schema.get("allOf")
        there = len(all_of) if not hides and isinstance(all_of, list) else 0
        value: Json
        for keyword, value in schema.items():
            inner = (*now, "allOf", str(there + len(wrapped)), "not", "not")
            if keyword in _CHOICES and isinstance(value, list) and not hides:
                self._moved[*was, keyword] = (*inner, keyword)
                self._cuts.append(_Cut(keyword, inner, len(value)))
                mark = f"{_MARK}{len(self._cuts) - 1}"
                alternatives = self._schema(value, (*was, keyword), (*inner, keyword), base)
                wrapped.append({"not": {"$comment": mark, "not": {keyword: alternatives}}})
            elif keyword in _REFERENCES and isinstance(value, str) and (keyword == "$ref" or not hides):
                self._cuts.append(_Cut(keyword, inner, target=f"{_fragment(base)} {value}"))
                holder = {keyword: value}
                self._references.append((holder, keyword, base))
                wrapped.append({"not": {"$comment": f"{_MARK}{len(self._cuts) - 1}", "not": holder}})
            elif keyword in _UNEVALUATED or (hides and keyword not in ("$schema", "definitions", "$defs")):
                pass
            elif keyword in _DATA:
                made[keyword] = value
            elif keyword in _NAMED and isinstance(value, dict):
                made[keyword] = {
                    name: self._schema(one, (*was, keyword, name), (*now, keyword, name), base)
                    for name, one in value.items()
                }
            else:
                made[keyword] = self._schema(value, (*was, keyword), (*now, keyword), base)
        if wrapped:
            made["allOf"] = [*made.get("allOf", ()), *wrapped]
        return made

    def _led(self, reference: str, base: Pointer) -> str:
        """A reference that leads where its target is now; below `base` its pointer starts."""
        if not reference.startswith("#/"):
            return reference
        target = self._place((*base, *steps(unquote(reference[1:]))))
        return _fragment(target[len(self._place(base)) :])

    def _place(self, was: Pointer) -> Pointer:
        """Where what stood at `was` is now."""
        now: Pointer = ()
        for length in range(1, len(was) + 1):
            now = self._moved.get(was[:length], (*now, was[length - 1]))
        return now


class Looking:
    """The faults of one value, as far as somebody asks for them."""

    def __init__(self, cuts: Cuts, value: Any) -> None:
        """Look at a value, which the schema does not accept."""
        self._cuts = cuts
        self._value = value
        self._looks = 0
        self._parts = 0
        self._known: dict[tuple[str, Path], list[Fault]] = {}
        self._chosen: Counter[tuple[int, Path]] = Counter()

    def faults(self) -> Iterator[Fault]:
        """What is wrong with the value."""
        for branch in self._cuts.errors(-1, self._value):
            yield from self._found(branch, self._value, ())

    def _found(self, errors: Iterable[ValidationError], value: Any, above: Path) -> Iterator[Fault]:
        for error in errors:
            fault = told(error, value, above)
            number = _number(error.kind)
            if number is None:
                yield replace(fault, schema=self._cuts.schema)
            elif self._cuts.cut(number).size:
                yield self._choice(number, fault)
            else:
                yield from self._followed(number, fault)

    def _followed(self, number: int, fault: Fault) -> Sequence[Fault]:
        """What is wrong according to the schema that a reference leads to."""
        key = self._cuts.cut(number).target, fault.path
        if key not in self._known:
            self._known[key] = []  # which a schema that is but itself finds
            if self._may_look(fault.instance):
                (errors,) = self._cuts.errors(number, fault.instance)
                self._known[key] = [*self._found(errors, fault.instance, fault.path)]
            self._known[key] = self._known[key] or [replace(fault, kind=None)]
        return self._known[key]

    def _choice(self, number: int, fault: Fault) -> Fault:
        def branches() -> Branches:
            self._chosen[number, fault.path] += 1
            if self._chosen[number, fault.path] > _LOOKS_AT_ONE or not self._may_look(fault.instance):
                return ()
            return [
                [*self._found(errors, fault.instance, fault.path)]
                for errors in self._cuts.errors(number, fault.instance)
            ]

        return replace(fault, kind=None, branches=branches)

    def _may_look(self, value: Any) -> bool:
        self._looks += 1
        self._parts += _parts(value, _FREE_PARTS)
        return self._parts <= (_FREE_PARTS if self._looks <= _FREE_LOOKS else _PARTS)


def _parts(value: Any, most: int) -> int:
    """How many values there are in a value, itself among them; not counted on above `most`."""
    waiting, count = [value], 0
    while waiting and count < most:
        here = waiting.pop()
        count += 1
        if isinstance(here, dict):
            waiting += here.values()
        elif isinstance(here, list):
            waiting += here
    return count


def _number(kind: ValidationErrorKind) -> int | None:
    """The number of the cut that failed; nothing where it is another error."""
    match kind:
        case ValidationErrorKind.Not({"$comment": str(mark)}) if mark.startswith(_MARK):
            return int(mark.removeprefix(_MARK))
        case _:
            return None


def _fragment(pointer: Pointer) -> str:
    said = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in pointer)
    return "#" + quote(said, safe="/~!$&'()*+,;=:@?")
