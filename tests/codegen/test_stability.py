"""The effect of manifest changes on the output, and the imports of many tools at start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from packages import generate, manifest, tool
from processes import start_process

LISTS = {"__init__.py", "models/__init__.py", "registry.py", "handlers.py", "client.py", "manifest.json"}
TOOLS = [
    tool("first", {"place": {"type": "object", "properties": {"city": {"type": "string"}}}, "n": {"type": "integer"}}),
    tool("second", {"a": {"type": "string"}, "b": {"enum": ["x", "y"]}}),
    tool("third"),
]


def tree(tools: Sequence[Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """The files of a package with these tools."""
    folder.mkdir()
    package = folder / generate(folder, manifest(tools))
    return {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*") if path.is_file()}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """The files that differ, are new, or are gone."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def test_removing_renaming_and_moving_a_tool(tmp_path: Path) -> None:
    before = tree(TOOLS, tmp_path / "before")
    removed = tree([TOOLS[0], TOOLS[2]], tmp_path / "removed")
    assert changed(before, removed) == LISTS | {"models/second.py"}
    renamed = tree([TOOLS[0], {**TOOLS[1], "name": "other"}, TOOLS[2]], tmp_path / "renamed")
    assert changed(before, renamed) == LISTS | {"models/second.py", "models/other.py"}
    moved = tree([TOOLS[1], TOOLS[2], TOOLS[0]], tmp_path / "moved")
    assert changed(before, moved) <= LISTS
    assert sorted(before["client.py"].splitlines()) == sorted(moved["client.py"].splitlines())


def test_the_order_of_keys_changes_the_order_of_fields_alone(tmp_path: Path) -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: backwards(value[key]) for key in reversed(value)}
        return [backwards(item) for item in value] if isinstance(value, list) else value

    before = tree(TOOLS, tmp_path / "before")
    after = tree([{**each, "inputSchema": backwards(each["inputSchema"])} for each in TOOLS], tmp_path / "after")
    assert changed(before, after) == {"models/first.py", "models/second.py", "client.py", "manifest.json"}
    for path in ("models/first.py", "models/second.py"):
        assert sorted(before[path].splitlines()) == sorted(after[path].splitlines())


@pytest.mark.long
def test_many_tools_start_list_and_call(tmp_path: Path) -> None:
    properties = {"text": {"type": "string", "minLength": 1}, "size": {"type": "integer", "default": 3}}
    package = generate(tmp_path, manifest([tool(f"tool_{number}", properties) for number in range(200)]))
    (tmp_path / "echo.py").write_text(
        "class Echo:\n"
        "    def __getattr__(self, name):\n"
        "        if name.startswith('_'):\n"
        "            raise AttributeError(name)\n"
        "        async def answer(args, ctx):\n"
        "            import sys\n"
        f"            loaded = [name for name in sys.modules if name.startswith('{package}.models.')]\n"
        "            return f'{args.text} {args.size} {loaded}'\n"
        "        return answer\n"
    )
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    call = {"name": "tool_150", "arguments": {"text": "hello"}, "_meta": meta}
    with start_process(
        [sys.executable, "-m", package, "--handlers", "echo:Echo"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for number, (method, params) in enumerate([("tools/list", {"_meta": meta}), ("tools/call", call)]):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline())["result"])
        process.stdin.close()
        assert process.wait(60) == 0
    assert [each["name"] for each in answers[0]["tools"]] == [f"tool_{number}" for number in range(200)]
    assert answers[1]["content"][0]["text"] == f"hello 3 ['{package}.models.tool_150']"
