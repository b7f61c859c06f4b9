"""Answers in which one word, key or shape is new: read, or refused in a sentence."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from core.ground.errors import StillwaterError
from core.incidents.observation import cluster_ownership
from core.volumes.views import ModificationState
from handlers.adapters.aws import AwsCloud, Ec2Inventory
from handlers.adapters.claims import EksClaims, gib, read_conditions
from handlers.adapters.kubernetes import EksDrain, EksNodeClaims, EksNodes
from handlers.adapters.pods import EksPods
from handlers.adapters.templates import RootVolumes
from handlers.adapters.volumes import Ec2Ebs
from tests.every_case import every_case
from tests.unit.core.test_stored import at as place

STRANGE: tuple[Any, ...] = ("Perhaps", None, 7, [], {}, ["Perhaps"], {"perhaps": 1})


def changed(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield a document once for each of its places, with something else there, or nothing."""
    for path in paths(document):
        for strange in STRANGE:
            copy = json.loads(json.dumps(document))
            place(copy, path[:-1])[path[-1]] = strange
            yield f"{path} = {strange!r}", copy
        copy = json.loads(json.dumps(document))
        del place(copy, path[:-1])[path[-1]]
        yield f"{path} is missing", copy


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from paths(value[key], (*path, key))


def tracebacks(readers: Mapping[str, Callable[[], Any]]) -> list[str]:
    found = []
    for name, read in readers.items():
        try:
            read()
        except StillwaterError:
            continue
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            found.append(f"{name}: {error!r}")
    return found


MOMENT = "2026-11-20T10:00:00Z"
POD = {
    "metadata": {"name": "orders-broker-a-10", "namespace": "kafka", "uid": "u",
        "labels": {"strimzi.io/cluster": "orders", "strimzi.io/pool-name": "broker-a",
            "strimzi.io/broker-role": "true"}, "annotations": {"strimzi.io/revision": "r1"},
        "ownerReferences": [{"kind": "StrimziPodSet"}], "creationTimestamp": MOMENT},
    "spec": {"nodeName": "a", "terminationGracePeriodSeconds": 300, "readinessGates": None},
    "status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": MOMENT},
            {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [
            {"name": "kafka", "restartCount": 1, "state": {"running": {"startedAt": MOMENT}}}]},
}  # fmt: skip
NODE = {
    "metadata": {"name": "a",
        "labels": {"topology.kubernetes.io/zone": "us-east-1a", "stillwater.dev/pool": "broker"},
        "annotations": {"stillwater.dev/spare-for": "i-0a"}, "creationTimestamp": MOMENT},
    "spec": {"providerID": "aws:///us-east-1a/i-1",
        "taints": [{"key": "dedicated", "effect": "NoSchedule"}], "unschedulable": False},
    "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": MOMENT}],
        "nodeInfo": {"kubeletVersion": "v1.34.1", "bootID": "b"}},
}  # fmt: skip
LISTS: Mapping[str, Any] = {
    "pods": POD,
    "nodes": NODE,
    "csinodes": {"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "ebs.csi.aws.com"}]}},
    "volumeattachments": {"metadata": {"name": "v", "uid": "u"},
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "a",
            "source": {"persistentVolumeName": "pv"}}},
    "poddisruptionbudgets": {"metadata": {"name": "orders"},
        "spec": {
            "selector": {"matchLabels": {"strimzi.io/cluster": "orders"},
                "matchExpressions": [
                    {"key": "strimzi.io/pool-name", "operator": "In", "values": ["broker-a"]}]}},
        "status": {"disruptionsAllowed": 1}},
    "strimzipodsets": {"metadata": {"name": "orders-broker-a", "generation": 1, "annotations": {}},
        "spec": {"pods": [POD]}, "status": {"observedGeneration": 1, "pods": 1, "currentPods": 1}},
    "kafkas": {"metadata": {"name": "orders", "generation": 1},
        "status": {"observedGeneration": 1,
            "conditions": [
                {"type": "NotReady", "status": "True", "reason": "FatalProblem",
                    "message": "Pod p is unschedulable", "lastTransitionTime": MOMENT},
                {"type": "Warning", "status": "True", "reason": "r", "message": "m"}]}},
    "nodeclaims": {
        "metadata": {"name": "c", "uid": "u", "creationTimestamp": MOMENT, "labels": {"p": "b"}},
        "spec": {"expireAfter": "720h", "terminationGracePeriod": "1h"},
        "status": {"providerID": "aws:///us-east-1a/i-1", "nodeName": "a",
            "conditions": [{"type": "Initialized", "status": "True", "reason": "Initialized"}]}},
    "persistentvolumes": {"metadata": {"name": "pv"},
        "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}},
    "persistentvolumeclaims": {
        "metadata": {"name": "data-0-orders-broker-a-10", "labels": {"strimzi.io/pool-name": "p"}},
        "spec": {"volumeName": "pv", "resources": {"requests": {"storage": "100Gi"}},
            "volumeAttributesClassName": "gp3-3000-125"},
        "status": {"capacity": {"storage": "100Gi"}, "modifyVolumeStatus": {"status": "InProgress"},
            "conditions": [{"type": "Resizing", "status": "True"}]}},
    "kafkanodepools": {"metadata": {"name": "p", "resourceVersion": "1", "generation": 1},
        "status": {"observedGeneration": 1},
        "spec": {
            "storage": {
                "volumes": [
                    {"id": 0, "type": "persistent-claim", "size": "100Gi",
                        "volumeAttributesClass": "gp3-3000-125"}]}}},
    "volumeattributesclasses": {"metadata": {"name": "gp3-3000-125"}},
}  # fmt: skip


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
        "conditions": lambda: read_conditions(api, "kafka", "orders", "us-east-1"),
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
    with pytest.raises(ValueError, match="not a quantity"):
        gib(written)


AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
ANSWERS: Mapping[str, Any] = {
    "describe_instances": {
        "Reservations": [
            {
                "Instances": [
                    {"InstanceId": "i-1", "InstanceType": "m7i.large", "State": {"Name": "running"},
                        "Placement": {"AvailabilityZone": "us-east-1a"},
                        "Tags": [{"Key": "k", "Value": "v"}]}]}]},
    "describe_auto_scaling_groups": {
        "AutoScalingGroups": [
            {"AutoScalingGroupName": "g", "DesiredCapacity": 1, "MaxSize": 2,
                "AvailabilityZones": ["us-east-1a"],
                "Instances": [{"InstanceId": "i-1", "LifecycleState": "InService"}]}]},
    "describe_volumes": {
        "Volumes": [
            {"VolumeId": "vol-1", "VolumeType": "gp3", "Size": 100, "Iops": 3000, "Throughput": 125,
                "AvailabilityZone": "us-east-1a",
                "Attachments": [{"InstanceId": "i-1", "State": "attached"}],
                "Tags": [{"Key": "k", "Value": "v"}]}]},
    "describe_volumes_modifications": {
        "VolumesModifications": [
            {"VolumeId": "vol-1", "ModificationState": "optimizing", "StartTime": AT,
                **{f"{side}{what}": 1 for side in ("Target", "Original") for what in ("Size",)},
                **{f"{side}Iops": 3000 for side in ("Target", "Original")},
                **{f"{side}Throughput": 125 for side in ("Target", "Original")}}]},
    "describe_instance_status": {
        "InstanceStatuses": [
            {"InstanceId": "i-1",
                "SystemStatus": {"Status": "impaired",
                    "Details": [{"Status": "failed", "ImpairedSince": AT}]},
                "Events": [{"Code": "instance-stop", "InstanceEventId": "e", "NotBefore": AT}]}]},
    "describe_availability_zones": {
        "AvailabilityZones": [{"ZoneId": "use1-az1", "ZoneName": "us-east-1a"}]},
    "describe_replace_root_volume_tasks": {
        "ReplaceRootVolumeTasks": [
            {"ReplaceRootVolumeTaskId": "r", "TaskState": "pending",
                "Tags": [{"Key": "stillwater:incident", "Value": "i-1"}]}]},
}  # fmt: skip


class Client:
    """Answers every call, and every page of one."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers

    def __getattr__(self, call: str) -> Callable[..., Any]:
        return lambda **_: self.answers[call]

    def get_paginator(self, call: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: [self.answers[call]])


def aws(answers: Mapping[str, Any]) -> Mapping[str, Callable[[], Any]]:
    client: Any = Client(answers)
    cloud, inventory = AwsCloud.__new__(AwsCloud), Ec2Inventory.__new__(Ec2Inventory)
    ebs, roots = Ec2Ebs.__new__(Ec2Ebs), RootVolumes.__new__(RootVolumes)
    for each in (cloud, inventory, ebs, roots):
        each._ec2 = client
    cloud._groups, cloud._zone_names = client, None
    return {
        "instance": lambda: cloud.instance("i-1"),
        "group": lambda: cloud.group("g"),
        "groups": lambda: cloud.groups_of(cluster_ownership("orders")),
        "volumes on": lambda: cloud.volumes_on("i-1"),
        "zones": cloud.zone_names,
        "volume": lambda: inventory.volume("vol-1"),
        "states": lambda: inventory.instance_states(cluster_ownership("orders")),
        "statuses": lambda: inventory.statuses(["i-1"]),
        "volumes": lambda: ebs.volumes(["vol-1"]),
        "modifications": lambda: ebs.modifications(["vol-1"]),
        "types": lambda: ebs.instance_types(["i-1"]),
        "task": lambda: roots.task_of("i-1", "i-1"),
    }


def changed_answers(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield what `changed` does, with moments as the client gives them."""
    plain = json.loads(json.dumps(document, default=lambda _: MOMENT))
    for what, copy in changed(plain):
        yield what, with_moments(copy)


def with_moments(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_moments(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_moments(each) for each in value]
    return AT if value == MOMENT else value


@every_case("call", ANSWERS)
def test_whatever_aws_answers_is_read_or_refused_in_a_sentence(call: str) -> None:
    found = [
        f"{call} {what}: {each}"
        for what, document in changed_answers(ANSWERS[call])
        for each in tracebacks(aws({**ANSWERS, call: document}))
    ]
    assert found == []


MODIFIED = ANSWERS["describe_volumes_modifications"]["VolumesModifications"]


def test_a_volume_that_was_gp2_hides_no_other() -> None:
    was = {k: v for k, v in MODIFIED[0].items() if k != "OriginalThroughput"}
    found = {"VolumesModifications": [*MODIFIED, {**was, "VolumeId": "vol-2"}]}
    readers = aws({**ANSWERS, "describe_volumes_modifications": found})
    assert readers["modifications"]().keys() == {"vol-1", "vol-2"}


def test_a_state_of_a_modification_that_nobody_here_knows_is_under_way() -> None:
    (answer,) = MODIFIED
    newer = {"VolumesModifications": [{**answer, "ModificationState": "rehearsing"}]}
    readers = aws({**ANSWERS, "describe_volumes_modifications": newer})
    found = readers["modifications"]()["vol-1"]
    assert (found.state, found.word) == (ModificationState.UNKNOWN, "rehearsing")
    assert not found.state.over
