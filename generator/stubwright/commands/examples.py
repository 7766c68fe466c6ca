"""Exit statuses and examples at the end of each command's help.

Commands without an entry write their own epilog. Every command exits with 2 on a usage error, and with 130 if
interrupted, unless it serves or watches.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_MANIFEST: Final = "1 invalid manifest"
_PRINTED: Final = f"0 printed, {_MANIFEST}"

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "new": ("0 created, 1 the source cannot be read, or a file cannot be written", "stubwright new my-server"),
        "check": (
            "0 no errors (with --strict, no warnings), 1 errors found",
            "stubwright check specs/weather.yaml",
            "stubwright check --fix",
        ),
        "generate": (
            "0 up to date, or --watch interrupted, 1 errors, or differences with --check",
            "stubwright generate specs/weather.yaml -o generated",
        ),
        "dev": ("0 interrupted, 1 manifest not found, or address unavailable", "stubwright dev specs/weather.yaml"),
        "list": (f"{_PRINTED}, 3 no response from the server", "stubwright list specs/weather.yaml"),
        "inspect": (f"{_PRINTED}, 3 no response from the server", "stubwright inspect specs/weather.yaml get_weather"),
        "install": (
            "0 written, 1 the manifest or the client's file is invalid, or --remove found no server",
            "stubwright install claude specs/weather.yaml",
        ),
        "diff": (
            "0 no breaking change, 1 a breaking change (or a level from --fail-on), or an unreadable side",
            "stubwright diff git:main specs/weather.yaml",
        ),
        "explain": ("0 explained", "stubwright explain SW203"),
        "targets": ("0 printed", "stubwright targets gemini"),
        "export": (_PRINTED, "stubwright export specs/weather.yaml --target openai-strict"),
        "import": (
            "0 written, 1 the source cannot be read, or a file cannot be written",
            "stubwright import openapi api.json -o specs/api.yaml",
        ),
        "refresh": (
            "0 up to date, 1 a file cannot be imported again, or differences with --check",
            "stubwright refresh --check",
        ),
        "mock": (
            "0 stopped, 1 invalid manifest, or address unavailable",
            "stubwright mock specs/weather.yaml --http 127.0.0.1:8000",
        ),
        "replay": (
            "0 stopped, 1 invalid recording, or address unavailable",
            "stubwright replay desk.jsonl --http 127.0.0.1:8000",
        ),
        "docs": (f"0 written, {_MANIFEST}", "stubwright docs specs/weather.yaml -o site"),
        "publish": ("0 written, 1 the project or its manifest is invalid", "stubwright publish specs/weather.yaml"),
        "schema": ("0 printed", "stubwright schema > manifest.schema.json"),
        "wheels": ("0 written, 1 a wheel cannot be built or written", "stubwright wheels -o wheels"),
        "completion": ("0 printed", "stubwright completion zsh"),
    }
)
"""Each command's exit statuses, followed by its examples."""


def format_epilog(text: str, statuses: str, *examples: str) -> str:
    """Return the text below a command's options: notes, exit statuses, and examples."""
    ending = "" if "interrupted" in statuses or "stopped" in statuses else ", 130 interrupted"
    usual = textwrap.fill(f"{statuses}, 2 usage error{ending}", 100, initial_indent="  ", subsequent_indent="  ")
    shown = "".join(f"\n  {example}" for example in examples)
    parts = [textwrap.fill(text, 100), f"exit status:\n{usual}", f"example{'s' if examples[1:] else ''}:{shown}"]
    return "\n\n".join(part for part in parts if part)
