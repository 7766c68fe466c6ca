"""Measures how fast a large server's page is generated and opens in a browser.

    python bench/page.py [TOOLS]

The 200 tools of `tools.py` have descriptions in Markdown and a shared schema. The tests' browser
(`tests/peers/browser.py`) opens the page; a page is open when a frame has been drawn after its `load` event.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "peers"))

import browser
from timing import medians
from tools import tools

TOOLS = 200
ROUNDS = 5
ABOUT = "Finds **what was asked for**.\n\n- `query`: the words\n- see [the manual](https://example.com)\n"
OWNER = {"type": "object", "description": "Who has it", "properties": {"id": {"type": "integer"}}}


def manifest(count: int) -> dict[str, object]:
    made = []
    for one in tools(count):
        schema = one["inputSchema"]
        schema = {**schema, "properties": {**schema["properties"], "boss": {"$ref": "#/schemas/Owner"}}}
        made.append({**one, "description": f"{one.get('description', '')}\n\n{ABOUT}", "inputSchema": schema})
    return {
        "stubwright": 1,
        "server": {"name": "large", "version": "1.0.0"},
        "schemas": {"Owner": OWNER},
        "tools": made,
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TOOLS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "large.json").write_text(json.dumps(manifest(count)))
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "docs": [sys.executable, "-m", "stubwright", "docs", "large.json", "-o", "site"],
        }
        taken = medians(commands, rounds=3, folder=folder)
        page = folder / "site" / "large_mcp.html"
        print(f"{count} tools: generated in {taken['docs']:.2f} s ({page.stat().st_size / 1e6:.2f} MB)")
        found = browser.find()
        said = found.run(Path(__file__).with_name("page.mjs"), page.as_uri())
        for what, times in said.items():
            target = "   target: under 1000 ms" if what == "open" else ""
            print(f"{what:>30}: {statistics.median(times):6.0f} ms  ({min(times):.0f} to {max(times):.0f}){target}")


if __name__ == "__main__":
    try:
        main()
    except browser.NotThereError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr.decode())
