"""Write two tables: `_meta` that hosts read (docs/targets.md), and tools that targets reject (bench/README.md).

    python docs/targets.py [FOLDER]

FOLDER has saved `tools/list` results, one file per server; without it, the figures are not measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stubwright import targets
from stubwright.targets import metadata
from stubwright_runtime.projection.forms import FORMS
from stubwright_runtime.projection.functions import project_tools

PAGE: Final = Path(__file__).with_name("targets.md")
FIGURES: Final = Path(__file__).parents[1] / "bench" / "README.md"
KINDS: Final[tuple[metadata.Kind, ...]] = ("tool", "resource")


@dataclass(slots=True)
class _Row:
    tools: int = 0
    servers: int = 0
    warned: int = 0
    projected: int = 0


def measure(folder: Path) -> str:
    """Return the table of figures, measured on saved tool lists."""
    rows = {name: _Row() for name in targets.TARGETS}
    tools = servers = 0
    for path in sorted(folder.glob("*.json")):
        saved = json.loads(path.read_text("utf-8"))
        tools, servers = tools + len(saved["tools"]), servers + 1
        server = str((saved.get("serverInfo") or {}).get("name") or path.stem)
        for name, row in rows.items():
            _count(row, saved["tools"], server, name)
    lines = [
        f"Measured over {tools:,} tools of {servers} servers.",
        "",
        "| target | tools refused | of how many servers | reported only | functions refused |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, row in rows.items():
        projected = f"{row.projected:,}" if name in FORMS else "-"
        lines.append(f"| `{name}` | {row.tools:,} | {row.servers} | {row.warned:,} | {projected} |")
    return "\n".join(lines) + "\n"


def _count(row: _Row, tools: Sequence[Any], server: str, name: str) -> None:
    found = [
        finding
        for finding in targets.find_violations(targets.make_list(tools, server), targets.TARGETS[name])
        if not finding.rule.is_lossy
    ]
    sure = {finding.tool for finding in found if finding.rule.is_sure}
    row.tools += len(sure - {None})
    row.servers += bool(sure)
    row.warned += len({finding.tool for finding in found} - sure - {None})
    if name in FORMS:
        written = [
            {"name": each.name, "description": "d", "inputSchema": each.parameters}
            for each in project_tools(tools, FORMS[name])
        ]
        refused = targets.find_violations(targets.make_list(written, server), targets.TARGETS[name])
        row.projected += len({each.tool for each in refused if not each.rule.is_lossy} - {None})


def keys() -> Iterator[str]:
    """Return the table of `_meta` keys that hosts read, with their sources."""
    yield "| in `_meta` | specifies | read by |\n|---|---|---|\n"
    for kind in KINDS:
        for key in metadata.load_keys(kind).values():
            host = f"{key.host}, [{key.certainty}]({key.source}) {key.read}"
            yield f"| `{key.name}` of a {kind} | {key.says}: {key.takes} | {host} |\n"


def page(text: str) -> str:
    """Return the page with its generated part updated."""
    return _put(text, "metadata", "".join(keys()))


def _put(text: str, name: str, part: str) -> str:
    before, after = f"<!-- {name} -->\n", "<!-- end -->"
    start = text.index(before) + len(before)
    return text[:start] + part + text[text.index(after, start) :]


def main(arguments: Sequence[str]) -> None:
    """Write the page, and with a folder the figures."""
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    for folder in arguments:
        text = FIGURES.read_text("utf-8")
        FIGURES.write_text(_put(text, "measured", measure(Path(folder))), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
