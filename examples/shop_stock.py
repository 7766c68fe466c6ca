"""The goods and the orders of the shop, in SQLite.

Each method is one short transaction, and each change of what an order is names what it was before: of two calls at
once, in one process or in two, one finds that the other was faster. So the last of a product is sold once, and an order
is packed and handed over once, however often it is tried.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

SCHEMA = Path(__file__).with_name("shop.sql").read_text("utf-8")


class SoldOutError(Exception):
    """There is less of a product than is wanted."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order. `parcel` is the carrier's number, once it was handed over."""

    id: str
    payment: str
    parcel: str | None
    neighbour: bool
    total: int


class Stock:
    """What the shop has and has sold, in a file or in memory."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)

    def products(self) -> list[tuple[str, str, int, int]]:
        """The number, the name, the price and how many are free, of each product."""
        return self.db.execute("SELECT sku, name, price, free FROM product ORDER BY sku").fetchall()

    def restock(self, sku: str, count: int) -> bool:
        """Put goods on the shelf; whether there is such a product."""
        with self.db:
            sql = "UPDATE product SET free = free + ?, shelf = shelf + ? WHERE sku = ?"
            return self.db.execute(sql, (count, count, sku)).rowcount == 1

    def sell(self, order: str, owner: str, payment: str, items: Mapping[str, int]) -> None:
        """Make an order, all of it or nothing; nothing where it is there. Raises SoldOutError."""
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
        """An order of this owner."""
        sql = """SELECT id, payment, parcel, neighbour, sum(count * price) FROM purchase JOIN line ON purchase = id
            WHERE id = ? AND owner = ? GROUP BY id"""
        row = self.db.execute(sql, (order, owner)).fetchone()
        return None if row is None else Order(row[0], row[1], row[2], bool(row[3]), row[4])

    def pick(self, order: str, run: str) -> None:
        """Take the goods of an order off the shelf, or from a run that has them; nothing where it was shipped."""
        with self.db:
            sql = "UPDATE purchase SET picker = ? WHERE id = ? AND status = 'picked'"
            if not self.db.execute(sql, (run, order)).rowcount:
                sql = "UPDATE purchase SET picker = ?, status = 'picked' WHERE id = ? AND status = 'paid'"
                self._move(order, -self.db.execute(sql, (run, order)).rowcount)

    def hand_over(self, order: str, run: str, parcel: str, *, neighbour: bool) -> bool:
        """Give the carrier what a run has picked; whether it still had it."""
        with self.db:
            sql = """UPDATE purchase SET status = 'shipped', picker = NULL, parcel = ?, neighbour = ?
                WHERE id = ? AND status = 'picked' AND picker = ?"""
            return self.db.execute(sql, (parcel, neighbour, order, run)).rowcount == 1

    def put_back(self, order: str, run: str) -> None:
        """Put on the shelf what a run has in its hands, if it has anything."""
        with self.db:
            sql = "UPDATE purchase SET status = 'paid', picker = NULL WHERE id = ? AND status = 'picked' AND picker = ?"
            self._move(order, self.db.execute(sql, (order, run)).rowcount)

    def _move(self, order: str, sign: int) -> None:
        moved: Iterable[tuple[int, str]] = self.db.execute("SELECT count, sku FROM line WHERE purchase = ?", (order,))
        for count, sku in moved:
            self.db.execute("UPDATE product SET shelf = shelf + ? WHERE sku = ?", (sign * count, sku))
