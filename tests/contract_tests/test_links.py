"""Arguments of calls from earlier results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from stubwright.contract_tests.answers import Result
from stubwright.contract_tests.cases import Arguments, Case
from stubwright.contract_tests.links import Linker, Links, order

TEXT = {"type": "string"}


def result(value: Any, *, is_text: bool = False) -> Result:
    text = {"content": [{"type": "text", "text": json.dumps(value)}]}
    return Result(text if is_text else {**text, "structuredContent": value}, 0.0, 0)


def tool(name: str, properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}, **more}


def cases_of(listed: Mapping[str, Any], links: Links, seed: str = "0") -> list[tuple[Case, Case | None]]:
    arguments = Arguments(listed["inputSchema"])
    linker = Linker(links, listed, arguments, seed)
    return [(case, linker.link(case)) for case in arguments.make_cases([], seed, 60)]


@pytest.mark.parametrize("is_text", [False, True])
@pytest.mark.parametrize(
    ("lister", "value", "argument", "expected"),
    [
        ("list_plots", {"items": [{"id": "p1"}, {"id": "p2"}]}, "plot", {"p1", "p2"}),
        ("list_plots", {"items": [{"id": 4}]}, "plotId", {4}),
        ("overview", {"plots": [{"id": "p1"}]}, "plot_id", {"p1"}),
        ("overview", {"rows": [{"plot": "p1"}]}, "plot_id", {"p1"}),
        ("overview", {"plot_ids": ["p1"]}, "plot", {"p1"}),
        ("list_plots", [{"id": "p1"}], "id", {"p1"}),
        ("overview", {"beds": [{"id": "b1"}]}, "plot", set()),
    ],
)
def test_an_argument_has_values_of_results_with_its_name(
    lister: str, value: Any, argument: str, expected: set[Any], is_text: bool
) -> None:
    links = Links()
    links.learn(lister, result(value, is_text=is_text))
    assert {*links.find("water_plot", argument, {})} == expected


def test_half_of_the_valid_calls_have_ids_of_results() -> None:
    links = Links()
    links.learn("list_plots", result({"items": [{"id": f"plot-{number}"} for number in range(9)]}))
    made = cases_of(tool("water", {"plot": TEXT, "litres": {"type": "integer"}}), links)
    sent = [case.arguments.get("plot") for _, case in made if case is not None and case.is_valid]
    linked = [value for value in sent if isinstance(value, str) and value.startswith("plot-")]
    assert len(linked) > 8
    assert len(sent) / 3 < len(linked) <= len(sent) / 2 + 1
    assert made == cases_of(tool("water", {"plot": TEXT, "litres": {"type": "integer"}}), links)
    assert all(case is None or case.is_valid is planned.is_valid for planned, case in made)


def test_a_pattern_is_enough_to_find_values() -> None:
    links = Links()
    links.learn("overview", result({"name": "no", "number": 7, "handle": "plot-1"}))
    made = cases_of(tool("water", {"where": {"type": "string", "pattern": "^plot-[0-9]$"}}), links)
    assert "plot-1" in [case.arguments.get("where") for _, case in made if case is not None and case.is_valid]


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("cursor", {"next": "c:1"}),
        ("page_token", {"nextPageToken": "c:1"}),
        ("after", {"pageInfo": {"endCursor": "c:1"}}),
    ],
)
def test_one_call_at_most_invents_a_cursor(name: str, page: Any) -> None:
    output = {"type": "object", "properties": {key: {} for key in page}}
    if "pageInfo" in page:
        output["properties"] = {"pageInfo": {"properties": {"endCursor": {}}}}
    listed = tool("list_plots", {name: TEXT, "limit": {"type": "integer"}}, outputSchema=output)
    links = Links()
    first = [case.arguments for _, case in cases_of(listed, links) if case is not None]
    assert len([each for each in first if isinstance(each.get(name), str)]) == 1
    links.learn("list_plots", result(page))
    then = [case.arguments for _, case in cases_of(listed, links) if case is not None]
    cursors = [each[name] for each in then if isinstance(each.get(name), str)]
    assert len(cursors) > 10
    assert len([cursor for cursor in cursors if cursor != "c:1"]) == 1


def test_after_is_no_cursor_without_pages() -> None:
    made = cases_of(tool("search", {"after": TEXT}), Links())
    assert all(case is planned for planned, case in made)


def test_tools_that_read_come_first_and_tools_that_delete_last() -> None:
    reads, deletes = {"readOnlyHint": True}, {"destructiveHint": True}
    needs = tool("get", {"id": TEXT}, annotations=reads)
    needs["inputSchema"]["required"] = ["id"]
    tools = [
        tool("delete", {}, annotations=deletes),
        tool("sow", {}),
        needs,
        tool("list", {}, annotations=reads),
    ]
    assert [each["name"] for each in sorted(tools, key=order)] == ["list", "get", "sow", "delete"]
