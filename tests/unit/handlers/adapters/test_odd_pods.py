"""handlers.adapters.pods: a pod whose times are missing costs no other pod its word."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.adapters.pods import pod_seen

CREATED = 1_795_132_800.0


def item(created: object, running: dict[str, Any] | None) -> dict[str, Any]:
    labels = {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a"}
    states = [] if running is None else [{"name": "kafka", "state": {"running": running}}]
    return {
        "metadata": {"name": "orders-broker-a-10", "labels": labels, "creationTimestamp": created},
        "status": {"containerStatuses": states},
    }


@pytest.mark.parametrize(
    ("created", "running", "seen"),
    [
        (None, None, (None, None)),
        ("", None, (None, None)),
        ("yesterday", {"startedAt": "2026-11-20T00:00:00Z"}, (None, CREATED)),
        ("2026-11-20T00:00:00Z", {}, (CREATED, CREATED)),
        # Nothing says that it is young.
        (None, {"startedAt": None}, (None, 0.0)),
    ],
    ids=["no time", "an empty one", "no time but its start", "no start", "neither"],
)
def test_times_that_are_missing_are_not_made_up_to_be_young(
    created: object, running: dict[str, Any] | None, seen: tuple[float | None, float | None]
) -> None:
    found = pod_seen(item(created, running))
    assert found is not None
    assert (found.created_at, found.started_at) == seen
