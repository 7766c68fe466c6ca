"""Measures how compile time grows: cold, with one tool changed, and unchanged, compared with datamodel-codegen.

    python bench/scale.py [TOOLS …]
    python bench/scale.py circle [SCHEMAS …]

Compiles each number of tools (default: 10, 100 and 1000) in each form of the manifest (one YAML file, one JSON file,
one included file per tool): cold, again after a change of one tool's description and schema, and again unchanged.
`datamodel-codegen --input-file-type mcp-tools` with Black generates only the models of the same tools. Targets: cold at
most the time of the models; one tool changed at most 1/8 of cold, unchanged at most 1/15.

`circle` compiles shared schemas that all reference each other (default: 60, 180, 540 and 1000), with six tools per ten
schemas, and prints the time of the first use of a model. Every tool carries all schemas on the wire; `manifest.json`
has them once. Targets: linear growth; for 1000 at most 60 s, and 600 MB for all processes together.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stubwright.compile.syntax import yamlwriter
from tools import circle, tools

BIN = Path(sys.executable).parent
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock seconds and the peak resident memory in MiB, children included."""

    seconds: float
    memory: float


def run(command: Sequence[str], folder: Path) -> Cost:
    """Run a command to completion."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command} failed")
    return Cost(time.perf_counter() - start, used.ru_maxrss / 1024)


def least(costs: Sequence[Cost]) -> Cost:
    """Return the minimum time, which other processes disturb least, and the maximum memory."""
    return Cost(min(cost.seconds for cost in costs), max(cost.memory for cost in costs))


def one_yaml(folder: Path, listed: Sequence[Any]) -> str:
    """Write one YAML file."""
    (folder / "one.yaml").write_text(yamlwriter.format_manifest(_manifest(listed)))
    return "one.yaml"


def one_json(folder: Path, listed: Sequence[Any]) -> str:
    """Write one JSON file."""
    (folder / "one.json").write_text(json.dumps(_manifest(listed), indent=1))
    return "one.json"


def many_files(folder: Path, listed: Sequence[Any]) -> str:
    """Write one file per tool."""
    (folder / "tools").mkdir(exist_ok=True)
    for tool in listed:
        (folder / "tools" / f"{tool['name']}.yaml").write_text(yamlwriter.format_manifest({"tools": [tool]}))
    (folder / "many.yaml").write_text(yamlwriter.format_manifest({**_manifest([]), "include": ["tools/*.yaml"]}))
    return "many.yaml"


def _manifest(listed: Sequence[Any]) -> dict[str, Any]:
    return {"stubwright": 1, "server": {"name": "bench", "version": "1"}, "tools": list(listed)}


FORMS: dict[str, Callable[[Path, Sequence[Any]], str]] = {
    "one YAML file": one_yaml,
    "one JSON file": one_json,
    "a file a tool": many_files,
}


def measure(form: Callable[[Path, Sequence[Any]], str], size: int, folder: Path) -> tuple[Cost, Cost, Cost]:
    """Measure a cold compile, a compile after one change, and an unchanged compile."""
    listed = tools(size)
    os.environ["STUBWRIGHT_CACHE_DIR"] = str(folder / "cache")
    command = [str(BIN / "stubwright"), "generate", form(folder, listed), "-o", "out"]
    cold, one, nothing = [], [], []
    for turn in range(ROUNDS):
        shutil.rmtree(folder / "out", ignore_errors=True)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        cold.append(run(command, folder))
        for step in range(3):
            tool = listed[size // 2]
            tool["description"] += f" Change {turn}.{step}."
            tool["inputSchema"]["properties"][f"extra_{turn}_{step}"] = {"type": "string"}
            form(folder, listed)
            one.append(run(command, folder))
            nothing.append(run(command, folder))
    return least(cold), least(one), least(nothing)


def run_all(command: Sequence[str], folder: Path) -> Cost:
    """Run a command to completion. Its memory is the maximum sum over all its processes, sampled often.

    Pages that they share count once.
    """
    most = 0.0
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        most = max(most, sum(map(_memory, family(process.pid))))
        time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"{command} failed")
    return Cost(time.perf_counter() - start, most)


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has exited
        return []
    return [pid, *(one for child in below for one in family(int(child)))]


def _memory(pid: int) -> float:
    """Return the proportional resident memory of a process in MiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


_FIRST_USE = """
import time
from bench_mcp import TOOLS
start = time.perf_counter()
TOOLS["get_thing_0001"].Output.model_validate({"thing": {"next": {"parts": [{}]}}})
print(time.perf_counter() - start)
"""


def measure_circles(sizes: Sequence[int]) -> None:
    """Print a table of shared schemas that all reference each other."""
    print(f"{'schemas':>8}{'tools':>7}{'manifest.json':>15}{'cold':>9}{'MiB':>7}{'classes':>9}{'first use':>11}")
    for size in sizes:
        count = max(1, size * 6 // 10)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shared, listed = circle(size, count)
            (folder / "one.json").write_text(json.dumps({**_manifest(listed), "schemas": shared}))
            cost = run_all([str(BIN / "stubwright"), "generate", "one.json", "-o", "out"], folder)
            package = folder / "out" / "bench_mcp"
            written = (package / "manifest.json").stat().st_size / 2**20
            classes = sum(text.read_text().count("\nclass ") for text in package.glob("models/**/*.py"))
            use = [sys.executable, "-c", _FIRST_USE]
            first = float(subprocess.run(use, cwd=folder / "out", check=True, capture_output=True, text=True).stdout)
        row = f"{size:>8}{count:>7}{written:>11.0f} MiB{cost.seconds:>8.1f}s{cost.memory:>7.0f}{classes:>9}"
        print(f"{row}{first:>10.2f}s")
    print("targets: linear; of 1000 schemas: cold ≤ 60 s, ≤ 572 MiB (600 MB)")


def main() -> None:
    """Print a table."""
    if sys.argv[1:2] == ["circle"]:
        measure_circles([int(text) for text in sys.argv[2:]] or [60, 180, 540, 1000])
        return
    sizes = [int(text) for text in sys.argv[1:]] or [10, 100, 1000]
    print(
        f"{'tools':>6}  {'manifest':14}{'cold':>9}{'/models':>9}{'one':>8}{'/cold':>8}{'none':>8}{'/cold':>8}{'MiB':>7}"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "tools.json").write_text(json.dumps({"tools": tools(size)}))
            peer = [
                str(BIN / "datamodel-codegen"),
                *("--input", "tools.json", "--input-file-type", "mcp-tools", "--output", "models.py"),
                *("--output-model-type", "pydantic_v2.BaseModel", "--formatters", "black", "isort"),
            ]
            models = least([run(peer, folder) for _ in range(ROUNDS if size < 1000 else 1)])
            print(f"{size:>6}  {'(models alone)':14}{models.seconds:>8.2f}s{'1.00':>9}{'':32}{models.memory:>7.0f}")
            for label, form in FORMS.items():
                cold, one, nothing = measure(form, size, folder)
                print(
                    f"{size:>6}  {label:14}{cold.seconds:>8.2f}s{cold.seconds / models.seconds:>9.2f}"
                    f"{one.seconds:>7.2f}s{one.seconds / cold.seconds:>8.3f}"
                    f"{nothing.seconds:>7.2f}s{nothing.seconds / cold.seconds:>8.3f}{cold.memory:>7.0f}"
                )
    print("targets: cold/models ≤ 1, one/cold ≤ 0.125, none/cold ≤ 0.067 (of 1000 tools)")


if __name__ == "__main__":
    main()
