"""The Kubernetes objects of one Kafka cluster, as the twin's operator makes them: pure renderings.

Names and selectors are Strimzi 1.2.0's (KafkaCluster, ListenersUtils), because the load balancer's
bindings and our own program find them by those.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from core.ground import naming
from local.kafka.container import (
    CLIENT_CA_CERTS,
    CLUSTER_CA_CERTS,
    CLUSTER_ID,
    CONFIG_MOUNT,
    METADATA_VERSION,
    NODE_CERTS,
    RACK_LABEL,
    SERVER_CONFIG,
)
from local.kubernetes.strimzi_config import (
    CONTROL_PLANE_PORT,
    METRICS_PORT,
    METRICS_PORT_NAME,
    REPLICATION_PORT,
    restarting_settings,
    server_config,
    volume_mount,
)
from local.kubernetes.strimzi_model import KafkaCluster, KafkaListener, KafkaPodNode, stored_storage

REVISION, RESOURCE_REVISION = naming.REVISION_ANNOTATION, "strimzi.io/resource-revision"
CONFIGURATION_HASH = "strimzi.io/configuration-hash"
KAFKA_VERSION, STORAGE = "strimzi.io/kafka-version", "strimzi.io/storage"
KIND_LABEL = naming.KIND_LABEL
POD_SET_API, POD_SET = "core.strimzi.io/v1", "StrimziPodSet"
OPERATOR_VERSION = "1.2.0"
CONFIG_VOLUME = "kafka-metrics-and-logging"
DEFAULT_GRACE_SECONDS = 30
# A process on this machine answers sooner than a pod on EKS: Strimzi's own are 15, 5, 10 and 3.
PROBE = {"initialDelaySeconds": 2, "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 3}
# The agent looks once a second: one look that missed must not take a broker out of service.
AGENT_PROBE = PROBE | {"failureThreshold": 10}
LIVENESS = {"initialDelaySeconds": 60, "periodSeconds": 10, "failureThreshold": 6}
# Parts of a pool's pod template that are the pod spec's own fields.
TEMPLATE_FIELDS = (
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "schedulerName",
    "enableServiceLinks",
)

Rendered = dict[str, Any]


def labels(cluster: KafkaCluster, **more: str) -> dict[str, str]:
    return {
        naming.CLUSTER_LABEL: cluster.name,
        KIND_LABEL: "Kafka",
        "strimzi.io/name": f"{cluster.name}-kafka",
        "app.kubernetes.io/name": "kafka",
        "app.kubernetes.io/instance": cluster.name,
        "app.kubernetes.io/managed-by": naming.STRIMZI_OPERATOR,
        "app.kubernetes.io/part-of": f"strimzi-{cluster.name}",
        "strimzi.io/component-type": "kafka",
        **more,
    }


def selector(cluster: KafkaCluster, **more: str) -> dict[str, str]:
    """Return the labels by which Services and budgets find a cluster's pods."""
    every = labels(cluster)
    return {k: every[k] for k in (naming.CLUSTER_LABEL, KIND_LABEL, "strimzi.io/name")} | more


def service_account(cluster: KafkaCluster) -> Rendered:
    return owned_object(cluster, "v1", "ServiceAccount", f"{cluster.name}-kafka")


def services(cluster: KafkaCluster) -> list[Rendered]:
    """Return the headless Service, the bootstrap Service and every listener's Services."""
    brokers = {"strimzi.io/broker-role": "true"}
    internal = [
        _port(naming.listener_port_name(x.name), x.port)
        for x in cluster.listeners
        if x.type == "internal"
    ]
    replication = _port("tcp-replication", REPLICATION_PORT)
    headless = _service(
        owned_object(cluster, "v1", "Service", naming.headless_service(cluster.name)),
        selector(cluster),
        [_port("tcp-ctrlplane", CONTROL_PLANE_PORT), replication, *internal],
    )
    # A node must resolve its peers before any of them is ready.
    headless["spec"] |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    bootstrap = _service(
        owned_object(cluster, "v1", "Service", naming.bootstrap_service(cluster.name)),
        selector(cluster, **brokers),
        [replication, *internal],
    )
    return [
        headless,
        bootstrap,
        *(
            service
            for listener in cluster.listeners
            if listener.type == "cluster-ip"
            for service in _listener_services(cluster, listener, brokers)
        ),
    ]


def config_map(cluster: KafkaCluster, node: KafkaPodNode) -> Rendered:
    rendered = _of_pool(cluster, node.pool, "ConfigMap", cluster.pod(node))
    rendered["metadata"]["labels"][naming.POD_NAME_LABEL] = cluster.pod(node)
    rendered["data"] = {
        SERVER_CONFIG: server_config(cluster, node),
        CLUSTER_ID: cluster.cluster_id,
        METADATA_VERSION: cluster.metadata_version,
    }
    if node.is_broker and cluster.rack_label is not None:
        rendered["data"][RACK_LABEL] = cluster.rack_label
    return rendered


def claims(cluster: KafkaCluster, node: KafkaPodNode) -> list[Rendered]:
    """Return the node's claims; without an owner unless the volume asks to be deleted with it."""
    return [_claim(cluster, node, volume) for volume in node.volumes]


def budget(cluster: KafkaCluster) -> Rendered:
    """Return the cluster's one PodDisruptionBudget.

    Only an integer minAvailable works for pods whose owner has no scale: a maxUnavailable or a
    percentage lets nothing ever be evicted.
    """
    rendered = owned_object(cluster, "policy/v1", "PodDisruptionBudget", f"{cluster.name}-kafka")
    rendered["spec"] = {
        "minAvailable": max(0, len(cluster.nodes) - cluster.max_unavailable),
        "selector": {"matchLabels": selector(cluster)},
    }
    return rendered


def pod(
    cluster: KafkaCluster, node: KafkaPodNode, issued: Mapping[str, str] | None = None
) -> Rendered:
    """Return the node's pod as its pod set describes it, marked with its revisions.

    `issued` are annotations that tell which certificates it shows and trusts.
    """
    template = (cluster.pools[node.pool]["spec"].get("template") or {}).get("pod") or {}
    name = cluster.pod(node)
    metadata = template.get("metadata") or {}
    rendered: Rendered = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": cluster.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                **labels(cluster),
                naming.POOL_LABEL: node.pool,
                naming.POD_NAME_LABEL: name,
                naming.CONTROLLER_ROLE_LABEL: str(node.is_controller).lower(),
                naming.BROKER_ROLE_LABEL: str(node.is_broker).lower(),
                "strimzi.io/controller": "strimzipodset",
                "strimzi.io/controller-name": pod_set_name(cluster, node.pool),
            },
            "annotations": {
                **(metadata.get("annotations") or {}),
                **(issued or {}),
                KAFKA_VERSION: cluster.version,
                CONFIGURATION_HASH: digest(restarting_settings(cluster, node)),
            },
        },
        "spec": {
            "schedulerName": "default-scheduler",
            **{field: template[field] for field in TEMPLATE_FIELDS if field in template},
            "securityContext": {"fsGroup": 0},
            "hostname": name,
            "subdomain": naming.headless_service(cluster.name),
            "serviceAccountName": f"{cluster.name}-kafka",
            "automountServiceAccountToken": False,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": template.get(
                "terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS
            ),
            "containers": [_container(cluster, node)],
            "volumes": [
                *(
                    {
                        "name": f"data-{volume['id']}",
                        "persistentVolumeClaim": {
                            "claimName": naming.claim(
                                cluster.name, node.pool, node.node_id, volume["id"]
                            )
                        },
                    }
                    for volume in node.volumes
                ),
                {"name": CONFIG_VOLUME, "configMap": {"name": name}},
                *(_secret_volume(volume, secret) for volume, secret, _ in _secrets(cluster, node)),
            ],
        },
    }
    if node.is_broker and cluster.rack_label is not None:
        rendered["spec"]["affinity"] = _on_labelled_nodes(
            rendered["spec"].get("affinity") or {}, cluster.rack_label
        )
    return with_revisions(rendered)


def with_revisions(rendered: Rendered) -> Rendered:
    """Return a pod with one revision of its resources and one of all the rest (PodRevision)."""
    metadata, spec = rendered["metadata"], rendered["spec"]
    containers = [{k: v for k, v in c.items() if k != "resources"} for c in spec["containers"]]
    revisions = {
        REVISION: digest([metadata, {**spec, "containers": containers}]),
        RESOURCE_REVISION: digest([c.get("resources") for c in spec["containers"]]),
    }
    annotations = {**metadata.get("annotations", {}), **revisions}
    return {**rendered, "metadata": {**metadata, "annotations": annotations}}


def pod_set(cluster: KafkaCluster, pool: str, pods: Mapping[str, Rendered]) -> Rendered:
    """Return a pool's pod set; `pods` are those of all pools, by name."""
    rendered = _of_pool(cluster, pool, POD_SET, pod_set_name(cluster, pool))
    rendered["apiVersion"] = POD_SET_API
    rendered["metadata"]["annotations"] = {
        KAFKA_VERSION: cluster.version,
        STORAGE: stored_storage(cluster.pools[pool]["spec"]["storage"]),
    }
    rendered["spec"] = {
        "selector": {"matchLabels": selector(cluster, **{naming.POOL_LABEL: pool})},
        "pods": [pods[cluster.pod(node)] for node in cluster.nodes if node.pool == pool],
    }
    return rendered


def pod_set_name(cluster: KafkaCluster, pool: str) -> str:
    return f"{cluster.name}-{pool}"


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _container(cluster: KafkaCluster, node: KafkaPodNode) -> Rendered:
    pool_spec = cluster.pools[node.pool]["spec"]
    main_port = REPLICATION_PORT if node.is_broker else CONTROL_PLANE_PORT
    check = {"tcpSocket": {"port": main_port}}
    ports = [("tcp-ctrlplane", CONTROL_PLANE_PORT)] if node.is_controller else []
    if node.is_broker:
        ports.append(("tcp-replication", REPLICATION_PORT))
        ports += [(naming.listener_port_name(x.name), x.port) for x in cluster.listeners]
    if cluster.metrics:
        ports.append((METRICS_PORT_NAME, METRICS_PORT))
    return {
        "name": "kafka",
        "image": cluster.image
        or f"quay.io/strimzi/kafka:{OPERATOR_VERSION}-kafka-{cluster.version}",
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "KAFKA_JMX_EXPORTER_ENABLED", "value": "false"},
            {"name": "STRIMZI_KAFKA_GC_LOG_ENABLED", "value": "false"},
            {"name": "KAFKA_CLUSTER_NAME", "value": cluster.name},
            # The twin's own heap is smaller; what stands here restarts a pod when it changes.
            {"name": "KAFKA_HEAP_OPTS", "value": _heap(pool_spec.get("jvmOptions") or {})},
        ],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "resources": pool_spec.get("resources") or {},
        "readinessProbe": (
            (_agent_probe(cluster, node, "ready") or check | PROBE)
            | cluster.probes.get("readinessProbe", {})
        ),
        "livenessProbe": (
            (_agent_probe(cluster, node, "alive") or check)
            | LIVENESS
            | cluster.probes.get("livenessProbe", {})
        ),
        "volumeMounts": [
            *(
                {"name": f"data-{volume['id']}", "mountPath": volume_mount(volume["id"])}
                for volume in node.volumes
            ),
            {"name": CONFIG_VOLUME, "mountPath": CONFIG_MOUNT},
            *(
                {"name": volume, "mountPath": path, "readOnly": True}
                for volume, _, path in _secrets(cluster, node)
            ),
        ],
    }


def _heap(options: Mapping[str, Any]) -> str:
    return " ".join(f"{key}{options[key]}" for key in ("-Xms", "-Xmx") if key in options)


def _on_labelled_nodes(affinity: Mapping[str, Any], label: str) -> Rendered:
    """Return an affinity that also asks for nodes that tell their rack."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    tells = {"key": label, "operator": "Exists"}
    on_nodes = affinity.get("nodeAffinity") or {}
    terms = (on_nodes.get(required) or {}).get("nodeSelectorTerms") or [{}]
    asked = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), tells]}
        for term in terms
    ]
    return {**affinity, "nodeAffinity": {**on_nodes, required: {"nodeSelectorTerms": asked}}}


def _secrets(cluster: KafkaCluster, node: KafkaPodNode) -> list[tuple[str, str, str]]:
    """Return volume, Secret and mount path of what a node shows and of what it trusts."""
    if not cluster.asks:
        return []
    mounted = [
        ("node-certs", cluster.pod(node), NODE_CERTS),
        ("cluster-ca-certs", naming.cluster_ca_secret(cluster.name), CLUSTER_CA_CERTS),
    ]
    if node.is_broker:
        clients = naming.clients_ca_secret(cluster.name)
        mounted.append(("client-ca-certs", clients, CLIENT_CA_CERTS))
    return mounted


def _secret_volume(volume: str, secret: str) -> Rendered:
    return {"name": volume, "secret": {"secretName": secret, "defaultMode": 0o400}}


def _agent_probe(cluster: KafkaCluster, node: KafkaPodNode, question: str) -> Rendered | None:
    """Return a probe of the health agent; None where the cluster exposes nothing it could see."""
    port = cluster.health_agent_port
    if port is None or cluster.health_rules is None or not cluster.metrics:
        return None
    path = f"/v1/{question}/{cluster.pod(node)}?rules={cluster.health_rules}"
    # No host: the namespace's Pod Security refuses pods whose probes name one.
    return {"httpGet": {"port": port, "path": path}} | AGENT_PROBE


def _listener_services(
    cluster: KafkaCluster, listener: KafkaListener, brokers: Mapping[str, str]
) -> Iterable[Rendered]:
    port_name = naming.listener_port_name(listener.name)
    ports = [_port(port_name, listener.port)]
    name = naming.listener_bootstrap_service(cluster.name, listener.name, listener.port)
    yield _service(
        owned_object(cluster, "v1", "Service", name),
        selector(cluster, **brokers),
        ports,
    )
    for node in cluster.nodes:
        if node.is_broker:
            name = naming.listener_broker_service(
                cluster.name, node.pool, node.node_id, listener.name, listener.port
            )
            its = {naming.POOL_LABEL: node.pool, naming.POD_NAME_LABEL: cluster.pod(node)}
            yield _service(
                _of_pool(cluster, node.pool, "Service", name), selector(cluster, **its), ports
            )


def _claim(cluster: KafkaCluster, node: KafkaPodNode, volume: Mapping[str, Any]) -> Rendered:
    name = naming.claim(cluster.name, node.pool, node.node_id, volume["id"])
    rendered = _of_pool(cluster, node.pool, "PersistentVolumeClaim", name)
    deleted = bool(volume.get("deleteClaim", False))
    rendered["metadata"]["annotations"] = {"strimzi.io/delete-claim": str(deleted).lower()}
    if not deleted:
        del rendered["metadata"]["ownerReferences"]
    rendered["spec"] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": volume["size"]}},
    }
    for field, source in (
        ("storageClassName", "class"),
        ("volumeAttributesClassName", "volumeAttributesClass"),
    ):
        if volume.get(source):
            rendered["spec"][field] = volume[source]
    return rendered


def _service(rendered: Rendered, selects: Mapping[str, str], ports: list[Rendered]) -> Rendered:
    spec = {"type": "ClusterIP", "selector": dict(selects), "ports": ports}
    return {**rendered, "spec": {**spec, "sessionAffinity": "None"}}


def _port(name: str, port: int) -> Rendered:
    # By the name: a pod without that port, such as a controller, is no endpoint.
    return {"name": name, "port": port, "targetPort": name, "protocol": "TCP"}


def _of_pool(cluster: KafkaCluster, pool: str, kind: str, name: str) -> Rendered:
    """Return an object that goes with its pool, as Strimzi's do (KafkaCluster, generatePodSets).

    A Kafka that is deleted leaves its nodes running until their pools are.
    """
    rendered = owned_object(cluster, "v1", kind, name)
    rendered["metadata"]["labels"][naming.POOL_LABEL] = pool
    rendered["metadata"]["ownerReferences"] = [
        owner_reference("KafkaNodePool", pool, cluster.pools[pool]["metadata"]["uid"])
    ]
    return rendered


def owned_object(cluster: KafkaCluster, api_version: str, kind: str, name: str) -> Rendered:
    owner = owner_reference("Kafka", cluster.name, cluster.uid)
    return described(api_version, kind, name, cluster.namespace, labels(cluster), owner)


def described(
    api_version: str,
    kind: str,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    owner: Rendered,
) -> Rendered:
    """Return an object that goes with its owner, without what it says."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**metadata, "ownerReferences": [owner]},
    }


def owner_reference(kind: str, name: str, uid: str) -> Rendered:
    """Return what ties an object to a resource of Strimzi's, with which it goes."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": False,
        "blockOwnerDeletion": True,
    }
