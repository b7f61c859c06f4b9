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
from tests.unit.cli.survey.changes import apart
from tests.unit.cli.survey.machines import managed, own_groups, provisioned
from tests.unit.cli.survey.manifests import meta
from tests.unit.cli.survey.others import changed, checks, every, own, rows, surveyed
from tests.unit.cli.survey.others import checks as found_of
from tests.unit.cli.survey.platforms import (
    FOREIGN_KEY,
    attached,
    by_configuration,
    by_vcpus,
    crowded,
    disk,
    each_group,
    fargate,
    free,
    in_tree_and_lost,
    lost_disk,
    machines,
    metadata_handler,
    mixed,
    modification,
    network,
    of_class,
    outside_webhook,
    pod_set,
    pod_set_marked,
    pods_limited,
    rebalance,
    reconciled,
    running,
    short,
    tainted,
    template,
    tried,
    weighted,
    without_class,
    without_template,
)
from tests.unit.cli.survey.test_odd_clusters import beside, container, of_it, pods
from tests.unit.cli.survey.worlds import Change, World, bare, bind

TYPES = [{"InstanceType": "r7g.large"}, {"InstanceType": "r6g.large"}]
CNI = "602401143452.dkr.ecr.eu-north-1.amazonaws.com/amazon-k8s-cni:v1.22.4"
ENDS_SOME = {"MinHealthyPercentage": 30, "MaxHealthyPercentage": 110}
STARTS_FIRST = {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 200}

PLATFORMS: dict[str, Change] = {
    # What the next machine will be.
    "several types, all on demand =>": mixed(overrides=TYPES),
    "machines that count as several =>": weighted,
    "capacity counted in vCPUs =>": by_vcpus,
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
    "a handler that cannot reach the metadata => nth-mode metadata-far": lambda w: (
        metadata_handler(host_network=False)(w),
        machines(MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1})(w)),
    "a handler in the machine's own network => nth-mode": lambda w: (
        metadata_handler(host_network=True)(w),
        machines(MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1})(w)),
    # How a group replaces.
    "a maintenance policy that ends several => group-maintenance group-zones": lambda w: (
        crowded(w), each_group(InstanceMaintenancePolicy=ENDS_SOME)(w)),
    "a maintenance policy that starts first => group-zones": lambda w: (crowded(w),
        each_group(InstanceMaintenancePolicy=STARTS_FIRST)(w)),
    "no maintenance policy => group-zones": crowded,
    "a placement group => group-placement": each_group(PlacementGroup="low-latency"),
    "a placement group in the template => group-placement": template(
        Placement={"GroupName": "low-latency"}),
    "dedicated hosts => group-placement": template(Placement={"Tenancy": "host"}),
    "capacity rebalance on demand =>": each_group(CapacityRebalance=True),
    "a suspended AddToLoadBalancer =>": each_group(
        SuspendedProcesses=[{"ProcessName": "AddToLoadBalancer"}]),
    # Strimzi.
    "a pod set as it should be =>": pod_set(),
    "a pod set that is deleted without its pods => pod-set": pod_set_marked(
        deletionTimestamp="2026-11-01T00:00:00Z"),
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
    "a disk that is gone => volume-gone": lost_disk,
    "a disk that was made gp2 => gp2": disk(VolumeType="gp2", Size=200),
    "a disk on io2 =>": disk(VolumeType="io2"),
    "a disk with Multi-Attach => volume-multi-attach": disk(
        VolumeType="io2", MultiAttachEnabled=True),
    "a disk under another account's key => volume-key": disk(KmsKeyId=FOREIGN_KEY),
    "a disk under a key of its own account =>": disk(
        KmsKeyId=FOREIGN_KEY.replace("999988887777", "111122223333")),
    "a disk that EBS has in error => volume-error": disk(State="error"),
    "a disk of before there were drivers, that is gone => volume-gone": in_tree_and_lost,
    "a disk on its broker's machine =>": attached("i-orders-mains-0"),
    "a disk that hangs on another machine => volume-attached": attached("i-gone"),
    "a disk that does not come off => volume-attached": attached("i-orders-mains-0", "detaching"),
    "a disk that is being changed => volume-modified": modification("optimizing"),
    "a disk whose change failed => volume-modified": modification("failed"),
    "a disk that was changed =>": modification("completed"),
    # The network below the pods.
    "prefixes, and no block of 16 left => subnet-full": lambda w: (
        network(CNI, ENABLE_PREFIX_DELEGATION="true")(w), free(12)(w)),
    "prefixes, and one block of 16 left => subnet-tight": lambda w: (
        network(CNI, ENABLE_PREFIX_DELEGATION="true")(w), free(30)(w)),
    "single addresses, as many left =>": lambda w: (network(CNI)(w), free(30)(w)),
    "Cilium =>": network("quay.io/cilium/cilium:v1.18.3"),
    "Cilium that does not run => essential-down": network(
        "quay.io/cilium/cilium:v1.18.3", down=True),
    "Calico that does not run => essential-down": network("quay.io/calico/node:v3.31.0", down=True),
    "a node-local cache of DNS that does not run => essential-down": network(
        "registry.k8s.io/dns/k8s-dns-node-cache:1.26.7", down=True),
    # What runs beside it, and what asks before a pod starts.
    "pods with branch interfaces => branch-interfaces": pods_limited(
        **{"vpc.amazonaws.com/pod-eni": "1"}),
    "an admission service outside the cluster => webhook-outside": outside_webhook("Fail"),
    "EKS's own beside the API server =>": outside_webhook(
        "Fail", url="https://127.0.0.1:9443/validate"),
    "one that may be missed =>": outside_webhook("Ignore"),
    "one for other things =>": outside_webhook("Fail", "secrets"),
    "a tool that scales down at night => evictor": running(
        "ghcr.io/caas-team/py-kube-downscaler:25.2.0"),
    "a tool that moves pods by load => evictor": running("turbonomic/kubeturbo:8.15.5"),
    "a tool that reboots sick nodes => evictor": running(
        "quay.io/medik8s/self-node-remediation-operator:v0.10.0"),
    # Nodes.
    "machines that live on credits => burstable": machines(InstanceType="t3.xlarge"),
    "a node out of service => node-leaving": tainted("node.kubernetes.io/out-of-service"),
    "Fargate => machine-unknown": fargate,
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


CLASSES: dict[str, Callable[[], World]] = {
    "as it should be =>": of_class,
    "in two zones of three => karpenter-moved": lambda: of_class(zones="ab"),
    "that is not ready => karpenter-stuck": lambda: of_class(ready="False"),
    "of whatever image is newest => karpenter-latest": lambda: of_class(
        amiSelectorTerms=[{"alias": "al2023@latest"}]
    ),
    "that nobody lists => class-unseen": lambda: without_class(of_class()),
    "that allows IMDSv1 => metadata-open": lambda: of_class(
        metadataOptions={"httpTokens": "optional"}
    ),
}


@every_case(("build", "said"), rows(CLASSES), ids=CLASSES)
def test_a_node_class_says_what_is_started(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == said


def one_claim(world: World) -> None:
    for each in world.beside:
        each["spec"]["volumes"] = [
            {"name": "d", "persistentVolumeClaim": {"claimName": "data-log-0"}}
        ]


def claims_go(**policy: str) -> Change:
    return lambda world: world.only("statefulsets")["spec"].update(
        persistentVolumeClaimRetentionPolicy=policy
    )


PORTS = [{"containerPort": 9092, "hostPort": 9092}]
BESIDE: dict[str, Callable[[], World]] = {
    "Bitnami's versions of before its registry moved => image-gone": lambda: beside(
        "docker.io/bitnami/kafka:3.7.0"),
    "the same without a registry's name => image-gone": lambda: beside(
        "bitnami/kafka:3.9.0-debian-12-r4"),
    "where they were moved to =>": lambda: beside("docker.io/bitnamilegacy/kafka:3.7.0"),
    "a mirror of one's own =>": lambda: beside("registry.example/bitnami/kafka:3.7.0"),
    "apart by a port of the machine's =>": lambda: changed_beside(
        pods(affinity=None), container(ports=PORTS)),
    "apart by the machine's network =>": lambda: changed_beside(
        pods(affinity=None, hostNetwork=True), container(ports=[{"containerPort": 9092}])),
    "one claim for all of them => claim-shared": lambda: changed_beside(one_claim),
    "claims that end as it shrinks => claims-deleted": lambda: changed_beside(
        claims_go(whenScaled="Delete")),
    "claims that stay =>": lambda: changed_beside(claims_go(whenScaled="Retain")),
}  # fmt: skip


def changed_beside(*changes: Change) -> World:
    world = beside()
    for change in changes:
        change(world)
    return world


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
    item = {"metadata": meta("sizes", "shop-kafka"), "spec": {"limits": limits}}
    return lambda world: world.add("limitranges", item)


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
    world = own()
    limited(kind, most)(world)
    assert checks(world) == said


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


def baseline(world: World) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    world.add("namespaces", {"metadata": meta("legacy", labels=labels)})


HOST_PATH = [{"name": "d", "hostPath": {"path": "/mnt"}}]
LAX: dict[str, tuple[Change, ...]] = {
    "as it may be =>": (),
    "a port of the machine's => pods-refused": (container(ports=PORTS),),
    "the machine's network => pods-refused": (pods(hostNetwork=True),),
    "a directory of the machine's => pods-refused": (
        lambda w: [each["spec"]["volumes"].extend(HOST_PATH) for each in w.beside],),
    "all rights => pods-refused": (container(securityContext={"privileged": True}),),
    "a capability more => pods-refused": (
        container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),),
    "a capability that it may have =>": (
        container(securityContext={"capabilities": {"add": ["CHOWN"]}}),),
}  # fmt: skip


@every_case(("changes", "said"), rows(LAX), ids=LAX)
def test_what_pod_security_refuses_stays_away(changes: tuple[Change, ...], said: set[str]) -> None:
    world = changed_beside(baseline, *changes)
    assert of_it(surveyed(world)) == said


def test_a_setting_that_stands_elsewhere_is_no_right_that_is_missing() -> None:
    world = own()
    for each in world.kinds["deployments"]:
        if each["metadata"]["name"] == "nth":
            (settings,) = (c["env"] for c in each["spec"]["template"]["spec"]["containers"])
            settings[:] = [{"name": "QUEUE_URL", "valueFrom": {"secretKeyRef": {}}}]
    (said,) = (each for each in surveyed(world) if each.check == "unread")
    assert "is set from another object" in said.evidence
    assert "right" not in said.remedy
    assert "read it there yourself" in said.remedy


OWN_KEY = FOREIGN_KEY.replace("999988887777", "111122223333")
REQUIRED = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
LBC = "aws-load-balancer-controller:v3.5.0"
GATES = [{"conditionType": "target-health.elbv2.k8s.aws/boot"}]


def bottlerocket_with_karpenter() -> World:
    """Bottlerocket by version, Cilium in place of the VPC CNI, disks under a key of its own."""
    world = of_class(metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1})
    network("quay.io/cilium/cilium:v1.18.3")(world)
    machines(MetadataOptions=REQUIRED)(world)
    for number in range(3):
        world.around.disks[f"vol-data-orders-mains-{number}"] = {"KmsKeyId": OWN_KEY}
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


WHOLE_PLATFORMS: dict[str, Callable[[], World]] = {
    "Bottlerocket, Karpenter, Cilium =>": bottlerocket_with_karpenter,
    "node groups behind a balancer => managed-node-group": node_groups_behind_a_balancer,
    "Auto Mode => auto-mode": auto_mode,
    "groups of many kinds =>": groups_of_many_kinds,
    "IPv6 => subnet-tight": version_six,
}


@every_case(("build", "said"), rows(WHOLE_PLATFORMS), ids=WHOLE_PLATFORMS)
def test_of_a_platform_that_is_right_only_what_is_worth_knowing_is_said(
    build: Callable[[], World], said: set[str]
) -> None:
    assert found_of(build()) == said
