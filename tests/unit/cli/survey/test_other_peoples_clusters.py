"""Clusters as other people build them: what an expert would say of each, and not a word more."""

from __future__ import annotations

from collections.abc import Callable

from core.checks.finding import Weight
from tests.every_case import every_case
from tests.unit.cli.survey.machines import managed, provisioned
from tests.unit.cli.survey.others import (
    argued_handler,
    autoscaled,
    bitnami,
    bound,
    changed,
    checks,
    combined,
    every,
    imds_beside_managed_groups,
    kafka_spec,
    karpenter_before_v1,
    karpenter_that_never_consolidates,
    karpenter_weekend,
    karpenter_with_reasons,
    local_nvme,
    mirrored_operator,
    old_hook,
    olm,
    olm_elsewhere,
    own,
    own_namespace_operator,
    said_by_strimzi,
    spot,
    surveyed,
    terraform_aws_eks,
    two_kafkas,
    webhook_gone,
    windows_beside,
    zookeeper_era,
)
from tests.unit.cli.survey.worlds import World, bare

HEALTHY: dict[str, Callable[[], World]] = {
    "groups of one's own, termination handler, Drain Cleaner that lets the budget answer": own,
    "Strimzi by OLM for every namespace": olm,
    "settings as arguments": argued_handler,
    "a warning of Strimzi's": changed(own, lambda w: said_by_strimzi(w, "Warning")),
    "Strimzi from a mirror": mirrored_operator,
    "a termination handler for Windows beside it": windows_beside,
    "Karpenter that never consolidates": karpenter_that_never_consolidates,
    "Karpenter alone, tamed": lambda: provisioned(bare()),
    "Karpenter before v1, tamed": changed(
        karpenter_before_v1,
        lambda w: w.only("nodepools")["spec"]["disruption"].update(consolidationPolicy="WhenEmpty"),
    ),
    "Karpenter with budgets by reason": karpenter_with_reasons,
    "Cluster Autoscaler as it comes": autoscaled,
    "Cluster Autoscaler kept off": lambda: autoscaled(
        "--skip-nodes-with-custom-controller-pods=false", safe="false"
    ),
    "nodes by OIDC listeners": changed(
        own,
        lambda w: kafka_spec(w).update(
            listeners=[{"name": "ext", "authentication": {"type": "custom"}}]
        ),
    ),
    "rules that filter by prefix": changed(
        own, lambda w: w.rules.__setitem__(0, {"source": [{"prefix": "aws."}]})
    ),
}
SAID: dict[str, tuple[Callable[[], World], set[str]]] = {
    "terraform-aws-eks's defaults": (
        terraform_aws_eks,
        {"group-zones", "managed-node-group", "reclaim", "expansion", "gp2"},
    ),
    "managed node groups, one per zone": (lambda: managed(bare()), {"managed-node-group"}),
    "managed node groups that update by halves": (
        lambda: managed(bare(), updateConfig={"maxUnavailablePercentage": 100}),
        {"managed-node-group", "managed-update"},
    ),
    "a daemon that managed node groups do not need": (
        imds_beside_managed_groups,
        {"managed-node-group", "cleaner-denies"},
    ),
    "Karpenter as it comes": (
        lambda: provisioned(
            bare(),
            template={"expireAfter": "720h"},
            disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"},
        ),
        {"karpenter-expiry", "karpenter-consolidation"},
    ),
    "Karpenter before v1 as it comes": (karpenter_before_v1, {"karpenter-consolidation"}),
    "Karpenter with a budget for the night": (
        karpenter_weekend,
        {"karpenter-consolidation", "karpenter-drift"},
    ),
    "Auto Mode": (
        lambda: provisioned(
            bare(),
            auto=True,
            template={"expireAfter": "336h", "terminationGracePeriod": "24h0m0s"},
            disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"},
        ),
        {"auto-mode", "karpenter-consolidation"},
    ),
    "NTH's README": (changed(own, old_hook), {"hook-default", "hook-heartbeat", "nth-queue"}),
    "no rack": (changed(own, lambda w: kafka_spec(w).pop("rack")), {"rack"}),
    "disks of the nodes": (local_nvme, {"local-volume"}),
    "an operator by OLM for others": (olm_elsewhere, {"operator-missing"}),
    "an operator of its own namespace": (own_namespace_operator, {"operator-missing"}),
    "combined roles": (combined, {"combined"}),
    "ZooKeeper": (zookeeper_era, {"zookeeper", "strimzi-before-v1"}),
    "a budget of a share": (
        changed(
            lambda: provisioned(bare()),
            lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
        ),
        set(),
    ),
    "a budget of a share and no cleaner": (
        changed(
            lambda: provisioned(bare()),
            lambda w: (
                w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
                webhook_gone(w),
                w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
            ),
        ),
        {"webhook-dead", "budget-blocks"},
    ),
    "half of the pods at once": (
        changed(
            lambda: provisioned(bare()),
            lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable=3),
        ),
        {"budget-loose"},
    ),
    "Drain Cleaner that denies beside NTH": (
        changed(
            own,
            lambda w: [
                c.update(env=[])
                for d in w.kinds["deployments"]
                for c in d["spec"]["template"]["spec"]["containers"]
                if "cleaner" in c["image"]
            ],
        ),
        {"cleaner-denies"},
    ),
    "Drain Cleaner uninstalled, its webhook left": (changed(own, webhook_gone), {"webhook-dead"}),
    "Cluster Autoscaler that takes custom kinds": (
        lambda: autoscaled("--skip-nodes-with-custom-controller-pods=false"),
        {"autoscaler"},
    ),
    "brokers that say they are safe to evict": (lambda: autoscaled(safe="true"), {"autoscaler"}),
    "spot": (spot, {"spot"}),
    "two Kafkas of one name": (two_kafkas, {"listener", "grace"}),
    "another Kafka beside it": (
        changed(own, bitnami),
        {"not-strimzi", "not-running", "image-gone"},
    ),
    "a binding after the pods": (changed(own, bound), {"gate-missing", "lbc-backoff"}),
    "no EventBridge rule": (changed(own, lambda w: w.rules.clear()), {"nth-deaf"}),
    "a rule for spot alone": (
        changed(own, lambda w: w.rules.__setitem__(0, {"source": ["aws.ec2"]})),
        {"nth-deaf"},
    ),
    "Strimzi says why": (changed(own, lambda w: said_by_strimzi(w, "NotReady")), {"not-running"}),
    "a broker that does not come back": (
        changed(
            own, lambda w: w.kinds["pods"][0]["status"]["conditions"][0].update(status="False")
        ),
        {"not-running"},
    ),
    "no volumes": (
        changed(own, lambda w: every(w, "pods", volumes=[{"name": "d", "emptyDir": {}}])),
        {"ephemeral"},
    ),
    "EFS": (
        changed(own, lambda w: every(w, "persistentvolumes", csi={"driver": "efs.csi.aws.com"})),
        {"network-file-system"},
    ),
}


@every_case("build", HEALTHY.values(), ids=HEALTHY.keys())
def test_of_a_healthy_cluster_nothing_is_said(build: Callable[[], World]) -> None:
    assert surveyed(build()) == []


@every_case(("build", "said"), SAID.values(), ids=SAID.keys())
def test_an_expert_would_say_the_same(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == said


def test_what_is_found_of_two_kafkas_names_the_one_it_is_of() -> None:
    found = surveyed(two_kafkas())
    assert {each.subject for each in found} == {"Kafka lab/orders"}


@every_case(
    "kind",
    [
        *(
            "pods",
            "nodes",
            "deployments",
            "statefulsets",
            "kafkatopics",
            "storageclasses",
            "kafkas",
        ),
        *("cronjobs", "daemonsets", "kafkanodepools", "namespaces", "persistentvolumes"),
        *("poddisruptionbudgets", "targetgroupbindings", "validatingwebhookconfigurations"),
    ],
)
def test_what_may_not_be_listed_is_unknown_with_the_reason(kind: str) -> None:
    world = own()
    world.refused = {kind}
    found = surveyed(world)
    unread = [each for each in found if each.weight is Weight.UNKNOWN]
    assert unread
    assert all("403" in each.evidence for each in unread)
    # Nothing is made of what could not be read.
    assert set(found) == set(unread)


def test_a_setting_from_another_object_is_not_guessed() -> None:
    world = own()
    (container,) = world.kinds["deployments"][-1]["spec"]["template"]["spec"]["containers"]
    container["env"] += [
        {"name": name, "value": "-1"} for name in ("POD_TERMINATION_GRACE_PERIOD", "MANAGED_TAG")
    ]
    container["envFrom"] = [{"configMapRef": {"name": "x"}}]
    (found, *_) = surveyed(world)
    assert found.weight is Weight.UNKNOWN
    assert "HEARTBEAT_INTERVAL" in found.evidence


def test_nodes_of_another_account_are_not_taken_for_nodes_without_a_group() -> None:
    world = own()
    world.instances, world.member_of = {}, {}
    found = surveyed(world)
    assert {each.weight for each in found} == {Weight.UNKNOWN}
    assert "another account" in found[0].evidence
