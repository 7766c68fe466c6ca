"""Each rule in the list of mutants has a test that fails if the rule is broken."""

from __future__ import annotations

import re

import pytest

from mutants import MUTANTS, ROOT, Mutant, mutate, survives


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.row or '-'}-{mutant.start}")
def test_a_row_that_is_broken_fails_its_test(mutant: Mutant) -> None:
    assert not survives(mutant)


def test_each_rule_and_its_test_are_in_the_code() -> None:
    for mutant in MUTANTS:
        path = ROOT / "runtime/stubwright_runtime" / mutant.path
        assert mutate(path.read_text(encoding="utf-8"), mutant)
        file, _, name = mutant.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_each_row_names_the_test_that_fails() -> None:
    page = (ROOT / "docs/specification.md").read_text(encoding="utf-8")
    for mutant in MUTANTS:
        if mutant.row is not None:
            row = re.search(rf"^\| {mutant.row} \|.*", page, re.MULTILINE)
            assert row is not None
            assert mutant.test.rpartition("::")[2] in row[0], mutant
