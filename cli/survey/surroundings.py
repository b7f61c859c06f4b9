"""Reads the account and region around a cluster into core.model, and changes nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from cli.aws import filtered_pages, pages
from cli.survey.account import health_issues, vcpus
from core.checks.facts import AwsHealth, ControlPlane, HealthEvent, Insight, Shiftable, WayOut
from core.checks.new_cluster import QUOTAS
from core.ground.errors import StillwaterError
from core.ground.instances import vcpu_quota
from core.ground.placement import GIB_PER_TIB
from core.model.account import AccountQuota, QuotaName, Subnet, VpcEndpoint
from handlers.adapters.calls import portions

DISKS = QUOTAS["gp3_tib"]
RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
# Without one of the dearer plans of Support, AWS Health's API answers nobody.
WITHOUT_PLAN = "SubscriptionRequiredException"
HEALTH_SERVICES = ["EC2", "EBS", "EKS", "AUTOSCALING", "ELASTICLOADBALANCING"]
CATEGORIES = ["issue", "investigation", "scheduledChange"]
# DescribeAffectedEntities takes no more at once.
EVENTS_AT_ONCE = 10


def subnets(client: Any, wanted: Iterable[str]) -> dict[str, Subnet]:
    """Return some subnets; one that is gone is left out, since a filter passes over it."""
    return {
        str(each["SubnetId"]): Subnet(
            zone=str(each["AvailabilityZone"]),
            zone_id=str(each.get("AvailabilityZoneId") or ""),
            free_addresses=int(each["AvailableIpAddressCount"]),
            vpc=str(each.get("VpcId") or ""),
            ipv6_only=bool(each.get("Ipv6Native")),
        )
        for each in filtered_pages(client, "describe_subnets", "Subnets", "subnet-id", wanted)
    }


def machine_quotas(quotas: Any, ec2: Any, types: Iterable[str]) -> dict[str, AccountQuota]:
    """Return what the account may have of the families that some types are of, and has."""
    names = {name for each in types if (name := vcpu_quota(each))}
    limits, used = quota_values(quotas, "ec2"), used_vcpus(ec2)
    return {
        name: quota_of(QuotaName("ec2", name, "vCPUs"), limits, used[name])
        for name in sorted(names)
    }


def disk_quota(quotas: Any, ec2: Any) -> AccountQuota:
    return quota_of(DISKS, quota_values(quotas, DISKS.service), used_gp3_tib(ec2))


def quota_of(name: QuotaName, limits: Mapping[str, float], used: float) -> AccountQuota:
    """Return a quota out of those of its service; raise where it is not among them."""
    if name.name not in limits:
        raise StillwaterError(f"Service Quotas lists no {name.name!r}")
    return AccountQuota(name, limits[name.name], used)


def used_vcpus(ec2: Any) -> Counter[str]:
    """Return by Service Quotas' name how many vCPUs run on demand."""
    found: Counter[str] = Counter()
    for reservation in pages(ec2, "describe_instances", "Reservations", Filters=RUNNING):
        for instance in reservation["Instances"]:
            name = vcpu_quota(str(instance.get("InstanceType") or ""))
            # Spot, and what is sold as capacity blocks, have quotas of their own.
            if name is not None and not instance.get("InstanceLifecycle"):
                found[name] += vcpus(instance)
    return found


def used_gp3_tib(ec2: Any) -> float:
    """Return how many TiB of gp3 an account has in a region."""
    gp3 = [{"Name": "volume-type", "Values": ["gp3"]}]
    volumes = pages(ec2, "describe_volumes", "Volumes", Filters=gp3)
    return sum(int(volume["Size"]) for volume in volumes) / GIB_PER_TIB


def quota_values(quotas: Any, service: str) -> dict[str, float]:
    """Return a service's quotas by Service Quotas' names of them."""
    # What was never raised stands among the defaults alone.
    return {
        str(each["QuotaName"]): float(each["Value"])
        for operation in ("list_aws_default_service_quotas", "list_service_quotas")
        for each in pages(quotas, operation, "Quotas", ServiceCode=service)
    }


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
    return ControlPlane(
        name=str(item["name"]),
        arn=str(item["arn"]),
        version=version,
        status=str(item.get("status") or "ACTIVE"),
        support=support_of(calendar),
        standard_ends=_moment(calendar.get("endOfStandardSupportDate")),
        extended_ends=_moment(calendar.get("endOfExtendedSupportDate")),
        policy=(item.get("upgradePolicy") or {}).get("supportType"),
        ipv6=(item.get("kubernetesNetworkConfig") or {}).get("ipFamily") == "ipv6",
        private=(item.get("resourcesVpcConfig") or {}).get("endpointPrivateAccess"),
        authentication=(item.get("accessConfig") or {}).get("authenticationMode"),
        issues=health_issues(item),
    )


def support_of(calendar: Mapping[str, Any]) -> str | None:
    """Return how EKS supports a version: STANDARD_SUPPORT, EXTENDED_SUPPORT or UNSUPPORTED."""
    # The older field says the same in small letters.
    said = calendar.get("versionStatus") or calendar.get("status")
    return None if said is None else str(said).upper().replace("-", "_")


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
    for portion in portions(events, EVENTS_AT_ONCE):
        asked = {"eventArns": portion}
        for each in pages(client, "describe_affected_entities", "entities", filter=asked):
            named = found.setdefault(str(each["eventArn"]), set())
            named |= {str(v) for v in (each.get("entityValue"), each.get("entityArn")) if v}
    yield from found.items()


EVERYWHERE = ("0.0.0.0/0", "::/0")
# What a route may lead to, by the key that names it.
TARGETS = (
    *("NatGatewayId", "GatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId"),
    *("EgressOnlyInternetGatewayId", "VpcPeeringConnectionId", "LocalGatewayId"),
    *("CarrierGatewayId", "CoreNetworkArn"),
)
NAT = "nat-"
# As in com.amazonaws.eu-north-1.ecr.api.
SERVICE = re.compile(r".*\.[a-z]{2,4}(?:-[a-z]+)+-\d\.(.+)")
GONE = {"failed", "deleting", "deleted"}


def ways_out(ec2: Any, known: Mapping[str, Subnet]) -> dict[str, WayOut]:
    """Return for each subnet where its default route leads; one without a table is left out."""
    vpcs = {each.vpc for each in known.values()}
    tables = [
        table
        for table in pages(ec2, "describe_route_tables", "RouteTables", Filters=_in_vpcs(vpcs))
        if table.get("VpcId")
    ]
    found = {}
    for name, subnet in known.items():
        if (table := _table_of(name, subnet, tables)) is not None:
            found[name] = _way_out(table)
    return _nat_checked(ec2, found)


def _in_vpcs(names: Iterable[str]) -> list[dict[str, Any]]:
    return [{"Name": "vpc-id", "Values": sorted(names)}]


def _table_of(name: str, subnet: Subnet, tables: Iterable[Mapping[str, Any]]) -> Any:
    """Return the route table of a subnet: its own, else the main one of its VPC."""
    main = None
    for table in tables:
        for each in table.get("Associations") or ():
            if each.get("SubnetId") == name:
                return table
            if each.get("Main") and table["VpcId"] == subnet.vpc:
                main = table
    return main


def _way_out(table: Mapping[str, Any]) -> WayOut:
    named = str(table["RouteTableId"])
    for route in table.get("Routes") or ():
        where = (route.get("DestinationCidrBlock"), route.get("DestinationIpv6CidrBlock"))
        if not set(where) & set(EVERYWHERE):
            continue
        target = next((str(route[key]) for key in TARGETS if route.get(key)), "an unknown target")
        return WayOut(table=named, target=target, gone=route.get("State") == "blackhole")
    return WayOut(table=named)


def _nat_checked(ec2: Any, found: Mapping[str, WayOut]) -> dict[str, WayOut]:
    """Return ways out with what EC2 says of the NAT gateways that they lead to."""
    names = sorted({w.target for w in found.values() if w.target and w.target.startswith(NAT)})
    if not names:
        return dict(found)
    chosen = [{"Name": "nat-gateway-id", "Values": names}]
    nats = {
        str(each["NatGatewayId"]): each
        for each in pages(ec2, "describe_nat_gateways", "NatGateways", Filter=chosen)
    }
    # One of a whole region names no subnet.
    stand = {str(each["SubnetId"]) for each in nats.values() if each.get("SubnetId")}
    zones = {name: each.zone for name, each in subnets(ec2, stand).items()} if stand else {}
    return {name: _nat_way(way, nats, zones) for name, way in found.items()}


def _nat_way(way: WayOut, nats: Mapping[str, Any], zones: Mapping[str, str]) -> WayOut:
    if way.target is None or not way.target.startswith(NAT):
        return way
    nat = nats.get(way.target)
    return WayOut(
        table=way.table,
        target=way.target,
        gone=way.gone or nat is None or nat.get("State") in GONE,
        nat_zone=None if nat is None else zones.get(str(nat.get("SubnetId"))),
    )


def endpoints(ec2: Any, vpcs: Iterable[str]) -> tuple[VpcEndpoint, ...]:
    """Return the ways from some VPCs to AWS's services."""
    return tuple(
        VpcEndpoint(
            vpc=str(each["VpcId"]),
            service=found[1],
            available=str(each.get("State", "")).lower() == "available",
            tables=frozenset(each.get("RouteTableIds") or ())
            if each.get("VpcEndpointType") == "Gateway"
            else None,
            private_name=each.get("VpcEndpointType") == "Interface"
            and bool(each.get("PrivateDnsEnabled")),
        )
        for each in pages(ec2, "describe_vpc_endpoints", "VpcEndpoints", Filters=_in_vpcs(vpcs))
        if (found := SERVICE.fullmatch(str(each.get("ServiceName"))))
    )
