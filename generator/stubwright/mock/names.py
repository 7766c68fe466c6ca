"""File names in a mock's folder, which one process writes and another reads."""

from __future__ import annotations

from typing import Final

MANIFEST: Final = "manifest.json"
"""The generated `manifest.json`."""

OPTIONS: Final = "mock.json"
"""The mock's options file."""
