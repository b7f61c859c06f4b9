"""What the linters look at: recorded programs, and charts that the twin itself does not run."""

from __future__ import annotations

import pytest

from local.tools import build
from local.tools.catalogue import CHARTS
from tests.unit.infra.fixtures import cache

__all__ = ["cache", "karpenter"]


@pytest.fixture(scope="session")
def karpenter() -> None:
    """Karpenter's charts, fetched where the cache lacks them."""
    build.build(CHARTS["karpenter"])
