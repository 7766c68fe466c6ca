"""Tests twenty refreshes of two real APIs from one version to a later version, each with one edit in the manifest.

    python bench/refreshes.py [FOLDER]

Fetches the documents from npm (`npm pack`) into FOLDER or a temporary folder. Prints the changes that each refresh
reports, and whether the edit is preserved. An edit of the imported file itself must be rejected and preserved.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stubwright import ir
from stubwright.compile import pipeline
from stubwright.project.files import disk

_PARTS: Final = ("import", "openapi", "api{suffix}", "--name", "api", "--fragment", "-o", "parts/api.yaml")


@dataclass(frozen=True)
class Api:
    """An API: an npm package with its document, two versions, and its import options."""

    name: str
    package: str
    versions: tuple[str, str]
    document: str
    options: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """The file extension of its document."""
        return Path(self.document).suffix


APIS: Final = (
    Api("figma", "@figma/rest-api-spec", ("0.22.0", "0.43.0"), "openapi/openapi.yaml"),
    Api("github", "@octokit/openapi", ("20.0.0", "23.0.2"), "generated/api.github.com.json", ("--include", "issues")),
)

Overlay = Mapping[str, Any]
Kept = Callable[[ir.Manifest, ir.Tool], bool]


@dataclass(frozen=True)
class Edit:
    """An edit: the overlay for a tool and for the API, and whether the manifest has it."""

    place: str
    tool: Overlay
    api: Overlay
    is_kept: Kept


def _document(manifest: ir.Manifest) -> Any:
    return manifest.document


def edits(argument: str) -> Iterator[Edit]:
    """Yield the edits; some of them concern an argument of the tool."""
    yield Edit("description", {"description": "Ours."}, {}, lambda _, tool: tool.description == "Ours.")
    yield Edit("title", {"title": "Ours"}, {}, lambda _, tool: tool.definition["title"] == "Ours")
    hint = {"annotations": {"openWorldHint": False}}
    yield Edit("annotations", hint, {}, lambda _, tool: tool.annotations["openWorldHint"] is False)
    words = {"inputSchema": {"properties": {argument: {"description": "Our words."}}}}
    yield Edit(
        "an argument",
        words,
        {},
        lambda _, tool: tool.definition["inputSchema"]["properties"][argument]["description"] == "Our words.",
    )
    yield Edit("http.timeout", {"http": {"timeout": "7s"}}, {}, lambda _, tool: tool.http["timeout"] == "7s")
    yield Edit("policy", {"policy": {"confirm": True}}, {}, lambda _, tool: bool(tool.policy.get("confirm")))
    token = {"auth": {"own": {"type": "bearer", "env": "OWN_TOKEN"}}, "security": [["own"]]}
    yield Edit("apis.auth", {}, token, lambda manifest, _: "own" in _document(manifest)["apis"]["api"]["auth"])
    header = {"headers": {"X-Ours": "1"}}
    yield Edit(
        "apis.headers", {}, header, lambda manifest, _: _document(manifest)["apis"]["api"]["headers"] == {"X-Ours": "1"}
    )
    bind = {"bind": {argument: {"env": "OURS"}}}
    yield Edit("apis.bind", {}, bind, lambda _, tool: argument not in tool.definition["inputSchema"]["properties"])


def main() -> None:
    """Print a line for each refresh. Raises SystemExit with the number of lost edits."""
    lost = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        for api in APIS:
            documents = [fetch(api, version, folder) for version in api.versions]
            for place, changed, is_kept in refresh(api, documents, Path(temporary)):
                lost += not is_kept
                print(f"{api.name:7} {place:18} {'kept' if is_kept else 'LOST'}   {changed}", flush=True)
    sys.exit(lost)


def fetch(api: Api, version: str, folder: Path) -> Path:
    """Fetch a version from npm, and return its document."""
    there = folder / f"{api.name}-{version}"
    if not there.exists():
        there.mkdir(parents=True)
        subprocess.run(
            ["npm", "pack", "--silent", f"{api.package}@{version}"], cwd=there, check=True, stdout=subprocess.PIPE
        )
        (archive,) = there.glob("*.tgz")
        subprocess.run(["tar", "xzf", archive.name], cwd=there, check=True)
    return there / "package" / api.document


def refresh(api: Api, documents: list[Path], temporary: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield each edit's location, the changes that the refresh reports, and whether the edit is preserved."""
    start = temporary / api.name
    start.mkdir()
    shutil.copy(documents[0], start / f"api{api.suffix}")
    (start / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.stubwright]\nmanifests = ["own.yaml"]\n')
    write(start, {}, {}, "")
    run(start, *(word.format(suffix=api.suffix) for word in _PARTS), *api.options)
    both = [tools(start)]
    later = temporary / f"{api.name}-later"
    shutil.copytree(start, later)
    shutil.copy(documents[1], later / f"api{api.suffix}")
    run(later, "refresh")
    both.append(tools(later))
    name, argument = next(
        (name, argument)
        for name in sorted(both[0].keys() & both[1].keys())
        for argument in sorted(both[0][name] & both[1][name])
    )
    for number, edit in enumerate(edits(argument)):
        project = temporary / f"{api.name}-{number}"
        shutil.copytree(start, project)
        write(project, edit.tool, edit.api, name)
        handlers = "class Own: ...  # ours\n"
        (project / "own.py").write_text(handlers)
        shutil.copy(documents[1], project / f"api{api.suffix}")
        said = run(project, "refresh")
        manifest = compile_manifest(project)
        tool = next(tool for tool in manifest.tools if tool.name == name)
        is_same = (project / "own.py").read_text() == handlers
        yield edit.place, summarize(said), edit.is_kept(manifest, tool) and is_same
    shutil.copy(documents[1], start / f"api{api.suffix}")
    part = start / "parts/api.yaml"
    edited = part.read_text().replace("description:", "description: # ours\n ", 1)
    part.write_text(edited)
    said = run(start, "refresh", expected=1)
    yield "the imported file", said.splitlines()[0].partition("error")[2], part.read_text() == edited


def write(project: Path, tool: Overlay, api: Overlay, name: str) -> None:
    """Write a manifest that includes the imported file and overrides it."""
    overlay = {**({"tools": {name: tool}} if tool else {}), **({"apis": {"api": api}} if api else {})}
    own = {"stubwright": 1, "server": {"name": "own", "version": "1.0.0"}, "include": ["parts/api.yaml"]}
    (project / "own.yaml").write_text(json.dumps({**own, **({"overlay": overlay} if overlay else {})}))


def run(project: Path, *words: str, expected: int = 0) -> str:
    """Run stubwright in a project, and return its output."""
    command = [sys.executable, "-m", "stubwright", *words]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode != expected:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout if expected == 0 else done.stderr


def compile_manifest(project: Path) -> ir.Manifest:
    """Return the valid manifest of a project."""
    before = Path.cwd()
    os.chdir(project)
    try:
        checked = pipeline.compile_manifest("own.yaml", disk.Disk())
    finally:
        os.chdir(before)
    if checked.manifest is None:
        sys.exit("\n".join(str(diagnostic) for diagnostic in checked.diagnostics[:3]))
    return checked.manifest


def tools(project: Path) -> dict[str, set[str]]:
    """Return the optional arguments of each tool of a project."""
    return {
        tool.name: {*schema.get("properties", {})} - {*schema.get("required", ())}
        for tool in compile_manifest(project).tools
        if isinstance(schema := tool.definition["inputSchema"], dict)
    }


def summarize(said: str) -> str:
    """Return the summary line of a refresh's output."""
    lines = [
        line for line in said.splitlines() if re.match(r"\d+ (breaking|may break|in words|compatible|cosmetic)", line)
    ]
    return lines[0].partition(" from ")[0] if lines else "nothing changed"


if __name__ == "__main__":
    main()
