"""The target of a document's tools: servers with their variables, and tokens that the server requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import stubwright
from fake_api import Answer, Asked, api
from openapi_documents import client, imported
from stubwright.importers.openapi.naming import SelectionError
from stubwright.importers.openapi.options import Options

PATHS = {"/x": {"get": {"operationId": "op", "responses": {}}}}
REGION = {"default": "eu", "enum": ["us", "eu"]}


def apis(folder: Path, server: str | None = None, **document: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The only API of a document, and the notes."""
    made = imported(folder, {"paths": PATHS, **document}, options=Options(server=server))
    (one,) = made.manifest["apis"].values()
    return one, made.notes


@pytest.mark.parametrize(
    ("url", "variables", "base", "open_"),
    [
        ("https://{region}.example.com", {"region": REGION}, "https://{region}.example.com", ["region"]),
        ("https://{h}.example.com/{v}/", {"h": {"default": "a"}, "v": {"default": "v2", "enum": ["v2"]}},
         "https://{h}.example.com/v2", ["h"]),
        ("{scheme}://example.com", {"scheme": {"default": "https", "enum": ["https", "http"]}},
         "{scheme}://example.com", ["scheme"]),
        ("{scheme}://example.com", {"scheme": {"default": "https"}}, "https://example.com", []),
        ("{base}/v1", {"base": {"default": "https://api.example.com"}}, "https://api.example.com/v1", []),
        ("https://example.com/{base}", {"base": {"default": "api/v1"}}, "https://example.com/api/v1", []),
        ("https://{region}.example.com", {"region": {"default": "eu", "enum": ["eu", "us/../x"]}},
         "https://eu.example.com", []),
        ("https://{region}.example.com", {"region": {"default": "ap", "enum": ["eu", "us"]}},
         "https://{region}.example.com", ["region"]),
        ("https://example.com:{port}", {"port": {"default": "8443"}}, "https://example.com:{port}", ["port"]),
        ("https://{region}.example.com", {}, None, []),
    ],
)  # fmt: skip
def test_variables_that_stay_in_their_place_can_be_set(
    url: str, variables: Any, base: str | None, open_: list[str], tmp_path: Path
) -> None:
    made, notes = apis(tmp_path, servers=[{"url": url, "variables": variables}])
    assert made.get("baseUrl") == base
    assert [*made.get("variables", {})] == open_
    for name, said in made.get("variables", {}).items():
        assert said["env"] == f"SAMPLE_{name.upper()}"
        assert said["default"] == variables[name]["default"]
        assert any(f"unless `{said['env']}` is set" in note for note in notes)


SERVERS = [
    {"url": "https://api.example.com", "description": "Production"},
    {"url": "https://sandbox.example.com/", "description": "Sandbox"},
    {"url": "https://{region}.example.com", "variables": {"region": REGION}},
]


@pytest.mark.parametrize(
    ("server", "base"),
    [
        (None, "https://api.example.com"),
        ("1", "https://api.example.com"),
        ("2", "https://sandbox.example.com"),
        ("Sandbox", "https://sandbox.example.com"),
        ("https://sandbox.example.com", "https://sandbox.example.com"),
        ("https://{region}.example.com", "https://{region}.example.com"),
    ],
)
def test_one_of_several_servers_is_called(server: str | None, base: str, tmp_path: Path) -> None:
    made, notes = apis(tmp_path, server, servers=SERVERS)
    assert made["baseUrl"] == base
    (note,) = [note for note in notes if "--server" in note]
    assert note.startswith(f"the server calls `{base}`; the document also has ")
    assert note.endswith("; choose one with --server, or set `SAMPLE_BASE_URL` in the environment")
    assert ("(Production)" in note) == (base != "https://api.example.com")


@pytest.mark.parametrize("server", ["0", "4", "Nowhere", "https://other.example.com"])
def test_a_server_that_the_document_does_not_have_is_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(SelectionError) as refused:
        apis(tmp_path, server, servers=SERVERS)
    assert str(refused.value).startswith(
        f"`{server}` is not one of the document's servers (1: https://api.example.com (P"
    )


def test_a_server_of_an_operation_is_its_own(tmp_path: Path) -> None:
    own = [{"url": "https://files.example.com"}, {"url": "https://sandbox.example.com/files", "description": "Sandbox"}]
    paths = {**PATHS, "/f": {"servers": own, "get": {"operationId": "files"}}}
    for server, files in (("1", own[0]), ("2", own[0]), ("Sandbox", own[1])):
        made = imported(tmp_path, {"paths": paths, "servers": SERVERS}, options=Options(server=server))
        assert [one["baseUrl"] for one in made.manifest["apis"].values()][1] == files["url"]


def test_servers_of_a_fetched_document_are_relative_to_it(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        servers = {"/a/d.json": [{"url": "../v3"}], "/b/d.json": [{"url": "/v3/"}], "/c/d.json": []}[asked.path]
        return {"openapi": "3.0.0", "info": {"title": "S", "version": "1"}, "paths": PATHS, "servers": servers}

    with api(answer) as fake:
        for path, base in (("/a/d.json", "/v3"), ("/b/d.json", "/v3"), ("/c/d.json", "")):
            done = stubwright("import", "openapi", f"{fake.url}{path}?key=1", cwd=tmp_path)
            assert f"baseUrl: {fake.url}{base}\n" in done.stdout


def oauth(**flows: Any) -> dict[str, Any]:
    scheme = {"type": "oauth2", "flows": flows}
    return {"components": {"securitySchemes": {"office": scheme}}, "security": [{"office": ["read", "a b"]}]}


TOKEN = {"tokenUrl": "https://auth.example.com/token", "scopes": {"read": "Read"}}
MINE = {
    "env": "SAMPLE_OFFICE",
    "clientIdEnv": "SAMPLE_OFFICE_CLIENT_ID",
    "clientSecretEnv": "SAMPLE_OFFICE_CLIENT_SECRET",
}


@pytest.mark.parametrize(
    ("flows", "made"),
    [
        ({"clientCredentials": TOKEN},
         {"type": "oauth2", "flow": "clientCredentials", "tokenUrl": TOKEN["tokenUrl"], **MINE, "scopes": ["read"]}),
        ({"authorizationCode": TOKEN},
         {"type": "oauth2", "flow": "authorizationCode", "tokenUrl": TOKEN["tokenUrl"], **MINE,
          "refreshTokenEnv": "SAMPLE_OFFICE_REFRESH_TOKEN", "scopes": ["read"]}),
        ({"clientCredentials": {"tokenUrl": "/oauth/token"}},
         {"type": "oauth2", "flow": "clientCredentials", "tokenUrl": "https://api.example.com/oauth/token", **MINE,
          "scopes": ["read"]}),
        ({"clientCredentials": {"tokenUrl": "http://auth.example.com/token"}},
         {"type": "bearer", "env": "SAMPLE_OFFICE"}),
        ({"implicit": {"authorizationUrl": "https://a.example"}, "password": TOKEN},
         {"type": "bearer", "env": "SAMPLE_OFFICE"}),
        ({"clientCredentials": {"tokenUrl": 1}}, {"type": "bearer", "env": "SAMPLE_OFFICE"}),
    ],
)  # fmt: skip
def test_a_flow_that_needs_no_person_gives_tokens(flows: Any, made: Any, tmp_path: Path) -> None:
    one, notes = apis(tmp_path, servers=SERVERS[:1], **oauth(**flows))
    assert one["auth"] == {"office": made}
    assert one["security"] == [["office"]]
    assert any("SAMPLE_OFFICE`" in note for note in notes)


def test_the_scopes_are_those_that_the_operations_ask_for(tmp_path: Path) -> None:
    paths = {
        "/a": {"get": {"operationId": "a", "security": [{"office": ["write", "read"]}]}},
        "/b": {"get": {"operationId": "b", "security": [{"office": ["admin"]}]}},
        "/c": {"get": {"operationId": "c", "security": []}},
    }
    document = {"servers": SERVERS[:1], **oauth(clientCredentials=TOKEN), "paths": paths}
    one = imported(tmp_path, document).manifest["apis"]["sample"]
    assert one["auth"]["office"]["scopes"] == ["write", "read", "admin"]


def test_a_document_with_tokens_from_import_to_call(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.path == "/token":
            return {"access_token": "got", "token_type": "Bearer", "expires_in": 60}
        return {"by": asked.headers.get("authorization", "nobody"), "path": asked.path}

    with api(answer) as fake:
        described = {
            "url": f"{fake.url}/{{version}}",
            "variables": {"version": {"default": "v1", "enum": ["v1", "v2"]}},
        }
        responses = {"200": {"description": "x", "content": {"application/json": {"schema": {"type": "object"}}}}}
        document = {
            "openapi": "3.1.0",
            "info": {"title": "Sample", "version": "1"},
            "servers": [described],
            "paths": {"/x": {"get": {"operationId": "op", "responses": responses}}},
            **oauth(clientCredentials={"tokenUrl": f"{fake.url}/token"}),
        }
        (tmp_path / "d.json").write_text(json.dumps(document))
        done = stubwright("import", "openapi", "d.json", "-o", "manifest.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert stubwright("generate", "manifest.yaml", cwd=tmp_path).returncode == 0
        environment = {"SAMPLE_OFFICE_CLIENT_ID": "me", "SAMPLE_OFFICE_CLIENT_SECRET": "kept", "SAMPLE_VERSION": "v2"}
        with client(tmp_path, "sample_mcp", "Sample", **environment) as call:
            assert call("op").model_dump() == {"by": "Bearer got", "path": "/v2/x"}
