"""Asks an account one question per function, in core.model.account's words.

A VPC that is there already is read with its subnets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from cli.answers import answer_or_reason, then
from cli.aws import pages
from cli.survey import account_parts, surroundings
from core.checks.new_cluster import QUOTAS
from core.cluster.addresses import STANDARD
from core.ground import naming
from core.ground.errors import StillwaterError, passed_on
from core.ground.fields import Unknown
from core.ground.instances import STANDARD_QUOTA
from core.model.account import (
    AccountQuota,
    Concurrency,
    EncryptionKey,
    Needs,
    QuotaName,
    StandingVpc,
    Subnet,
    Zone,
)

# In the answer's spelling and in the program's.
_ATTRIBUTES = {"EnableDnsSupport": "enableDnsSupport", "EnableDnsHostnames": "enableDnsHostnames"}


def subnets(asked: AccountClients) -> dict[str, Subnet]:
    """Return the named subnets that there are."""
    if asked.needs.network is None:
        return {}
    return surroundings.subnets(asked.client("ec2"), sorted(asked.needs.network.subnets))


def vpc(asked: AccountClients) -> StandingVpc | None:
    """Return the named VPC; None where none is named, or there is no such one."""
    wanted = asked.needs.network
    if wanted is None:
        return None
    ec2 = asked.client("ec2")
    found = ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [wanted.vpc]}])["Vpcs"]
    if not found:
        return None
    return StandingVpc(
        blocks=_blocks(found[0]),
        attributes_off=tuple(
            spelled
            for answered, spelled in _ATTRIBUTES.items()
            if not ec2.describe_vpc_attribute(VpcId=wanted.vpc, Attribute=spelled)[answered][
                "Value"
            ]
        ),
        endpoints=surroundings.endpoints(ec2, [wanted.vpc]),
        hosted_zones=_hosted_zones(asked, wanted.vpc) if wanted.private_zone else frozenset(),
    )


def _blocks(found: dict[str, Any]) -> frozenset[str]:
    others = found.get("CidrBlockAssociationSet") or ()
    standing = {
        str(each["CidrBlock"]) for each in others if each["CidrBlockState"]["State"] == "associated"
    }
    return frozenset({str(found["CidrBlock"]), *standing})


def _hosted_zones(asked: AccountClients, vpc_id: str) -> frozenset[str]:
    names, token = set[str](), dict[str, str]()
    while True:
        answer = asked.client("route53").list_hosted_zones_by_vpc(
            VPCId=vpc_id, VPCRegion=asked.needs.region, **token
        )
        names |= {str(each["Name"]).rstrip(".").lower() for each in answer["HostedZoneSummaries"]}
        if not answer.get("NextToken"):
            return frozenset(names)
        token = {"NextToken": answer["NextToken"]}


GLOBAL_REGION = "us-east-1"
DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
WOULD_BE_DONE = "DryRunOperation"


@dataclass(frozen=True, slots=True)
class AccountClients:
    """One account, one caller, and the clients to ask it with (`client(service, region=...)`)."""

    needs: Needs
    caller: str
    client: Callable[..., Any]

    def pages(self, service: str, operation: str, key: str, **given: Any) -> Iterator[Any]:
        """Yield what a listing holds, over all of its pages."""
        return pages(self.client(service), operation, key, **given)


def region_status(asked: AccountClients) -> str:
    regions = asked.client("ec2").describe_regions(AllRegions=True)["Regions"]
    found = {each["RegionName"]: each.get("OptInStatus", "opt-in-not-required") for each in regions}
    return str(found.get(asked.needs.region, "not-opted-in"))


def stands(asked: AccountClients) -> bool:
    client = asked.client("eks")
    try:
        client.describe_cluster(name=asked.needs.prefix)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return False
        raise
    return True


def zones(asked: AccountClients) -> dict[str, Zone]:
    found = asked.client("ec2").describe_availability_zones(
        Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}]
    )["AvailabilityZones"]
    return {z["ZoneName"]: Zone(z["ZoneId"], z.get("State") == "available") for z in found}


def offerings(asked: AccountClients) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for each in asked.pages(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": sorted(asked.needs.instance_types)}],
    ):
        found.setdefault(each["InstanceType"], set()).add(each["Location"])
    return {name: frozenset(where) for name, where in found.items()}


def quotas(asked: AccountClients) -> dict[str, AccountQuota | Unknown]:
    """Read each quota; one that is not listed, or not counted, is unknown, and no other for it."""
    limits = {
        service: answer_or_reason(
            surroundings.quota_values, asked.client("service-quotas"), service
        )
        for service in {name.service for name in QUOTAS.values()}
    }

    def counted(key: str, name: QuotaName) -> AccountQuota | Unknown:
        count = _COUNTS.get(key)
        return then(
            limits[name.service],
            lambda known: surroundings.quota_of(name, known, count(asked) if count else 0),
        )

    return {key: counted(key, name) for key, name in QUOTAS.items()}


def _counting(service: str, operation: str, key: str) -> Callable[[AccountClients], float]:
    return lambda asked: sum(1 for _ in asked.pages(service, operation, key))


# How much of each is taken; a load balancer that is to be made has no listener yet.
_COUNTS: Mapping[str, Callable[[AccountClients], float]] = {
    STANDARD: lambda asked: surroundings.used_vcpus(asked.client("ec2"))[STANDARD_QUOTA],
    "gp3_tib": lambda asked: surroundings.used_gp3_tib(asked.client("ec2")),
    "elastic_ips": _counting("ec2", "describe_addresses", "Addresses"),
    "vpcs": _counting("ec2", "describe_vpcs", "Vpcs"),
    "nlbs": lambda asked: sum(
        balancer.get("Type") == "network"
        for balancer in asked.pages("elbv2", "describe_load_balancers", "LoadBalancers")
    ),
    "target_groups": _counting("elbv2", "describe_target_groups", "TargetGroups"),
    "auto_scaling_groups": _counting(
        "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups"
    ),
    "eks_clusters": _counting("eks", "list_clusters", "clusters"),
    "kms_keys": _counting("kms", "list_keys", "Keys"),
    "rules": _counting("events", "list_rules", "Rules"),
}


def concurrency(asked: AccountClients) -> Concurrency:
    client = asked.client("lambda")
    limit = client.get_account_settings()["AccountLimit"]
    webhook = naming.function(asked.needs.prefix, "webhook")
    try:
        own = client.get_function_concurrency(FunctionName=webhook)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        own = {}
    return Concurrency(
        limit["ConcurrentExecutions"],
        limit["UnreservedConcurrentExecutions"],
        own.get("ReservedConcurrentExecutions", 0),
    )


def kubernetes(asked: AccountClients) -> dict[str, str]:
    listed = asked.pages("eks", "describe_cluster_versions", "clusterVersions")
    return {str(each["clusterVersion"]): str(surroundings.support_of(each)) for each in listed}


def addons(asked: AccountClients) -> dict[str, frozenset[str] | Unknown]:
    return {addon: answer_or_reason(_versions, asked, addon) for addon in asked.needs.addons}


def _versions(asked: AccountClients, addon: str) -> frozenset[str]:
    given = {"addonName": addon, "kubernetesVersion": asked.needs.kubernetes}
    return frozenset(
        str(version["addonVersion"])
        for each in asked.pages("eks", "describe_addon_versions", "addons", **given)
        for version in each["addonVersions"]
    )


def addon_schemas(asked: AccountClients) -> dict[str, Mapping[str, object] | Unknown]:
    return {
        addon: answer_or_reason(_schema, asked, addon) for addon in asked.needs.addon_configuration
    }


def _schema(asked: AccountClients, addon: str) -> dict[str, object]:
    answer = asked.client("eks").describe_addon_configuration(
        addonName=addon, addonVersion=asked.needs.addons[addon]
    )
    return dict(json.loads(answer["configurationSchema"]))


def volumes_key(asked: AccountClients) -> EncryptionKey:
    name = asked.needs.encryption_key or str(
        asked.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
    )
    return account_parts.encryption_key(asked.client("kms"), name, None)


def taken_names(asked: AccountClients) -> dict[str, tuple[str, ...] | Unknown]:
    """Return names like this environment's that are not tagged as its own."""
    readers = {"roles": _roles, "buckets": _buckets, "bill exports": _exports}
    return {
        kind: answer_or_reason(lambda read=read: tuple(read(asked)))
        for kind, read in readers.items()
    }


def _roles(asked: AccountClients) -> Iterator[str]:
    iam = asked.client("iam")
    for role in asked.pages("iam", "list_roles", "Roles"):
        name = str(role["RoleName"])
        if name.startswith(f"{asked.needs.prefix}-"):
            tags = {tag["Key"] for tag in iam.list_role_tags(RoleName=name)["Tags"]}
            if naming.ENVIRONMENT_TAG not in tags:
                yield name


def _buckets(asked: AccountClients) -> Iterator[str]:
    client = asked.client("s3")
    for name in asked.needs.buckets:
        try:
            client.head_bucket(Bucket=name)
            # It is there and ours: taken only from somebody who has not tagged it.
            tags = client.get_bucket_tagging(Bucket=name)["TagSet"]
            if naming.ENVIRONMENT_TAG not in {tag["Key"] for tag in tags}:
                yield name
        except ClientError as error:
            code = str(error.response["Error"]["Code"])
            if code == "NoSuchTagSet":
                yield name
            # 403 is also what somebody hears who may not look: that is unknown, not taken.
            elif code not in {"404", "NoSuchBucket", "NotFound"}:
                raise


def _exports(asked: AccountClients) -> Iterator[str]:
    listed = asked.client("bcm-data-exports", region=GLOBAL_REGION).list_exports()["Exports"]
    for export in listed:
        if export.get("ExportName") == asked.needs.export:
            yield str(export["ExportName"])


def pending_secrets(asked: AccountClients) -> tuple[str, ...]:
    names = {
        naming.webhook_secret(asked.needs.prefix),
        *([asked.needs.slack_secret] if asked.needs.slack_secret else []),
    }
    return tuple(
        str(secret["Name"])
        for secret in asked.pages(
            "secretsmanager", "list_secrets", "SecretList", IncludePlannedDeletion=True
        )
        if secret["Name"] in names and secret.get("DeletedDate") is not None
    )


def denied_actions(asked: AccountClients) -> dict[str, str]:
    """Ask IAM what the caller's policies and the organisation's say, and EC2 by dry runs."""
    found: dict[str, str] = {}
    for result in asked.pages(
        "iam",
        "simulate_principal_policy",
        "EvaluationResults",
        PolicySourceArn=principal_of(asked.caller, asked.client("iam")),
        ActionNames=list(asked.needs.actions),
    ):
        if result["EvalDecision"] != "allowed":
            detail = result.get("OrganizationsDecisionDetail") or {}
            by_organisation = detail.get("AllowedByOrganizations") is False
            found[result["EvalActionName"]] = (
                "a service control policy of the organisation denies it"
                if by_organisation
                else "no policy of the caller's allows it"
                if result["EvalDecision"] == "implicitDeny"
                else "a policy denies it"
            )
    return {**found, **_dry_runs(asked, found)}


def _dry_runs(asked: AccountClients, denied: Mapping[str, str]) -> dict[str, str]:
    """Simulation leaves out policies with conditions on the request; a dry run does not.

    One without an answer hides nothing that is denied already.
    """
    ec2 = asked.client("ec2")
    found = {}
    for action, operation, given in (
        ("ec2:CreateVpc", "create_vpc", {"CidrBlock": "10.0.0.0/16"}),
        ("ec2:AllocateAddress", "allocate_address", {"Domain": "vpc"}),
    ):
        try:
            getattr(ec2, operation)(DryRun=True, **given)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in DENIED:
                found[action] = "EC2 refuses a dry run of it"
            elif code != WOULD_BE_DONE and not denied:
                raise
    return found


def principal_of(caller: str, iam: Any) -> str:
    """Return whose policies a caller's are: of an assumed role's session, the role.

    A session's ARN leaves out the role's path, and those of IAM Identity Center have one.
    """
    head, _, rest = caller.partition(":assumed-role/")
    if not rest:
        return caller
    partition, account, name = head.split(":")[1], head.split(":")[4], rest.split("/")[0]
    try:
        return str(iam.get_role(RoleName=name)["Role"]["Arn"])
    except ClientError:
        return f"arn:{partition}:iam::{account}:role/{name}"


def bill(asked: AccountClients) -> str:
    try:
        asked.client("bcm-data-exports", region=GLOBAL_REGION).list_exports(MaxResults=1)
    except ClientError as error:
        if error.response["Error"]["Code"] in DENIED:
            return "bcm-data-exports:ListExports is refused"
        raise
    return ""


def slack(asked: AccountClients) -> str | None:
    """Ask Slack whether it takes the token; the token itself is said to nobody."""
    name = asked.needs.slack_secret
    if name is None:
        return None
    try:
        token = asked.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return "there is no such secret"
        raise
    try:
        WebClient(token=token, base_url=asked.needs.slack_url, timeout=10).auth_test()
    except SlackApiError as error:
        return str(error.response.get("error", "it is refused"))
    except OSError as error:
        raise StillwaterError(
            passed_on("Slack does not answer from here; let this machine reach it.", error)
        ) from None
    return ""


PARTS: Mapping[str, Callable[[AccountClients], Any]] = {
    "region_status": region_status,
    "stands": stands,
    "zones": zones,
    "offerings": offerings,
    "subnets": subnets,
    "vpc": vpc,
    "quotas": quotas,
    "concurrency": concurrency,
    "kubernetes": kubernetes,
    "addons": addons,
    "addon_schemas": addon_schemas,
    "volumes_key": volumes_key,
    "taken": taken_names,
    "pending_secrets": pending_secrets,
    "denied": denied_actions,
    "bill": bill,
    "slack": slack,
}
