"""Pages that tools reference, and URI templates that can match them."""

from __future__ import annotations

import pytest

from stubwright.compile.audience.hosts import _may_match


@pytest.mark.parametrize(
    ("template", "uri", "expected"),
    [
        ("ui://a/b", "ui://a/b", True),
        ("ui://a/b", "ui://a/bc", False),
        ("ui://{city}/map", "ui://rome/map", True),
        ("ui://{city}/map", "ui://rome/maps", False),
        ("ui://{city}/map/{zoom}", "ui://rome/map/7", True),
        ("ui://{city}/map/{zoom}", "ui://rome/7", False),
        ("ui://a{x}a", "ui://a", False),
        ("ui://{x}-{y}-{z}", "ui://1-2-3", True),
        ("ui://{x}{/rest*}", "ui://1/2/3", True),
        ("x://{x}", "ui://1", False),
        (f"ui://{'{x}-' * 60}end", f"ui://{'a-' * 5_000}stop", False),  # in no time, however many variables there are
    ],
)
def test_a_template_may_be_of_a_uri(template: str, uri: str, expected: bool) -> None:
    assert _may_match(template, uri) is expected
