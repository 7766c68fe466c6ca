"""The rate and correctness of verdicts of `diff` for two schemas, with `jsonschema` as the oracle.

Schemas are random, from public servers, or strict variants of the latter; edits cover every keyword of JSON Schema.
`STUBWRIGHT_WHOLE_DIFF=1` runs many more.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema
import jsonschema_rs
import pytest

import schema_edits
import vocabulary_edits
from amounts import choose
from stubwright import ir
from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, find_worst_impact
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.diff.subsumption import counterexample
from stubwright.diff.subsumption.proof import SchemaValidator
from stubwright.jsonschema import dialects

Json = Any
Pair = tuple[Json, Json]
DIRECTIONS: tuple[Literal["input", "output"], ...] = ("input", "output")

PAIRS = choose("STUBWRIGHT_WHOLE_DIFF", 20, 150, 10_000)
ENOUGH = 150
"""The number of pairs from which the share of undecided changes means something."""
LARGEST = 20_000
"""Characters of a schema of a public server that is edited."""

EXAMPLE = re.compile(r"for example (.*) was (?:accepted and is now rejected|impossible and is now possible)")
OPEN = re.compile(
    r"could not prove or disprove that [a-z ]+"
    r"(: `\S+` prevents a proof|: the search for a counterexample took too long)?"
)


def test_every_keyword_is_edited() -> None:
    asserting = set().union(*(dialect.keywords for dialect in dialects.DIALECTS)) - vocabulary_edits.SILENT
    assert vocabulary_edits.MAKERS.keys() == asserting


@pytest.fixture
def public(corpus: Path) -> list[Json]:
    """Different schemas of tools of public servers."""
    found: dict[str, Json] = {}
    for path in sorted((corpus / "tools").glob("*.json")):
        for tool in json.loads(path.read_text("utf-8"))["tools"]:
            for schema in (tool.get("inputSchema"), tool.get("outputSchema")):
                text = json.dumps(schema, sort_keys=True)
                if isinstance(schema, dict) and len(text) < LARGEST:
                    found[text] = schema
    return [*found.values()]


def is_usable(schema: Json) -> bool:
    """Whether a schema is valid in its dialect, for both judges."""
    if dialects.find_dialect(schema) is None:
        return False
    try:
        jsonschema_rs.meta.validate(schema)
        SchemaValidator(schema).accepts({})
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


def judge_for(schema: Json) -> Any:
    """The class of `jsonschema` for a schema, with decimal numbers: JSON has no others."""
    return _extend(jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator))


@cache
def _extend(plain: Any) -> Any:
    validators: Any = jsonschema.validators
    return validators.extend(plain, {"multipleOf": _check_step})


def _check_step(_: Any, step: float, instance: Json, __: Json) -> Iterator[jsonschema.ValidationError]:
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    if is_number and Fraction(str(instance)) % Fraction(str(step)):
        yield jsonschema.ValidationError(f"{instance} is not a multiple of {step}")


def pairs(schemas: list[Json] | None, *, strict: bool = False) -> Iterator[tuple[str, Pair]]:
    """Schemas, and the same with edits, each pair with its seed."""
    for number in range(PAIRS):
        chance = random.Random(f"witness/{number}")
        old = schema_edits.schema(chance) if schemas is None else copy.deepcopy(chance.choice(schemas))
        if strict:
            vocabulary_edits.tighten(chance, old)
        new = (vocabulary_edits if number % 3 else schema_edits).edited(chance, old)
        if is_usable(old) and is_usable(new):
            yield str(number), (old, new)


def compared(pair: Pair, direction: Literal["input", "output"]) -> list[Change]:
    place = Place("manifest.json", ())
    old, new = (ir.Schema(one, one.get("$schema", dialects.DRAFT_2020_12.uri), place) for one in pair)
    return SchemaComparison("tool `t`", direction, old, new, "annotate", "annotate", {}).compare()


def find_broken(pair: Pair, direction: str, seed: str) -> Json | None:
    """An instance that shows a break, alone in a list, if trying finds one."""
    old, new = pair if direction == "input" else pair[::-1]
    judges = [judge_for(one)(one) for one in (old, new)]
    tried = schema_edits.aim(old, new, seed, tries=6, most=30)
    return next(([each] for each in tried if judges[0].is_valid(each) and not judges[1].is_valid(each)), None)


def judge(pair: Pair, direction: str, found: list[Change], seed: str) -> None:
    """Check that what is shown to break does, and that nothing shows that what is compatible is not."""
    judges = [judge_for(one)(one) for one in pair]
    for text in [match[1] for change in found if (match := EXAMPLE.search(change.help or ""))]:
        ways = [each.is_valid(json.loads(text)) for each in judges]
        assert ways == [direction == "input", direction == "output"], (seed, direction, text)
    if find_worst_impact(found) in (None, "cosmetic", "compatible", "words"):
        assert find_broken(pair, direction, seed) is None, (seed, direction, pair)


def examine(made: Iterator[tuple[str, Pair]]) -> None:
    """Compare each pair in both directions, and judge what is said."""
    verdicts: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    undecided: list[str] = []
    for seed, pair in made:
        for direction in DIRECTIONS:
            found = compared(pair, direction)
            open_ = [change for change in found if change.impact == "may break" and OPEN.search(change.help or "")]
            worst = find_worst_impact(found)
            verdicts["undecided" if worst == "may break" and open_ else str(worst)] += 1
            changes.update(change.impact for change in found)
            changes["undecided"] += len(open_)
            undecided += [change.help or "" for change in open_]
            assert [
                change for change in found if change.impact == "breaking" and not EXAMPLE.search(change.help or "")
            ] == []
            try:
                judge(pair, direction, found, seed)
            except RecursionError:  # a self-reference, which `check` rejects
                verdicts["endless"] += 1
    assert verdicts["breaking"] > verdicts.total() / 10
    if PAIRS >= ENOUGH:
        assert verdicts["undecided"] <= verdicts.total() / 100, verdicts
        # A dozen edits of one schema share the steps of one search.
        assert changes["undecided"] <= changes.total() / 50, changes
    assert [text for text in undecided if not text.endswith(("prevents a proof", "took too long"))] == []


@pytest.fixture(autouse=True)
def _whole_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counterexample, "show", lambda value, limit=0: json.dumps(value, ensure_ascii=True))


def test_random_schemas() -> None:
    examine(pairs(None))


@pytest.mark.long
def test_schemas_of_public_servers(public: list[Json]) -> None:
    examine(pairs(public))


@pytest.mark.long
def test_strict_schemas_of_public_servers(public: list[Json]) -> None:
    examine(pairs(public, strict=True))
