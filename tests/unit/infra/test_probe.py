"""The probe's pod: told where Kafka is and who it is, with nothing it does not need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.cluster import ClusterSpec
from core.cluster.operated import operated_cluster
from core.cluster.rights import clients
from core.ground.errors import InvalidInput
from core.settings import codec
from core.settings.prometheus import ATTEMPTS, ProbeSettings
from infra.functions.catalogue import TICK
from infra.kafka.probe import pod_spec
from tests.unit.infra.programs import prometheus_alerts, run_changed, spec

IMAGE = "registry.example/team/stillwater:1"


def probed(**changed: Any) -> ClusterSpec:
    return spec(probe={"image": IMAGE}, **changed)


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
    layer = run_changed("kafka", probe={"image": IMAGE}, metrics={"prometheus_operator": True})
    deployment = layer.one("apps/v1:Deployment", "probe-deployment")
    monitor = layer.one("monitoring.coreos.com/v1:PodMonitor", "probe-pod-monitor")
    template = deployment.inputs["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == IMAGE
    labels = template["metadata"]["labels"]
    assert monitor.inputs["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("asked", [True, False])
def test_the_loop_reads_the_budget_only_where_somebody_counts(asked: bool) -> None:
    address = "http://prometheus.monitoring.svc:9090"
    metrics = {"prometheus": {"address": address}} if asked else {}
    cluster = operated_cluster(probed(metrics=metrics))
    assert TICK.kubernetes is not None
    assert (cluster.probe_budget is not None, bool(TICK.kubernetes(cluster).elsewhere)) == (
        asked,
        asked,
    )
