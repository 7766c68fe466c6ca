"""Measures how often `diff` cannot decide between two schemas, and the CPU time of its slowest verdict.

    python bench/hedges.py [PAIRS]

Applies random edits to random schemas without `not`, and to schemas of real tools if the corpus is available. Compares
each pair in both directions. A verdict is hedged if its worst finding is a possible break that is neither proved nor
disproved. Targets: at most 1 % of verdicts, and at most 1 second.
"""

from __future__ import annotations

import copy
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

from stubwright import ir
from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, find_worst_impact
from stubwright.diff.kinds.schemas import Direction, SchemaComparison
from stubwright.jsonschema import dialects

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests/support"))
import schema_edits  # noqa: E402
import vocabulary_edits  # noqa: E402

DIRECTIONS: tuple[Direction, ...] = ("input", "output")
UNDECIDED = "could not prove or disprove"
LARGEST = 20_000
REASONS = 5


def tools() -> list[Any]:
    """Return the distinct schemas of real tools, or an empty list without the corpus."""
    folder = Path(os.environ.get("STUBWRIGHT_CORPUS", ROOT.parent / "shared/corpus")) / "tools"
    found = {}
    for path in sorted(folder.glob("*.json")):
        for tool in json.loads(path.read_text("utf-8"))["tools"]:
            for schema in (tool.get("inputSchema"), tool.get("outputSchema")):
                text = json.dumps(schema, sort_keys=True)
                if isinstance(schema, dict) and dialects.find_dialect(schema) is not None and len(text) < LARGEST:
                    found[text] = schema
    return [*found.values()]


def has_not(schema: Any) -> bool:
    """Return whether the `not` keyword occurs in a schema."""
    return '"not":' in json.dumps(schema)


def pairs(schemas: list[Any] | None, count: int) -> Iterator[tuple[Any, Any]]:
    """Yield valid pairs of a schema and the same schema with one to three edits."""
    number = 0
    while count:
        number += 1
        chance = random.Random(f"hedges/{number}")
        old = schema_edits.schema(chance) if schemas is None else copy.deepcopy(chance.choice(schemas))
        new = (vocabulary_edits if number % 3 else schema_edits).edited(chance, old)
        if has_not([old, new]):
            continue
        try:
            for schema in (old, new):
                jsonschema_rs.meta.validate(schema)
                jsonschema_rs.validator_for(schema)
        except (jsonschema_rs.ValidationError, ValueError):
            continue
        count -= 1
        yield old, new


def compare(old: Any, new: Any, direction: Direction) -> list[Change]:
    """Return the changes that `diff` reports."""
    place = Place("manifest.json", ())
    before, after = (ir.Schema(each, each.get("$schema", dialects.DRAFT_2020_12.uri), place) for each in (old, new))
    return SchemaComparison("tool `t`", direction, before, after, "annotate", "annotate", {}).compare()


def measure(name: str, made: Iterator[tuple[Any, Any]]) -> None:
    """Print a row, followed by the most frequent reasons."""
    verdicts = hedged = 0
    slowest = 0.0
    reasons: Counter[str] = Counter()
    for old, new in made:
        for direction in DIRECTIONS:
            start = time.process_time()
            found = compare(old, new, direction)
            slowest = max(slowest, time.process_time() - start)
            helps = [change.help or "" for change in found if change.impact == "may break"]
            undecided = [text for text in helps if UNDECIDED in text]
            verdicts += 1
            if undecided and find_worst_impact(found) == "may break":
                hedged += 1
                reasons[undecided[0].rpartition(": ")[2]] += 1
    print(f"{name:24}{verdicts:>9}{hedged:>8}{hedged / verdicts:>8.2%}{slowest:>9.2f}s", flush=True)
    for reason, count in reasons.most_common(REASONS):
        print(f"  {count:>3} {reason}")


def main() -> None:
    """Print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print(f"{'random edits of':24}{'verdicts':>9}{'hedged':>8}{'rate':>8}{'slowest':>10}")
    measure("random schemas", pairs(None, count))
    real = tools()
    if real:
        measure("schemas of real tools", pairs(real, count))
    else:
        print("schemas of real tools: no corpus found; set STUBWRIGHT_CORPUS to its folder")


if __name__ == "__main__":
    main()
