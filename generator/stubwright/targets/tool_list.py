"""The tools in a list, parsed for rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stubwright.jsonschema import dialects
from stubwright.jsonschema.dialects import Dialect

if TYPE_CHECKING:
    from stubwright.diagnostics import Pointer


@dataclass(frozen=True)
class ListedTool:
    """A tool in `tools/list`. Its input schema is parsed once for all rules.

    Attributes:
        definition: The tool's entry in the list.
        server: The server's name, which clients prepend to the tool's name.
    """

    definition: Mapping[str, Any]
    server: str

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.definition["name"])

    @cached_property
    def dialect(self) -> Dialect:
        """The dialect of the tool's input schema."""
        return dialects.find_dialect(self.schema) or dialects.DRAFT_2020_12

    @property
    def schema(self) -> Any:
        """The tool's input schema."""
        return self.definition.get("inputSchema", {})

    @cached_property
    def schemas(self) -> Sequence[tuple[Pointer, Mapping[str, Any]]]:
        """All subschemas of the input schema that are objects, with their pointers, in source order."""
        subschemas = dialects.iterate_subschemas(self.schema, self.dialect)
        return [(pointer, schema) for pointer, schema in subschemas if isinstance(schema, dict)]


def make_list(definitions: Iterable[Mapping[str, Any]], server: str) -> list[ListedTool]:
    """Parse the tools that the server with this name lists."""
    return [ListedTool(definition, server) for definition in definitions]
