"""Dockerfiles without Docker: the steps of those that `stubwright new` writes, run in order in a folder.

Takes a file and the folder that it stands in; gives a folder that has what the image would have. Absolute paths are
those of that folder. What comes from a package index is there already, as in a base image that has it: all that the
runtime needs, and neither the runtime nor stubwright.
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
"""How absolute paths of our Dockerfiles begin."""


@dataclass
class Image:
    """What an image is."""

    root: Path
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    user: str = "root"
    port: int = 0
    steps: list[str] = field(default_factory=list)
    """The instructions of its last stage."""

    def local(self, words: list[str]) -> list[str]:
        """A command as it is on this machine."""
        return [_PLACES.sub(f"{self.root}/", word) for word in words]


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with what stands after it."""
    whole = re.sub(r"\\\n", " ", "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#")))
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in whole.splitlines() if line.strip()]


def build(context: Path, folder: Path) -> Image:
    """The image of the Dockerfile in a folder; whatever it has that is not known here is a failure."""
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
        if source.endswith("[t]"):  # a pattern, which may match nothing
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
