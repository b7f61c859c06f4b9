"""Lists every Lambda there is: what wakes it, what it is told, and what it may do.

RBAC names every pod that a function asks with its port, and Prometheus by the one Service or
workspace of the description (ADR 0012). Nodes are drained by the node termination handler alone;
only where a cluster that exists has none, λ tick cordons them and evicts their pods itself. λ
volumes patches no claim and no volume: Strimzi writes the one, the EBS driver the other, and
whoever wrote beside them would be undone, or would undo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.cluster.operated import Operated
from core.ground import naming
from core.ground.constants import CONNECT_REST_PORT, SCHEDULES
from core.ground.naming import INCIDENT_TAG, budget_of_the_staying
from core.incidents.actions import OWN
from core.settings.functions import (
    HealthSettings,
    InterruptionSettings,
    RotateSettings,
    SlackSettings,
    SweepSettings,
    TickSettings,
)
from core.settings.prometheus import PrometheusService, PrometheusWorkspace
from core.settings.volumes import SamplesSettings, VolumesSettings
from infra import buckets, iam
from infra.functions import definition, function
from infra.functions.definition import (
    Definition,
    Reads,
    Scope,
    find_open,
    item_right,
    keep_the_ledger,
    know,
    read_queue,
    read_settings,
    send,
    write_incidents,
)
from infra.functions.webhook import WEBHOOK


def workspace(scope: Scope) -> list[iam.Statement]:
    """Return the right to ask a workspace; a Service is asked under RBAC."""
    address, of = scope.cluster.prometheus, scope.account
    if not isinstance(address, PrometheusWorkspace):
        return []
    place = f"{address.region}:{of.account_id}"
    arn = f"arn:{of.partition}:aps:{place}:workspace/{address.id}"
    return [iam.Statement(sid="AskPrometheus", actions=["aps:QueryMetrics"], resources=[arn])]


def service(
    cluster: Operated,
) -> tuple[
    Sequence[definition.PolicyRule], Mapping[str, tuple[str, Sequence[definition.PolicyRule]]]
]:
    """Return the rights in Kafka's namespace, and elsewhere, that asking a Service takes.

    They are the proxy of one port of one Service, by GET: Prometheus is changed by POST and PUT.
    """
    asked = cluster.prometheus
    if not isinstance(asked, PrometheusService):
        return [], {}
    proxy = definition.may_get("services/proxy", [asked.resource_name])
    if asked.namespace == cluster.namespace:
        return proxy, {}
    return [], {"prometheus": (asked.namespace, proxy)}


def _health_may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        # What AWS said about zones; incidents come from the index.
        item_right(scope, "ReadFreezes", ["GetItem"], f"freezes#{scope.cluster.name}"),
        read_settings(scope),
        find_open(scope),
    ]


def _health_rights(cluster: Operated) -> definition.Rights:
    # A worker's REST port would also take orders: GET is all that is asked, and allowed.
    rest = [f"{pod}:{CONNECT_REST_PORT}" for pod in cluster.connect_workers]
    return definition.Rights(
        group="stillwater:health",
        inside=[
            definition.may("", ["pods"], ["list"]),
            definition.may_read_kafka(cluster),
            definition.may("kafka.strimzi.io", ["kafkarebalances"], ["list"]),
            # Which nodes there are to be, where no description names them.
            *(
                []
                if cluster.nodes
                else [definition.may("core.strimzi.io", ["strimzipodsets"], ["list"])]
            ),
            *definition.may_get("pods/proxy", [*cluster.exporters, *rest]),
            *definition.may_get("secrets", cluster.secrets["health"]),
        ],
    )


def _health_own_settings(cluster: Operated) -> Mapping[str, Any]:
    return {
        "nodes": cluster.nodes,
        "exporters": bool(cluster.exporters),
        "connect_workers": len(cluster.connect_workers),
        "connect_startup_seconds": cluster.connect_startup_seconds,
        "connect_probe_seconds": cluster.timings.connect_probe_timeout_seconds,
    }


HEALTH = Definition(
    name="health",
    description="How the whole cluster does: 200, 503 or 500, and why",
    settings=HealthSettings,
    may=_health_may,
    own_settings=_health_own_settings,
    kubernetes=_health_rights,
    schedule=(SCHEDULES["health"], "asks how the cluster does"),
)


def _interruption_may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        read_queue(scope, "events"),
        *write_incidents(scope),
        iam.look("ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeAvailabilityZones"),
    ]


INTERRUPTION = Definition(
    name="interruption",
    description="What AWS announced becomes an incident",
    settings=InterruptionSettings,
    may=_interruption_may,
    own_settings=lambda cluster: {"eks_cluster": cluster.eks_cluster},
    reads=Reads(queue="events", batch=10, at_once=5),
)


def _rotate_may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        send(scope, "AskForATurn", "ticks"),
        *keep_the_ledger(scope),
        find_open(scope),
        iam.look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeImages",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplateVersions",
        ),
        *(workspace(scope) if scope.cluster.probe_budget else []),
    ]


def _rotate_rights(cluster: Operated) -> definition.Rights:
    asking, elsewhere = service(cluster) if cluster.probe_budget else ([], {})
    return definition.Rights(
        group="stillwater:rotate",
        everywhere=definition.may_read_machines(cluster),
        inside=[
            definition.may("", ["pods"], ["list"]),
            *definition.may_read_operator(cluster),
            *definition.may_read_metrics(cluster),
            *definition.may_get("secrets", cluster.secrets["rotate"]),
            *asking,
        ],
        elsewhere=elsewhere,
    )


ROTATE = Definition(
    name="rotate",
    description="Plan, start and stop a rotation of nodes, when a person asks",
    settings=RotateSettings,
    may=_rotate_may,
    own_settings=lambda cluster: {"probe_budget": cluster.probe_budget},
    kubernetes=_rotate_rights,
)


# A day that nobody filed takes some minutes to catch up with.
TIMEOUT_SECONDS = 300


def _samples_may(scope: Scope) -> Sequence[iam.Statement]:
    of = scope.account
    bucket = buckets.bucket_name(scope.cluster.prefix, "billing", of.account_id)
    arn, folder = f"arn:{of.partition}:s3:::{bucket}", naming.SAMPLES_FOLDER
    return [
        read_settings(scope),
        iam.Statement(
            sid="SeeWhatIsFiled",
            actions=["s3:ListBucket"],
            resources=[arn],
            conditions={"StringLike": {"s3:prefix": f"{folder}/*"}},
        ),
        iam.Statement(
            sid="FileSamples", actions=["s3:PutObject"], resources=[f"{arn}/{folder}/hour-*"]
        ),
        *workspace(scope),
    ]


def _samples_rights(cluster: Operated) -> definition.Rights:
    inside, elsewhere = service(cluster)
    return definition.Rights(group="stillwater:samples", inside=inside, elsewhere=elsewhere)


SAMPLES = Definition(
    name="samples",
    description="Files what Prometheus remembers, for the report",
    settings=SamplesSettings,
    may=_samples_may,
    own_settings=lambda cluster: {"prometheus": cluster.volumes and cluster.volumes.prometheus},
    kubernetes=_samples_rights,
    schedule=(SCHEDULES["samples"], "files the last hour's samples"),
    timeout_seconds=TIMEOUT_SECONDS,
)


def _sweep_may(scope: Scope) -> Sequence[iam.Statement]:
    account = scope.account
    bucket = function.bucket_name(scope.cluster.prefix, account.account_id)
    filed = f"arn:{account.partition}:s3:::{bucket}/{function.PREFIX}*"
    return [
        *write_incidents(scope),
        iam.look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
        ),
        iam.Statement(sid="FileIncidents", actions=["s3:PutObject"], resources=[filed]),
    ]


def _sweep_rights(cluster: Operated) -> definition.Rights:
    return definition.Rights(
        group="stillwater:sweep",
        everywhere=definition.may_read_machines(cluster),
        inside=[
            definition.may("", ["pods"], ["list"]),
            definition.may("kafka.strimzi.io", ["kafkarebalances"], ["list"]),
        ],
    )


SWEEP = Definition(
    name="sweep",
    description="Missed events, stalled incidents and closed ones",
    settings=SweepSettings,
    may=_sweep_may,
    own_settings=lambda cluster: {"tick_interval_seconds": cluster.timings.tick_interval_seconds},
    kubernetes=_sweep_rights,
    schedule=(SCHEDULES["sweep"], "wakes the sweep"),
)


GROUP_TAG = "ec2:ResourceTag/aws:autoscaling:groupName"
ACTION = "CreateReplaceRootVolumeTask"


def _tick_may(scope: Scope) -> Sequence[iam.Statement]:
    return [
        *write_incidents(scope),
        iam.look(
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeAvailabilityZones",
            "ec2:DescribeInstances",
            "ec2:DescribeInstanceStatus",
            "ec2:DescribeVolumes",
            *(["ec2:DescribeReplaceRootVolumeTasks"] if _holds(scope) else []),
        ),
        read_queue(scope, "ticks"),
        *(_act(scope) if scope.cluster.acts else ()),
        *(workspace(scope) if scope.cluster.probe_budget else []),
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
        names = tuple(dict.fromkeys(map(naming.group_pattern, names)))
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
    """Call a person, also through a topic whose key is a customer's own, or another account's."""
    cluster, account = scope.cluster, scope.account
    if not cluster.alerts.enabled:
        return []
    given, keys = cluster.alerts.sns_topic_arn, account.arn("kms", "key/*")
    topic = given or account.arn("sns", f"{cluster.prefix}-alerts")
    through_sns = {"kms:ViaService": f"sns.{account.region}.amazonaws.com"}
    return [
        iam.Statement(sid="CallAPerson", actions=["sns:Publish"], resources=[topic]),
        iam.Statement(
            sid="EncryptTheCall",
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=[keys.replace(account.account_id, "*") if given else keys],
            conditions={"StringEquals": through_sns},
        ),
    ]


def _recount(cluster: Operated) -> definition.PolicyRule:
    """Allow to have the budget over those who stay counted anew, by an annotation on it."""
    names = [budget_of_the_staying(cluster.name)]
    return definition.may("policy", ["poddisruptionbudgets"], ["patch"], names)


def _tick_rights(cluster: Operated) -> definition.Rights:
    asking, elsewhere = service(cluster) if cluster.probe_budget else ([], {})
    return definition.Rights(
        group="stillwater:handlers",
        everywhere=[
            definition.may("", ["nodes"], ["get", "list", *(["patch"] if cluster.acts else [])]),
            definition.may("storage.k8s.io", ["csinodes", "volumeattachments"], ["list"]),
            *definition.may_read_node_claims(cluster),
            *definition.may_end_node_claims(cluster),
            *(
                [definition.may("storage.k8s.io", ["volumeattachments"], ["delete"])]
                if cluster.acts
                else []
            ),
            # Whatever is on a node, of any namespace, takes room from Kafka's next pod there, and
            # leaves before Kafka's pod where we drain.
            definition.may("", ["pods"], ["list"]),
            *([definition.may("", ["pods/eviction"], ["create"])] if cluster.drains else []),
        ],
        inside=[
            # A label on a pod lets it leave beside others; budgets that know it are our stacks'.
            *([definition.may("", ["pods"], ["get", "patch"])] if cluster.level == OWN else []),
            # Why a pod that was placed does not get its volumes.
            definition.may("", ["persistentvolumeclaims"], ["list"]),
            *definition.may_read_operator(cluster),
            definition.may("policy", ["poddisruptionbudgets"], ["list"]),
            *([_recount(cluster)] if cluster.level == OWN else []),
            *definition.may_get("secrets", cluster.secrets["tick"]),
            *definition.may_read_metrics(cluster),
            *asking,
        ],
        elsewhere=elsewhere,
        # In a cluster of ours, whose API server is known to have such policies.
        limits=tick_limits() if cluster.level == OWN else (),
    )


def tick_limits() -> list[definition.WriteLimit]:
    before, after = (
        f"(has({each}.spec.taints) ? {each}.spec.taints : [])" for each in ("oldObject", "object")
    )
    ours = f't.key == "{naming.OUT_OF_SERVICE_TAINT}"'
    others = f"{after}.all(t, {ours} || t in {before}) && {before}.all(t, {ours} || t in {after})"
    kept = "has(object.spec.unschedulable) == has(oldObject.spec.unschedulable)"
    mark = f'.metadata.?annotations[?"{naming.CORDON_ANNOTATION}"].hasValue()'
    alike = (f"has({each}.spec.unschedulable) == {each}{mark}" for each in ("oldObject", "object"))
    cordon = f"{kept} || ({' && '.join(alike)})"
    return [
        definition.WriteLimit(
            resource="nodes",
            annotations=naming.NODE_MARKS,
            spec=[
                (others, f"It places and takes away {naming.OUT_OF_SERVICE_TAINT} alone."),
                (cordon, f"It cordons with {naming.CORDON_ANNOTATION}, and uncordons what has it."),
            ],
        ),
        definition.WriteLimit(
            resource="pods",
            labels=[naming.MAY_LEAVE_LABEL],
            spec=[("object.spec == oldObject.spec", "It marks pods, and changes none.")],
        ),
        definition.WriteLimit(
            resource="poddisruptionbudgets",
            api_group="policy",
            annotations=[naming.COUNTED_ANNOTATION],
            spec=[("object.spec == oldObject.spec", "It has budgets counted, and changes none.")],
        ),
    ]


def _tick_own_settings(cluster: Operated) -> Mapping[str, Any]:
    return {
        "nth_queue_url": cluster.handler_queue_url if cluster.acts else None,
        "probe_budget": cluster.probe_budget,
        "runbooks_url": cluster.alerts.runbooks_url,
    }


TICK = Definition(
    name="tick",
    description="Observe an incident, decide, act, tick again",
    settings=TickSettings,
    may=_tick_may,
    own_settings=_tick_own_settings,
    kubernetes=_tick_rights,
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


# The ledger's items of this function: handlers.store.volume_records.
KEYS = "volume#*"


def _volumes_may(scope: Scope) -> Sequence[iam.Statement]:
    rotation = f"rotation#{scope.cluster.name}"
    return [
        iam.look(
            "cloudwatch:GetMetricData",
            "ec2:DescribeInstances",
            "ec2:DescribeVolumes",
            "ec2:DescribeVolumesModifications",
        ),
        item_right(scope, "RememberVolumes", ["GetItem", "PutItem"], KEYS),
        read_settings(scope),
        # Who goes next, and how long those were away who went before.
        item_right(scope, "ReadDepartures", ["GetItem"], "incident#*", rotation),
        *workspace(scope),
        find_open(scope),
    ]


def _volumes_rights(cluster: Operated) -> definition.Rights:
    pools = ["list", "patch"] if cluster.volumes and cluster.volumes.applies else ["list"]
    asking, elsewhere = service(cluster)
    inside = [
        definition.may("", ["persistentvolumeclaims"], ["list"]),
        definition.may("kafka.strimzi.io", ["kafkanodepools"], pools),
        definition.may_read_kafka(cluster),
        *definition.may_get("secrets", cluster.secrets["volumes"]),
        *asking,
    ]
    return definition.Rights(
        group="stillwater:volumes",
        everywhere=[
            definition.may("", ["persistentvolumes"], ["list"]),
            definition.may("storage.k8s.io", ["volumeattributesclasses"], ["list"]),
        ],
        inside=inside,
        elsewhere=elsewhere,
        limits=volumes_limits() if "patch" in pools and cluster.level == OWN else (),
    )


def volumes_limits() -> list[definition.WriteLimit]:
    return [
        definition.WriteLimit(
            resource="kafkanodepools",
            api_group="kafka.strimzi.io",
            spec=[definition.only_in_spec("storage", "The function of the volumes")],
        )
    ]


VOLUMES = Definition(
    name="volumes",
    description="What Kafka's volumes need, and what of it may be done",
    settings=VolumesSettings,
    may=_volumes_may,
    own_settings=lambda cluster: {"volumes": cluster.volumes},
    kubernetes=_volumes_rights,
    schedule=(SCHEDULES["volumes"], "looks at the volumes"),
)


def _slack_may(scope: Scope) -> Sequence[iam.Statement]:
    slack = scope.cluster.slack
    return [
        read_queue(scope, "stories"),
        send(scope, "TellItLater", "stories"),
        item_right(
            scope,
            "ReadIncidents",
            ["GetItem"],
            "incident#*",
            "rotation#*",
            "story#*",
            f"freezes#{scope.cluster.name}",
        ),
        item_right(scope, "KeepThreads", ["PutItem"], "story#*"),
        *([] if slack is None else [know(scope.secret(slack.secret_name))]),
    ]


def _slack_own_settings(cluster: Operated) -> Mapping[str, Any]:
    slack = {} if cluster.slack is None else cluster.slack.model_dump()
    return {
        **slack,
        "hold_limit_seconds": cluster.timings.hold_limit_seconds,
        "runbooks_url": cluster.alerts.runbooks_url,
    }


SLACK = Definition(
    name="slack",
    description="An incident that changed goes to its Slack thread",
    settings=SlackSettings,
    may=_slack_may,
    own_settings=_slack_own_settings,
    # The least AWS accepts at once; Slack takes about one message a second.
    reads=Reads(queue="stories", batch=10, at_once=2),
)


# What carries incidents: infra.functions.loop makes them together.
LOOP = (INTERRUPTION, TICK, SWEEP, ROTATE)
# What stands beside the loop, each by itself: infra.functions.loop.
ALONE = (HEALTH, VOLUMES)
EVERY = (*LOOP, *ALONE, SAMPLES, SLACK, WEBHOOK)


def carrying(cluster: Operated) -> Sequence[Definition]:
    """Return the functions that carry incidents: a rotation is for whoever acts."""
    return LOOP if cluster.acts else [each for each in LOOP if each is not ROTATE]


def alone(cluster: Operated) -> Sequence[Definition]:
    """Return the functions beside them; volumes of a cluster that exists are its owner's."""
    return ALONE if cluster.level == OWN else [HEALTH]


def functions(cluster: Operated) -> Sequence[Definition]:
    """Return the functions of a cluster: those for a Slack or a Prometheus, where there is one."""
    if cluster.level != OWN:
        return (*carrying(cluster), *alone(cluster), *([SLACK] if cluster.slack else []))
    left_out = [] if cluster.slack else [SLACK]
    left_out += [] if cluster.prometheus else [SAMPLES]
    return [each for each in EVERY if each not in left_out]
