"""Alerts on certificates, and on the operator that renews them.

Strimzi's operator renews its authorities 30 days before they end, and says when each ends. What is
left well after that day was not renewed.
"""

from __future__ import annotations

from infra.alerts.rules.alert import Alert, Scope

DAYS_LEFT = 21
SECONDS_PER_DAY = 86_400
FAILURES = 2


def alerts(scope: Scope) -> list[Alert]:
    """Return the alerts on certificates and reconciliations."""
    failures = "strimzi_reconciliations_failed_total"
    # The operator tells the namespace it looked after, in a label that the scrape's own hides,
    # unless whoever scrapes it lets it stand.
    failed = " or ".join(
        f'increase({failures}{{{label}="{scope.namespace}"}}[30m])'
        for label in ("exported_namespace", "namespace")
    )
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
            expression=f"sum by (kind) ({failed}) > {FAILURES}",
            minutes=15,
            severity="warning",
            summary="Strimzi fails to bring a {{ $labels.kind }} to its description, "
            "{{ $value | humanize }} times in half an hour.",
        ),
    ]
