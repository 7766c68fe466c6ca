"""Hides secrets in commands and URLs, and detects them in a server's lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from stubwright_runtime.observability.redaction import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HIDDEN: Final = "…"
"""The replacement for a secret."""

_USER: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#]*@", re.IGNORECASE)
_QUERY: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?#]*)\?[^\s#]*", re.IGNORECASE)
_OPTION: Final = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)")
_KEY_OPTIONS: Final = frozenset({"-k", "-K"})
"""The short forms of `--key` and `--api-key`."""

_ASSIGNMENT: Final = re.compile(r"(?P<start>(?:--?)?(?P<name>[A-Za-z_][\w.-]*)\s*[=:]\s*)\S.*", re.DOTALL)
_STARTS: Final = r"gh[opsu]_|github_pat_|glpat-|hf_|sk-|xox[abp]-|AKIA"
_TOKEN: Final = re.compile(rf"\b(?:Bearer\s+|Basic\s+|{_STARTS}|eyJ)[\w.~+/=-]{{10,}}")
"""Tokens with a known prefix (GitHub, GitLab, Slack and others), and JWTs."""

_TOKEN_IN_PROSE: Final = re.compile(rf"\b(?:(?:Bearer|Basic)\s+(?=\S*\d)|{_STARTS})[\w.~+/=-]{{10,}}")
"""`_TOKEN` without phrases such as "basic information", and without JWTs, which cursors resemble."""

_NAME: Final = re.compile(r"\$\{([^}]+)\}")
_SHORTEST: Final = 4  # shorter values match parts of words by chance
_SHORTEST_LISTED: Final = 8


def hide_in_url(text: str) -> str:
    """Hide the users, passwords and queries of all URLs in a string."""
    return _QUERY.sub(rf"\1?{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))


def hide_in_command(words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Replace the values of variables in a command with `${NAME}`, and other secrets with `…`.

    Args:
        words: The command and its arguments.
        variables: The command's environment variables.
    """
    shown: list[str] = []
    follows_option = False
    for word in words:
        option = _OPTION.fullmatch(word)
        if follows_option and option is None:
            hidden = put_names(word, variables)
            shown.append(hidden if hidden != word else HIDDEN)
        else:
            shown.append(_hide_in_word(put_names(word, variables)))
        follows_option = option is not None and (word in _KEY_OPTIONS or is_secret_name(option["name"]))
    return tuple(shown)


def hide_tokens(text: str, mark: str) -> str:
    """Replace likely tokens in a string, except JWTs, with a placeholder."""
    return _TOKEN_IN_PROSE.sub(mark, text)


def put_names(word: str, variables: Mapping[str, str]) -> str:
    """Replace the values of variables in an argument with `${NAME}`."""
    # Longest first, since one value can contain another.
    for name, value in sorted(variables.items(), key=lambda item: -len(item[1])):
        if len(value) >= _SHORTEST:
            word = word.replace(value, f"${{{name}}}")
    return word


def put_values(text: str, variables: Mapping[str, str]) -> str:
    """Replace each `${NAME}` in a string with the variable's value; the inverse of `put_names`."""
    return _NAME.sub(lambda match: variables.get(match[1], match[0]), text)


def _hide_in_word(word: str) -> str:
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment is not None and "${" not in word:
        start: str = assignment["start"]
        if start.rstrip("=: ") in _KEY_OPTIONS or is_secret_name(assignment["name"]):
            return f"{start}{HIDDEN}"
    return hide_in_url(_TOKEN.sub(HIDDEN, word))


def list_values(url: str, headers: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the secrets sent to a server, as pairs of a name for messages and the secret."""
    parts = urlsplit(url)
    named = [*headers.items(), *variables.items(), *parse_qsl(parts.query)]
    for name, value in named:
        if is_secret_name(name):
            yield from (
                (name, secret) for secret in dict.fromkeys((value, value.rpartition(" ")[2]))
            )  # also without `Bearer`
    if parts.password:
        yield "the password of the URL", unquote(parts.password)


def find_leak(value: Any, secrets: Iterable[tuple[str, str]]) -> str | None:
    """Return the name of the first secret that a JSON value contains, or None."""
    texts = [*_list_texts(value)]
    for name, secret in secrets:
        if len(secret) >= _SHORTEST_LISTED and any(secret in text for text in texts):
            return name
    return None


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _list_texts(item)
