"""Generated TypeScript: tsc checks the modules, and Node calls a generated server with a generated client."""

from __future__ import annotations

import functools
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import browser
import conformance
import instances
import mutations
import npm
import odd
import packages
from corpus import files as corpus_files
from stubwright import cli, naming
from stubwright.compile import pipeline
from stubwright.project.files import disk
from stubwright_runtime.client.features.drift import compare
from stubwright_runtime.mcp.revisions import REVISIONS
from stubwright_runtime.package import Package, Tool
from stubwright_runtime.schema.validation import compile_schema

HERE = Path(__file__).parent / "typescript"
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "cases" / "a-client-in-typescript" / "manifest.yaml"
SPECS = [*sorted((ROOT / "specs").glob("*.yaml")), ROOT / "specs" / "everything" / "everything.yaml"]


FIND: dict[str, Any] = {
    "name": "find",
    "title": "Finder",
    "description": "Find one.",
    "inputSchema": {
        "type": "object",
        "properties": {"place": {"type": "string", "maxLength": 20}, "at/once": {"default": False}},
    },
    "outputSchema": {"enum": [{"a": 1}], "$schema": "https://json-schema.org/draft/2020-12/schema"},
    "annotations": {"title": "Finder", "readOnlyHint": True},
}
COUNT: dict[str, Any] = {
    "name": "count",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "array", "maxItems": 2},
}
SAMPLE = packages.manifest([FIND, COUNT], emit=["typescript"])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of npm with the modules of the specs, of the golden case and of `desk.yaml`, and their packages."""
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copytree(HERE, folder, dirs_exist_ok=True)
    npm.install(folder)
    (folder / "handlers.txt").rename(folder / "desk.py")
    made = ["-q", "-o", str(folder / "generated")]
    assert cli.run(["generate", *map(str, SPECS), str(GOLDEN), "--emit", "typescript", *made]) == 0
    assert cli.run(["generate", str(folder / "desk.yaml"), *made]) == 0
    (folder / "sample.json").write_text(json.dumps(SAMPLE))
    assert cli.run(["generate", str(folder / "sample.json"), *made]) == 0
    (folder / "hostile.json").write_text(json.dumps({"tools": [*list_hostile_tools()]}))
    hostile = str(folder / "hostile.yaml")
    assert cli.run(["import", "tools", str(folder / "hostile.json"), "--name", "hostile", "-o", hostile]) == 0
    assert cli.run(["generate", hostile, "--emit", "typescript", *made]) == 0
    return folder


NAMES = [
    *(
        "call",
        "close",
        "raw",
        "connect",
        "constructor",
        "then",
        "catch",
        "toString",
        "valueOf",
        "toJSON",
        "hasOwnProperty",
        "pages",
        "delete",
        "class",
        "await",
        "new",
        "arguments",
    ),
    *(
        "eval",
        "this",
        "super",
        "static",
        "get",
        "set",
        "yield",
        "Promise",
        "Record",
        "Required",
        "Error",
        "Array",
        "mcp",
        "options",
        "args",
        "typed_client",
        "42",
    ),
    *(
        "1st",
        "🎉",
        "naïve",
        "日本語",
        "_call",
        "_result",
        "_pages",
        "__proto__",
        "prototype",
        "name",
        "length",
        "undefined",
        "null",
        "of",
        "declare",
        "namespace",
    ),
]
"""Names of tools, definitions and properties that have a meaning in JavaScript, or cannot be written there."""

TEXT = "Ends */ it. `${process.exit(1)}` \u2028 </script> \\u002a/ {@link X} \u202e \x07\n\n/* open\n*/ @deprecated"


def list_hostile_tools() -> Iterator[dict[str, Any]]:
    """Yield tools with hostile names, texts and schemas, and tools with schemas that are hard to write as types."""
    texts = {
        "enum": [TEXT, "\u2028", "'", '"', "\\", "`${1}`", None, -0.0, 2**70],
        "default": TEXT,
        "description": TEXT,
    }
    for name in NAMES:
        recursive = {"type": "object", "properties": {"x": {"$ref": f"#/$defs/{name}"}, name: texts}}
        schema = {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"}}, "$defs": {name: recursive}}
        yield {"name": name, "description": TEXT, "inputSchema": schema, "outputSchema": {**schema, "title": TEXT}}
    every = {"type": "object", "properties": dict.fromkeys([*NAMES, "a b", "", "*/", "\n", "'", "$ref"], texts)}
    yield {"name": "every", "inputSchema": every, "outputSchema": every}
    for number, schema in enumerate(each for each in odd.SCHEMAS if '"$' not in json.dumps(each)):
        one = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        yield {"name": f"odd{number}", "inputSchema": one, "outputSchema": one}


def check(folder: Path, *options: str) -> str:
    """Run tsc, and return what it prints."""
    command = ["npx", "tsc", "--pretty", "false", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def built(project: Path) -> Path:
    """The project, compiled without complaints."""
    assert check(project) == check(project, "-p", "tsconfig.browser.json") == ""
    linted = subprocess.run(["npx", "eslint", "generated"], cwd=project, capture_output=True, text=True)
    assert (linted.stdout, linted.stderr) == ("", "")
    return project


def run(folder: Path, program: str, *arguments: str, runtime: Sequence[str] = ("node",)) -> Any:
    """Run a program, and return what it prints."""
    command = [*runtime, program, *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder / "generated", folder)))}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_public_servers_pass_tsc_and_their_results_have_the_verdicts_of_python(built: Path, corpus: Path) -> None:
    project, made, rows, verdicts = built, built / "public", [], []
    for path in corpus_files(corpus):
        manifest = project / f"{path.stem}.yaml"
        assert cli.run(["import", "tools", str(path), "--name", path.stem, "-o", str(manifest)]) == 0
        assert cli.run(["generate", str(manifest), "--emit", "typescript", "-q", "-o", str(made)]) == 0
        compiled = pipeline.compile_manifest(str(manifest), disk.Disk()).manifest
        assert compiled is not None
        for tool in compiled.tools:
            if tool.output is not None:
                validator = compile_schema(tool.output.wire, formats=False)
                results = [*draw_results(tool.output.wire, tool.name)]
                verdicts += [validator.is_valid(result) for result in results]
                names = {"client": f"{compiled.stem}Client", "method": naming.name_member(tool.names)}
                rows.append({"module": f"../public/built/{compiled.package}.js", **names, "results": results})
    options = {"extends": "../tsconfig.json", "compilerOptions": {"outDir": "built"}, "include": ["typescript/*.ts"]}
    (made / "tsconfig.json").write_text(json.dumps(options))
    assert check(project, "-p", str(made)) == ""
    (project / "rows.json").write_text(json.dumps(rows))
    assert run(project, "built/verdicts.js", "rows.json") == verdicts
    assert min(verdicts.count(True), verdicts.count(False)) > 100


def draw_results(schema: Any, seed: str) -> Iterator[dict[str, Any]]:
    """Yield objects that may be valid, and each with a random change."""
    chance = random.Random(seed)
    for drawn in instances.draw(schema, seed, 10):
        for result in (drawn, mutations.mutate(drawn, chance)):
            if isinstance(result, dict) and not re.search(r"\\ud[89a-f]|Infinity|NaN", text := json.dumps(result)):
                yield json.loads(text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "package", "options"),
    [
        ("built/calls.js", None, ["node"]),
        ("calls.ts", "node@22", ["node"]),
        ("calls.ts", "deno", ["deno", "run", "--allow-all", "--node-modules-dir=manual"]),
        ("calls.ts", "bun", ["bun"]),
    ],
)
def test_a_module_calls_a_generated_server(built: Path, program: str, package: str | None, options: list[str]) -> None:
    runtime = options if package is None else [*npm.find_runtime(package), *options]
    got = run(built, program, sys.executable, "-m", "desk_mcp", runtime=runtime)
    assert "timed out" in got.pop("late")
    assert got == {
        "ids": [0, 1, 2, 3, 4],
        "first": 2,
        "refused": "the call to delete_notes was not confirmed",
        "failed": "2 notes are locked",
        "asked": [["delete_notes", {"ids": [1]}], ["delete_notes", {"ids": [1, 2]}]],
        "progress": [{"progress": 1, "total": 2, "message": "waiting"}],
        "aborted": True,
        "note": "note a b",
        "values": ["3", "4"],
        "message": {"type": "text", "text": "Summarize note 3."},
        "revision": "2026-07-28",
        "server": "desk",
    }


@pytest.mark.long
def test_a_call_with_a_key_is_repeated_until_it_is_answered(built: Path) -> None:
    with conformance.serving("desk_mcp", [built / "generated", built], built / "log") as url:
        assert run(built, "built/keys.js", url) == {
            "sent": 5,
            "attempts": 1,
            "first": {"payments": 1},
            "second": {"payments": 2},
            "third": {"payments": 2},
            "refused": "TypeError: list_notes takes no idempotencyKey",
            "unsent": True,
            "late": "SdkHttpError: Error POSTing to endpoint: try later",
            "whileDown": 3,
            "isPrompt": True,
        }


@pytest.mark.long
def test_methods_with_hostile_names_call_their_tools(built: Path) -> None:
    assert run(built, "built/hostile.js") == sorted(tool["name"] for tool in list_hostile_tools())


def list_drifts() -> Iterator[list[dict[str, Any]]]:
    """Yield lists of tools that differ from `FIND` and `COUNT`, or only seem to."""
    yield [COUNT, FIND]
    yield [COUNT, {**FIND, "inputSchema": {**FIND["inputSchema"], "type": "object", "$schema": "urn:other"}}]
    yield [FIND]
    yield [FIND, {**COUNT, "name": "\u202ecount"}]
    for key, value in {
        "title": None,
        "description": "Find two.\x1b",
        "inputSchema": {"type": "object", "properties": {"place": {"type": "integer", "maxLength": 20.0}}},
        "outputSchema": {"type": "object", "enum": [{"a": 2}]},
        "annotations": {"title": "Finder", "readOnlyHint": False, "idempotentHint": None},
    }.items():
        yield [COUNT, {**FIND, key: value}]
        yield [COUNT, {name: each for name, each in FIND.items() if name != key or key == "inputSchema"}]
    yield [FIND, {name: COUNT[name] for name in ("name", "inputSchema")}]
    yield [COUNT, {**FIND, "inputSchema": {"properties": {f"p{number}": {} for number in range(9)}}}]
    yield [COUNT, {**FIND, "inputSchema": {"properties": {"toString": {}, "place": {"é" * 60: 1}, "at/once": {}}}}]


@pytest.mark.long
def test_drift_is_described_as_in_python(built: Path) -> None:
    package = Package("sample_mcp", tools=[Tool("find"), Tool("count")])
    package.manifest = SAMPLE
    rows = [(tools, revision) for tools in list_drifts() for revision in REVISIONS]
    written = [{"tools": tools, "revision": revision} for tools, revision in rows]
    (built / "drifts.json").write_text(json.dumps(written))
    got = run(built, "built/drift.js", "drifts.json", sys.executable, "-m", "desk_mcp")
    expected = [[*compare(package.tools, tools, revision)] for tools, revision in rows]
    assert got["changes"] == expected
    assert [] in expected
    assert any(expected)
    fields = (
        "its description is new; its inputSchema changed: /properties is new, /required is new; its outputSchema is new"
    )
    changes = [f'"pay": {fields}', '"list_notes" is new', '"delete_notes" is new', '"wait" is new']
    assert (got["none"], got["error"]) == (0, changes)
    assert got["warnings"] == [
        "\n  ".join(["the server's tools differ from the tools this client was compiled for:", *changes])
    ]


@pytest.mark.long
def test_the_page_of_the_docs_works_in_a_browser(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    chromium = browser.find_once(tmp_path_factory)
    code = re.search(r"## In a browser\n.*?```ts\n(.*?)```", (ROOT / "docs" / "typescript.md").read_text(), re.DOTALL)
    assert code is not None
    (project / "dist").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(project / "dist"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        origin = f"http://127.0.0.1:{pages.server_address[1]}"
        allowed = ("--allow-origin", origin)
        with conformance.serving("weather_mcp", conformance.paths(), project / "weather.log", *allowed) as url:
            page = '<link rel="icon" href="data:,"><body></body><script type="module" src="/page.js"></script>'
            (project / "index.html").write_text(page)
            program = code[1].replace("http://127.0.0.1:8000/mcp", url)
            imported = 'import { WeatherClient } from "./generated/typescript/weather_mcp.ts";'
            (project / "page.js").write_text(f"{imported}\n{program}")
            done = subprocess.run(["npx", "vite", "build"], cwd=project, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            threading.Thread(target=pages.serve_forever, daemon=True).start()
            try:
                got = chromium.run(HERE.parent / "page.mjs", f"{origin}/")
            finally:
                pages.shutdown()
    assert got["errors"] == []
    assert re.fullmatch(r"-?\d+(\.\d+)? °C", got["text"])
