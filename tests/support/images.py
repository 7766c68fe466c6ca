"""Runs the steps of Dockerfiles from `stubwright new` in a folder, without Docker.

The result is a folder with the contents of the image; absolute paths refer to that folder. Packages from an index are
preinstalled as in a base image: all dependencies of the runtime, but neither the runtime nor stubwright.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import third_party

_PLACES: Final = re.compile(r"(?<![\w./])/(?=(src|wheels|dist|opt)\b)")
"""The prefixes of absolute paths in our Dockerfiles."""


@dataclass
class Image:
    """The contents of an image."""

    root: Path
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    user: str = "root"
    port: int = 0
    steps: list[str] = field(default_factory=list)
    """The instructions of its last stage."""

    def local(self, words: list[str]) -> list[str]:
        """Return a command for this machine."""
        return [_PLACES.sub(f"{self.root}/", word) for word in words]


def instructions(text: str) -> list[tuple[str, str]]:
    """Return each instruction with its arguments."""
    whole = re.sub(r"\\\n", " ", "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#")))
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in whole.splitlines() if line.strip()]


def build(context: Path, folder: Path) -> Image:
    """Build the image of the Dockerfile in a folder; fail on an unsupported instruction."""
    image = Image(folder / "root")
    directory, named = "", [""]
    for name, rest in instructions((context / "Dockerfile").read_text("utf-8")):
        if name == "FROM":
            base, *stage = rest.split(" AS ")
            assert base == "python:3.13-slim"
            if image.root.exists():
                image.root.rename(folder / "before")
            image = Image(folder / "root")
            image.root.mkdir(parents=True)
            named, directory = stage, ""
            continue
        image.steps.append(f"{name} {rest}")
        if name == "WORKDIR":
            directory = rest
            (image.root / rest.lstrip("/")).mkdir(parents=True)
        elif name == "COPY":
            _copy(rest.split(), context, folder, directory)
        elif name == "RUN":
            _run(rest, image, directory, folder / "index")
        elif name == "USER":
            image.user = rest
        elif name == "EXPOSE":
            image.port = int(rest)
        elif name in ("ENTRYPOINT", "CMD"):
            setattr(image, "entrypoint" if name == "ENTRYPOINT" else "command", json.loads(rest))
        else:
            assert name == "HEALTHCHECK"
            image.healthcheck = json.loads(rest.partition(" CMD ")[2])
    assert not named, "the last stage is the image"
    return image


def _copy(words: list[str], context: Path, folder: Path, directory: str) -> None:
    *sources, target = words
    to = folder / "root" / str(PurePosixPath(directory, target)).lstrip("/")
    if sources[0].startswith("--from="):
        assert sources[0] == "--from=build"
        for source in sources[1:]:
            shutil.copytree(folder / "before" / source.lstrip("/"), folder / "root" / target.lstrip("/"), symlinks=True)
        return
    everything, *rest = (context / ".dockerignore").read_text("utf-8").splitlines()[1:]
    assert everything == "*"
    for source in sources:
        assert f"!{source}".replace("tx[t]", "txt") in rest, f"{source} is ignored"
        if source.endswith("[t]"):  # a pattern that may match no file
            sources += [found.name for found in context.glob(source)]
            continue
        if (context / source).is_dir():
            shutil.copytree(context / source, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(context / source, to)


def _run(command: str, image: Image, directory: str, index: Path) -> None:
    tools = image.root / "usr" / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    python = tools / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(image.root), **offline}
    [local] = image.local([command])
    where = image.root / directory.lstrip("/")
    done: subprocess.CompletedProcess[Any] = subprocess.run(
        ["sh", "-c", local], cwd=where, env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    for folder in image.root.glob("opt/*/lib/python*/site-packages"):
        (folder / "base.pth").write_text(f"{third_party.site(index, 'stubwright-runtime[all]')}\n")
