"""Limits that no resource exceeds alone: names that exist, counts on one parent, sums, pairs.

Each entry looks at all resources of an environment at once, in the order in which they were made,
and names the one that goes too far.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from local.refusals.documents import INLINE_POLICY, without_whitespace
from local.refusals.limits import IAM_QUOTAS, LAMBDA_QUOTAS
from local.refusals.refusal import Refusal, Wanted

Finder = Callable[[Sequence[Wanted]], Iterator[Refusal]]
# A new account's limit of functions that run at once, and what must stay unreserved of it.
CONCURRENCY_OF_A_NEW_ACCOUNT = 10
UNRESERVED_LEAST = 10


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit on several resources: where it stands written, and who looks for it."""

    name: str
    source: str
    find: Finder


LIMITS: list[Limit] = []


def limit(source: str) -> Callable[[Finder], Finder]:
    """Enter a limit under its function's name."""

    def enter(find: Finder) -> Finder:
        LIMITS.append(Limit(find.__name__.replace("_", "-"), source, find))
        return find

    return enter


def refusals(everything: Iterable[Wanted]) -> Iterator[Refusal]:
    """Yield what AWS refuses of resources that are each alone in order."""
    known = list(everything)
    for each in LIMITS:
        yield from each.find(known)


def _of(everything: Sequence[Wanted], *tokens: str) -> list[Wanted]:
    types = {f"aws:{token}" for token in tokens}
    return [each for each in everything if each.type in types]


def _about(wanted: Wanted, operation: str, code: str, message: str, at: str = "") -> Refusal:
    return replace(Refusal(operation, code, message, at), resource=wanted.name)


@dataclass(frozen=True, slots=True)
class Unique:
    """What there is once, by these inputs: in the account and region, or in what they name."""

    by: tuple[str, ...]
    operation: str
    code: str
    message: str


UNIQUE: Mapping[str, Unique] = {
    "autoscaling/group:Group": Unique(
        ("name",),
        "CreateAutoScalingGroup",
        "AlreadyExists",
        "AutoScalingGroup by this name already exists - A group with the name {0} already exists",
    ),
    "dynamodb/table:Table": Unique(
        ("name",), "CreateTable", "ResourceInUseException", "Table already exists: {0}"
    ),
    "ec2/launchTemplate:LaunchTemplate": Unique(
        ("name",),
        "CreateLaunchTemplate",
        "InvalidLaunchTemplateName.AlreadyExistsException",
        "Launch template name already in use.",
    ),
    "ec2/securityGroup:SecurityGroup": Unique(
        ("vpcId", "name"),
        "CreateSecurityGroup",
        "InvalidGroup.Duplicate",
        "The security group '{1}' already exists for VPC '{0}'",
    ),
    "eks/accessEntry:AccessEntry": Unique(
        ("clusterName", "principalArn"),
        "CreateAccessEntry",
        "ResourceInUseException",
        "The specified access entry resource is already in use on this cluster.",
    ),
    "eks/addon:Addon": Unique(
        ("clusterName", "addonName"),
        "CreateAddon",
        "ResourceInUseException",
        "Addon already exists.",
    ),
    "eks/cluster:Cluster": Unique(
        ("name",),
        "CreateCluster",
        "ResourceInUseException",
        "Cluster already exists with name: {0}",
    ),
    "eks/podIdentityAssociation:PodIdentityAssociation": Unique(
        ("clusterName", "namespace", "serviceAccount"),
        "CreatePodIdentityAssociation",
        "ResourceInUseException",
        "Association already exists",
    ),
    "ec2/route:Route": Unique(
        ("routeTableId", "destinationCidrBlock"),
        "CreateRoute",
        "RouteAlreadyExists",
        "The route identified by {1} already exists.",
    ),
    "lambda/eventSourceMapping:EventSourceMapping": Unique(
        ("eventSourceArn", "functionName"),
        "CreateEventSourceMapping",
        "ResourceConflictException",
        'An event source mapping with SQS arn (" {0} ") and function (" {1} ") already exists.',
    ),
    "route53/zone:Zone": Unique(
        ("name", "vpcs"),
        "CreateHostedZone",
        "ConflictingDomainExists",
        "The VPC is already associated with another private hosted zone of the name {0}",
    ),
    "iam/instanceProfile:InstanceProfile": Unique(
        ("name",),
        "CreateInstanceProfile",
        "EntityAlreadyExists",
        "Instance Profile {0} already exists.",
    ),
    "iam/policy:Policy": Unique(
        ("name",),
        "CreatePolicy",
        "EntityAlreadyExists",
        "A policy called {0} already exists. Duplicate names are not allowed.",
    ),
    "iam/role:Role": Unique(
        ("name",), "CreateRole", "EntityAlreadyExists", "Role with name {0} already exists."
    ),
    "kms/alias:Alias": Unique(
        ("name",),
        "CreateAlias",
        "AlreadyExistsException",
        "An alias with the name {0} already exists",
    ),
    "lambda/function:Function": Unique(
        ("name",), "CreateFunction", "ResourceConflictException", "Function already exist: {0}"
    ),
    "lb/listener:Listener": Unique(
        ("loadBalancerArn", "port"),
        "CreateListener",
        "DuplicateListener",
        "A listener already exists on this port for this load balancer '{0}'",
    ),
    "lb/loadBalancer:LoadBalancer": Unique(
        ("name",),
        "CreateLoadBalancer",
        "DuplicateLoadBalancerName",
        "A load balancer with the same name '{0}' exists, but with different settings",
    ),
    "lb/targetGroup:TargetGroup": Unique(
        ("name",),
        "CreateTargetGroup",
        "DuplicateTargetGroupName",
        "A target group with the same name '{0}' exists, but with different settings",
    ),
    "cloudwatch/logGroup:LogGroup": Unique(
        ("name",),
        "CreateLogGroup",
        "ResourceAlreadyExistsException",
        "The specified log group already exists",
    ),
    "s3/bucket:Bucket": Unique(
        ("bucket",),
        "CreateBucket",
        "BucketAlreadyOwnedByYou",
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "secretsmanager/secret:Secret": Unique(
        ("name",),
        "CreateSecret",
        "ResourceExistsException",
        "The operation failed because the secret {0} already exists.",
    ),
    "sqs/queue:Queue": Unique(
        ("name",), "CreateQueue", "QueueAlreadyExists", "A queue already exists with the same name"
    ),
}


@limit(
    "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html#reference_iam-quotas-names"
)
def names_that_exist(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What bears a name is there once."""
    for token, rule in UNIQUE.items():
        seen: set[tuple[str, ...]] = set()
        for each in _of(everything, token):
            key = tuple(str(each.inputs.get(name)) for name in rule.by)
            # IAM's names do not tell case apart.
            compared = tuple(part.lower() for part in key) if token.startswith("iam/") else key
            if compared in seen:
                yield _about(
                    each, rule.operation, rule.code, rule.message.format(*key), rule.by[-1]
                )
            seen.add(compared)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many of some types one parent takes, by the input that names it."""

    tokens: tuple[str, ...]
    parent: str
    most: int
    operation: str
    code: str
    message: str
    source: str


COUNTED: tuple[Counted, ...] = (
    Counted(
        ("vpc/securityGroupIngressRule:SecurityGroupIngressRule",),
        "securityGroupId",
        60,
        "AuthorizeSecurityGroupIngress",
        "RulesPerSecurityGroupLimitExceeded",
        "The maximum number of rules per security group has been reached.",
        "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
    ),
    Counted(
        ("vpc/securityGroupEgressRule:SecurityGroupEgressRule",),
        "securityGroupId",
        60,
        "AuthorizeSecurityGroupEgress",
        "RulesPerSecurityGroupLimitExceeded",
        "The maximum number of rules per security group has been reached.",
        "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html",
    ),
    Counted(
        ("iam/rolePolicyAttachment:RolePolicyAttachment",),
        "role",
        10,
        "AttachRolePolicy",
        "LimitExceeded",
        "Cannot exceed quota for PoliciesPerRole: 10",
        IAM_QUOTAS,
    ),
    Counted(
        ("lb/listener:Listener",),
        "loadBalancerArn",
        50,
        "CreateListener",
        "TooManyListeners",
        "The maximum number of listeners has been reached for this load balancer",
        "https://docs.aws.amazon.com/elasticloadbalancing/latest/network/load-balancer-limits.html",
    ),
    Counted(
        ("autoscaling/lifecycleHook:LifecycleHook",),
        "autoscalingGroupName",
        50,
        "PutLifecycleHook",
        "LimitExceeded",
        "You have exceeded the limit of 50 lifecycle hooks per Auto Scaling group",
        "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-quotas.html",
    ),
    Counted(
        ("cloudwatch/eventTarget:EventTarget",),
        "rule",
        5,
        "PutTargets",
        "LimitExceededException",
        "The requested resource exceeds the maximum number allowed.",
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
    ),
    Counted(
        ("cloudwatch/eventRule:EventRule",),
        "eventBusName",
        300,
        "PutRule",
        "LimitExceededException",
        "The requested resource exceeds the maximum number allowed.",
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
    ),
    Counted(
        ("eks/podIdentityAssociation:PodIdentityAssociation",),
        "clusterName",
        5000,
        "CreatePodIdentityAssociation",
        "ResourceLimitExceededException",
        "The number of Pod Identity associations per cluster has been reached",
        "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html",
    ),
)


@limit("the source of each line of COUNTED")
def counts_on_one_parent(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """So many rules, listeners, hooks, targets and policies, and no more."""
    for rule in COUNTED:
        counts: Counter[str] = Counter()
        for each in _of(everything, *rule.tokens):
            parent = str(each.inputs.get(rule.parent) or "default")
            counts[parent] += 1
            if counts[parent] == rule.most + 1:
                yield _about(each, rule.operation, rule.code, rule.message, rule.parent)


@limit(IAM_QUOTAS)
def inline_policies_of_a_role(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """10,240 characters of them all."""
    sizes: dict[str, int] = defaultdict(int)
    for each in _of(everything, "iam/rolePolicy:RolePolicy"):
        role, size = str(each.inputs["role"]), without_whitespace(each.inputs["policy"])
        # One that is too large alone is refused by itself.
        if sizes[role] + size > INLINE_POLICY >= size:
            message = f"Maximum policy size of {INLINE_POLICY} bytes exceeded for role {role}"
            yield _about(each, "PutRolePolicy", "LimitExceeded", message, "policy")
        sizes[role] += size


@limit(LAMBDA_QUOTAS)
def reserved_concurrency(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """What is reserved leaves ten, and a new account has ten."""
    left = CONCURRENCY_OF_A_NEW_ACCOUNT
    for each in _of(everything, "lambda/function:Function"):
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
            yield _about(each, "PutFunctionConcurrency", code, message, at)


@limit("https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html")
def queues_that_feed_a_function(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """A message is invisible for as long as the function may work on it; six times is better."""
    functions = {e.inputs.get("name"): e for e in _of(everything, "lambda/function:Function")}
    queues = {e.inputs.get("name"): e for e in _of(everything, "sqs/queue:Queue")}
    for each in _of(everything, "lambda/eventSourceMapping:EventSourceMapping"):
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
            yield _about(each, "CreateEventSourceMapping", code, message)


@limit("https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html")
def subnets_of_a_vpc(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """Inside the VPC's block, and beside each other."""
    vpcs = {e.name: str(e.inputs["cidrBlock"]) for e in _of(everything, "ec2/vpc:Vpc")}
    # One that stands bears its id for a name; without ids, a VPC that is alone has all subnets.
    alone = next(iter(vpcs.values())) if len(vpcs) == 1 else None
    by_vpc: dict[str, list[Any]] = defaultdict(list)
    for each in _of(everything, "ec2/subnet:Subnet"):
        block = ipaddress.IPv4Network(str(each.inputs["cidrBlock"]), strict=False)
        vpc = str(each.inputs.get("vpcId"))
        around = vpcs.get(vpc, alone)
        if around and not block.subnet_of(ipaddress.IPv4Network(around, strict=False)):
            message = f"The CIDR '{block}' is invalid."
            yield _about(each, "CreateSubnet", "InvalidSubnet.Range", message, "cidrBlock")
        if any(block.overlaps(other) for other in by_vpc[vpc]):
            message = f"The CIDR '{block}' conflicts with another subnet"
            yield _about(each, "CreateSubnet", "InvalidSubnet.Conflict", message, "cidrBlock")
        by_vpc[vpc].append(block)


@limit(
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AuthorizeSecurityGroupIngress.html"
)
def rules_that_exist(everything: Sequence[Wanted]) -> Iterator[Refusal]:
    """The same ports from the same source are one rule, whatever they are described as."""
    keys = ("securityGroupId", "ipProtocol", "fromPort", "toPort", "cidrIpv4")
    for direction in ("Ingress", "Egress"):
        token = f"vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule"
        seen = set()
        for each in _of(everything, token):
            key = tuple(str(each.inputs.get(name)) for name in (*keys, "referencedSecurityGroupId"))
            if key in seen:
                source = each.inputs.get("cidrIpv4") or each.inputs.get("referencedSecurityGroupId")
                message = f'the specified rule "peer: {source}, TCP, from port: {key[2]}, to port: '
                message += f'{key[3]}, ALLOW" already exists'
                operation = f"AuthorizeSecurityGroup{direction}"
                yield _about(each, operation, "InvalidPermission.Duplicate", message)
            seen.add(key)


def combined(*groups: Iterable[Wanted]) -> list[Wanted]:
    """Return several layers' resources as one environment's."""
    return list(itertools.chain.from_iterable(groups))
