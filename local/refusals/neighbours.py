"""Limits that no resource exceeds alone: names that exist, counts on one parent, sums, pairs.

Each entry looks at all resources of an environment at once, in the order in which they were made,
and names the one that goes too far. What is a name, a count, a region, a VPC or a role's trust is
a row of neighbours.toml.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from local.refusals.checks import runs
from local.refusals.documents import (
    as_list,
    holds,
    is_within,
    network,
    parse,
    plain_text,
    values,
    without_whitespace,
)
from local.refusals.refusal import IAM_QUOTAS, LAMBDA_QUOTAS, Refusal, Wanted, said

Finder = Callable[[Sequence[Wanted]], Iterator[Refusal]]
Row = Mapping[str, Any]
# Lambda's default limit of functions that run at once, and what must stay unreserved of it. A new
# account has fewer and may reserve none, which preflight says before anything is made.
CONCURRENCY, UNRESERVED_LEAST = 1000, 100
# IAM's quota of all inline policies of a role.
INLINE_POLICY = 10_240
_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/"
_VPC = "https://docs.aws.amazon.com/vpc/latest/userguide/"
TABLE: Mapping[str, list[Row]] = tomllib.loads(
    Path(__file__).with_name("neighbours.toml").read_text()
)


# Who looks for each limit on several resources, and where it stands written.
LIMITS: dict[Finder, str] = {}


def limit(source: str) -> Callable[[Finder], Finder]:
    """Enter a limit."""

    def enter(find: Finder) -> Finder:
        LIMITS[find] = source
        return find

    return enter


def refusals(everything: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield what AWS refuses of resources that are each alone in order."""
    known = list(everything)
    for find in LIMITS:
        yield from find(known)


def of(everything: Sequence[Wanted], *tokens: str) -> list[Wanted]:
    """Return the resources of some types."""
    types = {f"aws:{token}" for token in tokens}
    return [each for each in everything if each.type in types]


def about(wanted: Wanted, operation: str, code: str, message: str, at: str = "") -> Refusal:
    """Return a refusal that names its resource."""
    return replace(Refusal(operation, code, message, at), resource=wanted.name)


def _refusal(wanted: Wanted, row: Row, message: str, path: str) -> Refusal:
    return about(wanted, row["operation"], row["code"], message, path.partition(".")[0])


def _rows_of(kind: str, everything: Sequence[Wanted]) -> Iterator[tuple[Row, Wanted]]:
    for row in TABLE[kind]:
        for each in of(everything, row["type"]):
            yield row, each


def _resources_by_name(everything: Sequence[Wanted], token: str) -> dict[str, Wanted]:
    return {str(each.inputs.get("name")): each for each in of(everything, token)}


def _inputs_by_id(everything: Sequence[Wanted], token: str, key: str) -> dict[str, Any]:
    """Return an input of each resource of a type, by the id that others name it by."""
    return {each.name: each.inputs.get(key) for each in of(everything, token)}


# What a rule may call a protocol by its number, or otherwise: EC2 keeps the name.
_PROTOCOLS = {"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6", "all": "-1"}
# Which spellings are one name.
_ALIKE: Mapping[str, Callable[[str], str]] = {
    "": str,
    "case": str.lower,
    "dns": lambda name: name.rstrip(".").lower(),
    "function": lambda name: name.rpartition(":function:")[2],
    "protocol": lambda name: _PROTOCOLS.get(name.lower(), name.lower()),
}


@limit(f"{IAM_QUOTAS}#reference_iam-quotas-names")
def names_that_exist(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What bears a name is there once."""
    seen: set[tuple[str, ...]] = set()
    for row, each in _rows_of("once", everything):
        given = {name: next(iter(values(each.inputs, name)), "") for name in row["by"]}
        nameless = any(
            v in ("", None) for k, v in given.items() if k not in row.get("optional", ())
        )
        if nameless or not holds(row.get("where", {}), each.inputs, each.inputs):
            continue
        key = tuple(map(plain_text, given.values()))
        compared = (row["type"], *row["by"], *map(_ALIKE[row.get("alike", "")], key))
        if compared in seen:
            yield _refusal(each, row, row["says"].format(*key), row["by"][-1])
        seen.add(compared)


@limit("the source of each row")
def counts_on_one_parent(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """So many rules, listeners, hooks, targets and policies."""
    counts: Counter[tuple[str, str]] = Counter()
    for row, each in _rows_of("most", everything):
        parent = (row["type"], str(each.inputs.get(row["parent"]) or "default"))
        counts[parent] += 1
        if counts[parent] == row["most"] + 1:
            yield _refusal(each, row, row["says"], row["parent"])


_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


@limit("https://docs.aws.amazon.com/general/latest/gr/rande.html")
def one_region(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The region that most of a program's own inputs name; with as many of two, nobody knows."""
    named = [
        (row, each, found[0])
        for row, each in _rows_of("region", everything)
        # With a region of its own it is made elsewhere on purpose.
        if not each.inputs.get("region")
        for value in values(each.inputs, row["at"])
        if (found := _REGION.search(_place(str(value))))
    ]
    most = Counter(region for *_, region in named).most_common(2)
    if not most or (len(most) == 2 and most[0][1] == most[1][1]):
        return
    own = most[0][0]
    for row, each, region in named:
        if region != own:
            yield _refusal(each, row, row["says"].format(region, own), row["at"])


def _place(written: str) -> str:
    """Return the part of an ARN, a service's name or a zone that names its region."""
    if written.startswith("arn:"):
        return written.split(":")[3] if written.count(":") > 3 else ""
    return written


def _by_name(everything: Sequence[Wanted]) -> dict[str, Wanted]:
    """Return resources by what others name them by.

    One that stands bears its id or ARN for a name; a cluster and a target group are also found by
    their own names.
    """
    found = {each.name: each for each in everything}
    for each in of(everything, "lb/targetGroup:TargetGroup", "lb/loadBalancer:LoadBalancer"):
        found.setdefault(f"{each.type}/{each.inputs.get('name')}", each)
    return {**_resources_by_name(everything, "eks/cluster:Cluster"), **found}


def _find(reference: str, known: Mapping[str, Wanted]) -> Wanted | None:
    parts, balancer = reference.split("/"), ":loadbalancer/" in reference
    token = "lb/loadBalancer:LoadBalancer" if balancer else "lb/targetGroup:TargetGroup"
    if len(parts) == (4 if balancer else 3):
        return known.get(reference, known.get(f"aws:{token}/{parts[-2]}"))
    return known.get(reference)


def _vpcs(reference: str, known: Mapping[str, Wanted], depth: int = 3) -> set[str]:
    """Return the VPCs that something named lies in; nothing where nobody here knows it."""
    if reference.startswith("vpc-"):
        return {reference}
    there = _find(reference, known)
    if there is None or not depth:
        return set()
    if there.inputs.get("vpcId"):
        return {str(there.inputs["vpcId"])}
    paths = ("subnetId", "subnets.*", "vpcConfig.subnetIds.*", "vpcSecurityGroupIds.*")
    inner = [str(each) for path in paths for each in values(there.inputs, path)]
    return set().union(*(_vpcs(each, known, depth - 1) for each in inner))


@limit(f"{_VPC}how-it-works.html")
def one_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Subnets, groups, tables and gateways that one resource names are of one VPC."""
    known = _by_name(everything)
    for row, each in _rows_of("vpc", everything):
        claims = [
            (path, vpc)
            for path in row["at"]
            for value in values(each.inputs, path)
            for vpc in _vpcs(str(value), known)
        ]
        if len({vpc for _, vpc in claims}) > 1:
            said = ", ".join(f"{path.partition('.')[0]} of {vpc}" for path, vpc in claims)
            yield _refusal(each, row, f"All of these must belong to one VPC: {said}", claims[-1][0])


@limit(f"{_VPC}configure-subnets.html")
def zones_of_subnets(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A zone has one subnet of a balancer or an endpoint; a cluster has subnets in two."""
    known = _by_name(everything)
    for row, each in _rows_of("vpc", everything):
        zones = _zones(values(each.inputs, row["apart"]), known) if "apart" in row else []
        if len(set(zones)) < len(zones):
            message = "Multiple subnets of one Availability Zone are not supported: "
            yield _refusal(each, row, message + ", ".join(zones), row["apart"])
        if each.type == "aws:eks/cluster:Cluster":
            subnets = values(each.inputs, "vpcConfig.subnetIds.*")
            zones = _zones(subnets, known)
            if len(zones) == len(subnets) and len(set(zones)) == 1:
                message = "Subnets specified must be in at least two different AZs"
                yield _refusal(each, row, message, "vpcConfig")


def _zones(subnets: Sequence[Any], known: Mapping[str, Wanted]) -> list[str]:
    there = [known[str(each)].inputs for each in subnets if str(each) in known]
    found = [each.get("availabilityZone") or each.get("availabilityZoneId") for each in there]
    return [str(each) for each in found if each]


@limit("https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_terms-and-concepts.html")
def roles_that_are_assumed(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The trust of a role lets in the service that is to assume it."""
    roles = _resources_by_name(everything, "iam/role:Role")
    for row, each in _rows_of("trust", everything):
        for arn in values(each.inputs, row["at"]):
            role = roles.get(str(arn).rpartition("/")[2]) if ":role/" in str(arn) else None
            if role is not None and not _trusts(role, row):
                message = f"The role {arn} cannot be assumed by {row['service']}: its trust policy "
                message += f"does not allow {' and '.join(row['actions'])}"
                yield _refusal(each, row, message, row["at"])


def _trusts(role: Wanted, row: Row) -> bool:
    document = parse(role.inputs.get("assumeRolePolicy") or {}) or {}
    allowed: set[str] = set()
    for statement in as_list(document.get("Statement")):
        principal = statement.get("Principal") if isinstance(statement, dict) else None
        services = as_list(principal.get("Service")) if isinstance(principal, dict) else [principal]
        if statement.get("Effect") == "Allow" and {"*", row["service"]} & set(map(str, services)):
            allowed |= {str(action).lower() for action in as_list(statement.get("Action"))}
    every = {"*", "sts:*"} & allowed
    return bool(every) or {action.lower() for action in row["actions"]} <= allowed


@limit("https://docs.aws.amazon.com/vpc/latest/privatelink/interface-endpoints.html")
def names_inside_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """An endpoint's private names need the VPC's own."""
    vpcs = {each.name: each for each in of(everything, "ec2/vpc:Vpc")}
    for each in of(everything, "ec2/vpcEndpoint:VpcEndpoint"):
        vpc = vpcs.get(str(each.inputs.get("vpcId")))
        if vpc is None or not each.inputs.get("privateDnsEnabled"):
            continue
        support = vpc.inputs.get("enableDnsSupport", True)
        if not (support and vpc.inputs.get("enableDnsHostnames")):
            yield said("private-names-of-a-vpc", vpc.name, resource=each.name)


@limit(IAM_QUOTAS)
def inline_policies_of_a_role(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """10,240 characters of them all."""
    sizes: dict[str, int] = defaultdict(int)
    for each in of(everything, "iam/rolePolicy:RolePolicy"):
        role, size = str(each.inputs["role"]), without_whitespace(each.inputs["policy"])
        # One that is too large alone is refused by itself.
        if sizes[role] + size > INLINE_POLICY >= size:
            yield said("inline-policies", INLINE_POLICY, role, resource=each.name)
        sizes[role] += size


@limit(LAMBDA_QUOTAS)
def reserved_concurrency(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What is reserved leaves a hundred."""
    left = CONCURRENCY
    for each in of(everything, "lambda/function:Function"):
        reserved = int(each.inputs.get("reservedConcurrentExecutions") or 0)
        left -= max(reserved, 0)
        if left < UNRESERVED_LEAST and reserved > 0:
            yield said("unreserved-concurrency", UNRESERVED_LEAST, resource=each.name)


@limit("https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html")
def queues_that_feed_a_function(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A message is invisible for as long as the function may work on it; six times is better."""
    functions = _resources_by_name(everything, "lambda/function:Function")
    queues = _resources_by_name(everything, "sqs/queue:Queue")
    for each in of(everything, "lambda/eventSourceMapping:EventSourceMapping"):
        function = functions.get(str(each.inputs.get("functionName")).rpartition(":")[2])
        queue = queues.get(str(each.inputs.get("eventSourceArn")).rpartition(":")[2])
        if function is None or queue is None:
            continue
        visible = int(queue.inputs.get("visibilityTimeoutSeconds") or 30)
        timeout = int(function.inputs.get("timeout") or 3)
        if visible < timeout:
            yield said("visibility-below-timeout", visible, timeout, resource=each.name)


@limit(f"{_VPC}subnet-sizing.html")
def subnets_of_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Inside the VPC's block, and beside each other."""
    blocks = _inputs_by_id(everything, "ec2/vpc:Vpc", "cidrBlock")
    # One that stands bears its id for a name; without ids, a VPC that is alone has all subnets.
    alone = next(iter(blocks.values())) if len(blocks) == 1 else None
    by_vpc: dict[str, list[Any]] = defaultdict(list)
    for each in of(everything, "ec2/subnet:Subnet"):
        block, vpc = network(each.inputs.get("cidrBlock")), str(each.inputs.get("vpcId"))
        around = network(blocks.get(vpc, alone))
        if block is None:
            # EC2 draws it from a pool, or it is refused by itself.
            continue
        if around and not is_within(block, around):
            yield said("subnet-outside", block, resource=each.name)
        if any(block.overlaps(other) for other in by_vpc[vpc]):
            yield said("subnet-overlaps", block, resource=each.name)
        by_vpc[vpc].append(block)


@limit(f"{_EKS}network-reqs.html")
def services_beside_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The addresses of Kubernetes' Services are none of the VPC's."""
    vpcs = [network(each.inputs.get("cidrBlock")) for each in of(everything, "ec2/vpc:Vpc")]
    for each in of(everything, "eks/cluster:Cluster"):
        given = values(each.inputs, "kubernetesNetworkConfig.serviceIpv4Cidr")
        services = network(next(iter(given), None))
        if len(vpcs) == 1 and vpcs[0] and services and services.overlaps(vpcs[0]):
            yield said("services-overlap", services, vpcs[0], resource=each.name)


@limit(f"{_VPC}nat-gateway-troubleshooting.html")
def way_out_of_a_nat_gateway(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A public NAT gateway is made where its VPC has an internet gateway, and fails before."""
    known = {each.name for each in of(everything, "ec2/vpc:Vpc")}
    places = _inputs_by_id(everything, "ec2/subnet:Subnet", "vpcId")
    ways = _inputs_by_id(everything, "ec2/internetGateway:InternetGateway", "vpcId")
    for each in of(everything, "ec2/natGateway:NatGateway"):
        vpc = places.get(str(each.inputs.get("subnetId")))
        private = each.inputs.get("connectivityType") == "private"
        if not private and vpc in known and vpc not in ways.values():
            yield said("no-internet-gateway", vpc, resource=each.name)


@limit("https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html")
def groups_of_two_balancers(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A target group is of one load balancer."""
    owner: dict[str, str] = {}
    for each in of(everything, "lb/listener:Listener"):
        balancer = str(each.inputs.get("loadBalancerArn"))
        for arn in map(str, values(each.inputs, "defaultActions.*.targetGroupArn")):
            if owner.setdefault(arn, balancer) != balancer:
                yield said("group-of-two-balancers", arn, resource=each.name)


@limit("https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html")
def records_inside_their_zone(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A record bears its zone's name, or one below it."""
    zones = _inputs_by_id(everything, "route53/zone:Zone", "name")
    # One that stands bears its id for a name; without ids, a zone that is alone has all records.
    alone = next(iter(zones.values())) if len(zones) == 1 else None
    for each in of(everything, "route53/record:Record"):
        zone = _ALIKE["dns"](str(zones.get(str(each.inputs.get("zoneId")), alone) or ""))
        name = _ALIKE["dns"](str(each.inputs.get("name")))
        if zone and not f".{name}".endswith(f".{zone}"):
            yield said("record-outside", name, zone, resource=each.name)


# Kubernetes' version skew policy: how much older a kubelet may be than its API server.
OLDER = 3


def _minor(version: object) -> int:
    last = str(version or "").rpartition(".")[2]
    return int(last) if last.isdecimal() else 0


@limit(f"{_EKS}managing-kube-proxy.html")
def versions_of_kube_proxy(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """No newer than its cluster, and three minor versions older at most."""
    clusters = _resources_by_name(everything, "eks/cluster:Cluster")
    for each in of(everything, "eks/addon:Addon"):
        cluster = clusters.get(str(each.inputs.get("clusterName")))
        own = cluster and cluster.inputs.get("version")
        found = re.match(r"v(1\.\d+)\.", str(each.inputs.get("addonVersion") or ""))
        if each.inputs.get("addonName") != "kube-proxy" or not own or not found:
            continue
        if not 0 <= _minor(own) - _minor(found[1]) <= OLDER:
            yield said("kube-proxy-version", found[1], own, resource=each.name)


@limit(f"{_EKS}launch-templates.html")
def node_groups_and_their_templates(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The type and the image in one place, and an image that runs on the machine."""
    templates = of(everything, "ec2/launchTemplate:LaunchTemplate")
    named = {each.name: each for each in templates}
    named |= {str(each.inputs["name"]): each for each in templates if each.inputs.get("name")}
    for each in of(everything, "eks/nodeGroup:NodeGroup"):
        asked = each.inputs.get("launchTemplate") or {}
        template = named.get(str(asked.get("id") or asked.get("name")))
        wrong = _wrong_launch(each.inputs, template.inputs) if template else ""
        if wrong:
            yield said("node-group-template", wrong, resource=each.name)


def _wrong_launch(group: Mapping[str, Any], template: Mapping[str, Any]) -> str:
    image, machine = group.get("amiType"), str(template.get("instanceType") or "")
    if machine and group.get("instanceTypes"):
        return "Cannot specify instance types in launch template and API request"
    if machine and image and not runs(str(image), machine):
        return f"[{machine}] is not a valid instance type for requested amiType {image}"
    merged = template.get("imageId") or _may_be_merged(str(template.get("userData") or ""))
    return "" if merged else "User data was not in the MIME multipart format."


def _may_be_merged(user_data: str) -> bool:
    """Say whether EKS can lay its own user data beside a template's: its images take two forms.

    Bottlerocket's is TOML, all others' MIME parts or, of Amazon Linux 2023, a node's configuration.
    """
    try:
        read = base64.b64decode(user_data, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return True
    return not read.lstrip().startswith(("#!", "#cloud-config"))
