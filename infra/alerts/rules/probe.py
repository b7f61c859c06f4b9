"""Alerts on what clients see: the probe's error budget burns too fast, or nobody probes.

The windows and their limits are core.availability.budget's; a long and a short one must agree.
"""

from __future__ import annotations

from core.availability.budget import HOUR, WINDOWS, BudgetWindow
from core.settings.probe import ATTEMPTS, FAILED
from infra.alerts.rules.alert import Alert, Scope

SILENT_MINUTES = 10


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on the probe; none where there is none."""
    if scope.spec.probe is None:
        return []
    fast = [window for window in WINDOWS if window.severity == "critical"]
    slow = [window for window in WINDOWS if window.severity == "warning"]
    said = "of the clients' error budget of 30 days, and burning still"
    return [
        Alert(
            name="KafkaClientsFail",
            expression=" or ".join(_burns(scope, window) for window in fast),
            minutes=0,
            severity="critical",
            summary=f"Attempts of the probe fail: 2 % in an hour or 5 % in six {said}.",
        ),
        Alert(
            name="KafkaClientsFailSlowly",
            expression=" or ".join(_burns(scope, window) for window in slow),
            minutes=0,
            severity="warning",
            summary=f"Attempts of the probe fail now and then: 10 % in a day or three {said}.",
        ),
        Alert(
            name="KafkaProbeSilent",
            expression=f"(sum(rate({ATTEMPTS}{scope.kafka}[5m])) or vector(0)) == 0",
            minutes=SILENT_MINUTES,
            severity="warning",
            summary="Nobody probes: what clients see is unknown, and no alert on it can fire.",
        ),
    ]


def _budget(scope: Scope) -> float:
    """Return the share of attempts that may fail."""
    probe = scope.spec.probe
    return 0.0 if probe is None else 1 - probe.objective_percent / 100


def _burns(scope: Scope, window: BudgetWindow) -> str:
    """Return an expression that holds while both windows burn faster than the limit."""
    limit = f"{window.burn_rate * _budget(scope):.6g}"
    long, short = (
        _failing(scope, seconds) for seconds in (window.long_seconds, window.short_seconds)
    )
    return f"({long} > {limit} and {short} > {limit})"


def _failing(scope: Scope, seconds: int) -> str:
    """Return the share of attempts that failed in so many seconds."""
    over = f"[{seconds // HOUR}h]" if seconds % HOUR == 0 else f"[{seconds // 60}m]"
    failed, all_ = (f"sum(rate({name}{scope.kafka}{over}))" for name in (FAILED, ATTEMPTS))
    return f"{failed} / {all_}"
