"""Dangers that hide behind what looks well or was left over, and clusters that are well."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from cli.survey.kafka import lapsed_trust
from core.ground.instances import STANDARD_QUOTA
from tests.every_case import every_case
from tests.unit.certificates import issue
from tests.unit.cli.survey import machines, others, worlds
from tests.unit.cli.survey.changes import (
    ALIKE,
    MUTATING,
    added,
    apart,
    both,
    container_of,
    deleted,
    deployment,
    drains_by,
    group_of,
    handler,
    of_driver,
    policy,
    refreshing,
    webhook,
)
from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import (
    changed,
    checks,
    combined,
    own,
    rows,
    surveyed,
    zookeeper_era,
)
from tests.unit.cli.survey.worlds import RULE, Change, World, at, bare, more

# What EventBridge needs of a queue's policy.
SENDS = {"Effect": "Allow", "Action": "sqs:SendMessage"}
EVENTS = {**SENDS, "Principal": {"Service": "events.amazonaws.com"}, "Resource": "*"}
TOPICS = {**SENDS, "Principal": {"Service": "sns.amazonaws.com"}, "Resource": "*"}
CLEANERS = "validatingwebhookconfigurations.0.webhooks.0"
SHARES = {"OnDemandBaseCapacity": 2, "OnDemandPercentageAboveBaseCapacity": 0}
queue = partial(at, "queue_attributes")


def rule(**detail: Any) -> Change:
    return at("rules.0", {**RULE, "detail": detail})


def members(**said: Any) -> Change:
    """Say something of the instance of the first group."""

    def made(world: World) -> None:
        name = min(world.groups)
        instance = next(i for i, group in world.member_of.items() if group == name)
        world.groups[name]["Instances"] = [{"InstanceId": instance, **said}]

    return made


def hooks(*given: Item) -> Change:
    return at("hooks.first", list(given))


def brief(**more: Any) -> Item:
    """Return a hook that somebody has for half a minute of his own."""
    return machines.hook(**{"LifecycleHookName": "ship-logs", "HeartbeatTimeout": 30, **more})


def topic(name: str, replicas: int | None = None, **config: Any) -> Change:
    item = {
        "metadata": meta(name, "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "spec": {"config": config, **({"replicas": replicas} if replicas else {})},
    }
    return added("kafkatopics", item)


def cron_job(image: str, **spec: Any) -> Change:
    job = workload("it", "ops", image)["spec"]["template"]
    item = {
        "metadata": meta("it", "ops"),
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": job}}, **spec},
    }
    return added("cronjobs", item)


def owned(image: str, api_version: str) -> Change:
    owner = {"apiVersion": api_version, "kind": "It", "name": "it", "uid": "0", "controller": True}
    item = workload("it", "legacy", image)
    item["metadata"]["ownerReferences"] = [owner]
    return added("statefulsets", item)


NOBODY = at("answering", [])
# Its webhook and Service are there, and pass what they get.
UNANSWERED = both(at("deployments.-2.spec", replicas=0), NOBODY)


def webhook_for(namespace: str) -> Change:
    return both(
        at("namespaces.0.metadata.labels", {"kubernetes.io/metadata.name": "shop-kafka"}),
        at(CLEANERS, namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": namespace}}),
    )


def scheduled(code: str, description: str = "soon") -> Change:
    begins = datetime(2026, 12, 1, 4, 30, tzinfo=UTC)
    event = {"Code": code, "Description": description, "NotBefore": begins}
    return lambda world: world.events.update({min(world.instances): [event]})


def racked(key: str) -> Change:
    return at("kafkas.0.spec.kafka.rack", {"topologyKey": key})


def spread(key: str) -> Change:
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    strict = [{**rule, "labelSelector": ALIKE}]
    return at("pods.*.spec", affinity={}, topologySpreadConstraints=strict)


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


NGINX = "registry.k8s.io/ingress-nginx/controller:v1.14.0"
TAINTED = both(
    at("nodes.*.spec.taints", [{"key": "kafka", "value": "yes", "effect": "NoSchedule"}]),
    at("pods.*.spec.tolerations", [{"key": "kafka", "operator": "Exists"}]),
)
OVER, AHEAD = datetime(2021, 1, 1, tzinfo=UTC), datetime(2090, 1, 1, tzinfo=UTC)


def bundle(*ends: datetime) -> str:
    pems = "".join(issue("ca", None, each).certificate_pem for each in ends)
    return base64.b64encode(pems.encode()).decode()


def trusting(*ends: datetime, closed: bool = False) -> Change:
    """Have Drain Cleaner's webhook trust authorities that end so."""
    return both(
        at(f"{CLEANERS}.clientConfig", caBundle=bundle(*ends)),
        at(CLEANERS, failurePolicy="Fail" if closed else "Ignore"),
    )


def asked_for_pods(url: str | None, *ends: datetime) -> Change:
    """Add a webhook that is asked before any pod is created."""
    service = {"namespace": "ops", "name": "strimzi-drain-cleaner"}
    whom: Item = {"url": url} if url else {"service": service}
    config = {**whom, "caBundle": bundle(*ends)}
    return webhook("", "pods", "CREATE", kind=MUTATING, clientConfig=config)


def rival(priority: int, *, node: str | None = "elsewhere", **spec: Any) -> Change:
    """Add a pod of somebody else's."""
    named = {"nodeName": node} if node else {}
    item = {
        "metadata": meta("it", "shop"),
        "spec": {"containers": [], "priority": priority, **named, **spec},
    }
    return added("neighbours", item)


def policy_of(group: str, resource: str, operation: str = "CREATE", **more: Any) -> Change:
    """Bind a policy about a resource of an API group."""
    rule = {"apiGroups": [group], "resources": [resource], "operations": [operation]}
    return policy(resource, resourceRules=[rule], **more)


# The system's namespace, which policies leave out by its name.
SYSTEM = added(
    "namespaces",
    {"metadata": meta("kube-system", labels={"kubernetes.io/metadata.name": "kube-system"})},
)
WITHOUT_SYSTEM = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    ]
}


def streaming(service: str, replicas: int, *, named: str = "$(POD_NAMESPACE)/tcp") -> Change:
    """Have nginx send a TCP port to a Service, by a ConfigMap."""

    def made(world: World) -> None:
        proxy = workload("nginx", "ingress", NGINX, f"--tcp-services-configmap={named}")
        proxy["spec"]["replicas"] = replicas
        world.add("deployments", proxy)
        ports = {"9094": f"{service}:9094", "22": "somebody's own words"}
        world.add("configmaps", {"metadata": meta("tcp", "ingress"), "data": ports})

    return made


FOUND: dict[str, Change] = {
    # Who hears of a termination.
    "a rule for another group => nth-deaf": rule(AutoScalingGroupName=["workers"]),
    "a rule for another hook => nth-deaf": rule(LifecycleHookName=["launching"]),
    "a rule for launches => nth-deaf": rule(
        LifecycleTransition=["autoscaling:EC2_INSTANCE_LAUNCHING"]),
    "a rule for this hook =>": rule(LifecycleHookName=["hold"]),
    "the rule for this hook on a second page =>": lambda w: w.rules.insert(
        0, {"source": ["aws.ec2"]}),
    "a rule for groups by prefix =>": rule(AutoScalingGroupName=[{"prefix": "asg-"}]),
    "a queue that EventBridge may not send to => nth-deaf": queue(
        Policy={"Statement": [{**EVENTS, "Principal": {"AWS": "111122223333"}}]}),
    "a queue without a policy => nth-deaf": queue(Policy=None),
    "a queue to which a rule sends under a role =>": lambda w: (queue(Policy=None)(w),
        w.target.update(RoleArn="arn:aws:iam::1:role/x")),
    "a queue that a topic fills =>": lambda w: (w.rules.clear(),
        queue(Policy={"Statement": [TOPICS]})(w)),
    "a queue under SQS's own key of KMS => nth-deaf": queue(KmsMasterKeyId="alias/aws/sqs"),
    "a queue under a key of one's own =>": queue(KmsMasterKeyId="alias/mine"),
    "a queue encrypted by SQS =>": queue(SqsManagedSseEnabled="true"),
    # What the handler does with what it hears.
    "a handler that refuses pods with emptyDir => nth-refuses": handler(DELETE_LOCAL_DATA="false"),
    "a handler that refuses DaemonSets => nth-refuses": handler(IGNORE_DAEMON_SETS="false"),
    # What the group does at this moment.
    "a machine that waits in a hook => group-ending": members(
        LifecycleState="Terminating:Wait", HealthStatus="Healthy"),
    "a machine that the group calls unhealthy => group-ending": members(
        LifecycleState="InService", HealthStatus="Unhealthy"),
    "a machine in standby => group-standby": members(
        LifecycleState="Standby", HealthStatus="Healthy"),
    "an instance refresh under way => group-refreshing": refreshing("InProgress"),
    "an instance refresh that waits => group-refreshing": refreshing("Pending"),
    "an instance refresh of last month =>": refreshing("Successful"),
    "on demand by its base =>": at(
        "groups.*.MixedInstancesPolicy", {"InstancesDistribution": SHARES}),
    "a group that was given another zone => group-moved": group_of(
        AvailabilityZones=["eu-north-1z"]),
    # What AWS has scheduled.
    "a machine that is retired => machine-retired": scheduled("instance-retirement"),
    "a machine that is stopped => machine-retired": scheduled("instance-stop"),
    "a machine that is rebooted => machine-maintained": scheduled("system-reboot"),
    "a retirement that is over =>": scheduled("instance-retirement", "[Completed] x"),
    "a retirement that was taken back =>": scheduled("instance-retirement", "[Canceled] x"),
    # Hooks of others beside one that holds.
    "a brief hook beside the one that holds =>": hooks(
        machines.hook(), brief(DefaultResult="CONTINUE")),
    "a brief hook that abandons beside it => hook-heartbeat": hooks(machines.hook(), brief()),
    "two brief hooks => hook-default hook-heartbeat": hooks(
        brief(DefaultResult="CONTINUE"), brief(LifecycleHookName="b")),
    # Topics.
    "a topic that one broker may acknowledge => topic-min-insync": topic(
        "t", 3, **{"min.insync.replicas": 1}),
    "a topic of a single replica => topic-replicas": topic("t", 1, **{"min.insync.replicas": 1}),
    "a topic that elects who lags => topic-unclean": topic(
        "t", **{"unclean.leader.election.enable": True}),
    "a topic as it should be =>": topic("t", 3, **{"min.insync.replicas": 2}),
    # Volumes.
    "a second directory in the pod itself => ephemeral": more(
        "pods.*.spec.volumes", {"name": "data-1", "emptyDir": {}}),
    "Strimzi's own temporary directory =>": more(
        "pods.*.spec.volumes", {"name": "strimzi-tmp", "emptyDir": {"medium": "Memory"}}),
    "a claim that is deleted => claim-leaving": deleted("persistentvolumeclaims"),
    "a volume that is deleted => claim-leaving": deleted("persistentvolumes"),
    "disks of nodes by TopoLVM => local-volume": of_driver(
        "topolvm.io", key="topology.topolvm.io/node"),
    "disks of nodes by OpenEBS => local-volume": of_driver(
        "local.csi.openebs.io", key="openebs.io/nodename"),
    "a bucket for a disk => network-file-system": of_driver("s3.csi.aws.com"),
    "FSx for OpenZFS => network-file-system": of_driver("fsx.openzfs.csi.aws.com"),
    "a driver that nobody here knows => volume-driver": of_driver("pxd.portworx.com"),
    "EBS by Auto Mode's driver =>": of_driver(
        "ebs.csi.eks.amazonaws.com", key="topology.kubernetes.io/zone"),
    "EBS by its own key =>": of_driver("ebs.csi.aws.com", key="topology.ebs.csi.aws.com/zone"),
    # Placement.
    "racks that are hosts => rack": racked("kubernetes.io/hostname"),
    "racks that are the region => rack": racked("topology.kubernetes.io/region"),
    "racks by zone id =>": racked("topology.k8s.aws/zone-id"),
    "a controller that is missing => not-running quorum": lambda w: w.kinds["pods"].pop(),
    "a node that Cluster Autoscaler considers => node-leaving": at(
        "nodes.0.spec.taints", [{"key": "DeletionCandidateOfClusterAutoscaler"}]),
    "apart by zone =>": apart("topology.kubernetes.io/zone"),
    "apart by region => anti-affinity": apart("topology.kubernetes.io/region"),
    "spread over zones => anti-affinity": spread("topology.kubernetes.io/zone"),
    "spread over hosts =>": spread("kubernetes.io/hostname"),
    # Who else drains.
    "a descheduler by the clock => evictor": cron_job(
        "registry.k8s.io/descheduler/descheduler:v0.34.0"),
    "a descheduler that is suspended =>": cron_job(
        "registry.k8s.io/descheduler/descheduler:v0.34.0", suspend=True),
    "keiko's lifecycle-manager for a handler => evictor": drains_by(
        "keikoproj/lifecycle-manager:v0.6.0"),
    "another lifecycle manager for a handler => nth-missing": drains_by(
        "europe-docker.pkg.dev/kyma-project/prod/lifecycle-manager:1.2.0"),
    "a rolling updater of groups => evictor": deployment(
        "twinproduction/aws-eks-asg-rolling-update-handler:v1.8.0"),
    "chaos => evictor": deployment("ghcr.io/chaos-mesh/chaos-mesh:v2.7.0"),
    # Who is asked about evictions.
    "Drain Cleaner that does not run => cleaner-down webhook-dead": both(NOBODY,
        at("deployments.-2.status", {"replicas": 1, "unavailableReplicas": 1})),
    "Drain Cleaner scaled to none => webhook-dead budget-blocks": UNANSWERED,
    "the same, and the webhook fails => webhook-dead budget-blocks": both(
        UNANSWERED, at(CLEANERS, failurePolicy="Fail")),
    "a webhook for other namespaces => eviction-unasked": webhook_for("other"),
    "a webhook for this namespace =>": webhook_for("shop-kafka"),
    "a policy engine beside it =>": both(
        added("services", {"metadata": meta("gone", "ops"), "spec": {}}),
        webhook("*", "*/*", "*", failurePolicy="Fail")),
    "a policy engine that is gone => webhook-dead pods-refused": webhook(
        "*", "*/*", "*", failurePolicy="Fail"),
    # Strimzi.
    "an operator whose namespaces are set elsewhere => unread": container_of(
        "strimzi/operator", lambda c: c.update(env=[
            {"name": "STRIMZI_NAMESPACE", "valueFrom": {"configMapKeyRef": {"name": "x"}}}])),
    # Kafkas of others.
    "Redpanda by its operator => not-strimzi not-running": owned(
        "docker.redpanda.com/redpandadata/redpanda:v25", "cluster.redpanda.com/v1alpha2"),
    "Stackable => not-strimzi not-running": owned(
        "oci.stackable.tech/sdp/kafka:4.1.0", "kafka.stackable.tech/v1alpha1"),
    # Webhooks whose authority has ended.
    "an eviction webhook that trusts nobody any more => webhook-dead": trusting(OVER),
    "one that trusts the next authority as well =>": trusting(OVER, AHEAD),
    "one whose authority lasts =>": trusting(AHEAD, closed=True),
    "a pod webhook that trusts nobody any more => pods-refused": asked_for_pods(None, OVER),
    "a pod webhook that lasts =>": asked_for_pods(None, AHEAD),
    "one outside that trusts nobody any more => pods-refused": asked_for_pods(
        "https://mutate.example/pods", OVER),
    "one outside that lasts => webhook-outside": asked_for_pods(
        "https://mutate.example/pods", AHEAD),
    # Who may push a broker off its node.
    "a pod above Kafka's waits for room => preempted": rival(1000, node=None),
    "one of Kubernetes' own waits for room => preempted": rival(2_000_000_000, node=None),
    "a pod above Kafka's runs elsewhere => preemptible": rival(1000),
    "one of Kubernetes' own runs elsewhere =>": rival(2_000_000_000),
    "one of the usual priority waits =>": rival(0, node=None),
    "one whose class pushes nobody away waits =>": rival(1000, node=None, preemptionPolicy="Never"),
    "one that fits on no node of Kafka's waits =>": rival(
        1000, node=None, nodeSelector={"pool": "batch"}),
    "one that a taint keeps off waits =>": both(rival(1000, node=None), TAINTED),
    "one that tolerates everything waits => preempted": both(
        rival(1000, node=None, tolerations=[{"operator": "Exists"}]), TAINTED),
    "Kafka's pods are above =>": both(
        rival(1000, node=None), at("pods.*.spec", priority=5000)),
    # Policies in CEL that are asked about what Stillwater would make.
    "a policy for Deployments => policy-install": policy_of("apps", "deployments"),
    "a policy for any resource =>": policy_of("*", "*"),
    "a policy for Deployments that only warns =>": policy_of(
        "apps", "deployments", actions=("Warn",)),
    "a policy for their deletion =>": policy_of("apps", "deployments", "DELETE"),
    "a policy for Deployments outside kube-system =>": both(
        SYSTEM, policy_of("apps", "deployments", namespaceSelector=WITHOUT_SYSTEM)),
    "a policy for roles outside kube-system => policy-install": both(SYSTEM,
        policy_of("rbac.authorization.k8s.io", "clusterroles", namespaceSelector=WITHOUT_SYSTEM)),
    # nginx's TCP ports.
    "clients by one nginx's TCP port => ingress-single": streaming(
        "shop-kafka/orders-kafka-bootstrap", 1),
    "clients by two of it =>": streaming("shop-kafka/orders-kafka-bootstrap", 2),
    "a TCP port of somebody else's =>": streaming("shop/postgres", 1),
    "a ConfigMap that is gone =>": streaming(
        "shop-kafka/orders-kafka-bootstrap", 1, named="ops/none"),
}  # fmt: skip


@every_case(("change", "said"), rows(FOUND), ids=FOUND)
def test_what_hides_is_found_and_what_is_well_left_in_peace(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


def keepers(*places: tuple[str, str], ready: str = "True") -> Callable[[], World]:
    """Return a Kafka of before KRaft whose ZooKeeper pods stand on these nodes, in these zones."""
    world = zookeeper_era()
    world.kinds["pods"] = [p for p in world.kinds["pods"] if "zookeeper" not in str(p["metadata"])]
    others.keepers(world, *places, ready=ready)
    return lambda: world


A, B, C = worlds.ZONES
ENSEMBLES: dict[str, tuple[Callable[[], World], str]] = {
    "over three zones": (keepers(("x", A), ("y", B), ("z", C)), ""),
    "two in one zone": (keepers(("x", A), ("y", A), ("z", C)),
        f"2 of 3 ZooKeeper pods stand on zone {A}"),
    "two on one node": (keepers(("x", A), ("x", A), ("z", C)), "ZooKeeper pods stand on node x"),
    "all in one zone": (keepers(("x", A), ("y", A), ("z", A)),
        "3 of 3 ZooKeeper pods stand on zone"),
    "one missing": (keepers(("x", A), ("y", B)), "2 of 3 ZooKeeper pods are ready: none"),
    "two missing": (keepers(("x", A)), "1 of 3 ZooKeeper pods are ready: they are no majority"),
    "none ready": (keepers(("x", A), ("y", B), ("z", C), ready="False"), "0 of 3"),
}  # fmt: skip


@pytest.mark.parametrize(("build", "words"), ENSEMBLES.values(), ids=ENSEMBLES)
def test_an_ensemble_is_judged_by_its_votes(build: Callable[[], World], words: str) -> None:
    said = [each.evidence for each in surveyed(build()) if each.check == "zookeeper-votes"]
    assert [words in each for each in said] == [True] * bool(words), said


def test_a_single_zookeeper_is_no_majority_of_anything() -> None:
    world = keepers(("x", A))()
    world.only("kafkas")["spec"]["zookeeper"] = {"replicas": 1}
    (said,) = [each for each in surveyed(world) if each.check == "zookeeper-votes"]
    assert "of which none can leave" in said.evidence


def test_who_is_named_by_what_the_scheduler_may_delete() -> None:
    rivalled = surveyed(changed(own, rival(1000, node=None))())
    (found,) = [each for each in rivalled if each.check == "preempted"]
    assert "shop/it wait for room" in found.evidence
    assert "orders-mains-0" in found.evidence


@pytest.mark.parametrize("written", ["", "not base64!", base64.b64encode(b"no PEM").decode()])
def test_a_bundle_that_cannot_be_read_says_nothing(written: str) -> None:
    assert lapsed_trust({"caBundle": written}, 0.0) is None
