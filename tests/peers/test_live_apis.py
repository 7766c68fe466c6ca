"""Running APIs (FastAPI, Litestar, and a fake that parses requests like Spring) report the requests that they receive.

FastAPI and Litestar are not dependencies of the tests; a case without its framework is skipped.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email import message_from_bytes
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import uvicorn
import yaml
from starlette.responses import Response

import prism_run
from command_line import stubwright
from fake_api import Answer, Asked, api
from packages import imported

HERE = Path(__file__).with_name("live")
FIRST = 2**60 + 1
BASE64 = "AP8x"
Call = tuple[str, Mapping[str, Any], Any]


def file(name: str) -> list[str]:
    """What the frameworks read of a file."""
    return [name, "application/octet-stream", "00ff31"]


CAT = {"kind": "cat", "lives": 9}
PUPPY = {"kind": "puppy", "bark": "w"}
FASTAPI: list[Call] = [
    ("one", {"file": BASE64}, file("file")),
    ("maybe", {"file": BASE64}, [file("file"), None]),
    ("maybe", {}, [None, None]),
    ("maybe", {"file": None, "note": "é"}, [None, "é"]),
    ("bytes", {"file": BASE64}, ["00ff31", None]),
    ("bytes", {"file": BASE64, "others": [BASE64, "AA=="]}, ["00ff31", ["00ff31", "00"]]),
    ("many", {"files": [BASE64, BASE64], "tags": ["a", "b"]}, [[file("files"), file("files")], ["a", "b"]]),
    ("many", {}, [[], []]),
    ("json", {"meta": '{"title": "t"}', "file": BASE64}, [{"title": "t", "stars": 0}, file("file")]),
    ("entry", {"title": "t", "stars": 1}, ["t", 1, None]),
    ("entry", {"title": "t", "file": BASE64}, ["t", 3, file("file")]),
    ("pets", {"body": CAT}, CAT),
    ("pets", {"body": PUPPY}, PUPPY),
    ("embedded", {"pet": CAT, "n": 2}, [CAT, CAT]),
    ("owners", {"name": "a", "pet": PUPPY, "others": [CAT]}, {"name": "a", "pet": PUPPY, "others": [CAT]}),
    ("owners", {"name": "a", "pet": None}, {"name": "a", "pet": None, "others": []}),
    ("who", {"session": "a.b", "seen": 3, "q": [1, 2]}, ["a.b", 3, [1, 2]]),
    ("who", {"session": "a.b", "seen": None}, ["a.b", None, None]),
]

LION = {"type": "cat", "lives": 9}
LITESTAR: list[Call] = [
    ("one", {"file": BASE64}, file("file")),
    ("many", {"files": [BASE64, BASE64]}, [file("files"), file("files")]),
    ("entry", {"title": "t", "file": BASE64, "other": None}, ["t", 3, file("file"), None]),
    ("entry", {"title": "t", "file": BASE64, "other": BASE64, "stars": 1}, ["t", 1, file("file"), file("other")]),
    ("album", {"files": [BASE64], "tags": ["a", "b"]}, [[file("files")], ["a", "b"]]),
    ("form", {"title": "é &", "stars": 2}, ["é &", 2]),
    ("pets", {"body": LION}, LION),
    ("owners", {"name": "a", "pet": LION}, {"name": "a", "pet": LION}),
    ("owners", {"name": "a", "pet": None}, {"name": "a", "pet": None}),
    ("who", {"session": "a.b", "seen": 3, "q": [1, 2]}, ["a.b", 3, [1, 2]]),
]

META = {"title": "é", "id": FIRST}
BIRD = {"type": "Dog", "name": "n", "bark": "w"}
SPRING: list[Call] = [
    ("upload", {"folder": "a", "file": BASE64}, [["a"], file("file")]),
    ("uploadMany", {"files": [BASE64, BASE64]}, [[], file("files"), file("files")]),
    ("create", {"meta": META, "file": BASE64}, META),
    ("create_1", {"meta": META}, META),
    ("addPet", {"body": BIRD}, BIRD),
    ("listOrders", {"pageable": {"page": 1, "size": 2, "sort": ["id,desc", "total"]}}, ["id,desc", "total"]),
    ("session", {"JSESSIONID": "a.b", "params": {"a": "1"}}, "JSESSIONID=a.b"),
]


def answer_like_spring(asked: Asked) -> Answer:
    """Answer as Spring's MVC does: a part for an object has to be JSON, and properties of `Pageable` are parameters."""
    query = parse_qs(asked.query)
    if "multipart" in asked.headers.get("content-type", ""):
        head = f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode()
        parts = [part for part in message_from_bytes(head + asked.body).walk() if not part.is_multipart()]
        by_name = {part.get_param("name", header="content-disposition"): part for part in parts}
        if asked.path.startswith("/documents"):
            meta = by_name["meta"]
            if meta.get_content_type() != "application/json":
                return Response(status_code=415)
            return dict(json.loads(bytes(meta.get_payload(decode=True))))
        read = [
            [part.get_filename(), part.get_content_type(), bytes(part.get_payload(decode=True)).hex()] for part in parts
        ]
        return [query.get("folder", []), *read]
    if asked.method == "POST":
        return dict(asked.json)
    if asked.path == "/session":
        return asked.headers["cookie"]
    if asked.path == "/scroll":
        start = int(query.get("cursor", [str(FIRST)])[0])
        following = start + 2 if start + 2 < FIRST + 6 else None
        return {"items": [{"id": start}, {"id": start + 1}], "nextCursor": following}
    number, size = (int(query.get(name, [usual])[0]) for name, usual in (("page", "0"), ("size", "2")))
    start = FIRST + number * size
    content = [{"id": each} for each in range(start, min(start + size, FIRST + 6))]
    pages = -(-6 // size)
    page = {"content": content, "number": number, "size": size, "totalElements": 6, "totalPages": pages}
    return {**page, "last": number + 1 >= pages, "sort": {"sorted": query.get("sort", [])}}


@contextmanager
def spring(folder: Path) -> Iterator[tuple[str, Any]]:
    """The URL of the stand-in, and its document."""
    with api(answer_like_spring) as fake:
        yield fake.url, json.loads((HERE / "spring_shop.json").read_text())


def running(framework: str) -> Callable[[Path], Any]:
    """The API of a framework."""

    @contextmanager
    def run(folder: Path) -> Iterator[tuple[str, Any]]:
        if find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed")
        (folder / "shop_api.py").write_text((HERE / f"{framework}_shop.txt").read_text())
        with imported(folder, "shop_api") as module, socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(uvicorn.Config(module.app, log_level="critical", timeout_graceful_shutdown=1))
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}", module.document()
            finally:
                server.should_exit = True
                thread.join()

    return run


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")  # Litestar's, for what its users still write
@pytest.mark.parametrize(
    ("run", "calls"),
    [(running("fastapi"), FASTAPI), (running("litestar"), LITESTAR), (spring, SPRING)],
    ids=["fastapi", "litestar", "spring"],
)
def test_running_apis_read_what_was_meant(run: Callable[[Path], Any], calls: list[Call], tmp_path: Path) -> None:
    with run(tmp_path) as (url, document):
        (tmp_path / "shop.json").write_text(json.dumps(document))
        made = stubwright(
            "import", "openapi", "shop.json", "--name", "shop", "--pages", "-o", "manifest.yaml", cwd=tmp_path
        )
        assert made.returncode == 0, made.stderr
        made = stubwright("generate", "-q", "manifest.yaml", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        manifest = yaml.safe_load((tmp_path / "manifest.yaml").read_text())
        with prism_run.credentials(manifest, url), imported(tmp_path / "generated", "shop_mcp") as package:
            answers, pages = asyncio.run(_call(package, calls))
    assert answers == [expected for _, _, expected in calls]
    assert pages
    assert all(ids == [*range(FIRST, FIRST + 6)] for ids in pages)


async def _call(package: Any, calls: list[Call]) -> tuple[list[Any], list[list[int]]]:
    """Return what the calls answer, and the ids on the pages of each tool that has pages."""
    async with package.ShopClient.connect(package.build_server()) as client:
        answers: list[Any] = []
        for name, arguments, _ in calls:
            result = await client.raw.call_tool(name, arguments)
            assert not result.is_error, (name, result.content)
            answers.append(_read(result))
        paged = [getattr(client, name) for name in ("items", "scroll", "list_pets") if hasattr(client, name)]
        return answers, [[item.id async for item in tool.pages()] for tool in paged]


def _read(result: Any) -> Any:
    """Return the JSON of a result; of a page of Spring's, how it was sorted."""
    value = result.structured_content
    if value is None:
        text = result.content[0].text
        value = json.loads(text) if text[:1] in "[{" else text
    return value["sort"]["sorted"] if isinstance(value, dict) and "sort" in value else value
