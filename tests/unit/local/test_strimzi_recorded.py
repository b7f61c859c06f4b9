"""Compares what the twin's operator makes with what Strimzi 1.2.0 made of the same resources.

The recorded objects lie outside this repository. Every difference has a reason here, by pattern,
and a reason that no longer applies fails as well.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from local.kafka.run import settings
from local.kubernetes import strimzi_resources
from local.kubernetes.client import Api
from local.kubernetes.strimzi import pod_of, pod_set_status
from local.kubernetes.strimzi_authorities import Authorities
from local.kubernetes.strimzi_model import KafkaCluster, node_ids, read
from local.kubernetes.strimzi_objects import OperatorObjects
from local.kubernetes.strimzi_reconciliation import pool_status
from tests.unit.local.held_objects import HeldObjects

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "data" / "strimzi-1.2.0"
NO_PROGRAM = "a process of this machine stands for the image, its scripts and its agent"
NO_RIGHTS = "nothing in the pod asks the Kubernetes API"
BY_SECRETS = "certificates are mounted; Strimzi's pods read them through the API"
SERVER = "the API server, the kubelet or a controller of Kubernetes fills it in"
DIGEST = "a digest, and what goes into it is spelt differently"
HEALTH = "the twin's health agent answers probes, sooner than Strimzi's scripts"
# Kind and path of a field, and why it differs; `*` is any name in the path.
REASONS = {
    r"(Role|RoleBinding)/.*": NO_RIGHTS,
    r"NetworkPolicy/.*": "the twin enforces no network policies",
    r"Service/.*/metadata/(annotations|labels)/strimzi\.io/discovery": "nothing discovers Services",
    r"Service/.*/ports/tcp-kafkaagent/.*": NO_PROGRAM,
    r"Service/.*/(clusterIPs?|internalTrafficPolicy|ipFamil\w+)(/.*)?": SERVER,
    r"\w+/.*/metadata/generation": SERVER,
    r"Pod/.*/(ownerReferences/[^/]+/uid|metadata/labels/topology\.kubernetes\.io/\w+)": SERVER,
    r"(Service|Pod|PersistentVolumeClaim)/[^/]+/status/.*": SERVER,
    r"PersistentVolumeClaim/.*/(metadata/annotations/(pv|volume)\..*|finalizers/.*)": SERVER,
    r"PersistentVolumeClaim/.*/spec/(volumeMode|volumeName)": SERVER,
    r"Pod/[^/]+/spec/(dnsPolicy|enableServiceLinks|nodeName|preemptionPolicy|priority)": SERVER,
    r"Pod/[^/]+/spec/(readinessGates|serviceAccount|tolerations)(/.*)?": SERVER,
    r"Pod/[^/]+/spec/.*/(terminationMessage\w+|successThreshold|defaultMode)": SERVER,
    r"Pod/[^/]+/spec/.*/resources/.*/memory": SERVER,
    r"\w+/.*/annotations/strimzi\.io/(configuration-hash|(resource-)?revision|\S+-hash)": DIGEST,
    r"\w+/.*/spec/initContainers/.*": "the kubelet looks up a node's rack itself",
    r"\w+/.*/volumes?(Mounts)?/(rack-volume|ready-files|strimzi-tmp)/.*": NO_PROGRAM,
    r"\w+/.*/volumes?(Mounts)?/kube-api-access/.*": NO_RIGHTS,
    r"\w+/.*/volumes?(Mounts)?/[a-z-]+-certs/.*": BY_SECRETS,
    r"\w+/.*/volumeMounts/kafka-metrics-and-logging/mountPath": "the same folder, without a slash",
    r"\w+/.*/containers/kafka/(args/.*|ports/tcp-kafkaagent/.*)": NO_PROGRAM,
    r"\w+/.*/containers/kafka/(live|readi)nessProbe/exec/.*": HEALTH,
    r"\w+/.*/containers/kafka/(live|readi)nessProbe/(httpGet|tcpSocket)/.*": HEALTH,
    r"ConfigMap/.*/data/log4j2\.properties": "the twin has one logging configuration",
    r"ConfigMap/.*/data/rack\.topology\.key": "the kubelet looks up a node's rack itself",
    r"ConfigMap/.*/config\.providers.*": BY_SECRETS,
    r"ConfigMap/.*/(listener\.name\.)?.*ssl\.(keystore|truststore)\..*": BY_SECRETS,
    r"ConfigMap/.*/(sasl\.enabled\.mechanisms|ssl\.endpoint\.identification\.algorithm)": (
        "Strimzi unsets them; no listener here has them set"
    ),
    r"ConfigMap/.*/prometheus\.metrics\.reporter\.listener\.enable": "the reporter's default",
}


def recorded(kind: str) -> dict[str, dict[str, Any]]:
    """Return the recorded objects of a kind that the operator made, by name."""
    plural = {"PersistentVolumeClaim": "pvc", "NetworkPolicy": "networkpolicies"}
    name = plural.get(kind, f"{kind.lower()}s")
    found = yaml.safe_load_all((RECORDED / f"{name}.yaml").read_text())
    ours = ("Kafka", "KafkaNodePool")
    return {
        each["metadata"]["name"]: each
        for each in found
        if kind in ours or "strimzi.io/kind" in (each["metadata"].get("labels") or {})
    }


def described() -> KafkaCluster:
    (kafka,) = recorded("Kafka").values()
    pools = [
        p | {"metadata": p["metadata"] | {"uid": "..."}} for p in recorded("KafkaNodePool").values()
    ]
    kafka["metadata"]["uid"] = "..."
    return read(kafka, pools, node_ids(pools), str(pools[0]["status"]["clusterId"]))


def made(cluster: KafkaCluster) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what the twin's operator makes of a Kafka, by kind and name."""
    held = HeldObjects()
    objects = OperatorObjects(cast("Api", held))
    issued = Authorities(cast("Api", held), objects).bring(cluster, [])
    pods = {
        cluster.pod(node): strimzi_resources.pod(cluster, node, issued[cluster.pod(node)])
        for node in cluster.nodes
    }
    sets = [strimzi_resources.pod_set(cluster, pool, pods) for pool in cluster.pools]
    for each in (
        strimzi_resources.service_account(cluster),
        *strimzi_resources.services(cluster),
        *(strimzi_resources.config_map(cluster, node) for node in cluster.nodes),
        *(claim for node in cluster.nodes for claim in strimzi_resources.claims(cluster, node)),
    ):
        objects.apply(each)
    for each in sets:
        each["metadata"]["generation"] = 1
        known = {**each, "metadata": {**each["metadata"], "uid": "..."}}
        mine = {pod["metadata"]["name"]: pod_of(known, pod) for pod in each["spec"]["pods"]}
        each["status"] = pod_set_status(each, mine, mine)
        for rendered in (each, *mine.values()):
            objects.apply(rendered)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for each in held.objects.values():
        found.setdefault(each["kind"], {})[each["metadata"]["name"]] = each
    found["KafkaNodePool"] = {
        name: {
            **pool,
            "status": {
                **pool_status(cluster, name),
                "observedGeneration": pool["metadata"]["generation"],
                "conditions": [],
            },
        }
        for name, pool in recorded("KafkaNodePool").items()
    }
    return found


def fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every leaf; items of a list are known by their names where they have some."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from fields(item, f"{path}/{key}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            named = item.get("name", item.get("key", number)) if isinstance(item, dict) else number
            yield from fields(item, f"{path}/{named}")
    else:
        yield path, value


def leaves(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return an object's fields; of data, where only lengths or keys were kept, the keys."""
    if kind in {"Secret", "ConfigMap"}:
        data = dict(item["data"])
        keys = data.pop("server.config", [])
        keys = settings(keys).keys() if isinstance(keys, str) else keys
        item = {**item, "data": dict.fromkeys(data), "server.config": dict.fromkeys(keys)}
    return dict(fields(item, f"{kind}/{item['metadata']['name']}"))


def every_leaf(kind: str, items: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {path: leaf for item in items.values() for path, leaf in leaves(kind, item).items()}


def comparison(theirs: object, mine: object) -> str:
    if mine is ABSENT:
        return "missing"
    if theirs is ABSENT:
        return "extra"
    return "equal" if theirs == mine else "differing"


ABSENT = object()
KINDS = (
    *("KafkaNodePool", "StrimziPodSet", "Pod", "Service", "ConfigMap", "Secret"),
    *("PersistentVolumeClaim", "ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"),
)


@pytest.mark.skipif(not RECORDED.exists(), reason=f"{RECORDED} is not there")
def test_what_is_made_differs_from_strimzis_only_where_a_reason_is_known() -> None:
    cluster = replace(described(), health_agent_port=1, health_rules="strict")
    ours = made(cluster)
    counts, unexplained, used = Counter[tuple[str, str]](), [], set[str]()
    for kind in KINDS:
        theirs = every_leaf(kind, recorded(kind))
        mine = every_leaf(kind, ours.get(kind, {}))
        for path in sorted(theirs.keys() | mine.keys()):
            how = comparison(theirs.get(path, ABSENT), mine.get(path, ABSENT))
            why = next((each for each in REASONS if re.fullmatch(each, path)), "")
            if how == "equal":
                why = ""
            elif not why:
                unexplained.append(f"{how} {path}: {theirs.get(path)!r}, here {mine.get(path)!r}")
            used.add(why)
            counts[how, REASONS.get(why, "")] += 1
    for (how, reason), count in sorted(counts.items()):
        sys.stdout.write(f"{count:5d} {how:9s} {reason}\n")
    assert not unexplained, "\n".join(unexplained)
    unused = REASONS.keys() - used
    assert not unused, unused
