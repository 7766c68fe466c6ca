"""The committed tea shop of `specs/shop.yaml`: permissions of customers and staff.

The client is generated: in memory in both eras, over HTTP with tokens, and over stdio with two processes.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import mcp
import pytest
from conftest import ROOT
from mcp.server.auth.provider import AccessToken

import conformance
import forked
from packages import imported
from serving import asgi, pipe

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
PATH = os.pathsep.join(map(str, conformance.paths()))
LEAVE = 'Order the contents of the basket? You see the total before you pay.\nAlso: {"basket_id": "[redacted]"}'
NEIGHBOUR = "May the parcel be left with a neighbour?"
PATIENCE = 20.0


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def shop() -> Iterator[ModuleType]:
    """Generate the package with its handlers."""
    examples = ROOT / "examples"
    with (
        imported(ROOT / "generated", "shop_mcp") as package,
        imported(examples, "shop_stock"),
        imported(examples, "shop"),
    ):
        yield package


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing takes no time, and the shop has no file."""
    monkeypatch.setenv("SHOP_PACE", "0")
    monkeypatch.delenv("SHOP_DB", raising=False)


class Customer:
    """Answers the shop's questions. Runs `meanwhile` between the question and the answer."""

    def __init__(self, *, agrees: bool = True, meanwhile: Callable[[str], Any] | None = None) -> None:
        self.agrees = agrees
        self.asked: list[str] = []
        self.meanwhile = meanwhile

    async def __call__(self, question: Any) -> dict[str, Any]:
        self.asked.append(question.message)
        if self.meanwhile is not None:
            await self.meanwhile(question.message)
        [name] = question.schema["properties"]
        return {name: "invoice" if name == "payment" else self.agrees}


def handlers() -> Any:
    return importlib.import_module("shop").Shop()


@asynccontextmanager
async def visiting(
    package: ModuleType, own: Any = None, era: str = "2026-07-28", scopes: tuple[str, ...] = (), **more: Any
) -> AsyncIterator[Any]:
    """The generated client of a server in this process."""
    server = package.build_server(own or handlers(), local_scopes=scopes)
    async with package.ShopClient.connect(pipe(server, handshake=era < "2026"), **more) as client:
        yield client


class Verifier:
    """Takes tokens that are a subject and scopes: `ann.shop:staff`."""

    async def verify_token(self, token: str) -> AccessToken | None:
        subject, *scopes = token.split(".")
        claims = {"iss": "https://auth.example.com", "sub": subject}
        return AccessToken(token="", client_id="c", scopes=scopes, subject=subject, claims=claims)


@contextmanager
def serving(package: ModuleType, own: Any) -> Iterator[Callable[..., Any]]:
    """Run a server over HTTP; yield a function that makes the client of a token."""
    with asgi(package.asgi_app(own, token_verifier=Verifier())) as url:

        def connect(token: str, **more: Any) -> Any:
            headers = {"Authorization": f"Bearer {token}"}
            return package.ShopClient.connect(f"{url}/mcp", headers=headers, **more)

        yield connect


async def filled(client: Any, **items: int) -> Any:
    """Return a basket with this many of each product; `TEA_01` is TEA-01."""
    basket = (await client.create_basket()).basket_id
    for sku, count in items.items():
        await client.add_item(basket_id=basket, sku=sku.replace("_", "-"), count=count)
    return basket


def amounts(stock: Any, sku: str) -> tuple[int, int]:
    """Return the available and the stored amount of a product."""
    row = stock.db.execute("SELECT free, shelf FROM product WHERE sku = ?", (sku,)).fetchone()
    return row[0], row[1]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)


# A customer's whole way


@ERAS
async def test_a_customer_buys_and_gets_tea(era: str, shop: ModuleType) -> None:
    own, customer = handlers(), Customer()
    async with visiting(shop, own, era, on_question=customer) as client:
        found = (await client.search_products(words="tea FIRST")).products
        [catalogue] = await client.read_catalogue()
        [product] = await client.read_product(sku="CUP-01")
        with pytest.raises(mcp.MCPError, match="shop://products/XXX-99"):
            await client.read_product(sku="XXX-99")
        completed = (await client.complete_read_product("sku", "tea-")).values
        basket = await filled(client, TEA_01=2, TEA_02=1, CUP_01=1)
        await client.remove_item(basket_id=basket, sku="TEA-02")
        shown = await client.show_basket(basket_id=basket)
        order = await client.checkout(basket_id=basket)
        with pytest.raises(shop.ToolFailed, match="unknown or has expired; create_basket makes a new one"):
            await client.show_basket(basket_id=basket)
        between = amounts(own.stock, "TEA-01")
        task = await client.tasks.ship_order(order_id=order.order_id)
        statuses = [state.status async for state in task.updates()]
        shipped = await task
        again = await client.ship_order(order_id=order.order_id)
        after = amounts(own.stock, "TEA-01")
    assert [one.sku for one in found] == ["TEA-03"]
    assert [one["sku"] for one in json.loads(catalogue.text)] == ["CUP-01", "POT-01", "TEA-01", "TEA-02", "TEA-03"]
    assert json.loads(product.text) == {"sku": "CUP-01", "name": "Cup", "price": 700, "available": 24}
    assert completed == ["TEA-01", "TEA-02", "TEA-03"]
    assert [(line.sku, line.count, line.price) for line in shown.lines] == [("TEA-01", 2, 450), ("CUP-01", 1, 700)]
    assert shown.total == order.total == 1600
    assert order.payment == "invoice"
    asked = "Green tea (2), Cup (1): €16.00 in all. How do you want to pay?"
    assert customer.asked == [LEAVE, asked, NEIGHBOUR]
    assert "input_required" in statuses
    assert statuses[-1] == "completed"
    assert shipped.neighbour
    assert again == shipped  # it is shipped once, without a second question
    assert (between, after) == ((38, 40), (38, 38))


@ERAS
async def test_nothing_is_ordered_where_the_customer_does_not_want_it(era: str, shop: ModuleType) -> None:
    own, customer = handlers(), Customer(agrees=False)
    async with visiting(shop, own, era, on_question=customer) as client:
        basket = await filled(client, TEA_01=2)
        with pytest.raises(shop.ToolFailed, match="checkout did not run"):
            await client.checkout(basket_id=basket)
        assert (await client.show_basket(basket_id=basket)).total == 900
        assert amounts(own.stock, "TEA-01") == (40, 40)
    assert customer.asked == [LEAVE]


async def test_who_can_be_asked_nothing_gets_the_parcel_in_person(shop: ModuleType) -> None:
    own = handlers()
    async with AsyncExitStack() as open_:
        client = await open_.enter_async_context(visiting(shop, own))
        basket = await filled(client, TEA_01=1)
        with pytest.raises(mcp.MCPError, match="does not support elicitation") as refused:
            await client.checkout(basket_id=basket)
        assert refused.value.error.code == -32021
        own.stock.sell("0" * 16, LOCAL, "card", {"TEA-01": 1})
        shipped = await client.ship_order(order_id="0" * 16)
    assert not shipped.neighbour
    assert shipped.parcel.startswith("TP")


LOCAL = json.dumps(["local", None, "local"])
"""The local user as an owner."""


@pytest.mark.long
async def test_over_http_a_task_asks_and_is_taken_up_by_its_id(shop: ModuleType) -> None:
    own, customer = handlers(), Customer()
    with serving(shop, own) as connect:
        async with connect("ann", on_question=customer) as client:
            order = await client.checkout(basket_id=await filled(client, POT_01=1))
            task = await client.tasks.ship_order(order_id=order.order_id)
        assert customer.asked[2:] == []
        own.pace = 1.2
        async with connect("bob", on_question=customer) as client:
            with pytest.raises(shop.TaskExpired):
                await client.tasks.ship_order.resume(task.id)
        async with connect("ann", on_question=customer) as client:
            taken_up = client.tasks.ship_order.resume(task.id)
            messages = [state.message async for state in taken_up.updates()]
            shipped = await taken_up
    assert customer.asked[2:] == [NEIGHBOUR]
    assert {"1 of 3: picked", "2 of 3: packed"} & set(messages)
    assert shipped.order_id == order.order_id


# Several at once


async def test_two_customers_and_the_last_one_of_a_product(
    shop: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.sqlite"))
    there = asyncio.Barrier(2)

    async def both(message: str) -> None:
        if "pay?" in message:  # so that each client has seen the total before any payment
            await there.wait()

    with serving(shop, handlers()) as connect:
        async with AsyncExitStack() as open_:
            people = [
                await open_.enter_async_context(connect(name, on_question=Customer(meanwhile=both)))
                for name in ("ann", "bob")
            ]
            baskets = [await filled(one, TEA_03=1, CUP_01=1) for one in people]
            calls = [one.checkout(basket_id=basket) for one, basket in zip(people, baskets, strict=True)]
            done = await asyncio.gather(*calls, return_exceptions=True)
            [loser] = [number for number, one in enumerate(done) if isinstance(one, BaseException)]
            kept = await people[loser].show_basket(basket_id=baskets[loser])
    assert "There are only 0 of TEA-03 left. Nothing was ordered." in str(done[loser])
    assert kept.total == 3100
    stock = importlib.import_module("shop_stock").Stock(str(tmp_path / "shop.sqlite"))
    assert amounts(stock, "TEA-03") == (0, 1)
    assert amounts(stock, "CUP-01") == (23, 24)  # of the order that failed, no cup was kept either
    stock.db.close()


def test_two_processes_never_sell_the_last_one_twice(tmp_path: Path, shop: ModuleType) -> None:
    stocks = importlib.import_module("shop_stock")

    def buy(number: int) -> bool:
        stock = stocks.Stock(str(tmp_path / "shop.sqlite"))
        try:
            stock.sell(f"{number:016x}", LOCAL, "card", {"TEA-02": 1, "POT-01": 2})
        except stocks.SoldOutError:
            return False
        finally:
            stock.db.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(buy, range(24)))
    left = {sku: free for sku, _, _, free in stocks.Stock(str(tmp_path / "shop.sqlite")).products()}
    assert done.count(True) == 2
    assert (left["POT-01"], left["TEA-02"]) == (1, 58)


async def test_one_basket_gives_one_order(shop: ModuleType) -> None:
    own, there = handlers(), asyncio.Barrier(2)

    async def both(message: str) -> None:
        if "pay?" in message:
            await there.wait()

    async with visiting(shop, own, on_question=Customer(meanwhile=both)) as client:
        basket = await filled(client, TEA_01=3)
        done = await asyncio.gather(*(client.checkout(basket_id=basket) for _ in range(2)), return_exceptions=True)
        assert amounts(own.stock, "TEA-01") == (37, 40)
    made = {one.order_id for one in done if not isinstance(one, BaseException)}
    assert len(made) == 1
    for failed in (one for one in done if isinstance(one, BaseException)):
        assert "unknown or has expired" in str(failed)


async def test_a_checkout_that_broke_off_is_not_a_second_order(
    shop: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = handlers()
    kept = importlib.import_module("stubwright_runtime.server.features.handles").Handles

    async def lost(self: Any, handle_id: Any) -> bool:
        raise shop.StateLost

    async with visiting(shop, own, on_question=Customer()) as client:
        basket = await filled(client, TEA_01=3)
        with monkeypatch.context() as broken:
            broken.setattr(kept, "delete", lost)
            with pytest.raises(shop.ToolFailed, match="store cannot be reached"):
                await client.checkout(basket_id=basket)
        assert amounts(own.stock, "TEA-01") == (37, 40)
        order = await client.checkout(basket_id=basket)
        assert amounts(own.stock, "TEA-01") == (37, 40)
    assert order.total == 1350


def test_a_run_that_was_taken_over_changes_nothing_any_more(shop: ModuleType) -> None:
    stock = importlib.import_module("shop_stock").Stock(":memory:")
    stock.sell("order", LOCAL, "card", {"TEA-01": 4})
    stock.pick("order", "first")
    stock.pick("order", "second")
    assert amounts(stock, "TEA-01") == (36, 36)
    stock.put_back("order", "first")
    assert not stock.hand_over("order", "first", "P1", neighbour=True)
    assert amounts(stock, "TEA-01") == (36, 36)
    assert stock.hand_over("order", "second", "P2", neighbour=False)
    for run in ("first", "second"):
        stock.put_back("order", run)
        stock.pick("order", run)
    assert amounts(stock, "TEA-01") == (36, 36)
    assert stock.order("order", LOCAL).parcel == "P2"
    stock.db.close()


@ERAS
async def test_nobody_pays_for_a_basket_that_was_not_shown(era: str, shop: ModuleType) -> None:
    own = handlers()

    async def more(message: str) -> None:
        if "pay?" in message:
            await client.add_item(basket_id=basket, sku="POT-01")

    async with visiting(shop, own, era, on_question=Customer(meanwhile=more)) as client:
        basket = await filled(client, TEA_01=1)
        with pytest.raises(shop.ToolFailed, match="The basket changed while you were asked"):
            await client.checkout(basket_id=basket)
        assert (await client.show_basket(basket_id=basket)).total == 4350
        assert amounts(own.stock, "POT-01") == (5, 5)


@pytest.mark.parametrize("faster", [1, 2])
async def test_a_stale_update_is_tried_again_once(
    faster: int, shop: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = importlib.import_module("stubwright_runtime.server.features.handles").Handles
    update, left = kept.update, [faster]

    async def late(self: Any, handle: Any, state: Any) -> Any:
        """Somebody puts a cup into the basket right before."""
        if left[0]:
            left[0] -= 1
            now = await self.get(handle.id)
            items = {**now.state.items, "CUP-01": now.state.items.get("CUP-01", 0) + 1}
            await update(self, now, shop.Basket(items=items))
        return await update(self, handle, state)

    async with visiting(shop) as client:
        basket = (await client.create_basket()).basket_id
        monkeypatch.setattr(kept, "update", late)
        if faster == 1:
            await client.add_item(basket_id=basket, sku="TEA-01")
        else:
            with pytest.raises(shop.ToolFailed, match="Another call changed this basket, so this change was not saved"):
                await client.add_item(basket_id=basket, sku="TEA-01")
        shown = await client.show_basket(basket_id=basket)
    items = {line.sku: line.count for line in shown.lines}
    assert items == ({"CUP-01": 1, "TEA-01": 1} if faster == 1 else {"CUP-01": 2})


# Shipped and unshipped orders


@ERAS
async def test_cancelling_puts_the_goods_back(era: str, shop: ModuleType) -> None:
    own, customer = handlers(), Customer()
    async with visiting(shop, own, era, on_question=customer) as client:
        order = await client.checkout(basket_id=await filled(client, TEA_01=4))
        own.pace = 3600.0
        task = await client.tasks.ship_order(order_id=order.order_id)
        waiting = asyncio.create_task(task.wait(timeout=PATIENCE))
        await until(lambda: amounts(own.stock, "TEA-01") == (36, 36))
        await task.cancel()
        with pytest.raises(shop.TaskCancelled):
            await waiting
        await until(lambda: amounts(own.stock, "TEA-01") == (36, 40))
        own.pace = 0.0
        shipped = await client.ship_order(order_id=order.order_id)
        assert amounts(own.stock, "TEA-01") == (36, 36)
    assert shipped.parcel.startswith("TP")


async def test_a_task_that_waits_for_an_answer_holds_no_goods(shop: ModuleType) -> None:
    own = handlers()
    async with visiting(shop, own, on_question=Customer()) as client:
        order = await client.checkout(basket_id=await filled(client, TEA_01=4))
        task = await client.tasks.ship_order(order_id=order.order_id)
        async with asyncio.timeout(PATIENCE):
            while (await task.refresh()).status != "input_required":  # noqa: ASYNC110 - the server is asked
                await asyncio.sleep(0.01)
        assert amounts(own.stock, "TEA-01") == (36, 40)
        await task.cancel()
        with pytest.raises(shop.TaskCancelled):
            await task
        assert amounts(own.stock, "TEA-01") == (36, 40)


async def test_two_calls_ship_one_parcel(shop: ModuleType) -> None:
    own = handlers()
    async with visiting(shop, own, on_question=Customer()) as client:
        order = await client.checkout(basket_id=await filled(client, TEA_01=4))
        own.pace = 0.1
        calls = [client.ship_order(order_id=order.order_id) for _ in range(2)]
        done = await asyncio.gather(*calls, return_exceptions=True)
        assert amounts(own.stock, "TEA-01") == (36, 36)
        now = await client.ship_order(order_id=order.order_id)
    shipped = [one for one in done if not isinstance(one, BaseException)]
    assert shipped
    assert {one.parcel for one in shipped} == {now.parcel}
    for failed in (one for one in done if isinstance(one, BaseException)):
        assert "Another call ships this order" in str(failed)


# Who may


async def test_what_is_somebody_elses_is_unknown(shop: ModuleType) -> None:
    with serving(shop, handlers()) as connect:
        async with connect("ann", on_question=Customer()) as ann, connect("bob", on_question=Customer()) as bob:
            basket = await filled(ann, TEA_01=1)
            refused = {}
            for name, call in (
                ("theirs", bob.show_basket(basket_id=basket)),
                ("none", bob.show_basket(basket_id=shop.BasketId("x" * 32))),
                ("checkout", bob.checkout(basket_id=basket)),
            ):
                with pytest.raises(shop.ToolFailed) as caught:
                    await call
                refused[name] = str(caught.value)
            order = await ann.checkout(basket_id=basket)
            with pytest.raises(shop.ToolFailed, match=f"There is no order {order.order_id}"):
                await bob.ship_order(order_id=order.order_id)
            await ann.ship_order(order_id=order.order_id)
    assert refused["theirs"] == refused["none"]
    for text in refused.values():
        assert "the basket in basket_id is unknown or has expired; create_basket makes a new one" in text


async def test_only_staff_restocks_and_subscribers_hear_of_it(shop: ModuleType) -> None:
    with serving(shop, handlers()) as connect:
        async with connect("ann") as ann, connect("eve.shop:staff") as eve:
            with pytest.raises(mcp.MCPError, match="restock"):
                await ann.restock(sku="TEA-03", count=5)
            async with shop.changes(ann, resources=["shop://products/TEA-03"]) as told:
                product = await eve.restock(sku="TEA-03", count=5)
                async with asyncio.timeout(PATIENCE):
                    change = await anext(told)
            [found] = (await ann.search_products(words="white")).products
    assert "TEA-03" in str(change)
    assert product == found
    assert found.available == 6


@pytest.mark.parametrize("scope", [None, "shop:staff"])
async def test_the_local_user_is_staff_only_if_it_is_said(scope: str | None, shop: ModuleType) -> None:
    server = shop.build_server(handlers(), local_scopes=[scope] if scope else [])
    async with mcp.Client(server) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        if scope:
            result = await client.call_tool("restock", {"sku": "XXX-99", "count": 5})
            assert "There is no product XXX-99" in str(result.content)
    assert ("restock" in names) == bool(scope)
    assert "checkout" in names


async def test_there_are_limits(shop: ModuleType) -> None:
    async with visiting(shop) as client:
        basket = await filled(client, TEA_01=99)
        with pytest.raises(shop.ToolFailed, match="at most 99 of one product; this would be 100"):
            await client.add_item(basket_id=basket, sku="TEA-01")
        with pytest.raises(shop.ToolFailed, match="There is no product XXX-99"):
            await client.add_item(basket_id=basket, sku="XXX-99")
        for _ in range(4):
            await client.create_basket()
        with pytest.raises(shop.ToolFailed, match="You already have 5 handles of the kind 'basket'"):
            await client.create_basket()
        for _ in range(20):
            with pytest.raises(shop.ToolFailed, match="There is no order"):
                await client.ship_order(order_id="0" * 16)
        with pytest.raises(shop.ToolFailed, match="ship_order may be called 20 times in a minute"):
            await client.ship_order(order_id="0" * 16)


# The page


@pytest.mark.long
def test_the_way_on_the_page_is_the_way(shop: ModuleType) -> None:
    page = (ROOT / "examples" / "shop.md").read_text("utf-8")
    [program, shown] = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    done = forked.python(["-c", program], ROOT, conformance.paths())
    said, expected = done.stdout.splitlines(), shown.splitlines()
    assert done.returncode == 0, done.stderr
    assert said[:5] + said[-2:-1] == expected[:5] + expected[-2:-1]  # how often the client looks, depends on the day
    assert [line for line in said if line.startswith("?")] == [line for line in expected if line.startswith("?")]
    assert re.fullmatch("TP[0-9A-F]{10}", said[-1])


# Two processes


@pytest.mark.long
async def test_two_processes_share_baskets_orders_and_tasks(shop: ModuleType, tmp_path: Path, redis_url: str) -> None:
    command = [*forked.interpreter(), "-m", "shop_mcp", "--state", redis_url, "--log-level", "error", "--grace", "0"]
    env = {"PYTHONPATH": PATH, "SHOP_DB": str(tmp_path / "shop.sqlite"), "SHOP_PACE": "1.5"}

    def process() -> Any:
        return shop.ShopClient.connect(command, env=env, on_question=Customer())

    stock = importlib.import_module("shop_stock").Stock(env["SHOP_DB"])

    async with process() as other:
        async with process() as one:
            basket = await filled(one, TEA_02=1)
            await other.add_item(basket_id=basket, sku="TEA-02", count=2)
            order = await one.checkout(basket_id=basket)
            with pytest.raises(shop.ToolFailed, match="unknown or has expired"):
                await other.show_basket(basket_id=basket)
            task = await one.tasks.ship_order(order_id=order.order_id)
            waiting = asyncio.create_task(task.wait(timeout=PATIENCE))
            await until(lambda: amounts(stock, "TEA-02") == (57, 57))
            waiting.cancel()
        taken_up = other.tasks.ship_order.resume(task.id)  # one of the processes is gone
        shipped = await taken_up.wait(timeout=3 * PATIENCE)
        assert (await other.ship_order(order_id=order.order_id)).parcel == shipped.parcel
    assert amounts(stock, "TEA-02") == (57, 57)
    stock.db.close()
