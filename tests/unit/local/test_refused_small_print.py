"""Small print of one input beside another, and of one resource beside another: a table each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.refusals import gate
from local.refusals.refusal import Wanted
from tests.every_case import every_case
from tests.unit.local import refused_small_letters, refused_small_print
from tests.unit.local.aws_inputs import (
    ASSOCIATED,
    ASSOCIATION,
    BALANCED,
    BALANCERS,
    MAPPING,
    NAT,
    OF_NODES,
    RECORD,
    ROLES,
    ROUTE,
    SECURITY_GROUP,
    ZONE,
)
from tests.unit.local.refused_small_print import SUBNET, TAKEN
from tests.unit.local.seeded_inputs import GROUP, INGRESS, ROLE, RULE, TEMPLATE
from tests.unit.local.test_refused_parts import (
    CLUSTER,
    ENTERED,
    ENTRY,
    KUBERNETES,
    NODE_GROUP,
    QUEUE,
)

Made = tuple[str, str, Mapping[str, Any]]
PERMISSION, ALIAS = "lambda/permission:Permission", "kms/alias:Alias"
TICK = "arn:aws:lambda:us-east-1:123456789012:function:tick"
ORDERS: Made = (ZONE, "Z1", {"name": "orders.internal", "vpcs": [{"vpcId": "vpc-1"}]})
LOOSE = {"name": "orders.internal"}
ROWS = {**refused_small_print.ROWS, **refused_small_letters.ROWS}
GATEWAY, TIES = (
    "ec2/internetGateway:InternetGateway",
    "ec2/routeTableAssociation:RouteTableAssociation",
)


def found(token: str, inputs: Mapping[str, Any]) -> list[str]:
    return [each.code for each in gate.refusals(Wanted(f"aws:{token}", "seeded", inputs))]


@every_case(("token", "inputs", "code"), [row[:3] for row in ROWS.values()], ids=list(ROWS))
def test_what_the_small_print_rules_out_is_refused(
    token: str, inputs: Mapping[str, Any], code: str
) -> None:
    assert code in found(token, inputs)


@every_case(
    ("token", "inputs"),
    [*((row[0], row[3]) for row in ROWS.values()), *TAKEN.values()],
    ids=[*(f"not quite {name}" for name in ROWS), *TAKEN],
)
def test_what_the_small_print_leaves_is_taken(token: str, inputs: Mapping[str, Any]) -> None:
    assert found(token, inputs) == []


def record(name: str, **changed: Any) -> Made:
    told = {"zoneId": "Z1", "name": name, "type": "A", "ttl": 60, "records": ["10.0.0.1"]}
    return (RECORD, f"{name}-{changed.get('setIdentifier')}", {**told, **changed})


def weighted(name: str, identifier: str) -> Made:
    policy = [{"weight": 1}]
    return record(name, setIdentifier=identifier, weightedRoutingPolicies=policy)


def rule(name: str, **changed: Any) -> Made:
    return (INGRESS, name, {**RULE, **changed})


def from_ipv6(name: str, block: str) -> Made:
    return (INGRESS, name, {**GROUP, "toPort": 443, "cidrIpv6": block})


def route(name: str, **destination: str) -> Made:
    return (ROUTE, name, {"routeTableId": "rtb-1", "gatewayId": "igw-1", **destination})


def cluster(**changed: Any) -> Made:
    return (CLUSTER, "c", {**KUBERNETES, "name": "c", **changed})


def nodes(**changed: Any) -> Made:
    return (NODE_GROUP, "n", {**OF_NODES, "clusterName": "c", **changed})


def subnet(name: str, vpc: str, block: str) -> Made:
    return (SUBNET, name, {"vpcId": vpc, "cidrBlock": block})


def security_group(name: str, vpc: str = "vpc-1") -> Made:
    return (SECURITY_GROUP, f"{vpc}-{name}", {"name": name, "vpcId": vpc})


def balanced(*addresses: str) -> Made:
    there = [{"subnetId": f"subnet-{each}", "allocationId": each} for each in addresses]
    return (BALANCERS, "b", {**BALANCED, "subnets": [], "subnetMappings": there})


def permissions(count: int) -> list[Made]:
    told = {"function": TICK, "action": "lambda:InvokeFunction", "principal": "sns.amazonaws.com"}
    return [(PERMISSION, f"p{n}", {**told, "statementId": f"{n:0100}"}) for n in range(count)]


def aliases(count: int) -> list[Made]:
    return [(ALIAS, f"a{n}", {"name": f"alias/{n}", "targetKeyId": "1a2b"}) for n in range(count)]


def prefixed(token: str, inputs: Mapping[str, Any], named: str = "name") -> list[Made]:
    kept = {key: value for key, value in inputs.items() if key != named}
    return [(token, each, {**kept, f"{named}Prefix": "x-"}) for each in "ab"]


IN_VPC_1 = (
    subnet("subnet-1", "vpc-1", "10.0.0.0/24"),
    subnet("subnet-2", "vpc-1", "10.0.1.0/24"),
)
ENTERS: Made = (ENTRY, "e", {**ENTERED, "clusterName": "c"})
MAY: Made = (ASSOCIATION, "a", {**ASSOCIATED, "clusterName": "c"})
OLD_WAY = cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})
ARM = {"amiType": "AL2023_ARM_64_STANDARD", "launchTemplate": {"id": "lt-1", "version": "1"}}
BESIDE: Mapping[str, tuple[Sequence[Made], str, Sequence[Made]]] = {
    "a record outside its zone": (
        [ORDERS, record("kafka.other.internal")],
        "InvalidChangeBatch",
        [ORDERS, record("Kafka.ORDERS.internal."), record("orders.internal")],
    ),
    "a record twice, once with a dot": (
        [ORDERS, record("k.orders.internal"), record("K.orders.internal.")],
        "InvalidChangeBatch",
        [
            ORDERS,
            record("k.orders.internal"),
            record("k.orders.internal", type="AAAA", records=["::1"]),
        ],
    ),
    "a rule twice, by its protocol's name and number": (
        [rule("a"), rule("b", ipProtocol="6")],
        "InvalidPermission.Duplicate",
        [rule("a"), rule("b", ipProtocol="17")],
    ),
    "a rule of IPv6 twice": (
        [from_ipv6("a", "::/0"), from_ipv6("b", "::/0")],
        "InvalidPermission.Duplicate",
        [from_ipv6("a", "2001:db8::/32"), from_ipv6("b", "2001:db9::/32")],
    ),
    "a security group's name in capitals": (
        [security_group("nodes"), security_group("Nodes")],
        "InvalidGroup.Duplicate",
        [security_group("nodes"), security_group("Nodes", "vpc-2")],
    ),
    "a route of IPv6 twice": (
        [route("a", destinationIpv6CidrBlock="::/0"), route("b", destinationIpv6CidrBlock="::/0")],
        "RouteAlreadyExists",
        [route("a", destinationIpv6CidrBlock="::/0"), route("b", destinationCidrBlock="0.0.0.0/0")],
    ),
    "a route of a prefix list twice": (
        [route("a", destinationPrefixListId="pl-1"), route("b", destinationPrefixListId="pl-1")],
        "RouteAlreadyExists",
        [route("a", destinationPrefixListId="pl-1"), route("b", destinationPrefixListId="pl-2")],
    ),
    "an entry of a cluster that looks at none": (
        [OLD_WAY, ENTERS],
        "InvalidRequestException",
        [cluster(accessConfig={"authenticationMode": "API"}), ENTERS],
    ),
    "an access policy of a cluster that looks at none": (
        [OLD_WAY, MAY],
        "InvalidRequestException",
        [cluster(), ENTERS, MAY],
    ),
    "nodes outside the VPC of their cluster": (
        [
            *IN_VPC_1,
            subnet("subnet-9", "vpc-2", "10.9.0.0/24"),
            cluster(vpcConfig={"subnetIds": ["subnet-1", "subnet-2"]}),
            nodes(subnetIds=["subnet-9"]),
        ],
        "InvalidParameterException",
        [
            *IN_VPC_1,
            cluster(vpcConfig={"subnetIds": ["subnet-1", "subnet-2"]}),
            nodes(subnetIds=["subnet-2"]),
        ],
    ),
    "Amazon Linux 2 beside a cluster of 1.35": (
        [cluster(version="1.35"), nodes(amiType="AL2_x86_64")],
        "InvalidParameterException",
        [cluster(version="1.32"), nodes(amiType="AL2_x86_64")],
    ),
    "a template's machine that the image does not run on": (
        [
            (TEMPLATE, "lt-1", {"name": "nodes", "instanceType": "m7i.large"}),
            nodes(**ARM, instanceTypes=None),
        ],
        "InvalidParameterException",
        [
            (TEMPLATE, "lt-1", {"name": "nodes", "instanceType": "m7g.large"}),
            nodes(**ARM, instanceTypes=None),
        ],
    ),
    "a queue that feeds a function twice, once by its ARN": (
        [
            (MAPPING, "a", {"eventSourceArn": QUEUE, "functionName": "tick"}),
            (MAPPING, "b", {"eventSourceArn": QUEUE, "functionName": TICK}),
        ],
        "ResourceConflictException",
        [
            (MAPPING, "a", {"eventSourceArn": QUEUE, "functionName": "tick"}),
            (MAPPING, "b", {"eventSourceArn": f"{QUEUE}2", "functionName": TICK}),
        ],
    ),
    "more permissions than a function's policy has room for": (
        permissions(60),
        "PolicyLengthExceededException",
        permissions(50),
    ),
    "51 aliases of a key": (aliases(51), "LimitExceededException", aliases(50)),
}
# What is named by nothing yet is never there twice.
UNNAMED: Mapping[str, Sequence[Made]] = {
    "NAT gateways without an address": [
        (NAT, each, {"subnetId": f"subnet-{each}", "connectivityType": "private"}) for each in "ab"
    ],
    "gateways of no VPC": [(GATEWAY, each, {}) for each in "ab"],
    "tables of gateways": [
        (TIES, each, {"routeTableId": f"rtb-{each}", "gatewayId": f"igw-{each}"}) for each in "ab"
    ],
    "public zones of one name": [(ZONE, each, LOOSE) for each in "ab"],
    "roles of one prefix": prefixed(ROLES, ROLE),
    "templates of one prefix": prefixed(TEMPLATE, {}),
    "nodes of one prefix": prefixed(NODE_GROUP, OF_NODES, "nodeGroupName"),
}


def refused(made: Sequence[Made]) -> list[str]:
    wanted = [Wanted(f"aws:{token}", name, inputs) for token, name, inputs in made]
    return [each.code for each in gate.all_refusals(_without_nothing(wanted))]


def _without_nothing(wanted: Sequence[Wanted]) -> list[Wanted]:
    given = [{k: v for k, v in each.inputs.items() if v not in (None, [])} for each in wanted]
    return [Wanted(w.type, w.name, inputs) for w, inputs in zip(wanted, given, strict=True)]


@every_case(("made", "code"), [row[:2] for row in BESIDE.values()], ids=list(BESIDE))
def test_what_another_resource_rules_out_is_refused(made: Sequence[Made], code: str) -> None:
    assert code in refused(made)


@every_case(
    "made",
    [*(row[2] for row in BESIDE.values()), *UNNAMED.values()],
    ids=[*(f"not quite {name}" for name in BESIDE), *UNNAMED],
)
def test_what_another_resource_leaves_room_for_is_taken(made: Sequence[Made]) -> None:
    assert refused(made) == []
