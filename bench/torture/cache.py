"""Attacks `generate` with a checkout or a cache folder that an attacker has written.

    python bench/torture/cache.py [--quick]

The attacker generates the package at the victim's path with the same stubwright, so all names and digests are right.
The cached files are poisoned and put into the victim's checkout, or into the victim's cache folder by an attacker who
cannot read the key. Locks and journals are forged to match edited files. The victim then generates and checks; the
output must equal a clean run's.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATEMENT = "import pathlib; pathlib.Path({!r}).touch()\n"
LOCK = "stubwright.lock.json"
OLD = ".stubwright_cache"
RUN = "0123456789abcdef"

Units = dict[str, Any]
Poison = Callable[[Units, str], None]


@dataclass
class Counts:
    """The outcomes of the attacks."""

    attacks: int = 0
    ran: int = 0
    wrong: int = 0
    hidden: int = 0
    failed: int = 0


@dataclass
class Scene:
    """The folders: the checkout that the attacker sends and the victim uses, and the cache folders of both."""

    base: Path

    @property
    def work(self) -> Path:
        """The checkout."""
        return self.base / "work"

    @property
    def theirs(self) -> Path:
        """The attacker's cache folder."""
        return self.base / "attacker"

    @property
    def own(self) -> Path:
        """The victim's cache folder."""
        return self.base / "victim"

    @property
    def marker(self) -> Path:
        """The file that the attacker's code creates."""
        return self.base / "ran"

    def generate(self, cache: Path, *options: str) -> subprocess.CompletedProcess[str]:
        """Run `stubwright generate` in the checkout."""
        command = [sys.executable, "-m", "stubwright", "generate", "m.json", *options]
        env = {**os.environ, "STUBWRIGHT_CACHE_DIR": str(cache)}
        return subprocess.run(command, cwd=self.work, env=env, capture_output=True, text=True, check=False)

    def manifest(self, *more: str) -> None:
        """Write the manifest, with extra tools."""
        tools = [
            {
                "name": name,
                "description": f"Do {name}.",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
            }
            for name in ("one", "two", "three", *more)
        ]
        server = {"name": "sample", "version": "1"}
        self.work.mkdir(exist_ok=True)
        (self.work / "m.json").write_text(json.dumps({"stubwright": 1, "server": server, "tools": tools}))

    def package(self) -> dict[str, bytes]:
        """Return the files of the package by path, without bytecode."""
        root = self.work / "generated" / "sample_mcp"
        found = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(root)): path.read_bytes() for path in found}


def statement_in_models(units: Units, statement: str) -> None:
    """Append a statement to each module."""
    for unit in units["units"].values():
        unit[0] += statement


def statement_in_methods(units: Units, statement: str) -> None:
    """Append a statement to the client's class after each method."""
    for unit in units["units"].values():
        unit[2] += f"\n    {statement}"


def other_type(units: Units, _: str) -> None:
    """Change the type of a field, without malicious code."""
    for unit in units["units"].values():
        unit[0] = unit[0].replace("a: str", "a: int")


POISONS: tuple[Poison, ...] = (statement_in_models, statement_in_methods, other_type)


def poison_cache(data: bytes, key: bytes | None, name: str, poison: Poison, statement: str) -> bytes:
    """Return a cache file with other units, with a MAC if the original has one."""
    value = json.loads(data if key is None else data[hashlib.sha256().digest_size :])
    if "units" in value:
        poison(value, statement)
        value["proven"] = []
    made = json.dumps(value).encode()
    return made if key is None else hmac.digest(key, name.encode() + made, "sha256") + made


def put_cache(scene: Scene, place: str, poison: Poison) -> None:
    """Generate as the attacker, and put the poisoned cache into a fresh checkout or cache folder."""
    for folder in (scene.work, scene.theirs, scene.own):
        shutil.rmtree(folder, ignore_errors=True)
    scene.manifest()
    made = scene.generate(scene.theirs)
    assert made.returncode == 0, made.stderr
    statement = STATEMENT.format(str(scene.marker))
    key = None
    with suppress(FileNotFoundError):
        key = (scene.theirs / "key").read_bytes()
    sources = [path for at in (scene.work / OLD, scene.theirs) if at.is_dir() for path in at.iterdir()]
    files = {path.name: path.read_bytes() for path in sources if path.name not in ("key", ".gitignore")}
    bad = {name: poison_cache(data, key, name, poison, statement) for name, data in files.items()}
    if key is not None:
        bad["key"] = key
    if place == "victim's folder":
        assert scene.generate(scene.own, "--force").returncode == 0  # this creates the victim's key
        bad.pop("key", None)
    to = {"checkout": scene.work / OLD, "output": scene.work / "generated" / OLD, "victim's folder": scene.own}[place]
    to.mkdir(exist_ok=True)
    for name, data in bad.items():
        (to / name).write_bytes(data)
        (to / name).chmod(0o600)


def edit_file(scene: Scene, *, journal: bool) -> None:
    """Return a checkout with an edited file, and with a lock or the journal of a killed run that matches it."""
    for folder in (scene.work, scene.theirs, scene.own):
        shutil.rmtree(folder, ignore_errors=True)
    scene.manifest()
    assert scene.generate(scene.theirs).returncode == 0
    path = scene.work / "generated/sample_mcp/models/one.py"
    path.write_text(path.read_text().replace("a: str", "a: int") + STATEMENT.format(str(scene.marker)))
    lock = scene.work / "generated" / LOCK
    value = json.loads(lock.read_text())
    digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    value["manifests"]["m.json"]["files"]["sample_mcp/models/one.py"] = digest
    (lock.with_name(f".{LOCK}.0.{RUN}.tmp") if journal else lock).write_text(json.dumps(value, indent=2))


def judge(scene: Scene, counts: Counts, right: dict[str, bytes], said: subprocess.CompletedProcess[str]) -> None:
    """Count the effects of an attack on the victim."""
    counts.attacks += 1
    counts.failed += said.returncode != 0
    counts.wrong += scene.package() != right
    counts.hidden += scene.package() != right and "up to date" in said.stdout
    models = "import sys; sys.path.insert(0, 'generated'); import sample_mcp.client, sample_mcp.models"
    subprocess.run([sys.executable, "-c", models], cwd=scene.work, capture_output=True, check=False)
    counts.ran += scene.marker.exists()
    scene.marker.unlink(missing_ok=True)


def attacks(scene: Scene, *, quick: bool) -> Iterator[Callable[[], None]]:
    """Return the attacks. Each prepares a checkout for the victim."""
    places = ["checkout", "victim's folder"] if quick else ["checkout", "output", "victim's folder"]
    for place in places:
        for poison in POISONS[:1] if quick else POISONS:
            yield lambda place=place, poison=poison: put_cache(scene, place, poison)  # type: ignore[misc]
    for journal in (False, True):
        yield lambda journal=journal: edit_file(scene, journal=journal)  # type: ignore[misc]


def main() -> int:
    """Run all attacks, and return the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="run a sample of some ten seconds")
    quick = parser.parse_args().quick
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="stubwright-torture-") as folder:
        scene = Scene(Path(folder))
        for more in ((), ("four",)) if not quick else (("four",),):
            shutil.rmtree(scene.work, ignore_errors=True)
            scene.manifest(*more)
            assert scene.generate(scene.base / "nothing").returncode == 0
            right = scene.package()
            for prepare in attacks(scene, quick=quick):
                prepare()
                scene.manifest(*more)
                judge(scene, counts, right, scene.generate(scene.own))
    print(f"cache: attacks with checkouts, caches, locks and journals: {counts.attacks}")
    figures = [
        ("attacks whose code ran", counts.ran),
        ("packages that differ from a clean run's", counts.wrong),
        ("of these, reported as up to date", counts.hidden),
        ("runs of the victim that failed", counts.failed),
    ]
    for what, figure in figures:
        print(f"cache: {what}: {figure} (0)")
    return 1 if any(figure for _, figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
