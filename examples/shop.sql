-- The tea shop's products and orders. Ordered items are no longer free, but stay on the shelf until the order is
-- packed.
CREATE TABLE IF NOT EXISTS product (
  sku TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  price INTEGER NOT NULL, -- in cents
  free INTEGER NOT NULL CHECK (free >= 0),
  shelf INTEGER NOT NULL CHECK (shelf >= 0)
);
CREATE TABLE IF NOT EXISTS purchase (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  payment TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'paid' CHECK (status IN ('paid', 'picked', 'shipped')),
  picker TEXT,   -- the ship_order run that has the goods
  parcel TEXT,   -- the carrier's number, set when it ships
  neighbour INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS line (
  purchase TEXT NOT NULL REFERENCES purchase,
  sku TEXT NOT NULL REFERENCES product,
  count INTEGER NOT NULL,
  price INTEGER NOT NULL,
  PRIMARY KEY (purchase, sku)
);
INSERT OR IGNORE INTO product VALUES
  ('TEA-01', 'Green tea', 450, 40, 40),
  ('TEA-02', 'Black tea', 390, 60, 60),
  ('TEA-03', 'White tea, first flush', 2400, 1, 1),
  ('POT-01', 'Teapot of clay', 3900, 5, 5),
  ('CUP-01', 'Cup', 700, 24, 24);
