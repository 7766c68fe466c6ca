"""Runs the attacks of this folder, one after the other: each program attacks real servers, and prints what it measured.

    python bench/torture/run.py [--quick] [NAME…]

Gives 1 where something did not hold. With `--quick`, each takes a sample of some seconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "run" and path.stem[0] != "_"))
"""The attacks; a module whose name begins with an underscore is shared by several."""


def main() -> int:
    """Run them all, or those that are named."""
    parser = argparse.ArgumentParser(description="Attack real servers, and measure what becomes of them.")
    parser.add_argument("--quick", action="store_true", help="take a sample of each, of some seconds")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {', '.join(NAMES)}; all unless said otherwise"
    )
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
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
