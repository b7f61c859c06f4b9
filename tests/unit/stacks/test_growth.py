"""Growing a cluster only adds: what exists keeps its inputs, but for a list with reasons.

Two recordings of the whole program are compared, one of the cluster as it is and one of what its
user wants next, under both provisioners and with every optional part there is.
"""

import functools
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from core.checks.table import description_findings
from core.cluster import parse
from tests.unit.infra.programs import BROKER, CONTROLLER, ZONES, description, run_layers
from tests.unit.infra.recording import Resource
from tests.unit.infra.variants import EVERYTHING

PROVISIONERS: Mapping[str, Mapping[str, Any]] = {
    "asg": {},
    "karpenter": {"node_provisioner": "karpenter"},
}
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "grow-a-cluster.md"
BULK = {**BROKER, "name": "bulk", "first_node_id": 100}
FULL = {**EVERYTHING, "pools": [CONTROLLER, BROKER]}
GROWTH: Mapping[str, dict[str, Any]] = {
    "a broker per zone": {"pools": [CONTROLLER, {**BROKER, "nodes_per_zone": 2}]},
    # The controllers stay where they are: the voters of a live quorum are fixed.
    "a zone": {
        "availability_zones": [*ZONES, "us-east-1d"],
        "pools": [{**CONTROLLER, "zones": ZONES}, BROKER],
    },
    "a pool": {"pools": [CONTROLLER, BROKER, BULK]},
    "spare nodes": {"pools": [CONTROLLER, {**BROKER, "spare_nodes_per_zone": 1}]},
}
# What is added must say by its name what it is added for.
NEW: Mapping[str, tuple[str, ...]] = {
    "a broker per zone": ("*-broker-11-*", "*-broker-21-*", "*-broker-31-*"),
    "a zone": ("*-us-east-1d-*",),
    "a pool": ("*-bulk", "*-bulk-*"),
    "spare nodes": ("*-broker-11-*", "*-broker-21-*", "*-broker-31-*"),
}
METRICS_OF_PODS = {
    role: {"rules": "names each pod whose metrics may be read"}
    for role in ("handlers-access-role", "health-role", "rotate-access-role")
}
FACTS_OF_THE_REPORT = {"analytics-job-facts": {"content": "what the job on EMR is told of pools"}}
# growth -> resource -> the one input that changes, in place, and why no other way is left.
INEVITABLE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "a broker per zone": {
        "nodes-us-east-1?-broker": {
            "minSize": "the group that launches the new node",
            "maxSize": "twice the new size, so that every node can be replaced at once",
        },
        "kafka-us-east-1?-broker": {"spec": "replicas, and the ids Strimzi may give them"},
        "kafka-rules": {"spec": "alerts that count brokers"},
        "budgets-staying": {"spec": "counts the pods of which one may go"},
        "health-function-function": {"environment": "names the list of nodes by its hash"},
        "health-kept": {"item": "which nodes there should be"},
        **METRICS_OF_PODS,
        **FACTS_OF_THE_REPORT,
    },
    "a zone": {
        "endpoints-*": {"subnetIds": "an endpoint has an interface per zone"},
        "balancing-nlb": {"subnets": "the load balancer gets an address in the new zone"},
        "balancing-broker-from-*": {"toPort": "the ids reserved for the zone have ports"},
        "kafka-rules": {"spec": "alerts that count brokers"},
        "budgets-staying": {"spec": "counts the pods of which one may go"},
        "nodes-broker-class": {"spec": "Karpenter finds subnets by their ids"},
        "handlers-tick-policy": {"policy": "names the new zone's subnet"},
        "handlers-sweep-policy": {"policy": "names the new zone's subnet"},
        "handlers-rotate-policy": {"policy": "names the new zone's subnet"},
        "handlers-*-function": {"environment": "names the brokers to begin with by their hash"},
        "handlers-kept": {"item": "brokers to bootstrap from in the new zone"},
        "handlers-tick-function": {"vpcConfig": "stands in every private subnet"},
        "handlers-sweep-function": {"vpcConfig": "stands in every private subnet"},
        "handlers-rotate-function": {"vpcConfig": "stands in every private subnet"},
        "handlers-network-to-kafka": {"toPort": "the ids reserved for the zone have ports"},
        "health-function-policy": {"policy": "names the new zone's subnet"},
        "health-kept": {"item": "which nodes there should be"},
        "volumes-kept": {"item": "the pools it looks after, with their zones"},
        "health-function-function": {
            "environment": "names the list of nodes by its hash",
            "vpcConfig": "stands in every private subnet",
        },
        "volumes-function-policy": {"policy": "names the new zone's subnet"},
        "volumes-function-function": {
            "environment": "names the policies of the pools by their hash",
            "vpcConfig": "stands in every private subnet",
        },
        **METRICS_OF_PODS,
        **FACTS_OF_THE_REPORT,
    },
    "a pool": {
        "termination-terminate": {"eventPattern": "hears the new pool's groups"},
        "termination-activity": {"eventPattern": "hears the new pool's groups"},
        "termination-refresh": {"eventPattern": "hears the new pool's groups"},
        "kafka-rules": {"spec": "alerts that count brokers"},
        "budgets-staying": {"spec": "counts the pods of which one may go"},
        "autoscaler-policy": {"policy": "names the new pool's groups"},
        "nth-policy": {"policy": "names the new pool's groups"},
        "handlers-tick-policy": {"policy": "names the new pool's groups"},
        "handlers-*-function": {"environment": "names the brokers to begin with by their hash"},
        "handlers-kept": {"item": "brokers to bootstrap from in the new pool"},
        "handlers-network-to-kafka": {"toPort": "the ids reserved for the pool have ports"},
        "health-function-function": {"environment": "names the list of nodes by its hash"},
        "health-kept": {"item": "which nodes there should be"},
        "volumes-function-function": {
            "environment": "names the policies of the pools by their hash"
        },
        "volumes-kept": {"item": "the pools it looks after, with their zones"},
        **METRICS_OF_PODS,
        **FACTS_OF_THE_REPORT,
    },
    "spare nodes": METRICS_OF_PODS,
}


UNPINNED = {"availability_zones": [*ZONES, "us-east-1d"]}


@functools.cache
def recorded(provisioner: str, growth: str | None = None) -> Mapping[str, Resource]:
    """Return what the program registers, by URN: as it is, or grown."""
    changed = {None: {}, "an unpinned zone": UNPINNED, **GROWTH}[growth]
    raw = description(**{**FULL, **PROVISIONERS[provisioner], **changed})
    # With spare nodes it is one of the variants, whose ids are as AWS's.
    layers = run_layers(raw, real_sizes=True)
    return {r.urn: r for layer in layers.values() for r in layer.resources}


def changes(before: Resource, after: Resource) -> set[str]:
    """Return the inputs the engine would see change."""
    was, is_ = (_watched(each.inputs, after.ignore_changes) for each in (before, after))
    return {key for key in was.keys() | is_.keys() if was.get(key) != is_.get(key)}


def _watched(inputs: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    """Return inputs without what the engine does not compare; a path is of two names at most."""
    kept = dict(inputs)
    for path in ignored:
        name, _, below = path.partition(".")
        if isinstance(kept.get(name), dict) and below:
            kept[name] = {key: value for key, value in kept[name].items() if key != below}
        elif not below:
            kept.pop(name, None)
    return kept


def foreseen(growth: str, name: str) -> set[str]:
    return {
        key
        for pattern, inputs in INEVITABLE[growth].items()
        if fnmatchcase(name, pattern)
        for key in inputs
    }


@pytest.mark.parametrize("provisioner", PROVISIONERS)
@pytest.mark.parametrize("growth", GROWTH)
def test_growing_only_adds(growth: str, provisioner: str, cache: None) -> None:
    before, after = recorded(provisioner), recorded(provisioner, growth)
    assert not before.keys() - after.keys()
    added = [after[urn].name for urn in after.keys() - before.keys()]
    assert added
    stray = [n for n in added if not any(fnmatchcase(f"{n}-", p + "*") for p in NEW[growth])]
    assert not stray
    surprises = {
        before[urn].name: unforeseen
        for urn in before
        if (unforeseen := changes(before[urn], after[urn]) - foreseen(growth, before[urn].name))
    }
    assert not surprises, (
        f"Adding {growth} also changes what is there: {surprises}. Key the input by what it is "
        f"for, or, if there is no other way, give the reason in INEVITABLE."
    )


@pytest.mark.parametrize("growth", GROWTH)
def test_every_update_called_inevitable_happens(growth: str, cache: None) -> None:
    seen = set()
    for provisioner in PROVISIONERS:
        before, after = recorded(provisioner), recorded(provisioner, growth)
        for urn, resource in before.items():
            name = resource.name
            seen |= {
                (pattern, key)
                for key in changes(resource, after[urn])
                for pattern, inputs in INEVITABLE[growth].items()
                if key in inputs and fnmatchcase(name, pattern)
            }
    expected = {(p, key) for p, inputs in INEVITABLE[growth].items() for key in inputs}
    assert expected - seen == set()


@pytest.mark.parametrize("provisioner", PROVISIONERS)
def test_a_spare_broker_finds_its_place_prepared(provisioner: str, cache: None) -> None:
    prepared = recorded(provisioner, "spare nodes")
    grown = recorded(provisioner, "a broker per zone")
    # Its listener, target group and binding were there before it.
    assert grown.keys() == prepared.keys()
    changed = {grown[urn].name for urn in grown if changes(prepared[urn], grown[urn])}
    nodes = {f"nodes-{zone}-broker" for zone in ZONES} if provisioner == "asg" else set()
    pools = {f"kafka-{zone}-broker" for zone in ZONES}
    # Health and the report are told which nodes there should be.
    told = {"health-function-function", "health-kept", *FACTS_OF_THE_REPORT}
    assert changed == {*pools, *nodes, "kafka-rules", "budgets-staying", *told}


def controllers(resources: Mapping[str, Resource]) -> set[str]:
    """Return the names of what is there for controllers alone."""
    return {r.name for r in resources.values() if fnmatchcase(f"{r.name}-", "*-controller-*")}


@pytest.mark.parametrize("provisioner", PROVISIONERS)
def test_a_zone_adds_no_controller_to_a_pool_with_zones(provisioner: str, cache: None) -> None:
    before, after = recorded(provisioner), recorded(provisioner, "a zone")
    assert controllers(before)
    assert controllers(after) == controllers(before)


def test_a_zone_adds_a_controller_to_any_other_pool_and_check_and_the_guide_warn(
    cache: None,
) -> None:
    before, after = recorded("asg"), recorded("asg", "an unpinned zone")
    # The preview shows only additions, and Strimzi cannot make a voter of this one.
    assert "kafka-us-east-1d-controller" in controllers(after) - controllers(before)
    found, _accepted = description_findings(parse(description(**FULL)))
    (warning,) = [each.line for each in found if each.check == "quorum-grows"]
    assert "Strimzi cannot add a voter to a live cluster" in warning
    assert f"zones of the pool to [{', '.join(ZONES)}]" in warning
    guide = " ".join(GUIDE.read_text().split())
    assert "name the controllers' zones before you add one" in guide
