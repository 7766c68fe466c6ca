"""Attacks Redis state by replaying old records without the key; no effect may happen twice.

Copies all data in Redis (`DUMP`) at steps in the life of a task, a handle and an answer. Later restores (`RESTORE`) the
record alone, or the record with all data that authenticates it. Prints a line for each figure, and returns 1 if a
requirement fails. `--quick` skips only the known limitations (`docs/security.md`), which a full run prints, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from _state_lab import Client, Server, Verdict, redis, server, until, write_package

_PREFIX: Final = "stubwright:lab"
_STREAM: Final = f"{_PREFIX}:tasks"
_RECORDS: Final = (":task:", ":task-place:", ":task-result:", ":handle:box:", ":mark:")

_Copy = dict[bytes, tuple[bytes, int]]


class Attacker:
    """A client with a connection to Redis."""

    def __init__(self, port: int) -> None:
        import redis as library

        self._redis: Any = library.Redis(port=port)

    def copy(self) -> _Copy:
        """Copy all keys with their expiry, except for tasks that wait for a worker."""
        found: _Copy = {}
        for name in self._redis.keys(f"{_PREFIX}:*"):
            data = self._redis.dump(name)
            if data is not None and name != _STREAM.encode():
                found[name] = data, max(0, self._redis.pttl(name))
        return found

    def put_back(self, copy: _Copy, *, whole: bool) -> None:
        """Restore the records of a copy; `whole` restores the complete copy and deletes later keys."""
        for name in self._redis.keys(f"{_PREFIX}:*"):
            if name != _STREAM.encode() and (whole or (_is_record(name) and name not in copy)):
                self._redis.delete(name)
        for name, (data, left) in copy.items():
            if whole or _is_record(name):
                self._redis.restore(name, left, data, replace=True)

    def begin(self, task: str) -> None:
        """Make workers pick up a task despite a lease, and wait until a worker has checked it."""
        for name in self._redis.keys(f"{_PREFIX}:lease:*"):
            self._redis.delete(name)
        self._redis.xadd(_STREAM, {"data": task})
        until(lambda: self._redis.xlen(_STREAM) == 0)


def _is_record(name: bytes) -> bool:
    return any(part.encode() in name for part in _RECORDS)


def main() -> int:
    """Run the attacks, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run a sample of some seconds")
    quick = parser.parse_args().quick
    verdict = Verdict("rollback")
    with tempfile.TemporaryDirectory() as made, ExitStack() as running:
        folder = Path(made)
        write_package(folder)
        port = running.enter_context(redis(folder))
        url, attacker = f"redis://127.0.0.1:{port}/0", Attacker(port)
        front = running.enter_context(server(folder, url, works=False))
        client = front.client("ada")
        task = client.task("pay", text="")
        if task is None:
            raise RuntimeError("no task was created")
        created = attacker.copy()
        with ExitStack() as first:
            servers = [front, *(first.enter_context(server(folder, url)) for _ in range(2))]
            _task(verdict, attacker, client, folder, task, created)
            _handle(verdict, attacker, servers)
            _answer(verdict, attacker, servers, folder)
        if not quick:
            attacker.put_back(created, whole=True)
            with server(folder, url):
                attacker.begin(task)
                until(lambda: _lines(folder, "paid") > 1, 5)
            paid = _lines(folder, "paid")
            verdict.say(
                "known limitation: everything restored before a new process",
                f"{paid} payments",
                "2: not detectable",
                holds=True,
            )
    return int(verdict.failed)


def _task(verdict: Verdict, attacker: Attacker, client: Client, folder: Path, task: str, created: _Copy) -> None:
    """Replay a task that must not run twice, during and after its run."""
    until(lambda: _lines(folder, "paid") == 1)
    running = attacker.copy()
    attacker.put_back(created, whole=False)
    attacker.begin(task)
    _paid(verdict, "a task, replayed in its initial state while it runs", folder, 1)
    attacker.put_back(running, whole=True)
    again = client.task("pay", text="")
    if again is None:
        raise RuntimeError("no task was created")
    early = attacker.copy()
    count = _lines(folder, "paid")
    client.wait_for_task(again)
    count = max(count, _lines(folder, "paid"))
    for what, copy in (("before its start", created), ("after its creation", early), ("during its run", running)):
        for whole in (False, True):
            attacker.put_back(copy, whole=whole)
            for name in (task, again):
                attacker.begin(name)
            how = "with its authentication" if whole else "alone"
            _paid(verdict, f"a completed task, replayed in its state {what}, {how}", folder, count)


def _paid(verdict: Verdict, what: str, folder: Path, most: int) -> None:
    count = _lines(folder, "paid")
    verdict.say(what, f"{count} payments", f"{most}", holds=count == most)


def _handle(verdict: Verdict, attacker: Attacker, servers: list[Server]) -> None:
    """Replay a handle that was used up or deleted."""
    clients = [one.client("ada") for one in servers]
    box = clients[0].call("put", text="full")["structuredContent"]["box_id"]
    full = attacker.copy()
    clients[1].call("change", box_id=box, text="empty")
    empty = attacker.copy()
    clients[0].call("drop", box_id=box)
    for what, copy in (("full", full), ("empty", empty)):
        for whole in (False, True):
            attacker.put_back(copy, whole=whole)
            found = {_text(one.call("look", box_id=box)) for one in clients}
            how = "with its authentication" if whole else "alone"
            good = all("is unknown or has expired" in text for text in found)
            said = "unknown" if good else ", ".join(sorted(found))
            verdict.say(f"a deleted handle, replayed in its state {what}, {how}", said, "unknown", holds=good)
    new = clients[2].call("put", text="new").get("structuredContent", {}).get("box_id", "")
    good = _text(clients[1].call("look", box_id=new)) == "new"
    verdict.say("a handle created afterwards", "exists" if good else "missing", "exists", holds=good)


def _answer(verdict: Verdict, attacker: Attacker, servers: list[Server], folder: Path) -> None:
    """Replay an answer that was used."""
    clients = [one.client("ada") for one in servers]
    state = clients[0].call("greet")["requestState"]
    more = {"inputResponses": {"who": {"action": "accept", "content": {"name": "Ada"}}}, "requestState": state}
    before = attacker.copy()
    clients[0].ask("tools/call", name="greet", arguments={}, **more)
    for whole in (False, True):
        attacker.put_back(before, whole=whole)
        for one in clients:
            one.ask("tools/call", name="greet", arguments={}, **more)
        how = "everything was restored" if whole else "its mark was deleted"
        count = _lines(folder, "greeted")
        verdict.say(
            f"an answer that was used, sent again when {how}: handlers that received it", count, "1", holds=count == 1
        )


def _lines(folder: Path, name: str) -> int:
    path = folder / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def _text(said: dict[str, Any]) -> str:
    if "error" in said:
        return str(said["error"])
    return str((said.get("content") or [{"text": str(said)}])[0].get("text"))


if __name__ == "__main__":
    sys.exit(main())
