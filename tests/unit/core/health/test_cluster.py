"""core.health.verdict: what of the parts' health is the whole's."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

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


def part(kind: PartKind, health: Health = Health.HEALTHY, name: str = "1") -> Part:
    missing = ("a source",) if health is Health.UNKNOWN else ()
    return Part(kind, name, HealthVerdict(health, f"{kind} {name} is {health}.", missing))


WELL = [
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
    health = cluster_health(WELL)
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
    assert code(*(each for each in WELL if each.kind is not kind), part(kind, health)) == expected


@every_case("kind", sorted(REDUNDANT))
@every_case("health", [Health.UNKNOWN, Health.UNHEALTHY])
def test_one_of_several_costs_redundancy_and_the_last_all(kind: PartKind, health: Health) -> None:
    others = [each for each in WELL if each.kind is not kind]
    sick, well = part(kind, health, "7"), part(kind, name="8")
    assert code(*others, sick, well) == 503
    assert code(*others, sick) == 500


@every_case("kind", sorted(ASIDE))
@every_case("health", [Health.UNKNOWN, Health.UNHEALTHY])
def test_what_goes_on_around_it_makes_no_cluster_unhealthy(kind: PartKind, health: Health) -> None:
    assert code(*(each for each in WELL if each.kind is not kind), part(kind, health)) == 503


@every_case("kind", NEEDED)
def test_without_a_word_on_what_is_needed_nobody_can_tell(kind: PartKind) -> None:
    health = cluster_health(each for each in WELL if each.kind is not kind)
    assert (health.status_code, health.verdict.missing) == (500, (kind,))


def test_of_no_parts_nobody_can_tell() -> None:
    assert code() == 500


def test_the_sentence_is_the_gravest_parts_and_counts_the_rest() -> None:
    parts = [
        *WELL,
        part(PartKind.POD, Health.STARTING, "7"),
        part(PartKind.BROKER, Health.UNHEALTHY, "7"),
    ]
    reason = cluster_health(parts).verdict.reason
    assert reason == "broker 7 is unhealthy. 2 of 13 parts are not healthy."


def test_parts_come_in_the_order_people_read_them() -> None:
    names = [(p.kind, p.name) for p in cluster_health(reversed(WELL)).parts]
    assert names[0][0] is PartKind.QUORUM
    assert [name for kind, name in names if kind is PartKind.BROKER] == ["9", "10", "100"]


def test_the_body_holds_the_contract_and_every_part() -> None:
    body = json.loads(json.dumps(document("orders", cluster_health(WELL), 0.0, 1.234)))
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
def test_another_part_that_is_not_well_never_makes_the_whole_better(
    parts: list[Part], kind: PartKind, health: Health
) -> None:
    if health is Health.HEALTHY:
        return
    before = cluster_health([*WELL, *parts]).verdict.health
    after = cluster_health([*WELL, *parts, part(kind, health)]).verdict.health
    assert SEVERITY.index(after) >= SEVERITY.index(before)


@given(parts=some_parts, seed=st.randoms())
def test_the_order_in_which_sources_answer_changes_nothing(parts: list[Part], seed: object) -> None:
    shuffled = list(parts)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    assert cluster_health(parts).verdict.health is cluster_health(shuffled).verdict.health


def test_every_health_has_its_severity_and_its_status() -> None:
    assert set(SEVERITY) == set(STATUS_CODES) == set(Health)
