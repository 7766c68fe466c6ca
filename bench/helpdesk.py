"""Compares the help desk of `specs/helpdesk.yaml` with the same server in FastMCP, `helpdesk_fastmcp.py`.

    python bench/helpdesk.py

Starts both over stdio, and sends them the same calls (`tests/support/desk_calls.py`) with the SDK's client. Their
structured results must be equal, except for the timestamps of new records. Then counts their lines by the rule of
`lines.py`: all lines except blank lines, comments and docstrings, in files at most 120 characters wide. The
manifest and the handlers count for the generated server. This is the stricter count: the description of a tool is a
docstring in FastMCP, which does not count, and a line in a manifest, which does. Both use the same tables,
`examples/helpdesk.sql`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any, TextIO

import mcp
import mcp_types as types

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import desk_calls
from lines import count
from peers import NotThereError, fastmcp

ROOT = Path(__file__).parents[1]
TARGET = 1.0
ERAS = ("legacy", "2026-07-28")
OURS = (ROOT / "specs" / "helpdesk.yaml", ROOT / "examples" / "helpdesk.py")
THEIRS = (ROOT / "bench" / "helpdesk_fastmcp.py",)
NO_BASE64 = {"id": 4, "name": "broken.png", "content": "!!"}


async def run(command: list[str], era: str, log: TextIO) -> dict[str, Any]:
    """Return the result of each call, and of one with invalid base64: structured content or the error text."""

    async def answer(_ctx: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=desk_calls.fill_form(params.requested_schema))

    async def ask(name: str, arguments: dict[str, Any]) -> Any:
        result = await client.call_tool(name, arguments)
        texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
        return f"error: {texts[0]}" if result.is_error else desk_calls.normalize(result.structured_content)

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generated"), str(ROOT / "examples")])}
    params = mcp.StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=ROOT)
    async with mcp.Client(mcp.stdio_client(params, errlog=log), mode=era, elicitation_callback=answer) as client:
        called = [(name, await ask(name, arguments)) for name, arguments in desk_calls.CALLS]
        return {"calls": called, "no base64": await ask("attach_file", NO_BASE64)}


def print_differences(era: str, ours: dict[str, Any], theirs: dict[str, Any]) -> int:
    """Print the results that differ, and return how many do."""
    pairs = [(one, other) for one, other in zip(ours["calls"], theirs["calls"], strict=True) if one != other]
    print(f"{era}: {len(ours['calls']) - len(pairs)} of {len(ours['calls'])} structured results are the same")
    for (name, one), (_, other) in pairs:
        print(f"  {name}:\n    stubwright: {_short(one)}\n    FastMCP:    {_short(other)}")
    return len(pairs)


def _short(result: Any) -> str:
    return textwrap.shorten(result if isinstance(result, str) else json.dumps(result), 110)


def main() -> int:
    """Print the comparison; return 1 if results differ although both can ask, or if our server has too many lines."""
    servers = {
        "ours": [sys.executable, "-m", "helpdesk_mcp"],
        "theirs": [str(fastmcp()), str(THEIRS[0])],
    }
    differ = {}
    for era in ERAS:
        with Path(os.devnull).open("w") as log:
            found = {name: asyncio.run(run(command, era, log)) for name, command in servers.items()}
        differ[era] = print_differences(era, found["ours"], found["theirs"])
    print("content that is not base64:")
    print(
        f"    stubwright: {_short(found['ours']['no base64'])}\n    FastMCP:    {_short(found['theirs']['no base64'])}"
    )
    ours, theirs = ({path.name: count(path) for path in paths} for paths in (OURS, THEIRS))
    print("lines of code:")
    for name, files in (("stubwright", ours), ("FastMCP", theirs)):
        print(f"    {name}: {sum(files.values())} ({', '.join(f'{path}: {lines}' for path, lines in files.items())})")
    ratio = sum(ours.values()) / sum(theirs.values())
    print(f"    stubwright / FastMCP: {ratio:.2f}   target: at most {TARGET}")
    return int(differ["legacy"] > 0 or ratio > TARGET)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotThereError as error:
        print(f"skipped: {error}")
