"""Names of methods and classes for resources and prompts."""

from __future__ import annotations

import pytest

from stubwright import naming


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
