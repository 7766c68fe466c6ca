"""Generated packages at run time: odd names, hostile text, several packages in one process."""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import black
import pytest

import amounts
from echo import HOSTILE, Echo
from packages import FORMATTER_OFF, check, generate, imported, manifest, tool
from stubwright.codegen.source import render

ROOT = Path(__file__).parents[2]


def call(package: Any, client: str, method: str, arguments: Mapping[str, Any]) -> Any:
    """Call one method through the typed client, in memory."""

    async def go() -> Any:
        async with getattr(package, client).connect(package.build_server(Echo())) as connected:
            return await getattr(connected, method)(**arguments)

    return asyncio.run(go())


def test_nothing_of_stubwright_is_imported(tmp_path: Path) -> None:
    package = generate(tmp_path, manifest([tool("ping")]))
    for path in (tmp_path / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(module.split(".")[0] == "stubwright" for module in modules), path


def test_importing_the_package_and_its_models_does_not_import_the_sdk(tmp_path: Path) -> None:
    package = generate(tmp_path, manifest([tool("ping"), tool("pong")]))
    program = (
        f"import sys, {package}\n"
        f"print([m for m in sys.modules if m.startswith('{package}.models.')], 'mcp' in sys.modules)\n"
        f"from {package} import PingInput\n"
        f"print([m for m in sys.modules if m.startswith('{package}.models.')], 'mcp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] False", f"['{package}.models.ping'] False"]


@pytest.mark.parametrize(
    ("wire", "method"),
    amounts.sample(
        [
            ("connect", "connect_"),
            ("shared", "shared"),
            ("tasks", "tasks_"),
            ("Context", "context"),
            ("list", "list_"),
            ("import", "import_"),
            ("models", "models"),
            ("tools", "tools"),
            ("2fa", "tool_2fa"),
            ("get-weather", "get_weather"),
            ("abstractmethod", "abstractmethod_"),
            ("deprecated", "deprecated_"),
            ("get_\u0130l", "get_il"),
        ],
        5,
    ),
)
def test_tools_with_odd_names(wire: str, method: str, tmp_path: Path) -> None:
    odd = {"self": {"type": "string"}, "models": {"type": "integer"}, "class": {"type": "array"}, "a-b": {}}
    package = generate(tmp_path, manifest([tool(wire, odd), tool("zz", stubwright={"deprecated": {"since": "1"}})]))
    with imported(tmp_path, package) as made:
        content = call(made, "SampleClient", method, {"self_": "s", "models": 1, "class_": [1], "a_b": None})
        assert json.loads(content[0].text) == {"self": "s", "models": 1, "class": [1], "a-b": None}
        assert made.TOOLS[wire].method == method


def test_a_client_imports_classes_and_not_what_its_parameters_are_called(tmp_path: Path) -> None:
    spoken = {name: {"type": "string"} for name in ("\u0928\u093e\u092e", "\u0e0a\u0e37\u0e48\u0e2d", "a\u00b7b")}
    package = generate(
        tmp_path, manifest([tool("greet", {**spoken, "to": {"enum": ["x", -1]}, "at": tool("")["inputSchema"]})])
    )
    text = (tmp_path / package / "client.py").read_text("utf-8")
    assert all(f"{name}: str | Omit = OMIT" in text for name in spoken)
    assert "from .models import" not in text
    with imported(tmp_path, package) as made:
        content = call(made, "SampleClient", "greet", dict.fromkeys(spoken, "x"))
        assert json.loads(content[0].text) == dict.fromkeys(spoken, "x")


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    evil = tool(
        "evil", {"x": {"type": "string", "description": HOSTILE, "default": HOSTILE}, HOSTILE: {"enum": [HOSTILE]}}
    )
    evil |= {"description": HOSTILE, "title": HOSTILE}
    value = manifest([evil], name="sample")
    value["server"] |= {"instructions": HOSTILE, "title": HOSTILE}
    package = generate(tmp_path, value)
    for path in (tmp_path / package).rglob("*.py"):
        text = path.read_text("utf-8").replace(FORMATTER_OFF, "", 1)
        assert black.format_str(text, mode=black.Mode(line_length=render.LINE_LENGTH)) == text, path
    with imported(tmp_path, package) as made:
        assert made.TOOLS["evil"].definition == evil
        assert made.EvilInput().x == HOSTILE
        assert made.EvilInput.__module__ == f"{package}.models.evil"


def test_two_packages_in_one_process(tmp_path: Path) -> None:
    names = [
        generate(tmp_path, manifest([tool("ping", {"n": {"type": "integer"}})], name=name)) for name in ("one", "two")
    ]
    with imported(tmp_path, names[0]) as one, imported(tmp_path, names[1]) as two:
        assert one.PingInput is not two.PingInput
        assert json.loads(call(one, "OneClient", "ping", {"n": 1})[0].text) == {"n": 1}
        assert json.loads(call(two, "TwoClient", "ping", {"n": 2})[0].text) == {"n": 2}


def test_adding_a_tool_changes_its_own_modules_and_the_lists_of_tools_only(tmp_path: Path) -> None:
    def tree(value: Mapping[str, Any], folder: Path) -> dict[str, bytes]:
        folder.mkdir()
        package = generate(folder, value)
        paths = (path for path in (folder / package).rglob("*") if path.is_file())
        return {path.relative_to(folder / package).as_posix(): path.read_bytes() for path in paths}

    tools = [tool("a", {"x": {"type": "object", "properties": {"y": {}}}}), tool("c")]
    before = tree(manifest(tools), tmp_path / "before")
    after = tree(manifest([tools[0], tool("b"), tools[1]]), tmp_path / "after")
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    lists = {"__init__.py", "models/__init__.py", "registry.py", "handlers.py", "client.py", "manifest.json"}
    assert changed == lists | {"models/b.py"}


def test_a_client_alone_has_no_server_half(tmp_path: Path) -> None:
    package = generate(tmp_path, manifest([tool("ping")], emit=["client"]))
    folder = tmp_path / package
    assert not any((folder / name).exists() for name in ("server.py", "handlers.py", "__main__.py"))
    with imported(tmp_path, package) as made:
        assert made.SampleClient.__name__ == "SampleClient"
        assert not hasattr(made, "build_server")


def test_a_server_alone_has_no_client(tmp_path: Path) -> None:
    package = generate(tmp_path, manifest([tool("ping")], emit=["server"]))
    assert not (tmp_path / package / "client.py").exists()
    with imported(tmp_path, package) as made:
        assert made.build_server(Echo()).package.name == "sample_mcp"


def test_missing_handler_methods_are_listed_with_stubs(tmp_path: Path) -> None:
    package = generate(tmp_path, manifest([tool("ping"), tool("pong")]))
    with imported(tmp_path, package) as made:
        with pytest.raises(TypeError) as raised:
            made.build_server(object())
        text = str(raised.value)
        assert "async def ping(self, args: PingInput, ctx: Context) -> Content:" in text
        assert "async def pong(self, args: PongInput, ctx: Context) -> Content:" in text


def test_two_tools_that_meet_in_python_are_refused(tmp_path: Path) -> None:
    found = check(tmp_path, manifest([tool("get-weather"), tool("get_weather")]))
    assert [diagnostic.code for diagnostic in found if diagnostic.severity == "error"] == ["SW211"]
    assert "pythonName" in (found[0].help or "")


def test_a_server_without_tools_or_handlers(tmp_path: Path) -> None:
    static = {"name": "hello", "stubwright": {"messages": [{"role": "user", "text": "Hello"}]}}
    package = generate(tmp_path, {**manifest([]), "prompts": [static]})
    for path in (tmp_path / package).rglob("*.py"):
        ast.parse(path.read_text(), str(path))
    with imported(tmp_path, package) as made:
        assert "text='Hello'" in str(call(made, "SampleClient", "prompt_hello", {}))
