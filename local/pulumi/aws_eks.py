"""The EKS cluster as moto describes it, its managed nodes as a group of real instances, add-ons.

moto has no access entries. The real aws-iam-authenticator of the twin watches the ConfigMap that
EKS used before it had them, so an entry becomes a row of kube-system/aws-auth, and RBAC decides as
on EKS.

Add-ons are stored as said. The twin's own parts stand where an add-on's pods would: its kubelet for
the network plugin and DNS, its CSI stand-in for the volume driver. The snapshot controller's kinds
are real objects of the API server, since the program makes some of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import yaml

from core.ground.errors import StillwaterError
from local.kubernetes import crds
from local.kubernetes.client import Api, ApiError, administrator, find, tolerating
from local.place import Place
from local.processes import listens, until
from local.pulumi.aws_adapter import (
    Adapter,
    Aws,
    adapts,
    has_changed,
    request,
    tag_list,
)
from local.pulumi.aws_ec2 import wait_for_capacity, wait_until_gone
from local.pulumi.provider import Existing, Resource, State
from local.refusals.documents import as_list
from local.refusals.refusal import Refusal, Refused
from local.values import Properties

SNAPSHOT_CONTROLLER = "snapshot-controller"
FIELD_MANAGER = "eks"
GONE_SECONDS, GONE_POLL_SECONDS = 60, 0.3
REMINDED = "stillwater.dev/reminded"


@adapts("eks/addon:Addon")
class AddonAdapter(Adapter):
    replaces = frozenset({"clusterName", "addonName"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        cluster, addon = inputs["clusterName"], inputs["addonName"]
        if addon == SNAPSHOT_CONTROLLER:
            _define_snapshots(aws, cluster)
        path = f"addon/{cluster}/{addon}/{resource.token(36)}"
        return State(
            f"{cluster}:{addon}",
            {
                "arn": aws.arn("eks", path),
                # EKS says which it chose where the program names none.
                "addonVersion": inputs.get("addonVersion") or "v0.0.0-twin.1",
            },
        )

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:  # noqa: ARG002
        return {"addonVersion": inputs.get("addonVersion") or existing.outputs["addonVersion"]}

    def delete(self, aws: Aws, existing: Existing) -> None:
        if existing.inputs["addonName"] == SNAPSHOT_CONTROLLER:
            _forget_snapshots(aws, existing.inputs["clusterName"])


def _control_plane(aws: Aws) -> Place | None:
    """Return the place where it has an API server; None for an account without one."""
    place = aws.place
    return place if place is not None and place.path("kubeconfig").exists() else None


def _api(aws: Aws) -> Api | None:
    place = _control_plane(aws)
    return None if place is None else administrator(place)


def _define_snapshots(aws: Aws, cluster: str) -> None:
    api = _api(aws)
    if api is not None:
        for definition in crds.snapshot_definitions():
            name = definition["metadata"]["name"]
            api.apply(f"{crds.DEFINITIONS}/{name}", definition, field_manager=_manager(cluster))


def _forget_snapshots(aws: Aws, cluster: str) -> None:
    api = _api(aws)
    if api is None:
        return
    paths = [
        f"{crds.DEFINITIONS}/{each['metadata']['name']}" for each in crds.snapshot_definitions()
    ]
    mine = [path for path in paths if not _others_need(api, path, cluster)]
    for path in mine:
        with tolerating(404):
            api.delete(path)
    for path in mine:
        # A definition that is still going takes a new one of its name with it.
        if not until(partial(_is_gone, api, path), GONE_SECONDS, GONE_POLL_SECONDS):
            raise StillwaterError(f"{path} is still there {GONE_SECONDS} s after its deletion.")


def _is_gone(api: Api, path: str) -> bool:
    """Change a definition that is going, or learn that it has gone.

    The API server's finalizer gives up on a definition whose storage was made a moment ago
    ("storage is (re)initializing"), and looks again when somebody changes it.
    """
    with tolerating(404):
        api.merge(path, {"metadata": {"annotations": {REMINDED: str(time.monotonic())}}})
        return False
    return True


def _others_need(api: Api, path: str, cluster: str) -> bool:
    """Say whether another cluster of the twin has the kind: they share one API server."""
    found = find(api, path)
    if found is None:
        return False
    # An apply that names nothing gives up what this cluster's add-on had said.
    named = {key: found[key] for key in ("apiVersion", "kind")}
    named["metadata"] = {"name": found["metadata"]["name"]}
    managers = {entry["manager"] for entry in found["metadata"].get("managedFields", [])}
    others = {m for m in managers if m.startswith(_manager(""))} - {_manager(cluster)}
    if others:
        api.apply(path, named, field_manager=_manager(cluster))
    return bool(others)


def _manager(cluster: str) -> str:
    return f"{FIELD_MANAGER}-{cluster}"


PATH = "/api/v1/namespaces/kube-system/configmaps"
NAME = "aws-auth"
CONFLICT = 409
ATTEMPTS = 20
# What EKS itself grants a node; a program cannot set groups on such an entry.
NODE_TYPES = frozenset({"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX"})
NODE_GROUPS = ("system:bootstrappers", "system:nodes")
NODE_NAME = "system:node:{{EC2PrivateDNSName}}"

Row = dict[str, Any]
_lock = threading.Lock()


def entry_row(principal_arn: str, entry_type: str, groups: list[str], username: str | None) -> Row:
    """Return the row of one access entry."""
    key = "userarn" if ":user/" in principal_arn else "rolearn"
    if entry_type in NODE_TYPES:
        return {key: principal_arn, "username": NODE_NAME, "groups": list(NODE_GROUPS)}
    name = principal_arn.rsplit("/", 1)[-1]
    return {key: principal_arn, "username": username or name, "groups": sorted(groups)}


def _edit(place: Place, principal_arn: str, change: Callable[[list[Row]], list[Row]]) -> None:
    """Change the rows of one kind; another writer in between means reading again."""
    section = "mapUsers" if ":user/" in principal_arn else "mapRoles"
    api = administrator(place)
    for _ in range(ATTEMPTS):
        current = find(api, f"{PATH}/{NAME}")
        data = dict((current or {}).get("data") or {})
        rows = yaml.safe_load(data.get(section) or "[]") or []
        data[section] = yaml.safe_dump(change(rows), sort_keys=True)
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": "kube-system"},
            "data": data,
        }
        try:
            if current is None:
                api.post(PATH, body)
            else:
                body["metadata"] = current["metadata"]
                api.put(f"{PATH}/{NAME}", body)
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            continue
        return
    raise StillwaterError(
        f"The access entry of {principal_arn} could not be written: {NAME} changed "
        f"{ATTEMPTS} times in a row."
    )


def _others(rows: list[Row], principal_arn: str) -> list[Row]:
    return [r for r in rows if principal_arn not in (r.get("rolearn"), r.get("userarn"))]


def put_entry(place: Place, entry: Row) -> None:
    """Write an entry's row, in the place of an earlier one of the same principal."""
    principal = str(entry.get("rolearn") or entry["userarn"])
    with _lock:
        _edit(place, principal, lambda rows: [*_others(rows, principal), entry])


def remove_entry(place: Place, principal_arn: str) -> None:
    with _lock:
        _edit(place, principal_arn, lambda rows: _others(rows, principal_arn))


# A second on an idle machine: it looks for clusters twice a second, then starts.
AUTHENTICATOR_SECONDS = 30.0
AUTHENTICATOR_POLL_SECONDS = 0.1


def _wait_for_authenticator(place: Place, cluster: str) -> None:
    """Wait until somebody can log in: EKS calls a cluster ACTIVE no sooner."""
    address = place.host("authenticator"), place.port("authenticator")
    if not until(lambda: listens(*address), AUTHENTICATOR_SECONDS, AUTHENTICATOR_POLL_SECONDS):
        raise StillwaterError(
            f"No program listens at {address[0]}:{address[1]} {AUTHENTICATOR_SECONDS:.0f} s "
            f"after the cluster {cluster} was made; see authenticator.log."
        )


@adapts("eks/cluster:Cluster")
class ClusterAdapter(Adapter):
    name_property = "name"
    replaces = frozenset({"roleArn", "bootstrapSelfManagedAddons", "kubernetesNetworkConfig"})

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        name = inputs["name"]
        made = self.make(aws, inputs, resourcesVpcConfig=request_vpc(inputs))["cluster"]
        if place := _control_plane(aws):
            _wait_for_authenticator(place, name)
        return State(name, {**self._outputs(made), "vpcConfig": self._vpc(aws, name, inputs)})

    @staticmethod
    def _outputs(cluster: dict[str, Any]) -> Properties:
        authority = {"data": cluster["certificateAuthority"]["data"]}
        issuer = cluster.get("identity", {}).get("oidc", {}).get("issuer")
        return {
            "arn": cluster["arn"],
            "endpoint": cluster["endpoint"],
            "certificateAuthority": authority,
            "certificateAuthorities": [authority],
            "identities": [{"oidcs": [{"issuer": issuer}]}],
            "platformVersion": cluster.get("platformVersion"),
            "status": cluster.get("status", "ACTIVE"),
        }

    @staticmethod
    def _vpc(aws: Aws, name: str, inputs: Properties) -> Properties:
        """Return the VPC settings with the security group EKS makes for nodes and control plane."""
        ec2, settings = aws.client("ec2"), inputs["vpcConfig"]
        subnets = ec2.describe_subnets(SubnetIds=settings["subnetIds"][:1])["Subnets"]
        vpc = subnets[0]["VpcId"]
        tags = {"aws:eks:cluster-name": name, f"kubernetes.io/cluster/{name}": "owned"}
        group = ec2.create_security_group(
            GroupName=f"eks-cluster-sg-{name}",
            Description="EKS created security group applied to ENI that is attached to EKS Control "
            "Plane master nodes, as well as any managed workloads.",
            VpcId=vpc,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list(tags)}],
        )["GroupId"]
        return {**settings, "clusterSecurityGroupId": group, "vpcId": vpc}

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        # moto takes no update of a cluster; the stored settings are what the program reads.
        was, wanted = (_zones_of(aws, each["vpcConfig"]) for each in (existing.inputs, inputs))
        if was != wanted:
            message = f"Provided subnets belong to the AZs '{wanted}'. But they should belong to "
            message += (
                f"the exact set of AZs '{was}' in which subnets were provided during cluster "
            )
            message += "creation."
            raise Refused([Refusal("UpdateClusterConfig", "InvalidParameterException", message)])
        computed = existing.outputs["vpcConfig"]
        kept = {key: computed[key] for key in ("clusterSecurityGroupId", "vpcId")}
        return {"vpcConfig": {**inputs["vpcConfig"], **kept}}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        return self._outputs(aws.client("eks").describe_cluster(name=existing.id)["cluster"])

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("eks").delete_cluster(name=existing.id)
        group = (existing.outputs.get("vpcConfig") or {}).get("clusterSecurityGroupId")
        if group:
            aws.client("ec2").delete_security_group(GroupId=group)


def _zones_of(aws: Aws, settings: Properties) -> str:
    """Return the zones of a cluster's subnets, as EKS writes them.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html.
    """
    found = aws.client("ec2").describe_subnets(SubnetIds=settings["subnetIds"])["Subnets"]
    return ",".join(sorted({subnet["AvailabilityZone"] for subnet in found}))


def request_vpc(inputs: Properties) -> dict[str, Any]:
    """Return the cluster's VPC settings; moto's updates replace the whole of them."""
    settings = inputs["vpcConfig"]
    return {
        "subnetIds": settings["subnetIds"],
        "securityGroupIds": settings.get("securityGroupIds") or [],
        "endpointPublicAccess": settings.get("endpointPublicAccess", True),
        "endpointPrivateAccess": settings.get("endpointPrivateAccess", False),
    }


@adapts("eks/nodeGroup:NodeGroup")
class NodeGroupAdapter(Adapter):
    """A managed node group; the twin's AWS launches its instances through a group of its own."""

    name_property = "nodeGroupName"
    replaces = frozenset(
        {"clusterName", "nodeRoleArn", "subnetIds", "amiType", "instanceTypes", "capacityType"}
    )

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:  # noqa: ARG002
        cluster, name = inputs["clusterName"], inputs["nodeGroupName"]
        made = self.make(aws, inputs)["nodegroup"]
        groups = made["resources"]["autoScalingGroups"]
        for group in groups:
            wait_for_capacity(aws, group["name"])
        return State(
            f"{cluster}:{name}",
            {
                "arn": made["nodegroupArn"],
                "status": "ACTIVE",
                "resources": [{"autoscalingGroups": groups}],
            },
        )

    @staticmethod
    def _names(existing: Existing) -> dict[str, str]:
        outputs = existing.outputs
        return {"clusterName": outputs["clusterName"], "nodegroupName": outputs["nodeGroupName"]}

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:
        eks = aws.client("eks")
        if has_changed(existing, inputs, "scalingConfig"):
            given = {"scalingConfig": inputs["scalingConfig"]}
            parameters = request(eks, "UpdateNodegroupConfig", given)
            eks.update_nodegroup_config(**self._names(existing), **parameters)
        return {}

    def read(self, aws: Aws, existing: Existing) -> Properties | None:
        aws.client("eks").describe_nodegroup(**self._names(existing))
        return {}

    def delete(self, aws: Aws, existing: Existing) -> None:
        aws.client("eks").delete_nodegroup(**self._names(existing))
        for group in existing.outputs["resources"][0]["autoscalingGroups"]:
            wait_until_gone(aws, group["name"])


@adapts("eks/accessEntry:AccessEntry")
class AccessEntryAdapter(Adapter):
    replaces = frozenset({"clusterName", "principalArn", "type"})

    def _put(self, aws: Aws, inputs: Properties) -> Properties:
        entry = entry_row(
            inputs["principalArn"],
            inputs.get("type", "STANDARD"),
            as_list(inputs.get("kubernetesGroups")),
            inputs.get("userName"),
        )
        if place := _control_plane(aws):
            put_entry(place, entry)
        return {"userName": entry["username"]}

    def create(self, aws: Aws, resource: Resource, inputs: Properties) -> State:
        cluster, principal = inputs["clusterName"], inputs["principalArn"]
        computed = self._put(aws, inputs)
        name = str(principal).rsplit("/", 1)[-1]
        path = f"access-entry/{cluster}/role/{aws.account}/{name}/{resource.token(36)}"
        return State(f"{cluster}:{principal}", {**computed, "accessEntryArn": aws.arn("eks", path)})

    def update(self, aws: Aws, existing: Existing, inputs: Properties) -> Properties:  # noqa: ARG002
        return self._put(aws, inputs)

    def delete(self, aws: Aws, existing: Existing) -> None:
        if place := _control_plane(aws):
            remove_entry(place, existing.inputs["principalArn"])
