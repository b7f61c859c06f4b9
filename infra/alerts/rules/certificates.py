"""Alerts on certificates, and on the operator that renews them.

Strimzi's operator renews its authorities 30 days before they end, and says when each ends. What is
left well after that day was not renewed.
"""

from __future__ import annotations

from infra.alerts.rules.alert import Alert, Scope

DAYS_LEFT = 21
SECONDS_PER_DAY = 86_400
FAILURES = 2
# How long failures are counted, and how long a pod's wait for a node excuses them.
COUNTED_MINUTES, EXCUSED_MINUTES = 30, 35


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on certificates and reconciliations."""
    # 1 after a reconciliation that succeeded, 0 after one that failed.
    state = f'strimzi_resource_state{{resource_namespace="{scope.namespace}"}}'
    failing = f"min by (kind) ({state}) == 0"
    failures = "strimzi_reconciliations_failed_total"
    # The operator tells the namespace it looked after, in a label that the scrape's own hides,
    # unless whoever scrapes it lets it stand.
    failed = " or ".join(
        f'increase({failures}{{{label}="{scope.namespace}"}}[{COUNTED_MINUTES}m])'
        for label in ("exported_namespace", "namespace")
    )
    # A pod that waits for its node fails a reconciliation at once, and several within seconds: in
    # every rotation. KafkaPodPending says it where that lasts.
    excused = f"count_over_time(({scope.pending})[{EXCUSED_MINUTES}m:1m])"
    return [
        Alert(
            name="KafkaCertificateExpires",
            expression=f"{scope.certificate_seconds} < {DAYS_LEFT * SECONDS_PER_DAY}",
            minutes=60,
            severity="critical",
            summary="The {{ $labels.type }} certificate ends in {{ $value | humanizeDuration }} "
            "and was not renewed.",
        ),
        Alert(
            name="StrimziReconciliationFails",
            expression=f"({failing} unless on () ({scope.pending})) "
            f"or (sum by (kind) ({failed}) > {FAILURES} unless on () ({excused}))",
            minutes=15,
            severity="warning",
            summary="Strimzi fails to bring a {{ $labels.kind }} to its description.",
        ),
    ]
