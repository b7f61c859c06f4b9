"""The wait of a restarted broker for its load balancer, from the journal alone."""

from __future__ import annotations

from typing import Any

from local.demo.story import chain, outran_balancer

OWN, BOOTSTRAP = "local-harbour-10", "local-harbour-bootstrap"
POD, OLD, NEW = "harbour-broker-a-10", "10.11.8.2", "10.11.8.9"


def pod(at: float, event: str, address: str = NEW) -> dict[str, Any]:
    return {"at": at, "event": event, "pod": POD, "address": address}


def target(at: float, event: str, group: str, address: str = NEW) -> dict[str, Any]:
    return {"at": at, "event": event, "group": group, "target": address}


RESTART = [
    pod(10.0, "pod_containers_ready", OLD),
    target(10.1, "target_healthy", OWN, OLD),
    pod(11.0, "pod_ready", OLD),
    pod(100.0, "pod_containers_ready"),
    target(100.1, "target_registered", OWN),
    target(101.0, "target_registered", BOOTSTRAP),
    target(106.2, "target_healthy", OWN),
    target(107.2, "target_healthy", BOOTSTRAP),
    pod(110.0, "pod_ready"),
]


def test_each_step_counts_from_the_last_start_to_the_slowest_group() -> None:
    measured = chain(RESTART, 10, [OWN, BOOTSTRAP])
    assert measured == {"registered_after_s": 1.0, "healthy_after_s": 7.2, "ready_after_s": 10.0}
    assert not outran_balancer(measured)


def test_a_pod_that_is_ready_before_one_of_its_groups_agrees_outran_it() -> None:
    early = [*RESTART[:-1], pod(106.5, "pod_ready")]
    early.sort(key=lambda record: record["at"])
    assert outran_balancer(chain(early, 10, [OWN, BOOTSTRAP]))


def test_a_group_that_never_agreed_is_not_overlooked() -> None:
    without = [r for r in RESTART if r.get("group") != BOOTSTRAP]
    measured = chain(without, 10, [OWN, BOOTSTRAP])
    assert measured["healthy_after_s"] is None
    assert outran_balancer(measured)


def test_a_broker_that_did_not_start_has_no_chain() -> None:
    assert chain(RESTART, 20, [OWN, BOOTSTRAP])["ready_after_s"] is None
