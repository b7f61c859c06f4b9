"""A cluster of somebody else's in which nothing is wrong, to break one fact at a time."""

from core.checks.balancing import GATE_LABEL
from core.checks.facts import AwsHealth, ClusterFacts, ControlPlane, TargetGroup, WayOut
from core.ground.instances import STANDARD_QUOTA
from core.model.account import AccountQuota, QuotaName, Subnet
from core.model.kafka import Kafka, KafkaListener, KafkaPool, Pod, Volume
from core.model.nodes import Instance, LifecycleHook, Node, ScalingGroup, VolumeSlots
from core.model.workloads import (
    Balanced,
    BalancerController,
    DisruptionBudget,
    EvictionWebhook,
    NodeProvisioner,
    Operator,
    TerminationHandler,
    TerminationQueue,
    VolumeController,
)

ZONES = ("eu-north-1a", "eu-north-1b", "eu-north-1c")
LABELS = {"strimzi.io/cluster": "payments", "strimzi.io/name": "payments-kafka"}
KAFKA = Kafka(
    namespace="streaming",
    name="payments",
    rack_aware=True,
    rack_key="topology.kubernetes.io/zone",
    listeners=(KafkaListener("tls", "tls"),),
    config={"default.replication.factor": "3", "min.insync.replicas": "2"},
)
GATE = "target-health.elbv2.k8s.aws/brokers"
HOOK = LifecycleHook(name="wait", heartbeat_seconds=900, default_result="ABANDON")
HANDLER = TerminationHandler(
    title="kube-system/nth",
    queue_mode=True,
    pod_grace_seconds=-1,
    drain_timeout_seconds=600,
    queue_url="https://sqs/theirs",
    asks_for_tag="drain-me",
    version="1.25.6",
    by_provider_id=True,
)
QUEUE = TerminationQueue(arn="arn:theirs", kept_seconds=1800, patterns=({},))
INSTANCE = Instance(
    lifecycle=None, tags={"drain-me": ""}, type="r7g.large", vcpus=2, subnet="subnet-0"
)
OPERATOR = Operator(title="strimzi/operator", namespaces=None)


def pod(index: int) -> Pod:
    return Pod(
        namespace="streaming",
        name=f"payments-main-{index}",
        kafka="payments",
        broker=True,
        node=f"ip-10-0-0-{index}",
        ready=True,
        owner="StrimziPodSet",
        grace_seconds=330,
        labels=LABELS,
        annotations={},
        readiness_gates=frozenset({GATE}),
        # One of all of them, so that a test changes one volume.
        claims=("data-0",),
        alone_on_its_node=True,
    )


def node(index: int) -> Node:
    return Node(
        name=f"ip-10-0-0-{index}",
        zone=ZONES[index],
        instance_id=f"i-{index}",
        node_pool=None,
        auto_mode=False,
    )


def group(index: int) -> ScalingGroup:
    return ScalingGroup(
        name=f"kafka-{index}",
        zones=frozenset({ZONES[index]}),
        subnets=frozenset({f"subnet-{index}"}),
        desired=1,
        maximum=2,
        suspended=frozenset(),
        hooks=(HOOK,),
        on_abandon="retain",
    )


BUDGET = DisruptionBudget(
    namespace="streaming",
    name="payments-kafka",
    match_labels=LABELS,
    expressions=(),
    least_available="2",
    desired_healthy=2,
    expected_pods=3,
)
VOLUME = Volume(
    namespace="streaming",
    claim="data-0",
    reclaim="Retain",
    storage_class="gp3",
    binding="WaitForFirstConsumer",
    expandable=True,
)
GOOD = ClusterFacts(
    kafkas=(KAFKA,),
    pools=(KafkaPool(namespace="streaming", name="main", kafka="payments", replicas=3),),
    pod_sets=(),
    rebalances=(),
    kafka_versions=frozenset({"v1"}),
    pod_set_versions=frozenset({"v1"}),
    topics=(),
    other_kafkas=(),
    pods=tuple(map(pod, range(3))),
    lost_images=frozenset(),
    neighbours=(),
    rivals=(),
    zookeepers=(),
    nodes={f"ip-10-0-0-{index}": node(index) for index in range(3)},
    idle_nodes={},
    slots={f"ip-10-0-0-{index}": VolumeSlots() for index in (0, 1, 2, 9)},
    instances={f"i-{index}": INSTANCE for index in range(3)},
    group_of={f"i-{index}": f"kafka-{index}" for index in range(3)},
    groups={f"kafka-{index}": group(index) for index in range(3)},
    statuses={},
    templates={},
    node_roles={},
    admitted_roles={},
    scale_ins={},
    refreshes={},
    managed_node_groups={},
    budgets=(BUDGET,),
    handlers=(HANDLER,),
    queues={"https://sqs/theirs": QUEUE},
    cleaners=(),
    eviction_webhooks=(EvictionWebhook(name="a-gate-of-theirs"),),
    admission_policies=(),
    operators=(OPERATOR,),
    pending_releases=(),
    autoscalers=(),
    size_scalers=(),
    evictors=(),
    entitled=(),
    node_pools={},
    node_classes={},
    volumes=(VOLUME,),
    disks={},
    disk_checks={},
    disk_snapshots={},
    balanced=(
        Balanced(namespace="streaming", name="brokers", selector=LABELS, target_group="brokers"),
    ),
    gated_namespaces={"streaming": frozenset({GATE_LABEL})},
    ending_namespaces=frozenset(),
    injected_namespaces=frozenset(),
    enforced_levels={},
    essentials=(),
    quotas=(),
    limit_ranges=(),
    pod_webhooks=(),
    node_provisioners=(NodeProvisioner(title="kube-system/karpenter", queue="theirs"),),
    volume_controllers=(VolumeController(title="kube-system/ebs-csi-controller"),),
    ingress_controllers=(),
    balancer_controllers=(BalancerController(title="kube-system/lbc", version="v3.5.0"),),
    target_groups={
        "brokers": TargetGroup(name="brokers", balancers=("arn",), connection_termination="true")
    },
    subnets={
        f"subnet-{index}": Subnet(zone=zone, zone_id=f"eun1-az{index}", free_addresses=250)
        for index, zone in enumerate(ZONES)
    },
    ways_out={
        f"subnet-{index}": WayOut(table="rtb-0", target=f"nat-{index}") for index in range(3)
    },
    vpc_endpoints=(),
    encryption_keys={},
    machine_quotas={
        STANDARD_QUOTA: AccountQuota(QuotaName("ec2", STANDARD_QUOTA, "vCPUs"), limit=500, used=6)
    },
    disk_quota=AccountQuota(QuotaName("ebs", "gp3", "TiB"), limit=50, used=1),
    control_plane=ControlPlane(name="shop", arn="arn:shop", version="1.34"),
    fargate_profiles=(),
    upgrade_insights=(),
    zonal_shifts=(),
    aws_health=AwsHealth(),
    read_at=0.0,
)
