"""The files of TypeScript clients: a module for each server, and one shared runtime."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from stubwright import cli
from stubwright.commands.generate import PARTS
from stubwright.ir import Emit

MANIFEST = """
stubwright: 1
server: {{name: {name}, version: 1.0.0}}
emit: [{emit}]
tools:
  - {{name: ping, description: Ping., inputSchema: {{type: object, properties: {{{argument}: {{type: string}}}}}}}}
"""
FOLDER = Path("generated/typescript")


def write(name: str, *, emit: str = "typescript", argument: str = "text") -> None:
    Path(f"{name}.yaml").write_text(MANIFEST.format(name=name, emit=emit, argument=argument))


def generate(*words: str) -> int:
    return cli.run(["generate", *(words or ("a.yaml", "b.yaml"))])


def modules() -> set[str]:
    """Return the names of the modules; each has a second file."""
    names = {path.name for path in FOLDER.glob("*.ts")}
    seconds = {name for name in names if name.count(".") == 2}
    assert seconds == {
        f"{name[:-3]}.{'drift' if name == 'stubwright.ts' else 'tools'}.ts" for name in names - seconds - {"mine.ts"}
    }
    return names - seconds


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["*.yaml"]\n')
    for name in ("a", "b"):
        write(name)
    assert generate() == 0
    assert modules() == {"a_mcp.ts", "b_mcp.ts", "stubwright.ts"}


def test_a_package_in_python_is_made_only_where_it_is_wanted() -> None:
    assert {path.name for path in Path("generated").iterdir()} == {"stubwright.lock.json", "typescript"}
    write("a", emit="client, typescript")
    assert generate("a.yaml") == 0
    assert Path("generated/a_mcp/client.py").exists()


def test_check_finds_modules_that_are_stale_or_edited(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate("--check") == 0
    write("a", argument="words")
    assert generate("--check") == 1
    assert "+  words?: string;" in capsys.readouterr().out
    assert generate() == 0
    for name in ("a_mcp.ts", "a_mcp.tools.ts", "stubwright.ts"):
        module = FOLDER / name
        before = module.read_bytes()
        module.write_bytes(before.replace(b"\n", b"\r\n"))  # as git may write it
        assert generate("--check") == 0
        module.write_bytes(before + b"// mine\n")
        assert generate() == 1
        assert "SW402" in capsys.readouterr().err
        assert generate("--force") == 0
        assert module.read_bytes() == before


def test_the_runtime_goes_with_the_last_module() -> None:
    Path("a.yaml").unlink()
    assert cli.run(["generate"]) == 0
    assert modules() == {"b_mcp.ts", "stubwright.ts"}
    write("b", emit="client")
    assert cli.run(["generate"]) == 0
    assert not FOLDER.exists()


def test_modules_of_a_lost_lock_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    Path("generated/stubwright.lock.json").unlink()
    assert generate("b.yaml", "--force") == 0  # which does not include another manifest
    assert modules() == {"a_mcp.ts", "b_mcp.ts", "stubwright.ts"}
    Path("a.yaml").unlink()
    (FOLDER / "mine.ts").write_text("export {};\n")
    assert cli.run(["generate"]) == 0
    assert "a_mcp.ts" in capsys.readouterr().err
    assert cli.run(["generate", "--force"]) == 0
    assert modules() == {"b_mcp.ts", "mine.ts", "stubwright.ts"}


def test_the_command_line_has_the_parts_of_manifests() -> None:
    assert get_args(Emit) == PARTS


def test_the_command_line_replaces_what_a_manifest_emits(capsys: pytest.CaptureFixture[str]) -> None:
    write("a", emit="client")
    chosen = ("a.yaml", "--emit", "typescript")
    assert generate(*chosen) == 0
    assert not Path("generated/a_mcp").exists()
    head = (FOLDER / "a_mcp.ts").read_text().splitlines()[1]
    assert head == "// Regenerate with: stubwright generate a.yaml --emit typescript"
    assert generate(*chosen, "--check") == 0
    assert generate("a.yaml", "--check") == 1
    with pytest.raises(SystemExit, match="2"):
        generate("a.yaml", "--emit", "cobol")
    line = "`cobol` is not a valid value for `--emit`; the values are `server`, `client`, `typescript`"
    assert line in capsys.readouterr().err


def test_a_contract_makes_a_client_that_does_not_trust_hints() -> None:
    manifest = Path("a.yaml")
    manifest.write_text(manifest.read_text().replace("inputSchema", "annotations: {readOnlyHint: true}, inputSchema"))
    assert cli.run(["lock", "a.yaml"]) == 0
    chosen = ("contracts/a.yaml", "--emit", "typescript", "-o", "others")
    assert generate(*chosen) == 0
    assert generate(*chosen, "--check") == 0
    made = Path("others/typescript/a_mcp.ts").read_text()
    assert "\n  ping(args?: PingInput, " in made
    assert made.endswith('{ name: "ping", inputSchema: { type: "object" } }, { isDangerous: true });\n')
