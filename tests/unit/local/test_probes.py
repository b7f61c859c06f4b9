"""When a probe is asked, and what its answers come to."""

from concurrent.futures import Future
from typing import Any

import pytest

from local.kubernetes.probes import ProbeKind, ProbeRun, ProbeSet, ProbeTarget, Schedule, ask


def track(role: ProbeKind, **figures: Any) -> ProbeRun:
    return ProbeRun(role, Schedule.of(figures), started_at=100.0)


class Answers:
    """Gives each probe the answer set for its role, at once or when told to."""

    def __init__(self) -> None:
        self.asked: list[ProbeKind] = []
        self.ok: dict[ProbeKind, bool] = {}
        self.pending: list[Future[tuple[bool, str]]] = []

    def __call__(self, probe: ProbeRun) -> Future[tuple[bool, str]]:
        self.asked.append(probe.role)
        answer: Future[tuple[bool, str]] = Future()
        if probe.role in self.ok:
            answer.set_result((self.ok[probe.role], ""))
        self.pending.append(answer)
        return answer


def test_the_figures_left_out_are_the_apis_defaults() -> None:
    assert Schedule.of({}) == Schedule(
        initial_delay_seconds=0,
        period_seconds=10,
        timeout_seconds=1,
        failure_threshold=3,
        success_threshold=1,
    )


def test_a_probe_is_asked_after_its_delay_and_then_every_period() -> None:
    probe = track(ProbeKind.READINESS, initialDelaySeconds=15, periodSeconds=5)
    assert not probe.is_due(114.9)
    assert probe.is_due(115.0)
    probe.record(ok=True, now=116.0)
    assert not probe.is_due(120.9)
    assert probe.is_due(121.0)


def test_readiness_turns_after_as_many_equal_answers_in_a_row_as_its_thresholds() -> None:
    probe = track(ProbeKind.READINESS, successThreshold=2, failureThreshold=3)
    for ok, passing in [
        (True, False),
        (False, False),
        (True, False),
        (True, True),
        (False, True),
        (False, True),
        (True, True),
        (False, True),
        (False, True),
        (False, False),
    ]:
        probe.record(ok=ok, now=0.0)
        assert probe.passing is passing


def test_liveness_holds_until_it_has_failed_often_enough() -> None:
    probe = track(ProbeKind.LIVENESS, failureThreshold=2)
    assert probe.passing
    probe.record(ok=False, now=0.0, message="no")
    assert not probe.failed
    probe.record(ok=False, now=0.0, message="still no")
    assert probe.failed
    assert probe.message == "still no"


def test_liveness_and_readiness_wait_for_startup() -> None:
    answers = Answers()
    container = {role.value: {"periodSeconds": 1} for role in ProbeKind}
    probes = ProbeSet(container, started_at=0.0, ask=answers)
    probes.step(0.0)
    assert answers.asked == [ProbeKind.STARTUP]
    assert not probes.started
    assert not probes.ready
    answers.pending[0].set_result((True, ""))
    probes.step(0.5)
    assert probes.started
    assert set(answers.asked) == set(ProbeKind)


def test_a_probe_that_has_not_answered_is_not_asked_again_and_sets_no_time() -> None:
    answers = Answers()
    probes = ProbeSet({"readinessProbe": {"periodSeconds": 1}}, started_at=0.0, ask=answers)
    assert probes.step(0.0) == float("inf")
    probes.step(50.0)
    assert answers.asked == [ProbeKind.READINESS]
    answers.pending[0].set_result((True, ""))
    assert probes.step(50.5) == 51.5
    assert probes.ready


def test_a_startup_that_never_comes_demands_a_restart_but_readiness_never_does() -> None:
    answers = Answers()
    answers.ok = dict.fromkeys(ProbeKind, False)
    figures = {"periodSeconds": 1, "failureThreshold": 2}
    starting = ProbeSet({"startupProbe": figures}, started_at=0.0, ask=answers)
    unready = ProbeSet({"readinessProbe": figures}, started_at=0.0, ask=answers)
    for second in range(6):
        starting.step(float(second))
        unready.step(float(second))
    failure = starting.failure()
    assert failure is not None
    assert failure.role is ProbeKind.STARTUP
    assert unready.failure() is None
    assert not unready.ready


def test_a_port_may_be_a_name_and_may_have_been_moved() -> None:
    container = {"ports": [{"name": "liveness-probe", "containerPort": 8080}]}
    target = ProbeTarget("127.11.0.9", container, {}, {8080: 40123})
    assert target.address({"port": "liveness-probe"}) == ("127.11.0.9", 40123)
    assert target.address({"port": 8080}) == ("127.11.0.9", 40123)
    assert target.address({"port": "9092", "host": "127.11.0.8"}) == ("127.11.0.8", 9092)
    with pytest.raises(ValueError, match="no port named metrics"):
        target.address({"port": "metrics"})


def test_a_port_may_be_answered_by_another_process_at_its_own_address() -> None:
    target = ProbeTarget("127.11.0.9", {}, {}, {}, {8080: "127.11.250.11"})
    assert target.address({"port": 8080}) == ("127.11.250.11", 8080)
    assert target.address({"port": 9092}) == ("127.11.0.9", 9092)


@pytest.mark.parametrize(
    ("command", "timeout_seconds", "expected"),
    [
        (["/bin/sh", "-c", 'test "$ROLE" = broker'], 5.0, (True, "exit code 0")),
        (["/bin/sh", "-c", "echo not yet; exit 3"], 5.0, (False, "not yet")),
        (["/bin/sh", "-c", "exit 3"], 5.0, (False, "exit code 3")),
        (["/bin/sh", "-c", "sleep 30 & wait"], 0.2, (False, "no answer within 0.2 s")),
    ],
)
def test_a_command_answers_by_its_exit_code_within_its_time(
    command: list[str], timeout_seconds: float, expected: tuple[bool, str]
) -> None:
    target = ProbeTarget("127.0.0.1", {}, {"PATH": "/usr/bin:/bin", "ROLE": "broker"}, {})
    assert ask({"exec": {"command": command}}, target, timeout_seconds) == expected


@pytest.mark.parametrize("probe", [{"exec": {"command": ["/no/such"]}}, {"grpc": {"port": 1}}])
def test_a_probe_that_cannot_be_asked_fails_with_a_reason(probe: dict[str, Any]) -> None:
    ok, message = ask(probe, ProbeTarget("127.0.0.1", {}, {}, {}), 1.0)
    assert not ok
    assert message
