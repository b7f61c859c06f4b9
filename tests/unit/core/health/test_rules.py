"""core.health: rule sets over the same observations, and what of the parts is the whole's."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.health.node import (
    NEVER,
    STATES,
    Limits,
    NodeMetrics,
    NodeObservation,
    Recovery,
    Role,
    add_metrics,
    parse,
)
from core.health.rules import (
    NOW,
    WELL,
    HealthCase,
    RuleSet,
    cases,
    is_alive,
    is_ready,
    liveness,
    probe_rules,
    readiness,
)
from core.health.verdict import (
    ASIDE,
    NEEDED,
    REDUNDANT,
    SEVERITY,
    STATUS_CODES,
    Health,
    HealthVerdict,
    Part,
    PartKind,
    cluster_health,
    document,
)
from tests.every_case import every_case

DATA = Path(__file__).parents[3] / "data" / "exporters"
BROKER, CONTROLLER, COMBINED = WELL[Role.BROKER], WELL[Role.CONTROLLER], WELL[Role.COMBINED]
GONE: dict[str, Any] = {
    "scraped": False,
    "broker_state": None,
    "raft_state": None,
    "apply_lag_seconds": None,
}


def passes(observed: NodeObservation, rules: RuleSet) -> tuple[bool, bool]:
    """Return whether liveness and readiness pass."""
    return is_alive(liveness(observed, rules)), is_ready(readiness(observed, rules))


@every_case("rules", RuleSet)
@every_case("role", Role)
def test_a_node_that_is_well_is_alive_and_ready(role: Role, rules: RuleSet) -> None:
    assert passes(WELL[role], rules) == (True, True)


@every_case("case", [c for c in cases() if c.well], ids=lambda c: c.what)
def test_what_is_well_by_intent_is_well_by_the_strict_rules(case: HealthCase) -> None:
    assert is_alive(liveness(case.observed))
    if not case.observed.recovering:
        assert is_ready(readiness(case.observed))


@every_case("case", [c for c in cases() if not c.well], ids=lambda c: c.what)
def test_strict_fails_what_is_not_well(case: HealthCase) -> None:
    assert not readiness(case.observed).healthy
    assert not all(passes(case.observed, RuleSet.STRICT)) or case.serves


@every_case("case", [c for c in cases() if c.shipped_green and not c.well], ids=lambda c: c.what)
def test_the_shipped_rules_stay_green_where_strict_is_not(case: HealthCase) -> None:
    assert passes(case.observed, RuleSet.SHIPPED) == (True, True)
    assert not readiness(case.observed).healthy


@every_case("role", Role)
def test_gauges_that_are_gone_are_unknown_and_the_source_is_named(role: Role) -> None:
    verdict = readiness(replace(WELL[role], broker_state=None, raft_state=None))
    assert verdict.health is Health.UNKNOWN
    wanted = {"broker": ["BrokerState"], "controller": ["raft current-state"]}
    names = wanted.get(role.value, ["BrokerState", "raft current-state"])
    assert verdict.missing == tuple(f"{name} of node 1" for name in names)


@every_case("role", Role)
def test_a_missed_scrape_restarts_nobody_and_is_unknown(role: Role) -> None:
    missed = replace(WELL[role], **GONE)
    assert is_alive(liveness(missed))
    assert readiness(missed).health is Health.UNKNOWN


def test_a_long_recovery_restarts_nobody_whatever_its_length() -> None:
    for age in (10.0, 3_600.0, 360_000.0):
        recovering = replace(
            BROKER, now=age, broker_state=2, listening={9091: False}, fenced=True,
            recovery={"/a": Recovery(12, 3)}, since_heartbeat_seconds=age,
        )  # fmt: skip
        assert is_alive(liveness(recovering))
        assert readiness(recovering).health is Health.STARTING


@pytest.mark.parametrize("state", [1, 2])
def test_a_broker_that_loads_its_logs_is_starting_though_it_applies_no_metadata(state: int) -> None:
    recovering = replace(
        BROKER, broker_state=state, fenced=True, apply_lag_seconds=300.0,
        recovery={"/a": Recovery(0, 0), "/b": Recovery(3, 0)},
    )  # fmt: skip
    verdict = readiness(recovering)
    assert verdict.health is Health.STARTING, verdict.reason
    assert is_alive(liveness(recovering))
    assert readiness(replace(recovering, recovery={}, broker_state=3)).health is Health.UNHEALTHY


def test_the_proposal_restarts_a_broker_in_a_long_recovery_which_opens_no_port() -> None:
    recovering = replace(BROKER, broker_state=2, listening={9091: False})
    assert not is_alive(liveness(recovering, RuleSet.PROPOSAL))


def test_a_recovery_that_stands_still_is_called_unhealthy_and_not_restarted() -> None:
    stalled = replace(BROKER, broker_state=2, recovery={"/a": Recovery(3, 0)}, recovery_moved_at=1)
    verdict = readiness(stalled)
    assert verdict.health is Health.UNHEALTHY
    assert "has not moved for 9999 s" in verdict.reason
    assert is_alive(liveness(stalled))


def test_the_directory_that_recovers_is_named_with_what_is_left() -> None:
    verdict = readiness(replace(BROKER, recovery={"/a": Recovery(0, 0), "/b": Recovery(3, 12)}))
    assert "/b: 3 logs and 12 segments left" in verdict.reason
    assert "/a" not in verdict.reason


def test_a_broker_that_was_in_sync_stays_in_service_when_it_falls_behind() -> None:
    verdict = readiness(replace(BROKER, not_in_sync=2, was_in_sync=True))
    assert verdict.health is Health.DEGRADED
    assert is_ready(verdict)


def test_a_broker_that_refills_is_not_ready_for_having_lost_a_directory_too() -> None:
    refilling = replace(BROKER, not_in_sync=2, was_in_sync=False, offline_log_directories=1)
    assert not is_ready(readiness(refilling))


def test_a_broker_stays_in_service_without_a_quorum_and_says_so() -> None:
    verdict = readiness(replace(BROKER, quorum_answers=False, fenced=None, apply_lag_seconds=99))
    assert (verdict.health, is_ready(verdict)) == (Health.DEGRADED, True)
    assert "no quorum" in verdict.reason


@pytest.mark.parametrize("state", ["prospective", "candidate", "voted", "unattached", "resigned"])
def test_a_young_controller_may_still_be_looking_for_its_quorum(state: str) -> None:
    looking = replace(CONTROLLER, raft_state=state, raft_leader=-1, started_at=NOW - 5)
    assert readiness(looking).health is Health.STARTING
    assert readiness(replace(looking, started_at=0.0)).health is Health.UNHEALTHY


def test_the_first_of_a_pending_combined_cluster_is_starting_and_is_never_restarted() -> None:
    first = replace(
        COMBINED, started_at=NOW - 3, broker_state=1, raft_state="prospective", raft_leader=-1,
        listening={9090: True, 9091: False}, quorum_answers=False, fenced=None, not_in_sync=None,
        was_in_sync=False, apply_lag_seconds=None, voter_lag_seconds=None,
    )  # fmt: skip
    assert readiness(first).health is Health.STARTING
    for age in (3.0, 600.0, 86_400.0):  # its peers' pods may be pending for a day
        assert is_alive(liveness(replace(first, now=age, started_at=0.0)))


def test_a_node_that_has_applied_nothing_does_not_count_from_1970() -> None:
    verdict = readiness(replace(CONTROLLER, apply_lag_seconds=1_795_240_624.0))
    assert verdict.reason == "Node 1 has applied no metadata yet."


def test_a_silent_broker_that_served_and_was_fenced_hangs_and_one_that_starts_does_not() -> None:
    silent = replace(BROKER, **GONE, fenced=True, since_heartbeat_seconds=None)
    assert not is_alive(liveness(silent))
    assert is_alive(liveness(replace(silent, was_in_sync=False)))


def test_nobody_says_anything_of_a_node_is_unknown_in_every_part() -> None:
    verdict = readiness(NodeObservation(node_id=1, role=Role.BROKER, now=NOW))
    assert verdict.health is Health.UNKNOWN
    assert verdict.missing == tuple(f"{s} of node 1" for s in ("metrics", "fencing", "ISR"))


def test_what_exporters_say_fills_an_observation() -> None:
    bare = NodeObservation(node_id=2, role=Role.BROKER, now=NOW)
    found = add_metrics(bare, parse((DATA / "broker-jmx-exporter.txt").read_text()))
    assert (found.scraped, found.broker_state, found.raft_state) == (True, 3, "observer")
    assert found.offline_log_directories == 0
    assert found.apply_lag_seconds is not None
    assert add_metrics(found, None).scraped is False
    empty = add_metrics(bare, NodeMetrics())
    assert (empty.scraped, empty.broker_state) == (True, None)


OPTIONAL_SECONDS = st.one_of(st.none(), st.floats(0, 1e6))
OBSERVED = st.builds(
    NodeObservation,
    node_id=st.just(1),
    role=st.sampled_from(Role),
    now=st.floats(0, 1e6),
    process=st.sampled_from([None, True, False]),
    started_at=OPTIONAL_SECONDS,
    listening=st.dictionaries(st.sampled_from([9090, 9091]), st.booleans()),
    scraped=st.booleans(),
    broker_state=st.sampled_from([None, *STATES, 99]),
    recovery=st.dictionaries(
        st.sampled_from(["/a", "/b"]), st.builds(Recovery, st.integers(0, 3), st.integers(0, 3))
    ),
    recovery_moved_at=OPTIONAL_SECONDS,
    raft_state=st.sampled_from([None, "leader", "follower", "observer", "prospective"]),
    raft_leader=st.sampled_from([None, -1, 0]),
    apply_lag_seconds=OPTIONAL_SECONDS,
    offline_log_directories=st.sampled_from([None, 0, 1]),
    quorum_answers=st.sampled_from([None, True, False]),
    fenced=st.sampled_from([None, True, False]),
    registration=st.sampled_from([None, -1, 10, 20, 30]),
    since_heartbeat_seconds=OPTIONAL_SECONDS,
    voter_lag_seconds=st.one_of(OPTIONAL_SECONDS, st.just(NEVER)),
    not_in_sync=st.sampled_from([None, 0, 3]),
    was_in_sync=st.booleans(),
)


@given(OBSERVED)
def test_strict_readiness_is_never_laxer_than_the_shipped(observed: NodeObservation) -> None:
    if is_ready(readiness(observed)):
        # Of a port nobody looked at, the state decides: both are one source too few for shipped.
        looked = replace(observed, listening={9090: True, 9091: True, **observed.listening})
        assert is_ready(readiness(looked, RuleSet.SHIPPED))


@given(OBSERVED)
def test_verdicts_are_sentences_and_name_what_is_missing(observed: NodeObservation) -> None:
    for rules in RuleSet:
        for verdict in (liveness(observed, rules), readiness(observed, rules)):
            assert verdict.reason.endswith(".")
            assert verdict.health is not Health.UNKNOWN or verdict.missing


@given(OBSERVED)
def test_a_recovering_broker_with_a_process_is_never_restarted(observed: NodeObservation) -> None:
    if observed.recovering and observed.process is not False:
        assert is_alive(liveness(observed))


@given(OBSERVED)
def test_what_only_peers_say_restarts_nobody_who_answers(observed: NodeObservation) -> None:
    silent = replace(
        observed, quorum_answers=None, fenced=None, registration=None, not_in_sync=None,
        since_heartbeat_seconds=None, voter_lag_seconds=None,
    )  # fmt: skip
    if observed.scraped:
        assert liveness(observed).health == liveness(silent).health


@given(OBSERVED, st.floats(1.0, 100.0))
def test_time_alone_never_makes_starting_healthy(observed: NodeObservation, seconds: float) -> None:
    later = replace(observed, now=observed.now + seconds)
    if not is_ready(readiness(observed, limits=Limits())):
        assert not is_ready(readiness(later, limits=Limits()))


def test_every_role_has_its_rules_in_every_set() -> None:
    assert {(r.rules, r.role) for r in probe_rules()} == {
        (r, role) for r in RuleSet for role in Role
    }


def part(kind: PartKind, health: Health = Health.HEALTHY, name: str = "1") -> Part:
    missing = ("a source",) if health is Health.UNKNOWN else ()
    return Part(kind, name, HealthVerdict(health, f"{kind} {name} is {health}.", missing))


ALL_WELL = [
    part(PartKind.QUORUM),
    part(PartKind.PARTITIONS),
    *(part(PartKind.CONTROLLER, name=str(n)) for n in range(3)),
    *(part(PartKind.BROKER, name=str(n)) for n in (9, 10, 100)),
    part(PartKind.POD),
    part(PartKind.INCIDENTS),
    part(PartKind.ZONES),
]


def code(*parts: Part) -> int:
    return cluster_health(parts).status_code


def test_a_cluster_is_healthy_where_every_part_is() -> None:
    health = cluster_health(ALL_WELL)
    assert health.status_code == 200
    assert health.verdict.reason == "All 11 parts are healthy."


@every_case("kind", [PartKind.QUORUM, PartKind.PARTITIONS])
@every_case(
    ("health", "expected"),
    [
        (Health.STARTING, 503),
        (Health.DEGRADED, 503),
        (Health.UNKNOWN, 500),
        (Health.UNHEALTHY, 500),
    ],
)
def test_what_serves_as_a_whole_counts_so(kind: PartKind, health: Health, expected: int) -> None:
    assert (
        code(*(each for each in ALL_WELL if each.kind is not kind), part(kind, health)) == expected
    )


@every_case("kind", sorted(REDUNDANT))
@every_case("health", [Health.UNKNOWN, Health.UNHEALTHY])
def test_one_of_several_costs_redundancy_and_the_last_all(kind: PartKind, health: Health) -> None:
    others = [each for each in ALL_WELL if each.kind is not kind]
    sick, well = part(kind, health, "7"), part(kind, name="8")
    assert code(*others, sick, well) == 503
    assert code(*others, sick) == 500


@every_case("kind", sorted(ASIDE))
@every_case("health", [Health.UNKNOWN, Health.UNHEALTHY])
def test_what_goes_on_around_it_makes_no_cluster_unhealthy(kind: PartKind, health: Health) -> None:
    assert code(*(each for each in ALL_WELL if each.kind is not kind), part(kind, health)) == 503


@every_case("kind", NEEDED)
def test_without_a_word_on_what_is_needed_nobody_can_tell(kind: PartKind) -> None:
    health = cluster_health(each for each in ALL_WELL if each.kind is not kind)
    assert (health.status_code, health.verdict.missing) == (500, (kind,))


def test_of_no_parts_nobody_can_tell() -> None:
    assert code() == 500


def test_the_sentence_is_the_gravest_parts_and_counts_the_rest() -> None:
    parts = [
        *ALL_WELL,
        part(PartKind.POD, Health.STARTING, "7"),
        part(PartKind.BROKER, Health.UNHEALTHY, "7"),
    ]
    reason = cluster_health(parts).verdict.reason
    assert reason == "broker 7 is unhealthy. 2 of 13 parts are not healthy."


def test_parts_come_in_the_order_people_read_them() -> None:
    names = [(p.kind, p.name) for p in cluster_health(reversed(ALL_WELL)).parts]
    assert names[0][0] is PartKind.QUORUM
    assert [name for kind, name in names if kind is PartKind.BROKER] == ["9", "10", "100"]


def test_the_body_holds_the_contract_and_every_part() -> None:
    body = json.loads(json.dumps(document("orders", cluster_health(ALL_WELL), 0.0, 1.234)))
    assert (body["status"], body["message"]) == ("healthy", "All 11 parts are healthy.")
    assert (body["cluster"], body["seconds"], len(body["parts"])) == ("orders", 1.23, 11)
    assert set(body["parts"][0]) == {"kind", "name", "status", "reason", "missing", "notes"}


some_parts = st.lists(
    st.builds(
        part, st.sampled_from(PartKind), st.sampled_from(Health), st.text("0123456789", min_size=1)
    ),
    max_size=12,
)


@given(parts=some_parts)
def test_healthy_means_every_part_and_every_source(parts: list[Part]) -> None:
    health = cluster_health(parts)
    if health.status_code == 200:
        assert all(each.verdict.healthy for each in parts)
        assert set(NEEDED) <= {each.kind for each in parts}
        assert health.verdict.missing == ()


@given(parts=some_parts, kind=st.sampled_from(PartKind), health=st.sampled_from(Health))
def test_an_unwell_part_betters_nothing(parts: list[Part], kind: PartKind, health: Health) -> None:
    if health is Health.HEALTHY:
        return
    before = cluster_health([*ALL_WELL, *parts]).verdict.health
    after = cluster_health([*ALL_WELL, *parts, part(kind, health)]).verdict.health
    assert SEVERITY.index(after) >= SEVERITY.index(before)


@given(parts=some_parts, seed=st.randoms())
def test_the_order_in_which_sources_answer_changes_nothing(parts: list[Part], seed: object) -> None:
    shuffled = list(parts)
    seed.shuffle(shuffled)
    assert cluster_health(parts).verdict.health is cluster_health(shuffled).verdict.health


def test_every_health_has_its_severity_and_its_status() -> None:
    assert set(SEVERITY) == set(STATUS_CODES) == set(Health)
