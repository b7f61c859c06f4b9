"""core.checks.drift: whatever differs is named, with both values and a remedy; nothing else is."""

from collections.abc import Mapping
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from core.checks import facts
from core.checks.drift import COMPARED, JUDGED, TITLES, findings, unexamined_parts
from core.checks.expected import expectation_of
from core.checks.facts import Snapshot
from core.checks.finding import Finding
from core.ground import naming
from core.model.kafka import Pod, Volume
from core.model.workloads import DisruptionBudget, DrainCleaner, is_announced
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, spec

SPEC = spec(pools=[CONTROLLER, {**BROKER, "spare_nodes_per_zone": 1}])
EXPECTED = expectation_of(SPEC, ["test-orders-incidents-retained"])
CLUSTER = EXPECTED.cluster
BOOTSTRAP_GATE = naming.readiness_gate(naming.target_group_binding(CLUSTER, None))


THEIRS = DisruptionBudget(
    namespace="kafka",
    name="theirs",
    match_labels={naming.CLUSTER_LABEL: CLUSTER, naming.KIND_LABEL: "Kafka"},
    least_available="1",
)


def gate(node_id: int) -> str:
    return naming.readiness_gate(naming.target_group_binding(CLUSTER, node_id))


def broker(node_id: int = 10, **changed: Any) -> Pod:
    gates = frozenset({gate(node_id), BOOTSTRAP_GATE, "example.com/warm"})
    name = f"orders-broker-a-{node_id}"
    pod = Pod(namespace="kafka", name=name, kafka=CLUSTER, broker=True, readiness_gates=gates)
    return replace(pod, **changed)


def controller(**changed: Any) -> Pod:
    changed = {"readiness_gates": frozenset(), **changed}
    return broker(name="orders-controller-a-0", broker=False, controller=True, **changed)


def volume(reclaim: str) -> Volume:
    return Volume(namespace="kafka", claim="data-0-orders-broker-a-10", reclaim=reclaim)


def live_cluster(**changed: Any) -> Snapshot:
    """A cluster as its spec asks for; keywords replace whole parts."""
    bindings = EXPECTED.snapshot.bindings or {}
    services = {
        binding.service: frozenset({binding.port, "tcp-other"})
        for binding in bindings.values()
        if binding.service not in EXPECTED.spare_services
    }
    whole = replace(
        EXPECTED.snapshot,
        services=services,
        pods={"orders-broker-a-10": broker(), "orders-controller-a-0": controller()},
        volumes={"pvc-1": volume("Retain")},
    )
    return replace(whole, **changed)


def found(**changed: Any) -> list[Finding]:
    return findings(EXPECTED, live_cluster(**changed))


def test_of_nodes_and_volumes_that_are_not_there_it_is_said_that_nobody_looked() -> None:
    said = [each.evidence for each in unexamined_parts(EXPECTED, live_cluster(pods={}, volumes={}))]
    assert said[0].startswith("no pod of nodes 0, 1, 2, 10, 20, 30 runs")
    assert said[1].startswith("0 of 9 volumes are there")
    assert list(unexamined_parts(EXPECTED, live_cluster(pods=None, volumes=None))) == []


BESIDE = {
    "a budget of somebody else's over Kafka's pods": (
        {"budgets": {**(EXPECTED.snapshot.budgets or {}), "theirs": THEIRS}},
        "PodDisruptionBudget theirs over pods of Kafka's",
    ),
    "what Connect has left behind": (
        {"connect_bindings": {"strimzi-kafka-orders-connect-connect-init": True}},
        "ClusterRoleBinding strimzi-kafka-orders-connect-connect-init",
    ),
}


@every_case(("changed", "what"), BESIDE.values(), ids=BESIDE.keys())
def test_what_stops_or_doubles_it_is_found(changed: Mapping[str, Any], what: str) -> None:
    assert [each.subject for each in found(**changed)] == [what]


def test_a_cluster_that_is_as_its_spec_says_has_no_findings() -> None:
    assert found() == []


def members(part: str) -> dict[str, Any]:
    return dict(getattr(EXPECTED.snapshot, part))


@every_case("part", COMPARED)
def test_a_member_that_is_missing_is_named(part: str) -> None:
    name, *_ = members(part)
    remaining = {key: value for key, value in members(part).items() if key != name}
    finding, *others = found(**{part: remaining})
    assert not others
    expected = (f"{COMPARED[part].member} {name}", "expected present, found missing")
    assert (finding.subject, finding.evidence) == expected
    assert finding.remedy


def another(value: Any) -> Any:
    """Return a value of the same kind that is not this one."""
    kinds: Mapping[type, Any] = {
        bool: not value,
        int: 4711,
        str: "other",
        frozenset: frozenset({"other"}),
        tuple: (0, 1),
        type(None): 4711,
    }
    return kinds[type(value)]


FIELDS = [(part, field) for part, compared in COMPARED.items() for field in compared.labels]


@every_case(("part", "field"), FIELDS, ids=[f"{p}-{f}" for p, f in FIELDS])
def test_a_value_that_differs_is_named_with_both_values(part: str, field: str) -> None:
    name, member = next(iter(members(part).items()))
    other = another(getattr(member, field))
    what = f"{COMPARED[part].labels[field]} of {COMPARED[part].member} {name}"
    # Some of them follow from others.
    said = {each: getattr(member, each) for each in COMPARED[part].labels}
    changed = {**members(part), name: SimpleNamespace(**{**said, field: other})}
    # A binding that leads elsewhere breaks more than itself; that has tests of its own.
    (finding,) = [f for f in found(**{part: changed}) if f.subject == what]
    wanted, _, has = finding.evidence.removeprefix("expected ").partition(", found ")
    assert wanted != has
    assert finding.remedy


# What tells a member from others, and what a compared field follows from.
BESIDE_COMPARED = {
    "name", "namespace", "title", "tags", "listeners", "config", "rack_aware", "rack_key",
}  # fmt: skip


def test_whatever_is_expected_of_a_compared_part_is_compared() -> None:
    for part, compared in COMPARED.items():
        for member in members(part).values():
            asked = {
                field.name
                for field in fields(member)
                if getattr(member, field.name) not in ({}, field.default)
            }
            assert asked - BESIDE_COMPARED <= {*compared.labels}, part


def test_every_part_has_a_title_and_is_either_compared_or_judged() -> None:
    assert {field.name for field in fields(Snapshot)} == set(TITLES) == {*COMPARED, *JUDGED}


@every_case("part", TITLES)
def test_a_part_that_was_not_read_says_nothing(part: str) -> None:
    assert found(**{part: None}) == []


def test_a_part_that_is_not_of_this_cluster_says_nothing() -> None:
    on_karpenter = expectation_of(spec(node_provisioner="karpenter"), [])
    assert on_karpenter.snapshot.groups is None
    assert on_karpenter.snapshot.hooks is None
    names = {f.subject for f in findings(on_karpenter, Snapshot(groups={}, hooks={}, alarms={}))}
    assert names == set()


@pytest.mark.parametrize(
    ("part", "name", "layer"),
    [
        ("queues", "test-orders-nth", "test-platform"),
        ("queues", "test-orders-ticks-dlq", "test-operations"),
        ("alarms", "test-orders-incidents-retained", "test-operations"),
        ("bindings", "orders-broker-10", "test-kafka"),
    ],
)
def test_the_remedy_names_the_stack_that_made_it(part: str, name: str, layer: str) -> None:
    remaining = {key: value for key, value in members(part).items() if key != name}
    (finding,) = found(**{part: remaining})
    assert finding.remedy == f"`pulumi up --refresh -s {layer}`"


def test_a_service_that_lost_the_bindings_port_is_named() -> None:
    name = "orders-broker-a-nlb-10"
    services = {**(live_cluster().services or {}), name: frozenset({"tcp-new"})}
    (finding,) = found(services=services)
    assert finding.evidence == "expected tcp-nlb, found tcp-new"
    assert "every target is deregistered" in finding.remedy


def test_somebody_elses_binding_needs_its_service_too() -> None:
    stray = facts.Binding(target_group="x", service="nobody", port="y", target_type="ip")
    (finding,) = found(bindings={**members("bindings"), "stray": stray})
    assert finding.subject == "Service nobody of TargetGroupBinding stray"


@pytest.mark.parametrize(
    "gates",
    [frozenset(), frozenset({BOOTSTRAP_GATE}), frozenset({gate(10)}), frozenset({gate(20)})],
    ids=["none", "its own missing", "the bootstrap's missing", "another's"],
)
def test_a_running_broker_without_its_gates_is_named(gates: frozenset[str]) -> None:
    (finding,) = found(pods={"orders-broker-a-10": broker(readiness_gates=gates)})
    assert finding.subject == "readiness gates of pod orders-broker-a-10"
    assert finding.evidence.startswith("expected orders-bootstrap, orders-broker-10, found ")
    assert "manual-rolling-update=true" in finding.remedy


def test_a_controller_behind_the_load_balancer_is_named_since_it_is_never_ready() -> None:
    pod = controller(readiness_gates=frozenset({BOOTSTRAP_GATE}))
    (finding,) = found(pods={"orders-controller-a-0": pod})
    assert finding.evidence == "expected none, found orders-bootstrap"


def test_a_volume_that_would_go_with_its_claim_is_named_with_the_patch_that_saves_it() -> None:
    (finding,) = found(volumes={"pvc-1": volume("Delete")})
    assert "data-0-orders-broker-a-10" in finding.subject
    assert '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}' in finding.remedy


def test_a_drain_cleaner_that_denies_our_drains_is_named_with_the_setting() -> None:
    cleaner = DrainCleaner(title="ops/cleaner", denies=True, drains_kafka=True)
    (finding,) = found(drain_cleaners={cleaner.title: cleaner})
    assert finding.subject == "STRIMZI_DRAIN_KAFKA of Drain Cleaner ops/cleaner"
    assert finding.evidence == "expected false, found true"
    assert found(drain_cleaners={"ops/off": replace(cleaner, drains_kafka=False)}) == []


def test_a_budget_of_strimzis_beside_ours_is_named_with_the_command_that_ends_it() -> None:
    (finding,) = found(budgets={**members("budgets"), "orders-kafka": THEIRS})
    assert finding.subject == "PodDisruptionBudget orders-kafka"
    assert finding.evidence == "expected missing, found present"
    assert "delete pdb orders-kafka" in finding.remedy


ACTION = "EC2 Instance-terminate Lifecycle Action"


def of_group(*wanted: object) -> dict[str, Any]:
    return {"detail": {"AutoScalingGroupName": list(wanted)}}


@every_case(
    ("pattern", "meets"),
    [
        ({}, True),
        ({"source": ["aws.autoscaling"], "detail-type": [ACTION]}, True),
        ({"source": ["aws.ec2"]}, False),
        ({"source": [{"prefix": "aws."}]}, True),
        (of_group("kafka-a"), True),
        (of_group("kafka-b"), False),
        (of_group("kafka-b", {"prefix": "kafka-"}), True),
        (of_group({"suffix": "-b"}), False),
        (of_group({"equals-ignore-case": "KAFKA-A"}), True),
        (of_group({"anything-but": ["kafka-a"]}), False),
        (of_group({"anything-but": "kafka-b"}), True),
        (of_group({"anything-but": {"prefix": "kafka-"}}), True),
        (of_group({"wildcard": "x*"}), True),
        ({"detail": {"LifecycleHookName": ["launch"]}}, False),
        ({"detail": {"LifecycleTransition": ["autoscaling:EC2_INSTANCE_LAUNCHING"]}}, False),
        ({"detail": {"NotificationMetadata": [{"exists": True}]}}, True),
        ({"account": ["111122223333"]}, True),
    ],
    ids=str,
)
def test_a_rule_lets_a_termination_through_or_not(pattern: dict[str, Any], *, meets: bool) -> None:
    assert is_announced(pattern, "kafka-a", "drain") is meets
