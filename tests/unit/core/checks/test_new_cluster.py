"""Sabotaged accounts: a sentence with its remedy each; the unknown is said."""

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
from tests.tables import cases, changed

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
        "Node": {"type": "object", "additionalProperties": False,
            "properties": {"enableMetrics": {"type": "boolean"}}}},
}  # fmt: skip
OFFERED = {name: frozenset(ZONES) for name in NEEDS.instance_types}
GOOD = Account(
    caller="arn:aws:sts::111122223333:assumed-role/deployer/ann",
    number="111122223333",
    region="us-east-1",
    region_status="opt-in-not-required",
    stands=False,
    zones={name: Zone(f"use1-az{number}") for name, number in zip(ZONES, (6, 1, 2), strict=True)},
    offerings=OFFERED,
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


def endpoint(service: str, **more: Any) -> VpcEndpoint:
    return VpcEndpoint(vpc="vpc-0a", service=service, **more)


SABOTAGES = """
region_status: not-opted-in => is not enabled ... enable-region
region: eu-west-1 => session is in eu-west-1 ... set aws:region
zones.us-east-1a.zone_id: use1-az3
    => us-east-1a of account 111122223333 is use1-az3 ... choose among us-east-1b, us-east-1c
zones.us-east-1b.available: false => us-east-1b is not available ... or wait
subnets.subnet-0a.free_addresses: 11 => subnet-0a has 11 free addresses ... name a larger subnet
subnets.subnet-0a.vpc: vpc-0b
    => subnet-0a is of vpc-0b and network.existing.vpc_id is vpc-0a ... name a subnet of that VPC
subnets.subnet-0a.zone: us-east-1b => subnet-0a is in us-east-1b and ... name one there
subnets.subnet-0a.ipv6_only: true => subnet-0a has IPv6 addresses alone ... name one that has them
vpc: null => has no VPC vpc-0a in us-east-1 ... describe-vpcs
vpc.attributes_off: [enableDnsHostnames]
    => vpc-0a has enableDnsHostnames off ... modify-vpc-attribute
vpc.blocks: [10.40.0.0/16, 172.20.4.0/24]
    => the block 172.20.4.0/24, which overlaps 172.20.0.0/16 ... name it in network.secondary_cidrs
vpc.hosted_zones: [orders.internal]
    => vpc-0a has a private hosted zone orders.internal ... leave load_balancer.private_zone out
quotas.vcpus_standard.limit: 3 => 1 of 3 vCPUs of standard on-demand instances are used and this
    cluster takes 3 ... 'Running On-Demand Standard
{quotas.elastic_ips.limit: 5, quotas.elastic_ips.used: 4} => 4 of 5 Elastic IP addresses are used
    and this cluster takes 3, 2 too many ... in Service Quotas
quotas.vpcs.used: 10 => 10 of 10 VPCs ... 'VPCs per Region' (vpc)
quotas.nlbs.used: 8 => 8 of 10 network load balancers ... Service Quotas
quotas.listeners_per_nlb.limit: 2 => listeners of a network load balancer ... Service Quotas
quotas.target_groups.used: 9 => 9 of 10 target groups ... Quotas
quotas.rules.used: 9 => EventBridge rules ... 'Rules' (events)
quotas.kms_keys.used: 9 => 9 of 10 KMS keys ... Service Quotas
quotas.gp3_tib.used: 9.5 => 9.5 of 10 TiB of gp3 ... Quotas
{concurrency.limit: 10, concurrency.unreserved: 4}
    => 4 of Lambda's 10 concurrent executions are unreserved ... 'Concurrent executions'
kubernetes: {"1.35": UNSUPPORTED, "1.34": STANDARD_SUPPORT}
    => EKS does not offer Kubernetes 1.35 ... one of 1.34
addons.coredns: [v1.14.0-eksbuild.1]
    => no coredns v1.13.2-eksbuild.31 for Kubernetes 1.35 ... such as v1.14.0-eksbuild.1
addon_schemas.aws-ebs-csi-driver.properties: {controller: {type: object}} => aws-ebs-csi-driver
    v1.66.0-eksbuild.1 does not take node in its configuration ... kubernetes.addon_versions
{volumes_key.name: arn:aws:kms:us-east-1:111122223333:key/k, volumes_key.state: Disabled}
    => is not enabled ... enable it
taken.roles: [prod-orders-tick]
    => prod-orders-tick: roles of these names are there already ... choose another environment
taken.buckets: [prod-orders-billing-111122223333] => buckets of these names ... delete them
taken.bill exports: [prod-orders-bill] => bill exports of these names ... delete them
pending_secrets: [orders/slack] => orders/slack is scheduled for deletion ... restore-secret
denied.kms:CreateKey: a service control policy of the organisation denies it
    => may not kms:CreateKey: a service control policy ... have it allowed
bill: bcm-data-exports:ListExports is refused
    => may not see the bill ... activate IAM access to billing
slack: invalid_auth => token of secret orders/slack (invalid_auth) ... store the bot token
"""
OTHERS: list[tuple[dict[str, Any], str]] = [
    (
        {"offerings": {**OFFERED, "r7g.xlarge": frozenset({"us-east-1a", "us-east-1b"})}},
        (
            "r7g.xlarge is not offered in us-east-1c, only in us-east-1a, us-east-1b"
            " ... choose another type"
        ),
    ),
    (
        {"offerings": {**OFFERED, "m7i.large": frozenset()}},
        "nowhere in the region ... choose another type",
    ),
    (
        {"vpc.endpoints": (endpoint("s3", tables=frozenset({"rtb-0a", "rtb-0b"})),)},
        (
            "rtb-0a has a route to an endpoint of com.amazonaws.us-east-1.s3"
            " ... leave it out of network.existing.private_route_table_ids"
        ),
    ),
    (
        {"vpc.endpoints": tuple(endpoint(s, private_name=True) for s in ("ec2", "ssm"))},
        (
            "endpoints with private DNS of com.amazonaws.us-east-1.ec2,"
            " ... set network.interface_endpoints to false"
        ),
    ),
    (
        {"volumes_key": EncryptionKey(name="arn:aws:kms:::key/k", users=frozenset())},
        "AWSServiceRoleForAutoScaling ... aws/ebs",
    ),
]


def findings(needs: Needs, account: Account) -> list[Finding]:
    return table.findings(ClusterFacts(needs=needs, account=account, read_at=0))


def test_an_account_that_takes_the_cluster_has_nothing_to_say() -> None:
    found = findings(NEEDS, GOOD)
    assert (found, exit_code(found)) == ([], CLEAR)


def test_a_subnet_that_is_not_there_is_said() -> None:
    (found,) = findings(NEEDS, replace(GOOD, subnets={}))
    assert "has no subnet subnet-0a in us-east-1; name one of" in found.line


@every_case(("given", "words"), [*cases(SABOTAGES), *OTHERS])
def test_sabotage_is_said_with_its_remedy(given: dict[str, Any], words: str) -> None:
    (found,) = findings(NEEDS, changed(GOOD, given))
    assert found.weight is Weight.REFUSED
    assert all(word in found.line for word in words.split(" ... "))
    assert found.line.endswith(".")
    assert exit_code([found]) == FOUND


def test_nodes_may_be_added_in_a_zone_without_control_planes() -> None:
    stands = changed(GOOD, {"stands": True, "zones.us-east-1a.zone_id": "use1-az3"})
    assert findings(NEEDS, stands) == []


def test_a_zone_that_the_account_does_not_have_is_refused() -> None:
    less = {name: zone for name, zone in GOOD.zones.items() if name != "us-east-1c"}
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
    (found,) = findings(NEEDS, changed(GOOD, {"quotas.vpcs": Unknown("Throttled")}))
    assert found.weight is Weight.UNKNOWN
    assert len(findings(NEEDS, replace(GOOD, quotas={}))) == len(NEEDS.quotas)


def test_an_environment_that_stands_has_its_names_and_its_share_already() -> None:
    full = changed(
        GOOD, {"stands": True, "taken.roles": ("prod-orders-tick",), "quotas.vpcs.used": 10}
    )
    assert findings(NEEDS, full) == []


@pytest.mark.parametrize(
    "account",
    [
        replace(GOOD, kubernetes={"1.35": "EXTENDED_SUPPORT", "1.34": "STANDARD_SUPPORT"}),
        changed(GOOD, {"vpc.blocks": ["10.50.0.0/16"]}),
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
    said = findings(needs, replace(GOOD, concurrency=found))
    assert [sentence in each.line for each in said if sentence] == [True] * bool(sentence)
    kinds = [Weight.REFUSED if reserved else Weight.ADVICE] * bool(sentence)
    assert [each.weight for each in said] == kinds


def test_what_is_refused_is_said_before_what_is_not_known() -> None:
    both = changed(GOOD, {"zones.us-east-1a.zone_id": "use1-az3", "bill": Unknown("a timeout")})
    expected = [Weight.REFUSED, Weight.UNKNOWN]
    assert [each.weight for each in findings(NEEDS, both)] == expected
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
