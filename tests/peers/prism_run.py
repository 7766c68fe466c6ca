"""From an OpenAPI document to verdicts: generates and calls its server, and Prism checks the requests."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import prism
import prism_calls
from command_line import stubwright
from packages import imported
from prism import CRASHED, Judge, Judged, Prism
from prism_calls import Call
from prism_verdicts import Verdict, verdict
from stubwright import naming

Json = Any


@dataclass(frozen=True, slots=True)
class Result:
    """A call that was made, its request, and whose fault it is that it was refused."""

    call: Call
    judged: Judged | None
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        arguments = json.dumps(self.call.arguments, ensure_ascii=False)[:300]
        asked = self.judged.asked if self.judged else None
        sent = f"{asked.method} {asked.path}?{asked.query[:300]} {asked.body[:200]!r}" if asked else "nothing sent"
        return f"{self.verdict}: {self.call.tool} ({self.call.kind}): {self.why}\n    {sent}\n    {arguments}"


@dataclass
class Report:
    """Prism's verdicts on the calls of a document's tools."""

    document: str
    tools: int
    start: float
    listed: int
    results: list[Result] = field(default_factory=list)

    def row(self) -> str:
        """A line of a table: calls, those accepted, and the others by whose fault it is."""
        counts = Counter(each.verdict for each in self.results)
        reasons = Counter((each.verdict, each.why) for each in self.results if each.verdict not in ("accepted", "ours"))
        others = "; ".join(f"{count} {whose}: {why}" for (whose, why), count in sorted(reasons.items()))
        return (
            f"{self.document} | {self.tools} | {len(self.results)} | {counts['accepted']} | {counts['ours']} | {others}"
        )


def build(document: Path, folder: Path, most: int) -> dict[str, Json]:
    """Import a document, generate the server of up to `most` of its tools, and return the manifest."""
    done = stubwright("import", "openapi", str(document), "--name", document.stem, "-o", "whole.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    with (folder / "whole.yaml").open("rb") as source:
        manifest: dict[str, Json] = yaml.load(source, yaml.CSafeLoader)
    manifest["tools"] = prism_calls.choose(manifest["tools"], most)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    made = stubwright("generate", "-q", "manifest.json", cwd=folder)
    assert made.returncode == 0, made.stderr
    return manifest


@contextmanager
def credentials(manifest: Mapping[str, Json], url: str) -> Iterator[None]:
    """The environment of a server whose APIs are all at `url`, with made-up credentials."""
    said = {api["baseUrlEnv"]: url for api in manifest["apis"].values()}
    schemes = [scheme for api in manifest["apis"].values() for scheme in api.get("auth", {}).values()]
    said |= {
        scheme[key]: "made-up" for scheme in schemes for key in ("env", "usernameEnv", "passwordEnv") if key in scheme
    }
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def run(prism_: Prism, document: Path, folder: Path, most: int = prism_calls.MOST) -> Report:
    """Judge the calls of a document's tools.

    Raises:
        NotRunError: Prism does not start.
    """
    return judged(prism_, document, folder, build(document, folder, most))


def judged(prism_: Prism, document: Path, folder: Path, manifest: Mapping[str, Json]) -> Report:
    """Judge the calls of the server in `folder`, which was built from that manifest.

    Raises:
        NotRunError: Prism does not start.
    """
    with prism.judging(prism_, document, folder / "prism.log") as judge:
        return serve(judge, folder, document.stem, manifest)


def serve(judge: Judge, folder: Path, name: str, manifest: Mapping[str, Json]) -> Report:
    """Call all tools of the server in `folder`, which was built from that manifest."""
    before = time.perf_counter()
    with credentials(manifest, judge.url), imported(folder / "generated", naming.name_package(name)) as package:
        return asyncio.run(called(package, name, judge, before))


async def called(package: ModuleType, name: str, judge: Judge, before: float) -> Report:
    """Call all tools of a server, over `tools/call`; its start is counted from `before`."""
    async with getattr(package, f"{naming.name_server_stem(name)}Client").connect(package.build_server()) as client:
        listed = [
            each.model_dump(mode="json", by_alias=True, exclude_none=True)
            for each in (await client.raw.list_tools()).tools
        ]
        size = len(json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode())
        report = Report(name, len(listed), time.perf_counter() - before, size)
        for tool in listed:
            for call in prism_calls.calls(tool):
                report.results.append(result := await _result(client, call, judge))
                if result.judged and result.judged.refusal and result.judged.refusal.code == CRASHED:
                    break  # the next would end it, too
        return report


async def _result(client: Any, call: Call, judge: Judge) -> Result:
    count = len(judge.judged)
    given = await client.raw.call_tool(call.tool, dict(call.arguments))
    judged = judge.judged[count] if len(judge.judged) > count else None
    said = "\n".join(getattr(block, "text", "") for block in given.content) if given.is_error else None
    return Result(call, judged, *verdict(call, judged, said))


def faults(results: Sequence[Result]) -> list[str]:
    """Those that are ours."""
    return [str(each) for each in results if each.verdict == "ours"]
