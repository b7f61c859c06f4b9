"""Clusters in which a danger hides behind something that looks well, and some that are well."""

from __future__ import annotations

from core.ground.instances import STANDARD_QUOTA
from tests.every_case import every_case
from tests.unit.cli.survey import machines, worlds
from tests.unit.cli.survey.hidden_changes import (
    EVENTS,
    TOPICS,
    Change,
    apart,
    brief,
    cleaner_status,
    cron_job,
    deleted,
    deployment,
    drains_by,
    first,
    group_of,
    handler,
    hooks,
    members,
    namespace_from,
    of_driver,
    on_demand_base,
    one_voter_short,
    owned,
    policy_engine,
    queue,
    racked,
    refreshing,
    rule,
    scheduled,
    scratch,
    spread,
    temporary,
    topic,
    unanswered,
    webhook_for,
)
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.others import changed, checks, combined, own
from tests.unit.cli.survey.worlds import bare

HIDDEN: dict[str, tuple[Change, set[str]]] = {
    # Who hears of a termination.
    "a rule for another group": (rule(AutoScalingGroupName=["workers"]), {"nth-deaf"}),
    "a rule for another hook": (rule(LifecycleHookName=["launching"]), {"nth-deaf"}),
    "a rule for launches": (
        rule(LifecycleTransition=["autoscaling:EC2_INSTANCE_LAUNCHING"]),
        {"nth-deaf"},
    ),
    "a rule for this hook": (rule(LifecycleHookName=["hold"]), set()),
    "the rule for this hook on a second page": (
        lambda w: w.rules.insert(0, {"source": ["aws.ec2"]}),
        set(),
    ),
    "a rule for groups by prefix": (rule(AutoScalingGroupName=[{"prefix": "asg-"}]), set()),
    "a queue that EventBridge may not send to": (
        queue(Policy={"Statement": [{**EVENTS, "Principal": {"AWS": "111122223333"}}]}),
        {"nth-deaf"},
    ),
    "a queue without a policy": (queue(Policy=None), {"nth-deaf"}),
    "a queue to which a rule sends under a role": (
        lambda w: (queue(Policy=None)(w), w.target.update(RoleArn="arn:aws:iam::1:role/x")),
        set(),
    ),
    "a queue that a topic fills": (
        lambda w: (w.rules.clear(), queue(Policy={"Statement": [TOPICS]})(w)),
        set(),
    ),
    "a queue under SQS's own key of KMS": (queue(KmsMasterKeyId="alias/aws/sqs"), {"nth-deaf"}),
    "a queue under a key of one's own": (queue(KmsMasterKeyId="alias/mine"), set()),
    "a queue encrypted by SQS": (queue(SqsManagedSseEnabled="true"), set()),
    # What the handler does with what it hears.
    "a handler that refuses pods with emptyDir": (
        handler(DELETE_LOCAL_DATA="false"),
        {"nth-refuses"},
    ),
    "a handler that refuses DaemonSets": (handler(IGNORE_DAEMON_SETS="false"), {"nth-refuses"}),
    # What the group does at this moment.
    "a machine that waits in a hook": (
        members(LifecycleState="Terminating:Wait", HealthStatus="Healthy"),
        {"group-ending"},
    ),
    "a machine that the group calls unhealthy": (
        members(LifecycleState="InService", HealthStatus="Unhealthy"),
        {"group-ending"},
    ),
    "a machine in standby": (
        members(LifecycleState="Standby", HealthStatus="Healthy"),
        {"group-standby"},
    ),
    "a machine in service": (members(LifecycleState="InService", HealthStatus="Healthy"), set()),
    "an instance refresh under way": (refreshing("InProgress"), {"group-refreshing"}),
    "an instance refresh that waits": (refreshing("Pending"), {"group-refreshing"}),
    "an instance refresh of last month": (refreshing("Successful"), set()),
    "on demand by its base": (on_demand_base, set()),
    "a group that was given another zone": (
        group_of(AvailabilityZones=["eu-north-1z"]),
        {"group-moved"},
    ),
    # What AWS has scheduled.
    "a machine that is retired": (scheduled("instance-retirement"), {"machine-retired"}),
    "a machine that is stopped": (scheduled("instance-stop"), {"machine-retired"}),
    "a machine that is rebooted": (scheduled("system-reboot"), {"machine-maintained"}),
    "a retirement that is over": (scheduled("instance-retirement", "[Completed] x"), set()),
    "a retirement that was taken back": (scheduled("instance-retirement", "[Canceled] x"), set()),
    # Hooks of others beside one that holds.
    "a brief hook beside the one that holds": (
        hooks(machines.hook(), brief(DefaultResult="CONTINUE")),
        set(),
    ),
    "a brief hook that abandons beside it": (hooks(machines.hook(), brief()), {"hook-heartbeat"}),
    "two brief hooks": (
        hooks(brief(DefaultResult="CONTINUE"), brief(LifecycleHookName="b")),
        {"hook-default", "hook-heartbeat"},
    ),
    # Topics.
    "a topic that one broker may acknowledge": (
        topic("t", 3, **{"min.insync.replicas": 1}),
        {"topic-min-insync"},
    ),
    "a topic of a single replica": (
        topic("t", 1, **{"min.insync.replicas": 1}),
        {"topic-replicas"},
    ),
    "a topic that elects who lags": (
        topic("t", **{"unclean.leader.election.enable": True}),
        {"topic-unclean"},
    ),
    "a topic as it should be": (topic("t", 3, **{"min.insync.replicas": 2}), set()),
    # Volumes.
    "a second directory in the pod itself": (scratch, {"ephemeral"}),
    "Strimzi's own temporary directory": (temporary, set()),
    "a claim that is deleted": (deleted("persistentvolumeclaims"), {"claim-leaving"}),
    "a volume that is deleted": (deleted("persistentvolumes"), {"claim-leaving"}),
    "disks of nodes by TopoLVM": (
        of_driver("topolvm.io", key="topology.topolvm.io/node"),
        {"local-volume"},
    ),
    "disks of nodes by OpenEBS": (
        of_driver("local.csi.openebs.io", key="openebs.io/nodename"),
        {"local-volume"},
    ),
    "a bucket for a disk": (of_driver("s3.csi.aws.com"), {"network-file-system"}),
    "FSx for OpenZFS": (of_driver("fsx.openzfs.csi.aws.com"), {"network-file-system"}),
    "a driver that nobody here knows": (of_driver("pxd.portworx.com"), {"volume-driver"}),
    "EBS by Auto Mode's driver": (
        of_driver("ebs.csi.eks.amazonaws.com", key="topology.kubernetes.io/zone"),
        set(),
    ),
    "EBS by its own key": (
        of_driver("ebs.csi.aws.com", key="topology.ebs.csi.aws.com/zone"),
        set(),
    ),
    # Placement.
    "racks that are hosts": (racked("kubernetes.io/hostname"), {"rack"}),
    "racks that are the region": (racked("topology.kubernetes.io/region"), {"rack"}),
    "racks by zone id": (racked("topology.k8s.aws/zone-id"), set()),
    "a controller that is missing": (one_voter_short, {"not-running", "quorum"}),
    "a node that Cluster Autoscaler considers": (
        first(
            "nodes",
            lambda n: n["spec"].update(taints=[{"key": "DeletionCandidateOfClusterAutoscaler"}]),
        ),
        {"node-leaving"},
    ),
    "apart by zone": (apart("topology.kubernetes.io/zone"), set()),
    "apart by region": (apart("topology.kubernetes.io/region"), {"anti-affinity"}),
    "spread over zones": (spread("topology.kubernetes.io/zone"), {"anti-affinity"}),
    "spread over hosts": (spread("kubernetes.io/hostname"), set()),
    # Who else drains.
    "a descheduler by the clock": (
        cron_job("registry.k8s.io/descheduler/descheduler:v0.34.0"),
        {"evictor"},
    ),
    "a descheduler that is suspended": (
        cron_job("registry.k8s.io/descheduler/descheduler:v0.34.0", suspend=True),
        set(),
    ),
    "keiko's lifecycle-manager for a handler": (
        drains_by("keikoproj/lifecycle-manager:v0.6.0"),
        {"evictor"},
    ),
    "another lifecycle manager for a handler": (
        drains_by("europe-docker.pkg.dev/kyma-project/prod/lifecycle-manager:1.2.0"),
        {"nth-missing"},
    ),
    "a rolling updater of groups": (
        deployment("twinproduction/aws-eks-asg-rolling-update-handler:v1.8.0"),
        {"evictor"},
    ),
    "chaos": (deployment("ghcr.io/chaos-mesh/chaos-mesh:v2.7.0"), {"evictor"}),
    # Who is asked about evictions.
    "Drain Cleaner that does not run": (
        lambda w: (
            cleaner_status(replicas=1, unavailableReplicas=1)(w),
            w.kinds.update(answering=[]),
        ),
        {"cleaner-down", "webhook-dead"},
    ),
    "Drain Cleaner scaled to none": (unanswered, {"webhook-dead", "budget-blocks"}),
    "a webhook for other namespaces": (webhook_for("other"), {"eviction-unasked"}),
    "a webhook for this namespace": (webhook_for("shop-kafka"), set()),
    "a policy engine beside it": (policy_engine(service=True), set()),
    "a policy engine that is gone": (
        policy_engine(service=False),
        {"webhook-dead", "pods-refused"},
    ),
    # Strimzi.
    "an operator whose namespaces are set elsewhere": (
        namespace_from({"configMapKeyRef": {"name": "x", "key": "y"}}),
        {"unread"},
    ),
    # Kafkas of others.
    "Redpanda by its operator": (
        owned("docker.redpanda.com/redpandadata/redpanda:v25", "cluster.redpanda.com/v1alpha2"),
        {"not-strimzi", "not-running"},
    ),
    "Stackable": (
        owned("oci.stackable.tech/sdp/kafka:4.1.0", "kafka.stackable.tech/v1alpha1"),
        {"not-strimzi", "not-running"},
    ),
}


@every_case(("change", "said"), HIDDEN.values(), ids=HIDDEN.keys())
def test_what_hides_is_found_and_what_is_well_is_left_in_peace(
    change: Change, said: set[str]
) -> None:
    assert checks(changed(own, change)()) == said


def test_a_managed_group_that_eks_updates_now_is_found() -> None:
    world = managed(bare(), status="UPDATING")
    assert checks(world) == {"managed-node-group", "managed-updating"}


def test_a_webhook_without_anybody_behind_it_that_fails_refuses_every_eviction() -> None:
    world = own()
    unanswered(world)
    (webhook,) = world.only("validatingwebhookconfigurations")["webhooks"]
    webhook["failurePolicy"] = "Fail"
    assert "webhook-dead" in checks(world)


def test_a_combined_node_that_is_missing_is_no_advice_to_run_more_controllers() -> None:
    world = combined()
    world.kinds["pods"].pop()
    assert checks(world) == {"not-running", "quorum", "combined"}


def test_five_hundred_nodes_are_judged_as_six() -> None:
    world = provisioned(bare())
    world.around.limits[STANDARD_QUOTA] = 2000
    for number in range(500):
        zone = worlds.ZONES[number % 3]
        worlds.node(world, f"other-{number}", zone, f"i-other-{number}")
    assert checks(world) == set()
