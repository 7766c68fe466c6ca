"""Collects the standard output of a connection as JSON values."""

from __future__ import annotations

import json
from typing import Any


class Sink:
    """An output with unlimited space."""

    is_full = False

    def __init__(self) -> None:
        self.lines: list[Any] = []

    async def send(self, line: bytes) -> None:
        self.lines.append(json.loads(line))
