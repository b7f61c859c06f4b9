"""λ tick: one turn of the loop; the function that acts on nodes.

Through the API server it reads the metrics of Kafka's own pods, each by name and port (ADR 0012).
It places the out-of-service taint on a node whose instance EC2 says has ended, deletes the
attachments such an instance left behind when its Node went first, and keeps a waiting replacement
from Cluster Autoscaler: RBAC knows no single taint or annotation, so it may patch nodes. Nodes are
drained by the node termination handler alone; only where a cluster that exists has none, it cordons
them and evicts their pods itself. Who may leave beside others it writes into a label of their pods
(ADR 0023).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core import naming
from core.cluster.operated import Operated
from core.incidents.levels import OWN
from core.naming import INCIDENT_TAG, budget_of_the_staying
from core.settings.functions import TickSettings
from infra import iam
from infra.functions import prometheus, rbac
from infra.functions.definition import Definition, Reads, Scope, look, read_queue, write_incidents

GROUP_TAG = "ec2:ResourceTag/aws:autoscaling:groupName"
ACTION = "CreateReplaceRootVolumeTask"


def _may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        *write_incidents(scope),
        look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeVolumes",
            *(["ec2:DescribeReplaceRootVolumeTasks"] if _holds(scope) else []),
        ),
        read_queue(scope, "ticks"),
        *(_act(scope) if scope.cluster.acts else ()),
        *(prometheus.workspace(scope) if scope.cluster.probe_budget else []),
        *_call(scope),
    ]


def _act(scope: Scope) -> Sequence[iam.Statement]:
    """Return the rights of whoever acts on nodes; below that level there are none."""
    if scope.cluster.drains:
        return _hold(scope)
    forward = iam.Statement(
        sid="ForwardToTheTerminationHandler",
        actions=["sqs:SendMessage"],
        resources=[scope.handler_queue],
    )
    return [forward, *_hold(scope)]


def _holds(scope: Scope) -> bool:
    return scope.cluster.acts and bool(scope.cluster.scaling_groups)


def _hold(scope: Scope) -> Sequence[iam.Statement]:
    """Hold and let go the nodes of groups; without groups there is nothing to name."""
    names = scope.cluster.scaling_groups
    if not names:
        return []
    if scope.cluster.level == OWN:
        names = tuple(dict.fromkeys(map(naming.in_every_zone, names)))
    return [
        iam.Statement(
            sid="HoldAndReleaseNodes",
            actions=[
                "autoscaling:CompleteLifecycleAction",
                "autoscaling:RecordLifecycleActionHeartbeat",
                "autoscaling:SetDesiredCapacity",
                "autoscaling:SetInstanceProtection",
                "autoscaling:TerminateInstanceInAutoScalingGroup",
            ],
            resources=[scope.account.group_arn(name) for name in names],
        ),
        *replace_roots(scope, names),
    ]


def _call(scope: Scope) -> Sequence[iam.Statement]:
    """Call a person, also through a topic whose key is a customer's own."""
    cluster, account = scope.cluster, scope.account
    if not cluster.alerts.enabled:
        return []
    topic = cluster.alerts.sns_topic_arn or account.arn("sns", f"{cluster.prefix}-alerts")
    through_sns = {"kms:ViaService": f"sns.{account.region}.amazonaws.com"}
    return [
        iam.Statement(sid="CallAPerson", actions=["sns:Publish"], resources=[topic]),
        iam.Statement(
            sid="EncryptTheCall",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[account.arn("kms", "key/*")],
            conditions={"StringEquals": through_sns},
        ),
    ]


def _recount(cluster: Operated) -> rbac.PolicyRule:
    """Allow to have the budget over those who stay counted anew, by an annotation on it."""
    return rbac.PolicyRule(
        api_group="policy",
        resources=["poddisruptionbudgets"],
        names=[budget_of_the_staying(cluster.name)],
        verbs=["patch"],
    )


def _rights(cluster: Operated) -> rbac.Rights:
    asking, elsewhere = prometheus.service(cluster) if cluster.probe_budget else ([], {})
    return rbac.Rights(
        group="stillwater:handlers",
        everywhere=[
            rbac.may("", ["nodes"], ["get", "list", *(["patch"] if cluster.acts else [])]),
            rbac.may("storage.k8s.io", ["csinodes", "volumeattachments"], ["list"]),
            *rbac.may_read_node_claims(cluster),
            *rbac.may_end_node_claims(cluster),
            *(
                [rbac.may("storage.k8s.io", ["volumeattachments"], ["delete"])]
                if cluster.acts
                else []
            ),
            # Whatever is on a node, of any namespace, takes room from Kafka's next pod there, and
            # leaves before Kafka's pod where we drain.
            rbac.may("", ["pods"], ["list"]),
            *([rbac.may("", ["pods/eviction"], ["create"])] if cluster.drains else []),
        ],
        inside=[
            # A label on a pod lets it leave beside others; budgets that know it are our stacks'.
            *([rbac.may("", ["pods"], ["get", "patch"])] if cluster.level == OWN else []),
            # Why a pod that was placed does not get its volumes.
            rbac.may("", ["persistentvolumeclaims"], ["list"]),
            *rbac.may_read_operator(cluster),
            rbac.may("policy", ["poddisruptionbudgets"], ["list"]),
            *([_recount(cluster)] if cluster.level == OWN else []),
            *rbac.may_get("secrets", cluster.secrets["tick"]),
            *rbac.may_read_metrics(cluster),
            *asking,
        ],
        elsewhere=elsewhere,
        # In a cluster of ours, whose API server is known to have such policies.
        limits=tick_limits() if cluster.level == OWN else (),
    )


def tick_limits() -> list[rbac.WriteLimit]:
    before, after = (
        f"(has({each}.spec.taints) ? {each}.spec.taints : [])" for each in ("oldObject", "object")
    )
    ours = f't.key == "{naming.OUT_OF_SERVICE_TAINT}"'
    others = f"{after}.all(t, {ours} || t in {before}) && {before}.all(t, {ours} || t in {after})"
    cordon = "has(object.spec.unschedulable) == has(oldObject.spec.unschedulable)"
    return [
        rbac.WriteLimit(
            resource="nodes",
            annotations=naming.SPARE_ANNOTATIONS,
            spec=[
                (others, f"It places and takes away {naming.OUT_OF_SERVICE_TAINT} alone."),
                (cordon, "The node termination handler cordons."),
            ],
        ),
        rbac.WriteLimit(
            resource="pods",
            labels=[naming.MAY_LEAVE_LABEL],
            spec=[("object.spec == oldObject.spec", "It marks pods, and changes none.")],
        ),
        rbac.WriteLimit(
            resource="poddisruptionbudgets",
            api_group="policy",
            annotations=[naming.COUNTED_ANNOTATION],
            spec=[("object.spec == oldObject.spec", "It has budgets counted, and changes none.")],
        ),
    ]


def _own_settings(cluster: Operated) -> Mapping[str, Any]:
    return {
        "nth_queue_url": cluster.handler_queue_url if cluster.acts else None,
        "probe_budget": cluster.probe_budget,
    }


TICK = Definition(
    name="tick",
    description="Observe an incident, decide, act, tick again",
    settings=TickSettings,
    may=_may,
    own_settings=_own_settings,
    kubernetes=_rights,
    # One incident per invocation: a slow one delays no other. The ledger's lease keeps two ticks
    # from acting on one incident.
    reads=Reads(queue="ticks", batch=1, at_once=5),
)


def replace_roots(scope: Scope, groups: Sequence[str]) -> Sequence[iam.Statement]:
    """Return the rights to replace the root volumes of these groups' instances.

    AWS writes the tag that names an instance's group, and lets nobody else write it. The image, its
    snapshot and the volumes are whatever EC2 makes of the request, so that no name can be given.
    """
    account = scope.account
    public = f"arn:{account.partition}:ec2:{account.region}::"
    task = account.arn("ec2", "replace-root-volume-task/*")
    return [
        iam.Statement(
            sid="ReplaceRootVolumesOfNodes",
            actions=[f"ec2:{ACTION}"],
            resources=[account.arn("ec2", "instance/*")],
            conditions={"StringLike": {GROUP_TAG: list(groups)}},
        ),
        iam.Statement(
            sid="MakeThemOfImages",
            actions=[f"ec2:{ACTION}"],
            resources=[
                task,
                account.arn("ec2", "volume/*"),
                f"{public}image/*",
                f"{public}snapshot/*",
            ],
        ),
        iam.Statement(
            sid="NameTheIncident",
            actions=["ec2:CreateTags"],
            resources=[task],
            conditions={
                "StringEquals": {"ec2:CreateAction": ACTION},
                "ForAllValues:StringEquals": {"aws:TagKeys": [INCIDENT_TAG]},
            },
        ),
    ]
