"""The recipes of `docs/cookbook.md`, each run as by a reader in a separate folder."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from conftest import ROOT

import amounts
from command_line import stubwright
from walkthrough import Walkthrough

PAGE: Final = (ROOT / "docs" / "cookbook.md").read_text("utf-8")
RECIPES: Final = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
FILE: Final = re.compile(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FASTMCP: Final = "Moving from FastMCP"
PYDANTIC_AI: Final = "An agent on Pydantic AI"
FRAMEWORKS: Final = {
    PYDANTIC_AI: "pydantic-ai",
    "An agent on LangChain": "langchain",
    "An agent on the OpenAI Agents SDK": "openai-agents",
}
"""Recipes that need a framework, which is in an environment of its own."""

SLOW: Final = {"Per-user data", "Another server in a handler"}
"""Recipes whose servers start others, or again on each save."""


def play(recipe: str, folder: Path, instead: Mapping[str, str] = MappingProxyType({})) -> None:
    write_shared_files(recipe, folder)
    with Walkthrough(folder, instead=instead) as walk:
        walk.play(RECIPES[recipe])
        assert walk.blocks == []
        assert walk.count == RECIPES[recipe].count("\n$ ") > 0


def write_shared_files(recipe: str, folder: Path) -> None:
    """Write the manifest and handlers that all recipes for agents use."""
    files = dict(FILE.findall(RECIPES[PYDANTIC_AI]))
    for name in ("specs/notes.yaml", "notes.py") if recipe in FRAMEWORKS else ():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(files[name])


@pytest.mark.parametrize(
    "recipe",
    amounts.sample(
        [
            pytest.param(name, marks=[pytest.mark.long] if name in SLOW else [])
            for name in RECIPES
            if name != FASTMCP and name not in FRAMEWORKS
        ],
        1,
    ),
)
def test_a_recipe_works_as_written(recipe: str, tmp_path: Path) -> None:
    play(recipe, tmp_path)


@pytest.mark.long
def test_a_server_moves_from_fastmcp_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    peers = importlib.import_module("peers")
    try:
        python = peers.fastmcp()
    except peers.NotThereError as error:
        pytest.skip(str(error))
    play(FASTMCP, tmp_path, {"-- python ": f"-- {python} ", "--yes": f"--yes -- {python}"})


@pytest.mark.long
@pytest.mark.parametrize("recipe", FRAMEWORKS)
def test_an_agent_works_as_written(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(recipe, tmp_path, {"python agent.py": f"{framework(recipe, monkeypatch)} agent.py"})


def framework(recipe: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Python of the environment that has the framework of a recipe."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    peers = importlib.import_module("peers")
    try:
        python: Path = peers.framework(FRAMEWORKS[recipe])
    except peers.NotThereError as error:
        pytest.skip(f"{FRAMEWORKS[recipe]} is not installed: {error}")
    return python


def test_the_page_leads_to_each_recipe() -> None:
    assert [title.lower().replace(" ", "-") for title in RECIPES] == re.findall(r"\]\(#([\w-]+)\)", PAGE)
    assert [name for name in RECIPES if "**Watch out:** " not in RECIPES[name]] == []


@pytest.mark.long
@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != FASTMCP])
def test_the_code_of_a_recipe_is_typed(
    recipe: str, tmp_path: Path, mypy: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [f"--python-executable={framework(recipe, monkeypatch)}"] if recipe in FRAMEWORKS else []
    write_shared_files(recipe, tmp_path)
    files = dict(FILE.findall(RECIPES[recipe]))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    manifests = [name for name, text in files.items() if "\nserver:" in text] or ["specs/notes.yaml"]
    run = stubwright("generate", *manifests, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    modules = [name for name in files if name.endswith(".py")]
    command = [*mypy, *options, *(modules or ["generated"])]
    environment = {**os.environ, "MYPYPATH": "generated"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
