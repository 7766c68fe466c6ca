"""The help desk of `specs/helpdesk.yaml` beside the same server in FastMCP, `helpdesk_fastmcp.py`.

    python bench/helpdesk.py

Both are started over stdio and called by one client, the SDK's, with the same calls (`tests/support/desk_calls.py`);
their structured results must be the same, but for the times of what is new. Then their lines are counted by the rule of
`lines.py`: all but blank lines, comments and docstrings, in files that are at most 120 characters wide. Ours are the
manifest and the handlers. That is the stricter way: in FastMCP the description of a tool is a docstring, which does not
count, and in a manifest it is a line that does. The tables, `examples/helpdesk.sql`, are the same file for both.
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
    """The result of each call, and of one with content that is not base64: structured, or an error's text."""

    async def answer(_ctx: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        if not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=desk_calls.filled(params.requested_schema))

    async def ask(name: str, arguments: dict[str, Any]) -> Any:
        result = await client.call_tool(name, arguments)
        texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
        return f"error: {texts[0]}" if result.is_error else desk_calls.comparable(result.structured_content)

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generated"), str(ROOT / "examples")])}
    params = mcp.StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=ROOT)
    async with mcp.Client(mcp.stdio_client(params, errlog=log), mode=era, elicitation_callback=answer) as client:
        called = [(name, await ask(name, arguments)) for name, arguments in desk_calls.CALLS]
        return {"calls": called, "no base64": await ask("attach_file", NO_BASE64)}


def different(era: str, ours: dict[str, Any], theirs: dict[str, Any]) -> int:
    """Print which results differ, and how; gives how many do."""
    pairs = [(one, other) for one, other in zip(ours["calls"], theirs["calls"], strict=True) if one != other]
    print(f"{era}: {len(ours['calls']) - len(pairs)} of {len(ours['calls'])} structured results are the same")
    for (name, one), (_, other) in pairs:
        print(f"  {name}:\n    stubwright: {_short(one)}\n    FastMCP:    {_short(other)}")
    return len(pairs)


def _short(result: Any) -> str:
    return textwrap.shorten(result if isinstance(result, str) else json.dumps(result), 110)


def main() -> int:
    """Print all; 1 where results differ although both can ask, or where ours is longer than it may be."""
    servers = {
        "ours": [sys.executable, "-m", "helpdesk_mcp"],
        "theirs": [str(fastmcp()), str(THEIRS[0])],
    }
    differ = {}
    for era in ERAS:
        with Path(os.devnull).open("w") as log:
            found = {name: asyncio.run(run(command, era, log)) for name, command in servers.items()}
        differ[era] = different(era, found["ours"], found["theirs"])
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
