"""Names of files in the folder of a mock, which one process writes and the other reads."""

from __future__ import annotations

from typing import Final

MANIFEST: Final = "manifest.json"
"""The package's manifest, as it is generated."""

OPTIONS: Final = "mock.json"
"""What was said to the mock, beside the manifest."""
