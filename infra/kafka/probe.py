"""The probe in the cluster: one pod that is a client of Kafka, with the rights of its topic alone.

It has no token of Kubernetes and writes to no disk. A pod that is moved is away for seconds, which
no alert's window sees.
"""

from __future__ import annotations

from typing import Any, Literal

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from core.cluster import ClientProbe, ClusterSpec, limits
from core.ground import naming
from core.settings import codec
from core.settings.prometheus import AUTHORITY_DIRECTORY, PORT, USER_DIRECTORY, ProbeSettings
from infra.alerts.metrics import POD_MONITOR_API
from infra.kafka.cluster import internal_bootstrap
from infra.pods import FILTERED_CALLS, NO_CAPABILITIES, resources

TYPE = "stillwater:infra:ProbeDeployment"
PORT_NAME = "probe"
# Nobody in particular; the image's own user may be root.
NOBODY = 65_532


class ProbeDeployment(pulumi.ComponentResource):
    """A Deployment of one pod, and the PodMonitor by which Prometheus finds it."""

    def __init__(
        self,
        name: str,
        spec: ClusterSpec,
        probe: ClientProbe,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(TYPE, name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        called = naming.probe(spec.name)
        namespace, labels = spec.kubernetes.namespace, {"app.kubernetes.io/name": called}
        CustomResource(
            f"{name}-deployment",
            api_version="apps/v1",
            kind="Deployment",
            metadata={"name": called, "namespace": namespace, "labels": labels},
            spec={
                "replicas": 1,
                # Two at once would count every second twice.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec(spec, probe)},
            },
            opts=child,
        )
        if spec.metrics.prometheus_operator:
            CustomResource(
                f"{name}-pod-monitor",
                api_version=POD_MONITOR_API,
                kind="PodMonitor",
                metadata={"name": called, "namespace": namespace},
                spec={
                    "selector": {"matchLabels": labels},
                    "podMetricsEndpoints": [
                        {
                            "port": PORT_NAME,
                            "path": "/metrics",
                            "relabelings": [
                                {"targetLabel": "cluster", "replacement": spec.name},
                            ],
                        }
                    ],
                },
                opts=child,
            )
        self.register_outputs({})


def settings(spec: ClusterSpec, probe: ClientProbe) -> ProbeSettings:
    """Return what the probe is told."""
    listener = spec.kafka.internal_listener
    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    if listener.authentication == "scram-sha-512":
        security = "SASL_SSL" if listener.tls else "SASL_PLAINTEXT"
    else:
        security = "SSL" if listener.tls else "PLAINTEXT"
    return ProbeSettings(
        bootstrap=(internal_bootstrap(spec),),
        security=security,
        user=naming.probe(spec.name),
        topic=naming.PROBE_TOPIC,
        replication_factor=spec.kafka.default_replication_factor,
        latency_seconds=probe.latency_seconds,
    )


def pod_spec(spec: ClusterSpec, probe: ClientProbe) -> dict[str, Any]:
    """Return the probe's pod."""
    secrets = {"authority": (naming.cluster_ca_secret(spec.name), AUTHORITY_DIRECTORY)}
    if spec.kafka.internal_listener.authentication != "none":
        secrets["user"] = (naming.probe(spec.name), USER_DIRECTORY)
    told = codec.write(codec.document(settings(spec, probe)))
    return {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": NOBODY, **FILTERED_CALLS},
        "containers": [
            {
                "name": "probe",
                "image": probe.image,
                "command": ["python", "-m", "stillwater.inside", "probe"],
                "env": [
                    {"name": codec.SETTINGS, "value": told},
                    {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
                ],
                "ports": [{"name": PORT_NAME, "containerPort": PORT}],
                "resources": resources(limits.PROBE),
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    **NO_CAPABILITIES,
                },
                "volumeMounts": [
                    {"name": name, "mountPath": path, "readOnly": True}
                    for name, (_, path) in secrets.items()
                ],
            }
        ],
        # Read by the pod's own user; a private key by nobody else.
        "volumes": [
            {"name": name, "secret": {"secretName": secret, "defaultMode": 0o444}}
            for name, (secret, _) in secrets.items()
        ],
    }
