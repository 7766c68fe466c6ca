"""A schema that an instance is searched for, with what its references lead to, and whether a value fits it alone.

`AT` and `EACH` are keywords of the search's own, which no schema of a user can have as strings do: what the item at a
place, or each item, must be as well.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema.pointers import local
from stubwright_runtime.schema.validation import compile_schema

if TYPE_CHECKING:
    from stubwright.diff.subsumption.proof import Judge
    from stubwright.ir import Json
    from stubwright_runtime.schema.numbers import CompiledSchema

AT: Final = "\0at"
EACH: Final = "\0each"

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
TEXT_KEYWORDS: Final = frozenset({"minLength", "maxLength", "pattern", "format"})
NUMBER_KEYWORDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_SIMPLE: Final = TEXT_KEYWORDS | NUMBER_KEYWORDS | {"type", "enum", "const"}


@dataclass(frozen=True, slots=True)
class Part:
    """A schema inside a judge's; `is_settled` says that its `not` has only keywords for values without parts."""

    schema: Json
    judge: Judge
    is_settled: bool = False

    def get(self, keyword: str, default: Any = None) -> Any:
        """Return the value of a keyword; the default where the schema is a boolean."""
        return self.schema.get(keyword, default) if isinstance(self.schema, dict) else default

    def at(self, schema: Json) -> Part:
        """Return another schema of the same judge."""
        return replace(self, schema=schema, is_settled=False)

    def settle(self, schema: Json) -> Part:
        """Return another schema, whose `not` is a test for one value."""
        return replace(self, schema=schema, is_settled=True)

    def negate(self, schema: Json) -> Part:
        """Return what another schema of the same judge rejects."""
        if isinstance(schema, bool):
            return self.at(not schema)
        return self.at(schema["not"] if isinstance(schema, dict) and schema.keys() == {"not"} else {"not": schema})

    def follow(self, reference: Json) -> Part | None:
        """Return what a reference leads to; None if that is not found."""
        try:
            return self.at(local(self.judge.schema, reference)) if isinstance(reference, str) else None
        except LookupError:
            return None

    def fits(self, value: Json) -> bool:
        """Tell whether a value fits the keywords for values without parts."""
        if not isinstance(self.schema, dict):
            return self.schema is not False
        simple = {key: inner for key, inner in self.schema.items() if key in _SIMPLE or self.is_settled}
        return is_valid(self, simple, value)


def is_valid(part: Part, schema: Json, value: Json) -> bool:
    """Tell whether a value is valid under a schema without references, in the dialect of a part."""
    if schema in (True, {}):
        return True
    if not isinstance(schema, dict):
        return False
    text = json.dumps({"$schema": part.judge.dialect.uri, **schema})
    try:
        return bool(_compile(text, formats=part.judge.formats == "assert").is_valid(value))
    except ValueError:
        return False


@lru_cache(4096)
def _compile(text: str, *, formats: bool) -> CompiledSchema:
    return compile_schema(json.loads(text), formats=formats)
