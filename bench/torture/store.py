"""Attacks the store: one caller stores the maximum, in memory and in Redis; other callers must not be affected.

Configures Redis as our compose file does. Prints a line for each figure; returns 1 if a requirement fails. `--quick`
runs a sample.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _state_lab import OLD, Client, Server, Verdict, redis, server, write_package

LARGE = 4_100_000
MEDIUM = 250_000
MOST_MB = 100
"""Maximum growth in MB by one caller: 16 MiB of records, with the overhead of Redis or Python and of the calls."""


def main() -> int:
    """Run the attacks, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run a sample of some seconds")
    quick = parser.parse_args().quick
    verdict = Verdict("store")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_package(folder)
        with redis(folder) as port, server(folder, f"redis://127.0.0.1:{port}/0") as one:
            _attack(verdict, "redis", one, quick, port)
        with server(folder, "memory://") as one:
            _attack(verdict, "memory", one, quick, None)
        with server(folder, "memory://", tokens=False) as one:
            held = sum(one.client(None, OLD).task("hold", text="") is not None for _ in range(10 if quick else 40))
            verdict.say("abandoned sessions: running tasks", held, "at most 5", holds=held <= 5)
    return int(verdict.failed)


def _attack(verdict: Verdict, where: str, one: Server, quick: bool, port: int | None) -> None:
    def used() -> float:
        return one.resident() if port is None else _redis_used(port)

    before, mallory = used(), one.client("mallory")
    for what, tool, size, most, sample in (
        ("tasks with arguments of 4.1 MB", "store", LARGE, 61, 2),
        ("tasks with arguments of 250 KB", "store", MEDIUM, 1200, 15),
        ("handles of 200 KB", "put", 200_000, 1200, 90),  # 82 of them are the maximum for one caller
        ("results of 1 MB", "report", 1_000_000, 60, 6),
    ):
        count = sample if quick else most
        taken, told, began = _flood(mallory, tool, size, count)
        verdict.say(
            f"{where}, {what}", f"{taken} of {count} accepted in {time.perf_counter() - began:.1f} s", told, holds=True
        )
    grown = used() - before
    what = "the process has grown by" if port is None else "Redis has grown by"
    verdict.say(f"{where}: {what}", f"{grown:.0f} MB", f"at most {MOST_MB}", holds=grown <= MOST_MB)
    ada = one.client("ada")
    allowed = [_text(ada.call("limited")) for _ in range(4)]
    good = allowed[:3] == ["ok"] * 3 and "may be called 3 times" in allowed[3]
    verdict.say(f"{where}: another caller's rate", "unaffected" if good else allowed, "3 of 4 calls", holds=good)
    task = ada.task("store", text="x" * 10_000)
    ended = ada.wait_for_task(task) if task is not None else {}
    good = ended.get("result", {}).get("content", [{}])[0].get("text") == "stored"
    verdict.say(f"{where}: another caller's task", ended.get("status"), "completed", holds=good)
    box = ada.call("put", text="mine").get("structuredContent", {}).get("box_id", "")
    good = _text(ada.call("look", box_id=box)) == "mine"
    verdict.say(f"{where}: another caller's handle", "exists" if good else "missing", "exists", holds=good)
    asked = ada.ask("tools/call", name="greet", arguments={})
    answer = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    state = asked.get("requestState")
    greeted = _text(ada.ask("tools/call", name="greet", arguments={}, inputResponses=answer, requestState=state))
    verdict.say(f"{where}: another caller's answer", greeted, "Hello Ada", holds=greeted == "Hello Ada")


def _flood(client: Client, tool: str, size: int, count: int) -> tuple[int, str, float]:
    """Return the number of accepted calls, the last rejection, and the start time."""
    taken, told, began = 0, "all accepted", time.perf_counter()
    arguments: dict[str, Any] = {"size": size} if tool == "report" else {"text": "x" * size}
    for _ in range(count):
        said = client.call(tool, **arguments)
        if "taskId" in said or "structuredContent" in said:
            taken += 1
        else:
            told = _text(said)[:150]
    return taken, told, began


def _text(said: dict[str, Any]) -> str:
    if "error" in said:
        return str(said["error"])
    return str((said.get("content") or [{"text": str(said)[:200]}])[0].get("text"))


def _redis_used(port: int) -> float:
    import redis as library

    with library.Redis(port=port) as link:
        found: dict[str, Any] = link.info("memory")
    return float(found["used_memory"]) / 1e6


if __name__ == "__main__":
    sys.exit(main())
