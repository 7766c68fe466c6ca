"""Compares how clients read schemas with `$ref`, with `allOf`, and merged by `wire: {refs: inlined}`.

    python bench/references.py [--environments FOLDER]

Compiles the same tools three times: their schemas reference shared schemas, wrap these in `allOf`, or inline them. A
server without validation (`client_programs/canned.py`) serves these tools with valid and invalid results. Installs
each client into its own environment, in a temporary folder or in FOLDER. Compares with the schemas how each client
reads the results, and which argument schemas it passes to a model. Prints the table in bench/README.md. Needs npx.
Omits clients that cannot be installed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema_rs

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "peers"))

import inspector
from clients import PATIENCE, PROGRAMS, Client, install
from peers import NotThereError

BIN = Path(sys.executable).parent
MCPORTER = ("npx", "-y", "mcporter@0.9.0")
FORMS = ("`$ref`", "`allOf`", "merged")

CLIENTS = (
    Client("FastMCP 2, `.data`", "fastmcp>=2,<3", ("reading_fastmcp.py",)),
    Client("FastMCP 3, `.data`", "fastmcp>=3,<4", ("reading_fastmcp.py",)),
    Client("FastMCP 4, `.data`", "fastmcp>=4,<5", ("reading_fastmcp.py",)),
    Client("Python SDK 1", "mcp>=1.30,<2", ("reading_sdk_1.py",)),
    Client("Python SDK 2", "mcp>=2,<3", ("reading_sdk_2.py",)),
    Client("pydantic-ai", "pydantic-ai-slim[mcp]>=2", ("reading_pydantic_ai.py",)),
    Client("LangChain's adapters", "langchain-mcp-adapters>=0.3", ("reading_langchain.py",)),
    Client("TypeScript SDK 1", "@modelcontextprotocol/sdk@1.32", ("reading.mjs", "1")),
    Client("TypeScript SDK 2", "@modelcontextprotocol/client@2", ("reading.mjs", "2")),
)

PAGE = {"total": 2, "next": "b2", "books": [{"title": "Emma", "author": {"name": "Jane"}}]}
RIGHT: dict[str, Any] = {
    "page": PAGE,
    "closed": PAGE,
    "book": {"book": {"title": "Emma", "author": {"name": "Jane"}}},
    "find": {"found": 1},
}
"""A valid result of each tool."""

WRONG: dict[str, Any] = {
    "page_of_wrong_books": {**PAGE, "books": [{"title": 1}]},
    "page_of_wrong_total": {**PAGE, "total": "two"},
    "page_without_books": {"total": 2},
    "closed_with_more": {**PAGE, "more": True},
    "book_of_wrong_author": {"book": {"title": "Emma", "author": "Jane"}},
}
"""An invalid result of each tool. Its name begins with the name of the corresponding valid tool."""

GOOD_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {"genre": "novel", "near": {"city": "Bath", "km": 5}, "by": {"name": "Jane"}},
    {},
)
BAD_ARGUMENTS = (
    {"genre": "war"},
    {"near": {"city": 1, "km": 5}},
    {"near": {"city": "Bath", "km": "far"}},
    {"near": {"city": "Bath"}},
    {"by": {"name": 1}},
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a client reads the tools in one form.

    Attributes:
        reads: The losses in valid results.
        refuses: How many invalid results it rejects.
        passes: The losses in the schema that it passes to a model.
    """

    reads: str
    refuses: str
    passes: str


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--environments", type=Path, metavar="FOLDER", help="folder for the environments; reuses existing ones"
    )
    kept: Path | None = parser.parse_args().environments
    print(
        "| client | version | reads of right results | wrong results refused | arguments, as passed on |\n|"
        + "---|" * 5
    )
    with tempfile.TemporaryDirectory() as name:
        servers = [_server(Path(name) / form.strip("`$"), form) for form in FORMS]
        for label, version, look in _clients((kept or Path(name)).resolve()):
            readings = [look(server) for server in servers]
            columns = zip(*((one.reads, one.refuses, one.passes) for one in readings), strict=True)
            print(f"| {label} | {version} | {' | '.join(map(_cell, columns))} |", flush=True)


def _cell(texts: Sequence[str]) -> str:
    """Return one string if it is the same for all forms, or one for each form."""
    if len({*texts}) == 1:
        return texts[0]
    return "; ".join(f"{form}: {text}" for form, text in zip(FORMS, texts, strict=True))


def _clients(folder: Path) -> Iterator[tuple[str, str, Callable[[Path], Reading]]]:
    """Yield the name and version of each client, and a function that reads a server's tools with it."""
    for client in CLIENTS:
        try:
            runner, version = install(client, folder)
        except NotThereError as error:
            print(f"{client.name} is omitted: {error}", file=sys.stderr)
        else:
            yield client.name, version, partial(_by_program, runner)
            if client.program == ("reading_fastmcp.py",) and "fastmcp>=2" not in client.requirement:
                program = Path(runner[0]).parent / "fastmcp"
                yield f"`fastmcp list`, {version[0]}", version, partial(_by_listing, program)
    yield "mcporter", MCPORTER[-1].rpartition("@")[2], _by_mcporter
    try:
        found = inspector.fetch()
    except inspector.NotThereError as error:
        print(f"the Inspector is omitted: {error}", file=sys.stderr)
    else:
        yield "Inspector", inspector.INSPECTOR.rpartition("@")[2], partial(_by_inspector, found)


# Returns a client's reading of the tools


def _by_program(runner: Sequence[str], server: Path) -> Reading:
    command = [sys.executable, str(PROGRAMS / "canned.py"), str(server.with_suffix(".json"))]
    done = subprocess.run([*runner, json.dumps(command)], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"{' '.join(runner)} failed:\n{done.stderr}")
    outcome = json.loads(done.stdout.splitlines()[-1])
    return Reading(*_judge_results(outcome["values"]), _judge_schema(outcome["schemas"]["find"]))


def _by_listing(program: Path, server: Path) -> Reading:
    configuration = server.with_name(f"{server.name}-client.json")
    configuration.write_text(json.dumps({"mcpServers": {"references": {"command": str(server)}}}))
    return Reading("", "", _list_untyped(_run([str(program), "list", str(configuration)]).stdout))


def _by_mcporter(server: Path) -> Reading:
    def read(tool: str) -> dict[str, Any]:
        done = _run([*MCPORTER, "call", "--stdio", str(server), tool, "--output", "json"])
        return {"error": done.stderr} if done.returncode else {"value": json.loads(done.stdout)}

    values = {name: read(name) for name in (*RIGHT, *WRONG)}
    return Reading(
        *_judge_results(values),
        _list_untyped(_run([*MCPORTER, "list", "--stdio", str(server), "--all-parameters"]).stdout),
    )


def _by_inspector(found: inspector.Inspector, server: Path) -> Reading:
    def read(tool: str) -> dict[str, Any]:
        try:
            result = found.ask([str(server)], [], "--method", "tools/call", "--tool-name", tool)
        except AssertionError as error:
            return {"error": str(error)}
        return {"value": result["structuredContent"]}

    listed = found.ask([str(server)], [], "--method", "tools/list")["tools"]
    (schema,) = (tool["inputSchema"] for tool in listed if tool["name"] == "find")
    return Reading(*_judge_results({name: read(name) for name in (*RIGHT, *WRONG)}), _judge_schema(schema))


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)


def _judge_results(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the losses in valid results, and the number of rejected invalid results."""
    faults = [fault for name, right in RIGHT.items() if (fault := _lost(name, right, values[name]))]
    refused = sum("error" in values[name] for name in WRONG)
    return ", ".join(dict.fromkeys(faults)) or "all", f"{refused} of {len(WRONG)}"


def _lost(name: str, right: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
    if "error" in outcome:
        return f"`{name}` fails"
    value = outcome["value"]
    if value == right:
        return ""
    missing = ", ".join(f"`{key}`" for key in right if not isinstance(value, dict) or key not in value)
    return f"without {missing}" if missing else f"`{name}` is changed"


def _judge_schema(schema: Any) -> str:
    """Return how many invalid arguments the schema for a model still rejects."""
    try:
        validator = jsonschema_rs.validator_for(schema, offline=True)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        return f"not a schema: {error}"
    if not all(map(validator.is_valid, GOOD_ARGUMENTS)):
        return "refuses right arguments"
    refused = sum(not validator.is_valid(arguments) for arguments in BAD_ARGUMENTS)
    return "whole" if refused == len(BAD_ARGUMENTS) else f"refuses {refused} of {len(BAD_ARGUMENTS)} wrong ones"


def _list_untyped(text: str) -> str:
    """Return the arguments without a type in the printed signature."""
    names = {name: re.search(rf"\b{name}\??: *([^,)=]+)", text) for name in GOOD_ARGUMENTS[0]}
    if None in names.values():
        raise RuntimeError(f"no signature in the list:\n{text}")
    lost = [f"`{name}`" for name, one in names.items() if one is not None and one[1].strip() in ("any", "unknown")]
    return f"no type for {', '.join(lost)}" if lost else "a type for each"


# The tools


def _server(path: Path, form: str) -> Path:
    """Write a program that serves the tools in one form, and its data file."""
    source = path.with_suffix(".manifest.json")
    source.write_text(json.dumps(_manifest(form)))
    command = [str(BIN / "stubwright"), "generate", source.name, "-o", path.with_suffix(".packages").name]
    subprocess.run(command, cwd=path.parent, check=True, capture_output=True)
    (written,) = path.with_suffix(".packages").rglob("manifest.json")
    tools = [
        {key: tool[key] for key in ("name", "description", "inputSchema", "outputSchema")}
        for tool in json.loads(written.read_text("utf-8"))["tools"]
    ]
    path.with_suffix(".json").write_text(json.dumps({"tools": tools, "results": RIGHT | WRONG}))
    path.write_text(f"#!/bin/sh\nexec {sys.executable} {PROGRAMS / 'canned.py'} {path.with_suffix('.json')}\n")
    path.chmod(0o755)
    return path


def _manifest(form: str) -> dict[str, Any]:
    schemas: dict[str, Any] = {}

    def use(name: str, **beside: Any) -> dict[str, Any]:
        if form != "`allOf`":
            return {"$ref": f"#/schemas/{name}", **beside}
        return {**beside, "allOf": [schemas[name]]} if "properties" in beside else {**schemas[name], **beside}

    text = {"type": "string"}
    schemas["Genre"] = {"type": "string", "enum": ["novel", "poem"]}
    schemas["Place"] = {"type": "object", "properties": {"city": text}, "required": ["city"]}
    schemas["Person"] = {"type": "object", "properties": {"name": text}, "required": ["name"]}
    schemas["Book"] = {"type": "object", "properties": {"title": text, "author": use("Person")}}
    schemas["Page"] = {"type": "object", "properties": {"total": {"type": "integer"}, "next": text}}
    books = {"properties": {"books": {"type": "array", "items": use("Book")}}, "required": ["books"]}
    outputs: dict[str, dict[str, Any]] = {
        "page": {"type": "object", **use("Page", **books)},
        "closed": {"type": "object", **use("Page", **books), "unevaluatedProperties": False},
        "book": {"type": "object", "properties": {"book": use("Book")}, "required": ["book"]},
        "find": {"type": "object", "properties": {"found": {"type": "integer"}}},
    }
    arguments = {
        "genre": use("Genre", description="Of which genre."),
        "near": use("Place", properties={"km": {"type": "integer"}}, required=["km"]),
        "by": use("Person"),
    }
    tools = [
        {
            "name": name,
            "description": "Look something up.",
            "inputSchema": {"type": "object", **({"properties": arguments} if name == "find" else {})},
            "outputSchema": outputs[name.partition("_")[0]],
        }
        for name in (*RIGHT, *WRONG)
    ]
    return {
        "stubwright": 1,
        "server": {"name": "references", "version": "1.0.0"},
        "wire": {"refs": "inlined" if form == "merged" else "bundled"},
        "schemas": schemas,
        "tools": tools,
    }


if __name__ == "__main__":
    main()
