"""Task ids for clients and for the command `tasks`."""

from __future__ import annotations

import re

from stubwright_runtime.tasks.records import make_id


def test_no_id_looks_like_an_option() -> None:
    ids = {make_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(re.fullmatch(r"[0-9a-f]{48}", each) for each in ids)
