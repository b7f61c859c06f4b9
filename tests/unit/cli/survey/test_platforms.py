"""Clusters as companies run them, each with what a survey must say of it, and no more."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    NoCredentialsError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from cli.survey import command
from core.checks.finding import Finding
from core.checks.table import findings
from infra.eks.api import ApiError
from tests.every_case import every_case
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.changes import (
    HANDLER,
    added,
    apart,
    both,
    by_configuration,
    container_of,
    deleted,
    deployment,
    each_group,
    machines,
    pod_set,
    short,
    template,
    webhook,
    without,
    without_template,
)
from tests.unit.cli.survey.machines import managed, own_groups, provisioned
from tests.unit.cli.survey.manifests import Item, meta, workload
from tests.unit.cli.survey.others import changed, checks, every, own, rows, surveyed
from tests.unit.cli.survey.test_odd_clusters import beside, container, of_it, pods
from tests.unit.cli.survey.worlds import NTH, Change, World, at, bare, bind, more

TYPES = [{"InstanceType": "r7g.large"}, {"InstanceType": "r6g.large"}]
CNI = "602401143452.dkr.ecr.eu-north-1.amazonaws.com/amazon-k8s-cni:v1.22.4"
ENDS_SOME = {"MinHealthyPercentage": 30, "MaxHealthyPercentage": 110}
STARTS_FIRST = {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 200}

NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "kafka"}
FOREIGN_KEY = "arn:aws:kms:eu-north-1:999988887777:key/0a1b"
OWN_KEY = FOREIGN_KEY.replace("999988887777", "111122223333")
DISK = "vol-data-orders-mains-0"


def mixed(*, overrides: list[Item], **distribution: Any) -> Change:
    """Let every group choose among types of machines, as a mixed instances policy does."""
    named = {"LaunchTemplateId": "lt-0a1b", "Version": "7"}
    policy = {
        "LaunchTemplate": {"LaunchTemplateSpecification": named, "Overrides": overrides},
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100, **distribution},
    }

    return each_group(LaunchTemplate=None, MixedInstancesPolicy=policy)


def weighted(world: World) -> None:
    """Count machines of 8 vCPUs as four, so that a group of one wants four."""
    types = [{"InstanceType": "r7g.2xlarge", "WeightedCapacity": "4"}]
    mixed(overrides=types)(world)
    for name, group in world.groups.items():
        group |= {"DesiredCapacity": 4, "MaxSize": 8}
        held = [machine for machine, of in world.member_of.items() if of == name]
        group["Instances"] = [_member(machine) for machine in held]


def _member(machine: str) -> Item:
    return {"InstanceId": machine, "LifecycleState": "InService", "HealthStatus": "Healthy"}


def crowded(world: World) -> None:
    """One group of three brokers in zone a, beside the others' groups."""
    name = min(world.groups)
    brokers = [machine for machine in sorted(world.instances) if "mains" in machine]
    for machine in brokers:
        world.member_of[machine] = name
    world.groups[name] |= {
        "DesiredCapacity": 3,
        "MaxSize": 4,
        "AvailabilityZones": ["eu-north-1a", "eu-north-1b", "eu-north-1c"],
        "SuspendedProcesses": [{"ProcessName": "AZRebalance"}],
        "VPCZoneIdentifier": "subnet-a,subnet-b,subnet-c",
        "Instances": [_member(machine) for machine in brokers],
    }


def metadata_handler(*, host_network: bool) -> Change:
    """Exchange the termination handler for one that asks the metadata of its own machine."""
    item = workload("nth", "ops", HANDLER, **{**NTH, "ENABLE_SQS_TERMINATION_DRAINING": "false"})
    item["spec"]["template"]["spec"]["hostNetwork"] = host_network
    near = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    return both(
        without("termination-handler"), added("daemonsets", item), machines(MetadataOptions=near)
    )


def rebalance(state: str) -> Change:
    item = {
        "metadata": meta("full", "shop-kafka", labels={"strimzi.io/cluster": "orders"}),
        "status": {"conditions": [{"type": state, "status": "True"}]},
    }
    return added("kafkarebalances", item)


def disk(**said: Any) -> Change:
    """Say something of the disk of the first broker."""
    return at(f"around.disks.{DISK}", said)


def modification(state: str) -> Change:
    return at("modifications", [{"VolumeId": DISK, "ModificationState": state}])


def network(image: str, *, down: bool = False, **env: str) -> Change:
    item = workload("net", "kube-system", image, **env)
    status = {"desiredNumberScheduled": 6, "numberAvailable": 0 if down else 6}
    return added("daemonsets", {**item, "status": status})


def free(addresses: int) -> Change:
    return at("around.subnets.subnet-a", ("eu-north-1a", addresses))


def of_class(*, zones: str = "abc", ready: str = "True", **spec: Any) -> World:
    """Give all nodes to a NodePool of Karpenter's whose EC2NodeClass says where they start."""
    world = provisioned(bare(), template={"nodeClassRef": NODE_CLASS})
    world.versions["karpenter.k8s.aws"] = "v1"
    subnets = [{"id": f"subnet-{z}", "zone": f"eu-north-1{z}"} for z in zones]
    said = {"type": "Ready", "status": ready, "message": "no AMIs exist"}
    status = {"subnets": subnets, "conditions": [said]}
    usual = {"amiSelectorTerms": [{"alias": "bottlerocket@v1.50.0"}]}
    item = {"metadata": meta("kafka"), "spec": {**usual, **spec}, "status": status}
    world.add("ec2nodeclasses", item)
    return world


def tried(*said: tuple[str, str]) -> Change:
    """Say what groups have tried, the newest first: a status and its message."""
    activities = [
        {"StatusCode": code, "StatusMessage": message, "Cause": "At it."} for code, message in said
    ]
    return both(short, at("activities", activities))


def outside_webhook(
    policy: str, resource: str = "pods", url: str = "https://admit.example.com/pods"
) -> Change:
    """Let somebody outside the cluster be asked about new pods, or about what is named."""
    return webhook("", resource, "CREATE", failurePolicy=policy, clientConfig={"url": url})


def attached(machine: str, state: str = "attached") -> Change:
    """Say to which machine the disk of the first broker is attached."""
    return disk(Attachments=[{"InstanceId": machine, "State": state}])


def reconciled(generation: int, observed: int | None) -> Change:
    status = {} if observed is None else {"observedGeneration": observed}
    return both(at("kafkas.0.metadata.generation", generation), at("kafkas.0.status", status))


def in_tree_and_lost(world: World) -> None:
    """Name the disks as Kubernetes did before there were drivers; the first one is gone."""
    for each in world.kinds["persistentvolumes"]:
        name = each["spec"].pop("csi")["volumeHandle"]
        each["spec"]["awsElasticBlockStore"] = {"volumeID": f"aws://eu-north-1a/{name}"}
    world.around.lost.add(DISK)


PLATFORMS: dict[str, Change] = {
    # What the next machine will be.
    "several types, all on demand =>": mixed(overrides=TYPES),
    "machines that count as several =>": weighted,
    "capacity counted in vCPUs =>": both(
        weighted, each_group(DesiredCapacityType="vcpu", MixedInstancesPolicy={})),
    "a template that asks for spot => group-spot": template(
        InstanceMarketOptions={"MarketType": "spot"}),
    "a template with a capacity block => group-block": template(
        InstanceMarketOptions={"MarketType": "capacity-block"}),
    "a template that somebody has deleted => template-gone": without_template,
    "a launch configuration =>": by_configuration(MetadataOptions={"HttpTokens": "required"}),
    "a launch configuration for spot => group-spot": by_configuration(
        SpotPrice="0.1", MetadataOptions={"HttpTokens": "required"}),
    "a launch configuration that does not say =>": by_configuration(),
    "a template that allows IMDSv1 => metadata-open": template(
        MetadataOptions={"HttpTokens": "optional"}),
    "a template that leaves that to the image or account =>": template(MetadataOptions={}),
    "machines that answer IMDSv1 => metadata-open": machines(
        MetadataOptions={"HttpTokens": "optional", "HttpEndpoint": "enabled"}),
    "machines whose metadata is off =>": machines(
        MetadataOptions={"HttpTokens": "optional", "HttpEndpoint": "disabled"}),
    "a handler that cannot reach the metadata => nth-mode metadata-far": metadata_handler(
        host_network=False),
    "a handler in the machine's own network => nth-mode": metadata_handler(
        host_network=True),
    # How a group replaces.
    "a maintenance policy that ends several => group-maintenance group-zones": both(
        crowded, each_group(InstanceMaintenancePolicy=ENDS_SOME)),
    "a maintenance policy that starts first => group-zones": both(
        crowded, each_group(InstanceMaintenancePolicy=STARTS_FIRST)),
    "no maintenance policy => group-zones": crowded,
    "a placement group => group-placement": each_group(PlacementGroup="low-latency"),
    "a placement group in the template => group-placement": template(
        Placement={"GroupName": "low-latency"}),
    "dedicated hosts => group-placement": template(Placement={"Tenancy": "host"}),
    "a suspended AddToLoadBalancer =>": each_group(
        SuspendedProcesses=[{"ProcessName": "AddToLoadBalancer"}]),
    # Strimzi.
    "a pod set as it should be =>": pod_set(),
    "a pod set that is deleted without its pods => pod-set": both(
        pod_set(), deleted("strimzipodsets")),
    "a pod set whose pods Strimzi cannot make => pod-set": pod_set(
        status={"conditions": [{"type": "Error", "status": "true", "message": "quota"}]}),
    "a pod set that is rolled => pod-set": pod_set(
        status={"pods": 3, "currentPods": 1, "readyPods": 3}),
    "a pod set that was rolled =>": pod_set(status={"pods": 3, "currentPods": 3, "readyPods": 3}),
    "a change that the operator has not carried out => unreconciled": reconciled(8, 7),
    # Of it the missing operator is said, and the pods that are missing.
    "a resource that no operator has looked at =>": reconciled(1, None),
    "a change that it has carried out =>": reconciled(8, 8),
    "a rebalance under way => rebalancing": rebalance("Rebalancing"),
    "a rebalance that is done =>": rebalance("Ready"),
    "a proposal nobody has approved =>": rebalance("ProposalReady"),
    # Disks as EBS has them, whatever their class says.
    "a disk that is gone => volume-gone": lambda w: w.around.lost.add(DISK),
    "a disk that was made gp2 => gp2": disk(VolumeType="gp2", Size=200),
    "a disk on io2 =>": disk(VolumeType="io2"),
    "a disk with Multi-Attach => volume-multi-attach": disk(
        VolumeType="io2", MultiAttachEnabled=True),
    "a disk under another account's key => volume-key": disk(KmsKeyId=FOREIGN_KEY),
    "a disk under a key of its own account =>": disk(
        KmsKeyId=OWN_KEY),
    "a disk that EBS has in error => volume-error": disk(State="error"),
    "a disk of before there were drivers, that is gone => volume-gone": in_tree_and_lost,
    "a disk on its broker's machine =>": attached("i-orders-mains-0"),
    "a disk that hangs on another machine => volume-attached": attached("i-gone"),
    "a disk that does not come off => volume-attached": attached("i-orders-mains-0", "detaching"),
    "a disk that is being changed => volume-modified": modification("optimizing"),
    "a disk whose change failed => volume-modified": modification("failed"),
    "a disk that was changed =>": modification("completed"),
    # The network below the pods.
    "prefixes, and no block of 16 left => subnet-full": both(
        network(CNI, ENABLE_PREFIX_DELEGATION="true"), free(12)),
    "prefixes, and one block of 16 left => subnet-tight": both(
        network(CNI, ENABLE_PREFIX_DELEGATION="true"), free(30)),
    "single addresses, as many left =>": both(network(CNI), free(30)),
    "Cilium =>": network("quay.io/cilium/cilium:v1.18.3"),
    "Cilium that does not run => essential-down": network(
        "quay.io/cilium/cilium:v1.18.3", down=True),
    "Calico that does not run => essential-down": network("quay.io/calico/node:v3.31.0", down=True),
    "a node-local cache of DNS that does not run => essential-down": network(
        "registry.k8s.io/dns/k8s-dns-node-cache:1.26.7", down=True),
    # What runs beside it, and what asks before a pod starts.
    "pods with branch interfaces => branch-interfaces": at(
        "pods.*.spec.containers.0.resources.limits", **{"vpc.amazonaws.com/pod-eni": "1"}),
    "an admission service outside the cluster => webhook-outside": outside_webhook("Fail"),
    "EKS's own beside the API server =>": outside_webhook(
        "Fail", url="https://127.0.0.1:9443/validate"),
    "one that may be missed =>": outside_webhook("Ignore"),
    "one for other things =>": outside_webhook("Fail", "secrets"),
    "a tool that scales down at night => evictor": deployment(
        "ghcr.io/caas-team/py-kube-downscaler:25.2.0"),
    "a tool that moves pods by load => evictor": deployment("turbonomic/kubeturbo:8.15.5"),
    "a tool that reboots sick nodes => evictor": deployment(
        "quay.io/medik8s/self-node-remediation-operator:v0.10.0"),
    # Nodes.
    "machines that live on credits => burstable": machines(InstanceType="t3.xlarge"),
    "a node out of service => node-leaving": at("nodes.0.spec.taints",
        [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]),
}  # fmt: skip


@every_case(("change", "said"), rows(PLATFORMS), ids=PLATFORMS)
def test_a_platform_is_told_what_hurts_it_and_nothing_else(change: Change, said: set[str]) -> None:
    assert checks(changed(own, change)()) == said


CAPACITY = "We currently do not have sufficient r7g.large capacity in eu-north-1a."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (tried(("Failed", CAPACITY)), CAPACITY),
        (tried(("InProgress", ""), ("Failed", CAPACITY)), CAPACITY),
        # What failed before the last success is over.
        (tried(("Successful", ""), ("Failed", CAPACITY)), "is about to be tried"),
        (short, "is about to be tried"),
    ],
    ids=["no capacity in a zone", "tried again", "long ago", "nothing tried"],
)
def test_a_group_that_lacks_a_machine_says_why_aws_gave_none(change: Change, words: str) -> None:
    (said,) = (each for each in surveyed(changed(own, change)()) if each.check == "group-short")
    assert words in said.evidence


REQUIRED = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
LBC = "aws-load-balancer-controller:v3.5.0"
GATES = [{"conditionType": "target-health.elbv2.k8s.aws/boot"}]


def bottlerocket_with_karpenter() -> World:
    """Bottlerocket by version, Cilium in place of the VPC CNI, disks under a key of its own."""
    world = of_class(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1})
    network("quay.io/cilium/cilium:v1.18.3")(world)
    machines(MetadataOptions=REQUIRED)(world)
    for number in range(3):
        world.around.disks[f"{DISK[:-1]}{number}"] = {"KmsKeyId": OWN_KEY}
    return world


def node_groups_behind_a_balancer() -> World:
    """A managed node group per zone, brokers behind readiness gates, machines with IMDSv2."""
    world = managed(bare())
    bind(world, LBC, "shop-kafka", "orders")
    every(world, "pods", readinessGates=GATES)
    template(MetadataOptions=REQUIRED)(world)
    machines(MetadataOptions=REQUIRED)(world)
    pod_set(status={"pods": 3, "currentPods": 3})(world)
    reconciled(12, 12)(world)
    return world


def auto_mode() -> World:
    """EKS Auto Mode with a NodeClass of its own."""
    named = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "kafka"}
    world = provisioned(bare(), auto=True, template={"nodeClassRef": named})
    world.versions["eks.amazonaws.com"] = "v1"
    subnets = [{"id": f"subnet-{zone}", "zone": f"eu-north-1{zone}"} for zone in "abc"]
    world.add(
        "nodeclasses", {"metadata": meta("kafka"), "spec": {}, "status": {"subnets": subnets}}
    )
    return world


def groups_of_many_kinds() -> World:
    """Several types by weight, capacity rebalance, a maintenance policy that starts first."""
    world = own()
    mixed(overrides=[{"InstanceType": "r7g.large"}, {"InstanceType": "r6g.large"}])(world)
    policy = {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 200}
    each_group(InstanceMaintenancePolicy=policy, CapacityRebalance=True)(world)
    apart("topology.kubernetes.io/zone")(world)
    return world


def version_six() -> World:
    """An IPv6 cluster in subnets with one IPv4 address left, of which its pods need none."""
    world = own_groups(bare())
    world.around.cluster["kubernetesNetworkConfig"] = {"ipFamily": "ipv6"}
    free(1)(world)
    return world


BUILT: dict[str, Callable[[], World]] = {
    "Bottlerocket, Karpenter, Cilium =>": bottlerocket_with_karpenter,
    "node groups behind a balancer => managed-node-group": node_groups_behind_a_balancer,
    "Auto Mode => auto-mode": auto_mode,
    "groups of many kinds =>": groups_of_many_kinds,
    "IPv6 => subnet-tight": version_six,
    "a node class as it should be =>": of_class,
    "in two zones of three => karpenter-moved": lambda: of_class(zones="ab"),
    "that is not ready => karpenter-stuck": lambda: of_class(ready="False"),
    "of whatever image is newest => karpenter-latest": lambda: of_class(
        amiSelectorTerms=[{"alias": "al2023@latest"}]
    ),
    "that nobody lists => class-unseen": changed(of_class, at("ec2nodeclasses", [])),
    "that allows IMDSv1 => metadata-open": lambda: of_class(
        metadataOptions={"httpTokens": "optional"}
    ),
}


@every_case(("build", "said"), rows(BUILT), ids=BUILT)
def test_of_a_platform_that_is_right_only_what_is_worth_knowing_is_said(
    build: Callable[[], World], said: set[str]
) -> None:
    assert checks(build()) == said


PORTS = [{"containerPort": 9092, "hostPort": 9092}]


def baseline(*changes: Change) -> Callable[[], World]:
    """Let Pod Security refuse what is beyond its baseline."""
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    enforced = added("namespaces", {"metadata": meta("legacy", labels=labels)})
    return changed(beside, both(enforced, *changes))


BESIDE: dict[str, Callable[[], World]] = {
    # Under Pod Security.
    "as it may be =>": baseline(),
    "a port of the machine's => pods-refused": baseline(container(ports=PORTS)),
    "the machine's network => pods-refused": baseline(pods(hostNetwork=True)),
    "a directory of the machine's => pods-refused": baseline(
        more("beside.*.spec.volumes", {"name": "d", "hostPath": {"path": "/mnt"}})),
    "all rights => pods-refused": baseline(container(securityContext={"privileged": True})),
    "a capability more => pods-refused": baseline(
        container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})),
    "a capability that it may have =>": baseline(
        container(securityContext={"capabilities": {"add": ["CHOWN"]}})),
    # Images, places, claims.
    "Bitnami's versions of before its registry moved => image-gone": lambda: beside(
        "docker.io/bitnami/kafka:3.7.0"),
    "the same without a registry's name => image-gone": lambda: beside(
        "bitnami/kafka:3.9.0-debian-12-r4"),
    "where they were moved to =>": lambda: beside("docker.io/bitnamilegacy/kafka:3.7.0"),
    "a mirror of one's own =>": lambda: beside("registry.example/bitnami/kafka:3.7.0"),
    "apart by a port of the machine's =>": changed(beside, both(
        pods(affinity=None), container(ports=PORTS))),
    "apart by the machine's network =>": changed(beside, both(
        pods(affinity=None, hostNetwork=True), container(ports=[{"containerPort": 9092}]))),
    "one claim for all of them => claim-shared": changed(beside,
        pods(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data-log-0"}}])),
    "claims that end as it shrinks => claims-deleted": changed(beside,
        at("statefulsets.0.spec", persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})),
    "claims that stay =>": changed(beside,
        at("statefulsets.0.spec", persistentVolumeClaimRetentionPolicy={"whenScaled": "Retain"})),
}  # fmt: skip


@every_case(("build", "said"), rows(BESIDE), ids=BESIDE)
def test_anothers_kafka_is_told_what_hurts_it(build: Callable[[], World], said: set[str]) -> None:
    assert of_it(surveyed(build())) == said


def coded(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "DescribeIt")


SCP = "not authorized to perform: it with an explicit deny in a service control policy"
ENDED: dict[str, tuple[Exception, str]] = {
    "a session of SSO": (UnauthorizedSSOTokenError(), "log in"),
    "a token that is not renewed": (TokenRetrievalError(provider="sso", error_msg="expired"),
        "log in"),
    "no credentials": (NoCredentialsError(), "log in"),
    "a token of STS's": (coded("ExpiredTokenException"), "log in"),
    "a region that is not enabled": (coded("AuthFailure"), "log in"),
    "a service control policy": (coded("AccessDenied", SCP), "service control policy"),
    "a permissions boundary": (coded("AccessDenied", "because no permissions boundary allows it"),
        "permissions boundary"),
    "too many calls": (coded("ThrottlingException"), "wait a minute"),
    "too many calls to EC2": (coded("RequestLimitExceeded"), "wait a minute"),
    "a service that is away": (coded("ServiceUnavailable"), "wait a minute"),
    "an answer that nobody foresaw": (KeyError("Instances"), "tell the authors"),
    "a right": (coded("AccessDenied", "no identity-based policy allows it"), "the right"),
}  # fmt: skip


def refusing(error: Exception) -> list[Finding]:
    class Client:
        def __getattr__(self, _call: str) -> Any:
            def refuse(*_: Any, **__: Any) -> Any:
                raise error

            return refuse

    return findings(command.read(own(), lambda *_: Client(), None, CLUSTER))


@pytest.mark.parametrize(("error", "words"), ENDED.values(), ids=ENDED.keys())
def test_what_cannot_be_read_says_once_what_to_do_about_it(error: Exception, words: str) -> None:
    (said,) = refusing(error)
    assert said.check == "unread"
    assert words in said.remedy, said.remedy


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "log in"),
        (0, "reach its API server without a proxy"),
        (403, "the right"),
        (429, "wait a minute"),
        (504, "wait a minute"),
    ],
)
def test_an_api_server_that_does_not_answer_is_no_refusal(status: int, words: str) -> None:
    world = own()

    def refuse(*_: Any, **__: Any) -> Any:
        raise ApiError(status, "", "GET it was refused")

    world._request = refuse
    found = [each for each in surveyed(world) if "GET it was refused" in each.evidence]
    assert found
    assert all(words in each.remedy for each in found), found


def limited(kind: str, most: str) -> Change:
    limits = [{"type": kind, "max": {"memory": most}}]
    return added(
        "limitranges", {"metadata": meta("sizes", "shop-kafka"), "spec": {"limits": limits}}
    )


@pytest.mark.parametrize(
    ("kind", "most", "said"),
    [
        ("Container", "4Gi", {"limit-range"}),
        ("Pod", "4Gi", {"limit-range"}),
        ("Container", "16Gi", set()),
        ("PersistentVolumeClaim", "1Gi", set()),
    ],
)
def test_a_limit_below_what_brokers_have_keeps_them_from_coming_back(
    kind: str, most: str, said: set[str]
) -> None:
    assert checks(changed(own, limited(kind, most))()) == said


@pytest.mark.parametrize(
    ("region", "where"),
    [
        ("eu-north-1", "us-east-1"),
        ("us-gov-west-1", "us-gov-west-1"),
        ("us-gov-east-1", "us-gov-west-1"),
        ("cn-north-1", "cn-northwest-1"),
        (None, "us-east-1"),
    ],
)
def test_aws_health_is_asked_where_its_partition_answers(region: str | None, where: str) -> None:
    assert command.region_of("health", region) == where
    assert command.region_of("ec2", region) == region


def of_kruise() -> World:
    """The same three brokers under OpenKruise's StatefulSet, which is no kind of Kubernetes'."""
    world = beside()
    world.versions["apps.kruise.io"] = "v1beta1"
    asked, ours = world._request, world.kinds.pop("statefulsets")

    def request(method: str, path: str, *given: Any, **named: Any) -> Any:
        if path.endswith("/statefulsets"):
            return {"items": ours if "kruise" in path else [], "metadata": {}}
        return asked(method, path, *given, **named)

    world._request = request
    return world


def test_a_kafka_of_another_kind_of_set_is_found_by_its_image() -> None:
    found = surveyed(of_kruise())
    assert "not-strimzi" in {each.check for each in found}
    assert of_it(found) == set()


def test_a_setting_that_stands_elsewhere_is_no_right_that_is_missing() -> None:
    world = own()
    source = [{"name": "QUEUE_URL", "valueFrom": {"secretKeyRef": {}}}]
    container_of("termination-handler", lambda c: c.update(env=source))(world)
    (said,) = (each for each in surveyed(world) if each.check == "unread")
    assert "is set from another object" in said.evidence
    assert "right" not in said.remedy
    assert "read it there yourself" in said.remedy
