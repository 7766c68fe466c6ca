"""Authentication of records in a shared store: validity, expiry, and spent marks."""

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
def test_an_index_holds_the_newest_version_until_it_expires(version: int, now: int, holds: bool) -> None:
    index = RecordIndex()
    index.put("a", Entry(1, END), END)
    index.put("a", Entry(2, END), END)
    index.put("endless", Entry(2, None), END)
    assert index.holds("a", version, now) is holds
    assert index.holds("endless", version, now) is (version == 2)
    assert not index.holds("b", version, now)


@pytest.mark.parametrize(("now", "is_kept"), [(0, True), (END, True), (END + 1, False)])
def test_what_is_over_is_forgotten_and_nothing_else(now: int, is_kept: bool) -> None:
    index = RecordIndex()
    index.put("a", Entry(1, END), END)
    index.put("endless", Entry(1, None), END)
    assert index.use_nonce("n", END)
    index.expire(now)
    assert ("a" in index.records, "n" in index.nonces, "endless" in index.records) == (is_kept, is_kept, True)
    assert index.use_nonce("n", END) is not is_kept


def test_an_index_ends_with_what_lasts_longest() -> None:
    index = RecordIndex()
    assert index.end == 0
    index.put("a", Entry(1, END), END)
    index.put("b", Entry(1, END - 1), END - 1)
    assert index.end == END
    assert index.use_nonce("n", END + 1)
    assert index.end == END + 1
    index.put("c", Entry(1, None), END)
    assert index.end is None
    del index.records["c"]
    assert index.end == END + 1
    index.put("d", Entry(1, END), -1)
    index.put("e", Entry(1, END), END)
    assert index.end is None


def test_with_too_many_marks_the_older_half_counts_as_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_index, "MAX_NONCES", 4)
    index = RecordIndex()
    assert [index.use_nonce(nonce, END) for nonce in "bdfhj"] == [True] * 5
    assert (sorted(index.nonces), index.oldest) == (["f", "h", "j"], "d")
    assert [index.use_nonce(nonce, END) for nonce in "abcdfhj"] == [False] * 7
    assert index.use_nonce("e", END)


def test_an_index_is_read_as_it_was_written() -> None:
    index = RecordIndex(3, END, "m")
    index.put("a", Entry(1, None), -1)
    index.put("b", Entry(2, END), END)
    index.use_nonce("n", END)
    assert RecordIndex.load(index.dump()) == index


@pytest.mark.parametrize(("now", "number"), [(None, 7), (END - 1, 7), (END, 7), (END + 1, 0)])
def test_a_number_is_known_until_all_in_its_index_expires(now: int | None, number: int) -> None:
    seen = HighWaterMarks()
    seen.record("a", 7, END)
    seen.record("a", 6, END + 9)
    seen.record("endless", 7, None)
    assert (seen.find_number("a", now), seen.find_number("endless", now), seen.find_number("b", now)) == (number, 7, 0)
    assert seen.find_number("a") == number


@pytest.mark.parametrize(("end", "over"), [(END, END), (None, 5 + 30 * 24 * 3600 * 1000)])
def test_an_index_that_was_put_back_is_replaced_by_an_empty_one(end: int | None, over: int) -> None:
    before = make_nonce()
    seen = HighWaterMarks()
    seen.record("a", 7, end)
    empty = seen.make_empty("a", now=5)
    assert (empty.number, empty.end, empty.records) == (7, over, {})
    assert not empty.use_nonce(before, END)
    assert empty.use_nonce(make_nonce(), END)
