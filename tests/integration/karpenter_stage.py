"""Handlers and gate on the real API server that real Karpenter works on, in a test's own process.

What Kubernetes says (nodes, pods, NodeClaims, budgets, attachments) is read by the handlers' own
adapters; EC2's list of instances follows the Nodes; Kafka and the ledger are the unit tests' fakes:
a broker is in sync while its pod is Ready and nobody calls it lagging.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from core.availability.operator import OperatorView
from core.cluster import ClusterSpec
from core.cluster.operated import operated_cluster
from core.gate import GateAnswer, RemovalRequest
from core.ground import naming
from core.ground.placement import PodNeeds
from core.incidents.observation import BudgetView, InstanceView, NodeClaim, NodeView, PodView
from core.incidents.record import Incident, State
from core.views import ClusterView
from handlers.adapters.eks import EksApi
from handlers.adapters.kubernetes import EksClaimEnds, EksNodeClaims, EksNodes
from handlers.eviction.gate import Gate
from handlers.incidents.observe import Sources
from infra.gate import webhooks
from infra.nodes.karpenter import budgets, node_pool_spec
from local.kubernetes.client import Api, find
from local.processes import Child
from local.twin import Twin
from tests.integration import karpenter_kwok as kwok
from tests.integration.administrator import Administrator, namespace
from tests.integration.gates import served
from tests.integration.karpenter_kwok import Json, StandInKubelet
from tests.integration.waiting import until
from tests.unit.handlers.fakes import FakeCluster
from tests.unit.handlers.healthy import ZONES, healthy_kafka
from tests.unit.handlers.station import Station
from tests.unit.operator_at_work import operator_view
from tests.unit.policies import policy_with

NAMESPACE = "kafka"
GATE = "stillwater-gate-karpenter"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
OUR_POOLS: dict[str, tuple[str, ...]] = {naming.NODE_POOL_LABEL: ()}
# What Kafka's pods are given to stop in.
GRACE_SECONDS = 180
SWEEP_SECONDS, TURN_SECONDS = 1.0, 0.1
POLICY = policy_with(tick_interval_seconds=1, post_condition_hold_seconds=1, drain_route="asked")


@dataclass
class KarpentersCluster(FakeCluster):
    """Kubernetes as it is; EC2 and Kafka follow it."""

    lagging: set[int] = field(default_factory=set)

    def of(self, api: Api) -> KarpentersCluster:
        asked = cast("EksApi", Administrator(api))
        self._nodes = EksNodes(asked, NAMESPACE, "orders", OUR_POOLS)
        self._claims = EksNodeClaims(asked, OUR_POOLS)
        self._ends = EksClaimEnds(asked)
        return self

    def nodes(self) -> tuple[NodeView, ...]:
        return self._nodes.nodes()

    def kafka_pods(self) -> tuple[PodView, ...]:
        return self._nodes.kafka_pods()

    def kafka_pod(self, name: str) -> PodView | None:
        return self._nodes.kafka_pod(name)

    def attachments(self) -> dict[str, tuple[str, ...]]:
        return self._nodes.attachments()

    def tenants(self, node: str) -> tuple[PodNeeds, ...]:
        return self._nodes.tenants(node)

    def budgets(self) -> tuple[BudgetView, ...]:
        return self._nodes.budgets()

    def operator(self) -> OperatorView:
        return operator_view(self.kafka_pods(), self.revisions or {}, self.kafka_conditions)

    def let_leave(self, pod: str, incident_id: str) -> None:
        self._nodes.let_leave(pod, incident_id)

    def keep(self, pod: str, incident_id: str) -> None:
        self._nodes.keep(pod, incident_id)

    def mark_spare(self, node: str, incident_id: str | None) -> None:
        self._nodes.mark_spare(node, incident_id)

    def claims(self) -> tuple[NodeClaim, ...]:
        return self._claims.claims()

    def end(self, name: str, uid: str) -> None:
        self._ends.end(name, uid)

    def instance(self, instance_id: str) -> InstanceView | None:
        node = next((n for n in self.nodes() if n.instance_id == instance_id), None)
        if node is not None:
            self.instances[instance_id] = InstanceView(
                instance_id=instance_id,
                state="running",
                zone=node.zone or "",
                private_dns_name=node.name,
            )
            return self.instances[instance_id]
        known = self.instances.get(instance_id)
        return None if known is None else replace(known, state="terminated")

    def read(self, about: Collection[int] | None = None) -> ClusterView:
        ready = {pod.node_id for pod in self.kafka_pods() if pod.ready} - self.lagging
        whole = healthy_kafka()
        return replace(
            whole,
            partitions=tuple(
                replace(p, isr=tuple(b for b in p.replicas if b in ready)) for p in whole.partitions
            ),
        )


@dataclass
class Stage:
    """A Kafka on nodes of Karpenter's, the gate before it, and the handlers' loop beside it."""

    api: Api
    station: Station
    cluster: KarpentersCluster
    kubelet: StandInKubelet
    karpenter: Child
    answers: list[tuple[RemovalRequest, GateAnswer]]  # every one, in order
    _delivered: int = 0
    _due: list[tuple[float, str]] = field(default_factory=list)
    _swept_at: float = 0.0

    def check_alive(self) -> None:
        assert self.karpenter.alive, self.karpenter.tail()

    def turn(self) -> None:
        """Deliver the ticks that are due, and sweep once in a while, by the real clock."""
        self.check_alive()
        station, now = self.station, time.time()
        station.now = now
        if now - self._swept_at > SWEEP_SECONDS:
            self._swept_at = now
            station.broom.sweep(now)
        sent = station.ticks.sent
        self._due += [(now + delay, body) for body, delay in sent[self._delivered :]]
        self._delivered = len(sent)
        for each in [due for due in self._due if due[0] <= now]:
            self._due.remove(each)
            station.loop.turn(each[1], now)

    def until(self, look: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        """Carry the handlers on until something is there."""

        def turned() -> Any:
            self.turn()
            found = look()
            if not found:
                time.sleep(TURN_SECONDS)
            return found

        return until(turned, what, seconds)

    def claim_of(self, broker: int) -> Json:
        """Return the NodeClaim of the node on which a broker runs."""
        node = self.node_of(broker)
        (found,) = [c for c in self.claims() if c["status"].get("nodeName") == node]
        return found

    def claims(self) -> list[Json]:
        return list(self.api.get(kwok.CLAIMS)["items"])

    def claim(self, name: str) -> Json | None:
        return find(self.api, f"{kwok.CLAIMS}/{name}")

    def events(self) -> list[Json]:
        """Return what is told of nodes and claims as Kubernetes' events."""
        return list(self.api.get("/api/v1/namespaces/default/events")["items"])

    def pod(self, broker: int) -> PodView | None:
        return self.cluster.kafka_pod(pod_name(broker))

    def node_of(self, broker: int) -> str | None:
        pod = self.pod(broker)
        return None if pod is None else pod.node_name

    def runs(self, broker: int) -> bool:
        pod = self.pod(broker)
        return pod is not None and pod.ready

    def incident(self, claim: Json) -> Incident | None:
        return self.station.ledger.get(claim["status"]["providerID"].rpartition("/")[2])

    def over(self, claim: Json, state: State) -> Incident:
        """Wait until the incident of a claim's node ends so."""

        def ended() -> Incident | None:
            found = self.incident(claim)
            return found if found is not None and found.state is state else None

        return cast("Incident", self.until(ended, f"{claim['metadata']['name']} is {state}"))

    def told(self, broker: int, since: int = 0) -> list[tuple[RemovalRequest, GateAnswer]]:
        """Return what Karpenter asked about a broker's pod, with the answers, in order."""
        of = (kwok.ACCOUNT, pod_name(broker))
        return [each for each in self.answers[since:] if (each[0].username, each[0].name) == of]

    def pages(self, claim: Json) -> tuple[str, ...]:
        """Return why a person was called about a claim's node."""
        incident = self.incident(claim)
        return () if incident is None else incident.pages

    def change_pool(self, broker: int, change: Json) -> None:
        self.api.merge(f"{kwok.POOLS}/{pool_name(broker)}", {"spec": change})


def pool_name(broker: int) -> str:
    return naming.kafka_node_pool("broker", ZONES[broker])


def pod_name(broker: int) -> str:
    return f"orders-{pool_name(broker)}-{broker}"


def kafka_pod(broker: int) -> Json:
    """Return a pod as Strimzi's pod sets describe a broker's, as far as a drain sees it."""
    zone = {"key": naming.ZONE_LABEL, "operator": "In", "values": [ZONES[broker]]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    requests = {"cpu": "8", "memory": "16Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(broker),
            "labels": {
                naming.CLUSTER_LABEL: "orders",
                naming.POOL_LABEL: pool_name(broker),
                naming.BROKER_ROLE_LABEL: "true",
            },
        },
        "spec": {
            "nodeSelector": {naming.NODE_POOL_LABEL: "broker"},
            "affinity": affinity,
            "tolerations": [{"key": naming.DEDICATED_TAINT_KEY, "operator": "Exists"}],
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [
                {"name": "kafka", "image": "kafka", "resources": {"requests": requests}}
            ],
        },
    }


@contextlib.contextmanager
def set_stage(twin: Twin, directory: Path, spec: ClusterSpec) -> Iterator[Stage]:
    """Bring three brokers up on nodes of Karpenter's, behind a gate, and take all of it away."""
    api = twin.api
    (pool,) = [each for each in spec.pools if each.name == "broker"]
    types = kwok.instance_types(pool.instance_type, "arm64", list(ZONES.values()))
    station = Station(policy=POLICY, cluster=KarpentersCluster().of(api))
    cluster = cast("KarpentersCluster", station.cluster)
    kubelet = StandInKubelet(api, NAMESPACE, {pod_name(b): kafka_pod(b) for b in ZONES})
    with contextlib.ExitStack() as stack:
        stack.enter_context(namespace(api, NAMESPACE))
        karpenter = stack.enter_context(kwok.running(twin, directory, types))
        _pools(api, spec)
        # The API server asks by the webhooks that infra/ renders.
        gate, rendered = _gate(station), webhooks(operated_cluster(spec), NAMESPACE, [])
        stack.enter_context(served(api, gate, GATE, rendered, dt.datetime.now(dt.UTC)))
        stack.enter_context(kubelet.at_work())
        stage = Stage(api, station, cluster, kubelet, karpenter, gate.answers)
        until(
            lambda: all(stage.runs(broker) for broker in ZONES),
            "every broker runs on a node of Karpenter's",
            alive=stage.check_alive,
        )
        yield stage


def _pools(api: Api, spec: ClusterSpec) -> None:
    """Make the NodePools that infra/ renders, with kwok's class of nodes for EC2's."""
    node_class = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass"}
    api.post(kwok.CLASSES, {**node_class, "metadata": {"name": "broker"}, "spec": {}})
    (pool,) = [each for each in spec.pools if each.name == "broker"]
    for zone in spec.zones_of(pool):
        rendered = node_pool_spec(pool, zone, budgets(spec))
        rendered["template"]["spec"]["nodeClassRef"] |= {
            "group": "karpenter.kwok.sh",
            "kind": "KWOKNodeClass",
        }
        named = {"metadata": {"name": naming.kafka_node_pool(pool.name, zone)}, "spec": rendered}
        whole = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **named}
        api.post(kwok.POOLS, whole, fieldValidation="Strict")


def _gate(station: Station) -> Heard:
    cluster = station.cluster
    return Heard(
        sources=Sources(cluster, cluster, cluster, station.ledger, station.freezes, claims=cluster),
        reception=station.reception,
        forget_readings=lambda: None,
        policy=POLICY,
        namespace=NAMESPACE,
        cluster="orders",
        operators=frozenset(),
        lease_seconds=900,
    )


@dataclass(frozen=True)
class Heard(Gate):
    """A gate whose answers a test may read."""

    answers: list[tuple[RemovalRequest, GateAnswer]] = field(default_factory=list)

    def ask(self, asked: RemovalRequest, deadline: float) -> GateAnswer:
        answer = super().ask(asked, deadline)
        self.answers.append((asked, answer))
        return answer
