"""Constructions that native engineers do not write: a table of patterns, and the texts of Python files to search.

`python tests/support/voice.py FILE…` lists the texts that contain one, and what to write instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sources

_FEWEST_WORDS: Final = 4  # shorter strings are mostly keys and names
_AROUND: Final = 40  # characters of an excerpt on each side of a match


@dataclass(frozen=True)
class Pattern:
    """A construction to avoid, and what to write instead."""

    name: str
    expression: re.Pattern[str]
    instead: str


def _pattern(name: str, expression: str, instead: str) -> Pattern:
    return Pattern(name, re.compile(expression, re.MULTILINE), instead)


_CLAUSE_VERBS = "by|of|to|for|with|from|in|on|after|before|about|and|or|than|is|are|show|shows"
_CLAUSE_WORDS = "is|are|was|it|they|a|an|the|has|have|others?|users?|clients?|one|we|no"
_DONE_BY_PEOPLE = "wait|read|end|run|answer|answered|say|send|start|write|use|know|take|call|called|stop|hear|give"
_CAN_FOLLOW_NOT = r"\w+(?:ed|en|nt|ght)\b| (?:been|yet|be|read|begun|set|sent|run|done|come|put)"

PATTERNS: Final = (
    _pattern("tell-whether", r"^(?:Tell|See|Say) (?:whether|if|the protocol)\b", "Return whether …"),
    _pattern("takes-gives", r"^\s*Takes? [^.]*; (?:gives|returns) ", "one sentence that says what the module does"),
    _pattern("nothing-that", r"\b[Nn]othing (?:of|that|is|but|else|has|can|to)\b", "do not …; no X"),
    _pattern("one-that", r"\bones? (?:that|which|whose|of (?:which|them|it))\b", "repeat the noun"),
    _pattern(
        "those-of",
        r"(?<!so )\b(?:that|those) of\b|\b(?:that|those) (?:which|without|with|in|from)\b|\bthose that\b",
        "repeat the noun",
    ),
    _pattern("what-is", rf"\b(?:{_CLAUSE_VERBS}) what (?:{_CLAUSE_WORDS})\b", "name the thing"),
    _pattern("says-of", r"\b(?:tells?|told|hears?|heard|knows?|says?|said) (?:\w+ )?of\b", "report, mention, describe"),
    _pattern(
        "program-speaks",
        r"\b(?:says?|said|tells?|told|knows?|wants|hears?|asks?) "
        r"(?:so|that|what|which|where|whether|who|why|how|it|nothing|no)\b",
        "report, specify, require, detect",
    ),
    _pattern(
        "is-there",
        r"\b(?:is|are|was|were|be) (?:there|away|over|at hand|at an end|under way)\b"
        r"(?! (?:a|an|no|any|the|\d+|are|is)\b)",
        "exists, is unavailable, has ended",
    ),
    _pattern(
        "have-not", rf"\b(?:has|have|needs?) (?:not|none|no other)\b(?! {_CAN_FOLLOW_NOT})", "lacks, does not have"
    ),
    _pattern(
        "stands",
        r"\b(?:stands?|stood|lies?|lay) "
        r"(?:in|on|at|for|where|before|after|there|beside|next|above|below|alone|apart)\b",
        "is in, appears in",
    ),
    _pattern(
        "as-it-is", r"\bas (?:it|they|that) (?:is|are|was|were|stands?|came|comes?|goes)\b", "unchanged, verbatim"
    ),
    _pattern(
        "but-for",
        r"\b(?:beside|(?:but|save) for|but by|(?:none|nothing|all) but|but (?:one|the|of|those|that))\b",
        "except, only, next to",
    ),
    _pattern(
        "all-the-same",
        r"\b(?:all the same|for good|in vain|at (?:last|once)|anew|ever since|(?:as|so) far as|by itself"
        r"|a \w+ of (?:its|their) own)\b",
        "still, immediately, again, separate",
    ),
    _pattern(
        "of-which",
        r", (?:of|in|to|by|for|from|with|on|after|beside|without|behind) which\b|\bof whom\b"
        r"|\bso (?:many|much|long) (?:of|that|bytes|seconds|characters)\b|\bas (?:many|long|much) as\b",
        "two sentences",
    ),
    _pattern(
        "leads-to",
        r"\b(?:leads?|led) (?:to|out|back|nowhere|it)\b|\bgoes? (?:by|on with|out|there|back|away)\b"
        r"|\bcomes? (?:of|by)\b",
        "references, resolves to, is sent",
    ),
    _pattern(
        "takes-for",
        r"\b(?:takes?|took|taken) (?:\w+ ){0,3}for (?:a|an|one|granted|it|the)\b|\btakes? (?:\w+ )?(?:away|over)\b",
        "treat as",
    ),
    _pattern(
        "leave-out",
        r"\b(?:leave|leaves|left|leaving) (?:(?:it|them|that|all|a|the|no|nothing) ?\w* )?"
        r"(?:out|alone|behind|no|nothing|room|where|there)\b",
        "omit, ignore, keep",
    ),
    _pattern(
        "keep-of",
        r"\b(?:keeps?|kept|keeping) (?:\w+ )?(?:nothing|no|none|of|to itself|out|back|away|apart|silent)\b"
        r"|\b(?:is|are) kept\b",
        "store, retain",
    ),
    _pattern(
        "have-verb",
        rf"\bHave (?:a|an|the|each|every|it|its|this|no|\w+s|`\w+`|\w+)\b[\w `']{{0,40}}?\b(?:{_DONE_BY_PEOPLE})\b",
        "Make X wait; call",
    ),
    _pattern(
        "give-back",
        r"\b(?:gives?|gets?) (?:it|them|what|one|none|nothing|up|back|away|each)\b|; gives\b",
        "returns, receives, assigns",
    ),
    _pattern("somebody", r"\b(?:(?:who|wher|which)ever|(?:no|any|some|every)body)\b", "no client, any process"),
    _pattern(
        "object-first",
        r"(?:^|\. )(?:Of|From|Without|Beside|To|For) "
        r"(?:a|an|the|two|several|each|one|what|those|secrets|\w+s)\b[^,.]{0,40}, ",
        "subject first",
    ),
)


def find_patterns(text: str) -> list[Pattern]:
    """Return the patterns that occur in a text."""
    return [pattern for pattern in PATTERNS if pattern.expression.search(text)]


def list_texts(source: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, comment and longer string of a Python file.

    Args:
        source: The text of the file.
        nodes: All nodes of its syntax tree, outer ones first.
    """
    inside: set[int] = set()  # the strings that are parts of others, or that were docstrings
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            inside.add(id(node.value))
            yield node.lineno, node.value.value
        if isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))
            parts = (each.value if isinstance(each, ast.Constant) else "`x`" for each in node.values)
            if _is_prose(text := "".join(map(str, parts))):
                yield node.lineno, text
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield from [(node.lineno, node.value)] if _is_prose(node.value) else ()
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if "#" in source else ():
        if token.type == tokenize.COMMENT and _is_prose(text := token.string.lstrip("# ")):
            yield token.start[0], text


def _is_prose(text: str) -> bool:
    return text.count(" ") >= _FEWEST_WORDS - 1


def count_patterns(path: Path) -> int:
    """Return how often patterns occur in the texts of a Python file, each at most once in a text."""
    return sum(len(find_patterns(text)) for _, text in list_texts(sources.read(path), sources.walk(path)))


def list_hits(path: Path) -> Iterator[str]:
    """Yield the line, the pattern and an excerpt of each text of a Python file that contains a pattern."""
    for line, text in sorted(list_texts(sources.read(path), sources.walk(path))):
        for pattern in PATTERNS:
            if match := pattern.expression.search(text):
                start, end = max(0, match.start() - _AROUND), match.end() + _AROUND
                excerpt = f"{'…' * bool(start)}{' '.join(text[start:end].split())}{'…' * (end < len(text))}"
                yield f"{line}: {pattern.name} ({pattern.instead}): {excerpt}"


def main() -> int:
    """List the texts of files that contain a pattern."""
    found = 0
    for path in map(Path, sys.argv[1:]):
        for hit in list_hits(path):
            print(f"{path}:{hit}")
            found += 1
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
