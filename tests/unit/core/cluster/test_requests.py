"""What pods request against what nodes have: a pod that fits nowhere waits for ever, and `up`."""

from __future__ import annotations

from typing import Any

from core.checks import contradictions
from core.cluster import limits, parse
from core.cluster.limits import ON_EVERY_NODE
from infra.spec import doubts_of
from infra.versions import ADDONS
from tests.every_case import every_case
from tests.unit.infra.programs import BROKER, CONTROLLER, description

GATE = {"image": "registry.example/gate:1"}


def refused(**changed: Any) -> list[str]:
    spec = parse(description(**changed))
    return [*limits.problems(spec), *contradictions.system_node_problems(spec)]


def broker(**changed: Any) -> list[dict[str, Any]]:
    small = {"instance_type": "r7g.xlarge", "volumes": [{"size_gib": 100}]}
    return [CONTROLLER, {**BROKER, **small, **changed}]


def test_what_runs_on_every_node_are_add_ons_of_ours() -> None:
    assert set(ON_EVERY_NODE) < set(ADDONS)


@every_case(
    ("changed", "words"),
    [
        # 3,920 m are left by the kubelet; the add-ons' pods request 190 of them.
        ({"pools": broker(cpu_request_millis=3731)}, "leaves it 3730 m beside what the system"),
        ({"pools": broker(memory_request_mib=31626)}, "leaves it 31625 MiB beside"),
        (
            {
                "pools": broker(memory_request_mib=29169),
                "node_provisioner": "karpenter",
                "eviction_gate": GATE,
            },
            "leaves it 29168 MiB beside what the system (as Karpenter reckons it)",
        ),
        (
            {"connect": {"replicas": 50}},
            "500 m of CPU and 2048 MiB, and the 6 system nodes (m7i.large) have room for 18",
        ),
        (
            {"connect": {"replicas": 10}, "cluster_autoscaler": False},
            "the 3 system nodes (m7i.large) have room for 9",
        ),
        (
            {"connect": {"replicas": 3, "cpu_request_millis": 1700}, "cluster_autoscaler": False},
            "5220 m of CPU for pods, and 6070 are requested",
        ),
        (
            {"connect": {"memory_request_mib": 7400, "replicas": 1}},
            "each pod of connect requests 7400: none could ever run",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_would_wait_for_ever_is_refused(changed: dict[str, Any], words: str) -> None:
    (sentence,) = refused(**changed)
    assert words in sentence
    assert sentence.endswith(".")


@every_case(
    "changed",
    [
        {"pools": broker(cpu_request_millis=3730)},
        {"pools": broker(memory_request_mib=31625)},
        {"pools": broker(cpu_request_millis=3740), "kubernetes": {"node_monitoring": False}},
        {"connect": {"replicas": 18}},
        {"connect": {"replicas": 8}, "cluster_autoscaler": False},
        {"connect": {"replicas": 50}, "kubernetes": {"system_nodes_per_zone": 3}},
        {"connect": {"replicas": 50}, "kubernetes": {"system_instance_type": "q9z.large"}},
        {"connect": {}, "eviction_gate": GATE, "probe": GATE, "strimzi": {"replicas": 5}},
    ],
    ids=str,
)
def test_what_just_fits_is_taken(changed: dict[str, Any]) -> None:
    assert refused(**changed) == []


def test_memory_that_a_machine_may_be_short_of_is_doubted() -> None:
    fits = parse(description(pools=broker(memory_request_mib=29168)))
    assert limits.tight(fits) == []
    (doubt,) = limits.tight(parse(description(pools=broker(memory_request_mib=29169))))
    assert "up to 7.5%" in doubt
    assert "ask for 29168 MiB or less" in doubt
    assert doubt in doubts_of(parse(description(pools=broker(memory_request_mib=29169))))
