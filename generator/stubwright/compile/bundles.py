"""Stores large schemas once that many tools share.

On the wire, each tool contains all schemas that it references, since MCP has no place for shared ones. In an API whose
schemas reference each other, each tool then contains hundreds. If a tool's bundled schemas are large, the package's
`manifest.json` has the tool's schema without them, and each shared schema once; the server combines them again.
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
"""Minimum size of bundled schemas, in bytes of JSON, for storing them once."""

_KEYWORD: Final = dialects.DRAFT_2020_12.defs


@dataclass
class Bundles:
    """The shared schemas that are stored once, and their names by the tools and fields that reference them."""

    resolved: ResolvedBundle
    _schemas: dict[Key, Json] = field(default_factory=dict)
    _tools: dict[str, dict[str, Json]] = field(default_factory=dict)
    _sizes: dict[Key, int] = field(default_factory=dict)
    _large: dict[tuple[Key, ...], bool] = field(default_factory=dict)

    def without(self, tool: Declaration) -> Mapping[str, Json]:
        """Return the schemas of a tool, by field, whose bundled schemas are stored here instead."""
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
        """Return everything as `manifest.json` has it; empty if there are no such schemas."""
        if not self._tools:
            return {}
        outlines = self.resolved.shared
        schemas = {
            key.name: {"uses": [other.name for other in outlines[key].list_shared()], "schema": schema}
            for key, schema in sorted(self._schemas.items(), key=lambda entry: entry[0].name)
        }
        return {"bundled": {"tools": self._tools, "schemas": schemas}}

    def _is_large(self, uses: tuple[Key, ...]) -> bool:
        """Store the schemas that these reference if they are large, and return whether they are."""
        if uses not in self._large:
            keys = self.resolved.shared_schemas.find_reached_from(uses)
            # Schemas are stored by name, and two files may use the same name.
            alone = not any(self._names[key.name] > 1 for key in keys)
            self._large[uses] = alone and sum(map(self._size, keys)) >= LARGE
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
