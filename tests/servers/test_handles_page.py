"""The section on state in `docs/handlers.md`: its manifest compiles, and its handlers work and are typed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import mcp
import pytest
from conftest import ROOT

from packages import imported
from stubwright import cli

PAGE = (ROOT / "docs" / "handlers.md").read_text("utf-8").partition("\n## State between calls\n")[2]
BLOCKS = dict(re.findall(r"^```(yaml|python)\n(.*?)^```$", PAGE.partition("\n## ")[0], re.MULTILINE | re.DOTALL))

TYPED = """
from stall_mcp import BasketId, Handle, StallClient

async def use(client: StallClient) -> BasketId:
    made = await client.create_basket()
    await client.add_item(basket_id=made.basket_id, item="tea")
    return made.basket_id

async def read(ctx: AddItemContext) -> list[str]:
    basket: Handle[BasketState, BasketId] = ctx.handles["basket_id"]
    return (await ctx.handles.basket.get(basket.id)).state.items
"""

WRONG = {
    'ctx.handles["basket"]': "Invalid index type",
    'await ctx.handles.basket.get("b1")': "BasketId",
    "await ctx.handles.basket.create(1)": "BasketState",
    "ctx.handles.order": 'has no attribute "order"',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    (made / "stall.yaml").write_text(BLOCKS["yaml"])
    (made / "stall.py").write_text(BLOCKS["python"])
    assert cli.run(["check", str(made / "stall.yaml"), "--strict"]) == 0
    assert cli.run(["generate", "-q", str(made / "stall.yaml"), "-o", str(made)]) == 0
    return made


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_handlers_of_the_page_work(folder: Path) -> None:
    with imported(folder, "stall_mcp") as package, imported(folder, "stall") as own:
        async with mcp.Client(package.build_server(own.Stall())) as client:
            made: Any = (await client.call_tool("create_basket", {})).structured_content
            for items in (["tea"], ["tea", "milk"]):
                result = await client.call_tool("add_item", {**made, "item": items[-1]})
                assert result.structured_content == {"items": items}
            refused = await client.call_tool("add_item", {"basket_id": "b1", "item": "jam"})
            assert refused.is_error
            [said] = [block.text for block in refused.content if block.type == "text"]
            assert f"> {said}\n" in PAGE


@pytest.mark.long
def test_the_handlers_of_the_page_are_typed(folder: Path, mypy: list[str]) -> None:
    (folder / "right.py").write_text(BLOCKS["python"] + TYPED)
    bodies = [f"async def wrong_{n}(ctx: AddItemContext) -> None:\n    {line}\n" for n, line in enumerate(WRONG)]
    (folder / "wrong.py").write_text("\n\n".join([BLOCKS["python"], *bodies]))
    done = subprocess.run(
        [*mypy, "right.py", "wrong.py"], cwd=folder, env={"MYPYPATH": str(folder)}, capture_output=True, text=True
    )
    told = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert not [line for line in told if not line.startswith("wrong.py")], done.stdout
    for says in WRONG.values():
        assert any(says in line for line in told), f"{says}\n{done.stdout}"
