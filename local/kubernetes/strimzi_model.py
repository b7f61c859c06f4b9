"""A Kafka resource and its node pools, read into what the twin's operator renders from.

Source of the resources' fields: strimzi-kafka-operator 1.2.0, kafka.strimzi.io/v1.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.ground import naming
from core.ground.constants import STRIMZI_KAFKA_VERSIONS, TAKEN_PORTS
from core.ground.errors import InvalidInput
from core.ground.placement import quantity
from core.health.rules import RuleSet

Object = Mapping[str, Any]

NEXT_NODE_IDS = "strimzi.io/next-node-ids"
LISTENER_TYPES = ("internal", "cluster-ip")
TLS, SCRAM = "tls", "scram-sha-512"
# Of every certificate that Strimzi issues but a user's.
ORGANIZATION = "io.strimzi"
# ListenersValidator; the ports of Prometheus and JMX are taken as well.
LOWEST_PORT = 9092
_LISTENER_NAME = re.compile(r"^[a-z0-9]{1,11}$")
_ID_RANGE = re.compile(r"\s*\[(\s*\d+(\s*-\s*\d+)?\s*,)*\s*\d+(\s*-\s*\d+)?\s*\]\s*", re.ASCII)
# What Kafka could not make with fewer brokers (KafkaCluster).
_REPLICATED = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
)
# On a Kafka: which of core.health's rule sets its pods' probes ask; `ports` for none of them.
# Strict is what a Kafka without it gets, unless the twin was told another.
HEALTH_RULES, PORTS = "stillwater.dev/health-rules", "ports"
RULES_VARIABLE = "STILLWATER_HEALTH_RULES"


# What a pod set remembers of a volume, in Strimzi's order.
FIXED_FIELDS = ("type", "class", "selector")
STORED_FIELDS = (
    *("id", "type", "size", "kraftMetadata", "class", "volumeAttributesClass"),
    *("deleteClaim", "selector"),
)


@dataclass(frozen=True, slots=True)
class KafkaListener:
    """One Kafka listener; `advertised_*` are templates over {nodeId}."""

    name: str
    port: int
    type: str
    advertised_host: str | None = None
    advertised_port: str | None = None
    tls: bool = False
    # How clients say who they are; None: nobody is asked.
    authentication: str | None = None
    # What else its certificates serve.
    alternative_names: tuple[str, ...] = ()

    def host_of(self, node_id: int) -> str | None:
        if self.advertised_host is None:
            return None
        return self.advertised_host.replace("{nodeId}", str(node_id))

    def port_of(self, node_id: int) -> int:
        if self.advertised_port is None:
            return self.port
        return evaluate(self.advertised_port, node_id)


@dataclass(frozen=True, slots=True)
class KafkaPodNode:
    """One Kafka node: a pod, its pool, and the volumes it keeps."""

    node_id: int
    pool: str
    roles: frozenset[str]
    volumes: tuple[Mapping[str, Any], ...]

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """One Kafka cluster as its resources describe it."""

    name: str
    namespace: str
    uid: str
    cluster_id: str
    version: str
    metadata_version: str
    image: str | None
    listeners: tuple[KafkaListener, ...]
    config: Mapping[str, Any]
    max_unavailable: int
    probes: Mapping[str, Any]
    # The label of a node that names its brokers' rack; None: brokers have none.
    rack_label: str | None
    # Which metrics are exposed, as regular expressions; empty: no reporter runs.
    metrics: tuple[str, ...]
    # Resources by name; one without replicas has no node.
    pools: Mapping[str, Object]
    nodes: tuple[KafkaPodNode, ...]
    # Whether an authorizer asks what a client may do.
    authorized: bool = False
    # Which of core.health's rule sets the probes ask, and host and port of who answers them; None:
    # probes ask whether the port is open, which needs nobody.
    health_rules: str | None = None
    health_agent_port: int | None = None

    @property
    def asks(self) -> bool:
        """Say whether anybody is asked who it is; where nobody is, nodes speak in the clear too."""
        return self.authorized or any(each.tls or each.authentication for each in self.listeners)

    def pod(self, node: KafkaPodNode) -> str:
        return naming.pod(self.name, node.pool, node.node_id)

    def host(self, node: KafkaPodNode) -> str:
        """Return the name by which voters know each other."""
        return naming.pod_host(self.name, self.namespace, self.pod(node))

    def service_host(self, node: KafkaPodNode) -> str:
        """Return the name that a node advertises."""
        return self.host(node).removesuffix(".cluster.local")


def read(
    kafka: Object, pools: Iterable[Object], ids: Mapping[str, Sequence[int]], cluster_id: str
) -> KafkaCluster:
    """Read a Kafka and its pools; `ids` maps a pool to its node ids.

    Raises InvalidInput with a sentence for everything this operator cannot run.
    """
    metadata, spec = kafka["metadata"], kafka["spec"]["kafka"]
    by_name = {pool["metadata"]["name"]: pool for pool in pools}
    nodes = tuple(
        node for name, pool in by_name.items() for node in _nodes(pool, ids.get(name, ()))
    )
    listeners = tuple(_listener(raw) for raw in spec.get("listeners") or [])
    problems = [
        *_version_problems(str(spec["version"])),
        *_role_problems(nodes),
        *_listener_problems(spec.get("listeners") or []),
        *_replication_problems(spec.get("config") or {}, sum(node.is_broker for node in nodes)),
    ]
    if (authorizes := (spec.get("authorization") or {}).get("type", "simple")) != "simple":
        problems.append(
            f"authorization {authorizes} is none the twin's operator knows; use simple."
        )
    if problems:
        raise InvalidInput(f"Kafka {metadata['name']}: {problem}" for problem in problems)
    budget = (spec.get("template") or {}).get("podDisruptionBudget") or {}
    version = str(spec["version"])
    return KafkaCluster(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        cluster_id=cluster_id,
        version=version,
        metadata_version=str(spec.get("metadataVersion") or ".".join(version.split(".")[:2])),
        image=spec.get("image"),
        listeners=listeners,
        config=spec.get("config") or {},
        max_unavailable=int(budget.get("maxUnavailable", 1)),
        probes={k: spec[k] for k in ("readinessProbe", "livenessProbe") if spec.get(k)},
        rack_label=rack_label(spec),
        metrics=allowed_metrics(spec),
        pools=by_name,
        nodes=tuple(sorted(nodes, key=lambda node: node.node_id)),
        authorized=bool(spec.get("authorization")),
        health_rules=_health_rules(kafka),
    )


def _health_rules(kafka: Object) -> str | None:
    """Return the rule set of a Kafka's annotation: proposal, shipped, strict, or ports for none."""
    metadata = kafka["metadata"]
    named = (metadata.get("annotations") or {}).get(
        HEALTH_RULES, os.environ.get(RULES_VARIABLE, RuleSet.STRICT.value)
    )
    if named == PORTS:
        return None
    try:
        return RuleSet(named).value
    except ValueError:
        known = ", ".join([*(rules.value for rules in RuleSet), PORTS])
        raise InvalidInput(
            [f"Kafka {metadata['name']}: {HEALTH_RULES} is {named!r}; set it to one of {known}."]
        ) from None


def rack_label(spec: Mapping[str, Any]) -> str | None:
    """Return the topology key of a Kafka's or a KafkaConnect's rack."""
    key = (spec.get("rack") or {}).get("topologyKey")
    return None if key is None else str(key)


def allowed_metrics(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the allow list of a Kafka or a KafkaConnect; only Strimzi's own reporter runs here."""
    config = spec.get("metricsConfig") or {}
    if config.get("type") != "strimziMetricsReporter":
        return ()
    return tuple((config.get("values") or {}).get("allowList") or [".*"])


def evaluate(template: str, node_id: int) -> int:
    """Return an advertisedPortTemplate's value, here a sum: "10000 + {nodeId}"."""
    try:
        return sum(int(part) for part in template.replace("{nodeId}", str(node_id)).split("+"))
    except ValueError:
        raise InvalidInput(
            [f"advertisedPortTemplate {template!r} is not a sum of numbers."]
        ) from None


def node_ids(pools: Iterable[Object]) -> dict[str, list[int]]:
    """Return each pool's node ids: those it has, new ones from its annotation or the lowest free.

    A pool that shrinks loses its highest ids, as Strimzi's does without an annotation.
    """
    given = {
        pool["metadata"]["name"]: sorted((pool.get("status") or {}).get("nodeIds") or [])
        for pool in pools
    }
    for pool in sorted(pools, key=lambda pool: str(pool["metadata"]["name"])):
        name, wanted = pool["metadata"]["name"], int(pool["spec"]["replicas"])
        used = {node_id for ids in given.values() for node_id in ids}
        annotation = (pool["metadata"].get("annotations") or {}).get(NEXT_NODE_IDS, "")
        reserved = [node_id for node_id in annotated_ids(annotation) if node_id not in used]
        free = (node_id for node_id in range(len(used) + wanted) if node_id not in used)
        fresh = [*reserved, *(node_id for node_id in free if node_id not in reserved)]
        missing = max(0, wanted - len(given[name]))
        given[name] = sorted([*given[name][:wanted], *fresh[:missing]])
    return given


def annotated_ids(annotation: str) -> list[int]:
    """Return the ids of a next-node-ids annotation: [0, 2, 10-12] -> 0, 2, 10, 11, 12.

    A range may go down; one that cannot be read counts for nothing, as with Strimzi (NodeIdRange).
    """
    ids: list[int] = []
    if _ID_RANGE.fullmatch(annotation) is None:
        return ids
    for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", annotation):
        start, end = int(first), int(last or first)
        step = 1 if end >= start else -1
        ids += range(start, end + step, step)
    return ids


def stored_storage(storage: Mapping[str, Any]) -> str:
    """Return a pool's storage as its pod set remembers it."""
    volumes = [
        {key: volume[key] for key in STORED_FIELDS if volume.get(key, False) is not False}
        for volume in _volumes(storage)
    ]
    return json.dumps({"type": storage["type"], "volumes": volumes}, separators=(",", ":"))


def is_refused_storage(storage: Mapping[str, Any], stored: str) -> bool:
    """Say whether a change of storage is one that Strimzi ignores (StorageDiff).

    Volumes may come, go and grow, and change deleteClaim, kraftMetadata and their attributes class.
    """
    known = json.loads(stored)
    before = {volume["id"]: volume for volume in known["volumes"]}
    kept = [(before[v["id"]], v) for v in _volumes(storage) if v["id"] in before]
    return known["type"] != storage["type"] or any(
        any(old.get(field) != new.get(field) for field in FIXED_FIELDS)
        or (quantity(new.get("size")) or Decimal()) < (quantity(old.get("size")) or Decimal())
        for old, new in kept
    )


def _volumes(storage: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(storage["volumes"]) if storage["type"] == "jbod" else [{"id": 0, **storage}]


def _nodes(pool: Object, ids: Iterable[int]) -> list[KafkaPodNode]:
    spec = pool["spec"]
    return [
        KafkaPodNode(
            node_id=node_id,
            pool=pool["metadata"]["name"],
            roles=frozenset(spec["roles"]),
            volumes=tuple(_volumes(spec["storage"])),
        )
        for node_id in ids
    ]


def _listener(raw: Mapping[str, Any]) -> KafkaListener:
    configuration = raw.get("configuration") or {}
    return KafkaListener(
        name=raw["name"],
        port=int(raw["port"]),
        type=raw["type"],
        advertised_host=configuration.get("advertisedHostTemplate"),
        advertised_port=configuration.get("advertisedPortTemplate"),
        tls=bool(raw.get("tls")),
        authentication=(raw.get("authentication") or {}).get("type"),
        alternative_names=tuple((configuration.get("bootstrap") or {}).get("alternativeNames", ())),
    )


def _version_problems(version: str) -> list[str]:
    if version in STRIMZI_KAFKA_VERSIONS:
        return []
    known = ", ".join(STRIMZI_KAFKA_VERSIONS)
    return [f"Unsupported Kafka.spec.kafka.version: {version}. Supported versions are: [{known}]."]


def _replication_problems(config: Mapping[str, Any], brokers: int) -> list[str]:
    return [
        f"Kafka configuration option '{option}' should be set to {brokers} or less because this "
        f"cluster has only {brokers} Kafka broker(s)."
        for option in _REPLICATED
        if str(config.get(option, "")).isdecimal() and int(config[option]) > brokers > 0
    ]


def _role_problems(nodes: Iterable[KafkaPodNode]) -> list[str]:
    roles = {role for node in nodes for role in node.roles}
    return [
        f"no node pool has the role {role}; add a KafkaNodePool with it."
        for role in ("controller", "broker")
        if role not in roles
    ]


def _listener_problems(listeners: Iterable[Mapping[str, Any]]) -> list[str]:
    told = list(listeners)
    problems = [
        f"Listener configuration is not valid: every listener needs to have a unique {what}."
        for what, key in (("name", "name"), ("port number", "port"))
        if len({raw[key] for raw in told}) < len(told)
    ]
    for raw in told:
        if _LISTENER_NAME.fullmatch(raw["name"]) is None:
            problems.append(
                f"Listener configuration is not valid: listener names [{raw['name']}] are invalid "
                f"and do not match the pattern {_LISTENER_NAME.pattern}."
            )
        if int(raw["port"]) in TAKEN_PORTS or int(raw["port"]) < LOWEST_PORT:
            problems.append(
                f"Listener configuration is not valid: port {raw['port']} is forbidden and cannot "
                f"be used."
            )
        if raw["type"] not in LISTENER_TYPES:
            problems.append(
                f"listener {raw['name']} has the type {raw['type']}, but the twin's operator "
                f"knows {' and '.join(LISTENER_TYPES)} only."
            )
        asks = (raw.get("authentication") or {}).get("type")
        if asks not in {None, TLS, SCRAM}:
            problems.append(
                f"listener {raw['name']} asks for authentication {asks}, but the twin's operator "
                f"knows {TLS} and {SCRAM} only."
            )
        if asks == TLS and not raw.get("tls"):
            problems.append(
                f"listener {raw['name']} asks for certificates without TLS; set tls to true."
            )
    return problems
