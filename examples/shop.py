"""The business logic of the tea shop; everything else is generated from `specs/shop.yaml`.

Baskets are state handles, which the server stores. Goods and orders are in SQLite (`shop_stock.py`), in the file in
`SHOP_DB` or in memory. `SHOP_PACE` sets how many seconds each packing step takes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable

import shop_mcp as shop
from shop_stock import Order, SoldOutError, Stock

MOST = 99
"""Maximum count of one product in a basket, as in the manifest."""

Items = dict[str, int]


class Shop(shop.ShopHandlers):
    """Sells tea."""

    async def __aenter__(self) -> None:
        self.stock = Stock(os.environ.get("SHOP_DB", ":memory:"))
        self.pace = float(os.environ.get("SHOP_PACE", "1"))

    async def __aexit__(self, *_: object) -> None:
        self.stock.db.close()

    # The catalogue

    async def search_products(self, args: shop.SearchProductsInput, ctx: shop.Context) -> shop.SearchProductsOutput:
        words = args.words.casefold().split()
        matching = [
            product for product in self.products().values() if all(word in product.name.casefold() for word in words)
        ]
        return shop.SearchProductsOutput(products=matching)

    async def read_catalogue(self, ctx: shop.Context) -> str:
        return json.dumps([product.model_dump(mode="json") for product in self.products().values()])

    async def read_product(self, args: shop.ReadProductParams, ctx: shop.Context) -> str | None:
        product = self.products().get(args.sku)
        return None if product is None else product.model_dump_json()

    async def complete_read_product(self, args: shop.Completing, ctx: shop.Context) -> list[str]:
        return [sku for sku in self.products() if sku.startswith(args.value.upper())]

    async def restock(self, args: shop.RestockInput, ctx: shop.Context) -> shop.Product:
        if not self.stock.restock(args.sku, args.count):
            raise no_product(args.sku)
        await self.tell([args.sku], ctx)
        return self.products()[args.sku]

    # Baskets

    async def create_basket(
        self, args: shop.CreateBasketInput, ctx: shop.CreateBasketContext
    ) -> shop.CreateBasketOutput:
        return shop.CreateBasketOutput(basket_id=await ctx.handles.basket.create(shop.Basket(items={})))

    async def add_item(self, args: shop.AddItemInput, ctx: shop.AddItemContext) -> shop.Lines:
        if args.sku not in self.products():
            raise no_product(args.sku)

        def add(items: Items) -> Items:
            count = items.get(args.sku, 0) + args.count
            if count > MOST:
                raise shop.ToolError(f"A basket holds at most {MOST} of one product; this would be {count}.")
            return {**items, args.sku: count}

        return await self.change(ctx, add)

    async def remove_item(self, args: shop.RemoveItemInput, ctx: shop.RemoveItemContext) -> shop.Lines:
        return await self.change(ctx, lambda items: {sku: items[sku] for sku in items if sku != args.sku})

    async def show_basket(self, args: shop.ShowBasketInput, ctx: shop.ShowBasketContext) -> shop.Lines:
        return self.priced(ctx.handles["basket_id"].state.items)

    async def change(
        self, ctx: shop.AddItemContext | shop.RemoveItemContext, change: Callable[[Items], Items]
    ) -> shop.Lines:
        """Change the contents of a basket. Retry once if another call changed it first; then raise StaleHandle."""
        baskets, basket = ctx.handles.basket, ctx.handles["basket_id"]
        try:
            kept = await baskets.update(basket, shop.Basket(items=change(basket.state.items)))
        except shop.StaleHandle:
            basket = await baskets.get(basket.id)
            kept = await baskets.update(basket, shop.Basket(items=change(basket.state.items)))
        return self.priced(kept.state.items)

    # Orders

    async def checkout(self, args: shop.CheckoutInput, ctx: shop.CheckoutContext) -> shop.CheckoutOutput:
        basket = ctx.handles["basket_id"]
        items = basket.state.items
        offer = self.priced(items)
        if not items:
            raise shop.ToolError("The basket is empty.")
        # From 2026-07-28 on, this runs again with the answer, and the basket may have changed by then.
        offered = await ctx.once("version", lambda: basket.version)
        goods = ", ".join(f"{line.name} ({line.count})" for line in offer.lines)
        answer = await ctx.ask.payment(f"{goods}: {euros(offer.total)} in all. How do you want to pay?")
        if not isinstance(answer, shop.CheckoutPaymentAnswer):
            raise shop.ToolError("Nothing was ordered, and the basket is as it was.")
        if offered != (await ctx.handles.basket.get(basket.id)).version:
            raise shop.ToolError("The basket changed while you were asked. Look at it, and check out again.")
        # One basket makes one order, however often the call is repeated.
        number = hashlib.sha256(basket.id.encode()).hexdigest()[:16]
        try:
            self.stock.sell(number, ctx.principal.key, answer.payment, items)
        except SoldOutError as error:
            left = self.products()[str(error)].available
            raise shop.ToolError(f"There are only {left} of {error} left. Nothing was ordered.") from None
        await ctx.handles.basket.delete(basket.id)
        await self.tell(items, ctx)
        order = self.order(number, ctx)
        return shop.CheckoutOutput(order_id=order.id, payment=answer.payment, total=order.total)

    async def ship_order(self, args: shop.ShipOrderInput, ctx: shop.ShipOrderContext) -> shop.ShipOrderOutput:
        order = self.order(args.order_id, ctx)
        if order.parcel is None:
            # Ask first: a task that is cancelled while it waits for an answer runs no more code.
            answer = await ctx.ask.neighbour() if ctx.can("elicitation") else None
            allowed = isinstance(answer, shop.ShipOrderNeighbourAnswer) and answer.allowed
            await self.pack(order, ctx, neighbour=allowed)
            order = self.order(args.order_id, ctx)
        if order.parcel is None:
            raise shop.ToolError("Another call ships this order; look again later.")
        return shop.ShipOrderOutput(order_id=order.id, parcel=order.parcel, neighbour=order.neighbour)

    async def pack(self, order: Order, ctx: shop.ShipOrderContext, *, neighbour: bool) -> None:
        """Pack an order and hand it over. If cancelled in between, put the goods back."""
        run = secrets.token_hex(8)
        parcel = await ctx.once("parcel", lambda: f"TP{secrets.token_hex(5).upper()}")  # announced to the carrier once
        try:
            self.stock.pick(order.id, run)
            for number, step in enumerate(("picked", "packed"), 1):
                await ctx.progress(number, 3, step)
                await asyncio.sleep(self.pace)
            self.stock.hand_over(order.id, run, parcel, neighbour=neighbour)
        finally:
            self.stock.put_back(order.id, run)  # does nothing after the handover
        await ctx.progress(3, 3, "handed over")

    # Shared helpers

    def products(self) -> dict[str, shop.Product]:
        """All products by SKU."""
        rows = self.stock.products()
        return {sku: shop.Product(sku=sku, name=name, price=price, available=free) for sku, name, price, free in rows}

    def priced(self, items: Items) -> shop.Lines:
        """The contents of a basket at today's prices."""
        known = self.products()
        lines = [
            shop.Line(sku=sku, name=known[sku].name, count=count, price=known[sku].price)
            for sku, count in items.items()
        ]
        return shop.Lines(lines=lines, total=sum(line.count * line.price for line in lines))

    def order(self, number: str, ctx: shop.Context) -> Order:
        """One of the caller's orders. Raises ToolError for unknown orders and those of other callers."""
        placed = self.stock.order(number, ctx.principal.key)
        if placed is None:
            raise shop.ToolError(f"There is no order {number}.")
        return placed

    async def tell(self, skus: Iterable[str], ctx: shop.Context) -> None:
        """Notify subscribers that the stock of some products changed."""
        for uri in ("shop://catalogue", *(f"shop://products/{sku}" for sku in skus)):
            await ctx.resources.updated(uri)


def no_product(sku: str) -> shop.ToolError:
    """The error for an unknown product."""
    return shop.ToolError(f"There is no product {sku}; search_products finds those that there are.")


def euros(cents: int) -> str:
    """A price as displayed."""
    return f"€{cents / 100:,.2f}"
