"""Defines a Lambda once: what it is called, told, woken by, and may do.

Zip, environment, policies, RBAC, alarms and docs/reference/functions.md follow from it. What it may
do is said by names alone, so that it can be read and tested without making anything; its ACLs in
Kafka follow from its calls (core.settings.functions). In the cluster an EKS access entry maps the
function's AWS role to a group, and RBAC roles of one name say what that group may do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from core.cluster.operated import Operated
from core.ground import naming
from core.settings.functions import FunctionSettings
from infra import iam

API_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class PolicyRule:
    """These verbs on these resources of an API group; `names`: of these objects alone."""

    api_group: str
    resources: Sequence[str]
    verbs: Sequence[str]
    names: Sequence[str] = ()

    def render(self) -> k8s.rbac.v1.PolicyRuleArgs:
        return k8s.rbac.v1.PolicyRuleArgs(
            api_groups=[self.api_group],
            resources=list(self.resources),
            resource_names=list(self.names) or None,
            verbs=list(self.verbs),
        )


@dataclass(frozen=True, kw_only=True)
class WriteLimit:
    """What of one kind of object a group may change; everything else of it stays as it was.

    A right to patch a kind without one has its reason in tests/unit/infra/test_rights.py.

    RBAC lets who may patch a pod change its image, and who may patch a node take every taint away.
    """

    resource: str
    api_group: str = ""
    labels: Sequence[str] = ()
    annotations: Sequence[str] = ()
    # CEL over `object` and `oldObject`, each with the sentence of its refusal.
    spec: Sequence[tuple[str, str]] = ()

    def render(self, group: str, role: str) -> dict[str, Any]:
        """Return the policy's spec; `role` is the group's name without colons."""
        kept = [(_unchanged(each), f"{role} changes no {each}.") for each in _KEPT]
        marked = [
            (_only(kind, keys), f"{role} changes {kind} of its own alone.")
            for kind, keys in (("labels", self.labels), ("annotations", self.annotations))
        ]
        return {
            # What cannot be judged is not written.
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [self.api_group],
                        "apiVersions": ["*"],
                        "operations": ["UPDATE"],
                        "resources": [self.resource],
                    }
                ]
            },
            "matchConditions": [
                {"name": "its-group", "expression": f"{_text(group)} in request.userInfo.groups"}
            ],
            "validations": [
                {"expression": expression, "message": message}
                for expression, message in (*kept, *marked, *self.spec)
            ],
        }


_KEPT = ("finalizers", "ownerReferences")


def only_in_spec(field_name: str, writer: str) -> tuple[str, str]:
    """Return the condition that one field of an object's spec changes and no other does."""
    ours = f"k == {_text(field_name)} || "
    kept = f"object.spec.all(k, {ours}(k in oldObject.spec && object.spec[k] == oldObject.spec[k]))"
    there = f"oldObject.spec.all(k, {ours}k in object.spec)"
    return f"{kept} && {there}", f"{writer} writes {field_name} alone."


def _text(value: Any) -> str:
    return json.dumps(value)  # JSON's text is CEL's, too


def _unchanged(field_name: str) -> str:
    before, after = f"oldObject.metadata.{field_name}", f"object.metadata.{field_name}"
    return f"has({before}) == has({after}) && (!has({after}) || {before} == {after})"


def _only(kind: str, keys: Sequence[str]) -> str:
    before, after = (
        f"(has({each}.metadata.{kind}) ? {each}.metadata.{kind} : {{}})"
        for each in ("oldObject", "object")
    )
    ours = f"k in {_text(list(keys))} || " if keys else ""
    return (
        f"{after}.all(k, {ours}(k in {before} && {before}[k] == {after}[k])) && "
        f"{before}.all(k, {ours}k in {after})"
    )


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What a function may do in the cluster, as a member of a group that is its own."""

    group: str
    # What has no namespace, or is meant in all of them.
    everywhere: Sequence[PolicyRule] = ()
    # In Kafka's namespace.
    inside: Sequence[PolicyRule] = ()
    # In other namespaces, by a short name of each.
    elsewhere: Mapping[str, tuple[str, Sequence[PolicyRule]]] = field(default_factory=dict)
    # What it may change of objects that RBAC knows as a whole only.
    limits: Sequence[WriteLimit] = ()


@dataclass(frozen=True, kw_only=True)
class RbacGroup:
    """A group of functions; `role` names its RBAC roles, `parent` owns what is made for it."""

    name: str
    role: str
    parent: pulumi.Resource

    def enter(self, name: str, eks_cluster: str, role: aws.iam.Role) -> None:
        """Let an AWS role into the cluster as a member of the group."""
        aws.eks.AccessEntry(
            name,
            cluster_name=eks_cluster,
            principal_arn=role.arn,
            type="STANDARD",
            kubernetes_groups=[self.name],
            opts=iam.entry_options(role, self.parent),
        )

    def everywhere(self, name: str, rules: Sequence[PolicyRule]) -> None:
        """Allow the group what has no namespace, or is meant in all of them."""
        role = k8s.rbac.v1.ClusterRole(
            name,
            metadata=ObjectMetaArgs(name=self.role),
            rules=[rule.render() for rule in rules],
            opts=pulumi.ResourceOptions(parent=self.parent),
        )
        k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-binding",
            metadata=ObjectMetaArgs(name=self.role),
            role_ref=self._reference("ClusterRole"),
            subjects=self._subjects(),
            opts=pulumi.ResourceOptions(parent=self.parent, depends_on=[role]),
        )

    def limit(self, name: str, limit: WriteLimit) -> None:
        """Refuse the group every change but its own; the limit stands before the right does."""
        metadata: Any = {"name": f"{self.role}-{limit.resource}"}
        spec: Any = limit.render(self.name, self.role)
        policy = k8s.admissionregistration.v1.ValidatingAdmissionPolicy(
            name, metadata=metadata, spec=spec, opts=pulumi.ResourceOptions(parent=self.parent)
        )
        bound: Any = {"policyName": metadata["name"], "validationActions": ["Deny"]}
        k8s.admissionregistration.v1.ValidatingAdmissionPolicyBinding(
            f"{name}-binding",
            metadata=metadata,
            spec=bound,
            opts=pulumi.ResourceOptions(parent=self.parent, depends_on=[policy]),
        )

    def inside(self, name: str, namespace: str, rules: Sequence[PolicyRule]) -> None:
        """Allow the group something in one namespace."""
        metadata = ObjectMetaArgs(name=self.role, namespace=namespace)
        role = k8s.rbac.v1.Role(
            name,
            metadata=metadata,
            rules=[rule.render() for rule in rules],
            opts=pulumi.ResourceOptions(parent=self.parent),
        )
        k8s.rbac.v1.RoleBinding(
            f"{name}-binding",
            metadata=metadata,
            role_ref=self._reference("Role"),
            subjects=self._subjects(),
            opts=pulumi.ResourceOptions(parent=self.parent, depends_on=[role]),
        )

    def _reference(self, kind: str) -> k8s.rbac.v1.RoleRefArgs:
        return k8s.rbac.v1.RoleRefArgs(api_group=API_GROUP, kind=kind, name=self.role)

    def _subjects(self) -> list[k8s.rbac.v1.SubjectArgs]:
        return [k8s.rbac.v1.SubjectArgs(api_group=API_GROUP, kind="Group", name=self.name)]


def may(
    api_group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> PolicyRule:
    return PolicyRule(api_group=api_group, resources=resources, verbs=verbs, names=names)


def may_read_machines(cluster: Operated) -> list[PolicyRule]:
    """Allow to see nodes, the drivers on them, and what Karpenter does to them."""
    return [
        may("", ["nodes"], ["list"]),
        may("storage.k8s.io", ["csinodes"], ["list"]),
        *may_read_node_claims(cluster),
    ]


def may_read_node_claims(cluster: Operated) -> list[PolicyRule]:
    """Allow to see what Karpenter does to its nodes, where it launches any."""
    return [may("karpenter.sh", ["nodeclaims"], ["list"])] if cluster.node_claims else []


def may_read_operator(cluster: Operated) -> list[PolicyRule]:
    """Allow to see what Strimzi's operator does with a Kafka's pods."""
    return [
        may_read_kafka(cluster),
        may("kafka.strimzi.io", ["kafkanodepools", "kafkarebalances"], ["list"]),
        may("core.strimzi.io", ["strimzipodsets"], ["list"]),
    ]


def may_end_node_claims(cluster: Operated) -> list[PolicyRule]:
    """Allow a rotation to delete NodeClaims: RBAC knows them by name alone, and names are new."""
    return [may("karpenter.sh", ["nodeclaims"], ["delete"])] if cluster.ends_claims else []


def may_get(resource: str, names: Sequence[str]) -> list[PolicyRule]:
    """Allow to read objects by their names; without a name there is no rule, not one for all.

    A right to list Secrets would be a right to read every user's key.
    """
    if not names:
        return []
    return [may("", [resource], ["get"], names)]


def may_read_metrics(cluster: Operated) -> list[PolicyRule]:
    # By name and port: a right to reach every port of every pod would be one to read Connect's
    # connectors, whose configuration may hold credentials.
    return may_get("pods/proxy", cluster.exporters)


def may_read_kafka(cluster: Operated) -> PolicyRule:
    """Allow to read what Strimzi's operator says of the Kafka, in its status."""
    return may("kafka.strimzi.io", ["kafkas"], ["get"], [cluster.name])


# In the ledger's table, beside incidents and volumes: what is too long for an environment.
SETTINGS_KEYS = "settings#*"


@dataclass(frozen=True, kw_only=True)
class Reads:
    """A queue that wakes a function: how many messages at a time, and how many times at once."""

    queue: str
    batch: int
    at_once: int


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Whose function it is: what a right's resources are named after."""

    cluster: Operated
    account: iam.Account

    def queue(self, role: str) -> str:
        return self.account.arn("sqs", naming.queue(self.cluster.prefix, role))

    @property
    def handler_queue(self) -> str:
        """The termination handler's queue: ours, or by the URL that was named."""
        url = self.cluster.handler_queue_url
        if url is None:
            return self.queue("nth")
        host, account_id, name = url.removeprefix("https://").split("/")
        return f"arn:{self.account.partition}:sqs:{host.split('.')[1]}:{account_id}:{name}"

    @property
    def table(self) -> str:
        return self.account.arn("dynamodb", f"table/{naming.ledger_table(self.cluster.prefix)}")

    def secret(self, name: str) -> str:
        # Secrets Manager ends every secret's ARN with six characters of its own.
        return self.account.arn("secretsmanager", f"secret:{name}-??????")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One Lambda: `handlers.<name>.handler`, known to AWS as `<prefix>-<name>`."""

    name: str
    description: str
    settings: type[FunctionSettings]
    may: Callable[[Scope], Sequence[iam.Statement]]
    # The fields of its settings that a description says to it alone (infra.functions.function).
    own_settings: Callable[[Operated], Mapping[str, Any]] = lambda _: {}
    # In the cluster; a function that has no rights there stands outside the VPC.
    kubernetes: Callable[[Operated], Rights] | None = None
    # Woken at fixed times: EventBridge's expression, and what the function then does.
    schedule: tuple[str, str] | None = None
    reads: Reads | None = None
    # None: the description's own limit.
    timeout_seconds: int | None = None
    # How many may run at once; None: as many as the account allows.
    reserved_concurrency: Callable[[Operated], int | None] = lambda _: None

    def timeout(self, cluster: Operated) -> int:
        return self.timeout_seconds or cluster.timings.lambda_timeout_seconds


def read_queue(scope: Scope, role: str) -> iam.Statement:
    actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    return iam.Statement(sid="ReadItsQueue", actions=actions, resources=[scope.queue(role)])


def send(scope: Scope, sid: str, role: str) -> iam.Statement:
    return iam.Statement(sid=sid, actions=["sqs:SendMessage"], resources=[scope.queue(role)])


def write_incidents(scope: Scope) -> list[iam.Statement]:
    """Return the rights of a function that writes incidents, and has others go on with them."""
    told = [] if scope.cluster.slack is None else [send(scope, "AskForAStory", "stories")]
    return [
        send(scope, "AskForATick", "ticks"),
        *told,
        *keep_the_ledger(scope),
        find_open(scope),
    ]


def keep_the_ledger(scope: Scope) -> list[iam.Statement]:
    """Return the right to the ledger's items; what functions are told, only stacks write."""
    none = {"ForAllValues:StringNotLike": {"dynamodb:LeadingKeys": [SETTINGS_KEYS]}}
    return [
        iam.Statement(sid="ReadTheLedger", actions=["dynamodb:GetItem"], resources=[scope.table]),
        iam.Statement(
            sid="KeepTheLedger",
            actions=["dynamodb:PutItem"],
            resources=[scope.table],
            conditions=none,
        ),
    ]


def find_open(scope: Scope) -> iam.Statement:
    open_index = f"{scope.table}/index/open"
    return iam.Statement(
        sid="FindOpenIncidents", actions=["dynamodb:Query"], resources=[open_index]
    )


def item_right(scope: Scope, sid: str, calls: Sequence[str], *keys: str) -> iam.Statement:
    """Return the right to items of the ledger, by patterns of their partition key."""
    return iam.Statement(
        sid=sid,
        actions=[f"dynamodb:{call}" for call in calls],
        resources=[scope.table],
        conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}},
    )


def read_settings(scope: Scope) -> iam.Statement:
    return item_right(scope, "ReadItsSettings", ["GetItem"], SETTINGS_KEYS)


def know(secret: pulumi.Input[str], sid: str = "KnowItsToken") -> iam.Statement:
    actions = ["secretsmanager:GetSecretValue"]
    return iam.Statement(sid=sid, actions=actions, resources=[secret])
