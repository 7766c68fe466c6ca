"""Measures printing diagnostics for a file of one long line, compared with the same file indented.

    python bench/diagnostics.py [MEGABYTES [WARNINGS]]

Checks a saved `tools/list` result of 10 MB with 1,000 warnings in both forms, and prints the diagnostics in each
format. Target: one line takes at most twice the time of the indented file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools import tools

FORMATS = ("text", "json", "github")
LIMIT = 2


def make_tools(size: int, warnings: int) -> list[dict[str, Any]]:
    """Return tools with `size` bytes of JSON; `warnings` of them have no description."""
    sample = len(json.dumps(tools(30))) / 30
    made = tools(max(warnings, int(size / sample)))
    for tool in made[:: len(made) // warnings][:warnings]:
        del tool["description"]
    return made


def time_check(folder: Path, name: str, style: str, warnings: int) -> float:
    """Return the seconds of one `check` process."""
    command = [sys.executable, "-m", "stubwright", "check", name, "--format", style]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=True)
    taken = time.perf_counter() - start
    found = (done.stdout + done.stderr).count("SW312")
    if found != warnings:
        raise RuntimeError(f"{name} gives {found} warnings, not {warnings}")
    return taken


def main() -> None:
    """Print a table."""
    size, warnings = [*map(int, sys.argv[1:]), *(10, 1000)[len(sys.argv) - 1 :]]
    made = {"tools": make_tools(size * 1_000_000, warnings)}
    print(f"{'format':8}{'indented':>10}{'one line':>10}{'ratio':>7}{'target':>8}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form, indent in (("indented", 1), ("line", None)):
            (folder / f"{form}.tools.json").write_text(json.dumps(made, indent=indent))
            manifest = {"stubwright": 1, "server": {"name": "bench", "version": "1"}, "include": [f"{form}.tools.json"]}
            (folder / f"{form}.json").write_text(json.dumps(manifest))
        for style in FORMATS:
            indented, line = (time_check(folder, f"{form}.json", style, warnings) for form in ("indented", "line"))
            print(f"{style:8}{indented:>9.1f}s{line:>9.1f}s{line / indented:>7.2f}{f'≤ {LIMIT}':>8}", flush=True)


if __name__ == "__main__":
    main()
