"""Reads the account and region around a cluster into core.survey's facts, and changes nothing.

What a replacement needs (addresses, vCPUs, disks), how long the control plane is supported, what
AWS has announced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from cli.survey.account import vcpus
from cli.survey.aws_pages import pages
from core.errors import StillwaterError
from core.instances import vcpu_quota
from core.survey.account_facts import (
    AccountQuota,
    AwsHealth,
    ControlPlane,
    HealthEvent,
    Insight,
    Shiftable,
    Subnet,
)

Aws = Callable[[str], Any]
DISKS = "Storage for General Purpose SSD (gp3) volumes, in TiB"
GIB_PER_TIB = 1024
RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
# Without one of the dearer plans of Support, AWS Health's API answers nobody.
WITHOUT_PLAN = "SubscriptionRequiredException"
HEALTH_SERVICES = ["EC2", "EBS", "EKS", "AUTOSCALING", "ELASTICLOADBALANCING"]
CATEGORIES = ["issue", "investigation", "scheduledChange"]
# DescribeAffectedEntities takes no more at once.
EVENTS_AT_ONCE = 10
SUBNETS_AT_ONCE = 200


def subnets(client: Any, wanted: Iterable[str]) -> dict[str, Subnet]:
    """Return some subnets; one that is gone is left out, since a filter passes over it."""
    names = sorted(set(wanted))
    return {
        str(each["SubnetId"]): Subnet(
            zone=str(each["AvailabilityZone"]),
            zone_id=str(each.get("AvailabilityZoneId") or ""),
            free_addresses=int(each["AvailableIpAddressCount"]),
            vpc=str(each.get("VpcId") or ""),
        )
        for start in range(0, len(names), SUBNETS_AT_ONCE)
        for each in pages(
            client,
            "describe_subnets",
            "Subnets",
            Filters=[{"Name": "subnet-id", "Values": names[start : start + SUBNETS_AT_ONCE]}],
        )
    }


def machine_quotas(quotas: Any, ec2: Any, types: Iterable[str]) -> dict[str, AccountQuota]:
    """Return what the account may have of the families that some types are of, and has."""
    names = {name for each in types if (name := vcpu_quota(each))}
    limits = _limits(quotas, "ec2", names)
    used = dict.fromkeys(names, 0)
    for reservation in pages(ec2, "describe_instances", "Reservations", Filters=RUNNING):
        for instance in reservation["Instances"]:
            name = vcpu_quota(str(instance.get("InstanceType") or ""))
            # Spot, and what is sold as capacity blocks, have quotas of their own.
            if name in used and not instance.get("InstanceLifecycle"):
                used[name] += vcpus(instance)
    return {
        name: AccountQuota(name=name, service="ec2", limit=limits[name], used=used[name])
        for name in sorted(names)
    }


def disk_quota(quotas: Any, ec2: Any) -> AccountQuota:
    limits = _limits(quotas, "ebs", {DISKS})
    gp3 = [{"Name": "volume-type", "Values": ["gp3"]}]
    used = sum(int(each["Size"]) for each in pages(ec2, "describe_volumes", "Volumes", Filters=gp3))
    return AccountQuota(name=DISKS, service="ebs", limit=limits[DISKS], used=used / GIB_PER_TIB)


def _limits(client: Any, service: str, names: set[str]) -> dict[str, float]:
    # What was never raised stands among the defaults alone.
    found = {
        str(each["QuotaName"]): float(each["Value"])
        for operation in ("list_aws_default_service_quotas", "list_service_quotas")
        for each in pages(client, operation, "Quotas", ServiceCode=service)
    }
    if missing := sorted(names - set(found)):
        raise StillwaterError(f"Service Quotas lists no {', '.join(map(repr, missing))}")
    return found


def control_plane(client: Any, name: str | None) -> ControlPlane:
    """Return an EKS cluster with the calendar of its version; raise where nobody knows its name."""
    if name is None:
        raise StillwaterError(
            "neither the tags of its machines nor the context say what EKS calls the cluster; "
            "name its ARN with --context"
        )
    item = client.describe_cluster(name=name)["cluster"]
    version = str(item["version"])
    # All of them: a filter by version is refused for one that EKS no longer knows.
    known = {
        str(each["clusterVersion"]): each
        for each in pages(client, "describe_cluster_versions", "clusterVersions", includeAll=True)
    }
    calendar = known.get(version, {})
    said = calendar.get("versionStatus") or calendar.get("status")
    return ControlPlane(
        name=str(item["name"]),
        arn=str(item["arn"]),
        version=version,
        status=str(item.get("status") or "ACTIVE"),
        support=None if said is None else str(said).upper().replace("-", "_"),
        standard_ends=_moment(calendar.get("endOfStandardSupportDate")),
        extended_ends=_moment(calendar.get("endOfExtendedSupportDate")),
        policy=(item.get("upgradePolicy") or {}).get("supportType"),
        ipv6=(item.get("kubernetesNetworkConfig") or {}).get("ipFamily") == "ipv6",
        private=(item.get("resourcesVpcConfig") or {}).get("endpointPrivateAccess"),
        authentication=(item.get("accessConfig") or {}).get("authenticationMode"),
        issues=tuple(
            f"{issue['code']}: {issue.get('message') or 'no more is said'}"
            for issue in (item.get("health") or {}).get("issues") or ()
        ),
    )


def _moment(given: object) -> float | None:
    return given.timestamp() if isinstance(given, datetime) else None


def upgrade_insights(client: Any, cluster: ControlPlane) -> tuple[Insight, ...]:
    asked = {"categories": ["UPGRADE_READINESS"], "statuses": ["WARNING", "ERROR", "UNKNOWN"]}
    return tuple(
        Insight(
            name=str(each.get("name") or each["id"]),
            status=str((each.get("insightStatus") or {}).get("status") or "UNKNOWN"),
        )
        for each in pages(
            client, "list_insights", "insights", clusterName=cluster.name, filter=asked
        )
    )


def zonal_shifts(client: Any) -> tuple[Shiftable, ...]:
    """Return every resource that ARC knows in the region, with where it is shifted away from."""
    return tuple(
        Shiftable(
            arn=str(each.get("arn") or each.get("name") or "?"),
            shifted=dict(_active_shifts(each)),
            autoshift=each.get("zonalAutoshiftStatus") == "ENABLED",
        )
        for each in pages(client, "list_managed_resources", "items")
    )


def _active_shifts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in item.get("zonalShifts") or ():
        # One that is not applied gives way to another that is.
        if each.get("appliedStatus", "APPLIED") == "APPLIED":
            how = "for practice" if each.get("shiftType") == "PRACTICE_RUN" else "by somebody"
            yield str(each["awayFrom"]), f"{how} until {_time_text(each.get('expiryTime'))}"
    for each in item.get("autoshifts") or ():
        if each.get("appliedStatus", "APPLIED") == "APPLIED":
            yield str(each["awayFrom"]), f"by AWS since {_time_text(each.get('startTime'))}"


def _time_text(moment: Any) -> str:
    return f"{moment:%F %R} UTC" if isinstance(moment, datetime) else "a time that is not said"


def aws_health(client: Any, region: str | None) -> AwsHealth:
    """Return what AWS Health says is open or to come in a region, with the resources it names."""
    if region is None:
        raise StillwaterError("no node says in which region it is; name it with --region")
    asked = {
        "services": HEALTH_SERVICES,
        "regions": [region],
        "eventTypeCategories": CATEGORIES,
        "eventStatusCodes": ["open", "upcoming"],
    }
    try:
        found = list(pages(client, "describe_events", "events", filter=asked))
        entities = dict(_entities(client, [str(each["arn"]) for each in found]))
    except ClientError as error:
        if error.response["Error"]["Code"] == WITHOUT_PLAN:
            return AwsHealth(without_plan=True)
        raise
    return AwsHealth(
        events=tuple(
            HealthEvent(
                code=str(each["eventTypeCode"]),
                service=str(each["service"]),
                category=str(each["eventTypeCategory"]),
                place=str(each.get("availabilityZone") or each.get("region") or region),
                begins=_time_text(each.get("startTime")),
                entities=frozenset(entities.get(str(each["arn"]), ())),
            )
            for each in found
        )
    )


def _entities(client: Any, events: list[str]) -> Iterator[tuple[str, set[str]]]:
    found: dict[str, set[str]] = {}
    for start in range(0, len(events), EVENTS_AT_ONCE):
        asked = {"eventArns": events[start : start + EVENTS_AT_ONCE]}
        for each in pages(client, "describe_affected_entities", "entities", filter=asked):
            named = found.setdefault(str(each["eventArn"]), set())
            named |= {str(v) for v in (each.get("entityValue"), each.get("entityArn")) if v}
    yield from found.items()
