"""A function's docstring begins with an imperative, such as "Return": it says what the call does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from conftest import ROOT

PACKAGES = {
    name: ROOT / folder / name for name, folder in (("stubwright", "generator"), ("stubwright_runtime", "runtime"))
}

CLAUSES = {"What", "Who", "Whom", "Whose", "Whoever", "Whether", "Where", "Which", "How", "When", "Why"}
VAGUE = {"Something", "Somebody", "Anything", "Anybody", "Nothing", "Nobody"}
NOUNS = {"The", "A", "An", "Of", "No", "All", "Each", "Every"}
NO_CALLS = {"property", "cached_property", "getter", "setter", "deleter"}
"""Decorators of what is read like an attribute, and so described by a noun phrase."""

VERBS = """
abandon accept aclose adapt add address admit advise agree align allow announce answer append apply arrange ask
attempt begin bind bound build bundle cache call cancel capitalize capture chain change check choose classify clean
clear close collect come compare compile complete compute conceal confirm connect convert count create cut decode
decrypt delete describe digest disable disconnect do downgrade drain drop dump echo edit elicit enable encode
encrypt end enforce enrol enter escape estimate evaluate exchange expand expire explain explode fail feed fetch fill
find finish fit fix flatten flush follow forget forgive format forward generate get give grade grant greet group
handle hash hide hit hold identify ignore include increase inline insert interrupt issue iter iterate join judge
keep leave let link list listen load locate log look lower make mark mask match measure merge move name narrow
negate negotiate normalize note notify open order outline pack paginate paint parse pass patch pause place plan
point prepare print proceed project protect prove prune publish put pytest qualify quote raise read recall receive
recognize record recover redact refer refresh refuse relate release remember remove rename render renew repair
replace replay report request require requote reserve resolve respond rest restart restore resume retake retry run
sanitize save say scrub seal select send serialize serve set settle shape share shield shorten show shrink shuffle
shutdown silence sort split stage stamp start stop store strike strip submit subscribe suggest summarize suppress
switch take tell test thin tolerate translate truncate trust unite unsubscribe update upgrade use validate verify
view violate visit wait walk watch weigh widen work wrap write
"""
PREDICATES = """
accepts admits allows are can covers declares describes did fails fits forbids grows handles has holds is leaves
matches may needs offers opens prevents reaches reads refuses resolves serves shows steers takes waits wants was
"""
PREPOSITIONS = "as from on to with without"
"""Beginnings of alternative constructors, conversions, callbacks and changed copies."""

OF_USERS = """
asgi_app assistant audio by_page changed changes completed done embedded image json lazy main once package_app paged
pages progress responding response roots sample sharing started starting text tools_for updated updates url_required
user
"""
"""Names that handlers, callers of clients and generated code use, which read as a part of their sentences."""

OF_FRAMEWORKS = """
connection_lost connection_made contract_check data_received do_GET do_POST error filter formatException glob
model_construct model_dump model_validate next_event startup timeout_keep_alive_handler
"""


ALLOWED = frozenset(f"{VERBS} {PREDICATES} {PREPOSITIONS}".split())
GIVEN = frozenset(f"{OF_USERS} {OF_FRAMEWORKS}".split())


def _is_called(function: ast.AST) -> bool:
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    names = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
    return names.isdisjoint(NO_CALLS)


def docstrings(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the text of each docstring, also of attributes, and tell whether it is that of a call."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for index, statement in enumerate(body if isinstance(body, list) else ()):
            match statement:
                case ast.Expr(value=ast.Constant(value=str() as text)):
                    yield statement.lineno, text.strip(), index == 0 and _is_called(node)
                case _:
                    pass


def is_wrong(docstring: str, *, of_call: bool) -> bool:
    """Tell whether a docstring begins with a clause, or a call's with something other than an imperative."""
    words = re.findall(r"\w+", docstring)[:2]
    if words[0] in {"Return", "Yield"}:
        return words[1].capitalize() in CLAUSES | VAGUE
    return words[0] in (CLAUSES | VAGUE | NOUNS if of_call else CLAUSES | VAGUE)


def functions(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each public function and method of a module."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
            and _is_called(node)
        ):
            yield node.lineno, node.name


def is_verb(name: str) -> bool:
    """Tell whether a function's name begins with a verb that stands in the list, or is one that others gave."""
    return name in GIVEN or name.partition("_")[0] in ALLOWED


def _sources(package: str) -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGES[package].rglob("*.py")):
        yield str(path.relative_to(ROOT)), path.read_text("utf-8")


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_say_things_plainly(package: str) -> None:
    wrong = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path, source in _sources(package)
        for line, text, of_call in docstrings(source)
        if is_wrong(text, of_call=of_call)
    ]
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_are_verbs(package: str) -> None:
    wrong = [
        f"{path}:{line}: {name}"
        for path, source in _sources(package)
        for line, name in functions(source)
        if not is_verb(name)
    ]
    assert wrong == []


def test_each_word_of_the_lists_is_in_use() -> None:
    names = {name for package in PACKAGES for _, source in _sources(package) for _, name in functions(source)}
    assert ALLOWED - {name.partition("_")[0] for name in names} == set()
    assert GIVEN - names == set()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """Return the name."""', [False]),
        ('def f():\n    """Return what it is called."""', [True]),
        ('async def f():\n    """Whether it is."""', [True]),
        ('class A:\n    """A class."""\n    def f(self):\n        """The name."""', [False, True]),
        ('class A:\n    @property\n    def f(self):\n        """The name."""', [False]),
        ('class A:\n    @functools.cached_property\n    def f(self):\n        """Whether it is."""', [True]),
        ('class A:\n    b: int\n    """How many there are."""', [True]),
        ('"""What a module has."""', [True]),
        ('def f():\n    """Nobody, so far."""', [True]),
        ("def f(): ...", []),
    ],
)
def test_judging_docstrings(source: str, expected: list[bool]) -> None:
    assert [is_wrong(text, of_call=of_call) for _, text, of_call in docstrings(source)] == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def find_name(): ...", [True]),
        ("def name_of_tool(): ...", [True]),
        ("async def found(): ...", [False]),
        ("class A:\n    def of(self): ...\n    def is_on(self): ...\n    def _left(self): ...", [False, True]),
        ("class A:\n    @property\n    def left(self): ...", []),
        ("def text(): ...", [True]),
        ("def text_of(): ...", [False]),
    ],
)
def test_judging_names(source: str, expected: list[bool]) -> None:
    assert [is_verb(name) for _, name in functions(source)] == expected
