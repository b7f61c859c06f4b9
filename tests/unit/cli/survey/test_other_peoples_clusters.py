"""Clusters as other people build them: what an expert would say of each, and not a word more.

Of any of them `adopt plan` takes the description at every level, or it says why not.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.survey import command, draft
from core.checks.finding import Weight
from core.cluster import adoption
from core.ground.errors import InvalidInput
from tests.every_case import every_case
from tests.unit.cli.survey import machines
from tests.unit.cli.survey.around import CLUSTER
from tests.unit.cli.survey.changes import HANDLER, added, both, container_of, drains_by, without
from tests.unit.cli.survey.changes_of_machines import karpenters, of_eks, started_by
from tests.unit.cli.survey.descriptions import ARN, described
from tests.unit.cli.survey.descriptions import at as at_level
from tests.unit.cli.survey.machines import provisioned
from tests.unit.cli.survey.manifests import meta, storage_class, workload
from tests.unit.cli.survey.others import (
    autoscaled,
    bound,
    changed,
    checks,
    combined,
    kafka_spec,
    own,
    rows,
    surveyed,
    terraform_aws_eks,
    two_kafkas,
    zookeeper_era,
)
from tests.unit.cli.survey.worlds import QUEUE_URL, Change, World, at, bare


def olm(namespaces: str = "") -> World:
    """Strimzi by OLM for these namespaces, or every one, in one of its own, by digest."""
    world = own()
    operator = world.kinds["deployments"][0]["spec"]["template"]
    (container,) = operator["spec"]["containers"]
    container["image"] = "registry.redhat.io/amq-streams/strimzi-rhel9-operator@sha256:0a"
    field = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
    container["env"] = [{"name": "STRIMZI_NAMESPACE", "valueFrom": field}]
    operator["metadata"] = {"annotations": {"olm.targetNamespaces": namespaces}}
    return world


def local_nvme() -> World:
    world = own()
    for each, held in zip(world.kinds["persistentvolumes"], world.kinds["nodes"], strict=True):
        name = held["metadata"]["name"]
        term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
        each["spec"] |= {
            "csi": None,
            "local": {"path": "/mnt/nvme"},
            "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        }
    world.kinds["storageclasses"] = [
        storage_class("fast", provisioner="kubernetes.io/no-provisioner")
        | {"allowVolumeExpansion": False}
    ]
    return world


def karpenter_before_v1() -> World:
    world = bare()
    world.versions["karpenter.sh"] = "v1beta1"
    provisioned(
        world, disruption={"consolidationPolicy": "WhenUnderutilized", "expireAfter": "Never"}
    )
    del world.only("nodepools")["spec"]["template"]["spec"]["expireAfter"]
    return world


# Drift only, one at a time: a budget of 0 for what is empty or underutilized.
REASONS = [
    {"nodes": "0", "reasons": ["Empty", "Underutilized"]},
    {"nodes": "1", "reasons": ["Drifted"]},
]
# A budget that holds at night does not hold by day.
NIGHT = [{"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}]
UNDERUTILIZED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
FLAGS = (
    *("--enable-sqs-termination-draining=true", "--check-tag-before-draining=false"),
    *("--node-termination-grace-period", "900", f"--queue-url={QUEUE_URL}"),
)
# NTH's chart for two operating systems: a DaemonSet each.
WINDOWS = workload("nth-win", "ops", f"{HANDLER}-windows")
WINDOWS["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/os": "windows"}


def old_hook(world: World) -> None:
    """NTH's README: 300 s, then CONTINUE, and a queue that forgets as soon."""
    for name, item in world.groups.items():
        del item["InstanceLifecyclePolicy"]
        world.hooks[name] = [machines.hook(HeartbeatTimeout=300, DefaultResult="CONTINUE")]
    world.kept_seconds = 300


webhook_gone = both(
    at("services", []), without("cleaner"), at("poddisruptionbudgets.*.spec", minAvailable=5)
)
BITNAMI = both(
    added("statefulsets", workload("kafka", "legacy", "docker.io/bitnami/kafka:3.7")),
    added("statefulsets", workload("ui", "legacy", "provectuslabs/kafka-ui:v0.7")),
    added("statefulsets", workload("exporter", "legacy", "danielqsj/kafka-exporter")),
    added("kafkaclusters", {"metadata": meta("koper", "legacy")}),
)


def said_by_strimzi(kind: str) -> Change:
    said = {"type": kind, "status": "True", "message": "the pool has 2 nodes"}
    return at("kafkas.0.status", {"conditions": [said]})


WHERE_IT_STANDS = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
budget = partial(at, "poddisruptionbudgets.0.spec.minAvailable")
SAID: dict[str, Callable[[], World]] = {
    "groups of one's own, termination handler, Drain Cleaner that lets the budget answer =>": own,
    "Strimzi by OLM for every namespace =>": olm,
    "settings as arguments =>": changed(own, at("deployments.-1",
        workload("nth", "ops", "mirror.example/aws-node-termination-handler:v1.25.6", *FLAGS))),
    "a warning of Strimzi's =>": changed(own, said_by_strimzi("Warning")),
    "Strimzi from a mirror =>": changed(own, at(
        "deployments.0.spec.template.spec.containers.0",
        image="registry.example/platform/strimzi-kafka-operator:1.2.0-hardened")),
    "a termination handler for Windows beside it =>": changed(own, added("daemonsets", WINDOWS)),
    "Karpenter that never consolidates =>": karpenters(
        disruption={**UNDERUTILIZED, "consolidateAfter": "Never"}),
    "Karpenter before v1, tamed =>": changed(
        karpenter_before_v1, at("nodepools.0.spec.disruption", consolidationPolicy="WhenEmpty")),
    "Karpenter with budgets by reason =>": karpenters(
        disruption={**UNDERUTILIZED, "budgets": REASONS}),
    "Cluster Autoscaler as it comes =>": autoscaled,
    "Cluster Autoscaler kept off =>": lambda: autoscaled(
        "--skip-nodes-with-custom-controller-pods=false", safe="false"),
    "nodes by OIDC listeners =>": changed(own, at(
        "kafkas.0.spec.kafka.listeners", [{"name": "ext", "authentication": {"type": "custom"}}])),
    "rules that filter by prefix =>": changed(own, at("rules.0", {"source": [{"prefix": "aws."}]})),
    "terraform-aws-eks => group-zones managed-node-group reclaim expansion gp2": terraform_aws_eks,
    "managed node groups that update by halves => managed-node-group managed-update": of_eks(
        updateConfig={"maxUnavailablePercentage": 100}),
    "a daemon for nothing => managed-node-group cleaner-denies": changed(of_eks(),
        added("daemonsets", workload("nth", "kube-system", HANDLER))),
    "Karpenter as it comes => karpenter-expiry karpenter-consolidation": karpenters(
        template={"expireAfter": "720h"}, disruption=UNDERUTILIZED),
    "Karpenter before v1 as it comes => karpenter-consolidation": karpenter_before_v1,
    "Karpenter held at night => karpenter-consolidation karpenter-drift": karpenters(
        disruption={**UNDERUTILIZED, "budgets": NIGHT}),
    "Auto Mode => auto-mode karpenter-consolidation": lambda: provisioned(bare(), auto=True,
        template={"expireAfter": "336h", "terminationGracePeriod": "24h0m0s"},
        disruption=UNDERUTILIZED),
    "NTH's README => hook-default hook-heartbeat nth-queue": changed(own, old_hook),
    "no rack => rack": changed(own, lambda w: kafka_spec(w).pop("rack")),
    "disks of the nodes => local-volume": local_nvme,
    "an operator by OLM for others => operator-missing": lambda: olm("ops,other"),
    "an operator of its own namespace => operator-missing": changed(own, at("deployments.0",
        workload("strimzi-cluster-operator", "ops", "strimzi/operator:1.2.0",
            STRIMZI_NAMESPACE=WHERE_IT_STANDS))),
    "combined roles => combined": combined,
    "ZooKeeper => zookeeper strimzi-before-v1": zookeeper_era,
    "a budget of a share =>": changed(karpenters(), budget("50%")),
    "a budget of a share and no cleaner => webhook-dead budget-blocks": changed(
        karpenters(), both(webhook_gone, budget("50%"))),
    "half of the pods at once => budget-loose": changed(karpenters(), budget(3)),
    "Drain Cleaner that denies beside NTH => cleaner-denies": changed(
        own, container_of("drain-cleaner", lambda c: c.update(env=[]))),
    "Drain Cleaner uninstalled, its webhook left => webhook-dead": changed(own, webhook_gone),
    "Cluster Autoscaler that takes custom kinds => autoscaler": lambda: autoscaled(
        "--skip-nodes-with-custom-controller-pods=false"),
    "brokers that say they are safe to evict => autoscaler": lambda: autoscaled(safe="true"),
    "spot => spot": changed(own, at("instances.*", InstanceLifecycle="spot")),
    "two Kafkas of one name => listener grace": two_kafkas,
    "another Kafka beside it => not-strimzi not-running image-gone": changed(own, BITNAMI),
    "a binding after the pods => gate-missing lbc-backoff": changed(own, bound),
    "no EventBridge rule => nth-deaf": changed(own, lambda w: w.rules.clear()),
    "a rule for spot alone => nth-deaf": changed(own, at("rules.0", {"source": ["aws.ec2"]})),
    "Strimzi says why => not-running": changed(own, said_by_strimzi("NotReady")),
    "a broker that does not come back => not-running": changed(
        own, at("pods.0.status.conditions.0", status="False")),
    "no volumes => ephemeral": changed(
        own, at("pods.*.spec", volumes=[{"name": "d", "emptyDir": {}}])),
    "EFS => network-file-system": changed(
        own, at("persistentvolumes.*.spec", csi={"driver": "efs.csi.aws.com"})),
}  # fmt: skip


@every_case(("build", "said"), rows(SAID), ids=SAID)
def test_an_expert_would_say_the_same(build: Callable[[], World], said: set[str]) -> None:
    assert checks(build()) == said


def test_what_is_found_of_two_kafkas_names_the_one_it_is_of() -> None:
    found = surveyed(two_kafkas())
    assert {each.subject for each in found} == {"Kafka lab/orders"}


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


ZONE = "topology.kubernetes.io/zone"


def in_region(zone: str) -> Change:
    return at("nodes.*.metadata.labels", **{ZONE: zone})


def renamed_group(name: str) -> Change:
    """Give the first group another name."""

    def made(world: World) -> None:
        old = min(world.groups)
        world.groups[name] = {**world.groups.pop(old), "AutoScalingGroupName": name}
        world.hooks[name] = world.hooks.pop(old)
        world.member_of = {i: name if g == old else g for i, g in world.member_of.items()}

    return made


def served_at(servers: str, **listener: Any) -> Change:
    served = {"name": "it", "bootstrapServers": servers}
    asked = {"name": "it", "port": 9094, "tls": True, **listener}
    return both(
        at("kafkas.0.spec.kafka.listeners", [asked]),
        at("kafkas.0.status", {"listeners": [served]}),
    )


def named(name: str) -> Change:
    return both(
        at("kafkas.0.metadata.name", name),
        at("pods.*.metadata.labels", **{"strimzi.io/cluster": name}),
    )


REFUSED: dict[str, tuple[Change, str]] = {
    "machines of nobody": (started_by(), "names no machines"),
    "CAST AI's machines": (started_by("cast:cluster-id"), "names no machines"),
    "GovCloud": (in_region("us-gov-west-1a"), "AWS GovCloud"),
    "China": (in_region("cn-north-1b"), "the China partition"),
    "the Sovereign Cloud": (in_region("eusc-de-east-1a"), "the European Sovereign Cloud"),
    "a group by a pattern": (renamed_group("kafka-*"), "would read as a pattern"),
    "groups that cannot be read": (lambda w: w.groups.clear(), "names no machines"),
}


@every_case(("change", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_why_it_cannot_be_used_stands_in_it(change: Change, why: str) -> None:
    section, text = described(changed(own, change)())
    with pytest.raises(InvalidInput, match=why):
        adoption.parse({"adopt": section})
    said = draft.refusals(text)
    assert why in " ".join(said)
    assert all(f"# It cannot be used as it is: {each}\n" in text for each in said)


NAMED: dict[str, tuple[str, str, str | None]] = {
    "a name that fits": ("orders", ARN, None),
    "a name with hyphens": ("orders-eu", ARN, None),
    "an EKS cluster in capitals": ("orders", ARN.replace("/shop", "/Shop_Prod"),
        "shop-prod-orders"),
}  # fmt: skip


@every_case(("name", "arn", "called"), NAMED.values(), ids=NAMED.keys())
def test_what_is_ours_has_a_name_that_aws_takes(name: str, arn: str, called: str | None) -> None:
    section, _ = described(changed(own, named(name))(), arn)
    (kafka,) = section["kafkas"]
    assert kafka.get("called") == called
    adoption.parse(at_level("watch", section))


@pytest.mark.parametrize("name", ["payments-of-all-the-shops-in-europe", "1", "-"])
def test_a_name_that_does_not_fit_is_made_short_and_stays_the_same(name: str) -> None:
    world = own()
    named(name if name != "-" else "x" * 47)(world)
    long = ARN.replace("/shop", "/prod-platform-data-cluster")
    section, _ = described(world, long)
    again, _ = described(world, long)
    assert section == again
    adoption.parse(at_level("watch", section))


def test_two_kafkas_of_one_name_are_called_differently() -> None:
    section, _ = described(two_kafkas())
    called = [each.get("called") for each in section["kafkas"]]
    assert called == [None, "shop-lab-orders"]


@pytest.mark.parametrize(
    ("servers", "written"),
    [
        ("[2600:1f18::1]:31000", True),
        ("2600:1f18::1:31000", False),
        ("10.0.0.1:31000,10.0.0.2:31000", True),
    ],
)
def test_an_address_of_version_six_is_taken_in_brackets(servers: str, *, written: bool) -> None:
    world = changed(own, served_at(servers))()
    section, text = described(world)
    adoption.parse(at_level("watch", section))
    assert ("bootstrap" in section["kafkas"][0]) is written
    assert (f"its listener at {servers} is not HOST:PORT" in text) is not written


def test_a_certificate_of_ones_own_is_noted() -> None:
    world = changed(
        own, served_at("kafka.example.com:9094", configuration={"brokerCertChainAndKey": {}})
    )()
    assert "name the Secret of its authority in authority_secret" in described(world)[1]


def test_whoever_hears_of_hooks_is_no_reason_to_drain_without_a_handler() -> None:
    world = changed(own, drains_by("keikoproj/lifecycle-manager:v0.6.0"))()
    section, text = described(world)
    assert "drainer" not in section
    assert "# drainer: ops/it drains what waits in a hook" in text


def test_hooks_that_are_called_as_ours_are_noted() -> None:
    world = own()
    name = min(world.groups)
    world.hooks[name] = [machines.hook(LifecycleHookName="drain")]
    said = described(world)[1]
    assert f"# Auto Scaling group {name} has a hook drain of its own" in said


@pytest.mark.parametrize(
    "tag", ["kubernetes.io/cluster/shop", "eks:eks-cluster-name", "aws:eks:cluster-name"]
)
def test_the_cluster_is_known_by_its_machines_where_they_are_in_no_group(tag: str) -> None:
    world = karpenters()()
    for each in world.instances.values():
        each["Tags"] = [{"Key": tag, "Value": "shop" if tag.endswith("name") else "owned"}]
    assert described(world, "an-alias")[0]["eks_cluster"] == "shop"


def test_what_is_unusable_is_said_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = own()
    renamed_group("kafka-*")(world)
    monkeypatch.setattr(command, "connect", lambda *_: (ARN, world))
    monkeypatch.setattr(
        "boto3.Session.client", lambda _, service, **__: world.client(service, None)
    )
    path = tmp_path / "shop.yaml"
    done = CliRunner().invoke(
        app, ["survey", "--kubeconfig", "x", "--region", "eu-north-1", "--adopt", str(path)]
    )
    assert "kafka-*, which IAM would read as a pattern" in done.output.replace("\n", " ")


def test_check_takes_a_description_too(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(described(own())[1])
    done = CliRunner().invoke(app, ["check", str(path)])
    assert (done.exit_code, done.stdout) == (0, f"{path}: shop is consistent.\n")
    path.write_text(path.read_text().replace("level: survey", "level: own"))
    refused = CliRunner().invoke(app, ["check", str(path)])
    assert refused.exit_code == 1
    assert "level is 'own'" in str(refused.exception)


def test_a_listener_that_a_network_policy_fences_is_noted() -> None:
    world = own()
    served_at("kafka.example.com:9094", networkPolicyPeers=[{"podSelector": {}}])(world)
    assert "add the addresses of the functions' subnets" in described(world)[1]


def known_by(mode: str | None) -> Change:
    said = {} if mode is None else {"accessConfig": {"authenticationMode": mode}}
    return lambda world: world.around.cluster.update(said)


def strimzi(version: str) -> Change:
    return at("versions", **{"core.strimzi.io": version})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (known_by("CONFIG_MAP"), "authenticationMode=API_AND_CONFIG_MAP"),
        (known_by("API_AND_CONFIG_MAP"), ""),
        (known_by("API"), ""),
        (known_by(None), ""),
        (strimzi("v1beta2"), "upgrade Strimzi to 0.49"),
        (strimzi("v1"), ""),
    ],
    ids=["aws-auth alone", "both", "access entries", "unsaid", "Strimzi 0.45", "Strimzi 1.2"],
)
def test_what_the_functions_need_is_said_before_they_are_made(change: Change, words: str) -> None:
    world = own()
    change(world)
    text = draft.draft(command.read(world, world.client, None, CLUSTER), CLUSTER)
    told = ("API_AND_CONFIG_MAP", "upgrade Strimzi")
    assert any(each in text for each in told) == bool(words)
    assert words in text
