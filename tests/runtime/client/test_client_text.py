"""Results of tools without an output schema: blocks, their text, and the JSON in it."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from packages import generate, imported, manifest, tool
from stubwright_runtime import InvalidResult, ToolContent, image, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import ModuleType

pytestmark = pytest.mark.anyio

ANSWERS: dict[str, Any] = {
    "text": "Milk",
    "texts": [text("one"), image(b"\x89PNG", "image/png"), text(""), text("two")],
    "json": '{"degrees": [21.5, null]}',
    "json in two": [text("["), text("1]")],
    "nothing": [],
    "picture": image(b"\x89PNG", "image/png"),
    "nan": "[NaN]",
    "deep": "[" * 200_000,
}


class Handlers:
    """Return the requested content."""

    def say(self, args: Any, ctx: object) -> Any:
        return ANSWERS[args.what]

    def ship(self, args: Any, ctx: object) -> Any:
        return ANSWERS[args.what]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("texts")
    what = {"what": {"type": "string"}}
    tools = [tool("say", what), tool("ship", what, execution={"taskSupport": "optional"})]
    with imported(folder, generate(folder, manifest(tools, name="texts"))) as module:
        yield module


@pytest.fixture(params=["legacy", "auto"])
async def client(request: pytest.FixtureRequest, package: ModuleType) -> AsyncIterator[Any]:
    import mcp

    async with package.TextsClient.connect(
        mcp.Client(package.build_server(Handlers()), mode=request.param)
    ) as connected:
        yield connected


@pytest.mark.parametrize(
    ("what", "expected"),
    [("text", "Milk"), ("texts", "one\n\ntwo"), ("json in two", "[\n1]")],
)
async def test_the_text_of_all_blocks(client: Any, what: str, expected: str) -> None:
    assert (await client.say(what=what)).text == expected


async def test_it_is_the_list_that_it_was(client: Any) -> None:
    content = await client.say(what="texts")
    assert list in type(content).mro()
    assert [block.type for block in content] == ["text", "image", "text", "text"]
    assert content == [*content] == content.result.content
    assert copy.copy(content).text == pickle.loads(pickle.dumps(content)).text == content.text


@pytest.mark.parametrize(("what", "value"), [("json", {"degrees": [21.5, None]}), ("json in two", [1])])
async def test_the_value_of_json(client: Any, what: str, value: Any) -> None:
    assert (await client.say(what=what)).json() == value


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nothing", "the result of 'say' has no text:\n  content: no blocks"),
        ("picture", "the result of 'say' has no text:\n  content: image"),
        ("text", "the result of 'say' is not JSON:\n  text: Expecting value: line 1 column 1 (char 0)"),
        ("nan", "the result of 'say' is not JSON:\n  text: NaN is not JSON"),
        ("deep", "the result of 'say' is not JSON:\n  text: nested too deeply"),
    ],
)
async def test_what_is_no_json_names_its_tool(client: Any, what: str, message: str) -> None:
    content = await client.say(what=what)
    with pytest.raises(InvalidResult) as raised:
        content.json()
    assert str(raised.value) == message
    assert raised.value.tool == "say"
    assert raised.value.result.content == content


async def test_there_is_no_text_without_a_text_block(client: Any) -> None:
    content = await client.say(what="picture")
    with pytest.raises(InvalidResult, match="has no text"):
        _ = content.text


async def test_responses_and_tasks_give_the_same(client: Any) -> None:
    response = await client.with_raw_response.say(what="json")
    assert isinstance(response.parse(), ToolContent)
    assert response.parse().json() == {"degrees": [21.5, None]}
    started = await client.tasks.ship(what="json")
    assert (await started).json() == {"degrees": [21.5, None]}
    again = client.tasks.ship.resume(started.id)
    assert (await again).text == ANSWERS["json"]
