"""Judges whether nodes reach AWS from their subnets: default routes, NAT gateways, endpoints.

Source: Amazon VPC's route tables; what EKS asks of clusters without a way to the internet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from core.survey.account_facts import Subnet, VpcEndpoint, WayOut
from core.survey.facts import Surveyed
from core.survey.finding import (
    Finding,
    Weight,
    listing,
    not_judged,
    producer_may_stall,
    worth_knowing,
)
from core.survey.room import places
from core.unknown import Unknown, of

# What a node asks before it runs a broker: itself, its images, who its pods are.
ASKED_BY_NODES = ("ec2", "ecr.api", "ecr.dkr", "s3")
INTERNET_GATEWAY = "igw-"
IDENTITY = ("sts", "eks-auth")
SUBJECT = "subnets of Kafka's nodes"


def ways_out(seen: Surveyed) -> Iterator[Finding]:
    """Find subnets from which a node that starts there reaches nobody, or only by one zone."""
    if isinstance(seen.subnets, Unknown) or isinstance(seen.ways_out, Unknown):
        return
    every = {n: s for _, _, subnets in places(seen, seen.subnets) for n, s in subnets.items()}
    if unseen := set(every) - set(seen.ways_out):
        yield not_judged(
            "route-unseen",
            SUBJECT,
            f"EC2 lists no route table of {listing(unseen)}: whether a node that starts there "
            f"reaches anybody was not judged",
            "look at its route table in the account that owns the VPC",
        )
    mine = {name: subnet for name, subnet in every.items() if name in seen.ways_out}
    ways = {name: seen.ways_out[name] for name in mine}
    if gone := {f"{name} (to {way.target})" for name, way in ways.items() if way.gone}:
        yield producer_may_stall(
            "route-gone",
            SUBJECT,
            f"the default route of {listing(gone)} leads to what is no more: a node that starts "
            f"there fetches no image and does not join",
            "give the route table a NAT gateway that is there",
        )
    yield from _by_endpoints(mine, ways, seen)
    yield from _one_nat(mine, ways)


def of_functions(
    seen: Surveyed, names: Collection[str], called: Collection[str]
) -> Iterator[Finding]:
    """Find subnets from which functions of ours do not reach what they call.

    A function in a VPC has no address of its own outside it: an internet gateway is no way out.
    """
    if isinstance(seen.subnets, Unknown) or isinstance(seen.ways_out, Unknown):
        return
    subject = "subnets of the functions"
    if lost := set(names) - set(seen.subnets):
        yield producer_may_stall(
            "function-subnets",
            subject,
            f"EC2 does not know {listing(lost)}: a function cannot stand there",
            "name subnets that exist in `subnets`",
        )
    known = {name: seen.ways_out[name] for name in names if name in seen.ways_out}
    if gone := {f"{name} (to {way.target})" for name, way in known.items() if way.gone}:
        yield producer_may_stall(
            "function-route",
            subject,
            f"the default route of {listing(gone)} leads to what is no more: functions there "
            f"reach nobody",
            "give the route table a NAT gateway that is there",
        )
    alone = {
        name: way
        for name, way in known.items()
        if way.target is None or way.target.startswith(INTERNET_GATEWAY)
    }
    if isinstance(seen.vpc_endpoints, Unknown):
        return
    wanted = tuple(sorted(called))
    missing = {
        each
        for name, way in alone.items()
        for each in lacking(seen.subnets[name], way, seen.vpc_endpoints, wanted)
    }
    if missing:
        yield producer_may_stall(
            "function-endpoints",
            subject,
            f"from {listing(alone)} functions reach no NAT gateway, and no endpoint for "
            f"{', '.join(sorted(missing))}: they see and do nothing",
            "name private subnets behind a NAT gateway in `subnets`, or make these endpoints",
        )


def lacking(
    subnet: Subnet, way: WayOut, found: tuple[VpcEndpoint, ...], wanted: tuple[str, ...]
) -> list[str]:
    """Return the services that nobody reaches from a subnet, of those that are wanted."""
    have = {each.service for each in found if each.reached_from(subnet, way)}
    return [service for service in wanted if service not in have]


def _by_endpoints(
    subnets: Mapping[str, Subnet], ways: Mapping[str, WayOut], seen: Surveyed
) -> Iterator[Finding]:
    """Find subnets without a default route, and the endpoints that they lack in its place."""
    alone = {name: way for name, way in ways.items() if way.target is None}
    if isinstance(seen.vpc_endpoints, Unknown) or not alone:
        return
    found, plane = seen.vpc_endpoints, seen.control_plane
    if not isinstance(plane, Unknown) and plane.private is False:
        yield producer_may_stall(
            "api-server-far",
            SUBJECT,
            f"{listing(alone)} has no default route, and the API server of EKS cluster "
            f"{plane.name} has no address in the VPC: a node that starts there does not join",
            "enable private access of the cluster's endpoint",
        )
    missing = {
        each
        for name, way in alone.items()
        for each in (
            *lacking(subnets[name], way, found, ASKED_BY_NODES),
            *_nameless(subnets[name], way, found),
        )
    }
    if missing:
        yield _missing_endpoints(alone, missing, found)
        return
    users = {
        service: who
        for service, who in _asked_beside(seen).items()
        if any(lacking(subnets[name], way, found, (service,)) for name, way in alone.items())
    }
    if users:
        yield worth_knowing(
            "endpoints-beside",
            SUBJECT,
            f"from {listing(alone)} nobody reaches "
            + listing(f"{service} ({who})" for service, who in users.items())
            + ": who needs that must not come to run there",
            "make these endpoints too, or keep those who need them elsewhere",
        )


def _missing_endpoints(
    alone: Mapping[str, WayOut], missing: set[str], found: tuple[VpcEndpoint, ...]
) -> Finding:
    # Who has none of them may have a proxy, of which nothing is known here.
    designed = any(each.service in (*ASKED_BY_NODES, *IDENTITY) for each in found)
    return Finding(
        "endpoints-missing",
        Weight.PRODUCER if designed else Weight.UNKNOWN,
        SUBJECT,
        f"{listing(alone)} has no default route, and its VPC no endpoint for {listing(missing)}: "
        + (
            "a node that starts there fetches no image, or does not join"
            if designed
            else "how a node that starts there comes to its images is not known"
        ),
        "make the endpoints that EKS asks of private clusters, or a default route",
    )


def _nameless(subnet: Subnet, way: WayOut, found: tuple[VpcEndpoint, ...]) -> list[str]:
    """Return what is lacking of the two by which pods get a role, of which one is enough."""
    missing = lacking(subnet, way, found, IDENTITY)
    return [IDENTITY[0]] if len(missing) == len(IDENTITY) else []


def _asked_beside(seen: Surveyed) -> dict[str, str]:
    """Return what else is asked for, and by whom."""
    handlers = [each.title for each in of(seen.handlers) if each.queue_mode]
    scalers = [each.title for each in of(seen.autoscalers)]
    queued = handlers + [each.title for each in of(seen.node_provisioners) if each.queue]
    balancing = [each.title for each in of(seen.balancer_controllers)]
    asked = {
        "sqs": queued,
        "autoscaling": handlers + scalers,
        "elasticloadbalancing": balancing,
    }
    return {service: listing(who) for service, who in asked.items() if who}


def _one_nat(subnets: Mapping[str, Subnet], ways: Mapping[str, WayOut]) -> Iterator[Finding]:
    """Name zones whose nodes go out by the NAT gateway of another zone alone."""
    by_zone = {
        subnets[name].zone: way.nat_zone
        for name, way in ways.items()
        if way.nat_zone and name in subnets
    }
    across = {zone: nat for zone, nat in by_zone.items() if zone != nat}
    if across and len(set(by_zone.values())) == 1 and len(by_zone) > 1:
        nat = next(iter(across.values()))
        yield worth_knowing(
            "nat-one-zone",
            SUBJECT,
            f"subnets in {listing(across)} go out by a NAT gateway in {nat}: while that zone is "
            f"away, no node starts in the others either",
            "give each zone a NAT gateway of its own, or use one of the whole region",
        )
