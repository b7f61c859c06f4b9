"""Sabotaged accounts: a sentence with its remedy each; the unknown is said."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from core.checks import table
from core.checks.facts import ClusterFacts
from core.checks.finding import CLEAR, FOUND, NOT_READ, Finding, Weight, exit_code
from core.checks.new_cluster import QUOTAS, refused_keys
from core.ground.fields import Unknown
from core.model.account import (
    Account,
    AccountQuota,
    Concurrency,
    EncryptionKey,
    NeededNetwork,
    Needs,
    StandingVpc,
    Subnet,
    VpcEndpoint,
    Zone,
)
from tests.every_case import every_case

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
NEEDS = Needs(
    prefix="prod-orders",
    region="us-east-1",
    zones=ZONES,
    instance_types={"r7g.xlarge": frozenset(ZONES), "m7i.large": frozenset(ZONES)},
    quotas=dict.fromkeys(QUOTAS, 3.0),
    reserved_concurrency=5,
    network=NeededNetwork(
        vpc="vpc-0a",
        blocks=("10.40.0.0/16",),
        services="172.20.0.0/16",
        subnets={"subnet-0a": ("us-east-1a", 40)},
        route_tables=("rtb-0a",),
        gateways=("s3",),
        interfaces=("ec2",),
        private_zone="orders.internal",
    ),
    kubernetes="1.35",
    addons={"coredns": "v1.13.2-eksbuild.31", "aws-ebs-csi-driver": "v1.66.0-eksbuild.1"},
    addon_configuration={"aws-ebs-csi-driver": {"node": {"enableMetrics": True}}},
    buckets=("prod-orders-billing-111122223333",),
    export="prod-orders-bill",
    slack_secret="orders/slack",
)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"node": {"$ref": "#/definitions/Node"}},
    "definitions": {
        "Node": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"enableMetrics": {"type": "boolean"}},
        }
    },
}
GOOD = Account(
    caller="arn:aws:sts::111122223333:assumed-role/deployer/ann",
    number="111122223333",
    region="us-east-1",
    region_status="opt-in-not-required",
    stands=False,
    zones={name: Zone(f"use1-az{number}") for name, number in zip(ZONES, (6, 1, 2), strict=True)},
    offerings={name: frozenset(ZONES) for name in NEEDS.instance_types},
    subnets={"subnet-0a": Subnet(zone="us-east-1a", vpc="vpc-0a", free_addresses=4000)},
    vpc=StandingVpc(blocks=frozenset({"10.40.0.0/16"})),
    quotas={key: AccountQuota(name, 10, 1) for key, name in QUOTAS.items()},
    concurrency=Concurrency(1000, 1000),
    kubernetes={"1.35": "STANDARD_SUPPORT", "1.34": "STANDARD_SUPPORT"},
    addons={addon: frozenset({version}) for addon, version in NEEDS.addons.items()},
    addon_schemas={"aws-ebs-csi-driver": SCHEMA},
    volumes_key=EncryptionKey(name="alias/aws/ebs"),
    taken={"roles": (), "buckets": (), "bill exports": ()},
    pending_secrets=(),
    denied={},
    bill="",
    slack="",
)


def changed_account(**changed: Any) -> Account:
    """Return the good account, changed: of a mapping only the keys that are given."""
    given = {
        key: {**getattr(GOOD, key), **value} if isinstance(value, dict) else value
        for key, value in changed.items()
    }
    return replace(GOOD, **given)


KEY = "arn:aws:kms:us-east-1:111122223333:key/k"
STRICT = {**SCHEMA, "properties": {"controller": {"type": "object"}}}
SUBNET = Subnet(zone="us-east-1a", vpc="vpc-0a", free_addresses=4000)
VPC = StandingVpc(blocks=frozenset({"10.40.0.0/16"}))


def standing(*endpoints: VpcEndpoint) -> StandingVpc:
    return replace(VPC, endpoints=endpoints)


def quota(key: str, *, limit: float = 10, used: float = 1) -> dict[str, AccountQuota]:
    return {key: AccountQuota(QUOTAS[key], limit, used)}


SABOTAGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "region not enabled": ({"region_status": "not-opted-in"}, "is not enabled", "enable-region"),
    "session elsewhere": ({"region": "eu-west-1"}, "session is in eu-west-1", "set aws:region"),
    "a zone without EKS": (
        {"zones": {"us-east-1a": Zone("use1-az3")}},
        "us-east-1a of account 111122223333 is use1-az3",
        "choose among us-east-1b, us-east-1c",
    ),
    "a zone that is down": (
        {"zones": {"us-east-1b": Zone("use1-az1", available=False)}},
        "us-east-1b is not available",
        "or wait",
    ),
    "an instance type in two zones": (
        {"offerings": {"r7g.xlarge": frozenset({"us-east-1a", "us-east-1b"})}},
        "r7g.xlarge is not offered in us-east-1c, only in us-east-1a, us-east-1b",
        "choose another type",
    ),
    "an instance type nowhere": (
        {"offerings": {"m7i.large": frozenset()}},
        "nowhere in the region",
        "choose another type",
    ),
    "a subnet of sixteen addresses": (
        {"subnets": {"subnet-0a": replace(SUBNET, free_addresses=11)}},
        "subnet-0a has 11 free addresses",
        "name a larger subnet",
    ),
    "a subnet of another VPC": (
        {"subnets": {"subnet-0a": replace(SUBNET, vpc="vpc-0b")}},
        "subnet-0a is of vpc-0b and network.existing.vpc_id is vpc-0a",
        "name a subnet of that VPC",
    ),
    "a subnet of another zone": (
        {"subnets": {"subnet-0a": replace(SUBNET, zone="us-east-1b")}},
        "subnet-0a is in us-east-1b and",
        "name one there",
    ),
    "a subnet without IPv4": (
        {"subnets": {"subnet-0a": replace(SUBNET, ipv6_only=True)}},
        "subnet-0a has IPv6 addresses alone",
        "name one that has them",
    ),
    "no such VPC": ({"vpc": None}, "has no VPC vpc-0a in us-east-1", "describe-vpcs"),
    "a VPC without names": (
        {"vpc": replace(VPC, attributes_off=("enableDnsHostnames",))},
        "vpc-0a has enableDnsHostnames off",
        "modify-vpc-attribute",
    ),
    "a block where Services would be": (
        {"vpc": replace(VPC, blocks=frozenset({*VPC.blocks, "172.20.4.0/24"}))},
        "the block 172.20.4.0/24, which overlaps 172.20.0.0/16",
        "name it in network.secondary_cidrs",
    ),
    "a gateway that is entered": (
        {
            "vpc": standing(
                VpcEndpoint(vpc="vpc-0a", service="s3", tables=frozenset({"rtb-0a", "rtb-0b"}))
            )
        },
        "rtb-0a has a route to an endpoint of com.amazonaws.us-east-1.s3",
        "leave it out of network.existing.private_route_table_ids",
    ),
    "an endpoint of the name": (
        {
            "vpc": standing(
                *(VpcEndpoint(vpc="vpc-0a", service=s, private_name=True) for s in ("ec2", "ssm"))
            )
        },
        "endpoints with private DNS of com.amazonaws.us-east-1.ec2,",
        "set network.interface_endpoints to false",
    ),
    "a hosted zone of the name": (
        {"vpc": replace(VPC, hosted_zones=frozenset({"orders.internal"}))},
        "vpc-0a has a private hosted zone orders.internal",
        "leave load_balancer.private_zone out",
    ),
    "no vCPUs": (
        {"quotas": quota("vcpus_standard", limit=3)},
        "1 of 3 vCPUs of standard on-demand instances are used and this cluster takes 3",
        "'Running On-Demand Standard",
    ),
    "no addresses": (
        {"quotas": quota("elastic_ips", limit=5, used=4)},
        "4 of 5 Elastic IP addresses are used and this cluster takes 3, 2 too many",
        "in Service Quotas",
    ),
    "no VPC": ({"quotas": quota("vpcs", used=10)}, "10 of 10 VPCs", "'VPCs per Region' (vpc)"),
    "no balancer": (
        {"quotas": quota("nlbs", used=8)},
        "8 of 10 network load balancers",
        "Service Quotas",
    ),
    "no listeners": (
        {"quotas": quota("listeners_per_nlb", limit=2)},
        "listeners of a network load balancer",
        "Service Quotas",
    ),
    "no target groups": (
        {"quotas": quota("target_groups", used=9)},
        "9 of 10 target groups",
        "Quotas",
    ),
    "no rules": ({"quotas": quota("rules", used=9)}, "EventBridge rules", "'Rules' (events)"),
    "no keys": ({"quotas": quota("kms_keys", used=9)}, "9 of 10 KMS keys", "Service Quotas"),
    "no room for volumes": (
        {"quotas": quota("gp3_tib", used=9.5)},
        "9.5 of 10 TiB of gp3",
        "Quotas",
    ),
    "no concurrency": (
        {"concurrency": Concurrency(10, 4)},
        "4 of Lambda's 10 concurrent executions are unreserved",
        "'Concurrent executions'",
    ),
    "no such Kubernetes": (
        {"kubernetes": {"1.35": "UNSUPPORTED"}},
        "EKS does not offer Kubernetes 1.35",
        "one of 1.34",
    ),
    "no such add-on version": (
        {"addons": {"coredns": frozenset({"v1.14.0-eksbuild.1"})}},
        "no coredns v1.13.2-eksbuild.31 for Kubernetes 1.35",
        "such as v1.14.0-eksbuild.1",
    ),
    "an add-on that takes less": (
        {"addon_schemas": {"aws-ebs-csi-driver": STRICT}},
        "aws-ebs-csi-driver v1.66.0-eksbuild.1 does not take node in its configuration",
        "kubernetes.addon_versions",
    ),
    "a default key nobody granted": (
        {"volumes_key": EncryptionKey(name=KEY, users=frozenset())},
        "AWSServiceRoleForAutoScaling",
        "aws/ebs",
    ),
    "a default key that is disabled": (
        {"volumes_key": EncryptionKey(name=KEY, state="Disabled")},
        "is not enabled",
        "enable it",
    ),
    "a role of the same name": (
        {"taken": {"roles": ("prod-orders-tick",)}},
        "prod-orders-tick: roles of these names are there already",
        "choose another environment",
    ),
    "a bucket of the same name": (
        {"taken": {"buckets": NEEDS.buckets}},
        "buckets of these names",
        "delete them",
    ),
    "an export of the same name": (
        {"taken": {"bill exports": (NEEDS.export,)}},
        "bill exports of these names",
        "delete them",
    ),
    "a secret that is being deleted": (
        {"pending_secrets": ("orders/slack",)},
        "orders/slack is scheduled for deletion",
        "restore-secret",
    ),
    "a service control policy": (
        {"denied": {"kms:CreateKey": "a service control policy of the organisation denies it"}},
        "may not kms:CreateKey: a service control policy",
        "have it allowed",
    ),
    "a bill nobody may see": (
        {"bill": "bcm-data-exports:ListExports is refused"},
        "may not see the bill",
        "activate IAM access to billing",
    ),
    "a token Slack does not take": (
        {"slack": "invalid_auth"},
        "token of secret orders/slack (invalid_auth)",
        "store the bot token",
    ),
}


def findings(needs: Needs, account: Account) -> list[Finding]:
    return table.findings(ClusterFacts(needs=needs, account=account, read_at=0))


def test_an_account_that_takes_the_cluster_has_nothing_to_say() -> None:
    found = findings(NEEDS, GOOD)
    assert (found, exit_code(found)) == ([], CLEAR)


def test_a_subnet_that_is_not_there_is_said() -> None:
    (found,) = findings(NEEDS, replace(GOOD, subnets={}))
    assert "has no subnet subnet-0a in us-east-1; name one of" in found.line


@every_case(("changed", "words", "remedy"), SABOTAGES.values(), ids=SABOTAGES)
def test_sabotage_is_said_with_its_remedy(changed: dict[str, Any], words: str, remedy: str) -> None:
    (found,) = findings(NEEDS, changed_account(**changed))
    assert found.weight is Weight.REFUSED
    assert words in found.line
    assert remedy in found.line
    assert found.line.endswith(".")
    assert exit_code([found]) == FOUND


def test_nodes_may_be_added_in_a_zone_without_control_planes() -> None:
    stands = changed_account(stands=True, zones={"us-east-1a": Zone("use1-az3")})
    assert findings(NEEDS, stands) == []


def test_a_zone_that_the_account_does_not_have_is_refused() -> None:
    less = {name: zone for name, zone in GOOD.zones.items() if name != "us-east-1c"}  # type: ignore[union-attr]
    (found,) = findings(NEEDS, replace(GOOD, zones=less))
    assert "has no zone us-east-1c; choose among us-east-1a, us-east-1b" in found.line


ASKED = [
    each.name
    for each in fields(Account)
    if each.name not in {"caller", "number", "region", "quotas"}
]


@every_case("part", ASKED)
def test_what_could_not_be_asked_is_said_and_never_taken_for_good(part: str) -> None:
    why = Unknown("AccessDenied")
    now = getattr(GOOD, part)
    unknown = dict.fromkeys(now, why) if part in {"addons", "addon_schemas", "taken"} else why
    found = findings(NEEDS, replace(GOOD, **{part: unknown}))
    assert found
    assert {each.weight for each in found} == {Weight.UNKNOWN}
    assert all("it could not be read: AccessDenied;" in each.line for each in found)
    assert exit_code(found) == NOT_READ


def test_a_quota_of_which_nothing_is_known_is_not_enough() -> None:
    (found,) = findings(NEEDS, changed_account(quotas={"vpcs": Unknown("Throttled")}))
    assert found.weight is Weight.UNKNOWN
    empty = findings(NEEDS, replace(GOOD, quotas={}))
    assert len(empty) == len(NEEDS.quotas)


def test_an_environment_that_stands_has_its_names_and_its_share_already() -> None:
    full = changed_account(
        stands=True, taken={"roles": ("prod-orders-tick",)}, quotas=quota("vpcs", used=10)
    )
    assert findings(NEEDS, full) == []


@pytest.mark.parametrize(
    "account",
    [
        changed_account(kubernetes={"1.35": "EXTENDED_SUPPORT"}),
        changed_account(vpc=replace(VPC, blocks=frozenset({"10.50.0.0/16"}))),
    ],
    ids=["extended support", "another block"],
)
def test_what_works_and_costs_something_is_a_notice(account: Account) -> None:
    (found,) = findings(NEEDS, account)
    assert found.weight is Weight.ADVICE
    assert exit_code([found]) == CLEAR


@pytest.mark.parametrize(
    ("reserved", "found", "sentence"),
    [
        (5, Concurrency(1000, 105), None),
        (5, Concurrency(1000, 104), "room for 4: 104 of Lambda's 1000"),
        (5, Concurrency(1000, 104), "or set it to 4 or less"),
        # A later `up` finds its own reservation, and takes none beside it.
        (5, Concurrency(1000, 100, reserved=5), None),
        (9, Concurrency(1000, 100, reserved=5), "room for 5"),
        # New accounts: AWS refuses every reservation, whatever the limit is.
        (5, Concurrency(10, 10), "room for 0: 10 of Lambda's 10"),
        (1, Concurrency(50, 50), "AWS keeps 50 so"),
        (5, Concurrency(10, 10), "or set it to 0, with which strangers"),
        (0, Concurrency(10, 10), "webhook_concurrency is 0 and 10 of Lambda's 10"),
        (0, Concurrency(10, 10), "'Concurrent executions' (lambda)"),
        (0, Concurrency(1000, 1000), "reserve some, since there is room for 900"),
    ],
)
def test_what_the_webhook_reserves_leaves_what_aws_keeps(
    reserved: int, found: Concurrency, sentence: str | None
) -> None:
    needs = replace(NEEDS, reserved_concurrency=reserved)
    said = findings(needs, changed_account(concurrency=found))
    assert [sentence in each.line for each in said if sentence] == [True] * bool(sentence)
    kinds = [Weight.REFUSED if reserved else Weight.ADVICE] * bool(sentence)
    assert [each.weight for each in said] == kinds


def test_what_is_refused_is_said_before_what_is_not_known() -> None:
    both = changed_account(zones={"us-east-1a": Zone("use1-az3")}, bill=Unknown("a timeout"))
    assert [each.weight for each in findings(NEEDS, both)] == [
        Weight.REFUSED,
        Weight.UNKNOWN,
    ]
    assert exit_code(findings(NEEDS, both)) == NOT_READ


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ({"node": {"enableMetrics": True}}, []),
        ({"node": {"enableMetric": True}}, ["node.enableMetric"]),
        ({"node": {"enableMetrics": "yes"}}, ["node.enableMetrics"]),
        ({"sidecars": {}}, ["sidecars"]),
        ({"node": []}, ["node"]),
    ],
)
def test_a_configuration_is_held_to_its_schema(value: object, refused: list[str]) -> None:
    assert list(refused_keys(SCHEMA, value)) == refused


def test_a_schema_that_refers_to_itself_ends() -> None:
    assert list(refused_keys({"$ref": "#/a", "a": {"$ref": "#/a"}}, {"x": 1})) == []
