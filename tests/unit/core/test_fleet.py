"""core.fleet: who may start, who waits for what, and what stops the fleet."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.availability.budget import Spent
from core.cluster.fleet import FleetFile, FleetStop, parse_fleet
from core.cluster.operation import Maintenance
from core.fleet import ClusterFacts, FleetDecision, RotationEstimate, Standing, decide
from core.ground.errors import InvalidInput
from core.ground.fields import Unknown
from core.health.verdict import degraded, healthy, not_known, unhealthy
from core.rotation.run_record import Options, Phase, Run, RunState, open_run
from tests.every_case import every_case
from tests.unit.core.availability.clusters import turn_of

NOW = 1_795_168_800.0  # a Friday, 10:00 UTC
HOUR = 3600.0
VERSIONS = {
    "eks": "1.35",
    "image": "ami-0b",
    "strimzi": "1.2.0",
    "kafka": "4.2.0",
    "stillwater": "0.2.0",
}
WANTED = {part: version for part, version in VERSIONS.items() if part != "image"}
WHY = "image ami-0a instead of ami-0b"
DONE = ClusterFacts(
    versions=VERSIONS,
    description=WANTED,
    nodes={},
    estimate=RotationEstimate(nodes=0, seconds=0.0, usd=0.0),
    rotation=None,
    pause="",
    incidents=(),
    health=healthy("All parts are healthy."),
    budget=None,
)
BEHIND = replace(
    DONE, nodes={10: WHY, 20: WHY}, estimate=RotationEstimate(nodes=2, seconds=1200.0, usd=0.4)
)
CHECKOUT, BOTH = ["checkout"], ["checkout", "search"]
FLEET = parse_fleet(
    {
        "name": "payments",
        "environments": {
            "stage": {"region": "eu-west-1"},
            "shop": {"region": "eu-west-1", "clients": CHECKOUT},
            "cart": {"region": "eu-west-1", "clients": BOTH},
            "log": {"region": "eu-west-1"},
            "us": {"region": "us-east-1"},
        },
        "waves": [
            {"name": "canary", "environments": ["stage"]},
            {"name": "rest", "environments": ["shop", "cart", "us", "log"], "bake_hours": 0},
        ],
    }
)


def run_in(state: RunState, **changed: Any) -> Run:
    over = state in {RunState.DONE, RunState.ABORTED}
    turns = [replace(turn_of(number), why="an older image") for number in (10, 20)]
    run = open_run(turns, Options(), "ada", NOW - 48 * HOUR)
    ended = NOW - 47 * HOUR if over else None
    return replace(run, **{"state": state, "ended_at": ended, **changed})


RUNS = replace(BEHIND, rotation=run_in(RunState.RUNNING))


def decided(fleet: FleetFile = FLEET, now: float = NOW, **facts: ClusterFacts) -> FleetDecision:
    return decide(fleet, dict.fromkeys(fleet.environments, DONE) | facts, now)


def said_of(decision: FleetDecision, name: str) -> str:
    return decision.clusters[name].sentence


ALL_BEHIND = dict.fromkeys(FLEET.environments, BEHIND)
REST_BEHIND = {**ALL_BEHIND, "stage": DONE}
BAKED = replace(DONE, rotation=run_in(RunState.DONE))
BAKES = replace(DONE, rotation=run_in(RunState.DONE, ended_at=NOW - 2 * HOUR))
BUDGET = Spent(
    objective_percent=99.9, allowed_percent=10, seconds=HOUR, attempts=10_000.0, failed=30.0
)

# What the fleet is in; who starts; of whom something is said, and what.
ORDER: Mapping[str, tuple[dict[str, Any], tuple[str, ...], str, str]] = {
    "all are as described": ({}, (), "", "All 5 clusters are as described."),
    "the canary goes first": (
        ALL_BEHIND, ("stage",), "shop", "shop waits. Wave canary comes first: stage is not done.",
    ),
    "the canary bakes by its ledger": (
        {**REST_BEHIND, "stage": BAKES}, (), "shop",
        "shop waits. Wave canary bakes until 2026-11-21 08:00 UTC.",
    ),
    "clients in common wait for each other": (
        {**REST_BEHIND, "stage": BAKED}, ("shop", "log"), "cart",
        "cart waits. shop comes first: both have the clients checkout.",
    ),
    "one region at a time": (
        REST_BEHIND, ("shop", "log"), "us",
        "us waits. shop comes first: one region at a time, now eu-west-1.",
    ),
    "who rotates keeps another region out": (
        {"us": RUNS, "shop": BEHIND}, (), "shop",
        "shop waits. us comes first: one region at a time, now us-east-1.",
    ),
    "a run that nobody could read may go on": (
        {"stage": BEHIND, "us": replace(DONE, rotation=Unknown("the table is gone"))}, (), "stage",
        "stage waits. us comes first: one region at a time, now us-east-1.",
    ),
}  # fmt: skip


@every_case("case", ORDER.values(), ids=ORDER)
def test_waves_are_kept_apart(case: tuple[dict[str, Any], tuple[str, ...], str, str]) -> None:
    facts, starts, name, sentence = case
    decision = decided(**facts)
    assert decision.starts == starts
    assert (said_of(decision, name) if name else decision.sentence) == sentence


# What is so of shop; where it stands then; the words; whether log may start; whether others pause.
OWN: Mapping[str, tuple[ClusterFacts, Standing, str, bool, bool]] = {
    "its rotation stopped": (
        replace(BEHIND, rotation=run_in(RunState.STOPPED, reason="Node 10 is not back.")),
        Standing.STOPPED, "shop: its rotation stopped. Node 10 is not back.", False, True,
    ),
    "unhealthy": (
        replace(DONE, health=unhealthy("Partition a-0 is offline.")),
        Standing.STOPPED, "shop: it is unhealthy. Partition a-0 is offline.", False, True,
    ),
    "its objective is missed": (
        replace(DONE, budget=BUDGET), Standing.STOPPED,
        "objective of 99.9 %. 30 of 10000 attempts failed within 1 h, 3.0 times what it allows.",
        False, True,
    ),
    "paused by a person": (
        replace(BEHIND, rotation=run_in(RunState.PAUSED, reason="ada paused the run.")),
        Standing.STOPPED, "ada paused the run. `stillwater rotate resume` goes on", False, False,
    ),
    "asked to pause": (
        replace(BEHIND, rotation=run_in(RunState.RUNNING, pause_asked_by="ada")),
        Standing.STOPPED, "shop: its rotation is paused.", False, False,
    ),
    "aborted and still outdated": (
        replace(BEHIND, rotation=run_in(RunState.ABORTED)), Standing.STOPPED,
        "shop: its rotation was aborted.", False, False,
    ),
    "a node left out": (
        replace(BEHIND, rotation=replace(run_in(RunState.DONE), turns=(
            replace(turn_of(10), phase=Phase.SKIPPED),))),
        Standing.STOPPED, f"shop: its rotation left node 10 out ({WHY}).", False, False,
    ),
    "replaced in vain": (
        replace(BEHIND, rotation=replace(run_in(RunState.DONE), turns=(
            replace(turn_of(20), why=WHY, phase=Phase.DONE),))),
        Standing.STOPPED, "shop: its rotation replaced node 20, which still has", False, False,
    ),
    "in progress, and degraded by it": (
        replace(RUNS, health=degraded("A broker is away.")), Standing.IN_PROGRESS,
        "shop: 0 of 2 nodes rotated. ada starts", True, False,
    ),
    "in progress, and health unknown": (
        replace(RUNS, health=not_known("Kafka is silent.")), Standing.IN_PROGRESS,
        "it is unknown. Kafka is silent.", False, False,
    ),
    "degraded": (
        replace(BEHIND, health=degraded("A broker is away.")), Standing.WAITS,
        "shop: it is degraded.", False, False,
    ),
    "an incident": (
        replace(BEHIND, incidents=("broker 10 (draining)",)), Standing.WAITS,
        "shop: an incident is open: broker 10 (draining).", False, False,
    ),
    "the probe is silent": (
        replace(BEHIND, budget=replace(BUDGET, silence="Prometheus is away.")), Standing.WAITS,
        "shop: what clients see is unknown. Prometheus is away.", False, False,
    ),
    "not read": (
        ClusterFacts.unread(Unknown("the role cannot be assumed")), Standing.WAITS,
        "shop: it could not be read (the role cannot be assumed), and what", False, False,
    ),
    "an older Kafka than described": (
        replace(BEHIND, versions={**VERSIONS, "kafka": "4.1.0"}), Standing.WAITS,
        "shop: Kafka 4.1.0 instead of 4.2.0. `stillwater up` brings that first.", True, False,
    ),
    "no version of the operator": (
        replace(BEHIND, versions={**VERSIONS, "strimzi": None}), Standing.WAITS,
        "shop: its version of Strimzi could not be read.", False, False,
    ),
    "too dear": (
        replace(BEHIND, estimate=RotationEstimate(nodes=2, seconds=1200.0, usd=31.0)),
        Standing.WAITS, "its rotation costs about 31.00 USD, the file allows 20.", True, False,
    ),
    "of unknown cost": (
        replace(BEHIND, estimate=RotationEstimate(nodes=2, seconds=1200.0, usd=None)),
        Standing.WAITS, "shop: what its rotation costs is unknown", True, False,
    ),
}  # fmt: skip


@every_case("case", OWN.values(), ids=OWN)
def test_one_of_a_wave_speaks_for_all(case: tuple[ClusterFacts, Standing, str, bool, bool]) -> None:
    facts, standing, words, beside, pauses = case
    fleet = FLEET.model_copy(update={"stop": FleetStop(rotation_usd=20)})
    decision = decided(fleet, shop=facts, log=BEHIND)
    shop = decision.clusters["shop"]
    assert shop.standing is standing
    assert words in shop.sentence
    assert decision.starts == (("log",) if beside else ())
    if not beside:
        assert shop.sentence in said_of(decision, "log")
        assert shop.sentence in decision.sentence
    beside_it = decided(fleet, shop=facts, log=RUNS, cart=replace(RUNS, rotation=BAKED.rotation))
    assert ("log" in beside_it.pauses) == pauses


@every_case(
    "fleet, words",
    [
        (
            FLEET.model_copy(update={"hold": "Black Friday."}),
            "The fleet's file holds it: Black Friday.",
        ),
        (
            FLEET.model_copy(
                update={
                    "windows": (
                        Maintenance(days=("sat",), start_utc="02:00", duration_minutes=60),
                        Maintenance(days=("sun",), start_utc="02:00", duration_minutes=60),
                    )
                }
            ),
            "The fleet's window opens at 2026-11-21 02:00 UTC.",
        ),
    ],
)
def test_a_file_keeps_everybody_from_starting(fleet: FleetFile, words: str) -> None:
    decision = decided(fleet, stage=BEHIND)
    assert decision.starts == ()
    assert decision.sentence == f"Wave canary waits. stage waits. {words}"
    if fleet.windows:
        assert decided(fleet, NOW + 17 * HOUR - 60, stage=BEHIND).starts == ("stage",)


WORLDS = st.sampled_from([DONE, BEHIND, RUNS, BAKED, BAKES, *(case[0] for case in OWN.values())])


@given(st.fixed_dictionaries(dict.fromkeys(FLEET.environments, WORLDS)))
def test_nobody_starts_beside_whom_it_must_not(facts: dict[str, ClusterFacts]) -> None:
    decision = decide(FLEET, facts, NOW)
    assert decision == decide(FLEET, facts, NOW)
    busy = [
        n for n, each in facts.items() if isinstance(each.rotation, Run) and not each.rotation.over
    ]
    for name in decision.starts:
        assert facts[name].nodes
        assert facts[name].health == healthy("All parts are healthy.")
        for other in {*busy, *decision.starts} - {name}:
            assert not {*FLEET.environments[name].clients} & {*FLEET.environments[other].clients}
            assert FLEET.environments[name].region == FLEET.environments[other].region
    if set(decision.starts) - {"stage"}:
        assert facts["stage"] in (DONE, BAKED)
    # A second look, once what may start has started, starts none of it again.
    after = facts | {name: replace(facts[name], rotation=RUNS.rotation) for name in decision.starts}
    assert not set(decide(FLEET, after, NOW).starts) & set(decision.starts)


WRITTEN: dict[str, Any] = {
    "name": "payments",
    "environments": {"stage": {"region": "eu-west-1"}, "shop": {"region": "eu-west-1"}},
    "waves": [{"name": "all", "environments": ["stage", "shop"]}],
}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"waves": [{"name": "a", "environments": ["stage", "shap"]}]},
         r"waves name shap.*\n?.*shop is in no wave"),
        ({"waves": [{"name": "a", "environments": ["stage", "shop", "shop"]}]}, "2 times"),
        ({"wave": []}, "did you mean waves"),
        ({"environments": {"stage": {"region": "eu-west-1", "role": "admin"}}}, "role"),
    ],
)  # fmt: skip
def test_a_file_that_nobody_meant_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?s){words}"):
        parse_fleet(WRITTEN | changed)
