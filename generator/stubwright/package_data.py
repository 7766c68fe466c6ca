"""Data files next to stubwright's code: templates, the runtime, and the manifest's JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import stubwright_runtime

ROOT: Final = Path(__file__).parent
"""The folder with stubwright's own code."""

RUNTIME: Final = Path(stubwright_runtime.__file__).parent
"""The folder with the runtime for generated packages."""

MANIFEST_SCHEMA: Final = ROOT / "compile" / "manifest.schema.json"
"""The JSON Schema for manifests."""

TEMPLATES: Final = ROOT / "templates" if (ROOT / "templates").is_dir() else ROOT.parents[1] / "templates"
"""The templates: below the code in a wheel, at the repository root in a checkout."""
