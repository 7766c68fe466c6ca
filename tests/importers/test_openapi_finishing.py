"""Overrides of an imported API in the including manifest: callers, common parameters, and hidden parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from command_line import forking, stubwright
from fake_api import Asked, api
from http_tools import called, run_package
from openapi_documents import imported
from stubwright.importers.openapi.options import Auth, Options

PATHS: dict[str, Any] = {
    "/accounts/{AccountSid}/calls": {"get": {
        "operationId": "list_calls",
        "parameters": [
            {"name": "AccountSid", "in": "path", "required": True, "schema": {"type": "string", "pattern": "^AC"}},
            {"name": "Acme-Version", "in": "header", "schema": {"type": "string", "enum": ["1", "2"]}},
            {"name": "q", "in": "query", "schema": {"type": "string"}},
        ],
        "responses": {"200": {"description": "x", "content": {"application/json": {"schema": {"type": "object"}}}}},
    }},
    "/health": {"get": {"operationId": "health", "responses": {}}},
}  # fmt: skip


def echo(asked: Asked) -> Any:
    wanted = ("acme-version", "x-tenant", "authorization", "accept")
    return {"path": asked.path, "query": asked.query, **{name: asked.headers.get(name) for name in wanted}}


def sent(result: Any) -> dict[str, Any]:
    assert not result.is_error, result
    given: dict[str, Any] = json.loads(result.content[0].text)
    return given


def test_what_all_calls_send_is_not_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SID", "AC1")
    monkeypatch.setenv("TENANT", "t 1")
    tools = [
        called(
            "list",
            {"sid": {"type": "string"}, "version": {"type": "integer"}, "q": {"type": "string"}},
            {"url": "/{sid}/calls", "query": {"q": "{q}"}, "headers": {"acme-version": "{version}"}},
        ),
        called("other", {"version": {"type": "string"}}, {"url": "/other/{version}", "accept": "text/csv"}),
    ]
    said: dict[str, Any] = {
        "headers": {"Acme-Version": "7", "X-Tenant": {"env": "TENANT"}, "Accept": "application/vnd.acme+json"},
        "query": {"lang": "e&n", "site": {"env": "SITE", "default": "{main}"}},
        "bind": {"sid": {"env": "SID"}},
    }
    with run_package(tmp_path, tools, echo, **said) as there:
        listed = there.schemas()
        assert list(listed["list"]["properties"]) == ["q"]
        assert list(listed["other"]["properties"]) == ["version"]  # it fills the path, which no API says for all calls
        first, other = sent(there.call("list", q="a")), sent(there.call("other", version="v"))
        assert first == {
            "path": "/v1/AC1/calls",
            "query": "q=a&lang=e%26n&site=%7Bmain%7D",
            "acme-version": "7",
            "x-tenant": "t 1",
            "authorization": None,
            "accept": "application/vnd.acme+json",
        }
        assert (other["acme-version"], other["accept"]) == ("7", "text/csv")
        monkeypatch.delenv("TENANT")
        assert there.refused("other", version="v") == (
            "The server has no value for X-Tenant: its environment does not set TENANT."
        )
        monkeypatch.setenv("TENANT", "a\r\nX-Evil: 1")
        assert "cannot contain line breaks" in there.refused("other", version="v")
        monkeypatch.delenv("SID")
        assert there.refused("list") == "list needs the environment variable SID of the server."
        assert "sid: is set by the server; omit it" in there.refused("list", sid="AC2")


@pytest.mark.parametrize(("given", "seen"), [("5", 5), ('{"a": 1}', {"a": 1}), ("word", "word")])
def test_a_variable_is_read_as_what_its_argument_is(
    given: str, seen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VALUE", given)
    kind = {int: "integer", dict: "object", str: "string"}[type(seen)]
    tools = [called("send", {"x": {"type": kind}}, {"method": "POST", "url": "/"})]
    tools[0]["stubwright"]["bind"] = {"x": {"env": "VALUE"}}
    with run_package(tmp_path, tools, lambda asked: {"x": asked.json["x"]}) as there:
        assert sent(there.call("send")) == {"x": seen}
        monkeypatch.setenv("VALUE", "word")
        if kind != "string":
            assert there.refused("send") == (
                "send cannot use the environment variable VALUE of the server: it does not match the schema."
            )


@pytest.mark.long
def test_an_imported_api_is_finished_in_an_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"openapi": "3.1.0", "info": {"title": "Acme", "version": "1"}, "paths": PATHS}
    (tmp_path / "api.json").write_text(json.dumps(document))
    with api(echo) as fake:
        command = ("import", "openapi", "api.json", "--name", "acme", "--fragment", "-o", "parts/acme.yaml")
        done = stubwright(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "note: the document declares no security, so calls to `acme` have no credentials" in done.stderr
        before = (tmp_path / "parts/acme.yaml").read_text()
        (tmp_path / "acme.yaml").write_text(f"""
stubwright: 1
server: {{name: acme, version: 1.0.0}}
include: [parts/acme.yaml]
overlay:
  apis:
    acme:
      baseUrl: {fake.url}
      auth: {{token: {{type: bearer, env: ACME_TOKEN}}}}
      security: [[token]]
      output: null
      headers: {{Acme-Version: "2", X-Tenant: {{env: TENANT, default: main}}}}
      bind: {{AccountSid: {{env: ACME_SID}}}}
  tools:
    list_calls: {{http: {{security: [[token]]}}}}
""")
        made = stubwright("generate", "acme.yaml", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        package = json.loads((tmp_path / "generated/acme_mcp/manifest.json").read_text())
        assert "output" not in package["apis"]["acme"]
        tool, _ = package["tools"]
        assert tool["inputSchema"]["properties"] == {"q": {"type": "string"}}
        monkeypatch.setenv("ACME_TOKEN", "hidden")
        monkeypatch.setenv("ACME_SID", "AC1")
        called = forking("call", "acme.yaml", "list_calls", "q=a", "--json", cwd=tmp_path)
        assert called.returncode == 0, called.stderr
        seen = json.loads(called.stdout)["structuredContent"]
        assert (seen["path"], seen["acme-version"], seen["x-tenant"]) == ("/accounts/AC1/calls", "2", "main")
        assert seen["authorization"] == "Bearer [redacted]"
        again = stubwright(*command, cwd=tmp_path)
        assert again.returncode == 0
        assert (tmp_path / "parts/acme.yaml").read_text() == before


@pytest.mark.parametrize(
    ("how", "auth"),
    [
        ("bearer", {"token": {"type": "bearer", "env": "SAMPLE_TOKEN"}}),
        ("basic", {"user": {"type": "basic", "usernameEnv": "SAMPLE_USERNAME", "passwordEnv": "SAMPLE_PASSWORD"}}),
        ("apiKey=X-Key", {"key": {"type": "apiKey", "in": "header", "name": "X-Key", "env": "SAMPLE_KEY"}}),
        ("apiKey=query:k:y", {"key": {"type": "apiKey", "in": "query", "name": "k:y", "env": "SAMPLE_KEY"}}),
        (
            "clientCredentials=https://auth.example.com/token",
            {"client": {
                "type": "oauth2",
                "flow": "clientCredentials",
                "tokenUrl": "https://auth.example.com/token",
                "clientIdEnv": "SAMPLE_CLIENT_ID",
                "clientSecretEnv": "SAMPLE_CLIENT_SECRET",
                "env": "SAMPLE_TOKEN",
            }},
        ),
    ],
)  # fmt: skip
def test_how_to_authenticate_can_be_said_at_the_import(how: str, auth: dict[str, Any], tmp_path: Path) -> None:
    paths = {"/x": {"get": {"operationId": "x"}, "put": {"operationId": "y", "security": [{"own": []}]}}}
    document = {"servers": [{"url": "https://h.example"}], "paths": paths}
    made = imported(tmp_path, document, None, Options(auth=Auth.parse(how)))
    (scheme,) = auth
    assert made.manifest["apis"]["sample"]["auth"] == auth
    assert made.manifest["apis"]["sample"]["security"] == [[scheme]]
    assert all("security" not in tool["stubwright"]["http"] for tool in made.manifest["tools"])
    assert not any("declares no security" in note for note in made.notes)


def test_a_key_that_is_said_is_no_argument(tmp_path: Path) -> None:
    key = {"name": "x-key", "in": "header", "schema": {"type": "string"}}
    document = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"get": {"parameters": [key]}}}}
    made = imported(tmp_path, document, None, Options(auth=Auth.parse("apiKey=X-Key")))
    assert made.manifest["tools"][0]["inputSchema"].get("properties", {}) == {}


@pytest.mark.parametrize(
    "how",
    [
        "",
        "token",
        "bearer=x",
        "apiKey",
        "apiKey=",
        "apiKey=Host",
        "apiKey=body:x",
        "clientCredentials=http://a.example",
    ],
)
def test_what_is_no_way_to_authenticate_is_refused(how: str, tmp_path: Path) -> None:
    done = stubwright("import", "openapi", "x.yaml", "--auth", how, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"stubwright: --auth `{how}` is invalid; use bearer, basic, apiKey=HEADER")


@pytest.mark.parametrize(("security", "is_told"), [(None, True), ([], False), ([{}], False)])
def test_a_document_without_security_is_a_note(security: Any, is_told: bool, tmp_path: Path) -> None:
    document: dict[str, Any] = {"servers": [{"url": "https://h.example"}], "paths": {"/x": {"get": {}}}}
    made = imported(tmp_path, {**document, "security": security})
    assert any("the document declares no security" in note for note in made.notes) == is_told


def test_schemes_that_cannot_be_read_are_not_named(tmp_path: Path) -> None:
    document: dict[str, Any] = {"paths": {"/x": {"get": {}}}, "security": None, "components": {"$ref": "#/nowhere"}}
    made = imported(tmp_path, {"servers": [{"url": "https://h.example"}], **document})
    assert any(note.startswith("the document declares no security, so calls to") for note in made.notes)


def test_the_note_says_what_to_write(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "servers": [{"url": "https://h.example"}],
        "paths": {"/x": {"get": {}}},
        "security": None,
        "components": {"securitySchemes": {"own": {"type": "http", "scheme": "basic"}}},
    }
    (note,) = imported(tmp_path, document).notes
    assert note.startswith("the document requires none of its security schemes (`own`), so calls to `sample` have no")
    *_, option, _, _, _, overlay, _ = note.split("`")
    chosen = imported(tmp_path, document, None, Options(auth=Auth.parse("bearer"))).manifest["apis"]["sample"]
    assert option == "--auth bearer"
    written = yaml.safe_load(overlay)["overlay"]["apis"]["sample"]
    assert written == {"auth": chosen["auth"], "security": chosen["security"]}
