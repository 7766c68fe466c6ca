"""Measures mutation coverage: changes a room's code at random locations, and lists changes that no test detects.

    python bench/mutants.py [ROOM …]

Cosmic-ray makes one change at a time, in a worktree of the last commit with its own environments, so that this checkout
and its lock do not change. A fixed seed selects SAMPLE locations in each room, with one change for each.
`SAMPLE=10` in the environment selects fewer of the same locations.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
COSMIC_RAY: Final = "cosmic-ray==8.7.0"  # another release selects other locations
SEED: Final = 2026
SAMPLE: Final = int(os.environ.get("SAMPLE", "25"))
_SERVER: Final = "tests/runtime/server/test_"
_STATE: Final = "tests/runtime/state/test_"

ROOMS: Final = {
    "runtime/stubwright_runtime/policy": "tests/runtime/policy tests/compile/test_binds.py "
    "--deselect tests/runtime/policy/test_policy_limits.py::test_ten_thousand_calls_of_64_clients",
    "runtime/stubwright_runtime/state": " ".join(
        f"{_STATE}{name}.py"
        for name in ("sealing", "record_index", "state_stores", "state_rollback", "state_budget", "state_outages")
    )
    + f" --deselect {_STATE}state_outages.py::test_whatever_stands_in_redis_is_no_internal_error",
    "runtime/stubwright_runtime/server/core": " ".join(
        f"{_SERVER}{name}.py"
        for name in (
            "server",
            "server_offers",
            "server_content",
            "required_features",
            "server_sanitizing",
            "authentication",
            "request_state",
            "tracebacks",
            "server_answers",
        )
    ),
    "runtime/stubwright_runtime/schema": f"{_SERVER}server_validation.py tests/runtime/schema -k 'not stdio'",
    "generator/stubwright/project/files": "tests/project/test_disk.py tests/project/test_tree.py "
    "tests/project/test_user_cache.py tests/project/test_lost_lock.py",
    "generator/stubwright/diff/subsumption": "tests/diff/test_hedges.py tests/diff/test_subsumption.py "
    "tests/diff/test_witnesses.py tests/diff/test_unions.py --deselect tests/diff/test_unions.py::test_random_unions",
}
"""Each room with its quick tests."""

_SKIPPED: Final = re.compile(
    r"BitOr|_(Is_Eq|IsNot_NotEq|Eq_Is|NotEq_IsNot)$"  # `int | None` in annotations, and the same for comparisons
    r"|BinaryOperator_(?!Add_Sub|Sub_Add|Mul_FloorDiv|FloorDiv_Mul|Div_Mul|Mod_Mul)"  # the rest fails type checks
)


_DECLARES: Final = re.compile(r"\s*(@dataclass|if TYPE_CHECKING|\*,$)")
"""Lines without effect at run time."""
_STILLBORN: Final = re.compile(r"\*,|@overload")
"""Places where a change is a syntax error, or without effect at run time."""


def configure(folder: Path, room: str, tests: str) -> tuple[Path, Path]:
    """Run a room's tests, and write a session's configuration. Return the paths of both files.

    Raises:
        CalledProcessError: The tests fail on unchanged code, so they cannot detect a change.
    """
    pytest = f"{folder}/.venv/bin/python -m pytest -x -q -p no:cacheprovider --hypothesis-seed=0 {tests}"
    started = time.monotonic()
    subprocess.run(["sh", "-c", pytest], cwd=folder, check=True)
    seconds = round(30 + 4 * (time.monotonic() - started))  # the timeout for a change that makes the tests hang
    path = folder / ".venv" / (room.replace("/", "-") + ".toml")
    script = path.with_suffix(".sh")
    command = f"timeout --kill-after=5 {seconds} {pytest}; code=$?; [ $code = 124 ] && echo OUT OF TIME; exit $code"
    script.write_text(command, encoding="utf-8")
    path.write_text(
        f'[cosmic-ray]\nmodule-path = "{room}"\ntimeout = {seconds + 15}\nexcluded-modules = []\n'
        f'test-command = "sh {script}"\n[cosmic-ray.distributor]\nname = "local"\n',
        encoding="utf-8",
    )
    return path, path.with_suffix(".sqlite")


def keep_sample(folder: Path, session: Path) -> None:
    """Reduce a session to the sample. It selects locations first, so that a comparison does not count ten times."""
    with closing(sqlite3.connect(session)) as database:
        rows = database.execute(
            "SELECT module_path, start_pos_row, start_pos_col, operator_name, occurrence, job_id FROM mutation_specs"
        )
        lines = cache(lambda path: (folder / path).read_text(encoding="utf-8").splitlines())
        changes = sorted(
            row for row in rows if not _SKIPPED.search(row[3]) and not _DECLARES.match(lines(row[0])[row[1] - 1])
        )
        choice = random.Random(SEED)
        places = [choice.choice([*of_place]) for _, of_place in groupby(changes, key=lambda row: row[:3])]
        choice.shuffle(places)
        kept = [row[-1] for row in places if not _STILLBORN.match(lines(row[0])[row[1] - 1], row[2])][:SAMPLE]
        for table in ("mutation_specs", "work_items"):
            database.execute(f"DELETE FROM {table} WHERE job_id NOT IN ({','.join('?' * len(kept))})", kept)
        database.commit()


def report(room: str, session: Path) -> None:
    """Print a room's detection rate, then each change that survived or timed out."""
    with closing(sqlite3.connect(session)) as database:
        rows = database.execute(
            "SELECT test_outcome, output, diff, operator_name FROM work_results JOIN mutation_specs USING (job_id)"
        ).fetchall()
    survivors = [row for row in rows if row[0].lower().endswith("survived")]
    late = [row for row in rows if "OUT OF TIME" in (row[1] or "")]
    print(f"{room}: {len(rows) - len(survivors)} of {len(rows)} killed, {len(late)} of them by time", flush=True)
    for title, listed in (("survived", survivors), ("out of time", late)):
        for _, _, diff, operator in listed:
            print(f"--- {title}: {operator}\n{diff}\n", flush=True)


def main(rooms: list[str]) -> None:
    """Run the named rooms, or all rooms."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "checkout")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder], cwd=ROOT, check=True)
        try:
            subprocess.run(["make", "--silent", ".venv/ready"], cwd=folder, check=True)
            tools = folder / ".venv/cosmic-ray"
            subprocess.run([sys.executable, "-m", "venv", tools], check=True)
            subprocess.run([tools / "bin/pip", "install", "--quiet", COSMIC_RAY], check=True)
            cosmic_ray = tools / "bin/cosmic-ray"
            for room in rooms or ROOMS:
                configuration, session = configure(folder, room, ROOMS[room])
                subprocess.run([cosmic_ray, "init", configuration, session], cwd=folder, check=True)
                keep_sample(folder, session)
                subprocess.run([cosmic_ray, "exec", configuration, session], cwd=folder, check=True)
                report(room, session)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
