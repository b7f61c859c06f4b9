"""How several verdicts become one."""

from __future__ import annotations

from core.health.verdict import SEVERITY, STATUS_CODES, Health, HealthVerdict, worst


def test_one_unhealthy_part_outweighs_every_other() -> None:
    parts = [HealthVerdict(health, "") for health in Health]
    assert worst(parts) is Health.UNHEALTHY


def test_unknown_outweighs_degraded_and_starting() -> None:
    parts = [HealthVerdict(h, "") for h in (Health.DEGRADED, Health.UNKNOWN, Health.STARTING)]
    assert worst(parts) is Health.UNKNOWN


def test_of_no_parts_nothing_is_known() -> None:
    assert worst([]) is Health.UNKNOWN


def test_every_health_has_its_severity_and_its_status() -> None:
    assert set(SEVERITY) == set(STATUS_CODES) == set(Health)
