"""Answers of Kubernetes in which one word, key or shape is new: read, or refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from handlers.adapters.claims import EksClaims, gib, read_conditions
from handlers.adapters.kubernetes import EksDrain, EksNodeClaims, EksNodes
from handlers.adapters.pods import EksPods
from tests.every_case import every_case
from tests.unit.handlers.adapters.strange import changed, tracebacks

MOMENT = "2026-11-20T10:00:00Z"
POD = {
    "metadata": {
        "name": "orders-broker-a-10",
        "namespace": "kafka",
        "uid": "u",
        "labels": {
            "strimzi.io/cluster": "orders",
            "strimzi.io/pool-name": "broker-a",
            "strimzi.io/broker-role": "true",
        },
        "annotations": {"strimzi.io/revision": "r1"},
        "ownerReferences": [{"kind": "StrimziPodSet"}],
        "creationTimestamp": MOMENT,
    },
    "spec": {"nodeName": "a", "terminationGracePeriodSeconds": 300, "readinessGates": None},
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": MOMENT},
            {"type": "PodScheduled", "status": "True"},
        ],
        "containerStatuses": [
            {"name": "kafka", "restartCount": 1, "state": {"running": {"startedAt": MOMENT}}}
        ],
    },
}
NODE = {
    "metadata": {
        "name": "a",
        "labels": {"topology.kubernetes.io/zone": "us-east-1a", "stillwater.dev/pool": "broker"},
        "annotations": {"stillwater.dev/spare-for": "i-0a"},
        "creationTimestamp": MOMENT,
    },
    "spec": {
        "providerID": "aws:///us-east-1a/i-1",
        "taints": [{"key": "dedicated", "effect": "NoSchedule"}],
        "unschedulable": False,
    },
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": MOMENT}],
        "nodeInfo": {"kubeletVersion": "v1.34.1", "bootID": "b"},
    },
}
LISTS: Mapping[str, Any] = {
    "pods": POD,
    "nodes": NODE,
    "csinodes": {"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "ebs.csi.aws.com"}]}},
    "volumeattachments": {
        "metadata": {"name": "v", "uid": "u"},
        "spec": {
            "attacher": "ebs.csi.aws.com",
            "nodeName": "a",
            "source": {"persistentVolumeName": "pv"},
        },
    },
    "poddisruptionbudgets": {
        "metadata": {"name": "orders"},
        "spec": {
            "selector": {
                "matchLabels": {"strimzi.io/cluster": "orders"},
                "matchExpressions": [
                    {"key": "strimzi.io/pool-name", "operator": "In", "values": ["broker-a"]}
                ],
            }
        },
        "status": {"disruptionsAllowed": 1},
    },
    "strimzipodsets": {
        "metadata": {"name": "orders-broker-a", "generation": 1, "annotations": {}},
        "spec": {"pods": [POD]},
        "status": {"observedGeneration": 1, "pods": 1, "currentPods": 1},
    },
    "kafkas": {
        "metadata": {"name": "orders", "generation": 1},
        "status": {
            "observedGeneration": 1,
            "conditions": [
                {
                    "type": "NotReady",
                    "status": "True",
                    "reason": "FatalProblem",
                    "message": "Pod p is unschedulable",
                    "lastTransitionTime": MOMENT,
                },
                {"type": "Warning", "status": "True", "reason": "r", "message": "m"},
            ],
        },
    },
    "nodeclaims": {
        "metadata": {"name": "c", "uid": "u", "creationTimestamp": MOMENT, "labels": {"p": "b"}},
        "spec": {"expireAfter": "720h", "terminationGracePeriod": "1h"},
        "status": {
            "providerID": "aws:///us-east-1a/i-1",
            "nodeName": "a",
            "conditions": [{"type": "Initialized", "status": "True", "reason": "Initialized"}],
        },
    },
    "persistentvolumes": {
        "metadata": {"name": "pv"},
        "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}},
    },
    "persistentvolumeclaims": {
        "metadata": {"name": "data-0-orders-broker-a-10", "labels": {"strimzi.io/pool-name": "p"}},
        "spec": {
            "volumeName": "pv",
            "resources": {"requests": {"storage": "100Gi"}},
            "volumeAttributesClassName": "gp3-3000-125",
        },
        "status": {
            "capacity": {"storage": "100Gi"},
            "modifyVolumeStatus": {"status": "InProgress"},
            "conditions": [{"type": "Resizing", "status": "True"}],
        },
    },
    "kafkanodepools": {
        "metadata": {"name": "p", "resourceVersion": "1", "generation": 1},
        "status": {"observedGeneration": 1},
        "spec": {
            "storage": {
                "volumes": [
                    {
                        "id": 0,
                        "type": "persistent-claim",
                        "size": "100Gi",
                        "volumeAttributesClass": "gp3-3000-125",
                    }
                ]
            }
        },
    },
    "volumeattributesclasses": {"metadata": {"name": "gp3-3000-125"}},
}


class Api:
    """Answers every list with one object."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self.lists = lists

    def list(self, path: str, **_: str) -> Iterator[Any]:
        yield self.lists[path.rpartition("/")[2]]

    def find(self, path: str) -> Any:
        return self.lists["pods" if "/pods/" in path else "kafkas"]


def kubernetes(api: Any) -> Mapping[str, Callable[[], Any]]:
    nodes, claims = EksNodes(api, "kafka", "orders"), EksClaims(api, "kafka", "orders")
    return {
        "nodes": nodes.nodes,
        "pods": nodes.kafka_pods,
        "pod": lambda: nodes.kafka_pod("orders-broker-a-10"),
        "attachments": nodes.attachments,
        "budgets": nodes.budgets,
        "operator": nodes.operator,
        "on a node": lambda: EksDrain(api, "kafka", "orders").pods_on("a"),
        "node claims": EksNodeClaims(api, {"p": ()}).claims,
        "claims": claims.claims,
        "pools": lambda: [pool.volumes for pool in claims.pools()],
        "conditions": lambda: read_conditions(api, "kafka", "orders"),
        "classes": claims.classes,
        "health": EksPods(api, "kafka", "orders").pods,
    }


@every_case("kind", LISTS)
def test_whatever_kubernetes_answers_is_read_or_refused_in_a_sentence(kind: str) -> None:
    found = [
        f"{kind} {what}: {each}"
        for what, document in changed(LISTS[kind])
        for each in tracebacks(kubernetes(Api({**LISTS, kind: document})))
    ]
    assert found == []


def test_a_selector_that_nobody_here_knows_may_mean_any_pod() -> None:
    newer = {"key": "strimzi.io/pool-name", "operator": "Matches", "values": ["x.*"]}
    budget = json.loads(json.dumps(LISTS["poddisruptionbudgets"]))
    budget["spec"]["selector"]["matchExpressions"] = [newer]
    budget["status"]["disruptionsAllowed"] = 0
    api: Any = Api({**LISTS, "poddisruptionbudgets": budget})
    (found,) = EksNodes(api, "kafka", "orders").budgets()
    assert found.pods == {"orders-broker-a-10"}


@every_case(
    "written, wanted",
    [
        ("100Gi", 100),
        ("1e11", 94),
        ("1E2Gi", None),
        ("107374182400", 100),
        ("107374182400000m", 100),
        ("0.5Ti", 512),
        (".5Ti", 512),
        ("1Ei", 1 << 30),
        ("1E", 931_322_575),
        ("100GiB", None),
        ("", None),
        ("-1Gi", None),
    ],
)
def test_a_quantity_is_read_as_the_api_server_takes_it(written: str, wanted: int | None) -> None:
    if wanted is not None:
        assert gib(written) == wanted
        return
    with pytest.raises(ValueError, match="no quantity"):
        gib(written)
