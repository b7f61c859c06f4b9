"""Reads the engine's events into Changes, one per resource: what a run would do, or has done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pulumi.automation import OpType

from core.fields import part

# What the engine's own bookkeeping is made of; nobody would call it a resource.
_BOOKKEEPING = re.compile(r"^pulumi:(pulumi:Stack|providers:)|^stillwater:")
_COMPONENT = "stillwater:infra:"
# The engine's word for a value that is a secret.
HIDDEN = "[secret]"
UNKNOWN = "not known yet"
# The engine's own placeholder for what a provider says only once it has made the resource.
_UNKNOWN_SENTINEL = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Kinds whose every value is somebody's secret, whatever the program marked.
_SECRET_TYPES = ("kubernetes:core/v1:Secret", "aws:secretsmanager/secretVersion:")


class Operation(StrEnum):
    """What happens to a resource, the strongest last."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"


_OPERATIONS: Mapping[OpType, Operation] = {
    OpType.CREATE: Operation.CREATE,
    OpType.IMPORT: Operation.CREATE,
    OpType.UPDATE: Operation.UPDATE,
    OpType.DELETE: Operation.DELETE,
    OpType.REPLACE: Operation.REPLACE,
    OpType.CREATE_REPLACEMENT: Operation.REPLACE,
    OpType.DELETE_REPLACED: Operation.REPLACE,
    OpType.IMPORT_REPLACEMENT: Operation.REPLACE,
}
_STRENGTH = tuple(Operation)


@dataclass(frozen=True, slots=True)
class Difference:
    """One property that differs: its path, and both values as words."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """What happens to one resource."""

    urn: str
    operation: Operation
    protected: bool = False
    because: tuple[str, ...] = ()  # properties that force a replacement
    differences: tuple[Difference, ...] = ()
    named: str | None = None  # its own name in AWS or Kubernetes

    @property
    def kind(self) -> str:
        """Return what it is, in words: `Auto Scaling group`, `KafkaNodePool`."""
        return kind_of(self.urn.split("::")[2].rpartition("$")[2])

    @property
    def name(self) -> str:
        return self.named or self.urn.rpartition("::")[2]

    @property
    def part(self) -> str:
        """Return the part of the system it belongs to: the outermost component, in words."""
        components = self.urn.split("::")[2].split("$")
        outermost = next((c for c in components if c.startswith(_COMPONENT)), "")
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", outermost.removeprefix(_COMPONENT))
        return " ".join([*words[:1], *(w.lower() for w in words[1:])]) or "Other"


# What AWS calls a thing where the class's own words say less.
_KINDS = {
    "aws:autoscaling/group:Group": "Auto Scaling group",
    "aws:autoscaling/lifecycleHook:LifecycleHook": "lifecycle hook",
    "aws:cloudwatch/eventRule:EventRule": "EventBridge rule",
    "aws:cloudwatch/eventTarget:EventTarget": "EventBridge target",
    "aws:cloudwatch/metricAlarm:MetricAlarm": "alarm",
    "aws:dynamodb/table:Table": "DynamoDB table",
    "aws:ec2/vpc:Vpc": "VPC",
    "aws:ec2/eip:Eip": "elastic IP",
    "aws:ec2/natGateway:NatGateway": "NAT gateway",
    "aws:eks/addon:Addon": "EKS add-on",
    "aws:eks/cluster:Cluster": "EKS cluster",
    "aws:kms/key:Key": "KMS key",
    "aws:lambda/function:Function": "Lambda function",
    "aws:lb/loadBalancer:LoadBalancer": "load balancer",
    "aws:s3/bucket:Bucket": "S3 bucket",
    "aws:sns/topic:Topic": "SNS topic",
    "aws:sqs/queue:Queue": "SQS queue",
    "kubernetes:helm.sh/v3:Release": "Helm release",
}
# What stands before the class's words; EC2's own are known without it.
_SERVICES = {
    "autoscaling": "Auto Scaling",
    "bcmdata": "billing",
    "cloudwatch": "CloudWatch",
    "dlm": "Data Lifecycle Manager",
    "dynamodb": "DynamoDB",
    "ec2": "",
    "eks": "EKS",
    "emrserverless": "EMR Serverless",
    "glue": "Glue",
    "iam": "IAM",
    "kms": "KMS",
    "lambda": "Lambda",
    "lb": "load balancer",
    "route53": "Route 53",
    "s3": "S3",
    "scheduler": "EventBridge Scheduler",
    "secretsmanager": "Secrets Manager",
    "sns": "SNS",
    "sqs": "SQS",
}
_ACRONYMS = {"acl": "ACL", "ip": "IP", "nat": "NAT", "vpc": "VPC"}


def kind_of(resource_type: str) -> str:
    """Say in words what a type is; a Kubernetes kind is its own word."""
    if resource_type in _KINDS:
        return _KINDS[resource_type]
    package, _, rest = resource_type.partition(":")
    own = rest.rpartition(":")[2]
    if package == "kubernetes":
        return own
    service = rest.partition("/")[0]
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", own)]
    said = " ".join(_ACRONYMS.get(word, word) for word in words)
    before = "" if service in words else _SERVICES.get(service, service)
    return f"{before} {said}".strip()


class Changes:
    """Collects what a run's events say; a resource that is replaced has several."""

    def __init__(self) -> None:
        self._found: dict[str, ResourceChange] = {}

    def add(self, metadata: Any) -> None:
        """Take in one step of the engine; those that change nothing are passed over."""
        operation = _OPERATIONS.get(metadata.op)
        if operation is None or _BOOKKEEPING.match(metadata.type):
            return
        change = _change(metadata, operation)
        known = self._found.get(metadata.urn)
        if known is not None:
            change = _stronger_change(known, change)
        self._found[metadata.urn] = change

    def all(self) -> tuple[ResourceChange, ...]:
        return tuple(self._found.values())


def _change(metadata: Any, operation: Operation) -> ResourceChange:
    old, new = getattr(metadata, "old", None), getattr(metadata, "new", None)
    return ResourceChange(
        urn=metadata.urn,
        operation=operation,
        protected=bool(getattr(old or new, "protect", False)),
        because=tuple(getattr(metadata, "keys", None) or ()),
        differences=tuple(_differences(metadata, old, new)),
        named=_live_name(new) or _live_name(old),
    )


def _stronger_change(known: ResourceChange, change: ResourceChange) -> ResourceChange:
    strongest = max(known.operation, change.operation, key=_STRENGTH.index)
    return ResourceChange(
        urn=known.urn,
        operation=strongest,
        protected=known.protected or change.protected,
        because=known.because or change.because,
        differences=known.differences or change.differences,
        named=known.named or change.named,
    )


def _live_name(state: Any) -> str | None:
    """Return the name that the resource bears in AWS or Kubernetes, if the program gives it one."""
    inputs = getattr(state, "inputs", None) or {}
    metadata, tags = part(inputs.get("metadata")), part(inputs.get("tags"))
    for value in (metadata.get("name"), inputs.get("name"), tags.get("Name")):
        if isinstance(value, str) and value and value not in {HIDDEN, _UNKNOWN_SENTINEL}:
            return value
    return None


def _differences(metadata: Any, old: Any, new: Any) -> Iterator[Difference]:
    """Yield what differs by path; values of secrets stay hidden."""
    secret = metadata.type.startswith(_SECRET_TYPES)
    before = getattr(old, "inputs", None) or {}
    after = getattr(new, "inputs", None) or {}
    detailed = getattr(metadata, "detailed_diff", None) or {}
    for path in sorted(detailed or getattr(metadata, "diffs", None) or ()):
        if secret:
            yield Difference(path, HIDDEN, HIDDEN)
        else:
            yield Difference(path, _words(_at(before, path)), _words(_at(after, path)))


_MISSING = object()


def _at(tree: Any, path: str) -> Any:
    """Return the value at a property path such as `tags.Name`, `ports[0].port`, `data["a.b"]`."""
    for match in re.finditer(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)', path):
        quoted, index, plain = match.groups()
        if index is not None:
            inside = isinstance(tree, list) and int(index) < len(tree)
            tree = tree[int(index)] if inside else _MISSING
        else:
            key = plain if quoted is None else quoted.replace('\\"', '"')
            tree = tree.get(key, _MISSING) if isinstance(tree, Mapping) else _MISSING
    return tree


def _words(value: Any) -> str:
    if value is _MISSING or value is None:
        return "nothing"
    if value == _UNKNOWN_SENTINEL:
        return UNKNOWN
    text = str(value).replace("\n", " ")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# Of a value; policies and user data are longer than a screen.
_LONGEST = 160
