"""Servers of these tests that end late end at once, so that they are not watched for long."""

from __future__ import annotations

import pytest

from stubwright.contract_tests import crashes


@pytest.fixture(autouse=True)
def watch_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crashes, "LAST_MOMENT", 0.2)
