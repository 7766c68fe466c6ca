"""What vouches for records in a shared store: when it holds, when it is over, and which marks are spent."""

from __future__ import annotations

import pytest

from stubwright_runtime.state import record_index
from stubwright_runtime.state.nonces import make_nonce
from stubwright_runtime.state.record_index import Entry, HighWaterMarks, RecordIndex

END = 1_000


@pytest.mark.parametrize(
    ("version", "now", "holds"),
    [(2, 0, True), (2, END - 1, True), (2, END, True), (2, END + 1, False), (1, 0, False), (3, 0, False)],
)
def test_a_roster_holds_the_newest_version_until_it_is_over(version: int, now: int, holds: bool) -> None:
    roster = RecordIndex()
    roster.put("a", Entry(1, END), END)
    roster.put("a", Entry(2, END), END)
    roster.put("endless", Entry(2, None), END)
    assert roster.holds("a", version, now) is holds
    assert roster.holds("endless", version, now) is (version == 2)
    assert not roster.holds("b", version, now)


@pytest.mark.parametrize(("now", "is_kept"), [(0, True), (END, True), (END + 1, False)])
def test_what_is_over_is_forgotten_and_nothing_else(now: int, is_kept: bool) -> None:
    roster = RecordIndex()
    roster.put("a", Entry(1, END), END)
    roster.put("endless", Entry(1, None), END)
    assert roster.use_nonce("n", END)
    roster.expire(now)
    assert ("a" in roster.records, "n" in roster.nonces, "endless" in roster.records) == (is_kept, is_kept, True)
    assert roster.use_nonce("n", END) is not is_kept


def test_a_roster_ends_with_what_lasts_longest() -> None:
    roster = RecordIndex()
    assert roster.end == 0
    roster.put("a", Entry(1, END), END)
    roster.put("b", Entry(1, END - 1), END - 1)
    assert roster.end == END
    assert roster.use_nonce("n", END + 1)
    assert roster.end == END + 1
    roster.put("c", Entry(1, None), END)
    assert roster.end is None
    del roster.records["c"]
    assert roster.end == END + 1
    roster.put("d", Entry(1, END), -1)
    roster.put("e", Entry(1, END), END)
    assert roster.end is None


def test_with_too_many_marks_the_older_half_counts_as_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_index, "MAX_NONCES", 4)
    roster = RecordIndex()
    assert [roster.use_nonce(nonce, END) for nonce in "bdfhj"] == [True] * 5
    assert (sorted(roster.nonces), roster.oldest) == (["f", "h", "j"], "d")
    assert [roster.use_nonce(nonce, END) for nonce in "abcdfhj"] == [False] * 7
    assert roster.use_nonce("e", END)


def test_a_roster_is_read_as_it_was_written() -> None:
    roster = RecordIndex(3, END, "m")
    roster.put("a", Entry(1, None), -1)
    roster.put("b", Entry(2, END), END)
    roster.use_nonce("n", END)
    assert RecordIndex.load(roster.dump()) == roster


@pytest.mark.parametrize(("now", "number"), [(None, 7), (END - 1, 7), (END, 7), (END + 1, 0)])
def test_a_number_is_known_until_all_in_its_roster_is_over(now: int | None, number: int) -> None:
    seen = HighWaterMarks()
    seen.record("a", 7, END)
    seen.record("a", 6, END + 9)
    seen.record("endless", 7, None)
    assert (seen.find_number("a", now), seen.find_number("endless", now), seen.find_number("b", now)) == (number, 7, 0)
    assert seen.find_number("a") == number


@pytest.mark.parametrize(("end", "over"), [(END, END), (None, 5 + 30 * 24 * 3600 * 1000)])
def test_a_roster_that_was_put_back_is_replaced_by_an_empty_one(end: int | None, over: int) -> None:
    before = make_nonce()
    seen = HighWaterMarks()
    seen.record("a", 7, end)
    empty = seen.make_empty("a", now=5)
    assert (empty.number, empty.end, empty.records) == (7, over, {})
    assert not empty.use_nonce(before, END)
    assert empty.use_nonce(make_nonce(), END)
