"""Connect workers as the twin's operator makes them from a KafkaConnect: rendered, and applied.

Names, labels, ports and probes are Strimzi 1.2.0's (KafkaConnectCluster): both probes ask GET
/health, with the resource's timings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
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
from local.kubernetes.client import Api, ApiError, Informer, find
from local.kubernetes.strimzi_config import (
    METRICS_PORT,
    METRICS_PORT_NAME,
    SCRAM_MODULE,
    plain,
    reporters,
)
from local.kubernetes.strimzi_model import SCRAM, TLS, allowed_metrics, rack_label
from local.kubernetes.strimzi_objects import (
    PATHS,
    READY,
    STRIMZI,
    Object,
    OperatorObjects,
    not_ready,
    resource_path,
)
from local.kubernetes.strimzi_resources import (
    CONFIGURATION_HASH,
    DEFAULT_GRACE_SECONDS,
    KIND_LABEL,
    OPERATOR_VERSION,
    POD_SET,
    POD_SET_API,
    TEMPLATE_FIELDS,
    described,
    digest,
    owner_reference,
    with_revisions,
)
from local.kubernetes.strimzi_roller import is_ready, next_to_roll, reasons_to_restart

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
    owner = owner_reference(KIND, workers.name, workers.uid)
    return described(api_version, kind, name, workers.namespace, _labels(workers), owner)


LOG = logging.getLogger("strimzi")


class Connects:
    """The Connect side of the operator."""

    def __init__(
        self, api: Api, objects: OperatorObjects, changed: Callable[[str, Object], None]
    ) -> None:
        self._api, self._objects = api, objects
        self._connects = Informer(api, f"{STRIMZI}/kafkaconnects", changed)
        self._pods = Informer(api, "/api/v1/pods", changed, labelSelector=f"{KIND_LABEL}={KIND}")
        self.informers = (self._connects, self._pods)

    @property
    def known(self) -> Mapping[tuple[str, str], Object]:
        """Return every KafkaConnect by namespace and name."""
        return self._connects.objects

    def reconcile_all(self) -> bool:
        """Reconcile every KafkaConnect; return whether one should soon be tried again."""
        failed = False
        for connect in list(self._connects.objects.values()):
            if "deletionTimestamp" in connect["metadata"]:
                continue  # its objects name it as their owner and go with it
            try:
                failed |= self._reconcile(connect)
            except ApiError as error:
                LOG.warning("KafkaConnect %s: %s", connect["metadata"]["name"], error)
                failed = True
        return failed

    def _reconcile(self, connect: Object) -> bool:
        """Bring one to what it says; return whether a Secret is missing, of which nobody tells."""
        path = resource_path("kafkaconnects", connect)
        try:
            workers = read(connect)
        except InvalidInput as error:
            self._objects.report(connect, path, not_ready("InvalidResourceException", str(error)))
            return False
        missing, credentials = self._credentials(workers)
        waiting = missing or self._bring(workers, credentials)
        creating = not_ready("Creating", f"Waiting for {', '.join(waiting)}.")
        self._objects.report(connect, path, creating if waiting else READY)
        return bool(missing)

    def _bring(self, workers: Workers, credentials: str) -> list[str]:
        """Apply the cluster's objects; return the workers that are not ready yet."""
        budget = f"{PATHS['PodDisruptionBudget'].format(workers.namespace)}/{workers.name}"
        given = find(self._api, budget) is not None  # its description's own, as in strimzi.py
        for rendered in surroundings(workers):
            if not (given and rendered["kind"] == "PodDisruptionBudget"):
                self._objects.apply(rendered)
        wanted = {}
        for name in workers.pods:
            config = config_map(workers, name)
            self._objects.apply(config)
            wanted[name] = pod(workers, name, config, credentials)
        self._objects.apply(pod_set(workers, wanted))
        live = {
            name: pod
            for (namespace, name), pod in self._pods.objects.items()
            if namespace == workers.namespace
            and pod["metadata"]["labels"].get(naming.CLUSTER_LABEL) == workers.name
        }
        outdated = next_to_roll(wanted, live)
        if outdated is not None:
            self._api.delete(f"{PATHS['Pod'].format(workers.namespace)}/{outdated}")
        return [
            name
            for name, rendered in wanted.items()
            if name not in live
            or not is_ready(live[name])
            or reasons_to_restart(live[name], rendered)
        ]

    def _credentials(self, workers: Workers) -> tuple[list[str], str]:
        """Return the Secrets that are not there yet, and a digest of those that are."""
        names = [source["secretName"] for _, _, source in secrets(workers)]
        path = f"/api/v1/namespaces/{workers.namespace}/secrets"
        found = {name: find(self._api, f"{path}/{name}") for name in names}
        missing = [f"Secret {name}" for name, held in found.items() if held is None]
        return missing, digest([(held or {}).get("data") for held in found.values()])
