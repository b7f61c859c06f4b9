"""core.health.connect: what a pod waits for, and for how long it may."""

from __future__ import annotations

from dataclasses import replace

from core.health.pods import PodSeen, no_pod, pod_verdict
from core.health.verdict import Health
from tests.every_case import every_case

NOW = 10_000.0
READY = PodSeen(
    name="orders-broker-a-10",
    node_id=10,
    created_at=NOW - 4_000,
    node_name="ip-1",
    ready=True,
    containers_ready=True,
    gates={"target-health/orders-broker-10": True},
    started_at=NOW - 3_990,
)
SHUT = {"target-health/orders-broker-10": False}


@every_case(
    ("changes", "health", "words"),
    [
        ({}, Health.HEALTHY, "Ready on ip-1"),
        ({"stopping": True}, Health.DEGRADED, "being stopped"),
        (
            {"node_name": None, "started_at": None, "ready": False, "unscheduled": "0/6 nodes."},
            Health.UNHEALTHY,
            "is not scheduled: 0/6 nodes, for 4000 s",
        ),
        (
            {"node_name": None, "started_at": None, "ready": False, "created_at": NOW - 5},
            Health.STARTING,
            "is not scheduled, for 5 s",
        ),
        (
            {
                "ready": False,
                "started_at": None,
                "waiting": "CrashLoopBackOff",
                "stuck": True,
                "restarts": 7,
            },
            Health.UNHEALTHY,
            "after 7 restarts: CrashLoopBackOff",
        ),
        ({"ready": False, "started_at": NOW - 9}, Health.STARTING, "is not Ready, for 9 s"),
        ({"ready": False}, Health.UNHEALTHY, "is not Ready, for 3990 s"),
        ({"ready": False, "unready_since": NOW - 5}, Health.UNHEALTHY, "is not Ready, for 5 s"),
        (
            {"ready": False, "gates": SHUT, "unready_since": NOW - 7},
            Health.DEGRADED,
            "gate target-health/orders-broker-10, for 7 s",
        ),
        ({"ready": False, "gates": SHUT}, Health.DEGRADED, "gate target-health/orders-broker-10"),
        ({"ready": False, "gates": SHUT, "started_at": NOW - 9}, Health.STARTING, "gate"),
    ],
)
def test_a_pods_verdict_says_what_it_waits_for(
    changes: dict[str, object], health: Health, words: str
) -> None:
    verdict = pod_verdict(replace(READY, **changes), NOW)  # type: ignore[arg-type]
    assert (verdict.health, words in verdict.reason) == (health, True), verdict.reason


def test_how_long_a_pod_may_start_is_its_own() -> None:
    starting = replace(READY, ready=False, started_at=NOW - 400)
    assert pod_verdict(starting, NOW).health is Health.UNHEALTHY
    assert pod_verdict(starting, NOW, 500).health is Health.STARTING


def test_a_container_that_waits_does_not_run() -> None:
    assert replace(READY, started_at=None).running_seconds(NOW) is None
    assert READY.running_seconds(NOW) == 3_990


def test_what_has_no_pod_is_unhealthy() -> None:
    assert no_pod("Kafka node 20").health is Health.UNHEALTHY
