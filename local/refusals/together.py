"""Limits that no resource exceeds alone: names that exist, counts on one parent, sums, pairs.

Each entry looks at all resources of an environment at once, in the order in which they were made,
and names the one that goes too far.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local.refusals.cidrs import is_within, network
from local.refusals.documents import INLINE_POLICY, without_whitespace
from local.refusals.fields import values
from local.refusals.limits import IAM_QUOTAS, LAMBDA_QUOTAS
from local.refusals.networks import protocol
from local.refusals.refusal import Refusal, Wanted

Finder = Callable[[Sequence[Wanted]], Iterator[Refusal]]
# Lambda's default limit of functions that run at once, and what must stay unreserved of it. A new
# account has fewer and may reserve none, which preflight says before anything is made.
CONCURRENCY = 1000
UNRESERVED_LEAST = 100


@dataclass(frozen=True, slots=True)
class NeighbourLimit:
    """One limit on several resources: where it stands written, and who looks for it."""

    name: str
    source: str
    find: Finder


LIMITS: list[NeighbourLimit] = []
# What there is once, how many there may be, and what is of one region: a row each.
TABLE: Mapping[str, list[Mapping[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("neighbours.toml").read_text()
)
# Which spellings are one name.
_ALIKE: Mapping[str, Callable[[str], str]] = {
    "": str,
    "case": str.lower,
    "dns": lambda name: name.rstrip(".").lower(),
    "function": lambda name: name.rpartition(":function:")[2],
}


def limit(source: str) -> Callable[[Finder], Finder]:
    """Enter a limit under its function's name."""

    def enter(find: Finder) -> Finder:
        LIMITS.append(NeighbourLimit(find.__name__.replace("_", "-"), source, find))
        return find

    return enter


def refusals(everything: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield what AWS refuses of resources that are each alone in order."""
    known = list(everything)
    for each in LIMITS:
        yield from each.find(known)


def of(everything: Sequence[Wanted], *tokens: str) -> list[Wanted]:
    """Return the resources of some types."""
    types = {f"aws:{token}" for token in tokens}
    return [each for each in everything if each.type in types]


def resources_by_name(everything: Sequence[Wanted], token: str) -> dict[str, Wanted]:
    """Return the resources of a type by the name that each gives itself."""
    return {str(each.inputs.get("name")): each for each in of(everything, token)}


def about(wanted: Wanted, operation: str, code: str, message: str, at: str = "") -> Refusal:
    """Return a refusal that names its resource."""
    return replace(Refusal(operation, code, message, at), resource=wanted.name)


@limit(
    "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html#reference_iam-quotas-names"
)
def names_that_exist(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What bears a name is there once."""
    for row in TABLE["once"]:
        seen: set[tuple[str, ...]] = set()
        for each in of(everything, row["type"]):
            given = {name: next(iter(values(each.inputs, name)), "") or "" for name in row["by"]}
            if any(
                not value for name, value in given.items() if name not in row.get("optional", ())
            ):
                continue
            key = tuple(str(value) for value in given.values())
            compared = tuple(map(_ALIKE[row.get("alike", "")], key))
            if compared in seen:
                said, at = row["says"].format(*key), row["by"][-1]
                yield about(each, row["operation"], row["code"], said, at)
            seen.add(compared)


@limit("the source of each row")
def counts_on_one_parent(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """So many rules, listeners, hooks, targets and policies."""
    for row in TABLE["most"]:
        counts: Counter[str] = Counter()
        for each in of(everything, row["type"]):
            parent = str(each.inputs.get(row["parent"]) or "default")
            counts[parent] += 1
            if counts[parent] == row["most"] + 1:
                yield about(each, row["operation"], row["code"], row["says"], row["parent"])


@limit(IAM_QUOTAS)
def inline_policies_of_a_role(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """10,240 characters of them all."""
    sizes: dict[str, int] = defaultdict(int)
    for each in of(everything, "iam/rolePolicy:RolePolicy"):
        role, size = str(each.inputs["role"]), without_whitespace(each.inputs["policy"])
        # One that is too large alone is refused by itself.
        if sizes[role] + size > INLINE_POLICY >= size:
            message = f"Maximum policy size of {INLINE_POLICY} bytes exceeded for role {role}"
            yield about(each, "PutRolePolicy", "LimitExceeded", message, "policy")
        sizes[role] += size


@limit(LAMBDA_QUOTAS)
def reserved_concurrency(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What is reserved leaves a hundred."""
    left = CONCURRENCY
    for each in of(everything, "lambda/function:Function"):
        reserved = each.inputs.get("reservedConcurrentExecutions")
        if reserved is None or int(reserved) < 0:
            continue
        left -= int(reserved)
        if left < UNRESERVED_LEAST and int(reserved) > 0:
            message = (
                "Specified ReservedConcurrentExecutions for function decreases account's "
                "UnreservedConcurrentExecution below its minimum value of "
                f"[{UNRESERVED_LEAST}]."
            )
            at = "reservedConcurrentExecutions"
            code = "InvalidParameterValueException"
            yield about(each, "PutFunctionConcurrency", code, message, at)


@limit("https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html")
def queues_that_feed_a_function(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A message is invisible for as long as the function may work on it; six times is better."""
    functions = resources_by_name(everything, "lambda/function:Function")
    queues = resources_by_name(everything, "sqs/queue:Queue")
    for each in of(everything, "lambda/eventSourceMapping:EventSourceMapping"):
        function = functions.get(str(each.inputs.get("functionName")).rpartition(":")[2])
        queue = queues.get(str(each.inputs.get("eventSourceArn")).rpartition(":")[2])
        if function is None or queue is None:
            continue
        visible = int(queue.inputs.get("visibilityTimeoutSeconds") or 30)
        timeout = int(function.inputs.get("timeout") or 3)
        if visible < timeout:
            message = f"Queue visibility timeout: {visible} seconds is less than Function timeout: "
            message += f"{timeout} seconds"
            code = "InvalidParameterValueException"
            yield about(each, "CreateEventSourceMapping", code, message)


@limit("https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html")
def subnets_of_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Inside the VPC's block, and beside each other."""
    vpcs = {e.name: network(e.inputs.get("cidrBlock")) for e in of(everything, "ec2/vpc:Vpc")}
    # One that stands bears its id for a name; without ids, a VPC that is alone has all subnets.
    alone = next(iter(vpcs.values())) if len(vpcs) == 1 else None
    by_vpc: dict[str, list[Any]] = defaultdict(list)
    for each in of(everything, "ec2/subnet:Subnet"):
        block = network(each.inputs.get("cidrBlock"))
        if block is None:
            # EC2 draws it from a pool, or it is refused by itself.
            continue
        vpc = str(each.inputs.get("vpcId"))
        around = vpcs.get(vpc, alone)
        if around and not is_within(block, around):
            message = f"The CIDR '{block}' is invalid."
            yield about(each, "CreateSubnet", "InvalidSubnet.Range", message, "cidrBlock")
        if any(block.overlaps(other) for other in by_vpc[vpc]):
            message = f"The CIDR '{block}' conflicts with another subnet"
            yield about(each, "CreateSubnet", "InvalidSubnet.Conflict", message, "cidrBlock")
        by_vpc[vpc].append(block)


@limit("https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html")
def services_beside_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The addresses of Kubernetes' Services are none of the VPC's."""
    vpcs = [network(each.inputs.get("cidrBlock")) for each in of(everything, "ec2/vpc:Vpc")]
    for each in of(everything, "eks/cluster:Cluster"):
        block = (each.inputs.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr")
        services = network(block)
        if len(vpcs) == 1 and vpcs[0] and services and services.overlaps(vpcs[0]):
            message = f"serviceIpv4Cidr {block} overlaps with the CIDR block {vpcs[0]} of the VPC"
            at = "kubernetesNetworkConfig"
            yield about(each, "CreateCluster", "InvalidParameterException", message, at)


@limit("https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html")
def groups_of_two_balancers(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A target group is of one load balancer."""
    owner: dict[str, str] = {}
    for each in of(everything, "lb/listener:Listener"):
        balancer = str(each.inputs.get("loadBalancerArn"))
        for action in each.inputs.get("defaultActions") or ():
            group = action.get("targetGroupArn")
            if group and owner.setdefault(str(group), balancer) != balancer:
                message = "The following target groups cannot be associated with more than one "
                message += f"load balancer: {group}"
                code = "TargetGroupAssociationLimit"
                yield about(each, "CreateListener", code, message, "defaultActions")


@limit(
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AuthorizeSecurityGroupIngress.html"
)
def rules_that_exist(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The same ports from the same source are one rule, whatever they are described as."""
    ports = ("securityGroupId", "fromPort", "toPort")
    sources = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
    for direction in ("Ingress", "Egress"):
        token = f"vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule"
        seen = set()
        for each in of(everything, token):
            spoken = protocol(each.inputs.get("ipProtocol"))
            key = (spoken, *(str(each.inputs.get(name)) for name in (*ports, *sources)))
            if key in seen:
                source = next(filter(None, map(each.inputs.get, sources)), "")
                message = f'the specified rule "peer: {source}, {spoken.upper()}, from port: '
                message += f'{key[2]}, to port: {key[3]}, ALLOW" already exists'
                operation = f"AuthorizeSecurityGroup{direction}"
                yield about(each, operation, "InvalidPermission.Duplicate", message)
            seen.add(key)
