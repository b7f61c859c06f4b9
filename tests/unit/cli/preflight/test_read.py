"""cli.preflight against moto, and against a stand-in for what moto does not serve."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from rich.console import Console

from cli.aws import Clients, one_line
from cli.preflight import command
from cli.preflight.asked import principal_of
from cli.preflight.command import needs_of
from cli.target import Target
from core.checks.finding import Weight
from core.checks.new_cluster import QUOTAS
from core.cluster import parse
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.fields import Unknown
from core.ground.instances import STANDARD_QUOTA
from core.model.account import Account, AccountQuota, Concurrency, Needs, StandingVpc, VpcEndpoint
from tests.unit.core.checks.test_new_cluster import findings
from tests.unit.infra.programs import description

SPEC = parse(description())
REGION = "us-east-1"


@pytest.fixture
def aws(aws: None) -> Callable[..., Any]:
    return Clients(lambda service, region=REGION: boto3.client(service, region_name=region))


def read(clients: Callable[..., Any], needs: Needs | None = None) -> tuple[Needs, Account]:
    return command.read(
        lambda number: needs or needs_of(SPEC, number), clients, REGION, lambda _: None
    )


class Silent:
    """An account that says who is calling, and nothing else."""

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": "arn:aws:iam::123456789012:user/ada", "Account": "123456789012"}


def test_a_session_makes_each_client_once_though_every_part_is_asked_at_the_same_time() -> None:
    made: list[tuple[str, str]] = []

    def client(service: str, region: str = REGION) -> Silent:
        made.append((service, region))
        return Silent()

    read(client)
    assert len(made) == len(set(made)) > 5


def test_what_moto_serves_is_read_and_what_it_does_not_is_said(aws: Callable[..., Any]) -> None:
    needs, account = read(aws)
    assert account.number == "123456789012"
    assert account.zones["us-east-1e"].zone_id == "use1-az3"
    assert isinstance(account.offerings, dict)
    assert account.stands is False
    unknown = [each for each in findings(needs, account) if each.weight is Weight.UNKNOWN]
    assert any("add-on coredns: it could not be read" in each.line for each in unknown)


def test_a_machine_of_another_family_uses_nothing_of_the_standard_quota() -> None:
    sizes = {"CpuOptions": {"CoreCount": 2, "ThreadsPerCore": 2}}
    running = [
        {"InstanceType": kind, **sizes, **more}
        for kind, more in (
            ("m7g.xlarge", {}),
            ("inf2.xlarge", {}),
            ("trn1.2xlarge", {}),
            ("mac2.metal", {}),
            ("m7g.xlarge", {"InstanceLifecycle": "spot"}),
            ("m7g.xlarge", {"InstanceLifecycle": "capacity-block"}),
        )
    ]
    said = {
        "ec2.describe_instances": {"Reservations": [{"Instances": running}]},
        "service-quotas.list_service_quotas": {
            "Quotas": [{"QuotaName": STANDARD_QUOTA, "Value": 5.0}]
        },
    }
    _, account = read(FakeAws(ANSWERS | said))
    assert account.quotas["vcpus_standard"].used == 4


def test_a_role_of_somebody_elses_is_in_the_way_and_our_own_is_not(aws: Callable[..., Any]) -> None:
    iam = aws("iam")
    for name, tags in (
        ("test-orders-tick", []),
        ("test-orders-sweep", [{"Key": "stillwater:environment", "Value": "test"}]),
        ("others", []),
    ):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}", Tags=tags)
    _, account = read(aws)
    assert account.taken["roles"] == ("test-orders-tick",)


def test_a_secret_that_is_being_deleted_is_seen(aws: Callable[..., Any]) -> None:
    secrets = aws("secretsmanager")
    slack = parse(description(slack={"channel": "C0123456789", "secret_name": "orders/slack"}))
    secrets.create_secret(Name="orders/slack", SecretString="xoxb-1")
    secrets.delete_secret(SecretId="orders/slack")
    _, account = read(aws, needs_of(slack, "123456789012"))
    assert account.pending_secrets == ("orders/slack",)


def test_every_need_of_the_spec_has_a_quota_of_its_own() -> None:
    needs = needs_of(SPEC, "123456789012")
    assert set(needs.quotas) == set(QUOTAS)
    assert needs.quotas["vpcs"] == 1
    assert needs.quotas["elastic_ips"] == 3
    expected = ("test-orders-incidents-123456789012", "test-orders-billing-123456789012")
    assert needs.buckets == expected


def test_subnets_that_are_there_are_asked_for_their_free_addresses(aws: Callable[..., Any]) -> None:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.40.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.40.0.0/28", AvailabilityZone="us-east-1a")
    small = made["Subnet"]["SubnetId"]
    network = {
        "existing": {
            "vpc_id": vpc,
            "private_subnet_ids": {
                f"us-east-1{letter}": small if letter == "a" else f"subnet-0123456789abcde{letter}f"
                for letter in "abc"
            },
        }
    }
    needs = needs_of(parse(description(network=network)), "123456789012")
    # 8 and 6, and two nodes with a replacement each and the system's, of two addresses.
    assert needs.network.subnets[small] == ("us-east-1a", 8 + 6 + 2 * 5)
    _, account = read(aws, needs)
    assert account.subnets == {
        small: replace(account.subnets[small], zone="us-east-1a", vpc=vpc, free_addresses=11)
    }


def test_a_vpc_that_is_there_is_asked_for_what_stands_in_the_way(aws: Callable[..., Any]) -> None:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.40.0.0/16")["Vpc"]["VpcId"]
    ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock="10.41.0.0/16")
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsSupport={"Value": True})
    tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]
    table = tables[0]["RouteTableId"]
    service = "com.amazonaws.us-east-1.s3"
    ec2.create_vpc_endpoint(
        VpcId=vpc, ServiceName=service, VpcEndpointType="Gateway", RouteTableIds=[table]
    )
    aws("route53").create_hosted_zone(
        Name="Orders.internal",
        VPC={"VPCRegion": REGION, "VPCId": vpc},
        HostedZoneConfig={"PrivateZone": True},
        CallerReference="1",
    )
    subnets = {f"us-east-1{letter}": f"subnet-0123456789abcde{letter}f" for letter in "abc"}
    described = description(
        network={"existing": {"vpc_id": vpc, "private_subnet_ids": subnets}},
        load_balancer={"private_zone": "stillwater.internal"},
    )
    _, account = read(aws, needs_of(parse(described), "123456789012"))
    assert account.vpc == StandingVpc(
        blocks=frozenset({"10.40.0.0/16", "10.41.0.0/16"}),
        attributes_off=("enableDnsHostnames",),
        endpoints=(VpcEndpoint(vpc=vpc, service="s3", tables=frozenset({table})),),
        hosted_zones=frozenset({"orders.internal"}),
    )


class FakeAws:
    """Stands in for services that moto does not serve: answers, or errors, by service and call."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def __call__(self, service: str, region: str = REGION) -> Any:
        answers = self._answers

        class Client:
            def can_paginate(self, _operation: str) -> bool:
                return False

            def __getattr__(self, operation: str) -> Callable[..., Any]:
                def answer(**_given: Any) -> Any:
                    found = answers.get(f"{service}.{operation}")
                    if found is None:
                        raise refusal("RequestLimitExceeded", operation)
                    if isinstance(found, Exception):
                        raise found
                    return found

                return answer

        return Client()


def refusal(code: str, operation: str = "Anything") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "you may not"}}, operation)


WHO = {"Arn": "arn:aws:sts::111122223333:assumed-role/deployer/ann", "Account": "111122223333"}
ANSWERS: dict[str, Any] = {
    "sts.get_caller_identity": WHO,
    "lambda.get_account_settings": {
        "AccountLimit": {"ConcurrentExecutions": 105, "UnreservedConcurrentExecutions": 100}},
    "lambda.get_function_concurrency": {"ReservedConcurrentExecutions": 5},
    "ec2.describe_vpcs": {"Vpcs": [{}, {}]},
    "eks.describe_cluster_versions": {
        "clusterVersions": [{"clusterVersion": "1.35", "versionStatus": "STANDARD_SUPPORT"}]},
    "eks.describe_addon_versions": {"addons": [{"addonVersions": [{"addonVersion": "v1"}]}]},
    "eks.describe_addon_configuration": {
        "configurationSchema": json.dumps({"additionalProperties": False, "properties": {}})},
    "service-quotas.list_aws_default_service_quotas": {
        "Quotas": [{"QuotaName": "VPCs per Region", "Value": 5.0}]},
    "service-quotas.list_service_quotas": {
        "Quotas": [{"QuotaName": "VPCs per Region", "Value": 8.0}]},
    "iam.simulate_principal_policy": {
        "EvaluationResults": [{"EvalActionName": "ec2:CreateVpc", "EvalDecision": "allowed"},
            {"EvalActionName": "sqs:CreateQueue", "EvalDecision": "implicitDeny"},
            {"EvalActionName": "kms:CreateKey", "EvalDecision": "explicitDeny",
                "OrganizationsDecisionDetail": {"AllowedByOrganizations": False}}]},
    "ec2.create_vpc": refusal("DryRunOperation"),
    "ec2.allocate_address": refusal("UnauthorizedOperation"),
    "bcm-data-exports.list_exports": refusal("AccessDeniedException"),
    "ec2.get_ebs_default_kms_key_id": {"KmsKeyId": "key"},
    "kms.describe_key": {"KeyMetadata": {"KeyManager": "CUSTOMER", "Enabled": True}},
    "kms.list_grants": {"Grants": [{"GranteePrincipal": "arn:role/one"}]},
    "kms.get_key_policy": {
        "Policy": json.dumps({"Statement": [{"Effect": "Allow", "Principal": {"AWS": "two"}}]})},
}  # fmt: skip


def test_what_an_account_says_is_read_as_aws_documents_it() -> None:
    _, account = read(FakeAws(ANSWERS))
    assert account.concurrency == Concurrency(105, 100, 5)
    gone = {"lambda.get_function_concurrency": refusal("ResourceNotFoundException")}
    assert read(FakeAws({**ANSWERS, **gone}))[1].concurrency == Concurrency(105, 100, 0)
    assert account.kubernetes == {"1.35": "STANDARD_SUPPORT"}
    assert account.quotas["vpcs"] == AccountQuota(QUOTAS["vpcs"], limit=8.0, used=2)
    assert isinstance(account.quotas["nlbs"], Unknown)
    assert account.denied == {
        "sqs:CreateQueue": "no policy of the caller's allows it",
        "kms:CreateKey": "a service control policy of the organisation denies it",
        "ec2:AllocateAddress": "EC2 refuses a dry run of it",
    }
    assert account.bill == "bcm-data-exports:ListExports is refused"
    assert account.volumes_key.users == {"arn:role/one", "two"}


def test_our_own_configuration_is_held_to_the_published_schema() -> None:
    needs, account = read(FakeAws(ANSWERS))
    said = [each.line for each in findings(needs, account)]
    assert any("does not take node in its configuration" in sentence for sentence in said)


@pytest.mark.parametrize(
    "error",
    [refusal("Throttling"), EndpointConnectionError(endpoint_url="https://x")],
    ids=["refused", "out of reach"],
)
def test_an_account_that_answers_nothing_is_unknown_in_every_part(error: Exception) -> None:
    needs, account = read(FakeAws({"sts.get_caller_identity": WHO}))
    found = findings(needs, account)
    assert {each.weight for each in found} == {Weight.UNKNOWN}
    with pytest.raises(StillwaterError, match="does not say who is calling"):
        read(FakeAws({"sts.get_caller_identity": error}))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("An error occurred (500): <!doctype html>\n<title>500</title>", "An error occurred (500)"),
        ("invalid XML received:\nb'<!DOCTYPE html>\\n<html>'", "invalid XML received"),
        ("two\n  lines", "two lines"),
        ("x" * 400, f"{'x' * 300} ..."),
    ],
)
def test_what_comes_in_place_of_an_answer_is_a_line_without_its_page(said: str, line: str) -> None:
    assert one_line(said) == line


def test_a_session_is_judged_by_its_roles_policies() -> None:
    silent = FakeAws({})("iam")
    assert principal_of(WHO["Arn"], silent) == "arn:aws:iam::111122223333:role/deployer"
    assert principal_of("arn:aws:iam::1:user/ann", silent) == "arn:aws:iam::1:user/ann"
    pathed = "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/deployer"
    told = FakeAws({"iam.get_role": {"Role": {"Arn": pathed}}})("iam")
    assert principal_of(WHO["Arn"], told) == pathed


def test_a_dry_run_without_an_answer_is_no_right() -> None:
    allowed = {"EvalActionName": "ec2:CreateVpc", "EvalDecision": "allowed"}
    said = {"iam.simulate_principal_policy": {"EvaluationResults": [allowed]}}
    unsaid = {"ec2.create_vpc": refusal("Unavailable")}
    _, account = read(FakeAws({**ANSWERS, **said, **unsaid}))
    assert isinstance(account.denied, Unknown)
    _, account = read(FakeAws({**ANSWERS, **unsaid}))
    assert "sqs:CreateQueue" in account.denied


def test_up_stops_before_it_begins_and_names_the_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        region_name = REGION

        def client(self, service: str, **_given: Any) -> Any:
            return FakeAws(ANSWERS)(service)

    target = Target(SPEC, Session())
    with pytest.raises(InvalidInput, match="nothing was made"):
        command.stop_refused_up(target, Console(quiet=True))
    done = command.examine(target, Console(quiet=True))
    document = json.loads(command.as_json(done))
    assert document["exit_code"] == done.exit_code == 2
    assert document["account"] == "111122223333"
    assert {Weight.REFUSED, Weight.UNKNOWN} <= {each["weight"] for each in document["findings"]}
