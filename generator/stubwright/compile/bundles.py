"""Stores large shared schemas once in `manifest.json`. The server bundles them into each tool.

On the wire, each tool contains all schemas that it references, possibly hundreds, since MCP has no shared schemas.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema import bundling, dialects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json
    from stubwright.jsonschema.references import Key

LARGE: Final = 16_384
"""Bundled schemas of at least this many bytes of JSON are stored once."""

_KEYWORD: Final = dialects.DRAFT_2020_12.defs


@dataclass
class Bundles:
    """Shared schemas that are stored once, and the names that each tool's schemas reference."""

    resolved: ResolvedBundle
    _schemas: dict[Key, Json] = field(default_factory=dict)
    _tools: dict[str, dict[str, Json]] = field(default_factory=dict)
    _sizes: dict[Key, int] = field(default_factory=dict)
    _large: dict[tuple[Key, ...], bool] = field(default_factory=dict)

    def extract(self, tool: Declaration) -> Mapping[str, Json]:
        """Store the large schemas that a tool references. Return the tool's own schemas, keyed by field."""
        schemas: dict[str, Json] = {}
        if self.resolved.splits_types:
            return schemas
        for name, outline in self.resolved.list_schemas(tool):
            if self.resolved.sends_inlined(outline):
                continue
            bundled = self.resolved.bundle_schema(outline)
            if bundled.uses and outline.dialect.defs == _KEYWORD and self._is_large(bundled.uses):
                schemas[name] = bundled.own
                self._tools.setdefault(tool.name, {})[name] = [key.name for key in bundled.uses]
        return schemas

    def make_document(self) -> dict[str, Any]:
        """Return the `bundled` section of `manifest.json`, empty if no schema is stored."""
        if not self._tools:
            return {}
        outlines = self.resolved.shared
        schemas = {
            key.name: {"uses": [other.name for other in outlines[key].list_shared()], "schema": schema}
            for key, schema in sorted(self._schemas.items(), key=lambda entry: entry[0].name)
        }
        return {"bundled": {"tools": self._tools, "schemas": schemas}}

    def _is_large(self, uses: tuple[Key, ...]) -> bool:
        """Return whether the schemas in `uses` are large, with everything that they reference.

        Large schemas are also stored.
        """
        if uses not in self._large:
            keys = self.resolved.shared_schemas.find_reached_from(uses)
            # Schemas are stored by name, and two files may use the same name.
            is_unambiguous = not any(self._names[key.name] > 1 for key in keys)
            self._large[uses] = is_unambiguous and sum(map(self._size, keys)) >= LARGE
            if self._large[uses]:
                shared = self.resolved.shared_schemas
                self._schemas |= {key: bundling.keep_names(key, _KEYWORD, shared) for key in keys}
        return self._large[uses]

    @cached_property
    def _names(self) -> Counter[str]:
        return Counter(key.name for key in self.resolved.shared)

    def _size(self, key: Key) -> int:
        from pydantic_core import to_json

        if key not in self._sizes:
            self._sizes[key] = len(to_json(self.resolved.shared[key].schema))
        return self._sizes[key]
