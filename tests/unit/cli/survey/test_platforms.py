"""Clusters as companies run them on EKS, each with what a survey must say of it, and no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.cli.survey.others import changed, checks, own, surveyed
from tests.unit.cli.survey.platforms import (
    FOREIGN_KEY,
    Change,
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
from tests.unit.cli.survey.worlds import World

TYPES = [{"InstanceType": "r7g.large"}, {"InstanceType": "r6g.large"}]
CNI = "602401143452.dkr.ecr.eu-north-1.amazonaws.com/amazon-k8s-cni:v1.22.4"
ENDS_SOME = {"MinHealthyPercentage": 30, "MaxHealthyPercentage": 110}
STARTS_FIRST = {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 200}
SPAN = {"group-zones"}

PLATFORMS: dict[str, tuple[Change, set[str]]] = {
    # What the next machine will be.
    "several types, all on demand": (mixed(overrides=TYPES), set()),
    "machines that count as several": (weighted, set()),
    "capacity counted in vCPUs": (by_vcpus, set()),
    "a template that asks for spot": (
        template(InstanceMarketOptions={"MarketType": "spot"}),
        {"group-spot"},
    ),
    "a template with a capacity block": (
        template(InstanceMarketOptions={"MarketType": "capacity-block"}),
        {"group-block"},
    ),
    "a template that somebody has deleted": (without_template, {"template-gone"}),
    "a launch configuration": (by_configuration(MetadataOptions={"HttpTokens": "required"}), set()),
    "a launch configuration for spot": (
        by_configuration(SpotPrice="0.1", MetadataOptions={"HttpTokens": "required"}),
        {"group-spot"},
    ),
    "a launch configuration that does not say": (by_configuration(), set()),
    "a template that allows IMDSv1": (
        template(MetadataOptions={"HttpTokens": "optional"}),
        {"metadata-open"},
    ),
    "a template that leaves that to the image or account": (
        template(MetadataOptions={}),
        set(),
    ),
    "machines that answer IMDSv1": (
        machines(MetadataOptions={"HttpTokens": "optional", "HttpEndpoint": "enabled"}),
        {"metadata-open"},
    ),
    "machines whose metadata is off": (
        machines(MetadataOptions={"HttpTokens": "optional", "HttpEndpoint": "disabled"}),
        set(),
    ),
    "a handler that cannot reach the metadata": (
        lambda w: (
            metadata_handler(host_network=False)(w),
            machines(MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1})(w),
        ),
        {"nth-mode", "metadata-far"},
    ),
    "a handler in the machine's own network": (
        lambda w: (
            metadata_handler(host_network=True)(w),
            machines(MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1})(w),
        ),
        {"nth-mode"},
    ),
    # How a group replaces.
    "a maintenance policy that ends several": (
        lambda w: (crowded(w), each_group(InstanceMaintenancePolicy=ENDS_SOME)(w)),
        {"group-maintenance"} | SPAN,
    ),
    "a maintenance policy that starts first": (
        lambda w: (crowded(w), each_group(InstanceMaintenancePolicy=STARTS_FIRST)(w)),
        SPAN,
    ),
    "no maintenance policy": (crowded, SPAN),
    "a placement group": (each_group(PlacementGroup="low-latency"), {"group-placement"}),
    "a placement group in the template": (
        template(Placement={"GroupName": "low-latency"}),
        {"group-placement"},
    ),
    "dedicated hosts": (template(Placement={"Tenancy": "host"}), {"group-placement"}),
    "capacity rebalance on demand": (each_group(CapacityRebalance=True), set()),
    "a suspended AddToLoadBalancer": (
        each_group(SuspendedProcesses=[{"ProcessName": "AddToLoadBalancer"}]),
        set(),
    ),
    # Strimzi.
    "a pod set as it should be": (pod_set(), set()),
    "a pod set that is deleted without its pods": (
        pod_set_marked(deletionTimestamp="2026-11-01T00:00:00Z"),
        {"pod-set"},
    ),
    "a pod set whose pods Strimzi cannot make": (
        pod_set(status={"conditions": [{"type": "Error", "status": "true", "message": "quota"}]}),
        {"pod-set"},
    ),
    "a pod set that is rolled": (
        pod_set(status={"pods": 3, "currentPods": 1, "readyPods": 3}),
        {"pod-set"},
    ),
    "a pod set that was rolled": (
        pod_set(status={"pods": 3, "currentPods": 3, "readyPods": 3}),
        set(),
    ),
    "a change that the operator has not carried out": (reconciled(8, 7), {"unreconciled"}),
    # Of it the missing operator is said, and the pods that are missing.
    "a resource that no operator has looked at": (reconciled(1, None), set()),
    "a change that it has carried out": (reconciled(8, 8), set()),
    "a rebalance under way": (rebalance("Rebalancing"), {"rebalancing"}),
    "a rebalance that is done": (rebalance("Ready"), set()),
    "a proposal nobody has approved": (rebalance("ProposalReady"), set()),
    # Disks as EBS has them, whatever their class says.
    "a disk that is gone": (lost_disk, {"volume-gone"}),
    "a disk that was made gp2": (disk(VolumeType="gp2", Size=200), {"gp2"}),
    "a disk on io2": (disk(VolumeType="io2"), set()),
    "a disk with Multi-Attach": (
        disk(VolumeType="io2", MultiAttachEnabled=True),
        {"volume-multi-attach"},
    ),
    "a disk under another account's key": (disk(KmsKeyId=FOREIGN_KEY), {"volume-key"}),
    "a disk under a key of its own account": (
        disk(KmsKeyId=FOREIGN_KEY.replace("999988887777", "111122223333")),
        set(),
    ),
    "a disk that EBS has in error": (disk(State="error"), {"volume-error"}),
    "a disk of before there were drivers, that is gone": (in_tree_and_lost, {"volume-gone"}),
    "a disk on its broker's machine": (attached("i-orders-mains-0"), set()),
    "a disk that hangs on another machine": (attached("i-gone"), {"volume-attached"}),
    "a disk that does not come off": (
        attached("i-orders-mains-0", "detaching"),
        {"volume-attached"},
    ),
    "a disk that is being changed": (modification("optimizing"), {"volume-modified"}),
    "a disk whose change failed": (modification("failed"), {"volume-modified"}),
    "a disk that was changed": (modification("completed"), set()),
    # The network below the pods.
    "prefixes, and no block of 16 left": (
        lambda w: (network(CNI, ENABLE_PREFIX_DELEGATION="true")(w), free(12)(w)),
        {"subnet-full"},
    ),
    "prefixes, and one block of 16 left": (
        lambda w: (network(CNI, ENABLE_PREFIX_DELEGATION="true")(w), free(30)(w)),
        {"subnet-tight"},
    ),
    "single addresses, as many left": (lambda w: (network(CNI)(w), free(30)(w)), set()),
    "Cilium": (network("quay.io/cilium/cilium:v1.18.3"), set()),
    "Cilium that does not run": (
        network("quay.io/cilium/cilium:v1.18.3", down=True),
        {"essential-down"},
    ),
    "Calico that does not run": (
        network("quay.io/calico/node:v3.31.0", down=True),
        {"essential-down"},
    ),
    "a node-local cache of DNS that does not run": (
        network("registry.k8s.io/dns/k8s-dns-node-cache:1.26.7", down=True),
        {"essential-down"},
    ),
    # What runs beside it, and what asks before a pod starts.
    "pods with branch interfaces": (
        pods_limited(**{"vpc.amazonaws.com/pod-eni": "1"}),
        {"branch-interfaces"},
    ),
    "an admission service outside the cluster": (outside_webhook("Fail"), {"webhook-outside"}),
    "EKS's own beside the API server": (
        outside_webhook("Fail", url="https://127.0.0.1:9443/validate"),
        set(),
    ),
    "one that may be missed": (outside_webhook("Ignore"), set()),
    "one for other things": (outside_webhook("Fail", "secrets"), set()),
    "a tool that scales down at night": (
        running("ghcr.io/caas-team/py-kube-downscaler:25.2.0"),
        {"evictor"},
    ),
    "a tool that moves pods by load": (running("turbonomic/kubeturbo:8.15.5"), {"evictor"}),
    "a tool that reboots sick nodes": (
        running("quay.io/medik8s/self-node-remediation-operator:v0.10.0"),
        {"evictor"},
    ),
    # Nodes.
    "machines that live on credits": (machines(InstanceType="t3.xlarge"), {"burstable"}),
    "a node out of service": (tainted("node.kubernetes.io/out-of-service"), {"node-leaving"}),
    "Fargate": (fargate, {"machine-unknown"}),
}


@pytest.mark.parametrize(("change", "said"), PLATFORMS.values(), ids=PLATFORMS.keys())
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


CLASSES: dict[str, tuple[Callable[[], World], set[str]]] = {
    "as it should be": (of_class, set()),
    "in two zones of three": (lambda: of_class(zones="ab"), {"karpenter-moved"}),
    "that is not ready": (lambda: of_class(ready="False"), {"karpenter-stuck"}),
    "of whatever image is newest": (
        lambda: of_class(amiSelectorTerms=[{"alias": "al2023@latest"}]),
        {"karpenter-latest"},
    ),
    "that nobody lists": (lambda: without_class(of_class()), {"class-unseen"}),
    "that allows IMDSv1": (
        lambda: of_class(metadataOptions={"httpTokens": "optional"}),
        {"metadata-open"},
    ),
}


@pytest.mark.parametrize(("build", "said"), CLASSES.values(), ids=CLASSES.keys())
def test_a_node_class_says_where_and_what_karpenter_starts(
    build: Callable[[], World], said: set[str]
) -> None:
    assert checks(build()) == said
