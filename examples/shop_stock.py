"""The shop's goods and orders, in SQLite.

Each method is one short transaction, and each update of an order states the expected previous status. Of two concurrent
calls, in one process or two, only one succeeds: the last item is sold once, and an order is packed and handed over
once, however often it is tried.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SCHEMA = Path(__file__).with_name("shop.sql").read_text("utf-8")


class SoldOutError(Exception):
    """The stock of a product is insufficient."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order. `parcel` is the carrier's number, set at the handover."""

    id: str
    payment: str
    parcel: str | None
    neighbour: bool
    total: int


class Stock:
    """The shop's stock and orders, in a file or in memory."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)

    def products(self) -> list[tuple[str, str, int, int]]:
        """Return the SKU, name, price and available count of each product."""
        return self.db.execute("SELECT sku, name, price, free FROM product ORDER BY sku").fetchall()

    def restock(self, sku: str, count: int) -> bool:
        """Put goods on the shelf. Return whether the product exists."""
        with self.db:
            sql = "UPDATE product SET free = free + ?, shelf = shelf + ? WHERE sku = ?"
            return self.db.execute(sql, (count, count, sku)).rowcount == 1

    def sell(self, order: str, owner: str, payment: str, items: Mapping[str, int]) -> None:
        """Create a complete order, unless it already exists. Raises SoldOutError if an item is unavailable."""
        with self.db:
            sql = "INSERT OR IGNORE INTO purchase (id, owner, payment) VALUES (?, ?, ?)"
            if not self.db.execute(sql, (order, owner, payment)).rowcount:
                return
            for sku, count in items.items():
                sql = "UPDATE product SET free = free - ? WHERE sku = ? AND free >= ?"
                if not self.db.execute(sql, (count, sku, count)).rowcount:
                    raise SoldOutError(sku)
                sql = "INSERT INTO line SELECT ?, sku, ?, price FROM product WHERE sku = ?"
                self.db.execute(sql, (order, count, sku))

    def order(self, order: str, owner: str) -> Order | None:
        """Return one of this owner's orders."""
        sql = """SELECT id, payment, parcel, neighbour, sum(count * price) FROM purchase JOIN line ON purchase = id
            WHERE id = ? AND owner = ? GROUP BY id"""
        row = self.db.execute(sql, (order, owner)).fetchone()
        return None if row is None else Order(row[0], row[1], row[2], bool(row[3]), row[4])

    def pick(self, order: str, run: str) -> None:
        """Take an order's goods off the shelf, or from the run that has them, unless it was shipped."""
        with self.db:
            sql = "UPDATE purchase SET picker = ? WHERE id = ? AND status = 'picked'"
            if not self.db.execute(sql, (run, order)).rowcount:
                sql = "UPDATE purchase SET picker = ?, status = 'picked' WHERE id = ? AND status = 'paid'"
                self._move(order, -self.db.execute(sql, (run, order)).rowcount)

    def hand_over(self, order: str, run: str, parcel: str, *, neighbour: bool) -> bool:
        """Hand a run's goods to the carrier. Return whether the run still had them."""
        with self.db:
            sql = """UPDATE purchase SET status = 'shipped', picker = NULL, parcel = ?, neighbour = ?
                WHERE id = ? AND status = 'picked' AND picker = ?"""
            return self.db.execute(sql, (parcel, neighbour, order, run)).rowcount == 1

    def put_back(self, order: str, run: str) -> None:
        """Put a run's goods, if any, back on the shelf."""
        with self.db:
            sql = "UPDATE purchase SET status = 'paid', picker = NULL WHERE id = ? AND status = 'picked' AND picker = ?"
            self._move(order, self.db.execute(sql, (order, run)).rowcount)

    def _move(self, order: str, sign: int) -> None:
        moved: Iterable[tuple[int, str]] = self.db.execute("SELECT count, sku FROM line WHERE purchase = ?", (order,))
        for count, sku in moved:
            self.db.execute("UPDATE product SET shelf = shelf + ? WHERE sku = ?", (sign * count, sku))
