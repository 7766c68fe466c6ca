"""URI templates: what the compiler reads in one is what the protocol's library matches with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

import corpus
from amounts import choose
from stubwright import naming
from stubwright.compile.uritemplates import TemplateError, Variable, parse_variables

pytestmark = pytest.mark.corpus

PARTS = [
    *("a", "/", "?", "q={p}", "x://", "{b}", "{+c}", "{#d}", "{.e}", "{/f}", "{;g}", "{?h,i}", "{&j}", "{/k*}"),
    *("{;l*}", "{.m*}", "{?n*}", "{o:3}", "{r,s}", "{+t,u}", "{}", "{!v}", "{w.x}", "{ y}", "{z"),
]


@settings(max_examples=choose(corpus.VARIABLE, 150, 2000, 5000))
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5, unique=True).map("".join))
def test_the_library_reads_the_same(template: str) -> None:
    try:
        parsed = UriTemplate.parse(template)
    except InvalidUriTemplate:
        with pytest.raises(TemplateError):
            parse_variables(template)
        return
    optional = parsed.query_variable_names
    assert parse_variables(template) == tuple(
        Variable(each.name, each.explode, each.name not in optional) for each in parsed.variables
    )


@pytest.mark.parametrize(
    ("kind", "name", "method", "stem"),
    [
        ("read", "readme", "read_readme", "ReadReadme"),
        ("read", "In stock now", "read_in_stock_now", "ReadInStockNow"),
        ("prompt", "codeReview", "prompt_code_review", "PromptCodeReview"),
        ("prompt", "class", "prompt_class", "PromptClass"),
        ("prompt", "2 things", "prompt_2_things", "Prompt2Things"),
        ("read", "🙂", "read", "Read"),
    ],
)
def test_names_of_offers(kind: str, name: str, method: str, stem: str) -> None:
    made = naming.name_primitive("prompt" if kind == "prompt" else "read", name)
    assert (made.method, made.stem, made.module) == (method, stem, method)
    assert naming.name_primitive("read", name, "own_name").method == "own_name"
