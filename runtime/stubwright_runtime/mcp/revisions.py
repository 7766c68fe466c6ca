"""MCP revisions and their features.

Other modules check for features instead of dates: `Revision.from_date(date).has("url_elicitation")`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Feature: TypeAlias = Literal[
    "annotations",
    "any_output",
    "audio",
    "batches",
    "cache_hints",
    "choices",
    "elicitation",
    "handshake",
    "handshake_tasks",
    "parameter_headers",
    "resource_links",
    "resumable_streams",
    "stateless",
    "task_extension",
    "unnamed_errors",
    "url_elicitation",
]
"""A feature that only some revisions have, so that servers and clients must check for it.

- `annotations`: tool hints (2025-03-26, server/tools).
- `any_output`: an `outputSchema` and structured content of any type (2026-07-28, server/tools).
- `audio`: audio content (2025-03-26, server/tools).
- `batches`: several messages in one array (2025-03-26 only, basic).
- `cache_hints`: `ttlMs` and `cacheScope` for lists and resources (2026-07-28, server/utilities/caching).
- `choices`: titled and multiple-choice options in forms (2025-11-25, client/elicitation).
- `elicitation`: questions to the user (2025-06-18, client/elicitation).
- `handshake`: a session that starts with `initialize` (2025-11-25 and earlier, basic/lifecycle).
- `handshake_tasks`: tasks that are part of the protocol (2025-11-25, basic/utilities/tasks).
- `parameter_headers`: arguments mirrored into HTTP headers (2026-07-28, server/tools).
- `resource_links`: links to resources as content, and structured output (2025-06-18, server/tools).
- `resumable_streams`: streams that servers may close and clients resume (2025-11-25 only, basic/transports).
- `stateless`: self-contained requests, and responses that ask for input (2026-07-28, basic).
- `task_extension`: tasks as an extension (2026-07-28, extensions/tasks).
- `unnamed_errors`: errors for messages with an unknown `id` omit it, instead of sending `null` (2025-11-25, schema).
- `url_elicitation`: questions that open a URL (2025-11-25, client/elicitation).
"""


@dataclass(frozen=True, slots=True)
class Revision:
    """An MCP revision.

    Attributes:
        date: The revision's date, such as `2025-11-25`.
        features: The features that the revision has.
        fields: The fields that the revision added, by object: `server`, or a list such as `tools`.
    """

    date: str
    features: frozenset[Feature]
    fields: Mapping[str, frozenset[str]]

    def has(self, feature: Feature) -> bool:
        """Return whether this revision has a feature."""
        return feature in self.features

    @staticmethod
    @lru_cache(64)
    def from_date(date: str) -> Revision:
        """Return the revision with a date.

        For an unknown date, return the newest earlier revision, or the oldest revision if none is earlier.
        """
        return _BY_DATE.get(date) or next(
            (revision for revision in reversed(_TABLE) if revision.date <= date), _TABLE[0]
        )


def _table() -> tuple[Revision, ...]:
    table: list[Revision] = []
    features: frozenset[Feature] = frozenset({"handshake"})
    for date, added, removed, fields in _CHANGES:
        features = features - removed | added
        table.append(Revision(date, features, fields))
    return tuple(table)


_NONE: Final[frozenset[Feature]] = frozenset()
_PRIMITIVES: Final = ("resources", "resourceTemplates", "prompts")
_ICONS: Final = frozenset({"icons"})
_NAMED: Final = frozenset({"title", "_meta"})

_CHANGES: Final[tuple[tuple[str, frozenset[Feature], frozenset[Feature], Mapping[str, frozenset[str]]], ...]] = (
    ("2024-11-05", _NONE, _NONE, {}),
    ("2025-03-26", frozenset({"annotations", "audio", "batches"}), _NONE, {"tools": frozenset({"annotations"})}),
    (
        "2025-06-18",
        frozenset({"elicitation", "resource_links"}),
        frozenset({"batches"}),
        {
            "server": frozenset({"title"}),
            "tools": _NAMED | {"outputSchema"},
            **dict.fromkeys(_PRIMITIVES, _NAMED),
        },
    ),
    (
        "2025-11-25",
        frozenset({"choices", "handshake_tasks", "resumable_streams", "unnamed_errors", "url_elicitation"}),
        _NONE,
        {
            "server": frozenset({"icons", "websiteUrl", "description"}),
            "tools": frozenset({"icons", "execution"}),
            **dict.fromkeys(_PRIMITIVES, _ICONS),
        },
    ),
    (
        "2026-07-28",
        frozenset({"any_output", "cache_hints", "parameter_headers", "stateless", "task_extension"}),
        frozenset({"handshake", "handshake_tasks", "resumable_streams"}),
        {},
    ),
)
"""The revisions, oldest first: the date, the added and removed features, and the added fields.

Source: each revision's changelog and schema.
"""

_TABLE: Final = _table()
_BY_DATE: Final = {revision.date: revision for revision in _TABLE}

REVISIONS: Final = tuple(revision.date for revision in _TABLE)
"""The supported revisions, oldest first."""


HANDSHAKES: Final = tuple(revision.date for revision in _TABLE if revision.has("handshake"))
"""The revisions with a handshake."""

UNNAMED: Final = "2025-03-26"
"""The revision of an HTTP request without the header (MCP 2025-11-25, basic/transports, "Protocol Version Header")."""


def negotiate(date: str) -> str:
    """Return the revision to use for a client's requested revision (MCP 2025-11-25, basic/lifecycle)."""
    return date if date in HANDSHAKES else HANDSHAKES[-1]


def find_revision(feature: Feature) -> str:
    """Return the first revision that has a feature."""
    return next(revision.date for revision in _TABLE if revision.has(feature))


SINCE: Final[Mapping[str, Mapping[str, str]]] = {
    section: {field: revision.date for revision in _TABLE for field in sorted(revision.fields.get(section, ()))}
    for section in ("server", "tools", *_PRIMITIVES)
}
"""The revision that added each field, by object. Other fields are in all revisions."""
