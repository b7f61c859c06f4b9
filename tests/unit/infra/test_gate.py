"""The eviction gate and the probe: what runs in the cluster, and from which package."""

import fnmatch
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from core import cluster as clusters
from core.cluster import ClusterSpec
from core.cluster.operated import operated_cluster
from core.cluster.rights import clients
from core.gate import CLEANERS
from core.ground.errors import InvalidInput
from core.settings import codec
from core.settings.codec import SETTINGS
from core.settings.prometheus import ATTEMPTS, ProbeSettings
from infra.functions.catalogue import TICK
from infra.kafka.probe import pod_spec
from infra.pods import ingress
from stillwater import inside
from stillwater.inside import PARTS
from tests.every_case import every_case
from tests.unit.infra.programs import description, prometheus_alerts, run_changed, run_layers, spec
from tests.unit.infra.recording import CONTROL_PLANE, CONTROL_PLANE_IPV6, Recorded

RBAC = "rbac.authorization.k8s.io/v1:"
IMAGE = "registry.example/stillwater-gate:1.4"


@pytest.fixture(scope="module")
def operations(cache: None) -> Recorded:
    return run_changed("operations", eviction_gate={"image": IMAGE}, connect={"replicas": 1})


@pytest.fixture(scope="module")
def webhooks(operations: Recorded) -> dict[str, dict[str, object]]:
    found = operations.one(
        "admissionregistration.k8s.io/v1:ValidatingWebhookConfiguration", "gate-webhooks"
    )
    return {each["name"]: each for each in found.inputs["webhooks"]}


def test_evictions_wait_for_the_gate_and_what_heals_does_not(webhooks: dict[str, object]) -> None:
    policies = {name: each["failurePolicy"] for name, each in webhooks.items()}
    assert policies == {
        "evictions.stillwater.dev": "Fail",
        "pods.stillwater.dev": "Ignore",
        "nodes.stillwater.dev": "Ignore",
    }


def test_only_kafkas_own_pods_are_asked_about(webhooks: dict[str, dict[str, object]]) -> None:
    (condition,) = webhooks["evictions.stillwater.dev"]["matchConditions"]
    pattern = re.search(r"matches\('(.*)'\)", condition["expression"])[1]
    assert re.match(pattern, "orders-broker-a-10")
    assert re.match(pattern, "orders-controller-c-2")
    assert not re.match(pattern, "orders-connect-connect-0")
    assert not re.match(pattern, "orders-entity-operator-5d8f-1")


def test_who_cleans_up_is_not_even_asked(webhooks: dict[str, dict[str, object]]) -> None:
    conditions = webhooks["pods.stillwater.dev"]["matchConditions"]
    said = " ".join(each["expression"] for each in conditions)
    assert all(user in said for user in CLEANERS)
    assert "system:serviceaccount:strimzi:strimzi-cluster-operator" in said
    assert "'system:node:' + oldObject.spec.nodeName" in said


def test_two_replicas_stand_where_no_drain_of_a_broker_reaches_them(operations: Recorded) -> None:
    deployment = operations.one("apps/v1:Deployment", "gate-deployment").inputs["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 2
    assert "tolerations" not in pod
    assert pod["nodeSelector"] == {"stillwater.dev/pool": "system"}
    budget = operations.one("policy/v1:PodDisruptionBudget", "gate-budget").inputs["spec"]
    assert budget["selector"] == deployment["selector"]
    assert pod["containers"][0]["image"] == IMAGE


def test_it_writes_two_objects_by_name_and_nothing_of_a_node(operations: Recorded) -> None:
    roles = [*operations.of(f"{RBAC}Role"), *operations.of(f"{RBAC}ClusterRole")]
    ours = [each for each in roles if each.name.startswith("gate-")]
    writing = [
        (rule["resources"], rule.get("resourceNames"))
        for role in ours
        for rule in role.inputs["rules"]
        if not {"get", "list"} >= set(rule["verbs"])
    ]
    assert sorted(writing) == [
        (["secrets"], ["stillwater-gate"]),
        (["validatingwebhookconfigurations"], ["stillwater-gate"]),
    ]


def test_without_it_nothing_of_it_is_made(cache: None) -> None:
    bare = run_layers(description())["operations"]
    assert not [each for each in bare.of("apps/v1:Deployment") if "gate" in each.name]


@pytest.mark.parametrize("image", ["registry.example/gate", "registry.example/gate:latest"])
def test_an_image_without_a_version_is_refused_in_a_sentence(image: str) -> None:
    with pytest.raises(InvalidInput, match="names no version"):
        clusters.parse(description(eviction_gate={"image": image}))


def test_the_control_plane_alone_reaches_the_gate(operations: Recorded) -> None:
    admitted = operations.one("networking.k8s.io/v1:NetworkPolicy", "gate-admitted").inputs
    pods = operations.one("apps/v1:Deployment", "gate-deployment").inputs
    assert admitted["metadata"]["namespace"] == pods["metadata"]["namespace"]
    assert admitted["spec"] == {
        "podSelector": pods["spec"]["selector"],
        # Without a word about Egress it stays open.
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [
                    {"ipBlock": {"cidr": cidr}}
                    for cidr in (*CONTROL_PLANE.values(), CONTROL_PLANE_IPV6)
                ],
                "ports": [{"port": 8443, "protocol": "TCP"}],
            }
        ],
    }


PROBE_IMAGE = "registry.example/team/stillwater:1"


def probed(**changed: Any) -> ClusterSpec:
    return spec(probe={"image": PROBE_IMAGE}, **changed)


def pod(described: ClusterSpec) -> dict[str, Any]:
    assert described.probe is not None
    return pod_spec(described, described.probe)


def told(described: ClusterSpec) -> ProbeSettings:
    (container,) = pod(described)["containers"]
    (settings,) = [e["value"] for e in container["env"] if e["name"] == "STILLWATER_SETTINGS"]
    return codec.read(ProbeSettings, json.loads(settings))


@pytest.mark.parametrize(
    ("listener", "security", "secrets"),
    [
        ({}, "SSL", 2),
        ({"authentication": "scram-sha-512"}, "SASL_SSL", 2),
        ({"authentication": "scram-sha-512", "tls": False}, "SASL_PLAINTEXT", 2),
        ({"authentication": "none", "anonymous_clients": True}, "SSL", 1),
        ({"authentication": "none", "anonymous_clients": True, "tls": False}, "PLAINTEXT", 1),
    ],
)
def test_it_speaks_to_kafka_as_the_internal_listener_asks(
    listener: dict[str, Any], security: str, secrets: int
) -> None:
    described = probed(kafka={"internal_listener": listener})
    assert told(described).security == security
    assert len(pod(described)["volumes"]) == secrets


def test_it_may_use_its_own_topic_and_nothing_else() -> None:
    (client,) = [each for each in clients(probed()) if each.name.endswith("-probe")]
    (acl,) = client.acls
    assert (acl.resource, acl.name, acl.prefix) == ("topic", told(probed()).topic, False)


def test_its_pod_has_no_token_no_disk_and_nobodys_rights() -> None:
    found = pod(probed())
    (container,) = found["containers"]
    assert found["automountServiceAccountToken"] is False
    assert found["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_without_a_probe_no_alert_waits_for_what_nobody_says() -> None:
    assert not any(ATTEMPTS in alert["expr"] for alert in prometheus_alerts(spec()).values())
    assert sum(ATTEMPTS in each["expr"] for each in prometheus_alerts(probed()).values()) == 3


@pytest.mark.parametrize(
    ("changed", "clause"),
    [
        ({"topics": [{"name": "stillwater-probe"}]}, "which the probe makes itself"),
        ({"users": [{"name": "orders-stillwater-probe"}]}, "made already"),
    ],
    ids=["topic", "user"],
)
def test_what_is_the_probes_is_nobody_elses(changed: dict[str, Any], clause: str) -> None:
    with pytest.raises(InvalidInput, match=clause):
        probed(**changed)


def test_the_layer_runs_one_and_prometheus_finds_it(cache: None) -> None:
    layer = run_changed(
        "kafka", probe={"image": PROBE_IMAGE}, metrics={"prometheus_operator": True}
    )
    deployment = layer.one("apps/v1:Deployment", "probe-deployment")
    monitor = layer.one("monitoring.coreos.com/v1:PodMonitor", "probe-pod-monitor")
    template = deployment.inputs["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == PROBE_IMAGE
    labels = template["metadata"]["labels"]
    assert monitor.inputs["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("asked", [True, False])
def test_the_loop_reads_the_budget_only_where_somebody_counts(asked: bool) -> None:
    address = "http://prometheus.monitoring.svc:9090"
    metrics = {"prometheus": {"address": address}} if asked else {}
    cluster = operated_cluster(probed(metrics=metrics))
    assert TICK.kubernetes is not None
    expected = (asked, asked)
    assert (cluster.probe_budget is not None, bool(TICK.kubernetes(cluster).elsewhere)) == expected


REPOSITORY = Path(__file__).resolve().parents[3]
STARTERS = ("Dockerfile", "infra/gate.py", "infra/kafka/probe.py")


@every_case("part", PARTS)
def test_every_part_is_a_module_that_can_be_run(part: str) -> None:
    found = importlib.util.find_spec(f"handlers.{part}")
    assert found.origin is not None
    assert '__name__ == "__main__"' in Path(found.origin).read_text()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_told_nothing_ends_in_words(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["inside", part])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv(SETTINGS, raising=False)
    with pytest.raises(SystemExit) as ended:
        inside.main()
    assert str(ended.value).startswith(f"{SETTINGS} ")


@every_case("starter", STARTERS)
def test_who_starts_one_names_the_package_that_the_wheel_holds(starter: str) -> None:
    said = (REPOSITORY / starter).read_text()
    assert '"-m", "stillwater.inside"' in said
    assert '"-m", "handlers' not in said


def test_every_image_but_one_is_named_by_its_content() -> None:
    text = (REPOSITORY / "Dockerfile").read_text()
    digests = dict(re.findall(r"^ARG (\w+)=\S+?(@sha256:[0-9a-f]{64})?$", text, re.MULTILINE))
    built_from = re.findall(r"^FROM \S+:\$\{(\w+)\}", text, re.MULTILINE)
    assert len(built_from) == text.count("\nFROM ") == 4
    # Its digest has not been read from the registry yet; the Dockerfile says how.
    assert {each for each in built_from if not digests[each]} <= {"PULUMI"}


def test_what_the_image_copies_is_not_kept_from_its_build() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source
        for line in (REPOSITORY / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert len(copied) > 2
    left_out = [
        each
        for each in copied
        if not any(fnmatch.fnmatch(each.replace("*", "x"), pattern) for pattern in allowed)
    ]
    assert left_out == []


def test_a_port_without_a_peer_admits_nobody_and_none_admits_everybody() -> None:
    peer = {"ipBlock": {"cidr": "10.0.0.0/28"}}
    assert ingress({8443: [peer], 8083: [], 9404: None}) == [
        {"from": [peer], "ports": [{"port": 8443, "protocol": "TCP"}]},
        {"ports": [{"port": 9404, "protocol": "TCP"}]},
    ]
