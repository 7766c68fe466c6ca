"""Servers end with the command that started them, even if it is killed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import processes

_COMMANDS = {
    "mock": ["mock", "specs/weather.yaml", "--http", "127.0.0.1:0"],
    "dev": ["dev", "--http", "127.0.0.1:0"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    for name in ("weather.yaml", "weather.md"):
        shutil.copy(ROOT / "specs" / name, tmp_path / "specs")
    shutil.copy(ROOT / "examples/weather.py", tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["specs/weather.yaml"]\n')
    return tmp_path


@pytest.mark.parametrize(
    "words", [_COMMANDS["mock"], pytest.param(_COMMANDS["dev"], marks=pytest.mark.long)], ids=_COMMANDS
)
def test_a_server_ends_when_its_command_is_killed(words: Sequence[str], project: Path) -> None:
    mark = f"STUBWRIGHT_KILLED={project}"
    name, _, value = mark.partition("=")
    command = [sys.executable, "-m", "stubwright", *words]
    env = {**os.environ, name: value}
    pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with processes.start_process(command, cwd=project, env=env, **pipe) as process:
        assert process.stdout is not None
        said = ""
        while not re.search(r"Application startup complete", said):
            line = process.stdout.readline()
            assert line, said
            said += line
        servers = processes.list_marked(mark).keys() - {process.pid}
        assert servers, said
        process.kill()
        for server in servers:
            processes.await_end(server, patience=60)
