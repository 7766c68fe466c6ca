"""What the commands cost that people run all the time, as multiples of starting Python.

    python bench/commands.py

Targets: `--help` at most 8, `check` on the weather manifest and an unchanged `generate` at most 25.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from timing import medians

ROOT = Path(__file__).parents[1]
LIMITS = {"--help": 8, "check": 25, "generate, unchanged": 25}


def main() -> None:
    """Print a table of medians and ratios."""
    stubwright = str(Path(sys.executable).with_name("stubwright"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "specs").mkdir()
        for file in ("weather.yaml", "weather.md"):
            shutil.copy(ROOT / "specs" / file, folder / "specs")
        times = medians(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "--help": [stubwright, "--help"],
                "check": [stubwright, "check", "specs/weather.yaml"],
                "generate, unchanged": [stubwright, "generate", "specs/weather.yaml"],
            },
            rounds=15,
            folder=folder,
        )
    base = times["python -c pass"]
    print(f"{'command':24}{'median ms':>12}{'ratio':>10}{'target':>10}")
    for command, seconds in times.items():
        target = f"≤ {LIMITS[command]}" if command in LIMITS else ""
        print(f"{command:24}{seconds * 1000:12.1f}{seconds / base:10.1f}{target:>10}")


if __name__ == "__main__":
    main()
