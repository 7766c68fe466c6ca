"""URI templates: parsing, expansion and matching, with the official SDK as the oracle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.uri_template import InvalidUriTemplate
from mcp.shared.uri_template import UriTemplate as Oracle

import corpus
from amounts import choose
from stubwright_runtime.mcp.uri_templates import LONGEST, TemplateError, UriTemplate

PARTS = [
    *("a", "/", "?", "q={p}", "x://", "{b}", "{+c}", "{#d}", "{.e}", "{/f}", "{;g}", "{?h,i}", "{&j}", "{/k*}"),
    *("{;l*}", "{.m*}", "{?n*}", "{o:3}", "{r,s}", "{+t,u}", "{}", "{!v}", "{w.x}", "{ y}", "{z", "{?aa}", "{;bb,cc}"),
    *("=", "{/dd,ee}", "#", "&ff={ff}", "{&gg}"),
]
VALUES = ["", "a", "b/c", "x y", "é", "=", "a=b", "%2F", "?", "#", "a;b", "g", "/", "..", "&", "a,b", ";g", "k"]
PIECES = [*VALUES, "q=", "x://", ";bb=", ";cc", "h=1", "i=", ";l=", ";l", "&gg=", "&j=", "ff=", "+"]


@settings(max_examples=choose(corpus.VARIABLE, 300, 3000, 30_000))
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6, unique=True).map("".join), st.data())
def test_templates_are_those_of_the_sdk(text: str, data: st.DataObject) -> None:
    try:
        oracle = Oracle.parse(text)
    except InvalidUriTemplate:
        with pytest.raises(TemplateError):
            UriTemplate.parse(text)
        return
    template = UriTemplate.parse(text)
    assert [(each.name, each.operator, each.many) for each in template.variables] == [
        (each.name, each.operator, each.explode) for each in oracle.variables
    ]
    assert template.optional == set(oracle.query_variable_names)
    values: dict[str, Any] = {
        each.name: data.draw(
            st.lists(st.sampled_from(VALUES), max_size=3) if each.explode else st.sampled_from(VALUES), label=each.name
        )
        for each in oracle.variables
        if data.draw(st.integers(0, 4))
    }
    uri = template.expand(values)
    assert uri == oracle.expand(values)
    pieces = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
    cut = data.draw(st.integers(0, len(uri)))
    for each in (uri, data.draw(pieces), uri[:cut] + data.draw(pieces) + uri[cut:]):
        assert template.match(each) == oracle.match(each)


@pytest.mark.parametrize(
    ("text", "uri", "values"),
    [
        ("docs://{name}", "docs://a%2Fb", {"name": "a/b"}),
        ("docs://{name}", "docs://a/b", None),
        ("docs://{name}", "docs://", {"name": ""}),
        ("docs://{+path}", "docs://a/b", {"path": "a/b"}),
        ("docs://x{/path*}", "docs://x/a/b", {"path": ["a", "b"]}),
        ("docs://x{/path*}", "docs://x", {"path": []}),
        ("logs://{day}{?from,to}", "logs://1?to=5&utm=x&to=6", {"day": "1", "to": "5"}),
        ("logs://{day}{?from,to}", "logs://1", {"day": "1"}),
        ("a://{x}-{y}", "a://1-2-3", {"x": "1-2", "y": "3"}),
        ("a://{x}/{+rest}.{end}", "a://1/b.c/d.e", {"x": "1", "rest": "b.c/d", "end": "e"}),
        ("a://b{;c}", "a://b;c", {"c": ""}),
        ("a://b{;c}", "a://b;c=1", {"c": "1"}),
    ],
)
def test_a_match(text: str, uri: str, values: dict[str, str | list[str]] | None) -> None:
    assert UriTemplate.parse(text).match(uri) == values


def test_the_longest_uri() -> None:
    template = UriTemplate.parse("a://{x}")
    assert template.match("a://".ljust(LONGEST, "x")) == {"x": "x" * (LONGEST - 4)}
    assert template.match("a://".ljust(LONGEST + 1, "x")) is None


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("a://{x", "it has an unmatched `{`", "write each variable in braces: `{city}`"),
        ("a://{x}{y}", "nothing separates `y` from the variable before it", "put a `/` between them"),
        ("a://{x}/{x}", "it has the variable `x` twice", "rename the second one"),
        ("a://{x:3}", "`{x:3}` has a prefix modifier, which servers cannot match", "remove it"),
        ("a://b{?x*}", "`{?x*}` is a list, which servers cannot match", "write it as `{/path*}`"),
        ("a://{=x}", "`{=x}` uses an operator that RFC 6570 reserves", "write `{name}`"),
        ("a://{+x}/{+y}", "two of its variables can each span several segments", "remove one"),
        ("a://b{?x}{?y}", "it has two queries", "write one, such as `{?from,to}`"),
    ],
)
def test_a_bad_template(text: str, message: str, fix: str) -> None:
    with pytest.raises(TemplateError) as raised:
        UriTemplate.parse(text)
    assert (str(raised.value), raised.value.fix) == (message, fix)
