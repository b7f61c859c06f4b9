"""All that stands in a twin's account and cluster, so that two moments can be compared.

What lives by itself is left out or named by what stays: machines by their group or zone, pods by
who made them. Everything else is compared whole: labels, annotations, settings.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local.kubernetes.client import Api
from local.pulumi import aws_eks
from local.twin import Twin
from tests.integration.leftovers import LISTED, everything, pages

ZONE = "topology.kubernetes.io/zone"
GROUP_SETTINGS = (
    "MinSize",
    "MaxSize",
    "DesiredCapacity",
    "VPCZoneIdentifier",
    "Tags",
    "SuspendedProcesses",
    "InstanceLifecyclePolicy",
    "InstanceMaintenancePolicy",
    "NewInstancesProtectedFromScaleIn",
)
# Heartbeats and reports of what runs.
LIVING = {"Lease", "EndpointSlice", "Endpoints", "CSINode", "VolumeAttachment", "PodMetrics"}
OF_A_VERSION = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")
OF_A_MACHINE = ("kubernetes.io/hostname",)


def take_inventory(twin: Twin) -> dict[str, Any]:
    """Return everything by names that outlast a rotation; what shares one stands there together."""
    found: dict[str, list[Any]] = {}
    for name, state in (*_aws(twin), *_kubernetes(twin.api)):
        found.setdefault(name, []).append(state)
    return {name: sorted(states, key=_text) for name, states in found.items()}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what is not as it was, with both of its states."""
    return {
        name: (before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def _text(state: Any) -> str:
    return json.dumps(state, sort_keys=True, default=str)


def _aws(twin: Twin) -> Iterator[tuple[str, Any]]:
    for service, call, key, field in LISTED:
        for item in pages(twin.aws(service), call, key):
            name = item if isinstance(item, str) else item.get(field) or _identity(item)
            yield f"{service} {key} {name}", "there" if field else _plain(item)
    scaling = twin.aws("autoscaling")
    for group in pages(scaling, "describe_auto_scaling_groups", "AutoScalingGroups"):
        name = group["AutoScalingGroupName"]
        hooks = scaling.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]
        yield f"group {name}", _plain({key: group.get(key) for key in GROUP_SETTINGS})
        yield f"hooks of {name}", _plain(hooks)
        members = [(m["LifecycleState"], m["ProtectedFromScaleIn"]) for m in group["Instances"]]
        yield f"members of {name}", members
    for cluster in pages(twin.aws("eks"), "list_clusters", "clusters"):
        yield (
            f"EKS cluster {cluster}",
            _plain(twin.aws("eks").describe_cluster(name=cluster)["cluster"]),
        )
    yield from _ec2(twin)


def _ec2(twin: Twin) -> Iterator[tuple[str, Any]]:
    ec2 = twin.aws("ec2")
    for reservation in pages(ec2, "describe_instances", "Reservations"):
        for instance in reservation["Instances"]:
            if instance["State"]["Name"] == "running":
                subnet, tags = instance["SubnetId"], instance.get("Tags") or []
                yield f"instance in {subnet}", sorted((t["Key"], t["Value"]) for t in tags)
    for volume in pages(ec2, "describe_volumes", "Volumes"):
        if tags := volume.get("Tags"):
            yield f"volume {volume['VolumeId']}", [volume["State"], volume["Iops"], _plain(tags)]
    for interface in pages(ec2, "describe_network_interfaces", "NetworkInterfaces"):
        if interface.get("InterfaceType") == "lambda":
            yield f"interface {interface['NetworkInterfaceId']}", interface["Description"]


def _identity(item: Mapping[str, Any]) -> str:
    return str(next(item[key] for key in ("GroupId", "LaunchTemplateId") if key in item))


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True, default=str))


def _kubernetes(api: Api) -> Iterator[tuple[str, Any]]:
    makers: dict[str, Callable[[Any], tuple[str, Any]]] = {"Node": _node, "Pod": _pod}
    for item in everything(api):
        if item["kind"] not in LIVING and not _without_entries(item):
            yield makers.get(item["kind"], _object)(item)


def _without_entries(item: Mapping[str, Any]) -> bool:
    """Say whether it is the file in which the twin keeps EKS's access entries, with none in it."""
    named = (item["metadata"].get("namespace"), item["metadata"]["name"])
    return named == ("kube-system", aws_eks.NAME) and item["data"].get("mapRoles") == "[]\n"


def _object(item: Mapping[str, Any]) -> tuple[str, Any]:
    metadata = {k: v for k, v in item["metadata"].items() if k not in OF_A_VERSION}
    kept = {k: v for k, v in item.items() if k not in {"status", "metadata"}}
    name = f"{item['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
    return name, _plain({**kept, "metadata": metadata})


def _node(item: Mapping[str, Any]) -> tuple[str, Any]:
    metadata, spec = item["metadata"], item.get("spec") or {}
    labels = {k: v for k, v in metadata.get("labels", {}).items() if k not in OF_A_MACHINE}
    annotations = sorted(metadata.get("annotations") or {})
    marks = {"taints": spec.get("taints"), "unschedulable": spec.get("unschedulable")}
    name = f"Node in {metadata.get('labels', {}).get(ZONE)}"
    return name, {"labels": labels, "annotations": annotations, **marks}


def _pod(item: Mapping[str, Any]) -> tuple[str, Any]:
    metadata = item["metadata"]
    owners = sorted(f"{o['kind']} {o['name']}" for o in metadata.get("ownerReferences") or [])
    made = metadata.get("generateName") or metadata["name"]
    kept = {key: metadata.get(key) for key in ("labels", "annotations")}
    return f"Pod {metadata['namespace']}/{made}", {"owners": owners, **kept}
