"""Runs the attacks in this folder. Each program attacks real servers and prints its measurements.

    python bench/torture/run.py [--quick] [NAME…]

Returns 1 if a requirement fails. `--quick` runs each attack for a few seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run" and path.stem[0] != "_"))
"""The attacks. Modules whose name begins with an underscore are shared code."""


def main() -> int:
    """Run the named attacks, or all attacks."""
    parser = argparse.ArgumentParser(description="Attack real servers, and measure the effects.")
    parser.add_argument("--quick", action="store_true", help="run a sample of some seconds of each attack")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"attacks to run: {', '.join(NAMES)} (default: all)")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    failed: list[str] = []
    for name in options.names or NAMES:
        start = time.monotonic()
        command = [sys.executable, str(FOLDER / f"{name}.py"), *(["--quick"] if options.quick else [])]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
        print(f"{name}: {'FAILED' if name in failed else 'held'} after {time.monotonic() - start:.0f} s", flush=True)
    held = len(options.names or NAMES) - len(failed)
    print(f"{held} held, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
