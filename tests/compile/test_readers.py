"""Schemas as clients read them: JavaScript's patterns, and the official SDKs' clients."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import SchemaError
from jsonschema.validators import validator_for

import forked
from packages import check, manifest, tool
from stubwright.jsonschema.ecma262 import find_invalid_part

JUDGED = json.loads((Path(__file__).parent / "ecma262.json").read_text("utf-8"))
"""Patterns that `new RegExp(pattern, "u")` of Node.js 20 takes, and others that it refuses."""

PARTS = (
    *("a", "-", "_", "é", "😀", "/", ",", ":", ".", "|", "^", "$", "*", "+", "?", "{", "}", "[", "]", ")", "("),
    *("{2}", "{2,1}", "{1,2}", "{,2}", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<n>", "(?<m>", "(?<1>", "(?i:", "(?"),
    *("\\-", "\\_", "\\d", "\\w", "\\b", "\\B", "\\/", "\\.", "\\e", "\\ ", "\\@", "\\A", "\\1", "\\2", "\\8", "\\0"),
    *(
        "\\01",
        "\\k",
        "\\k<n>",
        "\\cA",
        "\\c",
        "\\c1",
        "\\x41",
        "\\x4",
        "\\u0041",
        "\\u{41}",
        "\\u{110000}",
        "\\u00",
        "\\",
    ),
    *("\\p{L}", "\\pL", "\\p{Foo}", "\\p{l}", "\\p{Script=Greek}", "\\p{sc=Latin}", "\\p{Latin}", "\\P{gc=Lu}"),
    *(
        "[\\w-a]",
        "[a-\\d]",
        "[z-a]",
        "[^a]",
        "[]",
        "[^]",
        "[\\b]",
        "[\\-a]",
        "[a-",
        "[\\B]",
        "[a--b]",
        "[+--]",
        "[\\1]",
    ),
    *("[😀-😁]", "[\\ud83d\\ude00-\\ud83d\\ude01]", "\\ud83d\\ude00"),
)


def codes(arguments: dict[str, Any], result: dict[str, Any] | None = None, **more: Any) -> list[str]:
    """Return the codes about clients for a property of the arguments and for a property of the result."""
    one = tool("t", {"a": arguments})
    if result is not None:
        one["outputSchema"] = {"type": "object", "properties": {"a": result}}
    found = check(more.pop("folder"), manifest([one], **more))
    return [each.code for each in found if each.code in ("SW288", "SW325", "SW326")]


def test_patterns_are_judged_as_node_judges_them() -> None:
    assert {pattern: part for pattern in JUDGED["read"] if (part := find_invalid_part(pattern)) is not None} == {}
    parts = {pattern: find_invalid_part(pattern) for pattern in JUDGED["refused"]}
    assert [pattern for pattern, part in parts.items() if not part or part not in pattern] == []
    assert len(JUDGED["read"]) > 200
    assert len(parts) > 300


def test_node_says_the_same_of_random_patterns() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed; the patterns of ecma262.json were judged")
    chance = random.Random(1)
    patterns = ["".join(chance.choices(PARTS, k=chance.randint(1, 6))) for _ in range(5_000)]
    done = subprocess.run([node, "-e", _JUDGE], input=json.dumps(patterns), capture_output=True, text=True, check=True)
    verdicts = json.loads(done.stdout)
    assert sum(verdicts) > 500
    wrong = [
        each for each, is_read in zip(patterns, verdicts, strict=True) if (find_invalid_part(each) is None) != is_read
    ]
    assert wrong == []


_JUDGE = """
const isRead = (pattern) => { try { new RegExp(pattern, "u"); return true } catch { return false } }
console.log(JSON.stringify(JSON.parse(require("fs").readFileSync(0)).map(isRead)))
"""


def test_a_pattern_is_an_error_in_a_result_and_a_warning_in_arguments(tmp_path: Path) -> None:
    odd, plain = ({"type": "string", "pattern": pattern} for pattern in ("^a\\-b$", "^a-b$"))
    assert codes(odd, folder=tmp_path) == ["SW325"]
    assert codes(plain, odd, folder=tmp_path) == ["SW288"]
    assert codes(plain, plain, folder=tmp_path) == []
    assert codes({"enum": ["x"], "description": "^a\\-b$"}, plain, folder=tmp_path) == []
    assert codes(odd, odd, folder=tmp_path, emit=["client"]) == []  # its author is somewhere else
    assert codes({"$ref": "#/schemas/S"}, plain, schemas={"S": odd}, folder=tmp_path) == ["SW325"]
    assert codes({"$ref": "#/schemas/S"}, {"$ref": "#/schemas/S"}, schemas={"S": odd}, folder=tmp_path) == ["SW288"]


def test_what_is_no_expression_at_all_is_told_once(tmp_path: Path) -> None:
    odd = {"type": "string", "pattern": "["}
    assert codes(odd, odd, folder=tmp_path) == []


@pytest.mark.parametrize(
    ("result", "is_read"),
    [
        ({"type": "number", "multipleOf": 0.01}, False),
        ({"type": "number", "multipleOf": 0.1}, False),
        ({"type": "number", "multipleOf": 0.25}, True),
        ({"type": "number", "multipleOf": 1.0}, True),
        ({"type": "number", "multipleOf": 10**30}, True),
        ({"type": "string", "pattern": "^\\p{L}$"}, False),
        ({"type": "string", "pattern": "^[^\\P{L}]$"}, False),
        ({"type": "string", "pattern": "^\\\\p$"}, True),
        ({"type": "object", "patternProperties": {"^\\p{L}$": True}}, False),
        ({"type": "string", "pattern": "^(?<name>x)$"}, False),
        ({"type": "string", "pattern": "(?<=a|bc)x"}, False),
        ({"type": "string", "pattern": "[^]"}, False),
        ({"type": "string", "pattern": "\\u{61}"}, False),
        ({"type": "string", "pattern": "[[a]"}, True),
        ({"type": "string", "pattern": "(?<=ab)x"}, True),
    ],
)
def test_what_official_clients_read(result: dict[str, Any], is_read: bool, tmp_path: Path) -> None:
    assert codes(result, result, folder=tmp_path) == ([] if is_read else ["SW326"])
    assert codes(result, folder=tmp_path) == []


@pytest.mark.parametrize("pattern", [r"\p{L}", "(?<name>x)", r"[\w-.]", r"\\p", "[[a]", "(?<=a|bc)x", "[a-z]{1,3}"])
def test_the_validator_of_the_python_sdk_refuses_the_same_patterns(pattern: str, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError:
        is_read = False
    else:
        is_read = True
    found = codes({"type": "string"}, schema["properties"]["a"], folder=tmp_path)  # type: ignore[index]
    assert ("SW326" not in found) is is_read


def test_a_pattern_of_an_imported_result_is_kept_with_a_warning(tmp_path: Path) -> None:
    """Whoever imports the schemas of another server cannot change them."""
    result = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^a\-b$"}}}
    (tmp_path / "list.json").write_text(json.dumps({"tools": [tool("get", outputSchema=result)]}))
    done = forked.run(["import", "tools", "list.json", "-o", "imported.yaml"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert r"pattern: ^a\-b$" in (tmp_path / "imported.yaml").read_text()
    done = forked.run(["check", "imported.yaml"], tmp_path)
    assert (done.returncode, "warning[SW325]" in done.stdout + done.stderr) == (0, True)
