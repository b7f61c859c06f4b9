"""Checks two or three resources against each other: listeners and groups, tables and items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from local.refusals.documents import parse
from local.refusals.fields import values
from local.refusals.refusal import Refusal, Wanted
from local.refusals.together import about, limit, of, resources_by_name

_ELB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/"
# What a listener's protocol may be forwarded as.
_FORWARDED = {
    "TCP": frozenset({"TCP", "TCP_UDP"}),
    "TLS": frozenset({"TCP", "TLS"}),
    "UDP": frozenset({"UDP", "TCP_UDP"}),
    "TCP_UDP": frozenset({"TCP_UDP"}),
    "HTTP": frozenset({"HTTP", "HTTPS"}),
    "HTTPS": frozenset({"HTTP", "HTTPS"}),
}


@limit(f"{_ELB}load-balancer-listeners.html")
def protocols_of_a_listener(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A group takes what its listener hands it."""
    groups = resources_by_name(everything, "lb/targetGroup:TargetGroup")
    for each in of(everything, "lb/listener:Listener"):
        spoken = str(each.inputs.get("protocol"))
        for arn in groups_of_a_listener(each):
            group = groups.get(name_of_a_group(arn))
            taken = str(group.inputs.get("protocol")) if group else ""
            if group and taken not in _FORWARDED.get(spoken, {taken}):
                message = f"Listener protocol '{spoken}' is not supported with a target group with "
                message += f"the protocol '{taken}'"
                yield about(each, "CreateListener", "ValidationError", message, "defaultActions")


def groups_of_a_listener(listener: Wanted) -> list[str]:
    """Return the ARNs of the target groups that a listener forwards to."""
    plain = values(listener.inputs, "defaultActions.*.targetGroupArn")
    several = values(listener.inputs, "defaultActions.*.forward.targetGroups.*.arn")
    return [str(each) for each in (*plain, *several)]


def name_of_a_group(arn: str) -> str:
    """Return the name in arn:...:targetgroup/name/id, or nothing."""
    parts = arn.rpartition(":")[2].split("/")
    return parts[1] if len(parts) == 3 else ""


@limit("https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html")
def keys_of_an_item(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """An item's key is of the kind that its table names."""
    tables = resources_by_name(everything, "dynamodb/table:Table")
    for each in of(everything, "dynamodb/tableItem:TableItem"):
        table = tables.get(str(each.inputs.get("tableName")))
        if table is None:
            continue
        kinds = {a["name"]: a["type"] for a in values(table.inputs, "attributes.*")}
        item = parse(each.inputs["item"]) or {}
        for key in filter(None, (table.inputs.get("hashKey"), table.inputs.get("rangeKey"))):
            value = item.get(key)
            found = next(iter(value)) if isinstance(value, dict) and value else None
            if found is not None and found != kinds.get(key):
                message = f"One or more parameter values were invalid: Type mismatch for key {key} "
                message += f"expected: {kinds.get(key)} actual: {found}"
                yield about(each, "PutItem", "ValidationException", message, "item")


@limit("https://docs.aws.amazon.com/vpc/latest/privatelink/privatelink-access-aws-services.html")
def names_of_endpoints(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A service has one endpoint in a VPC that bears its name."""
    seen = set()
    for each in of(everything, "ec2/vpcEndpoint:VpcEndpoint"):
        inputs = each.inputs
        if inputs.get("vpcEndpointType") != "Interface" or not inputs.get("privateDnsEnabled"):
            continue
        key = (inputs.get("vpcId"), inputs.get("serviceName"))
        if key in seen:
            message = "private-dns-enabled cannot be set because there is already a conflicting "
            message += f"DNS domain for {key[1]} in the VPC {key[0]}"
            yield about(each, "CreateVpcEndpoint", "InvalidParameter", message, "privateDnsEnabled")
        seen.add(key)


@limit("https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/ResourceRecordTypes.html")
def alias_of_a_zone(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The zone's own name is no CNAME; a CNAME stands beside no other record."""
    zones = {str(e.inputs.get("name")).rstrip(".") for e in of(everything, "route53/zone:Zone")}
    seen: dict[tuple[str, str], set[str]] = {}
    for each in of(everything, "route53/record:Record"):
        name, kind = str(each.inputs.get("name")).rstrip("."), str(each.inputs.get("type"))
        if kind == "CNAME" and name in zones and len(zones) == 1:
            message = f"RRSet of type CNAME with DNS name {name}. is not permitted at apex in zone "
            message += f"{name}."
            yield about(each, "ChangeResourceRecordSets", "InvalidChangeBatch", message, "type")
        kinds = seen.setdefault((str(each.inputs.get("zoneId")), name), set())
        if kinds and "CNAME" in {*kinds, kind} and {*kinds, kind} != {"CNAME"}:
            message = f"RRSet of type {kind} with DNS name {name}. is not permitted because a "
            message += "conflicting RRSet with the same DNS name already exists"
            yield about(each, "ChangeResourceRecordSets", "InvalidChangeBatch", message, "name")
        kinds.add(kind)


@limit(
    "https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/dynamodb_table_item"
)
def items_that_exist(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The provider puts an item only where none of its key is."""
    seen = set()
    for each in of(everything, "dynamodb/tableItem:TableItem"):
        item = parse(each.inputs["item"]) or {}
        names = (str(each.inputs.get("hashKey")), str(each.inputs.get("rangeKey")))
        key = (each.inputs.get("tableName"), *(str(item.get(name)) for name in names))
        if key in seen and names[0] in item:
            code, message = "ConditionalCheckFailedException", "The conditional request failed"
            yield about(each, "PutItem", code, message, "item")
        seen.add(key)


# Kubernetes' version skew policy: how much older a kubelet may be than its API server.
OLDER = 3


def minor(version: str) -> int:
    """Return the minor number of a Kubernetes version; 0 where it has none."""
    last = version.rpartition(".")[2]
    return int(last) if last.isdecimal() else 0


def versions_of_clusters(everything: Sequence[Wanted]) -> dict[str, str]:
    """Return each cluster's version of Kubernetes by its name; empty where it says none."""
    clusters = resources_by_name(everything, "eks/cluster:Cluster")
    return {name: str(each.inputs.get("version") or "") for name, each in clusters.items()}
