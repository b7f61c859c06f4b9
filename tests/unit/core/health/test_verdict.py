"""How several verdicts become one."""

from __future__ import annotations

from core.health.verdict import SEVERITY, STATUS_CODES, Health


def test_every_health_has_its_severity_and_its_status() -> None:
    assert set(SEVERITY) == set(STATUS_CODES) == set(Health)
