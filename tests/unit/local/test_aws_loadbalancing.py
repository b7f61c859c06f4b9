"""What the twin's load balancer thinks of a target, and when."""

from __future__ import annotations

import pytest

from local.aws.loadbalancing import (
    DEREGISTERING,
    FAILED_CHECKS,
    FIRST_CHECKS,
    REGISTERING,
    REGISTRATION_SECONDS,
    Checks,
    RegisteredTarget,
)

CHECKS = Checks(
    interval_seconds=5,
    timeout_seconds=5,
    healthy_threshold=2,
    unhealthy_threshold=2,
    deregistration_seconds=30,
)


@pytest.fixture
def target() -> RegisteredTarget:
    return RegisteredTarget("10.11.1.5", 9094, registered_at=100.0)


def healthy(target: RegisteredTarget) -> RegisteredTarget:
    target.record(CHECKS, 101.0, ok=True)
    target.record(CHECKS, 106.0, ok=True)
    assert target.state == "healthy"
    return target


def test_a_target_is_first_asked_once_it_is_registered(target: RegisteredTarget) -> None:
    assert (target.state, target.reason) == ("initial", REGISTERING)
    assert not target.is_due(100.0)
    assert target.is_due(100.0 + REGISTRATION_SECONDS)


def test_a_new_target_is_healthy_after_the_threshold_and_not_before(
    target: RegisteredTarget,
) -> None:
    assert not target.record(CHECKS, 101.0, ok=True)
    assert (target.state, target.reason) == ("initial", FIRST_CHECKS)
    assert not target.is_due(105.9)
    assert target.is_due(106.0)
    assert target.record(CHECKS, 106.0, ok=True)
    assert (target.state, target.reason) == ("healthy", None)


def test_one_failed_check_does_not_make_a_healthy_target_unhealthy(
    target: RegisteredTarget,
) -> None:
    healthy(target)
    assert not target.record(CHECKS, 111.0, ok=False)
    assert not target.record(CHECKS, 116.0, ok=True)
    assert target.state == "healthy"


def test_a_run_of_failed_checks_does(target: RegisteredTarget) -> None:
    healthy(target)
    target.record(CHECKS, 111.0, ok=False)
    assert target.record(CHECKS, 116.0, ok=False)
    assert (target.state, target.reason) == ("unhealthy", FAILED_CHECKS)


def test_a_draining_target_is_asked_no_more_and_goes_after_its_delay(
    target: RegisteredTarget,
) -> None:
    healthy(target).drain(CHECKS, 200.0)
    assert (target.state, target.reason) == ("draining", DEREGISTERING)
    assert not target.is_due(300.0)
    assert not target.over(229.9)
    assert target.over(230.0)


def test_a_check_that_was_under_way_does_not_revive_a_draining_target(
    target: RegisteredTarget,
) -> None:
    target.record(CHECKS, 101.0, ok=True)
    target.drain(CHECKS, 102.0)
    assert not target.record(CHECKS, 102.1, ok=True)
    assert target.state == "draining"


def test_draining_twice_does_not_begin_again(target: RegisteredTarget) -> None:
    target.drain(CHECKS, 200.0)
    target.drain(CHECKS, 220.0)
    assert target.over(230.0)
