"""Connect workers as the twin's operator makes them from a KafkaConnect: pure renderings.

Names, labels, ports and probes are Strimzi 1.2.0's (KafkaConnectCluster): both probes ask GET
/health, with the resource's timings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.ground import naming
from core.ground.errors import InvalidInput
from local.kafka.container import (
    CLUSTER_CA_CERTS,
    CONFIG_MOUNT,
    CONNECT_CERTS,
    CONNECT_CONFIG,
    POD_ADDRESS,
    RACK,
    RACK_LABEL,
)
from local.kubernetes.strimzi_config import (
    METRICS_PORT,
    METRICS_PORT_NAME,
    SCRAM_MODULE,
    plain,
    reporters,
)
from local.kubernetes.strimzi_model import SCRAM, TLS, allowed_metrics, rack_label
from local.kubernetes.strimzi_resources import (
    CONFIGURATION_HASH,
    DEFAULT_GRACE_SECONDS,
    KIND_LABEL,
    OPERATOR_VERSION,
    POD_SET,
    POD_SET_API,
    TEMPLATE_FIELDS,
    digest,
    owner_reference,
    with_revisions,
)

KIND = "KafkaConnect"
REST_PORT_NAME, REST_PORT = "rest-api", 8083
HEALTH = {"httpGet": {"path": "/health", "port": REST_PORT_NAME}}
PROBE_DEFAULTS = {"initialDelaySeconds": 60, "timeoutSeconds": 5}
JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
DIRECTORY_PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
# The worker's own client, and those of its connectors.
CLIENTS = ("", "producer.", "consumer.", "admin.")
REQUIRED = (
    "replicas",
    "bootstrapServers",
    "groupId",
    "configStorageTopic",
    "offsetStorageTopic",
    "statusStorageTopic",
)

Object = Mapping[str, Any]
Rendered = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Workers:
    """One Connect cluster as its resource describes it."""

    name: str
    namespace: str
    uid: str
    spec: Object

    @property
    def component(self) -> str:
        return naming.connect_component(self.name)

    @property
    def pods(self) -> list[str]:
        return [f"{self.component}-{number}" for number in range(int(self.spec["replicas"]))]


def read(connect: Object) -> Workers:
    """Read a KafkaConnect; raises InvalidInput with a sentence for all that cannot run here."""
    metadata, spec = connect["metadata"], connect["spec"]
    problems = [f"{field} is missing." for field in REQUIRED if field not in spec]
    how = (spec.get("authentication") or {}).get("type", TLS)
    if how not in {TLS, SCRAM}:
        problems.append(
            f"authentication is {how}, and the twin's operator knows {TLS} and {SCRAM}."
        )
    if problems:
        raise InvalidInput(f"KafkaConnect {metadata['name']}: {problem}" for problem in problems)
    return Workers(metadata["name"], metadata["namespace"], metadata["uid"], spec)


def surroundings(workers: Workers) -> list[Rendered]:
    """Return what the pods need before them, their configuration apart."""
    port = {
        "name": REST_PORT_NAME,
        "port": REST_PORT,
        "targetPort": REST_PORT_NAME,
        "protocol": "TCP",
    }
    api = _object(workers, "v1", "Service", f"{workers.component}-api")
    api["spec"] = {"type": "ClusterIP", "selector": _selector(workers), "ports": [port]}
    headless = _object(workers, "v1", "Service", workers.component)
    headless["spec"] = {
        **api["spec"],
        "clusterIP": "None",
        # A worker forwards to the leader by name, and must know it before it is ready.
        "publishNotReadyAddresses": True,
    }
    budget = _object(workers, "policy/v1", "PodDisruptionBudget", workers.component)
    template = (workers.spec.get("template") or {}).get("podDisruptionBudget") or {}
    unavailable = int(template.get("maxUnavailable", 1))
    budget["spec"] = {
        "minAvailable": max(0, len(workers.pods) - unavailable),
        "selector": {"matchLabels": _selector(workers)},
    }
    account = _object(workers, "v1", "ServiceAccount", workers.component)
    return [account, headless, api, budget]


def config_map(workers: Workers, pod_name: str) -> Rendered:
    rendered = _object(workers, "v1", "ConfigMap", pod_name)
    settings = _settings(workers, pod_name)
    rendered["data"] = {
        CONNECT_CONFIG: "".join(f"{key}={value}\n" for key, value in settings.items())
    }
    label = rack_label(workers.spec)
    if label is not None:
        rendered["data"][RACK_LABEL] = label
    return rendered


def pod(workers: Workers, pod_name: str, config: Rendered, credentials: str = "") -> Rendered:
    """Return one worker's pod, marked with a revision of all that a restart would change.

    `credentials` is a digest of the Secrets it reads.
    """
    template = (workers.spec.get("template") or {}).get("pod") or {}
    rendered = _object(workers, "v1", "Pod", pod_name)
    del rendered["metadata"]["ownerReferences"]
    rendered["metadata"]["labels"] |= {
        naming.POD_NAME_LABEL: pod_name,
        "strimzi.io/controller": "strimzipodset",
        "strimzi.io/controller-name": workers.component,
    }
    rendered["metadata"]["annotations"] = {
        CONFIGURATION_HASH: digest(config["data"]),
        "strimzi.io/auth-hash": credentials,
    }
    rendered["spec"] = {
        **{field: template[field] for field in TEMPLATE_FIELDS if field in template},
        "hostname": pod_name,
        "subdomain": workers.component,
        "serviceAccountName": workers.component,
        "automountServiceAccountToken": False,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": template.get(
            "terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS
        ),
        "containers": [_container(workers)],
        "volumes": [
            {"name": "connect-config", "configMap": {"name": pod_name}},
            *({"name": name, "secret": source} for _, name, source in secrets(workers)),
        ],
    }
    return with_revisions(rendered)


def pod_set(workers: Workers, pods: Mapping[str, Rendered]) -> Rendered:
    """Return the pod set of all workers."""
    rendered = _object(workers, POD_SET_API, POD_SET, workers.component)
    rendered["spec"] = {
        "selector": {"matchLabels": _selector(workers)},
        "pods": list(pods.values()),
    }
    return rendered


def _settings(workers: Workers, pod_name: str) -> dict[str, str]:
    spec = workers.spec
    user = {key: plain(value) for key, value in (spec.get("config") or {}).items()}
    rack = {"consumer.client.rack": RACK} if rack_label(spec) is not None else {}
    return {
        "key.converter": JSON_CONVERTER,
        "value.converter": JSON_CONVERTER,
        # The twin's connectors are on the class path and name themselves: no jar is searched.
        "plugin.discovery": "service_load",
        **user,
        "bootstrap.servers": spec["bootstrapServers"],
        "group.id": spec["groupId"],
        "config.storage.topic": spec["configStorageTopic"],
        "offset.storage.topic": spec["offsetStorageTopic"],
        "status.storage.topic": spec["statusStorageTopic"],
        "listeners": f"http://{POD_ADDRESS}:{REST_PORT}",
        "rest.advertised.host.name": f"{pod_name}.{workers.component}.{workers.namespace}.svc",
        "rest.advertised.port": str(REST_PORT),
        **_security(workers),
        **rack,
        **reporters(allowed_metrics(spec), brokers=False),
    }


def _security(workers: Workers) -> dict[str, str]:
    """Return how the worker, its producers and its consumers trust Kafka and who they are to it."""
    spec, said = workers.spec, {}
    if not spec.get("tls") and not spec.get("authentication"):
        return {}
    transport = "SSL" if spec.get("tls") else "PLAINTEXT"
    if spec.get("tls"):
        said["ssl.truststore.type"] = "PEM"
        said["ssl.truststore.location"] = f"{CLUSTER_CA_CERTS}.pem"
    shown = spec.get("authentication") or {}
    if shown.get("type") == TLS:
        said["ssl.keystore.type"] = "PEM"
        said["ssl.keystore.location"] = f"{CONNECT_CERTS}.pem"
    elif shown.get("type") == SCRAM:
        transport = f"SASL_{transport}"
        said["sasl.mechanism"] = "SCRAM-SHA-512"
        # The password is read where the worker runs, and stands in no ConfigMap.
        secret = shown["passwordSecret"]
        password = f"${{directory:{CONNECT_CERTS}:{secret['password']}}}"
        said["sasl.jaas.config"] = (
            f'{SCRAM_MODULE} required username="{shown["username"]}" password="{password}";'
        )
    providers = {
        "config.providers": "directory",
        "config.providers.directory.class": DIRECTORY_PROVIDER,
    }
    said["security.protocol"] = transport
    return {
        **(providers if shown.get("type") == SCRAM else {}),
        **{f"{who}{key}": value for who in CLIENTS for key, value in said.items()},
    }


def secrets(workers: Workers) -> list[tuple[str, str, Rendered]]:
    """Return mount path, volume and source of each Secret that workers read."""
    found = []
    trusted = ((workers.spec.get("tls") or {}).get("trustedCertificates")) or []
    if trusted:
        source = {"secretName": trusted[0]["secretName"]}
        found.append((CLUSTER_CA_CERTS, "cluster-ca-certs", source))
    shown = workers.spec.get("authentication") or {}
    if shown.get("type") == TLS:
        pair = shown["certificateAndKey"]
        items = [{"key": pair[part], "path": pair[part]} for part in ("certificate", "key")]
        source = {"secretName": pair["secretName"], "items": items}
        found.append((CONNECT_CERTS, "connect-certs", source))
    elif shown.get("type") == SCRAM:
        source = {"secretName": shown["passwordSecret"]["secretName"]}
        found.append((CONNECT_CERTS, "connect-certs", source))
    return found


def _container(workers: Workers) -> Rendered:
    spec = workers.spec
    ports = [(REST_PORT_NAME, REST_PORT)]
    if allowed_metrics(spec):
        ports.append((METRICS_PORT_NAME, METRICS_PORT))
    return {
        "name": workers.component,
        "image": spec.get("image")
        or f"quay.io/strimzi/kafka:{OPERATOR_VERSION}-kafka-{spec.get('version')}",
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "resources": spec.get("resources") or {},
        "readinessProbe": {**HEALTH, **(spec.get("readinessProbe") or PROBE_DEFAULTS)},
        "livenessProbe": {**HEALTH, **(spec.get("livenessProbe") or PROBE_DEFAULTS)},
        "volumeMounts": [
            {"name": "connect-config", "mountPath": CONFIG_MOUNT},
            *({"name": name, "mountPath": path} for path, name, _ in secrets(workers)),
        ],
    }


def _labels(workers: Workers) -> dict[str, str]:
    return {
        **_selector(workers),
        "app.kubernetes.io/name": "kafka-connect",
        "app.kubernetes.io/instance": workers.name,
        "app.kubernetes.io/managed-by": naming.STRIMZI_OPERATOR,
        "app.kubernetes.io/part-of": f"strimzi-{workers.name}",
    }


def _selector(workers: Workers) -> dict[str, str]:
    return {
        naming.CLUSTER_LABEL: workers.name,
        KIND_LABEL: KIND,
        "strimzi.io/name": workers.component,
    }


def _object(workers: Workers, api_version: str, kind: str, name: str) -> Rendered:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": workers.namespace,
            "labels": _labels(workers),
            "ownerReferences": [owner_reference(KIND, workers.name, workers.uid)],
        },
    }
