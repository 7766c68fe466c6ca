"""OpenAPI documents of real APIs, from the file to a server that calls a fake of the API."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

import amounts
from amounts import choose
from corpus import VARIABLE
from fake_api import Answer, Asked, api
from openapi_documents import build, client
from packages import imported as package_of
from server_fixture import exchange

pytestmark = pytest.mark.corpus

OPENAPI = "openapi"
LARGE = ("discord.json", "box.json")


@pytest.fixture(scope="session")
def documents(corpus: Path) -> Path:
    folder = corpus / OPENAPI
    if not folder.is_dir():
        pytest.skip("the corpus has no OpenAPI documents; set STUBWRIGHT_CORPUS to a folder that has")
    return folder


@pytest.mark.long
def test_the_petstore(documents: Path, tmp_path: Path) -> None:
    pets: dict[str, Any] = {}

    def answer(asked: Asked) -> Answer:
        assert asked.path.startswith("/api/v3/")
        step = asked.path.removeprefix("/api/v3").split("/")[1:]
        match asked.method, *step:
            case "POST" | "PUT", "pet":
                pets[str(asked.json["id"])] = asked.json
                return asked.json  # type: ignore[no-any-return]
            case "GET", "pet", "findByStatus":
                wanted = asked.query.removeprefix("status=")
                return [pet for pet in pets.values() if pet["status"] == wanted]
            case "GET", "pet", number if number in pets:
                assert asked.headers["api_key"] == "kept"
                return pets[number]  # type: ignore[no-any-return]
            case "DELETE", "pet", number:
                pets.pop(number, None)
                return 200, "deleted"
            case "POST", "pet", number, "uploadImage":
                return {"code": 200, "type": asked.headers["content-type"], "message": f"{number} {asked.body!r}"}
            case "GET", "store", "inventory":
                return {"available": len(pets)}
            case "GET", "user", "login":
                return "logged in" if asked.query == "username=a%20b&password=c%26d" else (400, "no")
        return 404, {"code": 404, "message": "not found"}

    package = build(documents / "petstore-swagger-1.0.27.json", tmp_path, "--name", "petstore")
    assert package == "petstore_mcp"
    with (
        api(answer) as fake,
        client(tmp_path, package, "Petstore", PETSTORE_BASE_URL=f"{fake.url}/api/v3", PETSTORE_API_KEY="kept") as call,
    ):
        added = call("add_pet", id=7, name="Rex", photoUrls=[], status="sold", category={"id": 1, "name": "Dogs"})
        assert (added.id, added.category.name) == (7, "Dogs")
        assert call("get_pet_by_id", petId=7).name == "Rex"
        assert [pet.id for pet in call("find_pets_by_status", status="sold").root] == [7]
        assert call("get_inventory").model_dump() == {"available": 1}
        image = base64.b64encode(b"\x89PNG").decode()
        sent = call("upload_file", petId=7, body=image)
        assert (sent.type, sent.message) == ("application/octet-stream", r"7 b'\x89PNG'")
        call("delete_pet", petId=7)
        with pytest.raises(call.module.ToolFailed, match=r"404 Not Found for GET /pet/\{petId\}") as failed:
            call("get_pet_by_id", petId=7)
        assert "kept" not in str(failed.value)
        with pytest.raises(call.module.ToolFailed, match="cannot contain the path segment"):
            call("get_user_by_name", username="../store/inventory")
    assert {asked.path for asked in fake.asked} <= {
        f"/api/v3/{rest}" for rest in ("pet", "pet/7", "pet/findByStatus", "store/inventory", "pet/7/uploadImage")
    }


@pytest.mark.long
def test_notion(documents: Path, tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.headers.get("authorization") != "Bearer ntn_kept":
            return 401, {"object": "error", "status": 401, "code": "unauthorized", "message": "API token is invalid."}
        match asked.method, asked.path:
            case "GET", "/v1/users":
                return {"object": "list", "results": [{"object": "user", "id": asked.query}]}
            case "POST", "/v1/search":
                return {"object": "list", "results": [], "asked": asked.json}
            case "PATCH", path if path.startswith("/v1/pages/"):
                return {"object": "page", "id": path.rpartition("/")[2], "archived": asked.json.get("archived")}
        return 404, {"object": "error", "status": 404, "code": "object_not_found", "message": "Could not find it"}

    package = build(
        documents / "notion.json",
        tmp_path,
        "--name",
        "notion",
        "--include",
        "/v1/*",
        "--rename",
        "get-users=list_users",
    )
    with api(answer) as fake:
        base = {"NOTION_BASE_URL": fake.url}
        with client(tmp_path, package, "Notion", **base, NOTION_BEARER_AUTH="ntn_kept") as call:
            found = call("list_users", page_size=2, start_cursor="a b").model_dump(mode="json")
            assert found["results"] == [{"object": "user", "id": "start_cursor=a%20b&page_size=2"}]
            searched = call("post_search", query="x", filter={"value": "page", "property": "object"})
            assert searched.model_dump(mode="json")["asked"] == {
                "query": "x",
                "filter": {"value": "page", "property": "object"},
            }
            page = call("patch_page", page_id="1f0", archived=True).model_dump(mode="json")
            assert (page["id"], page["archived"]) == ("1f0", True)
        with (
            client(tmp_path, package, "Notion", **base) as call,
            pytest.raises(call.module.ToolFailed, match=r"lacks NOTION_BEARER_AUTH.*API token is invalid"),
        ):
            call("list_users")


def _documents() -> list[str]:
    folder = Path(os.environ.get("STUBWRIGHT_CORPUS", Path(__file__).parents[3] / "shared" / "corpus")) / OPENAPI
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.json"))
    left_out = LARGE[: choose(VARIABLE, 2, 1, 0)]
    return [name for name in found if name not in left_out] or ["(absent)"]


@pytest.mark.parametrize("name", amounts.sample(_documents(), 1))
def test_every_document_imports_checks_generates_and_lists(name: str, documents: Path, tmp_path: Path) -> None:
    package = build(documents / name, tmp_path)
    with package_of(tmp_path / "generated", package) as module:
        old, new = [
            asyncio.run(exchange(module.build_server(), revision, ("tools/list", {})))[0].get("tools", [])
            for revision in ("2025-06-18", "2026-07-28")
        ]
        for tool in module.TOOLS.values():
            assert tool.Input.__name__ == tool.input_name
            assert (tool.Output is None) == ("outputSchema" not in tool.definition)
    document = json.loads((documents / name).read_text())
    methods = ("get", "put", "post", "delete", "patch", "head", "options")
    operations = sum(key in methods for item in document.get("paths", {}).values() for key in item)
    assert len(old) == len(new) == operations
    assert '"#/schemas/' not in json.dumps(new)
