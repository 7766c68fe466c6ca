"""Plain English in texts and commits: `voice` has the patterns to avoid, and their number may only fall."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT

import ratchets
import sources
import voice

PACKAGES = {package.name: package for package in ratchets.PACKAGES}

CLAUSES = {"What", "Who", "Whom", "Whose", "Whoever", "Whether", "Where", "Which", "How", "When", "Why"}
VAGUE = {"Something", "Somebody", "Anything", "Anybody", "Nothing", "Nobody"}
NOUNS = {"The", "A", "An", "Of", "No", "All", "Each", "Every"}
NO_CALLS = {"property", "cached_property", "getter", "setter", "deleter"}
"""Decorators of attributes, which a noun phrase describes."""

BEFORE_THE_RULE = "10e32fcc"
"""The last commit with a subject in the old style."""

SUBJECT = re.compile(r"[a-z][a-z0-9 ,./-]*: [a-z`].*")
LONGEST_SUBJECT = 72


@pytest.mark.parametrize("folder", ratchets.WRITTEN, ids=lambda folder: folder.name)
def test_no_file_gains_foreign_english(folder: Path) -> None:
    if reason := ratchets.explain_rise("voice", ratchets.count_voice(folder)):
        pytest.fail(reason, pytrace=False)


@pytest.mark.parametrize(
    ("name", "foreign", "native"),
    [
        ("tell-whether", "Tell whether it fits.", "Return whether it fits."),
        ("takes-gives", "Takes text; gives tokens.", "Tokenizes text."),
        ("nothing-that", "Read nothing of the body.", "Do not read the body."),
        ("one-that", "a key, and one that expired", "a key, and an expired key"),
        ("those-of", "its tools and those of others", "its tools and other tools"),
        ("what-is", "the size of what is sent", "the size of the message"),
        ("says-of", "what MCP says nothing of", "what MCP does not constrain"),
        ("program-speaks", "The server says that it stops.", "The server reports a shutdown."),
        ("is-there", "while the store is away", "while the store is unavailable, if there is a store"),
        ("have-not", "a tool that has not any", "a tool that has not been called"),
        ("stands", "The name stands in the manifest.", "The name is in the manifest."),
        ("as-it-is", "Send the schema as it is.", "Send the schema unchanged."),
        ("but-for", "all files but the lock", "all files except the lock"),
        ("all-the-same", "Read it all the same.", "Read it anyway."),
        ("of-which", "files, of which most are small", "files; most are small"),
        ("leads-to", "a reference that leads to itself", "a reference that resolves to itself"),
        ("takes-for", "to take text for a number", "to treat text as a number"),
        ("leave-out", "to leave out the default", "to omit the default"),
        ("keep-of", "Sessions are kept for an hour.", "Sessions expire after an hour."),
        ("have-verb", "Have the server wait.", "Make the server wait."),
        ("give-back", "It gives back the lock.", "It releases the lock."),
        ("somebody", "whoever asks", "any client that asks"),
        ("object-first", "Of each file, the digest.", "The digest of each file."),
    ],
)
def test_patterns(name: str, foreign: str, native: str) -> None:
    assert name in [pattern.name for pattern in voice.find_patterns(foreign)]
    assert voice.find_patterns(native) == []


def _list_texts(source: str) -> list[tuple[int, str]]:
    return [*voice.list_texts(source, ast.walk(ast.parse(source)))]


def test_texts_of_a_file() -> None:
    source = """
        '''A docstring.'''
        value = 1  # a comment of some words
        '''Short.'''
        message = f"three {words} and more # no comment"
        key = "two words"
        def f(): "Return it."
    """
    texts = [text for _, text in _list_texts("\n".join(map(str.strip, source.splitlines())))]
    assert sorted(texts) == [
        "A docstring.",
        "Return it.",
        "Short.",
        "a comment of some words",
        "three `x` and more # no comment",
    ]


def test_a_failure_lists_the_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voice.json").write_text("{}")
    (tmp_path / "windows.py").write_text(f"import os\n\n# {'long ' * 20}and one that closes{' long' * 20}\n")
    monkeypatch.setattr(ratchets, "_TABLES", tmp_path)
    monkeypatch.setattr(ratchets, "ROOT", tmp_path)
    assert ratchets.explain_rise("voice", ratchets.count_voice(tmp_path)).splitlines() == [
        "Lower these numbers again, or give the reason in the commit and run `python tests/support/ratchets.py voice`:",
        "  windows.py: 0 → 1 (+1)",
        "`python tests/support/voice.py windows.py` lists the texts:",
        f"  windows.py:3: one-that (repeat the noun): …{'long ' * 7}and one that closes{' long' * 6} lo…",
    ]


def _list_subjects() -> list[str]:
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this is no checkout")
    command = ["git", "log", "--no-merges", "--format=%s", f"{BEFORE_THE_RULE}..HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the history does not go back to {BEFORE_THE_RULE}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def test_commits() -> None:
    """CONTRIBUTING.md has the rule, and examples."""
    wrong = [
        subject
        for subject in _list_subjects()
        if not SUBJECT.fullmatch(subject)
        or len(subject) > LONGEST_SUBJECT
        or voice.find_patterns(subject.partition(": ")[2])
    ]
    assert wrong == []


def _is_called(function: ast.AST) -> bool:
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    names = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
    return names.isdisjoint(NO_CALLS)


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the text of each docstring, also of attributes, and whether a function has it."""
    for node in nodes:
        body = getattr(node, "body", None)
        for index, statement in enumerate(body if isinstance(body, list) else ()):
            match statement:
                case ast.Expr(value=ast.Constant(value=str() as text)):
                    yield statement.lineno, text.strip(), index == 0 and _is_called(node)
                case _:
                    pass


def is_wrong(docstring: str, *, of_call: bool) -> bool:
    """Return whether a docstring begins with a clause, or the docstring of a function without an imperative."""
    words = re.findall(r"\w+", docstring)[:2]
    if words[0] in {"Return", "Yield"}:
        return words[1].capitalize() in (CLAUSES | VAGUE) - {"Whether"}
    return words[0] in (CLAUSES | VAGUE | NOUNS if of_call else CLAUSES | VAGUE)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_say_things_plainly(package: str) -> None:
    wrong = [
        f"{path}:{line}: {text.splitlines()[0]}"
        for path in sorted(PACKAGES[package].rglob("*.py"))
        for line, text, of_call in docstrings(sources.walk(path))
        if is_wrong(text, of_call=of_call)
    ]
    assert wrong == []


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
    assert [is_wrong(text, of_call=of_call) for _, text, of_call in docstrings(ast.walk(ast.parse(source)))] == expected
