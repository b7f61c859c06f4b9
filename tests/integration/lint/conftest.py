"""What the linters look at: recorded programs, and charts that the twin itself does not run."""

from __future__ import annotations

import pytest

from local.tools import build
from local.tools.catalogue import CHARTS


@pytest.fixture(scope="session", autouse=True)
def _karpenter() -> None:
    """Karpenter's charts, fetched where the cache lacks them."""
    build.build(CHARTS["karpenter"])
