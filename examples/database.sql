-- The example's initial database if `DATABASES` is not set.
CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE book (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    author INTEGER NOT NULL REFERENCES author (id),
    year INTEGER,
    cover BLOB
);
CREATE TABLE loan (
    id INTEGER PRIMARY KEY,
    book INTEGER NOT NULL REFERENCES book (id),
    reader TEXT NOT NULL,
    day TEXT NOT NULL,
    returned TEXT
);
CREATE INDEX loan_by_book ON loan (book);
CREATE VIEW lent AS
SELECT book.title, loan.reader, loan.day FROM loan JOIN book ON book.id = loan.book WHERE loan.returned IS NULL;
CREATE TRIGGER book_is_lent BEFORE DELETE ON book WHEN EXISTS (SELECT 1 FROM loan WHERE book = old.id)
BEGIN
    SELECT raise(ABORT, 'the book has loans');
END;

INSERT INTO author VALUES (1, 'Jane Austen'), (2, 'Mary Shelley'), (3, 'George Eliot'), (4, 'Virginia Woolf');
INSERT INTO book VALUES
    (1, 'Emma', 1, 1815, x'89504e470d0a1a0a'),
    (2, 'Frankenstein', 2, 1818, NULL),
    (3, 'Middlemarch', 3, 1871, NULL),
    (4, 'Orlando', 4, 1928, NULL),
    (5, 'The Waves', 4, 1931, NULL);
INSERT INTO loan
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 400)
SELECT
    n,
    1 + n % 4,
    'reader ' || (n % 37),
    date('2025-01-01', n || ' days'),
    iif(n > 395, NULL, date('2025-01-01', (n + 20) || ' days'))
FROM number;
