"""core.checks.table: what `survey` says of a cluster, `check` says of its description."""

from __future__ import annotations

from typing import Any

import pytest

from core.checks.finding import RULES, Weight
from core.checks.table import description_findings, stops_up
from core.cluster import ClusterSpec, parse
from core.ground.errors import InvalidInput
from infra.spec import problems_of
from tests.every_case import every_case
from tests.unit.core.checks.test_contradictions import ZONES, spec
from tests.unit.infra.programs import BROKER as BROKERS
from tests.unit.infra.programs import CONTROLLER, description

BROKER, PRODUCER, EXPOSED, ADVICE = Weight.BROKER, Weight.PRODUCER, Weight.EXPOSED, Weight.ADVICE
RLMM = "rlmm.config.remote.log.metadata.topic"
OPEN = {"authentication": "none", "anonymous_clients": True}


def kafka(**said: Any) -> ClusterSpec:
    return parse(description(kafka=said))


def topic(**said: Any) -> ClusterSpec:
    return parse(description(topics=[{"name": "t", "partitions": 3, **said}]))


# A description -> its findings, and whether `up` goes on.
DESCRIBED: dict[str, tuple[ClusterSpec, dict[str, Weight], bool]] = {
    "three replicas, two in sync": (kafka(), {}, True),
    "one in sync": (kafka(min_insync_replicas=1), {"min-insync": BROKER}, False),
    "two replicas, one in sync": (
        kafka(default_replication_factor=2, min_insync_replicas=1),
        {"min-insync": BROKER, "replication": PRODUCER},
        False,
    ),
    "all in sync": (kafka(min_insync_replicas=3), {"no-spare-replica": PRODUCER}, False),
    "transactions all in sync": (
        kafka(config={"transaction.state.log.min.isr": 3}),
        {"no-spare-replica": PRODUCER},
        False,
    ),
    "a tier's metadata all in sync": (
        kafka(config={f"{RLMM}.replication.factor": 2}),
        {"no-spare-replica": PRODUCER},
        False,
    ),
    "a tier's metadata with one spare": (
        kafka(config={f"{RLMM}.replication.factor": 3, f"{RLMM}.min.isr": 2}),
        {},
        True,
    ),
    "more replicas than brokers": (
        kafka(config={"offsets.topic.replication.factor": 4}),
        {"too-few-brokers": PRODUCER},
        False,
    ),
    "unclean leaders": (
        kafka(config={"unclean.leader.election.enable": True}),
        {"unclean-election": BROKER},
        False,
    ),
    "a topic with all in sync": (
        topic(config={"min.insync.replicas": 3}),
        {"topic-no-spare-replica": PRODUCER},
        False,
    ),
    "a topic of one replica": (topic(replication_factor=1), {"topic-replicas": PRODUCER}, True),
    "a topic with one in sync": (
        topic(config={"min.insync.replicas": 1}),
        {"topic-min-insync": BROKER},
        False,
    ),
    "brokers in two of four zones": (spec(brokers=ZONES[:2]), {"zones": PRODUCER}, True),
    "two voters": (spec(2), {"quorum": PRODUCER}, True),
    "four voters": (spec(4), {"quorum-even": ADVICE}, True),
}


@every_case(("described", "said", "goes_on"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_description_is_asked_what_a_cluster_is(
    described: ClusterSpec, said: dict[str, Weight], *, goes_on: bool
) -> None:
    found, accepted = description_findings(described)
    assert {each.check: each.weight for each in found if each.check != "quorum-grows"} == said
    assert accepted == []
    assert (not any(map(stops_up, found))) is goes_on
    assert (problems_of(described) == []) is goes_on


def test_what_is_accepted_by_name_stops_nobody_and_is_kept_apart() -> None:
    meant = parse(description(kafka={"min_insync_replicas": 1}, accept=["min-insync"]))
    found, (accepted,) = description_findings(meant)
    assert (accepted.check, "min-insync" in {each.check for each in found}) == ("min-insync", False)
    assert problems_of(meant) == []


def test_a_refusal_says_how_it_is_accepted() -> None:
    (sentence,) = problems_of(kafka(min_insync_replicas=1))
    assert sentence.endswith("set min.insync.replicas to 2, or name min-insync in `accept`.")


def test_a_name_that_accepts_nothing_is_said() -> None:
    (said,) = [
        each
        for each in description_findings(parse(description(accept=["min-insink"])))[0]
        if each.check == "accept-unused"
    ]
    assert "it names min-insink" in said.evidence


@pytest.mark.parametrize("heap", [6553, 6554])
def test_a_heap_above_four_fifths_is_known(heap: int) -> None:
    large = {**CONTROLLER, "heap_mib": heap, "memory_request_mib": 8192}
    described = parse(description(pools=[large, BROKERS]))
    found = {each.check for each in description_findings(described)[0]}
    assert ("heap-large" in found) is (heap > 6553)


def test_a_pod_that_is_killed_in_its_shutdown_is_found_as_of_a_cluster() -> None:
    with pytest.raises(InvalidInput):
        parse(description(timings={"pod_grace_seconds": 0}))
    raw = description(timings={"pod_grace_seconds": 200, "controlled_shutdown_seconds": 100})
    (found,) = [each for each in description_findings(parse(raw))[0] if each.check == "grace"]
    assert found.weight is BROKER


def test_every_rule_of_a_description_has_its_facts_there() -> None:
    assert len({rule.title for rule in RULES}) == len(RULES)
    for rule in RULES:
        if rule.described:
            assert set(rule.needs) <= {"description", "kafkas", "pools", "topics", "pods", "nodes"}
