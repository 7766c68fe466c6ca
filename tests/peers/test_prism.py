"""Prism, a third-party mock, finds no request of an imported API that violates its document."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest

import prism
import prism_calls
import prism_run
from fake_api import Asked
from prism import Judged, Prism, Refusal, Violation
from prism_calls import Call
from prism_verdicts import verdict

WHOLE = bool(os.environ.get("STUBWRIGHT_WHOLE_OPENAPI"))
DOCUMENTS = (
    "realworld.yml",
    "museum.yaml",
    "train-travel.json",
    "netlify.yml",
    "typesense.yml",
    "ably.yaml",
    "resend.yaml",
    "spotify.yml",
    "gitea.json",
    "meilisearch.json",
    "trello.json",
    "docker.yaml",
    "qdrant.json",
    "plex.yaml",
    "jellyfin.json",
    "slack.json",
    "xero.yaml",
    "openai.yaml",
)
"""Those that Prism starts with within a minute; it ends at okta.yaml, and needs minutes for stripe.json."""

SAMPLE = ("museum.yaml",)

PARAMETERS = {
    "one": {"type": "array", "items": {"type": "string"}, "nullable": True},
    "many": {"type": "array", "items": {"type": "string"}},
    "object": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
}
SMALL: Mapping[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Small", "version": "1"},
    "servers": [{"url": "https://api.example.com/v1"}],
    "paths": {
        "/things/{name}": {
            "post": {
                "operationId": "put_thing",
                "parameters": [
                    {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
                    *({"name": name, "in": "query", "schema": schema} for name, schema in PARAMETERS.items()),
                ],
                "requestBody": {
                    "required": False,
                    "content": {
                        "application/json": {"schema": {"type": "object", "properties": {"x": {"type": "string"}}}}
                    },
                },
                "responses": {
                    "200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}
                },
            },
            "put": {
                "operationId": "put_bytes",
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                "requestBody": {
                    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "byte"}}},
                },
                "responses": {"204": {"description": "ok"}},
            },
        }
    },
}


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Prism:
    """Prism, fetched once, however many processes the tests run in."""
    with (tmp_path_factory.getbasetemp().parent / "prism.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return prism.fetch()
        except prism.NotRunError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.parametrize("name", DOCUMENTS if WHOLE else SAMPLE)
def test_no_refusal_is_ours(name: str, fetched: Prism, corpus: Path, tmp_path: Path) -> None:
    document = corpus / "openapi-judged" / name
    if not document.is_file():
        pytest.skip(f"the corpus has no {name}")
    report = prism_run.run(fetched, document, tmp_path)
    print(report.row())
    assert len(report.results) >= 2 * report.tools
    found = prism_run.faults(report.results)
    assert not found, "\n".join([f"{len(found)} of {len(report.results)} are ours", *found[:20]])


@pytest.mark.long
def test_a_refusal_that_is_ours_is_told(fetched: Prism, tmp_path: Path) -> None:
    """Prism gets a document with another type for one property than the imported one, and reports only that."""
    document = tmp_path / "small.json"
    document.write_text(json.dumps(SMALL))
    manifest = prism_run.build(document, tmp_path, prism_calls.MOST)
    document.write_text(json.dumps(SMALL).replace('"x": {"type": "string"}', '"x": {"type": "integer"}'))
    report = prism_run.judged(fetched, document, tmp_path, manifest)
    assert len(report.results) == 6
    assert [(each.call.tool, each.call.kind) for each in report.results if each.verdict != "accepted"] == [
        ("put_thing", "all"),
        ("put_thing", "hostile"),
    ]
    assert all("body.x: Request body property x must be integer" in each for each in prism_run.faults(report.results))


def test_arguments_are_valid_and_hard() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"enum": ["x"]},
            "c": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "d": {"type": "string", "contentEncoding": "base64"},
        },
        "required": ["b"],
        "additionalProperties": False,
    }
    made = list(prism_calls.calls({"name": "t", "inputSchema": schema}))
    assert [call.kind for call in made] == ["required", "all", "hostile"]
    assert made[0].arguments == {"b": "x"}
    assert made[1].arguments.keys() == made[2].arguments.keys() == {"a", "b", "c", "d"}
    assert made[2].arguments["a"] in prism_calls.HOSTILE
    assert made[2].arguments["d"] == made[1].arguments["d"]
    assert all(jsonschema_rs.is_valid(schema, dict(call.arguments)) for call in made)
    assert prism_calls.hostile({}, {"k": ["v"]}, Random(1))["k"][0] in prism_calls.HOSTILE


def _judged(query: str, refusal: Refusal | None, status: int = 422) -> Judged:
    return Judged(Asked("GET", "/x", query, {}, b""), status, refusal)


@pytest.mark.parametrize(
    ("arguments", "query", "violation", "whose"),
    [
        ({"Ids": ["a"]}, "Ids=a", Violation("query.ids", "type", "… must be array,null"), "Prism's"),
        ({"Ids": ["a", "b"]}, "Ids=a", Violation("query.ids", "type", "… must be array,null"), "ours"),
        ({"Ids": ["a"]}, "Ids=a", Violation("query.ids", "type", "… must be array"), "ours"),
        ({}, "", Violation("query.o", "required", "…"), "Prism's"),
        ({"o": {"a": 1}}, "a=1", Violation("query.o", "required", "…"), "ours"),
        ({"sort": 1, "o": {"sort": "a"}}, "sort=1&sort=a", Violation("query.o.sort", "type", "…"), "the document's"),
        ({"sort": 1, "o": {"by": "a"}}, "sort=1&by=a", Violation("query.sort", "type", "…"), "ours"),
        ({"number": "a"}, "", Violation("path.id", "format", "…"), "the document's"),
        ({"id": "a"}, "", Violation("path.id", "format", "…"), "ours"),
        ({}, "", Violation("query", "required", "…"), "ours"),
        ({"x": 1}, "", Violation("body.x", "type", "…"), "ours"),
    ],
)
def test_whose_fault_a_violation_is(arguments: Mapping[str, Any], query: str, violation: Violation, whose: str) -> None:
    refusal = Refusal(422, "UNPROCESSABLE_ENTITY", "", (violation,))
    assert verdict(Call("t", "all", arguments), _judged(query, refusal), None)[0] == whose


@pytest.mark.parametrize(("kind", "whose"), [("application/json", "Prism's"), ("text/plain", "ours")])
def test_whose_fault_an_object_in_a_form_is(kind: str, whose: str) -> None:
    body = f'--b\r\nContent-Disposition: form-data; name="o"\r\nContent-Type: {kind}\r\n\r\n{{}}'.encode()
    refusal = Refusal(422, "UNPROCESSABLE_ENTITY", "", (Violation("body.o", "type", "… o must be object"),))
    assert verdict(Call("t", "all", {}), Judged(Asked("POST", "/x", "", {}, body), 422, refusal), None)[0] == whose


def test_whose_fault_other_refusals_are() -> None:
    call = Call("t", "all", {})
    of_media = Refusal(500, "VIOLATIONS", "", (Violation("response", "", "The received media type …"),))
    assert verdict(call, _judged("", of_media, 500), "…")[0] == "the document's"
    of_response = Refusal(500, "VIOLATIONS", "", (Violation("response.body", "type", "must be object"),))
    of_both = Refusal(500, "VIOLATIONS", "", (*of_response.violations, Violation("request.body", "type", "…")))
    assert verdict(call, _judged("", of_response, 500), "…")[0] == "the document's"
    assert verdict(call, _judged("", of_both, 500), "…")[0] == "ours"
    assert verdict(call, _judged("", Refusal(404, "NO_PATH_MATCHED_ERROR", "", ()), 404), "…")[0] == "ours"
    assert verdict(call, _judged("", None, 200), "Internal error")[0] == "ours"
    assert verdict(call, _judged("", None, 200), None) == ("accepted", "")
    assert verdict(call, None, "Internal error in t (reference 1)")[0] == "ours"
    assert verdict(call, None, "`x` is part of the URL and cannot be empty.")[0] == "the value's"


def test_a_problem_of_prism_is_read() -> None:
    problem = {
        "type": "https://stoplight.io/prism/errors#UNPROCESSABLE_ENTITY",
        "detail": "…",
        "validation": [{"location": ["query", "a"], "severity": "Error", "code": "type", "message": "must be integer"}],
    }
    read = prism.refusal(422, json.dumps(problem).encode())
    assert read == Refusal(422, "UNPROCESSABLE_ENTITY", "…", (Violation("query.a", "type", "must be integer"),))
    assert prism.refusal(422, b'{"type": "https://example.com/of-the-api"}') is None
    assert prism.refusal(500, b"no JSON") is None
