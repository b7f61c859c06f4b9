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
    rows,
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
    "Karpenter before v1, tamed": changed(karpenter_before_v1,
        lambda w: w.only("nodepools")["spec"]["disruption"].update(
            consolidationPolicy="WhenEmpty")),
    "Karpenter with budgets by reason": karpenter_with_reasons,
    "Cluster Autoscaler as it comes": autoscaled,
    "Cluster Autoscaler kept off": lambda: autoscaled(
        "--skip-nodes-with-custom-controller-pods=false", safe="false"),
    "nodes by OIDC listeners": changed(own,
        lambda w: kafka_spec(w).update(
            listeners=[{"name": "ext", "authentication": {"type": "custom"}}])),
    "rules that filter by prefix": changed(
        own, lambda w: w.rules.__setitem__(0, {"source": [{"prefix": "aws."}]})),
}  # fmt: skip
SAID: dict[str, Callable[[], World]] = {
    "terraform-aws-eks => group-zones managed-node-group reclaim expansion gp2": terraform_aws_eks,
    "managed node groups, one per zone => managed-node-group": lambda: managed(bare()),
    "managed node groups that update by halves => managed-node-group managed-update": lambda: (
        managed(bare(), updateConfig={"maxUnavailablePercentage": 100})),
    "a daemon for nothing => managed-node-group cleaner-denies": imds_beside_managed_groups,
    "Karpenter as it comes => karpenter-expiry karpenter-consolidation": lambda: provisioned(bare(),
        template={"expireAfter": "720h"},
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"}),
    "Karpenter before v1 as it comes => karpenter-consolidation": karpenter_before_v1,
    "Karpenter held at night => karpenter-consolidation karpenter-drift": karpenter_weekend,
    "Auto Mode => auto-mode karpenter-consolidation": lambda: provisioned(bare(), auto=True,
        template={"expireAfter": "336h", "terminationGracePeriod": "24h0m0s"},
        disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"}),
    "NTH's README => hook-default hook-heartbeat nth-queue": changed(own, old_hook),
    "no rack => rack": changed(own, lambda w: kafka_spec(w).pop("rack")),
    "disks of the nodes => local-volume": local_nvme,
    "an operator by OLM for others => operator-missing": olm_elsewhere,
    "an operator of its own namespace => operator-missing": own_namespace_operator,
    "combined roles => combined": combined,
    "ZooKeeper => zookeeper strimzi-before-v1": zookeeper_era,
    "a budget of a share =>": changed(lambda: provisioned(bare()),
        lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%")),
    "a budget of a share and no cleaner => webhook-dead budget-blocks": changed(
        lambda: provisioned(bare()),
        lambda w: (w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"),
            webhook_gone(w), w.only("poddisruptionbudgets")["spec"].update(minAvailable="50%"))),
    "half of the pods at once => budget-loose": changed(lambda: provisioned(bare()),
        lambda w: w.only("poddisruptionbudgets")["spec"].update(minAvailable=3)),
    "Drain Cleaner that denies beside NTH => cleaner-denies": changed(
        own,
        lambda w: [
            c.update(env=[])
            for d in w.kinds["deployments"]
            for c in d["spec"]["template"]["spec"]["containers"]
            if "cleaner" in c["image"]
        ],
    ),
    "Drain Cleaner uninstalled, its webhook left => webhook-dead": changed(own, webhook_gone),
    "Cluster Autoscaler that takes custom kinds => autoscaler": lambda: autoscaled(
        "--skip-nodes-with-custom-controller-pods=false"),
    "brokers that say they are safe to evict => autoscaler": lambda: autoscaled(safe="true"),
    "spot => spot": spot,
    "two Kafkas of one name => listener grace": two_kafkas,
    "another Kafka beside it => not-strimzi not-running image-gone": changed(own, bitnami),
    "a binding after the pods => gate-missing lbc-backoff": changed(own, bound),
    "no EventBridge rule => nth-deaf": changed(own, lambda w: w.rules.clear()),
    "a rule for spot alone => nth-deaf": changed(
        own, lambda w: w.rules.__setitem__(0, {"source": ["aws.ec2"]})),
    "Strimzi says why => not-running": changed(own, lambda w: said_by_strimzi(w, "NotReady")),
    "a broker that does not come back => not-running": changed(
        own, lambda w: w.kinds["pods"][0]["status"]["conditions"][0].update(status="False")),
    "no volumes => ephemeral": changed(
        own, lambda w: every(w, "pods", volumes=[{"name": "d", "emptyDir": {}}])),
    "EFS => network-file-system": changed(
        own, lambda w: every(w, "persistentvolumes", csi={"driver": "efs.csi.aws.com"})),
}  # fmt: skip


@every_case("build", HEALTHY.values(), ids=HEALTHY.keys())
def test_of_a_healthy_cluster_nothing_is_said(build: Callable[[], World]) -> None:
    assert surveyed(build()) == []


@every_case(("build", "said"), rows(SAID), ids=SAID)
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
