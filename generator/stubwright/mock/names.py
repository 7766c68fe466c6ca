"""The names of files in the folder of a mock, which one process writes and the other reads."""

from __future__ import annotations

from typing import Final

MANIFEST: Final = "manifest.json"
"""The package's manifest, as generated."""

OPTIONS: Final = "mock.json"
"""The name of the file with the mock's options."""
