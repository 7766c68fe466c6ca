"""What compiling costs beside making the models alone with datamodel-codegen.

    python bench/compile.py [TOOLS …]

Compiles manifests of 100 tools (or of the numbers given) from nothing, and has `datamodel-codegen --input-file-type
mcp-tools` with Black make models for the same tools. Target: a whole package at no more than twice the models alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from timing import medians
from tools import tools


def main() -> None:
    """Print a table of medians and ratios."""
    sizes = [int(text) for text in sys.argv[1:]] or [100]
    bin_ = Path(sys.executable).parent
    print(f"{'tools':>6}{'toolwright s':>14}{'datamodel-codegen s':>22}{'ratio':>8}{'target':>8}")
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            listed = tools(size)
            manifest = {"toolwright": 1, "server": {"name": "bench", "version": "1"}, "tools": listed}
            (folder / "bench.json").write_text(json.dumps(manifest))
            (folder / "tools.json").write_text(json.dumps({"tools": listed}))
            fresh = f"rm -rf out && {bin_ / 'toolwright'} generate bench.json -o out"
            peer = [
                str(bin_ / "datamodel-codegen"),
                *("--input", "tools.json", "--input-file-type", "mcp-tools", "--output", "models.py"),
                *("--output-model-type", "pydantic_v2.BaseModel", "--formatters", "black", "isort"),
            ]
            times = medians({"ours": ["sh", "-c", fresh], "models": peer}, rounds=3, folder=folder)
        ratio = times["ours"] / times["models"]
        print(f"{size:>6}{times['ours']:>14.2f}{times['models']:>22.2f}{ratio:>8.2f}{'≤ 2':>8}")


if __name__ == "__main__":
    main()
