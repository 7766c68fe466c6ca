"""Compares imported APIs with FastMCP's, checked by Prism: the same documents, tools and arguments.

    python bench/openapi.py [FOLDER [DOCUMENT …]]

FOLDER has OpenAPI documents; the default is the documents of the corpus that Prism supports. Calls up to 60 tools of
each document with up to three sets of arguments (`tests/peers/prism_calls.py`), through stubwright and through
`FastMCP.from_openapi`. Prism, a third-party mock, reports requests that violate the document. A request is accepted if
Prism reports no violation in the request; violations in its own response do not count. `start` is the time until the
tools are listed, without the interpreter's start; the stubwright package is generated beforehand. `list` is the size
of `tools/list`; for FastMCP it covers all tools of the document, with their number in brackets. FastMCP makes fewer
calls if it lacks the tool or the argument.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "peers"))

import prism
import prism_calls
import prism_run
import test_prism
from peers import fastmcp
from prism_run import Result

ROOT = Path(__file__).parents[1]
_ASKING = ("accepted", "the document's")


@dataclass(frozen=True, slots=True)
class FastMCPResult:
    """FastMCP's results: how many calls it made, and how many requests Prism accepted."""

    seconds: float
    tools: int
    size: int
    called: int
    accepted: int


def run_fastmcp(judge: prism.Judge, document: Path, calls: Sequence[tuple[str, str, Result]]) -> FastMCPResult | str:
    """Run the same calls through FastMCP's server. Return a word if it does not start."""
    given = [{"method": method, "path": path, "arguments": each.call.arguments} for method, path, each in calls]
    command = [str(fastmcp()), str(ROOT / "bench" / "openapi_fastmcp.py"), str(document), judge.url]
    count = len(judge.judged)
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:80]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    accepted = set()
    for each in judge.judged[count:]:
        said_of = each.refusal.violations if each.refusal else ()
        if each.refusal is None or (said_of and all(one.is_of_answer for one in said_of)):
            accepted.add(each.asked.headers.get("x-call"))
    return FastMCPResult(said["seconds"], said["tools"], said["bytes"], sum(said["called"]), len(accepted))


def compare(judge_of: prism.Prism, document: Path, folder: Path) -> str:
    """Return a row of the table."""
    manifest = prism_run.build(document, folder, prism_calls.MOST)
    where = {tool["name"]: tool["stubwright"]["http"] for tool in manifest["tools"]}
    with prism.judging(judge_of, document, folder / "prism.log") as judge:
        ours = prism_run.serve(judge, folder, document.stem, manifest)
        calls = [
            (where[each.call.tool].get("method", "GET"), where[each.call.tool]["url"], each)
            for each in ours.results
            if each.judged is not None
        ]
        theirs = run_fastmcp(judge, document, calls)
    accepted = sum(each.verdict in _ASKING for _, _, each in calls)
    row = f"| {document.stem} | {ours.tools} | {len(calls)} | {accepted} | {ours.start:.1f} s, {ours.listed:,} B |"
    if isinstance(theirs, str):
        return f"{row} - | - | {theirs} |"
    return (
        f"{row} {theirs.accepted} of {theirs.called} | {theirs.seconds:.1f} s, {theirs.size:,} B ({theirs.tools}) | |"
    )


def main(folder: Path, names: Sequence[str]) -> None:
    judge_of = prism.fetch()
    print("| document | tools | calls | ours accepted | start, list | FastMCP accepted | start, list (tools) | |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as made:
            print(compare(judge_of, folder / name, Path(made)), flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        Path(given[0]) if given else ROOT.parent / "shared" / "corpus" / "openapi-judged",
        given[1:] or test_prism.DOCUMENTS,
    )
