"""Data of stubwright next to its own code: templates, the runtime, and the manifest's JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import stubwright_runtime

ROOT: Final = Path(__file__).parent
"""The folder of stubwright's own code."""

RUNTIME: Final = Path(stubwright_runtime.__file__).parent
"""The folder of the runtime, on which generated packages run."""

MANIFEST_SCHEMA: Final = ROOT / "compile" / "manifest.schema.json"
"""The JSON Schema of manifests."""

TEMPLATES: Final = ROOT / "templates" if (ROOT / "templates").is_dir() else ROOT.parents[1] / "templates"
"""The templates: in a wheel below the code, in a checkout at the repository's root."""
