"""Runs `stillwater grow` and `stillwater shrink`: nodes, brokers and their partitions, in order.

The description says which brokers are to be there: `grow` brings up what is missing and then moves
partitions, `shrink` moves them and then takes down what is too many. Each run looks at what is
there and goes on from it: a KafkaRebalance's name follows from its brokers, so that a second run
makes no second one. Cruise Control moves the partitions.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from cli import stack_settings
from cli.doctor.account import eks_api
from cli.engine.layers import RunScope
from cli.provision import Asked, ask_for_agreement
from cli.rotate import MOVING, Rotations
from cli.survey.tools import is_ready
from cli.target import Cluster
from cli.terminal import say
from core.cluster import ClusterSpec
from core.ground.errors import InvalidInput, StillwaterError
from core.ground.naming import CLUSTER_LABEL, KAFKA, NODE_POOL_LABEL
from core.ground.placement import quantity
from core.ground.words import listing, span
from core.rotation.rebalance import (
    DONE,
    MIB,
    Mode,
    Rebalance,
    Step,
    disk_after,
    next_step,
    plan,
    read_rebalance,
)
from infra.eks.api import Api, ApiError

STRIMZI = "/apis/kafka.strimzi.io/v1/namespaces"
ASKED = "strimzi.io/rebalance"
POLL_SECONDS = 2.0
# EC2 launches in a minute or two, and a node joins in as many.
NODES_SECONDS = 900.0
# Karpenter's NodePools say so (infra.nodes.karpenter); Cluster Autoscaler ends none of Kafka's.
KARPENTER_ENDS = "Karpenter ends their empty nodes after an hour."
NOBODY_ENDS = (
    "Their nodes stay, empty. End each: `aws autoscaling terminate-instance-in-auto-scaling-group "
    "--instance-id ID --should-decrement-desired-capacity`."
)
Up = Callable[[Asked], None]
WORDS: Mapping[Mode, str] = {"add-brokers": "grow", "remove-brokers": "shrink"}


@dataclass(frozen=True)
class Growth:
    """One Kafka whose partitions move onto brokers, or off them."""

    cluster: Cluster
    api: Api
    namespace: str
    mode: Mode
    brokers: Sequence[int]
    missing: Sequence[int] = ()  # of those described

    @classmethod
    def named(cls, environment: str, mode: Mode, brokers: Sequence[int]) -> Growth:
        """Open a cluster; raise InvalidInput where it has no Cruise Control, or no such broker."""
        cluster = Cluster.named(environment)
        eks, spec = cluster.client("eks"), cluster.spec
        own = isinstance(spec, ClusterSpec)
        name = spec.prefix if isinstance(spec, ClusterSpec) else spec.eks_cluster
        namespace = spec.kubernetes.namespace if isinstance(spec, ClusterSpec) else spec.namespace
        api = eks_api(cluster.session, eks, name, spec.region)
        kafka = api.get(f"{STRIMZI}/{namespace}/kafkas/{spec.name}")
        if "cruiseControl" not in (kafka.get("spec") or {}):
            remedy = (
                "set `kafka.rebalance: {}` in its description and run `stillwater up`"
                if own
                else "set spec.cruiseControl in the Kafka resource"
            )
            problem = f"Kafka {spec.name} runs without Cruise Control, which moves partitions"
            raise InvalidInput([f"{problem}: {remedy}."])
        known = cls(cluster, api, namespace, mode, ())
        meant, missing = chosen(known.pools(), mode, brokers, known.described)
        return replace(known, brokers=meant, missing=missing)

    @property
    def described(self) -> frozenset[int]:
        """The brokers of the description; a cluster that exists is described without them."""
        spec = self.cluster.spec
        if not isinstance(spec, ClusterSpec):
            return frozenset()
        return frozenset(spec.running_nodes(lambda role: role.is_broker))

    def pools(self) -> list[Mapping[str, Any]]:
        """Return the KafkaNodePools that have brokers."""
        path = f"{STRIMZI}/{self.namespace}/kafkanodepools"
        selector = f"{CLUSTER_LABEL}={self.cluster.spec.name}"
        listed = self.api.get(path, labelSelector=selector)["items"]
        return [pool for pool in listed if "broker" in pool["spec"]["roles"]]

    @property
    def name(self) -> str:
        """The KafkaRebalance's name, which follows from the brokers."""
        numbers = "-".join(map(str, self.brokers))
        return f"{self.cluster.spec.name}-{WORDS[self.mode]}-{numbers}"

    @property
    def path(self) -> str:
        return f"{STRIMZI}/{self.namespace}/kafkarebalances/{self.name}"

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """How much a broker may receive; None: a cluster that exists says nothing here."""
        spec = self.cluster.spec
        rebalance = spec.kafka.rebalance if isinstance(spec, ClusterSpec) else None
        return None if rebalance is None else rebalance.throttle_mib_per_s * MIB

    def find(self) -> Rebalance | None:
        try:
            return read_rebalance(self.api.get(self.path))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def forget_finished(self) -> None:
        """Delete an earlier run's rebalance of these brokers: this run asks for one of its own."""
        found = self.find()
        if found is not None and found.state == DONE:
            self.api.delete(self.path)

    def create(self) -> None:
        """Ask Cruise Control for a proposal."""
        throttle = self.throttle_bytes_per_s
        self.api.post(
            f"{STRIMZI}/{self.namespace}/kafkarebalances",
            {
                "apiVersion": "kafka.strimzi.io/v1",
                "kind": "KafkaRebalance",
                "metadata": {
                    "name": self.name,
                    "namespace": self.namespace,
                    "labels": {CLUSTER_LABEL: self.cluster.spec.name},
                },
                "spec": {
                    "mode": self.mode,
                    "brokers": list(self.brokers),
                    **({} if throttle is None else {"replicationThrottle": throttle}),
                },
            },
        )

    def ask(self, step: Step) -> None:
        """Annotate the KafkaRebalance with what is wanted of it."""
        self.api.merge(self.path, {"metadata": {"annotations": {ASKED: step.value}}})

    def is_rotating(self) -> bool:
        run = Rotations(self.cluster).run()
        return run is not None and run.state in MOVING

    def plan(self, found: Rebalance) -> list[str]:
        """Say what the proposal comes to."""
        load = ""
        if found.load_config_map is not None:
            path = f"/api/v1/namespaces/{self.namespace}/configmaps/{found.load_config_map}"
            load = self.api.get(path).get("data", {}).get("brokerLoad.json", "")
        book = stack_settings.prices(self.cluster.spec.region)
        return list(plan(found, book, disk_after(load), dict(_disks(self.pools()))))


def _disks(pools: Sequence[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """Return each broker with the bytes of its volumes."""
    found = []
    for pool in pools:
        storage = pool["spec"]["storage"]
        volumes = storage.get("volumes") or [storage]
        size = sum(quantity(volume.get("size")) or 0 for volume in volumes)
        found += [(node, float(size)) for node in pool.get("status", {}).get("nodeIds") or ()]
    return found


def chosen(
    pools: Sequence[Mapping[str, Any]],
    mode: Mode,
    named: Sequence[int],
    described: frozenset[int],
) -> tuple[Sequence[int], Sequence[int]]:
    """Return the brokers that are meant, and which of them are missing.

    Those are meant that are named, or that the description and Kafka differ by. Without a
    difference `grow` means each pool's last, which came before a run that was cut short.
    """
    known = {
        pool["metadata"]["name"]: sorted(pool.get("status", {}).get("nodeIds") or ())
        for pool in pools
    }
    every = frozenset(node for nodes in known.values() for node in nodes)
    missing = sorted(described - every) if mode == "add-brokers" else []
    if unknown := sorted(set(named) - every - set(missing)):
        raise InvalidInput(
            [f"Kafka has no broker {_listed(unknown)}: name some of {_listed(sorted(every))}."]
        )
    if mode == "remove-brokers":
        differing = sorted(every - described) if described else []
        nobody = "No broker is to go: lower"
    else:
        differing = missing or [nodes[-1] for nodes in known.values() if len(nodes) > 1]
        nobody = "No broker is new: raise"
    meant = sorted(named or differing)
    if not meant:
        remedy = "`nodes_per_zone` of their pool, or name brokers with --broker"
        raise InvalidInput([f"{nobody} {remedy}."])
    for name, nodes in known.items() if mode == "remove-brokers" else ():
        going = sorted(set(nodes) & set(meant))
        if going and going != nodes[-len(going) :]:
            said = f"Strimzi removes the highest ids of node pool {name}: {nodes[-len(going) :]}"
            raise InvalidInput([f"{said}; name those in the place of {going}."])
    return meant, missing


def _listed(brokers: Sequence[int]) -> str:
    return listing(list(map(str, brokers)))


def bring_up(growth: Growth, up: Up, *, yes: bool, sleep: Callable[[float], None]) -> None:
    """Bring the nodes up and then the brokers: one that has no node blocks the whole Kafka."""
    spec = growth.cluster.spec
    if isinstance(spec, ClusterSpec) and spec.node_provisioner == "asg":
        up(Asked(layers=(KAFKA,), scope=RunScope(("nodes-*",)), yes=yes))
        wanted = {pool.name: spec.nodes_of(pool) for pool in spec.pools if pool.role.is_broker}
        for _ in range(int(NODES_SECONDS / POLL_SECONDS)):
            nodes = growth.api.get("/api/v1/nodes")["items"]
            ready = Counter(
                node["metadata"].get("labels", {}).get(NODE_POOL_LABEL)
                for node in nodes
                if is_ready(node)
            )
            if all(ready[pool] >= number for pool, number in wanted.items()):
                break
            sleep(POLL_SECONDS)
        else:
            waited = f"Within {span(NODES_SECONDS)} the nodes of brokers {_listed(growth.missing)}"
            raise StillwaterError(f"{waited} did not become Ready. Lower `nodes_per_zone` again.")
    up(Asked(yes=yes))


def run(
    growth: Growth,
    console: Console,
    up: Up,
    *,
    plan_only: bool,
    yes: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Bring up what is missing, move partitions, and take down what is too many."""
    if growth.missing:
        missing = f"Brokers {_listed(growth.missing)} are described, and Kafka does not have them."
        say(console, f"{missing} Their nodes come first, then they, then their partitions.")
        if plan_only:
            return
        bring_up(growth, up, yes=yes, sleep=sleep)
    spec, brokers = growth.cluster.spec, _listed(growth.brokers)
    own = spec if isinstance(spec, ClusterSpec) else None
    rebalance = own.kafka.rebalance if own else None
    adding, described = growth.mode == "add-brokers", growth.described
    leaving = bool(described) and not adding and not described & set(growth.brokers)
    growth.forget_finished()
    if rebalance is not None and rebalance.automatic and (growth.missing or leaving):
        say(console, f"Strimzi's operator moves the partitions of brokers {brokers} by itself.")
    elif not move(growth, console, plan_only=plan_only, yes=yes, sleep=sleep):
        return
    elif adding:
        say(console, "The new brokers have their share.")
    else:
        lower = "" if leaving else " Lower `nodes_per_zone`, or their pool's `replicas`."
        say(console, f"Brokers {brokers} hold no partition, and may go.{lower}")
    if leaving and not plan_only:
        up(Asked(yes=yes))
        claims = own is not None and own.node_provisioner == "karpenter"
        say(console, KARPENTER_ENDS if claims else NOBODY_ENDS)


def move(
    growth: Growth, console: Console, *, plan_only: bool, yes: bool, sleep: Callable[[float], None]
) -> bool:
    """Propose, show, ask, approve and follow to the end; False: the plan was all that was asked."""
    agreed, told = False, ""
    while True:
        found, rotating = growth.find(), growth.is_rotating()
        step = next_step(found, rotating=rotating, agreed=agreed)
        if (said := _told(found, rotating=rotating)) != told:
            say(console, said)
            told = said
        if step is Step.CREATE:
            growth.create()
        elif step is Step.FAIL and found is not None:
            raise StillwaterError(f"{found.sentence}. Delete it when its cause is gone.")
        elif step is Step.DONE:
            return True
        elif found is not None and found.state == "ProposalReady" and not agreed:
            for sentence in growth.plan(found):
                say(console, sentence)
            if plan_only:
                return False
            ask_for_agreement(f"Move them ({growth.name})?", "yes", console, yes=yes)
            agreed = True
            continue
        elif step is not Step.WAIT:
            growth.ask(step)
            # Another proposal may move more than the one that was agreed to.
            agreed = agreed and step is not Step.REFRESH
        sleep(POLL_SECONDS)


def _told(found: Rebalance | None, *, rotating: bool) -> str:
    said = (
        "Stillwater asks Cruise Control for a proposal." if found is None else f"{found.sentence}."
    )
    return f"{said} It waits: a rotation runs." if rotating else said
