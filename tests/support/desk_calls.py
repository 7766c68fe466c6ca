"""Calls that cover the whole help desk, for any client, and the comparable form of their results."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

LIN: Final = {"name": "Lin", "email": "lin@example.com"}
PHOTO: Final = bytes(range(256))
ANSWERS: Final = {"resolution": "The amplifier was off."}
"""The user's answers to forms. All other fields are checkboxes, which are ticked."""

READING: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("get_ticket", {"id": 2}),
    ("get_statistics", {}),
    ("list_tickets", {"limit": 2}),
    ("list_tickets", {"limit": 2, "cursor": "2"}),
)
"""Calls that do not change the database."""

CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    *READING,
    ("create_ticket", {"subject": "No coffee", "description": "Since eight.", "reporter": LIN}),
    ("add_comment", {"id": 4, "author": LIN, "text": "It is bad."}),
    ("assign_ticket", {"id": 3, "assignee": LIN}),
    ("assign_ticket", {"id": 1}),
    (
        "attach_file",
        {"id": 4, "name": "photo.png", "media_type": "image/png", "content": base64.b64encode(PHOTO).decode()},
    ),
    ("close_ticket", {"id": 1, "resolution": "New rollers."}),
    ("close_ticket", {"id": 2}),
    ("list_tickets", {"status": "open", "priority": "normal"}),
    ("get_statistics", {}),
)
"""Calls that all succeed, on a new database, if the user accepts every question."""

_NOW: Final = re.compile(r"(?!2026-07-2[78])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def normalize(value: Any) -> Any:
    """Return a result with `now` instead of each time, except for the initial database's times."""
    if isinstance(value, Mapping):
        return {key: normalize(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [normalize(entry) for entry in value]
    return "now" if isinstance(value, str) and _NOW.fullmatch(value) else value


def fill_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers to a form, by its schema."""
    return {name: ANSWERS.get(name, True) for name in form["properties"]}
